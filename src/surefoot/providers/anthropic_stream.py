"""Pure. Replies of the Anthropic Messages wire: bytes in, one `Reply` out.

Owns: blocks and their deltas, the terminal marker, the stored message, what is found
at receipt. Does not own: bytes, lines and the order of the end (`intake`), replay
(`anthropic_blocks`), naming a refusal (`diagnosis`).

Nothing is given out as a reply before its last marker was seen: `message_stop`, or what the contract names
in its place (S-07). Blocks are stored
in the order and form in which they came.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.core.history import THINKING_BLOCKS
from surefoot.providers.hosted import hosted_kinds
from surefoot.providers.intake import WireDecoder, incomplete, nonsense, usage_of
from surefoot.providers.port import Reply, TextDelta
from surefoot.providers.shaping import strict_object
from surefoot.providers.written import (
    CUT_FINISHES,
    REFUSED_FINISHES,
    Written,
    as_text,
    grown,
    reply_calls,
    said,
)

_INPUT_PARTS = ("cache_creation_input_tokens", "cache_read_input_tokens")
_BEGUN: Mapping[str, dict[str, Any]] = {
    "text_delta": {"type": "text", "text": ""},
    "thinking_delta": {"type": "thinking", "thinking": ""},
    "input_json_delta": {"type": "tool_use", "name": ""},
}
"""The block a delta belongs to where its start event was lost."""


@dataclass(slots=True)
class _Block:
    """A block while its deltas arrive."""

    value: dict[str, Any]
    written: str = ""
    """Argument text of its `input_json_delta`s."""

    def arguments(self) -> str:
        """The argument text, or the input that came whole with the block (S-18)."""
        return (
            self.written
            if self.written.strip() or not self.value.get("input")
            else as_text(self.value["input"])
        )

    def stored(self) -> dict[str, Any]:
        """The block as sent, its input put together; an input that is no object stays the text it was."""
        takes_input = str(self.value.get("type")).endswith("tool_use")
        if not takes_input or ("input" not in self.value and not self.written):
            return self.value
        if not self.written.strip():
            return self.value if self.value.get("input") is not None else {**self.value, "input": {}}
        read = strict_object(self.written)
        return {**self.value, "input": self.written if read is None else read}


class AnthropicDecoder(WireDecoder):
    """Decodes one reply of Messages."""

    def __init__(self, contract: Mapping[str, Any]) -> None:
        super().__init__(contract)
        self._message: dict[str, Any] = {}
        self._blocks: list[_Block] = []
        self._at: dict[int, _Block] = {}
        self._counts: dict[str, Any] = {}

    def _refusal(self) -> tuple[str, str] | None:
        finish = self._finish
        kind = None if finish is None else REFUSED_FINISHES.get(finish)
        return None if kind is None or finish is None else (finish, kind)

    @property
    def _finish(self) -> str | None:
        finish = self._message.get("stop_reason")
        return finish if isinstance(finish, str) else None

    def _event(self, name: str, event: Mapping[str, Any]) -> list[TextDelta]:
        kind = event.get("type") or name
        if kind == "error" or event.get("error"):
            self._error = event.get("error") or event
            return []
        if kind == "message_start":
            self._start(event.get("message"))
        elif kind == "content_block_start":
            return self._open(event)
        elif kind == "content_block_delta":
            return self._grow(event)
        elif kind == "message_delta":
            self._facts_of(event)
        elif kind != "message_stop":
            return []  # `ping`, `content_block_stop`, and whatever is added later
        self._events += 1
        return []

    def _start(self, message: Any) -> None:
        if isinstance(message, Mapping):
            self._message = {key: value for key, value in message.items() if key not in ("content", "usage")}
            self._tell(message.get("usage"))

    def _tell(self, usage: Any) -> None:
        """Counts as told so far; what an event leaves out or tells as null stays what an earlier one told (S-35)."""
        told = usage.items() if isinstance(usage, Mapping) else ()
        self._counts |= {key: value for key, value in told if value is not None}
        self._usage = usage_of(self._counts, self._usage, input_also=_INPUT_PARTS)

    def _facts_of(self, event: Mapping[str, Any]) -> None:
        """Stop reason and what else `message_delta` says; a null says nothing new."""
        delta = event.get("delta")
        extra = {key: event[key] for key in event if key not in ("type", "delta", "usage")}
        for key, value in {**extra, **(delta if isinstance(delta, Mapping) else {})}.items():
            if value is not None:
                self._message[key] = value
        self._tell(event.get("usage"))

    def _open(self, event: Mapping[str, Any]) -> list[TextDelta]:
        """A start opens a new block, whatever its index says (S-12), unless a proxy sent the same start twice."""
        self._events += 1
        value = event.get("content_block")
        if not isinstance(value, Mapping) or self._is_repeated(event.get("index"), value):
            return []
        self._keep(event.get("index"), _Block(dict(value)))
        text = value.get("text") or value.get("thinking")
        return [_shown(str(value.get("type")), text)] if isinstance(text, str) and text else []

    def _is_repeated(self, index: Any, value: Mapping[str, Any]) -> bool:
        """Whether this very call began here and nothing of it came yet; the first would run without its arguments."""
        begun = self._at.get(index) if isinstance(index, int) else None
        return (
            begun is not None and bool(said(value.get("id"))) and not begun.written and begun.value == value
        )

    def _keep(self, index: Any, block: _Block) -> _Block:
        self._blocks.append(block)
        if isinstance(index, int):
            self._at[index] = block
        return block

    def _grow(self, event: Mapping[str, Any]) -> list[TextDelta]:
        self._events += 1
        delta, index = event.get("delta"), event.get("index")
        if not isinstance(delta, Mapping):
            return []
        block = self._at.get(index) if isinstance(index, int) else None
        if block is None and self._blocks and not isinstance(index, int):
            block = self._blocks[-1]  # S-11
        kind = str(delta.get("type"))
        if block is None:
            if kind not in _BEGUN:
                return []  # it adds to something that never came
            block = self._keep(index, _Block(dict(_BEGUN[kind])))
        return self._add(block, kind, delta)

    def _add(self, block: _Block, kind: str, delta: Mapping[str, Any]) -> list[TextDelta]:
        if kind == "input_json_delta":
            block.written = self._more(block.written, delta.get("partial_json"))
        elif kind in ("text_delta", "thinking_delta"):
            key = kind.removesuffix("_delta")
            before = str(block.value.get(key) or "")
            block.value[key] = self._more(before, delta.get(key))
            new = block.value[key][len(before) :]
            return [_shown(key, new)] if new else []
        elif kind == "citations_delta":
            block.value["citations"] = [*(block.value.get("citations") or []), delta.get("citation")]
        else:  # `signature_delta`, and kinds added later: their fields belong to the block
            for key, value in delta.items():
                if key != "type" and value is not None:
                    block.value[key] = value
        return []

    def _more(self, before: str, piece: Any) -> str:
        snapshots = self._contract["stream.snapshots"] and isinstance(piece, str)
        return grown(before, as_text(piece), snapshots=snapshots)

    def _whole(self, body: Mapping[str, Any]) -> None:
        content = body.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if not isinstance(content, list):
            nonsense("holds no message")
        self._start(body)
        self._blocks = [_Block(dict(block)) for block in content if isinstance(block, Mapping)]
        self._message["stop_reason"] = self._message.get("stop_reason") or "end_turn"
        self._ended = True

    def _reply(self) -> Reply:
        finish = self._finish
        optional = self._contract["stream.terminal_optional"] and finish is not None
        if finish is None or not (self._ended or optional):
            raise incomplete()
        uses = [block for block in self._blocks if block.value.get("type") == "tool_use"]
        calls = reply_calls([_written(block) for block in uses], finish, self._contract)
        content = [block.stored() for block in self._blocks]
        model = self._message.get("model")
        return Reply(
            text=_joined(content, "text"),
            calls=calls,
            finish=finish,
            raw={**self._message, "role": "assistant", "content": content},
            usage=self._usage,
            model=model if isinstance(model, str) else None,
            reasoning=_joined(content, "thinking"),
            paused=finish == "pause_turn" and not calls,
            hosted=hosted_kinds(_server_tools(content), self._contract),
            notes=tuple(self._notes(content, finish)),
        )

    def _notes(self, content: list[dict[str, Any]], finish: str) -> list[str]:
        kinds = {str(block.get("type")) for block in content}
        notes = []
        if finish in CUT_FINISHES and kinds and kinds <= set(THINKING_BLOCKS):
            notes.append("only_reasoning_at_limit")
        elif self._contract["reasoning.carrier"] == "thinking_signed":
            lost = [one for one in content if one.get("type") == "thinking" and not one.get("signature")]
            if any(one.get("thinking") for one in lost):
                notes.append("unreplayable_reasoning")
        if self._message.get("input_transformations"):
            notes.append("input_transformed")
        return notes


def _shown(key: str, text: str) -> TextDelta:
    return TextDelta(text, "reasoning" if key == "thinking" else "text")


def _written(block: _Block) -> Written:
    return Written(said(block.value.get("name")), block.arguments(), said(block.value.get("id")))


def _joined(content: list[dict[str, Any]], key: str) -> str:
    texts = (block.get(key) for block in content if block.get("type") == key)
    return "".join(text for text in texts if isinstance(text, str))


def _server_tools(content: list[dict[str, Any]]) -> list[str]:
    found = []
    for block in content:
        kind = str(block.get("type") or "")
        if kind == "server_tool_use":
            found.append(str(block.get("name") or ""))
        elif kind.endswith("_tool_use"):
            found.append(kind.removesuffix("_tool_use"))
    return found
