"""Pure. The rules of the six actions: what a press is refused with, and what is offered.

Owns: rules 5 to 12 of TR-125 in their order, which presses are parked (TR-210), when a
code must be typed (UX-74), and the `actions` of a snapshot, which come from the same
rules (TR-142). Does not own: rules 1 to 4, which belong to the surface's server, and
rule 13, the durable record (`runtime.actions`).
Promises: recovery:way-out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from surefoot.core.canonical import digest_text
from surefoot.core.effects import judged_effect
from surefoot.core.lifecycle import Book
from surefoot.core.model import Action, EffectClass, ExecutorState, InspectionState, Overlay, Receipt

RESOLVING = frozenset({Action.CONFIRM, Action.DENY, Action.REJECT, Action.RELEASE})
NEEDS_INSPECTION = frozenset({Action.CONFIRM, Action.DENY, Action.REJECT, Action.RETRY})
PARKED_IN = "running"


@dataclass(frozen=True, slots=True)
class Press:
    """What a request says about itself, already compared with this runtime."""

    action: Action
    inspection_id: str | None = None
    session_matches: bool = True
    """`sessionPath` names this session (rule 5)."""
    epoch_current: bool = True
    revision: str = "current"
    """`current`, `stale` or `missing` (rule 8)."""
    bulk: bool = False
    """The request carries `items` (TR-132)."""
    not_a_person: str | None = None
    """Why this caller may not decide: `inside_tool_body`, `descendant_of_tool`, `assurance_too_low`,
    `code_missing`; None when it may (rule 10)."""


@dataclass(frozen=True, slots=True)
class Controls:
    """The state of this runtime: the controller's and the ownership's."""

    phase: str = "idle"
    """`idle`, `running`, `finishing`, `rotating` or `closed`."""
    ownership: str = "owned"
    """`owned`, `not_owner` or `lease_lost`."""
    at_border: bool = False
    """The turn is at a step border or only waits for a person: a resolution is recorded at once (TR-210)."""


@dataclass(frozen=True, slots=True)
class RetryFacts:
    """What the action `retry` needs beside the receipt (TR-133 to TR-136, TR-96, TR-18)."""

    enabled: bool = False
    attempts_left: bool = True
    at_origin: bool = True
    """False for a copy made by a fork."""
    tool_present: bool = True
    verifier_present: bool = False
    scope_unchanged: bool = True
    """Scope and reach are those of the receipt, and no class is stricter."""
    key_alive: bool = True
    absent_now: bool | None = None
    """What a look at this moment says: absent and fenced. None: judge by the stored inspection."""


@dataclass(frozen=True, slots=True)
class AttemptFacts:
    """The facts of one attempt that the rules look at. `known` False: no such attempt."""

    known: bool = True
    open: bool = True
    rejected: bool = False
    inspection_id: str | None = None
    """The newest inspection's id."""
    inspection_state: str | None = None
    overtaken: bool = False
    """A late result or its process's end came after the newest inspection (rule 11)."""
    verifiers_local: bool = True
    """Looking at it does not leave the machine (TR-127)."""
    effect_class: EffectClass = EffectClass.UNKNOWN
    executor: ExecutorState = ExecutorState.NOT_PROVEN
    retry: RetryFacts = field(default_factory=RetryFacts)


UNKNOWN_ATTEMPT = AttemptFacts(known=False, open=False)


def attempt_facts(
    receipt: Receipt,
    book: Book,
    *,
    executor: ExecutorState,
    retry: RetryFacts | None = None,
    verifiers_local: bool = True,
) -> AttemptFacts:
    """The facts of a receipt of `book`; what no receipt knows is given beside it."""
    inspection = receipt.inspection or {}
    return AttemptFacts(
        open=book.is_open(receipt.attempt_id),
        rejected=receipt.has(Overlay.REJECTED),
        inspection_id=inspection.get("id"),
        inspection_state=inspection.get("state"),
        overtaken=book.inspection_overtaken(receipt.attempt_id),
        verifiers_local=verifiers_local,
        effect_class=judged_effect(receipt).effect_class,
        executor=executor,
        retry=retry or RetryFacts(),
    )


@dataclass(frozen=True, slots=True)
class Admission:
    """`code` None admits the press; `parked` says that it waits for the next step border (TR-210)."""

    code: str | None
    rule: int | None = None
    parked: bool = False
    reason: str | None = None
    """Of `person_required`: why (UX-65)."""

    @property
    def status(self) -> int:
        """The HTTP status of a refusal by rules 5 to 12; 200 otherwise."""
        return 200 if self.code is None else 409


def admit(press: Press, controls: Controls, attempt: AttemptFacts) -> Admission:
    """Judge one press by rules 5 to 12 of TR-125; the first rule that refuses answers."""
    for number, rule in RULES:
        code = rule(press, controls, attempt)
        if code is not None:
            reason = press.not_a_person if code == "person_required" else None
            return Admission(code, number, reason=reason)
    waits = controls.phase == PARKED_IN and not controls.at_border
    return Admission(None, parked=waits and press.action in RESOLVING)


def offered(controls: Controls, attempt: AttemptFacts) -> list[dict[str, Any]]:
    """All six actions with the code a well-formed press by a person would be refused with (TR-142)."""
    shown = []
    for action in Action:
        answer = admit(Press(action, inspection_id=attempt.inspection_id), controls, attempt)
        shown.append({"action": action.value, "enabled": answer.code is None, "code": answer.code})
    return shown


# --- the rules ----------------------------------------------------------------------------


def _session(press: Press, controls: Controls, attempt: AttemptFacts) -> str | None:
    return None if press.session_matches else "session_mismatch"


