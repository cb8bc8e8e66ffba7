"""Pure. Replies of the Responses wire: bytes in, one `Reply` out.

Owns: items and their deltas, the terminal events, the stored items, what is found at
receipt. Does not own: bytes, lines and the order of the end (`intake`), replay
(`responses_items`), naming a refusal (`diagnosis`).

The terminal event is the outcome, not the HTTP status (S-31). Items are stored as their
`done` event gave them; a ciphertext is taken from there or from the final response, never
from an event before (S-32).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.providers.hosted import hosted_kinds
from surefoot.providers.intake import WireDecoder, incomplete, nonsense, usage_of
from surefoot.providers.port import Reply, TextDelta
from surefoot.providers.written import Written, as_text, grown, reply_calls, said

TERMINAL: Mapping[str, str] = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
}
_KEPT = ("id", "model", "incomplete_details", "input_transformations", "service_tier")
_TEXT_DELTAS = ("response.output_text.delta", "response.refusal.delta")
_REASONING_DELTAS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_OWN_TYPES = ("message", "reasoning", "function_call")


@dataclass(slots=True)
class _Item:
    """An output item while its events arrive."""

    value: dict[str, Any]
    index: int | None = None
    done: bool = False
    text: str = ""
    """What its deltas added up to: words, reasoning or arguments."""

    def stored(self) -> dict[str, Any]:
        """The item as sent; one without a `done` event is put together from its deltas, without ciphertext."""
        kind = self.value.get("type")
        value = {k: v for k, v in self.value.items() if self.done or k != "encrypted_content"}
        if kind == "function_call":
            told = value.get("arguments")
            whole = as_text(told) if told not in (None, "", {}) else ""
            if not (self.done or self.text or whole):
                value["status"] = "incomplete"  # it was begun, and nothing says how it was meant (OR-14)
            return {**value, "arguments": whole if self.done and whole else self.text or whole}
        if kind == "message" and not value.get("content") and self.text:
            part = {"type": "output_text", "text": self.text, "annotations": []}
            return {**value, "role": "assistant", "content": [part]}
        return value


class ResponsesDecoder(WireDecoder):
    """Decodes one reply of Responses."""

    def __init__(self, contract: Mapping[str, Any]) -> None:
        super().__init__(contract)
        self._items: list[_Item] = []
        self._response: Mapping[str, Any] = {}
        self._status: str | None = None

    def _refusal(self) -> tuple[str, str] | None:
        filtered = self._ended and self._reason() == "content_filter"
        return ("content_filter", "policy") if filtered else None

    def _event(self, name: str, event: Mapping[str, Any]) -> list[TextDelta]:
        kind = str(event.get("type") or name)
        if kind == "error" or (event.get("error") and "response" not in event):
            self._error = event.get("error") or event
            return []
        if not kind.startswith("response."):
            return []
        self._events += 1
        if kind in self._terminal or kind == "response.failed":
            self._end_with(event.get("response"), TERMINAL.get(kind, "completed"))
        elif kind == "response.output_item.added":
            self._open(event)
        elif kind == "response.output_item.done":
            return self._close(event)
        elif kind in _TEXT_DELTAS:
            return self._grow(event, "message", "text")
        elif kind in _REASONING_DELTAS:
            return self._grow(event, "reasoning", "reasoning")
        elif kind == "response.function_call_arguments.delta":
            self._grow(event, "function_call", "")
        elif kind == "response.function_call_arguments.done":
            item = self._find(event, "function_call")
            if isinstance(event.get("arguments"), str) and event["arguments"].strip():
                item.text = event["arguments"]
        elif isinstance(event.get("response"), Mapping):
            self._response = event["response"]
        return []

    def _end_with(self, response: Any, status: str) -> None:
        if isinstance(response, Mapping):
            self._response = response
            self._usage = usage_of(response.get("usage"), self._usage)
        if status == "failed":
            self._error = self._response.get("error") or {"code": "server_error"}
        self._status, self._ended = status, True

    def _open(self, event: Mapping[str, Any]) -> None:
        """A new item, also where its index was used before for another (S-12), unless a proxy sent it twice."""
        value = event.get("item")
        if not isinstance(value, Mapping):
            return
        begun = [one for one in self._items if said(value.get("id")) and one.value == value and not one.done]
        if not begun:
            self._items.append(_Item(dict(value), _number(event.get("output_index"))))

    def _close(self, event: Mapping[str, Any]) -> list[TextDelta]:
        value = event.get("item")
        if not isinstance(value, Mapping):
            return []
        item = self._match(event, str(value.get("type")), value)
        if item is None:
            item = _Item({}, _number(event.get("output_index")))
            self._items.append(item)
        unseen = not item.text and value.get("type") == "message"
        item.value, item.done = dict(value), True
        words = _words(item.value)
        return [TextDelta(words)] if unseen and words else []

    def _match(self, event: Mapping[str, Any], kind: str, value: Mapping[str, Any]) -> _Item | None:
        """The item a `done` event closes: by id, then by index, then the newest of its type (S-10, S-11).

        Proxies give one item another id in its `done` event; the same item must not become two calls.
        """
        same = [one for one in self._items if one.value.get("type") == kind]
        for key in ("id", "call_id"):
            named = [one for one in same if value.get(key) and one.value.get(key) == value[key]]
            if named:
                return named[-1]
        index = _number(event.get("output_index"))
        still_open = [one for one in same if not one.done and (index is None or one.index == index)]
        return still_open[-1] if still_open else None

    def _find(self, event: Mapping[str, Any], kind: str) -> _Item:
        """The item a delta belongs to; one whose start was lost is begun here."""
        index, item_id = _number(event.get("output_index")), event.get("item_id")
        same = [one for one in self._items if one.value.get("type") == kind]
        for fits in (
            [one for one in same if item_id and one.value.get("id") == item_id],
            [one for one in same if index is not None and one.index == index],
            [one for one in same if index is None and not one.done],
        ):
            if fits:
                return fits[-1]
        item = _Item(
            {"type": kind, **({"id": item_id} if isinstance(item_id, str) and item_id else {})}, index
        )
        self._items.append(item)
        return item

    def _grow(self, event: Mapping[str, Any], kind: str, shown: str) -> list[TextDelta]:
        item, piece = self._find(event, kind), event.get("delta")
        piece = piece if isinstance(piece, str) else as_text(piece)
        before = item.text
        item.text = grown(before, piece, snapshots=self._contract["stream.snapshots"])
        new = item.text[len(before) :]
        return [TextDelta(new, shown)] if new and shown else []

    def _whole(self, body: Mapping[str, Any]) -> None:
        if not isinstance(body.get("output"), list):
            nonsense("holds no output")
        # Unless it says that the work goes on elsewhere.
        status = body.get("status") or "completed"
        if status in TERMINAL.values():
            self._end_with(body, str(status))

    def _reason(self) -> str | None:
        details = self._response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, Mapping) else None
        return reason if isinstance(reason, str) else None

    def _output(self) -> list[dict[str, Any]]:
        """The items in order: the final response's list where it is whole, else those of the events."""
        final = self._response.get("output")
        told = [one for one in final if isinstance(one, Mapping)] if isinstance(final, list) else []
        if len(told) >= len(self._items):
            return [_Item(dict(one), done=True).stored() for one in told]
        return [item.stored() for item in self._items]

    def _reply(self) -> Reply:
        status = self._status or ("completed" if self._ended else None)  # a marker of the endpoint's own
        if status is None:
            raise incomplete()
        output = self._output()
        asked = [item for item in output if item.get("type") == "function_call"]
        model = self._response.get("model")
        text = "".join(_words(item) for item in output)
        calls = reply_calls([_written(item) for item in asked], status, self._contract)
        raw = {key: self._response[key] for key in _KEPT if self._response.get(key) is not None}
        hosted = [str(item.get("type")) for item in output if item.get("type") not in _OWN_TYPES]
        return Reply(
            text=text,
            calls=calls,
            finish=status,
            raw={**raw, "status": status, "output": output},
            usage=self._usage,
            model=model if isinstance(model, str) else None,
            reasoning="".join(_thoughts(item) for item in output),
            hosted=hosted_kinds(hosted, self._contract),
            notes=tuple(self._notes(output, status)),
        )

    def _notes(self, output: list[dict[str, Any]], status: str) -> list[str]:
        notes = []
        reasoning = [item for item in output if item.get("type") == "reasoning"]
        if status == "incomplete" and reasoning and len(reasoning) == len(output):
            notes.append("only_reasoning_at_limit")
        elif self._contract["reasoning.carrier"] == "item_encrypted" and not all(
            item.get("encrypted_content") for item in reasoning
        ):
            notes.append("unreplayable_reasoning")
        if self._response.get("input_transformations"):
            notes.append("input_transformed")
        return notes


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _written(item: Mapping[str, Any]) -> Written:
    cut = item.get("status") == "incomplete"
    return Written(said(item.get("name")), item["arguments"], said(item.get("call_id")), told_cut=cut)


def _words(item: Mapping[str, Any]) -> str:
    """Visible words of a message item; a refusal part is what the model said."""
    if item.get("type") != "message":
        return ""
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    texts = (part.get("text", part.get("refusal")) for part in parts)
    return "".join(text for text in texts if isinstance(text, str))


def _thoughts(item: Mapping[str, Any]) -> str:
    if item.get("type") != "reasoning":
        return ""
    for key in ("content", "summary"):
        parts = item.get(key)
        found = (
            [part.get("text") for part in parts if isinstance(part, Mapping)]
            if isinstance(parts, list)
            else []
        )
        texts = [text for text in found if isinstance(text, str)]
        if texts:
            return "".join(texts)
    return ""
