"""`surefoot recover context`: one request from valid history, after a refusal.

Owns: what the words of the command mean, its printing and exit codes (PR-80, PR-81). Does not
own: admission and the request (`runtime.incidents`), the card (`incident_card`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from surefoot.surfaces import incident_card, verdict
from surefoot.surfaces.cli import reading
from surefoot.surfaces.cli.output import complain, look_here, say_json, say_lines
from surefoot.surfaces.cli.talk import Wish
from surefoot.surfaces.words import refusal

ID = "inc_"


@click.command("recover-context", short_help="Recover from valid history after a refusal.")
@click.argument("words", nargs=-1)
@click.option("--session", "session", help="Of this session; the newest one here without it.")
@click.option("--guidance", help="Words for the model; they are never read as a command.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def recover_context(
    ctx: click.Context, /, words: tuple[str, ...], session: str | None, guidance: str | None, as_json: bool
) -> None:
    """Recover from valid history after a provider refused it: one request, once. [ID] [GUIDANCE…]"""
    incident_id, said = parted(words)
    if guidance and said:
        raise click.UsageError("Give the guidance as words or with --guidance, not both.")
    ctx.exit(asyncio.run(_recover(incident_id, guidance or said, session, as_json=as_json)))


def parted(words: Sequence[str]) -> tuple[str | None, str]:
    """A first word that begins with `inc_` is the id; everything else is guidance."""
    if words and words[0].startswith(ID):
        return words[0], " ".join(words[1:])
    return None, " ".join(words)


async def _recover(incident_id: str | None, guidance: str, session: str | None, *, as_json: bool) -> int:
    from surefoot.surfaces.cli import running  # a list of open calls must not load a model client

    settings = reading.settings_here()
    look = look_here(settings.language)
    wish = Wish(
        settings=settings,
        directory=Path.cwd(),
        prompt="",
        output="text",
        look=look,
        go_on=session is None,
        resume=session,
    )
    async with running.opened(wish) as opened:
        controller = opened.controller
        done = await controller.recover_context(incident_id, guidance)
        card = await controller.incidents.card()
        open_calls = running.undecided(running.Desk(opened.app, controller).snapshot())
    if not hasattr(done, "turn_id"):
        return _refused(done.body, look.language, as_json=as_json)
    ending = replace(running.judged(done), unknown_undecided=bool(open_calls))
    code = verdict.exit_code(ending)
    if as_json:
        say_json({"incident": incident_card.as_data(card or {}), "result": done.text, "exitCode": code})
    else:
        say_lines([done.text] if done.text else [])
        complain([] if code == 0 else incident_card.lines(card or {}, look.language))
    return code


def _refused(body: Any, language: str, *, as_json: bool) -> int:
    """Nothing was sent; the first press's result is shown with it."""
    card = body.get("incident")
    if as_json:
        told = None if card is None else incident_card.as_data(card)
        say_json({"code": body["code"], "reason": body.get("reason"), "incident": told, "exitCode": 1})
        return 1
    complain([f"{body['code']}: {refusal(body['code'], language, reason=body.get('reason'))}"])
    complain([] if card is None else incident_card.lines(card, language))
    return 1
