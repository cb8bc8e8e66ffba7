"""Pure. Replies of the Chat Completions wire: bytes in, one `Reply` out.

Owns: terminal markers, the stored message, usage, errors told under status 200.
Does not own: joining call fragments (`chat_calls`), bytes and lines (`intake`), naming a refusal (`diagnosis`).

Nothing is given out as a reply before the wire's terminal marker was seen (S-07),
so a broken stream can start no tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.providers import json_calls
from surefoot.providers.chat_calls import CallCollector, finished, raw_call
from surefoot.providers.diagnosis import refused_in_reply
from surefoot.providers.intake import Intake, event_object, incomplete, nonsense, usage_of
from surefoot.providers.port import Reply, TextDelta, Usage
from surefoot.providers.sse import Event
from surefoot.providers.written import CUT_FINISHES

REFUSED_FINISHES: Mapping[str, str] = {
    "content_filter": "policy",
    "refusal": "policy",
    "model_context_window_exceeded": "context_overflow",
    "error": "transient",
}
"""Finish words that are refusals under status 200 (S-30, RT-02)."""
_REASONING = ("reasoning_content", "reasoning")


class ChatDecoder:
    """Decodes one reply, streamed or whole; the first byte tells which it is."""

    def __init__(self, contract: Mapping[str, Any], *, stream: bool) -> None:
        self._contract = contract
        self._stream = stream
        self._by_json = contract["tools.mode"] == "json_schema"
        self._intake = Intake()
        self._calls = CallCollector(snapshots=contract["stream.snapshots"])
        self._message: dict[str, Any] = {"role": "assistant"}
        self._finish: str | None = None
        self._usage = Usage()
        self._model: str | None = None
        self._error: Any = None
        self._done = False
        self._events = 0
        self._final_told = False

    @property
    def finished(self) -> bool:
        """`[DONE]` came, or an error that ends the reply."""
        return self._done or self._error is not None

    def feed(self, chunk: bytes) -> list[TextDelta]:
        """Take bytes as they come, split anywhere."""
        return self._take(self._intake.feed(chunk))

    def end(self) -> Reply:
        """The transport closed cleanly; see `Decoder.end`."""
        rest = [] if self._done else self._intake.end()
        if self._intake.whole:
            self._read_whole()
        else:
            self._take(rest)
        if self._error is not None:
            raise refused_in_reply(self._error, self._contract)
        if not self._intake.whole and self._events == 0:
            nonsense("holds no event")
        kind = REFUSED_FINISHES.get(self._finish or "")
        if kind is not None:
            raise refused_in_reply({"code": self._finish}, self._contract, kind=kind)
        return self._reply()

    def _take(self, events: list[Event]) -> list[TextDelta]:
        told: list[TextDelta] = []
        for event in events:
            if self.finished:
                break
            if event.data.strip() == "[DONE]":
                self._done = True
                self._events += 1
                continue
            told += self._chunk(event_object(event.data), is_error=event.name == "error")
        return told + self._final_words()

    def _chunk(self, chunk: Mapping[str, Any], *, is_error: bool) -> list[TextDelta]:
        if chunk.get("error") or is_error:
            self._error = chunk.get("error") or chunk
            return []
        self._facts_of(chunk)
        choice = _first_choice(chunk)
        if choice is None:
            return []
        self._events += 1
        delta = choice["delta"] if "delta" in choice else choice.get("message")
        told = self._delta(delta) if isinstance(delta, Mapping) else []
        self._facts_of(choice)
        if isinstance(choice.get("finish_reason"), str):
            self._finish = choice["finish_reason"]
        return told

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
            if self._contract["stream.snapshots"] and before and value.startswith(before):
                self._message[key] = value
                return value[len(before) :]
            self._message[key] = before + value
        elif isinstance(value, list) and isinstance(before, list):
            self._message[key] = before + value
        else:
            self._message[key] = value
        return value if isinstance(value, str) else ""

    def _read_whole(self) -> None:
        body = self._intake.body()
        if body.get("error"):
            self._error = body["error"]
            return
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
        # A whole body that parsed has ended, whatever its finish word says.
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
        """S-07: without a finish word the reply is incomplete, unless the contract says it may lack one."""
        if self._finish is not None:
            return
        whole = all(not call.arguments or call.complete() for call in self._calls.calls)
        if self._contract["stream.terminal_optional"] and self._done and whole:
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
