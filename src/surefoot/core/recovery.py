"""Pure. The recovery table, the fence, and the barrier's verdict on one write.

Owns: `decide` (TR-112, as data), when a write may be run again by itself (TR-114),
which calls fence (TR-79), and whether a call may start beside them (TR-80 to TR-92).
Does not own: the rules of the six actions (`admission`), carrying anything out
(`runtime.reconcile`, `runtime.barrier`), the words (`results`).
Promises: recovery:total, recovery:never-guess, recovery:way-out.

`judge_write` looks at the open calls only, however many settled ones there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from surefoot.core.canonical import short_id
from surefoot.core.effects import EVERYTHING, Effect, judged_effect, overlaps, wider
from surefoot.core.guards import Guard
from surefoot.core.lifecycle import Book
from surefoot.core.model import (
    BarrierLevel,
    Decision,
    EffectClass,
    ExecutorState,
    InspectionState,
    Overlay,
    Receipt,
    State,
    Word,
)

CRASH_ATTEMPTS = 2
YOUNG_MS = 120_000


# --- the decision table -------------------------------------------------------------------


class Standing(Word):
    """How an unknown attempt stands: open, left open by a person, or open no longer (TR-42)."""

    OPEN = "open"
    REJECTED = "rejected"
    CLOSED = "closed"


class Intents(Word):
    """What the write intents of a call say now (TR-114)."""

    NONE = "none"
    UNDISTURBED = "undisturbed"
    """Every intent is satisfied or unchanged, and no later started write overlaps."""
    DISTURBED = "disturbed"
    """Later work stands where the call would write."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything the table looks at, for one attempt whose owner is proven dead or gone."""

    state: State
    standing: Standing = Standing.OPEN
    interaction: bool = False
    answered: bool = False
    """A stored answer of a person exists."""
    effect_class: EffectClass = EffectClass.UNKNOWN
    """The stricter of the stored and the current declaration (EC-7)."""
    executor: ExecutorState = ExecutorState.NOT_PROVEN
    open_child: bool = False
    """It is unknown because a call it started is open (`child_open`)."""
    attempts_left: bool = True
    """Fewer crash attempts than allowed were counted for its key (TR-56)."""
    young: bool = False
    """It started less than 120 s ago, in boot time of this boot (TR-114)."""
    intents: Intents = Intents.NONE
    later_write: bool = False
    """A later started write of this ledger overlaps its reach (TR-114)."""
    inspection: InspectionState | None = None
    proof: bool = False
    """The inspection's grade is `proof`."""
    tool_fault: str | None = None
    """Why the tool cannot be used any more: `tool_missing`, `schema_unusable`; None when it can."""
    retry_enabled: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One row of TR-112. `how` says how a machine gets here."""

    number: str
    name: str
    applies: Callable[[Facts], bool]
    decision: Decision
    how: str


class Decided(NamedTuple):
    """What the table answers: the decision, the row that gave it, and why (a stable word)."""

    decision: Decision
    row: str
    reason: str


def _settled(facts: Facts) -> bool:
    # `dispatched` is a call of a dead owner that never started; reconciliation writes that down.
    if facts.state not in (State.STARTED, State.UNKNOWN):
        return True
    return facts.state is State.UNKNOWN and facts.standing is not Standing.OPEN


def _safe_class(facts: Facts) -> bool:
    return facts.effect_class.retry_safe


def _reads_again(facts: Facts) -> bool:
    return (
        facts.effect_class is EffectClass.READ_ONLY
        and facts.attempts_left
        and facts.executor is not ExecutorState.ALIVE
    )


def _writes_again(facts: Facts) -> bool:
    return (
        facts.effect_class is EffectClass.IDEMPOTENT_WRITE
        and facts.attempts_left
        and facts.executor is ExecutorState.ENDED
        and may_rerun_write(facts)
    )


def may_rerun_write(facts: Facts) -> bool:
    """Whether repeating a converging write would overwrite nothing that came later (TR-114)."""
    if facts.later_write or facts.intents is Intents.DISTURBED:
        return False
    return facts.young or facts.intents is Intents.UNDISTURBED


TABLE: tuple[Row, ...] = (
    Row(
        "1",
        "settled",
        _settled,
        Decision.SKIP,
        "It ended, never started, was resolved, or a person left it open: its stored result stands.",
    ),
    Row(
        "2",
        "tool_gone",
        lambda facts: facts.tool_fault is not None,
        Decision.FAIL,
        "The project was updated between the crash and now, and the tool or its declaration went away.",
    ),
    Row(
        "3",
        "answered",
        lambda facts: facts.interaction and facts.answered,
        Decision.SKIP,
        "A person answered, the answer became durable, and the process died before the model saw it.",
    ),
    Row(
        "4",
        "unanswered",
        lambda facts: facts.interaction,
        Decision.RETRY,
        "The process died while a question stood on the screen.",
    ),
    Row(
        "5",
        "proven",
        lambda facts: facts.inspection is InspectionState.PRESENT and facts.proof,
        Decision.SKIP,
        "A verifier found the effect with proof, and the process died before that closed the call.",
    ),
    Row(
        "5a",
        "child_open",
        lambda facts: facts.open_child,
        Decision.ASK_USER,
        "A call that this call had started is open; its own end depends on that one.",
    ),
    Row(
        "6",
        "read_again",
        _reads_again,
        Decision.RETRY,
        "The process died during a read; reading again changes nothing.",
    ),
    Row(
        "7",
        "converge",
        _writes_again,
        Decision.RETRY,
        "The process died during a write that converges; its executor is gone and nothing changed since.",
    ),
    Row(
        "8",
        "safe_but_held",
        _safe_class,
        Decision.ASK_USER,
        "It killed its process twice, its executor may live, or later work stands where it would write.",
    ),
    Row(
        "9",
        "look_first",
        lambda facts: facts.inspection is None,
        Decision.VERIFY,
        "The process died during a write that must not be repeated, and nobody has looked yet.",
    ),
    Row(
        "10",
        "absent_fenced",
        lambda facts: (
            facts.inspection is InspectionState.ABSENT_FENCED and facts.retry_enabled and facts.attempts_left
        ),
        Decision.RETRY,
        "A verifier proved that it is absent and can no longer come, and the owner allows the retry action.",
    ),
    Row(
        "11",
        "person",
        lambda facts: True,
        Decision.ASK_USER,
        "Somebody looked and nothing decides it: signs without proof, or no verifier at all.",
    ),
)
"""TR-112. The first row that applies holds; the last applies to everything, so one always does."""

EXPLICIT_ONLY = frozenset({"10"})
"""Rows whose `RETRY` is never carried out by a resume, only by the action of a person."""


def decide(facts: Facts) -> Decided:
    """The decision about one attempt. Total: exactly one row answers, the first that applies."""
    row = next(row for row in TABLE if row.applies(facts))
    reason = facts.tool_fault if row.decision is Decision.FAIL else None
    return Decided(row.decision, row.number, reason or row.name)


@dataclass(frozen=True, slots=True)
class Seen:
    """What is seen now about one attempt and stands in no receipt; the runtime gathers it."""

    executor: ExecutorState = ExecutorState.NOT_PROVEN
    answered: bool = False
    boot_id: str | None = None
    now_boot_ms: int | None = None
    intents: Intents = Intents.NONE
    later_write: bool = False
    tool_fault: str | None = None
    retry_enabled: bool = False
    crash_attempts: int = CRASH_ATTEMPTS
    young_ms: int = YOUNG_MS


def facts_of(receipt: Receipt, book: Book, seen: Seen) -> Facts:
    """The facts of the table for one receipt of `book`."""
    effect = judged_effect(receipt)
    inspection = receipt.inspection or {}
    is_open = book.is_open(receipt.attempt_id) or receipt.state is State.STARTED
    standing = Standing.OPEN if is_open else Standing.CLOSED
    if is_open and receipt.has(Overlay.REJECTED):
        standing = Standing.REJECTED
    return Facts(
        state=receipt.state,
        standing=standing,
        interaction=effect.interaction,
        answered=seen.answered,
        effect_class=effect.effect_class,
        executor=seen.executor,
        open_child=receipt.reason == "child_open" and is_open,
        attempts_left=crash_count(receipt, book) < seen.crash_attempts,
        young=_young(receipt, seen),
        intents=seen.intents,
        later_write=seen.later_write,
        inspection=_inspection_state(inspection.get("state")),
        proof=inspection.get("grade") == "proof",
        tool_fault=seen.tool_fault,
        retry_enabled=seen.retry_enabled,
    )


def _inspection_state(word: Any) -> InspectionState | None:
    if word is None:
        return None
    try:
        return InspectionState(word)
    except ValueError:
        return InspectionState.UNKNOWN  # a newer version's word: it was looked at, no more is known


def _young(receipt: Receipt, seen: Seen) -> bool:
    """Age is counted in boot time, and only within the boot in which the call started."""
    boot_id = (receipt.owner or {}).get("bootId")
    if receipt.started_boot is None or seen.now_boot_ms is None or not boot_id or boot_id != seen.boot_id:
        return False
    return 0 <= seen.now_boot_ms - receipt.started_boot < seen.young_ms


def recorded_executor(receipt: Receipt) -> ExecutorState:
    """What was recorded of whatever carries it out (TR-208); no record, or a newer version's word, proves nothing."""
    word = (receipt.executor or {}).get("state")
    return ExecutorState(word) if word in tuple(ExecutorState) else ExecutorState.NOT_PROVEN


