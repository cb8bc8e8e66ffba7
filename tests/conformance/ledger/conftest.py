"""One suite over both engines: every test that asks for `world` runs on each of them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from surefoot.core.model import Draft, Kind, Owner
from surefoot.ledger.memory import MemoryLedger, MemoryStore
from surefoot.ledger.memory_shedding import MemoryShedder
from surefoot.ledger.opening import open_ledger
from surefoot.ledger.shedding import SqliteShedder
from surefoot.ledger.sqlite import Tuning


class TurnedClock:
    """A clock that stands until a test turns it."""

    def __init__(self) -> None:
        self.wall_ms = 1_790_000_000_000
        self.boot = 5_000_000

    def now_ms(self) -> int:
        return self.wall_ms

    def boot_ms(self) -> int:
        return self.boot

    def turn(self, milliseconds: int) -> None:
        self.wall_ms += milliseconds
        self.boot += milliseconds


class World:
    """One ledger that several owners use, and who of them is dead."""

    def __init__(self, engine: str, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.clock = TurnedClock()
        self.deaths: dict[int, str] = {}
        self._store = MemoryStore(self.clock, self._death)
        self._handles: list[Any] = []

    def _death(self, owner: Owner, folder: Path | None = None) -> Any:
        return self.deaths.get(owner.pid, "alive")

    async def open(self) -> Any:
        if self.engine == "memory":
            handle: Any = MemoryLedger(self._store)
        else:
            handle = await open_ledger(self.folder, clock=self.clock, tuning=Tuning(death=self._death))
        self._handles.append(handle)
        return handle

    def shedder(self, **given: Any) -> Any:
        """What drops payloads and blobs of this ledger; closed by whoever asked for it."""
        if self.engine == "memory":
            return MemoryShedder(self._store)
        return SqliteShedder(self.folder, death=self._death, **given)

    def blob_stored_at(self, ref: str, at_ms: int) -> None:
        """Set when a blob was stored last."""
        if self.engine == "memory":
            self._store.stored_ms[ref] = at_ms
            return
        name = ref.removeprefix("sha256:")
        os.utime(self.folder / "blobs" / name[:2] / name, ns=(at_ms * 1_000_000, at_ms * 1_000_000))

    async def lose_tail(self, session_id: str, entries: int) -> None:
        if self.engine == "memory":
            self._store.lose_tail(session_id, entries)
            return
        import apsw

        connection = apsw.Connection(str(self.folder / "ledger.db"))
        try:
            connection.execute(
                "DELETE FROM entries WHERE key IN (SELECT key FROM entries ORDER BY key DESC LIMIT ?)",
                (entries,),
            )
        finally:
            connection.close()

    async def close(self) -> None:
        for handle in self._handles:
            await handle.close()


@pytest.fixture(params=["sqlite", "memory"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    made = World(request.param, tmp_path / "ledger")
    yield made
    await made.close()


SESSION = "ses_00000000000000000000000001"
OTHER = "ses_00000000000000000000000002"


def owner(pid: int) -> Owner:
    return Owner("host", pid, 1, "boot", "pid:[1]", "machine", 1, pid)


def opening(name: str | None = None) -> Draft:
    return Draft(Kind.SESSION_OPENED, {"directory": "/work", "model": "small", "name": name})


def attempt(number: int) -> str:
    return f"att_{number:026d}"


def call(number: int) -> str:
    return f"cal_{number:026d}"


def message(*numbers: int) -> Draft:
    calls = [
        {
            "callId": call(n),
            "attemptId": attempt(n),
            "position": place,
            "askedName": "write",
            "arguments": "{}",
        }
        for place, n in enumerate(numbers)
    ]
    return Draft(
        Kind.ASSISTANT, {"turnId": "trn_1", "stepId": "s", "raw": {}, "wire": "chat", "calls": calls}
    )


def started(number: int, **more: Any) -> Draft:
    facts = {"attemptId": attempt(number), "tool": "write", "class": "NON_IDEMPOTENT", "reach": ["path:/a"]}
    return Draft(Kind.STARTED, {**facts, **more})


def closed(number: int, state: str = "succeeded", text: str = "done") -> Draft:
    result = {"text": text, "isError": False}
    return Draft(Kind.CLOSED, {"attemptId": attempt(number), "state": state, "result": result})


def resolved(number: int, kind: str = "confirmed") -> Draft:
    return Draft(Kind.RESOLVED, {"attemptId": attempt(number), "resolution": {"kind": kind}})


@pytest.fixture
def say() -> SimpleNamespace:
    """Ids, owners and drafts, by name."""
    return SimpleNamespace(
        session=SESSION,
        other=OTHER,
        owner=owner,
        opening=opening,
        attempt=attempt,
        call=call,
        message=message,
        started=started,
        closed=closed,
        resolved=resolved,
    )
