"""TR-186, the columns cancel, time limit and lost connection of F1 to F3, F6, F7, F9 to F12 and F15 to F18.

At the time limit of a run, and when a program stops waiting, nobody waits for the turn any
more; what is durable is finished and the rest never starts.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from surefoot.testing.crash import Blow, Ended, Started, leftovers
from surefoot.testing.kills import TELLS, Site
from surefoot.testing.model import call

FSYNC_LASTING = {"do": "disk", "operation": "sync", "lasting": True}
GIVE_UP, STOP = {"do": "give_up"}, {"do": "stop"}
STARTED, CLOSED = "append[attempt.started]", "append[attempt.closed]"
INSPECTED, RESOLVED = "append[attempt.inspected]", "append[attempt.resolved]"
RUNNING = "append[attempt.process].after"
RECONCILED = "append[attempt.closed+turn+hand_off]"
INSPECT = {"action": "inspect", "attemptId": "open"}
CONFIRM = {"action": "confirm", "attemptId": "open"}
ASKS = {"calls": [call("ask_user", question="Which colour?")]}


def told(ended: Ended) -> list[tuple[str, str | None]]:
    return [(one["state"], one["reason"]) for one in ended.report["receipts"]]


def effects(site: Site) -> int:
    return site.equipment.sink.count(site.label)


def struck(ended: Ended, seam: str) -> Ended:
    """The same end, once its fault is shown to have fired."""
    assert (ended.report["fault"]["at"] if "fault" in ended.report else ended.seams[-1]) == seam
    return ended


def given_up(site: Site, seam: str, **fields: Any) -> Ended:
    """Two calls; at the first passing of `seam` nobody waits for the turn any more."""
    site.script({"calls": [call("pay", label=site.label), call("put", label=site.label)]}, TELLS)
    ended = site.run(prompts=("go",), kill_at=1, only=(seam,), strike=GIVE_UP, **fields)
    assert struck(ended, seam).report["turns"] == [{"status": "given up"}]
    return ended


def dead_in(site: Site, tool: str) -> None:
    site.script({"calls": [call(tool, label=site.label)]}, TELLS)
    seam = f"tool[{tool}].after_effect"
    assert site.run(prompts=("go",), kill_at=1, only=(seam,)).fatal == seam


def test_tr_186_f1_at_the_time_limit_of_a_run_nothing_runs(site: Site) -> None:
    site.equipment.emulator.fault(stage="reply", delay_headers=None)
    given_up(site, "append[turn+user+turn].after")
    site.equipment.emulator.release()
    opened = site.again()
    assert opened.report["statuses"][-1] == "cancelled" and opened.report["receipts"] == []


def test_tr_186_f2_at_the_time_limit_of_a_run_a_question_starts_nothing(site: Site) -> None:
    ended = given_up(site, "asked", answers=(), flags={"permissions.mode": "default"})
    assert told(ended)[1] == ("not_started", "cancelled_before_start")
    assert [state for state, _ in told(site.again())] == ["not_started"] * 2 and effects(site) == 0


def test_tr_186_f3_at_the_time_limit_of_a_run_the_commit_is_finished_and_no_body_entered(site: Site) -> None:
    ended = given_up(site, f"{STARTED}.before")
    assert told(ended)[0] in (("failed", "never_ran"), ("not_started", "cancelled_before_start"))
    assert told(ended)[1] == ("not_started", "cancelled_before_start") and effects(site) == 0
    assert told(site.again()) == told(ended)


@pytest.mark.parametrize("when", ["before", "after"])
def test_tr_186_f6_f7_at_the_time_limit_of_a_run_the_close_is_finished_and_the_next_call_waits(
    site: Site, when: str
) -> None:
    ended = given_up(site, f"{CLOSED}.{when}")
    assert told(ended) == [("succeeded", None), ("not_started", "cancelled_before_start")]
    assert told(site.again()) == told(ended) and effects(site) == 1


def test_tr_186_f7_a_line_lost_after_the_close_loses_nothing(site: Site) -> None:
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)
    site.equipment.emulator.fault(stage="reply", match={"nth": 2}, cut_at={"bytes": 40})
    ended = site.run(prompts=("go",))
    site.equipment.emulator.assert_fired()
    assert told(ended) == [("succeeded", None)] and effects(site) == 1
    assert f"did {site.label}" in ended.report["said"][1]


# F9 to F12 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["interrupt", "give_up"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_tr_186_f9_a_reconciliation_nobody_waits_for_is_finished_or_repeated(
    site: Site, when: str, how: str
) -> None:
    dead_in(site, "pay")
    seam = f"{RECONCILED}.{when}"
    at = {"strike": GIVE_UP} if how == "give_up" else {"signal": signal.SIGINT}
    ended = site.again(verify=False, kill_at=1, only=(seam,), **at)
    assert seam in ended.seams and "error" in ended.report
    opened = site.again(verify=False)
    assert told(opened) == [("unknown", "owner_died")] and effects(site) == 1
    assert opened.report["statuses"].count("interrupted") == 1


@pytest.mark.parametrize("seam", [f"{STARTED}.before", "tool[put].before_effect"])
def test_tr_186_f10_a_stop_during_a_safe_retry_supersedes_only_what_was_started(
    site: Site, seam: str
) -> None:
    dead_in(site, "put")
    made = "effect" in seam
    site.equipment.sink.switch(reply="hold")
    try:
        ended = site.again(verify=False, go_on=True, kill_at=1, only=(seam,), strike=STOP, release=made)
    finally:
        site.equipment.sink.switch(reply="now")
        site.equipment.sink.release()
    first, *rest = struck(ended, seam).report["beforeRelease" if made else "receipts"]
    started = [one for one in rest if one["startedAt"] is not None]
    assert (first["supersededBy"] is not None) == bool(started)
    assert all(one["state"] == "unknown" or one["reason"] == "never_ran" for one in started)
    assert effects(site) == 1 + made


def test_tr_186_f11_a_look_nobody_waits_for_records_nothing(site: Site) -> None:
    dead_in(site, "pay")
    old = site.again(verify=False).report["receipts"][0]["inspection"]
    at = {"kill_at": 1, "only": ("verifier[sink].look",), "strike": GIVE_UP}
    ended = site.again(actions=(INSPECT,), **at)
    assert struck(ended, "verifier[sink].look").report["answers"] == []
    now = site.again(verify=False).report["receipts"][0]
    assert now["overlays"] == [] and {**now["inspection"], "id": 0, "observedAt": 0} == {
        **old,
        "id": 0,
        "observedAt": 0,
    }


def test_tr_186_f12_a_decision_nobody_waits_for_is_finished(site: Site) -> None:
    dead_in(site, "pay")
    site.again(verify=False)
    seam = f"{RESOLVED}.before"
    ended = site.again(verify=False, actions=(CONFIRM,), kill_at=1, only=(seam,), strike=GIVE_UP)
    assert struck(ended, seam).report["answers"] == []
    opened = site.again(verify=False)
    assert opened.report["receipts"][0]["overlays"] == ["confirmed"] and opened.report["open"] == []


def test_tr_186_f12_a_press_sent_again_after_a_lost_answer_makes_one_record(site: Site) -> None:
    dead_in(site, "pay")
    (receipt,) = site.again(verify=False).report["receipts"]
    press = {**CONFIRM, "attemptId": receipt["attemptId"], "inspectionId": None}
    press["inspectionId"] = receipt["inspection"]["id"]
    lost = site.again(verify=False, actions=(press,), kill_at=1, only=(f"{RESOLVED}.after",))
    assert lost.killed
    again = site.again(verify=False, actions=(press, press))
    assert [one["body"]["code"] for one in again.report["answers"]] == ["already_resolved"] * 2
    assert again.report["receipts"][0]["overlays"] == ["confirmed"]


# F15 and F16 --------------------------------------------------------------------------------------


def test_tr_186_f15_an_owner_that_cannot_renew_ends_its_bodies_inside_the_lease(site: Site) -> None:
    site.equipment.sink.switch(reply="hold")
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)
    leases = {"limits.lease_seconds": 1.5, "limits.lease_renewal_seconds": 0.4}
    # Not at a renewal: on a slow machine one is due before the call has begun.
    at = {"kill_at": 1, "only": ("tool[pay].before_effect",), "strike": FSYNC_LASTING}
    ended = site.run(prompts=("go",), flags=leases, blow=Blow(3.0), **at)
    site.equipment.sink.switch(reply="now")
    site.equipment.sink.release()
    assert ended.seams == ["tool[pay].before_effect"] and effects(site) == 1
    assert site.again(verify=False).report["receipts"][0]["state"] == "unknown"
    assert ended.returncode != 0 or ended.report["receipts"][0]["state"] in ("started", "unknown")


@pytest.mark.parametrize("seam", ["append[question].before", "append[answer].before"])
def test_tr_186_f16_a_failed_sync_under_a_question_or_answer_is_no_consent(site: Site, seam: str) -> None:
    site.script(ASKS, TELLS)
    at = {"kill_at": 1, "only": (seam,), "strike": FSYNC_LASTING, "blow": Blow(0.8)}
    ended = site.run(prompts=("go",), answers=("blue",), **at)
    assert ended.seams == [seam]
    opened = site.again()
    assert "blue" not in str(opened.report["said"])
    # The frames of a failed sync may be found again: then the person's answer is on record after all.
    assert opened.report["receipts"][0]["state"] != "succeeded" or "answer" in seam


def test_tr_186_f16_at_the_time_limit_of_a_run_the_question_is_no_consent(site: Site) -> None:
    site.script(ASKS, TELLS)
    ended = site.run(prompts=("go",), answers=(), kill_at=1, only=("asked",), strike=GIVE_UP)
    (receipt,) = struck(ended, "asked").report["receipts"]
    assert receipt["state"] != "succeeded" or "not consent" in receipt["result"]["text"]


def test_tr_186_f16_a_question_whose_terminal_was_lost_stays_pending(site: Site) -> None:
    site.script(ASKS, TELLS)
    lost = site.run(prompts=("go",), answers=(), kill_at=1, only=("asked",), signal=signal.SIGHUP)
    assert lost.returncode == -signal.SIGHUP
    opened = site.again()
    assert opened.report["plan"][0][1] == "RETRY" and len(opened.report["questions"]) == 1
    answered = site.again(answers=("blue",), carry_out=True, go_on=True)
    assert len({one["questionId"] for one in answered.report["questions"]}) == 1


# F17 and F18 --------------------------------------------------------------------------------------


@contextlib.contextmanager
def stopped_at(site: Site, seam: str, **arguments: Any) -> Iterator[Started]:
    """An agent that stands still at a seam of a command; it goes on, and is waited for, afterwards."""
    site.script({"calls": [call("shell", **arguments)]}, TELLS)
    at = {"kill_at": 1, "only": (seam,), "signal": signal.SIGSTOP}
    with site.started(prompts=("go",), **at) as child:
        child.until_seam(seam)
        until = time.monotonic() + 90
        while Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            assert time.monotonic() < until, "the agent did not stop"
            time.sleep(0.005)
        yield child
        with contextlib.suppress(subprocess.TimeoutExpired, ProcessLookupError):
            os.kill(child.pid, signal.SIGCONT)
            child.nursery.wait(child.pid, 2)  # one that cannot write its end waits for ever


def no_file_grows(pid: int) -> None:
    """As on a full disk, for a process and all that it starts."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0))


