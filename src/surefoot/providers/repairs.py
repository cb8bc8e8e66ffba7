"""Pure. The repairs of an incident on the wire copy: R9 to R11 and R14 (PR-50).

Owns: what one repair does to one message, and applying stored repairs again in every later
request. Does not own: which repairs a refusal needs (`ladder`), the repairs that every
ordinary request gets (`shaping` and the wires: R1 to R8, R10, R12, R13).
Promises: projection:pure, projection:no-invented-success.

A reasoning text never becomes visible text, no carrier is made up or moved, and the
stored history is never touched (PR-51).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from surefoot.core.history import CHAT_CARRIERS, THINKING_BLOCKS, AssistantWords, Message, ResultGiven

DROP_BLOCKS = "R9"
UNLINK = "R10"
OMIT_CARRIER = "R11"
REMOVE_SEGMENT = "R14"
Repair = tuple[str, int]
"""R-id and position of the message in the model view; at −1 stand R9, and R10 that sends the whole local input in
place of a chain: they are fields of the request."""


def repaired(messages: Sequence[Message], repairs: Iterable[Repair], *, offset: int = 0) -> list[Message]:
    """The messages with these repairs applied; whatever no repair names keeps its identity (PR-48)."""
    by_place: dict[int, set[str]] = {}
    for rid, place in repairs:
        if place < 0:
            continue  # a repair of the request itself: R9, or R10 of its chain
        by_place.setdefault(place + offset, set()).add(rid)
    gone: set[str] = set()
    shown: list[Message] = []
    for place, message in enumerate(messages):
        wanted = by_place.get(place, set())
        if isinstance(message, ResultGiven) and message.call.call_id in gone:
            continue
        if not isinstance(message, AssistantWords) or not wanted:
            shown.append(message)
            continue
        if REMOVE_SEGMENT in wanted:
            gone |= {call.call_id for call in message.calls}
            if message.text.strip():
                shown.append(_plain(message))
            continue
        if OMIT_CARRIER in wanted:
            message = without_carrier(message)
        if UNLINK in wanted:
            message = without_item_ids(message)
        shown.append(message)
    return shown


def asks_to_drop(repairs: Iterable[Repair]) -> bool:
    """Whether the request asks the service to drop foreign blocks itself (R9)."""
    return any(rid == DROP_BLOCKS for rid, _ in repairs)


def _plain(message: AssistantWords) -> AssistantWords:
    """R14: the visible text alone; structure and carriers go."""
    return dataclasses.replace(message, calls=(), wire="", raw={})


def has_carrier(message: Message) -> bool:
    """Whether the stored message carries hidden reasoning, a signature or a ciphertext."""
    return isinstance(message, AssistantWords) and without_carrier(message) is not message


def without_carrier(message: AssistantWords) -> AssistantWords:
    """R11: the message without its carriers, or itself when it has none."""
    strip = {"chat": _chat, "responses": _responses, "anthropic": _anthropic}.get(message.wire)
    raw = None if strip is None else strip(message.raw)
    return message if raw is None else dataclasses.replace(message, raw=raw)


def _chat(raw: Mapping[str, Any]) -> dict[str, Any] | None:
    kept = {key: value for key, value in raw.items() if key not in CHAT_CARRIERS}
    changed = len(kept) != len(raw)
    calls = raw.get("tool_calls")
    if isinstance(calls, list):
        unsigned = [_unsigned(call) for call in calls]
        changed = changed or unsigned != calls
        kept["tool_calls"] = unsigned
    return kept if changed else None


def _unsigned(call: Any) -> Any:
    """A call without the signature that stands beside it (GE-01)."""
    extra = call.get("extra_content") if isinstance(call, Mapping) else None
    google = extra.get("google") if isinstance(extra, Mapping) else None
    if not isinstance(extra, Mapping) or not isinstance(google, Mapping) or "thought_signature" not in google:
        return call
    rest = {key: value for key, value in google.items() if key != "thought_signature"}
    return {**call, "extra_content": {**extra, "google": rest}}


def _responses(raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """Reasoning items go, and the ids of the items that were linked to them."""
    items = raw.get("output")
    if not isinstance(items, list):
        return None
    kept = [_unlinked(item) for item in items if not _is(item, ("reasoning",))]
    return {**raw, "output": kept} if len(kept) != len(items) else None


def _anthropic(raw: Mapping[str, Any]) -> dict[str, Any] | None:
    blocks = raw.get("content")
    if not isinstance(blocks, list):
        return None
    kept = [block for block in blocks if not _is(block, THINKING_BLOCKS)]
    return {**raw, "content": kept} if len(kept) != len(blocks) else None


def without_item_ids(message: AssistantWords) -> AssistantWords:
    """R10: Responses items without their server ids; reasoning that would be left alone goes with them."""
    items = message.raw.get("output") if message.wire == "responses" else None
    if not isinstance(items, list) or not any(isinstance(item, Mapping) and "id" in item for item in items):
        return message
    kept = [_unlinked(item) for item in items if not _is(item, ("reasoning",))]
    return dataclasses.replace(message, raw={**message.raw, "output": kept})


def _unlinked(item: Any) -> Any:
    if not isinstance(item, Mapping) or not _is(item, ("message", "function_call")):
        return item
    return {key: value for key, value in item.items() if key != "id"}


def _is(item: Any, kinds: Sequence[str]) -> bool:
    return isinstance(item, Mapping) and item.get("type") in kinds
