"""The database verifier: is a row with the call's key committed in a SQLite file?

Owns: the row `database` of TR-109 for SQLite files of others. Does not own: the ledger, whose files
it refuses to open (TR-191), and databases behind a server. Reads only: the file is opened for
reading, and the engine is asked about every step of the query before it runs.

    SqliteVerifier(Path("shop.db"), "select id from outbox where key = :key")

A transaction of a killed writer is undone by the next one who writes. Until then a rollback journal
lies beside the file, which a reader must not touch; it looks into a copy instead, once the writer is gone.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from surefoot.core.model import EffectClass, Grade, Receipt
from surefoot.machine import boot_ms
from surefoot.verifiers.port import Deadline, Observation, WriteAttempted
from surefoot.verifiers.sameness import as_far_as_told, identity
from surefoot.verifiers.sight import LedgerFiles

COPY_BYTES = 256 << 20
BUSY_SECONDS = 2.0
_STEPS = 10_000
"""Steps of the engine between two looks at the clock."""
_SIDE_FILES = ("-wal", "-journal")


class SqliteVerifier:
    """Looks for a committed row by key; implements `verifiers.port.EffectVerifier`."""

    name = "database"
    far = False
    operations = (("select", EffectClass.READ_ONLY),)

    def __init__(
        self,
        database: Path | str | Callable[[Receipt], Path],
        query: str,
        *,
        values: Callable[[Receipt], Mapping[str, Any]] | None = None,
        ledger_files: LedgerFiles = frozenset,
    ) -> None:
        """`query` selects what the call left, with `:key` for its key and further `values` by name."""
        self._database = database
        self._query = query
        self._values = values
        self._ledger_files = ledger_files

    def recovery_scope(self, call: Receipt) -> str:
        """The real path of the file, with its identity. Raises OSError when it is not there."""
        path = self._path(call)
        known = identity(path)
        if known is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return json.dumps(["sqlite", str(path), *known], separators=(",", ":"))

    def inspect_effect(self, key: str, call: Receipt, deadline: Deadline, *, fenced: bool) -> Observation:
        """Look for the row. `fenced` says that the process that held the transaction is gone."""
        import sqlite3

        path = self._path(call)
        if self._is_ledger(path):
            return _unknown("ledger_file", "This file belongs to the ledger and is not opened.")
        values = {"key": key, **(self._values(call) if self._values is not None else {})}
        try:
            rows = self._rows(path, values, deadline, fenced=fenced)
        except sqlite3.OperationalError as error:
            timed_out = "interrupted" in str(error)
            reason = "verifier_timeout" if timed_out else "database_unreadable"
            return _unknown(reason, f"The database could not be read: {error}.")
        except sqlite3.DatabaseError as error:
            return _unknown("database_unreadable", f"The database could not be read: {error}.")
        if rows:
            return Observation(
                "present", Grade.PROOF, fenced, "A row with the key is committed.", {"rows": len(rows)}
            )
        open_reason = None if fenced else "not_fenced"
        open_point = "" if fenced else "that a transaction which is still open cannot commit one"
        said = "No row with the key is committed."
        found = Observation("absent", Grade.PROOF, fenced, said, {"rows": 0}, open_point, open_reason)
        return as_far_as_told(found, identity(path))

    def _path(self, call: Receipt) -> Path:
        path = self._database(call) if callable(self._database) else self._database
        return Path(os.path.realpath(path))

    def _is_ledger(self, path: Path) -> bool:
        """Told before opening: closing any other handle of a ledger would drop its locks."""
        found = path.stat()
        return (found.st_dev, found.st_ino) in self._ledger_files()

    def _rows(self, path: Path, values: Mapping[str, Any], deadline: Deadline, *, fenced: bool) -> list[Any]:
        if not _has_hot_journal(path):
            return _select(path, self._query, values, deadline)
        if not fenced or _size(path) > COPY_BYTES:
            import sqlite3

            raise sqlite3.OperationalError("a transaction is being written")
        with tempfile.TemporaryDirectory(prefix="surefoot-look-") as aside:
            copy = Path(aside) / path.name
            for suffix in ("", *_SIDE_FILES):
                if Path(f"{path}{suffix}").exists():
                    shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
            return _select(copy, self._query, values, deadline, undo=True)


def _has_hot_journal(path: Path) -> bool:
    journal = Path(f"{path}-journal")
    return journal.exists() and journal.stat().st_size > 0


def _size(path: Path) -> int:
    return sum(
        Path(f"{path}{suffix}").stat().st_size
        for suffix in ("", *_SIDE_FILES)
        if Path(f"{path}{suffix}").exists()
    )


def _select(
    path: Path, query: str, values: Mapping[str, Any], deadline: Deadline, *, undo: bool = False
) -> list[Any]:
    """The rows of the query, at most one. With `undo` the file is a copy, whose half transaction is undone first."""
    import sqlite3

    mode = "rw" if undo else "ro"
    uri = f"file:{quote(str(path))}?mode={mode}"
    with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
        if undo:
            connection.execute("select count(*) from sqlite_master").fetchone()
        connection.set_progress_handler(lambda: int(boot_ms() > deadline.boot_ms), _STEPS)
        connection.execute("pragma query_only = on")
        judge = _Judge()
        connection.set_authorizer(judge)
        if boot_ms() > deadline.boot_ms:
            raise sqlite3.OperationalError("interrupted")
        try:
            return connection.execute(query, dict(values)).fetchmany(1)
        except sqlite3.DatabaseError:
            if judge.refused:
                raise WriteAttempted(query) from None
            raise


class _Judge:
    """The engine asks before each step: selecting and reading pass, whatever else does not."""

    def __init__(self) -> None:
        self.refused = False

    def __call__(self, action: int, first: str | None, second: str | None, *rest: Any) -> int:
        import sqlite3

        reads = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE)
        if action in reads or (action == sqlite3.SQLITE_FUNCTION and second != "load_extension"):
            return sqlite3.SQLITE_OK
        self.refused = True
        return sqlite3.SQLITE_DENY


def _unknown(reason: str, summary: str) -> Observation:
    return Observation("unknown", Grade.NONE, False, summary, {}, reason=reason)
