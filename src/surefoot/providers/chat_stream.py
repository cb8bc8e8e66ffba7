"""Pure. Replies of the Chat Completions wire: bytes in, one `Reply` out.

Owns: terminal markers, the stored message, usage, errors told under status 200.
Does not own: joining call fragments (`chat_calls`), bytes and lines (`intake`), naming a refusal (`diagnosis`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from surefoot.providers import json_calls
from surefoot.providers.chat_calls import CallCollector, finished, raw_call
from surefoot.providers.intake import WireDecoder, incomplete, nonsense, usage_of
from surefoot.providers.port import Reply, TextDelta
from surefoot.providers.sse import Event
from surefoot.providers.written import CUT_FINISHES, REFUSED_FINISHES, grown

_REASONING = ("reasoning_content", "reasoning")
_PIECES: Mapping[str, str] = {"reasoning.text": "text", "reasoning.summary": "summary"}
"""Reasoning entries that a stream sends in pieces, and the field that grows; sealed ones come whole."""


class ChatDecoder(WireDecoder):
    """Decodes one reply of Chat Completions."""

    def __init__(self, contract: Mapping[str, Any], *, stream: bool) -> None:
        super().__init__(contract)
        self._stream = stream
        self._by_json = contract["tools.mode"] == "json_schema"
        self._calls = CallCollector(snapshots=contract["stream.snapshots"])
        self._message: dict[str, Any] = {"role": "assistant"}
        self._finish: str | None = None
        self._model: str | None = None
        self._final_told = False

    def _take(self, events: list[Event]) -> list[TextDelta]:
        return super()._take(events) + self._final_words()

    def _event(self, name: str, event: Mapping[str, Any]) -> list[TextDelta]:
        if event.get("error") or name == "error":
            self._error = event.get("error") or event
            return []
        self._facts_of(event)
        choice = _first_choice(event)
        if choice is None:
            return []
        self._events += 1
        delta = choice["delta"] if "delta" in choice else choice.get("message")
        told = self._delta(delta) if isinstance(delta, Mapping) else []
        self._facts_of(choice)
        if isinstance(choice.get("finish_reason"), str):
            self._finish = choice["finish_reason"]
        return told

    def _refusal(self) -> tuple[str, str] | None:
        kind = REFUSED_FINISHES.get(self._finish or "")
        return None if kind is None or self._finish is None else (self._finish, kind)

    def _facts_of(self, part: Mapping[str, Any]) -> None:
        """Model and usage, wherever the server put them; unknown stays unknown (S-35)."""
        if isinstance(part.get("model"), str):
            self._model = part["model"]
        self._usage = usage_of(part.get("usage"), self._usage)

    def _delta(self, delta: Mapping[str, Any]) -> list[TextDelta]:
        told: list[TextDelta] = []
        for key, value in delta.items():
            if value is None or key == "role":
                continue  # S-40: a null was added by a serialiser, not said by the model
            if key == "tool_calls":
                for item in value if isinstance(value, list) else ():
                    if isinstance(item, Mapping):
                        self._calls.add(item)
                continue
            piece = self._grow(key, value)
            if piece and key == "content" and not self._by_json:
                told.append(TextDelta(piece))
            elif piece and key in _REASONING:
                told.append(TextDelta(piece, "reasoning"))
        return told

    def _grow(self, key: str, value: Any) -> str:
        """Add a piece to a field of the stored message; returns the text that is new."""
        before = self._message.get(key)
        if isinstance(value, str) and isinstance(before, str):
            self._message[key] = grown(before, value, snapshots=self._contract["stream.snapshots"])
            return str(self._message[key])[len(before) :]
        elif key == "reasoning_details" and isinstance(value, list):
            entries = before if isinstance(before, list) else []
            self._message[key] = _joined(entries, value, snapshots=self._contract["stream.snapshots"])
        elif isinstance(value, list) and isinstance(before, list):
            self._message[key] = before + value
        else:
            self._message[key] = value
        return value if isinstance(value, str) else ""

    def _whole(self, body: Mapping[str, Any]) -> None:
        self._facts_of(body)
        choice = _first_choice(body)
        message = choice.get("message") if choice is not None else None
        if choice is None or not isinstance(message, Mapping):
            nonsense("holds no message")
        self._facts_of(choice)
        self._message = {
            key: value for key, value in message.items() if value is not None and key != "tool_calls"
        }
        self._message.setdefault("role", "assistant")
        for item in message.get("tool_calls") or ():
            if isinstance(item, Mapping):
                self._calls.add_whole(item)
        finish = choice.get("finish_reason")
        self._finish = finish if isinstance(finish, str) else "stop"

    def _reply(self) -> Reply:
        self._require_terminal()
        content = self._message.get("content")
        text = _text(content) or _text(self._message.get("refusal"))
        if self._by_json:
            text, calls = json_calls.read_choice(text, cut=self._finish in CUT_FINISHES)
        else:
            calls = finished(self._calls.calls, self._finish, self._contract)
        raw = dict(self._message)
        if self._calls.calls:
            raw["tool_calls"] = [raw_call(call) for call in self._calls.calls]
        reasoning = next((raw[key] for key in _REASONING if isinstance(raw.get(key), str)), "")
        return Reply(text, calls, self._finish, raw, self._usage, self._model, reasoning)

    def _require_terminal(self) -> None:
        """S-07: without its marker the reply is incomplete, unless the contract says it may lack a finish word."""
        if self._intake.whole:
            return
        if "finish_reason" not in self._terminal:
            if self._ended:
                return
            raise incomplete()
        if self._finish is not None:
            return
        whole = all(not call.arguments or call.complete() for call in self._calls.calls)
        if self._contract["stream.terminal_optional"] and self._ended and whole:
            return
        raise incomplete()

    def _final_words(self) -> list[TextDelta]:
        """Where calls are JSON text, only the final answer is shown, once it is whole."""
        if not self._by_json or self._finish is None or self._final_told:
            return []
        self._final_told = True
        text, _ = json_calls.read_choice(
            _text(self._message.get("content")), cut=self._finish in CUT_FINISHES
        )
        return [TextDelta(text)] if text else []


def _joined(entries: Sequence[Any], pieces: Sequence[Any], *, snapshots: bool) -> list[Any]:
    """Reasoning entries and the next pieces of a stream: a block that came in pieces is one entry, as in a whole reply.

    A signature vouches for the whole text of its block, so pieces sent back one by one are refused (RT-03, AN-08).
    """
    joined = list(entries)
    for piece in pieces:
        home = next((n for n in reversed(range(len(joined))) if _goes_on(joined[n], piece)), None)
        if home is None:
            joined.append(piece)
            continue
        block, name = joined[home], _PIECES[piece["type"]]
        said = {key: value for key, value in piece.items() if value is not None}
        before, more = block.get(name), said.get(name, "")
        if isinstance(before, str) and isinstance(more, str):
            said[name] = grown(before, more, snapshots=snapshots)
        joined[home] = {**block, **said}
    return joined


def _goes_on(block: Any, piece: Any) -> bool:
    """Whether a piece belongs to this block: of its kind and number, and the block is not signed yet."""
    if not (isinstance(block, Mapping) and isinstance(piece, Mapping)) or piece.get("type") not in _PIECES:
        return False
    same = all(block.get(key) == piece.get(key) for key in ("type", "index"))
    other = block.get("id") and piece.get("id") and block["id"] != piece["id"]
    return same and not other and not block.get("signature")


def _first_choice(chunk: Mapping[str, Any]) -> Mapping[str, Any] | None:
    choices = chunk.get("choices")
    if not isinstance(choices, list):
        return None
    mine = (one for one in choices if isinstance(one, Mapping) and one.get("index", 0) in (0, None))
    return next(mine, None)


def _text(content: Any) -> str:
    """Visible text of a content that is a string or a list of text parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") for part in content if isinstance(part, Mapping))
    return "".join(part for part in parts if isinstance(part, str))
