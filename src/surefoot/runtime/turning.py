"""One turn while it runs, and how it ended.

Owns: the values the controller keeps of a turn. Does not own: how a turn moves (`controller`, `core.turns`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from surefoot.core.model import Receipt, TurnStatus
from surefoot.core.turns import StopCause
from surefoot.errors import SurefootError
from surefoot.providers.port import Usage
from surefoot.runtime.incidents import Prepared


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """How a turn ended. `text` is the final answer; `error` the fault that ended it, if one did."""

    turn_id: str
    status: TurnStatus
    reason: str | None = None
    text: str = ""
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    error: SurefootError | None = None


@dataclass(frozen=True, slots=True)
class Parked:
    """Words that could not start a turn now; they are delivered at its end, never dropped (TR-184)."""

    text: str


@dataclass(slots=True)
class Turn:
    """A turn of this owner."""

    turn_id: str
    status: TurnStatus = TurnStatus.QUEUED
    moving: Any = None
    """Set when the newest move is over; the next one waits for it."""
    cancelled: bool = False
    """It was stopped. It never comes back (TR-180)."""
    stopped_by: StopCause = StopCause.PERSON
    """By whom or what, once it is `cancelled`."""
    step_id: str = ""
    steps: int = 0
    text: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    invalid: dict[tuple[str, str], int] = field(default_factory=dict)
    ended_softly: str | None = None
    resumes: Mapping[str, Any] | None = None
    """Which turn it goes on with, and the how manieth time that is (TR-183)."""
    wordless: int = 0
    nudged: bool = False
    """The model was told once that a call it spelled out did not run (S-22)."""
    made_room: bool = False
    """The view was shortened once because the server said it is too long."""
    asking: bool = False
    """A model request is on its way; nothing of its reply exists yet."""
    prepared: Prepared | None = None
    """A recovery whose account is durable and whose one request has not left yet (PR-32)."""
    task: Any = None

    def count(self, usage: Usage) -> None:
        """Tokens add up; what a server did not tell stays unknown, never 0 (S-35)."""
        if usage.input_tokens is not None:
            self.input_tokens = (self.input_tokens or 0) + usage.input_tokens
        if usage.output_tokens is not None:
            self.output_tokens = (self.output_tokens or 0) + usage.output_tokens


def named(calls: Iterable[Receipt]) -> list[dict[str, Any]]:
    """Calls that never began, as a resume names them."""
    return [{"attemptId": one.attempt_id, "tool": one.tool or one.asked_name} for one in calls]
