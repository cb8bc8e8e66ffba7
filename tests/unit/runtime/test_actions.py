"""The six actions on a live session: what they record, what refuses them, and when they wait."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from surefoot.core.model import Action, EffectClass, Grade, Kind, Receipt, State
from surefoot.errors import LedgerError
from surefoot.runtime.inspection import map_observation
from surefoot.testing.played import PlayedModel
from surefoot.testing.rig import Crew, Rig, Setup
from surefoot.testing.simulation import Simulation, simulate
from surefoot.testing.world import Behaviour
from surefoot.verifiers.port import Observation

ONCE, READ = EffectClass.NON_IDEMPOTENT, EffectClass.READ_ONLY
DECIDING = ("confirm", "deny", "reject", "release")


def play(main: Callable[[Simulation], Coroutine[Any, Any, Any]], seed: int = 1) -> Any:
    return simulate(seed, main)


async def doubtful(rig: Rig, count: int = 1, **changed: Any) -> tuple[Crew, list[Receipt]]:
    """An owner with open unknown writes."""
    tools = [
        rig.world.tool(f"pay{n}", ONCE, reach=(f"host:h{n}",), behaviour=Behaviour(fails="unknown"))
        for n in range(count)
    ]
    crew = await rig.own(Setup(tools=[*tools, rig.world.tool("look", READ)], **changed))
    return crew, [await crew.call(f"pay{n}", label="a") for n in range(count)]


@pytest.mark.promise("recovery:way-out")
@pytest.mark.parametrize("action", DECIDING)
def test_tr_124_tr_131_a_decision_is_one_durable_record_and_a_second_press_is_told_so(action: str) -> None:
    async def main(sim: Simulation) -> None:
        crew, [receipt] = await doubtful(Rig(sim))
        await crew.press("inspect", receipt.attempt_id)
        answer = await crew.press(action, receipt.attempt_id, note="seen")
        assert answer.status == 200
        record = (await crew.entries(Kind.RESOLVED))[-1].payload["resolution"]
        assert record["who"] == "lin" and record["channel"] == "python" and record["note"] == "seen"
        assert crew.session.book.is_open(receipt.attempt_id) is (action == "reject")
        again = await crew.press(action, receipt.attempt_id)
        assert (again.status, again.body["code"]) == (409, "already_resolved")
        assert (await crew.call("look", label="a")).state is State.SUCCEEDED, "reading is never fenced"
        fenced = (await crew.call("pay0", label="b")).reason
        assert (fenced == "fenced") is (action == "reject")

    play(main)


def test_tr_131_of_two_racing_presses_exactly_one_makes_a_record() -> None:
    async def main(sim: Simulation) -> None:
        crew, [receipt] = await doubtful(Rig(sim))
        await crew.press("inspect", receipt.attempt_id)
        answers = await asyncio.gather(
            crew.press("confirm", receipt.attempt_id), crew.press("deny", receipt.attempt_id)
        )
        assert sorted(one.status for one in answers) == [200, 409]
        assert {one.body.get("code") for one in answers} == {None, "already_resolved"}
        assert len(await crew.entries(Kind.RESOLVED)) == 1

    for seed in range(10):
        play(main, seed)


def test_tr_125_the_first_rule_that_refuses_answers() -> None:
    async def main(sim: Simulation) -> None:
        crew, [receipt] = await doubtful(Rig(sim))
        attempt = receipt.attempt_id
        for changed, status, code in (
            ({"surprise": 1}, 400, "unknown_field"),
            ({"action": "undo"}, 400, "unknown_action"),
            ({"note": "x" * 501}, 400, "bad_request"),
            ({"sessionPath": "elsewhere"}, 409, "session_mismatch"),
            ({"runtimeEpoch": "77"}, 409, "epoch_stale"),
            ({"revision": None}, 409, "revision_stale"),
            ({}, 409, "inspection_required"),
        ):
            answer = await crew.press("confirm", attempt, **changed)
            assert (answer.status, answer.body["code"]) == (status, code), changed
        unknown = await crew.press("confirm", attempt, attemptId="att_nobody")
        assert unknown.body["code"] == "attempt_unknown"
        await crew.press("inspect", attempt)
        old = crew.receipt(attempt).inspection or {}
        await crew.press("inspect", attempt)
        stale = await crew.press("confirm", attempt, inspectionId=old["id"])
        assert stale.body["code"] == "inspection_stale", "a newer look invalidates the older id (TR-128)"
        assert not await crew.entries(Kind.RESOLVED)

    play(main)


def test_tr_131_ux_67_a_decision_that_cannot_be_written_leaves_everything_as_it_was() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew, [receipt] = await doubtful(rig)
        rig.store.fault = lambda kinds: LedgerError("the disk is full")
        answer = await crew.press("release", receipt.attempt_id)
        assert (answer.status, answer.body["code"]) == (409, "storage_failed")
        assert crew.session.book.is_open(receipt.attempt_id)
        rig.store.fault = lambda kinds: None
        assert (await crew.press("release", receipt.attempt_id)).status == 200

    play(main)


def test_tr_132_several_calls_are_decided_in_one_commit_or_not_at_all() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew, receipts = await doubtful(rig, count=3)
        items = [{"attemptId": one.attempt_id} for one in receipts]
        bad = [*items, {"attemptId": "att_nobody"}]
        refused = await crew.press("release", receipts[0].attempt_id, items=bad)
        assert refused.status == 409 and len(crew.session.book.open()) == 3
        before = rig.store.commits
        done = await crew.press("release", receipts[0].attempt_id, items=items)
        assert done.status == 200 and rig.store.commits == before + 1
        assert crew.session.book.open() == []

    play(main)


def test_tr_210_a_press_during_a_turn_is_parked_and_recorded_at_the_next_border() -> None:
    async def main(sim: Simulation) -> None:
        model = PlayedModel(
            [{"calls": [{"name": "look", "args": {"label": "a"}}]}, {"text": "ok"}], seconds=5
        )
        crew, [receipt] = await doubtful(Rig(sim), model=model)
        crew.model.steps.insert(0, {"text": "placeholder"})  # the call above is in the history already
        turn = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(1)
        answer = await crew.press("release", receipt.attempt_id)
        shown = next(one for one in answer.body["calls"] if one["attemptId"] == receipt.attempt_id)
        assert answer.status == 200 and shown["parked"] == "release"
        assert not await crew.entries(Kind.RESOLVED), "nothing is recorded yet"
        await turn
        assert len(await crew.entries(Kind.RESOLVED)) == 1
        assert not crew.session.book.is_open(receipt.attempt_id)

    play(main)


def test_tr_210_a_parked_press_that_no_longer_holds_is_dropped_with_its_code() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        model = PlayedModel([{"text": "x"}, {"text": "ok"}], seconds=5)
        crew, [receipt] = await doubtful(rig, model=model)
        turn = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(1)
        assert (await crew.press("inspect", receipt.attempt_id)).status == 200, "a local look passes (TR-127)"
        assert (await crew.press("confirm", receipt.attempt_id)).status == 200
        assert (await crew.press("inspect", receipt.attempt_id)).status == 200
        await turn
        await crew.do(crew.actions.border())
        assert [one["code"] for one in crew.told("parked_dropped")] == ["inspection_stale"]
        assert crew.session.book.is_open(receipt.attempt_id)

    play(main)


def test_tr_132_tr_125_several_calls_are_not_parked() -> None:
    async def main(sim: Simulation) -> None:
        model = PlayedModel([{"text": "x"}, {"text": "ok"}], seconds=5)
        crew, [receipt] = await doubtful(Rig(sim), model=model)
        turn = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(1)
        items = [{"attemptId": receipt.attempt_id}]
        answer = await crew.press("release", receipt.attempt_id, items=items)
        assert answer.body["code"] == "running"
        await turn

    play(main)


@pytest.mark.promise("recovery:way-out")
def test_tr_87_tr_142_ux_6_from_every_open_call_an_idle_session_offers_a_way_that_then_works() -> None:
    async def main(sim: Simulation) -> None:
        crew, receipts = await doubtful(Rig(sim), count=3)
        await crew.press("inspect", receipts[0].attempt_id)
        await crew.press("inspect", receipts[1].attempt_id)
        await crew.press("reject", receipts[1].attempt_id)
        for receipt in receipts:
            rows = {one["attemptId"]: one for one in crew.actions.snapshot()["calls"]}
            offered = [one["action"] for one in rows[receipt.attempt_id]["actions"] if one["enabled"]]
            assert {one["action"] for one in rows[receipt.attempt_id]["actions"]} == {*Action}
            assert "release" in offered
            assert (await crew.press("release", receipt.attempt_id)).status == 200
        assert (await crew.call("pay0", label="z")).state is State.UNKNOWN

    play(main)


@pytest.mark.promise("recovery:never-guess")
@pytest.mark.parametrize("grade", list(Grade))
@pytest.mark.parametrize("fenced", [False, True])
@pytest.mark.parametrize("state", ["present", "absent", "satisfied", "unknown", "nonsense"])
def test_tr_101_an_observation_maps_to_one_of_four_states_and_absence_alone_proves_nothing(
    state: str, fenced: bool, grade: Grade
) -> None:
    seen = map_observation(Observation(state, grade, fenced=fenced))
    assert seen.proven is (state == "present" and grade is Grade.PROOF)
    if state == "absent":
        assert (seen.state == "absent_fenced") is (fenced and grade is Grade.PROOF)
    assert seen.state in ("present", "postcondition_satisfied", "absent_fenced", "unknown")


class Looking:
    """A verifier that does as it is told."""

    name, far = "looking", False

    def __init__(self, scope: str = "here") -> None:
        self.scope, self.answer = scope, Observation("unknown")  # type: ignore[var-annotated]

    def recovery_scope(self, call: Receipt) -> str:
        return self.scope

    def inspect_effect(self, key: str, call: Receipt, deadline: Any, *, fenced: bool) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.promise("recovery:never-guess")
@pytest.mark.parametrize(
    ("answer", "scope", "reason"),
    [
        (OSError("no"), "here", "verifier_raised"),
        ("nonsense", "here", "verifier_nonsense"),
        (Observation("absent", Grade.PROOF, fenced=True), "elsewhere", "scope_changed"),
        (Observation("absent", Grade.PROOF, fenced=True), "", "scope_changed"),
    ],
)
def test_tr_99_tr_102_a_look_that_fails_is_a_recorded_answer_and_changes_nothing(
    answer: Any, scope: str, reason: str
) -> None:
    async def main(sim: Simulation) -> None:
        rig, looking = Rig(sim), Looking()
        tool = rig.world.tool("pay", ONCE, behaviour=Behaviour(fails="unknown"), verifier=looking)
        crew = await rig.own(Setup(tools=[tool]))
        receipt = await crew.call("pay", label="a")
        looking.answer, looking.scope = answer, scope
        assert (await crew.press("inspect", receipt.attempt_id)).status == 200
        seen = crew.receipt(receipt.attempt_id).inspection or {}
        assert (seen["state"], seen["reason"]) == ("unknown", reason) and seen["id"].startswith("ins_")
        assert crew.session.book.is_open(receipt.attempt_id)

    play(main)


def test_tr_101_an_effect_found_with_proof_closes_the_call_and_makes_no_output() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tool = rig.world.tool(
            "pay", ONCE, behaviour=Behaviour(fails="unknown"), verifier=rig.world.verifier()
        )
        crew = await rig.own(Setup(tools=[tool]))
        receipt = await crew.call("pay", label="a")
        await crew.press("inspect", receipt.attempt_id)
        seen = crew.receipt(receipt.attempt_id)
        assert seen.state is State.UNKNOWN and "proven" in seen.overlays and seen.result is None
        assert not crew.session.book.is_open(receipt.attempt_id)

    play(main)


def test_tr_141_arguments_are_shown_only_in_the_reply_to_the_inspect_of_their_own_call() -> None:
    async def main(sim: Simulation) -> None:
        crew, receipts = await doubtful(Rig(sim), count=2)
        assert all("arguments" not in one for one in crew.actions.snapshot()["calls"])
        answer = await crew.press("inspect", receipts[0].attempt_id)
        shown = {one["attemptId"]: one.get("arguments") for one in answer.body["calls"]}
        assert shown == {receipts[0].attempt_id: '{"label":"a"}', receipts[1].attempt_id: None}

    play(main)


def test_tr_158_statistics_count_what_happened() -> None:
    async def main(sim: Simulation) -> None:
        crew, receipts = await doubtful(Rig(sim), count=4)
        await crew.call("pay0", label="b")
        for receipt, action in zip(receipts, DECIDING, strict=True):
            await crew.press("inspect", receipt.attempt_id)
            await crew.press(action, receipt.attempt_id)
        counted = crew.actions.snapshot()["statistics"]
        assert {
            name: counted[name] for name in ("confirmed", "denied", "rejected", "released", "blocked")
        } == {
            "confirmed": 1,
            "denied": 1,
            "rejected": 1,
            "released": 1,
            "blocked": 1,
        }
        assert counted["unknown"] == 1, "the rejected one stays open"

    play(main)


@pytest.mark.parametrize("looks", [True, False])
def test_ux_50_a_session_looks_at_its_open_calls_on_opening_unless_its_owner_said_no(looks: bool) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        pay = rig.world.tool("pay", ONCE, behaviour=Behaviour(fails="unknown"), verifier=rig.world.verifier())
        crew = await rig.own(Setup(tools=[pay]))
        receipt = await crew.call("pay", label="a")
        crew.process.kill()
        again = await rig.own(Setup(tools=[pay], policy={"inspect_on_resume": looks}))
        seen = again.session.book.get(receipt.attempt_id)
        assert seen is not None and (seen.inspection is not None) is looks

    play(main)


def test_tr_210_ux_122_at_the_border_the_assurance_of_a_parked_press_is_judged_again() -> None:
    async def main(sim: Simulation) -> None:
        model = PlayedModel([{"text": "x"}, {"text": "ok"}], seconds=5)
        crew, [receipt] = await doubtful(Rig(sim), model=model)
        turn = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(1)
        assert (await crew.press("release", receipt.attempt_id)).status == 200
        crew.actions.policy = dataclasses.replace(crew.actions.policy, assurance="passkey")
        await turn
        dropped = [(one["code"], one["reason"]) for one in crew.told("parked_dropped")]
        assert dropped == [("person_required", "assurance_too_low")]
        assert crew.session.book.is_open(receipt.attempt_id) and not await crew.entries(Kind.RESOLVED)

    play(main)


def test_tr_210_a_press_parked_in_a_turn_that_cannot_begin_is_recorded_all_the_same() -> None:
    async def main(sim: Simulation) -> None:
        crew, [receipt] = await doubtful(Rig(sim))
        begin = crew.controller._begin

        async def slow_and_failing(turn: Any, text: str | None) -> None:
            await crew.session.scheduler.sleep(2)
            raise LedgerError("no room for the words of the person")

        crew.controller._begin = slow_and_failing  # type: ignore[method-assign]
        turn = asyncio.ensure_future(crew.turn())
        await asyncio.sleep(1)
        answer = await crew.press("release", receipt.attempt_id)
        assert answer.body["calls"][0]["parked"] == "release"
        with pytest.raises(LedgerError):
            await turn
        crew.controller._begin = begin  # type: ignore[method-assign]
        assert len(await crew.entries(Kind.RESOLVED)) == 1 and crew.controller.state == "idle"

    play(main)
