"""Chat requests: what a history becomes on the wire."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from surefoot.core.history import AssistantWords, CallAsked, Message, ResultGiven, UserWords
from surefoot.providers import contracts
from surefoot.providers.chat import ChatWire
from surefoot.providers.port import ModelRequest, ToolSpec
from surefoot.providers.rules import check, refusing
from surefoot.providers.shaping import UNNAMED_TOOL, body_bytes

COMPAT = contracts.resolve("compat/chat")
TOOL = ToolSpec("list", "List a folder.", {"type": "object", "properties": {"path": {"type": "string"}}})
CONTRACTS = [
    "compat/chat",
    "openai/chat",
    "deepseek/chat",
    "kimi/chat",
    "llamacpp/chat",
    "vllm/chat",
    "ollama/chat",
]


def asked(
    n: int, *, name: str = "list", arguments: str = '{"path": "a"}', provider: str | None = "call_x"
) -> CallAsked:
    return CallAsked(f"cal_{n:026d}", f"att_{n:026d}", 0, name, arguments, provider)


def said(*calls: CallAsked, text: str = "", position: int = 1, **raw: Any) -> AssistantWords:
    message: dict[str, Any] = {"role": "assistant", "content": text, **raw}
    if calls:
        message["tool_calls"] = [
            {
                "id": c.provider_call_id,
                "type": "function",
                "function": {"name": c.asked_name, "arguments": c.arguments},
            }
            for c in calls
        ]
    return AssistantWords(position, text, calls, "chat", message)


def gave(call: CallAsked, text: str = "ok", is_error: bool = False) -> ResultGiven:
    return ResultGiven(call, text, is_error)


def encode(
    *messages: Message,
    contract: Mapping[str, Any] = COMPAT,
    tools: tuple[ToolSpec, ...] = (TOOL,),
    **extra: Any,
) -> dict[str, Any]:
    return ChatWire().encode(ModelRequest("m", "be brief", messages, tools, **extra), contract)


def shown(*messages: Message, **extra: Any) -> list[dict[str, Any]]:
    return encode(*messages, **extra)["messages"][1:]


ASK = UserWords("trn_1", "look")


def test_projection_pure_same_input_gives_same_bytes() -> None:
    call = asked(1)
    history = (ASK, said(call), gave(call))
    assert body_bytes(encode(*history)) == body_bytes(encode(*history))


@pytest.mark.parametrize("name", CONTRACTS)
def test_projection_valid_a_whole_round_passes_every_contract(name: str) -> None:
    contract = contracts.resolve(name)
    one, two = asked(1, provider="a"), asked(2, provider="b")
    history = (
        ASK,
        said(one, two, reasoning_content="hm"),
        gave(one),
        gave(two),
        said(text="done"),
        UserWords("t", "x"),
    )
    assert refusing(check(encode(*history, contract=contract), contract)) == []


@pytest.mark.parametrize("name", CONTRACTS)
def test_projection_prefix_stable_a_longer_history_keeps_every_earlier_message(name: str) -> None:
    contract = contracts.resolve(name)
    history: list[Message] = [ASK]
    before = encode(*history, contract=contract)["messages"]
    for n in range(1, 6):
        call = asked(n, provider="same")
        history += [said(call, position=n, reasoning_content="r"), gave(call)]
        after = encode(*history, contract=contract)["messages"]
        assert [json.dumps(one) for one in after[: len(before)]] == [json.dumps(one) for one in before]
        before = after


def test_case_s14_a_call_without_an_id_gets_one_alias_on_both_sides() -> None:
    call = asked(1, provider=None)
    messages = shown(ASK, said(call), gave(call))
    assert messages[1]["tool_calls"][0]["id"] == messages[2]["tool_call_id"]
    assert messages[1]["tool_calls"][0]["id"].startswith("call_")


def test_case_s15_one_id_twice_in_a_batch_is_told_apart_on_the_wire() -> None:
    one, two = asked(1, provider="dup"), asked(2, provider="dup")
    messages = shown(ASK, said(one, two), gave(one, "first"), gave(two, "second"))
    ids = [call["id"] for call in messages[1]["tool_calls"]]
    assert ids[0] == "dup"
    assert len(set(ids)) == 2
    assert [(one["tool_call_id"], one["content"]) for one in messages[2:]] == [
        (ids[0], "first"),
        (ids[1], "second"),
    ]


def test_case_s16_one_id_again_in_a_later_turn_is_kept() -> None:
    one, two = asked(1, provider="list:0"), asked(2, provider="list:0")
    messages = shown(ASK, said(one), gave(one), said(two, position=2), gave(two))
    assert [m["tool_calls"][0]["id"] for m in messages if "tool_calls" in m] == ["list:0", "list:0"]


def test_tr_32_where_ids_must_be_unique_in_the_request_the_later_one_gets_the_alias() -> None:
    contract = {**COMPAT, "ids.unique": "request"}
    one, two = asked(1, provider="list:0"), asked(2, provider="list:0")
    messages = shown(ASK, said(one), gave(one), said(two, position=2), gave(two), contract=contract)
    ids = [m["tool_calls"][0]["id"] for m in messages if "tool_calls" in m]
    assert ids[0] == "list:0"
    assert ids[1] != "list:0"


def test_oc_05_an_id_that_is_too_long_is_replaced_on_call_and_result_and_never_cut() -> None:
    contract = contracts.resolve("openai/chat")
    call = asked(1, provider="call_" + "z" * 80)
    messages = shown(ASK, said(call), gave(call), contract=contract)
    wire_id = messages[1]["tool_calls"][0]["id"]
    assert wire_id == messages[2]["tool_call_id"]
    assert len(wire_id) <= 40
    assert "zzz" not in wire_id


def test_ms_01_an_alias_fits_the_pattern_of_the_contract() -> None:
    contract = {**COMPAT, "ids.pattern": "^[A-Za-z0-9]{9}$", "ids.max_length": 9}
    call = asked(1)
    wire_id = shown(ASK, said(call), gave(call), contract=contract)[1]["tool_calls"][0]["id"]
    assert len(wire_id) == 9
    assert wire_id.isalnum()


@pytest.mark.parametrize("blank", ["", "  \n"])
def test_case_s19_blank_arguments_are_replayed_as_an_empty_object(blank: str) -> None:
    call = asked(1, arguments=blank)
    assert shown(ASK, said(call), gave(call))[1]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_r13_broken_stored_arguments_become_an_empty_object_on_the_wire_only() -> None:
    call = asked(1, arguments='{"path": "/etc/ho')
    history = said(call)
    assert shown(ASK, history, gave(call, "invalid"))[1]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert history.raw["tool_calls"][0]["function"]["arguments"] == '{"path": "/etc/ho'


def test_case_s18_stored_argument_bytes_win_over_any_new_form() -> None:
    text = '{ "path":\t"a" ,"n":1.0}'
    call = asked(1, arguments=text)
    assert shown(ASK, said(call), gave(call))[1]["tool_calls"][0]["function"]["arguments"] == text


@pytest.mark.parametrize("name", ["", "what is\nthis"])
def test_case_s21_an_unusable_tool_name_is_replayed_under_a_placeholder(name: str) -> None:
    call = asked(1, name=name)
    assert shown(ASK, said(call), gave(call))[1]["tool_calls"][0]["function"]["name"] == UNNAMED_TOOL


def test_case_s40_nulls_and_foreign_keys_are_not_sent_and_explicit_empty_texts_are() -> None:
    call = asked(1)
    message = said(call, refusal=None, annotations=[], audio=None, reasoning_content="")
    encoded = shown(ASK, message, gave(call))[1]
    assert set(encoded) == {"role", "content", "tool_calls", "reasoning_content"}
    assert encoded["content"] == ""


def test_oc_06_a_message_without_text_is_empty_text_beside_calls_and_left_out_alone() -> None:
    call = asked(1)
    messages = shown(
        ASK, AssistantWords(1, "", (call,), "chat", {"role": "assistant", "content": None}), gave(call)
    )
    assert messages[1]["content"] == ""
    assert shown(ASK, AssistantWords(1, "", (), "chat", {"role": "assistant", "content": None})) == [
        {"role": "user", "content": "look"}
    ]


def test_oc_01_a_result_stored_behind_later_words_is_moved_to_its_call() -> None:
    call = asked(1)
    messages = shown(ASK, said(call), UserWords("trn_2", "hurry"), gave(call))
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "user"]


def test_oc_09_an_empty_result_is_sent_as_a_result() -> None:
    call = asked(1)
    assert shown(ASK, said(call), gave(call, ""))[2]["content"] == ""
    texty = {**COMPAT, "content.empty_result": "text"}
    assert shown(ASK, said(call), gave(call, ""), contract=texty)[2]["content"] == "(no output)"


def test_oc_12_a_batch_stays_one_message() -> None:
    calls = [asked(n, provider=f"c{n}") for n in range(3)]
    messages = shown(ASK, said(*calls), *(gave(call) for call in reversed(calls)))
    assert len(messages[1]["tool_calls"]) == 3
    assert [message["tool_call_id"] for message in messages[2:]] == ["c0", "c1", "c2"]


def test_ls_03_neighbours_of_one_role_are_merged_where_the_contract_says_so() -> None:
    history = (ASK, UserWords("t", "more"), said(text="a"), said(text="b", position=2), UserWords("t", "end"))
    merged = shown(*history, contract=contracts.resolve("llamacpp/chat"))
    assert [(one["role"], one["content"]) for one in merged] == [
        ("user", "look\n\nmore"),
        ("assistant", "a\n\nb"),
        ("user", "end"),
    ]
    assert len(shown(*history)) == 5


def test_tr_57_facts_stand_at_the_tail_of_the_persons_words() -> None:
    assert (
        shown(UserWords("t", "go on", "one call is unknown"))[0]["content"] == "go on\n\none call is unknown"
    )


def test_ds_03_deepseek_gets_all_reasoning_back_and_an_empty_carrier_where_there_was_none() -> None:
    contract = contracts.resolve("deepseek/chat")
    call = asked(1)
    messages = shown(
        ASK, said(call, reasoning_content="because"), gave(call), said(text="done"), contract=contract
    )
    assert messages[1]["reasoning_content"] == "because"
    assert messages[3]["reasoning_content"] == ""
    without = shown(ASK, said(text="done"), contract=contract, tools=())
    assert "reasoning_content" not in without[1]


def test_pr_78_a_compatible_endpoint_gets_back_what_it_sent_and_nothing_is_demanded() -> None:
    call = asked(1)
    details = [{"type": "reasoning.encrypted", "data": "gAAA"}]
    with_it = shown(ASK, said(call, reasoning_details=details), gave(call))[1]
    assert with_it["reasoning_details"] == details
    assert "reasoning_content" not in shown(ASK, said(call), gave(call))[1]


def test_reasoning_is_not_sent_where_the_contract_has_no_carrier_for_it() -> None:
    call = asked(1)
    encoded = shown(
        ASK, said(call, reasoning_content="r"), gave(call), contract=contracts.resolve("openai/chat")
    )
    assert "reasoning_content" not in encoded[1]


def test_extra_fields_of_a_call_return_as_they_came() -> None:
    call = asked(1)
    message = said(call)
    message.raw["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": "sig=="}}
    encoded = shown(ASK, message, gave(call))[1]["tool_calls"][0]
    assert encoded["extra_content"] == {"google": {"thought_signature": "sig=="}}


def test_a_message_of_another_wire_is_built_from_its_text_and_calls() -> None:
    call = asked(1)
    foreign = AssistantWords(
        1, "text", (call,), "anthropic", {"role": "assistant", "content": [{"type": "thinking"}]}
    )
    encoded = shown(ASK, foreign, gave(call))[1]
    assert encoded["content"] == "text"
    assert encoded["tool_calls"][0]["function"] == {"name": "list", "arguments": '{"path": "a"}'}


def test_the_request_names_tools_stream_usage_and_the_output_limit() -> None:
    body = encode(ASK, max_output_tokens=9, temperature=0.5)
    assert body["tools"][0]["function"]["name"] == "list"
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert body["max_tokens"] == 9
    assert body["temperature"] == 0.5
    whole = encode(
        ASK, contract=contracts.resolve("openai/chat"), tools=(), stream=False, max_output_tokens=9
    )
    assert whole["max_completion_tokens"] == 9
    assert "tools" not in whole
    assert "stream_options" not in whole


def test_a_lone_surrogate_in_history_cannot_break_the_request() -> None:
    assert (
        json.loads(body_bytes(encode(UserWords("t", "bad \ud800 end"))))["messages"][1]["content"]
        == "bad ? end"
    )
