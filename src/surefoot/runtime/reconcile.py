"""What a new owner finds, and writes back once: the truth about calls of a dead one.

Owns: the plan of reconciliation (TR-48 to TR-56) and its single commit. Does not own: what
is decided about the open calls it leaves (`core.recovery`), the retries (`actions`).
Promises: recovery:no-self-start, recovery:never-guess, receipt:exact.

It runs no tool, starts no process and sends no request (TR-49). It reads the ledger,
its witness, and through `Supervision` the run folders and what the kernel says of their processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from surefoot.core.model import (
    Draft,
    EffectClass,
    EffectTrace,
    ExecutorState,
    Kind,
    Receipt,
    State,
    TurnStatus,
)
from surefoot.core.recovery import after_its_body, recorded_executor
from surefoot.core.turns import UNFINISHED, Latest
from surefoot.errors import BrokenInvariant
from surefoot.ledger.newest import newest_of
from surefoot.ledger.port import NotAppended
from surefoot.runtime.session import Session
from surefoot.runtime.tools import NEVER_RAN, Outcome


@dataclass(frozen=True, slots=True)
class Judged:
    """What the records of a supervised command prove. `outcome` None: nothing beyond that it started."""

    outcome: Outcome | None
    executor: ExecutorState
    process: Mapping[str, Any] = field(default_factory=dict)
    """Keys merged into the process record, e.g. the pid its claim names."""


class Supervision(Protocol):
    """What the run folders of supervised commands prove. Reads only, but for `judge`."""

    def judge(self, receipt: Receipt, *, epoch: int) -> Judged:
        """Say how a command ended; puts a reconciliation's claim where none stands (TR-67)."""
        ...

    def executor(self, receipt: Receipt) -> ExecutorState:
        """Whether something of this attempt can still act (TR-208)."""
        ...

    def shown(self, receipt: Receipt) -> Mapping[str, Any] | None:
        """`{state, pid, log, choices}` for a snapshot (TR-70)."""
        ...

    async def adopt(self, receipt: Receipt) -> None:
        """Wait until the command has ended; cancelling it stops nothing (TR-71)."""
        ...

    async def kill(self, receipt: Receipt) -> Mapping[str, Any]:
        """End the command and all it left; `{gone, proven, how, left}` (TR-71)."""
        ...

    def background(self) -> Sequence[Mapping[str, Any]]:
        """Listed resources of this ledger, also of other sessions (TR-205, TR-78)."""
        ...


