"""The derived rows of the SQLite ledger: receipts and listing, as stored and as read back.

Owns: their form and their checks. Nothing here is believed that does not agree with its
own check: then everything is folded anew from the entries. Does not own: when they are
caught up (`sqlite`).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from surefoot.core.lifecycle import Book
from surefoot.core.shelf import Shelved, Whole, needed
from surefoot.ledger.database import Database
from surefoot.ledger.derived import Folded, Listed, open_calls

MOST_AT_HAND = 0.5
"""Share of the receipts above which reading all of them is no dearer than reading these."""


def check_of(*values: object) -> int:
    """CRC-32 over the values of a derived row, so that a flipped bit is noticed."""
    return zlib.crc32("\0".join(map(str, values)).encode("utf-8", "surrogatepass"))


def shelved(listed: Sequence[Any], receipts: Sequence[Sequence[Any]]) -> Folded | None:
    """The session these derived rows describe, or None when they do not hold."""
    if len(receipts) != listed[2] or not _holds(listed):
        return None
    if any(row[4] != check_of(*row[:4]) for row in receipts):
        return None
    book = Book.shelved(((row[0], row[1], row[2], row[3]) for row in receipts), json.loads(listed[9]))
    return Folded(book, _line(listed), anew=False)


def partly_shelved(
    database: Database, number: int, listed: Sequence[Any], rest: Callable[[], Book]
) -> Folded | None:
    """The same with the rows that `core.shelf.needed` names; None where they do not hold or would not be few.

    What the others say is checked when it is fetched, by `rest`.
    """
    if not _holds(listed):
        return None
    marks = json.loads(listed[9])
    ids = [attempt for _, attempt in sorted(database.rows("attempts_of", number))]
    wanted = needed(ids, marks)
    if len(ids) != listed[2] or wanted is None or len(wanted) > len(ids) * MOST_AT_HAND:
        return None
    rows = sorted(database.rows("receipts_named", number, json.dumps(wanted)))
    if len(rows) != len(wanted) or any(row[5] != check_of(*row[1:5]) for row in rows):
        return None
    at_hand = [(row[1], row[2], row[3], row[4]) for row in rows]
    return Folded(Book.shelved(at_hand, marks, whole=Whole(ids, listed[7], rest)), _line(listed), anew=False)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _holds(listed: Sequence[Any]) -> bool:
    return bool(listed[10] == check_of(*listed[:10]))


def _line(listed: Sequence[Any]) -> Listed:
    upto, _, _, name, directory, model, changed_ms, *_ = listed
    return Listed(upto, name, directory, model, changed_ms)


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
    """Write the derived rows of one session inside the commit that is open; `anew` drops those it had.

    A directory or name that is not UTF-8 has no text in SQLite. Such a session keeps no derived rows: it is
    folded from its entries whenever it is read.
    """
    storable = all(_is_utf8(value) for value in summary if isinstance(value, str))
    if anew or not storable:
        database.change("forget_receipts", number)
    if not storable:
        database.change("forget_listing", number)
        return
    for row in receipts:
        database.change("put_receipt", number, *row, check_of(*row))
    database.change("put_listing", number, *summary, check_of(*summary))
