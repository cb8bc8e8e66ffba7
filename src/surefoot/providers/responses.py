"""Pure. The Responses wire: request bodies out, replies in.

Owns: the JSON of a Responses request; the whole history travels in `input`, unless the contract
lets the provider keep it. Does not own: when a kept response may be gone on from (`chaining`), stored
items on replay (`responses_items`), decoding (`responses_stream`), order and ids of history (`shaping`).
Promises: projection:pure, projection:prefix-stable.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from surefoot.core.history import AssistantWords, UserWords
from surefoot.providers import chaining, pictures
from surefoot.providers.hosted import forms
from surefoot.providers.port import Decoder, ModelRequest, ToolSpec
from surefoot.providers.responses_items import NAME, Replay, useless_ids
from surefoot.providers.responses_stream import ResponsesDecoder
from surefoot.providers.shaping import (
    ANSWER_BRIDGE,
    bridge_after,
    in_order,
    is_foreign,
    object_schema,
    orphan_text,
    parts_results,
    result_content,
    user_text,
    wire_ids,
)


class ResponsesWire:
    """The `Wire` of OpenAI Responses. Holds nothing; one instance serves every endpoint."""

    name = NAME
    path = "/responses"
    key_header = "authorization"
    key_form = "Bearer {key}"
    headers: Mapping[str, str] = MappingProxyType({})

    def encode(self, request: ModelRequest, contract: Mapping[str, Any]) -> dict[str, Any]:
        """The request body. Same input, same bytes; healthy prefixes never change."""
        body: dict[str, Any] = {"model": request.model}
        if request.system:
            body["instructions"] = request.system
        body |= _input(request, contract)
        tools = [*(_tool(tool) for tool in request.tools), *forms(request.hosted, contract)]
        if tools:
            body["tools"] = tools
        if request.effort is not None:
            body["reasoning"] = {"effort": request.effort}
        if contract["reasoning.carrier"] == "item_encrypted":
            # Local history is the source of truth: nothing is stored there, and reasoning comes sealed (OR-05).
            body["store"] = chaining.is_on(contract)
            body["include"] = ["reasoning.encrypted_content"]
        if request.max_output_tokens is not None:
            body["max_output_tokens"] = request.max_output_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        body["stream"] = request.stream
        return body

    def decoder(self, contract: Mapping[str, Any], *, stream: bool) -> Decoder:
        """A fresh decoder. A stream may be answered with one JSON body; it is read either way."""
        del stream
        return ResponsesDecoder(contract)


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": object_schema(tool.parameters),
        "strict": False,
    }


def _input(request: ModelRequest, contract: Mapping[str, Any]) -> dict[str, Any]:
    ordered = in_order(request.messages, contract)
    ids = wire_ids(ordered, contract)
    replay = Replay(contract, ids, useless_ids(ordered))
    shown: list[dict[str, Any]] = []
    chain = chaining.chain_of(request, ordered, ids, contract)
    kept = 0
    for place, message in enumerate(ordered):
        kept = len(shown) if chain is not None and place == chain[1] else kept
        if isinstance(message, AssistantWords):
            foreign = is_foreign(message, request.model, request.endpoint, contract)
            items = replay.items(message, foreign=foreign)
            shown += bridge_after(shown, contract) if items else []
            shown += items
        elif isinstance(message, UserWords):
            if user_text(message).strip():
                shown += _parting(shown, contract)
                shown.append({"role": "user", "content": user_text(message)})
        elif message.call.call_id in ids:
            output = result_content(message, contract, part="input_text")
            output = pictures.in_result(message, output, contract, NAME)
            call_id = ids[message.call.call_id]
            shown.append({"type": "function_call_output", "call_id": call_id, "output": output})
            if after := pictures.behind(ordered, place, contract, NAME):
                shown += [*_parting(shown, contract), *after]
        else:
            shown.append({"role": "user", "content": orphan_text(message)})
    shown += bridge_after(shown, contract)
    if chain is None or kept == len(shown):
        return {"input": shown}
    return {"previous_response_id": chain[0], "input": shown[kept:]}


def _parting(shown: list[dict[str, Any]], contract: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Constant words between results and the words after them, where the contract parts these two (R6)."""
    parted = bool(shown) and shown[-1].get("type") == "function_call_output" and parts_results(contract)
    return [{"role": "assistant", "content": ANSWER_BRIDGE}] if parted else []
