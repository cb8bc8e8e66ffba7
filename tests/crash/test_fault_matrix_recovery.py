"""TR-186, steps F9 to F12, F15 and F16: what happens when recovery, decisions, ownership and questions are struck.

Each cell runs the step in a child process, shows that its fault fired, and reopens the session
with a fresh process.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import LedgerError, LedgerUncertain, SessionHeld, SessionMissing
from surefoot.testing.crash import Blow, Ended, Started
from surefoot.testing.kills import TELLS, Site
from surefoot.testing.model import call

FULL = {"do": "full"}
FSYNC = {"do": "disk", "operation": "sync"}
FSYNC_LASTING = {**FSYNC, "lasting": True}
CLOSED, INSPECTED = "append[attempt.closed]", "append[attempt.inspected]"
RESOLVED = "append[attempt.resolved]"
AFTER_EFFECT = "tool[{}].after_effect"
INSPECT = {"action": "inspect", "attemptId": "open"}


def dead_in(site: Site, tool: str) -> None:
    """A session whose owner died right after the effect of one call."""
    site.script({"calls": [call(tool, label=site.label)]}, TELLS)
    seam = AFTER_EFFECT.format(tool)
    assert site.run(prompts=("go",), kill_at=1, only=(seam,)).fatal == seam


def struck(site: Site, seam: str, strike: dict[str, Any], **fields: Any) -> Ended:
    """Open the session again; `strike` happens at the first passing of `seam`, and is shown to have happened."""
    ended = site.again(kill_at=1, only=(seam,), strike=strike, **fields)
    if "fault" in ended.report:
        assert ended.report["fault"]["at"] == seam
        assert strike["do"] == "stop" or ended.report["fault"]["disk"] >= 1
    else:
        assert ended.seams[:1] == [seam]
    return ended


def killed(site: Site, seam: str, **fields: Any) -> None:
    """Open the session again and die at the first passing of `seam`."""
    assert site.again(kill_at=1, only=(seam,), **fields).fatal == seam


def told(ended: Ended) -> list[tuple[str, str | None]]:
    return [(one["state"], one["reason"]) for one in ended.report["receipts"]]


def effects(site: Site) -> int:
    return site.equipment.sink.count(site.label)


# F9 reconciliation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
def test_tr_186_f9_a_reconciliation_that_was_killed_is_repeated_with_the_same_end(
    site: Site, when: str
) -> None:
    dead_in(site, "pay")
    killed(site, f"append[attempt.closed+turn+hand_off].{when}", verify=False)
    first = site.again(verify=False)
    assert told(first) == [("unknown", "owner_died")]
    assert first.report["statuses"].count("interrupted") == 1 and effects(site) == 1
    assert site.again(verify=False).report["plan"] == first.report["plan"]


@pytest.mark.parametrize(("strike", "error"), [(FULL, LedgerError), (FSYNC_LASTING, LedgerUncertain)])
def test_tr_186_f9_a_reconciliation_that_cannot_be_written_opens_nothing_for_writing(
    site: Site, strike: dict[str, Any], error: type[LedgerError]
) -> None:
    dead_in(site, "pay")
    seam = "append[attempt.closed+turn+hand_off].before"
    ended = struck(site, seam, strike, go_on=True)
    assert ended.report["error"] == error.code and effects(site) == 1
    requests = len(site.equipment.emulator.requests())
    opened = site.again(verify=False)
    assert told(opened) == [("unknown", "owner_died")] and len(opened.report["open"]) == 1
    assert len(site.equipment.emulator.requests()) == requests


def test_tr_186_f9_one_failed_sync_is_re_read_and_judged_once(site: Site) -> None:
    dead_in(site, "pay")
    ended = struck(site, "append[attempt.closed+turn+hand_off].before", FSYNC, verify=False)
    assert told(ended) == [("unknown", "owner_died")] and ended.report["statuses"].count("interrupted") == 1
    assert told(site.again(verify=False)) == told(ended)


# F10 safe retry on resume ----------------------------------------------------------------------------


def test_tr_186_f10_a_retry_that_is_killed_stands_for_both_and_after_the_second_death_a_person_is_asked(
    site: Site,
) -> None:
    dead_in(site, "put")
    seam = AFTER_EFFECT.format("put")
    killed(site, seam, verify=False, carry_out=True)
    opened = site.again(verify=False, carry_out=True)
    assert told(opened) == [("unknown", "owner_died")] * 2 and effects(site) == 2
    first, second = opened.report["receipts"]
    assert first["supersededBy"] == second["attemptId"] and first["callId"] == second["callId"]
    assert first["idempotencyKey"] == second["idempotencyKey"]
    assert opened.report["plan"] == [[first["callId"], "ASK_USER", "8"]]


@pytest.mark.parametrize("strike", [FULL, FSYNC, FSYNC_LASTING])
def test_tr_186_f10_a_retry_whose_start_cannot_be_written_leaves_the_old_call_open(
    site: Site, strike: dict[str, Any]
) -> None:
    dead_in(site, "put")
    struck(site, "append[attempt.started].before", strike, verify=False, carry_out=True)
    assert effects(site) == 1
    opened = site.again(verify=False)
    first = opened.report["receipts"][0]
    assert first["state"] == "unknown" and len(opened.report["open"]) == 1
    assert all(one["state"] != "succeeded" for one in opened.report["receipts"])


@pytest.mark.parametrize("how", ["limit", "lost"])
def test_tr_186_f10_a_retry_that_ends_unknown_stays_unknown(site: Site, how: str) -> None:
    dead_in(site, "put")
    sink = site.equipment.sink
    sink.switch(**({"commit": "hold"} if how == "limit" else {"reply": "drop"}))
    try:
        ended = site.again(verify=False, carry_out=True, limit_seconds=2.0 if how == "limit" else None)
    finally:
        sink.switch(commit="now", reply="now")
        sink.release()
    reason = "time_limit" if how == "limit" else "declared"
    assert told(ended) == [("unknown", "owner_died"), ("unknown", reason)]
    assert ended.report["open"] == [ended.report["receipts"][1]["attemptId"]]


# F11 inspect -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
def test_tr_186_f11_a_look_that_is_killed_leaves_the_old_inspection_or_the_new_one_whole(
    site: Site, when: str
) -> None:
    dead_in(site, "pay")
    killed(site, f"{INSPECTED}.{when}")
    opened = site.again(verify=False)
    inspection = opened.report["receipts"][0]["inspection"]
    found = (inspection["state"], inspection["grade"])
    assert found == (("present", "proof") if when == "after" else ("unknown", "none")) and inspection["id"]
    assert effects(site) == 1


@pytest.mark.parametrize(("strike", "reason"), [(FULL, None), (FSYNC_LASTING, "uncertain")])
def test_tr_186_f11_a_look_that_cannot_be_written_says_so_and_the_old_one_stays(
    site: Site, strike: dict[str, Any], reason: str | None
) -> None:
    dead_in(site, "pay")
    old = site.again(verify=False).report["receipts"][0]["inspection"]
    ended = struck(site, f"{INSPECTED}.before", strike, actions=(INSPECT,))
    (answer,) = ended.report["answers"]
    assert (answer["status"], answer["body"]["code"]) == (409, "storage_failed")
    assert answer["body"].get("reason") == reason
    now = site.again(verify=False).report["receipts"][0]["inspection"]
    assert now == old or strike is FSYNC_LASTING


def test_tr_186_f11_one_failed_sync_is_re_read_and_the_look_is_recorded_once(site: Site) -> None:
    dead_in(site, "pay")
    site.again(verify=False)
    ended = struck(site, f"{INSPECTED}.before", FSYNC, actions=(INSPECT,))
    assert ended.report["answers"][0]["status"] == 200 and ended.report["open"] == []


def test_tr_186_f11_a_list_that_cannot_be_reached_is_recorded_as_unknown_with_its_reason(site: Site) -> None:
    dead_in(site, "pay")
    site.equipment.sink.switch(look_up=False)
    opened = site.again()
    inspection = opened.report["receipts"][0]["inspection"]
    assert (inspection["state"], inspection["reason"]) == ("unknown", "verifier_raised")
    assert len(opened.report["open"]) == 1


def test_tr_186_f11_a_look_that_takes_too_long_is_recorded_as_unknown(site: Site) -> None:
    dead_in(site, "pay")
    pid = int(site.equipment.sink.state()["pid"])
    os.kill(pid, signal.SIGSTOP)
    try:
        opened = site.again(flags={"recovery.inspect_seconds": 1})
    finally:
        os.kill(pid, signal.SIGCONT)
    inspection = opened.report["receipts"][0]["inspection"]
    assert (inspection["state"], inspection["reason"]) == ("unknown", "verifier_timeout")


# F12 decisions ----------------------------------------------------------------------------------------

DECISIONS = {"confirm": "confirmed", "deny": "denied", "reject": "rejected", "release": "released"}


@pytest.mark.parametrize("action", sorted(DECISIONS))
@pytest.mark.parametrize("when", ["before", "after"])
def test_tr_186_f12_a_decision_that_is_killed_is_whole_or_absent(site: Site, action: str, when: str) -> None:
    dead_in(site, "pay")
    site.again(verify=False)
    press = ({"action": action, "attemptId": "open"},)
    killed(site, f"{RESOLVED}.{when}", verify=False, actions=press)
    opened = site.again(verify=False)
    (receipt,) = opened.report["receipts"]
    recorded = [] if when == "before" else [DECISIONS[action]]
    assert receipt["overlays"] == recorded and receipt["state"] == "unknown" and effects(site) == 1
    assert bool(opened.report["open"]) is (when == "before" or action == "reject")
    again = site.again(verify=False, actions=press)
    if when == "before":
        assert again.report["answers"][0]["status"] == 200
        assert again.report["receipts"][0]["overlays"] == [DECISIONS[action]]


@pytest.mark.parametrize("strike", [FULL, FSYNC_LASTING])
def test_tr_186_f12_a_decision_that_cannot_be_written_leaves_the_fence(
    site: Site, strike: dict[str, Any]
) -> None:
    dead_in(site, "pay")
    site.again(verify=False)
    press = ({"action": "confirm", "attemptId": "open"},)
    ended = struck(site, f"{RESOLVED}.before", strike, verify=False, actions=press)
    (answer,) = ended.report["answers"]
    assert (answer["status"], answer["body"]["code"]) == (409, "storage_failed")
    if strike is FULL:
        assert len(site.again(verify=False).report["open"]) == 1


def test_tr_186_f12_one_failed_sync_records_a_decision_once(site: Site) -> None:
    dead_in(site, "pay")
    site.again(verify=False)
    press = ({"action": "confirm", "attemptId": "open"},)
    ended = struck(site, f"{RESOLVED}.before", FSYNC, verify=False, actions=press)
    assert ended.report["answers"][0]["status"] == 200
    assert site.again(verify=False).report["receipts"][0]["overlays"] == ["confirmed"]


# F15 ownership ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
def test_tr_186_f15_an_owner_killed_while_it_takes_over_spends_its_epoch_at_most(
    site: Site, when: str
) -> None:
    dead_in(site, "pay")
    killed(site, f"claim.{when}")
    opened = site.again(verify=False)
    epoch = int(opened.report["opened"]["runtimeEpoch"])
    assert epoch == (2 if when == "before" else 3)
    assert told(opened) == [("unknown", "owner_died")] and effects(site) == 1


@pytest.mark.parametrize("strike", [FULL, FSYNC_LASTING])
def test_tr_186_f15_a_takeover_that_cannot_be_written_is_refused_and_runs_nothing(
    site: Site, strike: dict[str, Any]
) -> None:
    dead_in(site, "put")
    ended = struck(site, "claim.before", strike, carry_out=True, go_on=True)
    assert ended.report["error"].startswith("SF-LEDGER") and effects(site) == 1
    assert told(site.again(verify=False))[0] == ("unknown", "owner_died")


def stops_itself(child: Started) -> None:
    """Wait until the child has stopped at its seam."""
    until = time.monotonic() + 90
    while Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < until, "the child did not stop"
        time.sleep(0.005)


def test_tr_187_a_stopped_owner_is_no_dead_one_and_wakes_to_a_session_of_its_own(site: Site) -> None:
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)
    leases = {"limits.lease_seconds": 1, "limits.lease_renewal_seconds": 0.4}
    at = {"kill_at": 1, "only": ("append[attempt.started].before",), "signal": signal.SIGSTOP}
    with site.started(prompts=("go",), flags=leases, **at) as child:
        stops_itself(child)
        since = time.monotonic()
        while time.monotonic() - since < 1.2:  # longer than the lease
            held = site.again()
            assert held.report["error"] == SessionHeld.code and held.report["facts"]["pid"] == child.pid
        os.kill(child.pid, signal.SIGCONT)
        assert child.nursery.wait(child.pid, 90) == 0
    assert told(site.again()) == [("succeeded", None)] and effects(site) == 1


@pytest.mark.promise("ledger:fenced")
def test_tr_187_an_owner_that_lost_its_session_while_stopped_starts_nothing_when_it_wakes(site: Site) -> None:
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)
    at = {"kill_at": 1, "only": ("append[attempt.started].before",), "signal": signal.SIGSTOP}
    with site.started(prompts=("go",), **at) as child:
        stops_itself(child)
        taken = site.again(take_over=True)
        assert told(taken) == [("not_started", "owner_died_before_start")]
        os.kill(child.pid, signal.SIGCONT)
        assert child.nursery.wait(child.pid, 90) == 1
    assert effects(site) == 0 and told(site.again()) == told(taken)


@pytest.mark.promise("ledger:fenced")
def test_tr_186_f15_a_body_that_outlives_its_ownership_stays_unknown_and_its_late_write_is_refused(
    site: Site,
) -> None:
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)
    at = {"kill_at": 1, "only": ("tool[pay].before_effect",), "signal": signal.SIGSTOP}
    with site.started(prompts=("go",), **at) as child:
        stops_itself(child)
        deny = ({"action": "deny", "attemptId": "open"},)
        taken = site.again(take_over=True, verify=False, actions=deny)
        (receipt,) = taken.report["receipts"]
        assert (receipt["state"], receipt["executor"]["state"]) == ("unknown", "alive")
        assert taken.report["answers"][0]["status"] == 409 and effects(site) == 0
        os.kill(child.pid, signal.SIGCONT)
        assert child.nursery.wait(child.pid, 90) == 1
    assert effects(site) == 1
    assert site.again(verify=False).report["receipts"][0]["state"] == "unknown"


# F16 question and answer --------------------------------------------------------------------------------

ASKS = {"calls": [call("ask_user", question="Which colour?")]}


def question_ids(ended: Ended) -> list[str]:
    return [one["questionId"] for one in ended.report["questions"]]


def test_tr_186_f16_killed_while_a_person_is_asked_the_question_comes_again_with_its_id(site: Site) -> None:
    site.script(ASKS, TELLS)
    assert site.run(prompts=("go",), answers=(), kill_at=1, only=("asked",)).fatal == "asked"
    opened = site.again()
    assert told(opened) == [("unknown", "owner_died")] and len(question_ids(opened)) == 1
    assert opened.report["plan"][0][1] == "RETRY"
    answered = site.again(answers=("blue",), carry_out=True, go_on=True)
    first, second = question_ids(answered)
    assert first == second and "blue" in answered.report["said"][-1]


def test_tr_186_f16_killed_after_the_answer_is_durable_nobody_is_asked_again(site: Site) -> None:
    site.script(ASKS, TELLS)
    first = site.run(prompts=("go",), answers=("blue",), kill_at=1, only=("append[answer].after",))
    assert first.fatal == "append[answer].after"
    opened = site.again(answers=(), carry_out=True, go_on=True)
    assert len(question_ids(opened)) == 1 and opened.report["turns"][-1]["status"] == "completed"
    assert "blue" in opened.report["said"][-1]


@pytest.mark.parametrize("seam", ["append[question].before", "append[answer].before"])
def test_tr_186_f16_a_question_or_answer_that_cannot_be_written_is_no_consent(site: Site, seam: str) -> None:
    site.script(ASKS, TELLS)
    ended = site.run(prompts=("go",), answers=("blue",), kill_at=1, only=(seam,), strike=FULL, blow=Blow(0.8))
    assert ended.seams == [seam]
    opened = site.again()
    assert "blue" not in str(opened.report["said"]) and opened.report["receipts"][0]["state"] != "succeeded"
    assert len(question_ids(opened)) == int("answer" in seam)


def test_tr_186_f16_a_stop_withdraws_the_question_and_is_no_consent(site: Site) -> None:
    site.script(ASKS, TELLS)
    ended = site.run(prompts=("go",), answers=(), kill_at=1, only=("asked",), strike={"do": "stop"})
    assert ended.report["fault"]["at"] == "asked" and ended.report["turns"][0]["status"] == "cancelled"
    (receipt,) = ended.report["receipts"]
    assert receipt["state"] in ("failed", "unknown")
    assert receipt["result"] is None or "not consent" in receipt["result"]["text"]


def test_tr_186_f15_killed_before_anything_was_begun_leaves_no_session(new_site: Callable[[], Site]) -> None:
    site = new_site()
    assert site.run(prompts=("go",), kill_at=1, only=("claim[opening].before",)).killed
    assert site.again().report["error"] == SessionMissing.code
