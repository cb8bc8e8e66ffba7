"""A command that a person types for themselves: `!command` in a chat (UX-19).

Owns: making it a call whose asker is the person, and taking it through the barrier beside no turn.
Does not own: the order of a call's steps (`barrier`), what the command does (the shell tool), who may be
busy with a session (`controller`).
Promises: barrier:one-door. Deny rules, mode `plan` and every fence hold for a person's own command as well;
what a rule would ask about was answered by whoever typed it.
"""

from __future__ import annotations

from dataclasses import replace

from surefoot.core.canonical import canonical_json
from surefoot.core.model import Draft, Kind, Receipt
from surefoot.runtime.actions import Actions
from surefoot.runtime.barrier import Barrier
from surefoot.runtime.live import Batch, Call
from surefoot.runtime.session import Session

SHELL = "shell"
ASKED_BY_PERSON = "asked_by_person"
"""The note on the receipt: no model asked for this call."""


class OwnCommands:
    """Commands of the person, in one owned session."""

    def __init__(self, session: Session, barrier: Barrier, actions: Actions) -> None:
        self._session = session
        self._barrier = barrier
        self._actions = actions

    async def run(self, command: str) -> Receipt | None:
        """Run one command to its end; None, and nothing is written, while other work is on.

        Stop ends it as it ends a call of a turn, and no turn begins beside it.
        Raises `LedgerError`, `StaleEpoch` as the barrier does.
        """
        retrying, scheduler = self._actions.retrying, self._session.scheduler
        if self._actions.state_of() != "idle" or retrying.running:
            return None
        text = canonical_json({"command": command})
        call = Call(scheduler.new_id("trn"), scheduler.new_id("cal"), scheduler.new_id("att"), SHELL, text)
        work = scheduler.spawn(self._pass(call), f"own command {call.attempt_id}")
        retrying.begun(call.attempt_id, work)
        await scheduler.wait(work)
        return work.result()

    async def _pass(self, call: Call) -> Receipt:
        try:
            await self._session.history()
            asked = {
                "attemptId": call.attempt_id,
                "callId": call.call_id,
                "turnId": call.turn_id,
                "position": 0,
            }
            words = {"askedName": call.asked_name, "arguments": call.arguments, "notes": [ASKED_BY_PERSON]}
            await self._session.append(Draft(Kind.DISPATCHED, {**asked, **words}))
            self._barrier.resume()
            looked = await self._barrier.look(call)
            tool = None if looked.tool is None else replace(looked.tool, switched_on=True)
            looked = replace(looked, tool=tool, notes=(*looked.notes, ASKED_BY_PERSON))
            return await self._barrier.run(looked, Batch())
        finally:
            self._actions.retrying.ended(call.attempt_id)
