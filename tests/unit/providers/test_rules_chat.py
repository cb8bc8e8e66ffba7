"""The Chat validator: each rule with an accepted and a refused request (WC-8)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from surefoot.providers import contracts
from surefoot.providers.rules import Finding, check, refusing


def call(call_id: Any = "call_a", arguments: Any = "{}", **function: Any) -> dict[str, Any]:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": "list", "arguments": arguments, **function},
    }


def asks(*calls: Any, **extra: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": list(calls), **extra}


def gives(call_id: str = "call_a", content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


USER = {"role": "user", "content": "hi"}
IMAGE = [{"type": "image_url", "image_url": {"url": "data:,"}}]
LONG = "call_" + "x" * 81
NAMELESS = {"id": "call_a", "type": "function", "function": {"arguments": "{}"}}
GOOD = [USER, asks(call()), gives()]
GOOD_TWO = [USER, asks(call("a"), call("b")), gives("a"), gives("b")]

CASES: list[tuple[str, str, list[Any], list[Any], str]] = [
    ("OC-01", "compat/chat", GOOD_TWO, [USER, asks(call("a"), call("b")), gives("a"), USER], "messages.1"),
    ("OC-02", "compat/chat", GOOD, [USER, gives()], "messages.1"),
    ("OC-03", "compat/chat", GOOD, [*GOOD, gives()], "messages.3"),
    ("OC-04", "compat/chat", [USER, {"role": "assistant", "content": "x"}], [USER, asks()], "messages.1"),
    ("OC-05", "openai/chat", GOOD, [USER, asks(call(LONG)), gives(LONG)], "messages.1.tool_calls.0"),
    ("OC-06", "compat/chat", GOOD, [USER, {"role": "assistant", "content": None}], "messages.1"),
    ("OC-07", "openai/chat", GOOD, [USER, asks(call()), gives(content=IMAGE)], "messages.2"),
    ("OC-08", "compat/chat", GOOD, [USER, asks(call(arguments={})), gives()], "messages.1.tool_calls.0"),
    (
        "OC-09",
        "compat/chat",
        [USER, asks(call()), gives(content="")],
        [USER, asks(call()), gives(content=None)],
        "2",
    ),
    (
        "OC-12",
        "compat/chat",
        GOOD_TWO,
        [USER, asks(call("a")), asks(call("b")), gives("a"), gives("b")],
        "messages.2",
    ),
    ("DS-06", "deepseek/chat", GOOD, [USER, asks(call())], "messages.1"),
    ("DS-11", "compat/chat", GOOD, [USER, asks(NAMELESS), gives()], "messages.1.tool_calls.0"),
    ("LS-01", "vllm/chat", GOOD, [USER, asks(call(arguments='{"a')), gives()], "messages.1.tool_calls.0"),
    ("LS-02", "llamacpp/chat", GOOD, [USER, asks(call(arguments='{"a')), gives()], "messages.1.tool_calls.0"),
    ("LS-03", "llamacpp/chat", GOOD, [USER, USER], "messages.1"),
    ("LS-05", "ollama/chat", GOOD, [USER, asks(call()), gives(content=[])], "messages.2"),
    ("KI-01", "kimi/chat", [USER, asks(call(), reasoning_content="r"), gives()], GOOD, "messages.1"),
    ("KI-03", "kimi/chat", [USER], [USER, gives("x")], "messages.1"),
    ("KI-04", "kimi/chat", [USER], [USER, asks(call(), reasoning_content="r")], "messages.1"),
]


def body(messages: list[Any], **extra: Any) -> dict[str, Any]:
    return {"model": "m", "messages": messages, **extra}


def rules_of(found: list[Finding]) -> set[str]:
    return {finding.rule for finding in found}


@pytest.mark.parametrize(
    ("rule", "contract", "good", "bad", "position"), CASES, ids=[case[0] for case in CASES]
)
def test_wc_8_each_rule_accepts_the_valid_and_refuses_the_broken(
    rule: str, contract: str, good: list[Any], bad: list[Any], position: str
) -> None:
    resolved = contracts.resolve(contract)
    assert rule not in rules_of(check(body(good), resolved))
    found = [finding for finding in check(body(bad), resolved) if finding.rule == rule]
    assert found
    assert found[0].position.endswith(position)
    assert found[0].level == "enforce"
    assert refusing(found) == found


def test_ds_03_with_tools_every_assistant_message_needs_its_reasoning() -> None:
    contract = contracts.resolve("deepseek/chat")
    tools = [{"type": "function", "function": {"name": "list"}}]
    plain = [USER, {"role": "assistant", "content": "x"}]
    carried = [USER, {"role": "assistant", "content": "x", "reasoning_content": ""}]
    assert "DS-03" in rules_of(check(body(plain, tools=tools), contract))
    assert "DS-03" not in rules_of(check(body(plain), contract))
    assert "DS-03" not in rules_of(check(body(carried, tools=tools), contract))


def test_ds_08_an_empty_carrier_is_only_suspected_where_the_contract_says_so() -> None:
    contract = contracts.resolve("deepseek/chat")
    found = check(body([USER, asks(call(), reasoning_content=""), gives()], tools=[{}]), contract)
    assert [(one.rule, one.level) for one in found] == [("DS-08", "suspect")]


def test_wc_5_a_suspected_rule_is_reported_and_does_not_refuse() -> None:
    found = check(body([USER, asks(call(LONG)), gives(LONG)]), contracts.resolve("compat/chat"))
    assert [(one.rule, one.level) for one in found if one.rule == "OC-05"] == [("OC-05", "suspect")]
    assert refusing(found) == []


def test_wc_8_findings_come_in_request_order_with_class_and_position() -> None:
    broken = [USER, asks(), gives("x"), {"role": "user", "content": None}]
    found = check(body(broken), contracts.resolve("compat/chat"))
    assert [(one.rule, one.kind, one.position) for one in found if one.level == "enforce"] == [
        ("OC-04", "schema", "messages.1"),
        ("OC-02", "replay_pairing", "messages.2"),
        ("OC-06", "schema", "messages.3"),
    ]


def test_wc_8_the_validator_changes_nothing() -> None:
    request = body([USER, asks(call(arguments="{")), gives()])
    before = copy.deepcopy(request)
    check(request, contracts.resolve("compat/chat"))
    assert request == before


def test_wc_8_two_calls_under_one_id_cannot_be_answered() -> None:
    found = check(
        body([USER, asks(call("a"), call("a")), gives("a"), gives("a")]), contracts.resolve("compat/chat")
    )
    assert "OC-01" in rules_of(found)
