"""The 40 stream and call cases, one body over every wire on which a case can arise.

Streams are written here as bytes, from the vendors' documents; nothing of `surefoot` builds them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from surefoot.core.history import AssistantWords, CallAsked, Message, ResultGiven, UserWords
from surefoot.errors import ProviderError, ProviderRefused, ProviderUnreachable
from surefoot.providers import contracts
from surefoot.providers.anthropic import AnthropicWire
from surefoot.providers.chat import ChatWire
from surefoot.providers.port import ModelRequest, Reply, TextDelta, ToolSpec, Wire
from surefoot.providers.responses import ResponsesWire
from surefoot.providers.rules import check, refusing

WIRES: dict[str, Wire] = {"chat": ChatWire(), "responses": ResponsesWire(), "anthropic": AnthropicWire()}
CONTRACTS = {name: contracts.resolve(f"compat/{name}") for name in WIRES}
every_wire = pytest.mark.parametrize("wire", list(WIRES))
HALF = '{"path":"/etc/ho'
WHOLE = '{"path":"a"}'


# --- what a model says, before any wire ------------------------------------------------------


@dataclass(frozen=True)
class Call:
    id: str | None = "call_a"
    name: str = "read"
    pieces: Sequence[str] = (WHOLE,)
    index: Any = "auto"


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Thought:
    text: str
    signature: str | None = "sig=="


@dataclass(frozen=True)
class Said:
    """One reply: its parts in order, how it ends, and what is odd about it."""

    parts: Sequence[Call | Text | Thought]
    finish: str = "calls"
    usage: Mapping[str, Any] | None = field(default_factory=lambda: {"in": 11, "out": 7})


FINISH = {
    "chat": {"calls": "tool_calls", "stop": "stop", "length": "length", "filter": "content_filter"},
    "anthropic": {"calls": "tool_use", "stop": "end_turn", "length": "max_tokens", "filter": "refusal"},
    "responses": {"calls": "completed", "stop": "completed", "length": "incomplete", "filter": "incomplete"},
}


def drop(table: Mapping[str, Any], *, keep_null: bool = False) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None or keep_null}


def chat_events(said: Said) -> list[Any]:
    def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
        return {"id": "x", "model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    events, number = [chunk(role="assistant", content="")], 0
    for part in said.parts:
        if isinstance(part, Text):
            events.append(chunk(content=part.text))
        elif isinstance(part, Thought):
            events.append(chunk(reasoning_content=part.text))
        else:
            index = number if part.index == "auto" else part.index
            for at, piece in enumerate(part.pieces):
                function = drop({"name": part.name if at == 0 else None, "arguments": piece})
                one = drop({"index": index, "id": part.id if at == 0 else None, "function": function})
                events.append(chunk(tool_calls=[one]))
            number += 1
    events.append(chunk(FINISH["chat"][said.finish]))
    if said.usage is not None:
        usage = {"prompt_tokens": said.usage["in"], "completion_tokens": said.usage["out"]}
        events.append({"id": "x", "choices": [], "usage": usage})
    return [*events, "[DONE]"]


def anthropic_events(said: Said) -> list[Any]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": []}
    usage = {} if said.usage is None else {"usage": {"input_tokens": said.usage["in"], "output_tokens": 1}}
    events: list[Any] = [{"type": "message_start", "message": {**message, "stop_reason": None, **usage}}]
    for number, part in enumerate(said.parts):
        index = part.index if isinstance(part, Call) and part.index != "auto" else number
        events += [drop({**event, "index": index}) for event in _anthropic_block(part)]
    told = {} if said.usage is None else {"usage": {"output_tokens": said.usage["out"]}}
    end = {"stop_reason": FINISH["anthropic"][said.finish], "stop_sequence": None}
    return [*events, {"type": "message_delta", "delta": end, **told}, {"type": "message_stop"}]


def _anthropic_block(part: Call | Text | Thought) -> list[dict[str, Any]]:
    if isinstance(part, Text):
        block: dict[str, Any] = {"type": "text", "text": ""}
        deltas: list[dict[str, Any]] = [{"type": "text_delta", "text": part.text}]
    elif isinstance(part, Thought):
        block = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": part.text}]
        if part.signature is not None:
            deltas.append({"type": "signature_delta", "signature": part.signature})
    else:
        block = drop({"type": "tool_use", "id": part.id, "name": part.name, "input": {}})
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *part.pieces)]
    start = {"type": "content_block_start", "content_block": block}
    return [
        start,
        *({"type": "content_block_delta", "delta": delta} for delta in deltas),
        {"type": "content_block_stop"},
    ]


def responses_events(said: Said) -> list[Any]:
    response: dict[str, Any] = {"id": "resp_1", "object": "response", "model": "m-1", "status": "in_progress"}
    events: list[Any] = [{"type": "response.created", "response": {**response, "output": []}}]
    output = []
    for number, part in enumerate(said.parts):
        index = part.index if isinstance(part, Call) and part.index != "auto" else number
        cut = said.finish == "length" and number == len(said.parts) - 1
        item, made = _response_item(part, number, cut=cut)
        output.append(item)
        events += [drop({**event, "output_index": index}) for event in made]
    status = FINISH["responses"][said.finish]
    end: dict[str, Any] = {**response, "status": status, "output": output, "error": None}
    reasons = {"length": "max_output_tokens", "filter": "content_filter"}
    if said.finish in reasons:
        end["incomplete_details"] = {"reason": reasons[said.finish]}
    if said.usage is not None:
        end["usage"] = {"input_tokens": said.usage["in"], "output_tokens": said.usage["out"]}
    return [*events, {"type": f"response.{status}", "response": end}]


def _response_item(
    part: Call | Text | Thought, number: int, *, cut: bool
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    status = "incomplete" if cut else "completed"
    if isinstance(part, Text):
        item: dict[str, Any] = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "status": status,
        }
        begun: dict[str, Any] = {**item, "content": []}
        item["content"] = [{"type": "output_text", "text": part.text, "annotations": []}]
        deltas = [{"type": "response.output_text.delta", "item_id": item["id"], "delta": part.text}]
    elif isinstance(part, Thought):
        begun = {"id": f"rs_{number}", "type": "reasoning", "summary": []}
        item = drop({**begun, "encrypted_content": part.signature})
        item["summary"] = [{"type": "summary_text", "text": part.text}]
        delta = {"type": "response.reasoning_summary_text.delta", "item_id": item["id"], "delta": part.text}
        deltas = [{**delta, "summary_index": 0}]
    else:
        item = drop({"id": f"fc_{number}", "type": "function_call", "call_id": part.id, "name": part.name})
        begun = {**item, "arguments": "", "status": "in_progress"}
        item = {**item, "arguments": "".join(part.pieces), "status": status}
        kind = "response.function_call_arguments.delta"
        deltas = [{"type": kind, "item_id": item["id"], "delta": piece} for piece in part.pieces]
    done = [] if cut else [{"type": "response.output_item.done", "item": item}]
    return item, [{"type": "response.output_item.added", "item": begun}, *deltas, *done]


EVENTS: dict[str, Callable[[Said], list[Any]]] = {
    "chat": chat_events,
    "responses": responses_events,
    "anthropic": anthropic_events,
}


def as_bytes(wire: str, events: Sequence[Any]) -> bytes:
    lines = []
    for event in events:
        text = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        name = "" if wire == "chat" or isinstance(event, str) else f"event: {event.get('type', 'message')}\n"
        lines.append(f"{name}data: {text}\n\n")
    return "".join(lines).encode()


def read(
    wire: str, data: bytes, contract: Mapping[str, Any] | None = None, step: int = 0
) -> tuple[Reply, list[TextDelta]]:
    decoder = WIRES[wire].decoder(contract or CONTRACTS[wire], stream=True)
    told: list[TextDelta] = []
    size = step or len(data) or 1
    for start in range(0, len(data), size):
        told += decoder.feed(data[start : start + size])
    return decoder.end(), told


def reply(wire: str, said: Said, contract: Mapping[str, Any] | None = None) -> Reply:
    return read(wire, as_bytes(wire, EVENTS[wire](said)), contract)[0]


def with_keys(wire: str, **keys: Any) -> dict[str, Any]:
    return {**CONTRACTS[wire], **{key.replace("__", "."): value for key, value in keys.items()}}


def asked(got: Reply) -> list[tuple[str, str | None, str | None]]:
    return [(call.name, call.arguments, call.provider_call_id) for call in got.calls]


def history_of(got: Reply, wire: str, *, results: Sequence[str] = (), turn: int = 0) -> list[Message]:
    """The stored form of one reply and its results, as the ledger would give it back."""
    calls = tuple(
        CallAsked(
            f"cal_{turn}_{n}", f"att_{turn}_{n}", n, call.name, call.arguments or "", call.provider_call_id
        )
        for n, call in enumerate(got.calls)
    )
    raw = json.loads(json.dumps(got.raw))
    words = AssistantWords(turn * 10 + 2, got.text, calls, wire, raw)
    texts = list(results) or ["ok"] * len(calls)
    given = [ResultGiven(call, text, False) for call, text in zip(calls, texts, strict=True)]
    return [UserWords(f"t{turn}", f"question {turn}"), words, *given]


def body(wire: str, messages: Sequence[Message], contract: Mapping[str, Any] | None = None) -> dict[str, Any]:
    tool = ToolSpec("read", "Read.", {"type": "object", "properties": {}})
    request = ModelRequest("m-1", "Be careful.", messages, tools=(tool,), endpoint="here")
    used = contract or CONTRACTS[wire]
    encoded = WIRES[wire].encode(request, used)
    assert refusing(check(encoded, used)) == []
    return encoded


def wire_calls(encoded: Mapping[str, Any]) -> list[tuple[Any, Any, Any]]:
    """Id, name and arguments (as a value) of every call of a request, in order."""
    found = []
    for item in encoded.get("input", ()):
        if item.get("type") == "function_call":
            found.append((item["call_id"], item["name"], json.loads(item["arguments"])))
    for message in encoded.get("messages", ()):
        for call in message.get("tool_calls") or ():
            function = call["function"]
            found.append((call["id"], function["name"], json.loads(function["arguments"])))
        for block in message["content"] if isinstance(message.get("content"), list) else ():
            if block.get("type") == "tool_use":
                found.append((block["id"], block["name"], block["input"]))
    return found


def wire_results(encoded: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Call id and text of every result of a request, in order."""
    found = []
    for item in encoded.get("input", ()):
        if item.get("type") == "function_call_output":
            found.append((item["call_id"], item["output"]))
    for message in encoded.get("messages", ()):
        if message["role"] == "tool":
            found.append((message["tool_call_id"], message["content"]))
        for block in message["content"] if isinstance(message.get("content"), list) else ():
            if block.get("type") == "tool_result":
                found.append((block["tool_use_id"], block.get("content")))
    return found


