"""Messages that come on standard input while a run goes on: `--input-format stream-json`.

Owns: the form of a line and how lines are read beside the loop. Does not own: the turns they begin (`printing`).
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from surefoot.errors import UsageError

LINE_BYTES = 8 * 1024 * 1024
_CHUNK = 64 * 1024


class Incoming:
    """The lines of standard input in order. Call `next` until it gives None."""

    def __init__(self, skipped: Callable[[str], None], *, descriptor: int = 0) -> None:
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._skipped = skipped
        self._count = 0
        loop = asyncio.get_running_loop()

        def put(line: bytes | None) -> None:
            try:
                loop.call_soon_threadsafe(self._lines.put_nowait, line)
            except RuntimeError:
                return  # the run is over and its loop is closed

        # A thread that the end of the program does not wait for: nobody may ever write to standard input.
        threading.Thread(target=_read, args=(descriptor, put), daemon=True, name="stdin").start()

    async def next(self) -> str | None:
        """The words of the next message; None at the end. Raises `UsageError` for a line that is no message."""
        while True:
            line = await self._lines.get()
            if line is None:
                return None
            self._count += 1
            if not line.strip():
                continue
            words = words_of_line(line, self._count)
            if words is not None:
                return words
            self._skipped(f"Line {self._count} of standard input is no message of a user; it is left out.")


def words_of_line(line: bytes, number: int) -> str | None:
    """The words of one line; None for a line of a kind that is skipped. Raises `UsageError`."""
    if len(line) > LINE_BYTES:
        raise UsageError(f"Line {number} of standard input holds more than 8 MiB.")
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        raise UsageError(f"Line {number} of standard input is not valid JSON.") from None
    if not isinstance(told, dict):
        raise UsageError(f"Line {number} of standard input must be a JSON object.")
    if told.get("type") != "user":
        return None
    message = told.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    words = _words(content)
    if words is None or not words.strip():
        raise UsageError(
            f"Line {number} of standard input has no words: message.content must be a text or a list of text blocks."
        )
    return words


def _words(content: Any) -> str | None:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [
        block["text"]
        for block in content
        if isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str)
    ]
    return "\n\n".join(texts) if len(texts) == len(content) else None


def _read(descriptor: int, put: Callable[[bytes | None], None]) -> None:
    """Give each line as it is whole; a last one without its end too. Read without the interpreter's buffer, whose
    lock would stop the end of the program."""
    rest = b""
    while True:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except OSError:
            chunk = b""
        if not chunk:
            break
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            put(line)
        if len(rest) > LINE_BYTES:
            break  # told as too long; what follows could not be told apart any more
    if rest:
        put(rest)
    put(None)
