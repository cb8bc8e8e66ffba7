"""What surfaces are told of a session's entries, the moment they are durable.

Owns: which entry makes which notice. Does not own: turns and their states (`controller`), the
words (`surfaces`). Promises: nothing is shown as a fact that the ledger does not hold.
"""

from __future__ import annotations

from collections.abc import Callable

from surefoot.core.incident import row_of
from surefoot.core.model import EffectTrace, Entry, InspectionState, Kind, Notice, Overlay, Receipt, State
from surefoot.core.recovery import fencing
from surefoot.core.turns import ENDED
from surefoot.runtime.neighbours import Neighbours, told_beside
from surefoot.runtime.session import Session

_AS_THEY_ARE = frozenset(
    {Kind.TURN, Kind.USER, Kind.ASSISTANT, Kind.QUESTION, Kind.ANSWER, Kind.HAND_OFF, Kind.HOST}
)


class News:
    """Tells of the entries of one owned session."""

    def __init__(self, session: Session, neighbours: Neighbours, notify: Callable[[Notice], None]) -> None:
        self._session = session
        self._neighbours = neighbours
        self._notify = notify

    def appended(self, entry: Entry) -> None:
        """Tell surfaces what became durable, from the entry itself: nothing else is shown as a fact."""
        payload = entry.payload
        if entry.kind in _AS_THEY_ARE:
            self._notify(Notice(str(entry.kind), {**payload, "position": entry.position}))
        if entry.kind == Kind.TURN and payload.get("status") in ENDED:
            self._tell_open()
        if entry.kind == Kind.INCIDENT:
            shown = {key: payload.get(key) for key in ("incidentId", "state", "projected")}
            row = row_of(entry)
            known = {"sessionId": entry.session_id, "incidentKind": None if row is None else row.kind or None}
            self._notify(Notice("incident", {**shown, **known, "position": entry.position}))
        if entry.kind == Kind.ASSISTANT:
            for call in payload["calls"]:
                self._receipt_changed(call["attemptId"], entry)
        elif entry.kind.startswith("attempt."):
            self._receipt_changed(payload["attemptId"], entry)

    def _tell_open(self) -> None:
        """A turn that ends with open writes has not failed; how many there are is told (TR-86)."""
        count = len(fencing(self._session.book.open()))
        if count:
            self._notify(Notice("unknownOpen", {"count": count}))

    def _receipt_changed(self, attempt_id: str, entry: Entry) -> None:
        receipt = self._session.book.get(attempt_id)
        if receipt is None or receipt.state is State.DISPATCHED:
            return
        for other in self._neighbours.beside(receipt) if entry.kind == Kind.STARTED else ():
            self._notify(Notice("open_elsewhere", told_beside(attempt_id, other)))
        facts = {"receipt": receipt, "position": entry.position, "entry": str(entry.kind)}
        self._notify(Notice("receipt", facts))
        if entry.kind == Kind.LATE and _said_absent(receipt):
            # Somebody was told that it had not happened, and it had (TR-43).
            text = f"{receipt.tool} did happen after all, although it had been called absent."
            self._notify(Notice("effect_after_absent", {"attemptId": attempt_id, "text": text}))


def _said_absent(receipt: Receipt) -> bool:
    if receipt.effect_trace is EffectTrace.NONE:
        return False
    looked_absent = (receipt.inspection or {}).get("state") == InspectionState.ABSENT_FENCED
    return looked_absent or receipt.has(Overlay.DENIED)