def _phase(press: Press, controls: Controls, attempt: AttemptFacts) -> str | None:
    """While a turn runs the four resolutions are parked and a local look passes; all else needs `idle`."""
    if controls.phase == "idle":
        return None
    if controls.phase == PARKED_IN and not press.bulk:
        if press.action in RESOLVING:
            return None
        if press.action is Action.INSPECT and attempt.verifiers_local:
            return None
    return controls.phase


def _owner(press: Press, controls: Controls, attempt: AttemptFacts) -> str | None:
    return None if controls.ownership == "owned" else controls.ownership


def _identity(press: Press, controls: Controls, attempt: AttemptFacts) -> str | None:
    """A single press is judged by the attempt's own facts, so another call's news does not refuse it."""
    if not press.epoch_current:
        return "epoch_stale"
    strict = press.bulk or press.action is Action.RETRY
    if press.revision == "missing" or (strict and press.revision != "current"):
        return "revision_stale"
    return None


def _open(press: Press, controls: Controls, attempt: AttemptFacts) -> str | None:
    if not attempt.known:
        return "attempt_unknown"
    if not attempt.open or (press.action is Action.REJECT and attempt.rejected):
        return "already_resolved"
    return None


def _person(press: Press, controls: Controls, attempt: AttemptFacts) -> str | None:
    return None if press.not_a_person is None else "person_required"


def _inspection(press: Press, controls: Controls, attempt: AttemptFacts) -> str | None:
    if press.action not in NEEDS_INSPECTION:
        return None
    if not press.inspection_id or attempt.inspection_id is None:
        return "inspection_required"
    if press.inspection_id != attempt.inspection_id or attempt.overtaken:
        return "inspection_stale"
    return None


def _of_the_action(press: Press, controls: Controls, attempt: AttemptFacts) -> str | None:
    if press.action is Action.DENY and attempt.executor is ExecutorState.ALIVE:
        return "executor_alive"
    return retry_refusal(attempt) if press.action is Action.RETRY else None


RULES: tuple[tuple[int, Callable[[Press, Controls, AttemptFacts], str | None]], ...] = (
    (5, _session),
    (6, _phase),
    (7, _owner),
    (8, _identity),
    (9, _open),
    (10, _person),
    (11, _inspection),
    (12, _of_the_action),
)
"""Rules 5 to 12 of TR-125. Each answers a code, or None to let the next one look."""


def retry_refusal(attempt: AttemptFacts) -> str | None:
    """Why the action `retry` may not start a new attempt, or None (TR-133 to TR-135).

    A read needs only the first part: running it twice side by side is harmless, but
    its older self may still hold what it reads.
    """
    retry = attempt.retry
    for refused, code in (
        (not retry.enabled, "retry_disabled"),
        (not retry.at_origin, "retry_at_origin"),
        (not retry.attempts_left, "retry_attempts_spent"),
        (attempt.rejected, "retry_rejected"),
        (attempt.executor is not ExecutorState.ENDED, "retry_executor_alive"),
        (not retry.tool_present, "retry_tool_missing"),
    ):
        if refused:
            return code
    if attempt.effect_class is EffectClass.READ_ONLY:
        return None
    for refused, code in (
        (not retry.verifier_present, "retry_verifier_missing"),
        (not retry.scope_unchanged, "retry_scope_changed"),
        (not retry.key_alive, "retry_key_expired"),
        (not _absent(attempt), "retry_effect_not_absent"),
    ):
        if refused:
            return code
    return None


def _absent(attempt: AttemptFacts) -> bool:
    if attempt.retry.absent_now is not None:
        return attempt.retry.absent_now
    return attempt.inspection_state == InspectionState.ABSENT_FENCED


KEY_MARGIN_MS = 3_600_000


def key_alive(*, lifetime_ms: int, age_ms: int | None, clock_behind: bool = False) -> bool:
    """Whether the far side still knows a key (TR-18): its lifetime less a margin of 10 %, at most 1 h.

    `age_ms` is boot time within one boot, else the difference of two `Date` headers of the
    far side; None when neither can tell. `clock_behind` says that the wall clock is
    earlier than a time in the ledger. In doubt the key counts as expired.
    """
    if age_ms is None or age_ms < 0 or clock_behind:
        return False
    return age_ms < lifetime_ms - min(lifetime_ms // 10, KEY_MARGIN_MS)


# --- codes to be typed --------------------------------------------------------------------


def code_of(attempt_id: str, inspection_id: str | None) -> str:
    """The two characters that a decision against the evidence must repeat; new with each inspection (UX-74)."""
    digest = digest_text(f"{attempt_id}/{inspection_id or ''}")[7:]
    letters = "23456789abcdefghjkmnpqrstuvwxyz"
    return "".join(letters[int(digest[place : place + 4], 16) % len(letters)] for place in (0, 4))


def costs_code(
    action: Action, effect_class: EffectClass, inspection: Mapping[str, Any], executor: ExecutorState
) -> bool:
    """Whether a decision goes against or beyond the evidence, so that two characters must be typed (UX-74)."""
    if action is Action.RELEASE and executor is not ExecutorState.ENDED:
        return True  # lifting the fence stops nothing that still runs, whatever its class (TR-124)
    if effect_class.retry_safe:
        return False
    return action is Action.RELEASE or _beyond_evidence(action, inspection)


def carries(inspection: Mapping[str, Any]) -> bool:
    """Whether proof or strong evidence says that it happened."""
    signs = inspection.get("state") in (InspectionState.PRESENT, InspectionState.POSTCONDITION_SATISFIED)
    return signs and inspection.get("grade") in ("proof", "strong")


def _beyond_evidence(action: Action, inspection: Mapping[str, Any]) -> bool:
    if action is Action.CONFIRM:
        return not carries(inspection)
    return action is Action.DENY and inspection.get("state") != InspectionState.ABSENT_FENCED
