"""Incidents in the runtime: order, crashes at every step, failing disks, races, late replies."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from surefoot.core.model import EffectClass, Kind, TurnStatus
from surefoot.core.restated import STORED_NOTE
from surefoot.errors import LedgerError, ProviderRefused
from surefoot.runtime.controller import TurnEnd
from surefoot.runtime.requests import Answer
from surefoot.testing.faults import DyingLedger, FailingLedger
from surefoot.testing.replayed import FarSide, RefusingModel
from surefoot.testing.rig import SESSION, Crew, Rig, Setup
from surefoot.testing.simulation import Simulation, simulate

STEPS = [{"calls": [{"name": "pay", "args": {"label": "a"}}]}, {"text": "Paid."}]
NAMED = {"kind": "replay_reasoning", "certainty": "reported"}


def setup(rig: Rig, far: FarSide, **played: Any) -> Setup:
    tools = [rig.world.tool("pay", EffectClass.NON_IDEMPOTENT), rig.world.tool("look", EffectClass.READ_ONLY)]
    model = RefusingModel(played.pop("steps", STEPS), far, tools=("pay", "look"), **played)
    return Setup(tools=tools, model=model)


def records(rig: Rig) -> list[dict[str, Any]]:
    """What the store says, without any process."""
    rows = rig.store.sessions[SESSION].rows if SESSION in rig.store.sessions else []
    return [json.loads(json.loads(row[6])["record"]) for row in rows if row[3] == Kind.INCIDENT]


async def refused(sim: Simulation, **far_settings: Any) -> tuple[Rig, FarSide, Crew]:
    """A turn whose second request was refused without a reason."""
    rig, far = Rig(sim), FarSide(**far_settings)
    far.refuse(2)
    crew = await rig.own(setup(rig, far))
    end = await crew.turn("Pay once.")
    assert end.status is TurnStatus.FAILED and len(far.requests) == 2
    return rig, far, crew


def test_pr_32_the_disk_says_consumed_before_the_request_leaves() -> None:
    async def main(sim: Simulation) -> None:
        rig, far, crew = await refused(sim)
        seen: list[tuple[str, bool]] = []
        far.on_request = lambda frozen: seen.append(
            (records(rig)[-1]["state"], records(rig)[-1]["projected"])
        )
        done = await crew.controller.recover_context()
        assert isinstance(done, TurnEnd) and done.status is TurnStatus.COMPLETED
        assert seen[0] == ("consumed", True)
        consumed = records(rig)[1]
        assert (consumed["origin"], consumed["sent"]) == ("manual", far.requests[2])
        entries = await crew.entries()
        place = next(n for n, one in enumerate(entries) if one.kind == Kind.HOST)
        assert entries[place - 1].kind == Kind.INCIDENT  # one commit, record first
        assert [one.kind for one in entries].count(Kind.USER) == 1

    simulate(1, main)


def test_pr_34_the_automatic_repair_is_accounted_for_before_it_is_sent() -> None:
    async def main(sim: Simulation) -> None:
        rig, far = Rig(sim), FarSide()
        far.refuse(2, **NAMED)
        states: list[list[str]] = []
        far.on_request = lambda frozen: states.append([one["state"] for one in records(rig)])
        crew = await rig.own(setup(rig, far))
        end = await crew.turn("Pay once.")
        assert end.status is TurnStatus.COMPLETED
        assert states[:3] == [[], [], ["consumed"]]
        assert rig.world.count("a") == 1
        assert await crew.entries(Kind.HOST) == []

    simulate(1, main)


def test_pr_34_pr_36_a_second_refusal_is_not_repaired_again() -> None:
    async def main(sim: Simulation) -> None:
        rig, far = Rig(sim), FarSide()
        far.refuse(2, 3, **NAMED)
        crew = await rig.own(setup(rig, far))
        end = await crew.turn("Pay once.")
        assert end.status is TurnStatus.FAILED and len(far.requests) == 3
        assert await crew.controller.pending_recovery() is None
        assert records(rig)[-1]["outcome"] == "refused"

    simulate(1, main)


def test_ux_103_the_error_of_a_refused_turn_carries_kind_status_trace_and_incident() -> None:
    async def main(sim: Simulation) -> None:
        rig, far = Rig(sim), FarSide()
        far.refuse(2)
        far.refusals[2]["trace_id"] = "req_7"
        crew = await rig.own(setup(rig, far))
        error = (await crew.turn("Pay once.")).error
        assert isinstance(error, ProviderRefused)
        assert (error.kind, error.status, error.trace_id) == (far.refusals[2]["kind"], 400, "req_7")
        assert error.incident_id == records(rig)[-1]["id"]

    simulate(1, main)


def test_pr_34_switched_off_a_named_refusal_is_offered_instead() -> None:
    async def main(sim: Simulation) -> None:
        rig, far = Rig(sim), FarSide()
        far.refuse(2, **NAMED)
        crew = await rig.own(setup(rig, far))
        crew.controller.incidents.automatic = False
        await crew.turn("Pay once.")
        assert len(far.requests) == 2
        found = await crew.controller.pending_recovery()
        assert found is not None and found.fields["kind"] == "replay_reasoning"

    simulate(1, main)


@pytest.mark.parametrize("kill_at", range(1, 25))
@pytest.mark.parametrize("named", [False, True], ids=["explicit", "automatic"])
@pytest.mark.promise("protocol:account-first")
def test_pr_32_pr_34_pr_38_fi_13_a_crash_at_every_step_sends_at_most_one_request(
    kill_at: int, named: bool
) -> None:
    async def main(sim: Simulation) -> None:
        rig, far = Rig(sim), FarSide()
        far.refuse(2, **(NAMED if named else {}))
        if not named:
            first = await rig.own(setup(rig, far))
            await first.turn("Pay once.")
            first.process.kill()  # type: ignore[union-attr]
        crew = await rig.try_own(
            setup(rig, far), wrap=lambda ledger, process: DyingLedger(ledger, kill_at, process.die)
        )
        if crew is not None:
            await crew.do(
                crew.controller.recover_context() if not named else crew.controller.submit("Pay once.")
            )
            if crew.process is not None and crew.process.alive:
                crew.process.kill()
        before = len(far.requests)
        consumed = any(one["state"] == "consumed" for one in records(rig))
        heir = await rig.own(setup(rig, far))
        assert len(far.requests) == before  # a restart sends nothing (PR-2)
        pressed = await heir.controller.recover_context()
        if consumed:
            assert isinstance(pressed, Answer) and pressed.body["code"] == "recovery_spent"
            assert len(far.requests) == before
        heir_records = [one for one in records(rig) if one.get("sent")]
        sent = {one["sent"] for one in heir_records}
        assert sum(far.requests.count(digest) for digest in sent) <= len(sent) <= 1
        assert rig.world.count("a") <= 1

    simulate(kill_at, main)


def test_pr_38_after_a_crash_between_account_and_request_going_on_is_an_ordinary_request() -> None:
    async def main(sim: Simulation) -> None:
        rig, far, crew = await refused(sim)
        far.on_request = lambda frozen: crew.process.kill()  # type: ignore[union-attr]
        await crew.do(crew.controller.recover_context())
        far.on_request = lambda frozen: None
        count, account = len(far.requests), records(rig)[-1]
        assert account["state"] == "consumed" and "outcome" not in account
        heir = await rig.own(setup(rig, far))
        assert await heir.controller.pending_recovery() is None
        end = await heir.controller.go_on()
        assert isinstance(end, TurnEnd) and end.status is TurnStatus.COMPLETED
        assert len(far.requests) > count and rig.world.count("a") == 1

    simulate(5, main)


@pytest.mark.parametrize("how", ["refused", "lost", "kept"])
def test_pr_33_fi_13_no_request_leaves_when_its_account_is_not_certainly_written(how: str) -> None:
    async def main(sim: Simulation) -> None:
        rig, far, first = await refused(sim)
        first.process.kill()  # type: ignore[union-attr]
        crew = await rig.own(
            setup(rig, far),
            wrap=lambda ledger, _: FailingLedger(ledger, 1, how=how, kind="incident", unsure=9),
        )
        answer = await crew.controller.recover_context()
        assert isinstance(answer, Answer) and answer.body["code"] == "storage_failed"
        assert len(far.requests) == 2

    simulate(3, main)


def test_pr_33_a_commit_found_absent_leaves_the_offer_and_one_found_durable_spends_it() -> None:
    async def main(sim: Simulation) -> None:
        for how, code in (("lost", None), ("kept", "recovery_spent")):
            rig, far, first = await refused(sim)
            first.process.kill()  # type: ignore[union-attr]
            crew = await rig.own(
                setup(rig, far),
                wrap=lambda ledger, _, how=how: FailingLedger(ledger, 1, how=how, kind="incident", unsure=3),
            )
            assert isinstance(await crew.controller.recover_context(), Answer)
            again = await crew.controller.recover_context()
            if code is None:
                assert isinstance(again, TurnEnd) and rig.world.count("a") == 1
            else:
                assert isinstance(again, Answer) and again.body["code"] == code and len(far.requests) == 2

    simulate(4, main)


def test_pr_24_an_offer_that_cannot_be_written_is_not_made_and_the_refusal_still_shows() -> None:
    async def main(sim: Simulation) -> None:
        rig, far = Rig(sim), FarSide()
        far.refuse(2)
        crew = await rig.own(
            setup(rig, far), wrap=lambda ledger, _: FailingLedger(ledger, 1, how="refused", kind="incident")
        )
        end = await crew.turn("Pay once.")
        assert end.status is TurnStatus.FAILED and not isinstance(end.error, LedgerError)
        assert crew.told("provider_refused")[0]["reason_not_offered"] == "storage_failed"
        assert await crew.controller.pending_recovery() is None

    simulate(2, main)


@pytest.mark.promise("protocol:account-first")
@pytest.mark.parametrize("part", range(10))
def test_pr_36_ux_127_fi_10_ten_thousand_racing_presses_make_one_request_per_incident(part: int) -> None:
    async def main(sim: Simulation) -> None:
        dice = random.Random(sim.seed)
        rig, far, crew = await refused(sim)
        for life in range(3):
            presses = [
                crew.process.spawn(_late(dice.random() * 0.02, crew, dice.choice([None, "now"])))  # type: ignore[union-attr]
                for _ in range(9)
            ]
            if life < 2:
                sim.kill_after_steps(crew.process, dice.randint(1, 120))  # type: ignore[arg-type]
            for press in presses:
                await crew.do(_joined(press))
            if crew.process.alive:  # type: ignore[union-attr]
                crew.process.kill()  # type: ignore[union-attr]
            crew = await rig.own(setup(rig, far))
        spent = [one for one in records(rig) if one["state"] == "consumed" and one.get("sent")]
        recoveries = {one["sent"] for one in spent}
        assert len(recoveries) <= 1
        assert sum(far.requests.count(digest) for digest in recoveries) <= 1
        assert rig.world.count("a") == 1

    for seed in range(part * 40, part * 40 + 40):
        simulate(seed, main)


async def _late(seconds: float, crew: Crew, guidance: str | None) -> Any:
    await asyncio.sleep(seconds)
    return await crew.controller.recover_context(None, guidance or "")


async def _joined(task: Any) -> Any:
    return await task


def test_pr_37_pr_63_stop_before_the_commit_keeps_the_offer_and_stop_after_it_does_not() -> None:
    async def main(sim: Simulation) -> None:
        rig, far, crew = await refused(sim)
        press = asyncio.ensure_future(crew.controller.recover_context())
        await asyncio.sleep(0)
        await crew.controller.stop()
        early = await press
        assert isinstance(early, TurnEnd) and early.status is TurnStatus.CANCELLED
        if records(rig)[-1]["state"] == "pending":
            assert len(far.requests) == 2
            assert await crew.controller.pending_recovery() is not None
        far.on_request = lambda frozen: asyncio.ensure_future(crew.controller.stop()) and None
        late = await crew.controller.recover_context()
        assert isinstance(late, TurnEnd) and late.status is TurnStatus.CANCELLED
        assert records(rig)[-1]["state"] == "consumed" and len(far.requests) == 3
        assert len(await crew.entries(Kind.ASSISTANT)) == 1  # a late reply is not committed (PR-63)
        assert isinstance(await crew.controller.recover_context(), Answer)

    simulate(6, main)


def test_pr_24_pr_37_a_recovery_stopped_on_its_way_is_recorded_as_cancelled_and_stays_spent() -> None:
    async def main(sim: Simulation) -> None:
        rig, far, crew = await refused(sim)
        far.refuse(3)
        far.on_request = lambda frozen: asyncio.ensure_future(crew.controller.stop()) and None
        done = await crew.controller.recover_context()
        assert isinstance(done, TurnEnd) and done.status is TurnStatus.CANCELLED
        newest = records(rig)[-1]
        assert (newest["state"], newest["outcome"]) == ("consumed", "cancelled")
        assert len(far.requests) == 3 and isinstance(await crew.controller.recover_context(), Answer)

    simulate(6, main)


def test_pr_2_pr_44_opening_and_listing_send_nothing_whatever_incident_there_is() -> None:
    async def main(sim: Simulation) -> None:
        rig, far, crew = await refused(sim)
        for _ in range(3):
            crew.process.kill()  # type: ignore[union-attr]
            crew = await rig.own(setup(rig, far))
            assert await crew.controller.pending_recovery() is not None
            assert await crew.controller.incidents.card() is not None
        assert len(far.requests) == 2

    simulate(7, main)


def test_fi_11_a_changed_target_is_refused_and_opens_a_budget_of_its_own() -> None:
    async def main(sim: Simulation) -> None:
        rig, far, crew = await refused(sim)
        crew.model.effort = "high"  # type: ignore[attr-defined]
        answer = await crew.controller.recover_context()
        assert isinstance(answer, Answer) and answer.body["reason"] == "scope_changed"
        assert len(far.requests) == 2 and records(rig)[-1]["expired_by"] == "scope_changed"

    simulate(8, main)


def test_pr_35_pr_42_regeneration_spends_without_a_projection_and_stops_where_no_placeholder_is_declared() -> (
    None
):
    async def main(sim: Simulation) -> None:
        rig, far = Rig(sim), FarSide(missing=frozenset({1, 2}))
        plan = setup(rig, far)
        plan.model.contract = {**plan.model.contract, "reasoning.empty_ok": False}  # type: ignore[union-attr]
        crew = await rig.own(plan)
        end = await crew.turn("Pay once.")
        assert end.status is TurnStatus.FAILED and rig.world.count("a") == 0
        assert far.requests[0] == far.requests[1] and len(far.requests) == 2
        assert (records(rig)[0]["origin"], records(rig)[0]["projected"]) == ("regeneration", False)

    simulate(9, main)


def test_pr_59_the_window_gives_the_stored_result_with_its_note() -> None:
    async def main(sim: Simulation) -> None:
        steps = [{"calls": [{"name": "look", "args": {"label": "a"}}]}, {"text": "None."}]
        rig, far = Rig(sim), FarSide()
        far.refuse(2)
        crew = await rig.own(setup(rig, far, steps=steps))
        await crew.turn("Look.")
        done = await crew.controller.recover_context()
        assert isinstance(done, TurnEnd)
        receipts = list(crew.session.book)
        assert [one.reason for one in receipts] == [None, "answered_from_receipt"]
        assert (receipts[1].result or {})["text"] == f"{STORED_NOTE}\n0 effects"

    simulate(10, main)


def test_pr_61_too_much_guidance_and_a_wrong_id_change_nothing() -> None:
    async def main(sim: Simulation) -> None:
        rig, far, crew = await refused(sim)
        long = await crew.controller.recover_context(None, "x" * (16 * 1024 + 1))
        wrong = await crew.controller.recover_context("inc_../../etc/passwd")
        assert isinstance(long, Answer) and long.status == 400
        assert isinstance(wrong, Answer) and wrong.body["code"] == "recovery_unavailable"
        assert len(records(rig)) == 1 and len(far.requests) == 2

    simulate(11, main)


def test_pr_99_fi_22_a_lost_consumed_record_counts_as_spent_until_a_new_round() -> None:
    async def main(sim: Simulation) -> None:
        rig, far, crew = await refused(sim)
        far.on_request = lambda frozen: crew.process.kill()  # type: ignore[union-attr]
        await crew.do(crew.controller.recover_context())
        far.on_request = lambda frozen: None
        sent = len(far.requests)
        kept = rig.store.sessions[SESSION].rows
        last = max(n for n, row in enumerate(kept) if row[3] == Kind.INCIDENT)
        rig.store.lose_tail(SESSION, len(kept) - last)
        assert records(rig)[-1]["state"] == "pending"
        for _ in range(2):
            heir = await rig.own(setup(rig, far))
            assert await heir.controller.pending_recovery() is None
            answer = await heir.controller.recover_context()
            assert isinstance(answer, Answer)
            assert (answer.body["code"], answer.body["reason"]) == ("recovery_spent", "record_lost")
            heir.process.kill()  # type: ignore[union-attr]
        assert len(far.requests) == sent

    simulate(12, main)


def test_pr_64_a_discarded_candidate_is_told_with_its_reason() -> None:
    async def main(sim: Simulation) -> None:
        rig, far = Rig(sim), FarSide()
        far.refuse(2, **NAMED)
        crew = await rig.own(setup(rig, far))
        end = await crew.turn("Pay once.")
        told = crew.told("discard")
        assert [one["reason"] for one in told] == ["replay_refused"]
        kinds = [notice.kind for notice in crew.notices]
        assert kinds.index("discard") < kinds.index("recovered_request")
        said = [one["stepId"] for one in crew.told("text")]
        assert end is not None and told[0]["stepId"] == f"{end.turn_id}.2"
        assert set(said) <= {f"{end.turn_id}.{number}" for number in range(1, end.steps + 1)} and said

    simulate(13, main)


@pytest.mark.parametrize(
    ("facts", "steps", "reason"),
    [
        ({"kind": "context_overflow", "streamed": True}, STEPS, "context_limit"),
        (None, [STEPS[0], {"text": "", "finish": "length"}], "output_limit"),
        (None, STEPS, "reasoning_missing"),
    ],
)
def test_pr_64_each_reason_names_the_step_it_is_about(
    facts: dict[str, Any] | None, steps: list[dict[str, Any]], reason: str
) -> None:
    async def main(sim: Simulation) -> None:
        rig, far = Rig(sim), FarSide()
        if facts is not None:
            far.refusals[2] = {"certainty": "none", "status": 200, **facts}
        if reason == "reasoning_missing":
            far.missing = frozenset({2})
        crew = await rig.own(setup(rig, far, steps=steps))
        end = await crew.turn("Pay once.")
        assert end is not None
        told = crew.told("discard")
        assert [one["reason"] for one in told][:1] == [reason]
        assert told[0]["stepId"] == f"{end.turn_id}.2"
        assert rig.world.count("a") == 1

    simulate(13, main)


def test_pr_64_a_refusal_before_the_first_word_discards_nothing() -> None:
    async def main(sim: Simulation) -> None:
        rig, far = Rig(sim), FarSide()
        far.refusals[2] = {"kind": "context_overflow", "certainty": "none", "status": 400}
        crew = await rig.own(setup(rig, far))
        await crew.turn("Pay once.")
        assert crew.told("discard") == []

    simulate(13, main)


def test_pr_20_pr_29_the_record_is_in_no_request_and_nothing_is_offered_while_a_turn_runs() -> None:
    async def main(sim: Simulation) -> None:
        rig, far, crew = await refused(sim)
        bodies: list[bytes] = []
        offered: list[Any] = []
        asks: list[Any] = []

        def seen(frozen: Any) -> None:
            bodies.append(frozen.content)
            asks.append(asyncio.ensure_future(_offer(crew, offered)))

        far.on_request = seen
        identity = records(rig)[-1]["id"]
        await crew.controller.recover_context()
        assert bodies and not any(identity.encode() in one or b"fingerprint" in one for one in bodies)
        assert offered and set(offered) == {None}

    simulate(14, main)


async def _offer(crew: Crew, offered: list[Any]) -> None:
    if crew.controller.state != "idle":
        offered.append(await crew.controller.pending_recovery())


@pytest.mark.parametrize("how", ["refused", "lost", "kept"])
def test_pr_34_without_a_certain_account_the_automatic_repair_is_not_sent(how: str) -> None:
    async def main(sim: Simulation) -> None:
        rig, far = Rig(sim), FarSide()
        far.refuse(2, **NAMED)
        crew = await rig.own(
            setup(rig, far),
            wrap=lambda ledger, _: FailingLedger(ledger, 1, how=how, kind="incident", unsure=9),
        )
        end = await crew.turn("Pay once.")
        assert len(far.requests) == 2 and crew.told("recovery_not_recorded")
        assert end is None or end.status is not TurnStatus.COMPLETED

    simulate(15, main)


def test_pr_39_a_listed_flap_gets_one_identical_request_and_no_incident() -> None:
    async def main(sim: Simulation) -> None:
        rig, far = Rig(sim), FarSide()
        flap = {"kind": "replay_signature", "certainty": "confirmed", "status": 400}
        far.refusals[2] = {**flap, "provider_code": "invalid_encrypted_content"}
        crew = await rig.own(setup(rig, far))
        end = await crew.turn("Pay once.")
        assert end.status is TurnStatus.COMPLETED and len(far.requests) == 3
        assert far.requests[1] == far.requests[2] and records(rig) == []

    simulate(16, main)


def test_pr_3_a_recovery_starts_no_call_by_itself_and_leaves_an_open_one_open() -> None:
    async def main(sim: Simulation) -> None:
        rig, far = Rig(sim), FarSide()
        far.refuse(2)
        plan = setup(
            rig, far, steps=[{"calls": [{"name": "pay", "args": {"label": "a"}}]}, {"text": "Seen."}]
        )
        crew = await rig.own(plan)
        await crew.turn("Pay once.")
        bodies = len(rig.world.bodies)
        far.on_request = lambda frozen: bodies_seen.append(len(rig.world.bodies))
        bodies_seen: list[int] = []
        await crew.controller.recover_context()
        assert bodies_seen[0] == bodies  # nothing ran before the one request
        assert rig.world.count("a") == 1

    simulate(17, main)
