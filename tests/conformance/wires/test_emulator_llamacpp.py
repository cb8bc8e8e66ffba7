"""The emulator beside a real llama.cpp server: the same conversations, both wires, whole and streamed.

The server's template is a lenient one: it refuses less than the profile, whose rules come from
other templates and versions. So what is compared is what both accept, and the form of what they answer.
"""

from __future__ import annotations

import itertools
from typing import Any

import openai
import pytest

from surefoot.providers.local import LocalServer
from surefoot.testing.emulator.server import Emulator

Body = dict[str, Any]
CALL = {"id": "call_1", "type": "function", "function": {"name": "note", "arguments": '{"text": "a"}'}}
LOOP = [
    {"role": "user", "content": "Note it."},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "noted"},
]
ITEMS = [
    {"role": "user", "content": "Note it."},
    {"type": "function_call", "call_id": "call_1", "name": "note", "arguments": '{"text": "a"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "noted"},
]
DELTAS = ["role", "content", "finish", "usage"]
PLAIN = [{"role": "user", "content": "Say yes."}]


async def chat(sdk: openai.AsyncOpenAI, messages: list[Any]) -> list[str]:
    """The kinds of deltas of a streamed answer, repeats put together."""
    stream = await sdk.chat.completions.create(
        model="m", messages=messages, max_tokens=2, stream=True, stream_options={"include_usage": True}
    )
    kinds, ids = [], set()
    async for chunk in stream:
        ids.add(chunk.id)
        if not chunk.choices:
            kinds.append("usage")
        elif chunk.choices[0].finish_reason:
            kinds.append("finish")
        else:
            kinds.append("role" if chunk.choices[0].delta.role else "content")
    assert len(ids) == 1
    return [kind for kind, _ in itertools.groupby(kinds)]


async def responses(sdk: openai.AsyncOpenAI, items: list[Any]) -> set[str]:
    """The types of events of a streamed answer."""
    stream = await sdk.responses.create(model="m", input=items, max_output_tokens=2, stream=True)
    return {event.type async for event in stream}


def keys(value: Any) -> set[str]:
    return set(value.model_dump(exclude_unset=True))


@pytest.mark.timeout(600)
async def test_we_01_a_real_server_accepts_and_answers_in_the_same_form() -> None:
    async with Emulator() as emulator, LocalServer("smollm2") as server:
        endpoint = await server.start(lambda _: None)
        emulator.script([{"text": "yes yes"}], then="last")
        assert endpoint.key is not None
        # That server announces keep-alive and closes after each stream, so no connection is used twice.
        once = {"Connection": "close"}
        key = endpoint.key() or ""
        real = openai.AsyncOpenAI(base_url=endpoint.url, api_key=key, max_retries=0, default_headers=once)
        played = openai.AsyncOpenAI(base_url=emulator.base_url("llamacpp"), api_key="sk-x", max_retries=0)
        other = openai.AsyncOpenAI(base_url=emulator.base_url("compat"), api_key="sk-x", max_retries=0)
        async with real, played, other:
            for messages in (PLAIN, LOOP):
                assert await chat(real, messages) == await chat(played, messages) == DELTAS
            assert await responses(real, ITEMS) == await responses(other, ITEMS)
            asked: Body = {"model": "m", "messages": PLAIN, "max_tokens": 2}
            theirs = await real.chat.completions.create(**asked)
            ours = await played.chat.completions.create(**asked)
            assert keys(ours.choices[0]) - {"logprobs"} <= keys(theirs.choices[0])
            assert theirs.usage is not None and keys(ours.usage) <= keys(theirs.usage)
