"""A call allowed as a reader that turns out to be none while it is laid ready (EC-4, EC-59)."""

from __future__ import annotations

from typing import Any

import pytest

from surefoot.core.effects import UNDECLARED, Effect
from surefoot.core.model import EffectClass, State
from surefoot.runtime.people import PermissionAnswer, PermissionQuestion
from surefoot.runtime.permission import Rules
from surefoot.runtime.tools import Prepared
from surefoot.testing.rig import Rig, Setup
from surefoot.testing.simulation import Simulation, simulate

READ, ONCE = EffectClass.READ_ONLY, EffectClass.NON_IDEMPOTENT


class Person:
    """Answers every permission the same way; remembers what it was asked."""

    def __init__(self, verdict: str) -> None:
        self.asked: list[PermissionQuestion] = []
        self.verdict = verdict

    async def permission(self, question: PermissionQuestion) -> PermissionAnswer:
        self.asked.append(question)
        return PermissionAnswer(self.verdict, by="lin")

    async def question(self, question: Any) -> Any:
        raise AssertionError("nobody asked a question")


def laid_ready(declared: EffectClass, found: Effect | None, verdict: str) -> tuple[Any, Person, list[Any]]:
    person = Person(verdict)

    async def main(sim: Simulation) -> Any:
        rig = Rig(sim)

        async def prepare(arguments: Any, place: Any, receipt: Any, services: Any) -> Prepared:
            return Prepared(effect=found)

        tool = rig.world.tool("look", declared, prepare=prepare)
        crew = await rig.own(Setup(tools=[tool], asker=person, ask=["Nothing"]))
        crew.controller.people.rules = Rules()
        return await crew.call("look", label="a"), rig.world.bodies

    receipt, bodies = simulate(1, main)
    return receipt, person, bodies


def test_ec_59_a_reader_that_turns_out_to_be_none_is_asked_about_before_it_runs() -> None:
    receipt, person, bodies = laid_ready(READ, UNDECLARED, "denied")
    assert (receipt.state, receipt.reason) == (State.NOT_STARTED, "permission_denied")
    assert [question.effect_class for question in person.asked] == [EffectClass.UNKNOWN] and not bodies


def test_ec_59_a_reader_that_turned_out_to_be_none_runs_once_a_person_allows_it() -> None:
    receipt, person, bodies = laid_ready(READ, UNDECLARED, "approved")
    assert receipt.state is State.SUCCEEDED and len(person.asked) == len(bodies) == 1
    assert receipt.effect_class is EffectClass.UNKNOWN


@pytest.mark.parametrize(("declared", "found", "asked"), [(READ, None, 0), (ONCE, UNDECLARED, 1)])
def test_ec_59_what_was_asked_about_or_stays_a_reader_is_not_asked_about_again(
    declared: EffectClass, found: Effect | None, asked: int
) -> None:
    receipt, person, _ = laid_ready(declared, found, "approved")
    assert receipt.state is State.SUCCEEDED and len(person.asked) == asked
