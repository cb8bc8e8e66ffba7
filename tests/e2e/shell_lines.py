"""One line after another through the shell tool, with nothing of it replaced."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from surefoot.core.model import Receipt
from surefoot.runtime.tools import LiveAttempt, Outcome, Place
from surefoot.tools.processes.client import ProcessServer
from surefoot.tools.shell import shell_tool


class Limits:
    stop_term_seconds = 1.0
    stop_kill_seconds = 5.0
    stop_kill_check_seconds = 1.0
    background_probe_seconds = 0.3
    log_wait_ms = 200
    process_log_bytes = 1 << 20


Run = Callable[[str], Any]


@asynccontextmanager
async def lines(tmp_path: Path) -> AsyncIterator[Run]:
    """Runs one line through the shell tool, with nothing of it replaced."""
    server = ProcessServer(tmp_path / "processes", Limits())
    work = tmp_path / "work"
    work.mkdir()
    place, tool, count = Place(work, (work,)), shell_tool(), iter(range(99))

    async def note(keys: Any) -> None:
        del keys

    async def through(command: str) -> Outcome:
        arguments = {"command": command}
        effect = tool.effect(arguments, place) if callable(tool.effect) else tool.effect
        attempt = f"att_e{next(count)}"
        receipt = Receipt("ses_1", "trn_1", "cal_1", attempt, 0, effect_class=effect.effect_class, epoch=1)
        services: dict[str, Any] = {"processes": server}
        assert tool.prepare is not None and tool.body is not None
        prepared = await tool.prepare(arguments, place, receipt, services)
        live = LiveAttempt(
            session_id="ses_1", turn_id="trn_1", call_id="cal_1", attempt_id=attempt, idempotency_key="sf1-k",
            deadline_boot_ms=None, place=place, prepared=prepared.value, note=note,
            late=lambda outcome, source: None, progress=lambda text: None, services=services,
        )  # fmt: skip
        outcome = await asyncio.wait_for(tool.body(live, arguments), 90)
        assert isinstance(outcome, Outcome)
        return outcome

    yield through
    await server.close()


def code_of(outcome: Outcome) -> int:
    return int(outcome.text.rpartition("[exit code ")[2].rstrip("]"))
