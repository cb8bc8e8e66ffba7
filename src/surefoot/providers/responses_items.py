"""Pure. Output items of one reply: what was stored → what may be replayed as input.

Owns: reasoning kept with the items it was issued with (OR-03, OR-04), item ids (OR-06,
OR-08), ciphertexts and plain reasoning (OR-05, OR-07, DS-05), known keys. Does not own:
the order of messages (`responses`).

A group is a reasoning item with the items that follow it up to the next one. Its members
return together with their server ids; a member whose reasoning cannot return, or that stands
behind one whose id cannot, goes without its id, which unlinks it (R10, R11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from surefoot.core.history import AssistantWords, Message
from surefoot.providers.shaping import is_object_json, is_typed, named, wire_arguments, wire_name

NAME = "responses"
PREFIXES: Mapping[str, str] = {"message": "msg_", "reasoning": "rs_", "function_call": "fc_"}
LINK_RULES = ("OR-03", "OR-04", "OR-13")
"""Where one of these is enforced, a call or message without its reasoning goes without its server id."""
_KEYS: Mapping[str, frozenset[str]] = {
    "message": frozenset({"type", "id", "role", "status", "content", "phase"}),
    "reasoning": frozenset({"type", "id", "summary", "content", "encrypted_content", "status"}),
    "function_call": frozenset(
        {"type", "id", "call_id", "name", "arguments", "status", "namespace", "caller"}
    ),
}
"""Keys a request may carry back, per item type; a type that is not listed returns whole."""


class Replay:
    """Replays the items of one history in order; it remembers which item ids have been used."""

    def __init__(
        self, contract: Mapping[str, Any], ids: Mapping[str, str], useless: frozenset[str] = frozenset()
    ) -> None:
        self._contract = contract
        self._ids = ids
        self._useless = useless
        self._used: set[str] = set()
        self._shown: dict[str, Mapping[str, Any]] = {}
        """Stored item id → the item that was shown for it, whether with its id or without."""
        self._linked_only = any(contract.get(f"rules.{rule}") == "enforce" for rule in LINK_RULES)

    def items(self, message: AssistantWords, *, foreign: bool) -> list[dict[str, Any]]:
        """The items of one reply; `foreign` when its reasoning was made for somebody else (R11)."""
        stored = message.raw.get("output") if message.wire == NAME else None
        given = [item for item in stored if is_typed(item)] if isinstance(stored, list) else []
        calls = [item for item in given if item.get("type") == "function_call"]
        if not given or len(calls) != len(message.calls):
            return self._rebuilt(message)
        return self._replayed(message, given, foreign)

    def _rebuilt(self, message: AssistantWords) -> list[dict[str, Any]]:
        """Text and calls of a reply that another wire stored."""
        shown: list[dict[str, Any]] = []
        if message.text.strip():
            shown.append({"role": "assistant", "content": message.text})
        for call in message.calls:
            arguments = wire_arguments(call.arguments, self._contract)
            own = {"name": wire_name(call.asked_name), "arguments": arguments}
            shown.append({"type": "function_call", "call_id": self._ids[call.call_id], **own})
        return shown

    def _replayed(
        self, message: AssistantWords, given: Sequence[Mapping[str, Any]], foreign: bool
    ) -> list[dict[str, Any]]:
        calls = iter(message.calls)
        shown: list[dict[str, Any]] = []
        waiting: dict[str, Any] | None = None  # a reasoning item whose follower has not come yet
        unlinked = foreign or self._linked_only
        for item in given:
            kind = item.get("type")
            if kind == "reasoning":
                thought = None if foreign else self._reasoning(item)
                if thought is not None and self._seen_before(thought):
                    continue
                waiting = None if thought is None else self._linked(thought)
                unlinked = waiting is None
                continue
            if kind == "function_call":
                call = next(calls)
                text = item.get("arguments")
                whole = isinstance(text, Mapping) and self._contract["arguments.type"] == "either"
                if not whole and (not isinstance(text, str) or (text.strip() and not is_object_json(text))):
                    text = call.arguments  # unwrapped where the contract declares a second level (S-18)
                arguments = wire_arguments(text, self._contract)
                own = {"call_id": self._ids[call.call_id], "name": wire_name(call.asked_name)}
                kept = {**self._known(item), **own, "arguments": arguments}
                if kept.get("status") != "completed":
                    kept.pop("status", None)  # a cut call is answered, never sent as cut (OR-14)
            elif kind == "message":
                kept = self._message(item)
                if not kept["content"]:
                    continue
            elif foreign:
                continue  # what a provider's own tool left is sealed for its issuer
            else:
                kept = self._known(item)
            if self._seen_before(kept):
                continue
            if waiting is not None:
                shown.append(waiting)
                waiting = None
            shown.append(self._identified(kept, drop=unlinked and kind in PREFIXES))
            unlinked = unlinked or (self._linked_only and "id" in kept and "id" not in shown[-1])
        return shown  # a reasoning item that nothing followed is left out (OR-04)

    def _reasoning(self, item: Mapping[str, Any]) -> dict[str, Any] | None:
        """The reasoning item for the wire, or None when it cannot return."""
        if named(item.get("id")) in self._useless:
            return None
        kept = self._known(item)
        for key in ("summary", "content"):
            if not isinstance(kept.get(key, []), list):
                del kept[key]  # parts are a list, or they are nothing anybody can read
        carrier = self._contract["reasoning.carrier"]
        if self._contract["reasoning.required"] in ("never", "forbidden"):
            return None
        if carrier == "item_text":
            kept = {key: value for key, value in kept.items() if key not in ("summary", "encrypted_content")}
            if not kept.get("content"):
                return None
        if carrier == "item_encrypted":
            kept.setdefault("summary", [])
            if not kept.get("encrypted_content"):
                return None  # under `store: false` its id alone names nothing (OR-05)
        return kept

    def _message(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """A message item as the model's own words, whatever else its server called them."""
        kept = {**self._known(item), "role": "assistant"}
        content = kept.get("content")
        parts = content if isinstance(content, list) else []
        kept["content"] = content if isinstance(content, str) else [one for one in parts if is_typed(one)]
        return kept

    def _linked(self, kept: dict[str, Any]) -> dict[str, Any] | None:
        """The reasoning item with its id, or None where the id cannot return and so names nothing."""
        identified = self._identified(kept, drop=False)
        return None if "id" in kept and "id" not in identified else identified

    def _seen_before(self, item: Mapping[str, Any]) -> bool:
        """Whether the same item was shown already (R7); else it is remembered. A call has a result of its own."""
        item_id = item.get("id")
        if not isinstance(item_id, str) or not item_id.strip() or item.get("type") == "function_call":
            return False
        return self._shown.setdefault(item_id, item) is not item and self._shown[item_id] == item

    def _identified(self, item: dict[str, Any], *, drop: bool) -> dict[str, Any]:
        """The item with its id where that fits and is free, else without (R10)."""
        item_id = item.get("id")
        if item_id is None:
            return item
        prefix = PREFIXES.get(str(item.get("type")), "") if self._contract["ids.item_prefixes"] else ""
        fits = isinstance(item_id, str) and bool(item_id.strip()) and item_id.startswith(prefix)
        if drop or not fits or item_id in self._used:
            return {key: value for key, value in item.items() if key != "id"}
        self._used.add(item_id)
        return item

    def _known(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """The item without added nulls (S-40) and without keys no request may carry."""
        keys = _KEYS.get(str(item.get("type"))) if self._contract["content.unknown_keys"] == "drop" else None
        return {
            key: value for key, value in item.items() if value is not None and (keys is None or key in keys)
        }


def useless_ids(messages: Sequence[Message]) -> frozenset[str]:
    """Ids of items that the provider said it removed from a request of ours (OR-12)."""
    found = set()
    for message in messages:
        told = message.raw.get("input_transformations") if isinstance(message, AssistantWords) else None
        for one in told if isinstance(told, list) else ():
            if isinstance(one, Mapping) and one.get("action") == "removed" and isinstance(one.get("id"), str):
                found.add(one["id"])
    return frozenset(found)
