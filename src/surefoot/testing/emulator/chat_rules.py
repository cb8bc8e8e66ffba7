"""Pure. The checks an endpoint makes on a Chat Completions request, written from the wire's rules.

Owns: one walk over `messages` with the open batch of calls, and the wording of each
refusal. Does not own: which rules a profile enforces (`profiles`).
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

from surefoot.testing.emulator import chat_copies
from surefoot.testing.emulator.bodies import Refusal
from surefoot.testing.emulator.profiles import Profile
from surefoot.testing.emulator.reading import content_has_form

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_NATIVE_ID = re.compile(r"^functions\.[^:]+:\d+$")


def check(request: dict[str, Any], profile: Profile, off: frozenset[str] = frozenset()) -> Refusal | None:
    """The first refusal this profile has for the request, or None. `off` turns rules off (DS-10)."""
    found = _structure(request) or (_fields(request) if profile.checks_fields else None)
    if found:
        return found
    rules = profile.rules - off
    if not rules:
        return None
    walk = _Walk(request, profile, rules)
    for refusal in walk.refusals():
        return refusal
    return None


def silently_ignored(request: dict[str, Any], profile: Profile) -> bool:
    """Whether the endpoint answers 200 with an empty turn because ids are not native (KI-05)."""
    if "KI-05" not in profile.rules:
        return False
    calls = [c for m in request.get("messages") or () for c in m.get("tool_calls") or ()]
    return any(not _NATIVE_ID.match(str(call.get("id", ""))) for call in calls)


def _structure(request: dict[str, Any]) -> Refusal | None:
    """What every endpoint needs to read the request at all, `lenient` included."""
    messages = request.get("messages")
    if not isinstance(messages, list):
        return _schema("Missing required parameter: 'messages'.", "messages")
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            return _schema(f"Invalid type for 'messages[{index}]': expected an object.", f"messages[{index}]")
        calls = message.get("tool_calls")
        if calls is None:
            continue
        where = f"messages[{index}].tool_calls"
        if not isinstance(calls, list):
            return _schema(f"Invalid type for '{where}': expected an array.", where)
        if not all(isinstance(c, dict) and isinstance(c.get("function"), dict) for c in calls):
            return _schema(f"Missing required parameter: '{where}[0].function'.", where)
    return None


def _fields(request: dict[str, Any]) -> Refusal | None:
    if not isinstance(request.get("model"), str) or not request["model"]:
        return _schema("Missing required parameter: 'model'.", "model")
    if not request["messages"]:
        return _schema(
            "Invalid 'messages': empty array. Expected an array with minimum length 1.", "messages"
        )
    for index, message in enumerate(request["messages"]):
        if message.get("role") not in _ROLES:
            return _schema(
                f"Invalid value: {message.get('role')!r} for 'messages[{index}].role'.", "messages"
            )
        if not content_has_form(message.get("content")):
            where = f"messages[{index}].content"
            return _schema(f"Invalid type for '{where}': expected a string or an array of parts.", where)
        for place, call in enumerate(message.get("tool_calls") or ()):
            if not _call_has_form(call):
                where = f"messages[{index}].tool_calls[{place}]"
                return _schema(f"Missing required parameter: '{where}.id' or '.type'.", where)
    return _tool_fields(request.get("tools"))


def _call_has_form(call: Any) -> bool:
    return isinstance(call.get("id"), str) and call["id"] != "" and call.get("type") == "function"


def _tool_fields(tools: Any) -> Refusal | None:
    if tools is None:
        return None
    if not isinstance(tools, list) or not tools:
        return _schema("Invalid 'tools': empty array. Expected an array with minimum length 1.", "tools")
    for index, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not function.get("name"):
            return _schema(f"Missing required parameter: 'tools[{index}].function.name'.", "tools")
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", str(function["name"])):
            return _schema(f"Invalid 'tools[{index}].function.name': string does not match pattern.", "tools")
    return None


def _schema(message: str, param: str) -> Refusal:
    return Refusal(("schema",), message, param=param)


class _Walk:
    """One pass over the messages; yields what would be refused, in request order."""

    def __init__(self, request: dict[str, Any], profile: Profile, rules: frozenset[str]) -> None:
        self.request = request
        self.messages: list[dict[str, Any]] = request.get("messages") or []
        self.profile = profile
        self.rules = rules
        self.waiting: list[str] = []
        """Ids of the open batch not answered yet."""
        self.answered: dict[str, int] = {}
        """Id of the open batch → index of its result."""
        self.open = False

    def refusals(self) -> Iterator[Refusal]:
        for index, message in enumerate(self.messages):
            if message["role"] == "tool":
                yield from self._result(index, message)
            else:
                yield from self._unanswered(index)
                self.waiting, self.answered, self.open = [], {}, False
                if message["role"] == "assistant":
                    yield from self._assistant(index, message)
            yield from self._content(index, message)
        yield from self._unanswered(len(self.messages))
        yield from self._role_order()
        yield from chat_copies.order_refusals(self.rules, self.messages)
        yield from chat_copies.thought_refusals(self.rules, self.messages)

    def _unanswered(self, index: int) -> Iterator[Refusal]:
        if not self.waiting:
            return
        yield from chat_copies.unanswered(self.rules, self.waiting, index)
        ids = ", ".join(self.waiting)
        text = "must be followed by tool messages responding to each 'tool_call_id'."
        named = f"The following tool_call_ids did not have response messages: {ids}"
        if "KI-04" in self.rules:
            yield Refusal(("KI-04", "OC-01"), f"an assistant message with 'tool_calls' {text} {named}")
        elif "DS-06" in self.rules:
            tail = "(insufficient tool messages following tool_calls message)"
            yield Refusal(("OC-01", "DS-06"), f"An assistant message with 'tool_calls' {text} {tail}")
        elif "OC-01" in self.rules:
            yield Refusal(
                ("OC-01",), f"An assistant message with 'tool_calls' {text} {named}", param="messages"
            )

    def _result(self, index: int, message: dict[str, Any]) -> Iterator[Refusal]:
        call_id = str(message.get("tool_call_id") or "")
        if self.open and call_id in self.waiting:
            self.waiting.remove(call_id)
            self.answered[call_id] = index
            return
        if self.open and call_id in self.answered:
            if "OC-03" in self.rules:
                first = self.answered[call_id]
                yield Refusal(
                    ("OC-03",),
                    f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call_id}', "
                    f"in messages[{first}] and messages[{index}].",
                    param=f"messages.[{index}].tool_call_id",
                )
            return
        yield from self._orphan(index, call_id)

    def _orphan(self, index: int, call_id: str) -> Iterator[Refusal]:
        before = self.messages[index - 1]["role"] if index else "system"
        yield from chat_copies.orphan(self.rules, call_id, before)
        if "KI-03" in self.rules:
            yield Refusal(("KI-03", "OC-02"), f"tool_call_id {call_id} is not found")
        elif "DS-06" in self.rules:
            text = "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
            yield Refusal(("OC-02", "DS-06"), text)
        elif "OC-02" in self.rules:
            yield Refusal(
                ("OC-02",),
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
                "with 'tool_calls'.",
                param=f"messages.[{index}].role",
            )

    def _assistant(self, index: int, message: dict[str, Any]) -> Iterator[Refusal]:
        calls = message.get("tool_calls")
        if calls is not None and not calls and "OC-04" in self.rules:
            yield Refusal(
                ("OC-04",),
                f"Invalid 'messages[{index}].tool_calls': empty array. "
                "Expected an array with minimum length 1, but got an empty array instead.",
                param=f"messages[{index}].tool_calls",
                code="empty_array",
            )
        for place, call in enumerate(calls or ()):
            yield from self._call(f"messages[{index}].tool_calls[{place}]", call)
        yield from chat_copies.batch_refusals(self.rules, calls or ())
        yield from self._reasoning(index, message)
        self.waiting = [str(call.get("id")) for call in calls or ()]
        self.open = bool(calls)

    def _call(self, where: str, call: dict[str, Any]) -> Iterator[Refusal]:
        function = call.get("function") or {}
        name, arguments = function.get("name"), function.get("arguments")
        # DeepSeek is known to accept an empty name and to refuse an omitted one.
        empty_refused = name == "" and self.profile.shape != "deepseek"
        if "DS-11" in self.rules and (not isinstance(name, str) or empty_refused):
            yield Refusal(("DS-11",), "missing field 'name'", param=f"{where}.function.name")
        if "OC-08" in self.rules and not isinstance(arguments, str):
            yield Refusal(("OC-08",), "Input should be a valid string", param=f"{where}.function.arguments")
        if "OC-05" in self.rules and len(call["id"]) > 40:
            yield Refusal(
                ("OC-05",),
                f"Invalid '{where}.id': string too long. Expected a string with maximum length 40, "
                f"but got a string with length {len(call['id'])} instead.",
                param=f"{where}.id",
                code="string_above_max_length",
            )
        yield from self._stored_arguments(arguments)
        yield from chat_copies.call_refusals(self.rules, call)

    def _stored_arguments(self, arguments: Any) -> Iterator[Refusal]:
        if not self.rules & {"LS-01", "LS-02"}:
            return
        fault = _not_an_object(arguments)
        if fault is None:
            return
        if "LS-02" in self.rules:
            text = f"Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] {fault}"
            yield Refusal(("LS-02",), text, status=500)
        else:
            yield Refusal(("LS-01",), fault)

    def _content(self, index: int, message: dict[str, Any]) -> Iterator[Refusal]:
        yield from chat_copies.content_refusals(self.rules, index, message)
        content, role = message.get("content"), message["role"]
        bears_calls = role == "assistant" and bool(message.get("tool_calls"))
        if content is None and not bears_calls and "OC-06" in self.rules:
            yield Refusal(
                ("OC-06",),
                "Invalid value for 'content': expected a string, got null.",
                param=f"messages.[{index}].content",
            )
        if not isinstance(content, list):
            return
        if role == "tool" and "LS-05" in self.rules:
            text = "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string"
            yield Refusal(("LS-05",), text)
        kinds = {str(part.get("type")) for part in content if isinstance(part, dict)}
        if role != "user" and "image_url" in kinds and "OC-07" in self.rules:
            yield Refusal(
                ("OC-07",),
                f"Invalid 'messages[{index}]'. Image URLs are only allowed for messages with role 'user', "
                f"but this message with role '{role}' contains an image URL.",
                param=f"messages.[{index}]",
            )

    def _reasoning(self, index: int, message: dict[str, Any]) -> Iterator[Refusal]:
        has_key = isinstance(message.get("reasoning_content"), str)
        if not self.profile.knobs.get("empty_ok", True):
            has_key = has_key and bool(message["reasoning_content"].strip())
        bears_calls = bool(message.get("tool_calls"))
        if "DS-01" in self.rules and "reasoning_content" in message:
            text = "The `reasoning_content` must not be passed back to the API in the input messages."
            yield Refusal(("DS-01",), text)
        thinking = _thinking_is_on(self.request)
        if "DS-02" in self.rules and thinking and bears_calls and not has_key and index > self._last_user():
            yield Refusal(
                ("DS-02",),
                "Missing `reasoning_content` field in the assistant message at message index "
                f"{index}. For more information, please refer to thinking_mode#tool-calls",
            )
        if "DS-03" in self.rules and thinking and self._v4_wants(bears_calls) and not has_key:
            text = "The `reasoning_content` in the thinking mode must be passed back to the API."
            yield Refusal(("DS-03",), text)
        if "MI-01" in self.rules and bears_calls and thinking and not has_key:
            text = "The reasoning_content in the thinking mode must be passed back to the API."
            yield Refusal(("MI-01",), text)
        always = "KI-02" in self.rules
        wanted = always or ("KI-01" in self.rules and bears_calls and thinking)
        if wanted and not has_key:
            rule = "KI-01" if "KI-01" in self.rules and bears_calls else "KI-02"
            text = "thinking is enabled but reasoning_content is missing in assistant tool call message"
            yield Refusal((rule,), f"{text} at index {index}")

    def _v4_wants(self, bears_calls: bool) -> bool:
        if self.profile.knobs.get("v4_mode") == "tool_turns":
            return bears_calls
        return bool(self.request.get("tools"))

    def _last_user(self) -> int:
        return max((i for i, m in enumerate(self.messages) if m["role"] == "user"), default=-1)

    def _role_order(self) -> Iterator[Refusal]:
        if "LS-03" not in self.rules:
            return
        roles = [m["role"] for m in self.messages if m["role"] not in ("system", "developer")]
        twice = any(a == b and a != "tool" for a, b in itertools.pairwise(roles))
        if twice or (roles and roles[0] != "user"):
            text = "conversation roles must alternate user and assistant roles"
            yield Refusal(("LS-03",), f"{text} except for tool calls and results.")


def _thinking_is_on(request: dict[str, Any]) -> bool:
    """Thinking is on unless the request turns it off in one of the known ways."""
    thinking = request.get("thinking")
    if isinstance(thinking, dict) and thinking.get("type") == "disabled":
        return False
    return request.get("reasoning_effort") != "none" and request.get("enable_thinking") is not False


def _not_an_object(arguments: Any) -> str | None:
    try:
        value = json.loads(arguments)
    except (TypeError, ValueError) as error:
        return str(error)
    return None if isinstance(value, dict) else "tool call arguments must be a JSON object"
