"""What starting costs: commands and the import, against a bare interpreter.

python bench/starting.py [--quick]
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from long_session import long_session
from timing import Case, clock, interleaved, median, ms, percentile, progress, scratch, table, verdict

from surefoot.config import load_settings

SUREFOOT = str(Path(sys.executable).parent / "surefoot")

COMPLETION_MS = 100
COMPLETIONS = (
    ("completion of commands", "surefoot "),
    ("completion of open calls", "surefoot recover confirm "),
    ("completion of sessions", "surefoot session show "),
    ("completion of models", "surefoot -m "),
)
"""What a shell is offered, and the line it is asked for (UX-59)."""


def asked(line: str) -> dict[str, str]:
    """The variables with which bash asks for the words at the end of a line."""
    place = str(line.count(" "))
    return {"_SUREFOOT_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": place}


def process(argv: list[str], project: Path, environ: dict[str, str]) -> Case:
    """From the start of a process to its end."""

    def run() -> float:
        began = clock()
        subprocess.run(
            argv, cwd=project, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True
        )
        return clock() - began

    async def case() -> float:
        return await asyncio.to_thread(run)

    return case


async def main(quick: bool) -> None:
    with scratch() as name:
        project = name / "project"
        project.mkdir()
        environ = {**os.environ, "SUREFOOT_HOME": str(name / "home"), "HOME": str(name)}
        progress("start of commands")
        ledger = load_settings({}, environ, project).places.ledger_folder(project)
        async with long_session(ledger) as one:
            await one.grow(100)
            await one.leave_open(1)
        commands: list[tuple[str, list[str], float]] = [
            ("bare interpreter", [sys.executable, "-c", "pass"], 0),
            ("`import surefoot`", [sys.executable, "-c", "import surefoot"], 5),
            ("`surefoot --version`", [SUREFOOT, "--version"], 3),
            ("`surefoot --help`", [SUREFOOT, "--help"], 6),
            ("`surefoot recover list`, 101 calls, one open", [SUREFOOT, "recover", "list"], 15),
        ]
        cases = {what: process(argv, project, environ) for what, argv, _ in commands}
        cases |= {what: process([SUREFOOT], project, environ | asked(line)) for what, line in COMPLETIONS}
        await interleaved(cases, 2)  # warm files
        taken = await interleaved(cases, 8 if quick else 20)
    floor = median(taken["bare interpreter"])
    rows = []
    for what, _, most in commands:
        middle = median(taken[what])
        aim = (f"≤ {most:g} ×", verdict(middle <= most * floor)) if most else ("", "")
        rows.append((what, ms(middle), ms(percentile(taken[what], 0.95)), f"{middle / floor:.2f}", *aim))
    for what, _ in COMPLETIONS:
        middle = median(taken[what])
        aim = (f"≤ {COMPLETION_MS} ms", verdict(middle * 1000 <= COMPLETION_MS))
        rows.append((what, ms(middle), ms(percentile(taken[what], 0.95)), f"{middle / floor:.2f}", *aim))
    table("Starting", ("what", "p50 ms", "p95 ms", "÷ bare", "aim", "kept"), rows)


if __name__ == "__main__":
    asyncio.run(main("--quick" in sys.argv[1:]))
