"""What is derived from the entries: receipts and the listing, and the book read back from them.

Owns: the rows of the derived tables, how far they reach, and the fold of what came
after. Does not own: when they are caught up (`sqlite`). Nothing here is believed that
does not agree with its own check: then everything is folded anew from the entries.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.core.lifecycle import Book
from surefoot.core.model import EffectClass, Entry, Kind
from surefoot.ledger.chain import POSITION_MASK
from surefoot.ledger.database import Database


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
        if kind == Kind.SESSION_OPENED:
            self.name = payload.get("name") or self.name
            self.directory = str(payload.get("directory") or "")
            self.model = payload.get("model")
        elif kind == Kind.SESSION_NAMED:
            self.name = payload.get("name")


@dataclass(slots=True)
class Folded:
    """A session as of one position: its book and its line in the listing."""

    book: Book
    listed: Listed
    anew: bool = True
    """True while no derived row of it holds, so that stale ones are removed first."""


def check_of(*values: object) -> int:
    """CRC-32 over the values of a derived row, so that a flipped bit is noticed."""
    return zlib.crc32(repr(values).encode())


def entry_of(session_id: str, row: Sequence[Any]) -> Entry:
    """An entry from a row of `entries_after`; a dropped payload reads as an empty one."""
    key, epoch, at_ms, kind, payload, head = row
    value = json.loads(payload) if payload is not None else {}
    return Entry(session_id, key & POSITION_MASK, epoch, at_ms, kind, value, bytes(head).hex())


def fold(folded: Folded, entries: Iterable[Entry]) -> Folded:
    """Fold further entries into both."""
    for entry in entries:
        folded.book.apply(entry)
        folded.listed.apply(entry.position, entry.at_ms, entry.kind, entry.payload)
    return folded


def open_calls(book: Book) -> int:
    """How many calls are shown as open; a read fences nothing and is no card (TR-38)."""
    return len(
        {receipt.call_id for receipt in book.open() if receipt.effect_class is not EffectClass.READ_ONLY}
    )


def shelved(listed: Sequence[Any], receipts: Sequence[Sequence[Any]]) -> Folded | None:
    """The session these derived rows describe, or None when they do not hold."""
    upto, _, count, name, directory, model, changed_ms, _, _, marks, checked = listed
    if len(receipts) != count or checked != check_of(*listed[:10]):
        return None
    if any(row[4] != check_of(*row[:4]) for row in receipts):
        return None
    book = Book.shelved(((row[0], row[1], row[2], row[3]) for row in receipts), json.loads(marks))
    return Folded(book, Listed(upto, name, directory, model, changed_ms), anew=False)


def put_derived(database: Database, number: int, folded: Folded, head: bytes, changed: Sequence[str]) -> None:
    """Write the derived rows of one session inside the commit that is open; `head` is that of `upto`."""
    book, listed = folded.book, folded.listed
    if folded.anew:
        database.change("forget_receipts", number)
    for row in book.rows(changed):
        database.change("put_receipt", number, *row, check_of(*row))
    facts = (
        listed.upto,
        head,
        len(book),
        listed.name,
        listed.directory,
        listed.model,
        listed.changed_ms,
        book.call_count(),
        open_calls(book),
        json.dumps(book.marks()),
    )
    database.change("put_listing", number, *facts, check_of(*facts))
