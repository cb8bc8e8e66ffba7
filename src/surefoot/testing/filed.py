"""The memory engine with a memory that several real processes share: a file behind a lock.

Owns: keeping a `MemoryStore` in a file, so that the crash tests and the fault matrix can
run their children on a second engine. Does not own: judging, folding, chains (the memory
engine itself); durability across a power cut, which no test of it asks for.

    async with open_app(settings, directory=project, parts=Parts(engine=open_filed)): ...
"""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from surefoot.core.lifecycle import Book
from surefoot.core.model import Draft, Entry, Owner
from surefoot.ledger.admission import Batch
from surefoot.ledger.memory import MemoryLedger, MemoryStore
from surefoot.ledger.owners import proof_of_death
from surefoot.ledger.places import OWNERS
from surefoot.ledger.port import Claim, Held, Report, SessionRow

FILE = "filed.pickle"


class FiledStore(MemoryStore):
    """A store whose sessions and blobs are read from a file before each use and written back after it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(death=lambda owner: proof_of_death(owner, folder / OWNERS))
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / FILE
        self._lock = os.open(folder / f"{FILE}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def enter(self) -> None:
        """Take the file, and see what others have written."""
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        if self.path.exists():
            self.sessions, self.blobs = pickle.loads(self.path.read_bytes())

    def save(self) -> None:
        """Write everything at once, or nothing when this process dies meanwhile."""
        part = self.path.with_suffix(".part")
        part.write_bytes(pickle.dumps((self.sessions, self.blobs)))
        part.replace(self.path)

    def leave(self) -> None:
        """Give the file back."""
        self.save()
        fcntl.flock(self._lock, fcntl.LOCK_UN)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Use the store for one step."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._lock)


class FiledLedger(MemoryLedger):
    """One process's handle on a store in a file."""

    def __init__(self, store: FiledStore) -> None:
        super().__init__(store)
        self.store = self._file = store

    def _enter(self) -> bool:
        self._file.enter()
        return True

    def _leave(self) -> None:
        self._file.leave()

    def _write(self, batches: list[Batch]) -> None:
        try:
            super()._write(batches)
        finally:
            self._file.save()

    async def resolve(self, uncertain: Exception) -> tuple[Entry, ...] | None:
        """See `port.Ledger.resolve`."""
        with self._file.held():
            return await super().resolve(uncertain)

    async def read(
        self, session_id: str, *, after: int = 0, limit: int | None = None, kinds: Collection[str] = ()
    ) -> list[Entry]:
        """See `port.Ledger.read`."""
        with self._file.held():
            return await super().read(session_id, after=after, limit=limit, kinds=kinds)

    async def sessions(self) -> list[SessionRow]:
        """See `port.Ledger.sessions`."""
        with self._file.held():
            return await super().sessions()

    async def receipts(self, session_id: str) -> Book:
        """See `port.Ledger.receipts`."""
        with self._file.held():
            return await super().receipts(session_id)

    async def claim(
        self, session_id: str, owner: Owner, *, opening: Draft | None = None, take_over: bool = False
    ) -> Claim | Held:
        """See `port.Ledger.claim`."""
        with self._file.held():
            return await super().claim(session_id, owner, opening=opening, take_over=take_over)

    async def renew(self, session_id: str, *, epoch: int, until_ms: int) -> bool:
        """See `port.Ledger.renew`."""
        with self._file.held():
            return await super().renew(session_id, epoch=epoch, until_ms=until_ms)

    async def release(self, session_id: str, *, epoch: int) -> None:
        """See `port.Ledger.release`."""
        with self._file.held():
            await super().release(session_id, epoch=epoch)

    async def put_blob(self, content: bytes) -> str:
        """See `port.Ledger.put_blob`."""
        with self._file.held():
            return await super().put_blob(content)

    async def get_blob(self, ref: str) -> bytes:
        """See `port.Ledger.get_blob`."""
        with self._file.held():
            return await super().get_blob(ref)

    async def verify(self, session_id: str | None = None) -> Report:
        """See `port.Ledger.verify`."""
        with self._file.held():
            return await super().verify(session_id)

    async def close(self) -> None:
        """See `port.Ledger.close`."""
        if not self._closed:
            await super().close()
            self._file.close()


async def open_filed(folder: Path, **_: Any) -> FiledLedger:
    """Open the memory engine of a project's ledger folder."""
    return FiledLedger(FiledStore(folder))
