"""The process verifier: what the records of a supervised command prove, which is little.

Owns: the row `process` of TR-109. Does not own: reading a run folder (the caller gives a sight of
it), what an exit record settles (reconciliation), git commands (`verifiers.git`).

That a command can no longer act says nothing about what it did: only the claim of a reconciliation,
which keeps it from ever starting, proves that nothing happened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from surefoot.core.model import EffectClass, Grade, Receipt
from surefoot.verifiers.port import Deadline, Observation


@dataclass(frozen=True, slots=True)
class RunSight:
    """What the run folder of a command shows now."""

    never_ran: bool = False
    """Claimed by a reconciliation: it did not start and never will."""
    ended: str | None = None
    """How its leader ended, when an exit record says so: `exit code 0`."""
    quiet: bool = False
    """Proven that none of its processes is left."""
    fenced: bool = False
    """Quiet, and no work was handed to a service."""
    state: str = "unclear"
    """A word for the card: `running`, `exited`, `gone`, `lost`, `unclear`."""


class ProcessVerifier:
    """For commands of which nothing else can be looked up; implements `verifiers.port.EffectVerifier`."""

    name = "process"
    far = False
    sees_effects = False
    """A retry needs a verifier that does (TR-135)."""
    operations = (("run folder", EffectClass.READ_ONLY),)

    def __init__(self, sight: Callable[[Receipt], RunSight]) -> None:
        self._sight = sight

    def recovery_scope(self, call: Receipt) -> str:
        """The session: a command in general names no sink."""
        return f"session:{call.session_id}"

    def inspect_effect(self, key: str, call: Receipt, deadline: Deadline, *, fenced: bool) -> Observation:
        """Absent when it never ran; otherwise only whether it can still act is told."""
        seen = self._sight(call)
        evidence = {"state": seen.state, "ended": seen.ended, "quiet": seen.quiet}
        if seen.never_ran:
            said = "The command never started: recovery claimed its run before any supervisor did."
            return Observation("absent", Grade.PROOF, True, said, evidence)
        if seen.ended is not None:
            said = f"The record of the command says how it ended: {seen.ended}."
            return Observation("unknown", Grade.NONE, seen.fenced, said, evidence, _OPEN, "exit_record")
        left = (
            "None of its processes is left."
            if seen.quiet
            else "Whether all its processes ended is not proven."
        )
        said = f"Nothing can look up what a shell command did. {left}"
        return Observation("unknown", Grade.NONE, seen.fenced, said, evidence, _OPEN, "no_verifier")


_OPEN = "what the command did before"
