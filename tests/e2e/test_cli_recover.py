"""A killed run, started again: the card, one decision, and what stays."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from cli_world import World, wait_for

from surefoot.surfaces.cli.recover import recover

DONE = {"text": "All finished."}


def killed(world: World, command: str = "touch started; sleep 60; echo x >> out.txt") -> None:
    """A run that dies by SIGKILL in the middle of a shell command."""
    world.model_says({"calls": [{"name": "shell", "args": {"command": command}}]}, DONE)
    run = world.start("-p", "do it", "--yolo")
    wait_for((world.project / "started").exists)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=90)


@pytest.fixture
def open_call(world: World) -> dict[str, Any]:
    killed(world)
    (call,) = json.loads(world.run("recover", "list", "--json").stdout)["calls"]
    return dict(call)


def test_ux_36_a_killed_call_is_listed_and_stops_the_next_unattended_run(world: World) -> None:
    killed(world)
    listed = world.run("recover", "list", "--exit-code")
    assert listed.returncode == 3 and "may have happened" in listed.stdout
    before = world.servers[-1]
    again = world.run("-c", "-p", "go on", "--output-format", "stream-json")
    assert again.returncode == 3
    told = [json.loads(line) for line in again.stdout.splitlines()]
    subtypes = [one.get("subtype") for one in told]
    assert "resume" in subtypes and "outcome_unknown" in subtypes
    assert not any(one["type"] == "assistant" for one in told), "no model was asked"
    assert told[-1]["unknown_outcomes"][0]["next"].startswith("Nothing more runs until you decide.")
    assert "surefoot recover" in again.stderr.splitlines()[-1]
    assert before.poll() is None


def test_ux_4_listing_and_showing_change_no_file_of_the_ledger(world: World) -> None:
    killed(world)
    world.run("recover", "list")
    folder = next((world.home / "sf/ledgers").iterdir())
    before = {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.suffix == ".db" or path.name == "witness"
    }
    for command in (
        ("recover", "list", "--all"),
        ("session", "list"),
        ("session", "show"),
        ("doctor",),
        ("recover",),
    ):
        world.run(*command)
    assert {path: path.read_bytes() for path in before} == before


def test_tr_149_without_a_terminal_a_decision_needs_the_inspection_it_rests_on(
    world: World, open_call: dict[str, Any]
) -> None:
    attempt = open_call["attemptId"]
    refused = world.run("recover", "confirm", attempt)
    assert refused.returncode == 4 and "inspection_required" in refused.stderr
    told = json.loads(world.run("recover", "confirm", attempt, "--json").stdout)
    assert told["code"] == "inspection_required" and told["revision"].startswith("sha256:")
    assert int(told["runtimeEpoch"]) > int(open_call["card"]["runtimeEpoch"]), (
        "TR-145: of the owner that refused"
    )
    assert refused.stderr.endswith(f" next: surefoot recover inspect att_{attempt[-4:]}\n")
    looked = json.loads(world.run("recover", "inspect", attempt, "--json").stdout)
    (call,) = [one for one in looked["calls"] if one["attemptId"] == attempt]
    assert "sleep 60" in call["arguments"]
    stale = world.run("recover", "confirm", attempt, "--inspection", "ins_" + "0" * 26, "--json")
    assert stale.returncode == 4 and json.loads(stale.stdout)["code"] == "inspection_stale"
    done = world.run(
        "recover", "confirm", attempt[-8:], "--inspection", call["inspectionId"], "--note", "seen"
    )
    assert done.returncode == 0, done.stderr
    assert "you said it happened" in done.stdout
    twice = world.run("recover", "deny", attempt, "--inspection", call["inspectionId"], "--json")
    assert twice.returncode == 4 and json.loads(twice.stdout)["code"] == "already_resolved"
    world.model_says(DONE)
    assert world.run("-c", "-p", "go on").returncode == 0


def test_ux_77_a_release_without_a_terminal_needs_yes_and_the_code(
    world: World, open_call: dict[str, Any]
) -> None:
    attempt = open_call["attemptId"]
    assert world.run("recover", "release", attempt).returncode == 4
    if open_call["executor"]["state"] != "ended":
        assert "code_missing" in world.run("recover", "release", attempt, "--yes", "--json").stdout
    shown = world.run("recover", "show", attempt).stdout
    code = shown.split("then type ")[1].split()[0]
    done = world.run("recover", "release", attempt, "--yes", "--code", code)
    assert done.returncode == 0, done.stderr
    listed = world.run("recover", "list", "--exit-code")
    assert listed.returncode == 0


def test_ux_34_left_open_by_the_record_of_a_person_ends_with_0(
    world: World, open_call: dict[str, Any]
) -> None:
    attempt = open_call["attemptId"]
    looked = json.loads(world.run("recover", "inspect", attempt, "--json").stdout)
    inspection = looked["calls"][0]["inspectionId"]
    assert world.run("recover", "reject", attempt, "--inspection", inspection).returncode == 0
    world.model_says(DONE)
    assert world.run("-c", "-p", "go on").returncode == 0


def test_tr_150_what_is_not_there_is_one_sentence(world: World) -> None:
    missing = world.run("recover", "show", "att_nothing")
    assert missing.returncode == 1 and "SF-NOT-FOUND" in missing.stderr
    assert "next: surefoot recover list" in missing.stderr
    assert world.run("recover", "inspect").returncode == 2
    assert world.run("recover", "list").stdout == "Nothing is open.\n"


def test_ux_164_an_id_in_full_is_found_from_any_project(world: World, open_call: dict[str, Any]) -> None:
    elsewhere = world.home / "elsewhere"
    elsewhere.mkdir()
    world.project = elsewhere
    assert world.run("recover", "list").stdout == "Nothing is open.\n"
    assert open_call["attemptId"][-4:] in world.run("recover", "list", "--all-projects").stdout
    assert world.run("recover", "show", open_call["attemptId"]).returncode == 0
    assert world.run("recover", "show", open_call["attemptId"][-6:]).returncode == 1


def test_ux_163_a_damaged_ledger_is_named_and_hides_no_other(world: World, open_call: dict[str, Any]) -> None:
    broken = world.home / "sf/ledgers/broken-000000000000"
    broken.mkdir()
    (broken / "ledger.db").write_bytes(b"not a database" * 500)
    listed = world.run("recover", "list", "--all-projects")
    assert "SF-LEDGER" in listed.stderr and "broken-000000000000" in listed.stderr
    assert open_call["attemptId"][-4:] in listed.stdout
    verified = world.run("ledger", "verify", "--all")
    assert verified.returncode == 1 and "broken-000000000000" in verified.stderr
    assert (broken / "ledger.db").read_bytes() == b"not a database" * 500


def test_ux_57_doctor_has_twelve_checks_and_exits_with_1_on_a_fail(world: World) -> None:
    healthy = world.run("doctor", "--json")
    document = json.loads(healthy.stdout)
    assert healthy.returncode == 0 and len(document["checks"]) >= 12
    assert all({"category", "status", "summary", "details", "issues", "duration_ms"} == set(check)
               for check in document["checks"].values())  # fmt: skip
    (world.home / "sf").mkdir(exist_ok=True)
    (world.home / "sf/config.toml").write_text("model = 3\n")
    broken = world.run("doctor", "--json")
    assert broken.returncode == 1
    assert json.loads(broken.stdout)["checks"]["settings.files"]["status"] == "fail"


def test_ux_51_a_held_session_ends_with_8_and_names_its_holder(world: World) -> None:
    hang = {"calls": [{"name": "shell", "args": {"command": "touch started; sleep 60; rm out.txt"}}]}
    world.model_says(hang, DONE)
    run = world.start("-p", "hang", "--yolo")
    wait_for((world.project / "started").exists)
    held = world.run("-c", "-p", "me too", "--output-format", "json")
    assert held.returncode == 8 and json.loads(held.stdout)["subtype"] == "error_session_held"
    assert str(run.pid) in held.stderr and " s; if that process dies it is known at once." in held.stderr
    ways = [held.stderr.find(way) for way in ("session show", "session fork", "--wait", "--take-over")]
    assert -1 not in ways and ways == sorted(ways), "read it, fork it, wait, take it over"
    assert json.loads(held.stdout)["resume_command"] == f"surefoot -r {json.loads(held.stdout)['session_id']}"
    waited = world.run("-c", "-p", "me too", "--wait", "0.5")
    assert waited.returncode == 8
    assert "running" in world.run("session", "show").stdout or world.run("recover", "list").returncode == 0
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=90)
    assert run.returncode == 143


def test_tr_149_a_reader_tells_the_proven_end_of_a_command_that_outlived_its_agent(world: World) -> None:
    killed(world, "touch started; while ! test -e go; do sleep 0.05; done; echo x >> out.txt")
    (world.project / "go").touch()
    wait_for(lambda: "written at the next resume" in world.run("recover", "list").stdout)
    folder = next((world.home / "sf/ledgers").iterdir())
    before = (folder / "ledger.db").read_bytes()
    listed = world.run("recover", "list", "--exit-code")
    assert listed.returncode == 0 and "echo x >> out.txt  done" in listed.stdout
    assert "may have happened" not in listed.stdout
    assert (folder / "ledger.db").read_bytes() == before
    again = world.run("-c", "-p", "go on")
    assert again.returncode == 0 and "Resumed. 1 call settled, 0 open." in again.stderr


def test_ux_49_a_session_whose_run_was_killed_is_listed_first_with_its_open_call(world: World) -> None:
    killed(world)
    world.model_says(DONE)
    world.run("-p", "something else")
    first, second, left = world.run("session", "list").stdout.splitlines()
    assert "◇1" in first and "◇" not in second
    assert "still runs" in left, "what its command left running is named below the sessions (TR-78)"
    reference = first.split()[0]
    shown = world.run("session", "show", reference).stdout
    assert "touch started" in shown and "may have happened" in shown
    assert "the process went away here" in shown
    (row,) = [
        one
        for one in json.loads(world.run("session", "list", "--json").stdout)
        if one["session_id"].endswith(reference.partition("_")[2])
    ]
    assert row["open_calls"] == 1


def test_a_failed_turn_is_told_with_its_reason_when_the_session_is_shown(world: World) -> None:
    (world.home / "sf").mkdir()
    (world.home / "sf/config.toml").write_text(
        '[endpoints.far]\nurl = "http://127.0.0.1:9/v1"\nmodel = "m"\n[recovery]\nmax_requests_per_step = 1\n'
    )
    assert world.run("-p", "x", "-m", "far").returncode == 1
    shown = world.run("session", "show").stdout
    assert "this turn ended without an answer: SF-PROVIDER-UNREACHABLE" in shown


SEEN = ("executor", "process", "decision", "state", "reason", "open", "fencing", "finishedAt")


def of_owner(world: World, attempt: str) -> dict[str, Any]:
    """The call as the next owner's snapshot has it; what makes it look is put out of the way."""
    (world.home / "sf").mkdir(exist_ok=True)
    world.run("config", "set", "recovery.inspect_on_resume", "false")
    told = json.loads(world.run("recover", "process", attempt, "leave", "--json").stdout)
    return next(dict(call) for call in told["calls"] if call["attemptId"] == attempt)


