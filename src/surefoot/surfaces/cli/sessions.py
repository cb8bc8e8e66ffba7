"""`surefoot session`: list, show, resume.

Owns: how sessions are printed. Does not own: reading (`reading`), resuming (`talk`).
"""

from __future__ import annotations

import time
from typing import Any

import click

from surefoot.core.model import Entry, Kind
from surefoot.ledger.port import SessionRow
from surefoot.surfaces import plain, view
from surefoot.surfaces.cli import reading
from surefoot.surfaces.cli.output import complain, look_here, say_json, say_lines
from surefoot.surfaces.words import say


@click.group()
def session() -> None:
    """Sessions of this project."""


@session.command("list")
@click.option("--all", "every", is_flag=True, help="Of every project.")
@click.option("--json", "as_json", is_flag=True)
def list_(every: bool, as_json: bool) -> None:
    """Sessions, those with open calls first."""
    settings = reading.settings_here()
    found, broken = reading.run(lambda: reading.rows_of(reading.places_of(settings, every=every)))
    look = look_here(settings.language)
    complain(f"{one.error.code}: {one.place.project}: {one.error.message}" for one in broken)
    if as_json:
        say_json([{**_facts(row), "project": place.project} for place, row in found])
        return
    ids = [row.session_id for _, row in found]
    now = int(time.time() * 1000)
    rows = [_row(row, ids, now, look.language, ascii_only=look.ascii_only) for _, row in found]
    say_lines(plain.table(rows) or [say("no_session", look.language)])


def _row(row: SessionRow, ids: list[str], now_ms: int, language: str, *, ascii_only: bool) -> list[str]:
    state = {"lost": "session_lost", "unreadable": "session_unreadable"}.get(row.status)
    sign = "?" if ascii_only else "◇"
    return [
        view.short_id(row.session_id, ids),
        f"{sign}{row.open_calls}" if row.open_calls else "",
        view.age(now_ms - row.changed_ms),
        str(row.calls),
        view.clean(row.model or "-"),
        view.clean(row.name or (say(state, language) if state else "-")),
        view.clean(row.directory),
    ]


def _facts(row: SessionRow) -> dict[str, Any]:
    return {
        "session_id": row.session_id,
        "name": row.name,
        "directory": row.directory,
        "model": row.model,
        "created_ms": row.created_ms,
        "changed_ms": row.changed_ms,
        "position": row.position,
        "calls": row.calls,
        "open_calls": row.open_calls,
        "status": row.status,
    }


@session.command()
@click.argument("reference", required=False)
@click.option("--id", "only_id", is_flag=True, help="Print the full id alone.")
@click.option("--json", "as_json", is_flag=True)
def show(reference: str | None, only_id: bool, as_json: bool) -> None:
    """What happened in a session: words, calls, what may have happened."""
    settings = reading.settings_here()
    look = look_here(settings.language)

    async def work() -> tuple[SessionRow, list[Entry], dict[str, Any]]:
        place, row = await reading.find_session(settings, reference)
        async with reading.reader(place) as ledger:
            entries = await ledger.read(row.session_id)
        return row, entries, await reading.read_snapshot(place, row, settings)

    row, entries, snapshot = reading.run(work)
    if only_id:
        say_lines([row.session_id])
    elif as_json:
        say_json({**_facts(row), "entries": _public(entries), "recovery": snapshot})
    else:
        say_lines(_told(entries, snapshot, look.language, ascii_only=look.ascii_only))


def _public(entries: list[Entry]) -> list[dict[str, Any]]:
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
        shown.append({"position": entry.position, "at_ms": entry.at_ms, "kind": str(entry.kind), **payload})
    return shown


def _told(entries: list[Entry], snapshot: dict[str, Any], language: str, *, ascii_only: bool) -> list[str]:
    """The conversation in lines; foreign text right of a gutter (UX-10)."""
    lines: list[str] = []
    names: dict[str, str] = {}
    for entry in entries:
        asked = [*(entry.payload.get("calls") or ()), entry.payload]
        names |= {call["attemptId"]: call["askedName"] for call in asked if "askedName" in call}
        if entry.kind == Kind.USER and entry.payload.get("text"):
            lines += [f"> {part}" for part in view.clean(entry.payload["text"], lines=True).split("\n")]
        elif entry.kind == Kind.ASSISTANT and entry.payload.get("text"):
            lines += [f"│ {part}" for part in view.clean(entry.payload["text"], lines=True).split("\n")]
        elif entry.kind in (Kind.CLOSED, Kind.NOT_STARTED):
            told = {**entry.payload, "state": entry.payload.get("state", "not_started")}
            attempt = str(entry.payload["attemptId"])
            sign = plain.sign_of(told, ascii_only=ascii_only)
            name = view.clean(names.get(attempt, "?"))
            lines.append(f"{sign} {name}: {view.told(told, language)}  {attempt[-8:]}")
    calls = snapshot["calls"]
    others = [call["attemptId"] for call in calls]
    lines += [
        view.row(call, language, ascii_only=ascii_only, others=others) for call in calls if view.is_card(call)
    ]
    return [plain.only_ascii(line) for line in lines] if ascii_only else lines


@session.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("reference", required=False)
@click.pass_context
def resume(ctx: click.Context, /, reference: str | None) -> None:
    """Go on with a session; the flags of a run follow (the same as surefoot -r REF)."""
    from surefoot.surfaces.cli.talk import talk

    chosen = [f"--resume={reference}"] if reference else ["--continue"]
    ctx.exit(talk.main([*chosen, *ctx.args], prog_name="surefoot", standalone_mode=False) or 0)
