"""A session this handle owns, and where its history ends.

Owns: that record. Does not own: how it begins (`claims`, `memory`), what is appended (`admission`).
"""

from __future__ import annotations

from dataclasses import dataclass

from surefoot.core.lifecycle import Book
from surefoot.core.model import Owner
from surefoot.ledger.witness import tag_of


@dataclass(slots=True, eq=False)
class Ownership:
    """A session this handle owns, and where its history ends. Changed in the event loop only."""

    session_id: str
    number: int
    epoch: int
    owner: Owner
    book: Book
    position: int
    head: bytes
    tag: tuple[bytes, int] = (b"", 0)
    unlisted: int = 0
    """Entries since derived tables were caught up."""

    def __post_init__(self) -> None:
        self.tag = tag_of(self.session_id)
