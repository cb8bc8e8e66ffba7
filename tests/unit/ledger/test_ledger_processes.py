"""Real processes around one ledger: death, stopping, racing, foreign opens and closes."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.model import Owner
from surefoot.errors import LedgerLocked
from surefoot.ledger import owners
from surefoot.ledger.opening import open_ledger
from surefoot.ledger.owners import proof_of_death, this_process
from surefoot.ledger.port import Appended, Claim, Held
from surefoot.ledger.sqlite import Tuning

CHILD = """
import asyncio, json, os, sys
from pathlib import Path
from surefoot.core.model import Draft
from surefoot.ledger.opening import open_ledger
from surefoot.ledger.owners import this_process

folder, session = Path(sys.argv[1]), sys.argv[2]

async def main():
    ledger = await open_ledger(folder)
    owner, lock = this_process(folder / "owners")
    claim = await ledger.claim(session, owner, opening=Draft("session.opened", {"directory": "/"}))
    print(json.dumps(owner.to_json()), flush=True)
    for line in sys.stdin:
        order = line.strip()
        if order == "append":
            told = await ledger.append(session, [Draft("todo", {"items": [str(os.getpid())]})], epoch=claim.epoch)
            print(type(told).__name__, flush=True)
        elif order == "gate":
            print(ledger._gate.enter_now(), flush=True)
        elif order == "leave":
            ledger._gate.leave()
            print("left", flush=True)
        elif order == "reopen":
            other = await open_ledger(folder)
            await other.close()
            print("reopened", flush=True)
        elif order == "loop":
            print("looping", flush=True)
            while True:
                await ledger.append(session, [Draft("todo", {"items": []})], epoch=claim.epoch)

asyncio.run(main())
"""


class Child:
    """A process that owns a session and obeys orders."""

    def __init__(self, folder: Path, session: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(folder), session],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        self.owner = Owner.from_json(json.loads(self.read()))

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def order(self, word: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.read()

    def send(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def stop(self) -> None:
        self.send(signal.SIGSTOP)
        self.wait_for(os.WSTOPPED)

    def wait_for(self, what: int) -> None:
        os.waitid(os.P_PID, self.process.pid, what)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        self.kill()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
def child(folder: Path, say: Any) -> Iterator[Child]:
    made = Child(folder, say.session)
    yield made
    made.end()


# TR-173: who is dead.


async def test_tr_173_a_killed_owner_is_taken_over_at_once_and_a_live_one_is_not(
    child: Child, folder: Path, say: Any
) -> None:
    ledger = await open_ledger(folder)
    me, lock = this_process(folder / "owners")
    held = await ledger.claim(say.session, me)
    assert isinstance(held, Held)
    assert (held.owner, held.how) == (child.owner, "at_once")
    child.kill()
    taken = await ledger.claim(say.session, me)
    assert isinstance(taken, Claim)
    assert (taken.epoch, taken.previous, taken.taken_over) == (2, child.owner, False)
    await ledger.close()
    lock.close()


async def test_tr_173_a_stopped_owner_is_alive_and_stale_after_a_takeover(
    child: Child, folder: Path, say: Any
) -> None:
    ledger = await open_ledger(folder)
    me, lock = this_process(folder / "owners")
    child.stop()
    assert isinstance(await ledger.claim(say.session, me), Held)
    taken = await ledger.claim(say.session, me, take_over=True)
    assert isinstance(taken, Claim)
    assert taken.taken_over
    child.send(signal.SIGCONT)
    assert child.order("append") == "NotAppended"
    await ledger.close()
    lock.close()


def next_door(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on this process sees all others from a pid namespace of its own."""
    monkeypatch.setattr(owners, "pid_namespace", lambda: "pid:[1]")