class NoSupervision:
    """For sessions without supervised tools: no record proves anything."""

    def judge(self, receipt: Receipt, *, epoch: int) -> Judged:
        return Judged(None, ExecutorState.NOT_PROVEN)

    def executor(self, receipt: Receipt) -> ExecutorState:
        return recorded_executor(receipt)

    def shown(self, receipt: Receipt) -> Mapping[str, Any] | None:
        return None

    async def adopt(self, receipt: Receipt) -> None:
        return None

    async def kill(self, receipt: Receipt) -> Mapping[str, Any]:
        return {"gone": False, "proven": False, "how": "nothing", "left": []}

    def background(self) -> Sequence[Mapping[str, Any]]:
        return ()


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What reconciliation found: attempts it judged, and whether a turn was interrupted that had left nothing."""

    judged: tuple[str, ...] = ()
    silent: bool = False
    tail_lost: bool = False


async def reconcile(session: Session, supervision: Supervision) -> Reconciled:
    """Judge every unsettled attempt of earlier owners, in one commit; a second call finds nothing to do.

    Raises `LedgerError` when the commit fails: the session may be read, and its fence is as if it had been written.
    """
    drafts: list[Draft] = []
    lost = session.claim.tail.lost
    replaced = await _replaced_epochs(session)
    latest = await newest_of(session.ledger, session.session_id, session.position)
    turn, status = _interrupted(latest, session.epoch)
    cancelled = turn if status is TurnStatus.CANCELLED else None
    for receipt in session.book.unsettled():
        if receipt.epoch == session.epoch:
            continue  # a call of this owner, which lives: its end is told by the barrier
        told = await _stored_answer(session, receipt)
        alive = receipt.epoch in replaced
        end = told or _judge(session, receipt, supervision, tail_lost=lost, alive=alive)
        never = end.kind == Kind.NOT_STARTED and receipt.turn_id == cancelled
        drafts += await _withdrawn(session, receipt, end) if never else [end]
    for receipt in session.book.open():
        drafts.extend(late_truth(session, receipt, supervision))
        drafts.extend(_ended_with_its_owner(receipt, replaced))
    judged = tuple(dict.fromkeys(draft.payload["attemptId"] for draft in drafts))
    if lost and not _stands_for_the_tail(session):
        drafts.extend(_tail_call(session))
    if turn is not None and status is not None:
        drafts.extend(_interruption(turn, status, latest.silent, judged))
    drafts.extend(_level_change(session, latest.level))
    if drafts:
        answer = await session.append(*(_timed(draft, session.scheduler.boot_ms()) for draft in drafts))
        if isinstance(answer, NotAppended):
            raise BrokenInvariant(f"reconciliation of {session.session_id!r} was refused: {answer.code}")
    return Reconciled(judged, latest.interrupted_silently(owned=latest.epoch == session.epoch), lost)


async def _replaced_epochs(session: Session) -> frozenset[int]:
    """Epochs of owners that were replaced while they may have been alive: by a person, or past their lease (TR-175).

    Of every other earlier owner the death was proven before the next one began.
    """
    claim = session.claim
    concerned = {receipt.epoch for receipt in (*session.book.unsettled(), *session.book.open())}
    if concerned <= {claim.previous_epoch, claim.epoch}:
        return frozenset({claim.previous_epoch} if claim.taken_over else ())
    entries = await session.ledger.read(session.session_id)
    return frozenset(
        int(entry.payload["previousEpoch"])
        for entry in entries
        if entry.kind == Kind.SESSION_OWNED and entry.payload.get("takenOver")
    )


async def _stored_answer(session: Session, receipt: Receipt) -> Draft | None:
    """A person answered, that became durable, and the owner died before the call was closed (TR-169)."""
    if not receipt.interaction or receipt.state is not State.STARTED:
        return None
    entries = await session.ledger.read(session.session_id, after=receipt.started_position or 0)
    for entry in entries:
        payload = entry.payload
        answered = entry.kind == Kind.ANSWER and payload.get("verdict") == "answered"
        if answered and payload.get("attemptId") == receipt.attempt_id:
            outcome = Outcome(f"The person answered:\n{payload.get('text', '')}")
            return _closed(receipt, outcome, session.scheduler.now_ms(), ExecutorState.ENDED)
    return None


async def _withdrawn(session: Session, receipt: Receipt, judged: Draft) -> list[Draft]:
    """A permission that was asked for or given in a turn that was stopped is withdrawn, and told so (UX-42).

    In any other turn the question stays open, and is shown again when somebody goes on.
    """
    asked, verdict = None, None
    kinds = (Kind.QUESTION.value, Kind.APPROVAL.value)  # it may have been asked long before its turn ended
    for entry in await session.ledger.read(session.session_id, kinds=kinds):
        if entry.payload.get("attemptId") != receipt.attempt_id:
            continue
        if entry.kind == Kind.QUESTION and entry.payload.get("permission"):
            asked, verdict = entry.payload, None
        elif entry.kind == Kind.APPROVAL:
            verdict = entry.payload.get("verdict")
    if asked is None or verdict not in (None, "approved"):
        return [judged]
    withdrawn = {
        "attemptId": receipt.attempt_id,
        "argumentDigest": asked.get("argumentDigest"),
        "verdict": "withdrawn",
        "by": None,
        "channel": "restart",
        "at": session.scheduler.now_ms(),
        **({"was": verdict} if verdict else {}),
    }
    return [Draft(Kind.APPROVAL, withdrawn), judged]


def _ended_with_its_owner(receipt: Receipt, replaced: frozenset[int]) -> list[Draft]:
    """A body that outlived its limit was recorded as alive; its owner's death ended it (TR-208)."""
    if receipt.origin_attempt_id is not None:
        return []  # a copy: what carries the call out belongs to the owner of the origin (TR-96)
    if (
        receipt.process is not None
        or recorded_executor(receipt) is not ExecutorState.ALIVE
        or receipt.epoch in replaced
    ):
        return []
    executor = {"state": after_its_body(receipt).value}
    return [Draft(Kind.PROCESS, {"attemptId": receipt.attempt_id, "executor": executor})]


