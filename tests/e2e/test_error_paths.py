"""Errors a stranger meets: each names the place and the next command, and nothing unreadable counts as empty."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import apsw
import pytest
from cli_world import World

from surefoot import errors
from surefoot.surfaces.ways import next_of

MISTAKES = [
    (["--frobnicate"], 2, "--frobnicate"),
    (["recover", "list", "--frob"], 2, "--frob"),
    (["session", "lst"], 2, "list"),
    (["session", "show", "ses_zzzz"], 1, "ses_zzzz"),
    (["recover", "confirm", "att_zzzz"], 1, "att_zzzz"),
    (["timeline", "ses_zzzz"], 1, "ses_zzzz"),
    (["-C", "/nonexistent", "-p", "x"], 2, "/nonexistent"),
    (["-p", "x", "--timeout", "soon"], 2, "soon"),
    (["-p", "x", "--barrier", "none"], 2, "--barrier"),
    (["-p", "x", "-m", "openai/gpt-4.1-mini"], 2, "OPENAI_API_KEY"),
    (["-p", "x", "-m", "nosuch"], 2, "nosuch"),
    (["-p", "x"], 2, "No model is configured"),
    (["-p"], 2, "prompt"),
    (["a chat"], 2, "terminal"),
    (["config", "get", "nosuch"], 2, "nosuch"),
    (["config", "set", "permissions.mode", "nosuch"], 2, "permissions.mode"),
    (["contract", "show", "nosuch"], 2, "nosuch"),
    (["tools", "nosuch"], 1, "nosuch"),
]


@pytest.mark.parametrize(("arguments", "code", "place"), MISTAKES)
def test_ux_9_a_mistake_has_a_code_one_sentence_with_its_place_and_a_next_command(
    world: World, arguments: list[str], code: int, place: str
) -> None:
    done = world.run(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert re.match(r"SF-[A-Z-]+: ", done.stderr) and place in done.stderr
    assert re.search(r"next: \S+", done.stderr)
    assert "Traceback" not in done.stderr


def test_ux_9_every_error_of_ours_leads_on() -> None:
    kinds = [errors.SurefootError]
    for kind in kinds:
        kinds += kind.__subclasses__()
        assert next_of(kind("x")).split()[0] in ("surefoot", "pip")
        assert next_of(kind("x", next_command="surefoot demo")) == "surefoot demo"


def ledger_of(world: World) -> Path:
    world.model_says({"text": "Hello."})
    assert world.run("-p", "x").returncode == 0
    return Path(world.run("ledger", "path").stdout.strip())


READERS = [
    ["session", "list"],
    ["recover", "list"],
    ["recover"],
    ["timeline"],
    ["session", "show"],
    ["-p", "x"],
]


@pytest.mark.parametrize("arguments", READERS)
def test_ux_163_a_damaged_ledger_is_never_answered_with_an_empty_one(
    world: World, arguments: list[str]
) -> None:
    ledger = ledger_of(world)
    ledger.write_bytes(b"no database " * 1000)
    done = world.run(*arguments)
    assert done.returncode == 1
    assert "SF-LEDGER-DAMAGED" in done.stderr and str(ledger) in done.stderr
    assert "next: surefoot ledger verify" in done.stderr
    assert "no session" not in (done.stdout + done.stderr).lower() and "Nothing is open" not in done.stdout
    assert "next: surefoot ledger begin" in world.run("ledger", "verify").stderr


@pytest.mark.parametrize("arguments", READERS)
def test_ux_147_a_ledger_of_a_newer_version_hides_nothing_and_says_what_to_install(
    world: World, arguments: list[str]
) -> None:
    ledger = ledger_of(world)
    with apsw.Connection(str(ledger)) as connection:
        version = int(connection.execute("pragma user_version").fetchall()[0][0])
        connection.execute(f"pragma user_version = {version + 5}")
    connection.close()
    done = world.run(*arguments)
    assert done.returncode == 1 and "SF-LEDGER-NEWER" in done.stderr
    assert "next: pip install --upgrade surefoot" in done.stderr
    assert "no session" not in (done.stdout + done.stderr).lower()


def test_ux_164_a_list_of_all_projects_reports_the_unreadable_one_and_shows_the_others(world: World) -> None:
    ledger_of(world)
    other = world.project.parent / "other"
    other.mkdir()
    first, world.project = world.project, other
    broken = ledger_of(world)
    broken.write_bytes(b"no database " * 1000)
    world.project = first
    done = world.run("session", "list", "--all", "--json")
    assert done.returncode == 0 and len(json.loads(done.stdout)) == 1
    assert "SF-LEDGER-DAMAGED" in done.stderr and "other-" in done.stderr


def test_ux_164_sessions_of_a_moved_project_resume_from_the_new_place_by_their_full_id(world: World) -> None:
    world.model_says({"text": "One."}, {"text": "Two."}, {"text": "Three."})
    first = json.loads(world.run("-p", "begin", "--output-format", "json").stdout)["session_id"]
    world.project = world.project.rename(world.project.parent / "moved")
    assert world.run("-p", "on", "-r", first[-6:]).returncode == 1
    gone_on = world.run("-p", "on", "-r", first, "--output-format", "json")
    assert gone_on.returncode == 0, gone_on.stderr
    assert json.loads(gone_on.stdout)["session_id"] == first
    assert world.run("session", "resume", first, "-p", "more").stdout == "Three.\n"
    shown = world.run("session", "show", first).stdout
    assert all(word in shown for word in ("begin", "One.", "on", "Two.", "Three."))
    listed = json.loads(world.run("session", "list", "--all", "--json").stdout)
    assert {Path(one["directory"]).name for one in listed if one["session_id"] == first} == {"project"}


def test_ux_164_a_session_of_a_project_that_lies_elsewhere_is_found_and_its_place_named(world: World) -> None:
    world.model_says({"text": "One."}, {"text": "Two."})
    first = json.loads(world.run("-p", "begin", "--output-format", "json").stdout)["session_id"]
    home, world.project = world.project, world.home
    for words in (["-p", "on", "-r", first], ["session", "fork", first]):
        told = world.run(*words)
        assert told.returncode == 2 and f"Session {first} belongs to {home}." in told.stderr, told.stderr
        assert f"next: surefoot -C {shlex.quote(str(home))} -r {first}\n" in told.stderr
    assert world.run("-C", str(home), "-r", first, "-p", "on").stdout == "Two.\n"


def test_ux_164_a_project_whose_name_is_not_utf_8_is_worked_in_like_any_other(world: World) -> None:
    world.project = world.project.rename(world.project.with_name(os.fsdecode(b"gr\xfcn")))
    (world.project / os.fsdecode(b"d\xe4ten")).write_text("seen")
    write = {"name": "write", "args": {"path": "a.txt", "content": "x"}}
    world.model_says(
        {"calls": [{"name": "shell", "args": {"command": "cat d*"}}]}, {"calls": [write]}, {"text": "Done."}
    )
    done = world.run("-p", "look", "--yolo", "-n", os.fsdecode(b"n\xfcm"), "--output-format", "stream-json")
    assert done.returncode == 0 and "seen" in done.stdout, done.stderr
    assert (world.project / "a.txt").read_text() == "x"
    shown = world.run("session", "show").stdout
    assert "> look" in shown and "write a.txt: done" in shown
    assert world.run("ledger", "verify").returncode == 0
    assert len(json.loads(world.run("session", "list", "--json").stdout)) == 1


def test_ux_163_a_ledger_that_cannot_be_read_has_no_statistics(world: World) -> None:
    ledger_of(world).write_bytes(b"no database " * 1000)
    counted = world.run("recover", "stats", "--json")
    assert counted.returncode == 1 and json.loads(counted.stdout)["code"] == "SF-LEDGER-DAMAGED"
