"""What the next owner of a session will find, told before there is one.

Owns: the state of calls whose owner died, the truth their supervisors wrote down since, and the facts a
snapshot shows of each call: executor, process, decision. Does not own: which calls a snapshot holds
(`reading`), the records (`tools.supervision`), the table (`core.recovery`).
Reads the kernel, run folders and files only; claims and writes nothing (UX-4).
Promises: surface:same-story, recovery:never-guess.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.config import Settings
from surefoot.core import recovery
from surefoot.core.admission import RetryFacts, attempt_facts
from surefoot.core.lifecycle import OFF_BRANCH, Book, advance
from surefoot.core.model import Entry, ExecutorState, Kind, Owner, Receipt, State
from surefoot.core.recovery import Intents, Seen, crash_count, decide, facts_of
from surefoot.core.snapshot import CallFacts

if TYPE_CHECKING:
    from surefoot.tools.supervision import RunFolders

SUPERVISED = "shell"


class Finder:
    """Looks at the calls of one ledger's sessions as their next owner will."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._owners = folder / "owners"
        self._processes = folder / "processes"
        self._settings = settings
        self._deaths: dict[str, bool] = {}

    @functools.cached_property
    def _folders(self) -> RunFolders:
        # Loaded with the first call that has a process record; a list of other calls starts without it.
        from surefoot.tools.supervision import RunFolders

        probe = self._settings.limits["background_probe_seconds"]
        return RunFolders(self._processes, background_probe_seconds=probe)

    def suppose(self, book: Book) -> list[Receipt]:
        """Lay over the receipts what the next owner will write of them; gives those it changes."""
        # Only what is asked for is parsed, so that a long session is listed as fast as its open calls.
        found = []
        for receipt in [*book.unsettled(), *book.open()]:
            told = self._settled(receipt) if receipt.state is State.UNKNOWN else self._as_found(receipt)
            if told is not receipt:
                book.suppose(told)
                found.append(told)
        return found

    def call(self, receipt: Receipt, book: Book) -> CallFacts:
        """One call of a snapshot, with what is seen of it now."""
        executor = self._executor(receipt)
        retry = RetryFacts(
            enabled=os.environ.get("SUREFOOT_TOOL_RECOVERY_RETRY") == "1",
            attempts_left=crash_count(receipt, book) < self._settings.recovery.crash_attempts,
            at_origin=receipt.origin_attempt_id is None,
        )
        return CallFacts(
            receipt=receipt,
            attempt=attempt_facts(receipt, book, executor=executor, retry=retry),
            decision=decide(facts_of(receipt, book, self._seen(receipt, book, executor))).decision.value,
            process=None if receipt.process is None else self._folders.shown(receipt),
            off_branch=OFF_BRANCH in receipt.notes,
        )

    def _seen(self, receipt: Receipt, book: Book, executor: ExecutorState) -> Seen:
        from surefoot.tools.processes import kernel

        return Seen(
            executor=executor,
            boot_id=kernel.boot_id(),
            now_boot_ms=kernel.boot_ms(),
            intents=self._intents(receipt),
            later_write=recovery.later_write(receipt, book.after(receipt.attempt_id)),
            retry_enabled=os.environ.get("SUREFOOT_TOOL_RECOVERY_RETRY") == "1",
            crash_attempts=self._settings.recovery.crash_attempts,
            young_ms=int(float(self._settings.limits["resume_retry_age_seconds"]) * 1000),
        )

    def _intents(self, receipt: Receipt) -> Intents:
        """Whether a file write may be made again without overwriting later work (TR-114)."""
        if not receipt.write_intents or receipt.tool == SUPERVISED:
            return Intents.NONE
        from surefoot.verifiers.files import FilesVerifier

        return Intents.UNDISTURBED if FilesVerifier().undisturbed(receipt) else Intents.DISTURBED

    # What an owner's death and a supervisor's record say ------------------------------------------

    def _executor(self, receipt: Receipt) -> ExecutorState:
        if receipt.process is not None:
            return self._folders.executor(receipt)  # what was recorded may have ended since
        return recovery.recorded_executor(receipt)

    def _as_found(self, receipt: Receipt) -> Receipt:
        """A call whose owner died in it; others as they are."""
        if receipt.state is not State.STARTED or not receipt.owner or not self._died(receipt.owner):
            return receipt
        died = dataclasses.replace(receipt, state=State.UNKNOWN, reason="owner_died")
        if receipt.process is None:
            # Its threads ended with the owner; what it started may not have (TR-208).
            own = "starts_processes" not in receipt.notes
            ended = ExecutorState.ENDED if own else ExecutorState.NOT_PROVEN
            return dataclasses.replace(died, executor={"state": ended.value})
        from surefoot.runtime.reconcile import trace_of

        # The records of a supervised command are read, never claimed: only an owner may do that (TR-67).
        judged = self._folders.foresee(receipt)
        executor = {"state": judged.executor.value}
        end = judged.outcome
        if end is None:
            return dataclasses.replace(died, executor=executor)
        return dataclasses.replace(
            receipt,
            state=end.state,
            reason=end.reason,
            executor=executor,
            effect_trace=trace_of(receipt, end),
        )

    def _settled(self, receipt: Receipt) -> Receipt:
        """An open call whose command has ended since: its supervisor's record is the truth (TR-43, TR-73)."""
        if receipt.process is None:
            return receipt
        from surefoot.runtime.reconcile import late_end

        end = late_end(receipt, self._folders.foresee(receipt))
        if end is None:
            return receipt
        entry = Entry(receipt.session_id, 0, receipt.epoch or 0, 0, Kind.LATE, end)
        return advance(receipt, entry)

    def is_owned(self, owner: Owner | None) -> bool:
        """Whether somebody owns a session now; one whose owner is proven dead nobody owns."""
        return owner is not None and not self._died(owner.to_json())

    def _died(self, owner: Mapping[str, Any]) -> bool:
        from surefoot.ledger.owners import proof_of_death

        known = repr(owner)
        if known not in self._deaths:
            self._deaths[known] = proof_of_death(Owner.from_json(owner), self._owners) == "dead"
        return self._deaths[known]
