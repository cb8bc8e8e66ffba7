"""Chat replies: the stream cases, byte by byte."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from surefoot.errors import ProviderError, ProviderNonsense, ProviderRefused, ProviderUnreachable
from surefoot.providers import contracts
from surefoot.providers.chat import ChatWire
from surefoot.providers.port import Reply, ReplyCall, TextDelta

COMPAT = contracts.resolve("compat/chat")


def sse(*chunks: Any, done: bool = True, newline: str = "\n") -> bytes:
    lines = [f"data: {json.dumps(chunk, ensure_ascii=False)}{newline}{newline}" for chunk in chunks]
    return "".join([*lines, f"data: [DONE]{newline}{newline}" if done else ""]).encode()


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": "x", "model": "m-1", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def piece(index: Any = 0, call_id: Any = None, name: Any = None, arguments: Any = None) -> dict[str, Any]:
    """One element of a delta's tool_calls; None leaves the key out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    found: dict[str, Any] = {"index": index, "id": call_id, "type": "function", "function": function}
    return {key: value for key, value in found.items() if value is not None}


def calls(*pieces: dict[str, Any]) -> dict[str, Any]:
    return delta(tool_calls=list(pieces))


def run(data: bytes, contract: Mapping[str, Any] = COMPAT, step: int = 0) -> tuple[Reply, list[TextDelta]]:
    decoder = ChatWire().decoder(contract, stream=True)
    told: list[TextDelta] = []
    size = step or len(data) or 1
    for start in range(0, len(data), size):
        told += decoder.feed(data[start : start + size])
    return decoder.end(), told


def reply(*chunks: Any, contract: Mapping[str, Any] = COMPAT) -> Reply:
    return run(sse(*chunks), contract)[0]


def asked(*chunks: Any, contract: Mapping[str, Any] = COMPAT) -> list[tuple[str, str | None, str | None]]:
    return [
        (one.name, one.arguments, one.provider_call_id) for one in reply(*chunks, contract=contract).calls
    ]


HALF = '{"path":"/etc/ho'
ONE = calls(piece(0, "call_a", "read", '{"path":"a"}'))
END = delta("tool_calls")


def test_case_s01_stop_with_calls_still_has_calls() -> None:
    got = reply(ONE, delta("stop"))
    assert got.finish == "stop"
    assert got.calls == (ReplyCall("read", '{"path":"a"}', "call_a"),)


def test_case_s02_finish_says_calls_and_none_is_there() -> None:
    got = reply(delta(content=""), END)
    assert got.calls == ()
    assert got.finish == "tool_calls"


def test_case_s03_a_cut_call_never_runs_and_takes_its_batch_with_it() -> None:
    got = reply(ONE, calls(piece(1, "call_b", "read", HALF)), delta("length"))
    assert [call.cut for call in got.calls] == [True, True]
    assert got.calls[1].arguments == HALF


def test_case_s03_a_contract_that_splits_batches_keeps_the_closed_ones() -> None:
    split = {**COMPAT, "pairing.batch_split": True}
    got = reply(ONE, calls(piece(1, "call_b", "read", HALF)), delta("length"), contract=split)
    assert [call.cut for call in got.calls] == [False, True]


def test_case_s04_cut_arguments_are_seen_although_finish_says_calls() -> None:
    got = reply(calls(piece(0, "call_a", "read", HALF)), END)
    assert [call.cut for call in got.calls] == [True]


def test_case_s05_valid_json_under_finish_length_is_still_cut() -> None:
    assert [call.cut for call in reply(ONE, delta("length")).calls] == [True]


def test_case_s06_nothing_is_repaired() -> None:
    got = reply(calls(piece(0, "call_a", "read", "{'path': 'a',}")), END)
    assert got.calls[0].arguments == "{'path': 'a',}"
    assert not got.calls[0].cut  # wrong, not cut: the validator tells the model where


@pytest.mark.parametrize("done", [True, False])
def test_case_s07_without_a_finish_word_the_reply_is_incomplete(done: bool) -> None:
    with pytest.raises(ProviderUnreachable) as caught:
        run(sse(ONE, done=done))
    assert caught.value.facts["transport_code"] == "incomplete"


def test_case_s07_an_optional_terminal_needs_done_and_whole_arguments() -> None:
    optional = {**COMPAT, "stream.terminal_optional": True}
    assert len(run(sse(ONE), optional)[0].calls) == 1
    with pytest.raises(ProviderUnreachable):
        run(sse(ONE, done=False), optional)
    with pytest.raises(ProviderUnreachable):
        run(sse(calls(piece(0, "a", "read", HALF))), optional)


