"""Pure. Bytes of one reply → server-sent events, or one whole JSON body.

Owns: telling the two apart by the first byte, sizes, and the sentence for bytes that
are neither. Does not own: what an event or a body means (each wire's stream module).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from surefoot.errors import ProviderNonsense, ProviderUnreachable
from surefoot.providers.port import Usage
from surefoot.providers.sse import Event, LineTooLong, Splitter

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
            nonsense("is not JSON")
        return body if isinstance(body, Mapping) else nonsense("is no JSON object")

    def _split(self, chunk: bytes | None) -> list[Event]:
        try:
            return self._splitter.end() if chunk is None else self._splitter.feed(chunk)
        except UnicodeDecodeError:
            nonsense("is not UTF-8")
        except LineTooLong as error:
            nonsense(f"holds {error}")


def event_object(text: str) -> Mapping[str, Any]:
    """The JSON object of one event."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        nonsense("holds an event that is not JSON")
    return found if isinstance(found, Mapping) else nonsense("holds an event that is no object")


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
