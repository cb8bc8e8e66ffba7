"""Pure. Whether a file is a whole picture that a model's server can take.

Owns: the two kinds that every server of pictures reads, their size in pixels, and refusing what is torn. Does not
own: reading files (`reading`), where a picture goes (`providers.pictures`).

A server refuses a request for a picture that it cannot decode, and would refuse every later one that replays it. So a
file counts as a picture only when it can be walked from its first byte to its last.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

MOST_BYTES = 3_600_000
"""In base64 this stays below 5 MB, the least that servers take."""
MOST_PIXELS = 7_990
"""On a side."""
_PNG = b"\x89PNG\r\n\x1a\n"
_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""JPEG markers of a frame header, which holds the size."""
_STANDALONE = frozenset({0x01, *range(0xD0, 0xD9)})


@dataclass(frozen=True, slots=True)
class Sight:
    """What a whole picture is."""

    media_type: str
    width: int
    height: int


def sight_of(content: bytes) -> Sight | None:
    """The picture a file is, or None for anything torn, too large, or of another kind."""
    if len(content) > MOST_BYTES:
        return None
    found = _png(content) if content.startswith(_PNG) else _jpeg(content)
    if found is None or not (0 < found.width <= MOST_PIXELS and 0 < found.height <= MOST_PIXELS):
        return None
    return found


def _png(content: bytes) -> Sight | None:
    place, size, pixels = len(_PNG), None, zlib.decompressobj()
    while place + 12 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, place)
        end = place + 12 + length
        if end > len(content) or zlib.crc32(content[place + 4 : end - 4]) != _number(content, end - 4):
            return None
        if kind == b"IHDR" and length == 13:
            size = struct.unpack_from(">II", content, place + 8)
        if kind == b"IDAT" and not _unpacks(pixels, content[place + 8 : end - 4]):
            return None
        if kind == b"IEND":
            whole = size is not None and pixels.eof and end == len(content)
            return Sight("image/png", *size) if size is not None and whole else None
        place = end
    return None


def _number(content: bytes, place: int) -> int:
    return int.from_bytes(content[place : place + 4], "big")


def _unpacks(pixels: zlib._Decompress, piece: bytes) -> bool:
    """Unpack in small steps and forget: a bomb costs time bounded by its size on disk, and no memory."""
    try:
        while piece:
            pixels.decompress(piece, 1 << 16)
            piece = pixels.unconsumed_tail
    except zlib.error:
        return False
    return True


def _jpeg(content: bytes) -> Sight | None:
    if not content.startswith(b"\xff\xd8\xff") or not content.endswith(b"\xff\xd9"):
        return None
    place, size = 2, None
    while place + 4 <= len(content) and content[place] == 0xFF:
        marker = content[place + 1]
        if marker == 0xFF or marker in _STANDALONE:
            place += 1 if marker == 0xFF else 2
            continue
        length = int.from_bytes(content[place + 2 : place + 4], "big")
        if marker in _SIZES and length >= 8:
            height, width = struct.unpack_from(">HH", content, place + 5)
            size = (width, height)
        if marker == 0xDA:
            return None if size is None else Sight("image/jpeg", *size)
        place += 2 + length
    return None
