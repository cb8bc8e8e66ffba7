"""Pure. What is derived from the entries: a session's book and its line in the listing.

Owns: the fold of entries into both. Does not own: how derived rows are stored (`shelf`)
and when they are caught up (`sqlite`).
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from surefoot.core.lifecycle import Book
from surefoot.core.model import EffectClass, Entry, Kind
from surefoot.errors import SessionMissing
from surefoot.ledger.chain import POSITION_MASK


@dataclass(slots=True)
class Listed:
    """What the listing shows of a session, folded entry by entry."""

    upto: int = 0
    name: str | None = None
    directory: str = ""
    model: str | None = None
    changed_ms: int = 0

    def apply(self, position: int, at_ms: int, kind: str, payload: Any) -> None:
        """Fold one entry."""
        self.upto = position
        self.changed_ms = at_ms
        if not kind.startswith("session."):
            return
        if kind == Kind.SESSION_OPENED:
            self.name = payload.get("name") or self.name
            self.directory = str(payload.get("directory") or "")
            self.model = payload.get("model")
        elif kind == Kind.SESSION_NAMED:
            self.name = payload.get("name")
        elif kind == Kind.SESSION_DROPPED:
            # Dropping is no news of the session: it keeps its place in the listing.
            self.changed_ms = payload.get("changedMs", at_ms)


@dataclass(slots=True)
class Folded:
    """A session as of one position: its book and its line in the listing."""

    book: Book
    listed: Listed
    anew: bool = True
    """True while no derived row of it holds, so that stale ones are removed first."""

    def list_entries(self, entries: Iterable[Entry]) -> None:
        """Fold entries that the book has folded; what is left after a drop begins the derived rows anew."""
        for entry in entries:
            self.listed.apply(entry.position, entry.at_ms, entry.kind, entry.payload)
            if entry.kind == Kind.SESSION_DROPPED:
                self.anew = True


def stored_of(row: Sequence[Any]) -> Stored:
    """What a row of `entries_after` stores."""
    key, epoch, at_ms, kind, payload, head = row
    return (key & POSITION_MASK, epoch, at_ms, kind), payload, head


def entry_of(session_id: str, row: Sequence[Any]) -> Entry:
    """An entry from a row of `entries_after`."""
    return read_entry(session_id, *stored_of(row))


def read_entry(
    session_id: str, facts: tuple[int, int, int, str], payload: str | bytes | None, head: bytes
) -> Entry:
    """An entry from what is stored of it; `facts` are position, epoch, at_ms and kind.

    One whose payload was dropped is of a kind of its own, which nothing is folded from.
    """
    position, epoch, at_ms, kind = facts
    if payload is None:
        return Entry(session_id, position, epoch, at_ms, Kind.DROPPED.value, {"was": kind}, head.hex())
    return Entry(session_id, position, epoch, at_ms, kind, _parsed(payload), head.hex())


_raw_decode = json.JSONDecoder().raw_decode


def _parsed(payload: str | bytes) -> Any:
    """The value of a payload. `json.loads` looks for an encoding and for blanks first, which costs as much again."""
    text = payload if isinstance(payload, str) else payload.decode()
    if text.startswith("{"):
        value, end = _raw_decode(text)
        if end == len(text):
            return value
    return json.loads(text)


@contextmanager
def without_collecting() -> Iterator[None]:
    """Build many objects that stay, without the collector walking through all of them again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def fold(folded: Folded, entries: Iterable[Entry]) -> Folded:
    """Fold further entries into both."""
    for entry in entries:
        folded.book.apply(entry)
        folded.list_entries((entry,))
    return folded


Stored = tuple[tuple[int, int, int, str], "str | bytes | None", bytes]
"""What is stored of an entry: position, epoch, at_ms and kind; its payload; its head."""


def fold_stored(folded: Folded, session_id: str, rows: Iterable[Stored]) -> Folded:
    """Fold further entries into both, and read the payloads of settled calls when their receipts are asked for."""
    book, listed = folded.book, folded.listed
    for facts, payload, head in rows:
        if payload is not None:
            text = payload if isinstance(payload, str) else payload.decode()
            if book.apply_unread(session_id, facts, text):
                listed.apply(facts[0], facts[2], facts[3], None)
                continue
            payload = text
        entry = read_entry(session_id, facts, payload, head)
        book.apply_later(entry)
        folded.list_entries((entry,))
    return folded


def open_calls(book: Book) -> int:
    """How many calls are shown as open; a read fences nothing and is no card (TR-38)."""
    return len(
        {receipt.call_id for receipt in book.open() if receipt.effect_class is not EffectClass.READ_ONLY}
    )


def missing(session_id: str) -> SessionMissing:
    """The error for a session nobody knows."""
    return SessionMissing(
        f"there is no session {session_id!r} in this ledger; `surefoot session list` shows all"
    )
