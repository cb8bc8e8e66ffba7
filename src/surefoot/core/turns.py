"""Pure. The status of a turn and how it may move (TR-179 to TR-183).

Owns: the table of moves, what stops a turn, the verdict at a turn's end, whether a turn may be resumed, and how
often it was.
Does not own: when a move is recorded (`runtime.controller`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from surefoot.core.model import Entry, Kind, TurnStatus

_T = TurnStatus

MOVES: Mapping[TurnStatus, frozenset[TurnStatus]] = {
    _T.QUEUED: frozenset({_T.RUNNING, _T.CANCELLED, _T.FAILED, _T.INTERRUPTED}),
    _T.RUNNING: frozenset(
        {_T.WAITING_USER, _T.PAUSED, _T.CANCELLING, _T.COMPLETED, _T.FAILED, _T.INTERRUPTED}
    ),
    _T.WAITING_USER: frozenset({_T.RUNNING, _T.PAUSED, _T.CANCELLING, _T.FAILED, _T.INTERRUPTED}),
    _T.PAUSED: frozenset({_T.RUNNING, _T.CANCELLING, _T.FAILED}),
    _T.CANCELLING: frozenset({_T.CANCELLED, _T.FAILED}),
    _T.INTERRUPTED: frozenset({_T.RECOVERING, _T.CANCELLED}),
    _T.RECOVERING: frozenset({_T.RUNNING, _T.WAITING_USER, _T.CANCELLING, _T.FAILED, _T.INTERRUPTED}),
    _T.FAILED: frozenset({_T.RECOVERING, _T.CANCELLED}),
    _T.COMPLETED: frozenset(),
    _T.CANCELLED: frozenset(),
}
"""TR-179. Self-moves are in no row, so they are refused."""

ENDED = frozenset({_T.COMPLETED, _T.CANCELLED, _T.FAILED})
UNFINISHED = frozenset({_T.QUEUED, _T.RUNNING, _T.WAITING_USER, _T.CANCELLING, _T.RECOVERING})
"""What a turn of a dead owner is found in; it stays in none of them."""
RESUMABLE = frozenset({_T.FAILED, _T.INTERRUPTED})


class StopCause(StrEnum):
    """Who or what stopped a turn; the reason that its last move records."""

    PERSON = "stopped_by_person"
    TIME_LIMIT = "time_limit"
    """The time that the run was given is over (`--timeout`)."""
    TERMINATED = "terminated"
    """A signal told the program to end, or its terminal was closed."""
    READER_GONE = "reader_gone"
    """Nobody reads what the run prints any more."""
    CALLER = "caller_cancelled"
    """The program that awaited the turn gave up."""
    CLOSED = "session_closed"
    """The session was closed while the turn ran."""

    @property
    def of_a_call(self) -> str:
        """The reason of TR-41 for a call that it met while its body ran."""
        return "time_limit" if self is StopCause.TIME_LIMIT else "cancelled"


def move(before: TurnStatus, after: TurnStatus) -> str | None:
    """None when a turn may move so, else the code `illegal_<before>_<after>`."""
    return None if after in MOVES[before] else f"illegal_{before}_{after}"


def verdict(*, cancelled: bool, paused: bool, failed: bool) -> TurnStatus:
    """How a turn ends when several things are true at once: cancel, pause, failed, completed (TR-181)."""
    for holds, status in ((cancelled, _T.CANCELLED), (paused, _T.PAUSED), (failed, _T.FAILED)):
        if holds:
            return status
    return _T.COMPLETED


def resume_refusal(status: TurnStatus, *, resumes: int, limit: int) -> str | None:
    """None when a turn may be resumed once more (TR-183), else why not."""
    if status not in RESUMABLE:
        return f"not_resumable_{status}"
    return None if resumes < limit else "resumes_spent"


@dataclass(slots=True)
class Newest:
    """The newest turn of a session, and how often the work it stands for was resumed, as its entries say."""

    turn_id: str = ""
    status: TurnStatus | None = None
    origin: str = ""
    """The first turn of a chain in which each resumes the one before."""
    resumes: int = 0
    silent: bool = False
    """It was interrupted before it had shown anything (TR-55)."""
    reason: str | None = None

    def apply(self, payload: Mapping[str, Any]) -> None:
        """Take in one entry of kind `turn`."""
        given = payload.get("resumes")
        if given is not None:
            self.origin, self.resumes = str(given["turnId"]), int(given["count"])
        elif payload["turnId"] != self.turn_id:
            self.origin, self.resumes = str(payload["turnId"]), 0
        self.turn_id, self.status = str(payload["turnId"]), TurnStatus(payload["status"])
        self.reason = payload.get("reason")
        self.silent = self.status is _T.INTERRUPTED and bool(payload.get("silent"))

    def attended(self) -> None:
        """A person answered a question of this turn: what comes now is new, as after new words."""
        self.origin, self.resumes = self.turn_id, 0

    def refusal(self, limit: int) -> str | None:
        """Why its work may not be resumed once more; None also when there is nothing to resume."""
        if not self._resumable():
            return None
        return resume_refusal(_T.INTERRUPTED, resumes=self.resumes, limit=limit)

    def _resumable(self) -> bool:
        return self.status in RESUMABLE or self.status is _T.RECOVERING

    def next_resume(self) -> Mapping[str, Any] | None:
        """What the turn that resumes it records; None when it is no resume of a failed or interrupted one."""
        if not self._resumable():
            return None
        return {"turnId": self.origin, "count": self.resumes + 1}


@dataclass(frozen=True, slots=True)
class Latest:
    """What the end of a session's entries says of it, to its owner and to any reader."""

    turn_id: str | None = None
    status: TurnStatus | None = None
    epoch: int = 0
    """The ownership that wrote the newest status."""
    silent: bool = False
    """The newest turn left no call, text or reasoning (TR-55)."""
    level: str | None = None
    """The newest barrier level on record (TR-83)."""
    whole: bool = False
    """Nothing in front of these entries could change the answer."""

    def interrupted_silently(self, *, owned: bool) -> bool:
        """As a snapshot shows it; what nobody owns and has not ended was interrupted as well."""
        unfinished = self.status in UNFINISHED and self.status is not _T.CANCELLING
        return self.silent and (self.status is _T.INTERRUPTED or (unfinished and not owned))


