"""What a command line answers, word by word: documents of runs that cannot begin, references, hints, durations."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_world import World, check_output, wait_for

from surefoot.briefing import briefing
from surefoot.config import load_settings
from surefoot.errors import UsageError
from surefoot.surfaces.cli.talk import seconds
from surefoot.tools.place import find_place

DONE = {"text": "All finished."}


@pytest.mark.parametrize("form", ["json", "stream-json"])
@pytest.mark.parametrize(
    "wrong", [("--barrier", "nope"), ("--nosuch",), ("--max-turns", "0"), ("--timeout", "soon")]
)
def test_ux_30_ux_34_a_run_that_cannot_begin_prints_the_document_it_was_asked_for(
    world: World, form: str, wrong: tuple[str, ...]
) -> None:
    done = world.run("-p", "x", *wrong, "--output-format", form)
    assert done.returncode == 2
    (document,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert (document["type"], document["exit_code"], document["is_error"]) == ("result", 2, True)
    assert document["subtype"] == "error_during_execution" and document["result"]
    assert document["session_id"] is None and document["resume_command"] is None


def test_ux_29_a_run_that_cannot_begin_says_why_and_what_next_on_one_last_line(world: World) -> None:
    for asked in (("-p", "x"), ("run", "x"), ("exec", "x")):
        (line,) = world.run(*asked, "--barrier", "nope").stderr.splitlines()
        assert line.startswith("SF-USAGE: --barrier 'nope' must be one of") and " next: surefoot" in line
    (world.home / "sf").mkdir()
    (world.home / "sf/config.toml").write_text('[recovery]\nbarrier = "strong"\n')
    done = world.run("run", "x", "--output-format=json")
    check_output(done.stdout)
    assert "config.toml:2: recovery.barrier must be one of" in json.loads(done.stdout)["result"]
    assert len(done.stderr.splitlines()) == 1
    told = json.loads(world.run("config", "check", "--json").stdout)
    assert told["ok"] is False and "config.toml:2" in told["error"]


def test_ux_9_a_choice_that_is_missing_is_told_in_one_sentence(world: World) -> None:
    told = world.run("completion").stderr.splitlines()
    assert told[0] == "SF-USAGE: Missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish"


@pytest.mark.parametrize(
    ("word", "meant"), [("help", "--help"), ("resume", "session resume"), ("login", "auth status")]
)
def test_ux_14_a_word_known_from_elsewhere_is_answered_with_what_it_is_here(
    world: World, word: str, meant: str
) -> None:
    done = world.run(word)
    assert done.returncode == 2 and f"Did you mean {meant}?" in done.stderr


@pytest.mark.parametrize(
    ("text", "meant"),
    [("90", 90), ("1.5s", 1.5), ("500ms", 0.5), ("10m", 600), ("2h", 7200), ("1h30m", 5400)],
)
def test_ux_15_a_duration_is_written_as_people_write_it(text: str, meant: float) -> None:
    assert seconds("--timeout", text) == pytest.approx(meant)


@pytest.mark.parametrize("text", ["", "soon", "-5", "0", "10 m later", "1h30", "nan", "inf"])
def test_ux_15_what_is_no_duration_is_refused_with_the_name_of_its_flag(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--timeout .* is no duration"):
        seconds("--timeout", text)


def killed(world: World, name: str) -> dict[str, Any]:
    """The open call of a run that died by SIGKILL in the middle of a command."""
    command = f"touch started-{name}; sleep 60; echo x >> out.txt"
    world.model_says({"calls": [{"name": "shell", "args": {"command": command}}]}, DONE)
    run = world.start("-p", "do it", "--yolo", "-n", f"pay day {name}")
    wait_for((world.project / f"started-{name}").exists)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=90)
    listed = json.loads(world.run("recover", "list", "--session", f"pay day {name}", "--json").stdout)
    (call,) = listed["calls"]
    return dict(call)


def test_ux_12_ux_50_ux_64_references_and_words_about_an_open_call(world: World) -> None:
    call = killed(world, "one")
    attempt, session = call["attemptId"], call["card"]["sessionPath"].partition("/")[2]
    for reference in (session, session[-8:], "pay day one"):
        shown = world.run("recover", reference)
        assert shown.returncode == 3 and f"att_{attempt[-4:]}" in shown.stdout, shown.stderr
    assert world.run("recover", "nosuch").returncode == 1
    of_call = world.run("timeline", attempt)
    assert of_call.returncode == 0 and of_call.stdout == world.run("timeline", session).stdout

    stopped = world.run("-r", "pay day one", "-p", "go on", "--output-format", "json")
    assert stopped.returncode == 3 and 'Resumed "pay day one" · ' in stopped.stderr
    (card,) = json.loads(stopped.stdout)["unknown_outcomes"]
    assert card["next"].startswith("Nothing more runs until you decide.")
    went_on = world.run("-r", session, "-p", "go on", "--on-unknown", "continue", "--output-format", "json")
    assert went_on.returncode == 3 and json.loads(went_on.stdout)["result"]
    (card,) = json.loads(went_on.stdout)["unknown_outcomes"]
    assert card["next"].startswith("Until you decide, writes to"), "the run did not stop for it"


def test_tr_139_tr_149_the_open_calls_of_several_sessions_stand_in_calls(world: World) -> None:
    killed_calls = [killed(world, name)["attemptId"] for name in ("one", "two")]
    told = json.loads(world.run("recover", "list", "--json").stdout)
    assert sorted(call["attemptId"] for call in told["calls"]) == sorted(killed_calls)
    assert {call["card"]["sessionPath"] for call in told["calls"]} == {
        one["sessionPath"] for one in told["sessions"]
    }


def test_ux_15_ux_30_the_pieces_of_a_reply_and_the_file_of_the_last_answer(world: World) -> None:
    world.model_says(DONE, DONE)
    asked = ("-p", "x", "--output-format", "stream-json", "-o", "last.txt")
    told = [json.loads(line) for line in world.run(*asked, "--include-partial-messages").stdout.splitlines()]
    kinds = [one["type"] for one in told]
    assert kinds.index("stream_event") < kinds.index("assistant")
    pieces = [one["event"] for one in told if one["type"] == "stream_event"]
    assert "".join(piece["text"] for piece in pieces if piece["type"] == "text") == "All finished."
    assert (world.project / "last.txt").read_text() == "All finished.\n"
    without = world.run("-p", "x", "--output-format", "stream-json").stdout
    assert "stream_event" not in without
    refused = world.run("-p", "x", "-o", "no/such/folder/last.txt")
    assert refused.returncode == 2 and "is no place for a file" in refused.stderr


def test_ux_15_ux_22_settings_of_one_run_stand_above_the_files_and_below_the_flags(world: World) -> None:
    (world.home / "sf").mkdir()
    (world.home / "sf/config.toml").write_text('[recovery]\nbarrier = "session"\n')
    (world.project / "more.toml").write_text('[recovery]\nbarrier = "action"\nbarier = "off"\n')
    (world.project / "more.json").write_text('{"recovery": {"barrier": "advise"}}')

    def level(*flags: str) -> str:
        done = world.run("-p", "x", "--output-format", "stream-json", *flags)
        return str(json.loads(done.stdout.splitlines()[0])["barrier"])

    world.model_says(DONE, DONE, DONE, DONE)
    assert level("--settings", "more.toml") == "action"
    assert level("--settings", "more.json") == "advise"
    assert level("--settings", '{"recovery": {"barrier": "off"}}') == "off"
    assert level("--settings", "more.toml", "--barrier", "reach") == "reach"
    told = world.run("-p", "x", "--settings", "more.toml").stderr
    assert "--settings: recovery.barier is not a setting of surefoot." in told
    for wrong in ("nosuch.toml", "{", '{"recovery": {"barrier": "strong"}}'):
        assert world.run("-p", "x", "--settings", wrong).returncode == 2


def test_ux_12_session_resume_takes_the_flags_of_a_run_with_and_without_a_reference(world: World) -> None:
    world.model_says(DONE, DONE, DONE)
    first, second = (
        json.loads(world.run("-p", "x", "-n", name, "--output-format", "json").stdout)["session_id"]
        for name in ("one", "two")
    )
    assert first != second
    for asked, meant in (((), second), (("one",), first)):
        done = world.run("session", "resume", *asked, "-p", "hi", "--output-format", "json")
        assert done.returncode == 0 and json.loads(done.stdout)["session_id"] == meant, done.stderr


def test_ux_15_the_words_of_the_flags_stand_in_and_behind_the_system_text(world: World) -> None:
    settings = load_settings({}, {"SUREFOOT_HOME": str(world.home)}, world.project)
    (world.project / "AGENTS.md").write_text("Be brief.")

    def text(*words: str | None) -> str:
        ours, more = words
        told = replace(settings, system_text=(ours, more))
        return briefing(told, find_place(world.project)).text

    plain = text(None, None)
    assert text(None, "Zebra.") == f"{plain}\n\nZebra."
    assert text("Only this.", None).startswith("Only this.\n\nWorking directory: ")
    assert "Be brief." in text("Only this.", None)


def test_tr_149_ux_157_what_a_project_runs_is_one_snapshot_however_many_sessions_there_are(
    world: World,
) -> None:
    world.model_says(DONE)
    world.run("-p", "x")
    start = {"calls": [{"name": "shell", "args": {"command": "sleep 600", "background": True}}]}
    world.model_says(start, DONE)
    world.run("-p", "start it", "--yolo")
    told = json.loads(world.run("recover", "list", "--json").stdout)
    assert told["calls"] == [] and told["sessionPath"] and "sessions" not in told
    (resource,) = told["background"]
    assert world.run("recover", "process", resource["attemptId"], "kill").returncode == 0


def test_ux_57_the_doctor_looks_at_thirty_things_of_every_kind(world: World) -> None:
    told = json.loads(world.run("doctor", "--json").stdout)
    kinds = {check["category"] for check in told["checks"].values()}
    assert len(told["checks"]) >= 30
    assert kinds >= {"settings", "keys", "ledger", "owners", "sessions", "processes", "sockets", "mcp",
                     "terminal", "extras", "clock"}  # fmt: skip
    assert all(name.partition(".")[0] == check["category"] for name, check in told["checks"].items())
    world.model_says(DONE)
    world.run("-p", "x")
    world.more |= {"SUREFOOT_RECOVERY_BARRIER": "off", "SUREFOOT_PERMISSIONS_MODE": "bypassPermissions"}
    checks = json.loads(world.run("doctor", "--json").stdout)["checks"]
    assert checks["ledger.journal"]["summary"] == "the journal is the write-ahead log"
    assert checks["ledger.journal"]["status"] == "ok"
    for name in ("settings.barrier", "settings.permissions"):
        (issue,) = checks[name]["issues"]
        assert checks[name]["status"] == "warning" and issue["remedy"].startswith("surefoot config set ")


def test_tr_149_a_ledger_that_cannot_be_read_is_an_error_object_and_no_empty_list(world: World) -> None:
    world.model_says(DONE)
    world.run("-p", "x")
    ledger = Path(world.run("ledger", "path").stdout.strip())
    for beside in ledger.parent.glob("ledger.db-*"):
        beside.unlink()
    ledger.write_bytes(b"no ledger" * 1000)
    done = world.run("recover", "list", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 1 and told["code"] == "SF-LEDGER-DAMAGED" and "calls" not in told
