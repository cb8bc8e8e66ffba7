"""Pure. The ladder for failures that may pass by themselves (TR-159 to TR-164).

Owns: whether a settled attempt is tried again, and after how long. Does not own: waiting
and trying (`runtime.batches`), what an attempt may overwrite (`recovery`).

How a machine gets here: a far side answered "busy" to a read, or refused the
connection of a write that converges; nobody has to be asked about either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from surefoot.core.effects import judged_effect
from surefoot.core.model import EffectTrace, ExecutorState, Receipt, State

STEPS_SECONDS = (2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
CAP_SECONDS = 180.0
TRANSIENT_STATUSES = frozenset({408, 425, 429, 502, 503, 504})
FINAL_KINDS = frozenset(
    {
        "permission",
        "sandbox",
        "arguments_invalid",
        "arguments_missing",
        "not_found",
        "own_rate_limit",
        "cancelled",
    }
)
"""Error kinds that end at the first attempt, whatever flag stands beside them (TR-163)."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Retries that are left for this call and this turn (TR-164)."""

    of_call: int = 7
    of_turn: int = 7


def climbs(
    attempts: Sequence[Receipt],
    *,
    transient: bool,
    executor: ExecutorState,
    budget: Budget,
    retry_after_seconds: float | None = None,
) -> float | None:
    """Seconds to wait before the next try of a call, or None when it ends here.

    `attempts` are all attempts of the call, oldest first; `transient` is a flag of the tool's own error or a
    known status, never a word in a text (EC-53).
    """
    if not attempts or budget.of_call <= 0 or budget.of_turn <= 0:
        return None
    last = attempts[-1]
    tries = len(attempts)
    if tries > len(STEPS_SECONDS) or not _may_climb(attempts, last, transient, executor):
        return None
    step = STEPS_SECONDS[tries - 1]
    if retry_after_seconds is not None and retry_after_seconds > step:
        return retry_after_seconds if retry_after_seconds <= CAP_SECONDS else None
    return step


def _may_climb(attempts: Sequence[Receipt], last: Receipt, transient: bool, executor: ExecutorState) -> bool:
    """TR-160, TR-161: the class decides, and what an earlier attempt may have left outlives a later `none`."""
    safe = judged_effect(last).effect_class.retry_safe
    if last.state is State.UNKNOWN:
        return safe and executor is ExecutorState.ENDED and last.reason != "cancelled"
    if last.state is not State.FAILED or not transient or last.error_kind in FINAL_KINDS:
        return False
    return safe or all(_left_nothing(attempt) for attempt in attempts)


def _left_nothing(attempt: Receipt) -> bool:
    return attempt.state in (State.FAILED, State.NOT_STARTED) and attempt.effect_trace is EffectTrace.NONE
