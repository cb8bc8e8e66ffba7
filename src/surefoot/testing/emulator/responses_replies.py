"""Pure. Responses replies as bytes: whole, or as a stream of events, with the faults of form.

Owns: the response object, its items, ids and ciphertexts, the order of events, and what
the knobs that bend a reply do to them. Does not own: cutting and stalling (`wire_out`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from surefoot.testing.emulator.bending import STREAM_ERROR, bent_calls, bent_thinking, numbered, pieces, said
from surefoot.testing.emulator.bodies import dumped
from surefoot.testing.emulator.hosted import id_prefix, responses_item, url_annotations
from surefoot.testing.emulator.issuing import NO_REASONING, Token, bent, item_id, sha
from surefoot.testing.emulator.responses_rules import CIPHER_PREFIX
from surefoot.testing.emulator.scripts import Spoken

_INCOMPLETE = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}
_FAILED = {
    "error": {"code": "server_error", "message": "The model failed."},
    "model_context_window_exceeded": {
        "code": "context_length_exceeded",
        "message": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    },
}


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a response says beside its items."""

    reply: str
    """20 hex digits that all its ids share."""
    created: int
    model: str
    account: str
    prompt_tokens: int
    request: dict[str, Any]
    reasoning: str | None = "encrypted"
    """`encrypted`, `text`, or None."""
    cipher_wanted: bool = True

    @property
    def id(self) -> str:
        """The response's id."""
        return f"resp_{self.reply}"


