"""`!command`: the same door as a call of the model, and a receipt whose asker is the person."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from surefoot.core.effects import Effect
from surefoot.core.model import EffectClass, Kind, Mode, State
from surefoot.errors import OutcomeUnknown
from surefoot.runtime.own_commands import ASKED_BY_PERSON, OwnCommands
from surefoot.runtime.permission import parse_rules
from surefoot.runtime.tools import Arguments, LiveAttempt, Tool
from surefoot.testing.rig import Crew, Rig, Setup
from surefoot.testing.simulation import Simulation, simulate

PARAMETERS = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


def play(main: Callable[[Simulation], Coroutine[Any, Any, Any]]) -> Any:
    return simulate(1, main)


class Shell:
    """A shell in name and form whose commands only leave a word, may hang, or go dead."""

    def __init__(self, effect_class: EffectClass = EffectClass.NON_IDEMPOTENT) -> None:
        self.ran: list[str] = []
        self.hangs = asyncio.Event()
        self.effect = Effect(effect_class, ("host:h",) if effect_class is not EffectClass.READ_ONLY else ())

    async def body(self, live: LiveAttempt, arguments: Arguments) -> str:
        command = str(arguments["command"])
        self.ran.append(command)
        if command == "hang":
            self.hangs.set()
            await asyncio.sleep(10_000)
        if command == "dead":
            raise OutcomeUnknown("the line went dead")
        return f"did {command}"

    def tool(self) -> Tool:
        return Tool(
            name="shell", description="", parameters=PARAMETERS, body=self.body, effect=self.effect,
            rule_name="Bash", subjects=lambda arguments, place: (str(arguments["command"]),),
        )  # fmt: skip


async def opened(sim: Simulation, shell: Shell, **more: Any) -> tuple[Crew, OwnCommands]:
    crew = await Rig(sim).own(Setup(tools=[shell.tool()], **more))
    return crew, OwnCommands(crew.session, crew.barrier, crew.actions)


def test_ux_19_a_command_of_the_person_leaves_a_receipt_that_says_who_asked() -> None:
    async def main(sim: Simulation) -> None:
        shell = Shell()
        crew, own = await opened(sim, shell)
        receipt = await own.run("make")
        assert receipt is not None and receipt.state is State.SUCCEEDED and receipt.tool == "shell"
        assert ASKED_BY_PERSON in receipt.notes and receipt.started_position is not None
        assert receipt.result == {"text": "did make", "isError": False} and shell.ran == ["make"]
        entries = await crew.session.ledger.read(crew.session.session_id)
        kinds = [one.kind for one in entries if one.payload.get("attemptId") == receipt.attempt_id]
        assert kinds[:2] == [Kind.DISPATCHED, Kind.STARTED] and kinds[-1] == Kind.CLOSED
        by_model = await crew.call("shell", command="make test")
        assert ASKED_BY_PERSON not in by_model.notes
        assert not crew.actions.retrying.running and crew.controller.state == "idle"

    play(main)


def test_ux_19_nobody_is_asked_twice_but_a_deny_rule_and_mode_plan_hold() -> None:
    async def main(sim: Simulation) -> None:
        shell = Shell()
        crew, own = await opened(sim, shell, ask=["Bash"])
        assert (await own.run("make")) is not None and shell.ran == ["make"]
        crew.controller.people.rules = parse_rules(ask=["Bash"], deny=["Bash(git push *)"])
        denied = await own.run("git push -f")
        assert denied is not None and (denied.state, denied.reason) == (
            State.NOT_STARTED,
            "permission_denied",
        )
        assert ASKED_BY_PERSON in denied.notes
        crew.controller.people.mode = Mode.PLAN
        denied = await own.run("make")
        assert denied is not None and denied.reason == "permission_denied" and shell.ran == ["make"]

    play(main)


def test_ux_19_an_unknown_one_fences_and_is_fenced_like_any_call() -> None:
    async def main(sim: Simulation) -> None:
        shell = Shell()
        crew, own = await opened(sim, shell)
        lost = await own.run("dead")
        assert lost is not None and lost.state is State.UNKNOWN
        assert [one["attemptId"] for one in crew.actions.snapshot()["calls"] if one["open"]] == [
            lost.attempt_id
        ]
        fenced = await own.run("make")
        assert fenced is not None and (fenced.state, fenced.reason) == (State.NOT_STARTED, "fenced")
        assert (await crew.call("shell", command="make")).reason == "fenced" and shell.ran == ["dead"]

    play(main)


def test_ux_19_the_model_reads_of_it_as_a_fact_and_not_as_a_call_of_its_own() -> None:
    async def main(sim: Simulation) -> None:
        crew, own = await opened(sim, Shell(), steps=[{"text": "I see."}])
        receipt = await own.run("make")
        assert receipt is not None
        await crew.turn("go on")
        entries = await crew.session.ledger.read(crew.session.session_id)
        (words,) = [one.payload for one in entries if one.kind == Kind.USER]
        assert receipt.attempt_id in words["facts"] and words["text"] == "go on"
        assert not [one for one in entries if one.kind == Kind.ASSISTANT and one.payload.get("calls")]

    play(main)


def test_ux_19_stop_ends_it_and_nothing_runs_beside_it() -> None:
    async def main(sim: Simulation) -> None:
        shell = Shell()
        crew, own = await opened(sim, shell)
        work = asyncio.ensure_future(own.run("hang"))
        await shell.hangs.wait()
        assert crew.controller.state == "running"
        assert await own.run("make") is None
        await crew.controller.stop()
        receipt = await work
        assert receipt is not None and (receipt.state, receipt.reason) == (State.UNKNOWN, "cancelled")
        assert crew.controller.state == "idle" and shell.ran == ["hang"]

    play(main)


@pytest.mark.parametrize("effect_class", [EffectClass.READ_ONLY, EffectClass.UNKNOWN])
def test_ux_19_a_killed_owner_leaves_it_to_be_judged_like_any_call(effect_class: EffectClass) -> None:
    async def main(sim: Simulation) -> None:
        shell = Shell(effect_class)
        rig = Rig(sim)
        crew = await rig.own(Setup(tools=[shell.tool()]))
        own = OwnCommands(crew.session, crew.barrier, crew.actions)
        work = asyncio.ensure_future(crew.do(own.run("hang")))
        await shell.hangs.wait()
        assert crew.process is not None
        crew.process.kill()
        await work
        later = await rig.own(Setup(tools=[shell.tool()]))
        (found,) = (
            later.session.book.all() if hasattr(later.session.book, "all") else list(later.session.book)
        )
        assert found.state is State.UNKNOWN and ASKED_BY_PERSON in found.notes
        assert shell.ran == ["hang"]

    play(main)
