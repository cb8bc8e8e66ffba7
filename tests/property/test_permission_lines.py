"""A line that allow rules let pass runs nothing but what they name, proven by a real bash (UX-40)."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from surefoot.core.effects import UNDECLARED
from surefoot.core.model import Mode
from surefoot.runtime.permission import VerdictKind, decide, parse_rules
from surefoot.runtime.tools import Place
from surefoot.tools.classify.shell import classify_shell
from surefoot.tools.shell import shell_tool

ALLOWED = ("Bash(ls *)", "Bash(cat *)", "Bash(git status *)")
NAMED = ("ls", "cat", "git status")
OTHERS = (
    *(
        "touch",
        "rm",
        "tee",
        "sh",
        "bash",
        "xargs",
        "env",
        "find",
        "sort",
        "x",
        "time",
        "nice",
        "sudo",
        "git2",
    ),
    *("timeout", "nohup", "python3", "curl", "command_not_found", "a", "E", "test", "dd", "cp", "mv", "sed"),
)
RULES = parse_rules(ALLOWED)
TOOL = shell_tool()
PIECES = [
    *(
        "ls",
        "cat",
        "git status",
        "git",
        "status",
        "ls",
        "cat a",
        "touch m",
        "rm",
        "tee m",
        "x",
        "E",
        "a",
        "m",
    ),
    *(
        "sh -c",
        "bash -c",
        "xargs",
        "env",
        "eval",
        "command",
        "builtin",
        "exec",
        "time",
        "source",
        ".",
        "git push",
    ),
    *(
        " ",
        " ",
        " ",
        " ",
        "\n",
        "\t",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "|&",
        "!",
        "#",
        " #",
        "\\",
        "\\\n",
        "\r",
        "\x0b",
    ),
    *(
        "'",
        '"',
        "`",
        "$(",
        ")",
        "(",
        "{",
        "}",
        "{ ",
        "; }",
        "${",
        "$'",
        '$"',
        "$x",
        "$",
        "$@",
        "$1",
        "$(<",
        "$((",
        "))",
    ),
    *(
        "<(",
        ">(",
        "<<E",
        "<<'E'",
        "<<-E",
        "<<<",
        "\nE\n",
        ">",
        ">>",
        "<",
        "<>",
        ">|",
        "&>",
        "2>",
        ">&",
        "<&",
        "3<",
    ),
    *(
        "((",
        "[[",
        "]]",
        "[",
        "]",
        "for f in a; do",
        "done",
        "if ls; then",
        "fi",
        "while",
        "do",
        "case x in x)",
        ";;",
    ),
    *(
        "esac",
        "f()",
        "f() {",
        "function f",
        "alias ls=",
        "coproc",
        "select",
        "until",
        "trap",
        "-o",
        "-c",
        "--",
        "-",
    ),
    *(
        "=",
        "x=",
        "PATH=.",
        "IFS=",
        "*",
        "?",
        "~",
        ",",
        "@(",
        "./ls",
        "/bin/ls",
        "/bin/rm",
        "\\ls",
        "'ls'",
        'l""s',
    ),
    *(
        "a[$(touch m)]",
        "${x:-",
        "${x:=",
        "${x@P}",
        "$IFS",
        "${IFS}",
        "{ls,cat}",
        "{touch,m}",
        "touch{,}",
        "%",
        "!!",
    ),
]
LINES = st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map("".join)
LED = st.tuples(st.sampled_from(["ls ", "cat ", "git status ", "ls;", "cat <<E\n"]), LINES).map("".join)


@pytest.fixture(scope="module")
def stubs() -> Iterator[Path]:
    """Programs that write their name, and for git its subcommand, into a log."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for stub in (*OTHERS, "ls", "cat", "git"):
            shown = '"git $1"' if stub == "git" else f'"{stub}"'
            (folder / stub).write_text(f'#!/bin/sh\necho {shown} >> "$STUB_LOG"\n')
            (folder / stub).chmod(0o755)
        yield folder