@pytest.mark.parametrize("at", [0, 1, 20, 60, 90])
def test_case_s08_a_stream_that_breaks_off_gives_no_reply(at: int) -> None:
    with pytest.raises(ProviderError):
        run(sse(ONE, END)[:at])


def test_case_s09_an_error_after_content_is_no_reply() -> None:
    with pytest.raises(ProviderUnreachable) as caught:
        reply(delta(content="half"), ONE, {"error": {"message": "upstream went away", "code": 502}})
    assert caught.value.facts["kind"] == "transient"
    assert "upstream" not in str(caught.value)


def test_case_s09_an_error_event_is_no_reply() -> None:
    data = (
        sse(ONE, done=False)
        + b'event: error\ndata: {"message":"failed_generation","code":"tool_use_failed"}\n\n'
    )
    with pytest.raises(ProviderRefused) as caught:
        run(data)
    assert caught.value.facts["kind"] == "generation"


def test_case_s10_a_gap_in_the_indexes_loses_nothing() -> None:
    got = asked(calls(piece(0, "a", "read", "{}")), calls(piece(2, "c", "list", "{}")), END)
    assert got == [("read", "{}", "a"), ("list", "{}", "c")]


def test_case_s10_order_is_that_of_first_appearance() -> None:
    got = asked(calls(piece(1, "b", "list", "{}")), calls(piece(0, "a", "read", "{}")), END)
    assert [name for name, _, _ in got] == ["list", "read"]


def test_case_s11_a_missing_index_goes_by_id_then_to_the_last_call() -> None:
    got = asked(
        calls(piece(None, "a", "read", '{"p":')),
        calls(piece(None, None, None, "1}")),
        calls(piece(None, "b", "list", '{"q":')),
        calls(piece(None, "b", None, "2}")),
        END,
    )
    assert got == [("read", '{"p":1}', "a"), ("list", '{"q":2}', "b")]


def test_case_s11_a_null_index_is_a_missing_one() -> None:
    broken = {"index": None, "id": "a", "function": {"name": "read", "arguments": "{}"}}
    assert asked(calls(broken), END) == [("read", "{}", "a")]


def test_case_s12_one_index_for_two_ids_is_two_calls() -> None:
    got = asked(
        calls(piece(0, "call_a", "read", '{"x":1}')), calls(piece(0, "call_b", "read", '{"y":2}')), END
    )
    assert got == [("read", '{"x":1}', "call_a"), ("read", '{"y":2}', "call_b")]


def test_case_s12_a_brace_after_a_complete_value_opens_a_new_call() -> None:
    got = asked(calls(piece(0, None, "read", '{"x":1}')), calls(piece(0, None, "list", '{"y":2}')), END)
    assert got == [("read", '{"x":1}', None), ("list", '{"y":2}', None)]


def test_case_s12_two_calls_in_one_chunk_without_index_or_id() -> None:
    got = asked(calls(piece(None, None, "read", ""), piece(None, None, "list", "")), END)
    assert [name for name, _, _ in got] == ["read", "list"]


def test_case_s12_a_brace_inside_unfinished_arguments_goes_on_with_them() -> None:
    got = asked(
        calls(piece(0, "a", "write", '{"o":')),
        calls(piece(0, None, None, '{"p":1}')),
        calls(piece(0, None, None, "}")),
        END,
    )
    assert got == [("write", '{"o":{"p":1}}', "a")]


def test_case_s13_ids_and_names_are_never_joined_and_blanks_change_nothing() -> None:
    repeated = [calls(piece(0, "call_a", "read", part)) for part in ('{"p"', ":", "1}")]
    assert asked(*repeated, END) == [("read", '{"p":1}', "call_a")]
    blank = {"index": 0, "id": "", "function": {"name": "", "arguments": "1}"}}
    assert asked(calls(piece(0, "call_a", "read", '{"p":')), calls(blank), END) == [
        ("read", '{"p":1}', "call_a")
    ]


def test_case_s14_a_call_without_an_id_is_a_call() -> None:
    assert asked(calls(piece(0, None, "read", "{}")), END) == [("read", "{}", None)]


def test_case_s15_one_id_twice_in_a_batch_is_two_calls() -> None:
    got = asked(calls(piece(0, "d", "read", '{"a":1}'), piece(1, "d", "read", '{"a":2}')), END)
    assert [arguments for _, arguments, _ in got] == ['{"a":1}', '{"a":2}']


def test_case_s17_two_final_chunks_give_each_call_once() -> None:
    assert len(asked(ONE, END, END, {"choices": [], "usage": {"prompt_tokens": 1}})) == 1


def test_case_s18_an_object_becomes_its_canonical_text_once() -> None:
    got = reply(calls(piece(0, "a", "read", {"b": 1, "a": "ö"})), END)
    assert got.calls[0].arguments == '{"a":"ö","b":1}'
    assert got.raw["tool_calls"][0]["function"]["arguments"] == '{"a":"ö","b":1}'


