"""Cases of families E, G and J that seeded time can play: a slow or locked store, restarts, questions, rewinds.

Left out, for rooms that are not here yet: e06, e09 (page), e10 (editor), f10 and f12 to f14 (MCP).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from surefoot.core.model import EffectClass, Kind, State, TurnStatus
from surefoot.runtime.controller import TurnEnd
from surefoot.runtime.turning import Parked
from surefoot.testing.faults import FailingLedger, WrappedLedger
from surefoot.testing.played import PlayedModel
from surefoot.testing.rig import SESSION, Crew, Rig, Setup
from surefoot.testing.simulation import Simulation, simulate

T = TypeVar("T")
ONCE, READ = EffectClass.NON_IDEMPOTENT, EffectClass.READ_ONLY
PAY = {"calls": [{"name": "pay", "args": {"label": "a"}}]}
DONE = {"text": "Done."}


class SlowLedger(WrappedLedger):
    """Every append takes a minute before it is durable."""

    async def _around(self, verb: str, detail: str, work: Callable[[], Awaitable[T]]) -> T:
        if verb == "append":
            await asyncio.sleep(60)
        return await work()


class NobodyYet:
    """A person who does not answer."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def permission(self, question: Any) -> Any:
        self.asked.set()
        await asyncio.Event().wait()

    async def question(self, question: Any) -> Any:
        raise AssertionError


def setup(rig: Rig, *steps: dict[str, Any], **more: Any) -> Setup:
    seconds = more.pop("seconds", 0.0)
    tools = [rig.world.tool("pay", ONCE), rig.world.tool("look", READ)]
    return Setup(tools=tools, model=PlayedModel(list(steps) or [PAY, DONE], seconds=seconds), **more)


def rows(rig: Rig, kind: str) -> list[Any]:
    return [row for row in rig.store.sessions[SESSION].rows if row[3] == kind]


def test_case_e15_a_question_of_a_dead_turn_cannot_be_answered_after_a_compaction() -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), NobodyYet()
        first = await rig.own(setup(rig, {"text": "Hello."}, PAY, DONE, asker=person, ask=["pay"]))
        await first.turn("Hello.")
        assert first.process is not None
        turn = first.process.spawn(first.controller.submit("Pay."))
        await person.asked.wait()
        answer = await first.controller.rewriting.compact()
        assert answer["code"] == "running", "the history does not move under an open question"
        first.process.kill()
        await first.do(_joined(turn))
        heir = await rig.own(setup(rig, {"text": "Hello."}, DONE))
        await heir.do(heir.controller.rewriting.compact())
        [receipt] = heir.session.book
        assert (receipt.state, receipt.reason) == (State.NOT_STARTED, "owner_died_before_start")
        assert not heir.controller.people.waiting and not rig.world.bodies
        end = await heir.turn("And now?")
        assert end.status is TurnStatus.COMPLETED and not rig.world.bodies

    simulate(1, main)


async def _joined(task: Any) -> Any:
    return await task


def test_case_g02_a_store_that_is_slower_than_any_patience_lets_no_body_in_without_its_receipt() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(setup(rig), wrap=lambda ledger, _: SlowLedger(ledger))
        turn = asyncio.ensure_future(crew.turn("Pay."))
        entered = durable = 0.0
        while not turn.done():
            await asyncio.wait({turn}, timeout=1)
            durable = durable or (sim.loop.time() if rows(rig, Kind.STARTED) else 0.0)
            entered = entered or (sim.loop.time() if rig.world.bodies else 0.0)
        assert 0 < durable <= entered
        end = turn.result()
        assert end.status is TurnStatus.COMPLETED and rig.world.count("a") == 1
        kinds = [entry.kind for entry in await crew.entries()]
        assert kinds.index(Kind.STARTED) < kinds.index(Kind.CLOSED)
        [receipt] = crew.session.book
        assert receipt.state is State.SUCCEEDED and receipt.started_at is not None

    simulate(2, main)


