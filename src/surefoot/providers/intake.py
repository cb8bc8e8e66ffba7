"""Pure. Bytes of one reply → server-sent events, or one whole JSON body; and what every decoder does with them.

Owns: telling the two apart by the first byte, sizes, the sentence for bytes that are neither, the
order in which a reply ends (`WireDecoder`). Does not own: what an event or a body means (each wire's
stream module).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NoReturn

from surefoot.errors import ProviderNonsense, ProviderUnreachable
from surefoot.providers.diagnosis import refused_in_reply
from surefoot.providers.port import Reply, TextDelta, Usage
from surefoot.providers.sse import Event, LineTooLong, Splitter
from surefoot.providers.written import is_json, is_truncated

_BODY_BYTES = 64 << 20


class Intake:
    """Takes the bytes of one reply, split anywhere. A stream may be answered with one JSON body."""

    def __init__(self) -> None:
        self.whole: bool | None = None
        """True for one JSON body, False for events, None before the first byte that tells."""
        self._splitter = Splitter()
        self._body = bytearray()

    def feed(self, chunk: bytes) -> list[Event]:
        """Take bytes; return the events they complete."""
        if self.whole is None:
            self._body += chunk
            start = bytes(self._body[:64]).lstrip(b"\xef\xbb\xbf \t\r\n")
            if not start:
                return []
            self.whole = start[:1] in (b"{", b"[", b"<")
            chunk = b"" if self.whole else bytes(self._body)
        if self.whole:
            self._body += chunk
            if len(self._body) > _BODY_BYTES:
                nonsense("is larger than 64 MiB")
            return []
        return self._split(chunk)

    def end(self) -> list[Event]:
        """The transport closed; return what the last bytes complete.

        Raises:
            ProviderUnreachable: nothing had come.
        """
        if self.whole is None:
            raise ProviderUnreachable(
                "The model's server closed without a reply.", kind="transport", transient=True
            )
        return [] if self.whole else self._split(None)

    def body(self) -> Mapping[str, Any]:
        """The whole JSON body."""
        try:
            body = json.loads(bytes(self._body).removeprefix(b"\xef\xbb\xbf"))
        except (ValueError, RecursionError):
            if is_truncated(bytes(self._body).decode("utf-8", "ignore")):
                raise incomplete() from None
            nonsense("is not JSON")
        return body if isinstance(body, Mapping) else nonsense("is no JSON object")

    def _split(self, chunk: bytes | None) -> list[Event]:
        try:
            return self._splitter.end() if chunk is None else self._splitter.feed(chunk)
        except UnicodeDecodeError as error:
            if chunk is None and error.reason == "unexpected end of data":
                raise incomplete() from None  # broken off inside a character
            nonsense("is not UTF-8")
        except LineTooLong as error:
            nonsense(f"holds {error}")


class WireDecoder(ABC):
    """Decodes one reply, streamed or whole; the first byte tells which it is.

    Nothing is given out as a reply before the wire's terminal marker was seen (S-07), so a broken
    stream can start no tool. A wire says what its events mean and when it has ended.
    """

    def __init__(self, contract: Mapping[str, Any]) -> None:
        self._contract = contract
        self._terminal = frozenset(contract["stream.terminal"])
        """What ends a reply of this endpoint: a type of event, or a line of data such as `[DONE]`."""
        self._usage_places = [one for one in contract["stream.usage"] if one != "usage"]
        """Where usage stands beside the place that every reply of the wire has for it (S-35)."""
        self._intake = Intake()
        self._usage = Usage()
        self._error: Any = None
        self._events = 0
        self._ended = False
        """The wire's last marker came."""

    @property
    def finished(self) -> bool:
        """The wire's last marker came, or an error that ends the reply."""
        return self._ended or self._error is not None

    def feed(self, chunk: bytes) -> list[TextDelta]:
        """Take bytes as they come, split anywhere."""
        return self._take(self._intake.feed(chunk))

    def end(self) -> Reply:
        """The transport closed cleanly; see `Decoder.end`."""
        rest = [] if self._ended else self._intake.end()
        if self._intake.whole:
            body = self._intake.body()
            self._error = body.get("error") or None
            if self._error is None:
                self._whole(body)
                self._count(body)
        else:
            self._take(self._finished(rest))
        if self._error is not None:
            raise refused_in_reply(self._error, self._contract)
        if not self._intake.whole and self._events == 0:
            nonsense("holds no event")
        refused = self._refusal()
        if refused is not None:
            code, kind = refused
            raise refused_in_reply({"code": code}, self._contract, kind=kind)
        return self._reply()

    def _take(self, events: list[Event]) -> list[TextDelta]:
        told: list[TextDelta] = []
        for event in events:
            if self.finished:
                break
            if (mark := event.data.strip()) in self._terminal:
                self._ended = True
                self._events += 1
                continue
            if mark == "[DONE]":
                continue  # a proxy's own marker, which proves nothing here
            parsed = event_object(event.data)
            told += self._event(event.name, parsed)
            self._count(parsed)
            self._ended = self._ended or str(parsed.get("type") or event.name) in self._terminal
        return told

    def _finished(self, rest: list[Event]) -> list[Event]:
        """The events that the close of the connection completed; one it broke off inside says so (S-08)."""
        last = rest[-1].data.strip() if rest else None
        if last is None or last in self._terminal or is_json(last):
            return rest
        if self._events or not last or is_truncated(last):
            raise incomplete()
        return rest

    def _count(self, part: Mapping[str, Any]) -> None:
        for place in self._usage_places:
            self._usage = usage_of(_at(part, place), self._usage)

    @abstractmethod
    def _event(self, name: str, event: Mapping[str, Any]) -> list[TextDelta]:
        """Take one event."""

    @abstractmethod
    def _whole(self, body: Mapping[str, Any]) -> None:
        """Take a reply that came as one JSON body; one that parsed has ended, whatever its finish word says."""

    @abstractmethod
    def _refusal(self) -> tuple[str, str] | None:
        """Code and kind where the finish word is a refusal under status 200 (S-30), else None."""

    @abstractmethod
    def _reply(self) -> Reply:
        """The finished reply; raises `incomplete` where the terminal marker is missing."""


