"""The agent dies at every seam around a supervised command; the truth is found afterwards.

Real agents in processes of their own, real SIGKILL. The effect is one line appended to a
file, so that it can be counted.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.model import EffectClass, ExecutorState, State
from surefoot.testing.crash import supervisors
from surefoot.tools.processes import ending, kernel
from surefoot.tools.processes.seen import ProcessState, Seen, look, outcome_of

_AGENT = """
import asyncio, json, os, signal, sys, types
from pathlib import Path
from surefoot.tools.processes import client

seam, script, home = sys.argv[1], sys.argv[2], Path(sys.argv[3])
limits = types.SimpleNamespace(stop_term_seconds=1.0, stop_kill_seconds=10.0, stop_kill_check_seconds=1.0,
                               background_probe_seconds=2.0, log_wait_ms=200, process_log_bytes=64 << 20)

def die():
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    server = client.ProcessServer(home / "processes", limits)
    run = server.make_run("att_x")
    background = seam.startswith("background")
    (home / "new").write_text(json.dumps(run.record("x", background=background)))
    (home / "new").rename(home / "record")
    if seam == "made":
        die()
    if seam == "cold":
        server._start_server = lambda: None
    follow, take = client.Supervised.follow, client.Supervised._take
    async def asked(job, request):
        if seam == "handed":
            die()
        if seam == "half":
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(job._connection, len(request).to_bytes(4, "big") + request[:50])
            die()
        await follow(job, request)
    def told(job, event):
        if event["event"] == seam:
            die()
        take(job, event)
    client.Supervised.follow, client.Supervised._take = asked, told
    environment = {"PATH": os.environ["PATH"], "SUREFOOT_IDEMPOTENCY_KEY": "sf1-x"}
    argv = ("/bin/bash", "-c", script)
    limit = client.kernel.boot_ms() + 5000 if seam == "limit" else None
    command = client.Command(argv, environment, home, "sf1-x", background=background, deadline_boot_ms=limit)
    job = server.launch(run, command)
    await job.running
    (home / "up").touch()
    await job.quiet
    await asyncio.sleep(60)

