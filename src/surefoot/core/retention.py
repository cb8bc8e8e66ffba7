"""Pure. What may be dropped of an old session, and what is left of its calls (TR-97, TR-158).

Owns: the reasons to keep a session whole, which payloads stay, what a dropped receipt
leaves, and which blobs and run folders a payload names. Does not own: ages, owners, files (`ledger`), a
person's word (`surfaces`).
Promises: retention:open-stays.

A session is dropped whole or not at all: while one of its calls is open, nothing of it
goes, so that no evidence is ever looked for in half a history.
"""

from __future__ import annotations

import re
from typing import Any

from surefoot.core.lifecycle import COUNTED_OVERLAYS, Book
from surefoot.core.model import EffectClass, Kind, Receipt, State

LASTING = frozenset({Kind.SESSION_OPENED.value, Kind.SESSION_NAMED.value})
"""Entries whose payload stays: by them a session is still listed under its name and place."""

_LEFT = (
    "sessionId",
    "turnId",
    "callId",
    "attemptId",
    "position",
    "providerCallId",
    "parentAttemptId",
    "originAttemptId",
    "tool",
    "askedName",
    "argumentDigest",
    "class",
    "reach",
    "scope",
    "interaction",
    "check",
    "idempotencyKey",
    "keyExpiresAt",
    "epoch",
    "dispatchedAt",
    "startedAt",
    "finishedAt",
    "state",
    "reason",
    "errorKind",
    "effectTrace",
    "resultDigest",
    "delivered",
    "resolution",
    "supersededBy",
    "supersedes",
    "ladder",
    "overlays",
    "startedPosition",
)
_INSPECTION = ("id", "state", "grade", "verifier", "observedAt")
_BLOB = re.compile(r"sha256:([0-9a-f]{64})")
_RUN = re.compile(r"processes/(att_[0-9a-z]{26})")


def reason_to_keep(book: Book) -> str | None:
    """Why nothing of this session may be dropped: `open_calls`, `unsettled_calls`, `background`; or None."""
    if book.open():
        return "open_calls"
    if any(receipt.state is State.STARTED for receipt in book.unsettled()):
        return "unsettled_calls"
    if any(_lives(receipt) for receipt in book.mentioning('"background"')):
        return "background"
    return None


def what_is_left(book: Book) -> list[dict[str, Any]]:
    """A line for each call that wrote, may have written, was refused by a fence, or was ever unknown.

    Ids, tool, class, reach, digests, times, outcome and decision stay; arguments, results,
    intents and logs do not.
    """
    kept = {receipt.attempt_id for receipt in book if _leaves_a_line(receipt)}
    for attempt in list(kept):
        # What stands for another attempt stays with it, or the older one would open again (TR-42).
        receipt = book.get(attempt)
        while receipt is not None and receipt.superseded_by:
            kept.add(receipt.superseded_by)
            receipt = book.get(receipt.superseded_by)
    return [_line(receipt) for receipt in book if receipt.attempt_id in kept]


def blobs_named(payload: str) -> set[str]:
    """The hex digests in a payload that may be the name of a blob; rather one too many than one too few."""
    return set(_BLOB.findall(payload))


def runs_named(payload: str) -> set[str]:
    """The names of run folders that a payload leads to: the evidence of supervised commands (TR-66)."""
    return set(_RUN.findall(payload))


def _leaves_a_line(receipt: Receipt) -> bool:
    if receipt.state is State.UNKNOWN or any(overlay in COUNTED_OVERLAYS for overlay in receipt.overlays):
        return True
    if receipt.state is State.NOT_STARTED:
        return receipt.reason == "fenced"
    return receipt.state is not State.DISPATCHED and receipt.effect_class is not EffectClass.READ_ONLY


def _line(receipt: Receipt) -> dict[str, Any]:
    shown = receipt.to_json()
    line = {key: shown[key] for key in _LEFT if shown.get(key) not in (None, [], (), False)}
    if receipt.inspection is not None:
        line["inspection"] = {key: receipt.inspection.get(key) for key in _INSPECTION}
    # A word of a newer version stays the newer word (TR-8).
    return {
        **line,
        "position": receipt.position,
        **{key: receipt.extra[key] for key in _LEFT if key in receipt.extra},
    }


def _lives(receipt: Receipt) -> bool:
    """A background command that nobody has seen end (TR-205)."""
    process = receipt.process or {}
    return bool(process.get("background")) and not (process.get("quiet") or process.get("exit"))
