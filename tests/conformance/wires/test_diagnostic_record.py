"""What a record keeps of a refusal: names and identifiers, on all three wires, old records included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from surefoot.core import incident
from surefoot.core.model import Draft, Kind
from surefoot.runtime.requests import Answer
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.replaying import Peer, Stand

PEERS = pytest.mark.parametrize(
    "peer",
    [
        Peer("chat", "deepseek", "deepseek/chat"),
        Peer("responses", "deepseek", "deepseek/responses"),
        Peer("anthropic", "deepseek", "deepseek/anthropic", effort="low"),
    ],
    ids=lambda peer: peer.name,
)
PATHS = {"chat": "v1/chat/completions", "responses": "v1/responses", "anthropic": "v1/messages"}
LOOK = {"thinking": "I look first.", "calls": [{"name": "look", "args": {"label": "a"}}]}
DONE = {"text": "Done.", "thinking": "So."}
WORDS = "hunter2 is the password of the prompt"


@PEERS
async def test_pr_15_the_record_names_endpoint_path_body_form_code_and_parameter(
    peer: Peer, tmp_path: Path
) -> None:
    error = {"code": "E-17", "param": "messages[2].id", "message": ""}
    body = json.dumps({"error": error, "note": WORDS})
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        emulator.fault(match={"nth": 2}, status=400, raw=body, headers={"x-request-id": "req 1 <b>"})
        await stand.crew.controller.submit("How many?")
        emulator.assert_fired()
        text = (await stand.records())[-1].payload["record"]
        kept = json.loads(text)
        assert kept["endpoint"] == "emulated" and kept["contract"] == peer.contract
        assert kept["request_path"] == f"/deepseek/{PATHS[peer.wire]}"
        assert (kept["body_kind"], kept["code"], kept["param"]) == ("object", "E-17", "messages[2].id")
        assert (kept["status"], kept["wire"]) == (400, peer.wire)
        assert "<b>" not in text and "transport_code" not in kept
        assert WORDS not in text and "How many" not in text and "sk-" not in text
        card = await stand.crew.controller.incidents.card()
        assert card is not None and (card["code"], card["endpoint"]) == ("E-17", "emulated")


@PEERS
async def test_pr_15_pr_22_a_record_of_an_older_version_is_read_acted_on_and_kept(
    peer: Peer, tmp_path: Path
) -> None:
    async with Emulator() as emulator, Stand(emulator, peer, tmp_path) as stand:
        emulator.script([LOOK, DONE])
        emulator.fault(match={"nth": 2}, status=400, raw="")
        await stand.crew.controller.submit("How many?")
        session = stand.crew.session
        newer = ("endpoint", "request_path", "transport_code", "body_kind", "code", "param")
        old = {key: one for key, one in session.incidents[-1].fields.items() if key not in newer}
        text = incident.encode(old)[:-1] + ', "weight": 1.50}'
        await session.append(Draft(Kind.INCIDENT, {"state": "pending", "record": text}))
        card = await stand.crew.controller.incidents.card()
        assert card is not None and card["offered"] and "endpoint" not in card
        done = await stand.crew.controller.recover_context()
        assert not isinstance(done, Answer)
        assert '"weight": 1.50' in session.incidents[-1].text and session.incidents[-1].state == "consumed"
