"""The memory engine: the same ledger without a disk, for the simulation and for tests.

Owns: a store that several owners share as several processes share a file, and a death
oracle in place of the kernel. Does not own: judging and folding (`admission`).
Promises: ledger:engines-agree.

Runs on any event loop, also one with a clock of its own: no threads, no waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from surefoot.core.canonical import digest_bytes
from surefoot.core.lifecycle import Book
from surefoot.core.model import Draft, Entry, Kind, Owner
from surefoot.errors import LedgerDamaged, LedgerError, LedgerUncertain
from surefoot.ledger import chain
from surefoot.ledger.admission import Batch, Desk, Row
from surefoot.ledger.clock import Clock, MachineClock
from surefoot.ledger.cover import covered
from surefoot.ledger.derived import Folded, Listed, fold, missing, open_calls, read_entry
from surefoot.ledger.owners import Death
from surefoot.ledger.ownership import Ownership
from surefoot.ledger.port import Claim, Finding, Held, Report, SessionRow, Tail

LEASE_MS = 30_000


@dataclass(slots=True, eq=False)
class Kept:
    """One session in a store."""

    number: int
    session_id: str
    created_ms: int
    epoch: int = 0
    owner: Owner | None = None
    since_ms: int = 0
    lease_boot_ms: int = 0
    lease_ms: int = 0
    rows: list[Row] = field(default_factory=list)
    digests: dict[int, bytes] = field(default_factory=dict)
    """Position → what stands in the place of a dropped payload and its salt."""
    witness: tuple[int, int, bytes] | None = None
    """Epoch, position and head of the newest entry ever acknowledged."""
    loss_told: str | None = None


class MemoryStore:
    """What several `MemoryLedger`s share: the sessions, the blobs, and who is dead.

    `fault` is asked before each commit with its kinds; an error it returns is raised instead
    of the commit, an uncertain one after it when `fault_after` says so.
    """

    def __init__(self, clock: Clock | None = None, death: Callable[[Owner], Death] | None = None) -> None:
        self.clock: Clock = clock or MachineClock()
        self.death: Callable[[Owner], Death] = death or (lambda owner: "alive")
        self.sessions: dict[str, Kept] = {}
        self.blobs: dict[str, bytes] = {}
        self.stored_ms: dict[str, int] = {}
        """Blob → when it was last stored."""
        self.fault: Callable[[list[str]], LedgerError | None] = lambda kinds: None
        self.fault_after: Callable[[list[str]], LedgerError | None] = lambda kinds: None
        self.commits = 0

    def kept(self, session_id: str) -> Kept:
        """What is stored of a session. Raises `SessionMissing`."""
        kept = self.sessions.get(session_id)
        if kept is None:
            raise missing(session_id)
        return kept

    def lose_tail(self, session_id: str, entries: int) -> None:
        """Forget the newest entries, as a disk does that lied about its sync."""
        kept = self.sessions[session_id]
        del kept.rows[len(kept.rows) - entries :]

    def commit(self, batches: list[Batch]) -> None:
        """Write all or nothing; a stale epoch or a taken position is a code, not an error."""
        kinds = [row[3] for batch in batches for row in batch.rows]
        failure = self.fault(kinds)
        if failure is not None:
            raise failure
        self.commits += 1
        for batch in batches:
            kept = self.sessions[batch.ownership.session_id]
            first = batch.rows[0][0] & chain.POSITION_MASK
            if kept.epoch != batch.rows[0][1]:
                batch.code = "lease_lost"
            elif len(kept.rows) != first - 1:
                batch.code = "position_conflict"
            else:
                batch.code = None
                kept.rows.extend(batch.rows)
                kept.witness = (kept.epoch, len(kept.rows), kept.rows[-1][4])
        failure = self.fault_after(kinds)
        if failure is not None:
            raise failure


class MemoryLedger(Desk):
    """One owner's handle on a store.

    Commits at the next turn of the loop only, so that a schedule may put anything before a commit.
    """

    at_once = False

    def __init__(self, store: MemoryStore | None = None) -> None:
        self._store = store or MemoryStore()
        super().__init__(self._store.clock)
        self._closed = False

    def _usable(self) -> None:
        if self._closed:
            raise LedgerError("this ledger handle is closed; open the ledger again")

    def _write(self, batches: list[Batch]) -> None:
        self._store.commit(batches)

    def _look_up(self, batches: list[Batch]) -> bool:
        failure = self._store.fault(["look_up"])
        if failure is not None:
            raise LedgerUncertain(failure.message)
        rows = self._store.sessions[batches[0].ownership.session_id].rows
        row = batches[0].rows[0]
        place = (row[0] & chain.POSITION_MASK) - 1
        return place < len(rows) and rows[place][4] == row[4]

    async def resolve(self, uncertain: Exception) -> tuple[Entry, ...] | None:
        """Find out what an uncertain append did; see `port.Ledger.resolve`."""
        self._usable()
        try:
            return self._verdict(uncertain)
        except LedgerUncertain as error:
            self._carry_out(self._find_out(str(error.facts["token"])))
        return self._verdict(uncertain)

    async def read(
        self, session_id: str, *, after: int = 0, limit: int | None = None, kinds: Collection[str] = ()
    ) -> list[Entry]:
        """The entries of a session; see `port.Ledger.read`."""
        self._usable()
        kept = self._store.kept(session_id)
        rows = [row for row in kept.rows[after:] if not kinds or row[3] in kinds]
        return [_entry(kept, row) for row in rows[:limit]]

    async def sessions(self) -> list[SessionRow]:
        """Every session; see `port.Ledger.sessions`."""
        self._usable()
        return [_line(kept) for kept in self._store.sessions.values()]

    async def receipts(self, session_id: str) -> Book:
        """Receipts as of now; see `port.Ledger.receipts`."""
        self._usable()
        owned = self._owned.get(session_id)
        return owned.book if owned is not None else _fold(self._store.kept(session_id)).book

    async def claim(
        self, session_id: str, owner: Owner, *, opening: Draft | None = None, take_over: bool = False
    ) -> Claim | Held:
        """Become owner; see `port.Ledger.claim`."""
        self._usable()
        kept = self._store.sessions.get(session_id)
        if kept is None:
            if opening is None:
                raise missing(session_id)
            return self._begin(self._new(session_id), owner, opening, taken_over=False)
        death: Death = "dead" if kept.owner is None else self._store.death(kept.owner)
        leased = kept.owner is not None and death == "cannot_tell" and self._lease_is_over(kept, kept.owner)
        if kept.owner is not None and death != "dead" and not leased and not take_over:
            how = "at_once" if death == "alive" else "lease"
            return Held(kept.owner, kept.epoch, kept.since_ms, how, kept.lease_ms)
        return self._begin(kept, owner, None, taken_over=death != "dead")

    def _new(self, session_id: str) -> Kept:
        return Kept(len(self._store.sessions) + 1, session_id, self._clock.now_ms())

    def _lease_is_over(self, kept: Kept, owner: Owner) -> bool:
        """As `claims.lease_is_over`; all owners of a store share one machine and its boot."""
        if self._clock.boot_ms() <= kept.lease_boot_ms:
            return False
        return self._clock.boot_ms() > covered(_fold(kept).book, owner.boot_id).until_boot_ms

    def _begin(self, kept: Kept, owner: Owner, opening: Draft | None, *, taken_over: bool) -> Claim:
        head, position, broken = chain.check(chain.genesis(kept.session_id), 0, _chained(kept))
        if broken is not None:
            raise LedgerDamaged(
                f"the history of session {kept.session_id!r} does not hold: {broken}", session=kept.session_id
            )
        tail = _tail(kept)
        folded = _fold(kept)
        before, before_epoch = kept.owner, kept.epoch
        epoch = max(kept.epoch, kept.witness[0] if kept.witness is not None and tail.lost else 0) + 1
        payload = {
            "owner": owner.to_json(),
            "takenOver": taken_over,
            "previousEpoch": before_epoch,
            **({"tailLost": tail.detail} if tail.lost else {}),
        }
        drafts = [Draft(Kind.SESSION_OWNED, payload)]
        if opening is not None:
            drafts.insert(0, opening)
        owned = Ownership(kept.session_id, kept.number, epoch, owner, folded.book, position, head)
        self._write_claim(kept, owned, drafts)
        kept.owner, kept.since_ms = owner, self._clock.now_ms()
        kept.lease_ms = kept.since_ms + LEASE_MS
        kept.lease_boot_ms = self._clock.boot_ms() + LEASE_MS
        kept.loss_told = tail.detail if tail.lost else None
        self._owned[kept.session_id] = owned
        return Claim(
            session_id=kept.session_id,
            epoch=epoch,
            book=owned.book,
            position=owned.position,
            tail=tail,
            previous=before,
            previous_epoch=before_epoch,
            taken_over=taken_over,
        )

    def _write_claim(self, kept: Kept, owned: Ownership, drafts: list[Draft]) -> None:
        """The first entries of an ownership, through the same faults as every commit."""
        failure = self._store.fault([str(draft.kind) for draft in drafts])
        if failure is not None:
            raise failure
        self._store.commits += 1
        at_ms = self._clock.now_ms()
        for draft in drafts:
            text, raw = chain.payload_text(draft.payload)
            salt = chain.new_salt()
            owned.position += 1
            facts = (owned.position, owned.epoch, at_ms)
            owned.head = chain.link(owned.head, facts, str(draft.kind), chain.payload_digest(salt, raw))
            key = (kept.number << chain.POSITION_BITS) + owned.position
            kept.rows.append((key, owned.epoch, at_ms, str(draft.kind), owned.head, salt, text))
        kept.epoch = owned.epoch
        kept.witness = (owned.epoch, owned.position, owned.head)
        self._store.sessions[kept.session_id] = kept

    def _folded(self, ownership: Ownership, entries: list[Entry]) -> None:
        for entry in entries:
            if entry.kind == Kind.NOTICE and entry.payload.get("code") == "tail_lost":
                self._store.sessions[ownership.session_id].loss_told = None

    async def renew(self, session_id: str, *, epoch: int, until_ms: int) -> bool:
        """Extend the lease; see `port.Ledger.renew`."""
        self._usable()
        kept = self._store.sessions.get(session_id)
        if kept is None or kept.epoch != epoch or session_id not in self._owned:
            return False
        ahead_ms = until_ms - self._clock.now_ms()
        kept.lease_ms = max(kept.lease_ms, until_ms)
        kept.lease_boot_ms = max(kept.lease_boot_ms, self._clock.boot_ms() + ahead_ms)
        return True

    async def release(self, session_id: str, *, epoch: int) -> None:
        """End this ownership; see `port.Ledger.release`."""
        self._usable()
        owned = self._owned.get(session_id)
        if owned is None or owned.epoch != epoch:
            return
        del self._owned[session_id]
        kept = self._store.sessions[session_id]
        if kept.epoch == epoch:
            kept.owner, kept.lease_ms, kept.lease_boot_ms = None, 0, 0

    async def put_blob(self, content: bytes) -> str:
        """Store a blob; see `port.Ledger.put_blob`."""
        self._usable()
        ref = digest_bytes(content)
        self._store.blobs[ref] = bytes(content)
        self._store.stored_ms[ref] = self._clock.now_ms()
        return ref

    async def get_blob(self, ref: str) -> bytes:
        """Read a blob; see `port.Ledger.get_blob`."""
        self._usable()
        content = self._store.blobs.get(ref)
        if content is None or digest_bytes(content) != ref:
            raise LedgerDamaged(
                f"blob {ref!r} is missing or not what was stored; run `surefoot ledger verify`"
            )
        return content

    async def verify(self, session_id: str | None = None) -> Report:
        """Check chains and witness; see `port.Ledger.verify`."""
        self._usable()
        chosen = [kept for kept in self._store.sessions.values() if session_id in (None, kept.session_id)]
        findings: list[Finding] = []
        for kept in chosen:
            start = chain.genesis(kept.session_id)
            _, position, broken = chain.check(start, 0, _chained(kept))
            if broken is not None:
                findings.append(Finding("chain_broken", kept.session_id, position + 1, broken))
            elif _witness_ahead(kept) is not None:
                findings.append(Finding("tail_lost", kept.session_id, position, _witness_ahead(kept) or ""))
        entries = sum(len(kept.rows) for kept in chosen)
        return Report(len(chosen), entries, len(self._store.blobs), tuple(findings))

    async def close(self) -> None:
        """Finish what was begun and end every ownership; see `port.Ledger.close`."""
        if self._closed:
            return
        if self._queue:
            self._tick()
        for owned in list(self._owned.values()):
            await self.release(owned.session_id, epoch=owned.epoch)
        self._closed = True


def _entry(kept: Kept, row: Row) -> Entry:
    key, epoch, at_ms, kind, head, _, text = row
    position = key & chain.POSITION_MASK
    return read_entry(
        kept.session_id, (position, epoch, at_ms, kind), None if position in kept.digests else text, head
    )


def _chained(kept: Kept) -> Iterator[chain.ChainRow]:
    for key, epoch, at_ms, kind, head, salt, text in kept.rows:
        digest = kept.digests.get(key & chain.POSITION_MASK)
        held = (salt, text.encode()) if digest is None else (None, None)
        yield key, epoch, at_ms, kind, head, *held, digest


def _fold(kept: Kept) -> Folded:
    entries = (_entry(kept, row) for row in kept.rows)
    return fold(Folded(Book(), Listed()), entries)


def _witness_ahead(kept: Kept) -> str | None:
    if kept.witness is None:
        return None
    _, position, head = kept.witness
    if position > len(kept.rows):
        return f"the witness saw entry {position}, the ledger ends at {len(kept.rows)}"
    if position and kept.rows[position - 1][4] != head:
        return f"entry {position} is not the one the witness saw"
    return None


def _tail(kept: Kept) -> Tail:
    """A loss stays told until a notice of it was written; see `claims`."""
    detail = _witness_ahead(kept) or kept.loss_told
    return Tail(detail is not None, detail or "")


def _line(kept: Kept) -> SessionRow:
    folded = _fold(kept)
    listed = folded.listed
    return SessionRow(
        kept.session_id,
        listed.name,
        listed.directory,
        listed.model,
        kept.created_ms,
        listed.changed_ms,
        len(kept.rows),
        kept.epoch,
        folded.book.call_count(),
        open_calls(folded.book),
        "dropped" if folded.book.dropped else "ok",
        kept.owner,
    )
