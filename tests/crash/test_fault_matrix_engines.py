"""TR-187: what holds after a death holds on every engine: die at every seam, open again, compare with the world."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from surefoot.testing.kills import CASES, Equipment, Plan, Site, run_trial
from surefoot.testing.strikes import ENGINES

CHOSEN = [case for case in CASES if case.name in ("sink-pay", "file-append", "shell-append")]


@pytest.fixture(scope="module", params=sorted(ENGINES))
def equipment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Equipment]:
    with Equipment.at(tmp_path_factory.mktemp("equipment"), request.param) as found:
        yield found


@pytest.mark.promise("ledger:engines-agree")
@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.name)
def test_tr_187_every_engine_is_honest_after_a_death_at_every_write(
    equipment: Equipment, tmp_path: Path, case: object
) -> None:
    (chosen,) = (one for one in CHOSEN if one is case)
    for number in itertools.count(1):
        site = Site(tmp_path / str(number), equipment)
        trial = run_trial(chosen, site, Plan(kill_at=number, only=("append", "claim", "tool")))
        assert trial.findings.all() == [], (number, trial.first.fatal)
        if not trial.first.killed:
            break
    assert number > 8, "a run passes that many seams"
