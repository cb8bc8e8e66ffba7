"""Pure. Anthropic Messages replies as bytes: whole, or as a stream of events, with the faults of form.

Owns: the JSON of a message, its blocks and signatures, the order of events, and what
the knobs that bend a reply do to them. Does not own: cutting and stalling (`wire_out`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from surefoot.testing.emulator.bending import (
    as_input,
    bent_calls,
    bent_finish,
    bent_thinking,
    numbered,
    pieces,
    said,
)
from surefoot.testing.emulator.bindings import Issue
from surefoot.testing.emulator.bodies import dumped
from surefoot.testing.emulator.hosted import anthropic_blocks, anthropic_citations
from surefoot.testing.emulator.issuing import tool_use_id
from surefoot.testing.emulator.scripts import Spoken

_FINISH = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a reply says beside its content."""

    id: str
    model: str
    prompt_tokens: int
    issue: Issue
    signed: bool = True
    """False on endpoints whose thinking has no signature."""
    shown_thinking: bool = True
    """False when the request did not ask for thinking."""
    transformations: list[dict[str, Any]] = field(default_factory=list)


class AnthropicReply:
    """One reply: what was spoken, its envelope, and the action of a fault (or nothing)."""

    def __init__(self, spoken: Spoken, envelope: Envelope, action: dict[str, Any]) -> None:
        self.spoken = spoken
        self.envelope = envelope
        self.action = action
        self.calls = bent_calls(spoken.calls, action)
        self.blocks = [*self._thinking(), *self._hosted(), *self._text(), *self._tool_uses()]

    @property
    def finish(self) -> str | None:
        """The stop reason: a fault's, the script's, or the usual one."""
        usual = "tool_use" if self.calls else "end_turn"
        return bent_finish(self.spoken.finish, self.action, usual=usual, words=_FINISH)

    def as_json(self) -> bytes:
        """The message in one piece."""
        whole = {**self._head(), "content": [_without_raw(block) for block in self.blocks]}
        whole |= {"stop_reason": self.finish, "usage": self._usage(done=True), **self._transformations()}
        return dumped(whole)

    def as_events(self) -> list[bytes]:
        """The message as stream events, each with its `event:` line."""
        start = {**self._head(), "content": [], "stop_reason": None, "usage": self._usage(done=False)}
        events = [_event("message_start", {"message": {**start, **self._transformations()}})]
        order = list(enumerate(self.blocks))
        if self.action.get("index_mode") == "reverse":
            order.reverse()
        for place, block in order:
            events += self._block_events(numbered(place, self.action), block)
            if place == 0:
                events.append(_event("ping", {}))
        if not self.action.get("no_message_delta"):
            delta = {"stop_reason": self.finish, "stop_sequence": None}
            last = _event(
                "message_delta",
                {
                    "delta": delta,
                    "usage": {"output_tokens": self._output_tokens()},
                    **self._transformations(),
                },
            )
            events += [last, last] if self.action.get("duplicate_final") else [last]
        if not self.action.get("no_message_stop"):
            events.append(_event("message_stop", {}))
        if "stream_error_at" in self.action:
            error = {"type": "overloaded_error", "message": "Overloaded"}
            if "message" in self.action:
                error = {"type": "invalid_request_error", "message": self.action["message"]}
            events = [*events[: int(self.action["stream_error_at"])], _event("error", {"error": error})]
        return events

    def _head(self) -> dict[str, Any]:
        return {
            "id": self.envelope.id,
            "type": "message",
            "role": "assistant",
            "model": self.envelope.model,
            "stop_sequence": None,
        }

    def _transformations(self) -> dict[str, Any]:
        given = self.envelope.transformations
        return {"input_transformations": given} if given else {}

    def _output_tokens(self) -> int:
        if self.spoken.usage is not None:
            return int(self.spoken.usage.get("completion_tokens", 1))
        return max(1, len(json.dumps(self.blocks, default=str)) // 4)

    def _usage(self, *, done: bool) -> dict[str, Any]:
        given = self.spoken.usage or {}
        usage: dict[str, Any] = {
            "input_tokens": int(given.get("prompt_tokens", self.envelope.prompt_tokens)),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": self._output_tokens() if done else 1,
        }
        searched = sum(1 for ran in self.spoken.hosted if ran.kind == "search")
        fetched = sum(1 for ran in self.spoken.hosted if ran.kind == "fetch")
        if done and (searched or fetched):
            usage["server_tool_use"] = {"web_search_requests": searched, "web_fetch_requests": fetched}
        return usage

    def _thinking(self) -> Iterator[dict[str, Any]]:
        text = bent_thinking(self.spoken.thinking, self.action) if self.envelope.shown_thinking else None
        if text is None:
            return
        mode = self.action.get("reasoning_mode")
        if mode == "redacted":
            yield {"type": "redacted_thinking", "data": self.envelope.issue.sign("redacted")}
        elif mode == "unsigned" or not self.envelope.signed:
            yield {"type": "thinking", "thinking": text}
        else:
            signature = "" if mode == "blank" else self.envelope.issue.sign(text)
            yield {"type": "thinking", "thinking": text, "signature": signature}

    def _hosted(self) -> Iterator[dict[str, Any]]:
        for place, ran in enumerate(self.spoken.hosted):
            identity = tool_use_id(f"{self.envelope.id}{place}", False, "srvtoolu_")
            yield from anthropic_blocks(ran, identity)

    def _text(self) -> Iterator[dict[str, Any]]:
        if self.spoken.text:
            citations = anthropic_citations(self.spoken.hosted)
            yield {
                "type": "text",
                "text": self.spoken.text,
                **({"citations": citations} if citations else {}),
            }

    def _tool_uses(self) -> Iterator[dict[str, Any]]:
        for call in self.calls:
            raw = call["arguments"]
            block = {"type": "tool_use", "id": call["id"], "name": call["name"]}
            if call["id"] is None:
                del block["id"]
            yield {**block, "input": as_input(raw), "raw": raw}

    def _block_events(self, at: dict[str, int], block: dict[str, Any]) -> Iterator[bytes]:
        kind = block["type"]
        deltas: list[dict[str, Any]] = []
        start = dict(block)
        if kind == "text":
            start["text"] = ""
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
            deltas += [{"type": "citations_delta", "citation": one} for one in start.pop("citations", ())]
        elif kind == "thinking":
            start["thinking"] = ""
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
            if "signature" in block:
                start["signature"] = ""
                if block["signature"] and self.action.get("reasoning_mode") != "lost_signature_delta":
                    deltas.append({"type": "signature_delta", "signature": block["signature"]})
        elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            raw = start.pop("raw", None)
            start["input"] = {}
            text = json.dumps(block["input"], ensure_ascii=False) if raw is None else str(raw)
            said_so_far = ["", *said(text, self.action)]
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in said_so_far]
        yield _event("content_block_start", {**at, "content_block": start})
        for delta in deltas:
            yield _event("content_block_delta", {**at, "delta": delta})
        yield _event("content_block_stop", at)


def message_id(key: str) -> str:
    """A message id that looks like the service's."""
    return tool_use_id(key, False, "msg_")


def _without_raw(block: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != "raw"}


def _event(name: str, value: dict[str, Any]) -> bytes:
    return f"event: {name}\n".encode() + b"data: " + dumped({"type": name, **value}) + b"\n\n"
