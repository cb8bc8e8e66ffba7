"""Work that begins in the step that asks for it, and becomes a task only where it has to wait."""

from __future__ import annotations

import asyncio

import pytest

from surefoot.runtime.scheduler import Scheduler


async def test_work_that_never_waits_is_done_at_once() -> None:
    async def work() -> int:
        return 7

    begun = Scheduler().begin(work(), "work")
    assert begun.done()
    assert begun.result() == 7


async def test_work_that_waits_goes_on_as_a_task_and_keeps_what_it_is_sent() -> None:
    scheduler, seen = Scheduler(), []
    gate = scheduler.future()

    async def work() -> str:
        seen.append("begun")
        await asyncio.sleep(0)
        return f"{await gate} {await gate}"

    begun = scheduler.begin(work(), "work")
    assert seen == ["begun"]
    assert not begun.done()
    gate.set_result("open")
    assert await begun == "open open"


async def test_how_begun_work_fails_is_told_to_who_waits_for_it() -> None:
    scheduler = Scheduler()

    async def fails(turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        raise ValueError("no")

    for turns in (0, 2):
        with pytest.raises(ValueError, match="no"):
            await scheduler.begin(fails(turns), "fails")
        with pytest.raises(ValueError, match="no"):
            await scheduler.shielded(fails(turns))


async def test_tr_29_a_cancel_of_the_caller_does_not_reach_shielded_work_at_any_wait() -> None:
    scheduler = Scheduler()
    for cancelled_at in range(4):
        turns: list[int] = []

        async def work(turns: list[int] = turns) -> str:
            for turn in range(4):
                await asyncio.sleep(0)
                turns.append(turn)
            return "whole"

        caller = asyncio.create_task(scheduler.shielded(work()))
        for _ in range(cancelled_at + 1):
            await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert turns == [0, 1, 2, 3]


async def test_shielded_work_that_never_waits_makes_no_task() -> None:
    async def work() -> int:
        return len(asyncio.all_tasks())

    before = len(asyncio.all_tasks())
    assert await Scheduler().shielded(work()) == before


async def test_work_that_catches_an_error_at_its_wait_goes_on() -> None:
    scheduler = Scheduler()
    fails = scheduler.future()

    async def work() -> str:
        try:
            await fails
        except ValueError:
            await asyncio.sleep(0)
            return "caught"
        return "not raised"

    begun = scheduler.begin(work(), "work")
    fails.set_exception(ValueError("no"))
    assert await begun == "caught"