def latest_of(entries: Sequence[Entry]) -> Latest:
    """Fold the last entries of a session; where they are too few the answer is not `whole`."""
    moves = [entry for entry in entries if entry.kind == Kind.TURN]
    level, from_first = _level_of(entries), bool(entries) and entries[0].position == 1
    if not moves:
        return Latest(level=level, whole=from_first)
    newest = moves[-1].payload
    turn_id, status = str(newest["turnId"]), TurnStatus(newest["status"])
    begun = any(one.payload["turnId"] == turn_id and one.payload["status"] == _T.QUEUED for one in moves)
    spoke = any(one.kind == Kind.ASSISTANT and one.payload.get("turnId") == turn_id for one in entries)
    silent = bool(newest.get("silent")) if status is _T.INTERRUPTED else not spoke
    whole = from_first or (begun and level is not None)
    return Latest(turn_id, status, moves[-1].epoch, silent, level, whole)


def _level_of(entries: Sequence[Entry]) -> str | None:
    fields = {Kind.TURN: "barrier", Kind.SESSION_OPENED: "barrier", Kind.BARRIER_SET: "new"}
    told = [one.payload.get(fields[Kind(one.kind)]) for one in entries if one.kind in fields]
    return next((str(level) for level in reversed(told) if level), None)


def equipment_of(entries: Sequence[Entry]) -> Mapping[str, Any] | None:
    """What the newest turn among these entries worked with, as far as one of them records it."""
    told = [one.payload["with"] for one in entries if one.kind == Kind.TURN and one.payload.get("with")]
    return told[-1] if told else None
