"""A small bench that drives a file tool as the barrier does: prepare, then body."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from surefoot.core.model import Receipt
from surefoot.runtime.tools import LiveAttempt, Outcome, Place, Prepared, Tool
from surefoot.tools.files.disk import Disk
from surefoot.tools.files.toolset import file_tools
from surefoot.tools.worker import Worker


@dataclasses.dataclass
class Ran:
    """What one call came to."""

    prepared: Prepared
    outcome: Outcome
    receipt: Receipt

    @property
    def intents(self) -> tuple[Any, ...]:
        return self.receipt.write_intents


class CountingDisk(Disk):
    """Counts the steps that show in the world."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def link(self, source: str, target: str) -> None:
        self.steps.append("link")
        super().link(source, target)

    def exchange(self, one: str, other: str) -> bool:
        self.steps.append("exchange")
        return super().exchange(one, other)

    def rename(self, source: str, target: str, *, over: bool) -> None:
        self.steps.append("rename")
        super().rename(source, target, over=over)

    def make_folder(self, path: str) -> None:
        self.steps.append("make_folder")
        super().make_folder(path)

    def write(self, handle: int, content: bytes, offset: int = 0) -> None:
        self.steps.append("write")
        super().write(handle, content, offset)


class Bench:
    """Tools in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = CountingDisk()
        self.worker = Worker()
        self.services: dict[str, Any] = {}
        self.place = Place(folder)
        self.number = 0
        self.use(self.disk)

    def use(self, disk: Disk) -> None:
        self.tools = {tool.name: tool for tool in file_tools(worker=self.worker, disk=disk)}

    def tool(self, name: str) -> Tool:
        return self.tools[name]

    def receipt(self, **fields: Any) -> Receipt:
        """As dispatched: the tool is not resolved yet."""
        self.number += 1
        fixed = {"attempt_id": f"att_{self.number:026d}", "call_id": f"cal_{self.number:026d}"}
        return Receipt(session_id="ses_1", turn_id="trn_1", position=0, **{**fixed, **fields})

    async def prepare(self, name: str, **arguments: Any) -> tuple[Prepared, Receipt]:
        tool = self.tool(name)
        jsonschema.validate(arguments, tool.parameters)
        receipt = self.receipt()
        if tool.prepare is None:
            return Prepared(), receipt
        prepared = await tool.prepare(arguments, self.place, receipt, self.services)
        intents = tuple(prepared.fields.get("writeIntents", ()))
        return prepared, dataclasses.replace(
            receipt, tool=name, write_intents=intents, started_at=time.time_ns() // 1_000_000
        )

    async def enter(self, name: str, prepared: Prepared, receipt: Receipt, **arguments: Any) -> Outcome:
        tool = self.tool(name)
        attempt = self.attempt(receipt, prepared.value)
        if tool.sync_body is not None:
            outcome = tool.sync_body(attempt, arguments)
        else:
            assert tool.body is not None
            outcome = await tool.body(attempt, arguments)
        return Outcome(outcome) if isinstance(outcome, str) else outcome

    def attempt(self, receipt: Receipt, value: Any = None) -> LiveAttempt:
        async def note(_: Any) -> None:
            return None

        return LiveAttempt(
            session_id=receipt.session_id,
            turn_id=receipt.turn_id,
            call_id=receipt.call_id,
            attempt_id=receipt.attempt_id,
            idempotency_key="sf1-x",
            deadline_boot_ms=None,
            place=self.place,
            prepared=value,
            note=note,
            late=lambda outcome, source: None,
            progress=lambda text: None,
            services=self.services,
        )

    async def run(self, name: str, **arguments: Any) -> Ran:
        prepared, receipt = await self.prepare(name, **arguments)
        if prepared.refuse is not None:
            return Ran(prepared, Outcome(prepared.refuse[1]), receipt)
        return Ran(prepared, await self.enter(name, prepared, receipt, **arguments), receipt)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a condition, at most ten seconds."""
        for _ in range(1000):
            if holds():
                return
            await asyncio.sleep(0.01)
        raise AssertionError("the condition did not come to hold")

    def names(self) -> list[str]:
        return sorted(entry.name for entry in self.folder.iterdir())


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    folder = (tmp_path / "project").resolve()
    folder.mkdir()
    made = Bench(folder)
    yield made
    made.worker.close()