# --- S-01 to S-09: how a reply ends ----------------------------------------------------------


@every_wire
def test_case_s01_a_stop_word_with_calls_still_has_calls(wire: str) -> None:
    got = reply(wire, Said([Call(pieces=('{"path"', ':"a"}'))], finish="stop"))
    assert asked(got) == [("read", WHOLE, "call_a")]
    assert not got.calls[0].cut


@pytest.mark.parametrize("wire", ["chat", "anthropic"])
def test_case_s02_finish_says_calls_and_none_is_there(wire: str) -> None:
    got = reply(wire, Said([Text("")], finish="calls"))
    assert (got.calls, got.text, got.paused) == ((), "", False)


@every_wire
@pytest.mark.parametrize("split", [False, True])
def test_case_s03_a_call_cut_by_the_limit_never_runs(wire: str, split: bool) -> None:
    said = Said([Call(), Call("call_b", pieces=(HALF,))], finish="length")
    got = reply(wire, said, with_keys(wire, pairing__batch_split=split))
    assert [call.cut for call in got.calls] == [not split, True]
    assert got.calls[1].arguments == HALF
    encoded = body(wire, history_of(got, wire, results=["cut", "cut"]))
    assert [one[2] for one in wire_calls(encoded)] == [{"path": "a"}, {}]
    assert [text for _, text in wire_results(encoded)] == ["cut", "cut"]


