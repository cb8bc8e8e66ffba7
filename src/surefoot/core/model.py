"""Pure. The frozen nouns of surefoot, and the closed word lists they use.

Owns: the shape of a receipt (TR-3), of an entry, and the words of states,
classes, actions and turn statuses. Does not own: how they change
(`lifecycle`, `recovery`), how they are hashed (`canonical`).

A receipt is written in JSON with camelCase names and read back without loss:
a field this version does not know is kept in `extra` (TR-8).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

JSON = Any
"""What `json.loads` may return."""


class Word(StrEnum):
    """A closed list of words; the member's value is the word on disk and on every surface."""


class EffectClass(Word):
    """What running a call again would do (EC-1); order of definition is order of strictness."""

    READ_ONLY = "READ_ONLY"
    IDEMPOTENT_WRITE = "IDEMPOTENT_WRITE"
    NON_IDEMPOTENT = "NON_IDEMPOTENT"
    UNKNOWN = "UNKNOWN"

    @property
    def strictness(self) -> int:
        """0 for the loosest class, 3 for the strictest (EC-2)."""
        return _STRICTNESS[self.value]

    @property
    def retry_safe(self) -> bool:
        """True when repeating is harmless. Computed, never declared (EC-52)."""
        return self.strictness <= 1


_STRICTNESS = {"READ_ONLY": 0, "IDEMPOTENT_WRITE": 1, "NON_IDEMPOTENT": 2, "UNKNOWN": 3}


class State(Word):
    """The states of a receipt (TR-37)."""

    DISPATCHED = "dispatched"
    NOT_STARTED = "not_started"
    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Overlay(Word):
    """What may lie on a receipt beside its state; all but `DELIVERED` on `unknown` only."""

    PROVEN = "proven"
    CONFIRMED = "confirmed"
    DENIED = "denied"
    REJECTED = "rejected"
    RELEASED = "released"
    SUPERSEDED = "superseded"
    LATE = "late"
    DELIVERED = "delivered"


class Decision(Word):
    """What the recovery table answers (TR-112)."""

    SKIP = "SKIP"
    RETRY = "RETRY"
    VERIFY = "VERIFY"
    ASK_USER = "ASK_USER"
    FAIL = "FAIL"


class Action(Word):
    """What a person may do about an unknown call (TR-124)."""

    INSPECT = "inspect"
    CONFIRM = "confirm"
    DENY = "deny"
    REJECT = "reject"
    RELEASE = "release"
    RETRY = "retry"


class Mode(Word):
    """How far a session may go without a question (UX-38)."""

    DEFAULT = "default"
    ACCEPT_EDITS = "acceptEdits"
    PLAN = "plan"
    DONT_ASK = "dontAsk"
    BYPASS = "bypassPermissions"


class ProcessChoice(Word):
    """What a person may do about a process that a call left running (TR-146)."""

    ADOPT = "adopt"
    KILL = "kill"
    LEAVE = "leave"


class Assurance(Word):
    """What a record may claim about who decided (UX-122); order of definition is weakest first."""

    SAME_USER = "same-user"
    SANDBOXED = "sandboxed"
    SEPARATE_USER = "separate-user"
    PASSKEY = "passkey"


class BarrierLevel(Word):
    """How much an unknown write holds back (TR-80); order of definition is strictest first."""

    SESSION = "session"
    REACH = "reach"
    ACTION = "action"
    ADVISE = "advise"
    OFF = "off"


class EffectTrace(Word):
    """Whether an attempt can have left something in the world."""

    NONE = "none"
    POSSIBLE = "possible"
    DONE = "done"


class ExecutorState(Word):
    """What carries out an attempt: proven ended, seen alive, or neither (TR-208)."""

    ENDED = "ended"
    ALIVE = "alive"
    NOT_PROVEN = "not_proven"


class InspectionState(Word):
    """The four answers an inspection may record (TR-101)."""

    PRESENT = "present"
    POSTCONDITION_SATISFIED = "postcondition_satisfied"
    ABSENT_FENCED = "absent_fenced"
    UNKNOWN = "unknown"


class Grade(Word):
    """How much an observation is worth."""

    PROOF = "proof"
    STRONG = "strong"
    WEAK = "weak"
    NONE = "none"


