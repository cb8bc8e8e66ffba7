"""The derived rows of the SQLite ledger: receipts and listing, as stored and as read back.

Owns: their form and their checks. Nothing here is believed that does not agree with its
own check: then everything is folded anew from the entries. Does not own: when they are
caught up (`sqlite`).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from surefoot.core.lifecycle import Book
from surefoot.core.shelf import Shelved
from surefoot.ledger.database import Database
from surefoot.ledger.derived import Folded, Listed, open_calls


def check_of(*values: object) -> int:
    """CRC-32 over the values of a derived row, so that a flipped bit is noticed."""
    return zlib.crc32("\0".join(map(str, values)).encode("utf-8", "surrogatepass"))


def shelved(listed: Sequence[Any], receipts: Sequence[Sequence[Any]]) -> Folded | None:
    """The session these derived rows describe, or None when they do not hold."""
    upto, _, count, name, directory, model, changed_ms, _, _, marks, checked = listed
    if len(receipts) != count or checked != check_of(*listed[:10]):
        return None
    if any(row[4] != check_of(*row[:4]) for row in receipts):
        return None
    book = Book.shelved(((row[0], row[1], row[2], row[3]) for row in receipts), json.loads(marks))
    return Folded(book, Listed(upto, name, directory, model, changed_ms), anew=False)


def summary_of(folded: Folded, head: bytes) -> tuple[Any, ...]:
    """What the listing keeps of a session; `head` is that of its last entry. Asked where the book is folded."""
    book, listed = folded.book, folded.listed
    return (
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


def put_derived(
    database: Database, number: int, receipts: Iterable[Shelved], summary: Sequence[Any], *, anew: bool
) -> None:
    """Write the derived rows of one session inside the commit that is open; `anew` drops those it had."""
    if anew:
        database.change("forget_receipts", number)
    for row in receipts:
        database.change("put_receipt", number, *row, check_of(*row))
    database.change("put_listing", number, *summary, check_of(*summary))