@every_wire
def test_case_s04_cut_arguments_are_seen_although_finish_says_calls(wire: str) -> None:
    assert [call.cut for call in reply(wire, Said([Call(), Call("b", pieces=(HALF,))])).calls] == [True, True]


@every_wire
def test_case_s05_valid_json_at_the_limit_is_still_cut(wire: str) -> None:
    assert [call.cut for call in reply(wire, Said([Call()], finish="length")).calls] == [True]


@every_wire
def test_case_s06_nothing_is_repaired(wire: str) -> None:
    got = reply(wire, Said([Call(pieces=("{'path': 'a',}",))]))
    assert got.calls[0].arguments == "{'path': 'a',}"
    assert wire_calls(body(wire, history_of(got, wire)))[0][2] == {}


@every_wire
def test_case_s07_without_its_terminal_event_a_reply_is_incomplete(wire: str) -> None:
    events = EVENTS[wire](Said([Call()]))
    kept = [one for one in events if isinstance(one, str) or not _ends(wire, one)]
    with pytest.raises(ProviderUnreachable) as caught:
        read(wire, as_bytes(wire, kept))
    assert caught.value.facts["transport_code"] == "incomplete"


def _ends(wire: str, event: Mapping[str, Any]) -> bool:
    if wire == "chat":
        return any(choice.get("finish_reason") for choice in event["choices"])
    return event["type"] in ("message_stop", "response.completed")


