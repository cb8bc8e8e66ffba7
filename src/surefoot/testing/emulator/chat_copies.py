"""Pure. The checks of endpoints that copy the Chat wire and add demands of their own.

Owns: the rules MS, GE, GL, QW, MM, MI and OC-10, each with its wording. Does not own:
the walk they are called from and OpenAI's own rules (`chat_rules`).
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from surefoot.testing.emulator.bodies import Refusal
from surefoot.testing.emulator.issuing import BACKEND, DUMMY_SIGNATURE, Token, bent, unseal

THOUGHT_PREFIX = "Ths"
_NINE = re.compile(r"^[a-zA-Z0-9]{9}$")

Messages = Sequence[dict[str, Any]]


def thought_signature(call: dict[str, Any]) -> Any:
    """The signature a call carries in the place Gemini's Chat endpoint has for it."""
    extra = call.get("extra_content")
    google = extra.get("google") if isinstance(extra, dict) else None
    return google.get("thought_signature") if isinstance(google, dict) else None


def issue_thought(model: str, mode: Any) -> dict[str, Any]:
    """What the first call of a reply carries beside its function."""
    token = Token("thought", model, BACKEND, "")
    return {"google": {"thought_signature": bent(token, THOUGHT_PREFIX, mode)}}


def carries_signature(request: dict[str, Any]) -> bool:
    """Whether some call brings back a thought signature of ours."""
    calls = [c for m in request.get("messages") or () for c in m.get("tool_calls") or ()]
    return any(unseal(thought_signature(call), THOUGHT_PREFIX) is not None for call in calls)


def unanswered(rules: frozenset[str], waiting: Sequence[str], index: int) -> Iterator[Refusal]:
    """A batch was left open before the message at `index`."""
    if "QW-01" in rules:
        yield Refusal(
            ("QW-01",),
            '<400> InternalError.Algo.InvalidParameter: An assistant message with "tool_calls" must be followed '
            'by tool messages responding to each "tool_call_id". The following tool_call_ids did not have '
            f"response messages: message[{index}].role",
            code="invalid_parameter_error",
        )
    if "MS-03" in rules:
        text = "Not the same number of function calls and responses"
        yield Refusal(("MS-03",), text, type="invalid_request_message_order", code="3230")
    if "MM-03" in rules:
        text = f"invalid params, tool call result does not follow tool call: {waiting[0]} (2013)"
        yield Refusal(("MM-03",), text)


def orphan(rules: frozenset[str], call_id: str, before: str) -> Iterator[Refusal]:
    """A result stands where no open call has its id."""
    if "MM-01" in rules:
        yield Refusal(("MM-01",), f"invalid params, tool result's tool id({call_id}) not found (2013)")
    if "MS-02" in rules and "OC-02" in rules:
        text = f"Unexpected role 'tool' after role '{before}'"
        yield Refusal(("OC-02",), text, type="invalid_request_message_order", code="3230")


def routed(request: dict[str, Any], own: str | None, upstream: str | None) -> dict[str, Any]:
    """The request as a router passes it on: its form of reasoning in the field of the endpoint behind it (RT-03)."""
    messages = request.get("messages")
    if (
        own != "reasoning_details"
        or upstream in (None, own, "thought_signature")
        or not isinstance(messages, list)
    ):
        return request
    return {**request, "messages": [_translated(message, str(upstream)) for message in messages]}


def _translated(message: Any, field: str) -> Any:
    details = message.get("reasoning_details") if isinstance(message, dict) else None
    if not isinstance(details, list) or field in message:
        return message
    texts = [str(one.get("text") or one.get("summary") or "") for one in details if isinstance(one, dict)]
    return {**message, field: "".join(texts)}


