"""A ledger that is read and never written: the reading verbs of the port, each done at once.

Owns: reading as a command does that ends when it has read: no lock, no lease, no thread, one connection.
Does not own: what is written meanwhile (`sqlite`), how sessions are read (`claims`, `rows`).

Its verbs never wait for anything, so whoever only reads needs no event loop, and starts without one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self, TypeVar

from surefoot.core.lifecycle import Book
from surefoot.core.model import Entry
from surefoot.errors import BrokenInvariant, LedgerError, LedgerForked
from surefoot.ledger import claims, derived, places
from surefoot.ledger.chain import POSITION_BITS
from surefoot.ledger.database import Database
from surefoot.ledger.port import Report, SessionRow
from surefoot.ledger.rows import listing
from surefoot.ledger.witness import Witness

T = TypeVar("T")


def at_once(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run work that awaits the verbs of readers and nothing else; they never wait, so no event loop is needed."""
    steps = work()
    try:
        steps.send(None)
    except StopIteration as end:
        answer: T = end.value
        return answer
    steps.close()
    raise BrokenInvariant("work that only reads a ledger waited for something")


def check_usable(pid: int, *, closed: bool) -> None:
    """Raise when a handle that process `pid` opened may not be used by this one, or not any more (TR-198)."""
    if os.getpid() != pid:
        raise LedgerForked(
            "this ledger handle belongs to the process that opened it; open the ledger anew after a fork"
        )
    if closed:
        raise LedgerError("this ledger handle is closed; open the ledger again")


class Reader:
    """One command's handle on the ledger in `folder`. Made by `opening.open_reader`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pid = os.getpid()
        self._closed = False
        self._kept: dict[int, claims.Loaded] = {}
        """What was read for its line in the listing, for whoever asks for its receipts next."""
        with ExitStack() as undo:
            self._witness = Witness(folder / places.WITNESS, read_only=True)
            undo.callback(self._witness.close)
            self._database = Database(folder / places.LEDGER, read_only=True)
            undo.pop_all()

    def _usable(self) -> None:
        check_usable(self._pid, closed=self._closed)

    async def read(
        self, session_id: str, *, after: int = 0, limit: int | None = None, kinds: Collection[str] = ()
    ) -> list[Entry]:
        """The entries of a session; see `port.Ledger.read`."""
        self._usable()
        return entries_of(self._database, session_id, after=after, limit=limit, kinds=kinds)

    async def sessions(self) -> list[SessionRow]:
        """Every session; see `port.Ledger.sessions`."""
        self._usable()
        return listing(self._database, self._witness, self._folder, self._kept)

    async def receipts(self, session_id: str) -> Book:
        """Receipts as of now; see `port.Ledger.receipts`."""
        self._usable()
        found = known(self._database, session_id)
        return claims.taken(self._kept, self._database, found.number, session_id).folded.book

    async def get_blob(self, ref: str) -> bytes:
        """Read a blob; see `port.Ledger.get_blob`."""
        from surefoot.ledger.blobs import Blobs  # lists of sessions and calls read none

        self._usable()
        return Blobs(self._folder / places.BLOBS).get(ref)

    async def verify(self, session_id: str | None = None) -> Report:
        """Check chains, witness and blobs; see `port.Ledger.verify`."""
        from surefoot.ledger.audit import audit  # lists of sessions and calls check nothing
        from surefoot.ledger.blobs import Blobs

        self._usable()
        return audit(self._database, self._witness, Blobs(self._folder / places.BLOBS), session_id)

    async def close(self) -> None:
        """Let go of the files; a second call does nothing."""
        self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._let_go()

    def _let_go(self) -> None:
        if not self._closed:
            self._usable()
            self._closed = True
            self._database.close()
            self._witness.close()


def known(database: Database, session_id: str) -> claims.Known:
    """The row of a session. Raises `SessionMissing`."""
    found = claims.known(database, session_id)
    if found is None:
        raise derived.missing(session_id)
    return found


def entries_of(
    database: Database, session_id: str, *, after: int, limit: int | None, kinds: Collection[str]
) -> list[Entry]:
    """The entries of a session behind a position; of these kinds, when there are any."""
    start = (known(database, session_id).number << POSITION_BITS) + after
    most = -1 if limit is None else limit
    with derived.without_collecting():
        if kinds:
            rows = database.rows("entries_of_kinds", start, most, f" {' '.join(kinds)} ")
        else:
            rows = database.rows("entries_after", start, most)
        return [derived.entry_of(session_id, row) for row in rows]
