"""Pure. The checks of the Anthropic Messages wire, one per rule id.

Owns: what an encoded Messages request shows. Does not own: levels and copies of rules
(`rules`), validity of signatures, which only their issuer knows (AN-08, AN-09); here they
are checked as far as their form goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from surefoot.providers import effort
from surefoot.providers.shaping import named

Found = Iterator[tuple[str, str]]
Blocks = list[Mapping[str, Any]]
THINKING = ("thinking", "redacted_thinking")
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_BLOCK_KEYS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"type", "text", "citations", "cache_control"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "tool_use": frozenset({"type", "id", "name", "input", "caller", "toolset_name", "cache_control"}),
    "server_tool_use": frozenset({"type", "id", "name", "input", "caller", "cache_control"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "toolset_name", "cache_control"}),
    "image": frozenset({"type", "source", "cache_control"}),
}
_SERVER_RESULT_KEYS = frozenset({"type", "tool_use_id", "content", "caller", "cache_control"})
_MESSAGE_KEYS = frozenset({"role", "content"})


def broken(request: Mapping[str, Any], contract: Mapping[str, Any]) -> Found:
    """Each broken rule of a Messages request with its position, in no order."""
    given = request.get("messages")
    messages = [one if isinstance(one, Mapping) else {} for one in given] if isinstance(given, list) else []
    all_blocks = [_blocks(message) for message in messages]
    yield from _pairing(messages, all_blocks, contract["pairing.results_position"])
    yield from _ids(all_blocks, contract["ids.unique"])
    for number, (message, blocks) in enumerate(zip(messages, all_blocks, strict=True)):
        place = f"messages.{number}"
        yield from _message(message, blocks, place, last=number == len(messages) - 1)
        if contract["pairing.server_tool_pairs"]:
            yield from _server_pairs(blocks, place, pending=_waits(all_blocks, number))
        for at, block in enumerate(blocks):
            yield from _block(block, f"{place}.content.{at}")
    yield from _markers(request, all_blocks, contract)
    yield from _thinking(request, messages, all_blocks)
    if effort.demanded(request, contract):
        yield from _unsigned(messages, all_blocks)
    yield from _last(messages, all_blocks)


def _blocks(message: Mapping[str, Any]) -> Blocks:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [one if isinstance(one, Mapping) else {} for one in content] if isinstance(content, list) else []


def _of(blocks: Blocks, *kinds: str) -> Blocks:
    return [block for block in blocks if block.get("type") in kinds]


def _pairing(messages: list[Mapping[str, Any]], all_blocks: list[Blocks], position: str) -> Found:
    """AN-01 to AN-04: results first in the next message, all of them, no others, once each."""
    if position in ("next_turn", "same_input"):
        yield from _pairing_apart(messages, all_blocks, turns=position == "next_turn")
        return
    if position == "next_turn_only":
        yield from _beside_results(messages, all_blocks)
    asked: list[str | None] = []
    for number, (message, blocks) in enumerate(zip(messages, all_blocks, strict=True)):
        place = f"messages.{number}"
        results = [named(block.get("tool_use_id")) for block in _of(blocks, "tool_result")]
        user = message.get("role") == "user"
        if asked and (not user or set(asked) - set(results)):
            yield "AN-01", f"messages.{number - 1}"
        for at, block in enumerate(blocks):
            if block.get("type") != "tool_result":
                continue
            here, used = f"{place}.content.{at}", named(block.get("tool_use_id"))
            if used not in asked or not user:
                yield "AN-02", here
            elif results.index(used) != _rank(blocks, at):
                yield "AN-04", here
            if any(one.get("type") != "tool_result" for one in blocks[:at]):
                yield "AN-03", here
        uses = _of(blocks, "tool_use") if message.get("role") == "assistant" else []
        asked = [named(block.get("id")) for block in uses]
    if asked:
        yield "AN-01", f"messages.{len(messages) - 1}"


def _pairing_apart(messages: list[Mapping[str, Any]], all_blocks: list[Blocks], *, turns: bool) -> Found:
    """AN-01, AN-02, AN-04 where other words may stand before a result: up to the next reply, or anywhere before it."""
    waits: dict[str | None, int] = {}
    answered: set[str | None] = set()
    for number, (message, blocks) in enumerate(zip(messages, all_blocks, strict=True)):
        if message.get("role") == "assistant":
            if turns:
                yield from (("AN-01", f"messages.{opened}") for opened in waits.values())
                waits, answered = {}, set()
            asked = [named(block.get("id")) for block in _of(blocks, "tool_use")]
            waits |= dict.fromkeys(asked, number)
            answered -= set(asked)
        for at, block in enumerate(blocks):
            if block.get("type") != "tool_result":
                continue
            used = named(block.get("tool_use_id"))
            if used in waits and message.get("role") == "user":
                del waits[used]
                answered.add(used)
            else:
                yield "AN-04" if used in answered else "AN-02", f"messages.{number}.content.{at}"
    yield from (("AN-01", f"messages.{opened}") for opened in waits.values())


def _beside_results(messages: list[Mapping[str, Any]], all_blocks: list[Blocks]) -> Found:
    """AN-03 where the turn with results holds nothing else."""
    results = False
    for number, (message, blocks) in enumerate(zip(messages, all_blocks, strict=True)):
        results = results and message.get("role") == "user"
        for at, block in enumerate(blocks):
            if block.get("type") == "tool_result":
                results = True
            elif results:
                yield "AN-03", f"messages.{number}.content.{at}"


def _rank(blocks: Blocks, at: int) -> int:
    """The position of a result among the results of its message."""
    return sum(block.get("type") == "tool_result" for block in blocks[:at])


def _ids(all_blocks: list[Blocks], scope: str) -> Found:
    """AN-05, AN-06 on calls and results."""
    used: set[str | None] = set()
    for number, blocks in enumerate(all_blocks):
        used = used if scope == "request" else set()
        for at, block in enumerate(blocks):
            key = {"tool_use": "id", "tool_result": "tool_use_id"}.get(str(block.get("type")))
            if key is None:
                continue
            given, here = named(block.get(key)), f"messages.{number}.content.{at}"
            if given is None or not _ID.fullmatch(given):
                yield "AN-06", here
            if key == "id":
                if given in used and scope != "none":
                    yield "AN-05", here
                used.add(given)


def _message(message: Mapping[str, Any], blocks: Blocks, place: str, *, last: bool) -> Found:
    """AN-16 and AN-20 on a message."""
    if not blocks and not (last and message.get("role") == "assistant"):
        yield "AN-16", place
    if set(message) - _MESSAGE_KEYS:
        yield "AN-20", place


def _block(block: Mapping[str, Any], place: str) -> Found:
    """AN-08, AN-12, AN-13, AN-15 to AN-17, AN-20 on one block."""
    kind = str(block.get("type"))
    keys = _BLOCK_KEYS.get(kind, _SERVER_RESULT_KEYS if kind.endswith("_tool_result") else None)
    if keys is not None and set(block) - keys:
        yield "AN-20", place
    if kind == "text" and not str(block.get("text") or "").strip():
        yield "AN-16", place
    elif kind == "thinking":
        if not isinstance(block.get("thinking"), str):
            yield (
                "AN-13",
                place,
            )  # an empty text beside a signature is valid; a text that was cleaned away is not
        if "signature" not in block:
            yield "AN-12", place
        elif not isinstance(block["signature"], str) or not block["signature"].strip():
            yield "AN-08", place
            yield "AN-12", place
    elif kind == "redacted_thinking" and not isinstance(block.get("data"), str):
        yield "AN-12", place
    elif kind == "tool_result" and block.get("is_error") and _is_blank(block.get("content")):
        yield "AN-17", place
    if not _sealed(block):
        yield "AN-15", place


def _is_blank(content: Any) -> bool:
    """Whether a result says nothing: no text, or parts none of which says anything."""
    if not isinstance(content, list):
        return not isinstance(content, str) or not content.strip()
    parts = [part for part in content if isinstance(part, Mapping)]
    return all(part.get("type") == "text" and not str(part.get("text") or "").strip() for part in parts)


def _sealed(block: Mapping[str, Any]) -> bool:
    """Whether search results and citations still hold what only their issuer can read."""
    results, citations = block.get("content"), block.get("citations")
    for entry in results if isinstance(results, list) else ():
        is_result = isinstance(entry, Mapping) and entry.get("type") == "web_search_result"
        if is_result and not entry.get("encrypted_content"):
            return False
    for entry in citations if isinstance(citations, list) else ():
        is_citation = isinstance(entry, Mapping) and entry.get("type") == "web_search_result_location"
        if is_citation and not entry.get("encrypted_index"):
            return False
    return True


def _server_pairs(blocks: Blocks, place: str, *, pending: bool) -> Found:
    """AN-14: a server tool's result stands after its call in the same message, one for each."""
    waits: dict[str | None, int] = {}
    for at, block in enumerate(blocks):
        kind = str(block.get("type"))
        if kind.endswith("_tool_use"):
            waits[named(block.get("id"))] = at
        elif kind.endswith("_tool_result") and waits.pop(named(block.get("tool_use_id")), None) is None:
            yield "AN-14", f"{place}.content.{at}"
    yield from (("AN-14", f"{place}.content.{at}") for at in waits.values() if not pending)


