"""The SQLite engine of the ledger: gate, group commit, witness, guard, claims.

Owns: the write path of one process (TR-20 to TR-27, TR-191 to TR-198) and the order in
which gate, judge, commit, guard, witness and answer follow each other. Does not own: the
driver (`database`), judging and folding (`admission`), what a claim writes (`claims`).
Promises: barrier:intent-first (its half), ledger:append-only, ledger:fenced.

A flush runs in the event loop while commits are fast (moving average up to 2 ms) and in
a thread while they are slow, until they are fast again (below 1 ms). Nothing on its path
grows with the number of entries.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from surefoot.core.lifecycle import Book
from surefoot.core.model import Draft, Entry, Owner
from surefoot.errors import LedgerError, LedgerUncertain, ReceiptNotWritten
from surefoot.ledger import claims, derived, places, reader
from surefoot.ledger.admission import Batch, Desk
from surefoot.ledger.aside import carry_out_aside, off_loop
from surefoot.ledger.audit import audit
from surefoot.ledger.ballast import Ballast, Room
from surefoot.ledger.blobs import Blobs
from surefoot.ledger.chain import POSITION_BITS
from surefoot.ledger.clock import Clock
from surefoot.ledger.database import Database, Full
from surefoot.ledger.gate import WAIT_SECONDS, Gate
from surefoot.ledger.owners import Death, proof_of_death
from surefoot.ledger.ownership import Ownership
from surefoot.ledger.port import Claim, Held, Report, SessionRow
from surefoot.ledger.reader import check_usable
from surefoot.ledger.rows import listing
from surefoot.ledger.shelf import put_derived, summary_of
from surefoot.ledger.witness import Witness
from surefoot.machine import boot_id

T = TypeVar("T")

SLOW_SECONDS, FAST_SECONDS = 0.002, 0.001
IDLE_SECONDS = 0.25
IDLE_PAGES, FORCED_PAGES = 1_000, 8_000
UNLISTED_ENTRIES = 256


@dataclass(frozen=True, slots=True)
class Tuning:
    """What an owner may set about a ledger, and what tests replace."""

    room: Room = field(default_factory=Room)
    gate_wait_seconds: float = WAIT_SECONDS
    lease_seconds: float = 30.0
    death: Callable[[Owner, Path], Death] = proof_of_death
    vfs: str | None = None


class SqliteLedger(Desk):
    """One process's handle on the ledger in `folder`. Made by `opening.open_ledger`."""

    def __init__(self, folder: Path, clock: Clock | None, tuning: Tuning, *, create: bool) -> None:
        super().__init__(clock)
        self._folder = folder
        self._tuning = tuning
        self._pid = os.getpid()
        self._closed = False
        self._path = folder / places.LEDGER
        self._blobs = Blobs(folder / places.BLOBS)
        self._ballast = Ballast(folder / places.BALLAST, tuning.room)
        self._reading = threading.RLock()
        self._average_seconds = 0.0
        self._slow = False
        self._lost_grip = False
        """True while the write connection must be opened anew before its next use."""
        self._writer = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle: asyncio.TimerHandle | None = None
        self._appends = 0
        self._derived: dict[str, derived.Folded] = {}
        self._doubted: dict[str, Owner] = {}
        """Sessions whose claim by this handle may or may not be durable."""
        with ExitStack() as undo:
            self._witness = Witness(folder / places.WITNESS)
            undo.callback(self._witness.close)
            self._gate = Gate(folder / places.GATE, tuning.gate_wait_seconds)
            undo.callback(self._gate.close)
            self._database = self._open(create)
            undo.callback(self._database.close)
            self._reader = Database(self._path, read_only=True, vfs=tuning.vfs)
            undo.pop_all()

    def _open(self, create: bool) -> Database:
        self._gate.enter()
        try:
            database = Database(self._path, create=create, vfs=self._tuning.vfs)
            self._ballast.lay()
        finally:
            self._gate.leave()
        return database

    # The parts of a flush that are this engine's own.

    def _usable(self) -> None:
        check_usable(self._pid, closed=self._closed)

    def _enter(self) -> bool:
        return not self._slow and not self._writer.locked() and self._gate.enter_now()

    def _leave(self) -> None:
        self._gate.leave()

    def _set_aside_flush(self) -> None:
        self._keep(self._flush_aside())

    def _keep(self, work: AsyncIterator[None] | object) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _flush_aside(self) -> None:
        """The same flush with its blocking steps in a thread: the gate is contended or the disk is slow."""
        async with self._writer:
            try:
                await off_loop(self._gate.enter)
            except LedgerError as error:
                self._refuse(self._take(), error)
                return
            members = self._take()
            try:
                await carry_out_aside(self._steps(members))
            finally:
                self._gate.leave()
                self._abandon(members)

    def _write(self, batches: list[Batch]) -> None:
        self._regrip()
        if any(batch.starts for batch in batches) and not self._ballast.enough():
            raise ReceiptNotWritten(
                f"less than {self._tuning.room.free_bytes >> 20} MiB are free where the ledger lies, "
                "so nothing is started; free space and try again"
            )
        began = time.perf_counter()
        try:
            self._commit(batches)
        except Full:
            if not any(batch.closes() for batch in batches) or not self._ballast.give_up():
                raise
            self._commit(batches)
        self._note_time(time.perf_counter() - began)
        if self._database.wal_pages >= FORCED_PAGES:
            self._checkpoint()

    def _commit(self, batches: list[Batch]) -> None:
        try:
            if len(batches) == 1 and len(batches[0].rows) == 1:
                batch = batches[0]
                batch.code = None if self._database.append_one(batch.rows[0]) else self._why_refused(batch)
            else:
                with self._database.commit():
                    for batch in batches:
                        batch.code = self._insert(batch)
        except LedgerUncertain:
            self._lost_grip = True
            raise
        self._prove_grip()
        for batch in batches:
            if batch.code is None:
                self._testify(batch)

    def _insert(self, batch: Batch) -> str | None:
        for place, row in enumerate(batch.rows):
            if not self._database.append_inside(row):
                if place:
                    raise LedgerError("an append broke off between its entries; nothing was written")
                return self._why_refused(batch)
        return None

    def _why_refused(self, batch: Batch) -> str:
        """Zero rows: another epoch is in force, or the position is taken. The gate keeps both still."""
        owned = batch.ownership
        epoch = self._database.rows("epoch_of", owned.number)
        if not epoch or epoch[0][0] != owned.epoch:
            return "lease_lost"
        last = self._database.rows("last_entry", owned.number)
        if (last[0][0] if last else owned.number << POSITION_BITS) == batch.rows[0][0] - 1:
            where, text = str(self._path), "a row that breaks a rule of its table"
            raise LedgerError(f"the ledger {where!r} refused a statement ({text}); please report this fault")
        return "position_conflict"

    def _prove_grip(self) -> None:
        """A commit counts only while the names lead to the files it went into (TR-194)."""
        if not self._database.named_as_opened():
            self._lost_grip = True
            raise LedgerUncertain(
                f"the files of the ledger {str(self._path)!r} were moved or replaced while it was open; "
                "put them back, or restart"
            )

    def _testify(self, batch: Batch) -> None:
        owned, last = batch.ownership, batch.rows[-1]
        position = last[0] - (owned.number << POSITION_BITS)
        try:
            self._witness.write(owned.number, owned.tag, owned.epoch, position, last[4])
        except OSError:
            pass  # a witness that is behind means nothing

    def _note_time(self, seconds: float) -> None:
        # Cut, so that one commit the machine was late with does not count as a slow disk.
        self._average_seconds += (min(seconds, 2 * SLOW_SECONDS) - self._average_seconds) / 8
        if self._average_seconds > SLOW_SECONDS:
            self._slow = True
        elif self._average_seconds < FAST_SECONDS:
            self._slow = False

    def _checkpoint(self) -> None:
        try:
            self._database.checkpoint()
        except LedgerError:
            pass  # the commit stands; the next checkpoint tries again
        self._database.wal_pages = 0

    def _regrip(self) -> None:
        """Open the write connection anew after a commit whose answer was lost."""
        if self._lost_grip:
            with self._reading:
                self._database.close()
                self._reader.close()
                self._database = Database(self._path, vfs=self._tuning.vfs)
                self._reader = Database(self._path, read_only=True, vfs=self._tuning.vfs)
            self._lost_grip = False

    def _look_up(self, batches: list[Batch]) -> bool:
        """Whether the commit is durably there, by a new connection (TR-27)."""
        row = next((batch.rows[0] for batch in batches if batch.code is None), batches[0].rows[0])
        try:
            with self._reading:
                self._lost_grip = True
                self._regrip()
                found = self._database.rows("head_at", row[0])
                if found and found[0][0] == row[4]:
                    # What is found may live in the page cache alone, until it is in the file and synced.
                    if not self._database.checkpoint_all():
                        raise LedgerUncertain(
                            "another process reads the ledger; the outcome is not certain yet"
                        )
                    self._prove_grip()
                    for batch in batches:
                        if batch.code is None:
                            self._testify(batch)
                    return True
                # The next commit overwrites the frames the failed one may have left; only then it is absent.
                with self._database.commit():
                    self._database.change("probe")
                self._prove_grip()
                return False
        except LedgerUncertain:
            self._lost_grip = True
            raise
        except LedgerError as error:
            self._lost_grip = True
            raise LedgerUncertain(f"the outcome of a commit is not known yet: {error.message}") from error

    def _folded(self, ownership: Ownership, entries: list[Entry]) -> None:
        self._appends += 1
        self._derived[ownership.session_id].list_entries(entries)
        self._wait_for_idle()

    # Idle work: checkpoint, derived tables, ballast.

    def _wait_for_idle(self) -> None:
        if self._idle is None and not self._closed:
            seen = self._appends
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(IDLE_SECONDS, lambda: self._maybe_idle(seen))

    def _maybe_idle(self, seen: int) -> None:
        self._idle = None
        if self._closed:
            return
        if self._appends != seen or self._queue or self._writer.locked():
            self._wait_for_idle()
            return
        behind = any(owned.unlisted >= UNLISTED_ENTRIES for owned in self._owned.values())
        if behind or self._database.wal_pages >= IDLE_PAGES:
            self._keep(self._tend())

    async def _tend(self) -> None:
        try:
            for owned in list(self._owned.values()):
                if owned.book.rest is not None:
                    await off_loop(owned.book.rest)  # kept for when the rows are made, in the loop
            async with self._turn():
                for owned in list(self._owned.values()):
                    if owned.unlisted >= UNLISTED_ENTRIES:
                        await self._list(owned)
                if self._database.wal_pages >= IDLE_PAGES:
                    await off_loop(self._checkpoint)
                await off_loop(self._ballast.lay)
        except LedgerError:
            return  # derived and repeatable; the next idle moment tries again

    async def _list(self, owned: Ownership, ending: Callable[[], None] | None = None) -> None:
        """Catch the derived rows of a session up, in one commit with `ending`."""
        changed = owned.book.take_changed()
        folded = self._derived[owned.session_id]
        # Asked in the loop, which folds the book; the thread makes the rows and keeps nothing it reads for them.
        summary, rows = summary_of(folded, owned.head), owned.book.rows(changed)
        unlisted, owned.unlisted = owned.unlisted, 0
        stored: list[bool] = []

        def work() -> None:
            self._regrip()
            with self._database.commit():
                put_derived(self._database, owned.number, rows, summary, anew=folded.anew)
                if ending is not None:
                    ending()
            self._prove_grip()
            folded.anew = False
            stored.append(True)

        try:
            await off_loop(work)
        finally:
            if not stored:
                owned.book.put_back_changed(changed)
                owned.unlisted = unlisted

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Be the only writer: of this process by the lock, of all by the gate."""
        async with self._writer:
            await off_loop(self._gate.enter)
            try:
                yield
            finally:
                self._gate.leave()
                if self._queue:
                    asyncio.get_running_loop().call_soon(self._tick)

    # The other verbs.

    async def resolve(self, uncertain: Exception) -> tuple[Entry, ...] | None:
        """Find out what an uncertain append did; see `port.Ledger.resolve`."""
        self._usable()
        try:
            return self._verdict(uncertain)
        except LedgerUncertain:
            token = str(uncertain.facts["token"])  # type: ignore[attr-defined]
        async with self._turn():
            if self._uncertain[token].present is None:
                await carry_out_aside(self._find_out(token))
        return self._verdict(uncertain)

    async def read(
        self, session_id: str, *, after: int = 0, limit: int | None = None, kinds: Collection[str] = ()
    ) -> list[Entry]:
        """The entries of a session; see `port.Ledger.read`."""
        self._usable()
        return await self._off_reading(
            lambda: reader.entries_of(self._reader, session_id, after=after, limit=limit, kinds=kinds)
        )

    async def sessions(self) -> list[SessionRow]:
        """Every session; see `port.Ledger.sessions`."""
        self._usable()
        return await self._off_reading(lambda: listing(self._reader, self._witness, self._folder))

    async def receipts(self, session_id: str) -> Book:
        """Receipts as of now; see `port.Ledger.receipts`."""
        self._usable()
        if session_id in self._owned:
            return self._owned[session_id].book

        def work() -> Book:
            found = reader.known(self._reader, session_id)
            return claims.load(self._reader, found.number, session_id, checked=False).folded.book

        return await self._off_reading(work)

    async def claim(
        self, session_id: str, owner: Owner, *, opening: Draft | None = None, take_over: bool = False
    ) -> Claim | Held:
        """Become owner; see `port.Ledger.claim`."""
        self._usable()
        if session_id in self._doubted:
            async with self._turn():
                await off_loop(lambda: self._undo_claim(session_id))
        while True:
            found = await self._off_reading(lambda: claims.known(self._reader, session_id))
            if found is None:
                if opening is None:
                    raise derived.missing(session_id)
                begun = await self._create(session_id, owner, opening)
                if begun is not None:
                    return self._own(begun, None)
                continue  # somebody made it in the meantime
            death, leased = await off_loop(partial(self._judge_owner, found))
            if found.owner is not None and death != "dead" and not take_over:
                how = "at_once" if death == "alive" else "lease"
                return Held(found.owner, found.epoch, found.since_ms, how, found.lease_ms or None)
            wish = self._wish(session_id, owner, taken_over=leased or death != "dead", leased=leased)
            begun = await self._begin(wish, found)
            if begun is not None:
                return self._own(begun, found)
            take_over = False  # somebody was faster; a person's word was about the owner before

    def _judge_owner(self, found: claims.Known) -> tuple[Death, bool]:
        """Whether the owner is dead, and whether only the end of its lease says so (TR-174, TR-175)."""
        if found.owner is None:
            return "dead", False
        death = self._tuning.death(found.owner, self._folder / places.OWNERS)
        if death != "cannot_tell":
            return death, False
        with self._reading:
            book = claims.load(self._reader, found.number, found.session_id, checked=False).folded.book
        over = claims.lease_is_over(found, book, self._clock, boot_id())
        return ("dead" if over else death), over

    def _wish(
        self, session_id: str, owner: Owner, *, taken_over: bool = False, leased: bool = False
    ) -> claims.Wish:
        now, boot = self._clock.now_ms(), self._clock.boot_ms()
        lasts = int(self._tuning.lease_seconds * 1000)
        lease = claims.Lease(now + lasts, boot + lasts, boot_id())
        return claims.Wish(session_id, owner, now, lease, taken_over, self._clock if leased else None)

    async def _create(self, session_id: str, owner: Owner, opening: Draft) -> claims.Begun | None:
        wish = self._wish(session_id, owner)

        def work() -> claims.Begun | None:
            self._regrip()
            highest = max(self._database.rows("highest_session")[0][0], self._witness.highest())
            return self._started(wish, lambda: claims.create(self._database, wish, opening, highest + 1))

        async with self._turn():
            return await off_loop(work)

    async def _begin(self, wish: claims.Wish, found: claims.Known) -> claims.Begun | None:
        load = claims.load
        loaded = await self._off_reading(
            lambda: load(self._reader, found.number, wish.session_id, checked=True)
        )

        def work() -> claims.Begun | None:
            self._regrip()
            witness = self._witness.read(found.number)
            return self._started(wish, lambda: claims.begin(self._database, wish, found, loaded, witness))

        async with self._turn():
            return await off_loop(work)

    def _started(self, wish: claims.Wish, work: Callable[[], claims.Begun | None]) -> claims.Begun | None:
        """Make the commit of a claim. One whose answer was lost is no claim, and is made good before the next."""
        try:
            begun = work()
            self._prove_grip()
        except LedgerUncertain as error:
            self._lost_grip = True
            self._doubted[wish.session_id] = wish.owner
            raise LedgerError(f"session {wish.session_id!r} could not be claimed: {error.message}") from error
        if begun is not None:
            owned = begun.ownership
            try:
                self._witness.write(owned.number, owned.tag, owned.epoch, owned.position, owned.head)
            except OSError:
                pass
        return begun

    def _undo_claim(self, session_id: str) -> None:
        """Give a session back that a commit of unknown outcome may have made ours; its epoch stays spent."""
        owner = self._doubted[session_id]
        with self._reading:
            self._regrip()
        found = claims.known(self._database, session_id)
        with self._database.commit():
            self._database.change("probe")
            if found is not None and found.owner == owner and session_id not in self._owned:
                self._database.change("release", found.number, found.epoch)
        if not self._database.checkpoint_all():
            raise LedgerError("another process reads the ledger; claim the session again in a moment")
        del self._doubted[session_id]

    def _own(self, begun: claims.Begun, before: claims.Known | None) -> Claim:
        owned = begun.ownership
        self._owned[owned.session_id] = owned
        self._derived[owned.session_id] = begun.folded
        return Claim(
            session_id=owned.session_id,
            epoch=owned.epoch,
            book=owned.book,
            position=owned.position,
            tail=begun.tail,
            previous=before.owner if before is not None else None,
            previous_epoch=before.epoch if before is not None else 0,
            taken_over=begun.taken_over,
        )

    async def renew(self, session_id: str, *, epoch: int, until_ms: int) -> bool:
        """Extend the lease; see `port.Ledger.renew`."""
        self._usable()
        owned = self._owned.get(session_id)
        if owned is None or owned.epoch != epoch:
            return False
        until_boot = self._clock.boot_ms() + until_ms - self._clock.now_ms()

        def work() -> bool:
            self._regrip()
            with self._database.commit():
                renewed = self._database.change("renew", owned.number, epoch, until_ms, until_boot)
            self._prove_grip()
            return renewed == 1

        async with self._turn():
            return await off_loop(work)

    async def release(self, session_id: str, *, epoch: int) -> None:
        """End this ownership; see `port.Ledger.release`."""
        self._usable()
        async with self._turn():
            owned = self._owned.get(session_id)
            if owned is None or owned.epoch != epoch:
                return  # not ours, or ended by somebody else while this waited its turn
            try:
                await self._list(owned, lambda: self._let_go(owned))
            except Full:
                await off_loop(lambda: self._let_go_of_ballast(owned))
            finally:
                self._owned.pop(session_id, None)
                self._derived.pop(session_id, None)

    def _let_go_of_ballast(self, owned: Ownership) -> None:
        """End an ownership on a full disk, and leave the derived rows to the next one (TR-178)."""
        self._ballast.give_up()
        with self._database.commit():
            self._let_go(owned)

    def _let_go(self, owned: Ownership) -> None:
        self._database.change("release", owned.number, owned.epoch)

    async def put_blob(self, content: bytes) -> str:
        """Store a blob; see `port.Ledger.put_blob`."""
        self._usable()
        return await off_loop(lambda: self._blobs.put(content))

    async def get_blob(self, ref: str) -> bytes:
        """Read a blob; see `port.Ledger.get_blob`."""
        self._usable()
        return await off_loop(lambda: self._blobs.get(ref))

    async def verify(self, session_id: str | None = None) -> Report:
        """Check chains, witness and blobs; see `port.Ledger.verify`."""
        self._usable()
        return await self._off_reading(lambda: audit(self._reader, self._witness, self._blobs, session_id))

    async def close(self) -> None:
        """Finish what was begun and let go of every lock; see `port.Ledger.close`."""
        if self._closed:
            return
        self._usable()
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        while self._queue or self._tasks:
            await asyncio.sleep(0)
            if self._tasks:
                await asyncio.wait(set(self._tasks))
        for owned in list(self._owned.values()):
            try:
                await self.release(owned.session_id, epoch=owned.epoch)
            except LedgerError:
                continue  # the kernel drops the owner's lock, which frees the session as well
        self._closed = True
        with self._reading:
            self._reader.close()
        self._database.close()
        self._witness.close()
        self._gate.close()

    async def _off_reading(self, work: Callable[[], T]) -> T:
        def locked() -> T:
            with self._reading:
                return work()

        return await off_loop(locked)
