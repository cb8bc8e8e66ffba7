"""How something leaves a SQLite ledger: payloads that were announced as dropped, blobs nobody names.

Owns: the commits of a drop and their size, which blobs are named, and that files go behind
the gate only (TR-6, TR-200). Does not own: what may go (`core.retention`), in which order
and after which words (`retention`).
Promises: retention:open-stays, ledger:fenced.

It has a connection of its own. A kill at any moment leaves whole commits: each payload is
there with its salt, or its digest stands in their place.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from surefoot.core.model import Owner
from surefoot.core.retention import blobs_named, runs_named
from surefoot.errors import LedgerError
from surefoot.ledger import claims, places
from surefoot.ledger.aside import off_loop
from surefoot.ledger.blobs import Blobs
from surefoot.ledger.chain import POSITION_BITS, payload_digest
from surefoot.ledger.database import Database
from surefoot.ledger.derived import missing
from surefoot.ledger.gate import Gate
from surefoot.ledger.owners import Death, proof_of_death
from surefoot.ledger.port import Swept

ROWS_PER_COMMIT = 256
ROWS_PER_LOOK = 2_000
FILES_PER_GATE = 64


class SqliteShedder:
    """The shedder of the ledger in `folder`; see `port.Shedder`."""

    def __init__(
        self,
        folder: Path,
        *,
        death: Callable[[Owner, Path], Death] = proof_of_death,
        rows_per_commit: int = ROWS_PER_COMMIT,
    ) -> None:
        self._folder = folder.absolute()
        self._death = death
        self._rows = rows_per_commit
        self._blobs = Blobs(self._folder / places.BLOBS)
        with ExitStack() as undo:
            self._gate = Gate(self._folder / places.GATE)
            undo.callback(self._gate.close)
            self._database = Database(self._folder / places.LEDGER)
            undo.callback(self._database.close)
            # What is dropped is overwritten in the file, not only forgotten.
            self._database.one("PRAGMA secure_delete = ON")
            undo.pop_all()

    async def drop(self, session_id: str, *, epoch: int, upto: int) -> int:
        """Drop payloads of a session; see `port.Shedder.drop`."""
        number = self._number(session_id)
        start = number << POSITION_BITS
        await off_loop(lambda: self._forget_derived(number))
        dropped = 0
        while True:
            count = await off_loop(lambda: self._drop_some(start, start + upto, epoch))
            dropped += count
            if count < self._rows:
                break
        await off_loop(self._checkpoint)
        return dropped

    async def held(self, session_id: str) -> int:
        """How many payloads there are to drop; see `port.Shedder.held`."""
        number = self._number(session_id)
        return int((await off_loop(lambda: self._database.rows("count_payloads", number)))[0][0])

    async def sweep(
        self, *, older_than_ms: int, living: Collection[str] = (), dry_run: bool = False
    ) -> Swept:
        """Remove blobs and run folders that nobody names; see `port.Shedder.sweep`."""
        return await off_loop(lambda: self._sweep(older_than_ms, living, dry_run))

    async def close(self) -> None:
        """Let go of every file; see `port.Shedder.close`."""
        self._database.close()
        self._gate.close()

    def _number(self, session_id: str) -> int:
        found = claims.known(self._database, session_id)
        if found is None:
            raise missing(session_id)
        return found.number

    def _forget_derived(self, number: int) -> None:
        """Remove the receipts as they were; they are made anew from what is left."""
        with self._behind_gate(), self._database.commit():
            self._database.change("forget_receipts", number)
            self._database.change("forget_listing", number)

    def _drop_some(self, start: int, last: int, epoch: int) -> int:
        """One commit of a drop; how many payloads went."""
        with self._behind_gate(), self._database.commit():
            rows = self._database.rows("payloads_upto", start, last, self._rows)
            for key, salt, payload in rows:
                if not self._database.change("drop_payload", key, epoch, payload_digest(salt, payload)):
                    raise LedgerError("the session has another owner now; nothing more of it was dropped")
        return len(rows)

    def _checkpoint(self) -> None:
        """Leave no dropped payload in the log, unless somebody reads just now; then a later one goes over it."""
        with self._behind_gate():
            self._database.checkpoint_all()

    def _sweep(self, older_than_ms: int, living: Collection[str], dry_run: bool) -> Swept:
        before_ms = min([older_than_ms, *self._living_since()])
        aged = self._blobs.aged(before_ms)
        runs = [
            run for run in (self._folder / places.PROCESSES).glob("att_*") if _still_since(run, before_ms)
        ]
        named = self._named() | set(living) if aged or runs else set()
        unnamed = [(path, size) for path, size in aged if path.name not in named]
        left = [run for run in runs if run.name not in named]
        if dry_run:
            return Swept(len(unnamed), sum(size for _, size in unnamed), len(left))
        with self._behind_gate():
            for run in left:
                shutil.rmtree(run, ignore_errors=True)
        count = size_bytes = 0
        for at in range(0, len(unnamed), FILES_PER_GATE):
            with self._behind_gate():
                for path, size in unnamed[at : at + FILES_PER_GATE]:
                    if self._blobs.remove_aged(path, before_ms):
                        count, size_bytes = count + 1, size_bytes + size
        return Swept(count, size_bytes, len(left))

    def _living_since(self) -> Iterator[int]:
        """When each owner began that is not proven dead. What was stored since may be named any moment,
        however the wall clock jumped."""
        for row in self._database.rows("sessions"):
            found = claims.known_of(row)
            if found.owner is not None and self._death(found.owner, self._folder / places.OWNERS) != "dead":
                yield found.since_ms

    def _named(self) -> set[str]:
        """The names of blobs and run folders that stand in any payload of any session."""
        named: set[str] = set()
        last = 0
        while rows := self._database.rows("payloads", last, ROWS_PER_LOOK):
            for _, payload in rows:
                named |= blobs_named(payload) | runs_named(payload)
            last = rows[-1][0]
        return named

    @contextmanager
    def _behind_gate(self) -> Iterator[None]:
        self._gate.enter()
        try:
            yield
            if not self._database.named_as_opened():
                raise LedgerError(
                    "the files of the ledger were moved or replaced; put them back and try again"
                )
        finally:
            self._gate.leave()


def _still_since(run: Path, before_ms: int) -> bool:
    """Whether nothing in a run folder was written since; a command that still runs writes its log."""
    try:
        newest = max(item.lstat().st_mtime_ns for item in (run, *run.iterdir()))
    except OSError:
        return False  # it went meanwhile, or is no folder
    return newest < before_ms * 1_000_000
