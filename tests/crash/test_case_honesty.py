"""Cases of family J, and of K as far as they need no screen: a fence with a way out, and words that are true.

Covered where they belong: j06 by the labelled corpus of shell lines, j07 by the tests of rewriting.
j08 to j10 wait for an undo, j12 for the replay of an export.
"""

from __future__ import annotations

import signal

import pytest

from surefoot.testing.crash import Ended
from surefoot.testing.kills import NEVER_WORDS, TELLS, Site
from surefoot.testing.model import call

CONFIRM = ({"action": "confirm", "attemptId": "open"},)


def told(ended: Ended) -> list[tuple[str, str | None]]:
    return [(one["state"], one["reason"]) for one in ended.report["receipts"]]


def effects(site: Site) -> int:
    return site.equipment.sink.count(site.label)


def killed(site: Site, *later: dict[str, object]) -> None:
    site.script({"calls": [call("pay", label=site.label)]}, *later, TELLS, TELLS)
    seam = "tool[pay].after_effect"
    assert site.run(prompts=("go",), kill_at=1, only=(seam,)).fatal == seam


def test_case_j01_j02_beside_an_unknown_call_reads_and_neutral_words_go_on(site: Site) -> None:
    looks = {"calls": [call("look", label="x"), call("pay", label=site.label)]}
    killed(site, looks)
    ended = site.again(verify=False, prompts=("what is there?",))
    assert told(ended)[1:] == [("succeeded", None), ("not_started", "fenced")] and effects(site) == 1
    assert ended.report["turns"][0]["status"] == "completed"
    answered = site.again(verify=False, actions=CONFIRM)
    assert answered.report["answers"][0]["status"] == 200 and answered.report["open"] == []


def test_case_j03_nothing_said_of_an_unknown_call_promises_that_nothing_ran(site: Site) -> None:
    killed(site)
    ended = site.again(verify=False, prompts=("go on",))
    said = str(ended.report["said"][1:])
    assert "its end is not known" in said
    assert not any(words in said for words in (*NEVER_WORDS, "safe to retry", "failed"))


def test_case_j04_j05_a_late_result_is_one_piece_of_evidence_and_told_once(site: Site) -> None:
    site.script({"calls": [call("pay", label=site.label)]}, *([{"text": "Yes."}] * 3))
    site.equipment.sink.switch(reply="hold")
    ended = site.run(prompts=("go",), limit_seconds=2.0, release=True)
    site.equipment.sink.switch(reply="now")
    assert "its end is not known" in str(site.equipment.emulator.requests()[-1].json()["messages"][-1])
    (receipt,) = ended.report["receipts"]
    assert receipt["state"] == "succeeded" and receipt["overlays"].count("late") <= 1
    site.again(prompts=("and now?",))
    (words,) = [
        message["content"]
        for message in site.equipment.emulator.requests()[-1].json()["messages"]
        if message["role"] == "user" and "and now?" in message["content"]
    ]
    assert words.count('"state":"succeeded"') == 1 and effects(site) == 1
    again = site.again(prompts=("once more",))
    last = site.equipment.emulator.requests()[-1].json()["messages"][-1]["content"]
    assert "succeeded" not in last and len(again.report["receipts"]) == 1


def test_case_j11_a_fault_that_never_fired_makes_its_test_red(site: Site) -> None:
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)
    ended = site.run(prompts=("go",), kill_at=1, only=("no.such.seam",))
    assert ended.fatal is None and not ended.killed
    with pytest.raises(AssertionError):
        assert ended.fatal == "no.such.seam"


def test_case_k02_a_decided_call_stays_decided_after_more_work(site: Site) -> None:
    killed(site)
    assert site.again(verify=False, actions=CONFIRM).report["open"] == []
    site.again(verify=False, prompts=("go on",))
    opened = site.again(verify=False)
    assert opened.report["open"] == [] and opened.report["receipts"][0]["overlays"] == ["confirmed"]
    assert all(not shown["open"] for shown in opened.report["snapshot"]["calls"])


def test_case_k03_a_session_whose_last_write_was_lost_is_listed(site: Site) -> None:
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)
    dies = {"do": "disk", "operation": "sync", "how": "die"}
    at = {"kill_at": 1, "only": ("append[attempt.closed].before",), "strike": dies}
    assert site.run(prompts=("go",), **at).returncode == -signal.SIGKILL
    opened = site.again(verify=False)
    assert opened.report["sessions"] == 1 and "interrupted" in opened.report["statuses"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_case_k04_a_resumed_session_that_is_ended_by_a_signal_is_listed(
    site: Site, number: signal.Signals
) -> None:
    killed(site)
    at = {"kill_at": 1, "only": ("append[assistant].before",), "signal": number}
    site.again(verify=False, prompts=("go on",), **at)
    opened = site.again(verify=False)
    assert opened.report["sessions"] == 1 and opened.report["words"][:1] == ["go"]
    assert len(opened.report["open"]) == 1