class ResponsesReply:
    """One reply: what was spoken, its envelope, and the action of a fault (or nothing)."""

    def __init__(self, spoken: Spoken, envelope: Envelope, action: dict[str, Any]) -> None:
        self.spoken = spoken
        self.envelope = envelope
        self.action = action
        self.reasoning_place = NO_REASONING
        self.output: list[dict[str, Any]] = []
        self._early_cipher: str | None = None
        self._reasoning()
        self._hosted()
        self._message()
        self._calls()
        if self.status == "incomplete" and self.output:
            self.output[-1]["status"] = "incomplete"

    @property
    def status(self) -> str:
        """`completed`, `incomplete` or `failed`."""
        word = self.action.get("finish", self.spoken.finish)
        if word in _INCOMPLETE:
            return "incomplete"
        return "failed" if word in _FAILED else "completed"

    def as_json(self) -> bytes:
        """The response in one piece."""
        return dumped(self._response(self.status, self.output))

    def as_events(self) -> list[bytes]:
        """The response as stream events, numbered in order."""
        events: list[tuple[str, dict[str, Any]]] = []
        for name in ("response.created", "response.in_progress"):
            events.append((name, {"response": self._response("in_progress", [])}))
        order = list(enumerate(self.output))
        if self.action.get("index_mode") == "reverse":
            order.reverse()
        for place, item in order:
            index = numbered(place, self.action)
            events += self._item_events({"output_" + key: value for key, value in index.items()}, item)
        if not (self.action.get("no_finish") or self.action.get("no_done")):
            last = (f"response.{self.status}", {"response": self._response(self.status, self.output)})
            events += [last, last] if self.action.get("duplicate_final") else [last]
        if "stream_error_at" in self.action:
            code = "invalid_prompt" if "message" in self.action else "server_error"
            failed = {"code": code, "message": self.action.get("message", STREAM_ERROR), "param": None}
            events = [*events[: int(self.action["stream_error_at"])], ("error", failed)]
        return [_event(number, name, value) for number, (name, value) in enumerate(events)]

    def _response(self, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
        request, word = self.envelope.request, self.action.get("finish", self.spoken.finish)
        details = {"reason": _INCOMPLETE[str(word)]} if status == "incomplete" else None
        failed = _FAILED[str(word)] if status == "failed" else None
        return {
            "id": self.envelope.id,
            "object": "response",
            "created_at": self.envelope.created,
            "status": status,
            "model": self.envelope.model,
            "output": output,
            "parallel_tool_calls": request.get("parallel_tool_calls", True),
            "tool_choice": request.get("tool_choice", "auto"),
            "tools": request.get("tools") or [],
            "error": failed,
            "incomplete_details": details,
            "instructions": request.get("instructions"),
            "metadata": {},
            "previous_response_id": request.get("previous_response_id"),
            "store": request.get("store") is not False,
            "usage": None if status == "in_progress" else self._usage(),
        }

    def _usage(self) -> dict[str, Any]:
        given = self.spoken.usage or {}
        spoken = len(self.spoken.text) + sum(len(str(call["arguments"])) for call in self.spoken.calls)
        thought = len(self.spoken.thinking) // 4
        put_in = int(given.get("prompt_tokens", self.envelope.prompt_tokens))
        put_out = int(given.get("completion_tokens", max(1, spoken // 4 + thought)))
        return {
            "input_tokens": put_in,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": put_out,
            "output_tokens_details": {"reasoning_tokens": thought},
            "total_tokens": put_in + put_out,
        }

    def _reasoning(self) -> None:
        text = bent_thinking(self.spoken.thinking, self.action) if self.envelope.reasoning else None
        if text is None:
            return
        self.reasoning_place = 0
        identity = item_id("rs", self.envelope.reply, 0, NO_REASONING)
        item: dict[str, Any] = {"type": "reasoning", "id": identity, "summary": [], "status": "completed"}
        if self.envelope.reasoning == "text":
            item["content"] = [{"type": "reasoning_text", "text": text}] if text else []
        else:
            item["summary"] = [{"type": "summary_text", "text": text}] if text else []
            mode = self.action.get("reasoning_mode")
            if self.envelope.cipher_wanted and mode not in ("unsigned", "blank"):
                cipher = self._cipher(identity, self.spoken.thinking)
                self._early_cipher = cipher[: len(cipher) // 2]
                if mode != "lost_signature_delta":
                    item["encrypted_content"] = cipher
        self.output.append(item)

    def _cipher(self, identity: str, text: str) -> str:
        token = Token("reasoning", self.envelope.model, self.envelope.account, sha(text), {"id": identity})
        return bent(token, CIPHER_PREFIX, self.action.get("signature_mode"))

    def _hosted(self) -> None:
        for ran in self.spoken.hosted:
            self.output.append(responses_item(ran, self._next_id(id_prefix(ran.kind))))

    def _message(self) -> None:
        if not self.spoken.text and (self.spoken.calls or (self.output and self.status != "completed")):
            return
        part: dict[str, Any] = {"type": "output_text", "text": self.spoken.text, "logprobs": []}
        part["annotations"] = url_annotations(self.spoken.hosted)
        self.output.append(
            {
                "type": "message",
                "id": self._next_id("msg"),
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )

    def _calls(self) -> None:
        named = []
        for offset, call in enumerate(self.spoken.calls):
            place = len(self.output) + offset
            fresh = item_id("call", self.envelope.reply, place, self.reasoning_place)
            named.append({**call, "id": call["id"] or fresh})
        for call in bent_calls(named, self.action):
            item: dict[str, Any] = {"type": "function_call", "id": self._next_id("fc")}
            if call["id"] is not None:
                item["call_id"] = call["id"]
            item |= {"name": call["name"], "arguments": call["arguments"], "status": "completed"}
            self.output.append(item)

    def _next_id(self, prefix: str) -> str:
        return item_id(prefix, self.envelope.reply, len(self.output), self.reasoning_place)

    def _item_events(self, at: dict[str, int], item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        kind = item["type"]
        begun = {**item, "status": "in_progress"}
        if kind == "message":
            begun["content"] = []
        if kind == "function_call":
            begun["arguments"] = ""
        if kind == "reasoning":
            begun["summary"] = []
            begun.pop("content", None)
            if self._early_cipher is not None:
                begun["encrypted_content"] = self._early_cipher
        yield "response.output_item.added", {**at, "item": begun}
        here = {"item_id": item["id"], **at}
        if kind == "message":
            yield from self._text_events(here, item["content"][0])
        elif kind == "function_call":
            yield from self._argument_events(here, item)
        elif kind == "reasoning":
            yield from _reasoning_events(here, item)
        elif kind == "web_search_call":
            for step in ("in_progress", "searching", "completed"):
                yield f"response.web_search_call.{step}", here
        yield "response.output_item.done", {**at, "item": item}

    def _text_events(
        self, here: dict[str, Any], part: dict[str, Any]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        place = {**here, "content_index": 0}
        yield "response.content_part.added", {**place, "part": {**part, "text": "", "annotations": []}}
        for piece in pieces(part["text"]):
            yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}
        for number, annotation in enumerate(part["annotations"]):
            added = {**place, "annotation_index": number, "annotation": annotation}
            yield "response.output_text.annotation.added", added
        yield "response.output_text.done", {**place, "text": part["text"], "logprobs": []}
        yield "response.content_part.done", {**place, "part": part}

    def _argument_events(
        self, here: dict[str, Any], item: dict[str, Any]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        arguments = item["arguments"]
        for piece in said(arguments, self.action) if isinstance(arguments, str) else ():
            yield "response.function_call_arguments.delta", {**here, "delta": piece}
        whole = {"name": item["name"], "arguments": arguments}
        yield "response.function_call_arguments.done", {**here, **whole}


def _reasoning_events(here: dict[str, Any], item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for place, part in enumerate(item.get("content") or ()):
        at = {**here, "content_index": place}
        for piece in pieces(part["text"]):
            yield "response.reasoning_text.delta", {**at, "delta": piece}
        yield "response.reasoning_text.done", {**at, "text": part["text"]}
    for place, part in enumerate(item["summary"]):
        at = {**here, "summary_index": place}
        empty = {"type": "summary_text", "text": ""}
        yield "response.reasoning_summary_part.added", {**at, "part": empty}
        for piece in pieces(part["text"]):
            yield "response.reasoning_summary_text.delta", {**at, "delta": piece}
        yield "response.reasoning_summary_text.done", {**at, "text": part["text"]}
        yield "response.reasoning_summary_part.done", {**at, "part": part}


def _event(number: int, name: str, value: dict[str, Any]) -> bytes:
    body = dumped({"type": name, "sequence_number": number, **value})
    return f"event: {name}\n".encode() + b"data: " + body + b"\n\n"
