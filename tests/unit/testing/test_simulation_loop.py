"""The simulation's own promises: same seed same run, virtual time, death without last words."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from surefoot.testing.simulation import (
    Deadlock,
    Endless,
    Served,
    SimClock,
    Simulation,
    outside,
    seeded_scheduler,
    simulate,
)


def _order(seed: int) -> list[str]:
    seen: list[str] = []

    async def walk(name: str) -> None:
        for step in range(4):
            seen.append(f"{name}{step}")
            await asyncio.sleep(0)

    async def main(sim: Simulation) -> list[str]:
        await asyncio.gather(*(walk(name) for name in "abc"))
        return seen

    return simulate(seed, main)


def test_the_same_seed_gives_the_same_order_and_seeds_differ() -> None:
    assert _order(7) == _order(7)
    assert len({tuple(_order(seed)) for seed in range(20)}) > 10


def test_time_is_virtual_and_an_hour_passes_at_once() -> None:
    async def main(sim: Simulation) -> float:
        clock = SimClock()
        before = clock.boot_ms()
        await asyncio.sleep(3600)
        clock.jump(-86_400_000)
        assert clock.now_ms() < 1_700_000_000_000
        return clock.boot_ms() - before

    assert 3_600_000 <= simulate(1, main) < 3_601_000


def test_time_limits_work_and_threads_are_steps() -> None:
    async def main(sim: Simulation) -> str:
        scheduler = seeded_scheduler(1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.sleep(10)
        assert not await scheduler.wait(scheduler.spawn(asyncio.sleep(9), "slow"), seconds=1)
        assert await scheduler.off_loop(lambda: "pool") == "pool"
        with pytest.raises(ValueError, match="boom"):
            await scheduler.thread(lambda: _raise(ValueError("boom")), "t")
        return await scheduler.thread(lambda: "own", "t")

    for seed in range(10):
        assert simulate(seed, main) == "own"


def _raise(error: Exception) -> Any:
    raise error


def test_ids_follow_from_the_seed() -> None:
    async def main(sim: Simulation) -> list[str]:
        return [sim.process("a").scheduler().new_id("ses"), sim.process("b").scheduler().new_id("ses")]

    first = simulate(3, main)
    assert first == simulate(3, main) and first[0] != first[1]


def test_a_killed_process_runs_no_finally_and_no_callback() -> None:
    for seed in range(30):
        said: list[str] = []

        async def victim(said: list[str] = said) -> None:
            try:
                said.append("began")
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                said.append("cancelled")
            finally:
                said.append("finally")

        async def main(sim: Simulation, said: list[str] = said, victim: Any = victim) -> list[str]:
            process = sim.process("v")
            ended = process.run(victim())
            sim.kill_later(process, 1)
            assert await ended is None
            await asyncio.sleep(1000)
            return list(said)

        assert simulate(seed, main) == ["began"]


def test_a_process_may_die_at_a_line_of_its_own() -> None:
    async def main(sim: Simulation) -> list[str]:
        process, said = sim.process("v"), []

        async def work() -> None:
            said.append("before")
            await process.die()
            said.append("after")

        assert await process.run(work()) is None
        assert not sim.is_alive(process.owner)
        return said

    assert simulate(1, main) == ["before"]


def test_what_runs_outside_outlives_its_caller_and_frees_its_lock() -> None:
    class Store:
        def __init__(self) -> None:
            self.lock = asyncio.Lock()
            self.rows: list[int] = []

        async def put(self, row: int) -> int:
            async with self.lock:
                await asyncio.sleep(1)
                self.rows.append(row)
            return row

    async def main(sim: Simulation) -> list[int]:
        inner = Store()
        shared = Served(inner)
        process = sim.process("v")
        ended = process.run(shared.put(1))
        sim.kill_later(process, 0.5)
        assert await ended is None
        assert await shared.put(2) == 2
        return inner.rows

    for seed in range(20):
        assert simulate(seed, main) == [1, 2]


def test_a_deadlock_names_the_seed() -> None:
    async def main(sim: Simulation) -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock) as caught:
        simulate(41, main)
    assert "seed 41" in caught.value.__notes__[0]


def test_a_run_without_end_is_stopped() -> None:
    async def main(sim: Simulation) -> None:
        def again() -> None:
            sim.loop.call_soon(again)

        again()
        await sim.loop.create_future()

    with pytest.raises(Endless):
        simulate(1, main, max_steps=1000)


def test_a_forgotten_task_that_failed_fails_the_run() -> None:
    async def main(sim: Simulation) -> None:
        task = asyncio.create_task(_fail())
        await asyncio.wait([task])

    async def _fail() -> None:
        raise ValueError("nobody looked")

    with pytest.raises(ValueError, match="nobody looked"):
        simulate(1, main)


def test_an_error_outside_reaches_its_caller() -> None:
    async def broken() -> None:
        await asyncio.sleep(1)
        raise LookupError("gone")

    async def main(sim: Simulation) -> None:
        with pytest.raises(LookupError):
            await outside(broken())
        task = asyncio.create_task(outside(broken()))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.wait([task])

    for seed in range(10):
        simulate(seed, main)


def test_a_dead_process_warns_of_nothing_it_left_unfinished() -> None:
    async def never() -> None:
        return None

    async def victim() -> None:
        waiting = never()
        await asyncio.sleep(100)
        await waiting

    async def main(sim: Simulation) -> None:
        process = sim.process("v")
        sim.kill_later(process, 1)
        assert await process.run(victim()) is None

    simulate(1, main)


def test_a_stopped_process_does_nothing_until_it_goes_on() -> None:
    async def main(sim: Simulation) -> tuple[int, int]:
        process, ticks = sim.process("v"), []

        async def ticking() -> None:
            while len(ticks) < 10:
                ticks.append(sim.loop.time())
                await asyncio.sleep(1)

        task = process.spawn(ticking())
        await asyncio.sleep(2.5)
        process.stop()
        await asyncio.sleep(100)
        held = len(ticks)
        process.go_on()
        await asyncio.wait([task])
        return held, len(ticks)

    for seed in range(10):
        assert simulate(seed, main) == (3, 10)
