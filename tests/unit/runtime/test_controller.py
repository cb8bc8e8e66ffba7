"""The turn: its status, Stop, parked words, and what a failing ledger does to it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from surefoot.core import turns
from surefoot.core.effects import Effect
from surefoot.core.model import BarrierLevel, Draft, EffectClass, EffectTrace, Kind, State
from surefoot.errors import LedgerError, ProviderUnreachable
from surefoot.runtime.controller import Parked
from surefoot.runtime.tools import LiveAttempt, Tool
from surefoot.testing.faults import FailingLedger
from surefoot.testing.played import PlayedModel
from surefoot.testing.rig import Crew, Rig, Setup
from surefoot.testing.simulation import Simulation, simulate
from surefoot.testing.world import SCHEMA, Behaviour

ONCE, READ = EffectClass.NON_IDEMPOTENT, EffectClass.READ_ONLY
PAY = {"name": "pay", "args": {"label": "a"}}


def play(main: Callable[[Simulation], Coroutine[Any, Any, Any]], seed: int = 1) -> Any:
    return simulate(seed, main)


async def statuses(crew: Crew) -> list[str]:
    return [entry.payload["status"] for entry in await crew.entries(Kind.TURN)]


def legal(path: list[str]) -> bool:
    from surefoot.core.model import TurnStatus

    moves = itertools.pairwise(path)
    return all(turns.move(TurnStatus(one), TurnStatus(two)) is None for one, two in moves)


def test_tr_179_tr_181_a_turn_moves_from_queued_over_running_to_completed() -> None:
    async def main(sim: Simulation) -> None:
        crew = await Rig(sim).own(Setup(steps=[{"text": "hello"}]))
        end = await crew.turn()
        assert (end.status, end.text) == ("completed", "hello")
        assert await statuses(crew) == ["queued", "running", "completed"]

    play(main)


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([{"text": ""}, {"text": ""}], "empty_reply"),
        ([{"calls": [{"name": "gone", "args": {}}]}] * 4, "invalid_call_repeated"),
        ([{"calls": [{"name": "look", "args": {"label": "a"}}]}] * 9, "iteration_limit"),
    ],
)
def test_tr_181_a_turn_that_gets_nowhere_is_failed_with_its_reason(steps: Any, reason: str) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(Setup(tools=[rig.world.tool("look", READ)], steps=steps))
        crew.controller.max_steps = 5
        end = await crew.turn()
        assert (end.status, end.reason) == ("failed", reason)
        assert (await statuses(crew))[-1] == "failed"

    play(main)


def test_tr_182_every_fault_of_the_model_or_of_ours_ends_the_turn_and_frees_the_session() -> None:
    async def main(sim: Simulation) -> None:
        gone = PlayedModel([], failures=[ProviderUnreachable("no reply"), RuntimeError("ours")])  # type: ignore[list-item]
        crew = await Rig(sim).own(Setup(model=gone))
        assert (await crew.turn()).status == "failed"
        with pytest.raises(RuntimeError):
            await crew.turn()
        assert crew.controller.state == "idle"
        assert (await crew.turn()).status == "completed"
        assert (await statuses(crew)).count("failed") == 2

    play(main)


@pytest.mark.parametrize("seconds", [0.0, 0.0005, 0.001, 0.002, 0.05, 0.3, 0.6, 1.2])
@pytest.mark.parametrize("seed", range(4))
def test_tr_180_tr_74_stop_at_any_moment_cancels_within_two_seconds_and_says_nothing_false(
    seconds: float, seed: int
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [rig.world.tool("pay", ONCE, behaviour=Behaviour(seconds_before=0.5, seconds_after=0.5))]
        model = PlayedModel([{"calls": [PAY, PAY]}, {"text": "done"}], seconds=0.1)
        crew = await rig.own(Setup(tools=tools, model=model))
        turn = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(seconds)
        began = sim.loop.time()
        stop = asyncio.ensure_future(crew.do(crew.controller.stop()))
        end = await turn
        await stop
        assert sim.loop.time() - began < 2 or (end.status == "completed" and seconds == 0)
        path = await statuses(crew)
        assert end.status == "cancelled" or not path or seconds == 0
        assert legal(path) and (not path or path[-1] in ("cancelled", "completed"))
        for receipt in crew.session.book:
            assert receipt.state not in (State.DISPATCHED, State.STARTED)
            if receipt.state in (State.NOT_STARTED, State.FAILED):
                assert rig.world.count(call_id=receipt.call_id) == 0
        assert crew.controller.state == "idle"

    play(main, seed)


@pytest.mark.parametrize("cause", list(turns.StopCause))
@pytest.mark.parametrize("closing", [False, True])
def test_tr_41_tr_180_a_turn_and_the_call_it_cut_off_name_what_stopped_them(
    cause: turns.StopCause, closing: bool
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        slow = rig.world.tool("pay", ONCE, behaviour=Behaviour(seconds_before=9))
        crew = await rig.own(Setup(tools=[slow], steps=[{"calls": [PAY]}]))
        turn = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(1)
        await crew.do(crew.controller.close(cause) if closing else crew.controller.stop(cause))
        end = await turn
        assert (end.status, end.reason) == ("cancelled", cause.value)
        if not closing:
            moves = [(one.payload["status"], one.payload["reason"]) for one in await crew.entries(Kind.TURN)]
            assert moves[-2:] == [("cancelling", cause.value), ("cancelled", cause.value)]
        (receipt,) = crew.session.book
        why = "time_limit" if cause is turns.StopCause.TIME_LIMIT else "cancelled"
        assert (receipt.state, receipt.reason) == ("unknown", why)

    play(main)


def test_tr_181_a_caller_that_gives_up_is_not_called_a_person() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        slow = rig.world.tool("pay", ONCE, behaviour=Behaviour(seconds_before=9))
        crew = await rig.own(Setup(tools=[slow], steps=[{"calls": [PAY]}]))
        turn = asyncio.ensure_future(crew.controller.submit("go"))
        await asyncio.sleep(1)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        await asyncio.sleep(60)  # of the simulation's clock
        assert crew.controller.state == "idle"
        assert (await crew.entries(Kind.TURN))[-1].payload["reason"] == "caller_cancelled"

    play(main)


def test_tr_181_an_abort_nobody_asked_for_is_failed_with_a_reason() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        slow = rig.world.tool("pay", ONCE, behaviour=Behaviour(seconds_before=1))
        crew = await rig.own(Setup(tools=[slow], steps=[{"calls": [PAY]}]))
        turn = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(0.5)
        crew.controller._turn.task.cancel()  # type: ignore[union-attr]
        end = await turn
        assert (end.status, end.reason) == ("failed", "aborted")
        assert (await statuses(crew))[-1] == "failed"

    play(main)


def test_tr_180_the_cancel_is_durable_before_the_signal_goes_out() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        seen: list[list[str]] = []

        async def body(live: LiveAttempt, arguments: Any) -> str:
            try:
                await asyncio.sleep(60)
            finally:
                seen.append(await statuses(crew))
            return "done"

        tool = Tool("pay", "", SCHEMA, body=body, effect=Effect(ONCE, ("*",)))
        crew = await rig.own(Setup(tools=[tool], steps=[{"calls": [PAY]}]))
        turn = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(1)
        await crew.do(crew.controller.stop())
        await turn
        assert seen and seen[0][-1] == "cancelling"

    play(main)


def test_tr_180_tr_74_stop_waits_for_no_disk_that_hangs() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [rig.world.tool("pay", ONCE, behaviour=Behaviour(seconds_before=30))]
        crew = await rig.own(Setup(tools=tools, steps=[{"calls": [PAY]}]))
        turn = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(1)
        gate = asyncio.get_running_loop().create_future()
        append = crew.session.ledger.append

        async def hanging(*given: Any, **named: Any) -> Any:
            await asyncio.shield(gate)
            return await append(*given, **named)

        crew.session.ledger.append = hanging  # type: ignore[method-assign]
        began = sim.loop.time()
        await crew.do(crew.controller.stop())
        end = await turn
        assert sim.loop.time() - began < 2.1 and end.status == "cancelled"
        assert crew.told("turn_not_recorded") and not rig.world.effects
        gate.set_result(None)
        await asyncio.sleep(5)
        assert (await statuses(crew))[-2:] == ["cancelling", "cancelled"], "made when possible"
        assert [one.state for one in crew.session.book] == [State.UNKNOWN]

    play(main)


@pytest.mark.parametrize("free, abort_ms", [(4.0, 1000), (1.0, 100)])
def test_tr_185_the_times_of_a_stop_are_those_of_the_owners_settings(free: float, abort_ms: int) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [rig.world.tool("pay", ONCE, behaviour=Behaviour(seconds_before=30))]
        limits = {"session_free_seconds": free, "abort_wait_ms": abort_ms}
        crew = await rig.own(Setup(tools=tools, steps=[{"calls": [PAY]}], limits=limits))
        turn = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(1)
        gate = asyncio.get_running_loop().create_future()

        async def hanging(*given: Any, **named: Any) -> Any:
            await asyncio.shield(gate)

        crew.session.ledger.append = hanging  # type: ignore[method-assign]
        began = sim.loop.time()
        stop = asyncio.ensure_future(crew.do(crew.controller.stop()))
        await stop
        await turn
        # Nothing answers: the cancel waits its time, then the rest of the stop its shares.
        spent = sim.loop.time() - began
        assert abort_ms / 1000 + free * 3 / 8 <= spent + 0.01 and spent <= abort_ms / 1000 + free

    play(main)


def test_tr_182_a_caller_that_gives_up_presses_stop_and_leaves_nothing_half_way() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [rig.world.tool("pay", ONCE, behaviour=Behaviour(seconds_before=30))]
        crew = await rig.own(Setup(tools=tools, steps=[{"calls": [PAY]}]))
        turn = asyncio.ensure_future(crew.controller.submit("go"))
        await asyncio.sleep(1)
        turn.cancel()
        await asyncio.sleep(0)
        assert crew.controller.state == "running", "no other turn begins beside it"
        await asyncio.sleep(3)
        assert crew.controller.state == "idle"
        assert (await statuses(crew))[-1] == "cancelled" and not rig.world.effects

    play(main)


def test_tr_184_words_during_a_turn_are_parked_and_taken_once() -> None:
    async def main(sim: Simulation) -> None:
        model = PlayedModel([{"text": "one"}], seconds=1)
        crew = await Rig(sim).own(Setup(model=model))
        turn = asyncio.ensure_future(crew.turn("first"))
        await asyncio.sleep(0.5)
        assert await crew.turn("second") == Parked("second")
        assert await crew.turn("third") == Parked("third")
        stop = asyncio.ensure_future(crew.do(crew.controller.stop()))
        await asyncio.sleep(0)
        assert isinstance(await crew.turn("fourth"), Parked)
        await turn
        await stop
        assert crew.controller.take_parked() == ["second", "third", "fourth"]
        assert crew.controller.take_parked() == []

    play(main)


def test_tr_26_when_the_words_cannot_be_written_nothing_runs_and_history_stays_readable() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)], steps=[{"calls": [PAY]}]))
        rig.store.fault = lambda kinds: LedgerError("the disk is full")
        with pytest.raises(LedgerError):
            await crew.turn()
        assert crew.model.asked == [] and crew.controller.state == "idle"
        assert await crew.entries() and crew.actions.snapshot()["calls"] == []
        rig.store.fault = lambda kinds: None
        assert (await crew.turn()).status == "completed" and rig.world.count() == 1

    play(main)


def test_tr_19_a_message_that_cannot_be_written_dispatches_no_call_and_fails_the_turn() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        wrap = lambda ledger, process: FailingLedger(ledger, 1, kind=Kind.ASSISTANT)  # noqa: E731
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)], steps=[{"calls": [PAY]}]), wrap=wrap)
        end = await crew.turn()
        assert (end.status, len(crew.session.book)) == ("failed", 0) and end.error is not None
        assert not rig.world.bodies

    play(main)


def test_tr_83_a_changed_level_is_an_entry_before_anything_runs_under_it() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(Setup(level=BarrierLevel.SESSION))
        await crew.turn()
        crew.session.level = BarrierLevel.ADVISE
        await crew.turn()
        await crew.turn()
        changes = [(one.payload["old"], one.payload["new"]) for one in await crew.entries(Kind.BARRIER_SET)]
        assert changes == [(None, "session"), ("session", "advise")]

    play(main)


def test_tr_123_go_on_invents_no_user_message() -> None:
    async def main(sim: Simulation) -> None:
        crew = await Rig(sim).own(Setup(steps=[{"text": "one"}]))
        await crew.turn("hello")
        end = await crew.do(crew.controller.go_on())
        assert end.status == "completed"
        assert [one.payload["text"] for one in await crew.entries(Kind.USER)] == ["hello"]

    play(main)


def test_tr_86_open_writes_do_not_fail_the_turn() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [rig.world.tool("pay", ONCE, behaviour=Behaviour(fails="unknown"))]
        crew = await rig.own(Setup(tools=tools, steps=[{"calls": [PAY]}, {"text": "could not tell"}]))
        assert (await crew.turn()).status == "completed"
        assert [one.state for one in crew.session.book.open()] == [State.UNKNOWN]
        assert crew.told("unknownOpen") == [{"count": 1}]

    play(main)


def test_tr_86_a_turn_that_leaves_no_write_open_tells_of_none() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [rig.world.tool("look", EffectClass.READ_ONLY, behaviour=Behaviour(fails="unknown"))]
        look = {"calls": [{"name": "look", "args": {"label": "a"}}]}
        crew = await rig.own(Setup(tools=tools, steps=[look, {"text": "done"}]))
        assert (await crew.turn()).status == "completed"
        assert crew.told("unknownOpen") == []

    play(main)


def test_tr_64_without_facts_nothing_is_added_to_the_words() -> None:
    async def main(sim: Simulation) -> None:
        crew = await Rig(sim).own(Setup(steps=[{"text": "one"}]))
        await crew.turn("hello")
        assert [one.payload["facts"] for one in await crew.entries(Kind.USER)] == [None]

    play(main)


def test_tr_63_a_result_that_changed_after_it_was_shown_is_told_as_a_fact_once() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        handed: list[LiveAttempt] = []
        from surefoot.runtime.tools import Outcome

        async def body(live: LiveAttempt, arguments: Any) -> Outcome:
            handed.append(live)
            return Outcome("", State.UNKNOWN, "connection_lost")

        tool = Tool("pay", "", SCHEMA, body=body, effect=Effect(ONCE, ("*",)))
        crew = await rig.own(Setup(tools=[tool], steps=[{"calls": [PAY]}, {"text": "who knows"}]))
        await crew.turn("pay")
        handed[0].late(Outcome("it went through"), "exit_record")
        await asyncio.sleep(1)
        await crew.turn("and?")
        await crew.turn("and now?")
        facts = [one.payload["facts"] for one in await crew.entries(Kind.USER)]
        assert facts[0] is None and facts[1] and "pay" in facts[1] and facts[2] is None
        assert crew.session.book.open() == []
        assert [one.effect_trace for one in crew.session.book] == [EffectTrace.DONE]

    play(main)


def test_tr_85_a_write_beside_an_open_call_of_another_session_is_told_once_and_not_fenced() -> None:
    async def main(sim: Simulation) -> None:
        from surefoot.ledger.memory import MemoryLedger
        from surefoot.runtime.session import Wanted
        from surefoot.testing.rig import assemble

        rig = Rig(sim)
        doubtful = [rig.world.tool("pay", ONCE, reach=("host:a",), behaviour=Behaviour(fails="unknown"))]
        other = sim.process("other")
        wanted = Wanted("ses_01hf7z0000000000000000000b", {"directory": "/sim"})
        setup = Setup(tools=doubtful)
        elsewhere = await assemble(
            MemoryLedger(rig.store), other.scheduler(), other.owner, wanted, setup, other
        )
        left = await elsewhere.call("pay", label="x")
        send = {"name": "send", "args": {"label": "a"}}
        far = {"name": "far", "args": {"label": "a"}}
        tools = [
            rig.world.tool("send", ONCE, reach=("host:a",)),
            rig.world.tool("far", ONCE, reach=("host:z",)),
        ]
        crew = await rig.own(Setup(tools=tools, steps=[{"calls": [far, send, send]}]))
        assert (await crew.turn()).status == "completed"
        assert [one["unknown"] for one in crew.told("open_elsewhere")] == [left.attempt_id]
        assert rig.world.count("a") == 3

    play(main)


def failing(count: int) -> PlayedModel:
    """A model that cannot be reached so many times, and then answers."""
    faults = [ProviderUnreachable("no route") for _ in range(count)]
    return PlayedModel([{"text": "there you are"}], failures=faults)


@pytest.mark.parametrize(("limit", "works"), [(3, False), (4, True)])
def test_tr_183_tr_185_a_failed_turn_is_gone_on_with_so_often_and_then_only_with_new_words(
    limit: int, works: bool
) -> None:
    async def main(sim: Simulation) -> None:
        crew = await Rig(sim).own(Setup(model=failing(4), limits={"turn_resumes": limit}))
        first = await crew.turn("hello")
        assert first.status == "failed"
        for count in (1, 2, 3):
            end = await crew.do(crew.controller.go_on())
            assert (end.status, end.reason) == ("failed", "SF-PROVIDER-UNREACHABLE")
            queued = [
                one.payload for one in await crew.entries(Kind.TURN) if one.payload["status"] == "queued"
            ]
            assert queued[-1]["resumes"] == {"turnId": first.turn_id, "count": count}
        before, asked = len(await crew.entries()), len(crew.model.asked)
        end = await crew.do(crew.controller.go_on())
        assert (end.status == "completed") is works
        if not works:
            assert (end.status, end.reason) == ("failed", "resumes_spent")
            assert (len(await crew.entries()), len(crew.model.asked)) == (before, asked), "nothing was begun"
            assert crew.told("resumes_spent") == [{"times": 3}] and crew.controller.state == "idle"
            assert (await crew.turn("another way")).status == "completed", "new words are a new turn"

    play(main)


def test_tr_183_the_count_is_durable_and_a_death_of_the_owner_counts_as_any_other_end() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        for count in range(5):
            slow = PlayedModel([{"text": "late"}], seconds=3600)
            crew = await rig.own(Setup(model=slow))
            work = crew.controller.submit("hello") if count == 0 else crew.controller.go_on()
            going = asyncio.ensure_future(crew.do(work))
            await asyncio.sleep(5)
            if count < 4:
                assert len(slow.asked) == 1
                crew.process.kill()
                await going
        assert (await going).reason == "resumes_spent" and not slow.asked

    play(main)


def test_tr_183_an_answer_of_a_person_begins_the_count_anew() -> None:
    async def main(sim: Simulation) -> None:
        crew = await Rig(sim).own(Setup(model=failing(9)))
        await crew.turn("hello")
        for _ in range(3):
            await crew.do(crew.controller.go_on())
        answer = {"questionId": "qst_x", "attemptId": "att_x", "verdict": "answered", "text": "blue"}
        await crew.session.append(Draft(Kind.ANSWER, answer))
        assert (await crew.do(crew.controller.go_on())).reason == "SF-PROVIDER-UNREACHABLE"
        queued = [one.payload for one in await crew.entries(Kind.TURN) if one.payload["status"] == "queued"]
        assert queued[-1]["resumes"] == {"turnId": queued[-2]["turnId"], "count": 1}

    play(main)


def test_tr_183_going_on_after_a_finished_turn_is_no_resume() -> None:
    async def main(sim: Simulation) -> None:
        crew = await Rig(sim).own(Setup(steps=[{"text": "one"}]))
        await crew.turn("hello")
        for _ in range(5):
            assert (await crew.do(crew.controller.go_on())).status == "completed"
        assert not any("resumes" in one.payload for one in await crew.entries(Kind.TURN))

    play(main)
