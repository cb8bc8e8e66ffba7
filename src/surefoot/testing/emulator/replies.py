"""Pure. Chat Completions replies as bytes: whole, or as a stream of events, with the faults of form.

Owns: the JSON of a reply, the order of stream events, and what the knobs that bend
a reply do to them. Does not own: cutting and stalling (`wire_out`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from surefoot.testing.emulator.bending import STREAM_ERROR, bent_calls, bent_thinking, numbered, pieces, said
from surefoot.testing.emulator.bodies import dumped
from surefoot.testing.emulator.chat_copies import issue_thought
from surefoot.testing.emulator.hosted import url_annotations
from surefoot.testing.emulator.scripts import Spoken

DONE = b"data: [DONE]\n\n"


class ChatReply:
    """One reply: what was spoken, its envelope, and the action of a fault (or nothing)."""

    def __init__(self, spoken: Spoken, envelope: dict[str, Any], action: dict[str, Any]) -> None:
        self.spoken = spoken
        self.envelope = envelope
        """`id`, `created`, `model`, `reasoning_field` (or None), `signs_calls`, `prompt_tokens`."""
        self.action = action
        self.calls = bent_calls(spoken.calls, action)
        self.thinking = bent_thinking(spoken.thinking, action)

    @property
    def finish(self) -> str | None:
        """The finish word: a fault's, the script's, or the usual one."""
        if "finish" in self.action:
            return self.action["finish"]  # type: ignore[no-any-return]
        return self.spoken.finish or ("tool_calls" if self.calls else "stop")

    def usage(self) -> dict[str, int]:
        """Token counts, a quarter of the characters."""
        if self.spoken.usage is not None:
            return self.spoken.usage
        said = len(self.spoken.text) + len(self.spoken.thinking)
        said += sum(len(str(call["arguments"])) for call in self.calls)
        prompt, completion = int(self.envelope["prompt_tokens"]), max(1, said // 4)
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}

    def as_json(self) -> bytes:
        """The reply in one piece."""
        message: dict[str, Any] = {"role": "assistant", "content": self.spoken.text or None}
        if self.spoken.text == "" and not self.calls:
            message["content"] = ""
        message |= self._shown_thinking(self.thinking)
        if self.spoken.hosted:
            message["annotations"] = [
                {"type": "url_citation", "url_citation": {k: v for k, v in one.items() if k != "type"}}
                for one in url_annotations(self.spoken.hosted)
            ]
        if self.calls:
            calls = [{**self._whole_call(call), **self._extra(i)} for i, call in enumerate(self.calls)]
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.finish}
        return dumped({**self._head("chat.completion"), "choices": [choice], "usage": self.usage()})

    def as_events(self, include_usage: bool) -> list[bytes]:
        """The reply as stream events, each a whole `data:` line with its blank line."""
        events = [self._event(delta) for delta in self._deltas()]
        if not self.action.get("no_finish"):
            last = self._event({}, self.finish)
            events += [last, last] if self.action.get("duplicate_final") else [last]
        if include_usage:
            whole = {**self._head("chat.completion.chunk"), "choices": [], "usage": self.usage()}
            events.append(_line(whole))
        if not self.action.get("no_done"):
            events.append(DONE)
        if "stream_error_at" in self.action:
            text = self.action.get("message", STREAM_ERROR)
            error = {"message": text, "type": "server_error", "param": None, "code": 502}
            failed = {**self._head("chat.completion.chunk"), "error": error, "choices": []}
            events = [*events[: int(self.action["stream_error_at"])], _line(failed)]
        return events

    def _shown_thinking(self, text: str | None) -> dict[str, Any]:
        """Reasoning text in the field this endpoint has for it; nothing where it has none."""
        name = self.envelope["reasoning_field"]
        if text is None or name in (None, "thought_signature"):
            return {}
        if name == "reasoning_details":
            return {name: [{"type": "reasoning.text", "text": text, "format": "unknown", "index": 0}]}
        return {name: text}

    def _extra(self, position: int) -> dict[str, Any]:
        """What the first call carries on endpoints that sign calls."""
        unsigned = self.action.get("reasoning_mode") in ("omit", "unsigned")
        if not self.envelope["signs_calls"] or position or unsigned:
            return {}
        signed = issue_thought(str(self.envelope["model"]), self.action.get("signature_mode"))
        return {"extra_content": signed}

    def _head(self, kind: str) -> dict[str, Any]:
        shown = {key: self.envelope[key] for key in ("id", "created", "model")}
        return {"id": shown["id"], "object": kind, "created": shown["created"], "model": shown["model"]}

    def _event(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _line({**self._head("chat.completion.chunk"), "choices": [choice]})

    def _deltas(self) -> Iterator[dict[str, Any]]:
        yield {"role": "assistant", "content": None if self.calls and not self.spoken.text else ""}
        if self.thinking is not None:
            for piece in pieces(self.thinking) if self.thinking else [""]:
                shown = self._shown_thinking(piece)
                if shown:
                    yield shown
        for piece in pieces(self.spoken.text):
            yield {"content": piece}
        per_call = [list(self._call_deltas(i, call)) for i, call in enumerate(self.calls)]
        mode = self.action.get("index_mode")
        if mode == "reverse":
            per_call.reverse()
        if mode == "two_in_one_chunk":
            longest = max(len(deltas) for deltas in per_call)
            for step in range(longest):
                yield {"tool_calls": [deltas[step] for deltas in per_call if step < len(deltas)]}
            return
        for deltas in per_call:
            for delta in deltas:
                yield {"tool_calls": [delta]}

    def _call_deltas(self, position: int, call: dict[str, Any]) -> Iterator[dict[str, Any]]:
        first: dict[str, Any] = {"type": "function", "function": {"name": call["name"], "arguments": ""}}
        if call["id"] is not None:
            first["id"] = call["id"]
        yield self._indexed(position, {**first, **self._extra(position)})
        if not isinstance(call["arguments"], str):
            yield self._indexed(position, {"function": {"arguments": call["arguments"]}})
            return
        for shown in said(call["arguments"], self.action):
            yield self._indexed(
                position, {**self._later(call), "function": self._later_function(call, shown)}
            )

    def _later(self, call: dict[str, Any]) -> dict[str, Any]:
        mode = self.action.get("id_mode")
        if mode in ("empty_later", "null_later"):
            return {"id": "" if mode == "empty_later" else None, "type": "function"}
        if self.action.get("name_mode") == "repeat_each_delta":
            return {"id": call["id"], "type": "function"}
        return {}

    def _later_function(self, call: dict[str, Any], shown: str) -> dict[str, Any]:
        if self.action.get("name_mode") == "repeat_each_delta":
            return {"name": call["name"], "arguments": shown}
        if self.action.get("id_mode") == "empty_later":
            return {"name": "", "arguments": shown}
        return {"arguments": shown}

    def _indexed(self, position: int, delta: dict[str, Any]) -> dict[str, Any]:
        return {**numbered(position, self.action), **delta}

    def _whole_call(self, call: dict[str, Any]) -> dict[str, Any]:
        whole: dict[str, Any] = {"id": call["id"], "type": "function"}
        if call["id"] is None:
            del whole["id"]
        return {**whole, "function": {"name": call["name"], "arguments": call["arguments"]}}


def _line(value: dict[str, Any]) -> bytes:
    return b"data: " + dumped(value) + b"\n\n"
