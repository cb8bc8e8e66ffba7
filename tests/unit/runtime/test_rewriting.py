"""A shorter view of a session: what the notes say, what stays in force, and what a fork carries."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from surefoot.core.history import AssistantWords, Message, ResultGiven, UserWords
from surefoot.core.model import EffectClass, Kind, Overlay, State
from surefoot.core.recovery import fencing
from surefoot.errors import ProviderError, ProviderUnreachable
from surefoot.ledger.memory import MemoryLedger
from surefoot.providers.port import Reply, ReplyCall, Usage
from surefoot.runtime.rewriting import fork
from surefoot.runtime.session import LeaseTimes
from surefoot.testing.played import PlayedModel
from surefoot.testing.rig import SESSION, Crew, Rig, Setup, assemble
from surefoot.testing.simulation import Simulation, simulate
from surefoot.testing.world import Behaviour

READ, IDEM, ONCE = EffectClass.READ_ONLY, EffectClass.IDEMPOTENT_WRITE, EffectClass.NON_IDEMPOTENT


def play(main: Callable[[Simulation], Coroutine[Any, Any, Any]], seed: int = 1) -> Any:
    return simulate(seed, main)


class Told(PlayedModel):
    """Answers in order, whatever the view holds: notes do not change which answer is next."""

    def __init__(self, *replies: Any, tokens: int | None = None) -> None:
        super().__init__([])
        self.replies = list(replies)
        self.tokens = tokens

    async def complete(self, messages: Sequence[Message], on_delta: Any) -> Reply:
        self.asked.append(list(messages))
        await asyncio.sleep(0.01)
        last = messages[-1]
        if isinstance(last, UserWords) and last.origin == "host" and "summary" in last.text:
            return Reply("Prices are in cents.", (), "stop", {"role": "assistant"}, model="m")
        given = self.replies.pop(0) if self.replies else "done"
        if isinstance(given, BaseException):
            raise given
        usage = Usage(self.tokens, 1)
        if isinstance(given, str):
            return Reply(given, (), "stop", {"role": "assistant", "content": given}, model="m", usage=usage)
        calls = tuple(
            ReplyCall(name, json.dumps({"label": label}), f"id_{name}_{label}") for name, label in given
        )
        return Reply("", calls, "tool_calls", {"role": "assistant"}, model="m", usage=usage)


def tools(rig: Rig) -> list[Any]:
    return [
        rig.world.tool("look", READ),
        rig.world.tool("save", IDEM, reach=("host:s",)),
        rig.world.tool("pay", ONCE, reach=("host:p",), behaviour=Behaviour(fails="unknown")),
        rig.world.tool("mail", ONCE, reach=("host:m",)),
        rig.world.tool("drop", ONCE, reach=("host:d",), behaviour=Behaviour(fails="before")),
    ]


async def owner(rig: Rig, model: PlayedModel, **setup: Any) -> Crew:
    return await rig.own(Setup(tools=tools(rig), model=model, **setup))


def notes(crew: Crew) -> str:
    """The notes the model is shown first."""
    first = crew.model.asked[-1][0]
    assert isinstance(first, UserWords) and first.origin == "host"
    return first.text


MIXED = [("look", "a"), ("save", "a"), ("mail", "a"), ("drop", "a"), ("mail", "b")]


def test_case_c12_tr_94_the_notes_count_calls_as_the_receipts_do() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await owner(rig, Told(MIXED, [("pay", "a")], [("pay", "b"), ("nothing", "a")], "ready"))
        await crew.turn("pay the bills")
        payload = await crew.do(crew.controller.rewriting.compact())
        book = crew.session.book
        words = {
            State.SUCCEEDED: "finished",
            State.FAILED: "failed",
            State.NOT_STARTED: "notStarted",
            State.UNKNOWN: "unknown",
        }
        counts: dict[str, int] = {}
        for receipt in book:
            counts[words[receipt.state]] = counts.get(words[receipt.state], 0) + 1
        assert payload["counts"] == counts and set(counts) == set(words.values())
        assert payload["calls"] == sum(counts.values()) == len(book)
        await crew.turn("what now?")
        assert all(f'"{word}":{count}' in notes(crew) for word, count in counts.items())

    play(main)


def test_tr_93_tr_94_receipts_stay_and_an_open_call_fences_and_is_told_again() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await owner(rig, Told([("pay", "a")], "unsure", "ok", [("pay", "c")], "held"))
        await crew.turn("pay")
        await crew.turn("and?")  # the unknown call has been told as a fact
        before = [receipt.to_json() for receipt in crew.session.book]
        entries = len(await crew.entries())
        payload = await crew.do(crew.controller.rewriting.compact())
        assert [receipt.to_json() for receipt in crew.session.book] == before
        assert [entry.kind for entry in (await crew.entries())[entries:]] == [Kind.COMPACTED]
        [held] = fencing(crew.session.book.open())
        assert payload["pinned"] == [held.attempt_id]
        await crew.turn("pay again")
        asked = [one for one in crew.model.asked[-2] if isinstance(one, UserWords)]
        assert held.attempt_id in asked[0].text and held.attempt_id in (asked[-1].facts or "")
        assert rig.world.count("c") == 0 and list(crew.session.book)[-1].reason == "fenced"

    play(main)


def test_case_a17_an_old_request_is_marked_as_done_and_the_newest_is_the_one_to_go_on_with() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await owner(rig, Told([("mail", "a")], "sent"))
        await crew.turn("mail the report")
        await crew.do(crew.controller.rewriting.compact())
        await crew.turn("hello")
        shown = crew.model.asked[-1]
        assert [type(one) for one in shown] == [UserWords, UserWords]
        assert not any(isinstance(one, UserWords) and one.text == "mail the report" for one in shown)
        assert 'none to be carried out again: ["mail the report"]' in notes(crew)
        assert "Every request listed here is finished" in notes(crew)
        assert rig.world.count() == 1

    play(main)


def test_case_a18_a_write_that_repeats_one_the_notes_speak_of_is_never_silent() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await owner(rig, Told([("mail", "a")], "sent", [("mail", "a")], "sent"))
        await crew.turn("mail the report")
        await crew.do(crew.controller.rewriting.compact())
        await crew.turn("go on")
        first = next(iter(crew.session.book))
        shown = crew.model.asked[-2][0]
        assert isinstance(shown, UserWords) and first.attempt_id in shown.text and "host:m" in shown.text
        assert [facts["earlier"] for facts in crew.told("repeats_settled")] == [first.attempt_id]

    play(main)


def test_tr_94_in_the_middle_of_a_turn_the_newest_reply_stays_whole_with_its_results() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        model = Told([("look", "a")], [("save", "a")], [("look", "b"), ("look", "c")], "ready", tokens=900)
        model.window_tokens = 1000  # type: ignore[attr-defined]
        crew = await owner(rig, model)
        await crew.turn("tidy up")
        assert len(await crew.entries(Kind.COMPACTED)) == 2
        shown = model.asked[-1]
        assert [type(one) for one in shown] == [
            UserWords,
            UserWords,
            AssistantWords,
            ResultGiven,
            ResultGiven,
        ]
        assert isinstance(shown[1], UserWords) and (shown[1].text, shown[1].origin) == ("tidy up", "person")
        assert "stands below these notes" in notes(crew) and "Prices are in cents." in notes(crew)
        for request in model.asked:  # never a call without its result, nor the other way round
            asked = [c.call_id for one in request if isinstance(one, AssistantWords) for c in one.calls]
            assert asked == [one.call.call_id for one in request if isinstance(one, ResultGiven)]

    play(main)


@pytest.mark.promise("projection:prefix-stable")
def test_tr_94_a_restart_shows_the_same_view_to_the_byte() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await owner(rig, Told(MIXED, "ready", "ok"))
        await crew.turn("pay")
        await crew.do(crew.controller.rewriting.compact())
        await crew.turn("next")
        history = await crew.session.history()
        before = history.messages(crew.session.book)
        if crew.process is not None:
            crew.process.kill()
        again = await owner(rig, Told())
        assert (await again.session.history()).messages(again.session.book) == before
        assert before[0] == crew.model.asked[-1][0]

    play(main)


def test_tr_94_a_summary_that_cannot_be_had_leaves_the_notes_of_the_receipts() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await owner(rig, Told([("mail", "a")], "sent"))
        await crew.turn("mail")

        async def refuse(*_: Any) -> Reply:
            raise ProviderError("no", code="SF-X")

        complete = crew.model.complete
        crew.model.complete = refuse  # type: ignore[method-assign]
        payload = await crew.do(crew.controller.rewriting.compact())
        crew.model.complete = complete  # type: ignore[method-assign]
        assert payload["summary"] is None and payload["counts"] == {"finished": 1}
        assert crew.told("summary_missing")

    play(main)


def test_tr_186_f14_a_lost_line_of_the_summary_leaves_the_old_view() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await owner(rig, Told([("mail", "a")], "sent"))
        await crew.turn("mail")
        before = (await crew.session.history()).messages(crew.session.book)

        async def lose(*_: Any) -> Reply:
            raise ProviderUnreachable("the line was lost")

        crew.model.complete = lose  # type: ignore[method-assign]
        await crew.do(crew.controller.rewriting.compact())
        assert crew.told("summary_missing")
        assert (await crew.session.history()).messages(crew.session.book) == before

    play(main)


def test_tr_184_stop_ends_the_request_for_a_summary_and_nothing_is_rewritten() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await owner(rig, Told([("mail", "a")], "sent"))
        await crew.turn("mail")
        going = asyncio.ensure_future(crew.controller.rewriting.compact())
        await asyncio.sleep(0)
        parked = await crew.controller.submit("and now?")
        assert getattr(parked, "text", None) == "and now?" and crew.controller.state == "rotating"
        await asyncio.sleep(0.001)
        await crew.controller.stop()
        assert (await going)["code"] == "cancelled" and crew.controller.state == "idle"
        assert not await crew.entries(Kind.COMPACTED) and crew.controller.take_parked() == ["and now?"]

    play(main)


def test_tr_94_with_nothing_before_the_cut_nothing_is_done() -> None:
    async def main(sim: Simulation) -> None:
        crew = await owner(Rig(sim), Told())
        assert (await crew.do(crew.controller.rewriting.compact()))["code"] == "nothing_to_compact"

    play(main)


def test_tr_95_calls_left_by_a_rewind_stay_open_are_marked_and_fence_on() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await owner(
            rig, Told("hi", [("save", "a"), ("look", "a"), ("pay", "a")], "unsure", [("pay", "b")], "held")
        )
        await crew.turn("hello")
        end = await crew.turn("save and pay")
        left = await crew.do(crew.controller.rewriting.rewind(end.turn_id))
        saved, _, paid = crew.session.book
        assert [one["attempt"] for one in left["remaining"]] == [saved.attempt_id]
        rows = {row["attemptId"]: row for row in crew.actions.snapshot()["calls"]}
        assert rows[paid.attempt_id]["offBranch"] and rows[paid.attempt_id]["fencing"]
        await crew.turn("pay b")
        shown = [one for one in crew.model.asked[-2] if isinstance(one, UserWords)]
        assert [one.text for one in shown] == ["hello", "pay b"]
        assert paid.attempt_id in (shown[-1].facts or "") and saved.attempt_id in (shown[-1].facts or "")
        assert rig.world.count("b") == 0

    play(main)


def test_tr_95_a_turn_that_is_not_in_the_view_cannot_be_gone_back_to() -> None:
    async def main(sim: Simulation) -> None:
        crew = await owner(Rig(sim), Told("hi"))
        end = await crew.turn("hello")
        await crew.do(crew.controller.rewriting.rewind(end.turn_id))
        assert (await crew.do(crew.controller.rewriting.rewind(end.turn_id)))["code"] == "turn_not_in_view"

    play(main)


async def forked(rig: Rig, model: PlayedModel) -> Crew:
    """A fork of the rig's session, owned and opened by a process of its own."""
    process = rig.sim.process("fork")

    async def begin() -> Crew:
        ledger = MemoryLedger(rig.store)
        made = await fork(
            ledger,
            process.scheduler(),
            process.owner,
            SESSION,
            opening={"directory": "/sim"},
            times=LeaseTimes(),
        )
        await made.close()
        from surefoot.runtime.session import Wanted

        setup = Setup(tools=tools(rig), model=model)
        crew = await assemble(
            ledger, process.scheduler(), process.owner, Wanted(made.session_id), setup, process
        )
        await crew.controller.open()
        return crew

    crew: Crew = await process.run(begin())
    return crew


