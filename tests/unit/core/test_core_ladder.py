"""The ladder for failures obeys the class of what failed."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from surefoot.core.ladder import FINAL_KINDS, STEPS_SECONDS, Budget, climbs
from surefoot.core.model import EffectClass, EffectTrace, ExecutorState, Receipt, State

SAFE = (EffectClass.READ_ONLY, EffectClass.IDEMPOTENT_WRITE)


def attempt(
    effect_class: EffectClass,
    state: State = State.FAILED,
    trace: EffectTrace = EffectTrace.POSSIBLE,
    **more: Any,
) -> Receipt:
    return Receipt(
        "ses", "trn", "cal", "att", 0, effect_class=effect_class, state=state, effect_trace=trace, **more
    )


def step(*attempts: Receipt, transient: bool = True, **more: Any) -> float | None:
    given = {"executor": ExecutorState.ENDED, "budget": Budget(), **more}
    return climbs(attempts, transient=transient, **given)


def test_tr_159_a_transient_failure_is_tried_after_fixed_steps_and_then_no_more() -> None:
    waits = [step(*[attempt(EffectClass.READ_ONLY)] * tries) for tries in range(1, 9)]
    assert waits == [2, 5, 10, 20, 40, 80, 160, None]
    assert len(STEPS_SECONDS) + 1 == 8


@pytest.mark.parametrize("effect_class", EffectClass)
@pytest.mark.parametrize("trace", EffectTrace)
def test_tr_160_unsafe_classes_climb_only_when_no_attempt_left_anything(
    effect_class: EffectClass, trace: EffectTrace
) -> None:
    climbing = step(attempt(effect_class, trace=trace)) is not None
    assert climbing is (effect_class in SAFE or trace is EffectTrace.NONE)


def test_tr_160_an_earlier_possible_outlives_a_later_none() -> None:
    first = attempt(EffectClass.NON_IDEMPOTENT, trace=EffectTrace.POSSIBLE)
    second = attempt(EffectClass.NON_IDEMPOTENT, trace=EffectTrace.NONE)
    assert step(first, second) is None
    unknown = attempt(EffectClass.NON_IDEMPOTENT, State.UNKNOWN)
    assert step(unknown, second) is None


@pytest.mark.parametrize(("effect_class", "executor"), list(itertools.product(EffectClass, ExecutorState)))
def test_tr_161_an_unknown_attempt_climbs_only_when_safe_and_its_executor_ended(
    effect_class: EffectClass, executor: ExecutorState
) -> None:
    unknown = attempt(effect_class, State.UNKNOWN, reason="time_limit")
    climbing = step(unknown, transient=False, executor=executor) is not None
    assert climbing is (effect_class in SAFE and executor is ExecutorState.ENDED)


def test_tr_163_what_cannot_pass_by_itself_ends_at_the_first_attempt() -> None:
    assert step(attempt(EffectClass.READ_ONLY), transient=False) is None
    for kind in FINAL_KINDS:
        assert step(attempt(EffectClass.READ_ONLY, error_kind=kind)) is None
    assert step(attempt(EffectClass.READ_ONLY, State.UNKNOWN, reason="cancelled")) is None
    assert step(attempt(EffectClass.READ_ONLY, State.NOT_STARTED)) is None
    assert step(attempt(EffectClass.READ_ONLY, State.SUCCEEDED)) is None


def test_tr_164_budgets_end_the_climb_and_a_longer_word_of_the_server_replaces_the_step() -> None:
    one = attempt(EffectClass.READ_ONLY)
    assert step(one, budget=Budget(of_call=0)) is None
    assert step(one, budget=Budget(of_turn=0)) is None
    assert step(one, retry_after_seconds=30) == 30
    assert step(one, retry_after_seconds=1) == 2
    assert step(one, retry_after_seconds=181) is None
