"""The way of an entry into a ledger: queue, judge, one commit for all who wait, fold, answer.

Owns: what is the same in every engine: group commit (TR-22), the order of judging
(TR-21, TR-37), that an error in a group is the error of all (TR-195), and what an
uncertain commit holds up (TR-27). Does not own: durability, gate, files (engines).
Promises: ledger:append-only, ledger:fenced, ledger:engines-agree.

`append` queues and schedules one flush for the next turn of the event loop; where nobody
else could join it by then, it is flushed in the same step, without that turn. The flush
is one generator that yields its blocking steps; an engine carries them out in the loop
or in a thread. Judging, folding and answering happen in the loop alone, so nobody ever
sees a book that is ahead of the disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from surefoot.core.lifecycle import Book
from surefoot.core.model import Draft, Entry, Kind
from surefoot.errors import LedgerError, LedgerUncertain
from surefoot.ledger.chain import POSITION_BITS, link, new_salt, payload_digest, payload_text
from surefoot.ledger.clock import Clock, MachineClock
from surefoot.ledger.ownership import Ownership
from surefoot.ledger.port import Appended, Judge, NotAppended

Row = tuple[int, int, int, str, bytes, bytes, str]
"""key, epoch, at_ms, kind, head, salt, payload: one row as it is inserted."""
Steps = Generator[Callable[[], Any], Any, None]

AT_ONCE_IN_A_ROW = 8
_UNSEEN = ("perhaps",)

_CLOSING = frozenset({Kind.CLOSED.value, Kind.RESOLVED.value, Kind.NOTICE.value})


@dataclass(slots=True, eq=False)
class Member:
    """One append that waits."""

    session_id: str
    drafts: Sequence[Draft]
    texts: list[tuple[str, bytes]]
    epoch: int
    after: int | None
    judge: Judge | None
    future: asyncio.Future[Appended | NotAppended]


@dataclass(slots=True, eq=False)
class Batch:
    """The rows of one admitted append; they are written all or none."""

    ownership: Ownership
    rows: list[Row]
    member: Member | None = None
    starts: bool = False
    """Whether an attempt begins with it, so that head room is asked for (TR-197)."""
    code: str | None = None
    """Set by the engine when the statement changed zero rows."""

    def closes(self) -> bool:
        """Whether the ballast may be given up for it (TR-197)."""
        return any(row[3] in _CLOSING for row in self.rows)


@dataclass(slots=True)
class Uncertain:
    """A commit whose answer was lost, and once it is known, whether it is there."""

    batches: list[Batch]
    entries: dict[int, tuple[Entry, ...]] = field(default_factory=dict)
    present: bool | None = None


class Desk:
    """Queue and flush. Engines add the blocking parts: `_enter`, `_write`, `_look_up`, `_leave`."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or MachineClock()
        self._owned: dict[str, Ownership] = {}
        self._queue: list[Member] = []
        self._scheduled = False
        self._uncertain: dict[str, Uncertain] = {}
        self._serial = 0
        self._in_a_row = 0

    async def append(
        self,
        session_id: str,
        drafts: Sequence[Draft],
        *,
        epoch: int,
        after: int | None = None,
        judge: Judge | None = None,
    ) -> Appended | NotAppended:
        """Append the drafts durably, all or none; see `port.Ledger.append`."""
        self._usable()
        if not drafts:
            raise ValueError("an append needs at least one draft")
        loop = asyncio.get_running_loop()
        # The text is made here, so that what the caller changes later is not what is written.
        texts = [payload_text(draft.payload) for draft in drafts]
        future: asyncio.Future[Appended | NotAppended] = loop.create_future()
        member = Member(session_id, drafts, texts, epoch, after, judge, future)
        if self._alone(loop) and self._enter():
            self._flush([member])
            return future.result()
        self._queue.append(member)
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._tick)
        # A cancelled caller cancels this future, which only means that nobody listens any more (TR-29).
        return await future

    def _alone(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether nobody could share the commit of an append that is made now (TR-22).

        That is so when the loop holds nothing else it would run before the flush. A loop that does not show
        this never says so. One commit in a few waits for its turn all the same, so that a caller who
        appends without end leaves the others some.
        """
        if not self.at_once or self._queue or len(getattr(loop, "_ready", _UNSEEN)):
            return False
        self._in_a_row = (self._in_a_row + 1) % AT_ONCE_IN_A_ROW
        return self._in_a_row != 0

    # What an engine adds.

    at_once = True
    """Whether an append nobody can share may be flushed in the step that makes it."""

    def _usable(self) -> None:
        """Raise when this handle may not be used at all."""

    def _enter(self) -> bool:
        """Take the gate now, or answer False when somebody must wait for it outside the loop."""
        return True

    def _leave(self) -> None:
        """Give the gate back."""

    def _write(self, batches: list[Batch]) -> None:
        """Commit `batches` at once, set `code` on those with zero rows. Blocks; raises `LedgerError`."""
        raise NotImplementedError

    def _look_up(self, batches: list[Batch]) -> bool:
        """Whether an uncertain commit is durably there. Blocks; raises `LedgerUncertain` while unknown."""
        raise NotImplementedError

    def _set_aside_flush(self) -> None:
        """Carry the queue out elsewhere, because `_enter` answered False."""
        raise NotImplementedError

    def _folded(self, ownership: Ownership, entries: list[Entry]) -> None:
        """Called in the loop after entries of a session were folded."""

    # The flush.

    def _tick(self) -> None:
        self._scheduled = False
        if not self._queue:
            return
        if not self._enter():
            self._set_aside_flush()
            return
        self._flush(self._take())

    def _flush(self, members: list[Member]) -> None:
        """Flush in the loop, behind the gate that was entered."""
        try:
            self._carry_out(self._steps(members))
        finally:
            self._leave()
            self._abandon(members)

    def _take(self) -> list[Member]:
        members, self._queue = self._queue, []
        return members

    @staticmethod
    def _carry_out(steps: Steps) -> None:
        """Carry the blocking steps out here and now."""
        try:
            step = next(steps)
            while True:
                try:
                    value = step()
                except LedgerError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(value)
        except StopIteration:
            return

    def _abandon(self, members: list[Member]) -> None:
        """Answer whoever a fault of ours left without an answer; the fault itself goes on to the loop."""
        for member in members:
            if not member.future.done():
                member.future.set_exception(LedgerError("the flush broke off; nothing was told as written"))

    def _steps(self, members: list[Member]) -> Steps:
        if self._uncertain:
            for token, uncertain in list(self._uncertain.items()):
                if uncertain.present is None:
                    try:
                        yield from self._find_out(token)
                    except LedgerUncertain as error:
                        self._refuse(members, self._held_up(error))
                        return
                    except LedgerError as error:
                        self._refuse(members, error)
                        return
        start = 0
        while start < len(members):
            stop = start + 1
            while stop < len(members) and not _depends(members[start:stop], members[stop]):
                stop += 1
            yield from self._group(members[start:stop])
            start = stop

    def _held_up(self, error: LedgerUncertain) -> LedgerError:
        return LedgerError(
            "an earlier commit of this ledger is not certain yet, so nothing new was written; "
            f"free or mend the disk and try again ({error.message})"
        )

    def _group(self, members: list[Member]) -> Steps:
        batches: list[Batch] = []
        ends: dict[str, tuple[int, bytes]] = {}
        for member in members:
            batch = self._admit(member, ends)
            if batch is not None:
                batches.append(batch)
        if not batches:
            return
        try:
            yield lambda: self._write(batches)
        except LedgerUncertain as error:
            self._doubt(batches, error)
        except LedgerError as error:
            if len(batches) == 1:
                self._refuse([member for member in members if not member.future.done()], error)
                return
            # None of them is written; each may be by itself (TR-195).
            for batch in batches:
                if batch.member is not None:
                    yield from self._group([batch.member])
        else:
            for batch in batches:
                self._answer(batch)

    def _admit(self, member: Member, ends: dict[str, tuple[int, bytes]]) -> Batch | None:
        """The rows of a member that may be written, or None when it was answered with a refusal."""
        code: str | None = None
        owned = self._owned.get(member.session_id)
        if owned is None or owned.epoch != member.epoch:
            code = "lease_lost"
        else:
            position, head = ends.get(member.session_id) or (owned.position, owned.head)
            if member.after is not None and member.after != position:
                code = "position_conflict"
            elif member.judge is not None:
                code = member.judge()
            if code is None:
                code = _illegal(owned.book, member.drafts)
            if code is None:
                batch = make_batch(owned, member, (position, head), self._clock.now_ms())
                ends[member.session_id] = (position + len(batch.rows), batch.rows[-1][4])
                return batch
        if not member.future.done():
            member.future.set_result(NotAppended(code))
        return None

    def _answer(self, batch: Batch) -> None:
        member = batch.member
        answer: Appended | NotAppended
        if batch.code is not None:
            answer = NotAppended(batch.code)
        else:
            answer = Appended(self._fold(batch))
        if member is not None and not member.future.done():
            member.future.set_result(answer)

    def _fold(self, batch: Batch) -> tuple[Entry, ...]:
        owned = batch.ownership
        drafts = batch.member.drafts if batch.member is not None else ()
        entries = []
        for row, draft in zip(batch.rows, drafts, strict=True):
            owned.position += 1
            owned.head = row[4]
            entry = Entry(
                owned.session_id, owned.position, row[1], row[2], row[3], draft.payload, row[4].hex()
            )
            owned.book.apply(entry)
            entries.append(entry)
        owned.unlisted += len(entries)
        self._folded(owned, entries)
        return tuple(entries)

    def _refuse(self, members: list[Member], error: LedgerError) -> None:
        for member in members:
            if not member.future.done():
                member.future.set_exception(error)

    # Uncertain commits.

    def _doubt(self, batches: list[Batch], error: LedgerUncertain) -> None:
        """Nobody is told anything but that it is not known; the next flush finds out first."""
        self._serial += 1
        token = f"{self._serial}"
        self._uncertain[token] = Uncertain(batches)
        for index, batch in enumerate(batches):
            if batch.member is not None and not batch.member.future.done():
                told = LedgerUncertain(
                    error.message, token=token, index=index, session=batch.ownership.session_id
                )
                batch.member.future.set_exception(told)

    def _find_out(self, token: str) -> Steps:
        uncertain = self._uncertain[token]
        present = yield lambda: self._look_up(uncertain.batches)
        if present:
            for index, batch in enumerate(uncertain.batches):
                uncertain.entries[index] = self._fold(batch) if batch.code is None else ()
        uncertain.present = present

    def _verdict(self, error: Exception) -> tuple[Entry, ...] | None:
        """What is known of an uncertain append by now.

        Raises:
            ValueError: no uncertain append of this handle.
            LedgerUncertain: not known yet.
        """
        facts = error.facts if isinstance(error, LedgerUncertain) else {}
        uncertain = self._uncertain.get(str(facts.get("token")))
        if uncertain is None or not isinstance(error, LedgerUncertain):
            raise ValueError("resolve needs the LedgerUncertain that an append of this handle raised")
        if uncertain.present is None:
            raise error
        if not uncertain.present:
            return None
        return uncertain.entries[int(facts["index"])] or None


def make_batch(owned: Ownership, member: Member, end: tuple[int, bytes], at_ms: int) -> Batch:
    """The rows of `member` behind `end` (position, head) of its session."""
    position, head = end
    first = owned.number << POSITION_BITS
    rows: list[Row] = []
    starts = False
    for draft, (text, raw) in zip(member.drafts, member.texts, strict=True):
        position += 1
        salt = new_salt()
        kind = str(draft.kind)
        starts = starts or kind == Kind.STARTED
        head = link(head, (position, owned.epoch, at_ms), kind, payload_digest(salt, raw))
        rows.append((first + position, owned.epoch, at_ms, kind, head, salt, text))
    return Batch(owned, rows, member, starts)


def _depends(group: list[Member], later: Member) -> bool:
    """Whether `later` must see `group` folded before it is judged, so that it needs a commit of its own.

    Starts and successes raise no fence; anything else in the same session may change a judge's mind,
    and two entries about one attempt are never judged side by side.
    """
    touched = _touched(later.drafts)
    for member in group:
        if member.session_id != later.session_id:
            continue
        if touched & _touched(member.drafts):
            return True
        if later.judge is not None and not all(_harmless(draft) for draft in member.drafts):
            return True
    return False


def _harmless(draft: Draft) -> bool:
    if draft.kind == Kind.CLOSED:
        return bool(draft.payload.get("state") == "succeeded")
    return draft.kind in (Kind.STARTED, Kind.NOT_STARTED) and not draft.payload.get("supersedes")


def _touched(drafts: Sequence[Draft]) -> set[str]:
    """The attempts a member's legality depends on or changes."""
    found: set[str] = set()
    for draft in drafts:
        payload = draft.payload
        for key in ("attemptId", "supersedes", "parentAttemptId"):
            if payload.get(key):
                found.add(payload[key])
        if draft.kind == Kind.ASSISTANT:
            found.update(call["attemptId"] for call in payload.get("calls") or ())
    return found


def _illegal(book: Book, drafts: Sequence[Draft]) -> str | None:
    """The code of the first illegal move among `drafts`, each judged after the ones before it."""
    if len(drafts) == 1:
        return book.refusal(drafts[0].kind, drafts[0].payload)
    scratch = Book(_near(book, _touched(drafts)))
    for place, draft in enumerate(drafts):
        code = scratch.refusal(draft.kind, draft.payload)
        if code is not None:
            return code
        scratch.apply(Entry("", place + 1, 0, 0, draft.kind, draft.payload))
    return None


def _near(book: Book, attempts: set[str]) -> list[Any]:
    """The receipts whose state or openness can bear on these attempts, in order of appearance."""
    wanted: dict[str, Any] = {}
    pending = list(attempts)
    while pending:
        attempt = pending.pop()
        receipt = book.get(attempt)
        if receipt is None or attempt in wanted:
            continue
        wanted[attempt] = receipt
        pending += [receipt.supersedes or "", receipt.superseded_by or "", receipt.parent_attempt_id or ""]
        pending += [child.attempt_id for child in book.children(attempt)]
    return sorted(wanted.values(), key=lambda receipt: (receipt.dispatched_at or 0, receipt.attempt_id))
