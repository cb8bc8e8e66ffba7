"""Permissions and questions: durable, bound to their arguments, and never consent by silence."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.history import ResultGiven
from surefoot.core.model import Draft, EffectClass, Kind, State
from surefoot.core.results import result_of
from surefoot.errors import LedgerError
from surefoot.runtime.people import PermissionAnswer, PermissionQuestion
from surefoot.runtime.tools import Place
from surefoot.testing.rig import Rig, Setup
from surefoot.testing.simulation import Simulation, simulate

ONCE = EffectClass.NON_IDEMPOTENT


def play(main: Callable[[Simulation], Coroutine[Any, Any, Any]], seed: int = 1) -> Any:
    return simulate(seed, main)


class Person:
    def __init__(self, verdict: str, scope: str = "once", seconds: float = 0) -> None:
        self.verdict, self.scope, self.seconds = verdict, scope, seconds
        self.asked: list[PermissionQuestion] = []

    async def permission(self, question: PermissionQuestion) -> PermissionAnswer:
        self.asked.append(question)
        await asyncio.sleep(self.seconds)
        return PermissionAnswer(self.verdict, self.scope, "lin")

    async def question(self, question: Any) -> Any:
        raise AssertionError


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        ("approved", None),
        ("denied", "permission_denied"),
        ("expired", "approval_expired"),
        ("withdrawn", "approval_expired"),
    ],
)
def test_tr_171_ux_42_every_verdict_is_durable_and_told_and_only_approved_lets_pass(
    verdict: str, reason: str | None
) -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person(verdict)
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)], asker=person, ask=["pay"]))
        receipt = await crew.call("pay", label="a")
        assert receipt.reason == reason and bool(rig.world.bodies) is (reason is None)
        approval = (await crew.entries(Kind.APPROVAL))[0].payload
        assert (approval["verdict"], approval["by"]) == (verdict, "lin")
        assert approval["argumentDigest"] == receipt.argument_digest
        if reason is None:
            assert (receipt.approval or {})["argumentDigest"] == receipt.argument_digest, "consumed in D6"
        elif reason == "approval_expired":
            assert result_of(receipt).text.endswith(f"Reason: {verdict}"), "never anything vaguer"

    play(main)


def test_tr_171_an_approval_is_used_once() -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person("approved")
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)], asker=person, ask=["pay"]))
        await crew.call("pay", label="a")
        await crew.call("pay", label="a")
        assert len(person.asked) == 2

    play(main)


def test_tr_19_an_answer_that_cannot_be_written_allows_nothing() -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person("approved")
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)], asker=person, ask=["pay"]))
        rig.store.fault = lambda kinds: LedgerError("full") if Kind.APPROVAL in kinds else None
        receipt = await crew.call("pay", label="a")
        assert (receipt.state, receipt.reason) == (State.NOT_STARTED, "receipt_not_durable")
        assert not rig.world.bodies

    play(main)


def test_tr_168_stop_during_a_permission_question_withdraws_it_and_nothing_starts() -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person("approved", seconds=3600)
        steps = [{"calls": [{"name": "pay", "args": {"label": "a"}}]}]
        crew = await rig.own(
            Setup(tools=[rig.world.tool("pay", ONCE)], asker=person, ask=["pay"], steps=steps)
        )
        turn = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(10)
        assert (await crew.entries(Kind.TURN))[-1].payload["status"] == "waiting_user"
        await crew.do(crew.controller.stop())
        end = await turn
        assert end.status == "cancelled" and not rig.world.bodies
        assert [one.state for one in crew.session.book] == [State.NOT_STARTED]
        assert [one.payload["verdict"] for one in await crew.entries(Kind.APPROVAL)] == ["withdrawn"]

    play(main)


def test_tr_120_where_nobody_is_attached_what_must_be_asked_is_denied() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)], ask=["pay"]))
        receipt = await crew.call("pay", label="a")
        assert receipt.reason == "permission_denied" and not rig.world.bodies
        assert crew.controller.people.denials[0]["by"] == "nobody"

    play(main)


def test_ux_43_the_model_is_told_that_nobody_could_be_asked_and_not_that_somebody_refused() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)], ask=["pay"]))
        receipt = await crew.call("pay", label="a")
        text = result_of(receipt).text
        assert "did not run: nobody to ask" in text and "not allowed" not in text
        (denial,) = crew.controller.people.denials
        assert (denial["message"], denial["rule"]) == ("did not run: nobody to ask", "pay")

    play(main)


def asking(rig: Rig, person: Person | None) -> Setup:
    """An owner whose model asks for one call that a person must allow."""
    step = {"calls": [{"name": "pay", "args": {"label": "a"}}]}
    return Setup(tools=[rig.world.tool("pay", ONCE)], asker=person, ask=["pay"], steps=[step])


async def died_while_asking(rig: Rig) -> Any:
    """The permission question an owner was showing when it was killed."""
    first = await rig.own(asking(rig, Person("approved", seconds=3600)))
    going = asyncio.ensure_future(first.turn())
    await asyncio.sleep(5)
    [question] = await first.entries(Kind.QUESTION)
    first.process.kill()
    await going
    return question.payload


@pytest.mark.parametrize("again", ["go_on", "words"])
@pytest.mark.parametrize(
    ("verdict", "reason"),
    [("approved", None), ("denied", "permission_denied"), ("expired", "approval_expired")],
)
def test_ux_42_tr_171_a_permission_asked_for_when_the_owner_died_is_shown_again_under_its_id(
    verdict: str, reason: str | None, again: str
) -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person(verdict)
        before = await died_while_asking(rig)
        second = await rig.own(asking(rig, person))
        [old] = second.session.book
        assert (old.state, old.reason, old.approval) == (State.NOT_STARTED, "owner_died_before_start", None)
        assert not person.asked and not rig.world.bodies, "opening asks nobody and runs nothing"
        await second.do(second.controller.go_on() if again == "go_on" else second.controller.submit("and?"))
        assert [one.argument_digest for one in person.asked] == [before["argumentDigest"]]
        questions = [one.payload for one in await second.entries(Kind.QUESTION)]
        assert {one["questionId"] for one in questions} == {before["questionId"]} and len(questions) == 2
        attempts = second.session.book.attempts(old.call_id)
        assert [one.reason for one in attempts] == ["owner_died_before_start", reason]
        assert rig.world.count("a") == (1 if reason is None else 0)
        told = [one.text for one in second.model.asked[0] if isinstance(one, ResultGiven)]
        assert told == [result_of(attempts[-1], attempts).text]
        verdicts = [one.payload["verdict"] for one in await second.entries(Kind.APPROVAL)]
        assert verdicts == [verdict] and not second.controller.resume()["willAskAgain"]

    play(main)


class Waits:
    """A hook that never comes back: the yes is durable, and the start of the call is not."""

    async def before(self, looked: Any) -> None:
        await asyncio.sleep(3600)

    async def after(self, receipt: Any) -> None:
        raise AssertionError


async def died_before_the_start(rig: Rig, setup: Setup, *, stopped: bool = False) -> None:
    """An owner is killed between the yes and the start of the call."""
    first = await rig.own(dataclasses.replace(setup, hooks=[Waits()]))
    work = first.turn() if not first.session.position else first.do(first.controller.go_on())
    going = asyncio.ensure_future(work)
    await asyncio.sleep(5)
    if stopped:
        turn_id = (await first.entries(Kind.TURN))[-1].payload["turnId"]
        await first.session.append(Draft(Kind.TURN, {"turnId": turn_id, "status": "cancelling"}))
    first.process.kill()
    await going
    assert [one.payload["verdict"] for one in await first.entries(Kind.APPROVAL)] == ["approved"]
    assert not await first.entries(Kind.STARTED) and not rig.world.bodies


@pytest.mark.parametrize("somebody", [True, False])
@pytest.mark.parametrize("again", ["go_on", "words"])
def test_tr_171_case_e14_a_yes_whose_owner_died_before_the_start_is_good_once_and_asked_about_no_more(
    somebody: bool, again: str
) -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person("denied")
        await died_before_the_start(rig, asking(rig, Person("approved")))
        setup = asking(rig, person if somebody else None)
        second = await rig.own(dataclasses.replace(setup, steps=[setup.steps[0], {"text": "done"}]))
        await second.do(second.session.history())
        [old] = second.session.book
        assert (old.reason, (old.approval or {})["verdict"]) == ("owner_died_before_start", "approved")
        named = second.controller.resume()
        assert [one["tool"] for one in named["willRunApproved"]] == ["pay"] and not named["willAskAgain"]
        assert not rig.world.bodies, "opening runs nothing"
        await second.do(second.controller.go_on() if again == "go_on" else second.controller.submit("and?"))
        attempts = second.session.book.attempts(old.call_id)
        assert [one.state for one in attempts] == [State.NOT_STARTED, State.SUCCEEDED]
        assert attempts[-1].approval == old.approval, "the yes is consumed by the start"
        assert second.controller.resume()["willRunApproved"] == []
        # The same asked for once more is another call, and the yes is spent.
        newest = await second.call("pay", label="a")
        assert (newest.reason, len(person.asked)) == ("permission_denied", int(somebody))
        assert rig.world.count("a") == 1

    play(main)


def test_tr_171_a_yes_survives_every_death_before_its_start_and_is_still_used_once() -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person("denied")
        await died_before_the_start(rig, asking(rig, Person("approved")))
        await died_before_the_start(rig, asking(rig, person))
        assert not person.asked
        third = await rig.own(asking(rig, person))
        await third.do(third.controller.go_on())
        assert rig.world.count("a") == 1 and third.controller.resume()["willRunApproved"] == []

    play(main)


@pytest.mark.parametrize("changed", ["reach", "directory", "class"])
def test_tr_171_ux_41_a_yes_to_what_has_changed_since_is_asked_again(changed: str) -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person("denied")
        await died_before_the_start(rig, asking(rig, Person("approved")))
        setup = asking(rig, person)
        if changed == "directory":
            setup = dataclasses.replace(setup, place=Place(Path("/elsewhere")))
        else:
            effect_class = EffectClass.UNKNOWN if changed == "class" else ONCE
            reach = ("other:x",) if changed == "reach" else ("*",)
            setup = dataclasses.replace(setup, tools=[rig.world.tool("pay", effect_class, reach=reach)])
        second = await rig.own(setup)
        await second.do(second.controller.go_on())
        assert len(person.asked) >= 1 and not rig.world.bodies

    play(main)


def test_tr_171_a_rule_that_denies_today_goes_before_the_yes_of_a_dead_owner() -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person("approved")
        await died_before_the_start(rig, asking(rig, Person("approved")))
        second = await rig.own(asking(rig, person))
        rules = second.controller.people.rules
        second.controller.people.rules = dataclasses.replace(rules, ask=(), deny=rules.ask)
        await second.do(second.controller.go_on())
        assert not person.asked and not rig.world.bodies
        told = [one.text for one in second.model.asked[0] if isinstance(one, ResultGiven)]
        assert told and "not allowed" in told[0]

    play(main)


def test_tr_171_tr_180_a_yes_in_a_turn_that_was_stopped_is_withdrawn_and_told_so() -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person("approved")
        await died_before_the_start(rig, asking(rig, Person("approved")), stopped=True)
        second = await rig.own(dataclasses.replace(asking(rig, person), steps=[{"text": "done"}]))
        [receipt] = second.session.book
        assert (receipt.approval or {})["verdict"] == "withdrawn"
        assert "allowed" in result_of(receipt).text and "withdrawn" in result_of(receipt).text
        await second.turn("go on")
        assert not person.asked and not rig.world.bodies

    play(main)


def test_tr_171_what_was_allowed_and_did_not_start_says_so() -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person("approved")
        crew = await rig.own(asking(rig, person))
        rig.store.fault = lambda kinds: LedgerError("full") if Kind.STARTED in kinds else None
        receipt = await crew.call("pay", label="a")
        assert (receipt.state, receipt.reason) == (State.NOT_STARTED, "receipt_not_durable")
        assert "had allowed this call" in result_of(receipt).text

    play(main)


def test_ux_42_an_open_permission_question_is_named_when_its_session_is_opened_again() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        before = await died_while_asking(rig)
        second = await rig.own(asking(rig, Person("approved")))
        await second.do(second.session.history())
        assert second.controller.resume()["willAskAgain"] == [
            {"attemptId": before["attemptId"], "tool": "pay"}
        ]

    play(main)


def test_tr_95_ux_42_a_permission_question_that_a_rewind_left_behind_is_named_no_more() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        await died_while_asking(rig)
        second = await rig.own(asking(rig, Person("approved")))
        await second.do(second.controller.rewriting.rewind())
        assert second.controller.resume()["willAskAgain"] == [], (
            "it will be withdrawn, so nobody announces it"
        )

    play(main)


def test_ux_42_a_question_shown_again_and_cut_off_again_keeps_its_id_and_stays_one_question() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        before = await died_while_asking(rig)
        second = await rig.own(asking(rig, Person("approved", seconds=3600)))
        going = asyncio.ensure_future(second.do(second.controller.go_on()))
        await asyncio.sleep(5)
        second.process.kill()
        await going
        person = Person("approved")
        third = await rig.own(asking(rig, person))
        await third.do(third.controller.go_on())
        assert len(person.asked) == 1 and rig.world.count("a") == 1
        ids = {one.payload["questionId"] for one in await third.entries(Kind.QUESTION)}
        assert ids == {before["questionId"]}

    play(main)


def test_ux_42_tr_168_where_nobody_can_be_asked_the_open_question_is_withdrawn_and_told_so() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        await died_while_asking(rig)
        second = await rig.own(asking(rig, None))
        await second.do(second.controller.go_on())
        [receipt] = second.session.book
        assert (receipt.approval or {})["verdict"] == "withdrawn" and not rig.world.bodies
        assert any("withdrawn" in getattr(one, "text", "") for one in second.model.asked[0])

    play(main)


def test_ux_42_a_question_that_rules_of_today_no_longer_ask_is_closed_and_the_call_runs() -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person("denied")
        before = await died_while_asking(rig)
        second = await rig.own(dataclasses.replace(asking(rig, person), ask=[]))
        await second.do(second.controller.go_on())
        assert not person.asked and rig.world.count("a") == 1
        asked = second.session.questions.get(before["questionId"])
        assert asked is not None and asked.verdict == "withdrawn"

    play(main)


def test_ux_42_tr_180_a_question_of_a_turn_that_was_stopped_is_withdrawn_and_not_shown_again() -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person("approved")
        first = await rig.own(asking(rig, Person("approved", seconds=3600)))
        going = asyncio.ensure_future(first.turn())
        await asyncio.sleep(5)
        turn_id = (await first.entries(Kind.TURN))[-1].payload["turnId"]
        await first.session.append(Draft(Kind.TURN, {"turnId": turn_id, "status": "cancelling"}))
        first.process.kill()
        await going
        second = await rig.own(asking(rig, person))
        [receipt] = second.session.book
        assert (receipt.approval or {})["verdict"] == "withdrawn"
        assert "withdrawn" in result_of(receipt).text
        await second.turn("go on")
        assert not person.asked and not rig.world.bodies

    play(main)


def test_ux_42_a_permission_question_is_durable_before_it_is_shown_and_settled_by_stop() -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person("approved", seconds=3600)
        step = {"calls": [{"name": "pay", "args": {"label": "a"}}]}
        crew = await rig.own(
            Setup(tools=[rig.world.tool("pay", ONCE)], asker=person, ask=["pay"], steps=[step])
        )
        durable: list[bool] = []
        ask = person.permission

        async def shown(question: PermissionQuestion) -> PermissionAnswer:
            durable.append(bool(await crew.entries(Kind.QUESTION)))
            return await ask(question)

        person.permission = shown  # type: ignore[method-assign]
        going = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(5)
        await crew.controller.stop()
        await going
        assert durable == [True]
        assert [one.payload["verdict"] for one in await crew.entries(Kind.APPROVAL)] == ["withdrawn"]
        assert not rig.world.bodies

    play(main)