def after_its_body(receipt: Receipt) -> ExecutorState:
    """What is proven once the body is over, or the process it ran in: nothing of processes it may have started."""
    return ExecutorState.NOT_PROVEN if "starts_processes" in receipt.notes else ExecutorState.ENDED


def crash_count(receipt: Receipt, book: Book) -> int:
    """How many attempts with the key of this one ended in their owner's death (TR-56).

    A retry by a person is another call with the same key, so the chain of superseded
    attempts is followed as well.
    """
    counted: dict[str, Receipt] = {}
    pending = [receipt]
    while pending:
        one = pending.pop()
        if one.attempt_id in counted:
            continue
        counted[one.attempt_id] = one
        pending += book.attempts(one.call_id)
        older = book.get(one.supersedes or "")
        pending += [older] if older is not None else []
    return sum(one.reason == "owner_died" for one in counted.values())


def later_write(receipt: Receipt, others: Iterable[Receipt]) -> bool:
    """Whether one of `others`, of the same session, is a later started write over the same reach (TR-114)."""
    mine = judged_effect(receipt).reach
    since = receipt.started_position or 0
    return any(
        other.started_position is not None
        and other.started_position > since
        and other.superseded_by is None
        and other.supersedes != receipt.attempt_id
        and judged_effect(other).effect_class is not EffectClass.READ_ONLY
        and overlaps(mine, judged_effect(other).reach)
        for other in others
    )


