"""The action `retry`: a new call with the old key, begun only on proof made at that moment.

Owns: what the rules of TR-133 to TR-136 need beside the receipt, the new observation, the new
call, and waiting until its start is durable (TR-138). Does not own: the rules
(`core.admission`), the order inside the call (`barrier`), the retries of a resume (`actions`).
Promises: barrier:one-door, recovery:never-guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from surefoot.core.admission import RetryFacts
from surefoot.core.canonical import ArgumentsInvalid, read_arguments
from surefoot.core.effects import Effect, judged_effect
from surefoot.core.limits import Limits
from surefoot.core.model import (
    Draft,
    EffectClass,
    Entry,
    ExecutorState,
    InspectionState,
    Kind,
    Receipt,
    State,
)
from surefoot.core.recovery import crash_count
from surefoot.errors import LedgerError
from surefoot.runtime.barrier import Barrier
from surefoot.runtime.drafts import departs
from surefoot.runtime.inspection import inspect
from surefoot.runtime.keys import Keys
from surefoot.runtime.live import Batch, Call
from surefoot.runtime.session import Session
from surefoot.runtime.tools import Tool, classify
from surefoot.verifiers.port import sees_effects


class Retrying:
    """Retries a person asks for, in one owned session."""

    def __init__(
        self,
        session: Session,
        barrier: Barrier,
        limits: Limits,
        executor: Callable[[Receipt], ExecutorState],
        *,
        enabled: bool,
        boot_id: str,
    ) -> None:
        self.running: dict[str, Any] = {}
        """Attempt → task of every retry, and of every command of a person's own, that has not settled yet."""
        self.on_busy: Callable[[bool], None] = lambda busy: None
        self._session = session
        self._barrier = barrier
        self._limits = limits
        self._executor = executor
        self._enabled = enabled
        self._boot_id = boot_id
        self._keys = Keys(session.book, session.scheduler)
        self._started: dict[str, Any] = {}
        session.watch(self._appended)

    def facts(self, receipt: Receipt) -> RetryFacts:
        """What the rules need, without looking at the world; the verifier's scope is asked when it is pressed."""
        tool = self._tool(receipt)
        return RetryFacts(
            enabled=self._enabled,
            attempts_left=crash_count(receipt, self._session.book) < self._limits.crash_attempts,
            at_origin=receipt.origin_attempt_id is None,
            tool_present=tool is not None,
            verifier_present=tool is not None and sees_effects(tool.verifier_for(receipt)),
            scope_unchanged=tool is not None and self._is_as_before(tool, receipt),
            key_alive=tool is not None and self._keys.alive(tool, receipt, self._boot_id),
        )

    def _tool(self, receipt: Receipt) -> Tool | None:
        """The tool under its own name: one that an alias leads to by now is another (TR-36)."""
        tool = self._barrier.registry.resolve(receipt.tool or "")
        return tool if tool is not None and tool.name == receipt.tool else None

    def _is_as_before(self, tool: Tool, receipt: Receipt) -> bool:
        """Reach as stored, and no stricter class, by today's declaration (TR-135)."""
        try:
            arguments = read_arguments(receipt.arguments).value
        except ArgumentsInvalid:
            return False
        return not departs(effect_of(receipt), classify(tool, arguments, self._barrier.place))

    def judged_today(self, tool: Tool, receipt: Receipt, arguments: Mapping[str, Any]) -> Effect:
        """The effect by today's declaration and the age of the key (EC-18)."""
        return self._keys.judged(tool, receipt, arguments, self._barrier.place, self._boot_id)

    async def proof(self, receipt: Receipt) -> str | None:
        """Why a write may not be tried again, by a scope and a look of this moment (TR-135); None lets it."""
        if judged_effect(receipt).effect_class is EffectClass.READ_ONLY:
            return None
        seen = await inspect(
            self._session,
            self._barrier.registry,
            receipt,
            executor=self._executor(receipt),
            limits=self._limits,
        )
        if seen is None:
            return "already_resolved"
        if seen["reason"] == "scope_changed":
            return "retry_scope_changed"
        return None if seen["state"] == InspectionState.ABSENT_FENCED else "retry_effect_not_absent"

    async def begin(self, old: Receipt, by: Mapping[str, Any]) -> Receipt:
        """Start the new attempt; answers once its start or its refusal is durable (TR-137, TR-138).

        `by` says who asked for it (TR-129). The receipt given back is `started` or later when it began,
        else `not_started` with its reason.
        Raises `LedgerError`, `StaleEpoch`.
        """
        scheduler = self._session.scheduler
        call = Call(
            turn_id=old.turn_id,
            call_id=scheduler.new_id("cal"),
            attempt_id=scheduler.new_id("att"),
            asked_name=old.tool or old.asked_name,
            arguments=old.arguments,
            supersedes=old.attempt_id,
            idempotency_key=old.idempotency_key,
            reserved=True,
            pinned=effect_of(old),
            pinned_digest=old.argument_digest,
        )
        await self._session.append(Draft(Kind.DISPATCHED, {**_dispatched(call, old), "retriedBy": dict(by)}))
        self._barrier.resume()
        started = self._started[call.attempt_id] = scheduler.future()
        work = scheduler.spawn(self._run(call), f"retry {call.attempt_id}")
        self.begun(call.attempt_id, work)
        await scheduler.first(started, work)
        if work.done():
            work.result()  # raises what stopped it before its start
        found = self._session.book.get(call.attempt_id)
        if found is not None and work.done() and found.state is State.DISPATCHED:
            raise LedgerError(
                "the disk took neither the start of the retry nor its refusal; free some space and press again"
            ) from self._session.broken
        return old if found is None else found

    async def _run(self, call: Call) -> None:
        try:
            await self._barrier.run(await self._barrier.look(call), Batch())
        finally:
            self._started.pop(call.attempt_id, None)
            self.ended(call.attempt_id)

    def begun(self, attempt_id: str, work: Any) -> None:
        """Note work that a person asked for outside of any turn: no turn begins beside it, and Stop ends it."""
        self.running[attempt_id] = work
        self.on_busy(True)

    def ended(self, attempt_id: str) -> None:
        """Note that such work has settled."""
        self.running.pop(attempt_id, None)
        if not self.running:
            self.on_busy(False)

    async def settled(self, attempt_id: str) -> None:
        """Wait until a retry has settled."""
        task = self.running.get(attempt_id)
        if task is not None:
            await self._session.scheduler.wait(task)

    def _appended(self, entry: Entry) -> None:
        waiting = self._started.get(entry.payload.get("attemptId", ""))
        if waiting is not None and entry.kind == Kind.STARTED and not waiting.done():
            waiting.set_result(None)


def effect_of(receipt: Receipt) -> Effect:
    """The effect stored at the start of a call."""
    return Effect(
        receipt.effect_class or EffectClass.UNKNOWN,
        receipt.reach,
        check=receipt.check,
        interaction=receipt.interaction,
    )


def _dispatched(call: Call, old: Receipt) -> dict[str, Any]:
    return {
        "attemptId": call.attempt_id,
        "callId": call.call_id,
        "turnId": call.turn_id,
        "position": old.position,
        "askedName": call.asked_name,
        "arguments": call.arguments,
        "supersedes": old.attempt_id,
    }
