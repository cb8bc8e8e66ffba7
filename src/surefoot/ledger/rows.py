"""The listing: every session in one line, also lost and unreadable ones (UX-49, UX-163).

Owns: how derived rows, entries, the witness and set-aside ledgers become lines. Does
not own: their order and words (`surfaces`). Correct after the derived rows were deleted.
"""

from __future__ import annotations

import json
from pathlib import Path

from surefoot.errors import LedgerError
from surefoot.ledger import claims, derived
from surefoot.ledger.chain import POSITION_MASK
from surefoot.ledger.database import Database
from surefoot.ledger.places import WITNESS, set_aside_folders
from surefoot.ledger.port import SessionRow
from surefoot.ledger.shelf import check_of
from surefoot.ledger.witness import Seen, Witness, tag_of


def listing(
    database: Database, witness: Witness, folder: Path, loaded: dict[int, claims.Loaded] | None = None
) -> list[SessionRow]:
    """Every session of the ledger, then those the witness alone knows, then those set aside.

    What had to be read for its line is left in `loaded`, for a reader that asks for it next.
    """
    found = [claims.known_of(row) for row in database.rows("sessions")]
    lines = [_line(database, known, loaded) for known in found]
    tags = {tag_of(known.session_id)[0] for known in found}
    lines += [bare(seen, "lost") for seen in witness.all() if seen.tag not in tags]
    return lines + set_aside_rows(folder)


def unreadable_rows(folder: Path) -> list[SessionRow]:
    """The sessions of a ledger that cannot be opened, and of those set aside, as their witnesses name them."""
    return _witnessed(folder) + set_aside_rows(folder)


def set_aside_rows(folder: Path) -> list[SessionRow]:
    """The sessions of ledgers that were set aside, as their witnesses name them."""
    return [line for aside in set_aside_folders(folder) for line in _witnessed(aside)]


def _witnessed(folder: Path) -> list[SessionRow]:
    try:
        witness = Witness(folder / WITNESS, read_only=True)
    except OSError:
        return []
    try:
        return [bare(seen, "unreadable") for seen in witness.all()]
    finally:
        witness.close()


def bare(seen: Seen, status: str) -> SessionRow:
    """The line of a session that only a witness knows."""
    name = seen.session_id or f"ses_?{seen.tag.hex()}"
    return SessionRow(name, None, "", None, 0, 0, seen.position, seen.epoch, 0, 0, status)


def _line(
    database: Database, known: claims.Known, loaded_ones: dict[int, claims.Loaded] | None
) -> SessionRow:
    try:
        return _readable(database, known, loaded_ones)
    except LedgerError:
        return SessionRow(
            known.session_id,
            None,
            "",
            None,
            known.created_ms,
            known.since_ms,
            0,
            known.epoch,
            0,
            0,
            "unreadable",
        )


def _readable(
    database: Database, known: claims.Known, loaded_ones: dict[int, claims.Loaded] | None
) -> SessionRow:
    last = database.rows("last_entry", known.number)
    position = last[0][0] & POSITION_MASK if last else 0
    listed = database.rows("listing_of", known.number)
    if listed and _fresh(listed[0], position, last[0][1] if last else b""):
        _, _, _, name, directory, model, changed_ms, calls, opened, marks, _ = listed[0]
        dropped = bool(json.loads(marks).get("dropped"))
    else:
        loaded = claims.skim(database, known.number, known.session_id)
        if loaded_ones is not None:
            loaded_ones[known.number] = loaded
        line, book = loaded.folded.listed, loaded.folded.book
        name, directory, model, changed_ms = line.name, line.directory, line.model, line.changed_ms
        calls, opened, position = book.call_count(), derived.open_calls(book), loaded.position
        dropped = book.dropped
    return SessionRow(
        known.session_id,
        name,
        directory,
        model,
        known.created_ms,
        changed_ms,
        position,
        known.epoch,
        calls,
        opened,
        "dropped" if dropped else "ok",
        known.owner,
    )


def _fresh(listed: tuple[object, ...], position: int, head: bytes) -> bool:
    return listed[0] == position and listed[1] == head and listed[10] == check_of(*listed[:10])