def end_commands(world: World) -> None:
    """Kill what a killed run left, and wait until its supervisor has written that down."""
    for sleeper in sleepers(world):
        os.kill(sleeper, signal.SIGKILL)
    folder = next((world.home / "sf/ledgers").iterdir())
    wait_for(lambda: bool(list(folder.glob("processes/*/quiet"))))


def sleepers(world: World) -> list[int]:
    return [
        int(link.parent.name)
        for link in Path("/proc").glob("[0-9]*/cwd")
        if os.path.realpath(link) == str(world.project.resolve())
        and b"sleep" in (link.parent / "cmdline").read_bytes()
    ]


@pytest.mark.parametrize("command", ["touch started; sleep 60", "touch started; sleep 60; rm started"])
@pytest.mark.parametrize("lives", [True, False])
def test_tr_70_tr_112_tr_139_a_reader_tells_process_executor_and_decision_as_the_next_owner_does(
    world: World, command: str, lives: bool
) -> None:
    killed(world, command)
    if not lives:
        end_commands(world)
    (read,) = json.loads(world.run("recover", "list", "--json").stdout)["calls"]
    assert read["process"]["state"] == ("running" if lives else "exited")
    assert read["process"]["choices"] == (["adopt", "kill", "leave"] if lives else [])
    assert read["executor"]["state"] == ("alive" if lives else "ended")
    owned = of_owner(world, read["attemptId"])
    # Its end by a signal is told once the ledger holds it; until then that its owner died.
    assert {key: read[key] for key in SEEN if lives or key != "reason"} == {
        key: owned[key] for key in SEEN if lives or key != "reason"
    }
    (again,) = json.loads(world.run("recover", "list", "--json").stdout)["calls"]
    assert {key: again[key] for key in SEEN} == {key: owned[key] for key in SEEN}


