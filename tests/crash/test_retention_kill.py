"""A kill in the middle of dropping: what is left is whole, verifies, and is finished by the next call."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from surefoot.core.model import Draft, Kind, State
from surefoot.ledger.opening import open_ledger
from surefoot.ledger.owners import this_process
from surefoot.ledger.retention import Pruned, Wish, prune
from surefoot.ledger.shedding import SqliteShedder

SESSION, OPEN = "ses_00000000000000000000000001", "ses_00000000000000000000000002"
SECRET = "the words of the person"
WRITE = "att_00000000000000000000000001"

CHILD = """
import asyncio, os, shutil, signal, sys, time
from pathlib import Path
from surefoot.ledger import retention, shedding
from surefoot.ledger.blobs import Blobs
from surefoot.ledger.database import Database
from surefoot.ledger.opening import open_ledger
from surefoot.ledger.owners import this_process

seam, folder, seen = sys.argv[1], Path(sys.argv[2]), {}

def dying(owner, name, when, after):
    whole = getattr(owner, name)
    def standing_in(self, *given, **named):
        key = f"{name} {given[0] if given and isinstance(given[0], str) else ''}".strip()
        seen[key] = seen.get(key, 0) + 1
        ends = seam == f"{key} {seen[key]}"
        if ends and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = whole(self, *given, **named)
        if ends:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer
    setattr(owner, name, standing_in)

dying(Database, "change", 0, after=True)
dying(shedding.SqliteShedder, "_drop_some", 0, after=True)
dying(shedding.SqliteShedder, "_checkpoint", 0, after=False)
dying(Blobs, "remove_aged", 0, after=True)
whole = shutil.rmtree
def half_a_tree(run, **named):
    if seam == "rmtree 1":
        next(run.iterdir()).unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    whole(run, **named)
shutil.rmtree = half_a_tree

async def main():
    ledger = await open_ledger(folder)
    shedder = shedding.SqliteShedder(folder, rows_per_commit=3)
    owner, lock = this_process(folder / "owners")
    now = int(time.time() * 1000) + 1
    await retention.prune(ledger, shedder, owner, retention.Wish(now, now, "tester"))
    await shedder.close(); await ledger.close(); lock.close()

asyncio.run(main())
"""

SEAMS = {
    "forget_receipts": "change forget_receipts 1",
    "inside a commit": "change drop_payload 2",
    "inside the third commit": "change drop_payload 8",
    "between commits": "_drop_some 1",
    "before the last commit": "_drop_some 3",
    "before the log is emptied": "_checkpoint 1",
    "before it is given back": "change release 1",
    "between two blobs": "remove_aged 1",
    "in a run folder": "rmtree 1",
}


async def _lay(folder: Path) -> None:
    """One session that may go, with its blobs and a run folder, and one with an open call."""
    ledger = await open_ledger(folder)
    owner, lock = this_process(folder / "owners")
    for session in (SESSION, OPEN):
        claim = await ledger.claim(session, owner, opening=Draft(Kind.SESSION_OPENED, {"directory": "/"}))
        refs = [await ledger.put_blob(f"{session} {number}".encode()) for number in range(3)]
        call = {"callId": f"cal_{1:026d}", "attemptId": WRITE, "askedName": "shell", "arguments": SECRET}
        process = {"path": str(folder / "processes" / WRITE), "exit": {"code": 0}}
        start = {"attemptId": WRITE, "tool": "shell", "class": "NON_IDEMPOTENT", "arguments": SECRET}
        state = "succeeded" if session == SESSION else "unknown"
        for draft in (
            Draft(Kind.USER, {"turnId": "trn_1", "text": SECRET}),
            Draft(Kind.ASSISTANT, {"turnId": "trn_1", "calls": [call]}),
            Draft(Kind.STARTED, {**start, **({"process": process} if session == SESSION else {})}),
            Draft(Kind.CLOSED, {"attemptId": WRITE, "state": state, "resultRef": refs[0], "said": refs[1:]}),
            *(Draft(Kind.TODO, {"items": [SECRET]}) for _ in range(4)),
        ):
            await ledger.append(session, [draft], epoch=claim.epoch)
        await ledger.release(session, epoch=claim.epoch)
    run = folder / "processes" / WRITE
    run.mkdir()
    for name in ("claim", "exit", "log"):
        (run / name).write_text(SECRET)
    await ledger.close()
    lock.close()


async def _prune(folder: Path) -> Pruned:
    ledger, shedder = await open_ledger(folder), SqliteShedder(folder)
    owner, lock = this_process(folder / "owners")
    now = int(time.time() * 1000) + 1
    try:
        return await prune(ledger, shedder, owner, Wish(now, now, "tester"))
    finally:
        await shedder.close()
        await ledger.close()
        lock.close()


async def _holds(folder: Path) -> None:
    """Nothing is damaged, the finished call is told as before, the open one is whole."""
    ledger = await open_ledger(folder)
    try:
        assert (await ledger.verify()).findings == ()
        write = (await ledger.receipts(SESSION)).get(WRITE)
        assert write is not None and write.state is State.SUCCEEDED and write.tool == "shell"
        (opened,) = (await ledger.receipts(OPEN)).open()
        assert opened.arguments == SECRET and opened.result_ref is not None
        assert await ledger.get_blob(opened.result_ref) == f"{OPEN} 0".encode()
    finally:
        await ledger.close()


def _end_of(seam: str, folder: Path) -> int:
    """How a process ended that drops what it may and dies at that seam."""
    return subprocess.run(
        [sys.executable, "-c", CHILD, seam, str(folder)], check=False, timeout=120
    ).returncode


@pytest.mark.parametrize("seam", SEAMS.values(), ids=SEAMS.keys())
async def test_tr_97_tr_200_a_kill_in_the_middle_of_dropping_leaves_a_ledger_that_verifies(
    tmp_path: Path, seam: str
) -> None:
    folder = tmp_path / "ledger"
    await _lay(folder)
    assert _end_of(seam, folder) == -signal.SIGKILL, "the fault did not fire"
    await _holds(folder)
    finished = await _prune(folder)
    assert [(one.session_id, one.reason) for one in finished.spared] == [(OPEN, "open_calls")]
    await _holds(folder)
    assert sorted(path.name for path in (folder / "processes").iterdir()) == [], "its run folder is gone"
    assert len(list((folder / "blobs").glob("??/*"))) == 3, "the blobs of the open call, and no other"
    assert await _told(folder) == ["dropped", "ok"]


async def _told(folder: Path) -> list[str]:
    ledger = await open_ledger(folder)
    try:
        entries = [str(dict(entry.payload)) for entry in await ledger.read(SESSION)]
        assert SECRET not in "".join(entries)
        return [row.status for row in await ledger.sessions()]
    finally:
        await ledger.close()


async def test_tr_200_what_was_dropped_is_in_none_of_the_ledgers_files(tmp_path: Path) -> None:
    folder = tmp_path / "ledger"
    await _lay(folder)
    ledger = await open_ledger(folder)
    claimed, lock = this_process(folder / "owners")
    claim = await ledger.claim(OPEN, claimed)
    resolution = {"attemptId": WRITE, "resolution": {"kind": "confirmed"}}
    await ledger.append(OPEN, [Draft(Kind.RESOLVED, resolution)], epoch=claim.epoch)  # type: ignore[union-attr]
    await ledger.close()
    lock.close()
    assert len((await _prune(folder)).dropped) == 2
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert [path.name for path in files if SECRET.encode() in path.read_bytes()] == []