@every_wire
@pytest.mark.parametrize("tenth", range(10))
def test_case_s08_a_stream_that_breaks_off_gives_no_reply(wire: str, tenth: int) -> None:
    events = EVENTS[wire](Said([Thought("hm"), Text("hello"), Call()], usage=None))
    data = as_bytes(wire, events[: -2 if wire == "chat" else -1])
    with pytest.raises(ProviderError):
        read(wire, data[: len(data) * tenth // 10])


@every_wire
def test_case_s09_an_error_after_content_is_no_reply(wire: str) -> None:
    events = EVENTS[wire](Said([Text("half"), Call()]))[:-2]
    error = {"message": "upstream went away", "type": "overloaded_error", "code": "server_error"}
    with pytest.raises(ProviderUnreachable) as caught:
        read(wire, as_bytes(wire, [*events, {"type": "error", "error": error}]))
    assert caught.value.facts["kind"] == "transient"
    assert "upstream" not in str(caught.value)


def test_case_s09_a_responses_error_event_without_a_wrapper_is_an_error() -> None:
    event = {"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": None}
    with pytest.raises(ProviderRefused) as caught:
        read("responses", as_bytes("responses", [event]))
    assert caught.value.facts["kind"] == "rate"


# --- S-10 to S-17: which fragment belongs to which call ---------------------------------------


@every_wire
def test_case_s10_a_gap_in_the_indexes_loses_nothing(wire: str) -> None:
    got = reply(wire, Said([Call("a", index=0), Call("b", index=4), Call("c", index=2)]))
    assert [call.provider_call_id for call in got.calls] == ["a", "b", "c"]
    assert all(call.arguments == WHOLE for call in got.calls)


@every_wire
def test_case_s11_a_missing_index_loses_nothing(wire: str) -> None:
    pieces = ('{"path"', ':"a"}')
    got = reply(wire, Said([Call("a", pieces=pieces, index=None), Call("b", pieces=pieces, index=None)]))
    assert asked(got) == [("read", WHOLE, "a"), ("read", WHOLE, "b")]


@every_wire
def test_case_s12_one_index_for_two_calls_is_two_calls(wire: str) -> None:
    got = reply(wire, Said([Call("a", index=0), Call("b", name="list", index=0)]))
    assert asked(got) == [("read", WHOLE, "a"), ("list", WHOLE, "b")]


def test_case_s12_a_done_event_under_another_id_is_not_a_second_call() -> None:
    events = responses_events(Said([Call()]))
    events[-2]["item"]["id"] = "fc_other"
    events[-1]["response"]["output"] = []
    got = read("responses", as_bytes("responses", events))[0]
    assert asked(got) == [("read", WHOLE, "call_a")]


def test_case_s13_chat_ids_and_names_are_never_joined() -> None:
    events = chat_events(Said([Call(pieces=('{"path"', ':"a"}'))]))
    events[2]["choices"][0]["delta"]["tool_calls"][0] |= {
        "id": "call_a",
        "function": {"name": "read", "arguments": ':"a"}'},
    }
    blank = json.loads(json.dumps(events[2]))
    blank["choices"][0]["delta"]["tool_calls"][0] = {
        "index": 0,
        "id": "",
        "function": {"name": "", "arguments": ""},
    }
    got = read("chat", as_bytes("chat", [*events[:3], blank, *events[3:]]))[0]
    assert asked(got) == [("read", WHOLE, "call_a")]


@every_wire
@pytest.mark.parametrize("missing", [None, "", " "])
def test_case_s14_a_call_without_an_id_gets_one_on_both_sides(wire: str, missing: str | None) -> None:
    got = reply(wire, Said([Call(missing)]))
    assert got.calls[0].provider_call_id is None
    encoded = body(wire, history_of(got, wire))
    assert wire_calls(encoded)[0][0] == wire_results(encoded)[0][0]
    assert wire_calls(encoded)[0][0].startswith("call_")


@every_wire
def test_case_s15_one_id_twice_in_a_batch_is_two_calls(wire: str) -> None:
    got = reply(wire, Said([Call("same", pieces=('{"n":1}',)), Call("same", pieces=('{"n":2}',), index=1)]))
    if wire == "chat":  # a second part under the same id and index would be the same call
        assert [call.arguments for call in got.calls] == ['{"n":1}', '{"n":2}']
    encoded = body(wire, history_of(got, wire, results=["one", "two"]))
    ids = [one[0] for one in wire_calls(encoded)]
    assert len(set(ids)) == 2
    assert wire_results(encoded) == [(ids[0], "one"), (ids[1], "two")]


@every_wire
def test_case_s16_one_id_again_in_a_later_turn_is_legal(wire: str) -> None:
    got = reply(wire, Said([Call("list:0")]))
    once = history_of(got, wire)
    encoded = body(wire, [*once, *history_of(got, wire, turn=1)])
    ids = [one[0] for one in wire_calls(encoded)]
    assert ids == [one[0] for one in wire_results(encoded)]
    assert len(set(ids)) == (1 if wire == "chat" else 2)
    assert ids[0] == wire_calls(body(wire, once))[0][0]  # what was sent once never changes


@every_wire
def test_case_s17_two_final_events_give_each_call_once(wire: str) -> None:
    events = EVENTS[wire](Said([Call()]))
    at = next(n for n, one in enumerate(events) if _last_word(wire, one))
    doubled = [*events[: at + 1], events[at], *events[at + 1 :]]
    assert len(read(wire, as_bytes(wire, doubled))[0].calls) == 1


def _last_word(wire: str, event: Mapping[str, Any]) -> bool:
    if wire == "chat":
        return _ends(wire, event)
    return event["type"] in ("message_delta", "response.output_item.done")


# --- S-18 to S-22: arguments and names --------------------------------------------------------


def test_case_s18_an_object_becomes_its_canonical_text_once() -> None:
    whole: dict[str, Any] = {"b": 1, "a": [1.5, None]}
    expected = '{"a":[1.5,null],"b":1}'
    chat = chat_events(Said([Call()]))
    chat[1]["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"] = whole
    assert read("chat", as_bytes("chat", chat))[0].calls[0].arguments == expected
    responses = responses_events(Said([Call()]))
    responses[-2]["item"]["arguments"] = whole
    assert read("responses", as_bytes("responses", responses))[0].calls[0].arguments == expected
    claude = [e for e in anthropic_events(Said([Call()])) if e["type"] != "content_block_delta"]
    claude[1]["content_block"]["input"] = whole
    got = read("anthropic", as_bytes("anthropic", claude))[0]
    assert got.calls[0].arguments == expected
    assert list(got.raw["content"][0]["input"]) == ["b", "a"]  # stored in the provider's own order


@every_wire
def test_case_s18_a_second_level_is_taken_off_only_where_declared(wire: str) -> None:
    said = Said([Call(pieces=(json.dumps(WHOLE),))])
    assert reply(wire, said).calls[0].arguments == json.dumps(WHOLE)
    declared = with_keys(wire, arguments__double_encoded=True)
    got = reply(wire, said, declared)
    assert got.calls[0].arguments == WHOLE
    assert wire_calls(body(wire, history_of(got, wire), declared))[0][2] == {"path": "a"}


@every_wire
@pytest.mark.parametrize("blank", ["", " ", "\n"])
def test_case_s19_blank_arguments_are_an_empty_object_also_on_replay(wire: str, blank: str) -> None:
    got = reply(wire, Said([Call(pieces=(blank,))]))
    assert (got.calls[0].arguments or "").strip() == ""
    assert not got.calls[0].cut
    assert wire_calls(body(wire, history_of(got, wire)))[0][2] == {}


@every_wire
@pytest.mark.parametrize("text", ["[]", "null", '"x"', "3"])
def test_case_s20_json_that_is_no_object_is_left_to_the_validator(wire: str, text: str) -> None:
    got = reply(wire, Said([Call(pieces=(text,))]))
    assert got.calls[0].arguments == text
    assert not got.calls[0].cut
    assert wire_calls(body(wire, history_of(got, wire)))[0][2] == {}


@every_wire
@pytest.mark.parametrize("name", ["", "no such tool!", "x" * 200])
def test_case_s21_an_unusable_name_is_replayed_under_a_placeholder(wire: str, name: str) -> None:
    got = reply(wire, Said([Call(name=name)]))
    assert got.calls[0].name == name
    assert wire_calls(body(wire, history_of(got, wire)))[0][1] == "unnamed_tool"


@every_wire
@pytest.mark.parametrize("text", ["<minimax:tool_call>x", "<|tool_call_begin|>read", '{"name":"read"}'])
def test_case_s22_call_markup_in_text_stays_text(wire: str, text: str) -> None:
    got = reply(wire, Said([Text(text)], finish="stop"))
    assert (got.calls, got.text) == ((), text)


# --- S-23 to S-29: what stands beside calls ---------------------------------------------------


@every_wire
def test_case_s23_text_after_the_calls_is_kept_in_the_order_received(wire: str) -> None:
    got = reply(wire, Said([Text("first "), Call(), Text("last")]))
    assert got.text == "first last"
    assert len(got.calls) == 1
    if wire == "anthropic":
        assert [one["type"] for one in got.raw["content"]] == ["text", "tool_use", "text"]
    if wire == "responses":
        assert [one["type"] for one in got.raw["output"]] == ["message", "function_call", "message"]


@every_wire
def test_case_s24_only_thinking_then_the_limit_is_not_replayed(wire: str) -> None:
    signature = None if wire == "responses" else ""
    got = reply(wire, Said([Thought("long", signature)], finish="length"))
    assert (got.text, got.calls, got.reasoning) == ("", (), "long")
    if wire != "chat":
        assert got.notes == ("only_reasoning_at_limit",)
    encoded = body(wire, [*history_of(got, wire), UserWords("t1", "go on")])
    assert "long" not in json.dumps(encoded)


@every_wire
def test_case_s25_a_cut_inside_thinking_commits_nothing(wire: str) -> None:
    data = as_bytes(
        wire, EVENTS[wire](Said([Thought("long", None)], finish="stop"))[: 2 if wire == "chat" else 3]
    )
    with pytest.raises(ProviderError):
        read(wire, data)


def test_case_s26_a_lost_signature_is_found_at_receipt() -> None:
    signed = contracts.resolve("anthropic/anthropic")
    lost = reply("anthropic", Said([Thought("hm", None), Call()]), signed)
    assert lost.notes == ("unreplayable_reasoning",)
    assert reply("anthropic", Said([Thought("hm"), Call()]), signed).notes == ()
    sealed = contracts.resolve("openai/responses")
    assert reply("responses", Said([Thought("hm", None), Call()]), sealed).notes == (
        "unreplayable_reasoning",
    )
    assert "hm" not in json.dumps(body("anthropic", history_of(lost, "anthropic"), signed))


def test_case_s27_redacted_thinking_is_stored_as_it_is() -> None:
    events = anthropic_events(Said([Thought("hm"), Call()]))
    block = {"type": "redacted_thinking", "data": "x9=="}
    start = {"type": "content_block_start", "index": 9, "content_block": block}
    got = read("anthropic", as_bytes("anthropic", [events[0], start, *events[1:]]))[0]
    assert got.raw["content"][0] == block
    assert body("anthropic", history_of(got, "anthropic"))["messages"][1]["content"][0] == block


def test_case_s28_server_tool_blocks_are_stored_raw_and_replayed_together() -> None:
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_result", "url": "https://e.org", "title": "E", "encrypted_content": "enc"}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [found]}
    query = {"type": "input_json_delta", "partial_json": '{"query":"q"}'}
    made = [
        {"type": "content_block_start", "index": 7, "content_block": use},
        {"type": "content_block_delta", "index": 7, "delta": query},
        {"type": "content_block_stop", "index": 7},
        {"type": "content_block_start", "index": 8, "content_block": result},
        {"type": "content_block_stop", "index": 8},
    ]
    events = anthropic_events(Said([Text("see")], finish="stop"))
    got = read("anthropic", as_bytes("anthropic", [events[0], *made, *events[1:]]))[0]
    assert got.calls == ()
    assert got.hosted == ("search",)
    stored = got.raw["content"]
    assert stored[0]["input"] == {"query": "q"}
    assert stored[1] == result
    replayed = body("anthropic", [*history_of(got, "anthropic"), UserWords("t1", "more")])["messages"][1]
    assert replayed["content"][:2] == stored[:2]


def test_case_s28_hosted_items_of_responses_are_stored_raw() -> None:
    item = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search"}}
    events = responses_events(Said([Text("see")], finish="stop"))
    done = {"type": "response.output_item.done", "output_index": 5, "item": item}
    events[-1]["response"]["output"].insert(0, item)
    got = read("responses", as_bytes("responses", [events[0], done, *events[1:]]))[0]
    assert (got.calls, got.hosted, got.raw["output"][0]) == ((), ("search",), item)
    assert item in body("responses", [*history_of(got, "responses"), UserWords("t1", "more")])["input"]


def test_case_s29_a_paused_turn_goes_back_as_it_is() -> None:
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
    events = anthropic_events(Said([Text("looking")], finish="stop"))
    events[-2]["delta"]["stop_reason"] = "pause_turn"
    start = {"type": "content_block_start", "index": 7, "content_block": use}
    got = read("anthropic", as_bytes("anthropic", [*events[:-2], start, *events[-2:]]))[0]
    assert got.paused
    paused = history_of(got, "anthropic")
    sent = body("anthropic", paused)["messages"]
    assert sent[-1] == {"role": "assistant", "content": [{"type": "text", "text": "looking"}, use]}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    raw = {
        "role": "assistant",
        "stop_reason": "end_turn",
        "content": [result, {"type": "text", "text": "done"}],
    }
    rest = AssistantWords(9, "done", (), "anthropic", raw)
    joined = body("anthropic", [*paused, rest, UserWords("t1", "thanks")])["messages"]
    assert [one["role"] for one in joined] == ["user", "assistant", "user"]
    kinds = [block["type"] for block in joined[1]["content"]]
    assert kinds == ["text", "server_tool_use", "web_search_tool_result", "text"]


def test_case_s29_an_19_a_pause_in_mere_words_is_gone_on_from_with_a_bridge() -> None:
    events = anthropic_events(Said([Text("half")], finish="stop"))
    events[-2]["delta"]["stop_reason"] = "pause_turn"
    got = read("anthropic", as_bytes("anthropic", events))[0]
    assert got.paused
    sent = body("anthropic", history_of(got, "anthropic"))["messages"]
    assert sent[-2] == {"role": "assistant", "content": [{"type": "text", "text": "half"}]}
    assert sent[-1]["role"] == "user"  # endpoints without prefill refuse words of the model left last


# --- S-30 to S-36, S-39, S-40: refusals under 200, usage, noise -------------------------------


@every_wire
def test_case_s30_a_filter_is_a_policy_refusal(wire: str) -> None:
    with pytest.raises(ProviderRefused) as caught:
        reply(wire, Said([Text("so")], finish="filter"))
    assert caught.value.facts["kind"] == "policy"


def test_case_s30_a_full_window_is_an_overflow() -> None:
    events = anthropic_events(Said([Text("so")], finish="stop"))
    events[-2]["delta"]["stop_reason"] = "model_context_window_exceeded"
    with pytest.raises(ProviderRefused) as caught:
        read("anthropic", as_bytes("anthropic", events))
    assert caught.value.facts["kind"] == "context_overflow"


def test_case_s31_the_terminal_event_of_responses_is_the_outcome() -> None:
    events = responses_events(Said([Call()]))
    response = {
        **events[-1]["response"],
        "status": "failed",
        "error": {"code": "server_error", "message": "m"},
    }
    with pytest.raises(ProviderUnreachable):
        read(
            "responses",
            as_bytes("responses", [*events[:-1], {"type": "response.failed", "response": response}]),
        )
    cut = reply("responses", Said([Call()], finish="length"))
    assert (cut.finish, [call.cut for call in cut.calls]) == ("incomplete", [True])


def test_case_s31_or_07_a_ciphertext_refused_inside_the_stream_is_a_signature_fault() -> None:
    error = {
        "code": "invalid_encrypted_content",
        "message": "The encrypted content gAAA could not be verified.",
    }
    failed = {"id": "resp_1", "status": "failed", "output": [], "error": error}
    with pytest.raises(ProviderRefused) as caught:
        read("responses", as_bytes("responses", [{"type": "response.failed", "response": failed}]))
    assert caught.value.facts["kind"] == "replay_signature"


def test_case_s32_a_ciphertext_is_taken_from_the_done_event_only() -> None:
    events = responses_events(Said([Thought("hm", "final=="), Call()]))
    events[1]["item"]["encrypted_content"] = "partial"
    events[-1]["response"]["output"] = []
    got = read("responses", as_bytes("responses", events))[0]
    assert got.raw["output"][0]["encrypted_content"] == "final=="
    undone = [one for one in events if one.get("item", {}).get("encrypted_content") != "final=="]
    got = read("responses", as_bytes("responses", undone))[0]
    assert "encrypted_content" not in got.raw["output"][0]


@every_wire
def test_case_s33_snapshots_count_only_where_the_contract_says_so(wire: str) -> None:
    said = Said([Call(pieces=('{"p":', '{"p":"a"}'))])
    events = EVENTS[wire](said)
    if wire == "responses":  # neither the done event nor the final response is there to correct the deltas
        events = [one for one in events if one["type"] != "response.output_item.done"]
        events[-1]["response"]["output"] = []
    declared = with_keys(wire, stream__snapshots=True)
    assert read(wire, as_bytes(wire, events), declared)[0].calls[0].arguments == '{"p":"a"}'
    assert read(wire, as_bytes(wire, events))[0].calls[0].arguments == '{"p":{"p":"a"}'


@every_wire
def test_case_s34_results_stand_on_the_wire_as_text(wire: str) -> None:
    got = reply(wire, Said([Call()]))
    marker = "[image/png, 12 bytes, left out]"
    assert wire_results(body(wire, history_of(got, wire, results=[marker])))[0][1] == marker


@every_wire
def test_case_s35_unknown_usage_stays_unknown(wire: str) -> None:
    known = reply(wire, Said([Call()]))
    assert (known.usage.input_tokens, known.usage.output_tokens) == (11, 7)
    unknown = reply(wire, Said([Call()], usage=None))
    assert (unknown.usage.input_tokens, unknown.usage.output_tokens) == (None, None)


@every_wire
def test_case_s36_comments_and_pings_are_ignored(wire: str) -> None:
    events = EVENTS[wire](Said([Text("hi"), Call()]))
    noise = b': keep-alive\n\nevent: ping\ndata: {"type": "ping"}\n\n'
    data = b"".join(noise + as_bytes(wire, [one]) for one in events)
    got = read(wire, data)[0]
    assert (got.text, len(got.calls)) == ("hi", 1)


@every_wire
def test_case_s39_an_error_under_200_without_a_stream_is_an_error(wire: str) -> None:
    data = json.dumps({"type": "error", "error": {"message": "x", "type": "overloaded_error"}}).encode()
    with pytest.raises(ProviderUnreachable) as caught:
        read(wire, data)
    assert caught.value.facts["kind"] == "transient"


@every_wire
def test_case_s40_added_nulls_do_not_go_back(wire: str) -> None:
    got = reply(wire, Said([Text("hi"), Call()]))
    raw = json.loads(json.dumps(got.raw))
    for holder in (raw, *raw.get("content", []), *raw.get("output", [])):
        if isinstance(holder, dict):
            holder |= {"refusal": None, "annotations_": None, "audio": None, "cache_control": None}
    dumped = history_of(got, wire)
    words = dumped[1]
    assert isinstance(words, AssistantWords)
    dumped[1] = AssistantWords(words.entry_position, words.text, words.calls, wire, raw)
    assert body(wire, dumped) == body(wire, history_of(got, wire))
    assert "null" not in json.dumps(body(wire, dumped))


# --- bytes ------------------------------------------------------------------------------------


@every_wire
@pytest.mark.parametrize("step", [1, 2, 3, 7, 64])
def test_bytes_may_be_split_anywhere_also_inside_a_character(wire: str, step: int) -> None:
    said = Said([Thought("想一想"), Text("grüße 🐾"), Call(pieces=('{"path"', ':"ä"}'))])
    data = as_bytes(wire, EVENTS[wire](said))
    whole, told = read(wire, data)
    split, told_split = read(wire, data, step=step)
    assert split == whole
    for kind, text in (("text", "grüße 🐾"), ("reasoning", "想一想")):
        assert "".join(one.text for one in told_split if one.kind == kind) == text
        assert "".join(one.text for one in told if one.kind == kind) == text


@every_wire
def test_a_whole_body_gives_the_same_reply_as_its_stream(wire: str) -> None:
    said = Said([Thought("hm"), Text("hi"), Call()])
    streamed = reply(wire, said)
    bodies = {
        "chat": {
            "model": "m-1",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "message": {
                        "role": "assistant",
                        "content": "hi",
                        "reasoning_content": "hm",
                        "tool_calls": [
                            {
                                "id": "call_a",
                                "type": "function",
                                "function": {"name": "read", "arguments": WHOLE},
                            }
                        ],
                    },
                }
            ],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7},
        },
        "responses": responses_events(said)[-1].get("response"),
        "anthropic": {
            **{key: value for key, value in streamed.raw.items() if key != "usage"},
            "usage": {"input_tokens": 11, "output_tokens": 7},
        },
    }
    got = read(wire, json.dumps(bodies[wire]).encode())[0]
    assert (got.text, got.calls, got.reasoning, got.usage, got.model) == (
        streamed.text,
        streamed.calls,
        streamed.reasoning,
        streamed.usage,
        streamed.model,
    )
    assert got.raw.get("content") == streamed.raw.get("content")
    assert got.raw.get("output") == streamed.raw.get("output")