class TurnStatus(Word):
    """The durable status of a turn (TR-179)."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING_USER = "waiting_user"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    RECOVERING = "recovering"


class Kind(Word):
    """The kinds of ledger entries. Payload keys are listed beside each; all are camelCase JSON.

    An entry of a kind unknown to this version is kept and skipped (TR-8).
    """

    SESSION_OPENED = "session.opened"
    """`directory`, `model`, `version`, `name`, `forkedFrom`"""
    SESSION_OWNED = "session.owned"
    """`owner`, `takenOver` (bool), `previousEpoch`. Written by `Ledger.claim` alone."""
    SESSION_NAMED = "session.named"
    """`name`"""
    SESSION_DROPPED = "session.dropped"
    """`upto`, `changedMs`, `cause`, `who`, `receipts`: payloads up to that position are dropped; of the
    receipts this is what is left (TR-97)"""
    DROPPED = "dropped"
    """Never written: how an entry reads whose payload was dropped. `was`: its kind"""
    BARRIER_SET = "barrier.set"
    """`old`, `new`, `who`, `channel`"""
    TURN = "turn"
    """`turnId`, `status`, `cause`, `reason`, `silent`"""
    USER = "user"
    """`turnId`, `text`, `facts` (text appended on the wire, or null)"""
    ASSISTANT = "assistant"
    """`turnId`, `stepId`, `raw` (JSON of the wire), `wire`, `text`, `finish`, `usage`,
    `notes` (found at receipt) and `searches` (display form of native searches) where there are any,
    `calls`: list of `{callId, attemptId, position, askedName, arguments, providerCallId}`.
    Each call becomes a receipt in state `dispatched` (D1). One from a program without start receipts, told
    here without its result, has `imported`: true (TR-51)."""
    DISPATCHED = "attempt.dispatched"
    """A further attempt, a nested call or a foreign one: the keys of a call above, with
    `turnId`, `parentAttemptId`, `originAttemptId`, `ladder`."""
    NOT_STARTED = "attempt.not_started"
    """`attemptId`, `reason`, `tool`, `result`"""
    STARTED = "attempt.started"
    """`attemptId` and every field of a receipt known at D6; `supersedes` names the old attempt."""
    CLOSED = "attempt.closed"
    """`attemptId`, `state` (succeeded, failed, unknown), `reason`, `errorKind`,
    `effectTrace`, `result` or `resultRef`, `resultDigest`, `finishedAt`"""
    LATE = "attempt.late"
    """`attemptId`, `settles` (bool), `state`, `result` or `resultRef`, `resultDigest`,
    `errorKind`, `effectTrace`, `source`, `at`"""
    PROCESS = "attempt.process"
    """`attemptId`, `process` (keys merged into the process record), `executor`"""
    INSPECTED = "attempt.inspected"
    """`attemptId`, `inspection`, `proven` (bool)"""
    RESOLVED = "attempt.resolved"
    """`attemptId`, `resolution`"""
    DELIVERED = "attempt.delivered"
    """`attemptId`"""
    REPORTED = "attempt.reported"
    """`attemptId`, `finding`, `grade`, `reads`: what the model reported; changes no state"""
    QUESTION = "question"
    """`questionId`, `attemptId`, `turnId`, `text`, `choices`"""
    ANSWER = "answer"
    """`questionId`, `attemptId`, `text`, `verdict` (answered, expired, withdrawn, late), `by`, `channel`"""
    APPROVAL = "approval"
    """`attemptId`, `argumentDigest`, `verdict` (approved, denied, expired, withdrawn), `by`, `channel`"""
    HAND_OFF = "hand_off"
    """`turnId`, `facts`: what an interrupted turn leaves to the next one"""
    NOTICE = "notice"
    """`code`, and the facts of the notice"""
    TODO = "todo"
    """`items`"""
    INCIDENT = "incident"
    """`incidentId`, `state`, `projected`, `at`, and `record`: the whole incident as JSON text (PR-19, PR-22)"""
    COMPACTED = "view.compacted"
    """`notes`, `counts`, `calls`, `messages`, `keepsLast`, `pinned`, `prompt`, `requests`, `summary`, `who`: the
    model's view from here on; what stands in the ledger stays (TR-94)"""
    REWOUND = "view.rewound"
    """`turnId`, `offBranch`, `remaining`, `pinned`, `who`: the view goes back to before that turn (TR-95)"""
    FORKED = "view.forked"
    """`origin` (`sessionId`, `position`), `messages`: the view this session begins with (TR-96)"""
    HOST = "host"
    """`turnId`, `text`, `prompt`: words of the host to the model; no user message, no checkpoint (PR-60)"""


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry not yet appended: its kind and JSON payload."""

    kind: str
    payload: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class Entry:
    """One appended row of a session. `position` counts from 1 and alone decides order."""

    session_id: str
    position: int
    epoch: int
    at_ms: int
    kind: str
    payload: Mapping[str, JSON]
    head: str = ""
    """Hex head of the hash chain after this entry."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process as the kernel knows it; `lock` is the device and inode of its `flock` file."""

    host: str
    pid: int
    start_ticks: int
    boot_id: str
    pid_namespace: str
    machine_id: str
    lock_dev: int | None = None
    lock_ino: int | None = None

    def to_json(self) -> dict[str, JSON]:
        """As the `owner` field of a receipt (TR-3)."""
        lock = None if self.lock_ino is None else {"dev": self.lock_dev, "ino": self.lock_ino}
        return {
            "host": self.host,
            "pid": self.pid,
            "startTicks": self.start_ticks,
            "bootId": self.boot_id,
            "pidNamespace": self.pid_namespace,
            "machineId": self.machine_id,
            "lock": lock,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, JSON]) -> Owner:
        """Read what `to_json` wrote; missing keys read as nothing known."""
        lock = value.get("lock") or {}
        return cls(
            host=str(value.get("host", "")),
            pid=int(value.get("pid", 0)),
            start_ticks=int(value.get("startTicks", 0)),
            boot_id=str(value.get("bootId", "")),
            pid_namespace=str(value.get("pidNamespace", "")),
            machine_id=str(value.get("machineId", "")),
            lock_dev=lock.get("dev"),
            lock_ino=lock.get("ino"),
        )


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the ledger knows about one attempt: the fold of its entries (TR-3).

    Times are integer milliseconds since 1970 UTC, `…_boot` milliseconds since boot;
    neither decides an order.
    """

    session_id: str
    turn_id: str
    call_id: str
    attempt_id: str
    position: int
    """Index of the call in its assistant message."""
    provider_call_id: str | None = None
    parent_attempt_id: str | None = None
    origin_attempt_id: str | None = None

    tool: str | None = None
    """Canonical name; null until the call was resolved."""
    asked_name: str = ""
    arguments: str = ""
    """The argument text: as the model wrote it until D6, from then the effective form."""
    arguments_display: str | None = None
    argument_digest: str | None = None

    effect_class: EffectClass | None = None
    reach: tuple[str, ...] = ()
    scope: str | None = None
    interaction: bool = False
    check: bool = False
    stricter_now: Mapping[str, JSON] | None = None

    idempotency_key: str | None = None
    key_expires_at: int | None = None

    epoch: int = 0
    owner: Mapping[str, JSON] | None = None
    deadline_at: int | None = None
    deadline_boot: int | None = None

    dispatched_at: int | None = None
    started_at: int | None = None
    started_boot: int | None = None
    finished_at: int | None = None

    state: State = State.DISPATCHED
    reason: str | None = None
    error_kind: str | None = None
    effect_trace: EffectTrace | None = None
    result: Mapping[str, JSON] | None = None
    """`{"text": str, "isError": bool}`, or null when it stands in a blob (`result_ref`); with `pictures`, a list of
    `{"mediaType": str, "ref": str}`, where the call gave some."""
    result_ref: str | None = None
    result_digest: str | None = None
    late: tuple[Mapping[str, JSON], ...] = ()
    delivered: bool = False

    write_intents: tuple[Mapping[str, JSON], ...] = ()
    process: Mapping[str, JSON] | None = None
    executor: Mapping[str, JSON] | None = None
    """`{"state": …}` as last recorded; surfaces show what is seen now (TR-208)."""
    inspection: Mapping[str, JSON] | None = None
    """`{id, state, grade, summary, evidence, verifier, observedAt}`"""

    resolution: Mapping[str, JSON] | None = None
    """`{kind, who, channel, method, client, letInBy, ancestry, assurance, revision, inspectionId, at,
    note}`"""
    superseded_by: str | None = None
    supersedes: str | None = None

    approval: Mapping[str, JSON] | None = None
    ladder: Mapping[str, JSON] | None = None

    overlays: tuple[Overlay, ...] = ()
    notes: tuple[str, ...] = ()
    """What the runtime noted, e.g. `arguments_absent`, `key_replaced`, `classifier_raised`."""
    started_position: int | None = None
    """Ledger position of D6; tells what started later."""
    extra: Mapping[str, JSON] = field(default_factory=dict)
    """Fields written by a version newer than this one, kept as they came."""

    def has(self, overlay: Overlay) -> bool:
        """Whether `overlay` lies on this receipt."""
        return overlay in self.overlays

    def to_json(self) -> dict[str, JSON]:
        """The receipt under the field names of TR-3; a field without value is null, never missing."""
        shown: dict[str, JSON] = {}
        for name, key in receipt_fields():
            value = getattr(self, name)
            if isinstance(value, Word):
                value = value.value
            elif isinstance(value, tuple):
                value = [item.value if isinstance(item, Word) else item for item in value]
            shown[key] = value
        return {**self.extra, **shown}


@functools.cache
def receipt_fields() -> tuple[tuple[str, str], ...]:
    """Pairs of attribute and JSON name of a receipt, in order of definition."""
    return tuple((f.name, camel(f.name)) for f in dataclasses.fields(Receipt) if f.name != "extra")


def camel(name: str) -> str:
    """`argument_digest` → `argumentDigest`; `effect_class` is `class` on disk and on the wire."""
    if name == "effect_class":
        return "class"
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing a surface may show. `kind` is stable; `facts` are JSON-ready and hold no arguments."""

    kind: str
    facts: Mapping[str, JSON]
