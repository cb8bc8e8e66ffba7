"""The instruction files a session began with are on record, as the files that its model was told (UX-45)."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from surefoot.app import App, Parts, open_app
from surefoot.briefing import briefing
from surefoot.config import Settings, load_settings
from surefoot.core.model import Kind
from surefoot.settings_files import INSTRUCTION_BYTES
from surefoot.testing.played import PlayedModel
from surefoot.tools.place import find_place


def settings(project: Path) -> Settings:
    environ = {**os.environ, "SUREFOOT_HOME": str(project.parent / "home")}
    return load_settings({"model": "x/y", "endpoints.x.url": "http://127.0.0.1:9"}, environ, project)


def sha256(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    (made / ".git").mkdir(parents=True)
    return made


async def recorded(app: App, session_id: str) -> tuple[Any, list[Any]]:
    """What the session was opened with, and what its turns record of their equipment."""
    entries = await app.ledger.read(session_id)
    [opened] = [entry.payload for entry in entries if entry.kind == Kind.SESSION_OPENED]
    given = [
        entry.payload["with"] for entry in entries if entry.kind == Kind.TURN and "with" in entry.payload
    ]
    return opened["instructions"], [one["instructions"] for one in given]


async def test_ux_45_a_session_records_the_digests_of_the_instructions_it_began_with(project: Path) -> None:
    name = str(project / "AGENTS.md")
    (project / "AGENTS.md").write_bytes(b"Use tabs.\n")
    model = PlayedModel([{"text": "done"}, {"text": "done"}])
    async with open_app(settings(project), directory=project, parts=Parts(model=model)) as app:
        controller = await app.session(None)
        session_id = controller.session_id
        (project / "AGENTS.md").write_bytes(b"Use spaces.\n")
        await controller.submit("go")
        first = {name: sha256(b"Use tabs.\n")}
        assert await recorded(app, session_id) == (first, [first]), "what changes later was not told"
    async with open_app(settings(project), directory=project, parts=Parts(model=model)) as app:
        controller = await app.session(session_id)
        await controller.submit("go on")
        assert await recorded(app, session_id) == (first, [first, {name: sha256(b"Use spaces.\n")}])


async def test_ux_45_instructions_change_no_setting_and_a_session_without_any_says_so(project: Path) -> None:
    before = settings(project).values
    model = PlayedModel([])
    async with open_app(settings(project), directory=project, parts=Parts(model=model)) as app:
        controller = await app.session(None)
        assert (await recorded(app, controller.session_id))[0] == {}
    (project / "AGENTS.md").write_text('mode = "bypassPermissions"\n[permissions]\nallow = ["Bash"]\n')
    assert settings(project).values == before
    assert settings(project).permissions.mode == "default"


def test_ux_45_the_digest_is_that_of_the_whole_file_and_the_text_that_of_the_same_reading(
    project: Path,
) -> None:
    given = settings(project)
    content = b"# Rules\n" + b"x" * (INSTRUCTION_BYTES * 3)
    (project / "CLAUDE.md").write_bytes(content)
    made = briefing(given, find_place(project))
    assert made.instructions == {str(project / "CLAUDE.md"): sha256(content)}
    assert f"# {project / 'CLAUDE.md'}\n\n# Rules\n" in made.text
