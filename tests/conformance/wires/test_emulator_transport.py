"""What the emulator does to the line itself, seen by a plain HTTP client and by the official SDK."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai
import pytest

from surefoot.testing.emulator.request_log import LogEntry
from surefoot.testing.emulator.server import Emulator

TEXT = "grüße 你好, long enough to come in several pieces"


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    async with Emulator() as server:
        server.script([{"text": TEXT}], then="last")
        yield server


def body(stream: bool, messages: list[Any] | None = None) -> dict[str, Any]:
    return {"model": "m", "stream": stream, "messages": messages or [{"role": "user", "content": "go"}]}


async def received(emulator: Emulator, *, stream: bool = True, profile: str = "compat") -> tuple[bytes, bool]:
    """The bytes of the reply's body, and whether it broke off."""
    content = b""
    async with httpx2.AsyncClient(timeout=90) as client:
        url = f"{emulator.base_url(profile)}/chat/completions"
        async with client.stream("POST", url, json=body(stream)) as reply:
            try:
                async for piece in reply.aiter_raw():
                    content += piece
            except httpx2.RemoteProtocolError:
                return content, True
    return content, False


@pytest.mark.parametrize("stream", [True, False])
async def test_we_19_a_cut_falls_at_exactly_the_byte_asked_for(emulator: Emulator, stream: bool) -> None:
    whole, broken = await received(emulator, stream=stream)
    assert not broken
    for place in (0, 1, 17, len(whole) // 2, len(whole) - 1):
        fault = emulator.fault(cut_at={"bytes": place})
        got, broken = await received(emulator, stream=stream)
        assert broken and len(got) == place and fault.fired == 1, place
        assert emulator.requests()[-1].bytes_sent == place


async def test_we_19_a_cut_can_split_a_character_and_a_line(emulator: Emulator) -> None:
    emulator.fault(cut_at={"inside": "character"})
    got, broken = await received(emulator)
    assert broken and got.endswith("ü".encode()[:1])
    with pytest.raises(UnicodeDecodeError):
        got.decode()
    emulator.fault(cut_at={"inside": "line", "events": 2})
    got, broken = await received(emulator)
    assert broken and got.count(b"\n\n") == 1 and not got.endswith(b"\n")
    emulator.assert_fired()


async def test_we_19_a_cut_beyond_the_end_does_not_fire(emulator: Emulator) -> None:
    fault = emulator.fault(cut_at={"bytes": 10**6})
    _, broken = await received(emulator)
    assert not broken and fault.fired == 0


async def test_we_19_an_error_body_can_break_off_too(emulator: Emulator) -> None:
    emulator.fault(status=400, message="the reason", cut_at={"bytes": 10})
    got, broken = await received(emulator)
    assert broken and len(got) == 10
    emulator.assert_fired()


async def test_we_19_a_stall_can_keep_the_line_alive_with_comments(emulator: Emulator) -> None:
    emulator.fault(stall_at={"events": 1, "seconds": 0.05, "keep_alive": True})
    got, broken = await received(emulator)
    assert not broken and got.count(b": keep-alive\n\n") == 5 and got.endswith(b"data: [DONE]\n\n")
    emulator.assert_fired()


async def test_we_07_a_client_that_leaves_during_a_stall_is_logged_as_gone(emulator: Emulator) -> None:
    emulator.fault(stall_at={"events": 2, "seconds": None})
    asking = asyncio.ensure_future(received(emulator))
    await emulator.wait_until_held()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)

    async def gone() -> LogEntry:
        while not emulator.requests()[-1].done:
            await emulator.log.changed()
        return emulator.requests()[-1]

    assert (await asyncio.wait_for(gone(), 90)).client_closed_early


async def test_we_07_the_log_holds_raw_bodies_and_digests_and_no_key(emulator: Emulator) -> None:
    async with openai.AsyncOpenAI(
        base_url=emulator.base_url("openai"), api_key="sk-secret-1", max_retries=0
    ) as sdk:
        first = [{"role": "user", "content": "go"}]
        await sdk.chat.completions.create(model="m", messages=first)  # type: ignore[arg-type]
        more = [*first, {"role": "assistant", "content": TEXT}, {"role": "user", "content": "on"}]
        await sdk.chat.completions.create(model="m", messages=more)  # type: ignore[arg-type]
    one, two = emulator.requests()
    assert one.message_shas == two.message_shas[:1] and len(two.message_shas) == 3
    assert json.loads(two.body)["messages"] == more
    assert "sk-secret-1" not in json.dumps(two.to_json()) and two.status == 200


async def test_we_04_replies_carry_the_trace_id_header_of_their_family(emulator: Emulator) -> None:
    async with httpx2.AsyncClient() as client:
        for profile, header in (("openai", "x-request-id"), ("deepseek", "x-ds-trace-id")):
            reply = await client.post(f"{emulator.base_url(profile)}/chat/completions", json=body(False))
            assert reply.headers[header].startswith("req_")
        listed = await client.get(f"{emulator.base_url('kimi')}/models")
        assert listed.json()["data"][0]["id"] == "scripted"


async def test_we_08_the_knobs_of_a_profile_can_be_turned(emulator: Emulator) -> None:
    deepseek = emulator.profiles["deepseek"]
    plain = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    tools = [{"type": "function", "function": {"name": "note", "parameters": {}}}]
    request = {**body(False, plain), "tools": tools}
    async with httpx2.AsyncClient() as client:
        url = f"{emulator.base_url('deepseek')}/chat/completions"
        assert (await client.post(url, json=request)).status_code == 400
        assert (await client.post(url, json={**request, "thinking": {"type": "disabled"}})).status_code == 200
        emulator.profiles["deepseek"] = dataclasses.replace(deepseek, knobs={"v4_mode": "tool_turns"})
        assert (await client.post(url, json=request)).status_code == 200
        plain[1]["reasoning_content"] = ""
        emulator.profiles["deepseek"] = dataclasses.replace(
            deepseek, knobs={"v4_mode": "all_turns", "empty_ok": False}
        )
        assert (await client.post(url, json=request)).status_code == 400


async def test_we_19_match_by_session_number_and_digest(emulator: Emulator) -> None:
    nth = emulator.fault(status=500, match={"session": "b", "nth": 2})
    async with httpx2.AsyncClient() as client:
        url = f"{emulator.base_url('compat')}/chat/completions"
        statuses = [
            (await client.post(url, json=body(False), headers={"x-test-session": session})).status_code
            for session in ("a", "b", "a", "b", "b")
        ]
        assert statuses == [200, 200, 200, 500, 200] and nth.fired == 1
        emulator.fault(status=503, match={"body_sha": emulator.requests()[0].body_sha}, count=-1)
        assert (await client.post(url, json=body(False))).status_code == 503
        assert (await client.post(url, json=body(True))).status_code == 200
