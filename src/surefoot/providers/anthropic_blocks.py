"""Pure. Content blocks of one message: what was stored → what may be replayed.

Owns: thinking kept or left out (R11), server-tool halves kept together (AN-14), known
keys (AN-20), blank text (AN-16), results. Does not own: the order of all other messages (`shaping`, `anthropic`).

Blocks keep the order in which the provider sent them, and their text is never edited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from surefoot.core.history import THINKING_BLOCKS, AssistantWords, CallAsked, Message, ResultGiven, UserWords
from surefoot.providers import pictures
from surefoot.providers.shaping import (
    is_typed,
    named,
    replayed_arguments,
    result_content,
    strict_object,
    wire_name,
)
from surefoot.providers.written import CUT_FINISHES

_KEYS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"type", "text", "citations"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "tool_use": frozenset({"type", "id", "name", "input", "caller", "toolset_name"}),
    "server_tool_use": frozenset({"type", "id", "name", "input", "caller"}),
}
_RESULT_KEYS = frozenset({"type", "tool_use_id", "content", "caller"})
"""Keys a request may carry back, per block type and of every server tool's result; another type returns whole."""


def assistant_blocks(
    message: AssistantWords,
    contract: Mapping[str, Any],
    ids: Mapping[str, str],
    *,
    thinking: bool,
    demanded: bool,
    hosted: bool = True,
) -> list[dict[str, Any]]:
    """The blocks of an assistant message for the wire; empty when nothing of it can be shown.

    `thinking` says whether its carriers may return, `hosted` whether what the provider's own tools
    left may, and `demanded` whether the contract wants a carrier.
    """
    blocks = stored_blocks(message)
    uses = [block for block in blocks if block.get("type") == "tool_use"]
    if not blocks or len(uses) != len(message.calls):
        shown = _rebuilt(message, contract, ids)
    else:
        shown = _replayed(message, blocks, contract, ids, kinds=(thinking, hosted))
    if demanded and contract["reasoning.empty_ok"] and not _thinks_first(shown):
        shown.insert(0, {"type": "thinking", "thinking": contract["reasoning.placeholder"]})  # R8
    return [] if all(one["type"] in THINKING_BLOCKS for one in shown) else shown


def _thinks_first(blocks: Sequence[Mapping[str, Any]]) -> bool:
    """Whether thinking stands before the calls (DS-04)."""
    kinds = [block["type"] for block in blocks]
    head = kinds[: kinds.index("tool_use")] if "tool_use" in kinds else kinds
    return any(kind in THINKING_BLOCKS for kind in head)


