"""What tests of supervised commands share: real run folders, a real server, bounded waiting."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from surefoot.testing.crash import supervisors
from surefoot.tools.processes import ending, folder, kernel
from surefoot.tools.processes.client import Command, ProcessServer, Supervised
from surefoot.tools.processes.runs import RunFolder
from surefoot.tools.processes.seen import Seen, look


@dataclass
class Limits:
    stop_term_seconds: float = 1.0
    stop_kill_seconds: float = 10.0
    stop_kill_check_seconds: float = 1.0
    background_probe_seconds: float = 0.3
    log_wait_ms: int = 200
    process_log_bytes: int = 64 << 20


class Bench:
    """Starts commands and says what became of them."""

    def __init__(self, tmp: Path) -> None:
        self.processes = tmp / "processes"
        self.limits = Limits()
        self.server = ProcessServer(self.processes, self.limits)
        self.work = tmp / "work"
        self.work.mkdir()
        self._count = 0
        self.records: dict[str, dict[str, Any]] = {}

    def make(self, name: str | None = None, **facts: Any) -> RunFolder:
        self._count += 1
        run = self.server.make_run(name or f"att_{self._count}")
        self.records[run.attempt_id] = run.record("test", **facts)
        return run

    def launch(self, script: str, run: RunFolder | None = None, **facts: Any) -> Supervised:
        run = run or self.make()
        facts.setdefault("environment", {"PATH": os.environ["PATH"], "SUREFOOT_IDEMPOTENCY_KEY": "sf1-k"})
        argv = ("/bin/bash", "--noprofile", "--norc", "-c", script)
        return self.server.launch(run, Command(argv, directory=self.work, key="sf1-k", **facts))

    async def ended(self, script: str, **facts: Any) -> Seen:
        job = self.launch(script, **facts)
        await asyncio.wait_for(asyncio.shield(job.exited), 90)
        return self.seen(job)

    def seen(self, job: Supervised) -> Seen:
        return self.server.seen(job, self.records[job.run.attempt_id])

    def look(self, run: RunFolder, **how: Any) -> Seen:
        return look(self.records[run.attempt_id], boot_id=kernel.boot_id(), **how)

    async def until(self, holds: Callable[[], Any], seconds: float = 90.0) -> Any:
        """Wait until something holds; what it answered is returned."""
        end = time.monotonic() + seconds
        while True:
            found = holds()
            if found:
                return found
            assert time.monotonic() < end, "it did not come to hold in time"
            await asyncio.sleep(0.01)

    async def read(self, name: str) -> str:
        """The text of a file a command writes into its folder, once it is there and whole."""
        path = self.work / name
        return str(
            await self.until(lambda: path.exists() and path.read_text().endswith("\n") and path.read_text())
        )

    def supervisor_pid(self, run: RunFolder) -> int:
        descriptor = folder.open_folder(str(run.path))
        try:
            return int((folder.read_record(descriptor, folder.CLAIM) or {})["pid"])
        finally:
            os.close(descriptor)

    async def close(self) -> None:
        # Again and again: what was just being born, or just being killed, shows at the next look.
        await self.until(self._killed)
        await self.server.close()
        await self.until(self._killed)
        # No supervisor either; a command's end is the end of all that was started for it.
        await self.until(lambda: not holding(self.processes))

    def _killed(self) -> bool:
        left = ending.survivors(self.processes)
        for survivor in left:
            ending.kill({"path": survivor.folder})
        return left == []


def holding(processes: Path) -> list[int]:
    """Supervisors of these run folders, and processes, ours excepted, that hold one open."""
    found = supervisors(processes)
    for stat in kernel.all_stats():
        with contextlib.suppress(OSError):
            links = [str(link.readlink()) for link in Path(f"/proc/{stat.pid}/fd").iterdir()]
            if stat.pid != os.getpid() and any(link.startswith(f"{processes}/") for link in links):
                found.append(stat.pid)
    return found


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    found = Bench(tmp_path)
    yield found
    await found.close()
