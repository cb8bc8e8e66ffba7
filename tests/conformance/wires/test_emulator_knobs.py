"""Every fault knob on every wire: it fires and is counted, or has no form there and says so by its silence."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai
import pytest

from surefoot.testing.emulator.fault_plan import MODES, REFUSING, REPLYING, FaultNotFired
from surefoot.testing.emulator.server import Emulator

Body = dict[str, Any]
SAID = {
    "chat": "messages", "responses": "input", "anthropic": "messages", "gemini": "contents", "converse": "messages",
}  # fmt: skip
PATHS = {
    "chat": "compat/v1/chat/completions",
    "responses": "openai/v1/responses",
    "anthropic": "anthropic/v1/messages",
    "gemini": "gemini/v1beta/models/m:streamGenerateContent?alt=sse",
    "converse": "bedrock/model/m/converse",
}
STEP = {
    "thinking": "hm hm hm",
    "text": "grüße",
    "calls": [{"name": "note", "args": {"text": n}} for n in "ab"],
}
TELLING = ["plain", "sse_data", "list", "nested_string", "shape"]
FORMS = ["empty", "model_only", "empty_object", "error_empty", "html", *TELLING]
GATEWAYS = [f"gateway={mode}" for mode in (500, 502, "nested_string")]
NO_FORM = {
    "chat": {
        "no_message_stop",
        "no_message_delta",
        "reasoning_mode=lost_signature_delta",
        "reasoning_mode=redacted",
        "reasoning_mode=signature_only",
        "reasoning_mode=unsigned",
        "signature_mode=foreign_model",
        "signature_mode=foreign_account",
        "signature_mode=corrupt_one_byte",
        "signature_mode=expired_incident",
    },
    "responses": {
        "no_message_stop",
        "no_message_delta",
        "index_mode=two_in_one_chunk",
        "id_mode=empty_later",
        "id_mode=null_later",
        "name_mode=repeat_each_delta",
        "reasoning_mode=redacted",
        "signature_mode=expired_incident",
    },
    "anthropic": {
        "no_done",
        "no_finish",
        "index_mode=two_in_one_chunk",
        "id_mode=empty_later",
        "id_mode=null_later",
        "name_mode=repeat_each_delta",
        "args_mode=object",
        "signature_mode=expired_incident",
    },
    "gemini": {
        "no_done",
        "no_message_stop",
        "no_message_delta",
        "truncate_args",
        "index_mode=all_zero",
        "index_mode=gap",
        "index_mode=missing",
        "index_mode=reverse",
        "id_mode=empty_later",
        "id_mode=null_later",
        "name_mode=repeat_each_delta",
        "args_mode=object",
        "args_mode=cumulative",
        "reasoning_mode=lost_signature_delta",
        "reasoning_mode=redacted",
        "reasoning_mode=signature_only",
        "signature_mode=expired_incident",
    },
    "converse": {
        *(
            "no_done",
            "no_finish",
            "no_message_stop",
            "no_message_delta",
            "duplicate_final",
            "stream_error_at",
        ),
        *(f"index_mode={mode}" for mode in MODES["index_mode"]),
        "stall_at",
        "id_mode=empty_later",
        "id_mode=null_later",
        "name_mode=repeat_each_delta",
        "args_mode=object",
        "args_mode=cumulative",
        "reasoning_mode=lost_signature_delta",
        "signature_mode=expired_incident",
    },
}
"""What these requests cannot show; `expired_incident` needs a request that brings a signature, and after
an event of a reply in one piece nothing can be held back."""


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    async with Emulator() as server:
        server.script([STEP], then="last")
        yield server


def actions() -> list[tuple[str, Body]]:
    """One fault for each knob and mode, named."""
    found: list[tuple[str, Body]] = []
    for knob, modes in MODES.items():
        found += [(f"{knob}={mode}", {knob: mode}) for mode in sorted(modes, key=str)]
    plain: Body = {
        "status": 418,
        "ok_error": True,
        "auth": True,
        "quota_as_400": True,
        "quota_as_429": True,
        "rate": 3,
        "overloaded": True,
        "moderation": True,
        "overflow_at": 1,
        "headers": {"x-should-retry": "false"},
        "delay_headers": 0.01,
        "cut_at": {"bytes": 12},
        "stall_at": {"events": 1, "seconds": 0.01},
        "finish": "length",
        "tamper_request": [{"path": ["model"], "value": "other"}],
        "lenient": ["OC-02", "OR-10", "AN-16", "GE-05", "BR-06"],
        "truncate_args": 4,
        "no_done": True,
        "no_finish": True,
        "no_message_stop": True,
        "no_message_delta": True,
        "duplicate_final": True,
        "stream_error_at": 2,
    }
    assert set(plain) | set(MODES) == REFUSING | REPLYING
    return [*found, *((knob, {knob: value}) for knob, value in plain.items())]


def request(wire: str, *, broken: bool = False) -> Body:
    if wire in ("gemini", "converse"):
        held = "parts" if wire == "gemini" else "content"
        return {SAID[wire]: [{"role": "user", held: [] if broken else [{"text": "go"}]}]}
    body: Body = {"model": "m", "stream": True, SAID[wire]: [{"role": "user", "content": "go"}]}
    if wire == "anthropic":
        body |= {"max_tokens": 2048, "thinking": {"type": "enabled", "budget_tokens": 1024}}
    if wire == "responses":
        body["include"] = ["reasoning.encrypted_content"]
    if broken:
        odd = {"role": "tool", "tool_call_id": "zz", "content": "x"}
        body[SAID[wire]] = [{"role": "user", "content": ""}] if wire == "anthropic" else [odd]
    return body


async def send(client: httpx2.AsyncClient, emulator: Emulator, wire: str, body: Body) -> tuple[int, bytes]:
    got = b""
    async with client.stream("POST", f"{emulator.url}/{PATHS[wire]}", json=body) as reply:
        try:
            async for piece in reply.aiter_raw():
                got += piece
        except httpx2.RemoteProtocolError:
            return reply.status_code, got
    return reply.status_code, got


@pytest.mark.parametrize("wire", sorted(PATHS))
async def test_we_19_every_knob_fires_once_and_is_counted_or_has_no_form(
    emulator: Emulator, wire: str
) -> None:
    silent = set()
    async with httpx2.AsyncClient(timeout=90) as client:
        _, whole = await send(client, emulator, wire, request(wire))
        for name, action in actions():
            fault = emulator.fault(**action)
            _, got = await send(client, emulator, wire, request(wire, broken=name in ("lenient", *GATEWAYS)))
            while not emulator.requests()[-1].done:
                await emulator.log.changed()
            emulator.plan.faults.remove(fault)
            if fault.fired:
                assert fault.fired == 1, name
                unchanged = {"headers", "delay_headers", "stall_at", "lenient", "tamper_request"}
                assert got != whole or name in unchanged, name
            else:
                silent.add(name)
    assert silent == NO_FORM[wire]
    emulator.fault(status=418, match={"nth": 1})
    with pytest.raises(FaultNotFired):
        emulator.assert_fired()


@pytest.mark.parametrize("wire", sorted(PATHS))
@pytest.mark.parametrize("form", FORMS)
async def test_we_19_every_broken_body_leaves_on_every_wire(emulator: Emulator, wire: str, form: str) -> None:
    async with httpx2.AsyncClient(timeout=90) as client:
        emulator.fault(status=400, body=form, message="inner words")
        status, got = await send(client, emulator, wire, request(wire))
        assert status == 400 and (b"inner words" in got) == (form in TELLING), got
        emulator.fault(status=400, body="truncated_json", cut_at={"bytes": 5}, message="inner words")
        _, got = await send(client, emulator, wire, request(wire))
        assert len(got) == 5
    emulator.assert_fired()


@pytest.mark.parametrize("wire", sorted(PATHS))
async def test_we_19_a_cut_can_fall_inside_a_character_on_every_wire(emulator: Emulator, wire: str) -> None:
    async with httpx2.AsyncClient(timeout=90) as client:
        emulator.fault(cut_at={"inside": "character"})
        _, got = await send(client, emulator, wire, request(wire))
    assert got.endswith("ü".encode()[:1])
    emulator.assert_fired()


@pytest.mark.parametrize("wire", sorted(PATHS))
async def test_we_19_flip_refuses_and_accepts_the_same_bytes(emulator: Emulator, wire: str) -> None:
    async with httpx2.AsyncClient(timeout=90) as client:
        emulator.fault(flip="once")
        statuses = [(await send(client, emulator, wire, request(wire)))[0] for _ in range(2)]
        assert statuses == [400, 200]
        emulator.fault(flip="for_ever")
        statuses = [(await send(client, emulator, wire, request(wire)))[0] for _ in range(3)]
        assert statuses == [400, 400, 400]
    assert len({entry.body_sha for entry in emulator.requests()}) == 1


@pytest.mark.parametrize("wire", sorted(PATHS))
async def test_we_07_the_log_holds_beta_headers_digests_and_no_key(emulator: Emulator, wire: str) -> None:
    headers = {"authorization": "Bearer sk-secret", "x-api-key": "sk-secret", "anthropic-beta": "a-beta"}
    async with httpx2.AsyncClient(timeout=90, headers=headers) as client:
        await send(client, emulator, wire, {**request(wire), "stream": False})
        await send(client, emulator, wire, request(wire))
    first, second = emulator.requests()
    assert first.headers["anthropic-beta"] == "a-beta" and "sk-secret" not in json.dumps(first.headers)
    assert len(first.message_shas) == 1 and first.message_shas == second.message_shas
    assert first.bytes_sent > 0 and first.done


async def test_we_19_reasoning_is_left_out_or_blank_on_chat(emulator: Emulator) -> None:
    emulator.fault(reasoning_mode="omit")
    emulator.fault(reasoning_mode="blank")
    shown = []
    url = f"{emulator.base_url('deepseek')}/chat/completions"
    async with httpx2.AsyncClient(timeout=90) as client:
        for _ in range(3):
            reply = await client.post(url, json={**request("chat"), "stream": False})
            shown.append(reply.json()["choices"][0]["message"].get("reasoning_content"))
    assert shown == [None, "", "hm hm hm"]
    emulator.assert_fired()


async def test_we_18_chat_shows_sources_as_annotations_and_counts_the_search(emulator: Emulator) -> None:
    emulator.script([{"behaviour": "search_with_sources", "search_with_sources": 2, "text": "found"}])
    async with openai.AsyncOpenAI(base_url=emulator.base_url("openai"), api_key="sk-x", max_retries=0) as sdk:
        reply = await sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "go"}])
    annotations = reply.choices[0].message.annotations
    assert annotations is not None and [a.url_citation.title for a in annotations] == ["Source 1", "Source 2"]
    assert emulator.requests()[0].hosted == {"search": 1}


async def test_we_12_deepseek_may_name_its_json_a_stream_of_bytes(emulator: Emulator) -> None:
    emulator.set_knobs("deepseek", octet_stream=True)
    url = f"{emulator.base_url('deepseek')}/chat/completions"
    async with httpx2.AsyncClient(timeout=90) as client:
        reply = await client.post(url, json=request("chat", broken=True))
    assert reply.headers["content-type"] == "application/octet-stream" and reply.headers["x-ds-trace-id"]
    assert reply.json()["error"]["code"] == "invalid_request_error"


HOSTED_TOOLS: tuple[tuple[str, str, dict[str, Any], bool], ...] = (
    ("anthropic", "anthropic", {"type": "code_execution_20250825", "name": "code_execution"}, True),
    ("anthropic", "anthropic", {"type": "web_search_20250305", "name": "search"}, False),
    ("anthropic", "anthropic", {"type": "code_interpreter", "name": "code"}, False),
    ("openai", "responses", {"type": "code_interpreter", "container": {"type": "auto"}}, True),
    ("openai", "responses", {"type": "code_interpreter"}, False),
    ("openai", "responses", {"type": "mcp"}, False),
    ("openai", "responses", {"type": "web_search"}, True),
    ("openai", "chat", {"type": "web_search"}, False),
)


@pytest.mark.parametrize(("profile", "wire", "tool", "taken"), HOSTED_TOOLS)
async def test_we_9_we_10_a_hosted_tool_is_declared_in_its_form_or_refused(
    emulator: Emulator, profile: str, wire: str, tool: dict[str, Any], taken: bool
) -> None:
    asked: dict[str, dict[str, Any]] = {
        "chat": {"messages": [{"role": "user", "content": "go"}]},
        "responses": {"input": [{"role": "user", "content": "go"}]},
        "anthropic": {"messages": [{"role": "user", "content": "go"}], "max_tokens": 10},
    }
    path = {"chat": "/chat/completions", "responses": "/responses", "anthropic": "/v1/messages"}[wire]
    url = emulator.base_url(profile, wire=wire) + path
    async with httpx2.AsyncClient(timeout=90) as client:
        reply = await client.post(url, json={"model": "m", "tools": [tool], **asked[wire]})
    assert (reply.status_code == 200) is taken, reply.text


async def test_we_18_a_tool_may_wait_for_being_switched_on(emulator: Emulator) -> None:
    emulator.script([{"hosted_effect": "code", "when_enabled": True, "text": "ran"}], then="last")
    url = emulator.base_url("openai") + "/responses"
    tool = {"type": "code_interpreter", "container": {"type": "auto"}}
    async with httpx2.AsyncClient(timeout=90) as client:
        for tools in ([], [tool]):
            await client.post(url, json={"model": "m", "input": "go", "tools": tools})
    assert [entry.hosted for entry in emulator.requests()] == [{}, {"code": 1}]
