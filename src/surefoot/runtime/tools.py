"""Tool declarations, the registry, and the one line that runs a tool body.

Owns: what a tool declares (EC-33), how a name becomes a tool (TR-36), argument
validation (PR-66 to PR-69), and `invoke`, the only place where a body is entered.
Does not own: when it may be entered (`runtime.barrier`), what its class means (`core`).
Promises: barrier:one-door.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from surefoot.core.canonical import canonical_json
from surefoot.core.effects import UNDECLARED, Effect
from surefoot.core.model import EffectClass, EffectTrace, Grade, Receipt, State
from surefoot.errors import BrokenInvariant, OutcomeUnknown, Signal, ToolError, UsageError
from surefoot.runtime.inside import marked
from surefoot.runtime.scheduler import Scheduler
from surefoot.runtime.spelling import with_compared
from surefoot.verifiers.port import (
    OBSERVED,
    SCOPE_UNKNOWN,
    Deadline,
    DeclaredVerifier,
    EffectVerifier,
    Observation,
    Operation,
    WriteAttempted,
)

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
    home: Path | None = None
    """What `~` means; without it a path that begins with it can be anywhere."""
    real_paths: Mapping[str, str] = field(default_factory=dict)
    """Lexical absolute path → real path, for the paths `classify.shell.lexical_paths` names."""
    classifier_bytes: int = 64 * 1024
    """How long a text that is classified may be, and of how many parts its tree (EC-5); above is `UNKNOWN`."""
    classifier_nodes: int = 20_000


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
    retry_after_seconds: float | None = None
    """How long the far side asked to be left alone, where it did (TR-164)."""
    executor: str | None = None
    """`ended`, `alive` or `not_proven` when the body knows; else the runtime tells."""
    pictures: tuple[tuple[str, str], ...] = ()
    """Media type of each picture and its content in base64; `text` names it, as not every server takes one (S-34)."""


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
    looks_up: Callable[[Arguments, Place], tuple[str, ...]] | None = None
    """Paths whose symbolic links are resolved before the call is classified, since classifiers are pure."""
    refuses: Callable[[Arguments, Place], tuple[str, str] | None] | None = None
    """Code and text for a target that may never be touched, before it is classified and before
    anybody is asked about it (EC-16); None lets pass."""
    prepare: Callable[[Arguments, Place, Receipt, Mapping[str, Any]], Awaitable[Prepared]] | None = None
    """`(arguments, place, receipt so far, services)`; runs after permission and before D6."""
    aliases: tuple[str, ...] = ()
    rule_name: str | None = None
    """The name permission rules use for it: `Read`, `Bash`, … (UX-39)."""
    subjects: Callable[[Arguments, Place], tuple[str, ...]] | None = None
    """What permission patterns are matched against: every resolved path, every simple command (UX-40).
    An empty tuple means it cannot be told and must be asked."""
    reads: Callable[[Arguments, Place], tuple[str, ...]] | None = None
    """For a tool that is no reader of paths by its name: the real path of everything its call opens, for rules on
    reading and for the question of what lies outside the workspace; with `permission.UNTOLD` if there may be more."""
    verifier: EffectVerifier | None = None
    choose_verifier: Callable[[Receipt], EffectVerifier | None] | None = None
    """For a tool whose calls differ in what can be looked at; takes the place of `verifier`. Must be pure."""
    time_limit_seconds: float | None = None
    key_argument: str | None = None
    """The argument the runtime fills with the idempotency key (TR-17)."""
    key_lifetime_seconds: float | None = None
    """How long the far side keeps a key (TR-18); None is not declared."""
    choose_key_lifetime: Callable[[Arguments], float | None] | None = None
    """For a tool whose calls reach several far sides; takes the place of `key_lifetime_seconds`."""
    key_after_failure: bool | Callable[[Arguments], bool] = True
    """Whether the far side accepts a key again after a failure under it (TR-18)."""
    effect_without_key: Callable[[Arguments, Place], Effect] | None = None
    """How a call is judged whose key the far side has forgotten (EC-18)."""
    secret_arguments: tuple[str, ...] = ()
    starts_processes: bool = False
    """Its body may leave processes of its own behind (TR-208)."""
    own: bool = True
    """Declared by the owner of this program, who may state `effect_trace` (TR-39); False for MCP tools."""
    supervised: bool = False
    """A process outlives the agent and settles the call by its records (section 9)."""
    switched_on: bool = False
    """Its owner named it in the settings, which is the permission; deny rules and mode plan still hold (PR-98)."""
    inner: bool = False
    """Runs only as a part of another call (`Barrier.nested`): it is offered to nobody, and no name reaches it."""
    summary: Callable[[Arguments], str] | None = None
    """One line for a card, e.g. `git push origin main`; redacted by the caller."""
    reach_kinds: frozenset[str] = frozenset()
    """Kinds of reach that packs in use add; a member of any other unknown kind is `*` (EC-11)."""

    def verifier_for(self, receipt: Receipt) -> EffectVerifier | None:
        """What looks for the effect of this call; None when nothing can (TR-110)."""
        return self.verifier if self.choose_verifier is None else self.choose_verifier(receipt)

    def key_lifetime_for(self, arguments: Arguments) -> float | None:
        """For how many seconds the far side of this call keeps its key; None when nobody said so."""
        if self.choose_key_lifetime is None:
            return self.key_lifetime_seconds
        return self.choose_key_lifetime(arguments)

    def accepts_key_after_failure(self, arguments: Arguments) -> bool:
        """Whether the far side of this call takes its key again after a failure under it."""
        said = self.key_after_failure
        return said if isinstance(said, bool) else said(arguments)


class Registry:
    """The tools of a session, by canonical name and alias. A name met twice is a fault of the host.

    A `strict` one takes no tool without class (EC-33); another lists it and judges it `UNKNOWN`, `*`.
    """

    def __init__(self, tools: Iterable[Tool] = (), *, strict: bool = False) -> None:
        self._strict = strict
        self._tools: dict[str, Tool] = {}
        self._names: dict[str, str] = {}
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> None:
        """Register a tool.

        Raises `UsageError` when a name or alias is taken, it has not exactly one body, its verifier writes,
        or it declares no class and the registry is strict.
        """
        if self._strict and tool.effect is UNDECLARED:
            raise UsageError(
                f"tool {tool.name!r} declares no effect class; set `effect`, to "
                "`Effect(EffectClass.UNKNOWN, ('*',))` when nothing is known of it"
            )
        if (tool.body is None) == (tool.sync_body is None):
            raise UsageError(f"tool {tool.name!r} needs exactly one of `body` and `sync_body`")
        _refuse_writing_verifier(tool)
        for name in (tool.name, *tool.aliases):
            if name in self._names:
                raise UsageError(f"tool name {name!r} is taken by {self._names[name]!r}; rename one of them")
        self._tools[tool.name] = tool
        for name in (tool.name, *tool.aliases):
            self._names[name] = tool.name

    def resolve(self, asked_name: str, *, nested: bool = False) -> Tool | None:
        """The tool an asked name means, by name or alias; None when there is none.

        `nested`: it is asked for as a part of another call, which may be an inner tool.
        """
        tool = self._tools.get(self._names.get(asked_name, ""))
        return None if tool is None or (tool.inner and not nested) else tool

    def __iter__(self) -> Iterator[Tool]:
        return (tool for tool in self._tools.values() if not tool.inner)

    def __len__(self) -> int:
        return len(self.names())

    def names(self) -> list[str]:
        """Canonical names in order of registration."""
        return [tool.name for tool in self]

    def without_class(self) -> list[str]:
        """Tools that neither declare a class nor are named by a pack in use."""
        return [tool.name for tool in self if tool.effect is UNDECLARED]


def _refuse_writing_verifier(tool: Tool) -> None:
    """A verifier only reads; one that declares anything else is not taken (TR-103)."""
    declared: Sequence[Operation] = ()
    if isinstance(tool.verifier, DeclaredVerifier):
        declared = tool.verifier.operations
    for operation, effect_class in declared:
        if effect_class is not EffectClass.READ_ONLY:
            raise UsageError(
                f"the verifier of tool {tool.name!r} declares {operation!r} as {effect_class}; "
                "a verifier may only read, so let it look in another way"
            )


class Entrance:
    """Who wins: the body that enters, or the limit or cancel that forbids it (TR-77)."""

    __slots__ = ("_lock", "_state")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = "open"

    def enter(self) -> bool:
        """Called by the body's own thread or task directly before its first line."""
        return self._decide("entered")

    def forbid(self) -> bool:
        """True when the body has not entered and never will."""
        return self._decide("forbidden")

    @property
    def entered(self) -> bool:
        return self._state == "entered"

    def _decide(self, state: str) -> bool:
        with self._lock:
            if self._state == "open":
                self._state = state
            return self._state == state


