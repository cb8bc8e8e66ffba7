"""Pure. The questions of a session as its entries tell them: which are open, and how the others ended.

Owns: the fold of questions, answers and verdicts on permissions (TR-166 to TR-171). Does not own: when
something is asked (`runtime.people`), what comes of an answer (`runtime.answering`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from surefoot.core.model import Entry, Kind

LATE = "late"
"""The verdict of an answer that came after its question was closed; it closes nothing."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question. `verdict` is None while it is open; it is asked again under the same id (TR-169)."""

    question_id: str
    attempt_id: str
    turn_id: str
    permission: bool
    verdict: str | None = None


@dataclass(frozen=True, slots=True)
class Allowed:
    """A person's yes to one action, as it was shown. It is good once, for this action alone (TR-171)."""

    attempt_id: str
    approval: Mapping[str, object]
    shown: Mapping[str, object] | None
    """Class, reach and directory that stood in the question; None in entries of the first releases."""


class Questions:
    """Every question of a session; asking one again opens it again."""

    def __init__(self) -> None:
        self.answered: set[str] = set()
        """Attempts whose question has a stored answer of a person."""
        self._by_id: dict[str, Asked] = {}
        self._of_attempt: dict[str, str] = {}
        self._shown: dict[str, Mapping[str, object]] = {}
        self._allowed: dict[tuple[str, str], Allowed] = {}

    def apply(self, entry: Entry) -> None:
        """Take in one entry of kind `question`, `answer` or `approval`."""
        payload = entry.payload
        if entry.kind == Kind.QUESTION:
            asked = Asked(
                payload["questionId"],
                payload["attemptId"],
                str(payload.get("turnId") or ""),
                bool(payload.get("permission")),
            )
            self._by_id[asked.question_id] = asked
            self._of_attempt[asked.attempt_id] = asked.question_id
            if asked.permission and payload.get("shown"):
                self._shown[asked.attempt_id] = payload["shown"]
        elif entry.kind in (Kind.ANSWER, Kind.APPROVAL):
            self._close(payload)

    def _close(self, payload: Mapping[str, object]) -> None:
        attempt, verdict = str(payload.get("attemptId")), str(payload.get("verdict"))
        if verdict == LATE:
            return
        if verdict == "answered":
            self.answered.add(attempt)
        asked = self.of([attempt])
        if asked is not None:
            self._by_id[asked.question_id] = replace(asked, verdict=verdict)
        digest = str(payload.get("argumentDigest"))
        if verdict == "approved":
            self._allowed[attempt, digest] = Allowed(attempt, payload, self._shown.get(attempt))
        else:
            self._allowed.pop((attempt, digest), None)

    def get(self, question_id: str) -> Asked | None:
        """The question of this id."""
        return self._by_id.get(question_id)

    def of(self, attempts: Iterable[str]) -> Asked | None:
        """The newest question that one of these attempts of a call put."""
        found = [self._by_id[self._of_attempt[one]] for one in attempts if one in self._of_attempt]
        return found[-1] if found else None

    def allowed(self, attempts: Iterable[str], digest: str) -> Allowed | None:
        """The newest yes that one of these attempts of a call was given for arguments with this digest."""
        found = [self._allowed[one, digest] for one in attempts if (one, digest) in self._allowed]
        return found[-1] if found else None

    def allowances(self) -> list[Allowed]:
        """Every yes, oldest first, used or not."""
        return list(self._allowed.values())

    def open_permissions(self) -> list[Asked]:
        """The permissions that were asked for and have no verdict, oldest first (UX-42)."""
        return [one for one in self._by_id.values() if one.permission and one.verdict is None]
