"""A real session of any length to measure calls in: real ledger, real barrier, a tool that does nothing.

Owns: building the session quickly (calls appended many to a commit) and one real call at a time.
Does not own: what is timed (`calls`, `reopening`).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.core.effects import Effect
from surefoot.core.model import Draft, EffectClass, Entry, Kind, Receipt, TurnStatus
from surefoot.ledger.opening import open_ledger
from surefoot.ledger.owners import this_process
from surefoot.ledger.places import LEDGER, OWNERS, WAL
from surefoot.ledger.port import Held
from surefoot.ledger.sqlite import FORCED_PAGES, UNLISTED_ENTRIES, SqliteLedger
from surefoot.runtime.barrier import Barrier
from surefoot.runtime.live import Batch, Call, Looked, Permit
from surefoot.runtime.scheduler import Scheduler
from surefoot.runtime.session import Session, Wanted
from surefoot.runtime.tools import LiveAttempt, Place, Registry, Tool

ARGUMENTS = json.dumps({"path": "notes/today.md", "text": "a line of text that a model would write\n" * 6})
RESULT = "Wrote 246 bytes to notes/today.md, which did not exist before. The folder notes was there."
CALLS_A_TURN, TURNS_A_COMMIT = 10, 25
FILLER_BYTES = 1 << 20
FILLERS = FORCED_PAGES * 4096 // FILLER_BYTES + 2


async def _body(attempt: LiveAttempt, arguments: Any) -> str:
    return RESULT


def trivial(name: str, effect: EffectClass, reach: tuple[str, ...]) -> Tool:
    """A tool whose body returns at once, so that what is measured is ours."""
    parameters = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
        "required": ["path", "text"],
    }
    return Tool(name, "Does nothing.", parameters, body=_body, effect=Effect(effect, reach))


@dataclass(slots=True)
class LongSession:
    """One owned session, and how many calls it has had."""

    ledger: SqliteLedger
    session: Session
    barrier: Barrier
    folder: Path
    calls: int = 0
    _turn: str = ""
    _payloads: tuple[dict[str, Any], dict[str, Any]] | None = field(default=None)

    async def message(self, count: int = 1, tool: str = "write_note") -> list[Looked]:
        """Append one assistant message with `count` calls, and look at them."""
        draft, calls = self._message(count, tool)
        await self.session.append(draft)
        self.calls += count
        return [await self.barrier.look(call) for call in calls]

    def _message(self, count: int, tool: str) -> tuple[Draft, list[Call]]:
        new_id = self.session.scheduler.new_id
        calls = [Call(self._turn, new_id("cal"), new_id("att"), tool, ARGUMENTS) for _ in range(count)]
        asked = [
            {
                "callId": call.call_id,
                "attemptId": call.attempt_id,
                "position": position,
                "askedName": tool,
                "arguments": ARGUMENTS,
                "providerCallId": f"call_{call.call_id[-9:]}",
            }
            for position, call in enumerate(calls)
        ]
        payload = {"turnId": self._turn, "text": "", "calls": asked, "wire": "chat", "raw": {}}
        return Draft(Kind.ASSISTANT, payload), calls

    async def call(self, looked: Looked) -> Receipt:
        """One real call through the barrier."""
        return await self.barrier.run(looked, Batch())

    async def pair(self, attempt_id: str) -> None:
        """The two appends of a call and nothing else: the same payloads, judge included."""
        started, closed = self.payloads(attempt_id)
        session = self.session
        await session.ledger.append(
            session.session_id, [Draft(Kind.STARTED, started)], epoch=session.epoch, judge=lambda: None
        )
        await session.ledger.append(session.session_id, [Draft(Kind.CLOSED, closed)], epoch=session.epoch)

    def payloads(self, attempt_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start and end of a call as a real one of this session wrote them, for another attempt."""
        if self._payloads is None:
            raise RuntimeError("run learn() first")
        started, closed = self._payloads
        return {**started, "attemptId": attempt_id}, {**closed, "attemptId": attempt_id}

    async def learn(self) -> None:
        """Run one real call, and keep what it wrote as the pattern for building and for `pair`."""
        seen: list[Entry] = []
        self.session.watch(seen.append)
        await self.session.append(*self._new_turn())
        (looked,) = await self.message()
        await self.call(looked)
        by_kind = {entry.kind: dict(entry.payload) for entry in seen}
        self._payloads = by_kind[Kind.STARTED.value], by_kind[Kind.CLOSED.value]

    async def grow(self, calls: int) -> None:
        """Append turns of settled calls, many to a commit, until the session has had `calls`."""
        while self.calls < calls:
            drafts: list[Draft] = []
            for _ in range(TURNS_A_COMMIT):
                drafts += [self._turn_is(TurnStatus.COMPLETED), *self._new_turn()]
                for _ in range(min(CALLS_A_TURN, calls - self.calls)):
                    message, (call,) = self._message(1, "write_note")
                    started, closed = self.payloads(call.attempt_id)
                    drafts += [message, Draft(Kind.STARTED, started), Draft(Kind.CLOSED, closed)]
                    self.calls += 1
            await self.session.append(*drafts)

    def _new_turn(self) -> list[Draft]:
        self._turn = self.session.scheduler.new_id("trn")
        words = {"turnId": self._turn, "text": "Keep the notes of today."}
        begins = {"turnId": self._turn, "status": TurnStatus.QUEUED.value, "reason": None, "barrier": "reach"}
        return [Draft(Kind.USER, words), Draft(Kind.TURN, begins), self._turn_is(TurnStatus.RUNNING)]

    def _turn_is(self, status: TurnStatus) -> Draft:
        return Draft(Kind.TURN, {"turnId": self._turn, "status": status.value, "reason": None})

    async def leave_open(self, count: int) -> None:
        """Append starts without an end: calls that an owner took with it when it died."""
        for _ in range(count):
            message, (call,) = self._message(1, "write_note")
            started, _ = self.payloads(call.attempt_id)
            await self.session.append(message, Draft(Kind.STARTED, started))
            self.calls += 1

    async def reuse_wal(self) -> None:
        """Let the WAL grow to the size at which it is written from its beginning again, as it soon is in use."""
        text = "x" * FILLER_BYTES
        for _ in range(FILLERS):
            await self.session.append(Draft(Kind.TODO, {"items": [text]}))

    def unlisted(self) -> bool:
        """Whether derived rows are behind by more than an idle moment leaves."""
        return self.ledger._owned[self.session.session_id].unlisted >= UNLISTED_ENTRIES

    def disk_bytes(self) -> int:
        """Ledger and WAL on disk."""
        return sum((self.folder / name).stat().st_size for name in (LEDGER, WAL))


@asynccontextmanager
async def long_session(folder: Path) -> AsyncIterator[LongSession]:
    """Make a ledger with one session that has had one real call."""
    ledger = await open_ledger(folder)
    owner, lock = this_process(folder / OWNERS)
    opening = {"directory": str(folder), "model": "bench", "barrier": "reach"}
    session = await Session.open(ledger, Scheduler(), owner, Wanted(opening=opening))
    if isinstance(session, Held):
        raise RuntimeError("a new session is held by nobody")
    await session.history()
    tools = [
        trivial("write_note", EffectClass.NON_IDEMPOTENT, ("path:/notes/today.md",)),
        trivial("read_note", EffectClass.READ_ONLY, ("path:/notes/today.md",)),
    ]
    barrier = Barrier(session, Registry(tools), Place(folder), owner, permits=_allowed, services={})
    made = LongSession(ledger, session, barrier, folder)
    try:
        await made.learn()
        yield made
    finally:
        await session.close()
        await ledger.close()
        lock.close()


async def _allowed(looked: Looked) -> Permit:
    return Permit(True)
