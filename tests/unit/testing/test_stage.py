"""The stage puts the real runtime on virtual time: turns run, owners die, nothing happens twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from surefoot.core.model import EffectClass, State
from surefoot.errors import SessionHeld
from surefoot.runtime.controller import TurnEnd
from surefoot.testing.faults import DyingLedger
from surefoot.testing.model import ScriptedModel, call
from surefoot.testing.played import PlayedModel
from surefoot.testing.simulation import Simulation, simulate
from surefoot.testing.stage import Actor, ActorSettings, memory_store
from surefoot.testing.world import Behaviour, CountingWorld

SESSION = "ses_01hf7z0000000000000000000a"
STEPS = ScriptedModel().calls(call("pay", label="a")).repeats().says("Done.").steps


def pay_world() -> tuple[CountingWorld, list[Any]]:
    world = CountingWorld()
    behaviour = Behaviour(seconds_before=0.01, seconds_after=0.01)
    return world, [world.tool("pay", EffectClass.NON_IDEMPOTENT, reach=("host:bank",), behaviour=behaviour)]


def test_a_turn_runs_on_virtual_time_and_the_same_seed_tells_the_same_story() -> None:
    async def main(sim: Simulation) -> list[str]:
        world, tools = pay_world()
        actor = Actor(
            sim,
            memory_store(sim),
            tools=tools,
            model=PlayedModel(ScriptedModel().calls(call("pay", label="a")).steps),
        )
        await actor.run(actor.open(SESSION, new=True))
        end = await actor.run(actor.turn("go"))
        assert isinstance(end, TurnEnd) and end.status.value == "completed"
        assert world.count() == 1
        assert actor.controller is not None
        return [receipt.attempt_id for receipt in actor.controller.session.book]

    for seed in range(5):
        assert simulate(seed, main) == simulate(seed, main)


def test_a_second_owner_is_refused_while_the_first_lives() -> None:
    async def main(sim: Simulation) -> None:
        _, tools = pay_world()
        store = memory_store(sim)
        first = Actor(sim, store, tools=tools, model=PlayedModel(STEPS))
        second = Actor(sim, store, tools=tools, model=PlayedModel(STEPS))
        await first.run(first.open(SESSION, new=True))
        with pytest.raises(SessionHeld):
            await second.run(second.open(SESSION))
        first.process.kill()
        assert await second.run(second.open(SESSION)) is not None

    simulate(1, main)


@pytest.mark.parametrize("seed", range(40))
def test_tr_49_an_owner_that_dies_anywhere_leaves_no_effect_twice_and_no_call_lost(seed: int) -> None:
    async def main(sim: Simulation) -> None:
        world, tools = pay_world()
        store, kill_at = memory_store(sim), sim.random.randrange(1, 24)
        first = Actor(
            sim,
            store,
            tools=tools,
            model=PlayedModel(STEPS, seconds=0.01),
            settings=ActorSettings(wrap=lambda ledger, process: DyingLedger(ledger, kill_at, process.die)),
        )

        async def life() -> None:
            await first.open(SESSION, new=True)
            await first.turn("go")

        await first.run(life())
        first.process.kill()
        if SESSION not in store.sessions:
            return
        bodies = list(world.bodies)
        second = Actor(sim, store, tools=tools, model=PlayedModel(STEPS, seconds=0.01))
        controller = await second.run(second.open(SESSION))
        assert controller is not None and world.bodies == bodies, "opening ran a tool"
        for receipt in controller.session.book:
            entered = receipt.attempt_id in {attempt for _, attempt in bodies}
            if receipt.state is State.NOT_STARTED:
                assert not entered
            if receipt.state is State.SUCCEEDED:
                assert world.count(call_id=receipt.call_id) == 1
            assert receipt.state in (State.NOT_STARTED, State.SUCCEEDED, State.UNKNOWN)
        before = world.count()
        await second.run(second.turn("go on"))
        if any(receipt.state is State.UNKNOWN for receipt in controller.session.book):
            assert world.count() == before, "a fenced write ran"
        assert world.twice() == []
        await asyncio.sleep(1)

    simulate(seed, main)


def test_tr_175_on_another_machine_takeover_waits_for_the_lease() -> None:
    async def main(sim: Simulation) -> float:
        _, tools = pay_world()
        store = memory_store(sim, deaths_seen=False)
        first = Actor(sim, store, tools=tools, model=PlayedModel(STEPS))
        second = Actor(sim, store, tools=tools, model=PlayedModel(STEPS))
        await first.run(first.open(SESSION, new=True))
        first.process.kill()
        died = sim.loop.time()
        while True:
            try:
                await second.run(second.open(SESSION))
                return sim.loop.time() - died
            except SessionHeld:
                await asyncio.sleep(1)

    assert 10 < simulate(1, main) < 700