def event_object(text: str) -> Mapping[str, Any]:
    """The JSON object of one event."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        nonsense("holds an event that is not JSON")
    return found if isinstance(found, Mapping) else nonsense("holds an event that is no object")


def _at(part: Any, place: str) -> Any:
    """What stands at a dotted place such as `choices.0.usage`, or None."""
    for step in place.split("."):
        if isinstance(part, list):
            part = part[int(step)] if step.isdecimal() and int(step) < len(part) else None
        else:
            part = part.get(step) if isinstance(part, Mapping) else None
    return part


def count(told: Mapping[str, Any], before: int | None, *names: str) -> int | None:
    """The first of these token counts that is told; unknown stays what it was (S-35)."""
    for name in names:
        value = told.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return before


def usage_of(told: Any, before: Usage, *, input_also: tuple[str, ...] = ()) -> Usage:
    """Usage as told in either naming; `input_also` names parts that are counted apart from the input."""
    if not isinstance(told, Mapping):
        return before
    tokens = count(told, None, "prompt_tokens", "input_tokens")
    if tokens is not None:
        tokens += sum(count(told, 0, name) or 0 for name in input_also)
    return Usage(
        before.input_tokens if tokens is None else tokens,
        count(told, before.output_tokens, "completion_tokens", "output_tokens"),
    )


def incomplete() -> ProviderUnreachable:
    """The error for a reply that ended without its wire's last marker (S-07)."""
    return ProviderUnreachable(
        "The reply of the model's server ended before it was complete; nothing of it ran.",
        kind="transport",
        transport_code="incomplete",
        transient=True,
    )


def nonsense(what: str) -> NoReturn:
    """Raise the error for a reply that is not of its wire's form."""
    raise ProviderNonsense(
        f"The reply of the model's server {what}. Check the endpoint's URL and contract.",
        next_command="surefoot doctor",
    )
