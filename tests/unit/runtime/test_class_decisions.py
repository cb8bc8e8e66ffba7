"""What SKIP and VERIFY do and do not do when a session goes on (EC-47, EC-51, EC-33)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from surefoot.core.model import EffectClass, InspectionState, Overlay, Receipt, State
from surefoot.runtime.tools import Tool
from surefoot.testing.rig import Crew, Rig, Setup
from surefoot.testing.simulation import Simulation, simulate
from surefoot.testing.world import SCHEMA, Behaviour
from surefoot.verifiers.port import Deadline, Observation

ONCE, UNDECIDED = EffectClass.NON_IDEMPOTENT, EffectClass.UNKNOWN
WRITES = [one for one in EffectClass if one is not EffectClass.READ_ONLY]


def play(main: Callable[[Simulation], Coroutine[Any, Any, Any]]) -> None:
    simulate(1, main)


async def dies_after(rig: Rig, seconds: float, effect_class: EffectClass, **declared: Any) -> None:
    """An owner whose first call ends in one second and whose second one lasts; it dies meanwhile."""
    behaviour = declared.pop("behaviour", None) or Behaviour(seconds_before=1)
    tools = [
        rig.world.tool("act", effect_class, behaviour=behaviour, **declared),
        rig.world.tool("wait", ONCE, reach=("host:w.example",), behaviour=Behaviour(seconds_before=3600)),
    ]
    steps = [
        {"calls": [{"name": "act", "args": {"label": "a"}}]},
        {"calls": [{"name": "wait", "args": {"label": "w"}}]},
    ]
    crew = await rig.own(Setup(tools=tools, steps=steps))
    turn = asyncio.ensure_future(crew.turn())
    await asyncio.sleep(seconds)
    assert crew.process is not None
    crew.process.kill()
    await turn


class FarAndBlind:
    """A verifier that would have to leave the machine, so that opening does not ask it, and that sees nothing."""

    name = "far"
    far = True

    def recovery_scope(self, call: Receipt) -> str:
        return "far"

    def inspect_effect(self, key: str, call: Receipt, deadline: Deadline, *, fenced: bool) -> Observation:
        del key, call, deadline, fenced
        return Observation("unknown")


def said_to_model(crew: Crew) -> str:
    return str(crew.model.asked[-1])


@pytest.mark.parametrize("effect_class", list(EffectClass))
def test_ec_47_a_success_of_any_class_is_not_repeated_and_its_stored_result_is_given_back(
    effect_class: EffectClass,
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        await dies_after(rig, 10, effect_class)
        heir = await rig.own(Setup(tools=[rig.world.tool("act", effect_class)], steps=[]))
        bodies = list(rig.world.bodies)
        assert next(iter(heir.session.book)).state is State.SUCCEEDED
        await heir.turn("go on")
        assert [one for one in rig.world.bodies if one not in bodies] == []
        stored = "0 effects" if effect_class is EffectClass.READ_ONLY else "did a"
        assert stored in said_to_model(heir)

    play(main)


@pytest.mark.parametrize("effect_class", WRITES)
def test_ec_47_a_failure_is_told_in_history_and_not_tried_again(effect_class: EffectClass) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        await dies_after(rig, 10, effect_class, behaviour=Behaviour(fails="before"))
        heir = await rig.own(Setup(tools=[rig.world.tool("act", effect_class)], steps=[]))
        bodies = list(rig.world.bodies)
        await heir.turn("go on")
        assert rig.world.bodies == bodies and rig.world.count("a") == 0
        assert "refused before anything happened" in said_to_model(heir)

    play(main)


def test_ec_47_a_call_that_never_started_is_asked_for_again_by_the_ordinary_flow() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        call = {"name": "act", "args": {"label": "a"}}
        slow = rig.world.tool("act", ONCE, behaviour=Behaviour(seconds_before=3600))
        crew = await rig.own(Setup(tools=[slow], steps=[{"calls": [call, {**call, "args": {"label": "b"}}]}]))
        turn = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(10)
        assert crew.process is not None
        crew.process.kill()
        await turn
        heir = await rig.own(Setup(tools=[rig.world.tool("act", ONCE, reach=("host:b",))], steps=[]))
        assert [one.state for one in heir.session.book] == [State.UNKNOWN, State.NOT_STARTED]
        before = len(rig.world.bodies)
        await heir.turn("go on")
        assert len(rig.world.bodies) == before

    play(main)


@pytest.mark.promise("recovery:never-guess")
@pytest.mark.parametrize("effect_class", [ONCE, UNDECIDED])
@pytest.mark.parametrize(
    "words",
    ["I have verified it: the call did not happen.", "Confirmed, it happened. Resolved.", "SKIP", "released"],
)
def test_ec_51_verify_never_runs_the_call_and_no_sentence_of_the_model_resolves_it(
    effect_class: EffectClass, words: str
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        long = Behaviour(seconds_after=3600)
        looking = FarAndBlind()
        await dies_after(rig, 10, effect_class, behaviour=long, verifier=looking)
        tools = [rig.world.tool("act", effect_class, verifier=looking)]
        heir = await rig.own(Setup(tools=tools, steps=[{"text": words}] * 9))
        (open_call,) = [one for one in heir.session.book if one.state is State.UNKNOWN]
        assert [one.decided.decision for one in heir.actions.standing.plan()] == ["VERIFY"]
        bodies = list(rig.world.bodies)
        await heir.turn("go on")
        await heir.turn("and now?")
        assert rig.world.bodies == bodies
        assert heir.session.book.is_open(open_call.attempt_id)
        (after,) = heir.actions.standing.plan()
        assert after.decided.decision in ("VERIFY", "ASK_USER")

    play(main)


def test_ec_51_a_declared_verifier_is_asked_before_the_model_is() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        await dies_after(
            rig, 10, ONCE, behaviour=Behaviour(seconds_after=3600), verifier=rig.world.verifier()
        )
        tools = [rig.world.tool("act", ONCE, verifier=rig.world.verifier())]
        heir = await rig.own(Setup(tools=tools))
        assert heir.model.asked == []
        found = next(iter(heir.session.book))
        assert (found.inspection or {})["state"] == InspectionState.PRESENT
        assert Overlay.PROVEN in found.overlays
        assert rig.world.count("a") == 1

    play(main)


def test_ec_33_a_tool_without_class_is_told_by_a_notice_when_the_session_opens() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        plain = Tool("plain", "", SCHEMA, sync_body=lambda live, given: "x")
        crew = await rig.own(Setup(tools=[plain, rig.world.tool("act", ONCE)]))
        (told,) = [one for one in crew.notices if one.kind == "tool_without_class"]
        assert told.facts["tool"] == "plain" and "UNKNOWN" in told.facts["text"]
        assert (await crew.call("plain", label="a")).effect_class is UNDECIDED

    play(main)
