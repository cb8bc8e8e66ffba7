"""The ends of background commands, told by whichever surface of the project is open (UX-157).

Owns: looking for ends while a surface is open, and what names the command that ended.
Does not own: which end was told before (`tools.processes.background`), words (`notices`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from surefoot.core.model import Notice
from surefoot.errors import SurefootError
from surefoot.ledger.places import PROCESSES
from surefoot.ledger.port import Ledger
from surefoot.surfaces.view import summary_of
from surefoot.tools.processes.background import End, Ends

LOOK_SECONDS = 1.0
KIND = "background_end"


class Limits(Protocol):
    """What is read of the limits."""

    @property
    def background_probe_seconds(self) -> float: ...


async def tell(ends: Ends, ledger: Ledger, notify: Callable[[Notice], None]) -> None:
    """Tell what ended since the last look, each end once among all agents of the project."""
    for end in await asyncio.to_thread(ends.take):
        notify(Notice(KIND, await _facts(end, ledger)))


@asynccontextmanager
async def watched(
    folder: Path, ledger: Ledger, limits: Limits, notify: Callable[[Notice], None]
) -> AsyncIterator[None]:
    """Tell ends while the block runs: at once what nobody was told of, then about each second, and at its end."""
    ends = Ends(folder / PROCESSES, probe_seconds=limits.background_probe_seconds)
    over = asyncio.Event()

    async def look_on() -> None:
        # It is asked to end and never cancelled: an end that was taken is told.
        while not over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), LOOK_SECONDS)
            await tell(ends, ledger, notify)

    await tell(ends, ledger, notify)
    looking = asyncio.ensure_future(look_on())
    try:
        yield
    finally:
        over.set()
        await looking


async def _facts(end: End, ledger: Ledger) -> Mapping[str, Any]:
    receipt = await _receipt(end.attempt_id, ledger)
    return {
        "attemptId": end.attempt_id,
        "command": "?" if receipt is None else summary_of(receipt),
        "exitCode": end.exit_code,
        "signal": end.signal,
        "log": end.log,
    }


async def _receipt(attempt_id: str, ledger: Ledger) -> Mapping[str, Any] | None:
    """The receipt of any session of the ledger; an end is rare, so a search is cheap enough."""
    with suppress(SurefootError):
        for row in await ledger.sessions():
            if row.calls and row.status == "ok":
                found = (await ledger.receipts(row.session_id)).get(attempt_id)
                if found is not None:
                    return found.to_json()
    return None
