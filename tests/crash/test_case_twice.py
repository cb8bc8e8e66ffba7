"""Cases of family A: what other projects ran twice happens once here.

Each test is one row, retold with the real runtime in processes of their own, a counting sink
and the strict emulator.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import SessionHeld
from surefoot.testing.crash import Ended
from surefoot.testing.kills import TELLS, Site
from surefoot.testing.model import call
from surefoot.testing.strikes import ENGINES

AFTER_EFFECT = "tool[pay].after_effect"


def pay(site: Site, suffix: str = "") -> dict[str, Any]:
    return call("pay", label=site.label + suffix)


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


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < end, "it did not come to hold in time"
        time.sleep(0.005)


def waiting(site: Site) -> bool:
    return bool(site.equipment.sink.state()["waiting"])


# twice-owner --------------------------------------------------------------------------------------


def test_case_a01_a_call_longer_than_the_lease_is_not_started_by_a_second_owner(site: Site) -> None:
    site.script({"calls": [pay(site)]}, TELLS)
    site.equipment.sink.switch(commit="hold")
    leases = {"limits.lease_seconds": 1, "limits.lease_renewal_seconds": 0.4}
    with site.started(prompts=("go",), flags=leases) as child:
        until(lambda: waiting(site))
        since = time.monotonic()
        while time.monotonic() - since < 1.5:
            second = site.again(prompts=("go",), carry_out=True)
            assert second.report["error"] == SessionHeld.code
        site.equipment.sink.release()
        assert child.nursery.wait(child.pid, 90) == 0
    assert told(site.again()) == [("succeeded", None)] and effects(site) == 1


def test_case_a02_of_two_owners_that_open_a_session_at_once_one_is_refused(site: Site) -> None:
    site.script({"calls": [pay(site)]}, TELLS)
    killed(site, "append[assistant].before")
    site.equipment.sink.switch(reply="hold")
    with site.started(session="newest", go_on=True) as one, site.started(session="newest", go_on=True) as two:
        until(lambda: waiting(site))
        loser = None
        until(lambda: any((site.root / f"report-{number}.json").exists() for number in (1, 2)))
        loser = one if (site.root / "report-1.json").exists() else two
        winner = two if loser is one else one
        assert loser.nursery.wait(loser.pid, 90) == 1
        site.equipment.sink.release()
        assert winner.nursery.wait(winner.pid, 90) == 0
    assert effects(site) == 1 and states(site.again()) == ["succeeded"]


def test_case_a03_recovery_asked_for_in_the_middle_of_a_call_leaves_it_alone(site: Site) -> None:
    site.script({"calls": [pay(site), pay(site, "-2")]}, TELLS)
    ended = site.run(prompts=("go",), kill_at=1, only=("tool[pay].before_effect",), strike={"do": "recover"})
    assert ended.report["fault"]["at"] == "tool[pay].before_effect"
    assert states(ended) == ["succeeded", "succeeded"] and effects(site) == effects(site, "-2") == 1
    assert ended.report["statuses"] == ["queued", "running", "completed"]


def test_case_a04_of_two_owners_that_fire_the_same_tick_one_admits_its_turn(site: Site) -> None:
    site.script(TELLS, {"calls": [pay(site)]}, TELLS, {"calls": [pay(site, "-2")]}, TELLS)
    site.run(prompts=("go",))
    site.equipment.sink.switch(reply="hold")
    tick = {"session": "newest", "prompts": ("heartbeat",)}
    with site.started(**tick) as one, site.started(**tick) as two:
        until(lambda: waiting(site))
        until(lambda: any((site.root / f"report-{number}.json").exists() for number in (1, 2)))
        lost = 1 if (site.root / "report-1.json").exists() else 2
        loser, winner = (one, two) if lost == 1 else (two, one)
        assert loser.nursery.wait(loser.pid, 20) == 1
        site.equipment.sink.release()
        assert winner.nursery.wait(winner.pid, 20) == 0
    assert json.loads((site.root / f"report-{lost}.json").read_text())["error"] == SessionHeld.code
    opened = site.again()
    assert opened.report["words"] == ["go", "heartbeat"] and effects(site) == 1


def test_case_a04_an_owner_that_was_replaced_in_a_rollout_admits_no_second_turn(site: Site) -> None:
    """The old one is stopped directly before it admits the tick, and wakes when the new one has served it."""
    site.script(TELLS, {"calls": [pay(site)]}, TELLS, {"calls": [pay(site, "-2")]}, TELLS)
    site.run(prompts=("go",))
    admits = "append[turn+user+turn].before"
    at = {"kill_at": 1, "only": (admits,), "signal": signal.SIGSTOP}
    with site.started(session="newest", prompts=("heartbeat",), **at) as old:
        old.until_seam(admits)
        until(lambda: Path(f"/proc/{old.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        site.again(take_over=True, prompts=("heartbeat",))
        os.kill(old.pid, signal.SIGCONT)
        assert old.nursery.wait(old.pid, 20) == 1
    opened = site.again()
    assert opened.report["words"] == ["go", "heartbeat"] and states(opened) == ["succeeded"]
    assert effects(site) == 1 and effects(site, "-2") == 0


# twice-batch --------------------------------------------------------------------------------------


def test_case_a05_siblings_of_a_question_give_their_stored_results(site: Site) -> None:
    asks = call("ask_user", question="Go on?")
    site.script({"calls": [pay(site, "-1"), asks, pay(site, "-2")]}, TELLS)
    killed(site, "asked", answers=())
    assert (effects(site, "-1"), effects(site, "-2")) == (1, 0)
    resumed = site.again(answers=("yes",), carry_out=True, go_on=True)
    assert effects(site, "-1") == 1 and effects(site, "-2") <= 1
    said = resumed.report["said"][1]
    assert f"did {site.label}-1" in said and "yes" in said
    for number in ("-1", "-2"):
        assert effects(site, number) == said.count(f"did {site.label}{number}")


def test_case_a06_a_loop_that_pauses_five_times_makes_one_effect_per_round(site: Site) -> None:
    rounds = [
        {"calls": [pay(site, f"-{number}"), call("ask_user", question=f"Round {number}?")]}
        for number in range(1, 6)
    ]
    site.script(*rounds, {"text": "All rounds are done."})
    killed(site, "asked", answers=())
    for _ in range(4):
        assert site.again(answers=("yes",), carry_out=True, go_on=True, kill_at=2, only=("asked",)).killed
    last = site.again(answers=("yes",), carry_out=True, go_on=True)
    assert last.report["turns"][-1]["text"] == "All rounds are done."
    assert [effects(site, f"-{number}") for number in range(1, 6)] == [1] * 5


# twice-resume -------------------------------------------------------------------------------------


def test_case_a09_a_delivery_without_acknowledgement_is_looked_at_before_anything_is_sent(site: Site) -> None:
    site.script({"calls": [pay(site)]}, {**TELLS, "calls": [pay(site)]}, TELLS)
    site.equipment.sink.switch(reply="hold")
    with site.started(prompts=("go",)) as child:
        until(lambda: waiting(site) and effects(site) == 1)
        os.kill(child.pid, signal.SIGKILL)
        assert child.nursery.wait(child.pid, 90) == -signal.SIGKILL
    site.equipment.sink.switch(reply="now")
    site.equipment.sink.release()
    opened = site.again()
    assert opened.report["receipts"][0]["overlays"] == ["proven"] and effects(site) == 1
    resumed = site.again(carry_out=True, go_on=True)
    assert effects(site) == 1 and told(resumed)[1] == ("not_started", "confirmed_effect")


@pytest.mark.parametrize(
    ("seam", "possible"),
    [
        ("append[attempt.closed].before", {"succeeded", "unknown"}),
        ("append[attempt.started].before", {"not_started", "unknown"}),
    ],
)
def test_case_a10_killed_inside_the_sync_the_disk_says_how_it_stands(
    site: Site, seam: str, possible: set[str]
) -> None:
    """K6 and K1: the frames are written, the sync has not come; receipt and result are there or not, together."""
    site.script({"calls": [pay(site)]}, TELLS)
    dies = {"do": "disk", "operation": "sync", "how": "die"}
    ended = site.run(prompts=("go",), kill_at=1, only=(seam,), strike=dies)
    assert ended.returncode == -signal.SIGKILL and ended.seams[0] == seam
    made = effects(site)
    (receipt,) = site.again(verify=False).report["receipts"]
    assert receipt["state"] in possible and made == int("closed" in seam)
    assert (receipt["state"] == "succeeded") is (
        receipt["result"] is not None and "did" in receipt["result"]["text"]
    )
    site.script({"calls": [pay(site)]}, TELLS, TELLS)
    site.again(verify=False, carry_out=True, go_on=True)
    assert effects(site) == made


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("when", ["before", "after"])
def test_case_a11_every_engine_makes_the_result_durable_before_anything_rests_on_it(
    site: Site, engine: str, when: str
) -> None:
    """The write of the result is held up: the owner stands still there, and dies standing."""
    site.equipment = dataclasses.replace(site.equipment, engine=engine)
    site.script({"calls": [pay(site)]}, TELLS)
    seam = f"append[attempt.closed].{when}"
    with site.started(prompts=("go",), kill_at=1, only=(seam,), signal=signal.SIGSTOP) as child:
        child.until_seam(seam)
        assert effects(site) == 1 and len(site.equipment.emulator.requests()) == 1
        os.kill(child.pid, signal.SIGKILL)
        assert child.nursery.wait(child.pid, 20) == -signal.SIGKILL
    (receipt,) = site.again(verify=False).report["receipts"]
    stored = receipt["result"] is not None and f"did {site.label}" in receipt["result"]["text"]
    assert (receipt["state"], stored) == (("unknown", False) if when == "before" else ("succeeded", True))
    site.again(verify=False, carry_out=True, go_on=True)
    assert effects(site) == 1


def test_case_a12_going_on_after_finished_calls_runs_none_of_them(site: Site) -> None:
    site.script({"calls": [pay(site, f"-{number}") for number in (1, 2, 3)]}, TELLS)
    assert states(site.run(prompts=("go",))) == ["succeeded"] * 3
    for _ in range(3):
        site.again(carry_out=True, go_on=True)
    assert [effects(site, f"-{number}") for number in (1, 2, 3)] == [1, 1, 1]


def test_case_a13_a_turn_resumed_at_its_end_does_not_run_its_first_stage_again(site: Site) -> None:
    site.script(
        {"calls": [pay(site, "-first")]}, {"calls": [pay(site, "-second")]}, {"text": "Both stages are done."}
    )
    killed(site, "append[attempt.closed].after", at=2)
    resumed = site.again(carry_out=True, go_on=True)
    assert resumed.report["turns"][-1]["text"] == "Both stages are done."
    assert effects(site, "-first") == effects(site, "-second") == 1 and states(resumed) == ["succeeded"] * 2


def test_case_a14_finished_steps_cause_no_new_model_request(site: Site) -> None:
    steps = [{"calls": [pay(site, f"-{number}")]} for number in (1, 2, 3)]
    site.script(*steps, {"text": "Four steps."})
    killed(site, "append[attempt.closed].after", at=2)
    before = len(site.equipment.emulator.requests())
    resumed = site.again(carry_out=True, go_on=True)
    assert before == 2 and len(site.equipment.emulator.requests()) == 4
    assert resumed.report["turns"][-1]["text"] == "Four steps."
    assert [effects(site, f"-{number}") for number in (1, 2, 3)] == [1, 1, 1]


def test_case_a15_a_question_of_a_nested_call_does_not_outlive_its_parent_and_multiply(site: Site) -> None:
    """A nested call carries its parent from its first entry on, and is never taken up again without it."""
    site.script({"calls": [pay(site)]}, TELLS)
    flags = {"permissions.mode": "default"}
    nested = {"hook": "before", "flags": flags, "answers": ("approved",), "only": ("asked",)}
    assert site.run(prompts=("go",), kill_at=2, **nested).killed
    for passes in (2, 3):
        # The yes to the call of the model outlives its owner: only the one below it is asked about again.
        ended = site.again(carry_out=True, go_on=True, kill_at=1, **nested)
        assert ended.killed and ended.seams == ["asked"]
        opened = site.again(flags=flags)
        receipts = {one["attemptId"]: one for one in opened.report["receipts"]}
        below = [one["parentAttemptId"] for one in receipts.values() if one["parentAttemptId"]]
        assert len(receipts) == 2 * passes and len(set(below)) == passes
        assert all(receipts[one]["parentAttemptId"] is None for one in below)
        assert len({one["questionId"] for one in opened.report["questions"]}) == 1 + passes
        assert opened.report["sessions"] == 1 and effects(site) == effects(site, "-hook") == 0
    answered = {"hook": "before", "flags": flags, "answers": ("approved",)}
    done = site.again(carry_out=True, go_on=True, **answered)
    assert done.report["turns"][-1]["status"] == "completed"
    assert effects(site) == effects(site, "-hook") == 1


# twice-retry --------------------------------------------------------------------------------------


def test_case_a20_a_task_asked_for_again_after_its_effect_meets_the_fence(site: Site) -> None:
    site.script({"calls": [pay(site)]}, {"calls": [pay(site)]}, TELLS)
    killed(site, AFTER_EFFECT)
    again = site.again(verify=False, prompts=("do the task again",))
    assert effects(site) == 1 and told(again) == [("unknown", "owner_died"), ("not_started", "fenced")]


def test_case_a20_a_safe_retry_carries_the_same_key(site: Site) -> None:
    site.script({"calls": [call("put", label=site.label)]}, TELLS)
    killed(site, "tool[put].after_effect")
    site.equipment.sink.switch(keys="honour")
    resumed = site.again(verify=False, carry_out=True, go_on=True)
    keys = {one["idempotencyKey"] for one in resumed.report["receipts"]}
    assert states(resumed) == ["unknown", "succeeded"] and len(keys) == 1
    assert [one["key"] for one in site.equipment.sink.effects(site.label)] == list(keys)


def test_case_a21_a_request_that_waits_at_a_sleeping_receiver_is_unknown_and_not_sent_twice(
    site: Site,
) -> None:
    again = {**TELLS, "calls": [pay(site)]}
    site.script({"calls": [pay(site)]}, again, TELLS)
    pid = int(site.equipment.sink.state()["pid"])
    os.kill(pid, signal.SIGSTOP)
    try:
        ended = site.run(prompts=("go",), limit_seconds=2.0)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert told(ended) == [("unknown", "time_limit"), ("not_started", "fenced")]
    until(lambda: effects(site) == 1)
    assert effects(site) == 1


def test_case_a22_a_slow_receiver_past_the_limit_is_unknown_and_a_repetition_is_refused(site: Site) -> None:
    site.script({"calls": [pay(site)]}, {**TELLS, "calls": [pay(site)]}, TELLS)
    site.equipment.sink.switch(reply="hold")
    ended = site.run(prompts=("go",), limit_seconds=2.0)
    site.equipment.sink.switch(reply="now")
    site.equipment.sink.release()
    until(lambda: effects(site) == 1)
    assert told(ended) == [("unknown", "time_limit"), ("not_started", "fenced")] and effects(site) == 1
    assert "its end is not known" in ended.report["said"][1]


def test_case_a23_the_key_reaches_the_far_side_and_a_repetition_is_fenced(site: Site) -> None:
    site.script({"calls": [pay(site)]}, {**TELLS, "calls": [pay(site)]}, TELLS)
    site.equipment.sink.switch(keys="honour", reply="drop")
    ended = site.run(prompts=("go",))
    assert told(ended) == [("unknown", "declared"), ("not_started", "fenced")]
    (effect,) = site.equipment.sink.effects(site.label)
    assert effect["key"] == ended.report["receipts"][0]["idempotencyKey"]


def test_case_a24_a_stream_that_breaks_after_calls_were_seen_runs_none_of_them_twice(site: Site) -> None:
    site.script({"calls": [pay(site)]}, TELLS)
    site.equipment.emulator.fault(
        stage="reply", count=-1, match={"nth": 1}, cut_at={"inside": "line", "events": 3}
    )
    ended = site.run(prompts=("go",))
    assert effects(site) == len(ended.report["calls"]) <= 1
    site.equipment.emulator.assert_fired()


def test_case_a25_an_effect_found_in_the_far_sides_list_is_skipped(site: Site) -> None:
    site.script({"calls": [pay(site)]}, {**TELLS, "calls": [pay(site)]}, TELLS)
    killed(site, AFTER_EFFECT)
    pressed = site.again(actions=({"action": "inspect", "attemptId": "open"},), press_first=True)
    (receipt,) = pressed.report["receipts"]
    assert receipt["inspection"]["state"] == "present" and receipt["overlays"] == ["proven"]
    resumed = site.again(carry_out=True, go_on=True)
    assert effects(site) == 1 and told(resumed)[1] == ("not_started", "confirmed_effect")


def test_case_a26_an_error_after_the_dispatch_stays_unknown_until_a_verifier_has_looked(site: Site) -> None:
    site.script({"calls": [pay(site)]}, TELLS)
    site.equipment.sink.switch(reply="drop")
    ended = site.run(prompts=("go",))
    site.equipment.sink.switch(reply="now")
    assert told(ended) == [("unknown", "declared")] and "its end is not known" in ended.report["said"][1]
    looked = site.again()
    assert looked.report["receipts"][0]["inspection"]["state"] == "present" and effects(site) == 1


# twice-intent -------------------------------------------------------------------------------------


def test_case_a27_the_same_wish_under_a_new_id_is_fenced_while_the_first_is_unknown(site: Site) -> None:
    site.script({"calls": [pay(site)]}, *([{"calls": [pay(site)]}] * 3), TELLS)
    killed(site, AFTER_EFFECT)
    resumed = site.again(verify=False, carry_out=True, go_on=True)
    assert effects(site) == 1
    assert told(resumed) == [("unknown", "owner_died"), *[("not_started", "fenced")] * 3]


def test_case_a29_five_payments_with_a_pause_and_a_restart_are_five(site: Site) -> None:
    steps: list[dict[str, Any]] = [{"calls": [pay(site)]} for _ in range(5)]
    steps[2]["calls"].append(call("ask_user", question="Go on?"))
    site.script(*steps, {"text": "Paid."})
    killed(site, "asked", answers=())
    assert effects(site) == 3
    site.again(answers=("yes",), carry_out=True, go_on=True)
    assert effects(site) == 5
    assert len({one["key"] for one in site.equipment.sink.effects(site.label)}) == 5


@pytest.mark.parametrize("rewrite", ["rewind", "compact", "fork"])
def test_case_a31_a_drifted_reference_does_not_pass_the_fence_of_what_was_taken_back(
    site: Site, rewrite: str
) -> None:
    site.script({"calls": [pay(site)]}, TELLS)
    killed(site, AFTER_EFFECT)
    taken = site.again(verify=False, rewrite=rewrite)
    assert "error" not in taken.report["rewritten"] or rewrite == "compact", taken.report["rewritten"]
    site.script(*([{"calls": [pay(site, f"-{number}")]} for number in range(8)]))
    session = taken.report["rewritten"] if rewrite == "fork" else "newest"
    again = site.run(session=session, verify=False, prompts=("transfer it",), blow=None)
    refused = [one for one in again.report["receipts"] if one["state"] != "unknown"]
    assert refused and {(one["state"], one["reason"]) for one in refused} == {("not_started", "fenced")}
    assert len(site.equipment.sink.effects(site.label)) == 1
    assert not any(effects(site, f"-{number}") for number in range(8))


@pytest.mark.parametrize("ids", [{"id": "0"}, None])
def test_case_a30_repeated_or_missing_provider_ids_run_every_call_once(
    site: Site, ids: dict[str, str] | None
) -> None:
    twice = [{**pay(site), **(ids or {})}, {**call("pay", label=f"{site.label}-other"), **(ids or {})}]
    site.script({"calls": twice}, {"calls": twice}, {"calls": twice}, {"text": "Done."})
    if ids is None:
        site.equipment.emulator.fault(stage="reply", count=-1, id_mode="missing")
    ended = site.run(prompts=("go",))
    assert ended.report["turns"][-1]["text"] == "Done." and states(ended) == ["succeeded"] * 6
    assert effects(site) == effects(site, "-other") == 3


# crash-loop ---------------------------------------------------------------------------------------


def test_case_a32_a_command_that_kills_its_own_host_is_run_once_in_ten_restarts(site: Site) -> None:
    """The fault is a tool whose body kills the process it runs in, every time it is entered."""
    site.script(*([{"calls": [pay(site)]}] * 12), TELLS)
    dies = {"kill_at": 1, "only": ("tool[pay].entered",)}
    assert site.run(prompts=("go",), **dies).killed
    bodies = 1
    for _ in range(10):
        bodies += site.again(verify=False, carry_out=True, go_on=True, **dies).killed
    assert bodies == 1 and effects(site) == 0


def test_case_a33_twenty_deaths_during_recovery_leave_one_session_of_the_same_size(site: Site) -> None:
    site.script({"calls": [pay(site)]}, TELLS)
    killed(site, AFTER_EFFECT)
    sizes = []
    for number in range(20):
        assert (
            site.again(verify=False, kill_at=1 + number % 2, only=("append[attempt.closed",)).killed or number
        )
        sizes.append(sum(path.stat().st_size for path in site.root.rglob("ledger.db*")))
    assert max(sizes) - min(sizes) < 1 << 19
    opened = site.again(verify=False)
    assert (
        opened.report["sessions"] == 1 and told(opened) == [("unknown", "owner_died")] and effects(site) == 1
    )
