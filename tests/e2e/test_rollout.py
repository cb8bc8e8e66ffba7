"""Switching things on and off, and going back to an older program: nothing is lost and nothing is promised."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import apsw
import pytest
from cli_world import World, wait_for

EVIDENCE = ("attemptId", "tool", "class", "reach", "state", "reason", "overlays", "open", "argumentDigest",
            "idempotencyKey", "inspectionId", "inspection", "startedAt", "resolution")  # fmt: skip


@pytest.fixture
def open_call(world: World) -> str:
    world.model_says({"calls": [{"name": "shell", "args": {"command": "touch started; sleep 600; echo x"}}]})
    run = world.start("-p", "do it", "--yolo")
    wait_for((world.project / "started").exists)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=120)
    attempt = str(json.loads(world.run("recover", "list", "--json").stdout)["calls"][0]["attemptId"])
    assert world.run("recover", "inspect", attempt, "--json").returncode == 0
    return attempt


def call_of(world: World) -> tuple[dict[str, Any], bool]:
    snapshot = json.loads(world.run("recover", "list", "--json").stdout)
    (call,) = snapshot["calls"]
    return dict(call), bool(snapshot["retryEnabled"])


@pytest.mark.parametrize("level", ["session", "reach", "action", "advise", "off"])
def test_tr_188_switching_retry_off_or_lowering_the_barrier_removes_no_evidence_and_no_action(
    world: World, open_call: str, level: str
) -> None:
    world.more["SUREFOOT_TOOL_RECOVERY_RETRY"] = "1"
    before, enabled = call_of(world)
    assert enabled
    del world.more["SUREFOOT_TOOL_RECOVERY_RETRY"]
    assert world.run("config", "set", "recovery.barrier", level).returncode == 0
    after, enabled = call_of(world)
    assert not enabled
    assert {key: after[key] for key in EVIDENCE} == {key: before[key] for key in EVIDENCE}
    manual = [one for one in before["actions"] if one["action"] != "retry"]
    assert [one for one in after["actions"] if one["action"] != "retry"] == manual
    assert {one["action"] for one in manual if one["enabled"]} >= {"inspect", "confirm", "reject", "release"}
    looked = json.loads(world.run("recover", "inspect", open_call, "--json").stdout)
    (call,) = looked["calls"]
    assert "sleep 600" in call["arguments"]
    done = world.run("recover", "reject", open_call, "--inspection", call["inspectionId"])
    assert done.returncode == 0, done.stderr


def test_tr_189_doctor_says_before_a_downgrade_that_open_calls_are_to_be_decided_first(
    world: World, open_call: str
) -> None:
    told = world.run("doctor").stdout
    assert "older version" in told and "promises nothing" in told and "surefoot recover list" in told


def test_tr_189_a_program_that_is_too_old_refuses_a_ledger_and_neither_moves_nor_strips_it(
    world: World, open_call: str
) -> None:
    path = next((world.home / "sf/ledgers").iterdir()) / "ledger.db"
    connection = apsw.Connection(str(path))
    connection.execute("pragma wal_checkpoint(truncate)")
    version = int(connection.execute("pragma user_version").fetchall()[0][0])
    connection.execute(f"pragma user_version = {version + 1}")
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
    before = path.read_bytes()
    for command in (("recover", "list"), ("session", "list"), ("-c", "-p", "go on"), ("ledger", "prune")):
        refused = world.run(*command)
        assert "SF-LEDGER-NEWER" in refused.stderr, (command, refused.stderr)
    assert path.read_bytes() == before
    connection = apsw.Connection(str(path))
    connection.execute(f"pragma user_version = {version}")
    connection.close()
    assert call_of(world)[0]["open"] is True
