"""Which session is the newest, and how a session stands, read from the end of its entries.

Owns: how far back is read, and which session `-c` and a command without a reference mean. Does not own: what the
entries say (`core.turns`).
"""

from __future__ import annotations

from collections.abc import Sequence

from surefoot.core.model import Kind
from surefoot.core.turns import Latest, latest_of
from surefoot.ledger.port import Readable, SessionRow

WINDOW = 256
SESSIONS, FIRST_ENTRIES = 20, 8
_TELLING = (Kind.TURN.value, Kind.SESSION_OPENED.value, Kind.BARRIER_SET.value)


async def newest_of(ledger: Readable, session_id: str, position: int) -> Latest:
    """The newest turn and barrier level of a session whose last entry is at `position`.

    Turns end often, so its last entries nearly always hold the newest one whole. Of a longer one, what tells of
    turns is read from the beginning, and its messages only where none of them is among the last entries.
    """
    after = max(0, position - WINDOW)
    last = await ledger.read(session_id, after=after)
    found = latest_of(last)
    if found.whole or after == 0:
        return found
    kinds = _TELLING if found.turn_id is not None and not found.silent else (*_TELLING, Kind.ASSISTANT.value)
    earlier = await ledger.read(session_id, kinds=kinds)
    return latest_of([*(entry for entry in earlier if entry.position <= after), *last])


async def newest_said(ledger: Readable, rows: Sequence[SessionRow]) -> SessionRow:
    """The newest session somebody said a word in; a chat that was only opened is nothing to go on with.

    `rows` are at least one. One that cannot be read stands only where there is no other.
    """
    newest = sorted(rows, key=lambda row: (row.status == "ok", row.changed_ms), reverse=True)
    for row in newest[:SESSIONS]:
        if row.status != "ok":
            break
        entries = await ledger.read(row.session_id, limit=FIRST_ENTRIES)
        if row.calls or any(entry.kind in (Kind.USER, Kind.FORKED) for entry in entries):
            return row
    return newest[0]
