"""How long starts that have not settled keep a session with its owner (TR-175).

Owns: the cover of a start, from what stands in its own entry, so that it costs no commit
beside that one. Does not own: the lease row of a session (`claims`, `memory`).
"""

from __future__ import annotations

from dataclasses import dataclass

from surefoot.core.lifecycle import Book
from surefoot.core.model import State

COVER_MS = 600_000
"""The longest time after its start for which an effect that has not ended covers its owner."""


@dataclass(frozen=True, slots=True)
class Cover:
    """Until when a deadline of an unsettled start lasts, by the wall clock and by the boot clock; 0 for none."""

    until_ms: int = 0
    until_boot_ms: int = 0


def covered(book: Book, boot_id: str) -> Cover:
    """The latest cover among the starts of a book. Boot times count for starts of this boot alone."""
    walls, boots = [0], [0]
    for receipt in book.unsettled():
        if receipt.state is not State.STARTED or receipt.deadline_at is None or receipt.started_at is None:
            continue
        walls.append(min(receipt.deadline_at, receipt.started_at + COVER_MS))
        same_boot = (receipt.owner or {}).get("bootId") == boot_id
        if same_boot and receipt.deadline_boot is not None and receipt.started_boot is not None:
            boots.append(min(receipt.deadline_boot, receipt.started_boot + COVER_MS))
    return Cover(max(walls), max(boots))
