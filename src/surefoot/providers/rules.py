"""Pure. The validator: which rules of its contract an encoded Chat request breaks.

Owns: one check per rule id (WC-8). Does not own: the levels (`contracts`), repairs
(`projection`), refusals of a server (`diagnosis`). The strict emulator in `testing`
has its own checks and shares no code with these (WE-2).
Promises: projection:valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.providers.projection import is_object_json

Found = Iterator[tuple[str, str]]
"""Rule id and position, e.g. `("OC-01", "messages.3")`."""

CLASSES: Mapping[str, str] = {
    "OC-01": "replay_pairing",
    "OC-02": "replay_pairing",
    "OC-03": "replay_pairing",
    "OC-04": "schema",
    "OC-05": "replay_ids",
    "OC-06": "schema",
    "OC-07": "schema",
    "OC-08": "replay_arguments",
    "OC-09": "replay_pairing",
    "OC-12": "replay_pairing",
    "DS-01": "replay_reasoning",
    "DS-02": "replay_reasoning",
    "DS-03": "replay_reasoning",
    "DS-06": "replay_pairing",
    "DS-08": "replay_reasoning",
    "DS-11": "schema",
    "KI-01": "replay_reasoning",
    "KI-03": "replay_pairing",
    "KI-04": "replay_pairing",
    "LS-01": "replay_arguments",
    "LS-02": "replay_arguments",
    "LS-03": "replay_pairing",
    "LS-05": "schema",
    "MS-01": "replay_ids",
    "MS-02": "replay_pairing",
}
_COPIES: Mapping[str, tuple[str, ...]] = {
    "OC-01": ("DS-06", "KI-04"),
    "OC-02": ("DS-06", "KI-03"),
    "LS-01": ("LS-02",),
}
"""Rules of other hosts that say the same thing; the contract names which of them counts."""
_CHAT_ID_LENGTH = 40


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule of one request."""

    rule: str
    kind: str
    """The class of the refusal it would bring: a kind of `diagnosis`."""
    position: str
    level: str
    """`enforce` or `suspect`."""


def check(request: Mapping[str, Any], contract: Mapping[str, Any]) -> list[Finding]:
    """Every finding of an encoded Chat request, in request order; empty for a valid one."""
    found: list[Finding] = []
    for rule, position in sorted(_all(request, contract), key=_by_position):
        for name in (rule, *_COPIES.get(rule, ())):
            level = contract.get(f"rules.{name}", "off")
            finding = Finding(name, CLASSES[name], position, level)
            if level != "off" and finding not in found:
                found.append(finding)
    return found


def refusing(findings: list[Finding]) -> list[Finding]:
    """The findings for which a request is never sent (WC-5)."""
    return [finding for finding in findings if finding.level == "enforce"]


def _by_position(item: tuple[str, str]) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", item[1])]


def _all(request: Mapping[str, Any], contract: Mapping[str, Any]) -> Found:
    messages = request.get("messages")
    if not isinstance(messages, list):
        yield "OC-06", "messages"
        return
    yield from _pairing(messages)
    yield from _order(messages)
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping):
            yield "OC-06", f"messages.{number}"
            continue
        for one in _MESSAGE_CHECKS:
            yield from one(message, f"messages.{number}", contract)
    yield from _reasoning(request, messages, contract)


def _calls(message: Any) -> list[Any]:
    calls = message.get("tool_calls") if isinstance(message, Mapping) else None
    return calls if isinstance(calls, list) else []


def _call_ids(message: Any) -> list[Any]:
    return [call.get("id") for call in _calls(message) if isinstance(call, Mapping)]


