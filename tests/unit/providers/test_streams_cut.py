"""A stream split at any byte is one reply; one that ends at any byte is that reply, or none that could run a call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from surefoot.errors import ProviderError, ProviderUnreachable
from surefoot.providers import contracts
from surefoot.providers.port import Reply
from surefoot.providers.projection import WIRES

Body = dict[str, Any]
TEXT = "Grüße, 北京 🎉"
ARGUMENTS = '{"path": "ä🎉\\n.txt", "deep": [1, {"x": null}]}'


def said(*events: Body, named: bool = False, end: str = "") -> bytes:
    lines = [
        (f"event: {one['type']}\n" if named else "") + f"data: {json.dumps(one, ensure_ascii=False)}\n\n"
        for one in events
    ]
    return (": keep-alive\n\n" + "".join(lines) + end).encode()


def delta(finish: str | None = None, **told: Any) -> Body:
    return {"id": "x", "choices": [{"index": 0, "delta": told, "finish_reason": finish}]}


def call(number: int, arguments: str, **head: Any) -> Body:
    return {"index": number, **head, "function": {"name": "read" if head else None, "arguments": arguments}}


CHAT = said(
    delta(role="assistant", reasoning_content="思考"),
    delta(content=TEXT[:5]),
    delta(content=TEXT[5:]),
    delta(tool_calls=[call(0, "", id="call_a", type="function"), call(1, "{", id="call_b")]),
    delta(tool_calls=[call(1, '"b"')]),
    delta(tool_calls=[call(0, ARGUMENTS)]),
    delta(tool_calls=[call(1, ": 1}")]),
    delta("tool_calls"),
    {"id": "x", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
    end="data: [DONE]\n\n",
)


def block(number: int, start: Body, *deltas: Body) -> list[Body]:
    return [
        {"type": "content_block_start", "index": number, "content_block": start},
        *({"type": "content_block_delta", "index": number, "delta": one} for one in deltas),
        {"type": "content_block_stop", "index": number},
    ]


ANTHROPIC = said(
    {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}},
    *block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": TEXT}),
    *block(
        1,
        {"type": "tool_use", "id": "toolu_a", "name": "read", "input": {}},
        {"type": "input_json_delta", "partial_json": ""},
        {"type": "input_json_delta", "partial_json": ARGUMENTS[:20]},
        {"type": "ping_of_tomorrow", "later": None},
        {"type": "input_json_delta", "partial_json": ARGUMENTS[20:]},
    ),
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
    named=True,
)
MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
WORDS = {"type": "output_text", "text": TEXT, "annotations": []}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_a", "name": "read", "arguments": ARGUMENTS}
RESPONSES = said(
    {"type": "response.created", "response": {"id": "resp_1"}},
    {"type": "response.output_item.added", "output_index": 0, "item": MESSAGE},
    {"type": "response.output_text.delta", "output_index": 0, "delta": TEXT},
    {"type": "response.output_item.done", "output_index": 0, "item": {**MESSAGE, "content": [WORDS]}},
    {"type": "response.output_item.added", "output_index": 1, "item": {**CALL, "arguments": ""}},
    {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": ARGUMENTS},
    {"type": "response.output_item.done", "output_index": 1, "item": CALL},
    {"type": "response.completed", "response": {"status": "completed", "output": [MESSAGE, CALL]}},
    named=True,
)
STREAMS = {"chat": CHAT, "anthropic": ANTHROPIC, "responses": RESPONSES}


def read(wire: str, *chunks: bytes) -> tuple[Reply, str]:
    decoder = WIRES[wire]().decoder(contracts.resolve(f"compat/{wire}"), stream=True)
    shown = "".join(one.text for chunk in chunks for one in decoder.feed(chunk) if one.kind == "text")
    return decoder.end(), shown


@pytest.mark.parametrize("wire", STREAMS)
def test_case_s08_a_stream_split_at_any_byte_is_the_same_reply(wire: str) -> None:
    whole = STREAMS[wire]
    reply, shown = read(wire, whole)
    assert shown == TEXT
    assert reply.calls[0].arguments == ARGUMENTS and not reply.calls[0].cut
    assert read(wire, *(whole[at : at + 1] for at in range(len(whole)))) == (reply, shown)
    for at in range(1, len(whole)):
        assert read(wire, whole[:at], whole[at:]) == (reply, shown), at


@pytest.mark.parametrize("wire", STREAMS)
def test_case_s08_s_07_a_stream_that_closes_at_any_byte_broke_off_and_gives_no_other_reply(wire: str) -> None:
    """Also one whose connection closes as if all were well, as those without a length do."""
    whole = STREAMS[wire]
    reply, _ = read(wire, whole)
    began = whole.index(b"data: ") + 5
    for at in range(len(whole)):
        try:
            cut, _ = read(wire, whole[:at])
        except ProviderError as error:
            assert at < began or (isinstance(error, ProviderUnreachable) and error.facts["transient"]), at
        else:
            assert (cut.calls, cut.text, cut.raw) == (reply.calls, reply.text, reply.raw), at


@pytest.mark.parametrize("wire", STREAMS)
@pytest.mark.parametrize("cut", [b'{"id": "x", "cho', b"{", b'{"a": "\xc3'])
def test_case_s08_a_whole_body_that_breaks_off_is_no_nonsense(wire: str, cut: bytes) -> None:
    with pytest.raises(ProviderUnreachable, match="before it was complete"):
        read(wire, cut)


@pytest.mark.parametrize("wire", STREAMS)
def test_case_s17_s15_an_event_that_a_proxy_sends_twice_makes_no_second_call(wire: str) -> None:
    """Starts, ends and counts; a fragment of arguments sent twice makes arguments that do not run."""
    whole = STREAMS[wire]
    reply, _ = read(wire, whole)
    events = whole.removesuffix(b"\n\n").split(b"\n\n")
    tried = 0
    for number, event in enumerate(events):
        if b"_delta" in event or b".delta" in event or b'"{"' in event or b'"finish_reason": null' in event:
            continue
        twice, _ = read(wire, b"\n\n".join([*events[: number + 1], *events[number:], b""]))
        assert twice.calls == reply.calls, event
        tried += 1
    assert tried >= 3


def test_or_14_s_19_a_call_that_was_begun_and_never_told_does_not_run_without_arguments() -> None:
    begun = {"type": "response.output_item.added", "output_index": 0, "item": {**CALL, "arguments": ""}}
    end = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    lost, _ = read("responses", said(begun, end))
    assert [(one.name, one.cut) for one in lost.calls] == [("read", True)]
    done = {"type": "response.output_item.done", "output_index": 0, "item": {**CALL, "arguments": ""}}
    told, _ = read("responses", said(begun, done, end))
    assert [(one.name, one.cut) for one in told.calls] == [("read", False)]
