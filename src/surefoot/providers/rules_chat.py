"""Pure. The checks of the Chat Completions wire, one per rule id.

Owns: what an encoded Chat request shows. Does not own: levels and copies of rules (`rules`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from surefoot.providers import effort
from surefoot.providers.shaping import is_object_json, named

Found = Iterator[tuple[str, str]]
"""Rule id and position, e.g. `("OC-01", "messages.3")`."""

_CHAT_ID_LENGTH = 40
_ASIDE = ("system", "developer")
"""Roles whose messages stand outside the turns, wherever they stand."""
_ARGUMENTS: Mapping[str, tuple[type, ...]] = {"string": (str,), "object": (dict,), "either": (str, dict)}
"""The form of `arguments` by `arguments.type` (OC-08, LS-04)."""


def broken(request: Mapping[str, Any], contract: Mapping[str, Any]) -> Found:
    """Each broken rule of a Chat request with its position, in no order."""
    messages = request.get("messages")
    if not isinstance(messages, list):
        yield "OC-06", "messages"
        return
    yield from _pairing(messages, contract["pairing.results_position"])
    yield from _order(messages)
    yield from _repeated_ids(messages)
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping):
            yield "OC-06", f"messages.{number}"
            continue
        for one in _MESSAGE_CHECKS:
            yield from one(message, f"messages.{number}", contract)
    yield from _reasoning(request, messages, contract)


def _calls(message: Any) -> list[Any]:
    """The calls of a reply; a message of another role asks for nothing."""
    calls = message.get("tool_calls") if _role(message) == "assistant" else None
    return calls if isinstance(calls, list) else []


def _call_ids(message: Any) -> list[str | None]:
    return [named(call.get("id")) for call in _calls(message) if isinstance(call, Mapping)]


def _pairing(messages: list[Any], position: str) -> Found:
    """OC-01, OC-02, OC-03, OC-09, OC-12: one walk with the open batch."""
    if position in ("next_turn", "same_input"):
        yield from _pairing_apart(messages, turns=position == "next_turn")
        return
    asked: list[str | None] = []
    answered: list[str | None] = []
    opened = 0
    for number, message in enumerate(messages):
        role = _role(message)
        if role == "tool":
            call_id = named(message.get("tool_call_id"))
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
        if answered and role == "user" and position == "next_turn_only":
            yield "OC-01", f"messages.{number}"  # words in the turn that belongs to results
        asked, answered, opened = _call_ids(message), [], number
    if set(asked) - set(answered):
        yield "OC-01", f"messages.{opened}"


def _pairing_apart(messages: list[Any], *, turns: bool) -> Found:
    """OC-01, OC-02, OC-03 where other words may stand before a result: up to the next reply, or anywhere before it."""
    waits: dict[str | None, int] = {}
    answered: set[str | None] = set()
    for number, message in enumerate(messages):
        if _role(message) == "tool":
            call_id = named(message.get("tool_call_id"))
            if call_id not in waits and call_id not in answered:
                yield "OC-02", f"messages.{number}"
            elif call_id in answered:
                yield "OC-03", f"messages.{number}"
            else:
                answered.add(call_id)
                del waits[call_id]
        elif _role(message) == "assistant":
            if turns:
                yield from (("OC-01", f"messages.{opened}") for opened in waits.values())
                waits, answered = {}, set()
            waits |= dict.fromkeys(_call_ids(message), number)
            answered -= set(_call_ids(message))
    yield from (("OC-01", f"messages.{opened}") for opened in waits.values())


def _order(messages: list[Any]) -> Found:
    """LS-03: user and assistant alternate; tool rounds stand aside. MS-02, MS-04, GE-03, GL-01 beside it."""
    before = "system"
    if messages and not any(_role(one) == "user" for one in messages):
        yield "GL-01", "messages"
    for number, message in enumerate(messages):
        role = _role(message)
        if role == "user" and before == "tool":
            yield "MS-02", f"messages.{number}"
        if role == "user" and before == "user":
            yield "LS-03", f"messages.{number}"
        if role == "assistant" and before in ("system", "assistant"):
            yield "LS-03", f"messages.{number}"
            if _calls(message):
                yield "GE-03", f"messages.{number}"
        if role == "tool" and before not in ("assistant", "tool"):
            yield "MM-03", f"messages.{number}"
        before = role if isinstance(role, str) and role not in _ASIDE else before
    if before not in ("user", "tool"):
        yield "MS-04", f"messages.{len(messages) - 1}"


def _repeated_ids(messages: list[Any]) -> Found:
    """One id for two calls: KI-06 within a batch, GL-01 and MM-03 anywhere in the request."""
    used: set[Any] = set()
    for number, message in enumerate(messages):
        ids = _call_ids(message)
        if len(set(map(str, ids))) < len(ids):
            yield "KI-06", f"messages.{number}"
        if used & set(map(str, ids)):
            yield "GL-01", f"messages.{number}"
        if used & set(map(str, ids)) or len(set(map(str, ids))) < len(ids):
            yield "MM-03", f"messages.{number}"
        used |= set(map(str, ids))


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
        repeated = contract["ids.unique"] != "none" and ids.count(call_id) > 1
        if not isinstance(call_id, str) or not call_id or repeated:
            yield "OC-01", here  # such an id cannot be answered by exactly one result
        elif len(call_id) > limit:
            yield "OC-05", here
        if isinstance(call_id, str) and not re.fullmatch(r"[A-Za-z0-9]{9}", call_id):
            yield "MS-01", here
        name = function.get("name")
        if isinstance(call_id, str) and not re.fullmatch(rf"functions\.{re.escape(str(name))}:\d+", call_id):
            yield "KI-05", here
        if not isinstance(name, str) or not name:
            yield "DS-11", here
        arguments = function.get("arguments")
        if not isinstance(arguments, _ARGUMENTS[contract["arguments.type"]]):
            yield "OC-08", here
        elif isinstance(arguments, str) and not is_object_json(arguments):
            yield "LS-01", here


def _check_content(message: Mapping[str, Any], place: str, contract: Mapping[str, Any]) -> Found:
    """OC-06: null content stands only beside calls. GL-02: text parts are not empty; MI-02: content is text."""
    content = message.get("content")
    if isinstance(content, list):
        texts = [
            part.get("text") for part in content if isinstance(part, Mapping) and part.get("type") == "text"
        ]
        if any(not str(text or "").strip() for text in texts):
            yield "GL-02", place
    if content is not None:
        return
    yield "MI-02", place
    if contract["content.assistant_null"] == "ok" and message.get("role") == "assistant":
        return
    if not (message.get("role") == "assistant" and _calls(message)):
        yield "OC-06" if message.get("role") != "tool" else "OC-09", place


def _check_result(message: Mapping[str, Any], place: str, contract: Mapping[str, Any]) -> Found:
    """OC-07 outside the user's messages, LS-05 on results; OC-10 is LS-05 where plain text is demanded."""
    content, role = message.get("content"), message.get("role")
    parts = content if isinstance(content, list) else []
    kinds = {str(part.get("type")) for part in parts if isinstance(part, Mapping)}
    inline = role == "tool" and contract["content.result_media"] == "inline"
    if "image_url" in kinds and role != "user" and not inline:
        yield "OC-07", place
    if role != "tool" or content is None:
        return
    form = contract["content.result"]
    beyond_text = isinstance(content, list) and (form == "string" or bool(kinds - {"text"}))
    if isinstance(content, Mapping) != (form == "object") or (beyond_text and form != "parts"):
        yield "LS-05", place


