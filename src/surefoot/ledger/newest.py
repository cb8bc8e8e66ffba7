"""How a session stands, read from the end of its entries.

Owns: how far back is read. Does not own: what the entries say (`core.turns`).
"""

from __future__ import annotations

from surefoot.core.model import Kind
from surefoot.core.turns import Latest, latest_of
from surefoot.ledger.port import Readable

WINDOW = 256
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
