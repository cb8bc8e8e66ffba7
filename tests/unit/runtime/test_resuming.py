"""Between the opening of a session and its first request: looks, stops, retries, and what is shown."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest

from surefoot.core.model import Draft, EffectClass, ExecutorState, Kind, Receipt, State
from surefoot.errors import LedgerError, OutcomeUnknown
from surefoot.runtime import deaths
from surefoot.runtime.reconcile import Judged, NoSupervision
from surefoot.testing.played import PlayedModel
from surefoot.testing.rig import Crew, Rig, Setup
from surefoot.testing.simulation import Simulation, simulate
from surefoot.testing.world import Behaviour

READ, IDEM, ONCE = EffectClass.READ_ONLY, EffectClass.IDEMPOTENT_WRITE, EffectClass.NON_IDEMPOTENT


def play(main: Callable[[Simulation], Coroutine[Any, Any, Any]], seed: int = 1) -> Any:
    return simulate(seed, main)


def slow_looks(crew: Crew, seconds: float) -> None:
    """Every look of this owner takes so long."""
    scheduler: Any = crew.session.scheduler

    async def later(work: Callable[[], Any]) -> Any:
        await scheduler.sleep(seconds)
        return work()

    scheduler.thread = lambda work, name: scheduler.spawn(later(work), name)


async def doubtful(rig: Rig, count: int, **limits: Any) -> tuple[Crew, list[Receipt]]:
    tools = [
        rig.world.tool(
            f"pay{n}", ONCE, reach=(f"host:h{n}",), behaviour=Behaviour(fails="unknown"), verifier=rig.world.verifier()
        )
        for n in range(count)
    ]  # fmt: skip
    crew = await rig.own(Setup(tools=tools, limits=limits))
    return crew, [await crew.call(f"pay{n}", label="a") for n in range(count)]


@pytest.mark.parametrize(("each", "whole"), [(10, 15), (20, 15), (10, 4)])
def test_tr_116_tr_102_all_verifiers_of_a_look_share_its_time_and_what_is_not_finished_is_recorded(
    each: float, whole: float
) -> None:
    async def main(sim: Simulation) -> None:
        crew, receipts = await doubtful(Rig(sim), 9, inspect_seconds=each, inspect_resume_seconds=whole)
        slow_looks(crew, 3600)
        began = crew.session.scheduler.boot_ms()
        await crew.do(crew.actions.look())
        took_ms = crew.session.scheduler.boot_ms() - began
        assert took_ms <= whole * 1000 + 100
        looked = [crew.receipt(one.attempt_id).inspection or {} for one in receipts]
        assert [(one["state"], one["reason"]) for one in looked] == [("unknown", "verifier_timeout")] * 9
        assert len({one["id"] for one in looked}) == 9

    play(main)


def test_tr_116_a_quick_verifier_beside_slow_ones_is_heard() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew, receipts = await doubtful(rig, 3)
        scheduler: Any = crew.session.scheduler

        async def later(work: Callable[[], Any], seconds: float) -> Any:
            await scheduler.sleep(seconds)
            return work()

        slow = receipts[0].attempt_id
        scheduler.thread = lambda work, name: scheduler.spawn(
            later(work, 3600 if slow in name else 0.1), name
        )
        await crew.do(crew.actions.look())
        reasons = [(crew.receipt(one.attempt_id).inspection or {})["reason"] for one in receipts]
        assert reasons[0] == "verifier_timeout" and "verifier_timeout" not in reasons[1:]

    play(main)


def test_tr_116_a_look_that_timed_out_is_made_again_when_a_person_continues() -> None:
    async def main(sim: Simulation) -> None:
        crew, [receipt] = await doubtful(Rig(sim), 1)
        thread = crew.session.scheduler.thread
        slow_looks(crew, 3600)
        await crew.do(crew.actions.look())
        first = (crew.receipt(receipt.attempt_id).inspection or {})["id"]
        await crew.do(crew.actions.look())
        assert (crew.receipt(receipt.attempt_id).inspection or {})["id"] == first
        crew.session.scheduler.thread = thread  # type: ignore[method-assign]
        await crew.do(crew.actions.look(far=True))
        assert (crew.receipt(receipt.attempt_id).inspection or {})["reason"] != "verifier_timeout"

    play(main)


class Somebody:
    """A person who is there and is asked nothing."""

    async def permission(self, question: Any) -> Any:
        raise AssertionError

    async def question(self, question: Any) -> Any:
        raise AssertionError


@pytest.mark.parametrize(("attended", "waited_ms"), [(True, 1000), (False, 11_000)])
def test_tr_116_ux_50_a_slow_look_on_opening_holds_no_person_up_and_its_end_is_told(
    attended: bool, waited_ms: int
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew, [receipt] = await doubtful(rig, 1)
        slow_looks(crew, 3600)
        crew.controller.people.asker = Somebody() if attended else None
        began = crew.session.scheduler.boot_ms()
        await crew.do(crew.controller.open())
        assert crew.session.scheduler.boot_ms() - began < waited_ms
        assert (crew.receipt(receipt.attempt_id).inspection is None) is attended
        assert not crew.told("looked")
        await crew.session.scheduler.sleep(12)
        assert (crew.receipt(receipt.attempt_id).inspection or {})["reason"] == "verifier_timeout"
        assert len(crew.told("looked")) == int(attended)

    play(main)


def test_tr_127_words_are_not_held_up_by_a_look_that_still_runs() -> None:
    async def main(sim: Simulation) -> None:
        crew, [receipt] = await doubtful(Rig(sim), 1)
        slow_looks(crew, 3600)
        crew.controller.people.asker = Somebody()
        await crew.do(crew.controller.open())
        began = crew.session.scheduler.boot_ms()
        assert (await crew.turn("hello")).status == "completed"
        assert crew.session.scheduler.boot_ms() - began < 1000
        await crew.session.scheduler.sleep(12)
        assert crew.receipt(receipt.attempt_id).inspection is not None, (
            "its record needs a still open call only"
        )

    play(main)


def test_tr_116_close_ends_a_look_that_still_runs() -> None:
    async def main(sim: Simulation) -> None:
        crew, [receipt] = await doubtful(Rig(sim), 1)
        slow_looks(crew, 3600)
        crew.controller.people.asker = Somebody()
        await crew.do(crew.controller.open())
        began = crew.session.scheduler.boot_ms()
        await crew.do(crew.controller.close())
        assert crew.session.scheduler.boot_ms() - began < 1000
        assert crew.receipt(receipt.attempt_id).inspection is None

    play(main)


def test_tr_74_tr_116_stop_ends_the_look_of_a_continue_and_records_nothing_of_it() -> None:
    async def main(sim: Simulation) -> None:
        crew, [receipt] = await doubtful(Rig(sim), 1)
        slow_looks(crew, 3600)
        going = asyncio.ensure_future(crew.do(crew.controller.go_on()))
        await asyncio.sleep(1)
        began = crew.session.scheduler.boot_ms()
        await crew.controller.stop()
        end = await going
        assert end.status == "cancelled" and crew.session.scheduler.boot_ms() - began < 2000
        assert crew.receipt(receipt.attempt_id).inspection is None and not crew.model.asked

    play(main)


class Living(NoSupervision):
    """A supervised command that lives until it is killed."""

    def __init__(self, *, ends: bool = True) -> None:
        self.killed: list[str] = []
        self._ends = ends

    def judge(self, receipt: Receipt, *, epoch: int) -> Judged:
        return Judged(None, self.executor(receipt))

    def executor(self, receipt: Receipt) -> ExecutorState:
        return ExecutorState.ENDED if self.killed and self._ends else ExecutorState.ALIVE

    async def kill(self, receipt: Receipt) -> Mapping[str, Any]:
        self.killed.append(receipt.attempt_id)
        return {"gone": self._ends, "proven": self._ends, "how": "supervisor", "left": []}


async def living_read(rig: Rig, supervision: Living) -> Crew:
    """A new owner of a session whose dead one was running a read under supervision."""
    setup = Setup(tools=[rig.world.tool("look", READ, behaviour=Behaviour(seconds_before=3600))])
    first = await rig.own(setup)
    going = asyncio.ensure_future(first.batch(("look", {"label": "a"})))
    await asyncio.sleep(1)
    [receipt] = first.session.book
    await first.session.append(_process(receipt.attempt_id))
    first.process.kill()
    await going
    quick = Setup(tools=[rig.world.tool("look", READ)], steps=[{"text": "ok"}])
    heir = await rig.own(quick)
    heir.actions._supervision = supervision
    heir.actions.standing._supervision = supervision
    heir.actions.choices._supervision = supervision
    return heir


def _process(attempt_id: str) -> Draft:
    return Draft(Kind.PROCESS, {"attemptId": attempt_id, "process": {"pid": 7}})


@pytest.mark.parametrize("ends", [True, False])
def test_tr_116_a_read_whose_command_still_runs_is_stopped_before_it_is_read_again(ends: bool) -> None:
    async def main(sim: Simulation) -> None:
        rig, supervision = Rig(sim), Living(ends=ends)
        heir = await living_read(rig, supervision)
        [old] = heir.session.book.open()
        assert [one["attemptId"] for one in heir.controller.resume()["willRunAgain"]] == [old.attempt_id]
        assert not supervision.killed, "opening stops nothing"
        await heir.do(heir.controller.go_on())
        assert supervision.killed == [old.attempt_id]
        attempts = heir.session.book.attempts(old.call_id)
        states = [one.state for one in attempts]
        assert states == ([State.UNKNOWN, State.SUCCEEDED] if ends else [State.UNKNOWN])

    play(main)


def test_tr_116_tr_71_a_read_that_a_person_left_running_is_not_stopped() -> None:
    async def main(sim: Simulation) -> None:
        rig, supervision = Rig(sim), Living()
        heir = await living_read(rig, supervision)
        [old] = heir.session.book.open()
        left = _process(old.attempt_id)
        await heir.session.append(
            dataclasses.replace(left, payload={**left.payload, "process": {"left": {}}})
        )
        assert not heir.controller.resume()["willRunAgain"]
        await heir.do(heir.controller.go_on())
        assert not supervision.killed and len(heir.session.book.attempts(old.call_id)) == 1

    play(main)


def test_tr_116_a_retry_that_something_changed_since_it_was_shown_is_shown_again_first() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [rig.world.tool(name, READ, behaviour=Behaviour(seconds_before=3600)) for name in ("a", "b")]
        first = await rig.own(Setup(tools=tools))
        going = asyncio.ensure_future(first.batch(("a", {"label": "a"}), ("b", {"label": "b"})))
        await asyncio.sleep(1)
        first.process.kill()
        await going
        quick = [rig.world.tool(name, READ) for name in ("a", "b")]
        heir = await rig.own(Setup(tools=quick, steps=[{"text": "ok"}]))
        shown = heir.controller.resume()["willRunAgain"]
        assert len(shown) == 2
        await heir.press("inspect", shown[0]["attemptId"])
        assert (await heir.press("reject", shown[0]["attemptId"])).status == 200
        await heir.do(heir.controller.go_on())
        [told] = heir.told("will_run_again")
        assert [one["attemptId"] for one in told["calls"]] == [shown[1]["attemptId"]]

    play(main)


# --- policy ---------------------------------------------------------------------------------


def lost_once(rig: Rig, effect_class: EffectClass = ONCE, **declared: Any) -> Any:
    tool = rig.world.tool("pay", effect_class, reach=("host:h",), **declared)
    act, tries = tool.body, []

    async def body(live: Any, arguments: Any) -> Any:
        tries.append(live.attempt_id)
        if len(tries) == 1:
            raise OutcomeUnknown("the line went dead")
        return await act(live, arguments)  # type: ignore[misc]

    return dataclasses.replace(tool, body=body)


@pytest.mark.parametrize(
    ("switch", "named", "verified", "made"),
    [
        (True, "retry", True, 1),
        (False, "retry", True, 0),
        (True, "retry", False, 0),
        (True, "reject", True, 0),
        (True, None, True, 0),
    ],
)
def test_tr_122_a_policy_retries_a_named_tool_only_with_the_switch_and_on_proof_of_that_moment(
    switch: bool, named: str | None, verified: bool, made: int
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        declared = {"verifier": rig.world.verifier()} if verified else {}
        policy = {"retry_enabled": switch, "named": {} if named is None else {"pay": named}}
        crew = await rig.own(Setup(tools=[lost_once(rig, **declared)], policy=policy, steps=[{"text": "ok"}]))
        crew.model.steps.insert(0, {"text": "placeholder"})
        old = await crew.call("pay", label="a")
        assert old.state is State.UNKNOWN and not rig.world.effects
        await crew.turn()
        assert rig.world.count("a") == made
        now = crew.receipt(old.attempt_id)
        assert (now.superseded_by is not None) is bool(made)
        if made:
            new = crew.receipt(now.superseded_by or "")
            assert (new.state, new.idempotency_key) == (State.SUCCEEDED, old.idempotency_key)
            assert new.extra["retriedBy"]["channel"] == new.extra["retriedBy"]["letInBy"] == "policy"
            assert (now.inspection or {})["state"] == "absent_fenced", "proved anew at that moment"

    play(main)


def test_tr_122_tr_135_a_policy_does_not_retry_what_took_effect_after_all() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        lost, sees = Behaviour(fails="unknown"), rig.world.verifier()
        tool = rig.world.tool("pay", ONCE, reach=("host:h",), behaviour=lost, verifier=sees)
        policy = {"retry_enabled": True, "named": {"pay": "retry"}}
        crew = await rig.own(Setup(tools=[tool], policy=policy, steps=[{"text": "ok"}]))
        crew.model.steps.insert(0, {"text": "placeholder"})
        old = await crew.call("pay", label="a")
        bodies = len(rig.world.bodies)
        await crew.turn()
        assert len(rig.world.bodies) == bodies and crew.receipt(old.attempt_id).superseded_by is None
        assert crew.receipt(old.attempt_id).inspection is not None

    play(main)


def test_tr_129_a_retry_that_a_person_asks_for_names_who_asked() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tool = lost_once(rig, verifier=rig.world.verifier())
        crew = await rig.own(Setup(tools=[tool], policy={"retry_enabled": True}))
        old = await crew.call("pay", label="a")
        await crew.press("inspect", old.attempt_id)
        await crew.press("retry", old.attempt_id)
        new = crew.receipt(crew.receipt(old.attempt_id).superseded_by or "")
        assert (new.extra["retriedBy"]["who"], new.extra["retriedBy"]["channel"]) == ("lin", "python")

    play(main)


async def died_in_a_read(rig: Rig, behaviour: Behaviour) -> Crew:
    """An owner whose turn reads, and that is killed while it does."""
    tools = [rig.world.tool("look", READ, behaviour=behaviour)]
    crew = await rig.own(Setup(tools=tools, steps=[{"calls": [{"name": "look", "args": {"label": "a"}}]}]))
    going = asyncio.ensure_future(crew.turn())
    await asyncio.sleep(1)
    assert crew.process is not None
    crew.process.kill()
    await going
    return crew


def test_tr_179_tr_116_a_turn_is_recovering_while_its_calls_are_run_again_and_an_ordinary_one_goes_on() -> (
    None
):
    async def main(sim: Simulation) -> None:
        rig, slow = Rig(sim), Behaviour(seconds_before=9)
        await died_in_a_read(rig, slow)
        heir = await rig.own(Setup(tools=[rig.world.tool("look", READ)], steps=[{"text": "done"}]))
        [turn_id] = {one.payload["turnId"] for one in await heir.entries(Kind.TURN)}
        before = heir.session.newest_turn.status
        end = await heir.do(heir.controller.go_on())
        moves = [(one.payload["turnId"], one.payload["status"]) for one in await heir.entries(Kind.TURN)]
        assert before == "interrupted" and end.status == "completed" and end.turn_id != turn_id
        assert [status for turn, status in moves if turn == turn_id] == [
            "queued", "running", "interrupted", "recovering", "interrupted",
        ]  # fmt: skip
        assert [status for turn, status in moves if turn == end.turn_id] == ["queued", "running", "completed"]
        kinds = [one.payload.get("status") or one.kind for one in await heir.entries()]
        assert kinds.index("recovering") < len(kinds) - kinds[::-1].index(Kind.STARTED) - 1, (
            "before the retry"
        )
        resumed = [one.payload.get("resumes") for one in await heir.entries(Kind.TURN)]
        assert {"turnId": turn_id, "count": 1} in resumed

    play(main)


def test_tr_56_ux_161_a_death_is_counted_however_much_was_written_since_and_names_its_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deaths, "WINDOW", 3)

    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        first = await died_in_a_read(rig, Behaviour(seconds_before=9))
        heir = await rig.own(Setup(tools=[rig.world.tool("look", READ)], steps=[{"text": "done"}] * 3))
        for _ in range(3):
            await heir.turn()
        died_in = next(iter(first.session.book)).attempt_id
        (told,) = await deaths.deaths_since(heir.session, 0)
        assert told.attempts == (died_in,)
        assert heir.controller.resume()["deaths"] == [told.to_json()]
        assert heir.controller.resume()["ownerDeaths"] == 1
        later = told.found_at_ms + 1
        assert await deaths.deaths_since(heir.session, later) == ()

    play(main)


def test_tr_179_tr_55_an_owner_that_dies_in_a_retry_died_in_the_recovering_turn_and_is_counted() -> None:
    async def main(sim: Simulation) -> None:
        rig, slow = Rig(sim), Behaviour(seconds_before=9)
        await died_in_a_read(rig, slow)
        second = await rig.own(Setup(tools=[rig.world.tool("look", READ, behaviour=slow)]))
        assert len(second.actions.deaths) == 1
        going = asyncio.ensure_future(second.do(second.controller.go_on()))
        await asyncio.sleep(1)
        assert second.process is not None
        second.process.kill()
        await going
        third = await rig.own(Setup(tools=[rig.world.tool("look", READ)]))
        statuses = [one.payload["status"] for one in await third.entries(Kind.TURN)]
        assert statuses == ["queued", "running", "interrupted", "recovering", "interrupted"]
        assert len(third.actions.deaths) == 2, "the owner that died in it is counted (UX-161)"
        handed = [one.payload["attempts"] for one in await third.entries(Kind.HAND_OFF)]
        assert len(handed) == 2 and handed[1] == [one.attempt_id for one in third.session.book][1:]

    play(main)


def test_tr_179_a_turn_with_nothing_to_run_again_stays_as_it_is() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        first = await rig.own(Setup(model=PlayedModel([{"text": "late"}], seconds=60)))
        going = asyncio.ensure_future(first.turn())
        await asyncio.sleep(1)
        assert first.process is not None
        first.process.kill()
        await going
        heir = await rig.own(Setup(steps=[{"text": "done"}]))
        assert (await heir.do(heir.controller.go_on())).status == "completed"
        assert "recovering" not in [one.payload["status"] for one in await heir.entries(Kind.TURN)]

    play(main)


def test_tr_179_tr_182_the_end_of_a_recovering_that_could_not_be_written_goes_before_the_next_turn() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        await died_in_a_read(rig, Behaviour(seconds_before=9))
        heir = await rig.own(Setup(tools=[rig.world.tool("look", READ)], steps=[{"text": "done"}] * 2))
        settled: list[bool] = []

        def full(kinds: Any) -> LedgerError | None:
            settled.append(Kind.CLOSED in kinds)
            return LedgerError("full") if Kind.TURN in kinds and any(settled) else None

        rig.store.fault = full
        with pytest.raises(LedgerError):
            await heir.do(heir.controller.go_on())
        rig.store.fault = lambda kinds: None
        assert heir.session.newest_turn.status == "recovering"
        assert (await heir.do(heir.controller.go_on())).status == "completed"
        moves = [one.payload["status"] for one in await heir.entries(Kind.TURN)]
        assert moves[3:] == ["recovering", "interrupted", "queued", "running", "completed"]
        assert [
            one.payload["resumes"]["count"]
            for one in await heir.entries(Kind.TURN)
            if "resumes" in one.payload
        ] == [1]

    play(main)
