"""What the supervisor costs: a supervised `true` against a plain asyncio subprocess.

python bench/supervised.py [--quick]
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from timing import Case, clock, interleaved, median, ms, percentile, progress, scratch, table

from surefoot.core.limits import Limits
from surefoot.tools.processes.client import Command, ProcessServer

TRUE = "/bin/true"


def plain() -> Case:
    async def case() -> float:
        began = clock()
        process = await asyncio.create_subprocess_exec(TRUE, start_new_session=True)
        await process.wait()
        return clock() - began

    return case


def supervised(server: ProcessServer, folder: Path, *, sync: bool, until_quiet: bool = False) -> Case:
    """Run folder, claim, command, exit record; with `sync` each of them survives a power cut."""
    count = 0

    async def case() -> float:
        nonlocal count
        count += 1
        name = f"att_{'s' if sync else 'r'}{'q' if until_quiet else 'e'}_{count}"
        began = clock()
        run = server.make_run(name)
        command = Command((TRUE,), environment={}, directory=folder, key="sf1-bench", sync=sync)
        job = server.launch(run, command)
        record = await job.exited
        taken = clock() - began
        await job.quiet
        if until_quiet:
            taken = clock() - began
        if record is None:
            raise RuntimeError("a supervised `true` ended without an exit record")
        return taken

    return case


async def main(quick: bool) -> None:
    with scratch() as name:
        progress("supervised commands")
        server = ProcessServer(name / "processes", Limits())
        cases = {
            "asyncio subprocess, nothing recorded": plain(),
            "supervised reader (records not synced)": supervised(server, name, sync=False),
            "supervised writer (records synced)": supervised(server, name, sync=True),
            "… until nothing of it is left": supervised(server, name, sync=True, until_quiet=True),
        }
        try:
            await interleaved(cases, 3)  # the warm server starts with the first command
            taken = await interleaved(cases, 20 if quick else 100)
        finally:
            await server.close()
    floor = median(taken["asyncio subprocess, nothing recorded"])
    rows = [
        (what, ms(median(values)), ms(percentile(values, 0.95)), f"{median(values) / floor:.2f}")
        for what, values in taken.items()
    ]
    table("A command that does nothing: `true`", ("what", "p50 ms", "p95 ms", "÷ plain"), rows)


if __name__ == "__main__":
    asyncio.run(main("--quick" in sys.argv[1:]))
