"""Ownership of a session: its epoch, its lease, and what an uncertain commit turns out to be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from surefoot.core.model import Draft, EffectClass, Kind, State
from surefoot.errors import LedgerError, LedgerUncertain, SessionHeld, StaleEpoch
from surefoot.ledger.port import Appended
from surefoot.runtime.session import Found, Session, Wanted
from surefoot.testing.faults import FailingLedger, WrappedLedger
from surefoot.testing.rig import SESSION, Rig, Setup
from surefoot.testing.simulation import Simulation, simulate
from surefoot.testing.world import Behaviour

ONCE = EffectClass.NON_IDEMPOTENT
NOTE = Draft(Kind.TODO, {"items": []})


def play(main: Callable[[Simulation], Coroutine[Any, Any, Any]], seed: int = 1) -> Any:
    return simulate(seed, main)


def test_tr_172_each_ownership_raises_the_epoch_and_a_lower_one_writes_nothing() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        first = await rig.own()
        second = await rig.own(take_over=True)
        assert (first.session.epoch, second.session.epoch) == (1, 2)
        before = len(await second.entries())
        with pytest.raises(StaleEpoch):
            await first.do(first.session.append(NOTE))
        assert first.session.lost and len(await second.entries()) == before
        assert {entry.epoch for entry in await second.entries()} == {1, 2}

    play(main)


def test_tr_173_tr_177_a_live_owner_is_named_as_a_value_and_a_dead_one_replaced_at_once() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        first = await rig.own()
        with pytest.raises(SessionHeld):
            await rig.own()
        assert first.process is not None
        first.process.stop()
        with pytest.raises(SessionHeld):  # a stopped owner is alive
            await rig.own()
        first.process.kill()
        assert (await rig.own()).session.epoch == 2

    play(main)


def test_tr_177_of_two_who_claim_one_wins_and_the_other_is_told() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        first = await rig.own()
        assert first.process is not None
        first.process.kill()
        both = await asyncio.gather(rig.own(), rig.own(), return_exceptions=True)
        assert sorted(type(one).__name__ for one in both) == ["Crew", "SessionHeld"]

    for seed in range(10):
        play(main, seed)


def test_tr_174_tr_175_an_owner_that_cannot_renew_ends_its_bodies_before_the_lease_does() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim, deaths_seen=False)
        tools = [rig.world.tool("pay", ONCE, behaviour=Behaviour(seconds_before=3600))]
        crew = await rig.own(Setup(tools=tools))
        running = asyncio.ensure_future(crew.call("pay", label="a"))
        await asyncio.sleep(1)
        ends = rig.store.sessions[SESSION].lease_boot_ms
        rig.store.fault = lambda kinds: LedgerError("the ledger cannot be reached")

        async def gone(*_: Any, **__: Any) -> bool:
            raise LedgerError("the ledger cannot be reached")

        crew.session.ledger.renew = gone  # type: ignore[method-assign]
        ended: list[int] = []
        task = next(iter(crew.barrier._live.values())).task
        task.add_done_callback(lambda _: ended.append(sim.clock.boot_ms()))
        await asyncio.sleep(60)
        assert ended and ended[0] < ends, "the body was told to end inside the lease"
        assert not crew.session.may_begin() and not rig.world.effects
        rig.store.fault = lambda kinds: None
        receipt = await running
        assert (receipt.state, receipt.reason) == (State.UNKNOWN, "cancelled")

    play(main)


def test_tr_174_a_jump_of_the_wall_clock_changes_nothing() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)]))
        for day in (86_400_000, -2 * 86_400_000):
            sim.clock.jump(day)
            assert (await crew.call("pay", label="a")).state is State.SUCCEEDED
            await asyncio.sleep(100)
            with pytest.raises(SessionHeld):
                await rig.own()

    play(main)


def test_tr_174_a_woken_owner_checks_its_epoch_before_it_starts_anything() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim, deaths_seen=False)
        tools = [rig.world.tool("pay", ONCE)]
        first = await rig.own(Setup(tools=tools))
        assert first.process is not None
        first.process.stop()
        sim.loop.advance(3600)
        second = await rig.own(Setup(tools=tools))
        call = asyncio.ensure_future(first.call("pay", label="a"))
        first.process.go_on()
        with pytest.raises(StaleEpoch):
            await call
        assert not rig.world.bodies and second.session.epoch == 2

    play(main)


@pytest.mark.parametrize(
    ("how", "answer"), [("kept", Found), ("lost", LedgerError), ("refused", LedgerError)]
)
def test_tr_27_a_lost_answer_is_looked_up_until_it_is_certain(how: str, answer: Any) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        wrap = lambda ledger, process: FailingLedger(ledger, 1, how=how, kind=Kind.TODO, unsure=2)  # noqa: E731
        crew = await rig.own(wrap=wrap)
        if answer is Found:
            assert isinstance(await crew.do(crew.session.append(NOTE)), Found)
        else:
            with pytest.raises(LedgerError):
                await crew.do(crew.session.append(NOTE))
            assert crew.session.broken is not None
        assert isinstance(await crew.do(crew.session.append(NOTE)), Appended)
        assert crew.session.broken is None
        assert len(await crew.entries(Kind.TODO)) == (2 if how == "kept" else 1)

    play(main)


def test_tr_27_what_stays_uncertain_is_folded_before_anything_is_written_behind_it() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        wrap = lambda ledger, process: FailingLedger(ledger, 1, how="kept", kind=Kind.TODO, unsure=4)  # noqa: E731
        crew = await rig.own(wrap=wrap)
        seen: list[int] = []
        crew.session.watch(lambda entry: seen.append(entry.position))
        with pytest.raises(LedgerUncertain):
            await crew.do(crew.session.append(NOTE))
        with pytest.raises(LedgerUncertain):
            await crew.do(crew.session.append(NOTE))
        await crew.do(crew.session.append(NOTE))
        entries = await crew.entries(Kind.TODO)
        assert seen == [entry.position for entry in entries] and len(seen) == 2
        assert crew.session.position == seen[-1]

    play(main)


@pytest.mark.parametrize("steps", range(12))
def test_tr_178_a_caller_that_gives_up_while_it_claims_leaves_no_ownership_behind(steps: int) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        process = sim.process("impatient")
        from surefoot.ledger.memory import MemoryLedger

        work = Session.open(
            MemoryLedger(rig.store), process.scheduler(), process.owner, Wanted(SESSION, {"directory": "/"})
        )
        task = asyncio.ensure_future(work)
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        opened = (await asyncio.gather(task, return_exceptions=True))[0]
        await asyncio.sleep(5)
        if isinstance(opened, Session):
            await opened.close()
        kept = rig.store.sessions.get(SESSION)
        assert kept is None or kept.owner is None

    play(main, steps)


def test_tr_178_closing_twice_gives_the_session_back_once() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own()
        await crew.do(crew.controller.close())
        await crew.do(crew.controller.close())
        assert rig.store.sessions[SESSION].owner is None and crew.controller.state == "closed"
        assert (await rig.own()).session.epoch == 2

    play(main)


def test_tr_28_an_outcome_that_could_not_be_recorded_ends_with_its_session() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)]))
        rig.store.fault = lambda kinds: LedgerError("full") if Kind.CLOSED in kinds else None
        running = asyncio.ensure_future(crew.call("pay", label="a"))
        await asyncio.sleep(5)
        assert crew.told("outcome_withheld")
        await crew.do(crew.session.close())
        with pytest.raises((LedgerError, StaleEpoch)):
            await running
        rig.store.fault = lambda kinds: None
        heir = await rig.own(Setup())
        assert [(one.state, one.reason) for one in heir.session.book] == [(State.UNKNOWN, "owner_died")]

    play(main)


TURN = "trn_" + "0" * 25 + "1"
PAST = [
    Draft(Kind.TURN, {"turnId": TURN, "status": "queued", "reason": None, "with": {"model": "a/b", "effort": "low"}}),
    Draft(Kind.TURN, {"turnId": TURN, "status": "running", "reason": None}),
    Draft(Kind.QUESTION, {"questionId": "qst_1", "attemptId": "att_1", "turnId": TURN, "permission": True}),
    Draft(Kind.APPROVAL, {"attemptId": "att_1", "argumentDigest": "sha256:1", "verdict": "approved"}),
    Draft(Kind.QUESTION, {"questionId": "qst_2", "attemptId": "att_2", "turnId": TURN}),
    Draft(Kind.BARRIER_SET, {"old": "reach", "new": "global", "who": "owner", "channel": "settings"}),
    Draft(Kind.NOTICE, {"code": "recovery_record_lost", "view": 7}),
    Draft(Kind.TURN, {"turnId": TURN, "status": "failed", "reason": "storage_failed"}),
]  # fmt: skip


def stands(session: Session) -> list[Any]:
    """Everything that is known of a session before its conversation is read."""
    asked = [session.questions.get(f"qst_{number}") for number in (1, 2, 3)]
    allowed = [one.attempt_id for one in session.questions.allowances()]
    rest = [session.works_with, session.recorded_level, session.record_lost_at, session.incidents]
    return [session.newest_turn, asked, allowed, *rest]


def test_ux_70_how_a_session_stands_is_read_without_its_conversation_and_says_the_same() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        first = await rig.own()
        await first.do(first.session.append(*PAST))
        before = stands(first.session)
        for read in ("standing", "history"):
            reads: list[Any] = []

            def wrap(ledger: Any, process: Any, reads: list[Any] = reads) -> Any:
                return Reads(ledger, reads)

            heir = await rig.own(wrap=wrap, take_over=True, opened=False)
            reads.clear()
            await heir.do(getattr(heir.session, read)())
            assert stands(heir.session) == before
            assert all(reads) is (read == "standing"), "the conversation is read by whoever needs it"
            await heir.do(
                heir.session.append(Draft(Kind.TURN, {**PAST[0].payload, "turnId": TURN[:-1] + "2"}))
            )
            assert heir.session.newest_turn.turn_id == TURN[:-1] + "2"
            again = stands(heir.session)
            await heir.do(heir.session.history())
            assert stands(heir.session) == again
            await heir.do(heir.session.append(PAST[-1]))

    play(main)


class Reads(WrappedLedger):
    """Notes the kinds of every read, and appends an entry of the owner's behind each."""

    def __init__(self, inner: Any, reads: list[Any]) -> None:
        super().__init__(inner)
        self._reads = reads
        self.then: Callable[[], Coroutine[Any, Any, Any]] | None = None

    async def read(self, session_id: str, **how: Any) -> list[Any]:
        self._reads.append(how.get("kinds"))
        found = await super().read(session_id, **how)
        then, self.then = self.then, None
        if then is not None:
            await then()
        return found


