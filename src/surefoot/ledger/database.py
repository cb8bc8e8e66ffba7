"""The SQLite file of a ledger: the only module that speaks to the driver.

Owns: opening with the settings that make a commit durable, the statements, what each
failure of the driver means (not written, uncertain, damaged), the checkpoint, and the
guard that the names still lead to the open files (TR-194). Does not own: who may write
and when (`sqlite`), what rows mean (`admission`, `derived`).

Nothing of ours opens the file except through the driver, no connection deletes the WAL,
and no connection checkpoints on close (TR-191, TR-193).
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import apsw

from surefoot.errors import (
    LedgerDamaged,
    LedgerError,
    LedgerLocked,
    LedgerNewer,
    LedgerUncertain,
)
from surefoot.ledger.naming import Names

APPLICATION_ID = 0x53464C31
"""`SFL1`"""
SCHEMA_VERSION = 1
OLDEST_SQLITE = (3, 51, 3)
"""Older ones may lose a commit when the WAL is reset while another connection writes (TR-193)."""
BUSY_MS = 1_000
_SQL = Path(__file__).parent / "sql"
"""Read as files: the machinery for resources in archives takes longer to load than a ledger to open."""

Value = int | str | bytes | None
Stream = Callable[..., Iterator[tuple[Any, ...]]]
"""A named statement and its values, read row by row."""


class Full(LedgerError):
    """The disk had no room; certainly not written."""


@cache
def _statements() -> dict[str, str]:
    """Every statement by its name, read from the package once."""
    text = (_SQL / "statements.sql").read_text()
    found = {}
    for part in text.split("-- name: ")[1:]:
        name, _, body = part.partition("\n")
        lines = [line for line in body.splitlines() if not line.lstrip().startswith("--")]
        found[name.strip()] = "\n".join(lines).strip()
    return found


class Database:
    """One connection. Not for two threads at once; the engine sees to that."""

    def __init__(
        self, path: Path, *, read_only: bool = False, create: bool = False, vfs: str | None = None
    ) -> None:
        self.path = path
        self.vfs = vfs
        self.wal_path = path.with_name(path.name + "-wal")
        self.wal_pages = 0
        """Pages in the WAL after the last commit of this connection."""
        self._sql = _statements()
        self._append = self._sql["append"]
        with _told(path, committing=False), ExitStack() as undo:
            self._connection = self._open(read_only, create, vfs)
            undo.callback(self._connection.close)
            self._execute = self._connection.cursor().execute
            self._prepare(read_only, create)
            self._names = self._opened_names()
            undo.pop_all()

    def _open(self, read_only: bool, create: bool, vfs: str | None) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
        if create:
            flags |= apsw.SQLITE_OPEN_CREATE
        connection = apsw.Connection(_utf8(self.path), flags=flags, vfs=vfs, statementcachesize=64)
        connection.set_busy_timeout(BUSY_MS)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        return connection

    def _prepare(self, read_only: bool, create: bool) -> None:
        if not read_only and _version() < OLDEST_SQLITE:
            raise LedgerError("this SQLite is older than 3.51.3 and may lose commits; install a current apsw")
        version = int(self.one("PRAGMA user_version") or 0)
        application = int(self.one("PRAGMA application_id") or 0)
        empty = not self.one("SELECT count(*) FROM sqlite_schema")
        if version > SCHEMA_VERSION and application == APPLICATION_ID:
            raise LedgerNewer(
                f"the ledger {str(self.path)!r} has schema {version}, this surefoot knows up to {SCHEMA_VERSION}; "
                "install a newer surefoot",
                answer="newer",
            )
        if not empty and (application != APPLICATION_ID or version != SCHEMA_VERSION):
            raise LedgerDamaged(
                f"{str(self.path)!r} is no surefoot ledger; check the path", answer="unreadable"
            )
        if read_only:
            if empty:
                raise LedgerDamaged(
                    f"the ledger {str(self.path)!r} is empty; nothing can be read", answer="unreadable"
                )
            return
        self._settle_down()
        if empty:
            self._lay_schema(create)

    def _settle_down(self) -> None:
        if self.one("PRAGMA journal_mode = WAL") != "wal":
            raise LedgerError(
                f"SQLite cannot keep a write-ahead log beside {str(self.path)!r}; use a local disk"
            )
        for pragma in (
            "synchronous = FULL",
            "fullfsync = ON",
            "checkpoint_fullfsync = ON",
            "wal_autocheckpoint = 0",
            "journal_size_limit = -1",
            "cell_size_check = ON",
            "secure_delete = FAST",
        ):
            self._run(f"PRAGMA {pragma}")
        on = ctypes.c_int(1)
        self._connection.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, ctypes.addressof(on))
        self._connection.set_wal_hook(self._after_commit)

    def _lay_schema(self, create: bool) -> None:
        if not create:
            raise LedgerDamaged(
                f"the ledger {str(self.path)!r} is empty; nothing can be read", answer="unreadable"
            )
        schema = (_SQL / "schema.sql").read_text()
        self._run("BEGIN IMMEDIATE")
        # Another process may have laid it between our look and this lock.
        if not self.one("SELECT count(*) FROM sqlite_schema"):
            self._run(f"PRAGMA application_id = {APPLICATION_ID}")
            self._run(f"PRAGMA user_version = {SCHEMA_VERSION}")
            self._run(schema)
        self._run("COMMIT")
        # The schema goes into the file itself, so that a WAL that gets lost leaves a ledger and not nothing.
        self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _after_commit(self, connection: apsw.Connection, name: str, pages: int) -> int:
        self.wal_pages = pages
        return int(apsw.SQLITE_OK)

    # Reading.

    def one(self, sql: str) -> Any:
        """The first value of the first row, or None."""
        rows = self._run(sql)
        return rows[0][0] if rows else None

    def _run(self, sql: str, values: Sequence[Value] = ()) -> list[tuple[Any, ...]]:
        # Every row is fetched at once: a half-read cursor would hold back the checkpoint.
        return self._execute(sql, values).fetchall()

    def rows(self, name: str, *values: Value) -> list[tuple[Any, ...]]:
        """Every row of a named statement."""
        with _told(self.path, committing=False):
            return self._run(self._sql[name], values)

    @contextmanager
    def snapshot(self) -> Iterator[Stream]:
        """Read several statements at one moment; what it gives reads one row by row, for more than is kept."""
        with ExitStack() as streams, _told(self.path, committing=False):
            self._run("BEGIN")
            try:

                def stream(name: str, *values: Value) -> Iterator[tuple[Any, ...]]:
                    cursor = self._connection.cursor()
                    streams.callback(cursor.close, True)
                    return cursor.execute(self._sql[name], values)

                yield stream
            finally:
                streams.close()  # what was not read is not read any more
                self._run("COMMIT")

    # Writing. Each call is one commit, made behind the gate.

    def append_one(self, row: Sequence[Value]) -> bool:
        """Insert one row in a commit of its own; False when epoch or position did not fit.

        Raises:
            LedgerUncertain: the answer of the commit was lost.
        """
        try:
            self._execute(self._append, row)
            return self._connection.changes() == 1
        except apsw.Error as error:
            raise _meaning(error, self.path, committing=True) from error

    @contextmanager
    def commit(self) -> Iterator[None]:
        """What is executed inside is one commit; an error inside rolls all of it back.

        Raises:
            LedgerUncertain: the answer of the commit itself was lost.
        """
        with _told(self.path, committing=False):
            self._run("BEGIN IMMEDIATE")
        whole = False
        try:
            yield
            whole = True
        finally:
            if not whole:
                self._roll_back()
        try:
            self._run("COMMIT")
        except apsw.Error as error:
            self._roll_back()
            raise _meaning(error, self.path, committing=True) from error

    def change(self, name: str, *values: Value) -> int:
        """Execute a named statement inside `commit`; how many rows it changed."""
        with _told(self.path, committing=False):
            self._run(self._sql[name], values)
            return self._connection.changes()

    def append_inside(self, row: Sequence[Value]) -> bool:
        """Insert one row inside `commit`; False when epoch or position did not fit."""
        with _told(self.path, committing=False):
            self._execute(self._append, row)
            return self._connection.changes() == 1

    def _roll_back(self) -> None:
        # SQLite rolls some errors back by itself.
        if self._connection.in_transaction:
            try:
                self._run("ROLLBACK")
            except apsw.Error:
                pass  # the failure that led here is the one that is told

    # Checkpoint, guard, end.

    def checkpoint(self) -> None:
        """Move what can be moved into the file without waiting for anybody."""
        with _told(self.path, committing=False):
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def checkpoint_all(self) -> bool:
        """Move everything into the file, sync it and truncate the WAL; False when somebody reads (TR-27)."""
        with _told(self.path, committing=False):
            busy = self._run("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]
        return not busy

    def named_as_opened(self) -> bool:
        """Whether the names of ledger and WAL still lead to the open files (TR-194)."""
        return self._names is not None and self._names.lead_there_still()

    def _opened_names(self) -> Names | None:
        """The names of both files, proved to lead to the ones this process has open."""
        names = Names(self.path, self.wal_path)
        try:
            ledger, wal = os.stat(self.path), os.stat(self.wal_path)  # noqa: PTH116
        except OSError:
            return None
        held = _open_files()
        pairs = {(ledger.st_dev, ledger.st_ino), (wal.st_dev, wal.st_ino)}
        if held is not None and not pairs <= held:
            return None
        return names if names.lead_there_still() else None

    def check_file(self) -> list[str]:
        """What SQLite itself finds wrong with the structure of the file."""
        with _told(self.path, committing=False):
            found = [str(row[0]) for row in self._run("PRAGMA integrity_check(20)")]
        return [line for line in found if line != "ok"]

    def close(self) -> None:
        """Close the connection; deletes nothing and checkpoints nothing."""
        self._connection.close()


def _version() -> tuple[int, ...]:
    return tuple(int(part) for part in apsw.sqlite_lib_version().split("."))


def _open_files() -> set[tuple[int, int]] | None:
    """Device and inode of every file this process has open, or None where the kernel does not list them."""
    try:
        names = os.listdir("/proc/self/fd")  # noqa: PTH208
    except OSError:
        return None
    found = set()
    for name in names:
        try:
            facts = os.stat(f"/proc/self/fd/{name}")  # noqa: PTH116
        except OSError:
            continue
        found.add((facts.st_dev, facts.st_ino))
    return found


@contextmanager
def _told(path: Path, *, committing: bool) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise _meaning(error, path, committing=committing) from error


def _utf8(path: Path) -> str:
    """A path as the driver takes it: the bytes of its name read as UTF-8, whatever this process reads names as."""
    try:
        return os.fsencode(path).decode()
    except UnicodeDecodeError as error:
        raise LedgerError(
            f"the ledger {str(path)!r} lies under a name that is not UTF-8; choose another folder with SUREFOOT_HOME",
            answer="unreadable",
        ) from error


_SYNTAX = re.compile(r"^\w+: ")


def _meaning(error: apsw.Error, path: Path, *, committing: bool) -> LedgerError:
    """What a failure of the driver says about the commit it happened in.

    A full or busy disk refuses before the commit frame is whole: certainly not written. Any other
    input or output error while committing may have left the frame behind: uncertain (TR-27).
    """
    text = _SYNTAX.sub("", str(error)) or type(error).__name__
    where = str(path)
    if isinstance(error, apsw.FullError):
        return Full(
            f"the disk of the ledger {where!r} is full, nothing was written; free space and try again"
        )
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return LedgerLocked(
            f"another program holds the ledger {where!r}, nothing was written; try again", answer="locked"
        )
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return LedgerDamaged(
            f"the ledger {where!r} is damaged ({text}); run `surefoot ledger verify`", answer="unreadable"
        )
    if isinstance(error, apsw.CantOpenError):
        reason = "check its permissions" if path.exists() else "it is gone; put it back"
        return LedgerError(f"the ledger {where!r} cannot be opened; {reason}", answer="unreadable")
    if isinstance(error, apsw.IOError) and committing:
        return LedgerUncertain(
            f"the disk of the ledger {where!r} failed in a commit; its outcome is not known yet"
        )
    if isinstance(error, (apsw.IOError, apsw.ReadOnlyError, apsw.PermissionsError)):
        return LedgerError(f"the ledger {where!r} cannot be used ({text}); check its disk and permissions")
    return LedgerError(f"the ledger {where!r} refused a statement ({text}); please report this fault")
