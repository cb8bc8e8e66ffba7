"""Looking at the world about one unknown call, and recording what was seen.

Owns: running a verifier off the input path within its time, and the map from what it
saw to the four inspection states (TR-101 to TR-104). Does not own: what a verifier
looks at (`verifiers`), what follows (`core.recovery`).
Promises: recovery:never-guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from surefoot.core.canonical import canonical_json
from surefoot.core.lifecycle import Book
from surefoot.core.limits import Limits
from surefoot.core.model import Draft, ExecutorState, Grade, InspectionState, Kind, Receipt
from surefoot.errors import SessionMissing
from surefoot.ledger.port import NotAppended
from surefoot.runtime.session import Session
from surefoot.runtime.tools import Registry, observe
from surefoot.verifiers.port import Deadline, Observation


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look may record: its state, and whether it proves the effect by itself."""

    state: InspectionState
    proven: bool


def map_observation(seen: Observation) -> Seen:
    """The table of TR-101; pure and total."""
    if seen.state == "present":
        return Seen(InspectionState.PRESENT, seen.grade is Grade.PROOF)
    if seen.state == "absent" and seen.fenced and seen.grade is Grade.PROOF:
        return Seen(InspectionState.ABSENT_FENCED, False)
    if seen.state == "satisfied":
        return Seen(InspectionState.POSTCONDITION_SATISFIED, False)
    return Seen(InspectionState.UNKNOWN, False)


async def inspect(
    session: Session,
    registry: Registry,
    receipt: Receipt,
    *,
    executor: ExecutorState,
    limits: Limits,
    seconds: float | None = None,
) -> Mapping[str, Any] | None:
    """Look once and record it under a new inspection id; None when the call was resolved meanwhile.

    `seconds` is what is left for it, where that can be less than a verifier's own time.

    Raises `LedgerError` when the record could not be made; the older inspection then stays.
    """
    most = limits.inspect_seconds if seconds is None else min(seconds, limits.inspect_seconds)
    verifier_name, seen = await _observe(session, registry, receipt, executor, most)
    seen = await _with_origin(session, receipt, seen)
    mapped = map_observation(seen)
    inspection = {
        "id": session.scheduler.new_id("ins"),
        "state": mapped.state.value,
        "grade": _grade(seen, mapped).value,
        "summary": seen.summary[: limits.summary_characters],
        "evidence": _bounded(seen.evidence, limits.evidence_bytes),
        "doesNotProve": seen.does_not_prove[: limits.summary_characters],
        "verifier": verifier_name,
        "reason": seen.reason if mapped.state is InspectionState.UNKNOWN else None,
        "observedAt": session.scheduler.now_ms(),
    }
    payload = {"attemptId": receipt.attempt_id, "inspection": inspection, "proven": mapped.proven}

    def still_open() -> str | None:
        return None if session.book.is_open(receipt.attempt_id) else "already_resolved"

    answer = await session.append(Draft(Kind.INSPECTED, payload), judge=still_open)
    return None if isinstance(answer, NotAppended) else inspection


async def _with_origin(session: Session, receipt: Receipt, seen: Observation) -> Observation:
    """How a copy was decided where it began, as evidence beside what was seen; it decides nothing here (TR-96)."""
    origin_id = receipt.extra.get("originSessionId")
    if receipt.origin_attempt_id is None or not isinstance(origin_id, str):
        return seen
    try:
        entries = await session.ledger.read(origin_id)
    except SessionMissing:
        return seen
    book = Book()
    for entry in entries:
        book.apply(entry)
    origin = book.get(receipt.origin_attempt_id)
    if origin is None:
        return seen
    known = {
        "sessionId": origin_id,
        "attemptId": origin.attempt_id,
        "state": origin.state.value,
        "resolution": None if origin.resolution is None else dict(origin.resolution),
        "inspection": (origin.inspection or {}).get("state"),
    }
    return replace(seen, evidence={**seen.evidence, "origin": known})


async def _observe(
    session: Session, registry: Registry, receipt: Receipt, executor: ExecutorState, seconds: float
) -> tuple[str | None, Observation]:
    tool = registry.resolve(receipt.tool or "", nested=True)  # it was started under this name
    if tool is None or tool.name != receipt.tool:
        return None, Observation("unknown", reason="target_gone")
    verifier = tool.verifier_for(receipt)
    if verifier is None:
        return None, Observation("unknown", reason="no_verifier")
    if seconds <= 0:
        return verifier.name, Observation("unknown", reason="verifier_timeout")  # its look had no time left
    scheduler = session.scheduler
    deadline = Deadline(scheduler.boot_ms() + int(seconds * 1000))
    fenced = executor is ExecutorState.ENDED
    look = scheduler.thread(
        lambda: observe(verifier, receipt, deadline, fenced=fenced), f"inspect {receipt.attempt_id}"
    )
    if not await scheduler.wait(look, seconds=seconds):
        return verifier.name, Observation("unknown", reason="verifier_timeout")
    return verifier.name, look.result()


def _grade(seen: Observation, mapped: Seen) -> Grade:
    """What holds now says nothing certain about what the call did, so it is `strong` at most (TR-101)."""
    if mapped.state is InspectionState.POSTCONDITION_SATISFIED:
        return Grade.STRONG
    return seen.grade


def _bounded(evidence: Mapping[str, Any], most_bytes: int) -> Mapping[str, Any]:
    """Evidence above its bound is counted, never silently dropped (TR-185)."""
    size = len(canonical_json(dict(evidence)).encode("utf-8", "surrogatepass"))
    return dict(evidence) if size <= most_bytes else {"omittedBytes": size}
