"""Cases about what changed since: arguments after an answer (E12), settings since the last turn (D13)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from cli_world import World

from surefoot.app import Parts, open_app
from surefoot.config import load_settings
from surefoot.core.model import State
from surefoot.runtime.people import PermissionAnswer
from surefoot.testing.played import PlayedModel

DONE = {"text": "All finished."}
SHELL = {"name": "shell", "args": {"command": "echo shown >> effects"}}
EDITS = 'command = "./edit.sh"\n'


class Person:
    """Answers each permission with the next verdict and remembers what was shown."""

    def __init__(self, *verdicts: str) -> None:
        self._verdicts = list(verdicts)
        self.shown: list[str] = []

    async def permission(self, question: Any) -> PermissionAnswer:
        self.shown.append(question.arguments)
        return PermissionAnswer(self._verdicts.pop(0), by="lin")

    async def question(self, question: Any) -> Any:
        raise AssertionError(question)


@pytest.mark.parametrize(("second", "made"), [("denied", []), ("expired", []), ("approved", ["other"])])
async def test_case_e12_arguments_that_a_hook_changed_after_the_answer_are_shown_and_asked_about_anew(
    tmp_path: Path, second: str, made: list[str]
) -> None:
    work, home = tmp_path / "work", tmp_path / "home"
    (work / ".git").mkdir(parents=True)
    home.mkdir()
    changed = json.dumps({"hookSpecificOutput": {"updatedInput": {"command": "echo other >> effects"}}})
    (work / "edit.sh").write_text(f"#!/bin/sh\necho '{changed}'\n")
    (work / "edit.sh").chmod(0o755)
    (home / "config.toml").write_text(f'[[hooks.PreToolUse]]\nmatcher = "Bash"\n{EDITS}')
    environ = {"SUREFOOT_HOME": str(home), "PATH": os.environ["PATH"]}
    given = load_settings({"model": "demo/played", "permissions.ask": ["Bash"]}, environ, work)
    person = Person("approved", second)
    parts = Parts(model=PlayedModel([{"calls": [SHELL]}, DONE]))
    async with open_app(given, directory=work, asker=person, parts=parts) as app:
        controller = await app.session()
        await controller.submit("Go.")
        (call,) = [one for one in controller.session.book if one.tool == "shell"]
    assert len(person.shown) == 2 and "shown" in person.shown[0] and "other" in person.shown[1]
    file = work / "effects"
    assert (file.read_text().split() if file.exists() else []) == made
    assert (call.state is State.SUCCEEDED) is bool(made) and (call.started_at is not None) is bool(made)
    if made:
        assert call.approval is not None and call.approval["argumentDigest"] == call.argument_digest


def test_case_d13_a_changed_set_of_tools_is_told_before_the_first_request(world: World) -> None:
    world.model_says(DONE, DONE)
    assert world.run("-p", "hello", "--yolo").returncode == 0
    (world.home / "sf" / "config.toml").write_text("[tools.http]\noffered = true\n")
    server = world.servers[-1]
    server.terminate()
    server.wait(20)
    ended = world.run("-c", "-p", "go on", "--yolo", "--timeout", "5s")
    assert ended.returncode != 0, "no request could be made"
    (line,) = [one for one in ended.stderr.splitlines() if "Since the last turn of this session" in one]
    assert "http" in line, ended.stderr
