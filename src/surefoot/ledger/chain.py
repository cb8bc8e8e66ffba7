"""The hash chain of one session, and the text an entry's payload has on disk.

Owns: how a payload is written, its salted digest, the head after an entry, and the
check of a run of entries (TR-200). Does not own: where heads are kept.

The chain runs over SHA-256(salt, payload), so that a payload and its salt can be
dropped and the chain still verifies from the digest left in their place.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterable, Mapping
from typing import Any

SALT_BYTES = 16
POSITION_BITS = 40
POSITION_MASK = (1 << POSITION_BITS) - 1

_FACTS = struct.Struct("<QQq")
_sha256 = hashlib.sha256

ChainRow = tuple[int, int, int, str, bytes, bytes | None, bytes | None, bytes | None]
"""key, epoch, at_ms, kind, head, salt, payload, digest"""


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form in a ledger entry")


_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain).encode
_ascii = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False, default=_plain).encode


def payload_text(payload: Mapping[str, Any]) -> tuple[str, bytes]:
    """The compact JSON of a payload, as text and as its UTF-8 bytes.

    Raises:
        TypeError, ValueError: a value JSON has no form for.
    """
    text = _compact(payload)
    try:
        return text, text.encode()
    except UnicodeEncodeError:
        # A lone surrogate, which a model may write as an escape, has an escape as its only lossless form.
        text = _ascii(payload)
        return text, text.encode()


def new_salt() -> bytes:
    """A fresh salt; without it a dropped payload could be guessed from its digest."""
    return os.urandom(SALT_BYTES)


def genesis(session_id: str) -> bytes:
    """The head of a session before its first entry."""
    return _sha256(b"surefoot ledger 1\n" + session_id.encode()).digest()


def payload_digest(salt: bytes, payload: bytes) -> bytes:
    """The digest of one payload under its salt."""
    return _sha256(salt + payload).digest()


def link(head: bytes, facts: tuple[int, int, int], kind: str, digest: bytes) -> bytes:
    """The head after one more entry; `facts` are position, epoch and at_ms."""
    return _sha256(head + digest + _FACTS.pack(*facts) + kind.encode()).digest()


def check(head: bytes, after: int, rows: Iterable[ChainRow]) -> tuple[bytes, int, str | None]:
    """Follow `rows` from `head` at position `after`: the last good head and position, and what broke.

    A position that is missing breaks the chain like a changed byte.
    """
    position = after
    sha256, pack = _sha256, _FACTS.pack
    for key, epoch, at_ms, kind, told, salt, payload, digest in rows:
        if key & POSITION_MASK != position + 1:
            return head, position, f"position {position + 1} is missing"
        if payload is not None and salt is not None:
            digest = sha256(salt + payload).digest()
        if digest is None:
            return head, position, f"entry {position + 1} has neither payload nor digest"
        made = sha256(head + digest + pack(position + 1, epoch, at_ms) + kind.encode()).digest()
        if made != told:
            return head, position, f"entry {position + 1} does not follow from the one before it"
        head = made
        position += 1
    return head, position, None
