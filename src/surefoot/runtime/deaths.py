"""The owners of a session that died lately, and the calls each was in (TR-56, UX-161).

Owns: which entries tell a death, and how far back they are read. Does not own: writing them (`reconcile`), what
follows when there are too many (surfaces).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.core.model import Entry, Kind
from surefoot.runtime.session import Session

WINDOW = 1024
_TELLING = (Kind.TURN.value, Kind.HAND_OFF.value)


@dataclass(frozen=True, slots=True)
class Death:
    """One owner that died in a turn, as the next one found it."""

    turn_id: str
    found_at_ms: int
    attempts: tuple[str, ...]
    """The calls that it left without an end."""

    def to_json(self) -> dict[str, Any]:
        """As a resume names it."""
        return {"turnId": self.turn_id, "foundAt": self.found_at_ms, "attempts": list(self.attempts)}


async def deaths_since(session: Session, since_ms: int) -> tuple[Death, ...]:
    """The deaths found from this moment on, oldest first.

    The last entries nearly always reach back far enough; where they do not, all that tells of turns is read.
    """
    after = max(0, session.position - WINDOW)
    entries: Sequence[Entry] = await session.ledger.read(session.session_id, after=after)
    if after and entries and entries[0].at_ms >= since_ms:
        entries = await session.ledger.read(session.session_id, kinds=_TELLING)
    return deaths_in(entries, since_ms)


def deaths_in(entries: Sequence[Entry], since_ms: int) -> tuple[Death, ...]:
    """The deaths among these entries: a turn that a restart ended, with the hand-off of the same commit behind it."""
    found: list[Death] = []
    for entry in entries:
        if entry.at_ms < since_ms:
            continue
        if entry.kind == Kind.TURN and entry.payload.get("cause") == "runtime_restart":
            found.append(Death(str(entry.payload["turnId"]), entry.at_ms, ()))
        elif entry.kind == Kind.HAND_OFF and found and found[-1].turn_id == entry.payload["turnId"]:
            attempts = tuple(str(one) for one in entry.payload.get("attempts") or ())
            found[-1] = Death(found[-1].turn_id, found[-1].found_at_ms, attempts)
    return tuple(found)
