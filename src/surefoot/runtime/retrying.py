"""The action `retry`: a new call with the old key, begun only on proof made at that moment.

Owns: what the rules of TR-133 to TR-136 need beside the receipt, the new observation, the new
call, and waiting until its start is durable (TR-138). Does not own: the rules
(`core.admission`), the order inside the call (`barrier`), the retries of a resume (`actions`).
Promises: barrier:one-door, recovery:never-guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from surefoot.core import admission
from surefoot.core.admission import RetryFacts
from surefoot.core.canonical import ArgumentsInvalid, read_arguments
from surefoot.core.effects import Effect, judged_effect, stricter
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
        """Attempt → task of every retry that has not settled yet."""
        self.on_busy: Callable[[bool], None] = lambda busy: None
        self._session = session
        self._barrier = barrier
        self._limits = limits
        self._executor = executor
        self._enabled = enabled
        self._boot_id = boot_id
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
            key_alive=tool is not None and self._key_alive(tool, receipt),
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
        """The effect by today's declaration, as without key once the far side has forgotten it (EC-18)."""
        today = classify(tool, arguments, self._barrier.place)
        if tool.effect_without_key is None or self._key_alive(tool, receipt):
            return today
        bare = classify(replace(tool, effect=tool.effect_without_key), arguments, self._barrier.place)
        return stricter(today, bare)

    def _key_alive(self, tool: Tool, receipt: Receipt) -> bool:
        """TR-18; what cannot be told counts as expired."""
        try:
            lifetime_seconds = tool.key_lifetime_for(read_arguments(receipt.arguments).value)
        except ArgumentsInvalid:
            return False
        if lifetime_seconds is None:
            return True
        return admission.key_alive(
            lifetime_ms=int(lifetime_seconds * 1000),
            age_ms=self._key_age_ms(receipt),
            clock_behind=self._session.scheduler.now_ms() < (receipt.started_at or 0),
        )

    def _key_age_ms(self, receipt: Receipt) -> int | None:
        """By boot time within one boot, else by the far side's clock as a look of this boot saw it."""
        boot_ms = self._session.scheduler.boot_ms()
        if receipt.started_boot is not None and (receipt.owner or {}).get("bootId") == self._boot_id:
            return boot_ms - receipt.started_boot
        evidence: Any = (receipt.inspection or {}).get("evidence") or {}
        clock = evidence.get("farClock") or {}
        if clock.get("bootId") != self._boot_id or "keyAgeMs" not in clock:
            return None
        return int(clock["keyAgeMs"]) + boot_ms - int(clock["bootMs"])

    async def proof(self, receipt: Receipt) -> str | None:
        """Why a write may not be tried again, by a scope and a look of this moment (TR-135); None lets it."""
        if judged_effect(receipt).effect_class is EffectClass.READ_ONLY:
            return None
        seen = await inspect(
            self._session,
            self._barrier.registry,
            receipt,
            executor=self._executor(receipt),
            seconds=self._limits.inspect_seconds,
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
        self.running[call.attempt_id] = work
        self.on_busy(True)
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
            await self._barrier.run(self._barrier.look(call), Batch())
        finally:
            self._started.pop(call.attempt_id, None)
            self.running.pop(call.attempt_id, None)
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