def _pairing(messages: list[Any]) -> Found:
    """OC-01, OC-02, OC-03, OC-09, OC-12: one walk with the open batch."""
    asked: list[Any] = []
    answered: list[Any] = []
    opened = 0
    for number, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role == "tool":
            call_id = message.get("tool_call_id")
            if call_id not in asked:
                yield "OC-02", f"messages.{number}"
            elif answered.count(call_id) >= asked.count(call_id):
                yield "OC-03", f"messages.{number}"
            answered.append(call_id)
            continue
        if set(asked) - set(answered):
            yield "OC-01", f"messages.{opened}"
            if not answered and role == "assistant" and _calls(message):
                yield "OC-12", f"messages.{number}"
        asked, answered, opened = _call_ids(message), [], number
    if set(asked) - set(answered):
        yield "OC-01", f"messages.{opened}"


def _order(messages: list[Any]) -> Found:
    """LS-03: user and assistant alternate; tool rounds stand aside. MS-02 beside it."""
    before = "system"
    for number, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role == "user" and before == "tool":
            yield "MS-02", f"messages.{number}"
        if role == "user" and before == "user":
            yield "LS-03", f"messages.{number}"
        if role == "assistant" and before in ("system", "assistant"):
            yield "LS-03", f"messages.{number}"
        before = role if isinstance(role, str) else before


def _check_calls(message: Mapping[str, Any], place: str, contract: Mapping[str, Any]) -> Found:
    """OC-04, OC-05, OC-08, DS-11, LS-01, MS-01 on each call."""
    calls = message.get("tool_calls")
    if calls is None and "tool_calls" not in message:
        return
    if not isinstance(calls, list) or not calls:
        yield "OC-04", place
        return
    limit = contract["ids.max_length"] or _CHAT_ID_LENGTH
    ids = _call_ids(message)
    for number, call in enumerate(calls):
        here = f"{place}.tool_calls.{number}"
        function = call.get("function") if isinstance(call, Mapping) else None
        function = function if isinstance(function, Mapping) else {}
        call_id = call.get("id") if isinstance(call, Mapping) else None
        if not isinstance(call_id, str) or not call_id or ids.count(call_id) > 1:
            yield "OC-01", here  # such an id cannot be answered by exactly one result
        elif len(call_id) > limit:
            yield "OC-05", here
        if isinstance(call_id, str) and not re.fullmatch(r"[A-Za-z0-9]{9}", call_id):
            yield "MS-01", here
        if not isinstance(function.get("name"), str):
            yield "DS-11", here
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            yield "OC-08", here
        elif not is_object_json(arguments):
            yield "LS-01", here


def _check_content(message: Mapping[str, Any], place: str, contract: Mapping[str, Any]) -> Found:
    """OC-06: null content stands only beside calls."""
    if message.get("content") is not None:
        return
    if not (message.get("role") == "assistant" and _calls(message)):
        yield "OC-06" if message.get("role") != "tool" else "OC-09", place


def _check_result(message: Mapping[str, Any], place: str, contract: Mapping[str, Any]) -> Found:
    """OC-07, LS-05 on results."""
    if message.get("role") != "tool" or not isinstance(message.get("content"), list):
        return
    yield "LS-05", place
    if any(isinstance(part, Mapping) and part.get("type") == "image_url" for part in message["content"]):
        yield "OC-07", place


_MESSAGE_CHECKS: tuple[Callable[[Mapping[str, Any], str, Mapping[str, Any]], Found], ...] = (
    _check_calls,
    _check_content,
    _check_result,
)


def _reasoning(request: Mapping[str, Any], messages: list[Any], contract: Mapping[str, Any]) -> Found:
    """DS-01, DS-02, DS-03, DS-08, KI-01: carriers that must stand, must not stand, or must not be empty."""
    last_user = max((n for n, one in enumerate(messages) if _role(one) == "user"), default=-1)
    tools = bool(request.get("tools"))
    for number, message in enumerate(messages):
        if _role(message) != "assistant":
            continue
        place, carried, calls = f"messages.{number}", message.get("reasoning_content"), bool(_calls(message))
        if "reasoning_content" in message:
            yield "DS-01", place
        if not isinstance(carried, str):
            if calls and number > last_user:
                yield "DS-02", place
            if tools:
                yield "DS-03", place
            if calls:
                yield "KI-01", place
        elif not carried.strip() and (calls or tools):
            yield "DS-08", place


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, Mapping) else None