@pytest.mark.parametrize("read", ["standing", "history"])
def test_ux_70_what_is_appended_while_it_is_read_is_not_lost_and_counts_once(read: str) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        first = await rig.own()
        await first.do(first.session.append(*PAST))
        made: list[Reads] = []

        def wrap(ledger: Any, process: Any) -> Any:
            made.append(Reads(ledger, []))
            return made[-1]

        heir = await rig.own(wrap=wrap, take_over=True, opened=False)
        newest = Draft(Kind.QUESTION, {"questionId": "qst_3", "attemptId": "att_3", "turnId": TURN})
        words = Draft(Kind.USER, {"turnId": TURN, "text": "meanwhile", "facts": None})
        made[-1].then = lambda: heir.session.append(newest, words)
        both = [sim.loop.create_task(heir.do(getattr(heir.session, read)())) for _ in range(2)]
        for one in both:
            await one
        assert heir.session.questions.get("qst_3") is not None
        history = await heir.do(heir.session.history())
        texts = [str(message) for message in history.messages(heir.session.book)]
        assert sum("meanwhile" in text for text in texts) == 1

    play(main)


def test_tr_27_what_was_read_before_a_commit_was_certain_is_not_folded_again_with_it() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        await rig.own()

        def wrap(ledger: Any, process: Any) -> Any:
            return FailingLedger(ledger, 1, how="kept", kind=Kind.USER, unsure=3)

        heir = await rig.own(wrap=wrap, take_over=True, opened=False)
        said = Draft(Kind.USER, {"turnId": TURN, "text": "once", "facts": None})
        asked = Draft(Kind.INCIDENT, {"incidentId": "inc_1", "turnId": TURN, "state": "offered"})
        with pytest.raises(LedgerUncertain):
            await heir.do(heir.session.append(said, asked))
        history = await heir.do(heir.session.history())
        known = len(heir.session.incidents)
        await heir.do(heir.session.append(NOTE))
        texts = [str(message) for message in history.messages(heir.session.book)]
        assert sum("once" in text for text in texts) == 1
        assert len(heir.session.incidents) == known == 1

    play(main)
