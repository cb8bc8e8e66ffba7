"""Reading ledgers without owning anything: sessions, open calls, snapshots.

Owns: finding the ledgers a command means (UX-164), what a reference names, and the
snapshot of a session as a reader sees it. Does not own: acting (`running`), words (`view`).
Takes no lease, starts no tool, writes nothing (UX-4).

A call whose owner is proven dead and that nobody has reconciled yet is told as what
the next owner will find (`finding`).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from surefoot.config import Settings, load_settings
from surefoot.core.admission import Controls
from surefoot.core.lifecycle import Book
from surefoot.core.model import Entry, Receipt, State
from surefoot.core.snapshot import Asked, SessionFacts, select, snapshot
from surefoot.core.turns import Latest
from surefoot.errors import SessionMissing, SurefootError, UsageError
from surefoot.ledger.newest import newest_of, newest_said
from surefoot.ledger.places import PROCESSES
from surefoot.ledger.port import Readable, SessionRow
from surefoot.surfaces.cli.finding import Finder
from surefoot.surfaces.cli.tongue import language_here
from surefoot.surfaces.phrases import translated
from surefoot.surfaces.view import fact_key, summary_of, with_summaries
from surefoot.surfaces.ways import next_of
from surefoot.surfaces.words import say

if TYPE_CHECKING:
    from surefoot.tools.processes.ending import Survivor

T = TypeVar("T")
ID_LENGTH = 30
"""Characters of an id given in full: its type and 26 letters."""
TAIL_BYTES = 4096
STRIP_CELLS = 12
"""Calls whose state a list of sessions shows; the rest is a count."""


@dataclass(frozen=True, slots=True)
class Place:
    """One project's ledger; `here` is true for the project the command is called in."""

    project: str
    folder: Path
    here: bool


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A ledger that could not be opened; it hides no other."""

    place: Place
    error: SurefootError


def told_broken(broken: Sequence[Unreadable]) -> list[str]:
    """What could not be read, and the way on; nothing of it counts as empty (UX-163)."""
    language = language_here()
    return [
        line
        for one in broken
        for line in (
            f"{one.error.code}: {one.place.project}: {translated(one.error.message, language)}",
            say("end_next", language, command=next_of(one.error)),
        )
    ]


def unread_here(broken: Sequence[Unreadable]) -> bool:
    """Whether this project's own ledger is among those that could not be read: the command has no answer."""
    return any(one.place.here for one in broken)


def settings_here(flags: Mapping[str, Any] | None = None) -> Settings:
    """The settings that hold in this directory, under these flags."""
    return load_settings(flags or {}, os.environ, Path.cwd())


def places_of(settings: Settings, *, every: bool) -> list[Place]:
    """This project's ledger, or every one; a ledger never written is left out."""
    here = settings.places.ledger_folder(Path.cwd())
    folders = [here]
    if every and settings.places.ledgers.is_dir():
        folders += sorted(folder for folder in settings.places.ledgers.iterdir() if folder.is_dir())
    seen: dict[Path, Place] = {}
    for folder in folders:
        if (folder / "ledger.db").exists():
            seen.setdefault(folder, Place(folder.name, folder, folder == here))
    return list(seen.values())


@asynccontextmanager
async def reader(place: Place) -> AsyncIterator[Readable]:
    """A handle that only reads."""
    from surefoot.ledger.opening import open_reader

    ledger = open_reader(place.folder)
    try:
        yield ledger
    finally:
        await ledger.close()