@every_wire
def test_what_was_received_returns_as_it_was_stored(wire: str) -> None:
    got = reply(wire, Said([Thought("hm"), Text("hi"), Call(pieces=('{"b": 1,  "a": 2}',))]))
    sent = body(wire, history_of(got, wire))
    if wire == "chat":
        assert sent["messages"][2]["reasoning_content"] == "hm"
        assert sent["messages"][2]["tool_calls"][0]["function"]["arguments"] == '{"b": 1,  "a": 2}'
    elif wire == "anthropic":
        assert sent["messages"][1]["content"] == got.raw["content"]
        assert json.dumps(sent["messages"][1]["content"][2]["input"]) == '{"b": 1, "a": 2}'
    else:
        assert sent["input"][1:4] == got.raw["output"]


@every_wire
@pytest.mark.parametrize(
    "data", [b"<html>no</html>", b"[1]", b"data: nope\n\n", b"{}", b"\xff\xfe", b"data: 1\n\n"]
)
def test_a_reply_of_another_form_is_nonsense(wire: str, data: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        read(wire, data)
    assert "contract" in str(caught.value) or "complete" in str(caught.value)


# --- the official SDKs read these streams as we do ---------------------------------------------


@every_wire
def test_the_official_sdk_reads_the_same_from_the_same_bytes(wire: str) -> None:
    said = Said(
        [Thought("hm"), Text("grüße 🐾"), Call("call_a", pieces=('{"path"', ':"a"}')), Call("call_b", "list")]
    )
    data = as_bytes(wire, EVENTS[wire](said))
    ours = read(wire, data)[0]
    text, calls, finish, usage = SDK[wire](data)
    assert text == ours.text
    assert calls == asked(ours)
    assert finish == ours.finish
    assert usage == (ours.usage.input_tokens, ours.usage.output_tokens)


def served(data: bytes) -> httpx2.Client:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=data)

    return httpx2.Client(transport=httpx2.MockTransport(answer))