def _rebuilt(
    message: AssistantWords, contract: Mapping[str, Any], ids: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Text and calls of a reply that another wire stored."""
    shown: list[dict[str, Any]] = []
    if message.text.strip():
        shown.append({"type": "text", "text": message.text})
    for call in message.calls:
        name, given = wire_name(call.asked_name), _input(call, None, contract)
        shown.append({"type": "tool_use", "id": ids[call.call_id], "name": name, "input": given})
    return shown


def _input(call: CallAsked, stored: Any, contract: Mapping[str, Any]) -> Any:
    """The arguments of a call as this wire has them, an object, or in the form a contract names (R2)."""
    form = contract["arguments.type"]
    if form == "string" or (form == "either" and isinstance(stored, str)):
        return replayed_arguments(call.arguments, contract)
    return stored if isinstance(stored, Mapping) else strict_object(call.arguments) or {}


def _replayed(
    message: AssistantWords,
    blocks: Sequence[Mapping[str, Any]],
    contract: Mapping[str, Any],
    ids: Mapping[str, str],
    *,
    kinds: tuple[bool, bool],
) -> list[dict[str, Any]]:
    thinking, hosted = kinds
    calls = iter(message.calls)
    shown: list[dict[str, Any]] = []
    for number, block in enumerate(blocks):
        kind = block.get("type")
        if kind == "tool_use":
            call = next(calls)
            given = _input(call, block.get("input"), contract)
            own = {"id": ids[call.call_id], "name": wire_name(call.asked_name), "input": given}
            shown.append({**_known(block, contract), **own})
            continue
        last = number == len(blocks) - 1
        if kind == "text":
            text = block.get("text")
            keep = isinstance(text, str) and bool(text.strip())  # AN-16
        elif kind in THINKING_BLOCKS:
            cut = last and message.raw.get("stop_reason") in CUT_FINISHES
            keep = thinking and not cut and _returns(block, contract)
        else:
            keep = hosted or not _is_half(block)  # what a provider's own tool left is sealed for it
        if keep:
            shown.append(_known(block, contract))
    return shown


def _returns(block: Mapping[str, Any], contract: Mapping[str, Any]) -> bool:
    """Whether a thinking block is one its issuer will know again (AN-12, AN-13, WC-9)."""
    if contract["reasoning.required"] in ("never", "forbidden"):
        return False
    if block.get("type") == "redacted_thinking":
        return isinstance(block.get("data"), str)
    signature = block.get("signature")
    signed = isinstance(signature, str) and bool(signature.strip())
    return isinstance(block.get("thinking"), str) and (
        signed or contract["reasoning.carrier"] != "thinking_signed"
    )


def _is_half(block: Mapping[str, Any]) -> bool:
    """Whether the block is a call of a server tool, or the result of one."""
    kind = str(block.get("type"))
    return kind.endswith(("_tool_use", "_tool_result"))


def _joint(block: Mapping[str, Any]) -> str | None:
    """The id that joins the two halves of a server tool's call and result."""
    return named(block.get("id" if str(block.get("type")).endswith("_tool_use") else "tool_use_id"))


def _can_return(use: Mapping[str, Any]) -> bool:
    """Whether a server tool's call has the form in which a request may bring it back."""
    name = use.get("name")
    return isinstance(name, str) and bool(name.strip()) and isinstance(use.get("input"), Mapping)


def whole_pairs(blocks: Sequence[dict[str, Any]], *, pending: bool) -> list[dict[str, Any]]:
    """The blocks without halves of server tools whose other half is not there (AN-14).

    One call and the first result behind it make a pair; a broken call takes its result with it (PR-51).
    A `pending` turn, one the provider paused, may still wait for results.
    """
    waits: dict[str, int] = {}
    kept = {place for place, block in enumerate(blocks) if not _is_half(block)}
    for place, block in enumerate(blocks):
        joint = None if place in kept else _joint(block)
        if joint is None:
            continue
        if str(block.get("type")).endswith("_tool_use"):
            if _can_return(block):
                waits[joint] = place
        elif joint in waits:
            kept |= {waits.pop(joint), place}
    if pending:
        kept |= set(waits.values())
    return [block for place, block in enumerate(blocks) if place in kept]


def rejoined(messages: Sequence[Message]) -> list[Message]:
    """The messages with nothing inside a turn of the provider that was stored as two replies (R1, AN-14).

    Two replies are one turn where the second holds the result of a server tool that the first asked for. Words
    that were stored between them stand behind the second one and its results; nothing else moves.
    """
    ordered: list[Message] = []
    held: list[Message] = []
    waiting: set[str] = set()
    for message in messages:
        if isinstance(message, UserWords) and waiting:
            held.append(message)
            continue
        if isinstance(message, AssistantWords):
            blocks = stored_blocks(message)
            joins = continues(waiting, blocks)
            if not joins:
                ordered, held = [*ordered, *held], []
            waiting = set() if message.calls else open_uses(blocks, waiting if joins else set())
        elif isinstance(message, UserWords):
            ordered, held = [*ordered, *held], []
        ordered.append(message)
    return [*ordered, *held]


def stored_blocks(message: AssistantWords) -> list[Mapping[str, Any]]:
    """The blocks of a reply of this wire; empty for one of another."""
    stored = message.raw.get("content") if message.wire == "anthropic" else None
    return [block for block in stored if is_typed(block)] if isinstance(stored, list) else []


def open_uses(blocks: Sequence[Mapping[str, Any]], before: Set[str] = frozenset()) -> set[str]:
    """The server tools that were asked for, here or `before`, and whose results are not there."""
    waiting = set(before)
    for block in blocks:
        joint = _joint(block) if _is_half(block) else None
        if joint is not None and str(block.get("type")).endswith("_tool_use"):
            waiting.add(joint)
        elif joint is not None:
            waiting.discard(joint)
    return waiting


def continues(waiting: Set[str], blocks: Sequence[Mapping[str, Any]]) -> bool:
    """Whether these blocks bring a result for which the reply before them waits."""
    brought = {_joint(one) for one in blocks if str(one.get("type")).endswith("_tool_result")}
    return bool(waiting & brought)


def _known(block: Mapping[str, Any], contract: Mapping[str, Any]) -> dict[str, Any]:
    """The block without added nulls (S-40) and without keys no request may carry (AN-20)."""
    kind = str(block.get("type"))
    known = _KEYS.get(kind, _RESULT_KEYS if kind.endswith("_tool_result") else None)
    keys = known if contract["content.unknown_keys"] == "drop" else None
    return {
        key: value
        for key, value in block.items()
        if value is not None and key != "cache_control" and (keys is None or key in keys)
    }


def is_paused(raw: Mapping[str, Any]) -> bool:
    """Whether this reply stopped in the middle of the provider's own work (S-29)."""
    return raw.get("stop_reason") == "pause_turn"


def has_server_use(blocks: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a call of a server tool stands here: what lets a paused turn go back as the last message (AN-19)."""
    return any(str(block.get("type")).endswith("_tool_use") for block in blocks)


def result_block(message: ResultGiven, wire_id: str, contract: Mapping[str, Any]) -> dict[str, Any]:
    """One result; error-flagged where it is one, never empty where the flag forbids it (AN-17)."""
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": wire_id}
    content = pictures.in_result(message, result_content(message, contract), contract, "anthropic")
    if not isinstance(content, str) or content.strip():
        block["content"] = content
    if message.is_error:
        block["is_error"] = True
    return block