asyncio.run(main())
"""

_APPEND = "echo effect >> effects; echo told"


class Agent:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, seam: str, script: str = _APPEND) -> subprocess.Popen[bytes]:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _AGENT, seam, script, str(self.home)], start_new_session=True
        )
        return self.process

    @property
    def record(self) -> dict[str, Any]:
        return dict(json.loads((self.home / "record").read_text()))

    def look(self, **how: Any) -> Seen:
        return look(self.record, boot_id=kernel.boot_id(), **how)

    def effects(self) -> int:
        path = self.home / "effects"
        return len(path.read_text().split()) if path.exists() else 0

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        for survivor in ending.survivors(self.home / "processes"):
            ending.kill({"path": survivor.folder})
        assert ending.survivors(self.home / "processes") == []
        until(lambda: not _supervisors(self))


def until(holds: Callable[[], Any], seconds: float = 90.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "it did not come to hold in time"
        time.sleep(0.01)
    return found


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    found = Agent(tmp_path)
    yield found
    found.end()


@pytest.mark.parametrize("seam", ["made", "handed", "half"])
def test_tr_67_an_agent_killed_before_its_request_is_whole_has_run_nothing(agent: Agent, seam: str) -> None:
    assert agent.start(seam).wait(120) == -signal.SIGKILL
    seen = agent.look(epoch=2, claim=True)
    assert seen.state is ProcessState.NEVER_RAN
    assert outcome_of(seen, EffectClass.NON_IDEMPOTENT).reason == "never_ran"
    until(lambda: not _supervisors(agent))
    assert agent.effects() == 0


@pytest.mark.parametrize("seam", ["claimed", "running", "exit", "quiet"])
def test_f17_an_agent_killed_at_any_event_leaves_a_record_that_settles(agent: Agent, seam: str) -> None:
    assert agent.start(seam).wait(120) == -signal.SIGKILL
    seen = until(lambda: (s := agent.look(epoch=2, claim=True)).quiet and s)
    assert (seen.state, seen.code, seen.output) == (ProcessState.EXITED, 0, "told\n")
    assert outcome_of(seen, EffectClass.NON_IDEMPOTENT).state is State.SUCCEEDED
    assert seen.executor is ExecutorState.ENDED
    assert agent.effects() == 1


@pytest.mark.parametrize("seam", ["none", "cold"])
def test_f17_an_agent_killed_while_the_command_runs_leaves_it_running_and_adoptable(
    agent: Agent, seam: str
) -> None:
    process = agent.start(seam, f"while ! test -e go; do sleep 0.01; done; {_APPEND}; exit 6")
    until((agent.home / "up").exists)
    process.kill()
    process.wait()
    seen = agent.look(epoch=2, claim=True)
    assert (seen.state, seen.supervisor_alive, seen.quiet) == (ProcessState.RUNNING, True, False)
    assert seen.executor is ExecutorState.ALIVE
    assert [s.attempt_id for s in ending.survivors(agent.home / "processes")] == ["att_x"]
    (agent.home / "go").touch()
    seen = until(lambda: (s := agent.look()).quiet and s)
    assert (seen.code, seen.output, agent.effects()) == (6, "told\n", 1)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_tr_206_a_signal_to_the_agents_whole_group_ends_no_command(
    agent: Agent, number: signal.Signals
) -> None:
    process = agent.start("none", f"while ! test -e go; do sleep 0.01; done; {_APPEND}")
    until((agent.home / "up").exists)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
    process.kill()
    process.wait()
    assert agent.look().state is ProcessState.RUNNING
    (agent.home / "go").touch()
    assert until(lambda: (s := agent.look()).quiet and s).code == 0


def test_f17_agent_and_supervisor_killed_together_leave_it_unknown_and_not_fenced(agent: Agent) -> None:
    process = agent.start("none", f"while ! test -e go; do sleep 0.01; done; {_APPEND}; exec sleep 300")
    until((agent.home / "up").exists)
    (survivor,) = ending.survivors(agent.home / "processes")
    os.kill(survivor.supervisor_pid, signal.SIGKILL)
    process.kill()
    process.wait()
    until(lambda: not agent.look().supervisor_alive)
    seen = agent.look(epoch=2, claim=True)
    assert (seen.state, seen.quiet) == (ProcessState.RUNNING, False)
    assert outcome_of(seen, EffectClass.UNKNOWN).state is State.UNKNOWN
    (agent.home / "go").touch()
    until(agent.effects)  # it writes late, and nothing had said that it would not
    report = ending.kill(agent.record)
    assert (report.gone, report.proven) == (True, False)
    after = agent.look()
    assert (after.state, after.executor) == (ProcessState.GONE, ExecutorState.NOT_PROVEN)


def test_tr_203_the_deadline_holds_when_the_agent_is_dead(agent: Agent) -> None:
    process = agent.start("limit", "sleep 300")
    until((agent.home / "up").exists)
    process.kill()
    process.wait()
    assert agent.look().state is ProcessState.RUNNING
    seen = until(lambda: (s := agent.look()).quiet and s)
    assert seen.signal == signal.SIGINT
    assert seen.stop is not None and seen.stop["why"] == "time_limit"
    assert outcome_of(seen, EffectClass.UNKNOWN).reason == "time_limit"


def test_case_f01_a_background_command_is_found_by_whoever_looks_next(agent: Agent) -> None:
    process = agent.start("background", "exec sleep 300")
    until((agent.home / "up").exists)
    process.kill()
    process.wait()
    (survivor,) = ending.survivors(agent.home / "processes")
    assert (survivor.background, survivor.command) == (True, "sleep 300")
    outcome = outcome_of(agent.look(), EffectClass.UNKNOWN, background_probe_ms=2000)
    assert (outcome.state, outcome.executor) == (State.SUCCEEDED, "alive")
    report = ending.kill(agent.record)
    assert (report.gone, report.proven) == (True, True)


def _supervisors(agent: Agent) -> list[int]:
    """Processes that were started for this agent's commands and still hold its run folder open, or its claim."""
    found = supervisors(agent.home)
    target = str(agent.home / "processes" / "att_x")
    for stat in kernel.all_stats():
        with contextlib.suppress(OSError):
            if any(str(link.readlink()) == target for link in Path(f"/proc/{stat.pid}/fd").iterdir()):
                found.append(stat.pid)
    return found
