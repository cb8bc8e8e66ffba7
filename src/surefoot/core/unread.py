"""Pure. Which stored entries can wait unread until somebody asks for the receipt they tell of.

Owns: telling from an entry's kind and text alone what reading it would change besides its own receipt.
Does not own: keeping it and folding it later (`lifecycle`).
Promises: receipt:exact.

It knows payloads in the form the ledger writes them: compact, each key once, no letter of a key escaped. A text
that does not begin so is read at once, and so is one that could open a call, close one that is open, or count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.core.model import Kind

_CALL = frozenset(
    {"callId", "attemptId", "position", "askedName", "arguments", "providerCallId", "turnId", "reader"}
)
_WAITING = frozenset({Kind.STARTED.value, Kind.CLOSED.value, Kind.PROCESS.value, Kind.APPROVAL.value})
_READ = frozenset(
    {
        Kind.SESSION_OPENED.value,
        Kind.SESSION_NAMED.value,
        Kind.SESSION_DROPPED.value,
        Kind.ASSISTANT.value,
        Kind.DISPATCHED.value,
        Kind.REWOUND.value,
    }
)
"""The kinds that say something without an attempt."""
_BEGIN, _KEY = '{"attemptId":"', '"attemptId"'
_ENDS = ('"state":"succeeded"', '"state":"failed"')
_SUPERSEDES, _OVERLAYS, _INSPECTION = '"supersedes"', '"overlays"', '"inspection"'
"""Fields by which an entry of a waiting kind would change more than its own receipt."""


def says_nothing(kind: str, text: str) -> bool:
    """Whether no receipt and no line of a listing changes with this entry."""
    return kind not in _READ and _KEY not in text


def attempt_of(kind: str, text: str) -> str | None:
    """The attempt an entry is about that may wait for its receipt; None for one to be read at once."""
    if kind not in _WAITING or not text.startswith(_BEGIN):
        return None
    end = text.find('"', len(_BEGIN))
    attempt = text[len(_BEGIN) : end]
    if "\\" in attempt or (kind == Kind.CLOSED and not text.startswith(_ENDS, end + 2)):
        return None  # an end that is not known may open the call
    # Three plain looks: `any` takes as long again, and each entry of a session comes by here.
    telling = _SUPERSEDES in text or _OVERLAYS in text or _INSPECTION in text
    return None if telling else attempt


def may_wait(call: Mapping[str, Any]) -> bool:
    """Whether a call as it was dispatched says only what every call says: no parent, nothing already known."""
    return call.keys() <= _CALL