def test_tr_73_a_reader_tells_the_true_end_of_a_call_that_an_earlier_owner_left_unknown(world: World) -> None:
    killed(world, "touch started; while [ ! -e go ]; do sleep 0.05; done; echo whole")
    (call,) = json.loads(world.run("recover", "list", "--json").stdout)["calls"]
    assert world.run("recover", "process", call["attemptId"], "leave").returncode == 0
    assert json.loads(world.run("recover", "list", "--json").stdout)["calls"][0]["open"]
    (world.project / "go").touch()
    folder = next((world.home / "sf/ledgers").iterdir())
    wait_for(lambda: bool(list(folder.glob("processes/*/quiet"))))
    told = json.loads(world.run("recover", "list", "--json").stdout)
    assert told["calls"] == [] or not any(one["open"] for one in told["calls"])
    (ended,) = told["foreseen"]
    assert (ended["attemptId"], ended["state"]) == (call["attemptId"], "succeeded")
    assert world.run("recover", "list", "--exit-code").returncode == 0


def test_tr_125_leaving_what_has_ended_is_no_newer_evidence(world: World) -> None:
    killed(world, "touch started; sleep 60; rm started")
    end_commands(world)
    (call,) = json.loads(world.run("recover", "list", "--json").stdout)["calls"]
    attempt = call["attemptId"]
    looked = json.loads(world.run("recover", "inspect", attempt, "--json").stdout)["calls"][0]
    assert world.run("recover", "process", attempt, "leave").returncode == 0
    done = world.run("recover", "reject", attempt, "--inspection", looked["inspectionId"])
    assert done.returncode == 0, done.stderr