NEVER_RAN = Outcome(
    "The call was ended before its body was entered. It did nothing.",
    state=State.FAILED,
    reason="never_ran",
    effect_trace=EffectTrace.NONE,
)


async def invoke(
    tool: Tool, attempt: LiveAttempt, arguments: Arguments, *, entrance: Entrance, scheduler: Scheduler
) -> Outcome:
    """Run a tool body. This is the only place where one is entered.

    Every end becomes an `Outcome`; nothing a body raises passes, but for `Signal`.
    """
    try:
        if tool.body is not None:
            if not entrance.enter():
                return NEVER_RAN
            with marked(attempt.attempt_id):
                answer = await tool.body(attempt, arguments)
        else:
            answer = await scheduler.thread(
                _entering(tool, attempt, arguments, entrance), f"tool {tool.name}"
            )
    except Signal:
        raise
    except BaseException as error:
        return outcome_of_exception(error, entrance)
    return Outcome(answer) if isinstance(answer, str) else answer


def _entering(
    tool: Tool, attempt: LiveAttempt, arguments: Arguments, entrance: Entrance
) -> Callable[[], Outcome | str]:
    def run() -> Outcome | str:
        if not entrance.enter():
            return NEVER_RAN
        if tool.sync_body is None:
            raise BrokenInvariant(f"tool {tool.name!r} has no body")
        with marked(attempt.attempt_id):
            return tool.sync_body(attempt, arguments)

    return run