def test_tr_173_death_is_proved_by_the_lock_alone_or_by_the_kernels_process_table_alone(
    child: Child, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = folder / "owners"
    by_pid = dataclasses.replace(child.owner, lock_dev=None, lock_ino=None)

    def seen() -> list[str]:
        with monkeypatch.context() as patch:
            by_table = proof_of_death(by_pid, locks)
            next_door(patch)
            return [proof_of_death(child.owner, locks), by_table, proof_of_death(by_pid, locks)]

    assert seen() == ["alive", "alive", "cannot_tell"]
    reused = dataclasses.replace(by_pid, start_ticks=by_pid.start_ticks + 1)
    assert proof_of_death(reused, locks) == "dead"
    child.kill()
    assert seen() == ["dead", "dead", "cannot_tell"]


@pytest.mark.parametrize("holder", ["lives", "died"])
def test_tr_173_an_inode_given_to_the_lock_of_another_process_says_nothing_of_the_one_that_had_it(
    child: Child, folder: Path, monkeypatch: pytest.MonkeyPatch, holder: str
) -> None:
    """A lock that somebody removed; the next process made its own in the inode that became free."""
    next_door(monkeypatch)
    gone = dataclasses.replace(child.owner, pid=child.owner.pid + 1)
    before = dataclasses.replace(child.owner, start_ticks=child.owner.start_ticks - 1)
    elsewhere = dataclasses.replace(child.owner, pid_namespace="pid:[2]")
    if holder == "died":
        child.kill()
    assert [proof_of_death(who, folder / "owners") for who in (gone, before, elsewhere)] == [
        "cannot_tell"
    ] * 3


def test_tr_173_another_boot_of_the_same_machine_proves_death_and_another_machine_does_not(
    child: Child, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owners, "boot_id", lambda: "a-later-boot")
    monkeypatch.setattr(owners, "machine_id", lambda: "this-machine")
    here = dataclasses.replace(child.owner, machine_id="this-machine")
    assert proof_of_death(here, folder / "owners") == "dead"
    assert proof_of_death(dataclasses.replace(here, machine_id="other"), folder / "owners") == "cannot_tell"
    assert proof_of_death(dataclasses.replace(here, machine_id=""), folder / "owners") == "cannot_tell"
    monkeypatch.setattr(owners, "is_local", lambda path: False)
    assert proof_of_death(here, folder / "owners") == "cannot_tell"


def test_tr_173_this_process_holds_its_lock_until_it_closes_it(tmp_path: Path) -> None:
    owner, lock = this_process(tmp_path)
    assert proof_of_death(owner, tmp_path) == "alive"
    assert owner.start_ticks == owners.start_ticks(os.getpid())
    lock.close()
    assert list(tmp_path.iterdir()) == []


def test_tr_173_a_forked_child_keeps_its_dead_parents_lock_which_errs_on_the_safe_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen from another pid namespace, where the lock is all there is to see."""
    ours, theirs = os.pipe()
    told, tell = os.pipe()
    parent = os.fork()
    if parent == 0:
        owner, _ = this_process(tmp_path)
        if os.fork() == 0:
            os.close(theirs)
            os.read(ours, 1)
            os._exit(0)
        os.write(tell, json.dumps(owner.to_json()).encode())
        os._exit(0)
    owner = Owner.from_json(json.loads(os.read(told, 4096)))
    os.waitpid(parent, 0)
    assert proof_of_death(owner, tmp_path) == "dead"
    next_door(monkeypatch)
    assert proof_of_death(owner, tmp_path) == "alive"
    for end in (ours, theirs, told, tell):
        os.close(end)


@pytest.mark.parametrize("name", [b"sh", b"a b", b"odd) name (x", b"(((", b")"])
def test_tr_173_start_ticks_are_read_whatever_the_name_of_the_process(name: bytes) -> None:
    rest = b" S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987654 20 21\n"
    assert owners.ticks_in(b"42 (" + name + b")" + rest) == 987654


def test_tr_173_a_process_nobody_knows_has_no_start_ticks() -> None:
    assert owners.start_ticks(2**22 + 5) is None


def test_case_g05_tr_173_a_shared_file_system_proves_nothing() -> None:
    mounts = (
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "2 1 0:40 / /mnt/far\\040away rw - nfs4 server:/x rw\n"
        "3 1 0:41 / /mnt/ssh rw - fuse.sshfs host:/ rw\n"
        "4 3 0:42 / /mnt/ssh/tmp rw - tmpfs tmpfs rw\n"
        "5 1 0:43 / /mnt/f\\040ür\\134 rw - nfs4 server:/x rw\n"
    )
    kinds = {
        path: owners._kind_of(path, mounts)
        for path in ("/home", "/mnt/far away/a", "/mnt/ssh", "/mnt/ssh/tmp/x", "/mnt/f ür\\/a")
    }
    assert list(kinds.values()) == ["ext4", "nfs4", "fuse.sshfs", "tmpfs", "nfs4"]


# TR-177, TR-191, TR-192 with two processes.


async def test_tr_177_of_processes_that_race_for_a_dead_owners_session_one_wins(
    child: Child, folder: Path, say: Any
) -> None:
    child.kill()
    me, lock = this_process(folder / "owners")
    handles = [await open_ledger(folder) for _ in range(4)]
    told = await asyncio.gather(*(handle.claim(say.session, me) for handle in handles))
    assert sorted(type(answer).__name__ for answer in told) == ["Claim", "Held", "Held", "Held"]
    for handle in handles:
        await handle.close()
    lock.close()


async def test_tr_191_another_process_that_opens_and_closes_the_ledger_costs_no_entry(
    child: Child, folder: Path, say: Any
) -> None:
    ledger = await open_ledger(folder)
    me, lock = this_process(folder / "owners")
    claim = await ledger.claim(say.other, me, opening=say.opening())
    for _ in range(5):
        assert isinstance(await ledger.append(say.other, [say.todo()], epoch=claim.epoch), Appended)
        assert child.order("reopen") == "reopened"
        assert child.order("append") == "Appended"
    child.kill()
    await ledger.close()
    fresh = await open_ledger(folder)
    assert len(await fresh.read(say.other)) == len(await fresh.read(say.session)) == 7
    assert (await fresh.verify()).findings == ()
    await fresh.close()
    lock.close()


async def test_tr_192_a_process_stopped_inside_the_gate_holds_others_back_no_longer_than_their_wait(
    child: Child, folder: Path, say: Any
) -> None:
    ledger = await open_ledger(folder, tuning=Tuning(gate_wait_seconds=0.1))
    me, lock = this_process(folder / "owners")
    claim = await ledger.claim(say.other, me, opening=say.opening())
    assert child.order("gate") == "True"
    child.stop()
    with pytest.raises(LedgerLocked, match="stopped surefoot process"):
        await ledger.append(say.other, [say.todo()], epoch=claim.epoch)
    child.send(signal.SIGCONT)
    assert child.order("leave") == "left"
    assert isinstance(await ledger.append(say.other, [say.todo()], epoch=claim.epoch), Appended)
    child.order("gate")
    child.kill()
    assert isinstance(await ledger.append(say.other, [say.todo()], epoch=claim.epoch), Appended)
    await ledger.close()
    lock.close()


async def test_tr_192_ctrl_z_stops_a_process_between_commits_only(
    child: Child, folder: Path, say: Any
) -> None:
    ledger = await open_ledger(folder, tuning=Tuning(gate_wait_seconds=2))
    me, lock = this_process(folder / "owners")
    claim = await ledger.claim(say.other, me, opening=say.opening())
    assert child.order("gate") == "True"
    child.send(signal.SIGTSTP)
    # It still obeys: the stop waits for the gate to be given back.
    assert child.process.stdin is not None
    child.process.stdin.write("leave\n")
    child.process.stdin.flush()
    child.wait_for(os.WSTOPPED)
    assert isinstance(await ledger.append(say.other, [say.todo()], epoch=claim.epoch), Appended)
    child.send(signal.SIGCONT)
    assert child.read() == "left"
    assert child.order("append") == "Appended"
    assert child.order("loop") == "looping"
    for _ in range(10):
        child.send(signal.SIGTSTP)
        child.wait_for(os.WSTOPPED)
        assert isinstance(await ledger.append(say.other, [say.todo()], epoch=claim.epoch), Appended)
        child.send(signal.SIGCONT)
        child.wait_for(os.WCONTINUED)
    child.kill()
    await ledger.close()
    lock.close()


async def test_tr_20_every_entry_acknowledged_before_a_kill_is_there_after_it(
    child: Child, folder: Path, say: Any
) -> None:
    acknowledged = 0
    for _ in range(5):
        assert child.order("append") == "Appended"
        acknowledged += 1
    assert child.order("loop") == "looping"
    child.kill()
    ledger = await open_ledger(folder)
    me, lock = this_process(folder / "owners")
    claim = await ledger.claim(say.session, me)
    assert isinstance(claim, Claim)
    assert not claim.tail.lost
    assert claim.position >= 3 + acknowledged
    assert (await ledger.verify()).findings == ()
    await ledger.close()
    lock.close()