def test_tr_149_show_prints_the_tail_of_the_log_and_no_secret_of_it(world: World) -> None:
    killed(
        world, "echo first; echo token=sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaa; touch started; sleep 60; rm x"
    )
    (call,) = json.loads(world.run("recover", "list", "--json").stdout)["calls"]
    shown = world.run("recover", "show", call["attemptId"])
    assert shown.returncode == 0
    lines = shown.stdout.splitlines()
    tail = lines[lines.index(next(line for line in lines if line.startswith("log "))) :]
    assert call["process"]["log"] in tail[0] and tail[1].strip() == "first"
    assert "sk-ant-api03" not in "\n".join(tail)
    world.run("recover", "process", call["attemptId"], "kill")


def test_tr_149_session_selects_for_every_verb(world: World, open_call: dict[str, Any]) -> None:
    first = json.loads(world.run("recover", "list", "--json").stdout)["sessionPath"].split("/")[1]
    (world.project / "started").unlink()
    killed(world, "touch started; sleep 61; echo y >> other.txt")
    both = json.loads(world.run("recover", "list", "--json").stdout)["sessions"]
    assert len(both) == 2
    other = next(call for one in both for call in one["calls"] if first not in one["sessionPath"])
    attempt = other["attemptId"]
    verbs = ("list", "show", "inspect", "confirm", "deny", "reject", "release", "retry", "process", "stats")
    for verb in verbs:
        assert any("--session" in one.opts for one in recover.commands[verb].params), verb
    refused = world.run("recover", "confirm", attempt, "--session", first)
    assert refused.returncode == 1 and "SF-NOT-FOUND" in refused.stderr
    assert world.run("recover", "show", attempt, "--session", first).returncode == 1
    looked = world.run("recover", "inspect", "--all", "--session", first[-6:], "--json")
    assert looked.returncode == 0 and first in json.loads(looked.stdout)["sessionPath"]
    calls = [
        call
        for one in json.loads(world.run("recover", "list", "--json").stdout)["sessions"]
        for call in one["calls"]
    ]
    assert {call["attemptId"]: call["inspectionId"] is not None for call in calls} == {
        open_call["attemptId"]: True,
        attempt: False,
    }
    world.run("recover", "process", open_call["attemptId"], "kill", "--session", first)
    assert world.run("recover", "release", "--all", "--session", first, "--yes").returncode == 0
    left = json.loads(world.run("recover", "list", "--json").stdout)
    assert [call["attemptId"] for call in left["calls"]] == [attempt]


def test_tr_131_presses_of_the_same_moment_are_judged_by_the_record_that_one_of_them_made(
    world: World, open_call: dict[str, Any]
) -> None:
    attempt = open_call["attemptId"]
    assert world.run("recover", "process", attempt, "kill").returncode == 0
    looked = json.loads(world.run("recover", "inspect", attempt, "--json").stdout)
    inspection = looked["calls"][0]["inspectionId"]
    presses = [
        world.start("recover", verb, attempt, "--inspection", inspection, "--json")
        for verb in ("confirm", "deny", "reject")
    ]
    answers = [json.loads(press.communicate(timeout=90)[0]) for press in presses]
    codes = [answer["code"] for answer in answers if "code" in answer]
    assert set(codes) <= {"already_resolved", "inspection_stale"}, answers
    counted = json.loads(world.run("recover", "stats", "--json").stdout)
    assert counted["confirmed"] + counted["denied"] == 1