@pytest.mark.parametrize("background", [False, True])
def test_tr_186_f17_f18_a_claim_that_cannot_be_written_executes_nothing(site: Site, background: bool) -> None:
    with stopped_at(site, "tool[shell].entered", command=": > made", background=background) as child:
        no_file_grows(child.pid)
    site.quiet()
    opened = site.again()
    (receipt,) = opened.report["receipts"]
    assert (receipt["state"], receipt["reason"]) == ("failed", "never_ran")
    assert not (site.project / "made").exists() and opened.report["background"] == []


def test_tr_186_f17_without_an_exit_record_a_command_is_unknown(site: Site) -> None:
    command = "while ! test -e go; do sleep 0.01; done; : > made"
    with stopped_at(site, RUNNING, command=command) as child:
        (claim,) = site.root.rglob("processes/*/claim")
        supervisor = json.loads(claim.read_text())["pid"]
        no_file_grows(supervisor)
        os.kill(child.pid, signal.SIGKILL)  # a living agent would hear of the end from the supervisor itself
        (site.project / "go").touch()
    site.quiet()
    (receipt,) = site.again().report["receipts"]
    assert (site.project / "made").exists() and list(site.root.rglob("processes/*/exit")) == []
    assert receipt["state"] == "unknown"


def test_tr_186_f18_a_stop_at_the_start_of_a_background_command_ends_it_or_lists_it(site: Site) -> None:
    site.script({"calls": [call("shell", command="exec sleep 300", background=True)]}, TELLS)
    ended = site.run(prompts=("go",), kill_at=1, only=(RUNNING,), strike=STOP)
    (receipt,) = struck(ended, RUNNING).report["receipts"]
    if receipt["state"] == "succeeded":
        assert len(site.again().report["background"]) == 1
    else:
        assert receipt["state"] == "unknown"
        site.quiet()
        assert leftovers(site.root) == []


def test_tr_186_f18_a_background_command_survives_the_loss_of_the_terminal(site: Site) -> None:
    site.script({"calls": [call("shell", command="exec sleep 300", background=True)]}, TELLS)
    at = {"kill_at": 1, "only": (f"{CLOSED}.after",), "signal": signal.SIGHUP}
    assert site.run(prompts=("go",), **at).returncode == -signal.SIGHUP
    opened = site.again()
    assert opened.report["receipts"][0]["state"] == "succeeded" and len(opened.report["background"]) == 1
