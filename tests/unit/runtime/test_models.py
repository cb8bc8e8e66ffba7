"""Asking for one step again: visible, bounded, and harmless because nothing ran."""

from __future__ import annotations

import asyncio

import pytest

from surefoot.core.model import Kind, Notice
from surefoot.errors import ProviderError, ProviderUnreachable
from surefoot.runtime.models import ask_until_answered
from surefoot.testing.played import PlayedModel
from surefoot.testing.rig import Rig, Setup
from surefoot.testing.simulation import Simulation, seeded_scheduler, simulate


def test_s_30_a_refused_step_is_asked_again_visibly_and_the_last_refusal_is_raised() -> None:
    async def main(sim: Simulation) -> None:
        told: list[Notice] = []
        failures = [ProviderUnreachable(f"no reply {n}") for n in range(3)]
        model = PlayedModel([{"text": "hi"}], failures=failures, wait_seconds=2)
        began = sim.loop.time()
        reply = await ask_until_answered(
            model, [], scheduler=seeded_scheduler(1), on_delta=lambda _: None, notify=told.append
        )
        assert reply.text == "hi" and len(model.asked) == 4
        assert [one.facts["try"] for one in told] == [1, 2, 3] and sim.loop.time() - began >= 6
        giving_up = PlayedModel([], failures=[ProviderUnreachable("gone")])
        with pytest.raises(ProviderError):
            await ask_until_answered(
                giving_up, [], scheduler=seeded_scheduler(2), on_delta=lambda _: None, notify=told.append
            )

    simulate(1, main)


def test_tr_180_a_wait_for_the_model_is_left_at_once_on_stop_and_its_late_reply_is_nothing() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        for model in (
            PlayedModel([], failures=[ProviderUnreachable("no reply")] * 9, wait_seconds=600),
            PlayedModel([{"text": "late", "calls": []}], seconds=600),
        ):
            crew = await rig.own(Setup(model=model))
            turn = asyncio.ensure_future(crew.turn())
            await asyncio.sleep(5)
            began = sim.loop.time()
            await crew.do(crew.controller.stop())
            assert (await turn).status == "cancelled" and sim.loop.time() - began < 2
            assert not await crew.entries(Kind.ASSISTANT)
            assert crew.process is not None
            crew.process.kill()

    simulate(1, main)
