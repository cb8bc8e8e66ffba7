"""What a stop leaves running is named by a list, and the count of `make orphans` notices when it is not (UX-146)."""

from __future__ import annotations

import random
from pathlib import Path

from surefoot.testing.emulator.process import EmulatorProcess
from surefoot.testing.orphans import (
    COMMANDS,
    ENDINGS,
    Escape,
    Found,
    Place,
    Totals,
    choose,
    compare,
    script_of,
    try_once,
)


class Watched(Place):
    """A place that also holds a list which names nothing against what it holds at the end."""

    blind: Found

    def end(self, agent: int) -> None:
        mute = Mute(self)
        self.blind = Found()
        compare(mute, self.living(agent), agent, self.blind)
        super().end(agent)


class Mute(Place):
    """The same place; its list names nothing."""

    def __init__(self, place: Place) -> None:
        self.root, self.project, self.home, self.environ = (
            place.root,
            place.project,
            place.home,
            place.environ,
        )

    def listed(self) -> dict[str, object]:
        return {"calls": [], "background": []}


def test_ux_146_what_left_its_session_and_lost_its_agent_is_named_and_a_mute_list_is_noticed(
    tmp_path: Path,
) -> None:
    escape = Escape("session of its own", False, "terminate", whole_group=True, delay_seconds=0.0)
    with EmulatorProcess(tmp_path) as emulator:
        emulator.script(script_of(escape), by="history")
        place = Watched(tmp_path / "place", emulator.base_url("compat"))
        found = try_once(place, escape, after_seconds=0.0)
    assert found.problem is None and found.left >= 1
    assert not found.unnamed
    assert place.blind.unnamed


def test_ux_146_the_count_tells_runs_by_their_ending_and_what_no_list_named() -> None:
    chance, totals = random.Random(7), Totals()
    chosen = [choose(chance) for _ in range(400)]
    assert {one.command for one in chosen} == set(COMMANDS) and {one.ending for one in chosen} == set(ENDINGS)
    totals.take(Escape("plain", False, "stop", False, 0.0), Found(left=2, unnamed=["12 sleep"]))
    totals.take(Escape("plain", False, "kill", False, 0.0), Found(left=0, problem="TimeoutError: no"))
    line = totals.line(7)
    assert "runs 2" in line and "stop 1, terminate 0" in line and "kill 0" in line
    assert "processes left 2 · named by no list 1 · runs without an answer 1 · seed 7" in line
