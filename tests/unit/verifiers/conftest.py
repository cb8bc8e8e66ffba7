"""Fixtures for tests of verifiers: settings of their own, real repositories, a real bare remote."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from git_world import Repo


@pytest.fixture(autouse=True)
def _own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the person who runs the tests decides what git does in them."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\nname = T\nemail = t@example.org\n[init]\ndefaultBranch = main\n[commit]\ngpgsign = false\n"
    )
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    folder = tmp_path.resolve() / "repo"
    folder.mkdir()
    found = Repo(folder)
    found.git("init", "-q")
    found.commit("first")
    return found


@pytest.fixture
def remote(tmp_path: Path, repo: Repo) -> Repo:
    """A bare repository that `repo` knows as `origin`, holding its first commit."""
    folder = tmp_path.resolve() / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)
    repo.git("remote", "add", "origin", str(folder))
    repo.git("push", "-qu", "origin", "main")
    return Repo(folder)
