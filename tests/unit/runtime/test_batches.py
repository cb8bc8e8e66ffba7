"""The calls of one message: which are one call, in which order they run, and what stops the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from surefoot.core.model import BarrierLevel, EffectClass, State
from surefoot.core.results import result_of
from surefoot.providers.port import Reply, ReplyCall
from surefoot.runtime.batches import as_calls, dispatch
from surefoot.runtime.scheduler import Scheduler
from surefoot.testing.played import PlayedModel
from surefoot.testing.rig import Rig, Setup
from surefoot.testing.simulation import Simulation, simulate
from surefoot.testing.world import Behaviour

READ, IDEM, ONCE, UNDECIDED = (
    EffectClass.READ_ONLY,
    EffectClass.IDEMPOTENT_WRITE,
    EffectClass.NON_IDEMPOTENT,
    EffectClass.UNKNOWN,
)
A = {"label": "a"}


def play(main: Callable[[Simulation], Coroutine[Any, Any, Any]], seed: int = 1) -> Any:
    return simulate(seed, main)


def reply(*calls: ReplyCall, finish: str = "tool_calls") -> Reply:
    return Reply("", calls, finish, {}, "m")


def marked(
    given: Reply, *, batch_split: bool = False, repeated_ids: str = "accept"
) -> list[tuple[bool, bool]]:
    rows = dispatch(given, Scheduler())
    calls = as_calls(given, rows, "trn", batch_split=batch_split, repeated_ids=repeated_ids)
    return [(one.cut, one.duplicate_of is not None) for one in calls]


def test_tr_31_the_providers_id_selects_no_receipt() -> None:
    rows = dispatch(reply(ReplyCall("pay", "{}", "x"), ReplyCall("pay", "{}", "x")), Scheduler())
    assert len({row["callId"] for row in rows}) == len({row["attemptId"] for row in rows}) == 2
    assert [row["position"] for row in rows] == [0, 1]


@pytest.mark.parametrize(
    ("ids", "arguments", "repeated_ids", "second"),
    [
        (("x", "x", "y"), ('{"a":1}', '{ "a" : 1 }', "{}"), "accept", True),
        (("x", "x", "y"), ('{"a":1}', '{"a":2}', "{}"), "accept", False),
        (("x", "x", "y"), ('{"a":1}', '{"a":1}', "{}"), "distinct", False),
        (("x", "x", "x"), ('{"a":1}', '{"a":1}', '{"a":1}'), "accept", False),
        (("", "", "y"), ('{"a":1}', '{"a":1}', "{}"), "accept", False),
        (("  ", "  ", "y"), ('{"a":1}', '{"a":1}', "{}"), "accept", False),
        ((None, None, "y"), ('{"a":1}', '{"a":1}', "{}"), "accept", False),
        (("x", "z", "y"), ('{"a":1}', '{"a":1}', "{}"), "accept", False),
    ],
)
def test_tr_33_only_a_block_that_repeats_id_tool_and_digest_is_one_call_sent_twice(
    ids: Any, arguments: Any, repeated_ids: str, second: bool
) -> None:
    given = reply(*[ReplyCall("pay", text, one) for one, text in zip(ids, arguments, strict=True)])
    assert [twice for _, twice in marked(given, repeated_ids=repeated_ids)] == [False, second, False]


@pytest.mark.parametrize(("batch_split", "cut"), [(False, [True, True]), (True, [False, True])])
def test_tr_34_a_message_that_broke_off_runs_no_call_it_may_have_cut(
    batch_split: bool, cut: list[bool]
) -> None:
    given = reply(ReplyCall("pay", "{}", "x"), ReplyCall("pay", "{}", "y"), finish="length")
    assert [one for one, _ in marked(given, batch_split=batch_split)] == cut
    broken = reply(ReplyCall("pay", "{}", "x"), ReplyCall("pay", '{"a', "y", cut=True), finish="stop")
    assert [one for one, _ in marked(broken)] == [False, True]


def test_tr_34_a_cut_call_never_runs() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        steps = [{"calls": [{"name": "pay", "args": A}], "finish": "length"}]
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)], steps=steps))
        await crew.turn()
        assert [one.reason for one in crew.session.book] == ["truncated_call"] and not rig.world.bodies

    play(main)


def test_tr_33_tr_88_a_duplicate_is_answered_and_stops_nothing_behind_it() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        same = {"name": "pay", "args": A, "id": "x"}
        steps = [{"calls": [same, same, {"name": "pay", "args": {"label": "b"}, "id": "y"}]}]
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)], steps=steps))
        await crew.turn()
        assert [one.reason for one in crew.session.book] == [None, "duplicate_call", None]
        assert rig.world.count("a") == rig.world.count("b") == 1

    play(main)


@pytest.mark.parametrize(
    ("ids", "refused"),
    [(("x", "x", "y"), True), (("x", "y", "z"), False), (("", "", "y"), False), (("y", " x", "x "), True)],
)
def test_tr_32_a_contract_that_refuses_repeated_ids_lets_nothing_of_the_message_run(
    ids: tuple[str, ...], refused: bool
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        asked = [{"name": "pay", "args": {"label": f"l{n}"}, "id": one} for n, one in enumerate(ids)]
        model = PlayedModel([{"calls": asked}, {"text": "ok"}])
        model.repeated_ids = "refuse"  # type: ignore[attr-defined]
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)], model=model))
        await crew.turn()
        receipts = list(crew.session.book)
        assert [one.reason for one in receipts] == (["duplicate_call"] * 3 if refused else [None] * 3)
        assert len(rig.world.bodies) == (0 if refused else 3)
        if refused:
            assert all("Nothing of it was started" in result_of(one).text for one in receipts)

    play(main)


@pytest.mark.parametrize(
    ("fails", "level", "behind"),
    [
        ("unknown", BarrierLevel.REACH, "batch_dependency"),
        ("raises", BarrierLevel.REACH, "batch_dependency"),
        ("", BarrierLevel.REACH, None),
        ("raises", BarrierLevel.ADVISE, "batch_dependency"),
        ("raises", BarrierLevel.OFF, None),
    ],
)
def test_tr_88_tr_89_after_a_write_that_did_not_go_through_later_writes_wait_and_readers_run(
    fails: str, level: BarrierLevel, behind: str | None
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [
            rig.world.tool("pay", ONCE, reach=("host:a",), behaviour=Behaviour(fails=fails)),
            rig.world.tool("send", ONCE, reach=("host:b",)),
            rig.world.tool("look", READ),
        ]
        crew = await rig.own(Setup(tools=tools, level=level))
        first, read, write = await crew.batch(("pay", A), ("look", A), ("send", A))
        assert read.state is State.SUCCEEDED and write.reason == behind
        assert (await crew.call("send", label="later")).state is State.SUCCEEDED, "it ends with the batch"
        assert first.started_at is not None

    play(main)


def test_tr_88_a_failed_check_stops_nothing_and_a_refused_write_does() -> None:
    async def main(sim: Simulation) -> None:
        import dataclasses

        from surefoot.core.effects import Effect

        rig = Rig(sim)
        test = rig.world.tool("test", UNDECIDED, behaviour=Behaviour(fails="raises"))
        tools = [
            dataclasses.replace(test, effect=Effect(UNDECIDED, ("*",), check=True)),
            rig.world.tool("send", ONCE),
        ]
        crew = await rig.own(Setup(tools=tools))
        receipts = await crew.batch(("test", A), ("send", A), ("send", {}), ("send", {"label": "b"}))
        assert [one.reason for one in receipts] == [None, None, "arguments_invalid", "batch_dependency"]

    play(main)


def test_tr_90_writes_run_one_after_another_and_readers_side_by_side() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [
            rig.world.tool("look", READ, behaviour=Behaviour(seconds_before=10)),
            rig.world.tool("send", ONCE, behaviour=Behaviour(seconds_before=10)),
        ]
        crew = await rig.own(Setup(tools=tools))
        began = sim.loop.time()
        await crew.batch(*[("look", A)] * 5)
        assert sim.loop.time() - began < 11
        await crew.batch(("send", {"label": "1"}), ("send", {"label": "2"}), ("send", {"label": "3"}))
        assert [effect.label for effect in rig.world.effects] == ["1", "2", "3"]
        assert sim.loop.time() - began > 39

    play(main)


def test_tr_30_every_call_settles_by_itself_whatever_its_siblings_do() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [
            rig.world.tool("look", READ),
            rig.world.tool("slow", READ, behaviour=Behaviour(seconds_before=50), time_limit_seconds=60),
            rig.world.tool("late", READ, behaviour=Behaviour(seconds_before=50), time_limit_seconds=1),
        ]
        crew = await rig.own(Setup(tools=tools))
        running = asyncio.ensure_future(
            crew.batch(("look", A), ("late", A), ("nothing", A), ("look", {}), ("slow", A))
        )
        await asyncio.sleep(5)
        early = [one.state for one in crew.session.book]
        assert early[0] is State.SUCCEEDED and early[1] is State.UNKNOWN
        receipts = await running
        assert [one.state for one in receipts] == [
            State.SUCCEEDED,
            State.UNKNOWN,
            State.NOT_STARTED,
            State.NOT_STARTED,
            State.SUCCEEDED,
        ]

    play(main)
