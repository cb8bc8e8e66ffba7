"""A yes for this session: what it is a yes to, what it never lifts, and when it ends (UX-38, UX-41, TR-171)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from surefoot.core.model import EffectClass, Kind, Mode
from surefoot.runtime.people import PermissionAnswer, PermissionQuestion
from surefoot.runtime.permission import UNTOLD
from surefoot.runtime.tools import Tool
from surefoot.testing.rig import Rig, Setup
from surefoot.testing.simulation import Simulation, simulate

ONCE = EffectClass.NON_IDEMPOTENT


def play(main: Callable[[Simulation], Coroutine[Any, Any, Any]]) -> Any:
    return simulate(1, main)


class Person:
    """Says yes for this session to everything."""

    def __init__(self) -> None:
        self.asked: list[PermissionQuestion] = []

    async def permission(self, question: PermissionQuestion) -> PermissionAnswer:
        self.asked.append(question)
        return PermissionAnswer("approved", "session", "lin")

    async def question(self, question: Any) -> Any:
        raise AssertionError


def paying(rig: Rig, **changed: Any) -> Tool:
    return dataclasses.replace(rig.world.tool("pay", ONCE), **changed)


def asking(person: Person, tool: Tool) -> Setup:
    return Setup(tools=[tool], asker=person, ask=["pay"])


def test_ux_41_a_yes_for_this_session_is_one_to_the_same_work() -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person()
        tool = paying(rig, subjects=lambda arguments, place: (str(arguments["label"]),))
        crew = await rig.own(asking(person, tool))
        for label, asked in (("a", 1), ("a", 1), ("b", 2), ("a", 2)):
            await crew.call("pay", label=label)
            assert len(person.asked) == asked
        approvals = [one.approval for one in crew.session.book]
        assert [one is None for one in approvals] == [False, True, False, True], "each answer is spent once"

    play(main)


@pytest.mark.parametrize("subjects", [(), ("sh", UNTOLD)])
def test_ux_41_a_yes_to_what_cannot_be_told_is_one_to_these_arguments(subjects: tuple[str, ...]) -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person()
        crew = await rig.own(asking(person, paying(rig, subjects=lambda arguments, place: subjects)))
        for label, asked in (("a", 1), ("a", 1), ("b", 2)):
            await crew.call("pay", label=label)
            assert len(person.asked) == asked

    play(main)


def test_ux_41_a_yes_for_this_session_is_none_to_other_files_by_the_same_words() -> None:
    async def main(sim: Simulation) -> None:
        rig, person, opened = Rig(sim), Person(), ["/w/a"]
        tool = paying(
            rig, subjects=lambda arguments, place: ("cat x",), reads=lambda arguments, place: tuple(opened)
        )
        crew = await rig.own(asking(person, tool))
        await crew.call("pay", label="a")
        opened[:] = ["/home/lin/.ssh/key"]  # the link leads elsewhere now
        await crew.call("pay", label="a")
        assert len(person.asked) == 2

    play(main)


def test_ux_41_a_yes_for_this_session_to_a_command_line_is_one_to_that_line() -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person()
        tool = paying(rig, rule_name="Bash", subjects=lambda arguments, place: ("rm $f",))
        tool = dataclasses.replace(tool, parameters={"type": "object"})
        crew = await rig.own(Setup(tools=[tool], asker=person, ask=["Bash"]))
        first, other = "for f in a; do rm $f; done", "for f in /; do rm $f; done"
        for command, why, asked in ((first, "x", 1), (first, "y", 1), (other, "x", 2), (first, "z", 2)):
            await crew.call("pay", label="a", command=command, description=why)
            assert len(person.asked) == asked

    play(main)


@pytest.mark.parametrize("mode", [Mode.PLAN, Mode.DONT_ASK])
def test_ux_38_a_yes_for_this_session_does_not_pass_what_a_mode_refuses(mode: Mode) -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person()
        crew = await rig.own(asking(person, paying(rig)))
        await crew.call("pay", label="a")
        crew.controller.people.mode = mode
        receipt = await crew.call("pay", label="a")
        assert receipt.reason == "permission_denied" and len(person.asked) == 1
        crew.controller.people.mode = Mode.DEFAULT
        assert (await crew.call("pay", label="a")).reason is None and len(person.asked) == 1

    play(main)


def test_ux_41_tr_171_a_yes_for_this_session_ends_with_its_owner_and_is_asked_for_again() -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person()
        first = await rig.own(asking(person, paying(rig)))
        await first.call("pay", label="a")
        await first.call("pay", label="a")
        assert len(person.asked) == 1
        assert first.process is not None
        first.process.kill()
        second = await rig.own(asking(person, paying(rig)))
        receipt = await second.call("pay", label="a")
        assert receipt.reason is None and len(person.asked) == 2
        said = [one.payload for one in await second.entries(Kind.APPROVAL)]
        assert len({one["attemptId"] for one in said}) == 2, "each is bound to one call and spent by it"

    play(main)
