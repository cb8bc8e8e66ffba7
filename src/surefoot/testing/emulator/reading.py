"""Pure. What a model reads from a request, whatever its wire: its own turns, its calls, their results.

Owns: finding them. Does not own: what the model then says (`scripts`).
"""

from __future__ import annotations

import json
from typing import Any

_RESULT_TYPES = ("function_call_output", "custom_tool_call_output")
_CALL_TYPES = ("function_call", "custom_tool_call")

Call = dict[str, Any]
"""`{"name", "raw_args"}`."""


def turns(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The conversation as `{"by": "model"|"other", "calls": […], "results": […]}`, one per message or group."""
    if "contents" in request and "messages" not in request:
        return _of_contents(request.get("contents"))
    if "input" in request and "messages" not in request:
        return _of_items(request.get("input"))
    found = []
    for message in request.get("messages") or ():
        content = message.get("content")
        blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
        calls = [_chat_call(call) for call in message.get("tool_calls") or ()]
        calls += [
            {"name": b.get("name"), "raw_args": json.dumps(b.get("input"), ensure_ascii=False)}
            for b in blocks
            if b.get("type") == "tool_use"
        ]
        calls += [_named_call(b["toolUse"], "input") for b in blocks if isinstance(b.get("toolUse"), dict)]
        results = [plain(b.get("content")) for b in blocks if b.get("type") == "tool_result"]
        results += [plain(b["toolResult"].get("content")) for b in blocks if b.get("toolResult")]
        if message.get("role") == "tool":
            results = [plain(content)]
        by = "model" if message.get("role") == "assistant" else "other"
        found.append({"by": by, "calls": calls, "results": results})
    return found


def turns_of_model(request: dict[str, Any]) -> int:
    """How often the model has spoken."""
    return sum(1 for turn in turns(request) if turn["by"] == "model")


def last_results(request: dict[str, Any]) -> list[str]:
    """The results that arrived behind the last turn of the model, a user's words after them or not."""
    results: list[str] = []
    for turn in reversed(turns(request)):
        if turn["by"] == "model":
            break
        if turn["results"]:
            results = [*turn["results"], *results]
        elif results:
            break
    return results


def repeated_calls(request: dict[str, Any]) -> list[Call]:
    """The calls of the last turn that had some, to be asked again under new ids."""
    for turn in reversed(turns(request)):
        if turn["calls"]:
            return list(turn["calls"])
    return []


def has_called(request: dict[str, Any], name: str, arguments: Any) -> bool:
    """Whether the history holds a call of that name with equal arguments."""
    for turn in turns(request):
        for call in turn["calls"]:
            if call["name"] == name and _same(call["raw_args"], arguments):
                return True
    return False


def plain(content: Any) -> str:
    """Content as text, parts joined."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def content_has_form(content: Any) -> bool:
    """Whether it is text, parts with a type each, or nothing."""
    if isinstance(content, list):
        return all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in content)
    return content is None or isinstance(content, str)


def _chat_call(call: Any) -> Call:
    function = call.get("function") or {}
    return {"name": function.get("name"), "raw_args": function.get("arguments")}


def _named_call(call: dict[str, Any], arguments: str) -> Call:
    """A call whose arguments stand under that name, as an object."""
    return {"name": call.get("name"), "raw_args": json.dumps(call.get(arguments) or {}, ensure_ascii=False)}


def _of_contents(given: Any) -> list[dict[str, Any]]:
    """Gemini's contents, in either spelling of their names."""
    found = []
    for content in given if isinstance(given, list) else ():
        parts = [part for part in content.get("parts") or () if isinstance(part, dict)]
        asked = [part.get("functionCall") or part.get("function_call") for part in parts]
        answers = [part.get("functionResponse") or part.get("function_response") for part in parts]
        by = "model" if content.get("role") == "model" else "other"
        calls = [_named_call(call, "args") for call in asked if call]
        results = [_plain_response(one.get("response")) for one in answers if one]
        found.append({"by": by, "calls": calls, "results": results})
    return found


def _plain_response(response: Any) -> str:
    """A response as text: its one field, or all of it."""
    values = list(response.values()) if isinstance(response, dict) else []
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return json.dumps(response, ensure_ascii=False)


def _of_items(given: Any) -> list[dict[str, Any]]:
    """Responses items in turns; results and messages of others end a turn of the model."""
    if not isinstance(given, list):
        return [{"by": "other", "calls": [], "results": []}]
    found: list[dict[str, Any]] = []
    for item in given:
        kind = str(item.get("type") or "message")
        by_model = item.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")
        if not by_model or not found or found[-1]["by"] != "model":
            found.append({"by": "model" if by_model else "other", "calls": [], "results": []})
        if kind in _CALL_TYPES:
            found[-1]["calls"].append({"name": item.get("name"), "raw_args": item.get("arguments")})
        if kind in _RESULT_TYPES:
            found[-1]["results"].append(plain(item.get("output")))
    return found


def _same(text: Any, arguments: Any) -> bool:
    try:
        return bool(json.loads(text) == arguments)
    except (TypeError, ValueError):
        return False
