"""Two owners on one ledger whose death nobody can tell, one of them stopped by a signal: real processes and clocks."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.model import EffectClass, Kind, State
from surefoot.errors import SessionHeld
from surefoot.ledger.opening import open_ledger
from surefoot.ledger.owners import this_process
from surefoot.ledger.places import GATE, OWNERS
from surefoot.ledger.sqlite import Tuning
from surefoot.runtime.scheduler import Scheduler, SystemClock
from surefoot.runtime.session import Wanted
from surefoot.testing.rig import SESSION, Crew, Setup, assemble

LIMITS = {"lease_seconds": 1.0, "lease_renewal_seconds": 0.3}

OWNER = """
import asyncio, fcntl, os, signal, sys, threading
from pathlib import Path
from surefoot.core.effects import Effect
from surefoot.core.model import EffectClass, Kind
from surefoot.errors import StaleEpoch
from surefoot.ledger.opening import open_ledger
from surefoot.ledger.owners import this_process
from surefoot.ledger.places import OWNERS
from surefoot.ledger.sqlite import Tuning
from surefoot.runtime.scheduler import Scheduler
from surefoot.runtime.session import Wanted
from surefoot.runtime.tools import Tool
from surefoot.testing.rig import SESSION, Setup, assemble

folder, where, gate = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])

def stop():
    # Between two commits, as a terminal's stop would: the test gives the gate back for us.
    fcntl.flock(gate, fcntl.LOCK_EX)
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)  # so that this thread goes no further

class Stopping:
    # Stops its own process once, directly behind a durable start, or inside the body of the call.
    def __init__(self, ledger):
        self._ledger = ledger
        self._done = False
    def __getattr__(self, name):
        return getattr(self._ledger, name)
    async def append(self, session_id, drafts, **how):
        answer = await self._ledger.append(session_id, drafts, **how)
        if where == "start" and not self._done and any(one.kind == Kind.STARTED for one in drafts):
            self._done = True
            stop()
        return answer

async def body(live, arguments):
    if where == "body":
        stop()
    (folder / "effect").write_text(live.attempt_id)
    return "done"

async def main():
    tuning = Tuning(death=lambda owner, owners: "cannot_tell", lease_seconds=1.0)
    ledger = await open_ledger(folder / "ledger", tuning=tuning)
    owner, lock = this_process(folder / "ledger" / OWNERS)
    pay = Tool("pay", "pays", {"type": "object"}, body=body, time_limit_seconds=1,
               effect=Effect(EffectClass.NON_IDEMPOTENT, ("host:p",)))
    limits = {"lease_seconds": 1.0, "lease_renewal_seconds": 0.3}
    wanted = Wanted(SESSION, {"directory": str(folder)})
    crew = await assemble(Stopping(ledger), Scheduler(), owner, wanted, Setup(tools=[pay], limits=limits), None)
    await crew.controller.open()
    print("owned", flush=True)
    try:
        receipt = await crew.call("pay")
        print(receipt.state, receipt.reason, flush=True)
    except StaleEpoch:
        print("stale", flush=True)
    print("lost" if crew.session.lost else "owner", flush=True)
    os._exit(0)

asyncio.run(main())
"""


def stopped(pid: int) -> bool:
    """Whether the kernel says that a process is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


async def until(holds: Callable[[], Any], seconds: float = 90) -> Any:
    """Wait until something holds, bounded."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "it did not come to hold in time"
        await asyncio.sleep(0.02)
    return found


@asynccontextmanager
async def rival(folder: Path, *, take_over: bool = False) -> AsyncIterator[Crew]:
    """Another owner of the same session. Raises `SessionHeld`."""
    tuning = Tuning(death=lambda owner, owners: "cannot_tell", lease_seconds=1.0)
    ledger = await open_ledger(folder / "ledger", tuning=tuning)
    owner, lock = this_process(folder / "ledger" / OWNERS)
    try:
        wanted = Wanted(SESSION, None, take_over)
        crew = await assemble(ledger, Scheduler(), owner, wanted, Setup(limits=LIMITS), None)
        try:
            await crew.controller.open()
            yield crew
        finally:
            await crew.session.close()
    finally:
        await ledger.close()
        lock.close()


@asynccontextmanager
async def owner_stopped_at(folder: Path, where: str) -> AsyncIterator[subprocess.Popen[str]]:
    """A process that owns the session and was stopped by a signal at `start` or in its `body`."""
    (folder / "ledger").mkdir(mode=0o700)
    gate = os.open(folder / "ledger" / GATE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with subprocess.Popen(  # noqa: ASYNC220 - it returns at once
            [sys.executable, "-c", OWNER, str(folder), where, str(gate)],
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=[gate],
        ) as child:
            try:
                await until(lambda: stopped(child.pid))
                fcntl.flock(gate, fcntl.LOCK_UN)
                yield child
            finally:
                child.kill()
    finally:
        os.close(gate)


@pytest.mark.promise("ledger:fenced")
async def test_tr_174_tr_175_an_owner_woken_after_its_cover_ran_out_begins_nothing(tmp_path: Path) -> None:
    async with owner_stopped_at(tmp_path, "start") as child:
        began = time.monotonic()

        async def taken() -> Crew | None:
            try:
                return await entered.__aenter__()
            except SessionHeld:
                return None

        crew = None
        while crew is None:
            assert time.monotonic() - began < 90
            entered = rival(tmp_path)
            crew = await taken()
        [receipt] = crew.session.book
        assert receipt.started_boot is not None and receipt.deadline_boot is not None
        assert receipt.deadline_boot - receipt.started_boot > 5000, "the lease itself is over long before"
        assert SystemClock().boot_ms() > receipt.deadline_boot, "a start covers its owner until its deadline"
        assert (receipt.state, receipt.reason) == (State.UNKNOWN, "owner_died")
        assert (receipt.executor or {})["state"] == "alive", "nobody saw its owner die (TR-176)"
        os.kill(child.pid, signal.SIGCONT)
        assert child.stdout is not None
        told = (await asyncio.to_thread(child.stdout.read)).split("\n")
        assert not (tmp_path / "effect").exists(), "no body begins past the lease"
        assert "lost" in told
        entries = await crew.entries(Kind.CLOSED)
        assert [entry.epoch for entry in entries] == [2]
        await entered.__aexit__(None, None, None)


async def test_tr_175_tr_176_a_person_takes_over_at_once_and_the_old_body_counts_as_alive(
    tmp_path: Path,
) -> None:
    async with owner_stopped_at(tmp_path, "body") as child, rival(tmp_path, take_over=True) as crew:
        [receipt] = crew.session.book
        assert (receipt.state, (receipt.executor or {})["state"]) == (State.UNKNOWN, "alive")
        assert receipt.effect_class is EffectClass.NON_IDEMPOTENT
        os.kill(child.pid, signal.SIGCONT)
        assert child.stdout is not None
        told = await asyncio.to_thread(child.stdout.read)
        assert (tmp_path / "effect").exists(), "an epoch fences the ledger, not the world"
        assert "succeeded" not in told and "lost" in told
        assert [entry.epoch for entry in await crew.entries(Kind.CLOSED)] == [2]
        now = crew.receipt(receipt.attempt_id)
        assert now.state is State.UNKNOWN, "its receipt stays as the new owner judged it"


async def test_tr_174_a_hand_over_needs_no_waiting(tmp_path: Path) -> None:
    from surefoot.testing.rig import on_disk

    async with on_disk(tmp_path / "ledger") as first:
        assert first.session.epoch == 1
    async with rival(tmp_path) as second:
        assert second.session.epoch == 2
