"""Pure. Server-sent events out of bytes that may be split anywhere.

Owns: lines, `event:` and `data:` fields, comments. Does not own: what an event means.
"""

from __future__ import annotations

from dataclasses import dataclass

LINE_BYTES = 8 << 20
"""A longer line is no event of a model; it is refused before it is copied again and again."""


class LineTooLong(ValueError):
    """One line of the stream is larger than `LINE_BYTES`."""


@dataclass(frozen=True, slots=True)
class Event:
    """One dispatched event; `data` joins its data lines with a newline."""

    name: str
    data: str


class Splitter:
    """Feed bytes, take events. A line is decoded whole, so a character may be split anywhere."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[str] = []
        self._begun = False

    def feed(self, chunk: bytes) -> list[Event]:
        """Take bytes; return the events they complete.

        Raises:
            UnicodeDecodeError: a finished line is not UTF-8.
            LineTooLong: a line without an end.
        """
        self._rest += chunk
        if not self._begun and len(self._rest) >= 3:
            self._begun = True
            self._rest = self._rest.removeprefix(b"\xef\xbb\xbf")
        # A CR at the very end may be the first half of CRLF; it waits for the next byte.
        held = b"\r" if self._rest.endswith(b"\r") else b""
        whole = self._rest[: len(self._rest) - len(held)]
        lines = whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop() + held
        if len(self._rest) > LINE_BYTES:
            raise LineTooLong(f"a line of more than {LINE_BYTES} bytes")
        return [event for line in lines if (event := self._line(line)) is not None]

    def end(self) -> list[Event]:
        """The stream closed: a last line and event without their blank line still count."""
        line, self._rest = self._rest.rstrip(b"\r"), b""
        first = self._line(line) if line else None
        last = self._line(b"")
        return [event for event in (first, last) if event is not None]

    def _line(self, line: bytes) -> Event | None:
        text = line.decode("utf-8")
        if not text:
            if not self._data:
                self._name = ""
                return None
            event = Event(self._name, "\n".join(self._data))
            self._name, self._data = "", []
            return event
        field, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        return None
