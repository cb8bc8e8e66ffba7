"""Pure. The Chat Completions wire: request bodies out, replies in.

Owns: the JSON of a Chat request. Does not own: decoding (`chat_stream`), order, ids
and argument text of history (`shaping`), HTTP (`client`), validity (`rules`).
Promises: projection:pure, projection:prefix-stable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from surefoot.core.history import CHAT_CARRIERS, AssistantWords, Message, ResultGiven, UserWords
from surefoot.providers import json_calls, pictures
from surefoot.providers.chat_stream import ChatDecoder
from surefoot.providers.hosted import forms
from surefoot.providers.port import Decoder, ModelRequest, ToolSpec
from surefoot.providers.shaping import (
    ANSWER_BRIDGE,
    BRIDGE,
    EMPTY_RESULT,
    bridge_after,
    demands_carrier,
    in_order,
    is_foreign,
    is_object_json,
    is_typed,
    merged,
    object_schema,
    orphan_text,
    parts_results,
    replayed_arguments,
    result_content,
    user_text,
    wire_arguments,
    wire_ids,
    wire_name,
)

NAME = "chat"
_MESSAGE_KEYS = frozenset({"role", "content", "tool_calls", "name", *CHAT_CARRIERS})


_ALTERNATES = {"merge": "user"}
"""Where neighbours of one role are merged, a template alternates and begins with the user (LS-03)."""


class ChatWire:
    """The `Wire` of Chat Completions. Holds nothing; one instance serves every endpoint."""

    name = NAME
    path = "/chat/completions"
    key_header = "authorization"
    key_form = "Bearer {key}"
    headers: Mapping[str, str] = MappingProxyType({})

    def encode(self, request: ModelRequest, contract: Mapping[str, Any]) -> dict[str, Any]:
        """The request body. Same input, same bytes; healthy prefixes never change."""
        by_json = contract["tools.mode"] == "json_schema" and bool(request.tools)
        body: dict[str, Any] = {"model": request.model, "messages": _messages(request, contract, by_json)}
        if by_json:
            body["response_format"] = json_calls.response_format(
                () if json_calls.must_end(request.messages) else request.tools
            )
        elif tools := [*(_tool(tool) for tool in request.tools), *forms(request.hosted, contract)]:
            body["tools"] = tools
        if request.max_output_tokens is not None:
            body[contract["limits.output_key"]] = request.max_output_tokens
        if request.effort is not None:
            body["reasoning_effort"] = request.effort
        if request.temperature is not None:
            body["temperature"] = request.temperature
        body["stream"] = request.stream
        if request.stream and contract["stream.usage"]:
            body["stream_options"] = {"include_usage": True}
        return body

    def decoder(self, contract: Mapping[str, Any], *, stream: bool) -> Decoder:
        """A fresh decoder. A stream may be answered with one JSON body; it is read either way."""
        return ChatDecoder(contract, stream=stream)


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": object_schema(tool.parameters),
    }
    return {"type": "function", "function": function}


def _messages(request: ModelRequest, contract: Mapping[str, Any], by_json: bool) -> list[dict[str, Any]]:
    ordered = in_order(request.messages, contract)
    system = request.system
    if by_json:
        system = "\n\n".join(part for part in (system, json_calls.tools_text(request.tools)) if part)
    shown: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    if by_json:
        shown += json_calls.examples(request.tools)
        shown += [message for one in ordered if (message := _as_json(one)) is not None]
    else:
        shown += _bridged(_native(ordered, request, contract), contract)
    if by_json or contract["pairing.same_role_neighbours"] == "merge":
        return list(merged(shown))
    return shown


def _as_json(message: Message) -> dict[str, Any] | None:
    """A message where calls are JSON text: no `tool_calls`, results as words of the user side."""
    if isinstance(message, UserWords):
        return {"role": "user", "content": user_text(message)}
    if isinstance(message, ResultGiven):
        content = json_calls.result_text(message.call.asked_name, message.text or EMPTY_RESULT)
        return {"role": "user", "content": content}
    lines = [message.text] if message.text else []
    for call in message.calls:
        arguments = replayed_arguments(call.arguments, {"arguments.history_json": True})
        lines.append(json_calls.asked_text(wire_name(call.asked_name), arguments))
    return {"role": "assistant", "content": "\n".join(lines)} if lines else None


def _native(
    ordered: Sequence[Message], request: ModelRequest, contract: Mapping[str, Any]
) -> list[dict[str, Any]]:
    ids = wire_ids(ordered, contract)
    last_user = max((n for n, one in enumerate(ordered) if isinstance(one, UserWords)), default=-1)
    asked = contract["reasoning.when"] == "always" or request.effort != "none"
    shown: list[dict[str, Any]] = []
    for position, message in enumerate(ordered):
        if isinstance(message, UserWords):
            shown.append({"role": "user", "content": user_text(message)})
        elif isinstance(message, ResultGiven):
            shown += [_result(message, ids, contract), *pictures.behind(ordered, position, contract, NAME)]
        else:
            tools, has_calls = bool(request.tools), bool(message.calls)
            demanded = asked and demands_carrier(
                contract, has_calls, tools=tools, since_user=position > last_user
            )
            foreign = is_foreign(message, request.model, request.endpoint, contract)
            encoded = _assistant(message, contract, ids, demanded)
            if encoded is not None:
                if contract["reasoning.carrier"] == "thought_signature" and has_calls:
                    _sign(encoded["tool_calls"][0], contract, foreign=foreign, demanded=demanded)
                shown.append(encoded)
    return shown


def _result(message: ResultGiven, ids: Mapping[str, str], contract: Mapping[str, Any]) -> dict[str, Any]:
    wire_id = ids.get(message.call.call_id)
    if wire_id is None:
        return {"role": "user", "content": orphan_text(message)}
    content = pictures.in_result(message, result_content(message, contract), contract, NAME)
    return {"role": "tool", "tool_call_id": wire_id, "content": content}


def _sign(call: dict[str, Any], contract: Mapping[str, Any], *, foreign: bool, demanded: bool) -> None:
    """Gemini's signature beside a call: as stored, or the documented stand-in where none can return (GE-01, R8)."""
    extra = call.get("extra_content")
    extra = dict(extra) if isinstance(extra, Mapping) else {}
    google = dict(extra["google"]) if isinstance(extra.get("google"), Mapping) else {}
    if google.get("thought_signature") and not foreign:
        return
    google.pop("thought_signature", None)
    if demanded and contract["reasoning.empty_ok"]:
        google["thought_signature"] = contract["reasoning.placeholder"]
    if google:
        call["extra_content"] = {**extra, "google": google}
    else:
        call.pop("extra_content", None)