def _waits(all_blocks: list[Blocks], number: int) -> bool:
    """Whether a paused turn stands last, whose server tools may still be without results (AN-15)."""
    return number == len(all_blocks) - 1


def _markers(request: Mapping[str, Any], all_blocks: list[Blocks], contract: Mapping[str, Any]) -> Found:
    """AN-18: no more cache markers than the endpoint takes, none on what it forbids them on."""
    most, forbidden = contract["cache.markers_max"], contract["cache.forbidden_on"]
    system, tools = request.get("system"), request.get("tools")
    outside = [*(system if isinstance(system, list) else ()), *(tools if isinstance(tools, list) else ())]
    marked = sum(isinstance(one, Mapping) and "cache_control" in one for one in outside)
    if marked > most:
        yield "AN-18", "tools"
    for number, blocks in enumerate(all_blocks):
        for at, block in enumerate(blocks):
            if "cache_control" not in block:
                continue
            marked += 1
            blank = block.get("type") == "text" and not str(block.get("text") or "").strip()
            if marked > most or block.get("type") in forbidden or (blank and "empty_text" in forbidden):
                yield "AN-18", f"messages.{number}.content.{at}"


def _thinking(
    request: Mapping[str, Any], messages: list[Mapping[str, Any]], all_blocks: list[Blocks]
) -> Found:
    """AN-07, AN-09 to AN-11: what stands where, as far as a request can show it."""
    thinking = request.get("thinking")
    mode = thinking.get("type") if isinstance(thinking, Mapping) else None
    spoken = [number for number, one in enumerate(messages) if one.get("role") == "assistant"]
    seen: set[str] = set()
    for number in spoken:
        for at, block in enumerate(all_blocks[number]):
            mark = named(block.get("signature") or block.get("data"))
            if block.get("type") in THINKING and mark:
                if mark in seen:  # one signature belongs to one block behind one prefix
                    yield "AN-09", f"messages.{number}.content.{at}"
                    if number == spoken[-1]:
                        yield "AN-07", f"messages.{number}.content.{at}"
                seen.add(mark)
    if not spoken:
        return
    last = spoken[-1]
    if mode in (None, "disabled") and _of(all_blocks[last], *THINKING):
        yield "AN-11", f"messages.{last}"
    head = _open_loop(messages, all_blocks)
    if mode == "enabled" and head is not None and all_blocks[head][0].get("type") not in THINKING:
        yield "AN-10", f"messages.{head}"