_UNDECIDED = (KeyboardInterrupt, SystemExit, MemoryError, GeneratorExit)


def outcome_of_exception(error: BaseException, entrance: Entrance) -> Outcome:
    """What a raised exception says about a body that may have acted (TR-38 to TR-40).

    A type that comes out of a foreign body never proves that nothing happened.
    """
    if not entrance.entered:
        entrance.forbid()
        return NEVER_RAN
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if Scheduler.is_cancel(error):
        return Outcome(said, state=State.UNKNOWN, reason="cancelled")
    if isinstance(error, OutcomeUnknown):
        return Outcome(said, state=State.UNKNOWN, reason="declared")
    if isinstance(error, _UNDECIDED):
        return Outcome(said, state=State.UNKNOWN, reason="undecided_exception")
    if isinstance(error, TimeoutError):
        return Outcome(said, state=State.UNKNOWN, reason="time_limit")
    if isinstance(error, ConnectionError):
        return Outcome(said, state=State.UNKNOWN, reason="connection_lost")
    if isinstance(error, ToolError):
        return _failed_as_told(error)
    return Outcome(said, state=State.FAILED, error_kind=type(error).__name__)


def _failed_as_told(error: ToolError) -> Outcome:
    trace = error.facts.get("effect_trace")
    return Outcome(
        error.message,
        state=State.FAILED,
        error_kind=str(error.facts.get("kind") or "tool_error"),
        effect_trace=None if trace is None else EffectTrace(trace),
        transient=bool(error.facts.get("transient")),
        retry_after_seconds=error.facts.get("retry_after_seconds"),
    )


