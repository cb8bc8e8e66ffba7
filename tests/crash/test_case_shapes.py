"""Cases of family B: whatever stopped a batch, the next request is one that a strict host takes.

The emulator checks pairing, order and ids as hosts do and refuses anything else.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from surefoot.testing.crash import Ended
from surefoot.testing.kills import TELLS, Site
from surefoot.testing.model import call

CLOSED = "append[attempt.closed].after"
STOP = {"do": "stop"}
OPEN_STATES = {"dispatched", "started"}


def pay(site: Site, suffix: str = "") -> dict[str, Any]:
    return call("pay", label=site.label + suffix)


def batch(site: Site) -> dict[str, Any]:
    return {"calls": [pay(site, f"-{number}") for number in (1, 2, 3)]}


def told(ended: Ended) -> list[tuple[str, str | None]]:
    return [(one["state"], one["reason"]) for one in ended.report["receipts"]]


def accepted(site: Site) -> bool:
    """Whether every request so far was taken by the strict host."""
    return all(one.status == 200 for one in site.equipment.emulator.requests())


def went_on(site: Site, times: int = 1, **fields: Any) -> Ended:
    """The session opened again, with new words; its history went out and was accepted."""
    site.script(*([{"text": "Heard."}] * 40))
    ended = site.again(verify=False, prompts=("neutral words",) * times, **fields)
    assert [turn["status"] for turn in ended.report["turns"]] == ["completed"] * times, ended.report["turns"]
    assert accepted(site)
    return ended


@pytest.mark.parametrize("seam", ["tool[pay].before_effect", CLOSED, "append[attempt.started].before"])
def test_case_b01_b09_a_cancel_inside_a_batch_closes_every_call_before_the_next_request(
    site: Site, seam: str
) -> None:
    site.script(batch(site), TELLS)
    ended = site.run(prompts=("go",), kill_at=1, only=(seam,), strike=STOP)
    assert ended.report["turns"][0]["status"] == "cancelled" and len(told(ended)) == 3
    assert not OPEN_STATES & {state for state, _ in told(ended)}
    assert told(went_on(site)) == told(ended)


def test_case_b02_an_orphan_deep_in_the_history_is_answered_for_good(site: Site) -> None:
    site.script(batch(site), TELLS)
    assert site.run(prompts=("go",), kill_at=1, only=("tool[pay].after_effect",)).killed
    went_on(site, times=10)
    went_on(site, times=2)
    (message, *_) = [
        one for one in site.equipment.emulator.requests()[-1].json()["messages"] if one.get("tool_calls")
    ]
    assert len(message["tool_calls"]) == 3


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_case_b04_b07_b10_a_death_inside_a_tool_leaves_an_unknown_call_and_a_session_that_opens(
    site: Site, number: signal.Signals
) -> None:
    site.script({"calls": [pay(site)]}, TELLS)
    seam = "tool[pay].before_effect"
    site.run(prompts=("go",), kill_at=1, only=(seam,), signal=number)
    ended = went_on(site)
    assert told(ended)[0][0] == "unknown" and len(told(ended)) == 1
    results = [
        one["content"]
        for one in site.equipment.emulator.requests()[-1].json()["messages"]
        if one["role"] == "tool"
    ]
    assert len(results) == 1 and "its end is not known" in results[0]
    assert not any(words in results[0] for words in ("still running", "try again", "retry", "run it again"))


def test_case_b10_a_command_that_ignores_signals_keeps_no_session_shut(site: Site) -> None:
    stubborn = "trap '' INT TERM HUP; while :; do sleep 0.05; done"
    site.script({"calls": [call("shell", command=stubborn)]}, TELLS)
    seam = "append[attempt.process].after"
    assert site.run(prompts=("go",), kill_at=1, only=(seam,)).killed
    opened = went_on(site)
    assert told(opened)[0][0] == "unknown"


def test_case_b13_the_same_repair_is_the_same_bytes_on_each_try(site: Site) -> None:
    site.script(batch(site), TELLS)
    assert site.run(prompts=("go",), kill_at=1, only=("tool[pay].after_effect",)).killed
    shown = []
    for _ in range(3):
        went_on(site)
        messages = site.equipment.emulator.requests()[-1].json()["messages"]
        shown.append([one for one in messages if one["role"] == "tool" or one.get("tool_calls")])
    assert shown[0] == shown[1] == shown[2] and len(shown[0]) == 4


@pytest.mark.parametrize("seam", [CLOSED, "tool[pay].after_effect"])
def test_case_b11_b12_b14_b16_a_batch_that_is_compacted_moves_as_one(site: Site, seam: str) -> None:
    site.script(batch(site), TELLS, *([{"text": "Summed up."}] * 20))
    assert site.run(prompts=("go",), kill_at=2, only=(seam,)).killed
    before = told(went_on(site))
    rewritten = site.again(verify=False, rewrite="compact").report["rewritten"]
    assert rewritten["messages"] > 0, rewritten
    assert told(went_on(site, times=2)) == before
    messages = site.equipment.emulator.requests()[-1].json()["messages"]
    asked = [one["id"] for message in messages for one in message.get("tool_calls") or ()]
    assert asked == [one["tool_call_id"] for one in messages if one["role"] == "tool"]


def test_case_b22_of_two_recoveries_one_closes_the_call_and_the_next_words_are_heard(site: Site) -> None:
    site.script({"calls": [pay(site)]}, TELLS)
    assert site.run(prompts=("go",), kill_at=1, only=("tool[pay].after_effect",)).killed
    seam = "append[attempt.closed+turn+hand_off].before"
    at = {"kill_at": 1, "only": (seam,), "signal": signal.SIGSTOP}
    with site.started(session="newest", verify=False, **at) as first:
        first.until_seam(seam)
        second = site.again(take_over=True, verify=False)
        assert told(second) == [("unknown", "owner_died")]
        os.kill(first.pid, signal.SIGCONT)
        assert first.nursery.wait(first.pid, 20) == 1
    assert told(went_on(site)) == [("unknown", "owner_died")]


def test_case_b23_a_failure_inside_a_batch_keeps_its_call_and_says_what_it_was(site: Site) -> None:
    calls = [call("look", label=site.label), call("read", path="missing.txt"), call("read", path="a.txt")]
    site.script({"calls": calls}, {"text": "Heard."})
    ended = site.run(prompts=("go",))
    assert [state for state, _ in told(ended)] == ["succeeded", "failed", "succeeded"] and accepted(site)
    messages = site.equipment.emulator.requests()[-1].json()["messages"]
    (asked,) = [one["tool_calls"] for one in messages if one.get("tool_calls")]
    results = {one["tool_call_id"]: one["content"] for one in messages if one["role"] == "tool"}
    assert list(results) == [one["id"] for one in asked] and all(text.strip() for text in results.values())
    assert "missing.txt" in results[asked[1]["id"]]


def rows(site: Site) -> list[tuple[Any, ...]]:
    (path,) = site.root.rglob("ledger.db")
    with closing(sqlite3.connect(path)) as ledger:
        return ledger.execute("SELECT key, kind, head, salt, payload FROM entries ORDER BY key").fetchall()


@pytest.mark.parametrize("seam", ["append[assistant].after", "tool[pay].after_effect", CLOSED])
def test_case_b03_a_repair_is_made_on_the_copy_for_the_wire_and_changes_no_entry(
    site: Site, seam: str
) -> None:
    site.script(batch(site), TELLS)
    assert site.run(prompts=("go",), kill_at=1, only=(seam,)).killed
    before = rows(site)
    went_on(site)
    went_on(site)
    assert rows(site)[: len(before)] == before


def test_case_b08_the_exit_record_of_a_command_that_outlived_its_agent_settles_its_call(site: Site) -> None:
    command = "while ! test -e go; do sleep 0.01; done; echo made"
    site.script({"calls": [call("shell", command=command)]}, TELLS)
    at = {"kill_at": 1, "only": ("append[attempt.process].after",)}
    assert site.run(prompts=("go",), **at).killed
    (running,) = site.again(verify=False).report["receipts"]
    assert running["state"] == "unknown", "it runs on, and is not told as running for ever"
    (site.project / "go").touch()
    site.quiet()
    ended = went_on(site)
    assert told(ended) == [("succeeded", None)]
    assert "made" in ended.report["receipts"][0]["result"]["text"]


@pytest.mark.parametrize("gone", ["assistant", "attempt.closed", "last"])
def test_case_b19_b21_an_entry_that_is_missing_is_named_and_never_passed_over(site: Site, gone: str) -> None:
    site.script(batch(site), TELLS)
    assert told(site.run(prompts=("go",))) == [("succeeded", None)] * 3
    (path,) = site.root.rglob("ledger.db")
    which = "1 = 1 ORDER BY key DESC" if gone == "last" else f"kind = '{gone}' ORDER BY key"
    with closing(sqlite3.connect(path)) as ledger:
        ledger.execute(f"DELETE FROM entries WHERE key = (SELECT key FROM entries WHERE {which} LIMIT 1)")
        ledger.execute("DELETE FROM listing")
        ledger.execute("DELETE FROM receipts")
        assert ledger.total_changes >= 1
        ledger.commit()
    opened = site.again(verify=False)
    stands_for_it = [one for one in opened.report.get("receipts", []) if one["tool"] == "ledger"]
    named = opened.report.get("error") or opened.report["verified"] or stands_for_it
    assert named, (opened.report["receipts"], opened.report["notices"])
    assert all(site.equipment.sink.count(f"{site.label}-{number}") == 1 for number in (1, 2, 3))


@pytest.mark.parametrize("action", ["confirm", "deny", "reject", "release"])
def test_case_h04_whatever_a_person_says_of_a_lost_reply_the_run_goes_on_and_nothing_is_made_up(
    site: Site, action: str
) -> None:
    site.equipment.sink.switch(reply="drop")
    site.script({"calls": [pay(site)]}, {"text": "Waiting."})
    assert told(site.run(prompts=("go",))) == [("unknown", "declared")]
    site.equipment.sink.switch(reply="now")
    looked = {"action": "inspect", "attemptId": "open"}
    presses = (looked, {"action": action, "attemptId": "open"})
    pressed = site.again(verify=False, actions=presses)
    assert [one["status"] for one in pressed.report["answers"]] == [200, 200], pressed.report["answers"]
    (receipt,) = went_on(site).report["receipts"]
    assert receipt["state"] == "unknown" and receipt["result"] is None
    assert f"did {site.label}" not in site.equipment.emulator.requests()[-1].body.decode()
    assert site.equipment.sink.count(site.label) == 1
