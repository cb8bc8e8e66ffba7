"""Fixtures of the end-to-end tests."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cli_world import World
from shell_lines import Run, lines


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder whose path stands unquoted in a shell line: pytest's own where its name allows, else one in `/tmp`."""
    own = tmp_path_factory.mktemp("plain")
    if re.fullmatch(r"[A-Za-z0-9/._+-]+", str(own)):
        yield own
        return
    with tempfile.TemporaryDirectory(prefix="surefoot-", dir="/tmp", ignore_cleanup_errors=True) as other:
        yield Path(other)


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
