"""`surefoot ledger prune`: what goes, what is kept and why, and that the rest of the command line agrees."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pexpect
import pytest
from cli_world import SUREFOOT, World, wait_for

SECRET = "tell nobody"


def finished(world: World) -> str:
    """A run that wrote a file by a shell command and ended; its session's id."""
    world.model_says(
        {"calls": [{"name": "shell", "args": {"command": f"echo {SECRET!r} >> out.txt"}}]}, {"text": "Done."}
    )
    run = world.run("-p", f"write that: {SECRET}", "--yolo", "--output-format", "json")
    assert run.returncode == 0, run.stderr
    return str(json.loads(run.stdout)["session_id"])


def killed(world: World) -> None:
    world.model_says({"calls": [{"name": "shell", "args": {"command": "touch started; sleep 600; echo x"}}]})
    run = world.start("-p", "do it", "--yolo")
    wait_for((world.project / "started").exists)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=120)


def document(world: World, *flags: str) -> dict[str, Any]:
    run = world.run("ledger", "prune", "--json", *flags)
    assert run.returncode == 0, run.stderr
    (found,) = json.loads(run.stdout)
    return dict(found)


def folder_of(world: World) -> Path:
    return next((world.home / "sf/ledgers").iterdir())


def test_tr_97_an_old_session_is_dropped_and_what_it_wrote_stays_listed(world: World) -> None:
    session = finished(world)
    run_folders = list((folder_of(world) / "processes").iterdir())
    told = document(world, "--older-than", "0h", "--yes")
    assert (told["dropped"], told["kept"], told["dry_run"]) == ([session], [], False)
    assert told["entries"] > 5
    shown = world.run("session", "show", session, "--json").stdout
    assert SECRET not in shown and json.loads(shown)["status"] == "dropped"
    (row,) = json.loads(world.run("session", "list", "--json").stdout)
    assert (row["status"], row["open_calls"]) == ("dropped", 0)
    assert "dropped" in world.run("session", "list").stdout
    assert "were dropped" in world.run("session", "show", session).stdout
    verified = world.run("ledger", "verify")
    assert verified.returncode == 0, verified.stdout
    assert session not in world.run("doctor").stdout, "it is neither lost nor unreadable"
    # A run folder is young until nothing was written to it for a day.
    for path in run_folders:
        for item in (*path.iterdir(), path):
            os.utime(item, (1_000, 1_000))
    assert document(world)["run_folders"] == len(run_folders) == 1
    files = [path for path in folder_of(world).rglob("*") if path.is_file()]
    assert [path.name for path in files if SECRET.encode() in path.read_bytes()] == []


def test_tr_97_a_call_that_may_have_happened_keeps_its_session_and_says_so(world: World) -> None:
    killed(world)
    told = document(world, "--older-than", "0h", "--yes")
    assert [one["reason"] for one in told["kept"]] == ["unsettled_calls"] and told["dropped"] == []
    world.model_says({"text": "x"})
    world.run("-c", "-p", "go on")
    (call,) = json.loads(world.run("recover", "list", "--json").stdout)["calls"]
    world.run("recover", "reject", call["attemptId"])
    lines = world.run("ledger", "prune", "--older-than", "0h", "--yes").stdout
    assert "surefoot recover list" in lines and call["attemptId"] not in lines
    (left,) = json.loads(world.run("recover", "list", "--json").stdout)["calls"]
    assert left["open"] is True