def allowed(line: str) -> bool:
    """Whether the rules alone let a line pass."""
    parts = classify_shell(line, Place(Path("/w"), work_tree=Path("/w"))).simple_commands
    verdict = decide(RULES, Mode.DONT_ASK, TOOL, tuple(parts or ()), UNDECLARED)
    return verdict.kind is VerdictKind.ALLOW


def traced(line: str, stubs: Path) -> tuple[list[str], list[str]]:
    """What a real bash ran of the stubs, and what it left in its folder."""
    with tempfile.TemporaryDirectory() as name:
        work, log = Path(name) / "work", Path(name) / "log"
        work.mkdir()
        subprocess.run(
            ["/bin/bash", "--noprofile", "--norc", "-c", line],
            cwd=work,
            env={"PATH": str(stubs), "STUB_LOG": str(log), "HOME": name},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=90,
            check=False,
        )
        ran = log.read_text().splitlines() if log.exists() else []
        return ran, sorted(path.name for path in work.iterdir())


@settings(max_examples=1500, deadline=None)
@given(st.one_of(LINES, LED))
@example("ls; touch m")
@example("ls\ntouch m")
@example("ls $(touch m)")
@example("ls `touch m`")
@example("cat <(touch m)")
@example("ls > m")
@example("ls >| m")
@example("ls &> m")
@example("ls >& m")
@example("ls <> m")
@example("ls 2> m")
@example("ls & touch m")
@example("ls | touch m")
@example("ls |& touch m")
@example("ls ${x:-$(touch m)}")
@example("x=touch; ls; $x m")
@example("ls() { touch m; }; ls")
@example("alias ls='touch m'\nls")
@example("cat <<E\n$(touch m)\nE")
@example("cat <<E\nE\ntouch m")
@example("cat <<'E'\nE\ntouch m")
@example("ls \\\n; touch m")
@example("ls #\ntouch m")
@example("ls a#; touch m")
@example("PATH=. ls")
@example("ls ${x@P}")
@example("ls $((a[$(touch m)]))")
@example("ls {a,$(touch m)}")
@example("git status; git push")
@example("git status && git -c alias.x='!touch m' x")
@example("git -c core.fsmonitor='touch m' status")
@example("git status$(touch m)")
@example("ls '' ; 'touch' m")
@example("./ls")
@example("./ls x")
@example("! touch m")
@example("time touch m")
@example("if ls; then touch m; fi")
@example("case $(touch m) in x) ls;; esac")
@example("for ls in touch; do $ls m; done")
@example("coproc touch m")
@example("[[ -v a[$(touch m)] ]] ; ls")
@example("ls; exec touch m")
@example("ls; eval touch m")
@example("ls; trap 'touch m' EXIT")
@example("cat <<< $(touch m)")
@example("cat < <(touch m)")
@example('ls "$(touch m)"')
@example("ls $'\\x24(touch m)'")
@example("ls\\\n$(touch m)")
@example("{ls,} ; {touch,m}")
def test_ux_40_a_line_the_rules_let_pass_runs_nothing_else(stubs: Path, line: str) -> None:
    if not allowed(line):
        return
    ran, left = traced(line, stubs)
    assert set(ran) <= set(NAMED), (line, ran)
    assert left == [], (line, left)


@pytest.mark.parametrize(
    "line", ["ls", "ls -la a b", "cat a | cat", "git status --short", "ls && cat a; git status"]
)
def test_ux_40_plain_lines_of_named_commands_do_pass(stubs: Path, line: str) -> None:
    assert allowed(line)
    assert set(traced(line, stubs)[0]) <= set(NAMED)


def test_ux_40_the_stubs_tell_what_ran(stubs: Path) -> None:
    assert traced("touch m; git push; ls > m", stubs) == (["touch", "git push", "ls"], ["m"])
