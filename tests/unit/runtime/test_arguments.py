"""Argument validation: strict JSON and schema, in words for the model, without a value."""

from __future__ import annotations

import json
from typing import Any

import pytest

from surefoot.core.canonical import Arguments
from surefoot.runtime.arguments import ArgumentLimits, Fault, validate
from surefoot.runtime.tools import Outcome, Tool

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1},
        "mode": {"enum": ["overwrite", "append"]},
        "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}},
    },
    "required": ["path"],
    "additionalProperties": False,
}
SECRET = "hunter2-secret-value"


async def body(_: object, __: object) -> Outcome:
    return Outcome("")


def tool(parameters: Any = SCHEMA, **extra: Any) -> Tool:
    return Tool("write", "Write a file.", parameters, body=body, **extra)


def fault(text: str | None, parameters: Any = SCHEMA, **extra: Any) -> Fault:
    found = validate(tool(parameters, **extra), text)
    assert isinstance(found, Fault)
    return found


def test_pr_66_valid_arguments_are_given_with_canonical_form_and_digest() -> None:
    found = validate(tool(), '{"mode":"append", "path":"a"}')
    assert isinstance(found, Arguments)
    assert found.value == {"path": "a", "mode": "append"}
    assert found.canonical == '{"mode":"append","path":"a"}'
    assert found.digest.startswith("sha256:")
    assert not found.absent


def test_case_s19_absent_arguments_are_an_empty_object() -> None:
    found = validate(tool({"type": "object"}), "  ")
    assert isinstance(found, Arguments)
    assert found.absent
    assert "/" not in fault("").text.partition("required")[0]  # judged like {} where a key is required


@pytest.mark.parametrize(
    "text",
    [
        '{"path": "a", "path": "b"}',
        '{"path": "a"} x',
        '{"path": "/etc/ho',
        "{'path': 'a'}",
        '{"path": NaN}',
        "[]",
        "null",
        '"x"',
        '{"path": "\\ud800"}',
        "\ufeff{}",
        '{"a":' * 70 + "1" + "}" * 70,
    ],
)
def test_pr_66_text_that_is_no_strict_object_is_refused(text: str) -> None:
    found = fault(text)
    assert found.code == "arguments_invalid"
    assert "(root): json: expected one strict JSON object" in found.text


def test_pr_67_a_fault_says_all_that_is_needed_and_no_value() -> None:
    given = {"mode": SECRET, "lines": [1, 0, SECRET], "zzz": SECRET}
    found = fault(json.dumps(given))
    lines = found.text.splitlines()
    assert lines[0].startswith("The arguments of this call of write do not fit its schema ")
    assert len(lines[0].split("schema ")[1].split(".")[0]) == 16
    assert "Nothing was started." in lines[0]
    assert '- (root): required: expected the key "path"' in lines
    assert '- (root): additionalProperties: expected no other keys than "lines", "mode", "path"' in lines
    assert '- /mode: enum: expected one of ["overwrite", "append"]' in lines
    assert "- /lines/1: minimum: expected 1" in lines
    assert "- /lines/2: type: expected integer" in lines
    assert "Permission rules still apply" in lines[-1]
    assert SECRET not in found.text


def test_pr_67_a_long_fault_is_cut_between_characters_and_still_says_what_to_do() -> None:
    wide = {
        "type": "object",
        "properties": {f"ключ{n}": {"type": "string", "pattern": "ё" * 200} for n in range(60)},
    }
    found = fault(json.dumps({f"ключ{n}": "x" for n in range(60)}), wide)
    assert len(found.text.encode()) <= 4096
    assert found.text.endswith("Permission rules still apply to it.")
    assert "\ufffd" not in found.text


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "objekt"},
        {"type": "array"},
        {"type": "object", "properties": {"a": {"$ref": "https://schemas.example/a.json"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}},
        {"type": "object", "properties": {"a": {"pattern": "("}}},
        {"type": "object", "properties": {"a": {"enum": {1, 2}}}},
    ],
)
def test_pr_68_a_broken_declaration_is_a_host_fault(broken: Any) -> None:
    found = fault('{"a": "x"}', broken)
    assert found.host
    assert found.code == "schema_unusable"
    assert "other arguments cannot cure it" in found.text
    assert "Nothing was started" in found.text


def test_pr_68_a_reference_inside_the_declaration_works() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"type": "integer"}},
    }
    assert isinstance(validate(tool(schema), '{"a": 1}'), Arguments)
    assert "/a: type: expected integer" in fault('{"a": "x"}', schema).text


@pytest.mark.parametrize("inner", [{"path": "a"}, '{"path": "a"}'])
def test_pr_68_a_redundant_wrapper_gets_a_hint_and_no_rewrite(inner: Any) -> None:
    found = fault(json.dumps({"arguments": inner}))
    assert 'there is no outer "arguments"' in found.text


def test_pr_68_no_hint_where_it_would_be_wrong() -> None:
    assert "Hint" not in fault(json.dumps({"arguments": {"mode": "append"}})).text
    assert "Hint" not in fault(json.dumps({"arguments": {"path": "a"}, "more": 1})).text
    own = {**SCHEMA, "properties": {**SCHEMA["properties"], "arguments": {"type": "string"}}}
    assert "Hint" not in fault(json.dumps({"arguments": {"path": "a"}}), own).text
    forms = {"anyOf": [SCHEMA]}
    assert "Hint" not in fault(json.dumps({"arguments": {"path": "a"}}), forms).text


def test_tr_17_the_key_argument_is_not_asked_of_the_model() -> None:
    schema = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
    assert isinstance(validate(tool(schema, key_argument="key"), "{}"), Arguments)
    assert isinstance(validate(tool(schema), "{}"), Fault)


def test_tr_10_the_bounds_can_be_set() -> None:
    found = validate(tool(), '{"path": "aaaaaaaaaaaaaaaaaaaa"}', ArgumentLimits(max_bytes=10))
    assert isinstance(found, Fault)
    assert "larger than 10 bytes" in found.text


def test_pr_69_the_same_fault_is_told_the_same_way_and_a_corrected_call_passes() -> None:
    assert fault("{}").text == fault("{}").text
    assert isinstance(validate(tool(), '{"path": "a"}'), Arguments)