def test_tr_96_ux_52_a_fork_carries_open_calls_and_each_copy_is_decided_in_its_own_session() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        origin = await owner(rig, Told([("mail", "a")], [("pay", "a")], "unsure"))
        await origin.turn("mail and pay")
        before = await origin.entries()
        crew = await forked(rig, Told([("pay", "b")], "held"))
        assert await origin.entries() == before, "the origin is only read"
        [copy] = crew.session.book
        [opened] = origin.session.book.open()
        assert copy.origin_attempt_id == opened.attempt_id and copy.attempt_id != opened.attempt_id
        assert (copy.state, copy.reason, copy.reach) == (opened.state, opened.reason, opened.reach)
        assert copy.idempotency_key == opened.idempotency_key and copy.arguments == opened.arguments
        await crew.turn("go on")
        shown = crew.model.asked[0]
        assert [type(one) for one in shown[:5]] == [
            UserWords,
            AssistantWords,
            ResultGiven,
            AssistantWords,
            ResultGiven,
        ]
        assert isinstance(shown[-1], UserWords) and copy.attempt_id in (shown[-1].facts or "")
        assert rig.world.count("b") == 0, "the fence holds in the fork"
        await origin.press("inspect", opened.attempt_id)
        await origin.press("confirm", opened.attempt_id)
        assert crew.session.book.is_open(copy.attempt_id)
        await crew.press("inspect", copy.attempt_id)
        seen = crew.receipt(copy.attempt_id).inspection or {}
        assert seen["evidence"]["origin"]["resolution"]["kind"] == "confirmed"
        assert not crew.receipt(copy.attempt_id).has(Overlay.PROVEN)
        await crew.press("release", copy.attempt_id)
        assert not crew.session.book.is_open(copy.attempt_id)

    play(main)


