"""The witness: 64 bytes per session beside the ledger, which tell a lost tail (TR-196).

Owns: the form of the records and what a comparison with the ledger says. Does not
own: what follows from a lost tail (`runtime.reconcile`).

A record is written after each commit, inside the gate, and not synced: a witness that
is behind means nothing, one that is ahead means that acknowledged entries are gone.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

from surefoot.core.canonical import CROCKFORD, is_id

RECORD_BYTES = 64
_RECORD = struct.Struct("<4s16sIQ24sI")
_MAGIC = b"SFW1"
_HASHED = 1
_DIGITS = {digit: value for value, digit in enumerate(CROCKFORD)}


@dataclass(frozen=True, slots=True)
class Seen:
    """What the witness saw of one session last."""

    number: int
    session_id: str | None
    """None when the id was not a typed one; then only its digest is known."""
    tag: bytes
    epoch: int
    position: int
    head: bytes
    """The first 24 bytes of the chain head."""

    def same_head(self, head: bytes | None) -> bool:
        """Whether `head` is the one seen."""
        return head is not None and head[:24] == self.head


class Witness:
    """The open witness file of one ledger."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        flags = os.O_RDONLY if read_only else os.O_RDWR | os.O_CREAT
        self._fd = os.open(path, flags | os.O_CLOEXEC, 0o600)

    def write(self, number: int, tag: tuple[bytes, int], epoch: int, position: int, head: bytes) -> None:
        """Overwrite the record of session `number`; `tag` is made by `tag_of`."""
        body = _RECORD.pack(_MAGIC, tag[0], epoch, position, head[:24], tag[1])
        os.pwrite(self._fd, body + zlib.crc32(body).to_bytes(4, "little"), number * RECORD_BYTES)

    def read(self, number: int) -> Seen | None:
        """The record of session `number`, or None when there is none or it is torn."""
        return _parse(number, os.pread(self._fd, RECORD_BYTES, number * RECORD_BYTES))

    def all(self) -> list[Seen]:
        """Every readable record, by session number."""
        return [seen for number in range(1, self.highest() + 1) if (seen := self.read(number)) is not None]

    def torn(self) -> list[int]:
        """The numbers of records that are neither empty nor readable."""
        found = []
        for number in range(1, self.highest() + 1):
            raw = os.pread(self._fd, RECORD_BYTES, number * RECORD_BYTES)
            if raw.strip(b"\0") and _parse(number, raw) is None:
                found.append(number)
        return found

    def highest(self) -> int:
        """The highest session number that ever had a record; such a number is not given again."""
        return max(0, -(-os.fstat(self._fd).st_size // RECORD_BYTES) - 1)

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def tag_of(session_id: str) -> tuple[bytes, int]:
    """The 16 bytes that name a session in its record, and their kind."""
    if is_id(session_id, "ses"):
        number = 0
        for digit in session_id[4:]:
            number = number << 5 | _DIGITS[digit]
        if number < 1 << 128:
            return number.to_bytes(16, "big"), 0
    return hashlib.sha256(session_id.encode()).digest()[:16], _HASHED


def _parse(number: int, raw: bytes) -> Seen | None:
    if len(raw) != RECORD_BYTES or zlib.crc32(raw[:60]).to_bytes(4, "little") != raw[60:]:
        return None
    magic, tag, epoch, position, head, kind = _RECORD.unpack(raw[:60])
    if magic != _MAGIC:
        return None
    return Seen(number, None if kind == _HASHED else _id_of(tag), tag, epoch, position, head)


def _id_of(tag: bytes) -> str:
    number = int.from_bytes(tag, "big")
    digits = [CROCKFORD[number >> 5 * place & 31] for place in range(25, -1, -1)]
    return "ses_" + "".join(digits)
