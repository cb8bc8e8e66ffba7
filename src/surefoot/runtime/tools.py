"""Tool declarations, the registry, and the one line that runs a tool body.

Owns: what a tool declares (EC-33), how a name becomes a tool (TR-36), argument
validation (PR-66 to PR-69), and `invoke`, the only place where a body is entered.
Does not own: when it may be entered (`runtime.barrier`), what its class means (`core`).
Promises: barrier:one-door.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.core.effects import UNDECLARED, Effect
from surefoot.core.model import EffectTrace, Receipt, State

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call happens, looked up before anything is classified (EC-6)."""

    directory: Path
    """Working directory of the session, real path."""
    roots: tuple[Path, ...] = ()
    """Folders that may be written; the working directory's repository by default."""
    work_tree: Path | None = None
    """Repository the directory lies in."""
    remotes: Mapping[str, str] = field(default_factory=dict)
    """Remote name → `host/owner/name`."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a body ended, as a value. `text` is what the model is given, to the byte."""

    text: str
    state: State = State.SUCCEEDED
    """`succeeded`, `failed` or `unknown`."""
    reason: str | None = None
    """For `unknown`: a code of TR-41 such as `process_signal`; for `failed`: `never_ran`, `changed_underneath`."""
    error_kind: str | None = None
    """For `failed`: a short stable word such as `not_found`, `exit_code`."""
    effect_trace: EffectTrace | None = None
    """None lets the class decide: `possible` for writes, `none` for reads (TR-39)."""
    transient: bool = False
    """The same thing may work in a moment (TR-163)."""
    executor: str | None = None
    """`ended`, `alive` or `not_proven` when the body knows; else the runtime tells."""


@dataclass(slots=True)
class LiveAttempt:
    """What a body is told about its own call."""

    session_id: str
    turn_id: str
    call_id: str
    attempt_id: str
    idempotency_key: str
    """Stable over the attempts of this call; hand it to the far side (TR-16)."""
    deadline_boot_ms: int | None
    place: Place
    prepared: Any
    """What `Tool.prepare` returned beside the receipt's fields."""
    note: Callable[[Mapping[str, Any]], Awaitable[None]]
    """Record keys of the process record durably (`attempt.process`)."""
    late: Callable[[Outcome, str], None]
    """Hand in the true outcome of a call that was already closed as unknown (TR-43); `source` says from where."""
    progress: Callable[[str], None]
    """Show a piece of output while the body runs; recorded nowhere."""
    services: Mapping[str, Any]
    """What `app` wired for tools of ours: run folders, process server, questions, todo, recovery."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a tool finds out and lays ready before D6; it has no effect on the world of the user."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    """Receipt fields for D6 in JSON names: `writeIntents`, `process`."""
    effect: Effect | None = None
    """A stricter effect found now, e.g. an intent that could not be digested (EC-15); never a looser one."""
    value: Any = None
    """Handed to the body as `LiveAttempt.prepared`."""
    refuse: tuple[str, str] | None = None
    """Code of TR-41 and text, when the call must not start (`permission_denied`, `ledger_file`)."""


Body = Callable[[LiveAttempt, Arguments], Awaitable["Outcome | str"]]
SyncBody = Callable[[LiveAttempt, Arguments], "Outcome | str"]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its body beside everything the barrier must know about it (EC-33)."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of an object."""
    body: Body | None = None
    sync_body: SyncBody | None = None
    """A body that blocks; it gets a thread of its own (TR-77). Exactly one of the two is set."""
    effect: Effect | Callable[[Arguments, Place], Effect] = UNDECLARED
    """Fixed, or computed from the validated arguments; must be pure (EC-6)."""
    prepare: Callable[[Arguments, Place, Receipt, Mapping[str, Any]], Awaitable[Prepared]] | None = None
    """`(arguments, place, receipt so far, services)`; runs after permission and before D6."""
    aliases: tuple[str, ...] = ()
    rule_name: str | None = None
    """The name permission rules use for it: `Read`, `Bash`, … (UX-39)."""
    subjects: Callable[[Arguments, Place], tuple[str, ...]] | None = None
    """What permission patterns are matched against: every resolved path, every simple command (UX-40).
    An empty tuple means it cannot be told and must be asked."""
    verifier: Any = None
    """An `EffectVerifier` (`verifiers.port`)."""
    time_limit_seconds: float | None = None
    key_argument: str | None = None
    """The argument the runtime fills with the idempotency key (TR-17)."""
    key_lifetime_seconds: float | None = None
    secret_arguments: tuple[str, ...] = ()
    starts_processes: bool = False
    """Its body may leave processes of its own behind (TR-208)."""
    own: bool = True
    """Declared by the owner of this program, who may state `effect_trace` (TR-39); False for MCP tools."""
    supervised: bool = False
    """A process outlives the agent and settles the call by its records (section 9)."""
    summary: Callable[[Arguments], str] | None = None
    """One line for a card, e.g. `git push origin main`; redacted by the caller."""
