"""Pure. Replies of the Chat Completions wire: bytes in, one `Reply` out.

Owns: terminal markers, the stored message, usage, errors told under status 200.
Does not own: joining call fragments (`chat_calls`), lines (`sse`), naming a refusal (`diagnosis`).

Nothing is given out as a reply before the wire's terminal marker was seen (S-07),
so a broken stream can start no tool.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from surefoot.errors import ProviderNonsense, ProviderUnreachable
from surefoot.providers import json_calls
from surefoot.providers.chat_calls import CUT_FINISHES, CallCollector, finished, raw_call
from surefoot.providers.diagnosis import refused_in_reply
from surefoot.providers.port import Reply, TextDelta, Usage
from surefoot.providers.sse import Event, LineTooLong, Splitter

REFUSED_FINISHES: Mapping[str, str] = {
    "content_filter": "policy",
    "refusal": "policy",
    "model_context_window_exceeded": "context_overflow",
    "error": "transient",
}
"""Finish words that are refusals under status 200 (S-30, RT-02)."""
_REASONING = ("reasoning_content", "reasoning")
_BODY_BYTES = 64 << 20


class ChatDecoder:
    """Decodes one reply, streamed or whole; the first byte tells which it is."""

    def __init__(self, contract: Mapping[str, Any], *, stream: bool) -> None:
        self._contract = contract
        self._stream = stream
        self._by_json = contract["tools.mode"] == "json_schema"
        self._splitter = Splitter()
        self._body = bytearray()
        self._whole: bool | None = None
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
        if self._whole is None:
            self._body += chunk
            start = bytes(self._body[:64]).lstrip(b"\xef\xbb\xbf \t\r\n")
            if not start:
                return []
            self._whole = start[:1] in (b"{", b"[", b"<")
            chunk = b"" if self._whole else bytes(self._body)
        if self._whole:
            self._body += chunk
            if len(self._body) > _BODY_BYTES:
                _nonsense("is larger than 64 MiB")
            return []
        return self._take(self._split(chunk))

    def end(self) -> Reply:
        """The transport closed cleanly; see `Decoder.end`."""
        if self._whole:
            self._read_whole()
        elif self._whole is None:
            raise ProviderUnreachable(
                "The model's server closed without a reply.", kind="transport", transient=True
            )
        else:
            self._take(self._split(None) if not self._done else [])
        if self._error is not None:
            raise refused_in_reply(self._error, self._contract)
        if not self._whole and self._events == 0:
            _nonsense("holds no event")
        kind = REFUSED_FINISHES.get(self._finish or "")
        if kind is not None:
            raise refused_in_reply({"code": self._finish}, self._contract, kind=kind)
        return self._reply()

    def _split(self, chunk: bytes | None) -> list[Event]:
        """The events a chunk completes; None stands for the end of the stream."""
        try:
            return self._splitter.end() if chunk is None else self._splitter.feed(chunk)
        except UnicodeDecodeError:
            _nonsense("is not UTF-8")
        except LineTooLong as error:
            _nonsense(f"holds {error}")

    def _take(self, events: list[Event]) -> list[TextDelta]:
        told: list[TextDelta] = []
        for event in events:
            if self.finished:
                break
            if event.data.strip() == "[DONE]":
                self._done = True
                self._events += 1
                continue
            told += self._chunk(self._json(event.data), is_error=event.name == "error")
        return told + self._final_words()

    def _json(self, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            _nonsense("holds an event that is not JSON")

    def _chunk(self, chunk: Any, *, is_error: bool) -> list[TextDelta]:
        if not isinstance(chunk, Mapping):
            _nonsense("holds an event that is no object")
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
        if isinstance(part.get("usage"), Mapping):
            self._usage = _usage(part["usage"], self._usage)

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
        text = bytes(self._body).removeprefix(b"\xef\xbb\xbf")
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            _nonsense("is not JSON")
        if not isinstance(body, Mapping):
            _nonsense("is no JSON object")
        if body.get("error"):
            self._error = body["error"]
            return
        self._facts_of(body)
        choice = _first_choice(body)
        message = choice.get("message") if choice is not None else None
        if choice is None or not isinstance(message, Mapping):
            _nonsense("holds no message")
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
        raise ProviderUnreachable(
            "The reply of the model's server ended before it was complete; nothing of it ran.",
            kind="transport",
            transport_code="incomplete",
            transient=True,
        )

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


def _usage(told: Mapping[str, Any], before: Usage) -> Usage:
    return Usage(
        _count(told, before.input_tokens, "prompt_tokens", "input_tokens"),
        _count(told, before.output_tokens, "completion_tokens", "output_tokens"),
    )


def _count(told: Mapping[str, Any], before: int | None, *names: str) -> int | None:
    for name in names:
        value = told.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return before


def _nonsense(what: str) -> NoReturn:
    raise ProviderNonsense(
        f"The reply of the model's server {what}. Check the endpoint's URL and contract.",
        next_command="surefoot doctor",
    )