def _bridged(shown: Sequence[dict[str, Any]], contract: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Constant messages where the order of roles needs them (R6, MS-02, MS-04)."""
    bridged: list[dict[str, Any]] = []
    opens = "user" in (
        contract["pairing.first_role"],
        _ALTERNATES.get(contract["pairing.same_role_neighbours"]),
    )
    if opens and shown and shown[0]["role"] == "assistant":
        bridged.append({"role": "user", "content": BRIDGE})  # a history whose beginning is gone
    for message in shown:
        after_result = bool(bridged) and bridged[-1]["role"] == "tool" and message["role"] == "user"
        if after_result and parts_results(contract):
            bridged.append({"role": "assistant", "content": ANSWER_BRIDGE})
        if message["role"] == "assistant":
            bridged += bridge_after(bridged, contract)
        bridged.append(message)
    return [*bridged, *bridge_after(bridged, contract)]


def _assistant(
    message: AssistantWords, contract: Mapping[str, Any], ids: Mapping[str, str], demanded: bool
) -> dict[str, Any] | None:
    """The stored message for the wire, or None when nothing of it can be shown (OC-06)."""
    raw = message.raw if message.wire == NAME else {}
    calls = _calls(message, contract, ids, raw)
    content = raw.get("content") if message.wire == NAME and contract["tools.mode"] == "native" else None
    if isinstance(content, list):
        content = [part for part in content if is_typed(part)] or None
    if not isinstance(content, (str, list)):
        content = message.text or ""
    content = _content(content, bool(calls), contract)
    if not calls and not content:
        return None
    encoded: dict[str, Any] = {"role": "assistant", "content": content}
    for key, value in raw.items():
        if key in encoded or key in ("tool_calls", "role") or value is None:
            continue
        if key in CHAT_CARRIERS:
            if contract["reasoning.required"] not in ("never", "forbidden") and _is_carrier(key, value):
                encoded[key] = value
        elif key in _MESSAGE_KEYS or contract["content.unknown_keys"] == "ok":
            encoded[key] = value
    carrier = contract["reasoning.carrier"]
    if demanded and carrier in CHAT_CARRIERS and carrier not in encoded and contract["reasoning.empty_ok"]:
        encoded[carrier] = contract["reasoning.placeholder"]  # R8: only where the contract declares it
    if calls:
        encoded["tool_calls"] = calls
    return encoded


def _is_carrier(key: str, value: Any) -> bool:
    """Whether a stored carrier is of its form; another one counts as missing."""
    if key != "reasoning_details":
        return isinstance(value, str)
    return isinstance(value, list) and all(
        isinstance(one, Mapping) and isinstance(one.get("type"), str) for one in value
    )


def _content(content: Any, has_calls: bool, contract: Mapping[str, Any]) -> Any:
    if content == "" and has_calls and contract["content.assistant_null"] != "never":
        return None
    if isinstance(content, list) and contract["content.empty_text"] == "omit":
        return [part for part in content if not _is_blank_text(part)] or ""
    return content


def _is_blank_text(part: Any) -> bool:
    return (
        isinstance(part, Mapping) and part.get("type") == "text" and not str(part.get("text") or "").strip()
    )


def _calls(
    message: AssistantWords, contract: Mapping[str, Any], ids: Mapping[str, str], raw: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The calls as stored, with ids, names and arguments made fit for the wire (R2, R3, R13)."""
    stored = raw.get("tool_calls")
    faithful = isinstance(stored, list) and len(stored) == len(message.calls)
    shown = []
    for number, call in enumerate(message.calls):
        kept = stored[number] if faithful and isinstance(stored, list) else {}
        kept = kept if isinstance(kept, Mapping) else {}
        function = kept.get("function")
        function = dict(function) if isinstance(function, Mapping) else {}
        function["name"] = wire_name(call.asked_name)
        text = function.get("arguments", call.arguments)
        if isinstance(text, str) and text.strip() and not is_object_json(text):
            text = call.arguments  # unwrapped where the contract declares a second level (S-18)
        function["arguments"] = wire_arguments(text, contract)
        extra = {key: value for key, value in kept.items() if key not in ("id", "type", "function", "index")}
        shown.append({"id": ids[call.call_id], "type": "function", "function": function, **extra})
    return shown
