"""Tools the provider runs inside a request: off unless named, one receipt and one sending where they are on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.model import EffectClass, Kind, Mode, TurnStatus
from surefoot.core.recovery import fencing
from surefoot.runtime.requests import Answer
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.replaying import Peer, Stand

PEERS = {
    "anthropic": Peer("anthropic", "anthropic", "anthropic/anthropic", effort="low", hosted=("code",)),
    "responses": Peer("responses", "openai", "openai/responses", hosted=("code",)),
}
RUN = {"thinking": "I compute.", "hosted_effect": "code", "when_enabled": True, "text": "It is 4."}
DONE = {"thinking": "So.", "text": "Done."}
PAY = {"thinking": "I pay.", "calls": [{"name": "pay", "args": {"label": "a"}}]}
WIRES = pytest.mark.parametrize("wire", sorted(PEERS))

FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "flap": ({"match": {"nth": 1}, "flip": "once"}, "failed"),
    "named refusal": (
        {"match": {"nth": 1}, "status": 400, "raw": '{"error":{"message":"No tool output found for function call"}}'},
        "failed",
    ),
    "opaque refusal": ({"match": {"nth": 1}, "status": 400, "raw": ""}, "failed"),
    "rate": ({"match": {"nth": 1}, "status": 429, "headers": {"retry-after": "0"}}, "failed"),
    "redirect": ({"match": {"nth": 1}, "status": 307, "headers": {"location": "/elsewhere"}}, "failed"),
    "server error after it ran": ({"match": {"nth": 1}, "stage": "reply", "status": 500}, "unknown"),
    "overloaded": ({"match": {"nth": 1}, "status": 503}, "unknown"),
    "cut before output": ({"match": {"nth": 1}, "stage": "reply", "cut_at": 0}, "unknown"),
    "cut after output": ({"match": {"nth": 1}, "stage": "reply", "cut_at": 6}, "unknown"),
    "error in the stream": ({"match": {"nth": 1}, "stage": "reply", "stream_error_at": 4}, "unknown"),
}  # fmt: skip


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    async with Emulator() as found:
        yield found


def hosted_tools(emulator: Emulator) -> list[list[str]]:
    """The types of tools that are no functions, request by request."""
    shown = []
    for entry in emulator.requests():
        tools = json.loads(entry.body).get("tools") or []
        shown.append([one["type"] for one in tools if one.get("type") not in (None, "function")])
    return shown


def requests_of(stand: Stand) -> list[Any]:
    """The receipts of requests with hosted tools."""
    return [one for one in stand.crew.session.book if one.asked_name == "hosted:request"]


@WIRES
@pytest.mark.parametrize("name", FAULTS)
async def test_fi_21_we_32_pr_98_whatever_happens_there_is_one_request_and_at_most_one_effect(
    emulator: Emulator, tmp_path: Path, wire: str, name: str
) -> None:
    fault, state = FAULTS[name]
    async with Stand(emulator, PEERS[wire], tmp_path) as stand:
        emulator.script([RUN, DONE], by="history")
        emulator.fault(**fault)
        end: Any = await stand.crew.controller.submit("Compute.")
        assert end.status is TurnStatus.FAILED
        assert len(emulator.requests()) == 1 and emulator.hosted.get("code", 0) <= 1
        (receipt,) = requests_of(stand)
        assert (receipt.state, receipt.effect_class, receipt.reach) == (state, EffectClass.UNKNOWN, ("*",))
        is_open = state == "unknown"
        assert [one.attempt_id for one in fencing(stand.crew.session.book.open())] == (
            [receipt.attempt_id] if is_open else []
        )
        assert await stand.records() == [] or await stand.crew.controller.pending_recovery() is not None
        assert all(one.payload["state"] == "pending" for one in await stand.records())
    emulator.assert_fired()


@WIRES
async def test_fi_21_pr_98_switched_off_it_stands_in_no_request(
    emulator: Emulator, tmp_path: Path, wire: str
) -> None:
    async with Stand(emulator, replace(PEERS[wire], hosted=()), tmp_path) as stand:
        emulator.script([RUN, DONE], by="history")
        end: Any = await stand.crew.controller.submit("Compute.")
        assert end.status is TurnStatus.COMPLETED
        assert hosted_tools(emulator) == [[]] and emulator.hosted == {} and requests_of(stand) == []


@WIRES
async def test_pr_98_tr_9_the_receipt_is_durable_before_the_request_leaves_and_closes_with_its_reply(
    emulator: Emulator, tmp_path: Path, wire: str
) -> None:
    async with Stand(emulator, PEERS[wire], tmp_path) as stand:
        emulator.script([RUN])
        emulator.fault(match={"nth": 1}, delay_headers=None)
        turn = asyncio.ensure_future(stand.crew.controller.submit("Compute."))
        await emulator.wait_until_held()
        (receipt,) = requests_of(stand)
        assert receipt.state == "started" and json.loads(receipt.arguments)["name"] == "code"
        emulator.release()
        end: Any = await turn
        assert (end.status, end.text) == (TurnStatus.COMPLETED, "It is 4.")
        (receipt,) = requests_of(stand)
        assert receipt.state == "succeeded" and emulator.hosted == {"code": 1}
        assert len(hosted_tools(emulator)[0]) == 1
        kinds = [one.kind for one in await stand.crew.entries()]
        assert kinds.index(Kind.STARTED) < kinds.index(Kind.CLOSED) < kinds.index(Kind.ASSISTANT)
        assert stand.crew.told("hosted_unasked") == []


@WIRES
async def test_pr_98_while_its_outcome_is_open_requests_go_without_these_tools_and_writes_wait(
    emulator: Emulator, tmp_path: Path, wire: str
) -> None:
    async with Stand(emulator, PEERS[wire], tmp_path) as stand:
        emulator.script([RUN, PAY, DONE])
        emulator.fault(match={"nth": 1}, stage="reply", cut_at=6)
        await stand.crew.controller.submit("Compute.")
        (lost,) = requests_of(stand)
        await stand.crew.controller.submit("Pay now.")
        assert [len(one) for one in hosted_tools(emulator)] == [1, 0, 0]
        assert stand.world.count("a") == 0
        assert [one.reason for one in stand.crew.session.book if one.tool == "pay"] == ["fenced"]
        facts = (await stand.crew.entries(Kind.USER))[-1].payload["facts"]
        assert lost.attempt_id in facts
        await stand.crew.press("inspect", lost.attempt_id)
        answer: Any = await stand.crew.press("confirm", lost.attempt_id)
        assert answer.status == 200, answer.body
        emulator.script([DONE])
        await stand.crew.controller.submit("Again.")
        assert len(hosted_tools(emulator)[-1]) == 1


@WIRES
async def test_fi_21_pr_98_a_cancel_leaves_it_unknown_and_a_late_reply_counts_for_nothing(
    emulator: Emulator, tmp_path: Path, wire: str
) -> None:
    async with Stand(emulator, PEERS[wire], tmp_path) as stand:
        emulator.script([RUN])
        emulator.fault(match={"nth": 1}, delay_headers=None)
        turn = asyncio.ensure_future(stand.crew.controller.submit("Compute."))
        await emulator.wait_until_held()
        await stand.crew.controller.stop()
        emulator.release()
        end: Any = await turn
        assert end.status is TurnStatus.CANCELLED
        (receipt,) = requests_of(stand)
        assert (receipt.state, receipt.reason) == ("unknown", "cancelled")
        assert await stand.crew.entries(Kind.ASSISTANT) == [] and len(emulator.requests()) == 1


async def test_fi_21_pr_35_a_reply_without_its_reasoning_is_not_asked_for_again(
    emulator: Emulator, tmp_path: Path
) -> None:
    peer = Peer("anthropic", "deepseek", "deepseek/anthropic", effort="low", hosted=("code",))
    async with Stand(emulator, peer, tmp_path) as stand:
        emulator.script([{**PAY, "behaviour": "omit_reasoning"}, DONE])
        end: Any = await stand.crew.controller.submit("Pay.")
        assert end.status is TurnStatus.COMPLETED  # the declared placeholder takes its place
        assert stand.statuses() == [200, 200] and await stand.records() == []
        assert [one.state for one in requests_of(stand)] == ["succeeded", "succeeded"]


async def test_pr_34_pr_98_a_named_refusal_is_offered_and_the_recovery_goes_without_hosted_tools(
    emulator: Emulator, tmp_path: Path
) -> None:
    async with Stand(emulator, PEERS["anthropic"], tmp_path) as stand:
        emulator.script([PAY, DONE])
        emulator.fault(match={"nth": 2}, tamper_request=[{"path": ["messages", 2], "remove": True}])
        end: Any = await stand.crew.controller.submit("Pay.")
        assert end.status is TurnStatus.FAILED and stand.statuses() == [200, 400]
        assert await stand.crew.controller.pending_recovery() is not None
        done = await stand.crew.controller.recover_context()
        assert not isinstance(done, Answer) and done.status is TurnStatus.COMPLETED
        assert [len(one) for one in hosted_tools(emulator)] == [1, 1, 0]
        assert [one.state for one in requests_of(stand)] == ["succeeded", "failed"]
        assert stand.world.count("a") == 1


async def test_case_s29_pr_98_going_on_after_a_pause_is_a_request_with_a_receipt_of_its_own(
    emulator: Emulator, tmp_path: Path
) -> None:
    async with Stand(emulator, PEERS["anthropic"], tmp_path) as stand:
        emulator.script([{**RUN, "finish": "pause_turn"}, DONE])
        end: Any = await stand.crew.controller.submit("Compute.")
        assert end.status is TurnStatus.COMPLETED and stand.statuses() == [200, 200]
        assert [one.state for one in requests_of(stand)] == ["succeeded", "succeeded"]


@WIRES
async def test_case_s28_pr_98_what_nobody_switched_on_is_stored_raw_and_told_in_one_notice(
    emulator: Emulator, tmp_path: Path, wire: str
) -> None:
    unasked = {key: value for key, value in RUN.items() if key != "when_enabled"}
    async with Stand(emulator, replace(PEERS[wire], hosted=("search",)), tmp_path) as stand:
        emulator.script([unasked, DONE])
        await stand.crew.controller.submit("Compute.")
        assert stand.crew.told("hosted_unasked") == [{"kinds": ["code"]}]
        (entry,) = await stand.crew.entries(Kind.ASSISTANT)
        assert "code" in json.dumps(entry.payload["raw"])
        assert requests_of(stand) == []  # native search needs no receipt


@WIRES
async def test_pr_98_a_dead_owner_leaves_the_request_unknown_and_nothing_is_sent_on_opening(
    emulator: Emulator, tmp_path: Path, wire: str
) -> None:
    async with Stand(emulator, PEERS[wire], tmp_path) as stand:
        emulator.script([RUN])
        emulator.fault(match={"nth": 1}, delay_headers=None)
        turn = asyncio.ensure_future(stand.crew.controller.submit("Compute."))
        await emulator.wait_until_held()
        await stand.crew.session.close()  # as a process that ends: nobody closes the receipt
        async with Stand(emulator, PEERS[wire], tmp_path, new=False) as next_one:
            (receipt,) = requests_of(next_one)
            assert (receipt.state, receipt.reason) == ("unknown", "owner_died")
            assert len(emulator.requests()) <= 1
        emulator.release()
        turn.cancel()
        await asyncio.gather(turn, return_exceptions=True)


@WIRES
async def test_pr_98_case_s28_a_run_without_words_is_recorded_and_not_asked_for_again(
    emulator: Emulator, tmp_path: Path, wire: str
) -> None:
    async with Stand(emulator, PEERS[wire], tmp_path) as stand:
        emulator.script([{**RUN, "text": ""}, DONE])
        end: Any = await stand.crew.controller.submit("Compute.")
        assert (end.status, end.reason) == (TurnStatus.FAILED, "empty_reply")
        assert len(emulator.requests()) == 1 and emulator.hosted == {"code": 1}
        (entry,) = await stand.crew.entries(Kind.ASSISTANT)
        assert "code" in json.dumps(entry.payload["raw"])


async def test_pr_98_in_mode_plan_requests_go_without_these_tools(emulator: Emulator, tmp_path: Path) -> None:
    async with Stand(emulator, PEERS["responses"], tmp_path) as stand:
        stand.crew.controller.people.mode = Mode.PLAN
        emulator.script([RUN])
        end: Any = await stand.crew.controller.submit("Compute.")
        assert end.status is TurnStatus.COMPLETED and hosted_tools(emulator) == [[]] and emulator.hosted == {}