_MESSAGE_CHECKS: tuple[Callable[[Mapping[str, Any], str, Mapping[str, Any]], Found], ...] = (
    _check_calls,
    _check_content,
    _check_result,
)


def _reasoning(request: Mapping[str, Any], messages: list[Any], contract: Mapping[str, Any]) -> Found:
    """Carriers that must stand, must not stand, must not be empty, or must be of their form."""
    last_user = max((n for n, one in enumerate(messages) if _role(one) == "user"), default=-1)
    demanded = effort.demanded(request, contract)
    for number, message in enumerate(messages):
        if _role(message) != "assistant":
            continue
        place = f"messages.{number}"
        yield from _carrier_form(message, place)
        yield from _signature(message, place, current=number > last_user)
        if demanded:
            yield from _carrier(message, place, tools=bool(request.get("tools")), current=number > last_user)
    yield from _pinned(request, messages)


def _carrier(message: Mapping[str, Any], place: str, *, tools: bool, current: bool) -> Found:
    """DS-02, DS-03, DS-08, KI-01, KI-02, MI-01: the text of `reasoning_content`."""
    carried, calls = message.get("reasoning_content"), bool(_calls(message))
    if isinstance(carried, str):
        if not carried.strip() and (calls or tools):
            yield "DS-08", place
        if not carried.strip() and calls:
            yield "MI-01", place
        return
    yield "KI-02", place
    if calls and current:
        yield "DS-02", place
    if tools:
        yield "DS-03", place
    if calls:
        yield "KI-01", place
        yield "MI-01", place


def _carrier_form(message: Mapping[str, Any], place: str) -> Found:
    """DS-01: none is sent. GL-03: whole text. MM-05, RT-03: every entry with its type."""
    if "reasoning_content" in message:
        yield "DS-01", place
        if not isinstance(message["reasoning_content"], str):
            yield "GL-03", place
    entries = message.get("reasoning_details", [])
    whole = isinstance(entries, list) and all(
        isinstance(one, Mapping) and isinstance(one.get("type"), str) for one in entries
    )
    if not whole:
        yield "MM-05", place
        yield "RT-03", place


def _signature(message: Mapping[str, Any], place: str, *, current: bool) -> Found:
    """GE-01: the first call of each step of the current turn is signed. GE-02: as it was received."""
    for number, call in enumerate(_calls(message)):
        signed = thought_signature(call)
        here = f"{place}.tool_calls.{number}"
        if signed is None:
            if number == 0 and current:
                yield "GE-01", here
        elif not isinstance(signed, str) or not signed.strip():
            yield "GE-02", here


def thought_signature(call: Any) -> Any:
    """The signature Gemini put beside a call, or None."""
    found = call
    for key in ("extra_content", "google", "thought_signature"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _pinned(request: Mapping[str, Any], messages: list[Any]) -> Found:
    """RT-04: while a tool loop is open, sealed reasoning needs the upstream that made it."""
    provider = request.get("provider")
    pinned = isinstance(provider, Mapping) and bool(provider.get("only") or provider.get("order"))
    if pinned or not messages or _role(messages[-1]) != "tool":
        return
    for number, message in enumerate(messages):
        entries = message.get("reasoning_details") if isinstance(message, Mapping) else None
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, Mapping) and (entry.get("signature") or entry.get("data")):
                yield "RT-04", f"messages.{number}"


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, Mapping) else None
