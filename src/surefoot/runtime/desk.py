"""What tools of ours may ask of the session they run in: open calls, reports, the to-do list.

Owns: the read access behind the model's `recovery` tool (TR-153) and the record of its
reports, which change no state. Does not own: the tools (`surefoot.tools`), decisions (`actions`).
Promises: recovery:never-guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from surefoot.core.effects import judged_effect
from surefoot.core.limits import Limits
from surefoot.core.model import Draft, EffectClass, Grade, Kind, Receipt, State
from surefoot.core.recovery import fences
from surefoot.core.results import clock_text, result_of
from surefoot.ledger.results import refs_of, stored_texts
from surefoot.runtime.actions import Actions
from surefoot.runtime.inspection import inspect
from surefoot.runtime.tools import LiveAttempt

TOLD_OF_A_LOOK = ("state", "grade", "summary", "doesNotProve", "verifier", "reason")


class Desk:
    """The recovery desk of one session, for its own model."""

    def __init__(self, actions: Actions, limits: Limits) -> None:
        self._actions = actions
        self._limits = limits
        self._reports: dict[str, int] = {}

    async def open_calls(self) -> Sequence[Mapping[str, Any]]:
        """What may be told of every open call, unknown writes first; no arguments, no key, no word of a person."""
        rows = [self._row(receipt) for receipt in self._actions.session.book.open()]
        return sorted(rows, key=lambda row: not row["fencing"])

    def _row(self, receipt: Receipt) -> Mapping[str, Any]:
        standing, effect = self._actions.standing, judged_effect(receipt)
        looked = receipt.inspection or {}
        return {
            "attempt": receipt.attempt_id,
            "call": receipt.call_id,
            "tool": receipt.tool or receipt.asked_name,
            "class": effect.effect_class.value,
            "reach": list(effect.reach),
            "state": receipt.state.value,
            "reason": receipt.reason,
            "overlays": [overlay.value for overlay in receipt.overlays],
            "started": None if receipt.started_at is None else clock_text(receipt.started_at),
            "fencing": fences(receipt),
            "decision": standing.decide(receipt).decision.value,
            "executor": standing.executor(receipt).value,
            "inspection": {key: looked.get(key) for key in TOLD_OF_A_LOOK} if looked else None,
        }

    async def inspect(self, attempt_id: str) -> Mapping[str, Any] | None:
        """State and evidence of an attempt after a local look; the stored result of one that settled."""
        session = self._actions.session
        receipt = session.book.get(attempt_id)
        if receipt is None:
            return None
        if receipt.state is not State.UNKNOWN:
            stored = await stored_texts(session.ledger, refs_of([receipt]))
            return {"state": receipt.state.value, "result": result_of(receipt, stored=stored).text}
        if session.book.is_open(attempt_id) and self._actions.standing.is_local(receipt):
            await inspect(
                session,
                self._actions.barrier.registry,
                receipt,
                executor=self._actions.standing.executor(receipt),
                limits=self._limits,
            )
        now = session.book.get(attempt_id) or receipt
        overlays = [overlay.value for overlay in now.overlays]
        return {
            "state": now.state.value,
            "reason": now.reason,
            "overlays": overlays,
            "inspection": _told_look(now),
            "arguments": now.arguments_display,
        }

    async def report(
        self, attempt: LiveAttempt, attempt_id: str, *, finding: str, reads: Sequence[str]
    ) -> Mapping[str, Any]:
        """Record what the model found. It is a finding of grade `weak` at most and resolves nothing."""
        session = self._actions.session
        receipt = session.book.get(attempt_id)
        if receipt is None or receipt.state is not State.UNKNOWN:
            return {"refused": "attempt_unknown"}
        if len(finding.encode("utf-8", "replace")) > self._limits.report_bytes:
            return {"refused": "finding_too_long", "most_bytes": self._limits.report_bytes}
        if self._reports.get(attempt_id, 0) >= self._limits.reports_per_call:
            return {"refused": "too_many_reports"}
        looked = [session.book.get(read) for read in reads]
        if any(read is None or not _is_settled_read(read) for read in looked):
            return {"refused": "not_a_settled_read"}
        grade = Grade.WEAK if reads else Grade.NONE
        payload = {"attemptId": attempt_id, "finding": finding, "grade": grade.value, "reads": list(reads)}
        await session.append(Draft(Kind.REPORTED, payload))
        self._reports[attempt_id] = self._reports.get(attempt_id, 0) + 1
        return {"grade": grade.value}

    async def replace(self, attempt: LiveAttempt, items: Sequence[Mapping[str, Any]]) -> None:
        """Store the whole to-do list of the session."""
        await self._actions.session.append(Draft(Kind.TODO, {"items": [dict(item) for item in items]}))


def _told_look(receipt: Receipt) -> Mapping[str, Any] | None:
    looked = receipt.inspection
    return None if looked is None else {key: looked.get(key) for key in (*TOLD_OF_A_LOOK, "evidence")}


def _is_settled_read(receipt: Receipt) -> bool:
    reads = judged_effect(receipt).effect_class is EffectClass.READ_ONLY
    return reads and receipt.state is State.SUCCEEDED
