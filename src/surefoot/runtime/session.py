"""One ownership of one session: its epoch, its lease, and the only way to append to it.

Owns: claim and release, the lease clock (TR-174, TR-175), what an uncertain
commit turns out to be (TR-27), and whether tools may start at all (TR-26). Does not own:
what is appended (`barrier`, `reconcile`, `controller`), how death is proven (`ledger`).
Promises: ledger:fenced, barrier:fail-closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.core.guards import Guards
from surefoot.core.history import History
from surefoot.core.incident import Incident, incidents_of
from surefoot.core.model import BarrierLevel, Draft, Entry, Kind, Owner
from surefoot.core.questions import Questions
from surefoot.core.turns import Newest
from surefoot.errors import LedgerError, LedgerUncertain, StaleEpoch
from surefoot.ledger.cover import COVER_MS
from surefoot.ledger.port import Appended, Claim, Held, Judge, Ledger, NotAppended
from surefoot.runtime.scheduler import Scheduler

UNCERTAIN_TRIES = 3
RECORD_LOST = "recovery_record_lost"
"""Code of the entry that says an incident may be among the entries that were lost (PR-99)."""
_STANDING = (
    Kind.SESSION_OPENED, Kind.TURN, Kind.BARRIER_SET, Kind.INCIDENT, Kind.NOTICE,
    Kind.QUESTION, Kind.ANSWER, Kind.APPROVAL,
)  # fmt: skip
"""The kinds that `_note` reads."""


@dataclass(frozen=True, slots=True)
class Found(Appended):
    """Durable after all: the answer of the commit was lost, and its entries were found later (TR-27)."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Length of the lease and of one renewal period, in seconds (TR-174)."""

    lease_seconds: float = 30.0
    renewal_seconds: float = 10.0
    extension_seconds: float = 600.0
    """How far at most an effect's deadline extends it (TR-175)."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which session to own: a new one (`opening` facts, id optional) or an existing one.

    `take_over` is a person's word (TR-175).
    """

    session_id: str | None = None
    opening: Mapping[str, Any] | None = None
    take_over: bool = False


