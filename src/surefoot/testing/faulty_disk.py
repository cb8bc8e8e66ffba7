"""A disk that fails on command: a SQLite VFS between the engine and the real files.

Owns: failing, shortening or refusing the n-th write or sync of a ledger's files, and
forgetting what was never synced, as a power cut does. Does not own: what the ledger must
do about it. For tests of this project and of programs that use it.

Usage: make one `FaultyDisk`, give its name to the ledger as `Tuning(vfs=disk.name)`, and
arm faults while the ledger is open. The files themselves are real.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import apsw

Operation = Literal["write", "sync", "truncate"]
How = Literal["error", "full", "short", "die"]
"""`die` kills this process by SIGKILL before the operation; what was written before stays in the kernel."""

_numbers = itertools.count(1)


@dataclass(slots=True)
class Fault:
    """One armed fault; `fired` counts how often it has struck."""

    operation: Operation
    nth: int
    how: How = "error"
    suffix: str = "-wal"
    """Only files whose name ends so; an empty text means every file."""
    lasting: bool = False
    """Whether every later operation fails as well."""
    fired: int = 0
    seen: int = 0

    def strikes(self, operation: Operation, name: str) -> bool:
        """Whether this operation is the one that fails."""
        if operation != self.operation or not name.endswith(self.suffix):
            return False
        self.seen += 1
        hit = self.seen >= self.nth if self.lasting else self.seen == self.nth
        self.fired += hit
        if hit and self.how == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return hit


@dataclass(slots=True)
class _Unsynced:
    """What a file was before the writes since its last sync."""

    size: int
    before: list[tuple[int, bytes]] = field(default_factory=list)


class FaultyDisk(apsw.VFS):
    """The VFS. `operations` counts what passed since it was last set to zero."""

    def __init__(self) -> None:
        self.name = f"faulty-{next(_numbers)}"
        self.faults: list[Fault] = []
        self.full: Callable[[], bool] = lambda: False
        """While it answers True, every write is refused as on a full disk."""
        self.operations: dict[str, int] = {"write": 0, "sync": 0, "truncate": 0}
        self.unsynced: dict[str, _Unsynced] = {}
        # Named, so that this disk may itself become the default one without standing on itself.
        self.real = apsw.vfs_names()[0]
        super().__init__(self.name, self.real)

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        return _FaultyFile(name, flags, self)

    def excepthook(self, etype: Any, evalue: Any, etraceback: Any) -> bool:
        """Stay silent: the faults are meant, and SQLite reports them as its own errors."""
        return True

    def fail(self, operation: Operation, nth: int = 1, *, how: How = "error", lasting: bool = False) -> Fault:
        """Arm a fault on the write-ahead log and return it."""
        fault = Fault(operation, nth, how, lasting=lasting)
        self.faults.append(fault)
        return fault

    def mend(self) -> None:
        """Disarm every fault."""
        self.faults.clear()
        self.full = lambda: False

    def forget_unsynced(self) -> None:
        """Take back every write since the last sync of its file. Only after the ledger was closed."""
        for name, unsynced in self.unsynced.items():
            with Path(name).open("r+b") as file:
                for offset, content in reversed(unsynced.before):
                    file.seek(offset)
                    file.write(content)
                file.truncate(unsynced.size)
        self.unsynced.clear()

    def struck(self, operation: Operation, name: str) -> Fault | None:
        """The fault that strikes now, if any."""
        self.operations[operation] += 1
        return next((fault for fault in self.faults if fault.strikes(operation, name)), None)


class _FaultyFile(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int], disk: FaultyDisk) -> None:
        self._disk = disk
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__(disk.real, name, flags)

    def excepthook(self, etype: Any, evalue: Any, etraceback: Any) -> bool:
        """As of the disk."""
        return True

    def xWrite(self, content: bytes, offset: int) -> None:  # noqa: N802
        fault = self._disk.struck("write", self._name)
        if self._disk.full() or (fault is not None and fault.how == "full"):
            raise apsw.FullError("the faulty disk is full")
        self._remember(content, offset)
        if fault is not None:
            if fault.how == "short":
                super().xWrite(content[: len(content) // 2], offset)
            raise _failure(apsw.SQLITE_IOERR_WRITE)
        super().xWrite(content, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        if self._disk.struck("sync", self._name) is not None:
            # The frames stay in the file, as they stay in the page cache after a failed fsync.
            raise _failure(apsw.SQLITE_IOERR_FSYNC)
        super().xSync(flags)
        self._disk.unsynced.pop(self._name, None)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        if self._disk.struck("truncate", self._name) is not None:
            raise _failure(apsw.SQLITE_IOERR_TRUNCATE)
        super().xTruncate(size)

    def _remember(self, content: bytes, offset: int) -> None:
        size = self.xFileSize()
        unsynced = self._disk.unsynced.setdefault(self._name, _Unsynced(size))
        length = max(0, min(size - offset, len(content)))
        if length:
            unsynced.before.append((offset, self.xRead(length, offset)))


def _failure(code: int) -> apsw.IOError:
    error: Any = apsw.IOError("the faulty disk failed")
    error.result, error.extendedresult = apsw.SQLITE_IOERR, code
    return cast(apsw.IOError, error)
