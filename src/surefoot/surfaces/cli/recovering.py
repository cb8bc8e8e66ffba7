"""`surefoot recover context`: one request from valid history, after a refusal.

Owns: what the words of the command mean, its printing and exit codes (PR-80, PR-81). Does not
own: admission and the request (`runtime.incidents`), the card (`incident_card`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surefoot.errors import SessionMissing, SurefootError
from surefoot.surfaces.cli import reading
from surefoot.surfaces.cli.output import complain, look_here, say_json, say_lines
from surefoot.surfaces.cli.talk import Wish
from surefoot.surfaces.words import refusal, say

if TYPE_CHECKING:
    from surefoot.config import Settings
    from surefoot.core.incident import Incident

ID = "inc_"
_UNANSWERED = (None, "failed", "cancelled")
"""What became of a recovery request that brought no reply and no refusal."""


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
    import asyncio  # the other commands of `recover` start without it

    ctx.exit(asyncio.run(_recover(incident_id, guidance or said, session, as_json=as_json)))


def parted(words: Sequence[str]) -> tuple[str | None, str]:
    """A first word that begins with `inc_` is the id; everything else is guidance."""
    if words and words[0].startswith(ID):
        return words[0], " ".join(words[1:])
    return None, " ".join(words)


async def _recover(incident_id: str | None, guidance: str, session: str | None, *, as_json: bool) -> int:
    # A list of open calls must load neither a model client nor the words of an incident.
    from surefoot.surfaces import incident_card, notices, verdict
    from surefoot.surfaces.cli import running

    settings = reading.settings_here()
    settings, pending = await _as_asked(settings, session)
    look = look_here(settings)
    wish = Wish(
        settings=settings,
        directory=Path.cwd(),
        prompt="",
        output="text",
        look=look,
        go_on=session is None,
        resume=session,
    )

    def told(notice: Any) -> None:
        line = notices.line(notice.kind, notice.facts, look.language)
        complain([line] if line else [])

    async with running.opened(wish, on_notice=None if as_json else told) as opened:
        controller = opened.controller
        done = await controller.recover_context(incident_id or pending, guidance)
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


async def _as_asked(settings: Settings, session: str | None) -> tuple[Settings, str | None]:
    """The settings with the model and effort that the refused run's own flags had named (PR-1), and its incident.

    A command without an id means the incident that is pending now, before the session is waited for (PR-81).
    """
    from surefoot.core.incident import incidents_of

    try:
        place, row = await reading.find_session(settings, session)
    except SessionMissing:
        return settings, None  # told where the session is opened
    async with reading.reader(place) as ledger:
        records = incidents_of(await ledger.read(row.session_id))
    newest = records[-1] if records else None
    if newest is None or newest.state != "pending":
        return settings, None
    return _of_the_refused_run(settings, newest), newest.id or None


def _of_the_refused_run(settings: Settings, record: Incident) -> Settings:
    """The settings with the model and effort that flags of that run had named."""
    asked = record.fields.get("asked_for")
    if not isinstance(asked, Mapping):
        return settings
    effort = asked.get("effort") or settings.effort
    return replace(reading.settings_here({"model": asked.get("model")}), effort=effort)


def scope_here(settings: Settings, session_id: str, record: Incident) -> str | None:
    """The scope under which `recover context` would act on a record from this directory.

    None where it is not known without a server that runs, or where the settings name no model.
    """
    from surefoot.core.incident import scope
    from surefoot.providers import contracts
    from surefoot.providers.endpoints import Endpoint, target_of

    try:
        chosen = _of_the_refused_run(settings, record).chosen()
        named = chosen.endpoint
        own = settings.places.settings_folder / "contracts"
        contract = contracts.resolve(named.contract, [own] if own.is_dir() else [])
        contract = contract.with_reasoning_protocol(named.reasoning_protocol)
        effort = contract.effort(chosen.effort, named.name)
    except SurefootError:
        return None  # a run in this directory tells what is wrong with them
    if named.embedded:
        return None
    endpoint = Endpoint(
        named.name, named.url, named.wire, named.contract, chosen.model, key=lambda: None,
        reasoning_protocol=named.reasoning_protocol,
    )  # fmt: skip
    return scope(session_id, target_of(endpoint, named.wire, contract, effort))


def _refused(body: Any, language: str, *, as_json: bool) -> int:
    """Nothing was sent; the first press's result is shown with it."""
    from surefoot.surfaces import incident_card

    card = body.get("incident")
    if as_json:
        told = None if card is None else incident_card.as_data(card)
        said = {"code": body["code"], "reason": body.get("reason"), "message": _sentence(body, language)}
        say_json({**said, "incident": told, "exitCode": 1})
        return 1
    way = say("end_next", language, command=_way_on(card))
    complain([f"{body['code']}: {_sentence(body, language)} {way}"])
    complain([] if card is None else incident_card.lines(card, language))
    return 1


def _way_on(card: Mapping[str, Any] | None) -> str:
    """The command that helps: where the one request was never answered, going on is an ordinary one (PR-38)."""
    unanswered = card is not None and card.get("state") == "consumed" and card.get("outcome") in _UNANSWERED
    return "surefoot -c" if card is None or unanswered else "surefoot session show"


def _sentence(body: Any, language: str) -> str:
    """Why nothing was sent: what is wrong with the words, or what has changed since (PR-31)."""
    from surefoot.surfaces import incident_card

    code, reason = body["code"], body.get("reason")
    if code in ("bad_request", "recovery_stale") and reason:
        return incident_card.why_not(reason, language)
    return refusal(code, language, reason=reason)