class Session:
    """A session owned by this process. Everything that writes to it goes through `append`."""

    def __init__(self, ledger: Ledger, claim: Claim, scheduler: Scheduler, times: LeaseTimes) -> None:
        self.ledger = ledger
        self.session_id = claim.session_id
        self.epoch = claim.epoch
        self.book = claim.book
        self.claim = claim
        self.scheduler = scheduler
        self.position = claim.position
        self.level = BarrierLevel.REACH
        """What the owner's settings say now; recorded with the next turn when it changed (TR-83)."""
        self.recorded_level: str | None = None
        self.lost = False
        """True once another owner took the session; nothing starts any more."""
        self.closed = False
        """True once it was given back; what was not written by then is the next owner's to judge."""
        self.broken: LedgerError | None = None
        """Why no tool may start now: the last write failed (TR-26). Cleared by the next one that succeeds."""
        self.on_lost: Callable[[], None] = lambda: None
        self.guards = Guards()
        self.questions = Questions()
        self.newest_turn = Newest()
        self.works_with: Mapping[str, Any] | None = None
        """Model, contract, project settings and tools of the newest turn (TR-183); None before the first."""
        self.incidents: list[Incident] = []
        """Every incident record so far, oldest first; the newest of an id is that incident (PR-19)."""
        self.record_lost_at: int | None = None
        """Length of the model view when the ledger's tail was found lost (PR-99)."""
        self._history: History | None = None
        self._read_upto: int | None = None
        """The last entry that `history` folded, once it has read."""
        self._stands_upto: int | None = None
        """The same of `standing`. A commit that was uncertain may be read there before it is found to be one."""
        self._times = times
        self._lease_until_boot_ms = 0
        self._covers: dict[str, int] = {}
        """Attempt → until when its unsettled start keeps the session here, in boot time (TR-175)."""
        self._renewing: Any = None
        self._uncertain: LedgerUncertain | None = None
        """The newest commit of which nobody knows yet whether it is durable."""
        self._watchers: list[Callable[[Entry], None]] = []

    @classmethod
    async def open(
        cls,
        ledger: Ledger,
        scheduler: Scheduler,
        owner: Owner,
        wanted: Wanted,
        *,
        times: LeaseTimes | None = None,
    ) -> Session | Held:
        """Own a session, unless somebody else does.

        Runs no tool and sends nothing. Raises `SessionMissing`, `LedgerError`.
        """
        name = wanted.session_id or scheduler.new_id("ses")
        draft = None if wanted.opening is None else Draft(Kind.SESSION_OPENED, dict(wanted.opening))

        async def become() -> Session | Held:
            answer = await ledger.claim(name, owner, opening=draft, take_over=wanted.take_over)
            if isinstance(answer, Held):
                return answer
            session = cls(ledger, answer, scheduler, times or LeaseTimes())
            await session._renew()
            session._renewing = scheduler.spawn(session._keep_lease(), f"lease {name}")
            return session

        async def give_back() -> None:
            owned = await claiming
            if isinstance(owned, Session):
                await owned.close()

        claiming = scheduler.spawn(become(), f"claim {name}")
        # A caller who gave up in the middle of the claim must not leave an ownership behind (TR-178).
        return await scheduler.watched(claiming, on_cancel=lambda: scheduler.spawn(give_back(), "give back"))

    async def history(self) -> History:
        """The conversation so far, folded from the ledger on first use and kept current after that.

        The guards are folded with it: a session is listed without either, and no call runs before both.
        """
        if self._history is None:
            entries = await self._so_far()
            if self._history is None:  # unless another reader was faster
                history, guards = History(), Guards()
                for entry in entries:
                    history.apply(entry)
                    guards.apply(entry)
                self._stand(entries)
                self._history, self.guards = history, guards
                self._read_upto = entries[-1].position if entries else 0
        return self._history

    async def standing(self) -> None:
        """Read how the session stands, on first use: its turns, questions and refused requests.

        What a person is shown before anything runs needs no more, however long the conversation is (UX-70).
        """
        if self._stands_upto is None:
            self._stand(await self._so_far(_STANDING))

    async def _so_far(self, kinds: tuple[str, ...] = ()) -> list[Entry]:
        """The entries up to this moment, what was appended while they were read included."""
        meanwhile: list[Entry] = []
        self._watchers.append(meanwhile.append)
        try:
            found = await self.ledger.read(self.session_id, kinds=kinds)
        finally:
            self._watchers.remove(meanwhile.append)
        last = found[-1].position if found else 0
        return found + [one for one in meanwhile if one.position > last and (not kinds or one.kind in kinds)]

    def _stand(self, entries: list[Entry]) -> None:
        """Fold how the session stands, once, in place of what was noted of this owner's own entries."""
        if self._stands_upto is not None:
            return
        self._stands_upto = entries[-1].position if entries else 0
        self.questions, self.newest_turn = Questions(), Newest()
        self.works_with, self.recorded_level, self.record_lost_at, self.incidents = None, None, None, []
        for entry in entries:
            self._note(entry)

    def watch(self, watcher: Callable[[Entry], None]) -> None:
        """Be told of every entry this owner appends, in order."""
        self._watchers.append(watcher)

    async def append(
        self, *drafts: Draft, judge: Judge | None = None, after: int | None = None
    ) -> Appended | NotAppended:
        """Append durably, whole or not at all; a cancel of the caller interrupts only its waiting (TR-29).

        Raises:
            StaleEpoch: another owner holds the session now.
            LedgerUncertain: still not known whether it was written; nothing may be told.
            LedgerError: certainly not written.
        """
        return await self.scheduler.shielded(self._append(drafts, judge, after))

    async def _append(
        self, drafts: tuple[Draft, ...], judge: Judge | None, after: int | None
    ) -> Appended | NotAppended:
        try:
            await self._look_up_uncertain()
            answer = await self._append_certainly(drafts, judge, after)
        except LedgerError as error:
            self.broken = error
            raise
        if isinstance(answer, NotAppended):
            if answer.code == "lease_lost":
                self._lose()
                raise StaleEpoch(f"session {self.session_id!r} has another owner now")
            return answer
        self.broken = None
        self._fold(answer.entries)
        return answer

    async def _append_certainly(
        self, drafts: tuple[Draft, ...], judge: Judge | None, after: int | None
    ) -> Appended | NotAppended:
        """A commit whose answer was lost is looked up until it is certain (TR-27)."""
        try:
            return await self.ledger.append(
                self.session_id, drafts, epoch=self.epoch, after=after, judge=judge
            )
        except LedgerUncertain as uncertain:
            pending: LedgerUncertain = uncertain
        for wait_seconds in (0.0, 0.05, 0.5)[:UNCERTAIN_TRIES]:
            await self.scheduler.sleep(wait_seconds)
            try:
                found = await self.ledger.resolve(pending)
            except LedgerUncertain:
                continue
            if found is None:
                raise LedgerError(
                    "the commit failed and its entry is certainly not in the ledger",
                    next_command="surefoot doctor",
                )
            return Found(found)
        self._uncertain = pending
        raise pending

    async def certain(self) -> None:
        """Find out what an uncertain commit did, and fold it. Raises `LedgerUncertain` while nobody can tell."""
        await self.scheduler.shielded(self._look_up_uncertain())

    async def _look_up_uncertain(self) -> None:
        """Nothing is written behind a commit nobody is certain of; what it did is folded first (TR-27)."""
        pending = self._uncertain
        if pending is None:
            return
        found = await self.ledger.resolve(pending)
        if pending is self._uncertain:
            self._uncertain = None
            self._fold(found or ())

    def _fold(self, entries: tuple[Entry, ...]) -> None:
        for entry in entries:
            self.position = max(self.position, entry.position)
            self._cover(entry)
            if self._stands_upto is None or entry.position > self._stands_upto:
                self._note(entry)
            if self._read_upto is None or entry.position > self._read_upto:
                self.guards.apply(entry)
                if self._history is not None:
                    self._history.apply(entry)
            for watcher in self._watchers:
                watcher(entry)

    def _note(self, entry: Entry) -> None:
        if entry.kind == Kind.TURN:
            self.newest_turn.apply(entry.payload)
            self.works_with = entry.payload.get("with", self.works_with)
        elif entry.kind == Kind.SESSION_OPENED:
            self.recorded_level = entry.payload.get("barrier")
        elif entry.kind == Kind.BARRIER_SET:
            self.recorded_level = entry.payload["new"]
        elif entry.kind == Kind.INCIDENT:
            self.incidents += incidents_of([entry])
        elif entry.kind == Kind.NOTICE and entry.payload.get("code") == RECORD_LOST:
            self.record_lost_at = int(entry.payload.get("view") or 0)
        elif entry.kind in (Kind.QUESTION, Kind.ANSWER, Kind.APPROVAL):
            self.questions.apply(entry)
            if entry.payload.get("verdict") == "answered":
                self.newest_turn.attended()

    def _cover(self, entry: Entry) -> None:
        payload = entry.payload
        if entry.kind == Kind.CLOSED:
            self._covers.pop(payload["attemptId"], None)
        elif entry.kind == Kind.STARTED and payload.get("deadlineBoot") is not None:
            longest_ms = min(int(self._times.extension_seconds * 1000), COVER_MS)
            until_ms = min(payload["deadlineBoot"], payload.get("startedBoot", 0) + longest_ms)
            self._covers[payload["attemptId"]] = until_ms

    def may_begin(self) -> bool:
        """Whether an effect may begin at this moment: still owner, inside the lease (TR-175)."""
        return not self.lost and self.scheduler.boot_ms() < self._owned_until_boot_ms()

    def _owned_until_boot_ms(self) -> int:
        """The later of the lease and what the starts of this owner cover that have not settled yet."""
        return max(self._lease_until_boot_ms, *self._covers.values(), 0)

    async def hold(self) -> bool:
        """`may_begin`, after one renewal if the lease ran out while this process slept (TR-174)."""
        if self.lost:
            return False
        return self.may_begin() or (await self._renew() and self.may_begin())

    async def cover(self, deadline_span_ms: int) -> bool:
        """Own the session while an effect begins that may take this long (TR-175).

        Costs no commit of its own while the lease lasts: the deadline in the start entry keeps others away.
        """
        return deadline_span_ms > 0 and await self.hold()

    async def _renew(self, wanted_ms: int = 0) -> bool:
        # Counted from before the request: the store may have granted it at any moment since.
        asked_boot_ms = self.scheduler.boot_ms()
        span_ms = max(wanted_ms, int(self._times.lease_seconds * 1000))
        try:
            kept = await self.ledger.renew(
                self.session_id, epoch=self.epoch, until_ms=self.scheduler.now_ms() + span_ms
            )
        except LedgerError as error:
            self.broken = error
            return False
        if not kept:
            self._lose()
            return False
        self._lease_until_boot_ms = max(self._lease_until_boot_ms, asked_boot_ms + span_ms)
        return True

    async def _keep_lease(self) -> None:
        while not self.lost:
            await self.scheduler.sleep(self._times.renewal_seconds)
            if not self.lost and not await self._renew() and self._ends_before_next_try():
                # The ledger cannot be reached: bodies are told to end before the lease does (TR-175).
                self.on_lost()

    def _ends_before_next_try(self) -> bool:
        next_boot_ms = self.scheduler.boot_ms() + int(self._times.renewal_seconds * 1000)
        return next_boot_ms >= self._owned_until_boot_ms()

    def _lose(self) -> None:
        if not self.lost:
            self.lost = True
            self.on_lost()

    async def close(self) -> None:
        """Give the session back. Called on every path; a second call does nothing (TR-178)."""
        if self._renewing is None:
            return
        renewing, self._renewing = self._renewing, None
        renewing.cancel()
        await self.scheduler.wait(renewing)
        self.closed = True
        try:
            await self.ledger.release(self.session_id, epoch=self.epoch)
        except LedgerError as error:
            # The lock this process holds ends with it, so the next owner need not wait.
            self.broken = error
