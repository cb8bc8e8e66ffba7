"""Cases of family C: nothing is lost, nothing is made up, and no word is false.

Each test is one row, retold with the real runtime in processes of their own, a counting sink
and the strict emulator.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from surefoot.testing.crash import Ended
from surefoot.testing.kills import TELLS, Site
from surefoot.testing.model import call

UNKNOWN_WORDS = "its end is not known"


def pay(site: Site, suffix: str = "") -> dict[str, Any]:
    return call("pay", label=site.label + suffix)


def look(site: Site) -> dict[str, Any]:
    return call("look", label=site.label)


def effects(site: Site, suffix: str = "") -> int:
    return site.equipment.sink.count(site.label + suffix)


def told(ended: Ended) -> list[tuple[str, str | None]]:
    return [(one["state"], one["reason"]) for one in ended.report["receipts"]]


def states(ended: Ended) -> list[str]:
    return [one["state"] for one in ended.report["receipts"]]


def killed(site: Site, *only: str, at: int = 1, **fields: Any) -> Ended:
    ended = site.run(prompts=("go",), kill_at=at, only=only, **fields)
    assert ended.killed
    return ended


def last_request(site: Site) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = site.equipment.emulator.requests()[-1].json()["messages"]
    return messages


def did_nothing(text: str) -> bool:
    """Whether a result says that its call was stopped before it did anything."""
    return "Nothing was started." in text or "It did nothing." in text


# lost-result --------------------------------------------------------------------------------------


def test_case_c01_each_call_of_a_half_finished_batch_gets_its_own_decision(site: Site) -> None:
    site.script({"calls": [pay(site, "-1"), pay(site, "-2"), pay(site, "-3")]}, TELLS)
    killed(site, "tool[pay].after_effect", at=2)
    opened = site.again(verify=False)
    assert states(opened) == ["succeeded", "unknown", "not_started"]
    resumed = site.again(verify=False, carry_out=True, go_on=True)
    said = resumed.report["said"][1].splitlines()
    assert f"did {site.label}-1" in said[0] and UNKNOWN_WORDS in said[1] and "Nothing was started" in said[-1]
    assert [effects(site, f"-{number}") for number in (1, 2, 3)] == [1, 1, 0]


def test_case_c02_a_stop_after_the_first_call_leaves_four_true_states(site: Site) -> None:
    site.script({"calls": [pay(site, f"-{number}") for number in (1, 2, 3, 4)]}, TELLS)
    stop = {"do": "stop"}
    ended = site.run(prompts=("go",), kill_at=1, only=("append[attempt.closed].after",), strike=stop)
    assert ended.report["turns"][0]["status"] == "cancelled"
    assert told(ended)[0] == ("succeeded", None) and len(told(ended)) == 4
    assert {one["effectTrace"] for one in ended.report["receipts"][1:]} == {"none"}
    resumed = site.again(go_on=True)
    said = resumed.report["said"][1].splitlines()
    assert f"did {site.label}-1" in said[0] and len(said) == 4 and all(did_nothing(line) for line in said[1:])
    assert [effects(site, f"-{number}") for number in (1, 2, 3, 4)] == [1, 0, 0, 0]


def test_case_c03_a_siblings_failure_throws_no_finished_result_away(site: Site) -> None:
    site.script({"calls": [look(site), call("read", path="missing.txt"), call("read", path="a.txt")]}, TELLS)
    killed(site, "append[attempt.closed].after", at=3)
    opened = site.again()
    assert states(opened) == ["succeeded", "failed", "succeeded"]
    resumed = site.again(carry_out=True, go_on=True)
    assert "the sink holds" in resumed.report["said"][1] and "old" in resumed.report["said"][1]
    assert states(resumed) == ["succeeded", "failed", "succeeded"]


# false-word ---------------------------------------------------------------------------------------


def test_case_c06_a_missing_result_is_told_as_unknown_and_not_as_an_error(site: Site) -> None:
    site.script({"calls": [pay(site)]}, TELLS)
    killed(site, "tool[pay].after_effect")
    resumed = site.again(verify=False, carry_out=True, go_on=True)
    said = resumed.report["said"][1]
    assert UNKNOWN_WORDS in said and "It may have happened, wholly or in part." in said
    assert not any(word in said.lower() for word in ("failed", "error", "succeeded", "interrupted by user"))


def test_case_c09_never_started_and_unknown_are_two_states(new_site: Callable[[], Site]) -> None:
    found = []
    for seam in ("append[attempt.started].before", "tool[pay].after_effect"):
        site = new_site()
        site.script({"calls": [pay(site)]}, TELLS)
        killed(site, seam)
        (receipt,) = site.again(verify=False).report["receipts"]
        found.append((receipt["state"], receipt["effectTrace"], effects(site)))
    assert found == [("not_started", "none", 0), ("unknown", "possible", 1)]


def test_case_c10_a_stop_says_what_kept_running(site: Site) -> None:
    site.script({"calls": [pay(site, "-1"), pay(site, "-2")]}, TELLS)
    site.equipment.sink.switch(commit="hold")
    at = {"kill_at": 1, "only": ("tool[pay].before_effect",), "strike": {"do": "stop"}}
    ended = site.run(prompts=("go",), release=True, **at)
    before = [(one["state"], one["reason"]) for one in ended.report["beforeRelease"]]
    assert before == [("unknown", "cancelled"), ("not_started", "cancelled_before_start")]
    assert ended.report["beforeRelease"][0]["executor"]["state"] == "alive"
    assert states(ended) == ["succeeded", "not_started"]
    assert (effects(site, "-1"), effects(site, "-2")) == (1, 0)


def test_case_c10_a_stop_on_a_full_disk_tells_no_false_word(site: Site) -> None:
    site.script({"calls": [pay(site, "-1"), pay(site, "-2")]}, TELLS)
    ended = site.run(
        prompts=("go",), kill_at=1, only=("append[attempt.closed].after",), strike={"do": "full"}
    )
    assert ended.report["fault"]["disk"] >= 1
    opened = site.again()
    assert states(opened) == ["succeeded", "not_started"] and (effects(site, "-1"), effects(site, "-2")) == (
        1,
        0,
    )


def test_case_c11_a_refusal_by_a_rule_names_the_rule_and_no_person(site: Site) -> None:
    site.script({"calls": [call("shell", command="rm a.txt")]}, TELLS)
    ended = site.run(prompts=("go",), flags={"permissions.deny": ["Bash(rm *)"]})
    assert told(ended) == [("not_started", "permission_denied")]
    said = ended.report["said"][1]
    assert "rule" in said and "user" not in said.lower() and "person" not in said.lower()
    assert (site.project / "a.txt").exists() and told(site.again()) == told(ended)


# made-up ------------------------------------------------------------------------------------------


def test_case_c13_a_cancelled_call_carries_an_attributed_result_and_no_words_of_a_person(site: Site) -> None:
    site.script(
        {"calls": [pay(site, "-1"), pay(site, "-2"), pay(site, "-3")]},
        {"text": "The user told me to skip the rest, and all three are done."},
    )
    stop = {"do": "stop"}
    site.run(prompts=("go",), kill_at=1, only=("append[attempt.closed].after",), strike=stop)
    resumed = site.again(go_on=True)
    messages = last_request(site)
    results = [message["content"] for message in messages if message["role"] == "tool"]
    assert len(results) == 3 and all(did_nothing(text) for text in results[1:])
    assert [one for one in messages if one["role"] == "user" and "skip" in json.dumps(one)] == []
    assert states(resumed)[0] == "succeeded" and (effects(site, "-2"), effects(site, "-3")) == (0, 0)


def test_case_c14_done_without_a_call_changes_no_state(site: Site) -> None:
    site.script({"text": "Done: I paid the bill."})
    ended = site.run(prompts=("pay the bill",))
    assert ended.report["receipts"] == [] and effects(site) == 0
    opened = site.again()
    assert opened.report["receipts"] == [] and opened.report["snapshot"]["calls"] == []


# continue -----------------------------------------------------------------------------------------


def test_case_c16_continuing_adds_no_message_of_a_person(site: Site) -> None:
    site.script({"calls": [pay(site)]}, TELLS)
    killed(site, "append[attempt.closed].after")
    resumed = site.again(carry_out=True, go_on=True)
    assert resumed.report["turns"][-1]["status"] == "completed"
    assert resumed.report["words"] == ["go"]
    assert all(entry.status == 200 for entry in site.equipment.emulator.requests())


def test_case_c17_the_hand_off_lists_what_is_done_and_what_is_open(site: Site) -> None:
    site.script({"calls": [pay(site, "-1"), pay(site, "-2")]}, TELLS)
    killed(site, "tool[pay].after_effect", at=2)
    site.again(verify=False, carry_out=True, go_on=True)
    asked = json.dumps(last_request(site))
    assert f"did {site.label}-1" in asked and UNKNOWN_WORDS in asked
    facts = [one for one in last_request(site) if one["role"] == "user"][-1]
    text = facts["content"] if isinstance(facts["content"], str) else json.dumps(facts["content"])
    assert "not words of the person" in text and "owner_died" in text and '"fencing":true' in text


def test_case_c18_after_a_cancel_the_next_request_holds_each_calls_state_once(site: Site) -> None:
    site.script({"calls": [pay(site, "-1"), pay(site, "-2"), look(site)]}, TELLS)
    site.equipment.sink.switch(reply="hold")
    at = {"kill_at": 1, "only": ("tool[pay].before_effect",), "strike": {"do": "stop"}}
    ended = site.run(prompts=("go",), **at)
    site.equipment.sink.switch(reply="now")
    site.equipment.sink.release()
    assert told(ended)[0] == ("unknown", "cancelled")
    site.again(verify=False, go_on=True)
    results = [message["content"] for message in last_request(site) if message["role"] == "tool"]
    assert len(results) == 3 and UNKNOWN_WORDS in results[0]
    assert all(did_nothing(text) for text in results[1:])


def test_case_c19_the_recovery_tool_lists_what_the_ledger_holds(site: Site) -> None:
    lists = {**TELLS, "calls": [call("recovery", action="list")]}
    site.script({"calls": [pay(site)]}, lists, TELLS)
    killed(site, "tool[pay].after_effect")
    resumed = site.again(verify=False, carry_out=True, go_on=True)
    first, listed = resumed.report["receipts"]
    assert listed["state"] == "succeeded" and resumed.report["open"] == [first["attemptId"]]
    assert first["attemptId"] in resumed.report["said"][2] and effects(site) == 1
