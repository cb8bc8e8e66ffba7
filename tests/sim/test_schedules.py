"""Two thousand random schedules hold every law; a law that is broken on purpose is noticed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from surefoot.core import recovery
from surefoot.runtime import barrier
from surefoot.testing import schedules
from surefoot.testing.schedules import play_seed

SEEDS = 2000
SLICES = 20


@pytest.mark.promise("receipt:exact")
@pytest.mark.promise("recovery:never-guess")
@pytest.mark.promise("recovery:no-self-start")
@pytest.mark.promise("recovery:way-out")
@pytest.mark.promise("barrier:intent-first")
@pytest.mark.parametrize("part", range(SLICES))
def test_tr_52_tr_82_tr_87_tr_158_tr_176_tr_182_random_schedules_hold_every_law(part: int) -> None:
    size = SEEDS // SLICES
    faults = [
        f"seed {seed}: {fault.kind}: {fault.text}"
        for seed in range(part * size, (part + 1) * size)
        for fault in play_seed(seed).faults
    ]
    assert not faults, "\n".join(faults)


def test_the_schedules_reach_what_they_are_for() -> None:
    met: Counter[str] = Counter()
    for seed in range(150):
        met.update(play_seed(seed).met)
    for name in ("killed", "taken over", "held", "stop", "unknown owner_died", "unknown time_limit"):
        assert met[name] >= 5, name
    for name in ("not_started fenced", "not_started receipt_not_durable", "failed never_ran", "release ok"):
        assert met[name] >= 1, name


def test_the_same_seed_tells_the_same_story() -> None:
    for seed in (3, 17, 40):
        assert play_seed(seed).story == play_seed(seed).story


def _kinds(seeds: int) -> set[str]:
    return {fault.kind for seed in range(seeds) for fault in play_seed(seed).faults}


def test_a_barrier_without_a_fence_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "judge_write", lambda *_, **__: None)
    assert "broken rule" in _kinds(40)


def test_a_body_entered_before_its_receipt_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    start = barrier.Barrier._start

    async def eager(self: Any, looked: Any, prepared: Any, permit: Any, batch: Any) -> Any:
        tool = looked.tool
        attempt = self._attempt(
            barrier.Live(looked, self._receipt(looked), barrier.Entrance(), None), prepared
        )
        await tool.body(attempt, looked.arguments.value)
        return await start(self, looked, prepared, permit, batch)

    monkeypatch.setattr(barrier.Barrier, "_start", eager)
    with pytest.raises(BaseException):  # noqa: B017 - a law, or a tool's own fault that nothing caught
        assert not _kinds(20)
    assert schedules.KINDS[0] == "double effect"


def test_a_runtime_that_says_failed_for_a_lost_owner_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from surefoot.core.model import EffectTrace, State
    from surefoot.runtime import reconcile
    from surefoot.runtime.tools import Outcome

    wrong = Outcome("it failed", State.FAILED, effect_trace=EffectTrace.NONE)
    monkeypatch.setattr(reconcile, "_owner_died", lambda: wrong)
    assert "false word" in _kinds(80)
