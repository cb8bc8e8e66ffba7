"""Pure. The checks of the Responses wire, one per rule id.

Owns: what an encoded Responses request shows. Does not own: levels and copies of rules
(`rules`), validity of ciphertexts, which only their issuer knows (OR-07).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from surefoot.providers import effort
from surefoot.providers.shaping import is_object_json, named

Found = Iterator[tuple[str, str]]
_PREFIXES: Mapping[str, str] = {"message": "msg_", "reasoning": "rs_", "function_call": "fc_"}
_CALL_ID_LENGTH = 64
_OUTPUTS = ("function_call_output",)


def broken(request: Mapping[str, Any], contract: Mapping[str, Any]) -> Found:
    """Each broken rule of a Responses request with its position, in no order."""
    given = request.get("input")
    items = [item if isinstance(item, Mapping) else {} for item in given] if isinstance(given, list) else []
    yield from _chaining(request)
    yield from _pairing(items, contract, chained=bool(request.get("previous_response_id")))
    yield from _placed(items, contract["pairing.results_position"])
    yield from _ids(items, prefixed=contract["ids.item_prefixes"])
    yield from _groups(items)
    for number, item in enumerate(items):
        yield from _item(item, f"input.{number}", request, contract)
    if effort.demanded(request, contract):
        yield from _plain_reasoning(request, items)


def _kind(item: Mapping[str, Any]) -> str:
    """The type of an item; a message may leave it out."""
    return str(item.get("type") or ("message" if "role" in item else ""))


def _is_output(item: Mapping[str, Any]) -> bool:
    """Whether the model made it."""
    kind = _kind(item)
    return kind != "item_reference" and kind not in _OUTPUTS and item.get("role", "assistant") == "assistant"


def _chaining(request: Mapping[str, Any]) -> Found:
    """OR-11: a chain exists only at a provider that stored it."""
    if request.get("previous_response_id") is not None and request.get("store") is False:
        yield "OR-11", "previous_response_id"


def _pairing(items: list[Mapping[str, Any]], contract: Mapping[str, Any], *, chained: bool) -> Found:
    """OR-01, OR-02, and MM-03: results follow their calls, once."""
    asked: dict[str | None, int] = {}
    answered: set[str | None] = set()
    once = contract["pairing.duplicate_result"] == "reject"
    all_asked = {named(item.get("call_id")) for item in items if _kind(item) == "function_call"}
    for number, item in enumerate(items):
        call_id = named(item.get("call_id"))
        if _kind(item) == "function_call":
            if call_id in asked:
                yield "MM-03", f"input.{number}"
            asked.setdefault(call_id, number)
        elif _kind(item) in _OUTPUTS:
            if call_id not in all_asked and not chained:
                yield "OR-02", f"input.{number}"
            elif (call_id not in asked and not chained) or (once and call_id in answered):
                yield "MM-03", f"input.{number}"
            answered.add(call_id)
    for call_id, number in asked.items():
        if call_id not in answered:
            yield "OR-01", f"input.{number}"


def _placed(items: list[Mapping[str, Any]], position: str) -> Found:
    """OR-01 where results must stand nearer to their calls than in the same input."""
    if position == "same_input":
        return
    waits: dict[str | None, int] = {}
    results = turned = False
    for number, item in enumerate(items):
        kind = _kind(item)
        if kind in _OUTPUTS:
            waits.pop(named(item.get("call_id")), None)
            results = turned = True
            continue
        model = _is_output(item)
        if waits and (turned if model else position != "next_turn"):
            yield from (("OR-01", f"input.{opened}") for opened in waits.values())
            waits = {}
        if results and not model and position == "next_turn_only":
            yield "OR-01", f"input.{number}"  # words in the turn that belongs to results
        results, turned = False, not model
        if kind == "function_call":
            waits[named(item.get("call_id"))] = number


def _ids(items: list[Mapping[str, Any]], *, prefixed: bool) -> Found:
    """OR-06, OR-08: item ids are absent, or of their type's shape and unique."""
    used: set[str] = set()
    for number, item in enumerate(items):
        if "id" not in item or _kind(item) == "item_reference":
            continue
        item_id, prefix = item["id"], _PREFIXES.get(_kind(item), "") if prefixed else ""
        if not isinstance(item_id, str) or not item_id.strip() or not item_id.startswith(prefix):
            yield "OR-06", f"input.{number}"
        elif item_id in used:
            yield "OR-08", f"input.{number}"
        else:
            used.add(item_id)


def _groups(items: list[Mapping[str, Any]]) -> Found:
    """OR-03, OR-04: reasoning stands directly before what it was issued with, and never alone."""
    headed = False
    for number, item in enumerate(items):
        kind = _kind(item)
        if kind == "reasoning":
            follower = items[number + 1] if number + 1 < len(items) else {}
            if not _is_output(follower) or not follower:
                yield "OR-04", f"input.{number}"
            headed = True
            continue
        if not _is_output(item):
            headed = False
            continue
        if "id" in item and not headed:
            if kind == "function_call":
                yield "OR-03", f"input.{number}"
            elif kind == "message":
                yield "OR-04", f"input.{number}"


def _item(
    item: Mapping[str, Any], place: str, request: Mapping[str, Any], contract: Mapping[str, Any]
) -> Found:
    """OR-05, OR-07, OR-09, OR-10, OR-14, MM-02 on one item."""
    kind = _kind(item)
    if item.get("role") == "tool":
        yield "OR-10", place
    call_id = item.get("call_id")
    if isinstance(call_id, str) and len(call_id) > _CALL_ID_LENGTH:
        yield "OR-09", place
    if kind == "function_call":
        if item.get("status") == "incomplete":
            yield "OR-14", place
        arguments = item.get("arguments")
        as_object = isinstance(arguments, dict) and contract["arguments.type"] != "string"
        if not as_object and (not isinstance(arguments, str) or not is_object_json(arguments)):
            yield "MM-02", place
    stored = request.get("store") is not False
    if kind == "item_reference" and not stored:
        yield "OR-05", place
    if kind == "reasoning":
        sealed = item.get("encrypted_content")
        if sealed is None:
            if not stored and "id" in item and not item.get("content"):
                yield "OR-05", place
        elif not isinstance(sealed, str) or not sealed.strip():
            yield "OR-07", place
        if not all(isinstance(item.get(key, []), list) for key in ("content", "summary")):
            yield "MM-05", place


def _plain_reasoning(request: Mapping[str, Any], items: list[Mapping[str, Any]]) -> Found:
    """DS-05, MI-01: each group of calls is headed by the plain text of its reasoning; nothing is stored there."""
    if request.get("store") or request.get("previous_response_id") is not None:
        yield "DS-05", "store"
    headed = False
    for number, item in enumerate(items):
        kind = _kind(item)
        if kind == "reasoning":
            headed = _has_text(item)
            if item.get("encrypted_content") is not None:
                yield "DS-05", f"input.{number}"
        elif not _is_output(item):
            headed = False
        elif kind == "function_call" and not headed:
            yield "DS-05", f"input.{number}"
            yield "MI-01", f"input.{number}"


def _has_text(item: Mapping[str, Any]) -> bool:
    parts = item.get("content")
    told = [part for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []
    texts = (part.get("text") for part in told if part.get("type") == "reasoning_text")
    return any(isinstance(text, str) and text.strip() for text in texts)
