"""What settles a call without a person: the built-in policy about stopped checks, and the owner's own.

Owns: which open calls a policy releases or rejects, at once and by name, and its record
(TR-75, TR-122, UX-156), and which it lets be tried again. Does not own: that try (`resuming`),
what a person decides (`actions`), what is proven about processes (`reconcile.Supervision`).
A policy never confirms or denies: those are somebody's testimony.
Promises: recovery:never-guess. The state stays `unknown` whatever a policy lifts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from surefoot.core.effects import judged_effect
from surefoot.core.model import Draft, EffectClass, Entry, ExecutorState, Kind, Notice, Receipt, State
from surefoot.errors import LedgerError
from surefoot.runtime.session import Session

STOPPED = frozenset({"cancelled", "time_limit"})
"""Ends that we made: Stop, and the limit of the call."""
RECORDS = {"release": "released", "reject": "rejected"}
_NEWS = frozenset({Kind.CLOSED.value, Kind.PROCESS.value})


class Policies:
    """Watches one owned session and settles what its owner's settings say."""

    def __init__(
        self,
        session: Session,
        executor: Callable[[Receipt], ExecutorState],
        *,
        stopped_checks: bool,
        named: Mapping[str, str],
    ) -> None:
        self.notify: Callable[[Notice], None] = lambda notice: None
        self._session = session
        self._executor = executor
        self._stopped_checks = stopped_checks
        self._named = named
        session.watch(self._appended)

    async def apply(self) -> None:
        """Settle what an earlier owner left: its check may have gone quiet after its death."""
        for receipt in self._session.book.open():
            await self._settle(receipt.attempt_id)

    def to_retry(self) -> list[Receipt]:
        """The open writes of tools that the owner lets be tried again; whether one may be is asked elsewhere."""
        found = [one for one in self._session.book.open() if self._named.get(one.tool or "") == "retry"]
        return [one for one in found if self._is_a_policys(one)]

    def _appended(self, entry: Entry) -> None:
        receipt = self._session.book.get(entry.payload.get("attemptId", ""))
        if receipt is None:
            return
        if entry.kind == Kind.RESOLVED and entry.payload["resolution"].get("method") == "stopped_check":
            # Told with the record itself: whoever sees the call decided has its line, and counts after it.
            shown = {"tool": receipt.tool, "argumentsDisplay": receipt.arguments_display}
            self.notify(Notice("check_stopped", {"attemptId": receipt.attempt_id, **shown}))
        if entry.kind in _NEWS and self._verdict(receipt) is not None:
            work = self._settle(receipt.attempt_id)
            self._session.scheduler.spawn(work, f"policy {receipt.attempt_id}")

    def _verdict(self, receipt: Receipt) -> tuple[str, str] | None:
        """The action for this call and which policy says so; None leaves it to a person."""
        if not self._is_a_policys(receipt):
            return None
        if self._stopped_checks and self._is_stopped_check(receipt):
            return "release", "stopped_check"
        action = self._named.get(receipt.tool or "")
        return None if action not in RECORDS else (action, "named_tool")

    def _is_a_policys(self, receipt: Receipt) -> bool:
        """Whether it is an open write that nobody has decided about."""
        if receipt.state is not State.UNKNOWN or receipt.resolution is not None:
            return False
        effect = judged_effect(receipt)
        if effect.effect_class is EffectClass.READ_ONLY or effect.interaction:
            return False
        return self._session.book.is_open(receipt.attempt_id)

    def _is_stopped_check(self, receipt: Receipt) -> bool:
        """A test run that we ended and whose last process is seen to be gone holds nobody back (TR-75)."""
        if not receipt.check or receipt.process is None or receipt.reason not in STOPPED:
            return False
        return self._executor(receipt) is ExecutorState.ENDED

    async def _settle(self, attempt_id: str) -> None:
        receipt = self._session.book.get(attempt_id)
        verdict = None if receipt is None else self._verdict(receipt)
        if receipt is None or verdict is None:
            return
        action, policy = verdict
        record = {"attemptId": attempt_id, "resolution": self._resolution(receipt, action, policy)}

        def still_so() -> str | None:
            now = self._session.book.get(attempt_id)
            return None if now is not None and self._verdict(now) == verdict else "already_resolved"

        try:
            await self._session.append(Draft(Kind.RESOLVED, record), judge=still_so)
        except LedgerError:
            return  # it fences on, and a person may lift that

    def _resolution(self, receipt: Receipt, action: str, policy: str) -> dict[str, Any]:
        return {
            "kind": RECORDS[action],
            **self.presser(policy),
            "revision": None,
            "inspectionId": (receipt.inspection or {}).get("id"),
            "note": None,
        }

    def presser(self, policy: str) -> dict[str, Any]:
        """Who a record names where no person pressed (TR-122)."""
        return {
            "who": "policy",
            "channel": "policy",
            "method": policy,
            "client": None,
            "letInBy": "policy",
            "ancestry": "none",
            "assurance": "same-user",
            "at": self._session.scheduler.now_ms(),
        }
