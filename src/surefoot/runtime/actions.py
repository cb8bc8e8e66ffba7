"""What a person, a policy or a resume does about unknown calls.

Owns: the snapshot of a session (TR-139), the six actions' durable record (TR-124 to
TR-132), parked presses (TR-210), and the facts told to the model (TR-57). Does not own: the
rules themselves (`core.admission`, `core.recovery`), how a call stands (`standing`), what a
resume carries out (`resuming`), a retry that is asked for (`retrying`), processes (`choices`),
the form of a request (`requests`).
Promises: recovery:never-guess, recovery:no-self-start, recovery:way-out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from surefoot.core import admission, recovery
from surefoot.core.admission import Admission, AttemptFacts, Controls, Press
from surefoot.core.canonical import ArgumentsInvalid, read_arguments
from surefoot.core.effects import stricter
from surefoot.core.handoff import FactBounds, HandOff, hand_off_facts
from surefoot.core.lifecycle import OFF_BRANCH
from surefoot.core.limits import Limits
from surefoot.core.model import (
    Action,
    Draft,
    Kind,
    Notice,
    Receipt,
    State,
    TurnStatus,
)
from surefoot.core.snapshot import Asked, CallFacts, SessionFacts, select, snapshot
from surefoot.core.turns import RESUMABLE
from surefoot.errors import LedgerError, StaleEpoch
from surefoot.ledger.port import NotAppended
from surefoot.runtime.barrier import Barrier
from surefoot.runtime.choices import Choices
from surefoot.runtime.deaths import Death, deaths_since
from surefoot.runtime.inside import inside_tool_body
from surefoot.runtime.inspection import inspect
from surefoot.runtime.policies import Policies
from surefoot.runtime.reconcile import Reconciled, Supervision, reconcile
from surefoot.runtime.requests import KINDS, Answer, Caller, assured, malformed, storage_failed
from surefoot.runtime.resuming import Resuming
from surefoot.runtime.retrying import Retrying, effect_of
from surefoot.runtime.session import Session
from surefoot.runtime.standing import Policy, Standing


class Actions:
    """Everything about the unknown calls of one owned session."""

    def __init__(
        self, session: Session, barrier: Barrier, supervision: Supervision, policy: Policy, limits: Limits
    ) -> None:
        self.session = session
        self.barrier = barrier
        self.policy = policy
        self.reconciled = Reconciled()
        self.state_of: Callable[[], str] = lambda: "idle"
        self.waiting: Callable[[], bool] = lambda: False
        self.notify: Callable[[Notice], None] = lambda notice: None
        self.descent: Callable[[], tuple[str | None, str]] = lambda: (None, "none")
        """Why this very process is no person's, and how far its parents could be read (TR-130, UX-119)."""
        self.standing = Standing(session, barrier, supervision, policy, limits)
        self.resuming = Resuming(session, barrier, self.standing, limits)
        executor = self.standing.executor
        self.retrying = Retrying(
            session, barrier, limits, executor, enabled=policy.retry_enabled, boot_id=policy.boot_id
        )
        self.choices = Choices(session, supervision, policy.session_path)
        self.choices.snapshot = self.snapshot
        self.policies = Policies(
            session, executor, stopped_checks=policy.release_stopped_checks, named=policy.named
        )
        self._supervision = supervision
        self._limits = limits
        self.deaths: tuple[Death, ...] = ()
        """The owners of this session that died lately; three stop an unattended resume (UX-161)."""
        self._owed: LedgerError | None = None
        """Why reconciliation could not be written yet; until it is, nothing runs and nothing is decided."""
        self._parked: dict[str, tuple[Mapping[str, Any], Caller]] = {}
        self._was: Mapping[str, Any] | None = None
        """How the turn stood that was marked as recovering."""

    # Opening ----------------------------------------------------------------------------------

    async def recover(self) -> Reconciled:
        """Judge what a dead owner left, once. Runs no tool and sends nothing (TR-48, TR-49).

        A ledger that takes no entry now leaves the session readable and owing: no turn and no decision
        comes before the judgement is durable.
        """
        try:
            self.reconciled = await reconcile(self.session, self._supervision)
            since = self.session.scheduler.now_ms() - int(self._limits.owner_deaths_seconds * 1000)
            self.deaths = await deaths_since(self.session, since)
        except LedgerError as error:
            self._owed = error
            self.notify(Notice("not_reconciled", {"cause": error.message}))
            return self.reconciled
        self._owed = None
        self._judge_by_today()
        await self.policies.apply()
        return self.reconciled

    async def _settle_debt(self) -> None:
        """Reconcile now if it could not be written before. Raises `LedgerError` when it still cannot."""
        if self._owed is not None:
            await self.recover()
            await self.look()
        if self._owed is not None:
            raise self._owed

    def _judge_by_today(self) -> None:
        """Note on each open call what today's declaration says, when that is stricter (EC-7)."""
        for receipt in self.session.book.open():
            tool = self.barrier.registry.resolve(receipt.tool or "")
            arguments = None if tool is None else _stored_arguments(receipt)
            if tool is None or arguments is None:
                continue
            stored = effect_of(receipt)
            today = stricter(stored, self.retrying.judged_today(tool, receipt, arguments))
            if (today.effect_class, set(today.reach)) != (stored.effect_class, set(stored.reach)):
                now = {"class": today.effect_class.value, "reach": list(today.reach)}
                self.session.book.judge_by_today(receipt.attempt_id, now)

    # Resuming ---------------------------------------------------------------------------------

    async def look(self, *, far: bool = False, beside: bool = False) -> None:
        """Inspect every open write nobody has looked at yet; local verifiers only, unless `far` (TR-116).

        `beside` waits for it a moment only; its end is then told by the notice `looked`.
        """
        await (self.resuming.look_beside() if beside else self.resuming.look(far=far))

    async def carry_out(self) -> list[Receipt]:
        """What comes before the first model request of a resume: retries, questions of a dead owner (TR-116)."""
        await self._settle_debt()
        if self._tail_is_lost():
            return []
        await self.session.history()
        async with self._recovering():
            receipts = await self.resuming.carry_out(self.choices)
            receipts += await self.resuming.ask_again()
            return receipts + await self.retry_by_policy()

    @asynccontextmanager
    async def _recovering(self) -> AsyncIterator[None]:
        """Mark the turn that a dead owner left as `recovering` while its calls are run again (TR-179).

        An owner that dies in it died in this turn: the next one finds it unfinished, hands it off and counts
        the death. Afterwards it is what it was, and what goes on is a turn of its own (TR-123).
        """
        newest = self.session.newest_turn
        before = newest.status
        if before not in RESUMABLE or not (self.resuming.has_work() or self.policies.to_retry()):
            yield
            return
        was = {"status": before.value, "reason": newest.reason, "silent": newest.silent}
        self._was = {"turnId": newest.turn_id, **was}
        recovering = {"turnId": newest.turn_id, "status": TurnStatus.RECOVERING.value}
        await self.session.append(Draft(Kind.TURN, recovering))
        try:
            yield
        finally:
            with suppress(LedgerError, StaleEpoch):  # owed to the next turn, or found by the next owner
                if left := self.left():
                    await self.session.append(*left)

    def left(self) -> list[Draft]:
        """The move that ends the recovering of a turn and could not be written yet; it goes before the next turn."""
        recovering = self.session.newest_turn.status is TurnStatus.RECOVERING
        return [Draft(Kind.TURN, self._was)] if recovering and self._was else []

    async def retry_by_policy(self) -> list[Receipt]:
        """Retry what the owner's settings name, where rules and proof of this moment allow it (TR-122)."""
        await self._settle_debt()
        await self.session.history()
        if self._tail_is_lost():
            return []
        return await self.resuming.retry_by_policy(self.policies, self.retrying)

    def _tail_is_lost(self) -> bool:
        """Until a person resolved the call that stands for lost entries nothing is carried out (TR-196)."""
        return any(receipt.tool == "ledger" for receipt in self.session.book.open())

    async def facts_for_next_turn(self) -> str | None:
        """The facts block for the next words of the person; None when there is nothing to tell (TR-64)."""
        history = await self.session.history()
        book = self.session.book
        handed = [found for found in map(book.get, history.handed) if found is not None]
        open_calls = {
            planned.receipt.attempt_id: planned.decided.decision for planned in self.standing.plan()
        }
        told = HandOff(
            receipts=[*handed, *history.news(book)],
            fencing=frozenset(receipt.attempt_id for receipt in recovery.fencing(book.open())),
            decisions=open_calls,
            silent=history.silent,
        )
        bounds = FactBounds(
            self._limits.hand_off_calls,
            self._limits.hand_off_files,
            self._limits.hand_off_value_characters,
            self._limits.hand_off_bytes,
        )
        return hand_off_facts(told, bounds)

    # Snapshot ---------------------------------------------------------------------------------

    def snapshot(self, *, inspected: str | None = None, named: str | None = None) -> dict[str, Any]:
        """The facts of every open call and of those resolved last, as JSON (TR-139).

        What no bound may leave out is `named`, or was just `inspected`.
        """
        book, limits = self.session.book, self._limits
        receipts, more = select(
            book, calls=limits.snapshot_calls, resolved=limits.snapshot_resolved, named=inspected or named
        )
        newest = self.session.newest_turn
        facts = SessionFacts(
            session_path=self.policy.session_path,
            runtime_epoch=str(self.session.epoch),
            barrier=self.session.level.value,
            on_unknown=self.policy.on_unknown,
            retry_enabled=self.policy.retry_enabled,
            silent=newest.silent if newest.turn_id else self.reconciled.silent,
            background=self.background(),
        )
        calls = [self._call_facts(receipt) for receipt in receipts]
        return snapshot(
            facts,
            self._controls(),
            calls,
            statistics=book.statistics(),
            more=more,
            asked=Asked(inspected, named, limits.snapshot_bytes),
        )

    def background(self) -> list[dict[str, Any]]:
        """The listed resources alone, as a snapshot tells them (TR-205)."""
        return [dict(resource) for resource in self._supervision.background()]

    def _call_facts(self, receipt: Receipt) -> CallFacts:
        parked = self._parked.get(receipt.attempt_id)
        return CallFacts(
            receipt=receipt,
            attempt=self._attempt_facts(receipt),
            decision=self.standing.decide(receipt).decision.value,
            process=None if receipt.process is None else self._supervision.shown(receipt),
            parked=None if parked is None else str(parked[0]["action"]),
            off_branch=OFF_BRANCH in receipt.notes,
        )

    def _attempt_facts(self, receipt: Receipt | None) -> AttemptFacts:
        retry = None if receipt is None else self.retrying.facts(receipt)
        return self.standing.attempt_facts(receipt, retry)

    def _controls(self) -> Controls:
        return Controls(
            self.state_of(), "lease_lost" if self.session.lost else "owned", at_border=self.waiting()
        )

    # Acting -----------------------------------------------------------------------------------

    async def act(self, request: Mapping[str, Any], caller: Caller) -> Answer:
        """One action of a person or policy; the first rule that refuses it answers (TR-125)."""
        fault = malformed(request, self._limits)
        if fault is not None:
            return Answer(400, {"code": fault, "message": fault})
        return await self._identified(self._act(request, self.seen(caller)))

    async def _act(self, request: Mapping[str, Any], caller: Caller) -> Answer:
        action = Action(request["action"])
        try:
            await self._settle_debt()
        except LedgerError as error:
            return storage_failed(error)
        if request.get("items") is not None:
            return await self._act_on_items(action, request, caller)
        receipt = self.session.book.get(request["attemptId"])
        admitted = self._admit(action, request, caller, receipt)
        if admitted.code is not None or receipt is None:
            return self._refused(admitted, receipt)
        if admitted.parked:
            before = self._parked.get(receipt.attempt_id)
            self._parked[receipt.attempt_id] = (request, caller)
            replaced = {} if before is None else {"replaces": str(before[0]["action"])}
            return Answer(200, {**self.snapshot(named=receipt.attempt_id), **replaced})
        if action is Action.INSPECT:
            return await self._inspect(receipt)
        if action is Action.RETRY:
            return await self._retry(receipt, caller)
        return await self._record(action, [(receipt, request.get("inspectionId"))], request, caller)

    def seen(self, caller: Caller) -> Caller:
        """The caller with what the kernel and the running code say of it, unless a surface has read that."""
        if inside_tool_body():
            return replace(caller, not_a_person="inside_tool_body")
        if caller.ancestry != "none" or caller.not_a_person or caller.let_in_by == "policy":
            return caller
        reason, ancestry = self.descent()
        return replace(caller, not_a_person=reason, ancestry=ancestry)

    async def process(self, request: Mapping[str, Any], caller: Caller) -> Answer:
        """Adopt, kill or leave what a call left running (TR-71, TR-146)."""
        return await self._identified(self.choices.act(request, self.seen(caller), self._controls()))

    async def _identified(self, work: Awaitable[Answer]) -> Answer:
        """The answer of a press, with what a refusal is to be read again by (TR-145).

        An owner that learns in the commit that it is one no longer is answered as by rule 7 (TR-125).
        """
        try:
            answer = await work
        except StaleEpoch:
            answer = self._refused(Admission("lease_lost", 7), None)
        if answer.status != 409 or "revision" in answer.body:
            return answer
        now = {"runtimeEpoch": str(self.session.epoch), "revision": self.snapshot()["revision"]}
        return Answer(answer.status, {**answer.body, **now})

    async def _retry(self, receipt: Receipt, caller: Caller) -> Answer:
        """A new attempt on proof of this moment; a refusal before its start leaves all as it was (TR-137)."""
        try:
            code = await self.retrying.proof(receipt)
            if code is None:
                begun = await self.retrying.begin(receipt, self._presser(caller))
                code = begun.reason if begun.state is State.NOT_STARTED else None
        except LedgerError as error:
            return storage_failed(error)
        if code is None:
            return Answer(200, self.snapshot(named=receipt.attempt_id))
        now = self.session.book.get(receipt.attempt_id)
        return self._refused(Admission(code), now)

    async def _act_on_items(self, action: Action, request: Mapping[str, Any], caller: Caller) -> Answer:
        """Several calls in one commit, all or nothing (TR-132)."""
        pairs = []
        for item in request["items"]:
            receipt = self.session.book.get(item["attemptId"])
            single = {**request, **item}
            admitted = self._admit(action, single, caller, receipt, bulk=True)
            if admitted.code is not None or receipt is None:
                return self._refused(admitted, receipt)
            pairs.append((receipt, item.get("inspectionId")))
        return await self._record(action, pairs, request, caller)

    def _admit(
        self,
        action: Action,
        request: Mapping[str, Any],
        caller: Caller,
        receipt: Receipt | None,
        *,
        bulk: bool = False,
    ) -> Admission:
        press = Press(
            action,
            inspection_id=request.get("inspectionId"),
            session_matches=request.get("sessionPath") == self.policy.session_path,
            epoch_current=str(request.get("runtimeEpoch")) == str(self.session.epoch),
            revision=self._judge_revision(request, strict=bulk or action is Action.RETRY),
            bulk=bulk,
            not_a_person=None if action is Action.INSPECT else self._not_a_person(caller, receipt),
        )
        return admission.admit(press, self._controls(), self._attempt_facts(receipt))

    def _not_a_person(self, caller: Caller, receipt: Receipt | None) -> str | None:
        if caller.not_a_person is not None or receipt is None:
            return caller.not_a_person
        return assured(caller, receipt, self.policy.assurance)

    def _judge_revision(self, request: Mapping[str, Any], *, strict: bool) -> str:
        if not request.get("revision"):
            return "missing"
        # A single press is judged by its own attempt's facts, so the whole snapshot need not be made for it.
        return "current" if not strict or self._is_current(request) else "stale"

    def _is_current(self, request: Mapping[str, Any]) -> bool:
        """Whether one of the snapshots that may have been shown for this press would be the same now."""
        name = request.get("attemptId")
        forms: tuple[dict[str, Any], ...] = ({}, {"named": name}, {"inspected": name})
        return any(request["revision"] == self.snapshot(**form)["revision"] for form in forms)

    def _refused(self, admitted: Admission, receipt: Receipt | None) -> Answer:
        body: dict[str, Any] = {"code": admitted.code or "attempt_unknown", "message": admitted.code}
        if admitted.reason:
            body["reason"] = admitted.reason
        if receipt is not None and receipt.resolution is not None:
            body["record"] = receipt.resolution
        body["runtimeEpoch"] = str(self.session.epoch)
        body["revision"] = self.snapshot()["revision"]
        return Answer(admitted.status if admitted.code else 409, body)

    async def _inspect(self, receipt: Receipt) -> Answer:
        try:
            await inspect(
                self.session,
                self.barrier.registry,
                receipt,
                executor=self.standing.executor(receipt),
                limits=self._limits,
                seconds=self._limits.inspect_action_seconds,
            )
        except LedgerError as error:
            return storage_failed(error)
        return Answer(200, self.snapshot(inspected=receipt.attempt_id))

    async def _record(
        self,
        action: Action,
        pairs: Sequence[tuple[Receipt, str | None]],
        request: Mapping[str, Any],
        caller: Caller,
    ) -> Answer:
        """Make the record; of two racing presses exactly one does, decided inside the commit (TR-131)."""
        drafts = [
            Draft(
                Kind.RESOLVED,
                {
                    "attemptId": receipt.attempt_id,
                    "resolution": self._resolution(action, inspection_id, request, caller),
                },
            )
            for receipt, inspection_id in pairs
        ]

        def still_so() -> str | None:
            for receipt, inspection_id in pairs:
                now = self.session.book.get(receipt.attempt_id)
                newest = None if now is None else (now.inspection or {}).get("id")
                if inspection_id is not None and inspection_id != newest:
                    return "inspection_stale"
                overtaken = self.session.book.inspection_overtaken(receipt.attempt_id)
                if overtaken and action in admission.NEEDS_INSPECTION:
                    return "inspection_stale"  # news of the attempt came between the press and its commit
            return None

        try:
            answer = await self.session.append(*drafts, judge=still_so)
        except LedgerError as error:
            return storage_failed(error)
        if isinstance(answer, NotAppended):
            now = self.session.book.get(pairs[0][0].attempt_id)
            # A result came between the look and the commit: the call is open no more (TR-131).
            code = "already_resolved" if answer.code.startswith("illegal_") else answer.code
            return self._refused(Admission(code), now)
        return Answer(200, self.snapshot(named=pairs[0][0].attempt_id))

    def _resolution(
        self, action: Action, inspection_id: str | None, request: Mapping[str, Any], caller: Caller
    ) -> dict[str, Any]:
        return {
            "kind": KINDS[action],
            **self._presser(caller),
            "revision": request.get("revision"),
            "inspectionId": inspection_id,
            "note": request.get("note"),
        }

    def _presser(self, caller: Caller) -> dict[str, Any]:
        """Who decided, how they were let in, and when (TR-129)."""
        return {
            "who": caller.who,
            "channel": caller.channel,
            "method": caller.method,
            "client": caller.client,
            "letInBy": caller.let_in_by,
            "ancestry": caller.ancestry,
            "assurance": caller.assurance,
            "at": self.session.scheduler.now_ms(),
        }

    async def border(self) -> None:
        """A step border: parked presses are judged again, and recorded or dropped with their code (TR-210)."""
        parked, self._parked = self._parked, {}
        for attempt_id, (request, caller) in parked.items():
            receipt = self.session.book.get(attempt_id)
            action = Action(request["action"])
            if receipt is None:
                continue
            press = Press(
                action,
                inspection_id=request.get("inspectionId"),
                epoch_current=str(request.get("runtimeEpoch")) == str(self.session.epoch),
                not_a_person=self._not_a_person(caller, receipt),
            )
            controls = Controls("idle", "lease_lost" if self.session.lost else "owned")
            admitted = admission.admit(press, controls, self._attempt_facts(receipt))
            answer = self._refused(admitted, receipt)
            if admitted.code is None:
                pair = [(receipt, request.get("inspectionId"))]
                try:
                    answer = await self._record(action, pair, request, caller)
                except StaleEpoch:
                    answer = self._refused(Admission("lease_lost", 7), receipt)
            if answer.status != 200:
                why = {key: answer.body[key] for key in ("code", "reason") if key in answer.body}
                facts = {"attemptId": attempt_id, "action": action.value, **why}
                self.notify(Notice("parked_dropped", facts))


def _stored_arguments(receipt: Receipt) -> Mapping[str, Any] | None:
    try:
        return read_arguments(receipt.arguments).value
    except ArgumentsInvalid:
        return None
