"""Cases of family E: a question is a durable record, and silence is never consent.

Covered where they belong: e12 with the other drifts (`e2e/test_case_drift.py`), e18 and e19 by the guard of keys
in the terminal (UX-71 to UX-73). The rows about a page or an editor wait for those rooms.
"""

from __future__ import annotations

from typing import Any

import pytest

from surefoot.testing.crash import Ended
from surefoot.testing.kills import TELLS, Site
from surefoot.testing.model import call

ASKING = {"permissions.mode": "default"}


def asks(text: str) -> dict[str, Any]:
    return call("ask_user", question=text)


def told(ended: Ended) -> list[tuple[str, str | None]]:
    return [(one["state"], one["reason"]) for one in ended.report["receipts"]]


def effects(site: Site) -> int:
    return site.equipment.sink.count(site.label)


def killed_while_asking(site: Site, *steps: dict[str, Any], at: int = 1, **fields: Any) -> Ended:
    site.script(*steps)
    ended = site.run(prompts=("go",), kill_at=at, only=("asked",), **{"answers": (), **fields})
    assert ended.fatal == "asked"
    return ended


def ids(ended: Ended) -> list[str]:
    return list(dict.fromkeys(one["questionId"] for one in ended.report["questions"]))


def test_case_e01_e02_e03_e05_a_question_survives_its_process_and_is_answered_in_the_next(site: Site) -> None:
    killed_while_asking(site, {"calls": [asks("Which colour?")]}, TELLS)
    for _ in range(2):
        opened = site.again()
        assert len(ids(opened)) == 1 and opened.report["receipts"][0]["state"] == "unknown"
    answered = site.again(answers=("blue",), carry_out=True, go_on=True)
    assert ids(answered) == ids(opened) and "blue" in answered.report["said"][-1]
    assert site.again(answers=("red",), carry_out=True).report["questions"] == answered.report["questions"]


@pytest.mark.parametrize(("verdict", "made"), [("approved", 1), ("denied", 0)])
def test_case_e04_ux_42_what_waited_is_decided_in_a_fresh_process(
    site: Site, verdict: str, made: int
) -> None:
    killed_while_asking(site, {"calls": [call("pay", label=site.label)]}, TELLS, flags=ASKING)
    opened = site.again()
    assert told(opened) == [("not_started", "owner_died_before_start")] and effects(site) == 0
    asked_again = site.again(prompts=("again",), answers=(verdict,), flags=ASKING)
    assert asked_again.report["turns"][0]["status"] == "completed" and effects(site) == made
    assert len(ids(asked_again)) == 1, "one question, shown twice"


def test_case_e07_e16_of_two_questions_the_answered_one_stays_answered_and_the_other_open(site: Site) -> None:
    both = {"calls": [asks("First?"), asks("Second?")]}
    site.script(both, TELLS)
    seam = "append[answer].after"
    assert site.run(prompts=("go",), answers=("one",), kill_at=1, only=(seam,)).fatal == seam
    opened = site.again()
    states = [one["state"] for one in opened.report["receipts"]]
    assert len(states) == 2 and "not_started" not in states[:1]
    answered = site.again(answers=("two", "two"), carry_out=True, go_on=True)
    said = answered.report["said"][-1]
    assert "one" in said and "two" in said and answered.report["open"] == []


def test_case_e08_a_stop_withdraws_the_question_and_the_next_words_work(site: Site) -> None:
    site.script({"calls": [asks("Which colour?")]}, {"text": "Here again."}, {"text": "Here again."})
    at = {"kill_at": 1, "only": ("asked",), "strike": {"do": "stop"}}
    ended = site.run(prompts=("go", "next"), answers=(), **at)
    assert [turn["status"] for turn in ended.report["turns"]] == ["cancelled", "completed"]
    assert ended.report["turns"][1]["text"] == "Here again."


def test_case_e11_an_interrupted_batch_leaves_no_question_and_starts_nothing(site: Site) -> None:
    batch = {"calls": [call("pay", label=f"{site.label}-{number}") for number in range(50)]}
    site.script(batch, TELLS)
    at = {"kill_at": 1, "only": ("asked",), "strike": {"do": "stop"}}
    ended = site.run(prompts=("go",), answers=(), flags=ASKING, **at)
    assert [state for state, _ in told(ended)] == ["not_started"] * 50
    assert site.again().report["open"] == [] and ended.seams == ["asked"]


def test_case_e13_an_answer_whose_call_never_started_is_still_valid_for_it_and_for_no_other(
    site: Site,
) -> None:
    site.script({"calls": [call("pay", label=site.label)]}, {"calls": [call("pay", label=site.label)]}, TELLS)
    at = {"kill_at": 1, "only": ("append[attempt.started].before",)}
    assert site.run(prompts=("go",), answers=("approved",), flags=ASKING, **at).killed
    assert told(site.again()) == [("not_started", "owner_died_before_start")]
    resumed = site.again(answers=("denied",), flags=ASKING, go_on=True)
    died, ran, asked = told(resumed)
    assert (died, ran) == (("not_started", "owner_died_before_start"), ("succeeded", None))
    assert asked == ("not_started", "permission_denied"), (
        "the same action asked for once more is another call"
    )
    assert effects(site) == 1


def test_case_e14_an_approved_call_runs_once_and_nobody_is_asked_again(site: Site) -> None:
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)
    at = {"kill_at": 1, "only": ("append[attempt.closed].after",)}
    assert site.run(prompts=("go",), answers=("approved",), flags=ASKING, **at).killed
    resumed = site.again(answers=(), flags=ASKING, carry_out=True, go_on=True, only=("asked",))
    assert resumed.seams == [] and told(resumed) == [("succeeded", None)] and effects(site) == 1


def test_case_e17_each_answer_reaches_its_own_question(site: Site) -> None:
    site.script({"calls": [asks("First?"), asks("Second?")]}, TELLS)
    ended = site.run(prompts=("go",), answers=("alpha", "beta"))
    texts = {
        question["questionId"]: (question["text"], receipt["result"]["text"])
        for question, receipt in zip(ended.report["questions"], ended.report["receipts"], strict=True)
    }
    assert [
        (text, answer in result)
        for (text, result), answer in zip(texts.values(), ("alpha", "beta"), strict=True)
    ] == [("First?", True), ("Second?", True)]


@pytest.mark.parametrize("answer", ["", "   "])
def test_case_e20_e21_silence_and_emptiness_are_no_consent(site: Site, answer: str) -> None:
    site.script({"calls": [asks("May I delete it?")]}, TELLS)
    ended = site.run(prompts=("go",), answers=(answer,))
    result = ended.report["receipts"][0]["result"]
    assert result is None or "not consent" in result["text"] or "empty" in result["text"]
    unattended = site.run(prompts=("go",))
    shown = unattended.report["receipts"][0]["result"]
    assert shown is None or "May I delete it" not in shown["text"] or "nobody" in shown["text"].lower()


@pytest.mark.parametrize("verdict", ["denied", "withdrawn", "expired"])
def test_case_e20_only_the_word_of_approval_lets_a_call_run(site: Site, verdict: str) -> None:
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)
    ended = site.run(prompts=("go",), answers=(verdict,), flags=ASKING)
    assert told(ended)[0][0] == "not_started" and effects(site) == 0