def test_tr_96_a_copy_is_never_run_again_in_the_fork() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        far = rig.world.tool("save", IDEM, reach=("host:s",), behaviour=Behaviour(seconds_before=9))
        origin = await rig.own(Setup(tools=[far], model=Told([("save", "a")])))
        going = asyncio.ensure_future(origin.turn("save"))
        await asyncio.sleep(1)
        crew = await forked(rig, Told("well"))
        [copy] = crew.session.book
        assert (copy.state, (copy.executor or {})["state"]) == (State.UNKNOWN, "alive")
        answer = await crew.press("retry", copy.attempt_id)
        assert answer.status == 409
        row = crew.actions.snapshot()["calls"][0]
        assert row["decision"] != "RETRY" or not crew.actions.standing.plan()[0].runs_again
        assert crew.controller.resume()["willRunAgain"] == []
        await crew.turn("go on")
        if crew.process is not None:
            crew.process.kill()
        await going
        assert rig.world.count("a") == 1

    play(main)


def test_tr_96_retry_of_a_copy_is_refused_with_retry_at_origin() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        origin = await owner(rig, Told([("pay", "a")], "unsure"))
        await origin.turn("pay")
        crew = await forked(rig, Told())
        [copy] = crew.session.book
        facts = crew.actions.retrying.facts(copy)
        assert facts.at_origin is False
        codes = {one["action"]: one["code"] for one in crew.actions.snapshot()["calls"][0]["actions"]}
        assert codes["release"] is None and codes["retry"] is not None

    play(main)
