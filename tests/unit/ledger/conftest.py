"""What the ledger's own tests share: drafts, and a ledger on a disk that can fail."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from surefoot.core.model import Draft, Kind, Owner
from surefoot.ledger.opening import open_ledger
from surefoot.ledger.sqlite import SqliteLedger, Tuning
from surefoot.testing.faulty_disk import FaultyDisk

SESSION = "ses_00000000000000000000000001"
OTHER = "ses_00000000000000000000000002"


def owner(pid: int = 1) -> Owner:
    return Owner("host", pid, 1, "boot", "pid:[1]", "machine", 1, pid)


def opening() -> Draft:
    return Draft(Kind.SESSION_OPENED, {"directory": "/work", "model": "small"})


def attempt(number: int) -> str:
    return f"att_{number:026d}"


def message(*numbers: int) -> Draft:
    calls = [{"callId": f"cal_{n:026d}", "attemptId": attempt(n), "askedName": "write"} for n in numbers]
    return Draft(Kind.ASSISTANT, {"turnId": "trn_1", "calls": calls})


def started(number: int) -> Draft:
    return Draft(Kind.STARTED, {"attemptId": attempt(number), "tool": "write", "class": "NON_IDEMPOTENT"})


def closed(number: int, state: str = "succeeded", text: str = "done") -> Draft:
    result = {"text": text, "isError": False}
    return Draft(Kind.CLOSED, {"attemptId": attempt(number), "state": state, "result": result})


def todo(text: str = "x") -> Draft:
    return Draft(Kind.TODO, {"items": [text]})


@pytest.fixture
def say() -> SimpleNamespace:
    """Ids, owners and drafts, by name."""
    return SimpleNamespace(
        session=SESSION,
        other=OTHER,
        owner=owner,
        opening=opening,
        attempt=attempt,
        message=message,
        started=started,
        closed=closed,
        todo=todo,
    )


@pytest.fixture
def disk() -> FaultyDisk:
    return FaultyDisk()


@pytest.fixture
async def ledger(tmp_path: Path, disk: FaultyDisk) -> AsyncIterator[SqliteLedger]:
    """A ledger on the faulty disk, whose owners are all dead when asked about."""
    made = await open_ledger(tmp_path / "ledger", tuning=tuned(disk))
    yield made
    disk.mend()
    await made.close()


def tuned(disk: FaultyDisk, **more: Any) -> Tuning:
    return Tuning(vfs=disk.name, death=lambda owner, folder: "dead", **more)


@pytest.fixture
async def claim(ledger: SqliteLedger) -> Any:
    return await ledger.claim(SESSION, owner(), opening=opening())