def read(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run one command that reads ledgers and does nothing else."""
    from surefoot.ledger.reader import at_once

    return at_once(work)


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Run one command in a loop of its own."""
    import asyncio  # what only reads starts without it

    async def whole() -> T:
        return await work()

    return asyncio.run(whole())


async def rows_of(places: list[Place]) -> tuple[list[tuple[Place, SessionRow]], list[Unreadable]]:
    """Every session of these ledgers, sessions with open calls first, then the newest."""
    found: list[tuple[Place, SessionRow]] = []
    broken: list[Unreadable] = []
    for place in places:
        try:
            async with reader(place) as ledger:
                found += [(place, row) for row in await ledger.sessions()]
        except SurefootError as error:
            broken.append(Unreadable(place, error))
    found.sort(key=lambda item: (item[1].open_calls == 0, -item[1].changed_ms))
    return found, broken


def matches(reference: str, full: str, name: str | None = None) -> bool:
    """Whether a reference means this id: a beginning or an ending, with or without type, or a name."""
    if reference in (full, name):
        return True
    kind, _, rest = full.partition("_")
    wanted_kind, found, wanted = reference.partition("_")
    if found and wanted_kind == kind:
        return bool(wanted) and (rest.startswith(wanted) or rest.endswith(wanted))
    return rest.startswith(reference) or rest.endswith(reference)


async def find_session(settings: Settings, reference: str | None) -> tuple[Place, SessionRow]:
    """The session a reference names: here, or anywhere when the id is given in full (UX-164).

    Without a reference the newest one here that somebody said a word in, as `-c` goes on with. Raises `SessionMissing`.
    """
    here, broken = await rows_of(places_of(settings, every=False))
    if broken and not (reference and len(reference) == ID_LENGTH):
        raise broken[0].error  # what cannot be read is not answered with "there is none"
    if reference is None:
        if not here:
            raise SessionMissing("There is no session in this project yet.", next_command='surefoot -p "…"')
        place = here[0][0]
        async with reader(place) as ledger:
            return place, await newest_said(ledger, [row for _, row in here])
    named = [item for item in here if reference in (item[1].session_id, item[1].name)]
    found = named or [item for item in here if matches(reference, item[1].session_id)]
    if not found and len(reference) == ID_LENGTH:
        every, _ = await rows_of(places_of(settings, every=True))
        found = [item for item in every if item[1].session_id == reference]
    return _single(found, reference, [item[1].session_id for item in found], "surefoot session list")


def with_its_ledger(settings: Settings, reference: str | None) -> Settings:
    """Settings under which a session can be gone on with that is named by its whole id from anywhere (UX-164).

    The sessions of a project that was moved keep their ledger. Raises `UsageError` where the project still lies
    elsewhere: what a session does, it does there.
    """
    if reference is None or len(reference) != ID_LENGTH:
        return settings
    try:
        place, row = run(lambda: find_session(settings, reference))
    except SurefootError:
        return settings  # told where the session is opened
    if place.here:
        return settings
    if row.directory and Path(row.directory).is_dir():
        raise UsageError(
            f"Session {row.session_id} belongs to {row.directory}.",
            next_command=f"surefoot -C {shlex.quote(row.directory)} -r {row.session_id}",
        )
    return replace(settings, places=replace(settings.places, moved_from=place.folder))


async def find_run(settings: Settings, reference: str | None) -> tuple[Place, SessionRow]:
    """The session a reference names, or the one in which the call it names ran. Raises `SessionMissing`."""
    try:
        return await find_session(settings, reference)
    except SessionMissing:
        if reference is None:
            raise
        try:
            place, row, _ = await find_attempt(settings, reference)
        except SessionMissing:
            pass  # what was asked for is a session, and so is what is told
        else:
            return place, row
        raise


async def find_attempt(
    settings: Settings, reference: str, session: str | None = None
) -> tuple[Place, SessionRow, Receipt]:
    """Ledger, session and receipt of the call a reference names, in `session` if given. Raises `SessionMissing`."""
    found: list[tuple[Place, SessionRow, Receipt]] = []
    unread: list[SurefootError] = []
    only = None if session is None else (await find_session(settings, session))[1].session_id
    for place in places_of(settings, every=len(reference) == ID_LENGTH):
        try:
            async with reader(place) as ledger:
                for row in await ledger.sessions():
                    if only not in (None, row.session_id):
                        continue
                    book = await ledger.receipts(row.session_id)
                    named = [one for one in book.ids() if matches(reference, one)]
                    found += [(place, row, one) for one in map(book.get, named) if one is not None]
        except SurefootError as error:
            unread.append(error)  # another ledger may still hold it
    if unread and not found:
        raise unread[0]
    names = [receipt.attempt_id for _, _, receipt in found]
    return _single(found, reference, names, refusal="attempt_unknown")


def _single(
    found: list[T],
    reference: str,
    names: list[str],
    where: str = "surefoot recover list --all",
    *,
    refusal: str | None = None,
) -> T:
    """The one that was found. `refusal` is how the same is called where a call is asked for by its id (TR-125)."""
    if len(found) == 1:
        return found[0]
    if not found:
        raise SessionMissing(f"Nothing here is called {reference!r}.", next_command=where, refusal=refusal)
    raise SessionMissing(
        f"{reference!r} is not unique: {', '.join(sorted(names)[:6])}. Give more of it.", next_command=where
    )


def directory_of(place: Place, row: SessionRow) -> Path:
    """The directory a session belongs to: here for this project, else where it was opened."""
    return Path.cwd() if place.here or not row.directory else Path(row.directory)


async def snapshots_of(
    places: list[Place], settings: Settings
) -> tuple[list[dict[str, Any]], list[Unreadable]]:
    """The snapshot of every session of these ledgers in the order of `rows_of`; each ledger is opened once."""
    found: list[tuple[SessionRow, dict[str, Any]]] = []
    broken: list[Unreadable] = []
    for place in places:
        try:
            background = background_in(place)
            async with reader(place) as ledger:
                for row in await ledger.sessions():
                    try:
                        found.append((row, await _snapshot(ledger, place, row, settings, background)))
                    except SurefootError as error:
                        broken.append(Unreadable(place, error))
        except SurefootError as error:
            broken.append(Unreadable(place, error))
    found.sort(key=lambda item: (item[0].open_calls == 0, -item[0].changed_ms))
    return [shown for _, shown in found], broken


async def read_snapshot(
    place: Place, row: SessionRow, settings: Settings, *, named: str | None = None
) -> dict[str, Any]:
    """The snapshot of a session as it stands on disk, in the JSON of TR-139; the `named` call is in it."""
    async with reader(place) as ledger:
        return await _snapshot(ledger, place, row, settings, background_in(place), named=named)


async def read_listed(place: Place, row: SessionRow, settings: Settings) -> tuple[dict[str, Any], list[str]]:
    """The snapshot of a session, without what runs in the background, and the rows of UX-63 of its last calls."""
    async with reader(place) as ledger:
        book, foreseen = await book_as_found(ledger, place, row, settings)
        latest = await newest_of(ledger, row.session_id, row.position)
        last = [book.get(attempt_id) for attempt_id in book.ids()[-STRIP_CELLS:]]
        value = _told(Seen(book, foreseen, latest, []), place, row, settings)
    return value, [fact_key(receipt.to_json()) for receipt in last if receipt is not None]


async def read_run(
    place: Place, row: SessionRow, settings: Settings
) -> tuple[list[Entry], list[Receipt], bool]:
    """What a picture of a session is made of, and whether its last owner died with nobody after it."""
    async with reader(place) as ledger:
        entries = await ledger.read(row.session_id)
        book, foreseen = await book_as_found(ledger, place, row, settings)
        return entries, list(book), bool(foreseen)


async def book_as_found(
    ledger: Readable, place: Place, row: SessionRow, settings: Settings
) -> tuple[Book, list[Receipt]]:
    """The receipts of a session with what the next owner will find of those a dead one left."""
    book = await ledger.receipts(row.session_id)
    return book, Finder(place.folder, settings).suppose(book)


async def _snapshot(
    ledger: Readable,
    place: Place,
    row: SessionRow,
    settings: Settings,
    background: list[dict[str, Any]],
    *,
    named: str | None = None,
) -> dict[str, Any]:
    book, foreseen = await book_as_found(ledger, place, row, settings)
    latest = await newest_of(ledger, row.session_id, row.position)
    return _told(Seen(book, foreseen, latest, background, named), place, row, settings)


@dataclass(frozen=True, slots=True)
class Seen:
    """A session as a reader finds it: its receipts, those foreseen, its newest turn, what runs beside it."""

    book: Book
    foreseen: list[Receipt]
    latest: Latest
    background: list[dict[str, Any]]
    named: str | None = None
    """The attempt that is asked about; no bound leaves it out."""


def _told(seen: Seen, place: Place, row: SessionRow, settings: Settings) -> dict[str, Any]:
    book, latest = seen.book, seen.latest
    finder = Finder(place.folder, settings)
    most = {name: int(settings.limits[f"snapshot_{name}"]) for name in ("calls", "resolved", "bytes")}
    shown, more = select(book, calls=most["calls"], resolved=most["resolved"], named=seen.named)
    facts = SessionFacts(
        session_path=f"{place.project}/{row.session_id}",
        runtime_epoch=str(row.epoch),
        barrier=latest.level or settings.recovery.barrier,
        on_unknown=settings.recovery.on_unknown,
        retry_enabled=os.environ.get("SUREFOOT_TOOL_RECOVERY_RETRY") == "1",
        silent=latest.interrupted_silently(owned=finder.is_owned(row.owner)),
        background=seen.background,
    )
    calls = [finder.call(receipt, book) for receipt in shown]
    value = snapshot(
        facts,
        Controls(),
        calls,
        statistics=book.statistics(),
        more=more,
        asked=Asked(named=seen.named, most_bytes=most["bytes"]),
    )
    value["foreseen"] = _foreseen(seen.foreseen)
    return with_summaries(value, {receipt.attempt_id: receipt.to_json() for receipt in shown})


def _foreseen(found: list[Receipt]) -> list[dict[str, Any]]:
    """Calls whose end is proven and not in the ledger yet: the next owner writes it."""
    ended = [receipt for receipt in found if receipt.state not in (State.STARTED, State.UNKNOWN)]
    return [
        {
            "attemptId": receipt.attempt_id,
            "summary": summary_of(receipt.to_json()),
            "state": receipt.state.value,
            "effectTrace": None if receipt.effect_trace is None else receipt.effect_trace.value,
            "reason": receipt.reason,
        }
        for receipt in ended
    ]


def background_in(place: Place) -> list[dict[str, Any]]:
    """Listed resources of a ledger: commands started in the background that still run (TR-205).

    As the kernel and the run folders say now, so that a reader and an owner tell the same.
    """
    running = [one for one in survivors_in(place) if one.background]
    if not running:
        return []
    from surefoot.tools.processes.ending import resource_of

    return [resource_of(one) for one in running]


def survivors_in(place: Place) -> list[Survivor]:
    """Every command of a ledger of which something still runs; loads nothing where none ever ran."""
    folder = place.folder / PROCESSES
    try:
        if not any(folder.iterdir()):
            return []
    except OSError:
        return []
    from surefoot.tools.processes.ending import survivors

    return survivors(folder)


def last_lines(call: Mapping[str, Any], *, most: int) -> list[str]:
    """The last lines that the command of a call has written, secrets out (TR-5); none without a log."""
    log = (call.get("process") or {}).get("log")
    if not log:
        return []
    from surefoot.core.redact import redact_text
    from surefoot.tools.processes.background import log_text

    try:
        text = log_text(Path(log).parent.parent, str(call["attemptId"]), limit=TAIL_BYTES)
    except OSError:
        return []
    return redact_text(text).splitlines()[-most:]
