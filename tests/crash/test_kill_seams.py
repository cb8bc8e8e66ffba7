"""Death by SIGKILL at every seam, for every class of effect and every kind of tool, and the truth afterwards.

The child is killed at seam n = 1, 2, 3 … until none fires; each time a fresh process opens
the session, looks, and another one continues it without a person while the model asks again
for whatever is unknown.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from surefoot.testing.faults import fault_point
from surefoot.testing.kills import CASES, UNSAFE, Case, Plan, Site, Trial, run_trial

SEAMS = ("append", "tool", "claim", "renew", "put_blob", "release")
"""Reads of the ledger change nothing on disk, so dying around one is dying at its neighbour."""
BY_NAME = {case.name: case for case in CASES}


def until_none_fires(case: Case, new_site: Callable[[], Site], *, verify: bool) -> list[Trial]:
    """A trial for each seam; the last one was not killed."""
    trials = []
    for number in itertools.count(1):
        trial = run_trial(case, new_site(), Plan(kill_at=number, verify=verify, only=SEAMS))
        assert trial.findings.all() == [], (case.name, trial.first.fatal)
        if not trial.first.killed:
            return trials
        trials.append(trial)
    raise AssertionError("never reached")


@pytest.mark.promise("barrier:intent-first", "receipt:exact", "recovery:never-guess")
@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_tr_186_no_seam_makes_a_double_effect_a_false_word_or_a_lost_call(
    name: str, new_site: Callable[[], Site]
) -> None:
    case = BY_NAME[name]
    trials = until_none_fires(case, new_site, verify=False)
    points = [fault_point(str(trial.first.fatal)) for trial in trials]
    wanted = {"K0", "K2", "K5", "K7"} | (
        {"K3", "K4"} if name in ("sink-put", "sink-pay", "sink-send") else set()
    )
    assert wanted <= set(points)
    for point, trial in zip(points, trials, strict=True):
        assert (trial.opened is not None and trial.continued is not None) or point == "other"
        if point in ("K0", "K2", "K3", "K4", "K5", "K7"):
            judge_point(case, point, trial)


def judge_point(case: Case, point: str, trial: Trial) -> None:
    """What the first reopening says of the call, by the point of its death."""
    assert trial.opened is not None and trial.continued is not None
    (receipt,) = trial.opened.report["receipts"]
    state = receipt["state"]
    if point == "K0":
        assert (state, receipt["reason"]) == ("not_started", "owner_died_before_start")
    elif point == "K7":
        assert state == "succeeded"
    elif case.supervised and point == "K2":
        assert (state, receipt["reason"]) == ("failed", "never_ran")
    elif case.supervised:
        assert state == "succeeded"
    else:
        assert (state, receipt["reason"]) == ("unknown", "owner_died")
        continued(case, trial)


def continued(case: Case, trial: Trial) -> None:
    """An unknown call is run again only where its class allows it, and a repetition by the model is refused."""
    assert trial.continued is not None
    receipts = trial.continued.report["receipts"]
    first = receipts[0]
    again = [one for one in receipts if one["callId"] == first["callId"]][1:]
    repeats = [one for one in receipts if one["callId"] != first["callId"]]
    if case.effect_class in UNSAFE:
        assert again == [] and first["state"] == "unknown"
        wanted = "postcondition_satisfied" if file_is_as_wanted(case, first) else "fenced"
        assert [one["reason"] for one in repeats] == [wanted]
    else:
        assert [one["state"] for one in again] == ["succeeded"]
        assert first["supersededBy"] == again[0]["attemptId"]


def file_is_as_wanted(case: Case, receipt: dict[str, Any]) -> bool:
    """A file tool's call whose every file is as it wanted it answers a repetition by itself (TR-92)."""
    looked = (receipt["inspection"] or {}).get("state")
    return case.tool == "write" and looked == "postcondition_satisfied"


@pytest.mark.promise("recovery:no-self-start")
@pytest.mark.parametrize("name", ["sink-pay", "sink-put", "file-append", "shell-script"])
def test_tr_186_f9_recovery_killed_at_every_seam_gives_the_same_plan(
    name: str, new_site: Callable[[], Site]
) -> None:
    case = BY_NAME[name]
    fatal = "append[attempt.closed].before"
    plans, deaths = [], []
    for number in itertools.count(0):
        site = new_site()
        site.script({"calls": [case.call(site)]})
        first = site.run(prompts=("go",), kill_at=1, only=(fatal,))
        assert first.fatal == fatal
        if case.supervised:
            site.quiet()
        before = site.equipment.sink.count(site.label)
        for _ in range(2 if number else 0):
            killed = site.again(kill_at=number, only=SEAMS)
            deaths.append(killed.fatal)
        opened = site.again()
        plans.append([row[1:] for row in opened.report["plan"]])
        assert site.equipment.sink.count(site.label) == before and case.count(site) == 1
        if number and deaths[-1] is None:
            break
    assert all(plan == plans[0] for plan in plans), plans
    assert len(deaths) >= 6 and any("attempt.closed" in str(one) for one in deaths)
    # The sink's list and the exit record of the command prove the effect; a file's content does not.
    assert plans[0] == ([["ASK_USER", "11"]] if name == "file-append" else [])
