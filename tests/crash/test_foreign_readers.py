"""Programs that are none of ours: one that brings its own loop, and ones that open the ledger's file.

The host of step F19 is a program that guards its own functions; what is true of a result on its
way to it holds for every reader that is not our own history (TR-201, TR-202).
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from surefoot.testing.crash import Ended
from surefoot.testing.kills import TELLS, Site
from surefoot.testing.model import call

HOST = """
import os, signal, sys, apsw, surefoot
from surefoot.ledger.sqlite import SqliteLedger
from surefoot.testing.faulty_disk import FaultyDisk
fault = os.environ.get("FAULT", "")
disk = FaultyDisk()
if fault in ("full", "sync"):
    apsw.set_default_vfs(disk.name)
append = SqliteLedger.append
async def struck(self, session_id, drafts, **how):
    answer = await append(self, session_id, drafts, **how)
    if fault == "kill" and any(draft.kind == "attempt.closed" for draft in drafts):
        os.kill(os.getpid(), signal.SIGKILL)
    return answer
SqliteLedger.append = struck
def charge(amount: int) -> dict:
    with open("effects", "a") as effects:
        effects.write("charged\\n")
    return {"charged": amount}
with surefoot.open(ledger=sys.argv[1]) as ledger:
    with ledger.session(sys.argv[2] if len(sys.argv) > 2 else None) as session:
        print(session.id, flush=True)
        pay = session.guard(charge, effect="NON_IDEMPOTENT", reach=["host:bank.example"])
        for _ in range(int(os.environ.get("TIMES", "1"))):
            print(pay(amount=5, identity=os.environ.get("IDENTITY")), flush=True)
        if fault == "full":
            disk.full = lambda: True
        elif fault == "sync":
            disk.fail("sync", lasting=True)
        if fault:
            try:
                pay(amount=6)  # the next request is what acknowledges the first result
            except surefoot.SurefootError as error:
                print(error.code, sum(disk.operations.values()), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
"""


GIVES_UP = """
import asyncio, os, signal, sys, threading, surefoot
begun, go_on = threading.Event(), threading.Event()
def charge(amount: int) -> dict:
    with open("effects", "a") as effects:
        effects.write("charged\\n")
    begun.set()
    go_on.wait(90)
    return {"charged": amount}
async def until(holds):
    async with asyncio.timeout(90):
        while not holds():
            await asyncio.sleep(0.005)
async def main():
    fault = os.environ.get("FAULT", "")
    limit = {"time_limit_seconds": 0.5} if fault == "limit" else {}
    async with surefoot.open(ledger=sys.argv[1]) as ledger:
        async with ledger.session(sys.argv[2] if len(sys.argv) > 2 else None) as session:
            print(session.id, flush=True)
            pay = session.guard(charge, effect="NON_IDEMPOTENT", reach=["host:bank.example"], **limit)
            if fault:
                waiting = asyncio.create_task(pay(amount=5))
                await asyncio.to_thread(begun.wait, 30)
                if fault == "cancel":
                    waiting.cancel()
                try:
                    print(await waiting)
                except asyncio.CancelledError:
                    print("given up", flush=True)
                except surefoot.OutcomeUnknown as error:
                    print(error.facts["cause"], flush=True)
                await until(session.open_calls)
                try:
                    print(await pay(amount=5))
                except surefoot.WriteFenced:
                    print("fenced", flush=True)
                go_on.set()
                await until(lambda: not session.open_calls())
                if os.environ.get("DIE"):
                    os.kill(os.getpid(), signal.SIGKILL)
            go_on.set()
            for _ in range(2):
                print(await pay(amount=5), flush=True)
asyncio.run(main())
"""


def told(ended: Ended) -> list[tuple[str, str | None]]:
    return [(one["state"], one["reason"]) for one in ended.report["receipts"]]


def host(
    folder: Path, *arguments: str, program: str = HOST, **environ: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, str(folder / "home"), *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def effects(folder: Path) -> int:
    return len((folder / "effects").read_text().splitlines())


@pytest.mark.promise("receipt:exact")
def test_tr_186_f19_killed_before_it_took_a_result_a_host_with_an_identity_is_given_it_again(
    tmp_path: Path,
) -> None:
    first = host(tmp_path, FAULT="kill", IDENTITY="order-17")
    assert first.returncode == -signal.SIGKILL, first.stderr
    session = first.stdout.split()[0]
    for _ in range(2):
        again = host(tmp_path, session, IDENTITY="order-17")
        assert again.stdout.splitlines()[1] == "{'charged': 5}", again.stderr
    assert effects(tmp_path) == 1


def test_tr_186_f19_killed_before_it_took_a_result_the_same_action_is_answered_once(tmp_path: Path) -> None:
    first = host(tmp_path, FAULT="kill")
    assert first.returncode == -signal.SIGKILL and effects(tmp_path) == 1, first.stderr
    again = host(tmp_path, first.stdout.split()[0], TIMES="2")
    assert again.stdout.splitlines()[1:] == ["{'charged': 5}"] * 2, again.stderr
    assert effects(tmp_path) == 2, "answered once; from then on it is a new call"


@pytest.mark.parametrize(
    ("fault", "made"),
    [
        ("full", 1),  # no mark: not delivered, so the receipt answers
        ("sync", 2),  # its frame stayed in the log: the host had taken the result, and asks anew
    ],
)
def test_tr_186_f19_a_mark_that_cannot_be_written_counts_by_what_is_found(
    tmp_path: Path, fault: str, made: int
) -> None:
    first = host(tmp_path, FAULT=fault)
    assert first.returncode == -signal.SIGKILL and effects(tmp_path) == 1, first.stderr
    _, result, refused = first.stdout.splitlines()
    assert result == "{'charged': 5}" and refused, "the second call met the fault and did not run"
    again = host(tmp_path, first.stdout.split()[0])
    assert again.stdout.splitlines()[1:] == ["{'charged': 5}"], again.stderr
    assert effects(tmp_path) == made


GAVE_UP = {"cancel": "given up", "limit": "time_limit"}


@pytest.mark.parametrize("fault", ["cancel", "limit"])
def test_tr_186_f19_a_caller_that_gave_up_is_answered_from_the_late_result_once(
    tmp_path: Path, fault: str
) -> None:
    ended = host(tmp_path, program=GIVES_UP, FAULT=fault)
    assert ended.returncode == 0, ended.stderr
    told_first, fenced, *results = ended.stdout.splitlines()[1:]
    assert (told_first, fenced) == (GAVE_UP[fault], "fenced")
    assert results == ["{'charged': 5}"] * 2 and effects(tmp_path) == 2, "answered once, then a new call"


@pytest.mark.parametrize("fault", ["cancel", "limit"])
def test_tr_186_f19_a_late_result_that_nobody_read_is_given_to_the_next_process(
    tmp_path: Path, fault: str
) -> None:
    died = host(tmp_path, program=GIVES_UP, FAULT=fault, DIE="1")
    assert died.returncode == -signal.SIGKILL and effects(tmp_path) == 1, died.stderr
    session, *said = died.stdout.splitlines()
    assert said == [GAVE_UP[fault], "fenced"]
    again = host(tmp_path, session, program=GIVES_UP)
    assert again.stdout.splitlines()[1:] == ["{'charged': 5}"] * 2, again.stderr
    assert effects(tmp_path) == 2


@contextmanager
def foreign(site: Site) -> Iterator[sqlite3.Connection]:
    """The ledger's file, opened by a program that knows nothing of surefoot."""
    (path,) = site.root.rglob("ledger.db")
    # Not waited for in a thread of its own, so that the test says when it lets go.
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=120)) as opened:
        yield opened


