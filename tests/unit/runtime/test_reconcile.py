"""What a new owner finds and writes back once, and what it carries out only on a resume."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.effects import Effect, judged_effect
from surefoot.core.model import Draft, EffectClass, Kind, State
from surefoot.errors import LedgerError, SessionHeld, StaleEpoch
from surefoot.runtime.people import Answer
from surefoot.runtime.tools import LiveAttempt, Outcome, Tool
from surefoot.testing.faults import DyingLedger
from surefoot.testing.rig import Crew, Rig, Setup, on_disk
from surefoot.testing.simulation import Simulation, simulate
from surefoot.testing.world import SCHEMA, Behaviour

READ, IDEM, ONCE, UNDECIDED = (
    EffectClass.READ_ONLY,
    EffectClass.IDEMPOTENT_WRITE,
    EffectClass.NON_IDEMPOTENT,
    EffectClass.UNKNOWN,
)
LONG = Behaviour(seconds_after=3600)
STEPS = [{"calls": [{"name": "act", "args": {"label": "a"}}, {"name": "act", "args": {"label": "b"}}]}]


def play(main: Callable[[Simulation], Coroutine[Any, Any, Any]], seed: int = 1) -> Any:
    return simulate(seed, main)


async def killed_in_the_body(rig: Rig, effect_class: EffectClass, **declared: Any) -> Crew:
    """An owner that dies while its first call runs and its second one waits."""
    long = Behaviour(seconds_before=3600) if effect_class is READ else LONG
    tools = [rig.world.tool("act", effect_class, behaviour=long, **declared)]
    crew = await rig.own(Setup(tools=tools, steps=STEPS))
    turn = asyncio.ensure_future(crew.turn())
    await asyncio.sleep(10)
    assert crew.process is not None
    crew.process.kill()
    await turn
    return crew


@pytest.mark.promise("recovery:no-self-start")
@pytest.mark.parametrize("effect_class", list(EffectClass))
def test_tr_48_tr_49_tr_50_opening_judges_and_runs_nothing(effect_class: EffectClass) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        await killed_in_the_body(rig, effect_class)
        bodies = list(rig.world.bodies)
        heir = await rig.own(Setup(tools=[rig.world.tool("act", effect_class)]))
        first, second = list(heir.session.book)
        assert (first.state, first.reason) == (State.UNKNOWN, "owner_died")
        if effect_class is not READ:  # neighbouring readers run side by side
            assert (second.state, second.reason) == (State.NOT_STARTED, "owner_died_before_start")
        await asyncio.sleep(100)
        assert rig.world.bodies == bodies and heir.model.asked == []

    play(main)


def test_tr_52_reconciling_again_writes_nothing() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        await killed_in_the_body(rig, ONCE)
        heir = await rig.own(Setup())
        before = len(await heir.entries())
        assert (await heir.do(heir.actions.recover())).judged == ()
        assert len(await heir.entries()) == before

    play(main)


@pytest.mark.parametrize("at", range(1, 16))
def test_tr_52_killed_at_any_point_and_repeated_the_plan_is_the_same(at: int) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        await killed_in_the_body(rig, ONCE)
        await rig.try_own(Setup(), wrap=lambda ledger, process: DyingLedger(ledger, at, process.die))
        for process in sim.processes:
            process.kill()
        heir = await rig.own(Setup())
        assert [one.state for one in heir.session.book] == [State.UNKNOWN, State.NOT_STARTED]
        kinds = [one.kind for one in await heir.entries()]
        assert kinds.count(Kind.CLOSED) == kinds.count(Kind.NOT_STARTED) == 1
        assert kinds.count(Kind.HAND_OFF) == 1

    play(main)


@pytest.mark.parametrize(("calls", "silent"), [([], True), (STEPS, False)])
def test_tr_55_the_turn_is_interrupted_and_one_hand_off_lists_its_attempts(calls: Any, silent: bool) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [rig.world.tool("act", ONCE, behaviour=LONG)]
        from surefoot.testing.played import PlayedModel

        model = PlayedModel(calls, seconds=0 if calls else 3600)
        crew = await rig.own(Setup(tools=tools, model=model))
        turn = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(10)
        assert crew.process is not None
        crew.process.kill()
        await turn
        heir = await rig.own(Setup(tools=tools))
        last = (await heir.entries(Kind.TURN))[-1].payload
        assert (last["status"], last["cause"], last["silent"]) == ("interrupted", "runtime_restart", silent)
        handed = [one.payload for one in await heir.entries(Kind.HAND_OFF)]
        assert len(handed) == 1 and handed[0]["silent"] is silent
        assert len(set(handed[0]["attempts"])) == len(heir.session.book)

    play(main)


def test_tr_180_a_recorded_cancel_is_not_lost_to_the_crash_behind_it() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        slow = Tool("act", "", SCHEMA, sync_body=lambda live, given: "x", effect=Effect(ONCE, ("*",)))
        crew = await rig.own(Setup(tools=[slow], steps=STEPS))
        await crew.session.append(Draft(Kind.TURN, {"turnId": "trn_x", "status": "queued"}))
        await crew.session.append(Draft(Kind.TURN, {"turnId": "trn_x", "status": "running"}))
        await crew.session.append(Draft(Kind.TURN, {"turnId": "trn_x", "status": "cancelling"}))
        assert crew.process is not None
        crew.process.kill()
        heir = await rig.own(Setup())
        assert (await heir.entries(Kind.TURN))[-1].payload["status"] == "cancelled"

    play(main)


@pytest.mark.promise("recovery:never-guess")
def test_tr_208_death_ends_an_executor_that_outlived_its_limit_and_deny_is_possible_again() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)

        async def stubborn(live: LiveAttempt, arguments: Any) -> str:
            for _ in range(100):
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    continue
            return "at last"

        tool = Tool("act", "", SCHEMA, body=stubborn, effect=Effect(ONCE, ("*",)), time_limit_seconds=1)
        crew = await rig.own(Setup(tools=[tool]))
        receipt = await crew.call("act", label="a")
        assert receipt.executor is not None and receipt.executor["state"] == "alive"
        assert crew.process is not None
        crew.process.kill()
        heir = await rig.own(Setup(tools=[tool]))
        assert heir.actions.standing.executor(heir.receipt(receipt.attempt_id)) == "ended"
        await heir.press("inspect", receipt.attempt_id)
        assert (await heir.press("deny", receipt.attempt_id)).status == 200

    play(main)


@pytest.mark.parametrize("also", [False, True])
def test_tr_175_tr_208_after_a_take_over_the_old_body_counts_as_alive(also: bool) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [rig.world.tool("act", IDEM, behaviour=LONG)]
        crew = await rig.own(Setup(tools=tools, steps=STEPS))
        turn = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(1)
        with pytest.raises(SessionHeld):
            await rig.own(Setup(tools=tools))
        # With `also` the one who took over dies before it judged anything.
        heir = await rig.own(Setup(tools=tools), take_over=True, opened=not also)
        if also:
            assert heir.process is not None
            heir.process.kill()
            heir = await rig.own(Setup(tools=tools))
        first = next(iter(heir.session.book))
        assert (first.state, heir.actions.standing.executor(first)) == (State.UNKNOWN, "alive")
        assert not [one for one in heir.actions.standing.plan() if one.runs_again]
        await heir.turn("go on")
        assert len(rig.world.bodies) == 1, "nothing runs beside its older self"
        with pytest.raises(StaleEpoch):
            await asyncio.wait_for(turn, 7200)  # the old owner's late close is refused (TR-176)
        assert heir.receipt(first.attempt_id).state is State.UNKNOWN

    play(main)


def test_tr_208_a_tool_that_starts_processes_is_not_proven_ended_by_a_death() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        await killed_in_the_body(rig, IDEM, starts_processes=True)
        heir = await rig.own(Setup(tools=[rig.world.tool("act", IDEM, starts_processes=True)]))
        assert heir.actions.standing.executor(next(iter(heir.session.book))) == "not_proven"
        await heir.turn("go on")
        assert len(rig.world.bodies) == 1

    play(main)


def test_tr_53_a_ledger_that_takes_nothing_opens_for_reading_and_owes_the_judgement() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        await killed_in_the_body(rig, ONCE)
        full = {"now": True}
        rig.store.fault = lambda kinds: (
            LedgerError("the disk is full") if full["now"] and Kind.SESSION_OWNED not in kinds else None
        )
        tools = [rig.world.tool("act", ONCE)]
        heir = await rig.own(Setup(tools=tools, steps=STEPS))
        first = next(iter(heir.session.book))
        assert first.state is State.STARTED and await heir.entries(), "it can be read"
        with pytest.raises(LedgerError):
            await heir.turn("go on")
        assert heir.model.asked == [] and len(rig.world.bodies) == 1
        assert (await heir.press("release", first.attempt_id)).body["code"] == "storage_failed"
        full["now"] = False
        await heir.turn("go on")
        assert heir.receipt(first.attempt_id).state is State.UNKNOWN
        assert len(rig.world.bodies) == 1, "the fence held"

    play(main)


def test_tr_196_while_the_tail_is_lost_no_decision_is_carried_out() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        await killed_in_the_body(rig, READ)
        rig.store.lose_tail("ses_01hf7z0000000000000000000a", 1)
        tools = [rig.world.tool("act", READ)]
        heir = await rig.own(Setup(tools=tools))
        assert any(one.tool == "ledger" for one in heir.session.book.open())
        bodies = len(rig.world.bodies)
        await heir.turn("go on")
        assert len(rig.world.bodies) == bodies
        for receipt in heir.session.book.open():
            if receipt.tool == "ledger":
                assert (await heir.press("release", receipt.attempt_id)).status == 200
        await heir.turn("go on")

    play(main)


# --- resuming ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("effect_class", "again"), [(READ, True), (IDEM, True), (ONCE, False), (UNDECIDED, False)]
)
def test_tr_115_tr_117_a_resume_runs_the_safe_calls_again_under_the_same_key(
    effect_class: EffectClass, again: bool
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        await killed_in_the_body(rig, effect_class)
        tools = [rig.world.tool("act", effect_class)]
        heir = await rig.own(Setup(tools=tools))
        old = next(iter(heir.session.book))
        before = len(rig.world.bodies)
        await heir.turn("go on")
        assert (len(rig.world.bodies) > before) is again
        if again:
            attempts = heir.session.book.attempts(old.call_id)
            new = attempts[-1]
            assert new.supersedes == old.attempt_id and new.idempotency_key == old.idempotency_key
            assert attempts[0].superseded_by == new.attempt_id and new.state is State.SUCCEEDED
            assert not heir.session.book.is_open(old.attempt_id)
        count = len(rig.world.bodies)
        await heir.turn("and again")
        assert len(rig.world.bodies) == count

    play(main)


def test_tr_115_a_write_that_a_person_stopped_is_not_run_again_by_the_next_words() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(Setup(tools=[rig.world.tool("act", IDEM, behaviour=LONG)], steps=STEPS))
        turn = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(1)
        await crew.do(crew.controller.stop())
        await turn
        await crew.turn("something else")
        assert len(rig.world.bodies) == 1

    play(main)


def test_tr_56_a_tool_that_kills_its_own_runtime_is_run_again_at_most_once() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        await killed_in_the_body(rig, IDEM)
        for _ in range(3):
            heir = await rig.own(Setup(tools=[rig.world.tool("act", IDEM, behaviour=LONG)]))
            turn = asyncio.ensure_future(heir.turn("go on"))
            await asyncio.sleep(10)
            assert heir.process is not None
            heir.process.kill()
            await turn
        assert len(rig.world.bodies) == 2
        last = await rig.own(Setup(tools=[rig.world.tool("act", IDEM)]))
        assert "ASK_USER" in {one.decided.decision for one in last.actions.standing.plan()}

    play(main)


def test_tr_118_with_resume_retry_none_nothing_is_run_again() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        await killed_in_the_body(rig, READ)
        heir = await rig.own(Setup(tools=[rig.world.tool("act", READ)], policy={"resume_retry": "none"}))
        before = len(rig.world.bodies)
        shown = heir.actions.snapshot()["calls"]
        assert {call["decision"] for call in shown} == {"RETRY"}, "the decision is shown"
        resumed = heir.controller.resume()
        assert resumed["willRunAgain"] == [], "and nobody is told that it will run"
        assert resumed["open"] == len(shown)
        await heir.turn("go on")
        assert len(rig.world.bodies) == before

    play(main)


def test_ec_7_todays_stricter_declaration_counts_for_an_old_call_and_a_laxer_one_does_not() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        await killed_in_the_body(rig, IDEM, reach=("host:a",))
        stricter = [
            rig.world.tool("act", ONCE, reach=("host:b",)),
            rig.world.tool("b", ONCE, reach=("host:b",)),
        ]
        heir = await rig.own(Setup(tools=stricter))
        old = next(iter(heir.session.book))
        assert old.stricter_now == {"class": "NON_IDEMPOTENT", "reach": ["host:a", "host:b"]}
        assert [one.decided.decision for one in heir.actions.standing.plan()] == ["ASK_USER"]
        assert (await heir.call("b", label="x")).reason == "fenced"
        await heir.turn("go on")
        assert len(rig.world.bodies) == 1
        assert heir.process is not None
        heir.process.kill()
        laxer = await rig.own(Setup(tools=[rig.world.tool("act", READ)]))
        assert judged_effect(next(iter(laxer.session.book))).effect_class is IDEM

    play(main)


# --- questions ------------------------------------------------------------------------------------


class Silent:
    """A person who never answers, or answers at once."""

    def __init__(self, words: str | None) -> None:
        self.words, self.asked = words, []  # type: ignore[var-annotated]

    async def permission(self, question: Any) -> Any:
        raise AssertionError

    async def question(self, question: Any) -> Answer:
        self.asked.append(question.question_id)
        if self.words is None:
            await asyncio.sleep(36_000)
        return Answer("answered", self.words or "", "lin")


def asking_tool(after_seconds: float = 0) -> Tool:
    async def body(live: LiveAttempt, arguments: Any) -> Outcome | str:
        answer = await live.services["questions"].ask(live, arguments["label"], ())
        await asyncio.sleep(after_seconds)
        return Outcome(answer.text) if answer.verdict == "answered" else Outcome(answer.verdict, State.FAILED)

    return Tool("ask", "", SCHEMA, body=body, effect=Effect(READ, interaction=True))


ASK = [{"calls": [{"name": "ask", "args": {"label": "really?"}}]}]


def test_tr_166_tr_169_an_unanswered_question_is_asked_again_under_the_same_id() -> None:
    async def main(sim: Simulation) -> None:
        rig, gone, there = Rig(sim), Silent(None), Silent("yes")
        crew = await rig.own(Setup(tools=[asking_tool()], asker=gone, steps=ASK))
        turn = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(10)
        asked = await crew.entries(Kind.QUESTION)
        assert [one.payload["questionId"] for one in asked] == gone.asked, "durable before it is shown"
        assert (await crew.entries(Kind.TURN))[-1].payload["status"] == "waiting_user"
        assert crew.process is not None
        crew.process.kill()
        await turn
        heir = await rig.own(Setup(tools=[asking_tool()], asker=there, steps=ASK))
        await heir.turn("go on")
        assert there.asked == gone.asked
        assert [one.payload["verdict"] for one in await heir.entries(Kind.ANSWER)] == ["answered"]

    play(main)


def test_tr_169_a_question_whose_answer_is_stored_is_not_asked_again() -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Silent("yes, do")
        crew = await rig.own(Setup(tools=[asking_tool(3600)], asker=person, steps=ASK))
        turn = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(10)
        assert crew.process is not None
        crew.process.kill()
        await turn
        heir = await rig.own(Setup(tools=[asking_tool()], asker=person, steps=ASK))
        receipt = next(iter(heir.session.book))
        assert receipt.state is State.SUCCEEDED and "yes, do" in receipt.result["text"]  # type: ignore[index]
        await heir.turn("go on")
        assert len(person.asked) == 1

    play(main)


def test_tr_168_tr_170_stop_withdraws_every_question_and_none_is_consent() -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Silent(None)
        steps = [{"calls": ASK[0]["calls"] * 3}]
        crew = await rig.own(Setup(tools=[asking_tool()], asker=person, steps=steps))
        turn = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(10)
        assert len(set(person.asked)) == 3, "several are pending side by side"
        await crew.do(crew.controller.stop())
        await turn
        assert [one.payload["verdict"] for one in await crew.entries(Kind.ANSWER)] == ["withdrawn"] * 3
        assert {one.state for one in crew.session.book} == {State.FAILED}

    play(main)


@pytest.mark.parametrize(("words", "verdict"), [("  ", "empty"), (None, "unattended")])
def test_tr_168_an_empty_answer_or_nobody_is_never_consent(words: str | None, verdict: str) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        asker = None if words is None else Silent(words)
        crew = await rig.own(Setup(tools=[asking_tool()], asker=asker, steps=ASK))
        await crew.turn()
        assert [one.payload["verdict"] for one in await crew.entries(Kind.ANSWER)] == [verdict]
        assert [one.state for one in crew.session.book] == [State.FAILED]

    play(main)


# --- a real ledger -----------------------------------------------------------------------------------


async def test_tr_178_a_session_in_a_real_folder_is_owned_given_back_and_owned_again(tmp_path: Path) -> None:
    async def body(live: LiveAttempt, arguments: Any) -> str:
        return "done"

    tool = Tool("act", "", SCHEMA, body=body, effect=Effect(ONCE, ("*",)))
    async with on_disk(tmp_path, Setup(tools=[tool])) as crew:
        assert (await crew.call("act", label="a")).state is State.SUCCEEDED
        with pytest.raises(SessionHeld):
            async with on_disk(tmp_path, Setup(tools=[tool]), new=False):
                pass
    async with on_disk(tmp_path, Setup(tools=[tool]), new=False) as crew:
        assert [one.state for one in crew.session.book] == [State.SUCCEEDED] and crew.session.epoch == 2


def test_tr_51_an_imported_call_without_a_result_is_unknown_and_no_guess_is_made() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [rig.world.tool("act", ONCE)]
        crew = await rig.own(Setup(tools=tools))
        own, foreign = ({"callId": f"cal_{n}", "attemptId": f"att_{n}", "askedName": "act"} for n in (1, 2))
        calls = [{**own, "position": 0}, {**foreign, "position": 1, "imported": True}]
        await crew.session.append(Draft(Kind.ASSISTANT, {"turnId": "trn_1", "text": "", "calls": calls}))
        assert crew.process is not None
        crew.process.kill()
        heir = await rig.own(Setup(tools=tools))
        first, second = list(heir.session.book)
        assert (first.state, first.reason) == (State.NOT_STARTED, "owner_died_before_start")
        assert (second.state, second.reason) == (State.UNKNOWN, "no_evidence")
        assert [one.attempt_id for one in heir.session.book.open()] == ["att_2"]
        assert not rig.world.bodies

    play(main)
