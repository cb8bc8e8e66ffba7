"""Pure. Tool calls as one JSON object, for models whose servers cannot force a native call.

Owns: the schema that constrains the reply (`tools.mode = "json_schema"`), the text that
tells the model of its tools, and reading the object back.
Does not own: whether the arguments fit the tool (`runtime.arguments`).

The content of such a reply is the declared channel for calls. In every other mode
text is never executed (S-22).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from surefoot.core.canonical import canonical_json
from surefoot.core.history import AssistantWords, Message, UserWords
from surefoot.providers.port import ReplyCall, ToolSpec

FINAL = "final"
"""The choice that ends the turn; its only argument is the answer's text."""
_KEPT = ("type", "enum", "const", "required", "minItems", "maxItems")
_DEPTH = 6
_EXAMPLES = 8
_EXAMPLES_OF_A_SHAPE = 2
_MOST_CALLS = 8
_PURPOSE_LENGTH = 80
_EXAMPLE_TEXTS = {"path": "notes.txt", "command": "git log", "pattern": "main", "content": "some text"}


def must_end(messages: Sequence[Message]) -> bool:
    """Whether only a final text may follow: the model asked the same again, or asked often enough.

    A model this small repeats itself for ever when it is free to.
    """
    asked: list[tuple[str, str]] = []
    for message in messages:
        if isinstance(message, UserWords):
            asked = []
        elif isinstance(message, AssistantWords):
            asked += [(call.asked_name, call.arguments) for call in message.calls]
    return len(asked) >= _MOST_CALLS or (bool(asked) and asked[-1] in asked[:-1])


def response_format(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The `response_format` that admits one call of one of `tools`, or a final text."""
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
    lines = [
        "You work with tools. Reply with one JSON object that names the tool the user's request needs.",
        "Tools:",
    ]
    lines += [f"- {tool.name}: {_purpose(tool)}." for tool in tools]
    lines.append(f"- {FINAL}: Answer the user in words, when no tool is needed.")
    return "\n".join(lines)


def _purpose(tool: ToolSpec) -> str:
    """The first sentence of a description; every token of the prompt is time on a small machine."""
    lines = tool.description.strip().splitlines() or [tool.name]
    first = re.split(r"[.;:,](?:\s|$)", lines[0], maxsplit=1)[0]
    return first[:_PURPOSE_LENGTH].strip()


def examples(tools: Sequence[ToolSpec]) -> list[dict[str, str]]:
    """Made-up rounds, the same in every request; without them so small a model repeats its instructions."""
    shown: list[tuple[str, str]] = []
    question = ("user", "What is two and two?")
    shown += [question, ("assistant", asked_text(FINAL, json.dumps({"text": "Two and two is four."})))]
    # The last example weighs most with such a model, so the plainest tools come last.
    for tool, values in reversed(_taught(tools)):
        wish = ": ".join(part for part in (_purpose(tool), ", ".join(map(str, values.values()))) if part)
        shown += [
            ("user", wish),
            ("assistant", asked_text(tool.name, json.dumps(values))),
            ("user", result_text(tool.name, "done")),
            ("assistant", asked_text(FINAL, json.dumps({"text": "It is done."}))),
        ]
    shown += [
        ("user", "Thank you"),
        ("assistant", asked_text(FINAL, json.dumps({"text": "You are welcome."}))),
    ]
    return [{"role": role, "content": content} for role, content in shown]


def _taught(tools: Sequence[ToolSpec]) -> list[tuple[ToolSpec, dict[str, str]]]:
    """Tools with an example: those whose needed arguments we have plausible words for, two of a shape."""
    found: list[tuple[ToolSpec, dict[str, str]]] = []
    shapes: Counter[tuple[str, ...]] = Counter()
    for tool in tools:
        properties = tool.parameters.get("properties")
        required = tool.parameters.get("required")
        names = tuple(required) if isinstance(required, list) and required else ("path",)
        known = isinstance(properties, Mapping) and all(
            n in properties and n in _EXAMPLE_TEXTS for n in names
        )
        if not known or shapes[names] >= _EXAMPLES_OF_A_SHAPE or len(found) >= _EXAMPLES:
            continue
        shapes[names] += 1
        folder = re.search(r"\b(folder|director|entries)", _purpose(tool).casefold()) is not None
        texts = {**_EXAMPLE_TEXTS, "path": "."} if folder else _EXAMPLE_TEXTS
        found.append((tool, {name: texts[name] for name in names}))
    return found


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
