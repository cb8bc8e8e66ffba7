"""The search process does not outlive an agent that was killed, busy or idle (TR-207)."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

AGENT = """
import asyncio, sys
from surefoot.tools.worker import Worker

async def main(folder, pattern):
    worker = Worker()
    await worker.ask({"operation": "glob", "folder": folder, "pattern": "*", "limit": 1}, 60)
    print(worker.pid, flush=True)
    request = {"operation": "grep", "folder": folder, "pattern": pattern, "limit": 1, "output": "lines"}
    await worker.ask(request, 1.0)
    await asyncio.sleep(60)

asyncio.run(main(*sys.argv[1:]))
"""


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("pattern", ["(x+x+)+y", "idle"])
def test_tr_207_the_search_process_of_a_killed_agent_ends_by_itself(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "a.txt").write_text("x" * 60)
    agent = subprocess.Popen(
        [sys.executable, "-c", AGENT, str(tmp_path), pattern], stdout=subprocess.PIPE, text=True
    )
    assert agent.stdout is not None
    with agent:
        pid = int(agent.stdout.readline())
        assert not gone(pid)
        agent.kill()
    until = time.monotonic() + 90
    while not gone(pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert gone(pid)
