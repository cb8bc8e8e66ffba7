"""The reading environment in a real repository whose settings and attributes name programs (EC-59)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from surefoot.runtime.tools import Place
from surefoot.tools.classify.environment import absolute_path, environment_rows, reading_environment
from surefoot.tools.classify.shell import classify_shell
from surefoot.tools.processes.preparing import reading

GIT_PROGRAMS = (
    "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_EDITOR", "GIT_ASKPASS", "GIT_PROXY_COMMAND",
)  # fmt: skip
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
    trap.write_text(f'#!/bin/sh\necho "$0 $*" >> "{tmp_path}/mark"\ncat 2>/dev/null\nexit 0\n')
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
        git(tree, "config", key, shlex.quote(str(trap)))
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


def state(tree: Path) -> dict[str, tuple[bytes, int]]:
    files = [path for path in sorted(tree.rglob("*")) if path.is_file()]
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def run_reader(command: str, tree: Path, extra: dict[str, str] | None = None) -> str:
    done = run_anyhow(command, tree, extra)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_anyhow(
    command: str, tree: Path, extra: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a reader as the shell tool does, however it ends."""
    found = classify_shell(command, Place(tree, work_tree=tree, home=tree.parent))
    assert found.reading_text is not None, found.why
    variables = {**VARIABLES, "HOME": str(tree.parent), **(extra or {})}
    made = asyncio.run(reading(variables, found.repositories))
    assert made is not None
    return subprocess.run(
        ["bash", *made.shell_options, "-c", found.reading_text],
        cwd=tree,
        env=dict(made.variables),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )


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
def test_case_j06_ec_59_no_program_of_the_repository_runs_and_no_file_changes(
    trapped: Path, command: str
) -> None:
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
    trap = shlex.quote(str(trapped.parent / "trap"))
    names = ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "PAGER", "BASH_ENV", "ENV", "GIT_SSH_COMMAND", "LESSOPEN")
    extra = {**dict.fromkeys(names, trap), "BASH_FUNC_git%%": f"() {{ {trap}; }}"}
    run_reader("git diff && git log -1", trapped, extra)
    assert not (trapped.parent / "mark").exists()


def test_ux_159_a_repository_and_variables_that_set_all_of_it_start_no_program(trapped: Path) -> None:
    trap, mark = str(trapped.parent / "trap"), trapped.parent / "mark"
    dropped = next(told for key, told in environment_rows() if key == "dropped").split(", ")
    extra = {name.replace("*", "git%%" if name.startswith("BASH") else "X"): trap for name in dropped}
    extra |= dict.fromkeys(GIT_PROGRAMS, trap) | {"SHELLOPTS": "xtrace", "PS4": f"$({trap})"}
    del extra["LD_X"], extra["DYLD_X"]
    before = state(trapped)
    run_reader(
        "git status; git diff; git log -p -2; git show HEAD; git blame a.txt; git grep one; cat a.txt | head -1",
        trapped,
        {**extra, "BASH_FUNC_git%%": f"() {{ {trap}; }}", "PATH": f".:{VARIABLES['PATH']}"},
    )
    assert not mark.exists(), mark.read_text()
    assert state(trapped) == before


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


QUIETLY = ("-c", "core.fsmonitor=false", "-c", "filter.trap.clean=cat", "-c", "filter.inner.clean=cat")


@pytest.fixture
def surrounded(trapped: Path) -> Path:
    """The trapped repository with a submodule and a neighbour that name programs of their own, and includes."""
    trap = shlex.quote(str(trapped.parent / "trap"))
    for folder in (trapped / "sub", trapped.parent / "other"):
        folder.mkdir()
        git(folder, "init", "-q", "-b", "main")
        (folder / ".gitattributes").write_text("*.txt diff=inner filter=inner\n")
        (folder / "a.txt").write_text("one\n")
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "inner")
    git(trapped, *QUIETLY, "add", "sub")
    git(trapped, *QUIETLY, "commit", "-q", "-m", "sub")
    (trapped / ".gitmodules").write_text('[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n')
    for folder in (trapped / "sub", trapped.parent / "other"):
        for key in ("core.fsmonitor", "filter.inner.clean", "filter.inner.process", "diff.inner.textconv"):
            git(folder, "config", key, trap)
        git(folder, "config", "diff.external", trap)
        (folder / "a.txt").write_text("two\n")
        os.utime(folder / "a.txt", (1, 1))
    (trapped / ".git" / "more").write_text(
        f"[core]\n\tsshCommand = {trap}\n\tgitProxy = {trap}\n"
        f'[filter "more"]\n\tclean = {trap}\n\trequired = true\n[diff "more"]\n\tcommand = {trap}\n'
        f"[alias]\n\tstatus = !{trap}\n\tst = !{trap}\n"
        f'[url "ext::{trap} "]\n\tinsteadOf = https://elsewhere.example/\n'
    )
    git(trapped, "config", "include.path", "more")
    git(trapped, "config", "includeIf.onbranch:main.path", "more")
    for key, value in (("diff.submodule", "diff"), ("status.submoduleSummary", "true")):
        git(trapped, "config", key, value)
    git(trapped, "config", "submodule.recurse", "true")
    git(trapped, "config", "remote.ssh.url", "ssh://127.0.0.1:1/x")
    git(trapped, "config", "remote.proxied.url", "git://127.0.0.1:1/x")
    git(trapped, "config", "remote.elsewhere.url", "https://elsewhere.example/x")
    (trapped / ".git" / "info" / "attributes").write_text("*.md diff=more filter=more\n")
    (trapped / "c.md").write_text("new\n")
    (trapped.parent / "mark").unlink(missing_ok=True)
    return trapped


