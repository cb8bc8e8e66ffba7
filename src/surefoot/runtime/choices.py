"""What a person chooses about a process that outlived its call: adopt, kill or leave.

Owns: the admission of such a choice (TR-146), its record, and what its end settles (TR-71).
Does not own: finding and ending processes (`Supervision`), the call's decision (`actions`).
Promises: recovery:never-guess. None of the choices resolves the call by itself; only the
record of its own supervisor does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from surefoot.core import admission
from surefoot.core.admission import Controls, Press
from surefoot.core.model import Action, Draft, ExecutorState, Kind, ProcessChoice, Receipt
from surefoot.errors import LedgerError, StaleEpoch
from surefoot.runtime.reconcile import Supervision, late_truth
from surefoot.runtime.requests import Answer, Caller, storage_failed
from surefoot.runtime.session import Session

FIELDS = frozenset({"sessionPath", "runtimeEpoch", "revision", "attemptId", "choice"})


class Choices:
    """The processes of one owned session's calls."""

    def __init__(self, session: Session, supervision: Supervision, session_path: str) -> None:
        self.adopted: dict[str, Any] = {}
        """Attempt → task that waits for the end of an adopted command."""
        self.snapshot: Callable[..., Mapping[str, Any]] = lambda **_: {}
        self._session = session
        self._supervision = supervision
        self._session_path = session_path

    async def act(self, request: Mapping[str, Any], caller: Caller, controls: Controls) -> Answer:
        """Carry out one choice; the first rule that refuses it answers. A turn that runs is no hindrance."""
        if set(request) - FIELDS:
            return _refused("unknown_field", status=400)
        if request.get("choice") not in tuple(ProcessChoice) or not isinstance(request.get("attemptId"), str):
            return _refused("bad_request", status=400)
        receipt = self._session.book.get(request["attemptId"])
        code = self._refusal(request, caller, controls, receipt)
        if code is not None or receipt is None:
            reason = caller.not_a_person if code == "person_required" else None
            return _refused(code or "attempt_unknown", reason=reason)
        try:
            return await self._carry_out(str(request["choice"]), receipt, caller)
        except LedgerError as error:
            return storage_failed(error)

    def _refusal(
        self, request: Mapping[str, Any], caller: Caller, controls: Controls, receipt: Receipt | None
    ) -> str | None:
        press = Press(
            Action.INSPECT,
            session_matches=request.get("sessionPath") == self._session_path,
            epoch_current=str(request.get("runtimeEpoch")) == str(self._session.epoch),
            revision="current" if request.get("revision") else "missing",
            not_a_person=caller.not_a_person,
        )
        is_open = receipt is not None and self._session.book.is_open(receipt.attempt_id)
        listed = receipt is not None and self._is_listed(request["choice"], receipt)
        facts = admission.AttemptFacts(known=receipt is not None, open=is_open or listed)
        admitted = admission.admit(press, Controls("idle", controls.ownership), facts)
        if admitted.code is not None or receipt is None:
            return admitted.code
        return None if receipt.process is not None else "process_missing"

    def _is_listed(self, choice: str, receipt: Receipt) -> bool:
        """Whether the call is settled and what it left running is listed all the same (TR-78, TR-146)."""
        if choice == "adopt" or receipt.process is None:
            return False
        alive = self._supervision.executor(receipt) is ExecutorState.ALIVE
        return alive or (choice == "kill" and _is_background(receipt))

    async def _carry_out(self, choice: str, receipt: Receipt, caller: Caller) -> Answer:
        if choice == "leave":
            await self._note(receipt, {"left": _who(caller, self._session.scheduler.now_ms())})
            return self._answer(receipt, {"choice": choice})
        if choice == "adopt":
            if receipt.attempt_id not in self.adopted:
                work = self._session.scheduler.spawn(self._adopt(receipt), f"adopt {receipt.attempt_id}")
                self.adopted[receipt.attempt_id] = work
            return self._answer(receipt, {"choice": choice})
        killed = await self.end(receipt, _who(caller, self._session.scheduler.now_ms()))
        await self._settle(receipt)
        return self._answer(receipt, {"choice": choice, **killed})

    async def end(self, receipt: Receipt, who: Mapping[str, Any]) -> dict[str, Any]:
        """End a command and all it left, and note what is proven of that; its call stays as it was."""
        killed = dict(await self._supervision.kill(receipt))
        await self._note(receipt, {"killed": {**who, **killed}})
        return killed

    async def _adopt(self, receipt: Receipt) -> None:
        try:
            await self._supervision.adopt(receipt)
            await self._settle(receipt)
        except (LedgerError, StaleEpoch):
            return  # the supervisor's record stays; whoever owns the session next reads it
        finally:
            self.adopted.pop(receipt.attempt_id, None)

    async def ended(self, attempt_id: str) -> None:
        """Wait until an adopted command has ended and what its record says is written."""
        task = self.adopted.get(attempt_id)
        if task is not None:
            await self._session.scheduler.wait(task)

    def release(self) -> None:
        """Stop waiting for adopted commands; they go on."""
        for task in list(self.adopted.values()):
            task.cancel()

    async def _note(self, receipt: Receipt, process: Mapping[str, Any]) -> None:
        executor = self._supervision.executor(receipt)
        payload: dict[str, Any] = {"attemptId": receipt.attempt_id, "process": dict(process)}
        if executor is ExecutorState.ENDED and (receipt.executor or {}).get("state") != executor.value:
            payload["executor"] = {"state": executor.value}
        await self._session.append(Draft(Kind.PROCESS, payload))

    async def _settle(self, receipt: Receipt) -> None:
        """The supervisor's own record is proof of how the command ended (TR-43); a signal settles nothing."""
        now = self._session.book.get(receipt.attempt_id)
        if now is not None and self._session.book.is_open(now.attempt_id):
            found = late_truth(self._session, now, self._supervision)
            if found:
                await self._session.append(*found)

    def _answer(self, receipt: Receipt, process: Mapping[str, Any]) -> Answer:
        return Answer(200, {**self.snapshot(named=receipt.attempt_id), "process": dict(process)})


def _is_background(receipt: Receipt) -> bool:
    return bool((receipt.process or {}).get("background"))


def _who(caller: Caller, now_ms: int) -> dict[str, Any]:
    return {"who": caller.who, "channel": caller.channel, "client": caller.client, "at": now_ms}


def _refused(code: str, *, status: int = 409, reason: str | None = None) -> Answer:
    body: dict[str, Any] = {"code": code, "message": code}
    return Answer(status, body if reason is None else {**body, "reason": reason})
