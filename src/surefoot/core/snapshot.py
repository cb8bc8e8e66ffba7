"""Pure. The recovery snapshot: every fact a surface needs about unknown calls, in one value.

Owns: the JSON of TR-139, its order and bounds, and the revision (TR-140). Does not own:
the words beside it (`surfaces.view`), who may see it.
Promises: surface:same-story.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.core.admission import AttemptFacts, Controls, offered
from surefoot.core.canonical import digest_json
from surefoot.core.effects import judged_effect
from surefoot.core.lifecycle import Book
from surefoot.core.model import ExecutorState, Overlay, Receipt
from surefoot.core.recovery import fences

MOST_CALLS = 200
LAST_RESOLVED = 50
NAME_BYTES = 512
"""What a surface lays over the name of a call: its key, and for a copy where it comes from."""
SEPARATOR_BYTES, REVISION_BYTES = 2, 1024
"""Between two calls; of the digest, the envelope of an answer and a grown count."""


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What the snapshot says about the session as a whole."""

    session_path: str
    runtime_epoch: str
    barrier: str
    on_unknown: str
    retry_enabled: bool
    silent: bool = False
    background: Sequence[Mapping[str, Any]] = ()
    """Listed resources (TR-205): JSON-ready, nothing that counts elapsed time."""


@dataclass(frozen=True, slots=True)
class CallFacts:
    """One call of the snapshot: its receipt and what is seen of it now."""

    receipt: Receipt
    attempt: AttemptFacts
    """As the rules of the actions see it; `executor` is shown as well."""
    decision: str
    """Word of the recovery table."""
    process: Mapping[str, Any] | None = None
    """`{state, pid, log, choices}` of a survivor, or None (TR-70)."""
    parked: str | None = None
    """The action of a press that waits for the next step border (TR-210)."""
    off_branch: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """What a snapshot is made for."""

    inspected: str | None = None
    """The one attempt whose arguments may be shown (TR-141)."""
    named: str | None = None
    """The attempt that is asked about; it and the inspected one are left out by no bound."""
    most_bytes: int | None = None


def select(
    book: Book, *, calls: int = MOST_CALLS, resolved: int = LAST_RESOLVED, named: str | None = None
) -> tuple[list[Receipt], int]:
    """Which receipts a snapshot holds, in order, and how many it leaves out: open ones first (those that fence,
    then open reads; oldest first), then the last resolved ones, the newest first.

    The one that is `named` is always among them.
    """
    opened, closed = sorted(book.open(), key=lambda one: not fences(one)), book.resolved()
    newest = list(reversed(closed[-resolved:] if resolved else []))
    shown = (opened + newest)[:calls]
    if named is not None and all(one.attempt_id != named for one in shown):
        missing = [one for one in opened + closed if one.attempt_id == named]
        shown = shown[: max(0, calls - len(missing))] + missing
    return shown, len(opened) + len(closed) - len(shown)


def snapshot(
    session: SessionFacts,
    controls: Controls,
    calls: Sequence[CallFacts],
    *,
    statistics: Mapping[str, int],
    more: int = 0,
    asked: Asked | None = None,
) -> dict[str, Any]:
    """The JSON of TR-139.

    Where it would be larger than what is `asked` for, calls at its end are left out and counted in `more`
    (TR-147, TR-185).
    """
    asked = asked or Asked()
    inspected = asked.inspected
    shown: dict[str, Any] = {
        "sessionPath": session.session_path,
        "runtimeEpoch": session.runtime_epoch,
        "revision": "",
        "silent": session.silent,
        "retryEnabled": session.retry_enabled,
        "barrier": session.barrier,
        "onUnknown": session.on_unknown,
        "more": more,
        "background": [dict(resource) for resource in session.background],
        "statistics": dict(statistics),
        "calls": [],
    }
    rows = [_call(call, controls) for call in calls]
    if asked.most_bytes is not None:
        kept = {inspected, asked.named}
        room = asked.most_bytes - size_of(shown) - REVISION_BYTES
        rows = _that_fit(rows, [_beside(call, inspected) for call in calls], room, kept)
    shown["calls"], shown["more"] = rows, more + len(calls) - len(rows)
    shown["revision"] = revision_of(shown)
    arguments = {call.receipt.attempt_id: call.receipt.arguments for call in calls}
    for row in rows:
        if row["attemptId"] == inspected:
            row["arguments"] = arguments[row["attemptId"]]
    return shown


def size_of(value: Any) -> int:
    """Bytes of a value as it is sent."""
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _beside(call: CallFacts, inspected: str | None) -> int:
    """Bytes that come to a call after its facts: its name on surfaces, and its arguments once inspected."""
    named = size_of(call.receipt.arguments_display or "") + NAME_BYTES
    return named + (size_of(call.receipt.arguments) if call.receipt.attempt_id == inspected else 0)


def _that_fit(
    rows: Sequence[dict[str, Any]], beside: Sequence[int], room: int, kept: Collection[str | None]
) -> list[dict[str, Any]]:
    """The rows for which there is room, in their order; those that are to be kept come first."""
    sizes = [size_of(row) + more + SEPARATOR_BYTES for row, more in zip(rows, beside, strict=True)]
    left = room - sum(size for row, size in zip(rows, sizes, strict=True) if row["attemptId"] in kept)
    found, full = [], False
    for row, size in zip(rows, sizes, strict=True):
        if row["attemptId"] in kept:
            found.append(row)
            continue
        full = full or size > left
        if not full:
            found.append(row)
            left -= size
    return found


def revision_of(shown: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical snapshot with an empty revision, without arguments and cards (TR-140, UX-62)."""
    hidden = ("arguments", "card")
    calls = [{key: call[key] for key in call if key not in hidden} for call in shown["calls"]]
    return digest_json({**shown, "revision": "", "calls": calls})


def _call(call: CallFacts, controls: Controls) -> dict[str, Any]:
    receipt, effect = call.receipt, judged_effect(call.receipt)
    return {
        "attemptId": receipt.attempt_id,
        "callId": receipt.call_id,
        "turnId": receipt.turn_id,
        "tool": receipt.tool or receipt.asked_name,
        "class": effect.effect_class.value,
        "reach": list(effect.reach),
        "state": receipt.state.value,
        "reason": receipt.reason,
        "overlays": [overlay.value for overlay in receipt.overlays if overlay is not Overlay.DELIVERED],
        "open": call.attempt.open,
        "fencing": call.attempt.open and fences(receipt),
        "decision": call.decision,
        "executor": {"state": ExecutorState(call.attempt.executor).value},
        "parked": call.parked,
        "idempotencyKey": receipt.idempotency_key,
        "argumentDigest": receipt.argument_digest,
        "startedAt": receipt.started_at,
        "finishedAt": receipt.finished_at,
        "inspectionId": call.attempt.inspection_id,
        "inspection": None if receipt.inspection is None else dict(receipt.inspection),
        "resolution": None if receipt.resolution is None else dict(receipt.resolution),
        "offBranch": call.off_branch,
        "process": None if call.process is None else dict(call.process),
        "actions": offered(controls, call.attempt),
    }
