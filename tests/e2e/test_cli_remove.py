"""`surefoot session rename` and `rm`: names, refusals, and what a forced removal leaves behind."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pexpect
import pytest
from cli_world import SUREFOOT, World, wait_for

SECRET = "tell nobody"


def finished(world: World) -> str:
    world.model_says({"text": "Done."})
    return str(json.loads(world.run("-p", SECRET, "--output-format", "json").stdout)["session_id"])


@pytest.fixture
def open_call(world: World) -> dict[str, Any]:
    command = f"touch started; sleep 600; echo {SECRET!r}"
    world.model_says({"calls": [{"name": "shell", "args": {"command": command}}]}, {"text": "x"})
    run = world.start("-p", "do it", "--yolo")
    wait_for((world.project / "started").exists)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=120)
    (call,) = json.loads(world.run("recover", "list", "--json").stdout)["calls"]
    return dict(call)


def session_of(world: World) -> str:
    return str(json.loads(world.run("session", "list", "--json").stdout)[0]["session_id"])


def at_a_terminal(world: World, *arguments: str, answer: str) -> str:
    child = pexpect.spawn(
        SUREFOOT[0], [*SUREFOOT[1:], *arguments], cwd=str(world.project), env=world.environ, encoding="utf-8",
        timeout=120, dimensions=(40, 200),
    )  # fmt: skip
    child.expect("drop it|Drop it")
    child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    return str(child.before)


def test_ux_53_a_name_is_free_text_changes_no_id_and_is_given_once(world: World) -> None:
    first, second = finished(world), finished(world)
    assert world.run("session", "rename", first, "the first one").returncode == 0
    assert world.run("session", "show", "the first one", "--id").stdout.strip() == first
    taken = world.run("session", "rename", second, "the first one")
    assert taken.returncode == 2 and "Another session" in taken.stderr
    assert world.run("session", "rename", first, "the first one").returncode == 0, "it may keep its own"
    assert world.run("session", "rename", second, "n" * 80).returncode == 0
    for wrong in ("n" * 81, "", " "):
        assert world.run("session", "rename", second, wrong).returncode == 2
    assert world.run("ledger", "verify").returncode == 0


def test_ux_53_a_session_with_undecided_calls_is_not_removed_and_they_are_listed(
    world: World, open_call: dict[str, Any]
) -> None:
    session = session_of(world)
    refused = world.run("session", "rm", session, "--yes")
    assert refused.returncode == 4
    assert open_call["attemptId"][-4:] in refused.stderr and "open_calls" in refused.stderr
    unattended = world.run("session", "rm", session, "--force", "--yes")
    assert unattended.returncode == 2 and "person" in unattended.stderr
    at_a_terminal(world, "session", "rm", session, "--force", answer="ses_0000")
    (call,) = json.loads(world.run("recover", "list", "--json").stdout)["calls"]
    assert call["open"] is True


def test_ux_53_tr_200_a_forced_removal_drops_the_payloads_and_leaves_a_tombstone_that_verifies(
    world: World, open_call: dict[str, Any]
) -> None:
    session = session_of(world)
    told = at_a_terminal(world, "session", "rm", session, "--force", answer=f"ses_{session[-4:]}")
    assert "dropped" in told
    assert json.loads(world.run("recover", "list", "--json").stdout)["calls"] == [] or not any(
        call["open"] for call in json.loads(world.run("recover", "list", "--json").stdout)["calls"]
    )
    (left,) = json.loads(world.run("recover", "list", "--all", "--json").stdout)["calls"]
    for key in ("attemptId", "tool", "reach", "argumentDigest"):
        assert left[key] == open_call[key], key
    assert (left["open"], left["overlays"]) == (False, ["released"])
    assert left["resolution"]["who"] and left["resolution"]["channel"] == "cli"
    assert open_call["attemptId"][-4:] in world.run("recover", "list", "--all").stdout
    assert world.run("ledger", "verify").returncode == 0
    ledger = next((world.home / "sf/ledgers").iterdir())
    assert [
        path.name for path in Path(ledger).glob("ledger.db*") if SECRET.encode() in path.read_bytes()
    ] == []


def test_ux_53_a_decided_session_is_removed_after_one_question(world: World) -> None:
    session = finished(world)
    asked = world.run("session", "rm", session)
    assert asked.returncode == 2 and "--yes" in asked.stderr
    at_a_terminal(world, "session", "rm", session, answer="")
    assert SECRET in world.run("session", "show", session).stdout
    assert world.run("session", "rm", session, "--yes").returncode == 0
    (row,) = json.loads(world.run("session", "list", "--json").stdout)
    assert row["status"] == "dropped"
    assert SECRET not in world.run("session", "show", session, "--json").stdout
    again = world.run("session", "rm", session, "--yes")
    assert again.returncode == 1 and "dropped" in again.stderr
