"""Pure. Which ordinary repairs a request shows: read off the outcome, beside what is stored.

Owns: naming R1 to R3, R6 to R8 and R10 to R13 by what stands in the request and what does not. Does
not own: making any of them (`shaping` and the wires), repairs of an incident (`repairs`).

What is told here is what left, whichever part of a wire did it: a carrier that is stored and not
sent was omitted, an id that is stored and not sent was aliased or unlinked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from surefoot.core.history import (
    CHAT_CARRIERS,
    THINKING_BLOCKS,
    AssistantWords,
    Message,
    ResultGiven,
    UserWords,
)
from surefoot.providers.anthropic_blocks import rejoined
from surefoot.providers.port import ModelRequest
from surefoot.providers.repairs import Repair, has_carrier
from surefoot.providers.shaping import (
    ANSWER_BRIDGE,
    BRIDGE,
    demands_carrier,
    in_order,
    is_object_json,
    messages_of,
    wire_ids,
    without_copies,
)

LADDER = tuple("R0 R1 R2 R3 R4 R7 R5 R6 R8 R9 R10 R11 R12 R13 R14 R15 R16 R17".split())  # noqa: SIM905
"""The order of PR-50."""
_LINKED = ("message", "function_call")
Told = Iterator[tuple[str, Message | None]]


def in_ladder_order(repairs: Iterable[Repair]) -> tuple[Repair, ...]:
    """Each repair once, by the order of the ladder and then by position."""
    return tuple(sorted(set(repairs), key=lambda one: (LADDER.index(one[0]), one[1])))


def place_of(history: Sequence[Message]) -> Callable[[Message | None], int]:
    """Where a message stands in the history, also one that a repair made anew; −1 for none."""
    known: dict[Any, int] = {}
    for place, one in enumerate(history):
        known.setdefault(id(one), place)
        for key in _keys(one):
            known.setdefault(key, place)
    return lambda one: next(
        (known[key] for key in (id(one), *(_keys(one) if one is not None else ())) if key in known), -1
    )


def _keys(one: Message) -> tuple[Any, ...]:
    """What names a message beside its identity. A missing result is known by the call that wants it."""
    if isinstance(one, ResultGiven):
        return (("result", one.call.call_id), ("call", one.call.call_id))
    if isinstance(one, AssistantWords):
        return (("reply", one.entry_position), *(("call", call.call_id) for call in one.calls))
    return ()


def ordinary(
    request: ModelRequest, body: Mapping[str, Any], contract: Mapping[str, Any], *, wire: str
) -> Told:
    """The ordinary repairs of an encoded request, each with the message it was made on."""
    shown = request.messages
    ordered = in_order(shown, contract)
    yield from _order(shown, ordered, contract)
    if request.hosted and _marked(body) < _declared(request, contract):
        yield "R4", None
    if wire == "anthropic" and contract["pairing.server_tool_pairs"]:
        yield from _rejoined(ordered)
    if contract["tools.mode"] == "native" and "previous_response_id" not in body:
        yield from _ids(ordered, contract)
        yield from _arguments(ordered, contract)
        yield from _carriers(ordered, body, contract, wire)
        yield from _placeholders(ordered, request, body, contract)
    yield from _shapes(ordered, contract)
    yield from _bridges(ordered, body)


def _marked(body: Mapping[str, Any]) -> int:
    return sum("cache_control" in tool for tool in body.get("tools") or ())


def _declared(request: ModelRequest, contract: Mapping[str, Any]) -> int:
    """How many cache markers the contract's own forms of hosted tools would bring."""
    return sum("cache_control" in contract["tools.hosted_forms"][kind] for kind in request.hosted)


def _order(shown: Sequence[Message], ordered: Sequence[Message], contract: Mapping[str, Any]) -> Told:
    """R12 for a result without its call, R7 for a second one and for a second copy of a reply, R1 for a result
    that stood elsewhere."""
    once = without_copies(shown)
    left = Counter(map(id, once))
    for one in shown:
        left[id(one)] -= 1
        if left[id(one)] < 0:
            yield "R7", one
    asked = {call.call_id for one in shown if isinstance(one, AssistantWords) for call in one.calls}
    seen: set[str] = set()
    kept: list[Message] = []
    for one in once:
        if isinstance(one, ResultGiven):
            if one.call.call_id not in asked:
                if contract["pairing.orphan_result"] != "accept":
                    yield "R12", one
            elif one.call.call_id in seen and contract["pairing.duplicate_result"] != "accept":
                yield "R7", one
                continue
            seen.add(one.call.call_id)
        kept.append(one)
    for before, after in zip(kept, ordered, strict=False):
        if before is not after and isinstance(after, ResultGiven):
            yield "R1", after


def _rejoined(ordered: Sequence[Message]) -> Told:
    """R1 for words that were stored inside a turn of the provider and stand behind it."""
    for before, after in zip(ordered, rejoined(ordered), strict=True):
        if before is not after and isinstance(before, UserWords):
            yield "R1", before


def _ids(ordered: Sequence[Message], contract: Mapping[str, Any]) -> Told:
    used = wire_ids(ordered, contract)
    for one in ordered:
        if isinstance(one, AssistantWords) and any(
            used[call.call_id] != call.provider_call_id for call in one.calls
        ):
            yield "R3", one


def _arguments(ordered: Sequence[Message], contract: Mapping[str, Any]) -> Told:
    for one in ordered:
        for call in one.calls if isinstance(one, AssistantWords) else ():
            if not call.arguments.strip():
                yield "R2", one
            elif contract["arguments.history_json"] and not is_object_json(call.arguments):
                yield "R13", one


