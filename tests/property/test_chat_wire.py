"""Laws of the Chat wire: any bytes are decoded or refused, any history becomes a valid request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.core.history import AssistantWords, CallAsked, Message, ResultGiven, UserWords
from surefoot.errors import ProviderError
from surefoot.providers import contracts
from surefoot.providers.chat import ChatWire
from surefoot.providers.port import ModelRequest, Reply, ToolSpec
from surefoot.providers.rules import check, refusing
from surefoot.providers.shaping import body_bytes

NAMES = [name for name in contracts.contract_ids() if name.endswith("/chat")]
TOOLS = (ToolSpec("list", "List a folder.", {"type": "object", "properties": {"path": {"type": "string"}}}),)
ids = st.one_of(st.none(), st.sampled_from(["", " ", "call_a", "call_b", "list:0"]), st.text(max_size=90))
texts = st.text(max_size=12)
argument_texts = st.one_of(st.sampled_from(["", "{}", '{"path":"a"}', '{"pa', "[]", "null"]), texts)
scalars = st.one_of(st.none(), st.booleans(), st.integers(-1, 3), texts)
loose = st.recursive(
    scalars, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3))
)


@st.composite
def deltas(draw: Any) -> dict[str, Any]:
    """A chunk of a stream, mostly of the right form, with any part of it replaced now and then."""
    function = {
        "name": draw(st.one_of(st.just("list"), loose)),
        "arguments": draw(st.one_of(argument_texts, loose)),
    }
    call = {
        "index": draw(st.one_of(st.integers(0, 2), loose)),
        "id": draw(ids),
        "function": draw(st.one_of(st.just(function), loose)),
    }
    delta = {"content": draw(st.one_of(texts, loose)), "tool_calls": draw(st.one_of(st.just([call]), loose))}
    choice = {
        "index": 0,
        "delta": draw(st.one_of(st.just(delta), loose)),
        "finish_reason": draw(st.one_of(st.none(), st.just("stop"), loose)),
    }
    return {"choices": draw(st.one_of(st.just([choice]), loose)), "usage": draw(loose)}


def decode(data: bytes, step: int, contract: str) -> Reply:
    decoder = ChatWire().decoder(contracts.resolve(contract), stream=True)
    for start in range(0, len(data), step):
        decoder.feed(data[start : start + step])
    return decoder.end()


def outcome(data: bytes, step: int, contract: str) -> tuple[Reply | None, str]:
    try:
        return decode(data, step, contract), ""
    except ProviderError as error:
        return None, error.code


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(NAMES))
def test_any_bytes_are_decoded_or_refused(data: bytes, contract: str) -> None:
    outcome(data, 7, contract)


@settings(max_examples=200, deadline=None)
@given(st.lists(deltas(), max_size=5), st.integers(1, 40), st.sampled_from(NAMES), st.booleans())
def test_any_chunks_are_decoded_the_same_however_they_are_split(
    chunks: list[dict[str, Any]], step: int, contract: str, done: bool
) -> None:
    data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    data += b"data: [DONE]\n\n" if done else b""
    assert outcome(data, step, contract) == outcome(data, len(data) or 1, contract)


@st.composite
def histories(draw: Any) -> list[Message]:
    """A history as the core gives it: every call has its result, words stand between rounds."""
    shown: list[Message] = [UserWords("trn", draw(texts) or "go")]
    for n in range(draw(st.integers(0, 4))):
        calls = tuple(
            CallAsked(
                f"cal_{n}_{p}",
                f"att_{n}_{p}",
                p,
                draw(st.one_of(st.just("list"), texts)),
                draw(argument_texts),
                draw(ids),
            )
            for p in range(draw(st.integers(0, 3)))
        )
        text = draw(texts)
        raw: dict[str, Any] = {"role": "assistant", "content": draw(st.sampled_from([text, None, ""]))}
        if draw(st.booleans()):
            raw["reasoning_content"] = draw(texts)
        if calls and draw(st.booleans()):
            raw["tool_calls"] = [
                {"id": one.provider_call_id, "function": {"name": one.asked_name, "arguments": one.arguments}}
                for one in calls
            ]
        shown.append(AssistantWords(n, text, calls, draw(st.sampled_from(["chat", "anthropic"])), raw))
        shown += [ResultGiven(one, draw(texts), draw(st.booleans())) for one in draw(st.permutations(calls))]
        if draw(st.booleans()):
            shown.append(UserWords("trn", draw(texts) or "more", draw(st.one_of(st.none(), texts))))
    return shown


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, deadline=None)
@given(history=histories())
def test_any_history_becomes_a_request_its_contract_accepts(name: str, history: list[Message]) -> None:
    contract = contracts.resolve(name)
    request = ModelRequest("m", "s", history, TOOLS)
    body = ChatWire().encode(request, contract)
    # Reasoning that was never received cannot be sent; such a history needs a repair, not an encoding.
    demanding = contract["reasoning.required"] not in ("as_received", "never", "forbidden")
    excused = {"replay_reasoning"} if demanding and not contract["reasoning.empty_ok"] else set()
    assert [one for one in refusing(check(body, contract)) if one.kind not in excused] == []
    assert body_bytes(body) == body_bytes(ChatWire().encode(request, contract))
    assert json.loads(body_bytes(body))["messages"]