# --- the fence ----------------------------------------------------------------------------


def fences(receipt: Receipt) -> bool:
    """Whether this open call holds writes back: no question, and not a read by its stricter class (TR-79)."""
    effect = judged_effect(receipt)
    return effect.effect_class is not EffectClass.READ_ONLY and not effect.interaction


def fencing(open_receipts: Iterable[Receipt]) -> list[Receipt]:
    """The open calls that fence, oldest first."""
    return [receipt for receipt in open_receipts if fences(receipt)]


def fence_reach(open_receipts: Iterable[Receipt]) -> tuple[str, ...]:
    """The fence of a session: the union of the reaches of its fencing calls (TR-79)."""
    return wider(*(judged_effect(receipt).reach for receipt in fencing(open_receipts)))


# --- the barrier's verdict ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """A call as the barrier sees it: resolved, validated, classified."""

    tool: str
    argument_digest: str
    effect: Effect
    supersedes: str | None = None
    """The older attempt this one takes over from; it does not fence its own successor (TR-117)."""
    recovery: bool = False
    """Started by recovery (a safe retry or the action `retry`): no guard applies, the fence does.
    Open calls inspected as `absent_fenced` do not hold it back (TR-136)."""
    satisfied: frozenset[str] = frozenset()
    """Open attempts whose write intents are all satisfied now, looked up by the runtime (TR-92)."""
    undelivered: str | None = None
    """A settled write of the same tool, digest and scope that its foreign reader never got (TR-202)."""
    reach_kinds: frozenset[str] = frozenset()
    """Kinds of reach beside the built-in ones (EC-11)."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call may not start: a code of TR-19 and JSON-ready facts for the text.

    The names of the facts are none of a receipt's, so they may stand beside its fields.
    """

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict)