ELSEWHERE = [
    *("git status", "git diff", "git diff HEAD", "git log -p --all", "git ls-files --recurse-submodules"),
    *("git -C sub status", "git -C sub diff", "cd sub && git diff", "(cd sub; git status)", "git diff sub"),
    *("git -C ../other status", "git -C ../other diff", "cd ../other && git log -p", "git -C ~/other diff"),
    *(
        "git -C .. -C other blame a.txt",
        "cd .. && git -C other ls-files -m",
        "cd nowhere || cd sub && git diff",
    ),
    *("cd ../other; bash -c 'git ls-files -m'", "g\\it -C sub status", "if cd sub; then git diff; fi"),
    *("git ls-remote ssh", "git ls-remote proxied", "git ls-remote elsewhere", "git show :c.md"),
    *("git ls-remote https://elsewhere.example/x", "for f in *; do git status; done", "git ls-files -m -o"),
]


@pytest.mark.parametrize("command", ELSEWHERE)
def test_ec_59_no_program_of_a_submodule_a_neighbour_or_an_include_runs(
    surrounded: Path, command: str
) -> None:
    before = state(surrounded.parent)
    run_anyhow(command, surrounded)
    mark = surrounded.parent / "mark"
    assert not mark.exists(), mark.read_text()
    assert state(surrounded.parent) == before


@pytest.mark.parametrize("command", ["git status", "git -C sub status", "git -C ../other diff", "git st"])
def test_ec_59_the_surrounding_traps_are_real(surrounded: Path, command: str) -> None:
    subprocess.run(command, shell=True, cwd=surrounded, env=VARIABLES, capture_output=True, check=False)
    assert (surrounded.parent / "mark").exists()


@pytest.mark.parametrize(
    "command",
    [
        'cd "$x" && git status',
        'git -C "$x" status',
        "while true; do cd ..; git status; done",
        "find . -execdir git ls-files -m \\;",
        "pushd sub && git status",
        "git status --ignore-submodules=none",
        "git diff --submodule=diff",
        "git submodule status",
        "git st",
        "git verify-commit HEAD",
        "git cat-file --filters HEAD:a.txt",
    ],
)
def test_ec_59_git_in_a_folder_that_is_not_certain_is_no_reader(command: str) -> None:
    found = classify_shell(command, Place(Path("/w"), work_tree=Path("/w")))
    assert found.reading_text is None


SQLITE_WRITES = ("delete from t", "create table u (a)", "pragma user_version = 7", "vacuum")


@pytest.mark.parametrize("statement", SQLITE_WRITES)
def test_ec_59_the_engine_itself_refuses_a_write_of_a_reader(tmp_path: Path, statement: str) -> None:
    """What `-readonly` is for the client, `mode=ro` is for the library: the same open flag of the engine."""
    path = tmp_path / "app.db"
    with contextlib.closing(sqlite3.connect(path)) as base:
        base.executescript("create table t (id integer); insert into t values (1);")
    before = path.read_bytes()
    found = classify_shell("sqlite3 app.db 'select 1'", Place(tmp_path))
    line = (found.reading_text or "").replace("select 1", statement)
    assert "-readonly" in line
    if shutil.which("sqlite3"):
        done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode != 0
    with (
        contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        reader.execute(statement)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["app.db"]


def test_ec_59_startup_files_and_search_paths_reach_no_reader(trapped: Path) -> None:
    """A folder of the project's name is not found through `CDPATH`, nor a startup file through its variable."""
    trap, mark = trapped.parent / "trap", trapped.parent / "mark"
    (trapped.parent / "far" / "src").mkdir(parents=True)
    (trapped / "src").mkdir()
    for name in (".bashrc", ".bash_profile", ".profile", ".bash_login", ".bash_logout"):
        (trapped.parent / name).write_text(f"{trap}\n")
    extra = {
        **dict.fromkeys(("BASH_ENV", "ENV", "PROMPT_COMMAND"), str(trapped.parent / ".bashrc")),
        "CDPATH": str(trapped.parent / "far"),
        "PS4": f"$({trap})",
        "SHELLOPTS": "xtrace",
        "LD_PRELOAD": "./x.so",
    }
    assert run_reader("cd src && pwd", trapped, extra).strip() == str(trapped / "src")
    assert run_reader("sh -c 'echo a' && bash -c 'echo b'", trapped, extra) == "a\nb\n"
    assert not mark.exists()