@pytest.mark.parametrize("how", ["refused", "lost", "kept"])
def test_case_g03_a_result_whose_write_fails_is_there_or_unknown_and_never_half(how: str) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(
            setup(rig),
            wrap=lambda ledger, _: FailingLedger(ledger, 1, how=how, kind=Kind.CLOSED.value, times=3),
        )
        await crew.turn("Pay.")
        crew.process.kill()  # type: ignore[union-attr]
        heir = await rig.own(setup(rig))
        [receipt] = heir.session.book
        assert rig.world.count("a") == 1
        if receipt.state is State.SUCCEEDED:
            assert (receipt.result or {}).get("text")
        else:
            assert receipt.state is State.UNKNOWN and not (receipt.result or {}).get("text")

    simulate(3, main)


def test_case_g09_a_resume_and_a_message_at_the_same_moment_run_one_after_the_other() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        model = setup(rig, PAY, DONE, seconds=5)
        first = await rig.own(model)
        assert first.process is not None
        turn = first.process.spawn(first.controller.submit("Pay."))
        await asyncio.sleep(2)
        first.process.kill()
        await first.do(_joined(turn))
        heir = await rig.own(setup(rig, PAY, DONE, {"text": "And more."}, seconds=5))
        both = await asyncio.gather(heir.controller.go_on(), heir.controller.submit("And this?"))
        assert isinstance(both[0], TurnEnd) and isinstance(both[1], Parked)
        assert heir.controller.take_parked() == ["And this?"]
        assert await _turns_do_not_overlap(heir) and rig.world.count("a") <= 1
        later = await heir.turn("And this?")
        assert later.status is TurnStatus.COMPLETED and await _turns_do_not_overlap(heir)

    simulate(4, main)


async def _turns_do_not_overlap(crew: Crew) -> bool:
    running: set[str] = set()
    for entry in await crew.entries(Kind.TURN):
        running -= {entry.payload["turnId"]}
        if entry.payload["status"] == TurnStatus.RUNNING:
            running.add(entry.payload["turnId"])
        if len(running) > 1:
            return False
    return True


def test_case_g10_words_said_during_a_slow_request_are_all_kept_and_no_lock_is_held() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(setup(rig, {"text": "Slow."}, DONE, seconds=600))
        turn = asyncio.ensure_future(crew.controller.submit("Begin."))
        await asyncio.sleep(1)
        said = [f"word {number}" for number in range(11)]
        for words in said:
            answer = await asyncio.wait_for(crew.controller.submit(words), 1)
            assert isinstance(answer, Parked)
        assert isinstance(await turn, TurnEnd)
        assert crew.controller.take_parked() == said

    simulate(5, main)


def test_case_j07_a_rewind_leaves_a_branch_and_its_effects_stay_listed() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(setup(rig, {"text": "Hello."}, PAY, DONE, {"text": "Other way."}))
        await crew.turn("Hello.")
        end = await crew.turn("Pay.")
        before = len(await crew.entries())
        told = await crew.do(crew.controller.rewriting.rewind(end.turn_id))
        assert len(told["remaining"]) == 1 and rig.world.count("a") == 1
        assert len(await crew.entries()) > before, "nothing is taken out of the record"
        [receipt] = crew.session.book
        assert receipt.state is State.SUCCEEDED
        crew.model.steps = [{"text": "Hello."}, {"text": "Another way."}]
        await crew.turn("Something else.")
        assert not any("Pay." in str(getattr(one, "text", "")) for one in crew.model.asked[-1])
        assert rig.world.count("a") == 1

    simulate(6, main)


def test_case_j09_a_rewind_writes_over_no_file_that_a_person_has_changed_since(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"

    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(setup(rig))
        end = await crew.turn("Pay.")
        file.write_text("by the person")
        await crew.do(crew.controller.rewriting.rewind(end.turn_id))
        assert file.read_text() == "by the person" and len(rig.world.bodies) == 1, "a rewind runs nothing"

    simulate(7, main)
