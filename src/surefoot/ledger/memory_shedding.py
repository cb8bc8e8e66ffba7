"""How something leaves a memory ledger; the same rules as `shedding`, without a disk.

Owns: dropping and sweeping in a `MemoryStore`. Does not own: what may go (`core.retention`).
Promises: ledger:engines-agree, retention:open-stays.
"""

from __future__ import annotations

from collections.abc import Collection

from surefoot.core.model import Kind
from surefoot.core.retention import LASTING, blobs_named
from surefoot.errors import LedgerError
from surefoot.ledger.chain import POSITION_MASK, payload_digest
from surefoot.ledger.memory import MemoryStore
from surefoot.ledger.port import Swept


class MemoryShedder:
    """The shedder of a store; see `port.Shedder`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def drop(self, session_id: str, *, epoch: int, upto: int) -> int:
        """Drop payloads of a session; see `port.Shedder.drop`."""
        kept = self._store.kept(session_id)
        if kept.epoch != epoch:
            raise LedgerError("the session has another owner now; nothing more of it was dropped")
        dropped = 0
        for place, row in enumerate(kept.rows[:upto]):
            key, epoch_, at_ms, kind, head, salt, text = row
            position = key & POSITION_MASK
            if position in kept.digests or kind in LASTING:
                continue
            kept.digests[position] = payload_digest(salt, text.encode())
            kept.rows[place] = (key, epoch_, at_ms, kind, head, b"", "")
            dropped += 1
        return dropped

    async def held(self, session_id: str) -> int:
        """How many payloads there are to drop; see `port.Shedder.held`."""
        kept = self._store.kept(session_id)
        lasting = {*LASTING, Kind.SESSION_DROPPED.value}
        return sum(row[3] not in lasting and row[0] & POSITION_MASK not in kept.digests for row in kept.rows)

    async def sweep(
        self, *, older_than_ms: int, living: Collection[str] = (), dry_run: bool = False
    ) -> Swept:
        """Remove blobs that nobody names; see `port.Shedder.sweep`."""
        store = self._store
        owned_since = [
            kept.since_ms
            for kept in store.sessions.values()
            if kept.owner is not None and store.death(kept.owner) != "dead"
        ]
        before_ms = min([older_than_ms, *owned_since])
        named = {
            f"sha256:{one}"
            for kept in store.sessions.values()
            for row in kept.rows
            for one in blobs_named(row[6])
        }
        going = [ref for ref in store.blobs if ref not in named and store.stored_ms.get(ref, 0) < before_ms]
        swept = Swept(len(going), sum(len(store.blobs[ref]) for ref in going))
        if not dry_run:
            for ref in going:
                del store.blobs[ref]
        return swept

    async def close(self) -> None:
        """Nothing is held; see `port.Shedder.close`."""
