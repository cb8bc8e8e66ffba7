"""The order receipt, effect, settlement, and every way it may be disturbed."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import surefoot
from surefoot.core.canonical import digest_text
from surefoot.core.effects import Effect
from surefoot.core.model import BarrierLevel, Draft, EffectClass, EffectTrace, Kind, Receipt, State
from surefoot.errors import LedgerError, LedgerUncertain, OutcomeUnknown
from surefoot.runtime.live import Batch, Call, Changed, Looked, Refused
from surefoot.runtime.people import PermissionAnswer, PermissionQuestion
from surefoot.runtime.tools import LiveAttempt, Outcome, Prepared, Tool
from surefoot.testing.faults import CountingLedger, FailingLedger
from surefoot.testing.rig import Rig, Setup
from surefoot.testing.simulation import Simulation, simulate
from surefoot.testing.world import SCHEMA, Behaviour

READ, IDEM, ONCE, UNDECIDED = (
    EffectClass.READ_ONLY,
    EffectClass.IDEMPOTENT_WRITE,
    EffectClass.NON_IDEMPOTENT,
    EffectClass.UNKNOWN,
)


def play(main: Callable[[Simulation], Coroutine[Any, Any, Any]], seed: int = 1) -> Any:
    return simulate(seed, main)


def own_tool(name: str, body: Any, effect: Any = None, **declared: Any) -> Tool:
    blocking = not asyncio.iscoroutinefunction(body)
    bodies: dict[str, Any] = {"sync_body" if blocking else "body": body}
    return Tool(name, "", SCHEMA, effect=effect or Effect(ONCE, ("host:bank",)), **{**bodies, **declared})


class Person:
    """Answers every permission the same way; remembers what it was asked."""

    def __init__(self, verdict: str = "approved", during: Any = None) -> None:
        self.asked: list[PermissionQuestion] = []
        self.verdict, self.during = verdict, during

    async def permission(self, question: PermissionQuestion) -> PermissionAnswer:
        self.asked.append(question)
        if self.during is not None:
            await self.during()
        return PermissionAnswer(self.verdict, by="lin")

    async def question(self, question: Any) -> Any:
        raise AssertionError("nobody asked a question")


# --- order ----------------------------------------------------------------------------------


@pytest.mark.promise("barrier:intent-first")
def test_tr_20_the_body_finds_its_own_start_already_in_the_ledger() -> None:
    async def main(sim: Simulation) -> None:
        rig, seen = Rig(sim), []

        async def body(live: LiveAttempt, arguments: Any) -> str:
            rows = rig.store.sessions[live.session_id].rows
            seen.append((rows[-1][3], live.attempt_id in rows[-1][6]))
            return "done"

        crew = await rig.own(Setup(tools=[own_tool("pay", body)]))
        receipt = await crew.call("pay", label="a")
        assert seen == [(Kind.STARTED, True)]
        assert receipt.state is State.SUCCEEDED and receipt.idempotency_key

    play(main)


def test_tr_22_a_plain_call_costs_two_commits_beyond_its_message() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        counting: list[CountingLedger] = []

        def wrap(ledger: Any, process: Any) -> Any:
            counting.append(CountingLedger(ledger))
            return counting[0]

        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)]), wrap=wrap)
        before = rig.store.commits
        await crew.call("pay", label="a")
        assert rig.store.commits - before == 3
        assert counting[0].counts[Kind.STARTED] == counting[0].counts[Kind.CLOSED] == 1

    play(main)


def test_tr_22_calls_that_start_together_share_a_commit() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(Setup(tools=[rig.world.tool("look", READ)]))
        before = rig.store.commits
        await crew.batch(*[("look", {"label": str(n)}) for n in range(8)])
        assert rig.store.commits - before < 1 + 16

    play(main)


@pytest.mark.promise("barrier:settle-first")
def test_tr_28_a_result_is_shown_to_nobody_before_its_close_is_durable() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        steps = [{"calls": [{"name": "pay", "args": {"label": "a"}}]}, {"text": "ok"}]
        wrap = lambda ledger, process: FailingLedger(ledger, 1, kind=Kind.CLOSED, times=4)  # noqa: E731
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)], steps=steps), wrap=wrap)
        shown: list[tuple[str, int]] = []
        crew.controller.subscribe(
            lambda notice: (
                shown.append((str(notice.facts["entry"]), len(crew.model.asked)))
                if notice.kind == "receipt"
                else None
            )
        )
        end = await crew.turn()
        assert end.status == "completed" and len(crew.told("outcome_withheld")) == 4
        assert shown == [(Kind.STARTED, 1), (Kind.CLOSED, 1)]
        closed = (await crew.entries(Kind.CLOSED))[0].position
        second_request = (await crew.entries(Kind.ASSISTANT))[1].position
        assert closed < second_request and rig.world.count() == 1

    play(main)


@pytest.mark.promise("barrier:one-door")
def test_tr_19_only_one_function_calls_a_tool_body() -> None:
    doors: list[str] = []
    package = Path(surefoot.__file__).parent
    for path in package.rglob("*.py"):
        if {"testing", "providers"} & set(path.parts):  # providers know no tool; a contract says so
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if called and node.func.attr in ("body", "sync_body"):  # type: ignore[attr-defined]
                doors.append(f"{path.relative_to(package)}:{node.func.attr}")  # type: ignore[attr-defined]
    assert sorted(doors) == ["runtime/tools.py:body", "runtime/tools.py:sync_body"]
    callers = [
        path.name
        for path in package.rglob("*.py")
        if "testing" not in path.parts
        and any(
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "invoke"
            for node in ast.walk(ast.parse(path.read_text()))
        )
    ]
    assert callers == ["barrier.py"]


# --- failing writes ---------------------------------------------------------------------------


@pytest.mark.promise("barrier:fail-closed")
@pytest.mark.parametrize("how", ["refused", "lost", "kept"])
def test_tr_26_a_start_that_is_not_durable_enters_no_body_and_says_so(how: str) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        wrap = lambda ledger, process: FailingLedger(ledger, 1, how=how, kind=Kind.STARTED)  # noqa: E731
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)]), wrap=wrap)
        receipts = await crew.batch(("pay", {"label": "a"}), ("pay", {"label": "b"}))
        assert rig.world.bodies == []
        if how == "kept":  # found later: the start is durable, the body was never entered (TR-27)
            assert (receipts[0].state, receipts[0].reason) == (State.FAILED, "never_ran")
            assert receipts[0].effect_trace is EffectTrace.NONE
        else:
            assert (receipts[0].state, receipts[0].reason) == (State.NOT_STARTED, "receipt_not_durable")
        assert receipts[1].state is State.NOT_STARTED
        later = await crew.call("pay", label="c")
        assert later.state is State.SUCCEEDED and rig.world.count() == 1

    play(main)


def test_tr_23_a_refusal_that_cannot_be_written_reads_as_not_started() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)]))
        calls = await crew.dispatch(("pay", {"label": "a"}))
        rig.store.fault = lambda kinds: LedgerError("the disk is full")

        told = await crew.barrier.run(await crew.barrier.look(calls[0]), Batch())
        assert (told.state, told.reason) == (State.NOT_STARTED, "receipt_not_durable")
        assert crew.receipt(calls[0].attempt_id).state is State.DISPATCHED
        assert not rig.world.bodies and not crew.session.book.open()

    play(main)


def test_tr_27_a_start_found_only_after_the_turn_is_closed_as_never_run() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        wrap = lambda ledger, process: FailingLedger(ledger, 1, how="kept", kind=Kind.STARTED, unsure=3)  # noqa: E731
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)]), wrap=wrap)
        calls = await crew.dispatch(("pay", {"label": "a"}))

        with pytest.raises(LedgerUncertain):
            await crew.barrier.run(await crew.barrier.look(calls[0]), Batch())
        later = await crew.call("pay", label="b")
        assert later.state in (State.SUCCEEDED, State.NOT_STARTED)
        await asyncio.sleep(1)
        found = crew.receipt(calls[0].attempt_id)
        assert (found.state, found.reason, found.effect_trace) == (
            State.FAILED,
            "never_ran",
            EffectTrace.NONE,
        )
        assert rig.world.count("a") == 0

    play(main)


@pytest.mark.promise("barrier:fail-closed")
@pytest.mark.parametrize("at", range(1, 9))
@pytest.mark.parametrize("how", ["refused", "lost", "kept"])
def test_tr_20_each_write_fails_in_turn_and_no_false_word_is_said(at: int, how: str) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        steps = [{"calls": [{"name": "pay", "args": {"label": label}} for label in "ab"]}, {"text": "ok"}]
        wrap = lambda ledger, process: FailingLedger(ledger, at, how=how)  # noqa: E731
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)], steps=steps), wrap=wrap)
        try:
            await crew.turn()
        except LedgerError:
            assert rig.world.bodies == []  # not even the words could be written
        await asyncio.sleep(10)
        for receipt in crew.session.book:
            happened = rig.world.count(call_id=receipt.call_id)
            entered = any(attempt == receipt.attempt_id for _, attempt in rig.world.bodies)
            assert happened <= 1
            if receipt.state is State.SUCCEEDED:
                assert happened == 1
            elif receipt.state in (State.NOT_STARTED, State.FAILED, State.DISPATCHED):
                assert happened == 0 and not entered
        await crew.turn("and now?")
        turns = [entry.payload["status"] for entry in await crew.entries(Kind.TURN)]
        assert turns.count("completed") + turns.count("failed") == turns.count("queued")

    play(main)


# --- refusals before the start ------------------------------------------------------------------


def test_tr_10_tr_34_tr_36_what_cannot_be_read_or_resolved_never_starts() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE, aliases=("give",))]))
        receipts = [
            (await crew.batch(one))[0]
            for one in (("pay", '{"label":"a","label":"b"}'), ("nothing", {}), ("pay", {}), ("pay", "{"))
        ]
        assert [one.reason for one in receipts] == [
            "arguments_invalid",
            "tool_missing",
            "arguments_invalid",
            "arguments_invalid",
        ]
        assert all(one.effect_trace is EffectTrace.NONE for one in receipts) and not rig.world.bodies
        alias = await crew.call("give", label="a")
        assert (alias.tool, alias.asked_name) == ("pay", "give")

    play(main)


@pytest.mark.parametrize(("characters", "order"), [(200, ["read", "others"]), (70_000, ["others", "read"])])
def test_tr_10_a_long_argument_text_is_read_while_others_go_on(characters: int, order: list[str]) -> None:
    async def main(sim: Simulation) -> None:
        seen: list[str] = []

        def effect(arguments: Any, place: Any) -> Effect:
            seen.append("read")
            return Effect(ONCE, ("host:bank",))

        async def body(live: LiveAttempt, arguments: Any) -> str:
            return "done"

        crew = await Rig(sim).own(Setup(tools=[own_tool("pay", body, effect)]))
        (call,) = await crew.dispatch(("pay", {"label": "a" * characters}))
        looking = asyncio.ensure_future(crew.barrier.look(call))
        await asyncio.sleep(0)
        seen.append("others")
        assert (await looking).refused is None
        assert seen == order

    play(main)


def test_ec_16_a_target_outside_the_write_roots_is_refused_before_anybody_is_asked() -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person()
        barred = lambda arguments, place: ("permission_denied", "outside")  # noqa: E731
        tool = rig.world.tool("pay", ONCE, refuses=barred, rule_name="Pay")
        crew = await rig.own(Setup(tools=[tool], asker=person, ask=["Pay"]))
        receipt = await crew.call("pay", label="a")
        assert (receipt.state, receipt.reason) == (State.NOT_STARTED, "permission_denied")
        assert person.asked == [] and rig.world.bodies == []

    play(main)


def test_ec_16_every_writing_file_tool_bars_targets_outside_the_roots(tmp_path: Path) -> None:
    from surefoot.runtime.tools import Place, barred
    from surefoot.tools.files.toolset import file_tools

    inside = tmp_path / "project"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    place = Place(inside, roots=(inside,))
    for tool in file_tools():
        if tool.effect == Effect(READ):
            continue
        for target in ("../out.txt", "link/out.txt"):
            given = {"path": target, "source": "a", "target": target}
            assert barred(tool, given, place) is not None, (tool.name, target)
        assert barred(tool, {"path": "in.txt", "source": "a", "target": "b"}, place) is None, tool.name


def test_tr_19_nobody_is_asked_about_a_call_that_would_be_refused() -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person()
        tools = [
            rig.world.tool("pay", ONCE, behaviour=Behaviour(fails="unknown")),
            rig.world.tool("send", ONCE, rule_name="Send"),
        ]
        crew = await rig.own(Setup(tools=tools, asker=person, ask=["Send"]))
        await crew.call("pay", label="a")
        assert (await crew.call("send", label="a")).reason == "fenced"
        assert person.asked == []

    play(main)


def test_tr_19_the_barrier_looks_again_after_the_answer_of_a_person() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)

        async def meanwhile() -> None:
            await crew.call("pay", label="x")

        person = Person(during=meanwhile)
        tools = [
            rig.world.tool("pay", ONCE, behaviour=Behaviour(fails="unknown")),
            rig.world.tool("send", ONCE, rule_name="Send"),
        ]
        crew = await rig.own(Setup(tools=tools, asker=person, ask=["Send"]))
        assert (await crew.call("send", label="a")).reason == "fenced"
        assert len(person.asked) == 1 and rig.world.count("a") == 0

    play(main)


def test_tr_21_the_fence_is_judged_inside_the_commit_of_the_start() -> None:
    async def main(sim: Simulation) -> None:
        """The earlier write becomes unknown while the later one is already on its way to the ledger."""
        rig = Rig(sim)
        slow = Behaviour(fails="unknown", seconds_before=1.0)
        tools = [rig.world.tool("pay", ONCE, behaviour=slow), rig.world.tool("send", ONCE)]
        crew = await rig.own(Setup(tools=tools))
        first = asyncio.ensure_future(crew.call("pay", label="a"))
        await asyncio.sleep(0.5)
        append = crew.session.append

        async def closing_first(*drafts: Any, judge: Any = None, after: Any = None) -> Any:
            if judge is not None and drafts[0].kind == Kind.STARTED:
                await first  # every look of the second call is over; only its commit is left
            return await append(*drafts, judge=judge, after=after)

        crew.session.append = closing_first  # type: ignore[method-assign]
        second = await crew.call("send", label="b")
        assert (await first).state is State.UNKNOWN
        assert second.reason == "fenced" and rig.world.count("b") == 0

    play(main)


class Hooked:
    """Answers each look with the next of its answers."""

    def __init__(self, *answers: Refused | Changed | None) -> None:
        self.answers, self.seen, self.after_calls = list(answers), [], []  # type: ignore[var-annotated]

    async def before(self, looked: Looked) -> Refused | Changed | None:
        self.seen.append(looked.call.arguments)
        return self.answers.pop(0) if self.answers else None

    async def after(self, receipt: Receipt) -> None:
        self.after_calls.append(receipt)


def test_tr_24_a_hook_that_changes_the_call_sends_it_back_to_the_beginning() -> None:
    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person()
        hook = Hooked(Changed("pay", '{"label":"b"}'))
        tool = rig.world.tool("pay", ONCE, rule_name="Pay")
        crew = await rig.own(Setup(tools=[tool], hooks=[hook], asker=person, ask=["Pay"]))
        receipt = await crew.call("pay", label="a")
        assert receipt.arguments == '{"label":"b"}' and rig.world.count("b") == 1
        assert [one.argument_digest for one in person.asked][-1] == receipt.argument_digest
        assert len(person.asked) == 2, "the changed form is asked about anew (TR-171)"
        assert [one.state for one in hook.after_calls] == [State.SUCCEEDED]

    play(main)


def test_tr_24_three_changes_by_hooks_end_the_call() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        hook = Hooked(*[Changed("pay", f'{{"label":"{n}"}}') for n in range(9)])
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)], hooks=[hook]))
        receipt = await crew.call("pay", label="a")
        assert (receipt.state, receipt.reason) == (State.NOT_STARTED, "hook_unstable")
        assert len(hook.seen) == 3 and not rig.world.bodies

    play(main)


def test_tr_25_tr_9_what_a_hook_runs_is_a_call_of_its_own_and_fences_like_any_other() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)

        class Formatting(Hooked):
            async def after(self, receipt: Receipt) -> None:
                if receipt.parent_attempt_id is None:
                    await crew.barrier.nested(receipt.attempt_id, "format", '{"label":"f"}')

        tools = [
            rig.world.tool("pay", ONCE),
            rig.world.tool("format", UNDECIDED, behaviour=Behaviour(fails="unknown")),
        ]
        crew = await rig.own(Setup(tools=tools, hooks=[Formatting()]))
        first = await crew.call("pay", label="a")
        child = crew.session.book.children(first.attempt_id)[0]
        assert first.state is State.SUCCEEDED and child.state is State.UNKNOWN
        assert (await crew.call("pay", label="b")).reason == "fenced"

    play(main)


def test_tr_35_a_parent_with_an_open_child_is_not_shown_as_finished() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)

        async def body(live: LiveAttempt, arguments: Any) -> str:
            await crew.barrier.nested(live.attempt_id, "pay", '{"label":"child"}')
            return "all done"

        tools = [
            own_tool("many", body),
            rig.world.tool("pay", ONCE, reach=("host:x",), behaviour=Behaviour(fails="unknown")),
        ]
        crew = await rig.own(Setup(tools=tools))
        parent = await crew.call("many", label="a")
        assert (parent.state, parent.reason) == (State.UNKNOWN, "child_open")
        assert crew.session.book.is_open(parent.attempt_id)
        child = crew.session.book.children(parent.attempt_id)[0]
        assert (await crew.press("release", child.attempt_id)).status == 200
        assert not crew.session.book.is_open(parent.attempt_id)

    play(main)


def test_tr_105_a_tool_that_cannot_be_prepared_does_not_start() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)

        async def prepare(arguments: Any, place: Any, receipt: Any, services: Any) -> Prepared:
            raise OSError("no such folder")

        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE, prepare=prepare)]))
        receipt = await crew.call("pay", label="a")
        assert (receipt.state, receipt.reason) == (State.NOT_STARTED, "receipt_not_durable")
        assert not rig.world.bodies

    play(main)


def test_tr_76_a_call_whose_deadline_does_not_fit_into_the_lease_is_not_started() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE, time_limit_seconds=120)]))
        kept = rig.store.sessions[crew.session.session_id]
        until = kept.lease_boot_ms
        assert (await crew.call("pay", label="a")).state is State.SUCCEEDED
        assert kept.lease_boot_ms == until, "the deadline stands in the start; it costs no commit (TR-22)"

        async def unreachable(session_id: str, *, epoch: int, until_ms: int) -> bool:
            raise LedgerError("the ledger cannot be reached")

        crew.session._renewing.cancel()  # nobody has noticed yet that the lease ran out
        sim.loop.advance(100)
        crew.session.ledger.renew = unreachable  # type: ignore[method-assign]
        refused = await crew.call("pay", label="b")
        assert (refused.state, refused.reason) == (State.NOT_STARTED, "deadline_too_short")
        assert rig.world.count("b") == 0

    play(main)


# --- ends of bodies -------------------------------------------------------------------------------


@pytest.mark.promise("receipt:exact")
@pytest.mark.parametrize(
    ("raised", "state", "reason"),
    [
        (TimeoutError(), State.UNKNOWN, "time_limit"),
        (ConnectionResetError(), State.UNKNOWN, "connection_lost"),
        (BrokenPipeError(), State.UNKNOWN, "connection_lost"),
        (KeyboardInterrupt(), State.UNKNOWN, "undecided_exception"),
        (SystemExit(1), State.UNKNOWN, "undecided_exception"),
        (MemoryError(), State.UNKNOWN, "undecided_exception"),
        (OutcomeUnknown("who knows"), State.UNKNOWN, "declared"),
        (asyncio.CancelledError(), State.UNKNOWN, "cancelled"),
        (ValueError("no"), State.FAILED, None),
    ],
)
def test_tr_38_tr_39_tr_40_an_exception_after_the_start_is_unknown_unless_the_tool_failed(
    raised: BaseException, state: State, reason: str | None
) -> None:
    async def main(sim: Simulation) -> None:
        async def body(live: LiveAttempt, arguments: Any) -> str:
            raise raised

        crew = await Rig(sim).own(Setup(tools=[own_tool("pay", body)]))
        receipt = await crew.call("pay", label="a")
        assert (receipt.state, receipt.reason) == (state, reason)
        assert receipt.effect_trace is EffectTrace.POSSIBLE
        assert crew.session.book.is_open(receipt.attempt_id) is (state is State.UNKNOWN)

    play(main)


def test_tr_39_a_foreign_tool_may_not_state_that_nothing_happened() -> None:
    async def main(sim: Simulation) -> None:
        async def body(live: LiveAttempt, arguments: Any) -> Outcome:
            return Outcome("no", State.FAILED, effect_trace=EffectTrace.NONE)

        crew = await Rig(sim).own(Setup(tools=[own_tool("ours", body), own_tool("theirs", body, own=False)]))
        assert (await crew.call("ours", label="a")).effect_trace is EffectTrace.NONE
        assert (await crew.call("theirs", label="a")).effect_trace is EffectTrace.POSSIBLE

    play(main)


@pytest.mark.promise("receipt:exact")
def test_tr_38_tr_77_a_thread_past_its_limit_is_alive_and_its_return_is_the_late_truth() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        gate = asyncio.get_running_loop().create_future()

        def body(live: LiveAttempt, arguments: Any) -> str:
            rig.world.happen("pay", live, reach=("*",), label="a")
            return "the truth"

        crew = await rig.own(Setup(tools=[own_tool("pay", body, time_limit_seconds=1)]))
        scheduler = crew.session.scheduler

        def thread(work: Any, name: str) -> Any:
            future = asyncio.get_running_loop().create_future()

            async def later() -> None:
                value = work()  # entered at once, returns when the gate opens
                await gate
                if not future.done():
                    future.set_result(value)

            scheduler.spawn(later(), name)
            return future

        scheduler.thread = thread  # type: ignore[method-assign, assignment]
        receipt = await crew.call("pay", label="a")
        assert (receipt.state, receipt.reason) == (State.UNKNOWN, "time_limit")
        assert crew.actions.standing.executor(receipt) == "alive"
        assert (await crew.press("inspect", receipt.attempt_id)).status == 200
        assert (await crew.press("deny", receipt.attempt_id)).body["code"] == "executor_alive"
        gate.set_result(None)
        await asyncio.sleep(1)
        late = crew.receipt(receipt.attempt_id)
        assert late.state is State.SUCCEEDED and late.result == {"text": "the truth", "isError": False}
        assert not crew.session.book.open() and rig.world.count() == 1

    play(main)


def test_tr_77_a_limit_that_comes_before_the_body_closes_the_call_as_never_run() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)

        def body(live: LiveAttempt, arguments: Any) -> str:
            rig.world.happen("pay", live, reach=("*",), label="a")
            return "done"

        crew = await rig.own(Setup(tools=[own_tool("pay", body, time_limit_seconds=0.0)]))
        receipt = await crew.call("pay", label="a")
        await asyncio.sleep(1)
        if receipt.state is State.FAILED:
            assert receipt.reason == "never_ran" and rig.world.count() == 0
        else:
            assert rig.world.count() == 1

    for seed in range(20):
        play(main, seed)


def test_tr_43_an_effect_seen_after_it_was_called_absent_raises_a_notice() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        handed: list[LiveAttempt] = []

        async def body(live: LiveAttempt, arguments: Any) -> Outcome:
            handed.append(live)
            return Outcome("", State.UNKNOWN, "connection_lost", executor="not_proven")

        crew = await rig.own(Setup(tools=[own_tool("pay", body)]))
        receipt = await crew.call("pay", label="a")
        await crew.press("inspect", receipt.attempt_id)
        assert (await crew.press("deny", receipt.attempt_id)).status == 200
        handed[0].late(Outcome("it went through"), "exit_record")
        await asyncio.sleep(1)
        assert [one["attemptId"] for one in crew.told("effect_after_absent")] == [receipt.attempt_id]
        assert crew.receipt(receipt.attempt_id).state is State.SUCCEEDED

    play(main)


def test_tr_43_a_late_truth_waits_for_the_close_it_corrects() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        wrap = lambda ledger, process: FailingLedger(ledger, 1, kind=Kind.CLOSED, times=3)  # noqa: E731

        async def body(live: LiveAttempt, arguments: Any) -> Outcome:
            live.late(Outcome("the truth"), "exit_record")
            return Outcome("", State.UNKNOWN, "connection_lost")

        crew = await rig.own(Setup(tools=[own_tool("pay", body)]), wrap=wrap)
        receipt = await crew.call("pay", label="a")
        await asyncio.sleep(1)
        assert crew.receipt(receipt.attempt_id).state is State.SUCCEEDED

    play(main)


# --- cancel and stop --------------------------------------------------------------------------------


@pytest.mark.promise("receipt:exact")
@pytest.mark.parametrize("steps", range(0, 60, 1))
def test_tr_29_a_cancel_at_every_await_leaves_an_exact_receipt(steps: int) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        behaviour = Behaviour(seconds_before=0.001, seconds_after=0.001)
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE, behaviour=behaviour)]))
        calls = await crew.dispatch(("pay", {"label": "a"}))

        task = asyncio.ensure_future(crew.barrier.run(await crew.barrier.look(calls[0]), Batch()))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(5)
        await crew.barrier.settle_untaken(calls[0].turn_id)  # as the end of its turn does
        receipt = crew.receipt(calls[0].attempt_id)
        happened, entered = rig.world.count(), bool(rig.world.bodies)
        assert receipt.state not in (State.DISPATCHED, State.STARTED), "the settlement goes on behind"
        if receipt.state in (State.NOT_STARTED, State.FAILED):
            assert not happened and not entered
        if receipt.state is State.SUCCEEDED:
            assert happened == 1

    play(main, steps)


def test_tr_29_a_cancel_during_the_start_commit_never_enters_the_body() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)]))
        calls = await crew.dispatch(("pay", {"label": "a"}))

        task: list[asyncio.Task[Any]] = []
        rig.store.fault = lambda kinds: (task[0].cancel(), None)[1] if Kind.STARTED in kinds else None
        task.append(asyncio.ensure_future(crew.barrier.run(await crew.barrier.look(calls[0]), Batch())))
        await asyncio.wait(task)
        await asyncio.sleep(1)
        receipt = crew.receipt(calls[0].attempt_id)
        assert (receipt.state, receipt.reason) == (State.FAILED, "never_ran")
        assert not rig.world.bodies

    play(main)


def test_tr_23_a_call_on_its_way_when_stop_came_does_not_start_in_the_next_turn() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        gate = asyncio.get_running_loop().create_future()

        async def prepare(arguments: Any, place: Any, receipt: Any, services: Any) -> Prepared:
            await gate
            return Prepared()

        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE, prepare=prepare)]))
        running = asyncio.ensure_future(crew.call("pay", label="a"))
        await asyncio.sleep(0.1)
        await crew.barrier.stop()
        crew.barrier.resume()
        gate.set_result(None)
        receipt = await running
        assert (receipt.state, receipt.reason) == (State.NOT_STARTED, "cancelled_before_start")
        assert not rig.world.bodies

    play(main)


def test_tr_175_a_body_is_not_entered_after_the_lease_ran_out() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim, deaths_seen=False)
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE)]))

        def asleep(kinds: list[str]) -> None:
            if Kind.STARTED in kinds:
                sim.loop.advance(3600)

        rig.store.fault = asleep  # type: ignore[assignment]

        async def gone(*_: Any, **__: Any) -> bool:
            return False

        crew.session.ledger.renew = gone  # type: ignore[method-assign]
        receipt_of = crew.call("pay", label="a")
        with pytest.raises(BaseException):  # noqa: B017 - the session is lost, and says so its own way
            receipt = await receipt_of
            assert receipt.reason == "never_ran"
            raise KeyError
        assert not rig.world.bodies

    play(main)


# --- levels -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "elsewhere", "same_reach", "same_action"),
    [
        (BarrierLevel.SESSION, False, False, False),
        (BarrierLevel.REACH, True, False, False),
        (BarrierLevel.ACTION, True, True, False),
        (BarrierLevel.ADVISE, True, True, True),
        (BarrierLevel.OFF, True, True, True),
    ],
)
def test_tr_80_tr_81_tr_82_each_level_refuses_what_it_says_and_never_a_read(
    level: BarrierLevel, elsewhere: bool, same_reach: bool, same_action: bool
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        doubtful = Behaviour(fails="unknown")
        tools = [
            rig.world.tool("pay", ONCE, reach=("host:bank",), behaviour=doubtful, aliases=("give",)),
            rig.world.tool("send", ONCE, reach=("host:bank",)),
            rig.world.tool("file", ONCE, reach=("path:/a",)),
            rig.world.tool("look", READ),
        ]
        crew = await rig.own(Setup(tools=tools, level=level))
        first = await crew.call("pay", label="a")
        assert first.state is State.UNKNOWN

        async def passes(tool: str, **arguments: Any) -> bool:
            receipt = await crew.call(tool, **arguments)
            assert receipt.state is not State.NOT_STARTED or receipt.reason == "fenced"
            return receipt.state is not State.NOT_STARTED

        assert await passes("look", label="a")
        assert await passes("file", label="b") is elsewhere
        assert await passes("send", label="b") is same_reach
        assert await passes("give", label="a") is same_action
        advised = crew.told("advised")
        assert (len(advised) >= 1) is (level is BarrierLevel.ADVISE)
        assert len({one["unknown"] for one in advised}) == len(advised), "told once per fencing call"

    play(main)


@pytest.mark.parametrize(("kinds", "held"), [({"device"}, False), (set(), True)])
def test_ec_11_a_kind_that_a_pack_adds_holds_back_its_own_alone_and_any_other_everything(
    kinds: set[str], held: bool
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        known: dict[str, Any] = {"reach_kinds": frozenset(kinds)}
        lost = Behaviour(fails="unknown")
        tools = [
            rig.world.tool("copy", ONCE, reach=["device:clipboard"], behaviour=lost, **known),
            rig.world.tool("paste", ONCE, reach=["device:clipboard"], **known),
            rig.world.tool("tune", ONCE, reach=["device:settings"], **known),
            rig.world.tool("save", ONCE, reach=["path:/a"], **known),
        ]
        crew = await rig.own(Setup(tools=tools))
        await crew.call("copy", label="a")
        assert (await crew.call("paste", label="b")).reason == "fenced"
        for name in ("tune", "save"):
            assert ((await crew.call(name, label=name)).reason == "fenced") is held, name

    play(main)


@pytest.mark.parametrize(("size", "kept"), [(2000, 2000), (2001, 2000)])
def test_tr_185_a_result_is_kept_up_to_the_limit_of_a_blob_and_says_what_was_cut(
    size: int, kept: int
) -> None:
    async def main(sim: Simulation) -> None:
        async def body(live: LiveAttempt, arguments: Any) -> str:
            return "é" * (size // 2) + "a" * (size % 2)

        limits = {"inline_result_bytes": 1000, "blob_bytes": 2000}
        crew = await Rig(sim).own(Setup(tools=[own_tool("dump", body)], limits=limits))
        receipt = await crew.call("dump", label="a")
        assert receipt.state is State.SUCCEEDED and receipt.result_ref is not None
        stored = await crew.session.ledger.get_blob(receipt.result_ref)
        assert len(stored) <= kept and digest_text(stored.decode()) == receipt.result_digest
        assert (f"had {size} bytes" in stored.decode()) is (size > 2000)

    play(main)


def test_tr_84_a_fenced_call_names_what_holds_it_and_is_no_error_of_the_tool() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE, behaviour=Behaviour(fails="unknown"))]))
        first = await crew.call("pay", label="a")
        refused = await crew.call("pay", label="b")
        assert refused.result is not None and refused.result["isError"] is False
        text = refused.result["text"]
        assert first.attempt_id[-4:] in text or "pay" in text
        assert refused.state is State.NOT_STARTED and refused.effect_trace is EffectTrace.NONE

    play(main)


def test_tr_92_an_identical_write_that_is_already_satisfied_is_answered_not_repeated() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        now = {"satisfied": True}

        class Intents:
            name, far = "intents", False

            def recovery_scope(self, call: Receipt) -> str:
                return "here"

            def inspect_effect(self, key: str, call: Receipt, deadline: Any, *, fenced: bool) -> Any:
                raise AssertionError

            def undisturbed(self, call: Receipt) -> bool:
                return True

            def satisfied(self, call: Receipt) -> bool:
                return now["satisfied"]

        async def prepare(arguments: Any, place: Any, receipt: Any, services: Any) -> Prepared:
            return Prepared(fields={"writeIntents": [{"version": 1, "path": "/a"}]})

        tool = rig.world.tool(
            "write", IDEM, behaviour=Behaviour(fails="unknown"), prepare=prepare, verifier=Intents()
        )
        crew = await rig.own(Setup(tools=[tool]))
        await crew.call("write", label="a")
        again = await crew.call("write", label="a")
        assert (again.state, again.reason) == (State.NOT_STARTED, "postcondition_satisfied")
        now["satisfied"] = False
        assert (await crew.call("write", label="a")).reason == "fenced"
        assert len(rig.world.bodies) == 1

    play(main)


def test_tr_91_the_guards_of_a_session_that_was_just_reopened_hold_for_its_first_call() -> None:
    """Its conversation has not been read by then: the call itself reads it."""

    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [rig.world.tool("pay", ONCE, behaviour=Behaviour(fails="unknown"))]
        first = await rig.own(Setup(tools=tools))
        unsure = await first.call("pay", label="a")
        assert first.process is not None
        first.process.kill()
        heir = await rig.own(Setup(tools=tools))
        assert (await heir.press("confirm", unsure.attempt_id)).status == 200
        call = Call(
            "trn_" + "0" * 25 + "9", "cal_" + "0" * 25 + "9", "att_" + "0" * 25 + "9", "pay", '{"label":"a"}'
        )
        row = {"callId": call.call_id, "attemptId": call.attempt_id, "position": 0,
               "askedName": "pay", "arguments": call.arguments, "providerCallId": "call_0"}  # fmt: skip
        said = Draft(Kind.ASSISTANT, {"turnId": call.turn_id, "text": "", "calls": [row]})
        await heir.do(heir.session.append(said))
        receipt = await heir.do(heir.barrier.run(await heir.barrier.look(call), Batch()))
        assert receipt.reason == "confirmed_effect"

    play(main)


def test_tr_91_after_a_confirm_the_same_action_is_refused_until_a_person_speaks() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        behaviour = Behaviour(fails="unknown")
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", ONCE, behaviour=behaviour)]))
        first = await crew.call("pay", label="a")
        await crew.press("inspect", first.attempt_id)
        assert (await crew.press("confirm", first.attempt_id)).status == 200
        behaviour.fails = ""
        assert (await crew.call("pay", label="a")).reason == "confirmed_effect"
        assert rig.world.count("a") == 1
        await crew.turn("do it again, I mean it")
        assert (await crew.call("pay", label="a")).state is State.SUCCEEDED

    play(main)


def test_tr_209_a_failed_write_that_may_have_left_something_is_looked_at_first() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        behaviour = Behaviour(fails="raises")
        tools = [rig.world.tool("pay", ONCE, behaviour=behaviour), rig.world.tool("look", READ)]
        crew = await rig.own(Setup(tools=tools))
        assert (await crew.call("pay", label="a")).state is State.FAILED
        assert (await crew.call("pay", label="a")).reason == "look_first"
        assert (await crew.call("pay", label="a")).state is State.FAILED, "refused once"
        await crew.call("look", label="a")
        assert (await crew.call("pay", label="a")).state is State.FAILED, "somebody looked"

    play(main)


def test_tr_16_tr_17_the_body_gets_its_key_in_context_and_argument_and_a_given_one_is_replaced() -> None:
    async def main(sim: Simulation) -> None:
        seen: list[tuple[str, str]] = []

        async def body(live: LiveAttempt, arguments: Any) -> str:
            seen.append((live.idempotency_key, arguments["idempotency_key"]))
            return "done"

        crew = await Rig(sim).own(Setup(tools=[own_tool("pay", body, key_argument="idempotency_key")]))
        receipt = await crew.call("pay", label="a", idempotency_key="mine")
        assert seen == [(receipt.idempotency_key, receipt.idempotency_key)]
        assert "key_replaced" in receipt.notes

    play(main)