def test_tr_97_a_decided_call_is_still_listed_after_its_session_was_dropped(world: World) -> None:
    killed(world)
    world.model_says({"text": "x"})
    world.run("-c", "-p", "go on")
    (call,) = json.loads(world.run("recover", "list", "--json").stdout)["calls"]
    ended = world.run("recover", "process", call["attemptId"], "kill")
    assert ended.returncode == 0, ended.stderr
    looked = json.loads(world.run("recover", "inspect", call["attemptId"], "--json").stdout)
    chosen = next(one["inspectionId"] for one in looked["calls"] if one["attemptId"] == call["attemptId"])
    said = world.run("recover", "confirm", call["attemptId"], "--inspection", chosen)
    assert said.returncode == 0, said.stderr
    stats = world.run("recover", "stats", "--json").stdout
    assert len(document(world, "--older-than", "0h", "--yes")["dropped"]) == 1
    (left,) = json.loads(world.run("recover", "list", "--all", "--json").stdout)["calls"]
    for key in ("attemptId", "tool", "class", "reach", "argumentDigest", "overlays", "open"):
        assert left[key] == ({**call, "overlays": ["confirmed"], "open": False})[key], key
    assert world.run("recover", "show", call["attemptId"]).returncode == 0
    assert json.loads(world.run("recover", "stats", "--json").stdout) == json.loads(stats)


def test_a_dropped_session_is_not_gone_on_with_and_says_what_is_left(world: World) -> None:
    session = finished(world)
    document(world, "--older-than", "0h", "--yes")
    for refused in (world.run("-r", session, "-p", "go on"), world.run("session", "fork", session)):
        assert refused.returncode == 1
        assert "were dropped" in refused.stderr and "surefoot recover list --all" in refused.stderr
    again = world.run("-c", "-p", "go on")
    assert again.returncode == 1 and "no session to continue" in again.stderr
    assert session != finished(world)


def test_nothing_is_dropped_without_being_asked_for(world: World) -> None:
    session = finished(world)
    dry = document(world, "--older-than", "0h", "--dry-run")
    assert (dry["dropped"], dry["dry_run"]) == ([session], True)
    assert document(world)["dropped"] == []
    assert document(world, "--older-than", "1d", "--yes")["dropped"] == []
    unasked = world.run("ledger", "prune", "--older-than", "0h")
    assert unasked.returncode == 2 and "--yes" in unasked.stderr
    wrong = world.run("ledger", "prune", "--older-than", "soon")
    assert wrong.returncode == 2 and "30d" in wrong.stderr
    assert SECRET in world.run("session", "show", session).stdout


@pytest.mark.parametrize(("answer", "status"), [("", "ok"), ("y", "dropped")])
def test_at_a_terminal_the_loss_is_told_before_and_enter_is_no(
    world: World, answer: str, status: str
) -> None:
    finished(world)
    child = pexpect.spawn(
        SUREFOOT[0], [*SUREFOOT[1:], "ledger", "prune", "--older-than", "0h"], cwd=str(world.project),
        env=world.environ, encoding="utf-8", timeout=120,
    )  # fmt: skip
    child.expect("for good")
    child.expect("N]")
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    (row,) = json.loads(world.run("session", "list", "--json").stdout)
    assert row["status"] == status


def test_tr_130_a_command_of_a_tool_can_drop_nothing(world: World) -> None:
    session = finished(world)
    line = f"'{sys.executable}' -c 'from surefoot.surfaces.cli import main; main()' ledger prune --older-than 0h --yes"
    world.model_says(
        {"calls": [{"name": "shell", "args": {"command": f"{line} 2>told; true"}}]}, {"text": "x"}
    )
    assert world.run("-p", "prune it", "--yolo").returncode == 0
    assert "person_required" in (world.project / "told").read_text()
    assert SECRET in world.run("session", "show", session).stdout


def test_tr_6_a_large_result_that_no_entry_names_goes_after_a_day_and_not_before(world: World) -> None:
    finished(world)
    folder = folder_of(world) / "blobs" / "ab"
    folder.mkdir()
    loose = folder / ("ab" + "0" * 62)
    loose.write_bytes(b"x" * 2048)
    assert document(world)["blobs"] == 0
    os.utime(loose, (1_000, 1_000))
    assert document(world, "--dry-run")["blobs"] == 1 and loose.exists()
    told = document(world)
    assert (told["blobs"], told["blob_bytes"]) == (1, 2048) and not loose.exists()


def test_without_a_ledger_there_is_nothing_to_prune(world: World) -> None:
    told = world.run("ledger", "prune")
    assert (told.returncode, told.stdout) == (0, "There is no ledger in this project yet.\n")