def _timed(draft: Draft, boot_ms: int) -> Draft:
    """Say by when an ended executor had ended: commit windows of a far side count from there (TR-109)."""
    executor = draft.payload.get("executor")
    if executor is None or executor["state"] != ExecutorState.ENDED:
        return draft
    return Draft(draft.kind, {**draft.payload, "executor": {**executor, "endedBoot": boot_ms}})


def _judge(
    session: Session, receipt: Receipt, supervision: Supervision, *, tail_lost: bool, alive: bool
) -> Draft:
    now_ms = session.scheduler.now_ms()
    if receipt.state is State.DISPATCHED:
        if tail_lost and receipt.epoch == session.claim.previous_epoch:
            # Its start may have stood in the part of the ledger that is missing (TR-196).
            return _closed(
                receipt, Outcome("", State.UNKNOWN, "ledger_tail_lost"), now_ms, ExecutorState.NOT_PROVEN
            )
        if receipt.extra.get("imported"):
            # Its program wrote no start receipts, so that none is there says nothing (TR-51).
            return _closed(
                receipt, Outcome("", State.UNKNOWN, "no_evidence"), now_ms, ExecutorState.NOT_PROVEN
            )
        return _never_started(receipt)
    if receipt.process is not None:
        judged = supervision.judge(receipt, epoch=session.epoch)
        if judged.outcome is not None:
            return _closed(receipt, judged.outcome, now_ms, judged.executor, judged.process)
        return _closed(receipt, _owner_died(), now_ms, judged.executor, judged.process)
    # The owner was proven dead, and with it every thread of its own; a take-over proves nothing (TR-175).
    executor = ExecutorState.ALIVE if alive else after_its_body(receipt)
    return _closed(receipt, _owner_died(), now_ms, executor)


def _owner_died() -> Outcome:
    return Outcome("", state=State.UNKNOWN, reason="owner_died")


def _never_started(receipt: Receipt) -> Draft:
    payload = {
        "attemptId": receipt.attempt_id,
        "reason": "owner_died_before_start",
        "effectTrace": EffectTrace.NONE.value,
    }
    return Draft(Kind.NOT_STARTED, payload)


def _closed(
    receipt: Receipt,
    outcome: Outcome,
    now_ms: int,
    executor: ExecutorState,
    process: Mapping[str, Any] | None = None,
) -> Draft:
    payload: dict[str, Any] = {
        "attemptId": receipt.attempt_id,
        "state": outcome.state.value,
        "reason": outcome.reason,
        "errorKind": outcome.error_kind,
        "effectTrace": trace_of(receipt, outcome).value,
        "finishedAt": now_ms,
        "executor": {"state": executor.value},
    }
    if outcome.state is not State.UNKNOWN:
        payload["result"] = {"text": outcome.text, "isError": outcome.state is State.FAILED}
    if process:
        payload["process"] = {**(receipt.process or {}), **process}
    return Draft(Kind.CLOSED, payload)