def classify(tool: Tool, arguments: Arguments, place: Place) -> Effect:
    """Class and reach of one call; a classifier that raises or answers nonsense gives `UNKNOWN`, `*` (EC-5)."""
    if isinstance(tool.effect, Effect):
        return with_compared(tool.effect)
    try:
        answer = tool.effect(arguments, looked_up(tool, arguments, place))
    except Exception as error:
        return replace(UNDECLARED, notes=("classifier_raised", type(error).__name__))
    if not isinstance(answer, Effect):
        return replace(UNDECLARED, notes=("classifier_nonsense",))
    return with_compared(answer)


def looked_up(tool: Tool, arguments: Arguments, place: Place) -> Place:
    """The place with the real paths of what this call names (EC-6, EC-16)."""
    if tool.looks_up is None:
        return place
    real = {path: os.path.realpath(path) for path in tool.looks_up(arguments, place)}
    return replace(place, real_paths={**place.real_paths, **real})


def barred(tool: Tool, arguments: Arguments, place: Place) -> tuple[str, str] | None:
    """Why this target may never be touched (EC-16); what cannot be told here is told when it is prepared."""
    if tool.refuses is None:
        return None
    try:
        return tool.refuses(arguments, place)
    except Exception:
        return None


async def prepare(
    tool: Tool, arguments: Arguments, place: Place, receipt: Receipt, services: Mapping[str, Any]
) -> Prepared:
    """What the tool lays ready before D6; one that cannot starts nothing (TR-105)."""
    if tool.prepare is None:
        return Prepared()
    try:
        prepared = await tool.prepare(arguments, place, receipt, services)
        effect = None if prepared.effect is None else with_compared(prepared.effect)
        return replace(prepared, effect=effect)
    except Exception as error:
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return Prepared(
            refuse=("receipt_not_durable", f"Nothing was started: it could not be prepared ({said}).")
        )


def scope_of(tool: Tool, receipt: Receipt) -> tuple[str, tuple[str, ...]]:
    """The sink identity a verifier names before D6, and notes; the session where none can be told (TR-99)."""
    fallback = f"session:{receipt.session_id}"
    try:
        verifier = tool.verifier_for(receipt)
        scope = fallback if verifier is None else verifier.recovery_scope(receipt)
    except Exception as error:
        return fallback, (SCOPE_UNKNOWN, type(error).__name__)
    return (scope, ()) if isinstance(scope, str) and scope else (fallback, (SCOPE_UNKNOWN,))


def observe(verifier: EffectVerifier, receipt: Receipt, deadline: Deadline, *, fenced: bool) -> Observation:
    """Ask a verifier; one that raises or answers nonsense is an answer of its own, not an error (TR-102).

    Blocks; the scope is compared first, because a changed account can only give a wrong absence (TR-99).
    """
    unnamed = SCOPE_UNKNOWN in receipt.notes
    try:
        scope = verifier.recovery_scope(receipt)
        if not isinstance(scope, str) or not scope or (scope != receipt.scope and not unnamed):
            return Observation("unknown", reason="scope_changed")
        key = receipt.idempotency_key or ""
        answer = verifier.inspect_effect(key, receipt, deadline, fenced=fenced)
    except WriteAttempted:
        return Observation("unknown", reason="verifier_wrote")
    except Exception as error:
        return Observation("unknown", reason="verifier_raised", summary=type(error).__name__)
    if not _is_sound(answer):
        return Observation("unknown", reason="verifier_nonsense")
    if unnamed and answer.grade is Grade.PROOF:
        return replace(answer, grade=Grade.STRONG, reason=answer.reason or "scope_unknown")
    return answer


def _is_sound(answer: object) -> bool:
    """Whether a verifier answered in the words of the port, with evidence that can be stored."""
    if not isinstance(answer, Observation) or answer.state not in OBSERVED:
        return False
    texts = (answer.summary, answer.does_not_prove)
    if not isinstance(answer.grade, Grade) or not all(isinstance(text, str) for text in texts):
        return False
    if answer.fenced not in (True, False) or not isinstance(answer.evidence, Mapping):
        return False
    try:
        canonical_json(dict(answer.evidence))
    except (TypeError, ValueError):
        return False
    return True
