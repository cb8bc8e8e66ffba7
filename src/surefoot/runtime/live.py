"""What the barrier works with: a call as asked, as looked at, and as running.

Owns: the values that pass between the steps of TR-19. Does not own: their order (`barrier`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from surefoot.core.canonical import Arguments
from surefoot.core.effects import Effect
from surefoot.core.model import ExecutorState, Receipt
from surefoot.runtime.tools import Entrance, Outcome, Tool


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt to be run, whose receipt is already `dispatched`."""

    turn_id: str
    call_id: str
    attempt_id: str
    asked_name: str
    arguments: str | None
    cut: bool = False
    """The message broke off inside this call; it never runs (TR-34)."""
    duplicate_of: str | None = None
    """The call this block repeats under one provider id (TR-33)."""
    refused_whole: bool = False
    """Its message repeats an id, and the contract of its endpoint refuses such a message (TR-32)."""
    supersedes: str | None = None
    """The older attempt this one takes over from; both are written in one commit (TR-117, TR-137)."""
    idempotency_key: str | None = None
    """The key of the older attempt, kept (TR-15)."""
    reserved: bool = False
    """Started by recovery: guards against repetition do not apply to it, the fence does."""
    nested: bool = False
    """A part of another call, which made it (TR-9)."""
    pinned: Effect | None = None
    """The effect a retry was asked for; one that turns out another on the way does not start (TR-136)."""
    pinned_digest: str | None = None
    """The digest of the arguments it was asked for with."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that will not start: a code of TR-41 and the text the model is given."""

    code: str
    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Looked:
    """A call after D2: resolved, validated, classified."""

    call: Call
    tool: Tool | None
    arguments: Arguments | None
    effect: Effect
    display: str
    """Redacted arguments, the only form shown anywhere (TR-5)."""
    refused: Refused | None = None
    notes: tuple[str, ...] = ()
    satisfied: frozenset[str] = frozenset()
    """Open attempts at the same write whose intents all hold now (TR-92)."""
    undelivered: str | None = None
    """A settled attempt at the same write whose result its program never got (TR-202)."""


@dataclass(slots=True)
class Batch:
    """The calls of one assistant message while they are being run (TR-88, TR-89)."""

    stopped_by: str | None = None
    """The attempt of a write that is unknown, was refused, or failed and is no check."""


@dataclass(frozen=True, slots=True)
class Permit:
    """The answer of D3. `approval` is durable and goes into D6 (TR-171)."""

    allowed: bool
    refused: Refused | None = None
    approval: Mapping[str, Any] | None = None


Permits = Callable[[Looked], Awaitable[Permit]]
"""Asks rules, and a person where the rules say so; never about a call the barrier would refuse."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A hook's new form of a call; it goes back to D2 with it (TR-24)."""

    asked_name: str
    arguments: str


class Hooks(Protocol):
    """Pre- and post-tool hooks. Each of their effects is a call of its own: `Barrier.nested` (TR-25)."""

    async def before(self, looked: Looked) -> Refused | Changed | None: ...

    async def after(self, receipt: Receipt) -> None: ...


@dataclass(slots=True)
class Live:
    """An attempt whose start is durable and whose body this process runs."""

    looked: Looked
    receipt: Receipt
    entrance: Entrance
    settled: Any
    """Future of the closed receipt."""
    task: Any = None
    timer: Any = None
    outcome: Outcome | None = None
    """What was decided to be written as its close; None while the body runs."""
    ended: bool = False
    """The body returned. A thread that outlives its call is not ended (TR-77)."""
    cut_by: str | None = None
    """Why its body was told to end, if it was; a body itself only ever sees a cancel."""

    def told(self, outcome: Outcome) -> Outcome:
        """What its end says, with the reason for which it was told to end."""
        if self.cut_by is None or outcome.reason != "cancelled":
            return outcome
        return replace(outcome, reason=self.cut_by)

    def executor_after(self, outcome: Outcome) -> ExecutorState:
        """What is known of whatever carried it out, once it ended with `outcome` (TR-208)."""
        if outcome.executor is not None:
            return ExecutorState(outcome.executor)
        if not self.ended:
            return ExecutorState.ALIVE
        tool = self.looked.tool
        leaves_processes = tool is None or tool.starts_processes or tool.supervised
        return ExecutorState.NOT_PROVEN if leaves_processes else ExecutorState.ENDED
