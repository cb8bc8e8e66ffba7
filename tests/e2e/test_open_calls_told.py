"""What the model is told of an open call, and what is never told as one: real processes, what was really sent."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_world import World, wait_for

from surefoot.testing.emulator.process import EmulatorProcess

HANG = {"calls": [{"name": "shell", "args": {"command": "touch started; sleep 60; echo x >> out.txt"}}]}
DONE = {"text": "All finished."}
WHOLE = "What you can do now: look with read-only tools"


@pytest.fixture
def emulator(world: World, tmp_path: Path) -> Iterator[EmulatorProcess]:
    with EmulatorProcess(tmp_path) as process:
        world.more |= {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": process.base_url("openai")}
        yield process


def sent(emulator: EmulatorProcess) -> list[str]:
    """The messages of each request, as text."""
    return [json.dumps(json.loads(one.body)["messages"], ensure_ascii=False) for one in emulator.requests()]


def killed(world: World) -> None:
    run = world.start("-p", "do it", "--yolo")
    wait_for((world.project / "started").exists)
    run.kill()
    run.communicate(timeout=90)


def open_call(world: World) -> dict[str, Any]:
    (call,) = json.loads(world.run("recover", "list", "--json").stdout)["calls"]
    return dict(call)


def test_ux_115_an_open_call_is_told_once_then_by_reference_and_a_decision_as_a_persons_word(
    world: World, emulator: EmulatorProcess
) -> None:
    emulator.script([HANG, DONE, DONE, DONE])
    killed(world)
    for words in ("first go", "second go"):
        assert world.run("-c", "-p", words, "--on-unknown", "continue", "--yolo").returncode == 3
    call = open_call(world)
    first, second = sent(emulator)[-2:]
    for body in (first, second):
        assert body.count(WHOLE) == 1 and call["attemptId"] in body
        for words in ("may have happened", "Do not repeat it before that", "A person resolves it"):
            assert words in body
    looked = json.loads(world.run("recover", "inspect", call["attemptId"], "--json").stdout)["calls"][0]
    decided = world.run("recover", "confirm", call["attemptId"], "--inspection", looked["inspectionId"])
    assert decided.returncode == 0, decided.stderr
    assert world.run("-c", "-p", "third go", "--yolo").returncode == 0
    last = sent(emulator)[-1]
    assert '{\\"confirmed\\":[{' in last and '\\"decidedBy\\":\\"person\\"' in last
    tool = next(one for one in json.loads(last) if one["role"] == "tool")
    assert tool["content"].startswith("shell started at")  # what was told of it stays; no output is made up


def test_ux_115_the_recovery_tool_lists_inspects_and_reports(world: World, emulator: EmulatorProcess) -> None:
    emulator.script([HANG, DONE])
    killed(world)
    attempt = open_call(world)["attemptId"]
    emulator.script([
        {"calls": [{"name": "recovery", "args": {"action": "list"}}]},
        {"calls": [{"name": "recovery", "args": {"action": "inspect", "attempt": attempt}}]},
        {"calls": [{"name": "recovery", "args": {"action": "report", "attempt": attempt, "finding": "no out.txt"}}]},
        DONE,
    ])  # fmt: skip
    done = world.run("-c", "-p", "look", "--on-unknown", "continue", "--yolo")
    assert done.returncode == 3, done.stderr
    last = sent(emulator)[-1]
    assert "Recorded as a report of grade" in last and "a person decides" in last
    assert open_call(world)["open"]


def test_ux_144_a_killed_read_a_refusal_and_bad_arguments_are_no_card_and_no_count(world: World) -> None:
    world.model_says(
        {"calls": [
            {"name": "read", "args": {"path": 7}},
            {"name": "no_such_tool", "args": {}},
            {"name": "shell", "args": {"command": "rm -r build"}},
        ]},
        {"calls": [{"name": "shell", "args": {"command": "cat pipe"}}]},
        DONE,
    )  # fmt: skip
    os.mkfifo(world.project / "pipe")
    run = world.start("-p", "do it", "--allowedTools", "Bash(cat *)")
    writer = os.open(world.project / "pipe", os.O_WRONLY)  # returns when somebody reads
    run.kill()
    run.communicate(timeout=90)
    os.close(writer)
    listed = world.run("recover", "list", "--exit-code")
    assert listed.returncode == 0 and "◇" not in listed.stdout
    row = json.loads(world.run("session", "list", "--json").stdout)[0]
    assert row["calls"] == 4 and row["open_calls"] == 0
    ended = world.run("-c", "-p", "go on", "--output-format", "json")
    assert ended.returncode == 0 and json.loads(ended.stdout)["unknown_outcomes"] == []