def call_refusals(rules: frozenset[str], call: dict[str, Any]) -> Iterator[Refusal]:
    """One call of an assistant message."""
    call_id = str(call.get("id"))
    arguments = (call.get("function") or {}).get("arguments")
    if "MS-01" in rules and not _NINE.match(call_id):
        yield Refusal(
            ("MS-01",),
            f"Tool call id was {call_id} but must be a-z, A-Z, 0-9, with a length of 9.",
            type="invalid_function_call",
            code="3280",
        )
    if "QW-02" in rules and not _is_object(arguments):
        text = 'The "function.arguments" parameter of the code model must be in JSON format.'
        yield Refusal(("QW-02",), f"<400> InternalError.Algo.InvalidParameter: {text}")
    if "MM-02" in rules and not _is_object(arguments):
        text = f"invalid params, invalid function arguments json string, tool_call_id: {call_id} (2013)"
        yield Refusal(("MM-02",), text)


def batch_refusals(rules: frozenset[str], calls: Sequence[dict[str, Any]]) -> Iterator[Refusal]:
    """The calls of one assistant message together."""
    ids = [str(call.get("id")) for call in calls]
    if "MM-03" in rules and len(set(ids)) < len(ids):
        yield Refusal(("MM-03",), "invalid params, duplicate tool_call id (2013)")


def content_refusals(rules: frozenset[str], index: int, message: dict[str, Any]) -> Iterator[Refusal]:
    """What a message says, and in which form."""
    content, role = message.get("content"), message["role"]
    parts = content if isinstance(content, list) else []
    if "MI-02" in rules and content is None:
        yield Refusal(("MI-02",), "`text` is not set")
    if "MI-02" in rules and role == "tool" and parts:
        yield Refusal(("MI-02",), "`text` is not present")
    if "OC-10" in rules and role == "tool" and not isinstance(content, str):
        text = f"'messages.{index}' : for 'role:tool' 'content' must be a string"
        yield Refusal(("OC-10",), text)
    for place, part in enumerate(parts):
        is_text = isinstance(part, dict) and part.get("type") == "text"
        if "GL-02" in rules and is_text and not str(part.get("text") or ""):
            text = f"messages[{index}].content[{place}].text:text cannot be empty."
            yield Refusal(("GL-02",), text, code="1214")


def order_refusals(rules: frozenset[str], messages: Messages) -> Iterator[Refusal]:
    """MS-02 and MS-04: which role may follow, and which may be last."""
    roles = [message["role"] for message in messages]
    if "MS-02" in rules:
        for before, role in itertools.pairwise(roles):
            if before == "tool" and role not in ("tool", "assistant"):
                text = f"Unexpected role '{role}' after role 'tool'"
                yield Refusal(("MS-02",), text, type="invalid_request_message_order", code="3230")
    if "MS-04" in rules and roles and roles[-1] == "assistant" and messages[-1].get("prefix") is not True:
        text = "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"
        yield Refusal(("MS-04",), text, type="invalid_request_message_order", code="3230")


def thought_refusals(rules: frozenset[str], messages: Messages) -> Iterator[Refusal]:
    """GE-01 and GE-02 on the first call of each step of the current turn."""
    if not rules & {"GE-01", "GE-02"}:
        return
    last = max((i for i, m in enumerate(messages) if m["role"] == "user" and _speaks(m)), default=-1)
    for index, message in enumerate(messages):
        calls = message.get("tool_calls") or ()
        if index <= last or message["role"] != "assistant" or not calls:
            continue
        given = thought_signature(calls[0])
        name = (calls[0].get("function") or {}).get("name")
        if not given and "GE-01" in rules:
            yield Refusal(
                ("GE-01",),
                "Function call is missing a thought_signature in functionCall parts. This is required for tools "
                f"to work correctly. Additional data, function call 'default_api:{name}' , position {index + 1}.",
                type="INVALID_ARGUMENT",
            )
        token = unseal(given, THOUGHT_PREFIX)
        known = given == DUMMY_SIGNATURE or (token is not None and token.account == BACKEND)
        if given and not known and "GE-02" in rules:
            yield Refusal(("GE-02",), "Corrupted thought signature.", type="INVALID_ARGUMENT")


def _speaks(message: dict[str, Any]) -> bool:
    content = message.get("content")
    if isinstance(content, list):
        return any(isinstance(part, dict) and part.get("type") == "text" for part in content)
    return bool(content)


def _is_object(arguments: Any) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except (TypeError, ValueError):
        return False
