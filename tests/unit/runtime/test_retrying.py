"""The action `retry`: what refuses it, what it starts, and what a refusal leaves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from surefoot.core.model import EffectClass, ExecutorState, Kind, Receipt, State
from surefoot.errors import OutcomeUnknown
from surefoot.runtime.inside import inside_tool_body
from surefoot.runtime.live import Changed, Looked, Refused
from surefoot.runtime.people import PermissionAnswer
from surefoot.runtime.requests import Caller
from surefoot.runtime.tools import Tool
from surefoot.testing.rig import Crew, Rig, Setup
from surefoot.testing.simulation import Simulation, simulate
from surefoot.testing.world import Behaviour

ONCE, READ = EffectClass.NON_IDEMPOTENT, EffectClass.READ_ONLY
ON = {"retry_enabled": True}


def play(main: Callable[[Simulation], Coroutine[Any, Any, Any]], seed: int = 1) -> Any:
    return simulate(seed, main)


def lost_once(rig: Rig, effect_class: EffectClass = ONCE, **declared: Any) -> Tool:
    """A tool whose first body ends without a word and without an effect; every later one acts."""
    tool = rig.world.tool("pay", effect_class, reach=("host:h",), **declared)
    act, tries = tool.body, []

    async def body(live: Any, arguments: Any) -> Any:
        tries.append(live.attempt_id)
        if len(tries) == 1:
            raise OutcomeUnknown("the line went dead")
        assert act is not None
        return await act(live, arguments)

    return dataclasses.replace(tool, body=body)


async def lost(
    rig: Rig, tool: Tool | None = None, policy: dict[str, Any] | None = None, **changed: Any
) -> tuple[Crew, Receipt]:
    """An owner with one unknown write, looked at."""
    made = tool or lost_once(rig, verifier=rig.world.verifier())
    crew = await rig.own(Setup(tools=[made], policy=ON if policy is None else policy, **changed))
    receipt = await crew.call("pay", label="a")
    assert receipt.state is State.UNKNOWN
    await crew.press("inspect", receipt.attempt_id)
    return crew, crew.receipt(receipt.attempt_id)


async def finished(crew: Crew) -> None:
    for attempt in list(crew.actions.retrying.running):
        await crew.actions.retrying.settled(attempt)


def test_tr_136_tr_137_a_retry_is_a_new_call_with_the_old_key_and_arguments_in_one_commit() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew, old = await lost(rig)
        answer = await crew.press("retry", old.attempt_id)
        assert answer.status == 200, answer.body
        await finished(crew)
        now = crew.receipt(old.attempt_id)
        new = crew.receipt(now.superseded_by or "")
        assert new.supersedes == old.attempt_id and new.call_id != old.call_id
        assert (new.idempotency_key, new.arguments) == (old.idempotency_key, old.arguments)
        assert new.state is State.SUCCEEDED and not crew.session.book.is_open(old.attempt_id)
        assert rig.world.count("a") == 1 and not rig.world.twice()
        started = [entry for entry in await crew.entries(Kind.STARTED) if entry.payload.get("supersedes")]
        assert [entry.payload["attemptId"] for entry in started] == [new.attempt_id]
        assert crew.session.book.statistics()["retried"] == 1
        again = await crew.press("retry", old.attempt_id)
        assert again.body["code"] == "already_resolved" and rig.world.count("a") == 1

    play(main)


def test_tr_138_the_answer_comes_when_it_began_and_the_model_is_told_of_its_end() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew, old = await lost(rig)
        await crew.press("retry", old.attempt_id)
        new = crew.receipt(crew.receipt(old.attempt_id).superseded_by or "")
        assert new.state in (State.STARTED, State.SUCCEEDED)
        await finished(crew)
        told = str(await crew.actions.facts_for_next_turn())
        assert new.attempt_id in told and '"state":"succeeded"' in told

    play(main)


@pytest.mark.parametrize(
    ("declared", "policy", "before", "code"),
    [
        ({}, {}, None, "retry_disabled"),
        ({"verifier": None}, ON, None, "retry_verifier_missing"),
        ({}, ON, "reject", "retry_rejected"),
        ({"key_lifetime_seconds": 0.001}, ON, None, "retry_key_expired"),
    ],
)
def test_tr_133_tr_135_tr_18_what_is_missing_refuses_and_nothing_runs(
    declared: dict[str, Any], policy: dict[str, Any], before: str | None, code: str
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tool = lost_once(rig, **{"verifier": rig.world.verifier(), **declared})
        crew, old = await lost(rig, tool, policy)
        if before:
            await crew.press(before, old.attempt_id)
        await crew.session.scheduler.sleep(1)
        entries = len(await crew.entries())
        answer = await crew.press("retry", old.attempt_id)
        assert (answer.status, answer.body["code"]) == (409, code)
        assert len(await crew.entries()) == entries and rig.world.effects == []
        assert crew.session.book.is_open(old.attempt_id)
        (shown,) = [one for one in crew.actions.snapshot()["calls"] if one["attemptId"] == old.attempt_id]
        assert {"action": "retry", "enabled": False, "code": code} in shown["actions"]

    play(main)


def test_tr_135_the_look_of_this_moment_counts_and_not_the_older_one() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew, old = await lost(rig)
        assert (old.inspection or {})["state"] == "absent_fenced"
        seen = old.inspection

        class Came:
            name, far = "came", False

            def recovery_scope(self, call: Receipt) -> str:
                return "world"

            def inspect_effect(self, key: str, call: Receipt, deadline: Any, *, fenced: bool) -> Any:
                from surefoot.core.model import Grade
                from surefoot.verifiers.port import Observation

                return Observation("unknown", Grade.NONE)

        tool = crew.barrier.registry.resolve("pay")
        assert tool is not None
        crew.barrier.registry._tools["pay"] = dataclasses.replace(tool, verifier=Came())
        answer = await crew.press("retry", old.attempt_id)
        assert answer.body["code"] == "retry_effect_not_absent"
        now = crew.receipt(old.attempt_id)
        assert now.inspection != seen and crew.session.book.is_open(old.attempt_id) and not rig.world.effects

    play(main)


def test_tr_135_an_effect_that_is_found_settles_the_call_instead() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew, old = await lost(rig)
        rig.world.happen("pay", _late(old), reach=("host:h",), label="a")
        answer = await crew.press("retry", old.attempt_id)
        assert answer.body["code"] == "retry_effect_not_absent"
        assert not crew.session.book.is_open(old.attempt_id) and rig.world.count("a") == 1

    play(main)


def _late(receipt: Receipt) -> Any:
    return type("Live", (), {"idempotency_key": receipt.idempotency_key, "attempt_id": receipt.attempt_id,
                             "call_id": receipt.call_id})()  # fmt: skip


def test_tr_99_tr_135_another_scope_or_reach_is_another_call() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew, old = await lost(rig)
        tool = crew.barrier.registry.resolve("pay")
        assert tool is not None and tool.verifier is not None
        elsewhere = rig.world.verifier()
        elsewhere.recovery_scope = lambda call: "another account"  # type: ignore[method-assign]
        crew.barrier.registry._tools["pay"] = dataclasses.replace(tool, verifier=elsewhere)
        assert (await crew.press("retry", old.attempt_id)).body["code"] == "retry_scope_changed"
        wider = rig.world.tool("pay", ONCE, reach=("*",), verifier=rig.world.verifier())
        crew.barrier.registry._tools["pay"] = wider
        await crew.press("inspect", old.attempt_id)
        assert (await crew.press("retry", old.attempt_id)).body["code"] == "retry_scope_changed"
        del crew.barrier.registry._tools["pay"], crew.barrier.registry._names["pay"]
        assert (await crew.press("retry", old.attempt_id)).body["code"] == "retry_tool_missing"
        assert not rig.world.effects

    play(main)


class Swap:
    """A hook that turns the retried call into another one."""

    def __init__(self) -> None:
        self.on = False

    async def before(self, looked: Looked) -> Refused | Changed | None:
        wanted = '{"label":"b"}'
        if not self.on or (looked.arguments is not None and looked.arguments.value["label"] == "b"):
            return None
        return Changed("pay", wanted)

    async def after(self, receipt: Receipt) -> None:
        return None


def test_tr_136_a_call_that_changes_on_the_way_does_not_start_and_the_old_one_stays() -> None:
    async def main(sim: Simulation) -> None:
        rig, hook = Rig(sim), Swap()
        crew, old = await lost(rig, hooks=[hook])
        hook.on = True
        before = crew.receipt(old.attempt_id)
        answer = await crew.press("retry", old.attempt_id)
        assert answer.body["code"] == "retry_target_changed"
        now = crew.receipt(old.attempt_id)
        assert (now.state, now.overlays, now.superseded_by) == (before.state, before.overlays, None)
        assert crew.session.book.is_open(old.attempt_id) and not rig.world.effects
        assert crew.controller.state == "idle"

    play(main)


def test_tr_136_a_permission_that_is_denied_starts_nothing() -> None:
    class Person:
        says = "approved"

        async def permission(self, question: Any) -> PermissionAnswer:
            return PermissionAnswer(self.says, by="os_user")

    async def main(sim: Simulation) -> None:
        rig, person = Rig(sim), Person()
        crew, old = await lost(rig, ask=["pay"], asker=person)
        person.says = "denied"
        answer = await crew.press("retry", old.attempt_id)
        assert answer.body["code"] == "permission_denied" and not rig.world.effects
        assert crew.session.book.is_open(old.attempt_id)

    play(main)


def test_tr_136_a_request_with_arguments_is_refused() -> None:
    async def main(sim: Simulation) -> None:
        crew, old = await lost(Rig(sim))
        answer = await crew.press("retry", old.attempt_id, arguments={"label": "z"})
        assert (answer.status, answer.body["code"]) == (400, "unknown_field")

    play(main)


def test_tr_134_an_older_run_that_has_not_ended_refuses() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew, old = await lost(rig)
        crew.barrier.executor = lambda receipt: ExecutorState.NOT_PROVEN  # type: ignore[method-assign]
        assert (await crew.press("retry", old.attempt_id)).body["code"] == "retry_executor_alive"
        assert not rig.world.effects

    play(main)


def test_tr_126_words_wait_while_a_retry_runs_and_another_retry_is_refused() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        slow = lost_once(rig, verifier=rig.world.verifier())
        act = slow.body

        async def body(live: Any, arguments: Any) -> Any:
            assert act is not None
            answer = await act(live, arguments)
            await crew.session.scheduler.sleep(5)
            return answer

        crew, old = await lost(rig, dataclasses.replace(slow, body=body))
        await crew.press("retry", old.attempt_id)
        assert crew.controller.state == "running"
        assert (await crew.press("retry", old.attempt_id)).body["code"] == "running"
        assert (await crew.controller.submit("hello")).text == "hello" and crew.controller.parked == ["hello"]
        await finished(crew)
        assert crew.controller.state == "idle"

    play(main)


def test_tr_210_a_press_parked_while_a_retry_runs_is_recorded_when_it_has_settled() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        slow = lost_once(rig, verifier=rig.world.verifier())
        act = slow.body

        async def body(live: Any, arguments: Any) -> Any:
            assert act is not None
            answer = await act(live, arguments)
            await crew.session.scheduler.sleep(5)
            return answer

        other = rig.world.tool("other", ONCE, reach=("host:x",), behaviour=Behaviour(fails="unknown"))
        tools = [dataclasses.replace(slow, body=body), other]
        crew = await rig.own(Setup(tools=tools, policy=ON))
        old, left = await crew.call("pay", label="a"), await crew.call("other", label="b")
        await crew.press("inspect", old.attempt_id)
        await crew.press("retry", old.attempt_id)
        parked = await crew.press("release", left.attempt_id)
        assert [one["parked"] for one in parked.body["calls"] if one["attemptId"] == left.attempt_id] == [
            "release"
        ]
        await finished(crew)
        await crew.session.scheduler.sleep(1)
        assert not crew.session.book.is_open(left.attempt_id)

    play(main)


@pytest.mark.parametrize("action", ["confirm", "deny", "reject", "release", "retry"])
def test_tr_130_code_inside_a_tool_body_decides_nothing(action: str) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        answers: list[Any] = []
        crew: Crew

        async def meddle(live: Any, arguments: Any) -> str:
            assert inside_tool_body()
            target = arguments["label"]
            shown = crew.actions.snapshot()
            request = {
                "sessionPath": shown["sessionPath"],
                "runtimeEpoch": shown["runtimeEpoch"],
                "revision": shown["revision"],
                "attemptId": target,
                "inspectionId": (crew.receipt(target).inspection or {}).get("id"),
                "action": action,
            }
            caller = Caller("the person", "python", ancestry="full")
            answers.append(await crew.actions.act(request, caller))
            task = crew.session.scheduler.spawn(crew.actions.act(request, caller), "a task of the body")
            answers.append(await task)
            choice = {key: request[key] for key in ("sessionPath", "runtimeEpoch", "revision", "attemptId")}
            answers.append(await crew.actions.process({**choice, "choice": "leave"}, caller))
            return "tried"

        tool = dataclasses.replace(rig.world.tool("meddle", READ), body=meddle)
        pay = lost_once(rig, verifier=rig.world.verifier())
        crew = await rig.own(Setup(tools=[pay, tool], policy=ON))
        old = await crew.call("pay", label="a")
        await crew.press("inspect", old.attempt_id)
        await crew.call("meddle", label=old.attempt_id)
        assert [(one.status, one.body["code"], one.body["reason"]) for one in answers] == [
            (409, "person_required", "inside_tool_body")
        ] * 3
        assert crew.session.book.is_open(old.attempt_id) and not inside_tool_body()
        assert await crew.entries(Kind.RESOLVED) == []

    play(main)


def test_tr_130_a_thread_of_a_tool_body_is_inside_it_too() -> None:
    import threading

    async def main(sim: Simulation) -> None:
        rig, seen = Rig(sim), []

        def body(live: Any, arguments: Any) -> str:
            seen.append(inside_tool_body())
            inner = threading.Thread(target=lambda: seen.append(inside_tool_body()))
            inner.start()
            inner.join()
            return "done"

        tool = dataclasses.replace(rig.world.tool("look", READ), body=None, sync_body=body)
        crew = await rig.own(Setup(tools=[tool]))
        assert (await crew.call("look", label="a")).state is State.SUCCEEDED
        assert seen == [True, True] and not inside_tool_body()

    play(main)


@pytest.mark.parametrize(
    ("effect_class", "least", "has", "reason"),
    [
        (ONCE, "same-user", "same-user", None),
        (ONCE, "sandboxed", "same-user", "assurance_too_low"),
        (ONCE, "sandboxed", "passkey", None),
        (EffectClass.UNKNOWN, "passkey", "separate-user", "assurance_too_low"),
        (EffectClass.IDEMPOTENT_WRITE, "passkey", "same-user", None),
        (ONCE, "same-user", "trust me", "assurance_too_low"),
    ],
)
def test_ux_122_a_word_must_weigh_enough_for_a_call_that_cannot_be_taken_back(
    effect_class: EffectClass, least: str, has: str, reason: str | None
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tool = lost_once(rig, effect_class, verifier=rig.world.verifier())
        crew, old = await lost(rig, tool, {"assurance": least})
        shown = crew.actions.snapshot()
        request = {
            "sessionPath": shown["sessionPath"],
            "runtimeEpoch": shown["runtimeEpoch"],
            "revision": shown["revision"],
            "attemptId": old.attempt_id,
            "inspectionId": (old.inspection or {})["id"],
            "action": "confirm",
        }
        answer = await crew.actions.act(request, Caller("lin", "http", assurance=has))
        assert answer.body.get("reason") == reason and (answer.status == 200) is (reason is None)
        if reason is None:
            assert crew.receipt(old.attempt_id).resolution["assurance"] == has  # type: ignore[index]

    play(main)
