"""Fixtures of the end-to-end tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cli_world import World
from shell_lines import Run, lines


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    made = World(home, project)
    yield made
    made.close()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work" / ".git").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    return tmp_path / "work"


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    """Runs one line through the shell tool, in the folder `work`."""
    async with lines(tmp_path) as through:
        yield through