def sdk_chat(data: bytes) -> Any:
    with openai.OpenAI(api_key="k", base_url="http://127.0.0.1:1", http_client=served(data)) as client:
        stream = client.chat.completions.create(model="m", messages=[], stream=True)
        text, finish, usage = "", None, None
        calls: dict[int, list[Any]] = {}
        for chunk in stream:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                finish = choice.finish_reason or finish
                for one in choice.delta.tool_calls or ():
                    call = calls.setdefault(one.index, ["", "", None])
                    assert one.function is not None
                    call[0] += one.function.name or ""
                    call[1] += one.function.arguments or ""
                    call[2] = one.id or call[2]
    assert usage is not None
    return (
        text,
        [tuple(one) for one in calls.values()],
        finish,
        (usage.prompt_tokens, usage.completion_tokens),
    )


def sdk_responses(data: bytes) -> Any:
    with openai.OpenAI(api_key="k", base_url="http://127.0.0.1:1", http_client=served(data)) as client:
        events = list(client.responses.create(model="m", input="x", stream=True))
    last = events[-1]
    assert last.type == "response.completed"
    done = last.response
    calls = [(one.name, one.arguments, one.call_id) for one in done.output if one.type == "function_call"]
    assert done.usage is not None
    return done.output_text, calls, done.status, (done.usage.input_tokens, done.usage.output_tokens)


def sdk_anthropic(data: bytes) -> Any:
    with (
        anthropic.Anthropic(api_key="k", base_url="http://127.0.0.1:1", http_client=served(data)) as client,
        client.messages.stream(model="m", max_tokens=9, messages=[]) as stream,
    ):
        message = stream.get_final_message()
    text = "".join(block.text for block in message.content if block.type == "text")
    uses = [block for block in message.content if block.type == "tool_use"]
    calls = [(one.name, json.dumps(one.input, separators=(",", ":")), one.id) for one in uses]
    return text, calls, message.stop_reason, (message.usage.input_tokens, message.usage.output_tokens)


SDK = {"chat": sdk_chat, "responses": sdk_responses, "anthropic": sdk_anthropic}
