"""The emulator's checks on damaged bodies of every wire: each is answered, none brings it down."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from surefoot.testing.emulator.exchange import Exchange, Rooms
from surefoot.testing.emulator.fault_plan import FaultPlan
from surefoot.testing.emulator.issuing import (
    DUMMY_SIGNATURE,
    NO_REASONING,
    Token,
    bent,
    item_id,
    read_item_id,
    seal,
    unseal,
)
from surefoot.testing.emulator.profiles import PATHS, PROFILES, WIRES, Profile
from surefoot.testing.emulator.request_log import RequestLog
from surefoot.testing.emulator.scripts import Script, Scripts
from surefoot.testing.emulator.stored import Stored
from surefoot.testing.emulator.wire_out import Outgoing, Request

CHAT_CALL = {"id": "abcDEF123", "type": "function", "function": {"name": "note", "arguments": "{}"}}
CHAT: dict[str, Any] = {
    "model": "m",
    "stream_options": {"include_usage": True},
    "tools": [{"type": "function", "function": {"name": "note", "parameters": {}}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [CHAT_CALL]},
        {"role": "tool", "tool_call_id": "abcDEF123", "content": "ok"},
    ],
}
ANTHROPIC: dict[str, Any] = {
    "model": "m",
    "max_tokens": 9,
    "system": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}],
    "tools": [{"name": "note", "input_schema": {}}],
    "thinking": {"type": "enabled", "block_binding": {"prefix_mismatch_behavior": "drop_block"}},
    "messages": [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "x"},
                {"type": "tool_use", "id": "t", "name": "note", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": [], "is_error": False}],
        },
    ],
}
RESPONSES: dict[str, Any] = {
    "model": "m",
    "include": ["reasoning.encrypted_content"],
    "reasoning": {"effort": "low"},
    "tools": [{"type": "function", "name": "note", "parameters": {}}],
    "input": [
        {"role": "user", "content": "go"},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [],
            "encrypted_content": "x",
            "content": [{"type": "reasoning_text"}],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "note", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "ok"},
    ],
}
GEMINI: dict[str, Any] = {
    "systemInstruction": {"parts": [{"text": "x"}]},
    "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
    "tools": [{"functionDeclarations": [{"name": "note", "parameters": {}}]}],
    "contents": [
        {"parts": [{"text": "go"}]},
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True},
                {
                    "functionCall": {"id": "a", "name": "note", "args": {}},
                    "thoughtSignature": DUMMY_SIGNATURE,
                },
            ],
        },
        {"role": "user", "parts": [{"functionResponse": {"id": "a", "name": "note", "response": {"o": 1}}}]},
    ],
}
CONVERSE: dict[str, Any] = {
    "system": [{"text": "x"}],
    "toolConfig": {"tools": [{"toolSpec": {"name": "note", "inputSchema": {"json": {}}}}]},
    "messages": [
        {"role": "user", "content": [{"text": "go"}]},
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "x"}}},
                {"toolUse": {"toolUseId": "a", "name": "note", "input": {}}},
            ],
        },
        {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": "ok"}]}}]},
    ],
}
BODIES = {
    "chat": CHAT,
    "anthropic": ANTHROPIC,
    "responses": RESPONSES,
    "gemini": GEMINI,
    "converse": CONVERSE,
}
SAID = {"responses": "input", "gemini": "contents"}
PATH_OF = {
    **{wire: path for path, wire in PATHS.items()},
    "gemini": "v1beta/models/m:streamGenerateContent",
    "converse": "model/m/converse",
}
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    "",
    " ",
    "x" * 100,
    [],
    [[]],
    [1],
    {},
    {"type": {}},
    {"type": "text"},
    {"type": "item_reference", "id": "x"},
    "tool",
    "user",
]
STEP = {
    "thinking": "hm",
    "text": "x",
    "calls": [{"name": "note", "args": {"a": "ß"}}],
    "hosted_effect": "code",
}
BEHAVED = [{"behaviour": name} for name in ("echo_results", "repeat_call", "repeat_call_after_recovery")]


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a body."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*way, key)
        yield from places(one, (*way, key))


def damaged(body: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The body with one to three places made odd, removed, or doubled."""
    copied = copy.deepcopy(body)
    for _ in range(chance.randint(1, 3)):
        *way, last = chance.choice(list(places(copied)))
        place: Any = copied
        for step in way:
            place = place[step]
        what = chance.random()
        if what < 0.2:
            del place[last]
        elif what < 0.3 and isinstance(place, list):
            place.append(copy.deepcopy(place[last]))
        else:
            place[last] = copy.deepcopy(chance.choice(ODD))
    return copied


def answered(profile: Profile, body: Any) -> Outgoing:
    path = PATH_OF[profile.wire]
    raw = json.dumps(body).encode()
    request = Request("POST", f"/{profile.name}/{path}", {"anthropic-beta": "x"}, raw)
    log = RequestLog()
    entry = log.arrived(profile=profile.name, path=request.path, headers=request.headers, body=raw)
    scripts = Scripts()
    scripts.add(Script([STEP, *BEHAVED], by="history"))
    rooms = Rooms(FaultPlan(), scripts, Stored(), PROFILES)
    return Exchange(rooms, profile, request, entry, nth=1).answer()


EACH = [(wire, name) for wire, profiles in WIRES.items() for name in profiles]


@pytest.mark.parametrize(("wire", "name"), EACH, ids=[f"{wire}-{name}" for wire, name in EACH])
def test_we_01_a_damaged_body_is_always_answered(wire: str, name: str) -> None:
    chance = random.Random(f"{wire}{name}")
    seen = set()
    for _ in range(60):
        whole = BODIES[wire]
        said = SAID.get(wire, "messages")
        body = damaged(chance.choice([whole, {**whole, said: whole[said][:1]}]), chance)
        out = answered(WIRES[wire][name], body)
        assert out.status in (200, 400, 404, 500, 502), body
        assert b"".join(out.pieces)
        seen.add(out.status)
    assert 200 in seen, "no body came through, so replies were not tried"


def test_we_10_a_token_with_any_byte_changed_is_not_known() -> None:
    token = Token("thinking", "m", "a", "t", {"p": 0})
    sealed = seal(token, "Emu")
    assert unseal(sealed, "Emu") == token
    for place in range(len(sealed)):
        changed = sealed[:place] + ("A" if sealed[place] != "A" else "B") + sealed[place + 1 :]
        assert unseal(changed, "Emu") is None, place
    for cut in range(len(sealed)):
        assert unseal(sealed[:cut], "Emu") is None
    for mode in ("foreign_model", "foreign_account", "corrupt_one_byte"):
        assert unseal(bent(token, "Emu", mode), "Emu") != token


def test_we_17_an_issued_id_tells_its_reply_and_a_foreign_one_nothing() -> None:
    identity = item_id("fc", "0" * 20, 3, NO_REASONING)
    read = read_item_id(identity)
    assert read is not None and (read.reply, read.place, read.reasoning) == ("0" * 20, 3, NO_REASONING)
    for foreign in ("fc_1", "", None, 3, "fc_" + "z" * 24):
        assert read_item_id(foreign) is None