def test_case_s18_a_second_level_is_taken_off_only_where_declared() -> None:
    chunk = calls(piece(0, "a", "read", json.dumps('{"p":1}')))
    assert asked(chunk, END)[0][1] == json.dumps('{"p":1}')
    assert asked(chunk, END, contract={**COMPAT, "arguments.double_encoded": True})[0][1] == '{"p":1}'


def test_case_s19_no_arguments_are_given_on_as_they_are() -> None:
    assert asked(calls(piece(0, "a", "read", "")), END) == [("read", "", "a")]
    assert not reply(calls(piece(0, "a", "read", "")), END).calls[0].cut


@pytest.mark.parametrize("text", ["[]", "null", '"x"'])
def test_case_s20_json_that_is_no_object_is_left_to_the_validator(text: str) -> None:
    got = reply(calls(piece(0, "a", "read", text)), END)
    assert got.calls[0].arguments == text
    assert not got.calls[0].cut


def test_case_s21_an_empty_name_is_kept_as_empty() -> None:
    assert asked(calls(piece(0, "a", "", "{}")), END) == [("", "{}", "a")]


@pytest.mark.parametrize(
    "text", ["<minimax:tool_call>rm -rf /</minimax:tool_call>", '{"tool": "shell", "arguments": {}}']
)
def test_case_s22_call_markup_in_text_stays_text(text: str) -> None:
    got = reply(delta(content=text), delta("stop"))
    assert got.calls == ()
    assert got.text == text


def test_case_s23_text_after_the_calls_is_kept() -> None:
    got = reply(ONE, delta(content="and then"), END)
    assert got.text == "and then"
    assert len(got.calls) == 1


def test_case_s24_only_thinking_then_the_limit() -> None:
    got = reply(delta(reasoning_content="hmm"), delta("length"))
    assert (got.text, got.calls, got.reasoning) == ("", (), "hmm")


@pytest.mark.parametrize(
    ("finish", "kind"),
    [
        ("content_filter", "policy"),
        ("refusal", "policy"),
        ("model_context_window_exceeded", "context_overflow"),
    ],
)
def test_case_s30_refusing_finish_words_are_refusals(finish: str, kind: str) -> None:
    with pytest.raises(ProviderRefused) as caught:
        reply(delta(content="par"), delta(finish))
    assert caught.value.facts["kind"] == kind


def test_case_s33_snapshots_only_where_the_contract_says_so() -> None:
    chunks = (
        delta(content="ab"),
        delta(content="abcd"),
        calls(piece(0, "a", "r", '{"x"')),
        calls(piece(0, "a", "r", '{"x":1}')),
        END,
    )
    snapped, told = run(sse(*chunks), {**COMPAT, "stream.snapshots": True})
    assert snapped.text == "abcd"
    assert [event.text for event in told] == ["ab", "cd"]
    assert snapped.calls[0].arguments == '{"x":1}'
    assert reply(delta(content="ab"), delta(content="abcd"), delta("stop")).text == "ababcd"


def test_case_s35_usage_is_found_in_either_place_and_unknown_stays_unknown() -> None:
    top = reply(
        delta(content="x"),
        delta("stop"),
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}},
    )
    assert (top.usage.input_tokens, top.usage.output_tokens) == (7, 3)
    odd = delta("stop")
    odd["choices"][0]["usage"] = {"prompt_tokens": 5}
    inside = reply(delta(content="x"), odd)
    assert (inside.usage.input_tokens, inside.usage.output_tokens) == (5, None)
    assert reply(delta(content="x"), delta("stop")).usage.input_tokens is None


def test_case_s36_comments_and_pings_are_ignored() -> None:
    data = (
        b": OPENROUTER PROCESSING\n\n" + sse(delta(content="a"), done=False) + b":\n\n" + sse(delta("stop"))
    )
    assert run(data)[0].text == "a"


def test_case_s39_an_error_under_200_is_an_error() -> None:
    with pytest.raises(ProviderError) as caught:
        run(json.dumps({"error": {"message": "no", "code": "insufficient_quota"}}).encode())
    assert caught.value.facts["kind"] == "quota"


def test_case_s40_the_stored_message_holds_what_was_said_and_no_added_nulls() -> None:
    got = reply(
        delta(role="assistant", content=None, refusal=None, audio=None),
        delta(reasoning_content="be", annotations=None),
        delta(reasoning_content="cause"),
        delta(content=""),
        calls(piece(0, "call_a", "read", '{"p":')),
        calls({"index": 0, "function": {"arguments": "1}"}, "extra_content": {"g": 1}}),
        END,
    )
    assert got.raw == {
        "role": "assistant",
        "reasoning_content": "because",
        "content": "",
        "tool_calls": [
            {
                "id": "call_a",
                "type": "function",
                "function": {"name": "read", "arguments": '{"p":1}'},
                "extra_content": {"g": 1},
            }
        ],
    }
    assert got.reasoning == "because"
    assert got.model == "m-1"


