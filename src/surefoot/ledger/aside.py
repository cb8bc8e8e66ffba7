"""Blocking work of an engine in a thread, finished once begun.

Owns: waiting for a thread without abandoning it. Does not own: which work goes there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from surefoot.errors import LedgerError
from surefoot.ledger.admission import Steps

T = TypeVar("T")


async def off_loop(work: Callable[[], T]) -> T:
    """Run blocking work in a thread and wait for its end, also when cancelled: what was begun is finished."""
    task = asyncio.get_running_loop().create_task(asyncio.to_thread(work))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            # Waiting neither cancels the work nor raises its end, which is told below.
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # the work's failure is overtaken by the cancel
        raise cancelled
    return task.result()


async def carry_out_aside(steps: Steps) -> None:
    """Carry the blocking steps of a flush out in a thread."""
    try:
        step = next(steps)
        while True:
            try:
                value = await off_loop(step)
            except LedgerError as error:
                step = steps.throw(error)
            else:
                step = steps.send(value)
    except StopIteration:
        return
