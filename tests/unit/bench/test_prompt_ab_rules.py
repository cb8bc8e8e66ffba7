"""The rules of the prompt experiment: design, interval, gate, pinned prompts, what a run may be taken for."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from bench.prompt_ab import scripted
from bench.prompt_ab.design import Design
from bench.prompt_ab.gate import Side, gate, newcombe, wilson
from bench.prompt_ab.plot import plot
from bench.prompt_ab.prompts import CAPABILITY, applies, digest, prompt
from bench.prompt_ab.report import markdown, report
from bench.prompt_ab.results import OtherDesign, Results
from bench.prompt_ab.summary import PUBLISHED, cells, published, side, unmeasured

from surefoot.briefing import SYSTEM
from surefoot.core.restated import PROMPT
from surefoot.settings_table import SETTINGS

SYSTEM_DIGEST = "76696c19f5c3ce8c250c9fb9d42027ece3d0150ea127361c27e479f60a2d226f"
RECOVERY_DIGEST = "3e1728121a82558388329a4d166d9dc1af78f30cb9f528eb1a2ebba3a5681204"
GOOD = Side(trials=60, successes=60, repeated=0, tokens=60_000)
POOR = Side(trials=60, successes=40, repeated=0, tokens=40_000)


def design(**other: Any) -> Design:
    return Design(
        **{"model": "kimi/kimi-k2", "seed": 7, "base_digest": "b", "candidate_digest": "c", **other}
    )


def record(trial: Any, **other: Any) -> dict[str, Any]:
    return {
        "effort": trial.effort, "task": trial.task, "arm": trial.arm, "number": trial.number,
        "proposals": 1, "executionsStarted": 1, "executionsSucceeded": 1, "repeated": 0, "firstInvalid": False,
        "corrected": None, "requests": 2, "inputTokens": 900, "outputTokens": 100, "wallSeconds": 1.0,
        "finish": "completed", "success": True, "failure": None, **other,
    }  # fmt: skip


def test_pr_84_the_design_is_120_trials_of_24_cells_half_of_them_each_prompt_in_a_recorded_order() -> None:
    trials = design().trials()
    assert len(trials) == len({one.key for one in trials}) == 120
    assert set(Counter((one.effort, one.task, one.arm) for one in trials).values()) == {10}
    assert design().trials() == trials
    assert design(seed=8).trials() != trials
    assert trials != sorted(trials, key=lambda one: one.key)


def test_pr_87_the_production_prompts_are_those_the_experiment_calls_base_byte_for_byte() -> None:
    assert prompt("base") == SYSTEM
    assert digest(SYSTEM) == SYSTEM_DIGEST
    assert digest(PROMPT) == RECOVERY_DIGEST


def test_pr_87_no_setting_of_a_user_switches_a_candidate_on() -> None:
    assert not [path for path in SETTINGS if "prompt" in path or "candidate" in path]


def test_pr_87_the_interval_is_that_of_newcombe() -> None:
    # Worked examples of the source, method 10: 56/70 against 48/80, 9/10 against 3/10, 10/10 against 0/10.
    examples = {((48, 80), (56, 70)): (0.0524, 0.3339), ((3, 10), (9, 10)): (0.1705, 0.8090),
                ((0, 10), (10, 10)): (0.6075, 1.0)}  # fmt: skip
    for (base, candidate), interval in examples.items():
        assert newcombe(base, candidate) == pytest.approx(interval, abs=0.00006)
    assert wilson(0, 10)[0] == 0.0
    assert wilson(10, 10)[1] == pytest.approx(1.0)


def test_pr_87_the_gate_opens_only_when_everything_is_known_and_good() -> None:
    assert gate(POOR, GOOD).open
    worse = {
        "no better": (GOOD, GOOD),
        "more repeats": (POOR, Side(60, 60, 1, 60_000)),
        "more tokens": (POOR, Side(60, 60, 0, 63_100)),
        "repeats unknown": (POOR, Side(60, 60, None, 60_000)),
        "tokens unknown": (POOR, Side(60, 60, 0, None)),
        "no trials": (Side(0, 0, 0, 0), GOOD),
    }
    assert {name for name, sides in worse.items() if gate(*sides).open} == set()
    assert not gate(POOR, GOOD, unmeasured=("low / read / base",)).open


def test_pr_87_a_recorded_reason_excuses_cost_and_nothing_else() -> None:
    dear = Side(60, 60, 0, 90_000)
    assert not gate(POOR, dear, reason="  ").open
    assert gate(POOR, dear, reason="worth it for this model").open
    assert not gate(POOR, Side(60, 60, 3, 90_000), reason="worth it").open


@pytest.mark.parametrize("model", ["kimi", "kimi/k2", "kimi-k2", "kimi_latest"])
def test_pr_88_a_candidate_is_meant_for_a_model_by_its_real_id(model: str) -> None:
    assert applies(model)


@pytest.mark.parametrize(
    "model", ["Kimi", "my-kimi", "kimi2", "kimichat", "Kimi K2 (display)", "moonshot/kimi", ""]
)
def test_pr_88_a_name_that_only_looks_like_it_selects_nothing(model: str) -> None:
    assert not applies(model)
    assert applies(model, [CAPABILITY])


@pytest.mark.parametrize(
    "words",
    ["permitted", "only when a tool result says so", "specific error", "read-only", "plan limits", "denials", "cancel",
     "may have happened"],
)  # fmt: skip
def test_pr_88_the_candidate_says_what_it_must(words: str) -> None:
    assert words in prompt("candidate").replace("\n", " ")


def test_pr_89_the_published_data_keep_the_gate_closed() -> None:
    found = published()
    base, candidate = side("base", found), side("candidate", found)
    totals = json.loads(PUBLISHED.read_text())["totals"]
    assert (base.successes, base.trials, candidate.successes, candidate.trials) == (59, 60, 60, 60)
    assert base.tokens == totals["base"]["input"] + totals["base"]["output"]
    assert candidate.tokens == totals["candidate"]["input"] + totals["candidate"]["output"]
    judged = gate(base, candidate, unmeasured=unmeasured(found))
    assert not judged.open
    assert judged.interval is not None and judged.interval[0] < 0 < judged.interval[1]
    assert judged.token_growth == pytest.approx(0.111, abs=0.001)  # +13.0 % in all, over one success more


def test_pr_86_an_unknown_count_of_tokens_stays_unknown_and_an_empty_cell_is_not_measured() -> None:
    trials = [one for one in design().trials() if one.effort == "low"]
    records = [record(one, inputTokens=None if one.number == 3 else 900) for one in trials]
    made = report(design(), records)
    assert {cell["tokens"] for cell in made["cells"] if cell["trials"]} == {None}
    assert len(made["notMeasured"]) == 6
    assert not made["gate"]["open"]
    told = markdown(made)
    assert "| max / read / base | not measured |" in told and "unknown" in told
    assert "Partial: 60 of 120 trials ended." in told


def test_pr_86_an_interrupted_trial_stays_a_failure_and_is_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    first, second, third = design().trials()[:3]
    results = Results(path, design())
    results.begin(first)
    results.end(first, record(first))
    results.begin(second)
    results.close()
    with path.open("a") as file:
        file.write('{"ended": "torn')
    again = Results(path, design())
    assert again.ended[first.key]["success"]
    assert again.ended[second.key] | {"success": True} != again.ended[second.key]
    assert again.ended[second.key]["failure"] == "interrupted"
    assert third.key not in again.ended
    again.end(third, record(third))
    again.close()
    once_more = Results(path, design())
    assert set(once_more.ended) == {first.key, second.key, third.key}
    once_more.close()


def test_pr_86_a_kill_while_the_design_was_written_leaves_a_file_that_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    Results(path, design()).close()
    whole = path.read_text()
    for cut in (1, len(whole) // 2, len(whole) - 1):
        path.write_text(whole[:cut])
        Results(path, design()).close()
        assert path.read_text() == whole
    for other in ("{}", "something of a person", "\n" + whole):
        path.write_text(other)
        with pytest.raises(OtherDesign):
            Results(path, design())
        assert path.read_text() == other


def test_pr_86_what_an_interrupted_trial_would_have_told_stays_unknown_in_every_sum(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    results = Results(path, design())
    trial = design().trials()[0]
    results.begin(trial)
    results.close()
    again = Results(path, design())
    again.close()
    made = report(design(), list(again.ended.values()))
    (mine,) = [cell for cell in made["cells"] if cell["trials"]]
    (all_of_it,) = [cell for cell in made["all"] if cell["trials"]]
    for cell in (mine, all_of_it):
        counts = ("requests", "proposals", "repeated", "first_invalid", "corrected", "tokens", "wall_seconds")
        assert {cell[key] for key in counts} == {None} and cell["successes"] == 0
    assert f"| all / {trial.arm} | 0/1 | unknown |" in markdown(made)


def test_pr_86_results_of_another_design_are_never_mixed_in(tmp_path: Path) -> None:
    Results(tmp_path / "r.jsonl", design()).close()
    with pytest.raises(OtherDesign):
        Results(tmp_path / "r.jsonl", design(candidate_digest="other"))


@pytest.mark.parametrize("other", [{"scripted": True}, {"per_cell": 1}, {"efforts": ("low",)}])
def test_pr_87_a_scripted_or_reduced_run_opens_nothing_however_good_it_looks(other: dict[str, Any]) -> None:
    small = design(**other)
    records = [record(one, success=one.arm == "candidate") for one in small.trials()]
    made = report(small, records)
    assert not made["gate"]["open"]
    assert "nothing" in made["what"]
    whole = [record(one, success=one.arm == "candidate" or one.number < 6) for one in design().trials()]
    cheaper = [one | {"inputTokens": 500} if one["arm"] == "candidate" else one for one in whole]
    assert report(design(), cheaper)["gate"]["open"]
    stopped = report(design(), cheaper[:-1])["gate"]
    assert not stopped["open"] and stopped["reasons"] == ("only 119 of 120 trials ended",)


def test_pr_84_the_plot_shows_every_cell_and_escapes_what_it_is_given() -> None:
    drawn = plot(cells([record(one) for one in design().trials()[:5]]), "a < b & c")
    assert drawn.count("<text") >= 12
    assert "a &lt; b &amp; c" in drawn and "not measured" in drawn
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")


def test_pr_89_the_scripts_disobey_in_every_way_and_the_same_way_for_one_seed() -> None:
    trials = design().trials()
    ways = Counter(scripted.behaviour(one, 20) for one in trials)
    assert set(ways) == {"obeys", "claims", "invalid_first", "repeats", "wrong_file"}
    assert [scripted.steps(one, 20) for one in trials] == [scripted.steps(one, 20) for one in trials]
