"""Open writes of other sessions of the same ledger: nothing is fenced by them, and a person is told.

Owns: which of them a started write overlaps, each told once (TR-85). Does not own: the
fence, which never crosses sessions (`barrier`), how it is shown (`surfaces`).
"""

from __future__ import annotations

from typing import Any

from surefoot.core import recovery
from surefoot.core.effects import judged_effect, overlaps
from surefoot.core.model import Receipt
from surefoot.errors import SurefootError
from surefoot.runtime.session import Session


class Neighbours:
    """What other sessions had left open when it was last looked up."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._open: list[Receipt] = []
        self._told: set[str] = set()

    async def look(self) -> None:
        """Look them up anew. A ledger that cannot be listed now tells nothing and hinders nothing."""
        ledger, found = self._session.ledger, list[Receipt]()
        try:
            for row in await ledger.sessions():
                if row.session_id != self._session.session_id and row.open_calls and row.status == "ok":
                    found += recovery.fencing((await ledger.receipts(row.session_id)).open())
        except SurefootError:
            return
        self._open = found

    def beside(self, started: Receipt) -> list[Receipt]:
        """The open writes elsewhere that this started call overlaps and nobody was told of yet."""
        if not recovery.fences(started):
            return []
        reach = judged_effect(started).reach
        met = [
            one
            for one in self._open
            if one.attempt_id not in self._told and overlaps(reach, judged_effect(one).reach)
        ]
        self._told.update(one.attempt_id for one in met)
        return met


def told_beside(attempt_id: str, unknown: Receipt) -> dict[str, Any]:
    """The facts of a notice that a write went on beside an unknown one."""
    where = f"an earlier call of {unknown.tool} in session {unknown.session_id} that may have happened"
    return {
        "attemptId": attempt_id,
        "unknown": unknown.attempt_id,
        "sessionId": unknown.session_id,
        "tool": unknown.tool,
        "text": f"A write went on beside {where}; nobody has decided about that one yet.",
    }
