"""The ladder inside a turn: who climbs, how long, who may end it, and what the model is told."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from surefoot.core.history import ResultGiven
from surefoot.core.model import Draft, EffectClass, Kind, State
from surefoot.errors import ToolError
from surefoot.runtime.tools import LiveAttempt, Outcome, Tool
from surefoot.testing.played import PlayedModel
from surefoot.testing.rig import Crew, Rig, Setup
from surefoot.testing.simulation import Simulation, simulate

READ, IDEM, ONCE, UNDECIDED = (
    EffectClass.READ_ONLY,
    EffectClass.IDEMPOTENT_WRITE,
    EffectClass.NON_IDEMPOTENT,
    EffectClass.UNKNOWN,
)
Ends = Callable[[int], Outcome | BaseException]


def play(main: Callable[[Simulation], Coroutine[Any, Any, Any]], seed: int = 1) -> Any:
    return simulate(seed, main)


def tool(rig: Rig, effect_class: EffectClass, ends: Ends, name: str = "far", **more: Any) -> Tool:
    """A tool whose n-th body ends as `ends(n)` says."""
    entered: list[str] = []

    async def body(live: LiveAttempt, arguments: Any) -> Outcome:
        entered.append(live.attempt_id)
        rig.world.bodies.append((name, live.attempt_id))
        ended = ends(len(entered))
        if isinstance(ended, BaseException):
            raise ended
        return ended

    return dataclasses.replace(rig.world.tool(name, effect_class, **more), body=body)


def busy(times: int, **more: Any) -> Ends:
    return lambda n: (
        Outcome("here", State.SUCCEEDED) if n > times else ToolError("busy", transient=True, **more)
    )


def steps(*batches: list[str]) -> list[dict[str, Any]]:
    return [{"calls": [{"name": name, "args": {"label": name}} for name in one]} for one in batches]


async def turn(rig: Rig, tools: list[Tool], *batches: list[str], **setup: Any) -> tuple[Crew, float]:
    crew = await rig.own(Setup(tools=tools, steps=steps(*batches or (["far"],)), **setup))
    began = rig.sim.loop.time()
    await crew.turn()
    return crew, rig.sim.loop.time() - began


def told(crew: Crew, name: str = "far") -> str:
    given = [
        one for one in crew.model.asked[-1] if isinstance(one, ResultGiven) and one.call.asked_name == name
    ]
    return given[-1].text


async def rest(crew: Crew, number: int) -> None:
    """Until the n-th wait between two tries has begun."""
    begun = asyncio.Event()
    crew.controller.subscribe(lambda _: begun.set() if len(waits(crew)) >= number else None)
    await begun.wait()
    await asyncio.sleep(0.1)


def waits(crew: Crew) -> list[float]:
    return [facts["waitSeconds"] for facts in crew.told("tool_wait")]


def test_tr_159_tr_162_each_try_is_an_attempt_of_the_same_call_with_the_same_key() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew, seconds = await turn(rig, [tool(rig, READ, busy(3))])
        attempts = list(crew.session.book)
        assert [one.state for one in attempts] == [State.FAILED] * 3 + [State.SUCCEEDED]
        assert len({one.call_id for one in attempts}) == len({one.idempotency_key for one in attempts}) == 1
        assert [one.ladder["try"] for one in attempts[1:] if one.ladder] == [2, 3, 4]
        assert waits(crew) == [2, 5, 10] and 17 <= seconds < 19
        assert told(crew) == "here" and len(await crew.entries(Kind.STARTED)) == 4

    play(main)


def test_tr_159_tr_164_after_eight_attempts_the_error_goes_to_the_model_with_the_count() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew, _ = await turn(rig, [tool(rig, READ, busy(99))])
        assert waits(crew) == [2, 5, 10, 20, 40, 80, 160] and len(rig.world.bodies) == 8
        assert "busy" in told(crew) and "tried 8 times" in told(crew)
        assert len(crew.model.asked) == 2  # the turn goes on

    play(main)


@pytest.mark.parametrize(
    ("effect_class", "trace", "bodies"),
    [
        (READ, "none", 2),
        (IDEM, "possible", 2),
        (ONCE, "none", 2),
        (UNDECIDED, "none", 2),
        (ONCE, "possible", 1),
        (UNDECIDED, "possible", 1),
    ],
)
def test_tr_160_ec_52_the_class_decides_who_climbs(
    effect_class: EffectClass, trace: str, bodies: int
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        await turn(rig, [tool(rig, effect_class, busy(1, effect_trace=trace))])
        assert len(rig.world.bodies) == bodies

    play(main)


@pytest.mark.parametrize("effect_class", [ONCE, UNDECIDED])
@pytest.mark.parametrize(
    "error", [TimeoutError("timeout"), ConnectionError("reset"), ToolError("timeout, try again later")]
)
def test_ec_53_a_transport_error_or_a_word_in_a_text_makes_no_unsafe_call_safe(
    effect_class: EffectClass, error: BaseException
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew, _ = await turn(rig, [tool(rig, effect_class, lambda n: error)])
        assert len(rig.world.bodies) == 1 and not waits(crew)

    play(main)


def test_ec_53_tr_163_a_safe_call_is_not_tried_again_for_a_word_in_its_text() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew, _ = await turn(rig, [tool(rig, READ, lambda n: ToolError("503 timeout, temporarily busy"))])
        assert len(rig.world.bodies) == 1 and not waits(crew)

    play(main)


@pytest.mark.parametrize("kind", ["permission", "sandbox", "not_found", "own_rate_limit"])
def test_tr_163_some_failures_end_at_the_first_attempt_whatever_flag_they_carry(kind: str) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        await turn(rig, [tool(rig, READ, busy(1, kind=kind))])
        assert len(rig.world.bodies) == 1

    play(main)


def test_tr_161_an_unknown_converging_write_is_superseded_by_its_next_try() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        ends: Ends = lambda n: ConnectionError("reset") if n == 1 else Outcome("written")  # noqa: E731
        crew, _ = await turn(rig, [tool(rig, IDEM, ends, reach=("host:a",))])
        first, second = crew.session.book
        assert first.state is State.UNKNOWN and first.superseded_by == second.attempt_id
        assert second.state is State.SUCCEEDED and not crew.session.book.open()
        assert told(crew) == "written"

    play(main)


def test_tr_161_an_unknown_call_whose_executor_is_not_proven_ended_is_not_tried_again() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        slow = tool(rig, IDEM, lambda n: Outcome("", State.UNKNOWN, "declared", executor="not_proven"))
        crew, _ = await turn(rig, [slow])
        assert len(rig.world.bodies) == 1 and len(crew.session.book.open()) == 1

    play(main)


@pytest.mark.parametrize(("asked", "waited"), [(1, [2]), (60, [60]), (181, [])])
def test_tr_164_a_servers_longer_word_replaces_the_step_up_to_the_cap(
    asked: float, waited: list[float]
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew, _ = await turn(rig, [tool(rig, READ, busy(1, retry_after_seconds=asked))])
        assert waits(crew) == waited

    play(main)


def test_tr_164_the_budget_of_a_turn_is_shared_by_its_calls_and_new_in_the_next_turn() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        limits = {"ladder_retries_per_turn": 3}
        tools = [tool(rig, READ, busy(99)), tool(rig, READ, busy(99), name="near")]
        crew = await rig.own(
            Setup(
                tools=tools, steps=[*steps(["far", "near"]), {"text": "well"}, *steps(["far"])], limits=limits
            )
        )
        await crew.turn()
        assert len(rig.world.bodies) == 2 + 3
        await crew.turn()
        assert len(rig.world.bodies) == 5 + 1 + 3

    play(main)


def test_tr_165_stop_ends_a_wait_at_once_and_nothing_starts_afterwards() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(Setup(tools=[tool(rig, READ, busy(99))], steps=steps(["far"])))
        going = asyncio.ensure_future(crew.turn())
        await rest(crew, 4)
        began, bodies = sim.loop.time(), len(rig.world.bodies)
        await crew.controller.stop()
        end = await going
        assert sim.loop.time() - began < 1 and end.status == "cancelled"
        await asyncio.sleep(400)
        assert len(rig.world.bodies) == bodies

    play(main)


def test_tr_165_a_waiting_read_holds_nobody_and_a_waiting_write_holds_later_writes_alone() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [
            tool(rig, IDEM, busy(1), name="put", reach=("host:a",)),
            tool(rig, READ, busy(1), name="look"),
            tool(rig, READ, busy(0), name="see"),
            tool(rig, IDEM, busy(0), name="set", reach=("host:a",)),
        ]
        crew, seconds = await turn(rig, tools, ["put", "look", "see", "set"])
        assert [name for name, _ in rig.world.bodies] == ["put", "look", "see", "put", "look", "set"] or [
            name for name, _ in rig.world.bodies
        ] == ["put", "look", "see", "put", "set", "look"]
        assert seconds < 3 and {one.state for one in crew.session.book} == {State.FAILED, State.SUCCEEDED}

    play(main)


def test_tr_162_killed_during_the_third_try_the_ledger_shows_three_and_a_restart_goes_on_with_no_wait() -> (
    None
):
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        first: list[Crew] = []

        def ends(n: int) -> Outcome | BaseException:
            if n == 3 and first[0].process is not None:
                first[0].process.kill()
            return ToolError("busy", transient=True)

        setup = Setup(tools=[tool(rig, READ, ends)], steps=steps(["far"]))
        first.append(await rig.own(setup))
        await first[0].turn()
        second = await rig.own(dataclasses.replace(setup, model=PlayedModel([])))
        attempts = list(second.session.book)
        assert [one.state for one in attempts] == [State.FAILED, State.FAILED, State.UNKNOWN]
        assert attempts[-1].reason == "owner_died"
        await asyncio.sleep(400)
        assert len(rig.world.bodies) == 3  # a wait survives nothing

    play(main)


def test_tr_82_a_try_does_not_get_around_a_fence_that_came_while_it_waited() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [tool(rig, IDEM, busy(1), reach=("host:a",))]
        crew = await rig.own(
            Setup(
                tools=[*tools, rig.world.tool("pay", ONCE, reach=("host:a",), time_limit_seconds=1)],
                steps=steps(["far"]),
            )
        )
        going = asyncio.ensure_future(crew.turn())
        await rest(crew, 1)
        calls = await crew.dispatch(("pay", {"label": "p"}))
        payload = {"attemptId": calls[0].attempt_id, "state": "unknown", "reason": "declared"}
        looked = await crew.barrier.look(calls[0])
        started = {"attemptId": calls[0].attempt_id, "tool": "pay", "class": "NON_IDEMPOTENT"}
        await crew.session.append(
            Draft(Kind.STARTED, {**started, "reach": ["host:a"], "arguments": looked.call.arguments})
        )
        await crew.session.append(Draft(Kind.CLOSED, payload))
        await going
        assert len(rig.world.bodies) == 1

    play(main)
