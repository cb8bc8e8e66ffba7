"""Trying a call again after a failure that may pass: each try an attempt of its own, each wait visible.

Owns: carrying out the ladder inside a turn: budgets, waits and their end (TR-159 to
TR-165). Does not own: whether an attempt climbs and how long it waits (`core.ladder`), one
attempt's steps (`barrier`), retries after a restart (`actions`, `retrying`). Nothing else
repeats a call by itself: bodies, adapters and the clients of providers have no ladder.
Promises: barrier:one-door, recovery:never-guess.

A wait stands in no entry, so a restart does not go on with it; what is left are the attempts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from surefoot.core import ladder
from surefoot.core.effects import stricter
from surefoot.core.limits import Limits
from surefoot.core.model import Draft, EffectClass, EffectTrace, Kind, Notice, Receipt, State
from surefoot.core.recovery import later_write
from surefoot.runtime.barrier import Barrier
from surefoot.runtime.keys import Keys
from surefoot.runtime.live import Batch, Call, Looked
from surefoot.runtime.retrying import effect_of


class Climber:
    """The one owner of every retry of a failure in a session (EC-52)."""

    def __init__(self, barrier: Barrier) -> None:
        self.notify: Callable[[Notice], None] = lambda notice: None
        self._barrier = barrier
        self._session = barrier.session
        self._scheduler = barrier.session.scheduler
        self._spent = 0
        self._rests: set[Any] = set()
        self._chain_to_loss()

    @property
    def _limits(self) -> Limits:
        return self._barrier.limits

    def _chain_to_loss(self) -> None:
        """Whoever loses the session waits for nothing any more."""
        before = self._session.on_lost

        def lost() -> None:
            before()
            self.stop()

        self._session.on_lost = lost

    def begin_turn(self) -> None:
        """Give the turn that begins its own budget (TR-164)."""
        self._spent = 0

    def stop(self) -> None:
        """End every wait at once; what was tried stands (TR-165)."""
        for rest in list(self._rests):
            if not rest.done():
                rest.set_result(False)

    async def run(self, looked: Looked, batch: Batch, resting: Any) -> Receipt:
        """Run one call and climb. The future `resting` is set with the first wait, so that others need not wait.

        Raises as `Barrier.run` does.
        """
        receipt = await self._barrier.run(looked, batch)
        while (wait_seconds := self._wait_seconds(receipt)) is not None:
            self._spent += 1
            if not resting.done():
                resting.set_result(None)
            if not await self._rest(receipt, wait_seconds):
                return receipt
            again = await self._barrier.look(self._again(looked, receipt))
            now = self._session.book.get(receipt.attempt_id) or receipt
            if not self._still_wanted(again, now):
                return now
            if batch.stopped_by == receipt.attempt_id:
                batch.stopped_by = None  # the call goes on; only its last try stops the batch
            await self._session.append(Draft(Kind.DISPATCHED, self._dispatched(again.call, now)))
            receipt = await self._barrier.run(again, batch)
        return receipt

    def _wait_seconds(self, receipt: Receipt) -> float | None:
        attempts = self._session.book.attempts(receipt.call_id)
        if self._barrier.stopping or not attempts or attempts[-1].attempt_id != receipt.attempt_id:
            return None
        if receipt.state is State.UNKNOWN and not self._session.book.is_open(receipt.attempt_id):
            return None
        if not self._key_serves(receipt):
            return None
        told = receipt.ladder or {}
        return ladder.climbs(
            attempts,
            transient=bool(told.get("transient")),
            executor=self._barrier.executor(receipt),
            budget=ladder.Budget(
                self._limits.ladder_retries_per_call - len(attempts) + 1,
                self._limits.ladder_retries_per_turn - self._spent,
            ),
            retry_after_seconds=told.get("retryAfterSeconds"),
        )

    def _key_serves(self, receipt: Receipt) -> bool:
        """Whether another try may count on its key (TR-18)."""
        tool = self._barrier.registry.resolve(receipt.tool or "", nested=True)  # as it was started
        keys = Keys(self._session.book, self._scheduler)
        return tool is None or keys.serves_again(tool, receipt, self._barrier.place)

    async def _rest(self, receipt: Receipt, seconds: float) -> bool:
        """Wait visibly; False as soon as Stop came or the session was lost."""
        tries = len(self._session.book.attempts(receipt.call_id))
        facts = {
            "attemptId": receipt.attempt_id,
            "tool": receipt.tool,
            "waitSeconds": seconds,
            "try": tries + 1,
            "of": self._highest(),
            "text": f"{receipt.tool} is tried again in {seconds:g} s (try {tries + 1} of {self._highest()}).",
        }
        rest = self._scheduler.future()
        self._rests.add(rest)
        self.notify(Notice("tool_wait", facts))
        try:
            await self._scheduler.wait(rest, seconds=seconds)
            return not rest.done() and not self._barrier.stopping
        finally:
            self._rests.discard(rest)
            rest.cancel()

    def _highest(self) -> int:
        return 1 + min(self._limits.ladder_retries_per_call, len(ladder.STEPS_SECONDS))

    def _again(self, looked: Looked, receipt: Receipt) -> Call:
        return Call(
            turn_id=receipt.turn_id,
            call_id=receipt.call_id,
            attempt_id=self._scheduler.new_id("att"),
            asked_name=looked.call.asked_name,
            arguments=looked.call.arguments,
            supersedes=receipt.attempt_id if self._session.book.is_open(receipt.attempt_id) else None,
            idempotency_key=receipt.idempotency_key,
        )

    def _still_wanted(self, again: Looked, receipt: Receipt) -> bool:
        """Whether nothing changed while it waited and was looked at anew (TR-160, TR-114)."""
        book = self._session.book
        if receipt.state not in (State.FAILED, State.UNKNOWN):
            return False  # the truth came after all
        is_open = book.is_open(receipt.attempt_id)
        if is_open != (again.call.supersedes is not None) or (receipt.state is State.UNKNOWN and not is_open):
            return False  # somebody decided about it meanwhile
        if not self._key_serves(receipt):
            return False  # the far side forgot the key during the wait
        effect = stricter(effect_of(receipt), again.effect)
        nothing_left = all(one.effect_trace is EffectTrace.NONE for one in book.attempts(receipt.call_id))
        if effect.effect_class is EffectClass.READ_ONLY or nothing_left:
            return True
        return effect.effect_class.retry_safe and not later_write(receipt, book.after(receipt.attempt_id))

    def _dispatched(self, call: Call, before: Receipt) -> dict[str, Any]:
        tries = len(self._session.book.attempts(call.call_id))
        payload: dict[str, Any] = {
            "attemptId": call.attempt_id,
            "callId": call.call_id,
            "turnId": call.turn_id,
            "position": before.position,
            "askedName": call.asked_name,
            "arguments": call.arguments,
            "providerCallId": before.provider_call_id,
            "ladder": {"try": tries + 1, "of": self._highest()},
        }
        if call.supersedes is not None:
            payload["supersedes"] = call.supersedes
        return payload
