"""Cases of family T as a person meets them at the command line: one run, its words, its exit code, its requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_world import World

from surefoot.testing.emulator.process import EmulatorProcess

READ = {"text": "Let me look.", "calls": [{"name": "read", "args": {"path": "a.txt"}}]}
DONE = {"text": "All finished."}


@pytest.fixture
def emulator(world: World, tmp_path: Path) -> Iterator[EmulatorProcess]:
    (world.project / "a.txt").write_text("hello")
    with EmulatorProcess(tmp_path) as process:
        process.script([READ, DONE])
        world.more |= {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": process.base_url("openai")}
        yield process


@pytest.mark.parametrize(
    ("row", "fault", "code", "words"),
    [
        ("T22", {"quota_as_400": True}, 6, "the quota is spent"),
        ("T26", {"moderation": True}, 1, "content policy"),
        ("T15", {"status": 400, "raw": ""}, 7, "gave no reason (status 400)"),
    ],
    ids=["T22", "T26", "T15"],
)
def test_case_t15_t22_t26_ux_34_a_refused_run_says_what_it_was_and_asks_nothing_again(
    world: World, emulator: EmulatorProcess, row: str, fault: dict[str, Any], code: int, words: str
) -> None:
    emulator.fault(match={"nth": 2}, **fault)
    ended = world.run("-p", "look at a.txt", "--output-format", "json")
    emulator.assert_fired()
    assert (ended.returncode, words in ended.stderr) == (code, True), ended.stderr
    assert [one.status for one in emulator.requests()] == [200, 400]
    incident = json.loads(ended.stdout).get("incident") or {}
    assert bool(incident.get("offered")) is (row == "T15")
    assert ("recover context" in ended.stderr) is (row == "T15")
