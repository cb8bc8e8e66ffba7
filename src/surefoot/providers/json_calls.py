"""Pure. Tool calls as one JSON object, for models whose servers cannot force a native call.

Owns: the schema that constrains the reply (`tools.mode = "json_schema"`), the text that
tells the model of its tools, and reading the object back.
Does not own: whether the arguments fit the tool (`runtime.arguments`).

The content of such a reply is the declared channel for calls. In every other mode
text is never executed (S-22).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from surefoot.core.canonical import canonical_json
from surefoot.providers.port import ReplyCall, ToolSpec

FINAL = "final"
"""The choice that ends the turn; its only argument is the answer's text."""
_KEPT = ("type", "enum", "const", "required", "minItems", "maxItems")
_DEPTH = 6


def response_format(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The `response_format` that admits one call of one tool, or a final text."""
    answer = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    choices = [(tool.name, narrowed(tool.parameters)) for tool in tools] + [(FINAL, answer)]
    forms = [
        {
            "type": "object",
            "properties": {"tool": {"const": name}, "arguments": parameters},
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        }
        for name, parameters in choices
    ]
    return {
        "type": "json_schema",
        "json_schema": {"name": "step", "strict": True, "schema": {"oneOf": forms}},
    }


def narrowed(schema: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """The part of a schema every grammar converter knows. The full one still judges the call afterwards."""
    if depth > _DEPTH:
        return {}
    kept = {key: schema[key] for key in _KEPT if key in schema}
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        kept["properties"] = {name: narrowed(_schema(part), depth + 1) for name, part in properties.items()}
        kept["additionalProperties"] = False
    if "items" in schema:
        kept["items"] = narrowed(_schema(schema["items"]), depth + 1)
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            kept["anyOf"] = [narrowed(_schema(part), depth + 1) for part in schema[key]]
    if depth == 0:
        kept.setdefault("type", "object")
    return kept


def _schema(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def tools_text(tools: Sequence[ToolSpec]) -> str:
    """What the model is told about its tools, one line each, in their order."""
    lines = ["Answer with one JSON object. To use a tool, name it and give its arguments:"]
    for tool in tools:
        names = ", ".join(_schema(tool.parameters.get("properties")))
        lines.append(
            f"- {tool.name}({names}): {tool.description.strip().splitlines()[0] if tool.description else ''}"
        )
    lines.append(f'When you are done: {{"tool": "{FINAL}", "arguments": {{"text": "your answer"}}}}')
    return "\n".join(lines)


def asked_text(name: str, arguments: str) -> str:
    """One earlier call as the model would have written it."""
    return f'{{"tool": {json.dumps(name)}, "arguments": {arguments}}}'


def result_text(name: str, text: str) -> str:
    """One earlier result, as a user message says it."""
    return f"Result of {name}:\n{text}"


def read_choice(content: str, *, cut: bool) -> tuple[str, tuple[ReplyCall, ...]]:
    """The reply's text and calls. A half-written object is a cut call, which never runs (S-03)."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        begun = content.lstrip().startswith("{")
        return ("", (ReplyCall("", content, None, cut=True),)) if begun else (content, ())
    if not isinstance(value, dict) or not isinstance(value.get("tool"), str):
        return content, ()
    arguments = value.get("arguments")
    if value["tool"] == FINAL:
        text = arguments.get("text") if isinstance(arguments, dict) else None
        return (text if isinstance(text, str) else content), ()
    given = None if arguments is None else canonical_json(arguments)
    return "", (ReplyCall(value["tool"], given, None, cut=cut),)
