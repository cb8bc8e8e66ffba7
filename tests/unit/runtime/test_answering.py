"""Answers that name their question: timely, wrong, closed and late ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from surefoot.core.history import ResultGiven
from surefoot.core.model import EffectClass, Kind, State
from surefoot.errors import LedgerError
from surefoot.runtime.people import Answer, PermissionAnswer, PermissionQuestion, Question
from surefoot.runtime.requests import Caller
from surefoot.testing.rig import Crew, Rig, Setup
from surefoot.testing.simulation import Simulation, simulate
from surefoot.tools.ask import ask_tool

ONCE = EffectClass.NON_IDEMPOTENT
PERSON = Caller("lin", "http")


def play(main: Callable[[Simulation], Coroutine[Any, Any, Any]], seed: int = 1) -> Any:
    return simulate(seed, main)


class Silent:
    """A surface that shows questions and never answers by itself."""

    def __init__(self) -> None:
        self.shown: list[Any] = []

    async def permission(self, question: PermissionQuestion) -> PermissionAnswer:
        self.shown.append(question)
        await asyncio.sleep(10**6)
        raise AssertionError("nobody answers here")

    async def question(self, question: Question) -> Answer:
        self.shown.append(question)
        await asyncio.sleep(10**6)
        raise AssertionError("nobody answers here")


def asks(*texts: str) -> list[dict[str, Any]]:
    return [
        {"calls": [{"name": "ask_user", "args": {"question": text}} for text in texts]},
        {"text": "thanks"},
    ]


def setup(rig: Rig, *texts: str, asker: Any = None) -> Setup:
    return Setup(tools=[ask_tool()], asker=asker or Silent(), steps=asks(*texts))


async def waiting(rig: Rig, *texts: str) -> tuple[Crew, Any, dict[str, str]]:
    """A turn that waits for these questions; the ids of each by its text."""
    crew = await rig.own(setup(rig, *texts))
    going = asyncio.ensure_future(crew.turn())
    await asyncio.sleep(5)
    asked = [one.payload for one in await crew.entries(Kind.QUESTION)]
    return crew, going, {one["text"]: one["questionId"] for one in asked}


async def send(
    crew: Crew, question_id: str, text: str = "blue", verdict: str = "answered", **more: Any
) -> Any:
    request = {"questionId": question_id, "verdict": verdict, "text": text, **more}
    return await crew.do(crew.controller.answering.answer(request, PERSON))


def told(crew: Crew) -> list[str]:
    return [one.text for one in crew.model.asked[-1] if isinstance(one, ResultGiven)]


def test_tr_167_tr_170_answers_by_id_reach_their_own_questions_in_any_order() -> None:
    async def main(sim: Simulation) -> None:
        crew, going, ids = await waiting(Rig(sim), "First?", "Second?")
        second = await send(crew, ids["Second?"], "two")
        assert (second.status, second.body) == (200, {"questionId": ids["Second?"], "delivered": True})
        answers = [one.payload for one in await crew.entries(Kind.ANSWER)]
        assert [(one["questionId"], one["verdict"]) for one in answers] == [(ids["Second?"], "answered")]
        assert (answers[0]["by"], answers[0]["channel"]) == ("lin", "http"), "durable before it is told"
        assert (await send(crew, ids["First?"], "one")).status == 200
        assert (await going).status == "completed"
        assert ["one" in told(crew)[0], "two" in told(crew)[1]] == [True, True]

    play(main)


def test_tr_167_a_wrong_id_is_refused_and_changes_nothing() -> None:
    async def main(sim: Simulation) -> None:
        crew, going, ids = await waiting(Rig(sim), "First?")
        before = len(await crew.entries())
        wrong = await send(crew, "qst_00000000000000000000000000")
        assert (wrong.status, wrong.body["code"]) == (409, "question_unknown")
        assert len(await crew.entries()) == before and not going.done()
        await send(crew, ids["First?"])
        await going

    play(main)


@pytest.mark.parametrize("closed_by", ["answer", "stop"])
def test_tr_167_an_answer_to_a_closed_question_is_refused_kept_as_late_and_never_told(closed_by: str) -> None:
    async def main(sim: Simulation) -> None:
        crew, going, ids = await waiting(Rig(sim), "First?")
        if closed_by == "answer":
            await send(crew, ids["First?"], "early")
        else:
            await crew.controller.stop()
        await going
        late = await send(crew, ids["First?"], "much too late")
        assert (late.status, late.body["code"], late.body["delivered"]) == (409, "question_closed", False)
        assert late.body["record"]["verdict"] == ("answered" if closed_by == "answer" else "withdrawn")
        kept = (await crew.entries(Kind.ANSWER))[-1].payload
        assert (kept["verdict"], kept["text"], kept["by"]) == ("late", "much too late", "lin")
        await crew.turn("and now?")
        assert not any("much too late" in text for text in told(crew))

    play(main)


@pytest.mark.parametrize(("verdict", "scope", "made"), [("approved", "once", 1), ("denied", None, 0)])
def test_tr_167_tr_171_a_permission_is_answered_by_its_id_and_a_late_yes_permits_nothing(
    verdict: str, scope: str | None, made: int
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        step = {"calls": [{"name": "pay", "args": {"label": "a"}}]}
        crew = await rig.own(
            Setup(tools=[rig.world.tool("pay", ONCE)], asker=Silent(), ask=["pay"], steps=[step])
        )
        going = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(5)
        [question] = await crew.entries(Kind.QUESTION)
        assert (await send(crew, question.payload["questionId"], "", "answered")).body[
            "code"
        ] == "bad_request"
        answered = await send(crew, question.payload["questionId"], "", verdict, scope=scope)
        assert answered.status == 200
        await going
        approval = (await crew.entries(Kind.APPROVAL))[-1].payload
        assert (approval["verdict"], approval["by"], approval["channel"]) == (verdict, "lin", "http")
        assert rig.world.count("a") == made
        late = await send(crew, question.payload["questionId"], "", "approved")
        assert late.body["code"] == "question_closed" and rig.world.count("a") == made
        [receipt] = crew.session.book
        assert receipt.state is (State.SUCCEEDED if made else State.NOT_STARTED)
        assert (receipt.approval or {})["verdict"] == verdict

    play(main)


def test_tr_169_a_question_of_a_dead_owner_takes_its_answer_once_it_is_shown_again() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        first, going, ids = await waiting(rig, "First?")
        first.process.kill()
        await going
        heir = await rig.own(setup(rig, "First?"))
        early = await send(heir, ids["First?"])
        assert (early.status, early.body["code"]) == (409, "question_not_shown")
        again = asyncio.ensure_future(heir.do(heir.controller.go_on()))
        await asyncio.sleep(5)
        assert (await send(heir, ids["First?"], "green")).status == 200
        assert (await again).status == "completed" and "green" in told(heir)[0]

    play(main)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({}, "bad_request"),
        ([], "bad_request"),
        ({"questionId": "q", "verdict": "answered", "attemptId": "x"}, "unknown_field"),
        ({"questionId": 1, "verdict": "answered"}, "bad_request"),
        ({"questionId": "q", "verdict": "approved", "scope": "for ever"}, "bad_request"),
        ({"questionId": "q", "verdict": "answered", "text": 5}, "bad_request"),
    ],
)
def test_tr_167_an_answer_that_is_not_well_formed_is_refused(request_: Any, code: str) -> None:
    async def main(sim: Simulation) -> None:
        crew, going, ids = await waiting(Rig(sim), "First?")
        answer = await crew.do(crew.controller.answering.answer(request_, PERSON))
        assert (answer.status, answer.body["code"]) == (400, code)
        await send(crew, ids["First?"])
        await going

    play(main)


def test_tr_130_code_inside_a_tool_body_answers_no_question() -> None:
    async def main(sim: Simulation) -> None:
        crew, going, ids = await waiting(Rig(sim), "First?")
        machine = Caller("the model", "python", not_a_person="descendant_of_tool")
        request = {"questionId": ids["First?"], "verdict": "answered", "text": "yes"}
        answer = await crew.do(crew.controller.answering.answer(request, machine))
        assert (answer.body["code"], answer.body["reason"]) == ("person_required", "descendant_of_tool")
        await send(crew, ids["First?"])
        await going

    play(main)


def test_tr_167_tr_168_an_answer_that_cannot_be_written_is_told_so_and_is_no_consent() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        step = {"calls": [{"name": "pay", "args": {"label": "a"}}]}
        crew = await rig.own(
            Setup(tools=[rig.world.tool("pay", ONCE)], asker=Silent(), ask=["pay"], steps=[step])
        )
        going = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(5)
        [question] = await crew.entries(Kind.QUESTION)
        rig.store.fault = lambda kinds: LedgerError("full") if Kind.APPROVAL in kinds else None
        answer = await send(crew, question.payload["questionId"], "", "approved")
        assert (answer.status, answer.body["code"]) == (409, "storage_failed")
        await going
        assert not rig.world.bodies

    play(main)


@pytest.mark.parametrize("most", [1, 2])
def test_tr_185_one_question_above_the_bound_is_not_shown_and_told_as_unanswered(most: int) -> None:
    async def main(sim: Simulation) -> None:
        rig, asker = Rig(sim), Silent()
        texts = [f"Question {number}?" for number in range(most + 1)]
        crew = await rig.own(replace(setup(rig, *texts, asker=asker), limits={"pending_questions": most}))
        going = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(5)
        asked = [one.payload for one in await crew.entries(Kind.QUESTION)]
        assert len(asker.shown) == len(asked) == most
        for one in asked:
            await send(crew, one["questionId"], "yes")
        await going
        assert sum("as many questions as are allowed" in text for text in told(crew)) == 1
        assert sum("The person answered" in text for text in told(crew)) == most

    play(main)


def test_tr_185_a_permission_above_the_bound_is_not_asked_for_and_the_call_does_not_start() -> None:
    async def main(sim: Simulation) -> None:
        rig, asker = Rig(sim), Silent()
        tools = [rig.world.tool(name, EffectClass.READ_ONLY) for name in ("look", "peek")]
        calls = [{"name": name, "args": {"label": "a"}} for name in ("look", "peek")]
        steps = [{"calls": calls}, {"text": "done"}]
        limits, ask = {"pending_questions": 1}, ["look", "peek"]
        crew = await rig.own(Setup(tools=tools, asker=asker, steps=steps, ask=ask, limits=limits))
        going = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(5)
        (question,) = [one.payload for one in await crew.entries(Kind.QUESTION)]
        await send(crew, question["questionId"], verdict="approved", scope="once")
        await going
        ends = sorted((one.state.value, one.reason) for one in crew.session.book)
        assert ends == [("not_started", "approval_expired"), ("succeeded", None)]
        assert len(asker.shown) == 1 and sum("as many questions as are" in one for one in told(crew)) == 1

    play(main)