def _open_loop(messages: list[Mapping[str, Any]], all_blocks: list[Blocks]) -> int | None:
    """The assistant message at the head of a tool loop that is still open, or None."""
    words = [
        number
        for number, message in enumerate(messages)
        if message.get("role") == "user" and not _of(all_blocks[number], "tool_result")
    ]
    after = words[-1] if words else -1
    loop = [
        number
        for number, message in enumerate(messages)
        if number > after and message.get("role") == "assistant" and _of(all_blocks[number], "tool_use")
    ]
    return loop[0] if loop else None


def _unsigned(messages: list[Mapping[str, Any]], all_blocks: list[Blocks]) -> Found:
    """DS-04: thinking stands before the calls of its message, also if it is empty."""
    for number, blocks in enumerate(all_blocks):
        kinds = [block.get("type") for block in blocks]
        if messages[number].get("role") != "assistant" or "tool_use" not in kinds:
            continue
        if not any(kind in THINKING for kind in kinds[: kinds.index("tool_use")]):
            yield "DS-04", f"messages.{number}"


def _last(messages: list[Mapping[str, Any]], all_blocks: list[Blocks]) -> Found:
    """AN-19: the last message is of the user side; a paused turn of the provider's own tools goes back as it is."""
    if not messages or messages[-1].get("role") != "assistant":
        return
    if not any(str(block.get("type")).endswith("_tool_use") for block in all_blocks[-1]):
        yield "AN-19", f"messages.{len(messages) - 1}"
