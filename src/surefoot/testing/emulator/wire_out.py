"""HTTP/1.1 on plain streams: reading requests from anybody, and writing replies that may break off anywhere.

Owns: parsing that survives hostile bytes, and exact control over the socket: a cut
at any byte, a silence at any byte. Does not own: what is sent (`server`).
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

HEAD_BYTES = 64 * 1024
REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Payload Too Large",
}


class BadRequest(Exception):
    """The bytes that came are no HTTP request; `status` is what to answer before closing."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.request: Request | None = None
        """Whose body it was, when its head could be read."""


@dataclass(slots=True)
class Request:
    """One request as it came. Header names are lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""
    query: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Outgoing:
    """One reply: its pieces, and where the socket is cut or falls silent."""

    status: int
    pieces: list[bytes]
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    stream: bool = False
    delay_seconds: float | None = 0.0
    """Before the first byte; None waits until released."""
    cut: int | None = None
    """Byte of the body after which the socket is closed."""
    stall: int | None = None
    stall_seconds: float | None = 0.0
    keep_alive: bool = False
    """Send comments during a stall."""

    def set_header(self, name: str, value: str) -> None:
        """Set a header in place of one that differs in case only."""
        self.headers = {k: v for k, v in self.headers.items() if k.lower() != name.lower()} | {name: value}

    def names(self) -> set[str]:
        """The names of its headers in lower case."""
        return {name.lower() for name in self.headers}


def place_of(where: Any, pieces: list[bytes]) -> int | None:
    """The byte offset a `cut_at` or `stall_at` names, or None when these pieces do not reach it.

    `where` is a number of events, or `{"events": n}`, `{"bytes": n}`, `{"inside": "character"}`
    (between the bytes of the first long character) or `{"inside": "line", "events": n}`.
    """
    spec = where if isinstance(where, dict) else {"events": int(where)}
    whole = b"".join(pieces)
    if spec.get("inside") == "character":
        found = next((i for i, byte in enumerate(whole) if byte >= 0xC2), None)
        return None if found is None else found + 1
    if "bytes" in spec:
        place = int(spec["bytes"])
        return place if place < len(whole) else None
    number = int(spec.get("events", 1))
    if number > len(pieces) or (number == len(pieces) and not spec.get("inside")):
        return None
    if spec.get("inside") == "line":
        before = sum(len(piece) for piece in pieces[: number - 1])
        return before + len(pieces[number - 1]) // 2
    return sum(len(piece) for piece in pieces[:number])


class Connection:
    """One client. Reads requests, writes replies, and notices when the client goes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._buffer = b""
        self.sent = 0
        """Bytes of the body of the current reply."""
        self.client_gone = False
        writer.transport.set_write_buffer_limits(high=0)  # a drained byte has left the process

    async def read_request(self, body_limit: int) -> Request | None:
        """The next request, or None at a clean end.

        Raises:
            BadRequest: what came is no request; nothing more can be read.
        """
        head = await self._until(b"\r\n\r\n")
        if head is None:
            return None
        request = _parse_head(head)
        try:
            request.body = await self._body(request, body_limit)
        except BadRequest as bad:
            bad.request = request
            raise
        return request

    async def _body(self, request: Request, body_limit: int) -> bytes:
        if "chunked" in request.headers.get("transfer-encoding", "").lower():
            return await self._chunked(body_limit)
        length = request.headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit() and len(length) < 16):
            raise BadRequest(400, "content-length is no number")
        if int(length) > body_limit:
            raise BadRequest(413, "the body is too large")
        return await self._exactly(int(length))

    async def send(self, out: Outgoing, wait: Waiting) -> tuple[bool, bool]:
        """Write the reply; True, True when its cut and its stall really happened."""
        self.sent = 0
        await wait(out.delay_seconds, self)
        await self._write(self._head(out))
        cut = stalled = False
        at = 0
        for piece in out.pieces:
            if out.stall == at:
                stalled = True
                await self._silence(out, wait)
            if out.cut == at or self.client_gone:
                cut = out.cut == at
                break
            await self._write(f"{len(piece):x}\r\n".encode() if out.stream else b"")
            for part, end in _split(piece, at, out.stall, out.cut):
                await self._write(part)
                self.sent += len(part)
                if end == out.stall and end < at + len(piece):
                    stalled = True
                    await wait(out.stall_seconds, self)
                if end == out.cut and end < at + len(piece):
                    cut = True
                    break
            if cut or self.client_gone:
                break
            at += len(piece)
            await self._write(b"\r\n" if out.stream else b"")
        if cut:
            self.abort()
        elif out.stream:
            await self._write(b"0\r\n\r\n")
        return cut, stalled

    def abort(self) -> None:
        """Close the socket at once, in the middle of whatever is being sent."""
        self.client_gone = True
        self._writer.transport.abort()

    async def see_off(self) -> None:
        """Take what the client still sends and let it read the answer; it would lose it to a reset."""
        with contextlib.suppress(OSError):
            self._writer.write_eof()
        self._buffer = b""
        while not self.client_gone and await self._more():
            self._buffer = b""

    async def close(self) -> None:
        """Close in peace."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def until_gone(self) -> None:
        """Return when the client has closed its side; bytes that come meanwhile are kept."""
        while not self.client_gone and await self._more():
            if len(self._buffer) > HEAD_BYTES:
                self.abort()
        self.client_gone = True

    async def _silence(self, out: Outgoing, wait: Waiting) -> None:
        """Fall silent between two events, with comments that keep the line alive if asked."""
        if not (out.keep_alive and out.stream):
            await wait(out.stall_seconds, self)
            return
        for _ in range(5):
            await self._write(b"e\r\n: keep-alive\n\n\r\n")
            await wait((out.stall_seconds or 0.5) / 5, self)

    def _head(self, out: Outgoing) -> bytes:
        given = out.names()
        lines = [f"HTTP/1.1 {out.status} {REASONS.get(out.status, 'Status')}"]
        if "content-type" not in given:
            lines.append(f"content-type: {out.content_type}")
        if out.stream:
            lines += ["transfer-encoding: chunked", "cache-control: no-cache"]
        elif out.status not in (204, 304) and "content-length" not in given:
            lines.append(f"content-length: {sum(len(piece) for piece in out.pieces)}")
        lines += [f"{name}: {value}" for name, value in out.headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")

    async def _write(self, content: bytes) -> None:
        if self.client_gone or not content:
            return
        try:
            self._writer.write(content)
            await self._writer.drain()
        except OSError:
            self.client_gone = True

    async def _more(self) -> bool:
        try:
            got = await self._reader.read(65_536)
        except OSError:
            got = b""
        self._buffer += got
        return bool(got)

    async def _until(self, mark: bytes) -> bytes | None:
        while mark not in self._buffer:
            if len(self._buffer) > HEAD_BYTES:
                raise BadRequest(400, "the head is too large")
            if not await self._more():
                if self._buffer.strip():
                    raise BadRequest(400, "the request broke off")
                return None
        head, _, self._buffer = self._buffer.partition(mark)
        return head

    async def _exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            if not await self._more():
                raise BadRequest(400, "the body broke off")
        body, self._buffer = self._buffer[:count], self._buffer[count:]
        return body

    async def _chunked(self, limit: int) -> bytes:
        body = b""
        while True:
            line = await self._until(b"\r\n")
            try:
                size = int((line or b"").split(b";")[0].strip(), 16)
            except ValueError:
                raise BadRequest(400, "a chunk has no size") from None
            if size < 0 or len(body) + size > limit:
                raise BadRequest(413, "the body is too large")
            body += await self._exactly(size)
            await self._exactly(2)
            if size == 0:
                return body


class Waiting:
    """Waits for seconds, for a release, or for the client to go, whichever comes first."""

    def __init__(self) -> None:
        self._released = asyncio.Event()
        self._began = asyncio.Event()
        self.now_waiting = 0

    def release(self) -> None:
        """Let everything go on that waits for a release; later waits wait for the next one."""
        self._released.set()
        self._released = asyncio.Event()

    async def until_held(self) -> None:
        """Return when at least one reply waits."""
        while not self.now_waiting:
            await self._began.wait()

    async def __call__(self, seconds: float | None, connection: Connection) -> None:
        """Wait. None waits for a release."""
        if seconds == 0 or connection.client_gone:
            return
        gone = asyncio.ensure_future(connection.until_gone())
        freed = asyncio.ensure_future(self._released.wait())
        self.now_waiting += 1
        self._began.set()
        try:
            await asyncio.wait({gone, freed}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.now_waiting -= 1
            self._began.clear()
            for task in (gone, freed):
                task.cancel()
            await asyncio.gather(gone, freed, return_exceptions=True)


def _split(piece: bytes, at: int, *marks: int | None) -> list[tuple[bytes, int]]:
    """The piece in parts that end at the marks inside it, each with the offset of its end."""
    inside = {mark for mark in marks if mark is not None and at < mark < at + len(piece)}
    ends = sorted(inside | {at + len(piece)})
    parts, start = [], at
    for end in ends:
        parts.append((piece[start - at : end - at], end))
        start = end
    return parts


def _parse_head(head: bytes) -> Request:
    try:
        lines = head.decode("latin-1").split("\r\n")
        method, target, version = lines[0].lstrip("\r\n").split(" ")
    except ValueError:
        raise BadRequest(400, "the request line is malformed") from None
    if not version.startswith("HTTP/1.") or not method.isalpha():
        raise BadRequest(400, "the request line is malformed")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BadRequest(400, "a header line is malformed")
        headers[name.lower()] = value.strip()
    try:
        split = urlsplit(target)
        path, query = unquote(split.path), dict(parse_qsl(split.query, keep_blank_values=True))
    except ValueError:
        raise BadRequest(400, "the target is malformed") from None
    return Request(method.upper(), path, headers, query=query)
