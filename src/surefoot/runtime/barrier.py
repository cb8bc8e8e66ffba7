"""The write barrier: the only place where an effect may happen.

Owns: the order receipt, effect, settlement (TR-19), and the refusal to break it.
Does not own: what to do after a crash (`core.recovery`, `reconcile`), the lease
(`session`), what the model is told (`core.results`), who may allow a call (`Permits`).
Promises: barrier:intent-first, barrier:fail-closed, barrier:settle-first, receipt:exact.

Between the end of a body and the queueing of its close entry lies no await: a
body is watched by a callback, not by the coroutine that asked for it (TR-29).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from surefoot.core import recovery, results
from surefoot.core.canonical import digest_text, idempotency_key
from surefoot.core.effects import UNDECLARED, Effect, stricter
from surefoot.core.limits import Limits
from surefoot.core.model import (
    BarrierLevel,
    Draft,
    EffectClass,
    EffectTrace,
    Entry,
    ExecutorState,
    Kind,
    Owner,
    Receipt,
    State,
)
from surefoot.core.redact import redact
from surefoot.errors import BrokenInvariant, LedgerError, LedgerUncertain, StaleEpoch
from surefoot.ledger.port import NotAppended
from surefoot.runtime import arguments as argument_rules
from surefoot.runtime.live import Batch, Call, Hooks, Live, Looked, Permit, Permits, Refused
from surefoot.runtime.scheduler import Scheduler
from surefoot.runtime.session import Session
from surefoot.runtime.tools import (
    NEVER_RAN,
    Entrance,
    LiveAttempt,
    Outcome,
    Place,
    Prepared,
    Registry,
    Tool,
    classify,
    invoke,
    scope_of,
)

MARGIN_SECONDS = 5
CANCEL_GRACE_SECONDS = 1.0
CLOSE_RETRY_SECONDS = (0.05, 0.2, 0.5, 1.0, 2.0)


class Barrier:
    """Runs calls of one owned session in the order of TR-19, and nothing else does."""

    def __init__(
        self,
        session: Session,
        registry: Registry,
        place: Place,
        owner: Owner,
        *,
        permits: Permits,
        services: Mapping[str, Any],
        limits: Limits | None = None,
        hooks: Sequence[Hooks] = (),
    ) -> None:
        self.session = session
        self.registry = registry
        self.place = place
        self.limits = limits or Limits()
        self.stopping = False
        """Set by Stop: nothing that has not started will (TR-23)."""
        self.on_progress: Callable[[str, str], None] = lambda attempt_id, text: None
        self.on_withheld: Callable[[str, LedgerError], None] = lambda attempt_id, error: None
        self._owner = owner.to_json()
        self._permits = permits
        self._services = services
        self._hooks = tuple(hooks)
        self._live: dict[str, Live] = {}
        self._scheduler: Scheduler = session.scheduler
        session.on_lost = self.abandon

    # D2 ---------------------------------------------------------------------------------------

    def look(self, call: Call) -> Looked:
        """Resolve, validate and classify a call. Pure but for the registry; nothing is written."""
        if call.cut:
            return _unlooked(call, "truncated_call")
        if call.duplicate_of:
            return _unlooked(call, "duplicate_call", original=call.duplicate_of)
        tool = self.registry.resolve(call.asked_name)
        if tool is None:
            return _unlooked(call, "tool_missing", asked=call.asked_name, known=self.registry.names())
        bounds = argument_rules.ArgumentLimits(self.limits.arguments_bytes, self.limits.arguments_depth)
        checked = argument_rules.validate(tool, call.arguments, bounds)
        if isinstance(checked, argument_rules.Fault):
            return _unlooked(call, checked.code, tool=tool, text=checked.text)
        effect = classify(tool, checked.value, self.place)
        notes = effect.notes + (("arguments_absent",) if checked.absent else ())
        display = redact(checked.canonical, tool.secret_arguments)
        return Looked(call, tool, checked, effect, display, notes=notes)

    def verdict(self, looked: Looked, batch: Batch) -> Refused | None:
        """The barrier, the guards and the batch rule on one call as things stand now."""
        if looked.refused is not None:
            return looked.refused
        if self.stopping:
            return _refused("cancelled_before_start")
        if self.session.broken is not None:
            return _refused("receipt_not_durable", cause=str(self.session.broken))
        return self._judged(looked, batch)

    def _judged(self, looked: Looked, batch: Batch) -> Refused | None:
        tool, arguments = looked.tool, looked.arguments
        if tool is None or arguments is None:
            raise BrokenInvariant("a call without tool passed D2")
        asked = recovery.Asked(
            tool=tool.name,
            argument_digest=arguments.digest,
            effect=looked.effect,
            supersedes=looked.call.supersedes,
            recovery=looked.call.reserved,
        )
        found = recovery.judge_write(
            asked,
            level=self.session.level,
            fencing=recovery.fencing(self.session.book.open()),
            guard=self.session.guards.against(tool.name, arguments.digest, looked.effect),
            batch_stopped_by=batch.stopped_by,
        )
        return None if found is None else _refused(found.code, **found.facts)

    # D2 to D9 ---------------------------------------------------------------------------------

    async def run(self, looked: Looked, batch: Batch) -> Receipt:
        """Take one call through D2 to D9 and return its settled receipt.

        A cancel of the caller stops the call, not its settlement, which goes on behind.

        Raises:
            StaleEpoch: the session has another owner.
            LedgerError: not even the refusal could be written; the call stays `dispatched`.
        """
        work = self._scheduler.spawn(self._pass(looked, batch), f"call {looked.call.attempt_id}")
        return await self._scheduler.watched(work, on_cancel=lambda: self._cancel_one(looked))

    async def _pass(self, looked: Looked, batch: Batch) -> Receipt:
        refused = self.verdict(looked, batch)
        permit = Permit(True)
        if refused is None:
            permit = await self._permits(looked)
            refused = permit.refused or self.verdict(looked, batch)
        for hook in self._hooks if refused is None else ():
            refused = refused or await hook.before(looked)
        prepared = Prepared()
        if refused is None:
            looked, prepared = await self._prepared(looked)
            refused = _refusal_of(prepared) or self.verdict(looked, batch)
        receipt = (
            await self._not_started(looked, refused)
            if refused is not None
            else await self._start(looked, prepared, permit, batch)
        )
        if _stops_batch(receipt, looked.effect):
            batch.stopped_by = batch.stopped_by or receipt.attempt_id
        for hook in self._hooks if receipt.started_at is not None else ():
            await hook.after(receipt)
        return receipt

    async def _prepared(self, looked: Looked) -> tuple[Looked, Prepared]:
        """What the tool finds out before D6. It can only make the effect stricter (EC-8)."""
        tool, arguments = looked.tool, looked.arguments
        if tool is None or arguments is None or tool.prepare is None:
            return looked, Prepared()
        prepared = await tool.prepare(arguments.value, self.place, self._receipt(looked), self._services)
        if prepared.effect is None:
            return looked, prepared
        return _with_effect(looked, stricter(looked.effect, prepared.effect)), prepared

    def _receipt(self, looked: Looked) -> Receipt:
        found = self.session.book.get(looked.call.attempt_id)
        if found is None:
            raise BrokenInvariant(f"attempt {looked.call.attempt_id!r} was never dispatched")
        return found

    async def _not_started(self, looked: Looked, refused: Refused) -> Receipt:
        payload: dict[str, Any] = {
            "attemptId": looked.call.attempt_id,
            "reason": refused.code,
            "effectTrace": EffectTrace.NONE.value,
            "result": {"text": refused.text, "isError": refused.code not in results.NOT_A_TOOL_ERROR},
            **refused.facts,
        }
        if looked.tool is not None:
            payload |= {"tool": looked.tool.name, "argumentsDisplay": looked.display}
            payload |= {"class": looked.effect.effect_class.value, "reach": list(looked.effect.reach)}
        if looked.arguments is not None:
            payload["argumentDigest"] = looked.arguments.digest
        await self.session.append(Draft(Kind.NOT_STARTED, payload))
        return self._receipt(looked)

    # D6 ---------------------------------------------------------------------------------------

    async def _start(self, looked: Looked, prepared: Prepared, permit: Permit, batch: Batch) -> Receipt:
        draft = self._start_draft(looked, prepared, permit)
        refused: list[Refused] = []

        def judge() -> str | None:
            found = self.verdict(looked, batch)
            if found is not None:
                refused.append(found)
            return None if found is None else found.code

        try:
            answer = await self.session.append(draft, judge=judge)
        except LedgerUncertain:
            # Whether the start is durable is not known: the body is not entered and nothing is told (TR-27).
            raise
        except LedgerError as error:
            return await self._not_durable(looked, error)
        if isinstance(answer, NotAppended):
            return await self._not_started(looked, refused[0] if refused else _refused(answer.code))
        return await self._enter(looked, prepared)

    async def _not_durable(self, looked: Looked, error: LedgerError) -> Receipt:
        """D6 failed: the body is not entered, and the refusal is told even if it cannot be written (TR-23, TR-26)."""
        refused = _refused("receipt_not_durable", cause=error.message)
        try:
            return await self._not_started(looked, refused)
        except LedgerError:
            self.session.broken = error
            return results.unwritten(self._receipt(looked), refused.code, refused.text)

    def _start_draft(self, looked: Looked, prepared: Prepared, permit: Permit) -> Draft:
        tool, arguments, call = looked.tool, looked.arguments, looked.call
        if tool is None or arguments is None:
            raise BrokenInvariant("a call without tool reached D6")
        receipt = self._receipt(looked)
        intents = tuple(prepared.fields.get("writeIntents") or ())
        shown = results.with_arguments(receipt, tool.name, arguments.canonical)
        scope, notes = scope_of(tool, dataclasses.replace(shown, write_intents=intents))
        key = call.idempotency_key or idempotency_key(
            argument_digest=arguments.digest,
            call=call.call_id,
            scope=scope,
            session=self.session.session_id,
            tool=tool.name,
            turn=call.turn_id,
        )
        now_ms, boot_ms = self._scheduler.now_ms(), self._scheduler.boot_ms()
        span_ms = self._deadline_span_ms(tool)
        notes = looked.notes + notes
        if tool.key_argument is not None and tool.key_argument in arguments.value:
            notes += ("key_replaced",)
        payload: dict[str, Any] = {
            "attemptId": call.attempt_id,
            "tool": tool.name,
            "arguments": arguments.canonical,
            "argumentsDisplay": looked.display,
            "argumentDigest": arguments.digest,
            "class": looked.effect.effect_class.value,
            "reach": list(looked.effect.reach),
            "scope": scope,
            "interaction": looked.effect.interaction,
            "check": looked.effect.check,
            "idempotencyKey": key,
            "owner": self._owner,
            "startedAt": now_ms,
            "startedBoot": boot_ms,
            "deadlineAt": None if span_ms is None else now_ms + span_ms,
            "deadlineBoot": None if span_ms is None else boot_ms + span_ms,
            "notes": list(notes),
        }
        if tool.key_lifetime_seconds is not None:
            payload["keyExpiresAt"] = now_ms + int(tool.key_lifetime_seconds * 1000)
        if call.supersedes is not None:
            payload["supersedes"] = call.supersedes
        if permit.approval is not None:
            payload["approval"] = permit.approval
        return Draft(Kind.STARTED, {**payload, **prepared.fields})

    def _deadline_span_ms(self, tool: Tool) -> int | None:
        if tool.time_limit_seconds is None:
            return None
        return int((tool.time_limit_seconds + MARGIN_SECONDS) * 1000)

    # D7 ---------------------------------------------------------------------------------------

    async def _enter(self, looked: Looked, prepared: Prepared) -> Receipt:
        receipt = self._receipt(looked)
        live = Live(looked, receipt, Entrance(), self._scheduler.future())
        self._live[receipt.attempt_id] = live
        tool, arguments = looked.tool, looked.arguments
        if tool is None or arguments is None:
            raise BrokenInvariant("a call without tool was started")
        if self.stopping or not await self.session.hold():
            # Stop won after D6, or the lease ran out: an epoch fences the ledger, not the world (TR-175).
            live.entrance.forbid()
        values = dict(arguments.value)
        if tool.key_argument is not None:
            values[tool.key_argument] = receipt.idempotency_key
        attempt = self._attempt(receipt, prepared)
        live.task = self._scheduler.spawn(
            invoke(tool, attempt, values, entrance=live.entrance, scheduler=self._scheduler),
            f"body {receipt.attempt_id}",
        )
        live.task.add_done_callback(lambda task: self._ended(live, task))
        if tool.time_limit_seconds is not None and not tool.supervised:
            live.timer = self._scheduler.call_later(tool.time_limit_seconds, lambda: self._limit(live))
        settled: Receipt = await live.settled
        return settled

    def _attempt(self, receipt: Receipt, prepared: Prepared) -> LiveAttempt:
        attempt_id = receipt.attempt_id

        async def note(process: Mapping[str, Any]) -> None:
            await self.session.append(
                Draft(Kind.PROCESS, {"attemptId": attempt_id, "process": dict(process)})
            )

        def late(outcome: Outcome, source: str) -> None:
            self._scheduler.spawn(self._late(receipt, outcome, source), f"late {attempt_id}")

        return LiveAttempt(
            session_id=receipt.session_id,
            turn_id=receipt.turn_id,
            call_id=receipt.call_id,
            attempt_id=attempt_id,
            idempotency_key=receipt.idempotency_key or "",
            deadline_boot_ms=receipt.deadline_boot,
            place=self.place,
            prepared=prepared.value,
            note=note,
            late=late,
            progress=lambda text: self.on_progress(attempt_id, text),
            services=self._services,
        )

    def _limit(self, live: Live) -> None:
        """The time limit is over: a body never entered did nothing, any other one may have (TR-38, TR-73)."""
        self._end_early(live, "time_limit")

    def _end_early(self, live: Live, reason: str) -> None:
        if live.outcome is not None:
            return
        if live.entrance.forbid():
            self._close(live, NEVER_RAN)
        else:
            self._close(live, Outcome("", state=State.UNKNOWN, reason=reason))
        if live.task is not None:
            live.task.cancel()

    def _ended(self, live: Live, task: Any) -> None:
        """Called once when a body ends, however it does. Queues its close synchronously (TR-29)."""
        live.ended = True
        if live.timer is not None:
            live.timer.cancel()
        if task.cancelled():
            outcome = NEVER_RAN if live.entrance.forbid() else _cancelled()
        elif task.exception() is not None:
            self._drop(live, task.exception())
            return
        else:
            outcome = task.result()
        if live.outcome is None:
            self._close(live, outcome)
        else:
            self._scheduler.spawn(self._late(live.receipt, outcome, "owner"), "late")

    def _drop(self, live: Live, error: BaseException) -> None:
        """A signal passed through the body: this process may write no more; a later owner judges the call."""
        self._live.pop(live.receipt.attempt_id, None)
        if not live.settled.done():
            live.settled.set_exception(error)
            live.settled.exception()  # retrieved: the waiter may be gone

    # D8 ---------------------------------------------------------------------------------------

    def _close(self, live: Live, outcome: Outcome) -> None:
        live.outcome = outcome
        self._scheduler.spawn(self._closing(live, outcome), f"close {live.receipt.attempt_id}")

    async def _closing(self, live: Live, outcome: Outcome) -> None:
        """Write the outcome until it is durable; until then nobody is shown it (TR-28)."""
        attempt_id = live.receipt.attempt_id
        try:
            await self._write_close(live, outcome)
        except StaleEpoch as error:
            self._drop(live, error)
            return
        receipt = self._receipt(live.looked)
        if live.ended:
            self._live.pop(attempt_id, None)
        if not live.settled.done():
            live.settled.set_result(receipt)

    async def _write_close(self, live: Live, outcome: Outcome) -> None:
        tries = 0
        while True:
            try:
                draft = await self._close_draft(live, outcome)
                answer = await self.session.append(draft)
            except LedgerError as error:
                self.on_withheld(live.receipt.attempt_id, error)
                wait_seconds = CLOSE_RETRY_SECONDS[min(tries, len(CLOSE_RETRY_SECONDS) - 1)]
                tries += 1
                await self._scheduler.sleep(wait_seconds)
                continue
            if isinstance(answer, NotAppended) and self._receipt(live.looked).state is State.STARTED:
                raise BrokenInvariant(f"close of {live.receipt.attempt_id!r} refused: {answer.code}")
            return

    async def _close_draft(self, live: Live, outcome: Outcome) -> Draft:
        receipt = live.receipt
        payload: dict[str, Any] = {
            "attemptId": receipt.attempt_id,
            "state": outcome.state.value,
            "reason": outcome.reason,
            "errorKind": outcome.error_kind,
            "effectTrace": _trace(outcome, live.looked).value,
            "finishedAt": self._scheduler.now_ms(),
        }
        if outcome.state is State.UNKNOWN:
            payload["executor"] = {"state": self._executor_after(live, outcome).value}
            if outcome.text:
                payload["said"] = outcome.text[:2000]
        else:
            payload |= await self._result_fields(outcome)
        return Draft(Kind.CLOSED, payload)

    async def _result_fields(self, outcome: Outcome) -> dict[str, Any]:
        """The result, in the entry or in a blob made durable before the entry that names it (TR-6)."""
        digest = digest_text(outcome.text)
        is_error = outcome.state is not State.SUCCEEDED
        size = len(outcome.text.encode("utf-8", "surrogatepass"))
        if size <= self.limits.inline_result_bytes:
            return {"result": {"text": outcome.text, "isError": is_error}, "resultDigest": digest}
        ref = await self.session.ledger.put_blob(outcome.text.encode("utf-8", "surrogatepass"))
        return {"resultRef": ref, "resultDigest": digest}

    def _executor_after(self, live: Live, outcome: Outcome) -> ExecutorState:
        if outcome.executor is not None:
            return ExecutorState(outcome.executor)
        if not live.ended:
            return ExecutorState.ALIVE
        tool = live.looked.tool
        leaves_processes = tool is None or tool.starts_processes or tool.supervised
        return ExecutorState.NOT_PROVEN if leaves_processes else ExecutorState.ENDED

    async def _late(self, receipt: Receipt, outcome: Outcome, source: str) -> None:
        """The truth came after all, from the attempt's own executor (TR-43). It starts nothing."""
        self._live.pop(receipt.attempt_id, None)
        process = {"attemptId": receipt.attempt_id, "executor": {"state": outcome.executor or "ended"}}
        drafts = [Draft(Kind.PROCESS, process)]
        if outcome.state is not State.UNKNOWN:
            payload = {
                "attemptId": receipt.attempt_id,
                "settles": True,
                "state": outcome.state.value,
                "errorKind": outcome.error_kind,
                "effectTrace": (outcome.effect_trace or _default_trace(receipt.effect_class)).value,
                "source": source,
                "at": self._scheduler.now_ms(),
                **await self._result_fields(outcome),
            }
            drafts.append(Draft(Kind.LATE, payload))
        try:
            await self.session.append(*drafts)
        except (LedgerError, StaleEpoch):
            return  # the receipt stays unknown; a supervisor's record is read again by the next owner

    # Stop -------------------------------------------------------------------------------------

    def executor(self, receipt: Receipt) -> ExecutorState:
        """What carries out an attempt, as far as this process knows (TR-208)."""
        live = self._live.get(receipt.attempt_id)
        if live is not None and not live.ended:
            return ExecutorState.ALIVE
        recorded = (receipt.executor or {}).get("state")
        return ExecutorState(recorded) if recorded else ExecutorState.NOT_PROVEN

    def running(self) -> list[Receipt]:
        """The attempts whose bodies this process runs now."""
        return [self._receipt(live.looked) for live in self._live.values() if not live.ended]

    async def stop(self) -> None:
        """End every body: what has not entered never will, what has is given a moment, then is unknown (TR-74)."""
        self.stopping = True
        lives = [live for live in self._live.values() if live.outcome is None]
        for live in lives:
            if not live.entrance.entered:
                self._end_early(live, "cancelled")
            elif live.task is not None:
                live.task.cancel()
        waiting = [live.task for live in lives if live.task is not None]
        await self._scheduler.wait(*waiting, seconds=CANCEL_GRACE_SECONDS)
        for live in lives:
            self._end_early(live, "cancelled")

    def resume(self) -> None:
        """Let calls start again after a stop."""
        self.stopping = False

    def abandon(self) -> None:
        """The session is lost: bodies are told to end; their outcome is the next owner's to judge (TR-175)."""
        self.stopping = True
        for live in list(self._live.values()):
            live.entrance.forbid()
            if live.task is not None:
                live.task.cancel()

    def _cancel_one(self, looked: Looked) -> None:
        live = self._live.get(looked.call.attempt_id)
        if live is not None and live.task is not None:
            self._end_early(live, "cancelled") if not live.entrance.entered else live.task.cancel()


