"""The floor: two full-sync commits of one row each, through the same driver, and nothing else.

Owns: a table of the shape of `entries` without its rules, filled as far as the session it is
compared with, and kept in the same state of the WAL. Does not own: what is compared with it.
"""

from __future__ import annotations

import os
from pathlib import Path

import apsw
from long_session import FILLER_BYTES, FILLERS
from timing import clock

from surefoot.ledger.chain import payload_text
from surefoot.ledger.sqlite import FORCED_PAGES

ROWS_A_COMMIT = 1_000
_INSERT = "INSERT INTO entries (key, epoch, at_ms, kind, head, salt, payload) VALUES (?, ?, ?, ?, ?, ?, ?)"


class RawPair:
    """Two rows, two commits: what a durable start and a durable end cost without anything around them."""

    def __init__(self, path: Path, started: dict[str, object], closed: dict[str, object]) -> None:
        self._connection = apsw.Connection(str(path), statementcachesize=16)
        self._execute = self._connection.cursor().execute
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",
            "fullfsync = ON",
            "wal_autocheckpoint = 0",
        ):
            self._execute(f"PRAGMA {pragma}").fetchall()
        self._execute(
            "CREATE TABLE entries (key INTEGER PRIMARY KEY, epoch INTEGER, at_ms INTEGER, kind TEXT, "
            "head BLOB, salt BLOB, payload TEXT) STRICT"
        )
        self._pages = 0
        self._connection.set_wal_hook(self._after_commit)
        self._key = 1 << 40
        self._texts = payload_text(started)[0], payload_text(closed)[0]

    def _after_commit(self, connection: apsw.Connection, name: str, pages: int) -> int:
        self._pages = pages
        return int(apsw.SQLITE_OK)

    def fill(self, entries: int) -> None:
        """Bring the table to as many rows of these bytes."""
        while self._key - (1 << 40) < entries:
            with self._connection:
                for number in range(ROWS_A_COMMIT):
                    self._execute(_INSERT, self._row(number % 2))
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def reuse_wal(self) -> None:
        """As `LongSession.reuse_wal`: the same bytes into the WAL, then the checkpoint."""
        for _ in range(FILLERS):
            self._key += 1
            self._execute(_INSERT, (self._key, 1, 0, "todo", b"", b"", "x" * FILLER_BYTES))
        self._checkpoint()

    def _checkpoint(self) -> None:
        self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        self._pages = 0

    def _row(self, which: int) -> tuple[object, ...]:
        self._key += 1
        kind = ("attempt.started", "attempt.closed")[which]
        return (self._key, 1, 1_700_000_000_000, kind, os.urandom(32), os.urandom(16), self._texts[which])

    async def once(self) -> float:
        """Both commits; a checkpoint comes as often as in the ledger."""
        rows = self._row(0), self._row(1)
        began = clock()
        self._execute(_INSERT, rows[0])
        self._execute(_INSERT, rows[1])
        if self._pages >= FORCED_PAGES:
            self._checkpoint()
        return clock() - began

    def close(self) -> None:
        self._connection.close()
