"""`surefoot ledger prune`: what is too old leaves the ledger, by a person's command alone.

Owns: the age that was asked for, the question before anything is lost, how the outcome is
printed. Does not own: what may go and in which order (`core.retention`, `ledger.retention`).
"""

from __future__ import annotations

import getpass
import re
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

import click

from surefoot.config import Settings
from surefoot.errors import RecoveryRefused, UsageError
from surefoot.ledger.retention import Pruned, Wish, prune
from surefoot.surfaces.cli import reading
from surefoot.surfaces.cli.output import confirmed, is_person_here, look_here, say_json, say_lines
from surefoot.surfaces.words_ledger import kept, pruned

_SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one ledger."""

    place: reading.Place
    outcome: Pruned


@click.command("prune", short_help="Drop what nothing names, and old sessions.")
@click.option("--older-than", "age", metavar="AGE", help="Drop sessions unchanged for 12h, 30d or 8w, too.")
@click.option("--all", "every", is_flag=True, help="Of every project.")
@click.option("--dry-run", is_flag=True, help="Say what would go, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def prune_command(age: str | None, every: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Remove blobs that nothing names and, with --older-than, old sessions without an open call."""
    settings = reading.settings_here()
    wish = _wish(settings, age)
    places = reading.places_of(settings, every=every)
    if not dry_run:
        check_person(settings)
        if age is not None and not yes:
            _ask(settings, places, wish)
    done = _each(places, replace(wish, dry_run=dry_run))
    if as_json:
        say_json([_document(one, dry_run) for one in done])
    else:
        language = look_here(settings).language
        lines = [line for one in done for line in _lines(one, language, dry_run=dry_run)]
        say_lines(lines or [pruned("no_ledger", language)])


def age_seconds(text: str) -> float:
    """Seconds of `12h`, `30d`, `8w`. Raises `UsageError`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(h|d|w)", text.strip())
    if found is None:
        raise UsageError(f"--older-than {text!r} is no age. Write 12h, 30d or 8w.")
    return float(found.group(1)) * _SECONDS[found.group(2)]


def _wish(settings: Settings, age: str | None) -> Wish:
    now_ms = int(time.time() * 1000)
    before_ms = None if age is None else now_ms - int(age_seconds(age) * 1000)
    blob_age_ms = int(float(settings.limits["blob_age_hours"]) * 3_600_000)
    return Wish(before_ms, now_ms - blob_age_ms, getpass.getuser())


def check_person(settings: Settings) -> None:
    """Nothing that descends from a tool takes evidence away (TR-130)."""
    from surefoot.tools.processes.ancestry import descent_here

    found = descent_here(settings.places.ledgers, recorded=())
    if found.reason is not None:
        raise RecoveryRefused(
            f"Only a person may drop what the ledger holds ({found.reason}).",
            code="person_required",
            reason=found.reason,
        )


def _ask(settings: Settings, places: list[reading.Place], wish: Wish) -> None:
    """A question where something would be lost; Enter is no, and nobody to ask is no either."""
    told = _each(places, replace(wish, dry_run=True))
    sessions = sum(len(one.outcome.dropped) for one in told)
    if not sessions:
        return
    if not is_person_here():
        raise UsageError(
            f"{sessions} sessions would be dropped, and nobody can be asked here. Add --yes.",
            next_command="surefoot ledger prune --older-than AGE --dry-run",
        )
    language = look_here(settings).language
    if not confirmed(pruned("ask", language, sessions=sessions), language):
        raise UsageError("Nothing was changed.")


def _each(places: list[reading.Place], wish: Wish) -> list[Done]:
    async def work() -> list[Done]:
        return [await _pruned(place, wish) for place in places]

    return reading.run(work)


async def _pruned(place: reading.Place, wish: Wish) -> Done:
    from surefoot.ledger.opening import open_ledger
    from surefoot.ledger.owners import this_process
    from surefoot.ledger.places import OWNERS, PROCESSES
    from surefoot.ledger.shedding import SqliteShedder
    from surefoot.tools.processes.ending import survivors

    living = frozenset(one.attempt_id for one in survivors(place.folder / PROCESSES))
    async with AsyncExitStack() as undo:
        ledger = await open_ledger(place.folder, create=False)
        undo.push_async_callback(ledger.close)
        shedder = SqliteShedder(place.folder)
        undo.push_async_callback(shedder.close)
        owner, lock = this_process(place.folder / OWNERS)
        undo.callback(lock.close)
        # The lock goes last but one: until then the ledger's own end needs it.
        undo.push_async_callback(ledger.close)
        return Done(place, await prune(ledger, shedder, owner, replace(wish, living=living)))


def _document(done: Done, dry_run: bool) -> dict[str, Any]:
    outcome = done.outcome
    return {
        "project": done.place.project,
        "dry_run": dry_run,
        "dropped": list(outcome.dropped),
        "kept": [{"session_id": one.session_id, "reason": one.reason} for one in outcome.spared],
        "entries": outcome.payloads,
        "blobs": outcome.swept.blobs,
        "blob_bytes": outcome.swept.size_bytes,
        "run_folders": outcome.swept.runs,
    }


def _lines(done: Done, language: str, *, dry_run: bool) -> list[str]:
    outcome = done.outcome
    counts = pruned(
        "counts",
        language,
        sessions=len(outcome.dropped),
        payloads=outcome.payloads,
        blobs=outcome.swept.blobs,
        size=_size(outcome.swept.size_bytes),
        runs=outcome.swept.runs,
    )
    head = pruned("would_drop" if dry_run else "dropped", language, project=done.place.project, counts=counts)
    gone = [pruned("one_dropped", language, session=one) for one in outcome.dropped]
    stayed = [
        pruned(
            "one_kept",
            language,
            session=one.session_id,
            why=kept(one.reason, language, session=one.session_id),
        )
        for one in outcome.spared
    ]
    return [head, *gone, *stayed]


def _size(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 20):.1f} MiB" if size_bytes >= 1 << 20 else f"{-(-size_bytes // 1024)} KiB"