def judge_write(
    asked: Asked,
    *,
    level: BarrierLevel,
    fencing: Sequence[Receipt],
    guard: Guard | None = None,
    batch_stopped_by: str | None = None,
) -> Refusal | None:
    """Whether this call may start now. The first rule that refuses answers, in this order:
    `answered_from_receipt`, `postcondition_satisfied`, `fenced`, `confirmed_effect` or `look_first`,
    `batch_dependency`. Costs one look at each fencing call."""
    if _passes(asked) or level is BarrierLevel.OFF:
        return None
    if asked.undelivered is not None and not asked.recovery:
        return Refusal("answered_from_receipt", {"answeredBy": asked.undelivered})
    holding = _holding(asked, level, fencing)
    if holding:
        return _held(asked, level, holding, fencing)
    if guard is not None and not asked.recovery and level is not BarrierLevel.ADVISE:
        return Refusal(guard.code, {"guardedBy": guard.attempt_id})
    if batch_stopped_by is not None and not asked.recovery:
        return Refusal("batch_dependency", {"stoppedBy": batch_stopped_by})
    return None


def _passes(asked: Asked) -> bool:
    """Reads, questions and the `recovery` tool pass at every level (TR-81); a check is no reader."""
    return asked.effect.interaction or asked.effect.effect_class is EffectClass.READ_ONLY


def advised(asked: Asked, fencing: Sequence[Receipt]) -> list[Receipt]:
    """The fencing calls that would hold this one back at level `reach`: what `advise` tells (TR-80)."""
    return [] if _passes(asked) else _holding(asked, BarrierLevel.REACH, fencing)


def _holding(asked: Asked, level: BarrierLevel, fencing: Sequence[Receipt]) -> list[Receipt]:
    if level is BarrierLevel.ADVISE:
        return []
    return [receipt for receipt in fencing if not _excepted(asked, receipt) and _meets(asked, level, receipt)]


def _excepted(asked: Asked, receipt: Receipt) -> bool:
    if asked.supersedes is None:
        return False
    if receipt.attempt_id == asked.supersedes:
        return True
    return asked.recovery and (receipt.inspection or {}).get("state") == InspectionState.ABSENT_FENCED


def _meets(asked: Asked, level: BarrierLevel, receipt: Receipt) -> bool:
    if level is BarrierLevel.SESSION:
        return True
    if level is BarrierLevel.ACTION:
        return _same_action(asked, receipt)
    return overlaps(asked.effect.reach, judged_effect(receipt).reach, kinds=asked.reach_kinds)


def _same_action(asked: Asked, receipt: Receipt) -> bool:
    return receipt.tool == asked.tool and receipt.argument_digest == asked.argument_digest


def _held(
    asked: Asked, level: BarrierLevel, holding: Sequence[Receipt], fencing: Sequence[Receipt]
) -> Refusal:
    """TR-92: an identical write whose intents are all satisfied is answered; otherwise the fence answers."""
    for receipt in holding:
        if _same_action(asked, receipt) and receipt.attempt_id in asked.satisfied:
            return Refusal("postcondition_satisfied", {"satisfiedBy": receipt.attempt_id})
    first = holding[0]
    return Refusal(
        "fenced",
        {
            "fencedBy": first.attempt_id,
            "fencedShort": short_id(first.attempt_id, [receipt.attempt_id for receipt in fencing]),
            "fencedTool": first.tool or first.asked_name or "a call",
            "fencedSince": first.started_at,
            "fencedReach": list(judged_effect(first).reach) or [EVERYTHING],
            "fencedOthers": len(holding) - 1,
            "fencedLevel": level.value,
        },
    )
