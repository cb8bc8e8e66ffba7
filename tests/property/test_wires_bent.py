"""Laws of all three wires: bent replies never crash a decoder, and what was read can always be sent again."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.core.canonical import canonical_json
from surefoot.core.history import AssistantWords, CallAsked, Message, ResultGiven, UserWords
from surefoot.errors import ProviderError
from surefoot.providers import contracts
from surefoot.providers.anthropic import AnthropicWire
from surefoot.providers.chat import ChatWire
from surefoot.providers.port import ModelRequest, Reply, ToolSpec, Wire
from surefoot.providers.responses import ResponsesWire
from surefoot.providers.rules import check, refusing
from surefoot.providers.shaping import body_bytes

WIRES: dict[str, Wire] = {"chat": ChatWire(), "responses": ResponsesWire(), "anthropic": AnthropicWire()}
NAMES = [name for name in contracts.contract_ids() if name != "local/chat"]
DEMANDING = {"DS-02", "MI-01"}
"""Rules that demand text of reasoning which a history may never have had; that is left to a recovery."""
ARGUMENTS = '{"path": "a"}'


def chat() -> list[Any]:
    def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
        return {"id": "x", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    call = {
        "index": 0,
        "id": "call_a",
        "type": "function",
        "function": {"name": "read", "arguments": ARGUMENTS},
    }
    usage = {"id": "x", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}
    return [
        chunk(reasoning_content="hm"),
        chunk(content="hi"),
        chunk(tool_calls=[call]),
        chunk("tool_calls"),
        usage,
    ]


def anthropic() -> list[Any]:
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        (
            {"type": "thinking", "thinking": "", "signature": ""},
            [{"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "s=="}],
        ),
        ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "hi"}]),
        (
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
            [{"type": "input_json_delta", "partial_json": '{"query":"q"}'}],
        ),
        ({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}, []),
        (
            {"type": "tool_use", "id": "toolu_a", "name": "read", "input": {}},
            [{"type": "input_json_delta", "partial_json": ARGUMENTS}],
        ),
    ]
    message = {"id": "msg_1", "role": "assistant", "model": "m", "content": [], "usage": {"input_tokens": 3}}
    events: list[Any] = [{"type": "message_start", "message": message}]
    for number, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": number, "content_block": block})
        events += [{"type": "content_block_delta", "index": number, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": number})
    end = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}}
    return [*events, end, {"type": "message_stop"}]


def responses() -> list[Any]:
    part = {"type": "output_text", "text": "hi", "annotations": []}
    output = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "enc=="},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "function_call", "id": "fc_1", "call_id": "call_a", "name": "read", "arguments": ARGUMENTS},
    ]
    events: list[Any] = [{"type": "response.created", "response": {"id": "resp_1", "model": "m"}}]
    for number, item in enumerate(output):
        events.append(
            {"type": "response.output_item.added", "output_index": number, "item": copy.deepcopy(item)}
        )
        if item["type"] == "function_call":
            kind = "response.function_call_arguments.delta"
            events.append({"type": kind, "output_index": number, "item_id": item["id"], "delta": ARGUMENTS})
        events.append(
            {"type": "response.output_item.done", "output_index": number, "item": copy.deepcopy(item)}
        )
    usage = {"input_tokens": 3, "output_tokens": 4}
    end = {
        "id": "resp_1",
        "model": "m",
        "status": "completed",
        "output": output,
        "usage": usage,
        "error": None,
    }
    return [*events, {"type": "response.completed", "response": end}]


EVENTS = {"chat": chat, "responses": responses, "anthropic": anthropic}
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10**20),
    st.floats(),
    st.text(max_size=6),
    st.just([]),
    st.just({}),
    st.just([None, 3, {"type": 4}]),
    st.just('{"a": NaN}'),
    st.just({"error": 1}),
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside."""
    found = [at] if at else []
    if isinstance(value, dict):
        for key, one in value.items():
            found += places(one, (*at, key))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            found += places(one, (*at, number))
    return found


@st.composite
def bent(draw: st.DrawFn, wire: str) -> list[Any]:
    """The events of a healthy reply with some values replaced, removed, or moved."""
    events = copy.deepcopy(EVENTS[wire]())
    for _ in range(draw(st.integers(0, 4))):
        known = places(events)
        if not known:
            break
        path = draw(st.sampled_from(known))
        holder: Any = events
        for step in path[:-1]:
            holder = holder[step]
        if draw(st.booleans()):
            holder[path[-1]] = copy.deepcopy(draw(JUNK))
        else:
            del holder[path[-1]]
    return draw(st.permutations(events)) if draw(st.integers(0, 9)) == 0 else events


def read(wire: str, events: list[Any], contract: Any) -> Reply | None:
    data = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    decoder = WIRES[wire].decoder(contract, stream=True)
    try:
        decoder.feed(data.encode())
        return decoder.end()
    except ProviderError:
        return None


def stored(reply: Reply, wire: str) -> list[Message]:
    """The history after this reply, as the ledger would give it back."""
    calls = tuple(
        CallAsked(f"cal_{n}", f"att_{n}", n, call.name, call.arguments or "", call.provider_call_id)
        for n, call in enumerate(reply.calls)
    )
    raw = json.loads(canonical_json(json.loads(json.dumps(reply.raw))))
    words = AssistantWords(2, reply.text, calls, wire, raw)
    results = [ResultGiven(call, "", True) for call in calls]
    return [UserWords("t", "q"), words, *results, UserWords("t2", "and now?")]


def finite(value: Any) -> bool:
    if isinstance(value, float):
        return value == value and abs(value) != float("inf")
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(finite(one) for one in parts)


@pytest.mark.parametrize("wire", list(WIRES))
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_projection_valid_whatever_was_read_can_be_sent_again_everywhere(
    wire: str, data: st.DataObject
) -> None:
    events = data.draw(bent(wire))
    reply = read(wire, events, contracts.resolve(f"compat/{wire}"))
    if reply is None or not finite(dict(reply.raw)):
        return
    history = stored(reply, wire)
    name = data.draw(st.sampled_from(NAMES))
    contract = contracts.resolve(name)
    tool = ToolSpec("read", "Read.", {"type": "object"})
    request = ModelRequest("m", "s", history, (tool,), endpoint="here")
    body = WIRES[contract.wire].encode(request, contract)
    assert body_bytes(body) == body_bytes(WIRES[contract.wire].encode(request, contract))
    assert {one.rule for one in refusing(check(body, contract))} <= DEMANDING, json.dumps(body)


@pytest.mark.parametrize("wire", list(WIRES))
@settings(max_examples=60, deadline=None)
@given(noise=st.binary(max_size=200), at=st.integers(0, 3000), step=st.integers(1, 400))
def test_any_bytes_give_a_reply_or_a_provider_error(wire: str, noise: bytes, at: int, step: int) -> None:
    whole = "".join(f"data: {json.dumps(event)}\n\n" for event in EVENTS[wire]()).encode()
    bytes_ = whole[: at % len(whole)] + noise + whole[at % len(whole) :]
    decoder = WIRES[wire].decoder(contracts.resolve(f"compat/{wire}"), stream=True)
    try:
        for start in range(0, len(bytes_), step):
            decoder.feed(bytes_[start : start + step])
        decoder.end()
    except ProviderError:
        pass
