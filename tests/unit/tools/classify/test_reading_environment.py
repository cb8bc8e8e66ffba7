"""The reading environment in a real repository whose settings and attributes name programs (EC-59)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from surefoot.runtime.tools import Place
from surefoot.tools.classify.environment import absolute_path, reading_environment
from surefoot.tools.classify.shell import classify_shell

VARIABLES = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8"}


def git(folder: Path, *arguments: str) -> str:
    fixed = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    names = {f"GIT_{who}_{what}": "lin" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**VARIABLES, **fixed, **names},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture
def trapped(tmp_path: Path) -> Path:
    """A repository in which every program that git can be told to run leaves a mark."""
    tree = tmp_path / "tree"
    tree.mkdir()
    trap = tmp_path / "trap"
    trap.write_text(f'#!/bin/sh\necho "$0 $*" >> {tmp_path}/mark\ncat 2>/dev/null\nexit 0\n')
    trap.chmod(0o755)
    git(tree, "init", "-q", "-b", "main")
    (tree / "a.txt").write_text("one\n")
    (tree / "b.bin").write_text("one\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "first")
    (tree / "a.txt").write_text("two\n")
    git(tree, "commit", "-q", "-am", "second")
    for key in (
        "core.fsmonitor",
        "core.pager",
        "diff.external",
        "diff.trap.command",
        "diff.trap.textconv",
        "filter.trap.clean",
        "filter.trap.smudge",
        "core.sshCommand",
        "core.askPass",
        "credential.helper",
        "gpg.program",
        "remote.origin.uploadpack",
        "pager.log",
    ):
        git(tree, "config", key, str(trap))
    git(tree, "config", "log.showSignature", "true")
    git(tree, "config", "filter.trap.required", "true")
    git(tree, "config", "remote.origin.url", str(tree))
    (tree / ".gitattributes").write_text("*.bin diff=trap filter=trap\n*.txt diff=trap filter=trap\n")
    (tree / ".git" / "hooks" / "post-index-change").write_text(trap.read_text())
    (tree / ".git" / "hooks" / "post-index-change").chmod(0o755)
    (tree / "a.txt").write_text("three\n")
    os.utime(tree / "b.bin", (1, 1))
    (tmp_path / "mark").unlink(missing_ok=True)
    return tree


def settings(tree: Path) -> list[str]:
    """Names only: listing settings runs none of them."""
    return git(tree, "config", "--list", "--name-only", "-z").split("\0")[:-1]


def state(tree: Path) -> dict[str, tuple[bytes, int]]:
    files = [path for path in sorted(tree.rglob("*")) if path.is_file()]
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def run_reader(command: str, tree: Path, extra: dict[str, str] | None = None) -> str:
    found = classify_shell(command, Place(tree, work_tree=tree))
    assert found.reading_text is not None, found.why
    made = reading_environment({**VARIABLES, **(extra or {})}, settings(tree))
    assert made is not None
    done = subprocess.run(
        ["bash", *made.shell_options, "-c", found.reading_text],
        cwd=tree,
        env=dict(made.variables),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


READERS = [
    "git status",
    "git status --porcelain | cat",
    "git diff",
    "git diff HEAD -- a.txt",
    "git diff --cached",
    "git log -p",
    "git log --oneline -5 && git log --stat",
    "git show HEAD",
    "git show HEAD:a.txt",
    "git blame a.txt",
    "git grep one",
    "git ls-files -m",
    "git ls-remote origin",
    "git describe --always",
    "git cat-file -p HEAD",
    "git branch -a",
    "git stash list",
    "git -C . diff",
    "cd . && git diff",
    "for f in a; do git diff; done",
    "git tag -l",
    "git reflog",
]


@pytest.mark.parametrize("command", READERS)
def test_ec_59_no_program_of_the_repository_runs_and_no_file_changes(trapped: Path, command: str) -> None:
    before = state(trapped)
    run_reader(command, trapped)
    mark = trapped.parent / "mark"
    assert not mark.exists(), mark.read_text()
    assert state(trapped) == before


@pytest.mark.parametrize("command", ["git status", "git diff", "git log -p"])
def test_ec_59_the_trap_is_real(trapped: Path, command: str) -> None:
    """Without the reading environment the same commands do run programs."""
    subprocess.run(command, shell=True, cwd=trapped, env=VARIABLES, capture_output=True, check=False)
    assert (trapped.parent / "mark").exists()


def test_ec_59_a_reader_still_tells_what_changed(trapped: Path) -> None:
    assert "+three" in run_reader("git diff a.txt", trapped)
    assert "M a.txt" in run_reader("git status --porcelain", trapped)


def test_ec_59_variables_that_name_programs_are_dropped(trapped: Path) -> None:
    trap = str(trapped.parent / "trap")
    names = ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "PAGER", "BASH_ENV", "ENV", "GIT_SSH_COMMAND", "LESSOPEN")
    extra = {**dict.fromkeys(names, trap), "BASH_FUNC_git%%": f"() {{ {trap}; }}"}
    run_reader("git diff && git log -1", trapped, extra)
    assert not (trapped.parent / "mark").exists()


def test_ec_59_the_path_has_no_relative_parts(trapped: Path) -> None:
    (trapped / "ls").write_text((trapped.parent / "trap").read_text())
    (trapped / "ls").chmod(0o755)
    for path in (".:/usr/bin:/bin", ":/usr/bin:/bin", "x:/usr/bin:/bin:"):
        run_reader("ls", trapped, {"PATH": path})
    assert not (trapped.parent / "mark").exists()
    assert absolute_path(".:x:", "/usr/bin") == "/usr/bin"


def test_ec_59_options_are_put_where_git_takes_them() -> None:
    place = Place(Path("/w"), work_tree=Path("/w"))
    assert classify_shell("ls; git  -C x  diff a", place).reading_text == (
        "ls; git  -C x  diff --no-ext-diff --no-textconv --ignore-submodules=dirty a"
    )
    assert classify_shell("ls -l", place).reading_text == "ls -l"
    assert classify_shell("touch a", place).reading_text is None


@pytest.mark.parametrize(
    "command",
    ["bash -c 'git diff'", "timeout 5 git status", "ls | xargs git log", "find . -exec git show {} +"],
)
def test_ec_59_a_reader_that_cannot_be_amended_is_unknown(command: str) -> None:
    assert classify_shell(command, Place(Path("/w"), work_tree=Path("/w"))).reading_text is None


def test_ec_59_a_setting_that_nothing_keeps_out_refuses_the_environment() -> None:
    assert reading_environment(VARIABLES, ["remote.origin.vcs"]) is None


def test_ec_59_a_database_client_is_kept_to_reading_by_its_engine(tmp_path: Path) -> None:
    place = Place(tmp_path)
    found = classify_shell("sqlite3 app.db 'select 1'", place)
    assert found.reading_text == "sqlite3 -readonly app.db 'select 1'"
    assert (classify_shell("mysql -e 'show tables' db", place).reading_text or "").startswith(
        "mysql --init-command="
    )
    made = reading_environment(VARIABLES)
    assert made is not None
    assert made.variables["PGOPTIONS"] == "-c default_transaction_read_only=on"
    assert classify_shell("bash -c \"sqlite3 app.db 'select 1'\"", place).reading_text is None