def _shapes(ordered: Sequence[Message], contract: Mapping[str, Any]) -> Told:
    """R2: what stands for a blank result, and neighbours of one role that were joined."""
    before: Message | None = None
    for one in ordered:
        if isinstance(one, ResultGiven) and not one.text.strip():
            failed = one.is_error and contract["content.error_result_text"]
            if failed or contract["content.empty_result"] == "text":
                yield "R2", one
        joins = contract["pairing.same_role_neighbours"] == "merge" and contract["tools.mode"] == "native"
        if joins and isinstance(one, UserWords) and isinstance(before, UserWords):
            yield "R2", one
        before = one


def _carriers(
    ordered: Sequence[Message], body: Mapping[str, Any], contract: Mapping[str, Any], wire: str
) -> Told:
    """R11 for reasoning that is stored and not sent, R10 for the server's id of an item that is, R7 for an item
    that stood before."""
    sent, ids = _carriers_sent(body), _item_ids(body)
    seen: dict[str, Any] = {}
    for one in ordered:
        if not isinstance(one, AssistantWords) or not one.raw:
            continue
        if one.wire != wire:
            if has_carrier(one):
                yield "R11", one
            continue
        if any(carrier not in sent for carrier in _stored_carriers(one.raw)):
            yield "R11", one
        items = one.raw.get("output")
        items = [item for item in items if _kind(item) in _LINKED] if isinstance(items, list) else []
        linked = [item.get("id") for item in _new(items, seen)]
        if len(linked) < len(items):
            yield "R7", one
        gone = Counter(one_id for one_id in linked if isinstance(one_id, str) and one_id) - ids
        ids.subtract(one_id for one_id in linked if isinstance(one_id, str))
        if gone:
            yield "R10", one


def _new(items: Sequence[Any], seen: dict[Any, Any]) -> list[Any]:
    """The items but for copies of words that stood before; what is new is remembered in `seen`."""
    found = []
    for item in items:
        identity = item.get("id")
        if identity and seen.get(identity) == item and _kind(item) != "function_call":
            continue
        seen.setdefault(identity, item)
        found.append(item)
    return found


def _placeholders(
    ordered: Sequence[Message], request: ModelRequest, body: Mapping[str, Any], contract: Mapping[str, Any]
) -> Told:
    """R8: an empty carrier where the contract declares it and none is stored."""
    if not contract["reasoning.empty_ok"] or contract["reasoning.placeholder"] not in _texts_of_carriers(
        body
    ):
        return
    last = max((n for n, one in enumerate(ordered) if isinstance(one, UserWords)), default=-1)
    for place, one in enumerate(ordered):
        if not isinstance(one, AssistantWords) or has_carrier(one):
            continue
        if demands_carrier(contract, bool(one.calls), tools=bool(request.tools), since_user=place > last):
            yield "R8", one


def _bridges(ordered: Sequence[Message], body: Mapping[str, Any]) -> Told:
    """R6: constant words that nobody said."""
    said = [one.text for one in ordered if not isinstance(one, ResultGiven)]
    for message in messages_of(body) or ():
        words = message.get("content")
        if words in (BRIDGE, ANSWER_BRIDGE) and words not in said:
            yield "R6", None


def _stored_carriers(raw: Mapping[str, Any]) -> list[str]:
    """What of a stored reply carries reasoning, each in one comparable form."""
    found = [_form(key, raw[key]) for key in CHAT_CARRIERS if raw.get(key) is not None]
    calls = raw.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        found += _signatures(call)
    for name in ("content", "output"):
        parts = raw.get(name)
        found += [form for part in parts if (form := _part(part))] if isinstance(parts, list) else []
    return found


def _carriers_sent(body: Mapping[str, Any]) -> set[str]:
    sent: set[str] = set()
    for message in body.get("messages") or ():
        sent |= set(_stored_carriers(message))
    return sent | {form for item in body.get("input") or () if (form := _part(item))}


def _texts_of_carriers(body: Mapping[str, Any]) -> set[Any]:
    """The reasoning texts of a request, blank ones included."""
    found: set[Any] = set()
    for message in body.get("messages") or ():
        found |= {message[key] for key in CHAT_CARRIERS if isinstance(message.get(key), str)}
        for call in message.get("tool_calls") or ():
            google = ((call.get("extra_content") or {}).get("google")) or {}
            found |= {google["thought_signature"]} if "thought_signature" in google else set()
        blocks = message.get("content")
        found |= {
            block.get("thinking")
            for block in (blocks if isinstance(blocks, list) else ())
            if _kind(block) == "thinking" and isinstance(block.get("thinking"), str)
        }
    return found


def _part(part: Any) -> str | None:
    """One comparable form of a thinking block or a reasoning item; None for anything else."""
    kind = _kind(part)
    if kind in THINKING_BLOCKS:
        return _form(kind, [part.get("thinking"), part.get("signature"), part.get("data")])
    if kind == "reasoning":
        return _form(kind, part.get("encrypted_content") or part.get("content") or part.get("summary"))
    return None


def _signatures(call: Any) -> list[str]:
    extra = call.get("extra_content") if isinstance(call, Mapping) else None
    google = extra.get("google") if isinstance(extra, Mapping) else None
    signed = isinstance(google, Mapping) and google.get("thought_signature")
    return [_form("thought_signature", signed)] if signed else []


def _form(kind: str, value: Any) -> str:
    return json.dumps([kind, value], ensure_ascii=False, sort_keys=True, default=str)


def _kind(part: Any) -> str:
    return str(part.get("type") or "") if isinstance(part, Mapping) else ""


def _item_ids(body: Mapping[str, Any]) -> Counter[str]:
    return Counter(item["id"] for item in body.get("input") or () if isinstance(item.get("id"), str))
