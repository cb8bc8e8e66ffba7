"""How a session stands, read from the end of its entries.

Owns: how far back is read. Does not own: what the entries say (`core.turns`).
"""

from __future__ import annotations

from surefoot.core.turns import Latest, latest_of
from surefoot.ledger.port import Readable

WINDOW = 256


async def newest_of(ledger: Readable, session_id: str, position: int) -> Latest:
    """The newest turn and barrier level of a session whose last entry is at `position`.

    Read backwards in growing windows: turns end often, so the first one nearly always does.
    """
    window = WINDOW
    while True:
        after = max(0, position - window)
        found = latest_of(await ledger.read(session_id, after=after))
        if found.whole or after == 0:
            return found
        window *= 4
