"""Pure. Gemini `generateContent` replies as bytes: whole, or as a stream of chunks, with the faults of form.

Owns: the JSON of a candidate, its parts and thought signatures, which part stands in which
chunk, and what the knobs that bend a reply do to them. Does not own: cutting and stalling
(`wire_out`), how a signature is known again (`gemini_rules`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from surefoot.testing.emulator.bending import (
    STREAM_ERROR,
    as_input,
    bent_calls,
    bent_finish,
    bent_thinking,
    pieces,
)
from surefoot.testing.emulator.bodies import Refusal, dumped, error_object
from surefoot.testing.emulator.hosted import gemini_grounding
from surefoot.testing.emulator.scripts import Spoken

_FINISH = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "refusal": "PROHIBITED_CONTENT",
    "error": "OTHER",
}


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a reply says beside its content."""

    id: str
    model: str
    prompt_tokens: int
    signature: str
    """What the first call, or the last part of a text that was thought about, is signed with."""
    shown_thinking: bool = False
    """True when the request asked for thoughts."""


class GeminiReply:
    """One reply: what was spoken, its envelope, and the action of a fault (or nothing)."""

    def __init__(self, spoken: Spoken, envelope: Envelope, action: dict[str, Any]) -> None:
        self.spoken = spoken
        self.envelope = envelope
        self.action = action
        self.calls = list(self._calls())

    @property
    def finish(self) -> str | None:
        """The finish reason: a fault's, the script's, or the usual one; a reply with calls stops like any other."""
        return bent_finish(self.spoken.finish, self.action, usual="STOP", words=_FINISH)

    def as_json(self) -> bytes:
        """The reply in one piece."""
        parts = [*self._thoughts(self._thinking), *self._texts(self.spoken.text), *self.calls]
        if self._signs_text and not self.calls:
            if not self.spoken.text:
                parts.append({"text": ""})
            parts[-1] = {**parts[-1], "thoughtSignature": self._signature}
        return dumped(self._chunk(parts or [{"text": ""}], last=True))

    def as_events(self) -> list[bytes]:
        """The reply as the chunks of a stream, each a whole `data:` line with its blank line."""
        chunks = list(self._chunks())
        events = [_line(self._chunk(parts, last=False)) for parts in chunks[:-1]]
        last = _line(self._chunk(chunks[-1], last=not self.action.get("no_finish")))
        events += [last, last] if self.action.get("duplicate_final") else [last]
        if "stream_error_at" in self.action:
            text = self.action.get("message", STREAM_ERROR)
            status = 400 if "message" in self.action else 503
            failed = error_object(Refusal(("fault",), text, status=status), "gemini-own")
            events = [*events[: int(self.action["stream_error_at"])], _line(failed)]
        return events

    @property
    def _thinking(self) -> str | None:
        return bent_thinking(self.spoken.thinking, self.action) if self.envelope.shown_thinking else None

    @property
    def _signs_text(self) -> bool:
        unsigned = self.action.get("reasoning_mode") in ("omit", "unsigned")
        return bool(self.spoken.thinking) and not unsigned

    @property
    def _signature(self) -> str:
        return "" if self.action.get("reasoning_mode") == "blank" else self.envelope.signature

    def _chunks(self) -> Iterator[list[dict[str, Any]]]:
        for piece in pieces(self._thinking or ""):
            yield self._thoughts(piece)
        for piece in pieces(self.spoken.text):
            yield self._texts(piece)
        if self.action.get("index_mode") == "two_in_one_chunk":
            yield self.calls
        else:
            yield from ([call] for call in self.calls)
        if not self.calls:
            signed = {"thoughtSignature": self._signature} if self._signs_text else {}
            yield [{"text": "", **signed}]

    def _thoughts(self, text: str | None) -> list[dict[str, Any]]:
        return [{"text": text, "thought": True}] if text else []

    def _texts(self, text: str) -> list[dict[str, Any]]:
        return [{"text": text}] if text else []

    def _calls(self) -> Iterator[dict[str, Any]]:
        """Each call as one part; only the first is signed."""
        unsigned = self.action.get("reasoning_mode") in ("omit", "unsigned")
        for position, call in enumerate(bent_calls(self.spoken.calls, self.action)):
            said: dict[str, Any] = {
                "id": call["id"],
                "name": call["name"],
                "args": as_input(call["arguments"]),
            }
            if call["id"] is None:
                del said["id"]
            signed = {} if position or unsigned else {"thoughtSignature": self._signature}
            yield {"functionCall": said, **signed}

    def _chunk(self, parts: list[dict[str, Any]], *, last: bool) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
        if last and self.finish is not None:
            candidate["finishReason"] = self.finish
        if last:
            candidate |= gemini_grounding(self.spoken.hosted)
        return {
            "candidates": [candidate],
            "usageMetadata": self._usage(),
            "modelVersion": self.envelope.model,
            "responseId": self.envelope.id,
        }

    def _usage(self) -> dict[str, Any]:
        given = self.spoken.usage or {}
        written = len(self.spoken.text) + sum(len(str(call["arguments"])) for call in self.spoken.calls)
        thought = len(self.spoken.thinking) // 4
        prompt = int(given.get("prompt_tokens", self.envelope.prompt_tokens))
        said = int(given.get("completion_tokens", max(1, written // 4)))
        usage = {"promptTokenCount": prompt, "candidatesTokenCount": said}
        if thought and not given:
            usage["thoughtsTokenCount"] = thought
        return {**usage, "totalTokenCount": sum(usage.values())}


def as_array(events: list[bytes]) -> list[bytes]:
    """The chunks as the elements of one JSON list, which is the stream of whoever did not ask for `alt=sse`."""
    objects = [event.removeprefix(b"data: ").strip() for event in events]
    return [(b"," if place else b"[") + one for place, one in enumerate(objects)] + [b"]"]


def _line(value: dict[str, Any]) -> bytes:
    return b"data: " + dumped(value) + b"\r\n\r\n"
