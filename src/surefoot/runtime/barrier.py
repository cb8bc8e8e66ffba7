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

from surefoot.core import recovery
from surefoot.core.effects import stricter
from surefoot.core.limits import Limits
from surefoot.core.model import BarrierLevel, Draft, Entry, ExecutorState, Kind, Owner, Receipt, State
from surefoot.core.redact import redact
from surefoot.core.results import unwritten
from surefoot.errors import BrokenInvariant, LedgerError, LedgerUncertain, StaleEpoch
from surefoot.ledger.port import NotAppended
from surefoot.runtime import arguments as argument_rules
from surefoot.runtime import drafts
from surefoot.runtime.drafts import asked_of, refusal_of, refused, unlooked
from surefoot.runtime.live import Batch, Call, Changed, Hooks, Live, Looked, Permit, Permits, Refused
from surefoot.runtime.scheduler import Scheduler
from surefoot.runtime.session import Found, Session
from surefoot.runtime.tools import (
    NEVER_RAN,
    Entrance,
    LiveAttempt,
    Outcome,
    Place,
    Prepared,
    Registry,
    barred,
    classify,
    invoke,
    prepare,
)
from surefoot.verifiers.port import IntentVerifier

CLOSE_RETRY_SECONDS = (0.05, 0.2, 0.5, 1.0, 2.0)
HOOK_CHANGES = 3
CANCELLED = Outcome("", state=State.UNKNOWN, reason="cancelled")
CHILD_OPEN = Outcome("", state=State.UNKNOWN, reason="child_open")


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
        self.on_advice: Callable[[str, Receipt], None] = lambda attempt_id, fencing: None
        """Told once per fencing call that a write was let pass beside it (level `advise`)."""
        self._writer = drafts.Writer(owner.to_json(), session.scheduler)
        self._permits = permits
        self._services = services
        self._hooks = tuple(hooks)
        self._live: dict[str, Live] = {}
        self._passing: dict[str, None] = {}
        self._cancelled: set[str] = set()
        """Attempts whose caller gave up, or that were on their way when Stop came: they never start."""
        self._unsure: dict[str, Looked] = {}
        """Attempts whose start may be durable although nobody was told so (TR-27)."""
        self._advised: set[str] = set()
        self._scheduler: Scheduler = session.scheduler
        session.on_lost = self.abandon
        session.watch(self._appended)

    # D2 ---------------------------------------------------------------------------------------

    def _look(self, call: Call) -> Looked:
        """D2. Pure but for the registry; nothing is written."""
        misshapen = drafts.misshapen(call)
        if misshapen is not None:
            return misshapen
        tool = self.registry.resolve(call.asked_name, nested=call.nested)
        if tool is None:
            return unlooked(call, "tool_missing", asked=call.asked_name, known=self.registry.names())
        bounds = argument_rules.ArgumentLimits(self.limits.arguments_bytes, self.limits.arguments_depth)
        checked = argument_rules.validate(tool, call.arguments, bounds)
        if isinstance(checked, argument_rules.Fault):
            return unlooked(call, checked.code, tool=tool, text=checked.text)
        never = barred(tool, checked.value, self.place)
        if never is not None:
            return unlooked(call, never[0], tool=tool, text=never[1])
        effect = classify(tool, checked.value, self.place)
        notes = effect.notes + (("arguments_absent",) if checked.absent else ())
        display = redact(checked.value, tool.secret_arguments)
        return Looked(call, tool, checked, effect, display, notes=notes)

    async def look(self, call: Call) -> Looked:
        """Resolve, validate and classify a call. Long argument text is read off the loop (TR-10)."""
        if len(call.arguments or "") <= argument_rules.ON_LOOP_CHARACTERS:
            return self._look(call)
        return await self._scheduler.off_loop(lambda: self._look(call))

    def verdict(self, looked: Looked, batch: Batch) -> Refused | None:
        """The barrier, the guards and the batch rule on one call as things stand now."""
        fault = looked.refused or drafts.departure(looked)
        if fault is not None:
            return fault
        if self.stopping or looked.call.attempt_id in self._cancelled:
            return refused("cancelled_before_start")
        if self.session.broken is not None:
            return refused("receipt_not_durable", cause=str(self.session.broken))
        asked = asked_of(looked)
        found = recovery.judge_write(
            asked,
            level=self.session.level,
            fencing=recovery.fencing(self.session.book.open()),
            guard=self.session.guards.against(asked.tool, asked.argument_digest, looked.effect),
            batch_stopped_by=batch.stopped_by,
        )
        return None if found is None else refused(found.code, **found.facts)

    # D2 to D9 ---------------------------------------------------------------------------------

    async def run(self, looked: Looked, batch: Batch) -> Receipt:
        """Take one call through D2 to D9 and return its settled receipt.

        A cancel of the caller stops the call, not its settlement, which goes on behind.

        Raises:
            StaleEpoch: the session has another owner.
            LedgerError: not even the refusal could be written; the call stays `dispatched`.
        """
        attempt_id = looked.call.attempt_id
        self._passing[attempt_id] = None
        work = self._scheduler.spawn(self._pass(looked, batch), f"call {attempt_id}")
        work.add_done_callback(self._scheduler.heard)  # a caller who gave up hears nothing more
        work.add_done_callback(lambda _: self._passed(attempt_id))
        return await self._scheduler.watched(work, on_cancel=lambda: self._cancel_one(attempt_id))

    def _passed(self, attempt_id: str) -> None:
        self._passing.pop(attempt_id, None)
        self._cancelled.discard(attempt_id)

    async def nested(self, parent_attempt_id: str, asked_name: str, arguments: str) -> Receipt:
        """Run what a body or a hook asks for as a call of its own (TR-9, TR-25). Raises as `run` does."""
        parent = self.session.book.get(parent_attempt_id)
        if parent is None:
            raise BrokenInvariant(
                f"a nested call names the attempt {parent_attempt_id!r}, which nobody knows"
            )
        return await self.apart(parent.turn_id, asked_name, arguments, below=parent_attempt_id)

    async def apart(self, turn_id: str, name: str, arguments: str, *, below: str | None = None) -> Receipt:
        """Run what a hook of the session asks for as a call of its own, below none. Raises as `run` does."""
        call = drafts.nested_call(turn_id, name, arguments, self._scheduler)
        ordinal = 0 if below is None else len(self.session.book.children(below))
        await self.session.append(drafts.nested_draft(call, below, ordinal))
        return await self.run(await self.look(call), Batch())

    async def _pass(self, looked: Looked, batch: Batch) -> Receipt:
        await self.session.history()  # the guards of D2 are folded with it
        looked, found, permit = await self._allowed(await self._compared(looked), batch)
        prepared = Prepared()
        if found is None:
            allowed = looked.effect
            looked, prepared = await self._prepared(looked)
            found = refusal_of(prepared) or self.verdict(looked, batch)
            if found is None and drafts.is_no_reader(looked, allowed):
                permit = await self._permitted(looked)  # nobody allowed it as what it turned out to be
                found = permit.refused or self.verdict(looked, batch)
        receipt = (
            await self._not_started(looked, found)
            if found is not None
            else await self._start(looked, prepared, permit, batch)
        )
        if drafts.stops_batch(receipt, looked.effect):
            batch.stopped_by = batch.stopped_by or receipt.attempt_id
        for hook in self._hooks if receipt.started_at is not None else ():
            await hook.after(receipt)
        return receipt

    async def _allowed(self, looked: Looked, batch: Batch) -> tuple[Looked, Refused | None, Permit]:
        """D2 to D5. A hook that changes the call sends it back to D2, at most three times (TR-24)."""
        for _ in range(HOOK_CHANGES):
            permit = Permit(True)
            found = self.verdict(looked, batch)
            if found is None:
                permit = await self._permitted(looked)
                found = permit.refused or self.verdict(looked, batch)
            answer = found or await self._hooked(looked)
            if not isinstance(answer, Changed):
                return looked, answer, permit
            changed = dataclasses.replace(
                looked.call, asked_name=answer.asked_name, arguments=answer.arguments
            )
            looked = await self._compared(await self.look(changed))
        return looked, refused("hook_unstable"), Permit(False)

    async def _permitted(self, looked: Looked) -> Permit:
        """D3. An answer that cannot be made durable allows nothing."""
        try:
            return await self._permits(looked)
        except LedgerError as error:
            return Permit(False, refused("receipt_not_durable", cause=error.message))

    async def _hooked(self, looked: Looked) -> Refused | Changed | None:
        for hook in self._hooks:
            answer = await hook.before(looked)
            if answer is not None:
                return answer
        return None

    async def _compared(self, looked: Looked) -> Looked:
        """Note which open attempts at this very write are satisfied by how things stand now (TR-92)."""
        tool = looked.tool
        if looked.refused is not None or tool is None or tool.verifier is None:
            return looked
        if not isinstance(tool.verifier, IntentVerifier):
            return looked
        verifier, asked = tool.verifier, asked_of(looked)
        same = [
            receipt
            for receipt in recovery.fencing(self.session.book.open())
            if receipt.write_intents
            and (receipt.tool, receipt.argument_digest) == (asked.tool, asked.argument_digest)
        ]
        if not same:
            return looked
        found = await self._scheduler.off_loop(
            lambda: frozenset(one.attempt_id for one in same if verifier.satisfied(one))
        )
        return dataclasses.replace(looked, satisfied=found)

    async def _prepared(self, looked: Looked) -> tuple[Looked, Prepared]:
        """What the tool finds out before D6. It can only make the effect stricter (EC-8)."""
        tool, arguments = looked.tool, looked.arguments
        if tool is None or arguments is None:
            return looked, Prepared()
        prepared = await prepare(tool, arguments.value, self.place, self._receipt(looked), self._services)
        if prepared.effect is None:
            return looked, prepared
        return drafts.with_effect(looked, stricter(looked.effect, prepared.effect)), prepared

    def _receipt(self, looked: Looked) -> Receipt:
        found = self.session.book.get(looked.call.attempt_id)
        if found is None:
            raise BrokenInvariant(f"attempt {looked.call.attempt_id!r} was never dispatched")
        return found

    async def _not_started(self, looked: Looked, found: Refused) -> Receipt:
        """Record a refusal. One that cannot be written is told all the same: nothing ran (TR-23, TR-26)."""
        try:
            await self.session.append(drafts.not_started_draft(looked, found))
        except LedgerUncertain:
            raise
        except LedgerError as error:
            self.session.broken = error
            return unwritten(self._receipt(looked), found.code, found.text)
        return self._receipt(looked)

    # D6 ---------------------------------------------------------------------------------------

    async def _start(self, looked: Looked, prepared: Prepared, permit: Permit, batch: Batch) -> Receipt:
        span_ms = None if looked.tool is None else drafts.deadline_span_ms(looked.tool)
        if span_ms is not None and not await self.session.cover(span_ms):
            return await self._not_started(looked, refused("deadline_too_short"))
        draft = drafts.start_draft(looked, prepared, permit, self._receipt(looked), self._writer)
        refusals: list[Refused] = []

        def judge() -> str | None:
            found = self.verdict(looked, batch)
            if found is not None:
                refusals.append(found)
            return None if found is None else found.code

        try:
            answer = await self.session.append(draft, judge=judge)
        except LedgerUncertain:
            # Whether the start is durable is not known: the body is not entered and nothing is told (TR-27).
            self._unsure[looked.call.attempt_id] = looked
            raise
        except LedgerError as error:
            return await self._not_started(looked, refused("receipt_not_durable", cause=error.message))
        if isinstance(answer, NotAppended):
            return await self._not_started(looked, refusals[0] if refusals else refused(answer.code))
        self._advise(looked)
        return await self._enter(looked, prepared, found_later=isinstance(answer, Found))

    def _advise(self, looked: Looked) -> None:
        if self.session.level is not BarrierLevel.ADVISE:
            return
        for fencing in recovery.advised(asked_of(looked), recovery.fencing(self.session.book.open())):
            if fencing.attempt_id not in self._advised:
                self._advised.add(fencing.attempt_id)
                self.on_advice(looked.call.attempt_id, fencing)

    def _appended(self, entry: Entry) -> None:
        """A start that turns out to be durable after nobody was told so is closed as never run (TR-27)."""
        looked = self._unsure.pop(entry.payload.get("attemptId", ""), None)
        if looked is None or entry.kind != Kind.STARTED:
            return
        live = Live(looked, self._receipt(looked), Entrance(), self._scheduler.future(), ended=True)
        live.entrance.forbid()
        self._close(live, NEVER_RAN)

    # D7 ---------------------------------------------------------------------------------------

    async def _enter(self, looked: Looked, prepared: Prepared, *, found_later: bool) -> Receipt:
        receipt = self._receipt(looked)
        live = Live(looked, receipt, Entrance(), self._scheduler.future())
        self._live[receipt.attempt_id] = live
        tool, arguments = looked.tool, looked.arguments
        if tool is None or arguments is None:
            raise BrokenInvariant("a call without tool was started")
        stopped = self.stopping or receipt.attempt_id in self._cancelled
        if found_later or stopped or not await self.session.hold():
            # A lost answer, Stop after D6, or a lease that ran out: an epoch fences the ledger, not the
            # world, so the body is not entered (TR-27, TR-29, TR-175).
            live.entrance.forbid()
        values = dict(arguments.value)
        if tool.key_argument is not None:
            values[tool.key_argument] = receipt.idempotency_key
        attempt = self._attempt(live, prepared)
        live.task = self._scheduler.spawn(
            invoke(tool, attempt, values, entrance=live.entrance, scheduler=self._scheduler),
            f"body {receipt.attempt_id}",
        )
        live.task.add_done_callback(lambda task: self._ended(live, task))
        if tool.time_limit_seconds is not None and not tool.supervised:
            live.timer = self._scheduler.call_later(tool.time_limit_seconds, lambda: self._limit(live))
        settled: Receipt = await live.settled
        return settled

    def _attempt(self, live: Live, prepared: Prepared) -> LiveAttempt:
        receipt, attempt_id = live.receipt, live.receipt.attempt_id

        async def note(process: Mapping[str, Any]) -> None:
            await self.session.append(
                Draft(Kind.PROCESS, {"attemptId": attempt_id, "process": dict(process)})
            )

        def late(outcome: Outcome, source: str) -> None:
            self._scheduler.spawn(self._late(live, outcome, source), f"late {attempt_id}")

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
        self._interrupt(live)

    def _interrupt(self, live: Live) -> None:
        """Tell a body to end. A thread cannot be told: it is waited for and counts as alive (TR-77)."""
        tool = live.looked.tool
        if live.task is not None and (tool is None or tool.sync_body is None):
            live.task.cancel()

    def _ended(self, live: Live, task: Any) -> None:
        """Called once when a body ends, however it does. Queues its close synchronously (TR-29)."""
        live.ended = True
        if live.timer is not None:
            live.timer.cancel()
        if task.cancelled():
            outcome = NEVER_RAN if live.entrance.forbid() else CANCELLED
        elif task.exception() is not None:
            self._drop(live, task.exception())
            return
        else:
            outcome = task.result()
        if live.outcome is None:
            self._close(live, outcome)
        else:
            self._scheduler.spawn(self._late(live, outcome, "owner"), f"late {live.receipt.attempt_id}")

    def _drop(self, live: Live, error: BaseException) -> None:
        """A signal passed through the body: this process may write no more; a later owner judges the call."""
        self._live.pop(live.receipt.attempt_id, None)
        if not live.settled.done():
            live.settled.set_exception(error)
            live.settled.exception()  # retrieved: the waiter may be gone

    # D8 ---------------------------------------------------------------------------------------

    def _close(self, live: Live, outcome: Outcome) -> None:
        live.outcome = CHILD_OPEN if self._child_open(live, outcome) else live.told(outcome)
        writing = self._scheduler.begin(
            self._write_close(live, live.outcome), f"close {live.receipt.attempt_id}"
        )
        if writing.done():
            self._closed(live, writing)
        else:
            writing.add_done_callback(lambda task: self._closed(live, task))

    def _child_open(self, live: Live, outcome: Outcome) -> bool:
        """A parent with an open child is never shown as finished (TR-35)."""
        book = self.session.book
        return outcome.state is not State.UNKNOWN and any(
            book.is_open(child.attempt_id) for child in book.children(live.receipt.attempt_id)
        )

    def _closed(self, live: Live, writing: Any) -> None:
        """Whoever waits is told what the ledger holds, and nothing else."""
        if live.ended:
            self._live.pop(live.receipt.attempt_id, None)
        receipt = self._receipt(live.looked)
        error = None if writing.cancelled() else writing.exception()
        if live.settled.done():
            return
        if receipt.state is not State.STARTED:
            live.settled.set_result(receipt)
        elif error is not None:
            self._drop(live, error)
        else:
            live.settled.cancel()  # the program ends; the next owner judges the call

    async def _write_close(self, live: Live, outcome: Outcome) -> None:
        """Write the outcome until it is durable; until then nobody is shown it (TR-28)."""
        answer = await self._until_written(live, lambda: self._close_draft(live, outcome))
        if isinstance(answer, NotAppended) and self._receipt(live.looked).state is State.STARTED:
            raise BrokenInvariant(f"close of {live.receipt.attempt_id!r} refused: {answer.code}")

    async def _until_written(self, live: Live, make: Callable[[], Any]) -> Any:
        """Append what `make` drafts until the ledger takes it, the session closes or is lost."""
        tries = 0
        while True:
            try:
                return await self.session.append(*await make())
            except LedgerError as error:
                self.on_withheld(live.receipt.attempt_id, error)
                if self.session.closed or self.session.lost:
                    raise
            await self._scheduler.sleep(CLOSE_RETRY_SECONDS[min(tries, len(CLOSE_RETRY_SECONDS) - 1)])
            tries += 1

    async def _close_draft(self, live: Live, outcome: Outcome) -> list[Draft]:
        payload = drafts.closed_fields(outcome, live.receipt, live.looked, self._scheduler.now_ms())
        if outcome.state is State.UNKNOWN:
            payload["executor"] = drafts.executor_fields(live.executor_after(outcome), self._scheduler)
            if outcome.text:
                payload["said"] = outcome.text[:2000]
        else:
            payload |= await self._result_fields(outcome)
        return [Draft(Kind.CLOSED, payload)]

    async def _result_fields(self, outcome: Outcome) -> dict[str, Any]:
        """The result, in the entry or in a blob made durable before the entry that names it (TR-6)."""
        text, put = outcome.text.encode("utf-8", "surrogatepass"), self.session.ledger.put_blob
        if len(text) > self.limits.inline_result_bytes:
            outcome = drafts.within(outcome, self.limits.blob_bytes)
            return drafts.result_fields(outcome, ref=await put(outcome.text.encode("utf-8", "surrogatepass")))
        pictures = [(kind, await put(one.encode())) for kind, one in outcome.pictures]
        return drafts.result_fields(outcome, pictures=pictures)

    async def _late(self, live: Live, outcome: Outcome, source: str) -> None:
        """The truth came after all, from the attempt's own executor (TR-43). It starts nothing."""
        await self._scheduler.wait(live.settled)
        if live.ended:
            self._live.pop(live.receipt.attempt_id, None)
        if self._receipt(live.looked).state is not State.UNKNOWN:
            return
        try:
            await self._until_written(live, lambda: self._late_drafts(live, outcome, source))
        except (LedgerError, StaleEpoch):
            return  # the receipt stays unknown; a supervisor's record is read again by the next owner

    async def _late_drafts(self, live: Live, outcome: Outcome, source: str) -> list[Draft]:
        attempt_id = live.receipt.attempt_id
        ended = live.executor_after(outcome) if source == "owner" else ExecutorState.ENDED
        told = drafts.executor_fields(ExecutorState(outcome.executor or ended), self._scheduler)
        made = [Draft(Kind.PROCESS, {"attemptId": attempt_id, "executor": told})]
        if outcome.state is not State.UNKNOWN:
            result = await self._result_fields(outcome)
            payload = drafts.late_fields(outcome, live.looked, source, self._scheduler.now_ms())
            made.append(Draft(Kind.LATE, {**payload, **result}))
        return made

    # Stop -------------------------------------------------------------------------------------

    def executor(self, receipt: Receipt) -> ExecutorState:
        """What carries out an attempt, as far as this process knows (TR-208)."""
        live = self._live.get(receipt.attempt_id)
        if live is not None and not live.ended:
            return ExecutorState.ALIVE
        recorded = recovery.recorded_executor(receipt)
        if (
            recorded is ExecutorState.ALIVE
            and receipt.epoch == self.session.epoch
            and (receipt.process, receipt.origin_attempt_id) == (None, None)
        ):
            # It was alive when its call was closed; its body returned since, whether or not that is written.
            return recovery.after_its_body(receipt)
        return recorded

    def running(self) -> list[Receipt]:
        """The attempts whose bodies this process runs now."""
        return [self._receipt(live.looked) for live in self._live.values() if not live.ended]

    async def stop(self, reason: str = "cancelled") -> None:
        """End every body: what has not entered never will, what has is given a moment, then is unknown (TR-74)."""
        self.stopping = True
        self._cancelled.update(self._passing)
        lives = [live for live in self._live.values() if live.outcome is None]
        for live in lives:
            live.cut_by = reason
            if not live.entrance.entered:
                self._end_early(live, reason)
            elif not live.looked.effect.interaction:  # a withdrawn question ends by itself, with its reason
                self._interrupt(live)
        waiting = [live.task for live in lives if live.task is not None]
        await self._scheduler.wait(*waiting, seconds=self.limits.session_free_seconds / 2)
        for live in lives:
            self._end_early(live, reason)

    def leave(self) -> None:
        """Mark supervised commands as to be left running when their bodies are ended next (TR-206)."""
        left: set[str] = self._services.get("left", set())
        for live in self._live.values():
            if live.looked.tool is not None and live.looked.tool.supervised:
                left.add(live.receipt.attempt_id)

    async def settle_untaken(self, turn_id: str) -> None:
        """Record of each call of a turn that was never taken up that it did not start (TR-37)."""
        waiting = [
            receipt.attempt_id
            for receipt in self.session.book.unsettled()
            if receipt.turn_id == turn_id
            and receipt.state is State.DISPATCHED
            and receipt.attempt_id not in self._passing
            and receipt.attempt_id not in self._unsure
        ]
        for attempt_id in waiting:
            found = refused("cancelled_before_start" if self.stopping else "receipt_not_durable")
            try:
                await self.session.append(drafts.never_begun_draft(attempt_id, found))
            except LedgerError:
                return  # it stays `dispatched` and reads as not started (TR-23)

    def resume(self) -> None:
        """Let calls start again after a stop."""
        self.stopping = False

    def abandon(self) -> None:
        """The session is lost: bodies are told to end; their outcome is the next owner's to judge (TR-175)."""
        self.stopping = True
        self._cancelled.update(self._passing)
        for live in list(self._live.values()):
            live.entrance.forbid()
            self._interrupt(live)

    def _cancel_one(self, attempt_id: str) -> None:
        """The caller gave up: what has not started never will, and what runs is told to end (TR-29)."""
        if attempt_id in self._passing:
            self._cancelled.add(attempt_id)
        live = self._live.get(attempt_id)
        if live is None:
            return
        tool = live.looked.tool
        if not live.entrance.entered or (tool is not None and tool.sync_body is not None):
            self._end_early(live, "cancelled")
        else:
            self._interrupt(live)
