"""The judge of the kill tests can say no: doubles, false words and lost calls are noticed."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from surefoot.testing.kills import CASES, Case, Findings, Plan, Site, judge, judge_told, run_trial

PAY = next(case for case in CASES if case.name == "sink-pay")
APPEND = next(case for case in CASES if case.name == "file-append")


def receipt(**fields: Any) -> dict[str, Any]:
    usual = {"attemptId": "att_1", "callId": "cal_1", "startedAt": 1, "effectTrace": "possible"}
    return {**usual, "state": "unknown", "reason": "owner_died", "overlays": [], "result": None, **fields}


def judged(site: Site, *receipts: dict[str, Any], calls: tuple[str, ...] = ("cal_1",)) -> Findings:
    found = Findings()
    judge(APPEND, site, {"receipts": list(receipts), "calls": list(calls)}, found)
    return found


def test_a_payment_declared_as_harmless_is_seen_to_happen_twice(site: Site) -> None:
    wrong = {"pay": "IDEMPOTENT_WRITE"}
    plan = Plan(kill_at=1, only=("tool[pay].after_effect",), verify=False, declared=wrong)
    trial = run_trial(PAY, site, plan)
    assert trial.first.fatal == "tool[pay].after_effect"
    # One by the killed run, one by the safe retry, one asked for by the model after it was settled.
    assert "3 effects of 2 started calls" in trial.findings.doubles


def test_two_effects_of_one_call_are_a_double(site: Site) -> None:
    (site.project / "a.txt").write_text("old\nnew\nnew\n")
    assert judged(site, receipt()).doubles == ["2 effects of 1 started calls"]


def test_a_success_without_effect_and_an_effect_of_a_call_that_never_ran_are_false_words(site: Site) -> None:
    assert judged(site, receipt(state="succeeded", effectTrace="done")).false_words
    (site.project / "a.txt").write_text("old\nnew\n")
    assert judged(site, receipt(state="failed", reason="never_ran", effectTrace="none")).false_words
    assert judged(site, receipt(state="succeeded", effectTrace="done")).all() == []


def test_a_call_without_receipt_and_a_receipt_left_open_are_lost_calls(site: Site) -> None:
    assert judged(site, receipt(), calls=("cal_1", "cal_2")).lost == ["call cal_2 has no receipt"]
    assert judged(site, receipt(state="started")).lost == ["att_1 is started"]
    (site.project / "a.txt").write_text("old\nnew\n")
    assert judged(site, calls=()).lost == ["1 effects and no start receipt"]


def test_words_that_tell_an_unknown_call_as_done_or_as_not_run_are_false() -> None:
    for told in ("did it", "It failed.", "Nothing was started."):
        found = Findings()
        judge_told(told, receipt(), found)
        assert len(found.false_words) == 1
    found = Findings()
    judge_told("It may have happened.", receipt(state="not_started"), found)
    judge_told("something else", receipt(state="succeeded", result={"text": "the result"}), found)
    assert len(found.false_words) == 2


@pytest.mark.parametrize(
    ("case", "seam", "verify", "left"),
    [
        (PAY, "tool[pay].after_effect", True, ()),
        (PAY, "tool[pay].before_effect", True, ("absent_fenced",)),
        (PAY, "tool[pay].after_effect", False, ("unknown",)),
        (APPEND, "tool[write].entered", False, ("absent_fenced",)),
    ],
)
def test_ux_145_what_is_left_to_a_person_is_counted_where_a_look_could_have_proven_it(
    site: Site, case: Case, seam: str, verify: bool, left: tuple[str, ...]
) -> None:
    plan = Plan(kill_at=1, only=(seam,), verify=verify)
    trial = run_trial(case, site, plan)
    assert trial.left_to_a_person == left
    assert case.provable(plan) == (verify or case is APPEND)


def test_ux_142_ux_143_the_program_kills_at_random_and_prints_its_counts_and_its_seed() -> None:
    command = [sys.executable, "-m", "surefoot.testing.kills", "--kills", "40", "--seed", "2027"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    proven, last = ran.stdout.splitlines()[-2:]
    assert proven.startswith("kills during calls with a verifier by key or a write intent ")
    assert last.endswith("· double effects 0 · false words 0 · lost calls 0 · seed 2027")
    assert int(last.split()[1]) >= 40
