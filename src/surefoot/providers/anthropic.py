"""Pure. The Anthropic Messages wire: request bodies out, replies in.

Owns: the JSON of a Messages request. Does not own: stored blocks on replay
(`anthropic_blocks`), decoding (`anthropic_stream`), order and ids of history (`shaping`).
Promises: projection:pure, projection:prefix-stable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from surefoot.core.history import AssistantWords, UserWords
from surefoot.providers import pictures
from surefoot.providers.anthropic_blocks import (
    assistant_blocks,
    continues,
    has_server_use,
    is_paused,
    open_uses,
    rejoined,
    result_block,
    whole_pairs,
)
from surefoot.providers.anthropic_stream import AnthropicDecoder
from surefoot.providers.hosted import forms
from surefoot.providers.port import Decoder, ModelRequest, ToolSpec
from surefoot.providers.shaping import (
    ANSWER_BRIDGE,
    BRIDGE,
    bridge_after,
    demands_carrier,
    in_order,
    is_foreign,
    made_elsewhere,
    object_schema,
    orphan_text,
    parts_results,
    user_text,
    wire_ids,
)

NAME = "anthropic"
ANSWER_TOKENS = 8192
"""The wire demands an output limit; this one stands where the caller gives none."""
THINKING_TOKENS: Mapping[str, int] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16384,
    "xhigh": 24576,
    "max": 32768,
}
"""Effort → tokens of thinking; a word only a contract of the owner knows counts as `high`."""


class AnthropicWire:
    """The `Wire` of Anthropic Messages. Holds nothing; one instance serves every endpoint."""

    name = NAME
    path = "/messages"
    key_header = "x-api-key"
    key_form = "{key}"
    headers: Mapping[str, str] = MappingProxyType({"anthropic-version": "2023-06-01"})

    def encode(self, request: ModelRequest, contract: Mapping[str, Any]) -> dict[str, Any]:
        """The request body. Same input, same bytes; healthy prefixes never change."""
        thinking = _thinking(request)
        budget = thinking.get("budget_tokens", 0) if thinking is not None else 0
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": (request.max_output_tokens or ANSWER_TOKENS) + budget,
        }
        if request.system.strip():
            body["system"] = request.system
        body["messages"] = _messages(request, contract)
        tools = [*(_tool(tool) for tool in request.tools), *forms(request.hosted, contract)]
        if tools:
            body["tools"] = tools
        if thinking is not None:
            body["thinking"] = thinking
        if request.temperature is not None and not budget:
            body["temperature"] = request.temperature
        body["stream"] = request.stream
        return body

    def decoder(self, contract: Mapping[str, Any], *, stream: bool) -> Decoder:
        """A fresh decoder. A stream may be answered with one JSON body; it is read either way."""
        del stream
        return AnthropicDecoder(contract)


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": object_schema(tool.parameters),
    }


def _thinking(request: ModelRequest) -> dict[str, Any] | None:
    if request.effort is None:
        return None
    if request.effort == "none":
        return {"type": "disabled"}
    budget = THINKING_TOKENS.get(request.effort, THINKING_TOKENS["high"])
    return {"type": "enabled", "budget_tokens": budget}


def _messages(request: ModelRequest, contract: Mapping[str, Any]) -> list[dict[str, Any]]:
    pairs = contract["pairing.server_tool_pairs"]
    ordered = in_order(request.messages, contract)
    ordered = rejoined(ordered) if pairs else ordered
    ids = wire_ids(ordered, contract)
    shown: list[dict[str, Any]] = []
    paused = False
    for place, message in enumerate(ordered):
        if isinstance(message, AssistantWords):
            blocks = _assistant(message, request, contract, ids)
            if not blocks:
                continue
            if pairs and ((paused and has_server_use(shown[-1]["content"])) or _goes_on(shown, blocks)):
                # One turn of the provider in two replies: its halves belong together (AN-14).
                shown[-1]["content"] = [*shown[-1]["content"], *blocks]
            else:
                shown.append({"role": "assistant", "content": blocks})
            paused = is_paused(message.raw) and message.wire == NAME
            continue
        paused = False
        if isinstance(message, UserWords):
            if user_text(message).strip():
                shown.append({"role": "user", "content": user_text(message)})
        elif message.call.call_id in ids:
            _add_result(shown, result_block(message, ids[message.call.call_id], contract))
            shown += pictures.behind(ordered, place, contract, NAME)
        else:
            shown.append({"role": "user", "content": orphan_text(message)})
    shown = _parted(_paired(shown, paused=paused) if pairs else shown, contract)
    if not shown:
        shown.append({"role": "user", "content": BRIDGE})  # a repair left nothing of what a cut had left
    if not (paused and has_server_use(shown[-1]["content"])):
        shown += bridge_after(shown, contract)
    return _joined(shown) if contract["pairing.same_role_neighbours"] == "merge" else shown


def _goes_on(shown: Sequence[dict[str, Any]], blocks: Sequence[Mapping[str, Any]]) -> bool:
    """Whether these blocks bring what the assistant message that stands last still waits for."""
    last = shown[-1] if shown else None
    return last is not None and last["role"] == "assistant" and continues(open_uses(last["content"]), blocks)


def _parted(shown: Sequence[dict[str, Any]], contract: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Constant words between two replies, and a constant answer between results and the words after them, where the
    contract parts these two (R6, BR-03).

    Results that want a turn of their own have it without one, unless neighbours of one role are merged.
    """
    after, merges = contract["pairing.after_results"], contract["pairing.same_role_neighbours"] == "merge"
    bridges = parts_results(contract) or (after == "own_turn" and merges)
    parted: list[dict[str, Any]] = []
    for message in shown:
        results = bool(parted) and parted[-1]["role"] == "user" and isinstance(parted[-1]["content"], list)
        if bridges and results and message["role"] == "user":
            parted.append({"role": "assistant", "content": ANSWER_BRIDGE})
        if message["role"] == "assistant":
            parted += bridge_after(parted, contract)
        parted.append(message)
    return parted