def _cancelled() -> Outcome:
    return Outcome("", state=State.UNKNOWN, reason="cancelled")


def _refused(code: str, text: str | None = None, **facts: Any) -> Refused:
    return Refused(code, results.refusal_text(code, facts) if text is None else text, facts)


def _unlooked(
    call: Call, code: str, *, tool: Tool | None = None, text: str | None = None, **facts: Any
) -> Looked:
    effect = UNDECLARED
    display = redact(call.arguments or "", () if tool is None else tool.secret_arguments)
    return Looked(call, tool, None, effect, display, refused=_refused(code, text, **facts))


def _with_effect(looked: Looked, effect: Effect) -> Looked:
    return Looked(
        looked.call, looked.tool, looked.arguments, effect, looked.display, notes=looked.notes + effect.notes
    )


def _refusal_of(prepared: Prepared) -> Refused | None:
    return None if prepared.refuse is None else Refused(*prepared.refuse)


def _default_trace(effect_class: EffectClass | None) -> EffectTrace:
    return EffectTrace.NONE if effect_class is EffectClass.READ_ONLY else EffectTrace.POSSIBLE


def _trace(outcome: Outcome, looked: Looked) -> EffectTrace:
    """TR-39: a success did what it says; a failure may have left something unless the owner's tool knows."""
    if outcome.state is State.SUCCEEDED:
        return EffectTrace.NONE if looked.effect.effect_class is EffectClass.READ_ONLY else EffectTrace.DONE
    if outcome.effect_trace is not None and looked.tool is not None and looked.tool.own:
        return outcome.effect_trace
    return _default_trace(looked.effect.effect_class)


def _stops_batch(receipt: Receipt, effect: Effect) -> bool:
    """TR-88: whether later writes of the batch must wait for somebody to look."""
    if effect.effect_class is EffectClass.READ_ONLY or effect.interaction:
        return False
    if receipt.state in (State.UNKNOWN, State.NOT_STARTED):
        return True
    return receipt.state is State.FAILED and not receipt.check


__all__ = ["Barrier", "BarrierLevel", "Entry"]
