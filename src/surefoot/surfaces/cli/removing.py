"""`surefoot session rename` and `session rm`: a person's word about a whole session (UX-53).

Owns: which names are taken, the refusal while calls are undecided, what must be typed before
they are let go. Does not own: releasing (`runtime.actions`), dropping (`ledger.retention`).
"""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import click

from surefoot.config import Settings
from surefoot.core.model import Draft, Kind
from surefoot.errors import RecoveryRefused, SessionMissing, UsageError
from surefoot.ledger.port import SessionRow
from surefoot.surfaces import view
from surefoot.surfaces.cli import reading
from surefoot.surfaces.cli.output import complain, confirmed, is_person_here, look_here, say_lines
from surefoot.surfaces.cli.pruning import check_person
from surefoot.surfaces.words_ledger import kept, pruned

NAME_CHARACTERS = 80


@click.command("rename")
@click.argument("reference")
@click.argument("name")
def rename_command(reference: str, name: str) -> None:
    """Give a session a name of up to 80 characters; its id stays."""
    settings = reading.settings_here()
    chosen = view.clean(name).strip()
    if not 0 < len(chosen) <= NAME_CHARACTERS:
        raise UsageError(f"A name has 1 to {NAME_CHARACTERS} characters.")
    place, row = reading.run(lambda: reading.find_session(settings, reference))
    rows, _ = reading.run(lambda: reading.rows_of([place]))
    if any(one.name == chosen and one.session_id != row.session_id for _, one in rows):
        raise UsageError(f"Another session is called {chosen!r}.", next_command="surefoot session list")
    reading.run(lambda: _named(settings, place, row, chosen))
    say_lines([f"{row.session_id}: {chosen}"])


async def _named(settings: Settings, place: reading.Place, row: SessionRow, name: str) -> None:
    from surefoot.surfaces.cli import running

    async with running.owned(settings, reading.directory_of(place, row), row.session_id) as desk:
        await desk.controller.session.append(Draft(Kind.SESSION_NAMED, {"name": name}))


@click.command("rm", short_help="Drop a session's words, arguments and results.")
@click.argument("reference")
@click.option("--force", is_flag=True, help="Also with undecided calls; asks for the session's short id.")
@click.option("--yes", is_flag=True, help="Do not ask; says nothing about undecided calls.")
def rm_command(reference: str, force: bool, yes: bool) -> None:
    """Drop a session's words, arguments and results for good; a line for each call that wrote stays."""
    settings = reading.settings_here()
    check_person(settings)
    place, row = reading.run(lambda: reading.find_session(settings, reference))
    if row.status != "ok":
        raise SessionMissing(f"Session {row.session_id} is {row.status}; there is nothing to drop.")
    snapshot = reading.run(lambda: reading.read_snapshot(place, row, settings))
    undecided = [call for call in snapshot["calls"] if view.is_card(call)]
    if undecided and not force:
        raise _undecided(undecided, settings)
    if undecided:
        _ask_for_id(settings, place, row, undecided)
    elif not yes:
        _ask(settings, row)
    outcome = reading.run(lambda: _removed(settings, place, row, force=force))
    language = look_here(settings).language
    if isinstance(outcome, str):
        raise RecoveryRefused(kept(outcome, language, session=row.session_id), code=outcome)
    say_lines([pruned("removed", language, session=row.session_id, payloads=outcome)])


def _rows(calls: list[dict[str, Any]], settings: Settings) -> list[str]:
    look = look_here(settings)
    ids = [str(call["attemptId"]) for call in calls]
    return [view.row(call, look.language, ascii_only=look.ascii_only, others=ids) for call in calls]


def _undecided(calls: list[dict[str, Any]], settings: Settings) -> RecoveryRefused:
    complain(_rows(calls, settings))
    return RecoveryRefused(
        pruned("undecided", look_here(settings).language, calls=len(calls)),
        code="open_calls",
        next_command="surefoot recover list",
    )


def _ask(settings: Settings, row: SessionRow) -> None:
    if not is_person_here():
        raise UsageError("Nobody can be asked here. Add --yes.")
    language = look_here(settings).language
    if not confirmed(pruned("ask_one", language, session=row.session_id), language):
        raise UsageError("Nothing was changed.")


def _ask_for_id(
    settings: Settings, place: reading.Place, row: SessionRow, calls: list[dict[str, Any]]
) -> None:
    """What may have happened is let go by a person who typed which session it is about, and by nobody else."""
    if not is_person_here():
        raise UsageError("A session with undecided calls is removed by a person at a terminal.")
    rows, _ = reading.run(lambda: reading.rows_of([place]))
    short = view.short_id(row.session_id, [one.session_id for _, one in rows])
    complain(_rows(calls, settings))
    question = pruned("type_id", look_here(settings).language, calls=len(calls), short=short)
    if click.prompt(question, default="", show_default=False, err=True).strip() != short:
        raise UsageError("Nothing was changed.")


async def _removed(settings: Settings, place: reading.Place, row: SessionRow, *, force: bool) -> int | str:
    """Own the session, let go what is undecided, drop its payloads; how many went, or why none did."""
    from surefoot.ledger.opening import open_ledger
    from surefoot.ledger.owners import this_process
    from surefoot.ledger.places import OWNERS
    from surefoot.ledger.retention import drop
    from surefoot.ledger.shedding import SqliteShedder
    from surefoot.surfaces.cli import running

    async with running.owned(settings, reading.directory_of(place, row), row.session_id) as desk:
        refused = await _let_go(desk, force=force)
    if refused is not None:
        return refused
    async with AsyncExitStack() as undo:
        ledger = await open_ledger(place.folder, create=False)
        owner, lock = this_process(place.folder / OWNERS)
        undo.callback(lock.close)
        undo.push_async_callback(ledger.close)
        shedder = SqliteShedder(place.folder)
        undo.push_async_callback(shedder.close)
        return await drop(ledger, shedder, owner, row, cause="removed", who=getpass.getuser())


async def _let_go(desk: Any, *, force: bool) -> str | None:
    """Release every open call; the code of the first refusal, or of one that nobody was asked about."""
    before: list[str] = []
    while opened := [call for call in desk.snapshot()["calls"] if call["open"]]:
        now = [str(call["attemptId"]) for call in opened]
        if now == before:
            return "open_calls"  # letting go did not close them
        before = now
        for call in opened:
            if view.is_card(call) and not force:
                return "open_calls"
            answer: tuple[int, Mapping[str, Any]] = await desk.act("release", call)
            if answer[0] != 200:
                return str(answer[1].get("code"))
    return None
