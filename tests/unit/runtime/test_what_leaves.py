"""What of a receipt leaves the ledger, what stays, and what wins over what."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from surefoot.core.history import ResultGiven, UserWords
from surefoot.core.model import Decision, EffectClass, Kind, State, TurnStatus, receipt_fields
from surefoot.providers import contracts
from surefoot.providers.anthropic import AnthropicWire
from surefoot.providers.chat import ChatWire
from surefoot.providers.port import ModelRequest
from surefoot.providers.responses import ResponsesWire
from surefoot.providers.shaping import body_bytes
from surefoot.testing.rig import Crew, Rig, Setup
from surefoot.testing.simulation import Simulation, simulate
from surefoot.testing.world import Behaviour

ONCE, CONVERGING = EffectClass.NON_IDEMPOTENT, EffectClass.IDEMPOTENT_WRITE
WIRES = {"chat": ChatWire(), "responses": ResponsesWire(), "anthropic": AnthropicWire()}
SHARED = {
    "tool",
    "arguments",
    "result",
    "position",
    "state",
    "reason",
    "process",
    "check",
    "reach",
    "scope",
    "late",
}
"""Field names that are words of the wires or of people as well, so that their absence would prove nothing."""


def play(main: Callable[[Simulation], Coroutine[Any, Any, Any]]) -> Any:
    return simulate(1, main)


async def after_a_doubt(sim: Simulation) -> tuple[Crew, Any]:
    """A finished turn whose one write is unknown."""
    rig = Rig(sim)
    tool = rig.world.tool("pay", ONCE, reach=("host:h",), behaviour=Behaviour(fails="unknown"))
    steps = [{"calls": [{"name": "pay", "args": {"label": "a"}}]}, {"text": "It was paid."}]
    crew = await rig.own(Setup(tools=[tool], steps=steps))
    await crew.turn()
    (receipt,) = crew.session.book.open()
    return crew, receipt


@pytest.mark.parametrize("wire", WIRES)
def test_tr_7_no_field_of_a_receipt_stands_in_a_request_on_any_wire(wire: str) -> None:
    async def main(sim: Simulation) -> None:
        crew, receipt = await after_a_doubt(sim)
        messages = (await crew.session.history()).messages(crew.session.book)
        request = ModelRequest("m", "system", messages)
        body = body_bytes(WIRES[wire].encode(request, contracts.resolve(f"compat/{wire}"))).decode()
        names = {key for _, key in receipt_fields()} - SHARED
        assert not [name for name in names if f'"{name}"' in body]
        for value in (receipt.idempotency_key, receipt.argument_digest, receipt.owner["bootId"]):
            assert value and value not in body

    play(main)


def test_tr_4_arguments_are_kept_byte_for_byte_and_shown_by_inspect_alone() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tool = rig.world.tool("pay", ONCE, behaviour=Behaviour(fails="unknown"))
        crew = await rig.own(Setup(tools=[tool]))
        (receipt,) = await crew.batch(("pay", '{ "label" : "sekr\\u0065t" }'))
        started = (await crew.entries(Kind.STARTED))[-1].payload
        assert started["arguments"] == '{"label":"sekret"}' == crew.receipt(receipt.attempt_id).arguments
        notices = [json.dumps(dict(one.facts), default=repr) for one in crew.notices if one.kind != "receipt"]
        assert not [text for text in notices if '"arguments": "{\\"label' in text]
        assert "arguments" not in crew.actions.snapshot()["calls"][0]
        shown = await crew.press("inspect", receipt.attempt_id)
        assert shown.body["calls"][0]["arguments"] == started["arguments"]

    play(main)


def test_tr_15_every_attempt_of_a_call_carries_its_key_and_a_new_call_another() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        slow = rig.world.tool("put", CONVERGING, reach=("host:h",), behaviour=Behaviour(seconds_before=60))
        crew = await rig.own(Setup(tools=[slow]))
        task = crew.process.spawn(crew.batch(("put", {"label": "a"})))
        while not await crew.entries(Kind.STARTED):
            await crew.session.scheduler.sleep(0.01)
        crew.process.kill()
        del task
        again = await rig.own(Setup(tools=[rig.world.tool("put", CONVERGING, reach=("host:h",))]))
        (second,) = await again.do(again.actions.carry_out())
        first = again.receipt(second.supersedes)
        assert first.call_id == second.call_id and first.attempt_id != second.attempt_id
        assert first.idempotency_key == second.idempotency_key
        other = await again.call("put", label="a")
        assert (
            other.argument_digest == first.argument_digest and other.idempotency_key != first.idempotency_key
        )

    play(main)


def test_tr_46_what_stands_in_for_a_missing_result_is_made_for_the_request_and_never_stored() -> None:
    async def main(sim: Simulation) -> None:
        crew, receipt = await after_a_doubt(sim)
        messages = (await crew.session.history()).messages(crew.session.book)
        (given,) = [one for one in messages if isinstance(one, ResultGiven)]
        assert "may have happened" in given.text
        stored = [json.dumps(dict(entry.payload), default=dict) for entry in await crew.entries()]
        assert not [text for text in stored if "may have happened" in text]
        assert crew.receipt(receipt.attempt_id).result is None

    play(main)


@pytest.mark.promise("recovery:never-guess")
def test_tr_54_the_ledger_wins_over_what_the_model_says_of_a_call() -> None:
    async def main(sim: Simulation) -> None:
        crew, receipt = await after_a_doubt(sim)
        replies = [entry.payload["text"] for entry in await crew.entries(Kind.ASSISTANT)]
        assert "It was paid." in replies
        now = crew.receipt(receipt.attempt_id)
        assert now.state is State.UNKNOWN and crew.session.book.is_open(receipt.attempt_id)
        fenced = await crew.call("pay", label="b")
        assert (fenced.state, fenced.reason) == (State.NOT_STARTED, "fenced")

    play(main)


def test_tr_128_a_newer_inspection_makes_the_older_id_stale_and_none_expires_by_time() -> None:
    async def main(sim: Simulation) -> None:
        crew, receipt = await after_a_doubt(sim)
        await crew.press("inspect", receipt.attempt_id)
        first = crew.receipt(receipt.attempt_id).inspection["id"]
        sim.clock.jump(40 * 86_400_000)
        await crew.press("inspect", receipt.attempt_id)
        stale = await crew.press("confirm", receipt.attempt_id, inspectionId=first)
        assert (stale.status, stale.body["code"]) == (409, "inspection_stale")
        sim.clock.jump(40 * 86_400_000)
        assert (await crew.press("confirm", receipt.attempt_id)).status == 200

    play(main)


def test_tr_129_a_decision_tells_who_made_it_how_they_were_let_in_and_on_which_facts() -> None:
    async def main(sim: Simulation) -> None:
        crew, receipt = await after_a_doubt(sim)
        await crew.press("inspect", receipt.attempt_id)
        revision = crew.actions.snapshot()["revision"]
        assert (await crew.press("confirm", receipt.attempt_id, note="seen in the bank's page")).status == 200
        record = crew.receipt(receipt.attempt_id).resolution
        assert {key: record[key] for key in ("kind", "who", "channel", "note")} == {
            "kind": "confirmed",
            "who": "lin",
            "channel": "python",
            "note": "seen in the bank's page",
        }
        assert record["revision"] == revision and record["inspectionId"].startswith("ins_")
        assert {"method", "letInBy", "ancestry", "assurance", "at"} <= set(record)
        too_long = await crew.press("confirm", receipt.attempt_id, note="x" * 501)
        assert (too_long.status, too_long.body["code"]) == (400, "bad_request")
        messages = (await crew.session.history()).messages(crew.session.book)
        assert "bank's page" not in repr(messages), "a note is never sent to a model"

    play(main)


def test_tr_119_ec_48_verify_runs_nothing_tells_the_model_once_to_look_and_keeps_the_fence() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        verifier = rig.world.verifier()
        verifier.far = True  # opening does not ask it, so nobody has looked yet

        def tools(seconds: float) -> list[Any]:
            acting = Behaviour(seconds_after=seconds)
            return [rig.world.tool("pay", ONCE, reach=("host:h",), behaviour=acting, verifier=verifier)]

        crew = await rig.own(
            Setup(tools=tools(3600), steps=[{"calls": [{"name": "pay", "args": {"label": "a"}}]}])
        )
        crew.process.spawn(crew.controller.submit("pay"))
        while not rig.world.effects:
            await crew.session.scheduler.sleep(0.01)
        crew.process.kill()
        again = await rig.own(
            Setup(tools=tools(0), steps=[{"text": "I look first."}, {"text": "Still looking."}])
        )
        (planned,) = again.actions.standing.plan()
        assert planned.decided.decision is Decision.VERIFY
        await again.turn("go on")
        await again.turn("and now?")
        said = [one.facts or "" for one in again.model.asked[-1] if isinstance(one, UserWords)]
        assert sum("To check before anything else" in facts for facts in said) == 1
        assert len(rig.world.effects) == 1
        assert (await again.call("pay", label="b")).reason == "fenced"

    play(main)


def test_tr_121_an_unattended_run_with_an_unknown_write_ends_in_stop_or_in_work_outside_its_reach() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [
            rig.world.tool("pay", ONCE, reach=("host:h",), behaviour=Behaviour(fails="unknown")),
            rig.world.tool("note", CONVERGING, reach=("path:/notes",)),
        ]
        steps = [
            {"calls": [{"name": "pay", "args": {"label": "a"}}]},
            {"calls": [{"name": "pay", "args": {"label": "again"}}]},
            {"calls": [{"name": "note", "args": {"label": "b"}}]},
            {"text": "The note is written; the payment waits for a person."},
        ]
        crew = await rig.own(Setup(tools=tools, steps=steps))
        end = await crew.turn()
        assert end.status is TurnStatus.COMPLETED, "it never waits for a press"
        assert [effect.label for effect in rig.world.effects] == ["a", "b"]
        assert len(crew.session.book.open()) == 1

    play(main)
