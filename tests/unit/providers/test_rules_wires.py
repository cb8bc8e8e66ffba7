"""The validators of all three wires: each rule with an accepted and a refused request (WC-8)."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from surefoot.providers import contracts
from surefoot.providers.rules import CLASSES, check

Body = dict[str, Any]
TOOLS = [{"type": "function", "function": {"name": "list"}}]


def items(*given: Any, **extra: Any) -> Body:
    return {"model": "m", "input": list(given), **extra}


def messages(*given: Any, **extra: Any) -> Body:
    return {"model": "m", "messages": list(given), **extra}


# --- Responses --------------------------------------------------------------------------------

SAY = {"role": "user", "content": "hi"}


def fc(call_id: str = "c1", **extra: Any) -> Body:
    return {"type": "function_call", "call_id": call_id, "name": "list", "arguments": "{}", **extra}


def out(call_id: str = "c1") -> Body:
    return {"type": "function_call_output", "call_id": call_id, "output": "ok"}


def rs(**extra: Any) -> Body:
    return {"type": "reasoning", "id": "rs_1", "summary": [], **extra}


SEALED = rs(encrypted_content="gAAA")
PLAIN = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]}
MSG = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
LONG = "x" * 65
STATELESS: Body = {"store": False}
ROUND = items(SAY, fc(), out())

RESPONSES: list[tuple[str, str, Body, Body, str]] = [
    ("OR-01", "compat/responses", ROUND, items(SAY, fc(), SAY), "input.1"),
    ("OR-02", "compat/responses", ROUND, items(SAY, out()), "input.1"),
    (
        "OR-03",
        "openai/responses",
        items(SAY, SEALED, fc(id="fc_1"), out()),
        items(SAY, fc(id="fc_1"), out()),
        "1",
    ),
    ("OR-04", "openai/responses", items(SAY, SEALED, MSG), items(SAY, SEALED, SAY), "input.1"),
    (
        "OR-05",
        "openai/responses",
        items(SAY, SEALED, MSG, **STATELESS),
        items(SAY, rs(), MSG, **STATELESS),
        "1",
    ),
    (
        "OR-05",
        "openai/responses",
        ROUND,
        items(SAY, {"type": "item_reference", "id": "rs_1"}, **STATELESS),
        "1",
    ),
    ("OR-06", "compat/responses", items(SAY, MSG), items(SAY, {**MSG, "id": ""}), "input.1"),
    (
        "OR-07",
        "openai/responses",
        items(SAY, SEALED, MSG),
        items(SAY, rs(encrypted_content=""), MSG),
        "input.1",
    ),
    ("OR-08", "compat/responses", items(SAY, MSG), items(SAY, MSG, MSG), "input.2"),
    ("OR-09", "compat/responses", ROUND, items(SAY, fc(LONG), out(LONG)), "input.1"),
    ("OR-10", "compat/responses", ROUND, items(SAY, {"role": "tool", "content": "x"}), "input.1"),
    (
        "OR-11",
        "openai/responses",
        items(SAY, previous_response_id="resp_1"),
        items(SAY, previous_response_id="resp_1", store=False),
        "previous_response_id",
    ),
    (
        "OR-13",
        "xai/responses",
        items(SAY, SEALED, fc(id="fc_1"), out()),
        items(SAY, fc(id="fc_1"), out()),
        "1",
    ),
    ("OR-14", "compat/responses", ROUND, items(SAY, fc(status="incomplete"), out()), "input.1"),
    ("DS-05", "deepseek/responses", items(SAY, PLAIN, fc(), out()), ROUND, "input.1"),
    ("DS-05", "deepseek/responses", items(SAY), items(SAY, store=True), "store"),
    ("MM-01", "minimax/responses", ROUND, items(SAY, out()), "input.1"),
    ("MM-02", "minimax/responses", ROUND, items(SAY, {**fc(), "arguments": "{"}, out()), "input.1"),
    ("MM-03", "minimax/responses", ROUND, items(SAY, out(), fc()), "input.1"),
    (
        "MM-05",
        "minimax/responses",
        items(SAY, PLAIN, fc(), out()),
        items(SAY, rs(content="hm"), fc(), out()),
        "input.1",
    ),
]

# --- Anthropic --------------------------------------------------------------------------------


def asks(*blocks: Any) -> Body:
    return {"role": "assistant", "content": list(blocks)}


def gives(*blocks: Any) -> Body:
    return {"role": "user", "content": list(blocks)}


def use(tool_id: str = "t1") -> Body:
    return {"type": "tool_use", "id": tool_id, "name": "list", "input": {}}


def result(tool_id: str = "t1", **extra: Any) -> Body:
    return {"type": "tool_result", "tool_use_id": tool_id, "content": "ok", **extra}


def text(words: str = "hi", **extra: Any) -> Body:
    return {"type": "text", "text": words, **extra}


def thought(**extra: Any) -> Body:
    return {"type": "thinking", "thinking": "hm", "signature": "s1", **extra}


SERVER = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
HIT = {"type": "web_search_result", "url": "https://e.org", "title": "E", "encrypted_content": "enc"}


def found(*hits: Any) -> Body:
    return {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": list(hits)}


CACHED = {"cache_control": {"type": "ephemeral"}}
TURN = messages(SAY, asks(use()), gives(result()))
THINKING: Body = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
LOOP = messages(SAY, asks(thought(), use()), gives(result()), **THINKING)
TWICE = messages(SAY, asks(thought(), text()), SAY, asks(thought(), text()), SAY, **THINKING)
BARE = {"type": "thinking", "thinking": "hm"}
CUT = {"type": "thinking", "signature": "s1"}

ANTHROPIC: list[tuple[str, str, Body, Body, str]] = [
    (
        "AN-01",
        "compat/anthropic",
        TURN,
        messages(SAY, asks(use("a"), use("b")), gives(result("a"))),
        "messages.1",
    ),
    ("AN-01", "compat/anthropic", TURN, messages(SAY, asks(use())), "messages.1"),
    ("AN-02", "compat/anthropic", TURN, messages(gives(result())), "messages.0.content.0"),
    (
        "AN-03",
        "compat/anthropic",
        TURN,
        messages(SAY, asks(use()), gives(text(), result())),
        "messages.2.content.1",
    ),
    (
        "AN-04",
        "compat/anthropic",
        TURN,
        messages(SAY, asks(use()), gives(result(), result())),
        "messages.2.content.1",
    ),
    (
        "AN-05",
        "compat/anthropic",
        TURN,
        messages(SAY, asks(use()), gives(result()), asks(use()), gives(result())),
        "messages.3.content.0",
    ),
    (
        "AN-06",
        "compat/anthropic",
        TURN,
        messages(SAY, asks(use("a.b")), gives(result("a.b"))),
        "messages.1.content.0",
    ),
    ("AN-07", "anthropic/anthropic", LOOP, TWICE, "messages.3.content.0"),
    (
        "AN-08",
        "anthropic/anthropic",
        LOOP,
        messages(SAY, asks(thought(signature="")), SAY, **THINKING),
        "1.content.0",
    ),
    ("AN-09", "anthropic-bound/anthropic", LOOP, TWICE, "messages.3.content.0"),
    ("AN-10", "anthropic/anthropic", LOOP, {**TURN, **THINKING}, "messages.1"),
    (
        "AN-11",
        "anthropic/anthropic",
        TURN,
        messages(SAY, asks(thought(), use()), gives(result())),
        "messages.1",
    ),
    (
        "AN-12",
        "anthropic/anthropic",
        LOOP,
        messages(SAY, asks(BARE, text()), SAY, **THINKING),
        "messages.1.content.0",
    ),
    (
        "AN-13",
        "compat/anthropic",
        messages(SAY, asks(thought(thinking=""), text()), SAY),
        messages(asks(CUT)),
        "0",
    ),
    (
        "AN-14",
        "compat/anthropic",
        messages(SAY, asks(SERVER, found()), SAY),
        messages(SAY, asks(SERVER), SAY),
        "1.content.0",
    ),
    (
        "AN-14",
        "compat/anthropic",
        messages(SAY, asks(SERVER, found()), SAY),
        messages(SAY, asks(found()), SAY),
        "1.content.0",
    ),
    (
        "AN-15",
        "compat/anthropic",
        messages(SAY, asks(SERVER, found(HIT)), SAY),
        messages(SAY, asks(SERVER, found({**HIT, "encrypted_content": ""})), SAY),
        "messages.1.content.1",
    ),
    ("AN-16", "compat/anthropic", messages(SAY), messages(gives(text(" "))), "messages.0.content.0"),
    ("AN-16", "compat/anthropic", messages(SAY), messages(SAY, asks(), SAY), "messages.1"),
    (
        "AN-17",
        "compat/anthropic",
        TURN,
        messages(SAY, asks(use()), gives(result(content="", is_error=True))),
        "2.content.0",
    ),
    (
        "AN-18",
        "compat/anthropic",
        messages(gives(*[text(**CACHED)] * 4)),
        messages(gives(*[text(**CACHED)] * 5)),
        "0.content.4",
    ),
    ("AN-19", "compat/anthropic", messages(SAY, asks(SERVER)), messages(SAY, asks(text())), "messages.1"),
    ("AN-20", "compat/anthropic", messages(SAY), messages({**SAY, "name": "x"}), "messages.0"),
    ("AN-20", "compat/anthropic", messages(SAY), messages(gives(text(index=0))), "messages.0.content.0"),
    ("DS-04", "deepseek/anthropic", messages(SAY, asks(BARE, use()), gives(result())), TURN, "messages.1"),
    (
        "DS-07",
        "deepseek/anthropic",
        messages(SAY),
        messages(SAY, asks(BARE, use()), gives(text(), result())),
        "2.content.1",
    ),
    ("KI-01", "kimi/anthropic", messages(SAY, asks(BARE, use()), gives(result())), TURN, "messages.1"),
]

# --- Chat, what `test_rules_chat` leaves --------------------------------------------------------


def call(call_id: str = "call_a", arguments: str = "{}", **extra: Any) -> Body:
    return {"id": call_id, "type": "function", "function": {"name": "list", "arguments": arguments}, **extra}


def calls(*given: Any, **extra: Any) -> Body:
    return {"role": "assistant", "content": "", "tool_calls": list(given), **extra}


def tool(call_id: str = "call_a", content: Any = "ok") -> Body:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def chat(*given: Any, **extra: Any) -> Body:
    return messages(*given, tools=TOOLS, **extra)


SAID = {"role": "assistant", "content": "x"}
NINE = "a1B2c3D4e"
GOOD = chat(SAY, calls(call()), tool())
REASONED = chat(SAY, calls(call(), reasoning_content="r"), tool())
NATIVE = "functions.list:0"
REUSED = chat(SAY, calls(call()), tool(), calls(call()), tool())
DETAILS = [{"type": "reasoning.text", "text": "hm", "signature": "s"}]


def signed(value: Any) -> Body:
    return call(extra_content={"google": {"thought_signature": value}})


def two(first: str, second: str) -> Body:
    given = [call(first), call(second)]
    return chat(SAY, calls(*given, reasoning_content="r"), tool(first), tool(second))


CHAT: list[tuple[str, str, Body, Body, str]] = [
    ("DS-01", "deepseek-r1/chat", GOOD, REASONED, "messages.1"),
    ("DS-02", "deepseek-v32/chat", REASONED, GOOD, "messages.1"),
    ("DS-02", "deepseek-v32/chat", chat(SAY, calls(call()), tool(), SAID, SAY), GOOD, "messages.1"),
    ("DS-03", "deepseek/chat", REASONED, GOOD, "messages.1"),
    (
        "DS-08",
        "deepseek/chat",
        REASONED,
        chat(SAY, calls(call(), reasoning_content=""), tool()),
        "messages.1",
    ),
    ("KI-02", "kimi-k3/chat", REASONED, chat(SAY, SAID, SAY), "messages.1"),
    (
        "KI-05",
        "kimi-selfhosted/chat",
        chat(SAY, calls(call(NATIVE)), tool(NATIVE)),
        GOOD,
        "messages.1.tool_calls.0",
    ),
    ("KI-06", "kimi-k3/chat", two("a", "b"), two("a", "a"), "messages.1"),
    ("MS-01", "mistral/chat", chat(SAY, calls(call(NINE)), tool(NINE)), GOOD, "messages.1.tool_calls.0"),
    ("MS-02", "mistral/chat", GOOD, chat(SAY, calls(call()), tool(), SAY), "messages.3"),
    ("MS-03", "mistral/chat", GOOD, chat(SAY, calls(call(), call("b")), tool()), "messages.1"),
    ("MS-04", "mistral/chat", GOOD, chat(SAY, SAID), "messages.1"),
    ("GE-01", "gemini/chat", chat(SAY, calls(signed("s")), tool()), GOOD, "messages.1.tool_calls.0"),
    ("GE-01", "gemini/chat", chat(SAY, calls(call()), tool(), SAID, SAY), GOOD, "messages.1.tool_calls.0"),
    (
        "GE-02",
        "gemini/chat",
        chat(SAY, calls(signed("s")), tool()),
        chat(SAY, calls(signed("")), tool()),
        "0",
    ),
    ("GE-03", "gemini/chat", GOOD, chat(calls(call()), tool()), "messages.0"),
    ("GE-04", "gemini/chat", GOOD, chat(SAY, calls(call()), SAY), "messages.1"),
    ("GL-01", "glm/chat", GOOD, REUSED, "messages.3"),
    ("GL-01", "glm/chat", GOOD, chat(SAID), "messages"),
    (
        "GL-02",
        "glm/chat",
        chat({**SAY, "content": [text()]}),
        chat({**SAY, "content": [text("")]}),
        "messages.0",
    ),
    ("GL-03", "glm/chat", REASONED, chat(SAY, calls(call(), reasoning_content=["r"]), tool()), "messages.1"),
    ("QW-01", "qwen/chat", GOOD, chat(SAY, calls(call()), SAY), "messages.1"),
    ("QW-02", "qwen/chat", GOOD, chat(SAY, calls(call(arguments="{")), tool()), "messages.1.tool_calls.0"),
    ("MM-01", "minimax/chat", GOOD, chat(SAY, tool()), "messages.1"),
    ("MM-02", "minimax/chat", GOOD, chat(SAY, calls(call(arguments="{")), tool()), "messages.1.tool_calls.0"),
    ("MM-03", "minimax/chat", GOOD, REUSED, "messages.3"),
    (
        "MM-05",
        "minimax/chat",
        chat(SAY, {**SAID, "reasoning_details": DETAILS}),
        chat({**SAID, "reasoning_details": "x"}),
        "0",
    ),
    ("MI-01", "mimo/chat", REASONED, chat(SAY, calls(call(), reasoning_content=""), tool()), "messages.1"),
    ("MI-02", "mimo/chat", GOOD, chat(SAY, {**calls(call()), "content": None}, tool()), "messages.1"),
    ("MI-02", "mimo/chat", GOOD, chat(SAY, calls(call()), tool(content=[text()])), "messages.2"),
    (
        "RT-03",
        "openrouter/chat",
        chat({**SAID, "reasoning_details": DETAILS}),
        chat({**SAID, "reasoning_details": [1]}),
        "0",
    ),
    (
        "RT-04",
        "openrouter/chat",
        chat(SAY, calls(call(), reasoning_details=DETAILS), tool(), provider={"only": ["x"]}),
        chat(SAY, calls(call(), reasoning_details=DETAILS), tool()),
        "messages.1",
    ),
    ("OC-10", "groq/chat", GOOD, chat(SAY, calls(call()), tool(content=[text()])), "messages.2"),
    (
        "OC-05",
        "openrouter/chat",
        GOOD,
        chat(SAY, calls(call("x" * 41)), tool("x" * 41)),
        "messages.1.tool_calls.0",
    ),
]
PAIRS = [*RESPONSES, *ANTHROPIC, *CHAT]


@pytest.mark.parametrize(
    ("rule", "contract", "good", "bad", "position"), PAIRS, ids=[f"{one[0]}-{one[1]}" for one in PAIRS]
)
def test_wc_8_each_rule_accepts_the_valid_and_refuses_the_broken(
    rule: str, contract: str, good: Body, bad: Body, position: str
) -> None:
    resolved = contracts.resolve(contract)
    before = copy.deepcopy(bad)
    assert [one for one in check(good, resolved) if one.rule == rule] == []
    seen = [one for one in check(bad, resolved) if one.rule == rule]
    assert seen
    assert seen[0].position.endswith(position)
    assert (seen[0].level, seen[0].kind) == (resolved.rules[rule], CLASSES[rule])
    assert bad == before


@pytest.mark.parametrize("name", contracts.contract_ids())
def test_wc_8_every_rule_of_a_contract_has_an_accepted_and_a_refused_request(name: str) -> None:
    beside = Path(__file__).with_name("test_rules_chat.py").read_text(encoding="utf-8")
    shown = {pair[0] for pair in PAIRS} | set(
        re.findall(r'^ +(?:\()?"([A-Z]{2}-\d\d)",', beside, re.MULTILINE)
    )
    named = {rule for rule, level in contracts.resolve(name).rules.items() if level != "off"}
    assert named - shown == set()
    assert named <= set(CLASSES)


def test_wc_8_a_valid_request_of_each_wire_has_no_finding_at_all() -> None:
    for name, good in (
        ("openai/responses", items(SAY, SEALED, fc(id="fc_1"), out(), SAY, **STATELESS)),
        ("anthropic/anthropic", LOOP),
        ("deepseek/anthropic", messages(SAY, asks(BARE, use()), gives(result(), text()))),
    ):
        assert check(good, contracts.resolve(name)) == []


@pytest.mark.parametrize("off", [{"reasoning": {"effort": "none"}}])
def test_pr_78_effort_disabled_turns_the_demand_off(off: Body) -> None:
    contract = contracts.resolve("deepseek/responses")
    assert [one.rule for one in check(ROUND, contract)] == ["DS-05"]
    assert check({**ROUND, **off}, contract) == []


@pytest.mark.parametrize(
    "off", [{"thinking": {"type": "disabled"}}, {"reasoning_effort": "none"}, {"enable_thinking": False}]
)
def test_ds_03_a_demand_for_reasoning_ends_where_thinking_is_off(off: Body) -> None:
    assert "DS-03" not in {one.rule for one in check({**GOOD, **off}, contracts.resolve("deepseek/chat"))}
    assert "KI-02" in {one.rule for one in check({**GOOD, **off}, contracts.resolve("kimi-k3/chat"))}


def test_an_10_only_the_head_of_an_open_loop_must_think() -> None:
    contract = contracts.resolve("anthropic/anthropic")
    later = messages(
        SAY, asks(thought(), use("a")), gives(result("a")), asks(use("b")), gives(result("b")), **THINKING
    )
    assert check(later, contract) == []
    closed = messages(SAY, asks(use("a")), gives(result("a")), asks(text()), SAY, **THINKING)
    assert check(closed, contract) == []
