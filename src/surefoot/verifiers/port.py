"""The verifier port: a read-only look at the world after an unknown outcome.

Owns: what a verifier is asked and what it may answer (TR-98 to TR-103). Does not
own: what follows from the answer (`core.recovery`), when it is asked
(`runtime.reconcile`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from surefoot.core.model import JSON, EffectClass, Grade, Receipt

SUMMARY_CHARACTERS = 500
EVIDENCE_BYTES = 8 * 1024
OBSERVED = frozenset({"present", "absent", "satisfied", "unknown"})
"""What an `Observation` may say."""
SCOPE_UNKNOWN = "scope_unknown"
"""Note on a receipt whose scope could not be told before D6: its verifier answers `strong` at most (TR-99)."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What a verifier saw: `state` is `present`, `absent`, `satisfied` (all write intents hold now)
    or `unknown`; `fenced` says the older attempt can no longer commit (TR-100)."""

    state: str
    grade: Grade = Grade.NONE
    fenced: bool = False
    summary: str = ""
    """At most 500 characters."""
    evidence: Mapping[str, JSON] = field(default_factory=dict)
    """At most 8 KiB of JSON."""
    does_not_prove: str = ""
    """What this look leaves open, as words that go on after "does not show"."""
    reason: str | None = None
    """Why `unknown`: `scope_changed`, `target_gone`, `verifier_timeout`, `verifier_raised`, …"""


@dataclass(frozen=True, slots=True)
class Deadline:
    """Until when a look may go on, in milliseconds since boot."""

    boot_ms: int


class EffectVerifier(Protocol):
    """Belongs to a tool's declaration. Reads only; may block (it is run off the input path)."""

    name: str
    far: bool
    """True when looking leaves the machine (TR-103)."""

    def recovery_scope(self, call: Receipt) -> str:
        """The stable identity of sink, account and resource of this call. Raises when it cannot be told."""
        ...

    def inspect_effect(self, key: str, call: Receipt, deadline: Deadline, *, fenced: bool) -> Observation:
        """Look for the effect of `call`. `fenced` says whether its executor is proven ended."""
        ...


@runtime_checkable
class IntentVerifier(Protocol):
    """A verifier that also knows whether repeating a write would overwrite later work (TR-114)."""

    def undisturbed(self, call: Receipt) -> bool:
        """True when every write intent of the call is satisfied or unchanged now."""
        ...

    def satisfied(self, call: Receipt) -> bool:
        """True when the call has write intents and all of them hold now (TR-92)."""
        ...


Operation = tuple[str, EffectClass]
"""What a verifier does to look, and the class of that: `("GET", EffectClass.READ_ONLY)`."""


@runtime_checkable
class DeclaredVerifier(Protocol):
    """A verifier that names its operations; one of them that is no read is refused at registration (TR-103)."""

    operations: tuple[Operation, ...]


def sees_effects(verifier: EffectVerifier | None) -> bool:
    """Whether a verifier can see the effect itself; one that only knows the processes says `sees_effects = False`."""
    return verifier is not None and bool(getattr(verifier, "sees_effects", True))


class WriteAttempted(Exception):
    """A verifier tried to write through what it was given to read with; its verdict is void (TR-103)."""