def _paired(shown: Sequence[dict[str, Any]], *, paused: bool) -> list[dict[str, Any]]:
    """The messages without halves of server tools; one that held nothing else is left out."""
    kept = []
    for number, message in enumerate(shown):
        if message["role"] == "assistant":
            pending = paused and number == len(shown) - 1
            message = {**message, "content": whole_pairs(message["content"], pending=pending)}
        if message["content"]:
            kept.append(message)
    return kept


def _assistant(
    message: AssistantWords, request: ModelRequest, contract: Mapping[str, Any], ids: Mapping[str, str]
) -> list[dict[str, Any]]:
    off = request.effort == "none"
    forbidden = contract["reasoning.off_forbids"] and request.effort in (None, "none")
    demanded = not off and demands_carrier(
        contract, bool(message.calls), tools=bool(request.tools), since_user=True
    )
    foreign = is_foreign(message, request.model, request.endpoint, contract)
    hosted = not made_elsewhere(message, request.endpoint, contract)
    return assistant_blocks(
        message, contract, ids, thinking=not foreign and not forbidden, demanded=demanded, hosted=hosted
    )


def _add_result(shown: list[dict[str, Any]], block: dict[str, Any]) -> None:
    """Results of one batch stand together in the one message after it (AN-01, AN-03)."""
    last = shown[-1] if shown else None
    if last is not None and last["role"] == "user" and isinstance(last["content"], list):
        last["content"].append(block)
        return
    shown.append({"role": "user", "content": [block]})


def _joined(shown: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbours of one role in one message, results first, for servers whose template alternates (LS-03)."""
    joined: list[dict[str, Any]] = []
    for message in shown:
        if joined and joined[-1]["role"] == message["role"]:
            both = [*_blocks(joined[-1]["content"]), *_blocks(message["content"])]
            joined[-1] = {**joined[-1], "content": both}
        else:
            joined.append(dict(message))
    return joined


def _blocks(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
