"""TR-186, steps F1 to F7: from the message with its calls to the next request.

Each cell runs the step in a child process, shows that its fault fired, and reopens the session
with a fresh process. Death by SIGKILL at each of these steps stands in `test_kill_seams` as well;
here it is told cell by cell.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable
from typing import Any

import pytest

from surefoot.testing.crash import Blow, Ended
from surefoot.testing.kills import TELLS, Site
from surefoot.testing.model import call

FULL = {"do": "full"}
FSYNC = {"do": "disk", "operation": "sync"}
FSYNC_LASTING = {**FSYNC, "lasting": True}
STOP = {"do": "stop"}
ASSISTANT, STARTED, CLOSED = "append[assistant]", "append[attempt.started]", "append[attempt.closed]"


def two_calls(site: Site) -> None:
    """A message with a payment and a converging write, then a story about their results."""
    site.script({"calls": [call("pay", label=site.label), call("put", label=site.label)]}, TELLS)


def struck(site: Site, seam: str, strike: dict[str, Any], **fields: Any) -> Ended:
    """Run the two calls; `strike` happens at the first passing of `seam`, and is shown to have happened."""
    two_calls(site)
    ended = site.run(prompts=("go",), kill_at=1, only=(seam,), strike=strike, **fields)
    if ended.report:
        assert ended.report["fault"]["at"] == seam
        assert strike["do"] == "stop" or ended.report["fault"]["disk"] >= 1
    return ended


def killed(site: Site, seam: str, **fields: Any) -> Ended:
    """Run the two calls and die at the first passing of `seam`."""
    two_calls(site)
    ended = site.run(prompts=("go",), kill_at=1, only=(seam,), **fields)
    assert ended.fatal == seam
    return ended


def told(ended: Ended) -> list[tuple[str, str | None]]:
    """State and reason of every receipt."""
    return [(one["state"], one["reason"]) for one in ended.report["receipts"]]


def states(ended: Ended) -> list[str]:
    return [one["state"] for one in ended.report["receipts"]]


def effects(site: Site) -> int:
    return site.equipment.sink.count(site.label)


# F1 message with calls ---------------------------------------------------------------------------


def test_tr_186_f1_killed_before_the_message_is_durable_the_step_is_asked_again(site: Site) -> None:
    killed(site, f"{ASSISTANT}.before")
    assert site.again().report["calls"] == []
    went_on = site.again(go_on=True)
    assert states(went_on) == ["succeeded", "succeeded"] and effects(site) == 2


def test_tr_186_f1_killed_after_the_message_is_durable_every_call_never_started(site: Site) -> None:
    killed(site, f"{ASSISTANT}.after")
    assert told(site.again()) == [("not_started", "owner_died_before_start")] * 2
    went_on = site.again(go_on=True)
    assert states(went_on) == ["not_started"] * 2 and effects(site) == 0
    assert went_on.report["said"][1].count("Nothing was started.") == 2


def test_tr_186_f1_disk_full_dispatches_no_call_and_fails_the_turn(site: Site) -> None:
    ended = struck(site, f"{ASSISTANT}.before", FULL)
    assert [turn["status"] for turn in ended.report["turns"]] == ["failed"]
    assert ended.report["turns"][0]["error"] == "SF-LEDGER" and "turn_not_recorded" in ended.report["notices"]
    assert site.again().report["calls"] == [] and effects(site) == 0


@pytest.mark.parametrize("strike", [FSYNC, FSYNC_LASTING])
def test_tr_186_f1_fsync_error_is_re_read_and_then_true(site: Site, strike: dict[str, Any]) -> None:
    ended = struck(site, f"{ASSISTANT}.before", strike)
    status = ended.report["turns"][0]["status"]
    opened = site.again()
    if status == "completed":
        assert states(opened) == ["succeeded", "succeeded"] and effects(site) == 2
    else:
        assert set(states(opened)) <= {"not_started"} and effects(site) == 0
    assert status == ("failed" if strike is FSYNC_LASTING else "completed")


def test_tr_186_f1_cancel_while_the_model_is_asked_runs_nothing(site: Site) -> None:
    site.equipment.emulator.fault(stage="reply", delay_headers=None)
    ended = struck(site, "append[turn+user+turn].after", STOP)
    assert [turn["status"] for turn in ended.report["turns"]] == ["cancelled"]
    assert ended.report["calls"] == [] and effects(site) == 0
    opened = site.again()
    assert opened.report["statuses"][-1] == "cancelled" and opened.report["receipts"] == []
    site.equipment.emulator.release()


def test_tr_186_f1_a_lost_connection_to_the_model_is_asked_again_and_runs_each_call_once(site: Site) -> None:
    two_calls(site)
    site.equipment.emulator.fault(stage="reply", cut_at={"bytes": 40})
    ended = site.run(prompts=("go",))
    assert ended.report["turns"][0]["status"] == "completed" and effects(site) == 2
    assert len(ended.report["calls"]) == 2
    site.equipment.emulator.assert_fired()


# F2 checks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("strike", [FULL, FSYNC_LASTING])
def test_tr_186_f2_a_refusal_that_cannot_be_recorded_reads_as_not_started(
    site: Site, strike: dict[str, Any]
) -> None:
    site.script({"calls": [call("no_such_tool"), call("pay", label=site.label)]}, TELLS)
    seam = "append[attempt.not_started].before"
    ended = site.run(prompts=("go",), kill_at=1, only=(seam,), strike=strike)
    assert ended.report["fault"]["at"] == seam and ended.report["fault"]["disk"] >= 1
    opened = site.again()
    assert states(opened)[0] == "not_started" and effects(site) == 0
    assert opened.report["open"] == [] or strike is FSYNC_LASTING


def test_tr_186_f2_killed_during_the_checks_the_call_never_started(site: Site) -> None:
    killed(site, f"{STARTED}.before")
    assert told(site.again()) == [("not_started", "owner_died_before_start")] * 2 and effects(site) == 0


def test_tr_186_f2_a_stop_while_a_person_is_asked_starts_nothing(site: Site) -> None:
    ended = struck(site, "asked", STOP, answers=(), flags={"permissions.mode": "default"})
    assert [turn["status"] for turn in ended.report["turns"]] == ["cancelled"]
    assert states(ended) == ["not_started", "not_started"] and effects(site) == 0
    assert told(ended)[1] == ("not_started", "cancelled_before_start")
    assert told(site.again()) == told(ended)


# F3 start commit ---------------------------------------------------------------------------------


@pytest.mark.promise("barrier:fail-closed")
@pytest.mark.parametrize("times", [1, 2, 4, 8, 1000])
def test_tr_186_f3_disk_full_enters_no_body_and_tells_every_member_of_the_group(
    site: Site, times: int
) -> None:
    ended = struck(site, f"{STARTED}.before", {**FULL, "times": times})
    opened = site.again()
    first = opened.report["receipts"][0]
    if first["state"] == "succeeded":
        assert times == 1, "one refused write may be made good by the ledger itself"
        return
    assert first["state"] == "not_started" and effects(site) == 0
    assert states(opened) == ["not_started", "not_started"]
    if ended.report["turns"][0]["status"] == "completed":
        assert "receipt_not_durable" in (first["reason"], opened.report["receipts"][1]["reason"])
        assert f"did {site.label}" not in ended.report["turns"][0]["text"]


def test_tr_186_f3_a_disk_with_too_little_head_room_refuses_the_start(site: Site) -> None:
    ended = struck(site, f"{ASSISTANT}.after", {"do": "crowded"})
    wanted = [("not_started", "receipt_not_durable"), ("not_started", "batch_dependency")]
    assert told(ended) == wanted and effects(site) == 0
    assert told(site.again()) == told(ended)


@pytest.mark.promise("barrier:fail-closed")
def test_tr_186_f3_fsync_error_enters_no_body(site: Site) -> None:
    ended = struck(site, f"{STARTED}.before", FSYNC)
    first = ended.report["receipts"][0]
    assert (first["state"], first["reason"]) in (
        ("failed", "never_ran"),
        ("not_started", "receipt_not_durable"),
    )
    assert first["effectTrace"] == "none" and effects(site) == 0
    assert states(ended)[1] == "not_started"
    assert told(site.again()) == told(ended)


def test_tr_186_f3_an_fsync_error_that_lasts_leaves_it_uncertain_and_the_body_out(site: Site) -> None:
    ended = struck(site, f"{STARTED}.before", FSYNC_LASTING)
    assert ended.report["turns"][0]["error"] == "SF-LEDGER-UNCERTAIN" and effects(site) == 0
    opened = site.again()
    assert states(opened)[0] in ("unknown", "not_started", "failed") and effects(site) == 0
    assert f"did {site.label}" not in str(opened.report["said"])


def test_tr_186_f3_cancel_does_not_interrupt_the_commit_and_no_body_is_entered(site: Site) -> None:
    ended = struck(site, f"{STARTED}.before", STOP)
    first = ended.report["receipts"][0]
    assert (first["state"], first["reason"]) in (
        ("failed", "never_ran"),
        ("not_started", "cancelled_before_start"),
    )
    assert told(ended)[1] == ("not_started", "cancelled_before_start") and effects(site) == 0
    assert told(site.again()) == told(ended)


def lose_last_commit(site: Site) -> None:
    """Cut the last frame off the write-ahead log, as a disk does that forgot it."""
    (path,) = site.root.rglob("ledger.db-wal")
    content = path.read_bytes()
    frame_bytes, salts = 24 + 4096, content[16:24]
    starts = range(32, len(content) - frame_bytes + 1, frame_bytes)
    path.write_bytes(content[: [at for at in starts if content[at + 8 : at + 16] == salts][-1]])


@pytest.mark.promise("recovery:never-guess")
def test_tr_186_f3_killed_with_the_tail_of_the_ledger_lost_nothing_is_guessed(site: Site) -> None:
    killed(site, "tool[pay].after_effect")
    lose_last_commit(site)
    opened = site.again(verify=False)
    assert effects(site) == 1
    assert [one["reason"] for one in opened.report["receipts"]] == ["ledger_tail_lost"] * 3
    assert [one["tool"] for one in opened.report["receipts"]][2] == "ledger"
    went_on = site.again(verify=False, go_on=True, carry_out=True)
    assert effects(site) == 1 and states(went_on)[:3] == ["unknown"] * 3


# F4 and F5 in the body ----------------------------------------------------------------------------


@pytest.mark.promise("receipt:exact")
@pytest.mark.parametrize("strike", [STOP, None])
@pytest.mark.parametrize("made", [False, True])
def test_tr_186_f4_f5_cancel_or_time_limit_in_the_body_is_unknown_and_a_late_result_settles(
    site: Site, strike: dict[str, Any] | None, made: bool
) -> None:
    site.equipment.sink.switch(commit="now" if made else "hold", reply="hold" if made else "now")
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)
    try:
        seam = "tool[pay].before_effect"
        limit = 0.3 if strike is None else None
        at = {"kill_at": None if strike is None else 1, "only": (seam,), "strike": strike}
        ended = site.run(prompts=("go",), limit_seconds=limit, release=True, **at)
    finally:
        site.equipment.sink.switch(commit="now", reply="now")
        site.equipment.sink.release()
    (before,) = ended.report["beforeRelease"]
    reason = "time_limit" if strike is None else "cancelled"
    assert (before["state"], before["reason"], before["effectTrace"]) == ("unknown", reason, "possible")
    assert before["executor"]["state"] == "alive"
    assert states(ended) == ["succeeded"] and effects(site) == 1
    assert states(site.again()) == ["succeeded"]


@pytest.mark.parametrize("reply", ["drop"])
def test_tr_186_f5_a_lost_connection_after_the_effect_is_unknown_never_failed(site: Site, reply: str) -> None:
    site.equipment.sink.switch(reply=reply)
    site.script(
        {"calls": [call("pay", label=site.label)]}, {**TELLS, "calls": [call("pay", label=site.label)]}, TELLS
    )
    try:
        ended = site.run(prompts=("go",))
    finally:
        site.equipment.sink.switch(reply="now")
    assert told(ended) == [("unknown", "declared"), ("not_started", "fenced")] and effects(site) == 1
    opened = site.again(verify=False)
    assert opened.report["receipts"][0]["overlays"] == [] and len(opened.report["open"]) == 1
    looked = site.again(actions=({"action": "inspect", "attemptId": "open"},))
    assert looked.report["receipts"][0]["inspection"]["state"] == "present"
    assert looked.report["open"] == []


def test_tr_186_f4_a_full_disk_is_the_tools_own_error_and_may_have_left_something(site: Site) -> None:
    command = "echo half >> effects; echo whole > /dev/full"
    again = {**TELLS, "calls": [call("shell", command=command)]}
    site.script({"calls": [call("shell", command=command)]}, again, TELLS)
    ended = site.run(prompts=("go",))
    first = ended.report["receipts"][0]
    assert (first["state"], first["effectTrace"]) == ("failed", "possible")
    assert told(ended)[1] == ("not_started", "look_first") and site.lines("effects") == 1
    assert "Part of it may have happened." in ended.report["said"][1]
    assert told(site.again()) == told(ended)


def test_tr_186_f5_killed_after_the_effect_is_unknown_with_one_effect(site: Site) -> None:
    killed(site, "tool[pay].after_effect")
    opened = site.again(verify=False)
    assert told(opened)[0] == ("unknown", "owner_died") and effects(site) == 1


# F6 close commit ----------------------------------------------------------------------------------


@pytest.mark.promise("barrier:settle-first")
@pytest.mark.parametrize("strike", [{**FULL, "times": 3}, FSYNC, {**FSYNC, "nth": 2}])
def test_tr_186_f6_a_close_that_fails_is_withheld_and_written_again(
    site: Site, strike: dict[str, Any]
) -> None:
    ended = struck(site, f"{CLOSED}.before", strike)
    assert ended.report["turns"][0]["status"] == "completed"
    assert ended.report["receipts"][0]["state"] == "succeeded"
    assert ("outcome_withheld" in ended.report["notices"]) is (strike["do"] == "full")
    assert told(site.again()) == told(ended) and effects(site) == states(ended).count("succeeded")


@pytest.mark.promise("barrier:settle-first")
@pytest.mark.parametrize("strike", [FULL, FSYNC_LASTING])
def test_tr_186_f6_a_close_that_never_becomes_durable_is_shown_to_nobody(
    site: Site, strike: dict[str, Any]
) -> None:
    ended = struck(site, f"{CLOSED}.before", strike, blow=Blow(0.8))
    assert ended.returncode == -signal.SIGKILL and effects(site) == 1
    asked = site.equipment.emulator.requests()[-1].json()["messages"]
    assert [message["role"] for message in asked].count("tool") == 0
    opened = site.again(verify=False)
    assert opened.report["receipts"][0]["state"] in ("unknown", "succeeded")
    assert opened.report["receipts"][1]["state"] == "not_started" and effects(site) == 1
    if strike is FULL:
        assert told(opened)[0] == ("unknown", "owner_died")


def test_tr_186_f6_cancel_during_the_close_is_shielded_and_settles(site: Site) -> None:
    ended = struck(site, f"{CLOSED}.before", STOP)
    assert ended.report["turns"][0]["status"] == "cancelled"
    assert told(ended) == [("succeeded", None), ("not_started", "cancelled_before_start")]
    assert told(site.again()) == told(ended) and effects(site) == 1


def test_tr_186_f6_killed_before_the_close_is_unknown_and_after_it_settled(
    new_site: Callable[[], Site],
) -> None:
    site = new_site()
    killed(site, f"{CLOSED}.before")
    assert told(site.again(verify=False))[0] == ("unknown", "owner_died")
    site = new_site()
    killed(site, f"{CLOSED}.after")
    assert told(site.again())[0] == ("succeeded", None)


# F7 closed, before the next request ----------------------------------------------------------------


@pytest.mark.parametrize("strike", [FULL, {**FULL, "times": 2}, FSYNC, FSYNC_LASTING])
def test_tr_186_f7_a_disk_that_fails_after_the_close_loses_nothing_and_starts_nothing(
    site: Site, strike: dict[str, Any]
) -> None:
    ended = struck(site, f"{CLOSED}.after", strike)
    assert states(ended)[0] == "succeeded" and effects(site) == 1
    opened = site.again()
    assert told(opened)[0] == ("succeeded", None) and effects(site) == 1
    second = told(opened)[1]
    assert second[0] in ("not_started", "unknown") or second == ("failed", "never_ran")
    assert second[0] != "unknown" or strike is FSYNC_LASTING


def test_tr_186_f7_killed_after_the_close_gives_the_stored_result_back_and_runs_nothing(site: Site) -> None:
    killed(site, f"{CLOSED}.after")
    went_on = site.again(go_on=True, carry_out=True)
    assert went_on.report["said"][1].splitlines()[0] == f"Told: did {site.label}"
    assert effects(site) == 1 and states(went_on) == ["succeeded", "not_started"]


def test_tr_186_f7_cancel_after_the_close_keeps_the_receipt(site: Site) -> None:
    ended = struck(site, f"{CLOSED}.after", STOP)
    assert ended.report["turns"][0]["status"] == "cancelled"
    assert told(ended) == [("succeeded", None), ("not_started", "cancelled_before_start")]
    assert told(site.again()) == told(ended) and effects(site) == 1


def test_tr_187_five_deaths_in_one_calls_life_make_no_second_effect(site: Site) -> None:
    killed(site, "tool[pay].after_effect")
    for _ in range(5):
        for number in itertools.count(1):
            if not site.again(verify=False, kill_at=number * 3, only=("append", "claim")).killed:
                break
    assert effects(site) == 1
    assert told(site.again(verify=False))[0] == ("unknown", "owner_died")