WHOLE = sse(
    delta(role="assistant"),
    delta(reasoning_content="思考"),
    delta(content="Füße 🦶 完"),
    calls(piece(0, "call_a", "read", '{"path":"ü')),
    calls(piece(0, None, None, '🦶"}')),
    END,
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 9}},
)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("step", [1, 2, 3, 7, 64])
def test_bytes_may_be_split_anywhere_also_inside_a_character(step: int, newline: str) -> None:
    data = WHOLE.replace(b"\n", newline.encode())
    got, told = run(data, step=step)
    assert got == run(WHOLE)[0]
    assert got.text == "Füße 🦶 完"
    assert got.calls[0].arguments == '{"path":"ü🦶"}'
    assert "".join(event.text for event in told if event.kind == "text") == got.text
    assert "".join(event.text for event in told if event.kind == "reasoning") == "思考"


def test_a_stream_without_its_last_blank_line_is_read() -> None:
    assert run(sse(delta(content="a"), delta("stop"), done=False).rstrip(b"\n"))[0].text == "a"


def test_nothing_after_done_is_read() -> None:
    data = sse(delta(content="a"), delta("stop")) + sse(delta(content="b"))
    decoder = ChatWire().decoder(COMPAT, stream=True)
    decoder.feed(data)
    assert decoder.finished
    assert decoder.end().text == "a"


def whole(message: dict[str, Any], finish: str | None = "stop", **extra: Any) -> bytes:
    return json.dumps(
        {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": finish}], **extra}
    ).encode()


def test_a_whole_body_is_read_also_when_a_stream_was_asked_for() -> None:
    items = [
        {"id": "a", "type": "function", "function": {"name": "read", "arguments": '{"p":1}'}},
        {"id": "a", "type": "function", "function": {"name": "read", "arguments": {"p": 2}}},
    ]
    body = whole(
        {"role": "assistant", "content": None, "tool_calls": items, "refusal": None},
        "tool_calls",
        usage={"prompt_tokens": 2},
    )
    got, _ = run(body, step=5)
    assert [(call.name, call.arguments) for call in got.calls] == [("read", '{"p":1}'), ("read", '{"p":2}')]
    assert got.usage.input_tokens == 2
    assert "content" not in got.raw


def test_a_whole_body_cut_by_length_runs_nothing() -> None:
    item = {"id": "a", "type": "function", "function": {"name": "read", "arguments": HALF}}
    assert run(whole({"role": "assistant", "tool_calls": [item]}, "length"))[0].calls[0].cut


@pytest.mark.parametrize(
    "data",
    [
        b"<html><body>502</body></html>",
        b"Bad gateway\n\n",
        b"{]",
        b"[]",
        b'{"id": 1}',
        b'{"choices": []}',
        b"data: {nonsense\n\n",
        b"data: [1]\n\n",
        b"data: \xff\xfe\n\n",
        b"event: ping\n\n",
        b"\x80",
    ],
)
def test_a_reply_of_another_form_is_nonsense_with_a_clear_sentence(data: bytes) -> None:
    with pytest.raises(ProviderNonsense, match="The reply of the model's server"):
        run(data)


def test_an_empty_reply_is_no_reply() -> None:
    with pytest.raises(ProviderUnreachable, match="without a reply"):
        run(b"")


def test_json_mode_turns_one_object_into_one_call() -> None:
    contract = contracts.resolve("local/chat")
    got, told = run(
        sse(delta(content='{"tool": "li'), delta(content='st", "arguments": {"path": "a"}}'), delta("stop")),
        contract,
    )
    assert got.calls == (ReplyCall("list", '{"path":"a"}', None),)
    assert got.text == ""
    assert told == []
    assert got.raw["content"] == '{"tool": "list", "arguments": {"path": "a"}}'


def test_json_mode_turns_a_final_object_into_words() -> None:
    contract = contracts.resolve("local/chat")
    got, told = run(sse(delta(content='{"tool":"final","arguments":{"text":"hi"}}'), delta("stop")), contract)
    assert (got.text, got.calls) == ("hi", ())
    assert told == [TextDelta("hi")]


def test_json_mode_never_runs_a_half_written_object() -> None:
    contract = contracts.resolve("local/chat")
    got, _ = run(sse(delta(content='{"tool":"write","arguments":{"path":"a'), delta("length")), contract)
    assert [call.cut for call in got.calls] == [True]
