"""The output of a command as the model is shown it: whole, or head and tail with a mark.

Owns: how much is read of a log and where it is cut. Does not own: when a log is complete
(`supervisor`).
"""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import Callable
from pathlib import Path

from surefoot.tools.processes import folder

SHOWN_BYTES = 30_000


def shown_output(descriptor: int, size: int, *, log: str, limit: int = SHOWN_BYTES) -> str:
    """The first `size` bytes of the run folder's log; above `limit` bytes head and tail with a mark."""
    try:
        file = os.open(folder.LOG, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
    except OSError:
        return ""
    try:
        # The file may have been cut since; what is not there any more is not shown.
        size = min(size, os.fstat(file).st_size)
        if size <= limit:
            return _decoded(os.pread(file, size, 0))
        half = limit // 2
        head, tail = os.pread(file, half, 0), os.pread(file, half, size - half)
        mark = f"\n[... {size - 2 * half} bytes left out here; the whole output is in {log} ...]\n"
        return _whole_end(head) + mark + _whole_start(tail)
    finally:
        os.close(file)


def _decoded(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _whole_end(content: bytes) -> str:
    """Leave out the character that our cut went through."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(content, final=False)


def _whole_start(content: bytes) -> str:
    skip = 0
    while skip < 3 and skip < len(content) and 0x80 <= content[skip] < 0xC0:
        skip += 1
    return _decoded(content[skip:])


LOOK_SECONDS = 0.1
_PIECE_BYTES = 64 * 1024


async def follow_log(log: Path, show: Callable[[str], None], *, notice_bytes: int) -> None:
    """Show what is appended to a log until cancelled; says so once when it grows past `notice_bytes`."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    position = 0
    told = False
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        piece = _piece(log, position)
        while piece:
            position += len(piece)
            if position <= notice_bytes:
                show(decoder.decode(piece))
            elif not told:
                told = True
                show(f"\n[more than {notice_bytes} bytes of output; the rest goes to {log} only]\n")
            piece = _piece(log, position)
            await asyncio.sleep(0)


def _piece(log: Path, position: int) -> bytes:
    try:
        with log.open("rb") as file:
            return os.pread(file.fileno(), _PIECE_BYTES, position)
    except OSError:
        return b""
