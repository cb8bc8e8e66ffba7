"""A result that a program never got: told once from the receipt, and marked when the next thing is asked for."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import surefoot
from surefoot.ledger.opening import open_ledger, open_reader
from surefoot.ledger.owners import this_process
from surefoot.ledger.retention import Wish, prune
from surefoot.ledger.shedding import SqliteShedder

PROGRAM = """
import os, sys, signal, surefoot
from surefoot.runtime.guarded import Guarded
if os.environ.get("DIE"):
    async def told(self, receipt, raised=None):
        os.kill(os.getpid(), signal.SIGKILL)  # the receipt is closed, and nobody has read the result
    Guarded._told = told
def charge(amount: int):
    with open("effects", "a") as effects:
        effects.write("x\\n")
    if os.environ.get("FAIL"):
        raise ValueError("the bank said no")
    return {"charged": amount, "number": len(open("effects").read().splitlines())}
with surefoot.open(ledger=sys.argv[1]) as ledger:
    with ledger.session(sys.argv[2] if len(sys.argv) > 2 else None) as session:
        print(session.id, flush=True)
        effect = os.environ.get("EFFECT", "NON_IDEMPOTENT")
        pay = session.guard(charge, effect=effect, reach=["host:bank.example"] if effect != "READ_ONLY" else [])
        for _ in range(int(os.environ.get("TIMES", "1"))):
            try:
                print(pay(amount=5), flush=True)
            except surefoot.ToolError as error:
                print("failed", error.facts["attempt_id"], flush=True)
"""


def run(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder / "home"), *arguments],
        cwd=folder, env={**os.environ, **environ}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def killed(folder: Path, **environ: str) -> str:
    died = run(folder, DIE="1", **environ)
    assert died.returncode == -signal.SIGKILL, died.stderr
    return died.stdout.strip()


def effects(folder: Path) -> int:
    return len((folder / "effects").read_text().splitlines())


def test_tr_202_a_write_whose_result_died_with_its_host_is_answered_from_its_receipt_once(
    tmp_path: Path,
) -> None:
    session = killed(tmp_path)
    assert effects(tmp_path) == 1
    again = run(tmp_path, session, TIMES="2")
    assert again.returncode == 0, again.stderr
    first, second = again.stdout.splitlines()[1:]
    assert first == "{'charged': 5, 'number': 1}", "the stored result, and nothing ran"
    assert second == "{'charged': 5, 'number': 2}", "from then on it is a new call"
    assert effects(tmp_path) == 2


def test_tr_202_killed_again_before_the_answer_it_is_answered_again(tmp_path: Path) -> None:
    session = killed(tmp_path)
    assert run(tmp_path, session, DIE="1").returncode == -signal.SIGKILL
    assert run(tmp_path, session).stdout.splitlines()[1] == "{'charged': 5, 'number': 1}"
    assert effects(tmp_path) == 1


def test_tr_202_a_failure_that_may_have_left_something_is_told_again_too(tmp_path: Path) -> None:
    session = killed(tmp_path, FAIL="1")
    again = run(tmp_path, session, FAIL="1")
    assert again.stdout.splitlines()[1].startswith("failed"), again.stderr
    assert effects(tmp_path) == 1


def test_tr_202_a_read_and_a_wanted_repetition_run_as_they_are_asked(tmp_path: Path) -> None:
    reader = killed(tmp_path, EFFECT="READ_ONLY")
    assert run(tmp_path, reader, EFFECT="READ_ONLY").stdout.splitlines()[1] == "{'charged': 5, 'number': 2}"
    whole = run(tmp_path)
    session = whole.stdout.splitlines()[0]
    assert run(tmp_path, session).stdout.splitlines()[1] == "{'charged': 5, 'number': 4}"


async def _entries(folder: Path, session: str) -> list[tuple[str, str]]:
    (place,) = (folder / "home").rglob("ledger.db")
    ledger = open_reader(place.parent)
    try:
        found = await ledger.read(session)
        return [(str(one.kind), str(one.payload.get("attemptId", ""))) for one in found]
    finally:
        await ledger.close()


def test_tr_201_the_mark_is_written_with_the_next_commit_and_never_with_the_result(tmp_path: Path) -> None:
    session = run(tmp_path, TIMES="2").stdout.splitlines()[0]
    kinds = [one for one in asyncio.run(_entries(tmp_path, session)) if one[0].startswith("attempt.")]
    first, second = dict.fromkeys(attempt for _, attempt in kinds)
    assert kinds == [
        ("attempt.dispatched", first),
        ("attempt.started", first),
        ("attempt.closed", first),
        ("attempt.delivered", first),
        ("attempt.dispatched", second),
        ("attempt.started", second),
        ("attempt.closed", second),
        ("attempt.delivered", second),
    ]


async def test_tr_202_a_caller_that_gave_up_is_answered_from_what_its_call_came_to(tmp_path: Path) -> None:
    begun, go_on, bodies = threading.Event(), threading.Event(), []

    def charge(amount: int) -> str:
        bodies.append(amount)
        begun.set()
        go_on.wait(120)
        return f"charged {len(bodies)}"

    async with surefoot.open(ledger=tmp_path / "home") as ledger, ledger.session() as session:
        pay = session.guard(charge, effect="NON_IDEMPOTENT", reach=["host:bank.example"])
        waiting = asyncio.ensure_future(pay(amount=5))
        await asyncio.to_thread(begun.wait, 30)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        go_on.set()
        for _ in range(1000):
            counts = session.recovery.snapshot()["statistics"]
            if counts["late"] and not counts["unknown"]:
                break
            await asyncio.sleep(0.01)
        assert await pay(amount=5) == "charged 1", "its own executor settled it; nobody had heard of it"
        assert await pay(amount=5) == "charged 2"
    assert bodies == [5, 5]


async def test_tr_97_a_session_whose_payloads_were_dropped_is_not_gone_on_with(tmp_path: Path) -> None:
    session = run(tmp_path).stdout.splitlines()[0]
    (place,) = (tmp_path / "home").rglob("ledger.db")
    ledger, shedder = await open_ledger(place.parent), SqliteShedder(place.parent)
    owner, lock = this_process(place.parent / "owners")
    now_ms = int(time.time() * 1000) + 1
    answer = await prune(ledger, shedder, owner, Wish(now_ms, now_ms, "tester"))
    await shedder.close()
    await ledger.close()
    lock.close()
    assert answer.dropped == (session,)
    again = run(tmp_path, session)
    assert again.returncode == 1 and "were dropped" in again.stderr
    assert effects(tmp_path) == 1