def entries(reader: sqlite3.Connection) -> int:
    return int(reader.execute("SELECT count(*) FROM entries").fetchone()[0])


def begun(site: Site, *labels: str) -> None:
    """A session with one turn, whose script goes on with a payment for each further label."""
    steps = [{"calls": [call("pay", label=f"{site.label}{label}")]} for label in labels]
    site.script(TELLS, *(step for paid in steps for step in (paid, TELLS)))
    site.run(prompts=("hello",))


def test_tr_191_a_foreign_reader_that_keeps_an_old_snapshot_holds_nobody_back(site: Site) -> None:
    begun(site, "", "-later")
    with foreign(site) as reader:
        reader.execute("BEGIN")
        before = entries(reader)
        ended = site.again(prompts=("go", "again"))
        assert told(ended) == [("succeeded", None)] * 2 and entries(reader) == before
        reader.execute("COMMIT")
        assert entries(reader) > before
    opened = site.again()
    assert told(opened) == told(ended) and opened.report["verified"] == []


def test_tr_191_a_foreign_writer_that_holds_the_lock_costs_no_call_and_no_truth(site: Site) -> None:
    """While it holds the file nothing can be made durable, so nothing runs; afterwards everything does."""
    begun(site, "", "-later")
    with foreign(site) as writer:
        writer.execute("BEGIN IMMEDIATE")
        held = site.again(prompts=("go",), flags={"limits.gate_wait_seconds": 0.3})
        assert site.equipment.sink.count(site.label) == 0
        assert "error" in held.report or held.report["turns"][0]["status"] != "completed"
        writer.execute("ROLLBACK")
    ended = site.again(prompts=("go",))
    assert site.equipment.sink.count(site.label) <= 1 and ended.report["verified"] == []
    done = [one for one in ended.report["receipts"] if one["state"] == "succeeded"]
    assert len(done) == site.equipment.sink.count(site.label) + site.equipment.sink.count(
        f"{site.label}-later"
    )


def test_tr_191_a_foreign_writer_that_lets_go_in_time_is_waited_for(site: Site) -> None:
    begun(site, "")
    with foreign(site) as writer:
        writer.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.5, writer.execute, ("ROLLBACK",))
        timer.start()
        ended = site.again(prompts=("go",), flags={"limits.gate_wait_seconds": 20})
        timer.join()
    assert told(ended) == [("succeeded", None)] and site.equipment.sink.count(site.label) == 1


def test_tr_193_a_foreign_program_that_moves_the_log_into_the_file_costs_no_entry(site: Site) -> None:
    begun(site, "", "-later")
    with foreign(site) as writer:
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ended = site.again(prompts=("go",))
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    opened = site.again()
    assert told(opened) == told(ended) == [("succeeded", None)] and opened.report["verified"] == []
