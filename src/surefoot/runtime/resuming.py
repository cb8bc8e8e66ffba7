"""What happens between the opening of a session and its first model request (TR-116).

Owns: the two bounded looks, the stop of a read that still runs, the safe retries in call order, the retries
that an owner's policy asks for (TR-122), permissions that a dead owner was still asking for (UX-42). Does
not own: how a call stands (`standing`), one look (`inspection`), the order inside a call (`barrier`).
Promises: recovery:no-self-start, recovery:never-guess.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from surefoot.core import admission, recovery
from surefoot.core.lifecycle import OFF_BRANCH
from surefoot.core.limits import Limits
from surefoot.core.model import Decision, Draft, Kind, Notice, Receipt, State
from surefoot.errors import LedgerError
from surefoot.runtime.barrier import Barrier
from surefoot.runtime.choices import Choices
from surefoot.runtime.inspection import inspect
from surefoot.runtime.live import Batch, Call
from surefoot.runtime.policies import Policies
from surefoot.runtime.retrying import Retrying
from surefoot.runtime.session import Session
from surefoot.runtime.standing import Planned, Standing

LOOK_GRACE_SECONDS = 0.5
"""How long an opening waits for its look where somebody sits; what takes longer goes on beside (UX-50)."""
LOOKS_AT_ONCE = 4
"""How many verifiers run side by side in one look."""


class Resuming:
    """The way of one owned session from what a dead owner left to work that goes on."""

    def __init__(self, session: Session, barrier: Barrier, standing: Standing, limits: Limits) -> None:
        self.notify: Callable[[Notice], None] = lambda notice: None
        self.person: Callable[[], bool] = lambda: False
        """Whether somebody is there who can be asked."""
        self._session = session
        self._barrier = barrier
        self._standing = standing
        self._limits = limits
        self._stops: set[Any] = set()
        self._one_look = session.scheduler.lock()
        self._shown: frozenset[str] | None = None
        self._done = False

    # Looking ----------------------------------------------------------------------------------

    async def look_beside(self) -> None:
        """The local look of an opening: off the path of a person's input once it takes long (TR-116, UX-50)."""
        scheduler = self._session.scheduler
        looking = scheduler.spawn(self.look(), "look on opening")
        if await scheduler.wait(looking, seconds=LOOK_GRACE_SECONDS):
            return looking.result()
        looking.add_done_callback(scheduler.heard)
        looking.add_done_callback(lambda _: self.notify(Notice("looked", {})))
        return None

    async def look(self, *, far: bool = False) -> None:
        """Inspect every open write nobody has looked at yet; local verifiers only, unless `far` (TR-116).

        All verifiers of one look share its time; what is not finished then is recorded as timed out (TR-102).
        """
        async with self._one_look:
            await self._look(far)

    async def _look(self, far: bool) -> None:
        waiting = [
            one for one in recovery.fencing(self._session.book.open()) if self._is_to_be_seen(one, far)
        ]
        if not waiting:
            return
        scheduler = self._session.scheduler
        until_ms = scheduler.boot_ms() + int(self._limits.inspect_resume_seconds * 1000)
        stop = scheduler.future()
        workers = [
            scheduler.spawn(self._look_in_turn(waiting, until_ms, stop), f"look {n}")
            for n in range(min(LOOKS_AT_ONCE, len(waiting)))
        ]
        self._stops.add(stop)
        try:
            whole = scheduler.spawn(scheduler.wait(*workers), "look")
            await scheduler.first(whole, stop)
            for worker in workers if stop.done() else ():
                worker.cancel()
            await scheduler.wait(*workers, whole)
        finally:
            self._stops.discard(stop)
        failures = [one.exception() for one in workers if not one.cancelled() and one.exception()]
        for failure in failures:
            if not isinstance(failure, LedgerError):
                raise failure  # type: ignore[misc]
        if failures:
            # Nobody has looked, as far as anybody can tell; the fence holds and a person may look.
            self.notify(Notice("not_inspected", {"cause": str(failures[0])}))

    def _is_to_be_seen(self, receipt: Receipt, far: bool) -> bool:
        if receipt.inspection is None:
            return far or self._standing.is_local(receipt)
        return far and receipt.inspection.get("reason") == "verifier_timeout"

    async def _look_in_turn(self, waiting: list[Receipt], until_ms: int, stop: Any) -> None:
        while waiting and not stop.done():
            receipt = waiting.pop(0)
            left = (until_ms - self._session.scheduler.boot_ms()) / 1000
            await inspect(
                self._session,
                self._barrier.registry,
                receipt,
                executor=self._standing.executor(receipt),
                limits=self._limits,
                seconds=max(0.0, left),
            )

    def stop(self) -> None:
        """End a look at once; of what it has not seen nothing is recorded (fault matrix F11)."""
        for stop in self._stops:
            if not stop.done():
                stop.set_result(None)

    # Going on ---------------------------------------------------------------------------------

    def plan(self) -> list[Planned]:
        """The plan as it is shown to a person now; a later change of it is shown before it is carried out."""
        planned = self._standing.plan()
        self._shown = frozenset(one.receipt.attempt_id for one in planned if one.runs_again)
        return planned

    def has_work(self) -> bool:
        """Whether going on would run a call of a dead owner again, or ask a person about one."""
        waiting = self.approved() or self._unanswered()
        return bool(waiting) or (not self._done and any(one.runs_again for one in self._standing.plan()))

    async def carry_out(self, choices: Choices) -> list[Receipt]:
        """Run the safe retries in call order: new attempts of the same calls, same keys (TR-115, TR-117)."""
        if self._done:
            return []
        await self._session.history()
        receipts: list[Receipt] = []
        if not any(one.runs_again for one in self._standing.plan()):
            self._done = True
            return receipts
        async with self._one_look:
            pass  # what is looked at now may say that there is nothing to run again
        self._show_changes()
        for planned in self._standing.plan():
            if planned.runs_again:
                receipts += await self._carry_out(planned, choices)
        self._done = True
        return receipts

    def _show_changes(self) -> None:
        """A retry that a look has changed is shown again first (TR-116)."""
        now = [one.receipt for one in self._standing.plan() if one.runs_again]
        changed = self._shown is not None and {one.attempt_id for one in now} != self._shown
        if changed and now:
            rows = [{"attemptId": one.attempt_id, "tool": one.tool, "reach": list(one.reach)} for one in now]
            self.notify(Notice("will_run_again", {"calls": rows}))

    async def _carry_out(self, planned: Planned, choices: Choices) -> list[Receipt]:
        receipt = planned.receipt
        if planned.stopped_first and receipt.attempt_id not in choices.adopted:
            await choices.end(receipt, self._resume_itself())
        # The receipts before it took time: what stood then is asked again now.
        now = self._session.book.get(receipt.attempt_id) or receipt
        if self._standing.decide(now).decision is not Decision.RETRY:
            return []
        return [await self._again(now, supersedes=now.attempt_id)]

    def _resume_itself(self) -> dict[str, Any]:
        now_ms = self._session.scheduler.now_ms()
        return {"who": "resume", "channel": "policy", "client": None, "at": now_ms}

    async def _again(self, old: Receipt, *, supersedes: str | None) -> Receipt:
        attempt_id = self._session.scheduler.new_id("att")
        name = old.tool or old.asked_name
        payload: dict[str, Any] = {
            "attemptId": attempt_id,
            "callId": old.call_id,
            "turnId": old.turn_id,
            "position": old.position,
            "askedName": name,
            "arguments": old.arguments,
            "providerCallId": old.provider_call_id,
        }
        if supersedes is not None:
            payload["supersedes"] = supersedes
        await self._session.append(Draft(Kind.DISPATCHED, payload))
        call = Call(
            turn_id=old.turn_id,
            call_id=old.call_id,
            attempt_id=attempt_id,
            asked_name=name,
            arguments=old.arguments,
            supersedes=supersedes,
            idempotency_key=old.idempotency_key,
            reserved=supersedes is not None,
        )
        return await self._barrier.run(await self._barrier.look(call), Batch())

    # Permissions ------------------------------------------------------------------------------

    def pending_permissions(self) -> list[Receipt]:
        """The calls a dead owner was asking a permission for, in call order; nobody has answered (UX-42).

        Without the nested ones: the call that one belonged to is over, and so nobody would read its result.
        Without those a rewind left behind, which `ask_again` withdraws (TR-95).
        """
        return [one for one in self._unanswered() if _is_asked_again(one)]

    def approved(self) -> list[Receipt]:
        """The calls that a person allowed and whose owner died before they began, in call order (TR-171).

        Not nested ones, whose caller is gone, and not the copies of a fork: the yes was to the original.
        """
        book, newest = self._session.book, {}
        for allowed in self._session.questions.allowances():
            first = book.get(allowed.attempt_id)
            if first is None or OFF_BRANCH in first.notes:
                continue
            attempts = book.attempts(first.call_id)
            begun = any(one.started_position is not None for one in attempts)
            alone = first.parent_attempt_id is None and first.origin_attempt_id is None
            if alone and not begun and self._is_pending(attempts[-1]):
                newest[first.call_id] = attempts[-1]
        return list(newest.values())

    def _unanswered(self) -> list[Receipt]:
        book = self._session.book
        attempts = [one.attempt_id for one in self._session.questions.open_permissions()]
        asked = [found for found in map(book.get, attempts) if found is not None]
        return [one for one in asked if self._is_pending(one)]

    def _is_pending(self, receipt: Receipt) -> bool:
        newest = self._session.book.attempts(receipt.call_id)[-1]
        untouched = receipt.state is State.NOT_STARTED and receipt.reason == "owner_died_before_start"
        return untouched and newest.attempt_id == receipt.attempt_id

    async def ask_again(self) -> list[Receipt]:
        """Show the permission questions of a dead owner again; where nobody can be asked they are withdrawn.

        What was allowed before its owner died is not asked again: it runs, and the yes is spent by that.
        An approval starts a new attempt of the same call. The old one never began. A nested call is not asked
        about without the call that it stood below; when that one comes again, so does the question.
        """
        receipts = []
        for old in self.approved():
            if not self._barrier.stopping:
                receipts.append(await self._again(old, supersedes=None))
        for old in self._unanswered():
            if self.person() and _is_asked_again(old) and not self._barrier.stopping:
                receipts.append(await self._again(old, supersedes=None))
            asked = self._session.questions.of([old.attempt_id])
            if asked is None or asked.verdict is not None:
                continue
            # Nobody was asked: nobody is there, or rules of today need no person any more.
            verdict = {
                "attemptId": old.attempt_id,
                "argumentDigest": old.argument_digest,
                "verdict": "withdrawn",
                "by": None,
                "channel": "restart",
                "at": self._session.scheduler.now_ms(),
            }
            await self._session.append(Draft(Kind.APPROVAL, verdict))
        return receipts

    # Policy -----------------------------------------------------------------------------------

    async def retry_by_policy(self, policies: Policies, retrying: Retrying) -> list[Receipt]:
        """Do what the owner's settings let a policy retry, under the rules of the action and on new proof (TR-122)."""
        receipts = []
        for receipt in policies.to_retry():
            facts = self._standing.attempt_facts(receipt, replace(retrying.facts(receipt), absent_now=True))
            if admission.retry_refusal(facts) is not None:
                continue
            if await retrying.proof(receipt) is None and not self._barrier.stopping:
                begun = await retrying.begin(receipt, policies.presser("named_tool"))
                await retrying.settled(begun.attempt_id)
                receipts.append(self._session.book.get(begun.attempt_id) or begun)
        return receipts


def _is_asked_again(receipt: Receipt) -> bool:
    return receipt.parent_attempt_id is None and OFF_BRANCH not in receipt.notes