def trace_of(receipt: Receipt, outcome: Outcome) -> EffectTrace:
    """What a call left in the world, as far as its end tells."""
    if outcome.effect_trace is not None:
        return outcome.effect_trace
    if receipt.effect_class is EffectClass.READ_ONLY:
        return EffectTrace.NONE
    return EffectTrace.DONE if outcome.state is State.SUCCEEDED else EffectTrace.POSSIBLE


def late_truth(session: Session, receipt: Receipt, supervision: Supervision) -> list[Draft]:
    """An exit record found after all settles a call that was left unknown (TR-43, TR-73)."""
    if receipt.process is None or receipt.reason == "child_open":
        return []
    end = late_end(receipt, supervision.judge(receipt, epoch=session.epoch))
    return [] if end is None else [Draft(Kind.LATE, {**end, "at": session.scheduler.now_ms()})]


def late_end(receipt: Receipt, judged: Judged) -> dict[str, Any] | None:
    """What the records of a command say of a call that was left unknown, if they settle it."""
    outcome = judged.outcome
    if receipt.reason == "child_open" or outcome is None or outcome is NEVER_RAN:
        return None
    if outcome.state is State.UNKNOWN:
        return None
    return {
        "attemptId": receipt.attempt_id,
        "settles": True,
        "state": outcome.state.value,
        "errorKind": outcome.error_kind,
        "effectTrace": trace_of(receipt, outcome).value,
        "result": {"text": outcome.text, "isError": outcome.state is State.FAILED},
        "source": "exit_record",
    }


def _stands_for_the_tail(session: Session) -> bool:
    return any(receipt.tool == "ledger" for receipt in session.book.open())


def _tail_call(session: Session) -> list[Draft]:
    """One open call of tool `ledger` stands for what the missing entries may have started (TR-196)."""
    attempt_id = session.scheduler.new_id("att")
    call = {
        "attemptId": attempt_id,
        "callId": session.scheduler.new_id("cal"),
        "turnId": "",
        "position": 0,
        "askedName": "ledger",
        "tool": "ledger",
        "class": EffectClass.UNKNOWN.value,
        "reach": ["*"],
    }
    closed = {
        "attemptId": attempt_id,
        "state": State.UNKNOWN.value,
        "reason": "ledger_tail_lost",
        "effectTrace": EffectTrace.POSSIBLE.value,
        "executor": {"state": ExecutorState.NOT_PROVEN.value},
        "finishedAt": session.scheduler.now_ms(),
    }
    notice = {"code": "tail_lost", "detail": session.claim.tail.detail}
    return [Draft(Kind.DISPATCHED, call), Draft(Kind.CLOSED, closed), Draft(Kind.NOTICE, notice)]


def _interrupted(latest: Latest, epoch: int) -> tuple[str | None, TurnStatus | None]:
    """The turn a dead owner left unfinished, and what becomes of it.

    A cancel that was recorded is not lost to the crash that followed it (TR-180).
    """
    if latest.status not in UNFINISHED or latest.epoch == epoch:
        return None, None
    cancelling = latest.status is TurnStatus.CANCELLING
    return latest.turn_id, TurnStatus.CANCELLED if cancelling else TurnStatus.INTERRUPTED


def _level_change(session: Session, recorded: str | None) -> list[Draft]:
    """The owner's level, where another one stands in the ledger: what is shown holds from now (TR-83)."""
    wanted = session.level.value
    if recorded in (None, wanted):
        return []
    return [Draft(Kind.BARRIER_SET, {"old": recorded, "new": wanted, "who": "owner", "channel": "settings"})]


def _interruption(turn_id: str, status: TurnStatus, silent: bool, judged: tuple[str, ...]) -> list[Draft]:
    turn = {"turnId": turn_id, "status": status.value, "cause": "runtime_restart", "silent": silent}
    return [
        Draft(Kind.TURN, turn),
        Draft(Kind.HAND_OFF, {"turnId": turn_id, "attempts": list(judged), "silent": silent}),
    ]
