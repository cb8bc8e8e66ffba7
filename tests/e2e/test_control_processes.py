"""What a call left running: adopt it, end it with proof, or leave it and say so (TR-70, TR-71, TR-146, TR-158)."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

from cli_world import World, wait_for

from surefoot.testing.crash import supervisors

DONE = {"text": "All finished."}


SECRET = "sk-" + "live0123456789abcdefghijklmnop"


def left_running(world: World, command: str) -> dict[str, Any]:
    """An open call whose command outlived its agent."""
    world.model_says({"calls": [{"name": "shell", "args": {"command": command}}]}, DONE)
    run = world.start("-p", "do it", "--yolo")
    wait_for((world.project / "started").exists)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=90)
    return call_of(world)


def call_of(world: World) -> dict[str, Any]:
    (call,) = json.loads(world.run("recover", "list", "--all", "--json").stdout)["calls"]
    return dict(call)


def test_tr_71_kill_waits_until_the_processes_are_gone_and_resolves_nothing(world: World) -> None:
    call = left_running(world, "touch started; sleep 300; echo x >> out.txt")
    done = world.run("recover", "process", call["attemptId"], "kill")
    assert done.returncode == 0, done.stderr
    assert "are gone" in done.stdout and "says nothing of what the call did before" in done.stdout
    now = call_of(world)
    assert now["open"] and now["resolution"] is None and now["state"] == "unknown"
    looked = json.loads(world.run("recover", "inspect", call["attemptId"], "--json").stdout)["calls"][0]
    assert looked["executor"]["state"] == "ended" and looked["process"]["choices"] == []
    assert not (world.project / "out.txt").exists()


def test_tr_71_tr_78_what_an_earlier_owner_left_running_is_listed_and_ended_also_when_its_call_is_decided(
    world: World,
) -> None:
    call = left_running(world, f"touch started; : {SECRET}; sleep 300; echo x >> out.txt")
    assert "still runs" in world.run("recover", "list").stdout
    assert SECRET not in world.run("recover", "list", "--json").stdout + world.run("recover", "list").stdout
    looked = json.loads(world.run("recover", "inspect", call["attemptId"], "--json").stdout)["calls"][0]
    world.run("recover", "confirm", call["attemptId"], "--inspection", looked["inspectionId"])
    listed = world.run("recover", "list").stdout
    assert (
        listed.startswith("Nothing is open.") and "still runs" in listed and call["attemptId"][-4:] in listed
    )
    assert "still runs" in world.run("recover", "list", "--all-projects").stdout
    (told,) = json.loads(world.run("recover", "list", "--json").stdout)["survivors"]
    assert SECRET not in json.dumps(told) and "touch started" in told["command"]
    assert told["attemptId"] == call["attemptId"] and told["pids"] and told["log"]
    for shown in (world.run("session", "list").stdout, world.run("-c", "-p", "go on", "--yolo").stderr):
        assert "still runs" in shown and call["attemptId"][-4:] in shown and SECRET not in shown
    # What is listed can be ended, though there is nothing left to decide (TR-71).
    assert world.run("recover", "process", call["attemptId"], "leave").returncode == 0
    ended = world.run("recover", "process", call["attemptId"], "kill")
    assert (ended.returncode, "are gone" in ended.stdout) == (0, True), ended.stderr
    assert world.run("recover", "list").stdout == "Nothing is open.\n"
    assert "survivors" not in json.loads(world.run("recover", "list", "--json").stdout)
    again = world.run("recover", "process", call["attemptId"], "kill")
    assert (again.returncode, "already_resolved" in again.stderr) == (4, True)


def test_tr_71_leave_records_that_a_person_knows_and_the_command_goes_on(world: World) -> None:
    call = left_running(world, "touch started; while [ ! -e go ]; do sleep 0.05; done; touch ended")
    done = world.run("recover", "process", call["attemptId"], "leave")
    assert done.returncode == 0 and "go on" in done.stdout
    assert call_of(world)["open"]
    (world.project / "go").touch()
    wait_for((world.project / "ended").exists)


def test_tr_71_adopt_brings_the_true_end_of_the_command_to_its_call(world: World) -> None:
    call = left_running(world, "touch started; while [ ! -e go ]; do sleep 0.05; done; echo whole")
    adopting = world.start("recover", "process", call["attemptId"], "adopt")
    # Judged by the new owner as running: from here on the end of the command is its to bring.
    wait_for(lambda: call_of(world)["inspectionId"] is not None)
    (world.project / "go").touch()
    out, err = adopting.communicate(timeout=90)
    assert adopting.returncode == 0, err
    assert "have ended" in out
    assert world.run("recover", "list").stdout == "Nothing is open.\n"


def test_tr_71_tr_72_without_its_supervisor_nothing_is_called_recorded_or_proven_gone(world: World) -> None:
    call = left_running(world, "touch started; while ! test -e go; do sleep 0.01; done")
    for pid in supervisors(world.home):
        os.kill(pid, signal.SIGKILL)
    adopting = world.start("recover", "process", call["attemptId"], "adopt")
    (world.project / "go").touch()
    told, errors = adopting.communicate(timeout=90)
    assert adopting.returncode == 0, errors
    assert "have ended. No record settles the call; it stays open." in told
    done = world.run("recover", "process", call["attemptId"], "kill")
    assert "What was seen of the processes" in done.stdout and "is not proven" in done.stdout
    assert call_of(world)["open"]


def test_tr_71_an_adoption_says_that_something_of_an_ended_command_still_runs(world: World) -> None:
    call = left_running(world, "setsid sleep 300 >/dev/null 2>&1 & touch started; kill -9 $$")
    wait_for(lambda: call_of(world)["process"]["state"] == "exited")
    done = world.run("recover", "process", call["attemptId"], "adopt")
    assert done.returncode == 0 and "something that it started still runs" in done.stdout, done.stderr
    assert "have ended" not in done.stdout


def test_tr_146_what_cannot_be_chosen_is_refused_with_its_code(world: World) -> None:
    call = left_running(world, "touch started; sleep 300; echo x >> out.txt")
    assert world.run("recover", "process", call["attemptId"], "obey").returncode == 2
    assert world.run("recover", "process", call["attemptId"], "kill").returncode == 0
    looked = json.loads(world.run("recover", "inspect", call["attemptId"], "--json").stdout)["calls"][0]
    world.run("recover", "confirm", call["attemptId"], "--inspection", looked["inspectionId"])
    late = world.run("recover", "process", call["attemptId"], "leave", "--json")
    assert late.returncode == 4 and json.loads(late.stdout)["code"] == "already_resolved"


def test_tr_158_the_statistics_equal_a_count_by_hand(world: World) -> None:
    call = left_running(world, "touch started; sleep 300; echo x >> out.txt")
    counted = json.loads(world.run("recover", "stats", "--json").stdout)
    assert counted["unknown"] == 1 and sum(counted.values()) == 1
    looked = json.loads(world.run("recover", "inspect", call["attemptId"], "--json").stdout)["calls"][0]
    world.run("recover", "confirm", call["attemptId"], "--inspection", looked["inspectionId"])
    counted = json.loads(world.run("recover", "stats", "--json").stdout)
    assert counted["confirmed"] == 1 and counted["unknown"] == 0
    assert "confirmed" in world.run("recover", "stats", "--all-projects").stdout


def test_tr_133_the_switch_stands_in_the_environment_of_the_owner_and_is_exactly_1(world: World) -> None:
    call = left_running(world, "touch started; sleep 300; echo x >> out.txt")
    world.run("recover", "process", call["attemptId"], "kill")
    codes = {}
    for value in ("", "0", "true", "1"):
        world.more |= {"SUREFOOT_TOOL_RECOVERY_RETRY": value}
        looked = json.loads(world.run("recover", "inspect", call["attemptId"], "--json").stdout)["calls"][0]
        said = world.run(
            "recover", "retry", call["attemptId"], "--inspection", looked["inspectionId"], "--json"
        )
        codes[value] = json.loads(said.stdout)["code"]
        assert said.returncode == 4
    assert codes.pop("1") != "retry_disabled" and set(codes.values()) == {"retry_disabled"}
    assert not (world.project / "out.txt").exists()
