"""Calls as one JSON object: the schema that constrains, the words that teach, and when to end."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from surefoot.core.history import AssistantWords, CallAsked, Message, ResultGiven, UserWords
from surefoot.providers import contracts, json_calls
from surefoot.providers.chat import ChatWire
from surefoot.providers.port import ModelRequest, ReplyCall, ToolSpec
from surefoot.providers.rules import check, refusing

PATH = {"type": "object", "properties": {"path": {"type": "string", "pattern": "^x"}}, "required": ["path"]}
TOOLS = (
    ToolSpec("list", "List the entries of a folder.\nMore.", PATH),
    ToolSpec("read", "Read a file.", PATH),
)
LOCAL = contracts.resolve("local/chat")
ASK = UserWords("t", "look")


def asked(n: int, arguments: str = '{"path":"a"}') -> CallAsked:
    return CallAsked(f"cal_{n}", f"att_{n}", 0, "list", arguments, None)


def history(*arguments: str) -> list[Message]:
    shown: list[Message] = [ASK]
    for n, text in enumerate(arguments):
        call = asked(n, text)
        shown += [
            AssistantWords(n, "", (call,), "chat", {"role": "assistant", "content": "{}"}),
            ResultGiven(call, "a.py", False),
        ]
    return shown


def body(messages: list[Message]) -> dict[str, Any]:
    return ChatWire().encode(ModelRequest("m", "sys", messages, TOOLS), LOCAL)


def allowed(encoded: dict[str, Any]) -> list[str]:
    forms = encoded["response_format"]["json_schema"]["schema"]["oneOf"]
    return [form["properties"]["tool"]["const"] for form in forms]


def test_the_schema_admits_each_tool_and_a_final_text_and_nothing_else() -> None:
    schema = body(history())["response_format"]["json_schema"]["schema"]
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid({"tool": "list", "arguments": {"path": "a"}})
    assert validator.is_valid({"tool": "final", "arguments": {"text": "done"}})
    assert not validator.is_valid({"tool": "rm", "arguments": {"path": "a"}})
    assert not validator.is_valid({"tool": "list", "arguments": {}})
    assert not validator.is_valid({"tool": "list", "arguments": {"path": "a"}, "more": 1})


def test_no_native_tool_field_is_sent_and_the_request_is_valid() -> None:
    encoded = body(history('{"path":"a"}'))
    assert "tools" not in encoded
    assert all("tool_calls" not in message and message["role"] != "tool" for message in encoded["messages"])
    assert refusing(check(encoded, LOCAL)) == []
    assert encoded["messages"][-2]["content"] == '{"tool": "list", "arguments": {"path":"a"}}'
    assert encoded["messages"][-1] == {"role": "user", "content": "Result of list:\na.py"}


def test_projection_prefix_stable_also_for_json_calls() -> None:
    before = body(history("{}"))["messages"]
    after = body(history("{}", '{"path":"b"}'))["messages"]
    assert json.dumps(after[: len(before)]) == json.dumps(before)


def test_the_model_is_told_each_tool_in_one_line() -> None:
    text = json_calls.tools_text(TOOLS)
    assert "- list: List the entries of a folder." in text.splitlines()
    assert "More" not in text


def test_examples_obey_the_schema_they_teach() -> None:
    schema = json_calls.response_format(TOOLS)["json_schema"]["schema"]
    for message in json_calls.examples(TOOLS):
        if message["role"] == "assistant":
            jsonschema.validate(json.loads(message["content"]), schema)


def test_a_model_that_repeats_itself_may_only_end() -> None:
    assert allowed(body(history())) == ["list", "read", "final"]
    assert allowed(body(history('{"path":"a"}', '{"path":"b"}'))) == ["list", "read", "final"]
    assert allowed(body(history('{"path":"a"}', '{"path":"a"}'))) == ["final"]
    assert allowed(body([*history('{"path":"a"}', '{"path":"a"}'), UserWords("t", "next")])) == [
        "list",
        "read",
        "final",
    ]
    assert allowed(body(history(*(f'{{"path":"{n}"}}' for n in range(8))))) == ["final"]


def test_without_tools_nothing_is_constrained() -> None:
    encoded = ChatWire().encode(ModelRequest("m", "s", (ASK,)), LOCAL)
    assert "response_format" not in encoded


@pytest.mark.parametrize(
    ("content", "cut", "expected"),
    [
        ('{"tool":"list","arguments":{"path":"a"}}', False, ("", (ReplyCall("list", '{"path":"a"}', None),))),
        ('{"tool":"list"}', False, ("", (ReplyCall("list", None, None),))),
        ('{"tool":"final","arguments":{"text":"x"}}', False, ("x", ())),
        ("plain words", False, ("plain words", ())),
        ('{"no":"tool"}', False, ('{"no":"tool"}', ())),
        ('{"tool":"li', True, ("", (ReplyCall("", '{"tool":"li', None, cut=True),))),
        ('{"tool":"list","arguments":{}}', True, ("", (ReplyCall("list", "{}", None, cut=True),))),
    ],
)
def test_a_choice_is_read_strictly(content: str, cut: bool, expected: Any) -> None:
    assert json_calls.read_choice(content, cut=cut) == expected


def test_a_schema_is_narrowed_to_what_every_grammar_knows() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "pattern": "^x", "description": "d", "enum": ["x"]},
            "b": {"type": "array", "items": {"type": "integer", "minimum": 1}},
            "c": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        },
        "required": ["a"],
        "$defs": {},
    }
    assert json_calls.narrowed(schema) == {
        "type": "object",
        "required": ["a"],
        "properties": {
            "a": {"type": "string", "enum": ["x"]},
            "b": {"type": "array", "items": {"type": "integer"}},
            "c": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "additionalProperties": False,
    }
