"""Runs the console blocks of a page as one story: its commands, what they print, and exit codes.

A block is fenced as `console`. A line that begins with `$ ` is a command; the lines
below it are what it prints, standard error included. `…` stands for any text inside a
line; a line `…` alone stands for any number of lines. A command must end with 0,
unless the next one is `echo $?`, which shows what it ended with.

`<!-- model: NAME -->` anywhere in a page starts a strict model server that plays
`docs_src/models/NAME.json` for the whole page.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 120.0
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
_MODEL = re.compile(r"<!-- model: ([\w-]+) -->")
_JOB = re.compile(r"^bash: line \d+: +\d+ Killed .*\n", re.MULTILINE)
_MARK = "\x1e"


@dataclass(frozen=True)
class Command:
    """One command and the lines it should print."""

    text: str
    expected: tuple[str, ...]


def blocks(text: str, language: str) -> list[str]:
    """The contents of all fenced blocks of a language."""
    return [found.group(2) for found in _FENCE.finditer(text) if found.group(1) == language]


def commands(text: str) -> list[Command]:
    """The commands of all console blocks, in order."""
    made: list[Command] = []
    for block in blocks(text, "console"):
        for line in block.splitlines():
            if line.startswith("$ "):
                made.append(Command(line[2:], ()))
            else:
                made[-1] = Command(made[-1].text, (*made[-1].expected, line))
    return made


def fits(expected: tuple[str, ...], printed: list[str]) -> bool:
    """Whether printed lines are as expected, with `…` for what may differ."""
    if not expected:
        return not printed
    if expected[0] == "…":
        return any(fits(expected[1:], printed[skip:]) for skip in range(len(printed) + 1))
    if not printed:
        return False
    pattern = ".*".join(re.escape(part) for part in expected[0].split("…"))
    return bool(re.fullmatch(pattern, printed[0])) and fits(expected[1:], printed[1:])


@contextmanager
def stage(text: str, folder: Path) -> Iterator[dict[str, str]]:
    """A home and a project for one page, and its model server; gives the environment."""
    home, project = folder / "home", folder / "shop"
    home.mkdir()
    shutil.copytree(ROOT / "docs_src/project", project)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    start = bin_folder / "surefoot"
    # No interpreter line of its own: the path of an interpreter may have a space.
    program = "from surefoot.surfaces.cli import main; main()"
    start.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{program}" "$@"\n')
    start.chmod(0o755)
    environ = {"PATH": f"{bin_folder}:{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8",
               "SUREFOOT_HOME": str(home / ".surefoot"), "TERM": "dumb", "COLUMNS": "100"}  # fmt: skip
    if "LD_LIBRARY_PATH" in os.environ:
        environ["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    named = _MODEL.search(text)
    if named is None:
        yield environ
        return
    script = ROOT / "docs_src/models" / f"{named.group(1)}.json"
    with subprocess.Popen(
        [sys.executable, "-m", "surefoot.testing.emulator", "--profile", "openai", "--script", str(script),
         "--until-stdin-closes"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        assert server.stdin is not None and server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            yield environ | {"OPENAI_API_KEY": "sk-example", "OPENAI_BASE_URL": url}
        finally:
            server.stdin.close()
            server.terminate()


def play(text: str, folder: Path) -> list[tuple[Command, int, list[str]]]:
    """Run all console blocks of a page in one shell; each command with its exit code and lines."""
    told = commands(text)
    script = "".join(
        f"{command.text}\n__code=$?; printf '\\n{_MARK}%s\\n' $__code; (exit $__code)\n" for command in told
    )
    with stage(text, folder) as environ:
        ended = subprocess.run(
            ["bash", "-c", "exec 2>&1\n" + script], cwd=folder / "shop", env=environ, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    # The shell tells that a background job was killed; that is no output of a command.
    told_out = _JOB.sub("", ended.stdout)
    parts = re.split(rf"\n{_MARK}(\d+)\n", told_out)
    played = []
    for number, command in enumerate(told):
        printed, code = (
            (parts[2 * number], int(parts[2 * number + 1])) if 2 * number + 1 < len(parts) else ("", -1)
        )
        played.append((command, code, printed.strip("\n").splitlines()))
    return played


def faults(text: str, folder: Path) -> list[str]:
    """What a page prints that is not so."""
    found = []
    played = play(text, folder)
    for number, (command, code, printed) in enumerate(played):
        following = played[number + 1][0].text if number + 1 < len(played) else ""
        if not fits(command.expected, printed):
            found.append(
                f"$ {command.text}\n--- the page says\n"
                + "\n".join(command.expected)
                + "\n--- it prints\n"
                + "\n".join(printed)
            )
        if code != 0 and following != "echo $?":
            found.append(f"$ {command.text}\nends with {code}, and the page does not say so")
    return found


def main() -> int:
    """`python tests/docs/console.py PAGE` prints what the commands of a page print now."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for command, code, printed in play(Path(sys.argv[1]).read_text(encoding="utf-8"), Path(folder)):
            print(f"$ {command.text}", *printed, f"[{code}]", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
