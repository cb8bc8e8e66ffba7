"""Pure. Bedrock Converse replies as bytes, whole, with the faults of form.

Owns: the JSON of a message, its blocks, and what the knobs that bend a reply do to them.
Does not own: cutting and stalling (`wire_out`). The wire's stream is binary and not spoken here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from surefoot.testing.emulator.bending import as_input, bent_calls, bent_finish, bent_thinking
from surefoot.testing.emulator.bodies import dumped
from surefoot.testing.emulator.issuing import Token, bent, seal, sha
from surefoot.testing.emulator.scripts import Spoken

SIGNATURE_PREFIX = "Emu"
_FINISH = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "content_filtered",
    "refusal": "guardrail_intervened",
    "error": "malformed_model_output",
}


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a reply says beside its content."""

    model: str
    account: str
    prompt_tokens: int


class BedrockReply:
    """One reply: what was spoken, its envelope, and the action of a fault (or nothing)."""

    def __init__(self, spoken: Spoken, envelope: Envelope, action: dict[str, Any]) -> None:
        self.spoken = spoken
        self.envelope = envelope
        self.action = action
        self.calls = bent_calls(spoken.calls, action)

    @property
    def finish(self) -> str | None:
        """The stop reason: a fault's, the script's, or the usual one."""
        usual = "tool_use" if self.calls else "end_turn"
        return bent_finish(self.spoken.finish, self.action, usual=usual, words=_FINISH)

    def as_json(self) -> bytes:
        """The reply in one piece, the only form of this wire."""
        text = [{"text": self.spoken.text}] if self.spoken.text else []
        content = [*self._thinking(), *text, *self._uses()]
        return dumped(
            {
                "output": {"message": {"role": "assistant", "content": content}},
                "stopReason": self.finish,
                "usage": self._usage(content),
                "metrics": {"latencyMs": 1},
            }
        )

    def _thinking(self) -> Iterator[dict[str, Any]]:
        text = bent_thinking(self.spoken.thinking, self.action)
        if text is None:
            return
        mode = self.action.get("reasoning_mode")
        token = Token("thinking", self.envelope.model, self.envelope.account, sha(text))
        if mode == "redacted":
            yield {"reasoningContent": {"redactedContent": seal(token)}}
            return
        shown = {"text": text}
        if mode != "unsigned":
            signature = bent(token, SIGNATURE_PREFIX, self.action.get("signature_mode"))
            shown["signature"] = "" if mode == "blank" else signature
        yield {"reasoningContent": {"reasoningText": shown}}

    def _uses(self) -> Iterator[dict[str, Any]]:
        for call in self.calls:
            use: dict[str, Any] = {
                "toolUseId": call["id"],
                "name": call["name"],
                "input": as_input(call["arguments"]),
            }
            if call["id"] is None:
                del use["toolUseId"]
            yield {"toolUse": use}

    def _usage(self, content: list[dict[str, Any]]) -> dict[str, int]:
        given = self.spoken.usage or {}
        read = int(given.get("prompt_tokens", self.envelope.prompt_tokens))
        said = int(given.get("completion_tokens", max(1, len(json.dumps(content, default=str)) // 4)))
        return {"inputTokens": read, "outputTokens": said, "totalTokens": read + said}
