"""A named refusal of replayed history, answered once by a repaired request, against the strict emulator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.model import TurnStatus
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.replaying import Peer, Stand

DEEPSEEK_CHAT = Peer("chat", "deepseek", "deepseek/chat")
DEEPSEEK_RESPONSES = Peer("responses", "deepseek", "deepseek/responses")
GATEWAY_RESPONSES = Peer("responses", "deepseek", "compat/responses", reasoning_protocol="deepseek")
DEEPSEEK_ANTHROPIC = Peer("anthropic", "deepseek", "deepseek/anthropic", effort="low")
LOOK = {"thinking": "I look first.", "calls": [{"name": "look", "args": {"label": "a"}}]}
CARRIER: dict[str, list[Any]] = {
    "chat": ["messages", 2, "reasoning_content"],
    "responses": ["input", 1],
    "anthropic": ["messages", 1, "content", 0],
}


def tamper(emulator: Emulator, peer: Peer, nth: int = 2) -> None:
    """The carrier of the first reply is gone from the request that replays it."""
    emulator.fault(match={"nth": nth}, tamper_request=[{"path": CARRIER[peer.wire], "remove": True}])


@pytest.mark.parametrize(
    "peer",
    [DEEPSEEK_CHAT, DEEPSEEK_RESPONSES, GATEWAY_RESPONSES, DEEPSEEK_ANTHROPIC],
    ids=lambda peer: peer.name,
)
async def test_pr_34_fi_1_fi_3_a_named_refusal_is_repaired_once_with_one_execution(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, {"text": "There are none.", "thinking": "So."}])
        tamper(emulator, peer)
        end = await stand.crew.controller.submit("How many effects?")
        emulator.assert_fired()
        assert stand.statuses() == [200, 400, 200]
        assert end.status is TurnStatus.COMPLETED and end.text == "There are none."
        assert stand.starts() == 1
        records = [entry.payload for entry in await stand.records()]
        assert [one["state"] for one in records] == ["consumed", "consumed"]
        told = json.loads(
            records[0]["record"]
        )  # the fault was made behind our back, so no rule found it (PR-12)
        assert (told["certainty"], told["notes"]) == ("reported", ["validator_missed"])
        assert records[0]["projected"] is True
        assert stand.crew.told("discard")[0]["reason"] == "replay_refused"


@pytest.mark.parametrize(
    "peer", [DEEPSEEK_CHAT, DEEPSEEK_RESPONSES, DEEPSEEK_ANTHROPIC], ids=lambda peer: peer.name
)
async def test_pr_1_pr_34_all_but_the_history_is_that_of_the_refused_request(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, {"text": "There are none.", "thinking": "So."}])
        tamper(emulator, peer)
        await stand.crew.controller.submit("How many effects?")
        _, refused, sent = emulator.requests()
        first, second = refused.json(), sent.json()
        key = "input" if peer.wire == "responses" else "messages"
        assert {**first, key: None} == {**second, key: None} and first[key] != second[key]
        assert refused.path == sent.path and refused.headers == {**sent.headers, **_lengths(refused.headers)}


def _lengths(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name == "content-length"}
