"""`surefoot session`: list, show, fork, resume.

Owns: how sessions are printed. Does not own: reading (`reading`), resuming (`talk`).
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import click

from surefoot.config import Settings
from surefoot.core.incident import Incident, IncidentRow, rows_of
from surefoot.core.model import Entry, Kind, Receipt
from surefoot.core.turns import StopCause
from surefoot.errors import SurefootError
from surefoot.ledger.port import SessionRow
from surefoot.surfaces import incident_card, plain, view
from surefoot.surfaces.cli import completing, reading, survivors
from surefoot.surfaces.cli.exporting import export_command, session_facts
from surefoot.surfaces.cli.output import (
    SCREEN_READER_FLAG,
    Look,
    complain,
    headed,
    look_here,
    page_lines,
    say_json,
    say_lines,
    show_lines,
)
from surefoot.surfaces.cli.removing import rename_command, rm_command
from surefoot.surfaces.phrases import translated
from surefoot.surfaces.words import say

FIRST_ENTRIES = 8


@click.group()
def session() -> None:
    """Sessions of this project."""


@session.command("list")
@click.option("--all", "every", is_flag=True, help="Of every project.")
@SCREEN_READER_FLAG
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def list_(ctx: click.Context, /, every: bool, as_json: bool) -> None:
    """Sessions, those with open calls first."""
    settings = reading.settings_here()
    found, broken = reading.read(lambda: _listed(settings, every=every))
    look = look_here(settings)
    complain(reading.told_broken(broken))
    if as_json:
        say_json([{**session_facts(one.row), "project": one.place.project} for one in found])
        ctx.exit(1 if reading.unread_here(broken) else 0)
    ids = [one.row.session_id for one in found]
    now = int(time.time() * 1000)
    began = reading.read(lambda: _first_words([(one.place, one.row) for one in found]))
    rows = [_row(one, ids, now, look, began.get(one.row.session_id, "-")) for one in found]
    lines = headed(rows, "head_sessions", look.language)
    left = survivors.lines_of(reading.places_of(settings, every=every), look)
    show_lines([*(lines if lines or broken else [say("no_session", look.language)]), *left])
    ctx.exit(1 if reading.unread_here(broken) else 0)


@dataclasses.dataclass(frozen=True, slots=True)
class _Listed:
    """A session of the list; `last` are the rows of UX-63 of its last calls."""

    place: reading.Place
    row: SessionRow
    last: Sequence[str] = ()


async def _listed(settings: Settings, *, every: bool) -> tuple[list[_Listed], list[reading.Unreadable]]:
    """Sessions with their open calls as a next owner would find them: a killed run has written none."""
    rows, broken = await reading.rows_of(reading.places_of(settings, every=every))
    found = []
    for place, row in rows:
        try:
            found.append(await _as_found(place, row, settings))
        except SurefootError as error:
            broken.append(reading.Unreadable(place, error))
            found.append(_Listed(place, row))
    found.sort(key=lambda one: (one.row.open_calls == 0, -one.row.changed_ms))
    return found, broken


async def _as_found(place: reading.Place, row: SessionRow, settings: Settings) -> _Listed:
    if not row.calls or row.status != "ok":
        return _Listed(place, row)
    snapshot, last = await reading.read_listed(place, row, settings)
    opened = sum(1 for call in snapshot["calls"] if view.is_card(call))
    counted = dataclasses.replace(row, open_calls=max(opened, row.open_calls if snapshot["more"] else 0))
    return _Listed(place, counted, last)


async def _first_words(places: Sequence[tuple[reading.Place, SessionRow]]) -> dict[str, str]:
    """How sessions without a name began, for whoever looks for one of them."""
    found: dict[str, str] = {}
    for place in dict.fromkeys(place for place, _ in places):
        nameless = [row for one, row in places if one == place and not row.name and row.status == "ok"]
        async with reading.reader(place) as ledger:
            for row in nameless:
                entries = await ledger.read(row.session_id, limit=FIRST_ENTRIES)
                words = [entry.payload.get("text") for entry in entries if entry.kind == Kind.USER]
                if words and words[0]:
                    found[row.session_id] = plain.cut(f"“{view.clean(words[0])}”", 40)
    return found


def _row(one: _Listed, ids: list[str], now_ms: int, look: Look, began: str) -> list[str]:
    row = one.row
    state = f"session_{row.status}" if row.status != "ok" else None
    sign = "?" if look.ascii_only else "◇"
    named = row.name or (say(state, look.language) if state else began)
    return [
        view.short_id(row.session_id, ids),
        f"{sign}{row.open_calls}" if row.open_calls else "",
        view.age(now_ms - row.changed_ms),
        f"{row.calls} {look.drawing.strip(one.last, look.language, ascii_only=look.ascii_only)}".rstrip(),
        view.clean(row.model or "-"),
        plain.only_ascii(view.clean(named)) if look.ascii_only else view.clean(named),
        view.clean(row.directory),
    ]


@session.command()
@click.argument("reference", required=False, shell_complete=completing.sessions)
@click.option("--id", "only_id", is_flag=True, help="Print the full id alone.")
@SCREEN_READER_FLAG
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def show(reference: str | None, only_id: bool, as_json: bool) -> None:
    """What happened in a session: words, calls, what may have happened."""
    settings = reading.settings_here()
    look = look_here(settings)

    async def work() -> tuple[reading.Place, SessionRow, list[Entry], list[Receipt], dict[str, Any]]:
        place, row = await reading.find_session(settings, reference)
        async with reading.reader(place) as ledger:
            entries = await ledger.read(row.session_id)
            receipts = list(await ledger.receipts(row.session_id))
        return place, row, entries, receipts, await reading.read_snapshot(place, row, settings)

    place, row, entries, receipts, snapshot = reading.run(work)

    def scope_now(record: Incident) -> str | None:
        from surefoot.surfaces.cli.recovering import scope_here  # only a pending incident asks for it

        return scope_here(settings, row.session_id, record) if place.here else None

    incidents = {} if only_id else rows_of(entries, scope_now)
    if only_id:
        say_lines([row.session_id])
    elif as_json:
        say_json({**session_facts(row), "entries": _public(entries, incidents), "recovery": snapshot})
    else:
        told = _Told(look.language, look.ascii_only, receipts, incidents)
        lines = [line for entry in entries for line in told.entry(entry)] + told.end(entries, snapshot)
        page_lines(plain.only_ascii(line) for line in lines) if look.ascii_only else page_lines(lines)


def _public(entries: list[Entry], incidents: Mapping[int, IncidentRow]) -> list[dict[str, Any]]:
    """Entries without arguments (TR-141) and raw wire messages."""
    hidden = ("arguments", "raw", "writeIntents")
    shown = []
    for entry in entries:
        payload = {key: value for key, value in entry.payload.items() if key not in hidden}
        if entry.kind == Kind.ASSISTANT:
            payload["calls"] = [
                {key: value for key, value in call.items() if key not in hidden}
                for call in entry.payload.get("calls") or ()
            ]
        head = {"position": entry.position, "at_ms": entry.at_ms, "kind": str(entry.kind)}
        found = incidents.get(entry.position)
        row = {} if found is None else incident_card.row_data(found)
        shown.append({**head, **payload, **row})
    return shown


class _Told:
    """The conversation in lines; foreign text right of a gutter (UX-10)."""

    def __init__(
        self,
        language: str,
        ascii_only: bool,
        receipts: Sequence[Receipt],
        incidents: Mapping[int, IncidentRow],
    ) -> None:
        self.language, self.ascii_only, self._incidents = language, ascii_only, incidents
        self._receipts = {receipt.attempt_id: receipt.to_json() for receipt in receipts}
        self._endings = Counter(receipt.attempt_id[-4:] for receipt in receipts)

    def entry(self, entry: Entry) -> list[str]:
        """What one entry tells a person; most tell nothing."""
        text = view.clean(entry.payload.get("text") or "", lines=True)
        if entry.kind == Kind.USER and text:
            return [f"> {part}" for part in text.split("\n")]
        if entry.kind == Kind.ASSISTANT and text:
            return [f"│ {part}" for part in text.split("\n")]
        if entry.position in self._incidents:
            return [f"· {incident_card.row(self._incidents[entry.position], self.language)}"]
        if entry.kind in (Kind.CLOSED, Kind.NOT_STARTED):
            return self._call(entry.payload)
        if entry.kind == Kind.SESSION_DROPPED:
            return [f"· {say('words_dropped', self.language)}"]
        if entry.kind == Kind.TURN and entry.payload["status"] in ("failed", "cancelled"):
            reason = view.clean(entry.payload.get("reason") or "-")
            timed_out = entry.payload.get("reason") == StopCause.TIME_LIMIT
            key = "turn_timed_out" if timed_out else f"turn_{entry.payload['status']}"
            return [f"· {say(key, self.language, reason=reason)}"]
        return []

    def _call(self, payload: Mapping[str, Any]) -> list[str]:
        told = {**payload, "state": payload.get("state", "not_started")}
        attempt = str(payload["attemptId"])
        if told["state"] == "unknown":
            # A result that came late is told here, where its call stood.
            told = self._receipts.get(attempt, told)
        if told["state"] == "unknown":
            return []  # it stands below, as it is now
        sign = plain.sign_of(told, ascii_only=self.ascii_only)
        name = plain.cut(view.clean(view.summary_of(self._receipts.get(attempt, {}))), 80)
        short = f"att_{attempt[-4:] if self._endings[attempt[-4:]] == 1 else attempt[-8:]}"
        return [f"{sign} {name}: {view.told(told, self.language)}  {short}"]

    def end(self, entries: Sequence[Entry], snapshot: Mapping[str, Any]) -> list[str]:
        """Calls that may have happened, those whose end is proven, and whether the last turn has an end."""
        calls = snapshot["calls"]
        others = [call["attemptId"] for call in calls]
        lines = [
            view.row(call, self.language, ascii_only=self.ascii_only, others=others)
            for call in calls
            if call["state"] == "unknown" and call["class"] != "READ_ONLY"
        ]
        lines += [
            view.foreseen_line(call, self.language, ascii_only=self.ascii_only)
            for call in snapshot["foreseen"]
        ]
        turns = [entry.payload["status"] for entry in entries if entry.kind == Kind.TURN]
        died = snapshot["foreseen"] or any(call.get("reason") == "owner_died" for call in calls)
        if died and turns and turns[-1] in ("running", "waiting_user"):
            lines.append(f"· {say('turn_open', self.language)}")
        return lines


session.add_command(export_command)
session.add_command(rename_command)
session.add_command(rm_command)


@session.command("fork", short_help="Copy a session with its open calls.")
@click.argument("reference", shell_complete=completing.sessions)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def fork_(reference: str, as_json: bool) -> None:
    """Begin a session with another one's conversation and its open calls; nothing of that one changes."""
    from surefoot import app as wiring

    settings = reading.with_its_ledger(reading.settings_here(), reference)

    async def work() -> str:
        async with wiring.open_app(settings, directory=settings.root) as opened:
            return await opened.fork(reference)

    forked = reading.run(work)
    if as_json:
        say_json({"session_id": forked})
        return
    language = look_here(settings).language
    told = (f"forked: {forked}", f"go on: surefoot -r {forked}")
    say_lines(translated(line, language) for line in told)


@session.command(
    short_help="Go on with a session; the same as surefoot -r.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument(
    "words", nargs=-1, type=click.UNPROCESSED, metavar="[REF] [FLAGS]…", shell_complete=completing.sessions
)
@click.pass_context
def resume(ctx: click.Context, /, words: tuple[str, ...]) -> None:
    """Go on with a session; the flags of a run follow (the same as surefoot -r REF)."""
    from surefoot.surfaces.cli.talk import talk

    # A first word that is a flag of the run names no session: then the newest is meant.
    is_named = bool(words) and not words[0].startswith("-")
    chosen = [f"--resume={words[0]}", *words[1:]] if is_named else ["--continue", *words]
    ctx.exit(talk.main(chosen, prog_name="surefoot", standalone_mode=False) or 0)
