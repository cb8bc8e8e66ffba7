"""What happens in a session beside its calls, told to the hooks that listen (UX-48).

Owns: when each event is told, which outcomes were told already, how often a hook of `Stop` may ask
for more. Does not own: hooks, their calls and their words (`Listener`), the turn (`controller`).
Promises: recovery:no-self-start: opening a session tells nobody anything; what happened until the
first turn of this owner is told with it. recovery:never-guess: of what is answered about an
outcome nothing is read.

Whom an outcome was told to stands in the receipts of the hooks, so no restart tells it twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from surefoot.core import recovery
from surefoot.core.model import Entry, Kind, Receipt, State
from surefoot.runtime.barrier import Barrier
from surefoot.runtime.scheduler import Scheduler
from surefoot.runtime.session import Session

STOP_ASKS = 3
"""How often in one turn hooks of `Stop` may send the model on."""


@dataclass(frozen=True, slots=True)
class Said:
    """What the hooks of one event answered."""

    refused: str | None = None
    """Why not to go on; None when nobody minds."""
    added: tuple[str, ...] = ()
    """Texts for the model."""


@dataclass(frozen=True, slots=True)
class Happened:
    """One event: its name, the word a matcher may look at, what is told, and the call it speaks of."""

    event: str
    subject: str = ""
    facts: Mapping[str, Any] | None = None
    turn_id: str = ""
    about: Receipt | None = None


class Listener(Protocol):
    """The hooks of a session's events. Each of their effects is a call of its own: `Barrier.apart` (TR-25)."""

    def hears(self, event: str) -> bool:
        """Whether any hook listens to this event."""

    def told(self, event: str) -> set[str]:
        """The attempts of which hooks of this event were told already, by this owner or an earlier one."""

    async def hear(self, happened: Happened) -> Said:
        """Tell the hooks of an event, one after another, and give what they answered."""


class Events:
    """The events of one owned session."""

    def __init__(self, session: Session, barrier: Barrier) -> None:
        self.listener: Listener | None = None
        self.attended: Callable[[], bool] = lambda: False
        """Whether a person is there who can be asked something."""
        self.busy: Callable[[], bool] = lambda: True
        """Whether a turn is on, which tells outcomes at its own borders."""
        self._session = session
        self._barrier = barrier
        self._scheduler: Scheduler = session.scheduler
        self._begun = False
        self._open: set[str] | None = None
        """The open calls whose end will be told of; None until the first turn."""
        self._unknown_told: set[str] = set()
        self._resolved_told: set[str] = set()
        self._rejected: list[str] = []
        self._working: set[Any] = set()
        self._telling: Any = None
        self._asked: tuple[str, int] = ("", 0)
        session.watch(self._appended)

    @property
    def running(self) -> bool:
        """Whether hooks run that no turn waits for."""
        return bool(self._working)

    async def begin(self, turn_id: str, words: str | None, *, resumed: bool) -> Said:
        """Tell that a turn begins: the session first, if it is this owner's first turn; then the words."""
        added: tuple[str, ...] = ()
        if not self._begun:
            self._begun = True
            source = "resume" if resumed else "startup"
            said = await self._tell(Happened("SessionStart", source, {"source": source}, turn_id))
            added = said.added
        await self.outcomes()
        if words is None:
            return Said(None, added)
        said = await self._tell(Happened("UserPromptSubmit", "", {"prompt": words}, turn_id))
        return Said(said.refused, (*added, *said.added))

    async def stops(self, turn_id: str, text: str) -> str | None:
        """Tell that the model is done; what a hook wants it to go on with, at most three times a turn."""
        turn, times = self._asked if self._asked[0] == turn_id else (turn_id, 0)
        facts = {"stop_hook_active": times > 0, "last_assistant_message": text}
        said = await self._tell(Happened("Stop", "", facts, turn_id))
        if said.refused is None or times >= STOP_ASKS:
            return None
        self._asked = (turn, times + 1)
        return said.refused

    async def compacts(self, trigger: str, turn_id: str) -> str | None:
        """Tell that the view is about to be compacted, `manual` or `auto`; why it must not be, if a hook says so."""
        if not self.busy():
            self._barrier.resume()
        facts = {"trigger": trigger, "custom_instructions": ""}
        return (await self._tell(Happened("PreCompact", trigger, facts, turn_id))).refused

    async def outcomes(self) -> None:
        """Tell every outcome that is unknown or was resolved and of which nobody was told; wait until it is done."""
        if self._telling is None and self._owed():
            self._telling = self._spawn(self._tell_outcomes(), "outcomes")
        if self._telling is not None:
            await self._scheduler.wait(self._telling)

    def after_turn(self) -> None:
        """Tell, with nobody waiting for it, what a stopped turn left to be told."""
        if not self._session.lost and not self._session.closed and self._owed():
            self._barrier.resume()
            self._spawn(self.outcomes(), "outcomes after a turn")

    async def end(self, reason: str) -> None:
        """Wait for what is still told, then tell that this owner leaves the session."""
        if self._session.lost:
            return
        self._barrier.resume()
        await self.outcomes()
        if self._working:
            await self._scheduler.wait(*self._working)
        if self._begun:
            self._begun = False
            await self._tell(Happened("SessionEnd", reason, {"reason": reason}))

    # ------------------------------------------------------------------------------------------

    async def _tell(self, happened: Happened) -> Said:
        if self.listener is None or not self.listener.hears(happened.event):
            return Said()
        return await self.listener.hear(happened)

    def _spawn(self, work: Any, name: str) -> Any:
        task = self._scheduler.spawn(work, f"hooks: {name}")
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        task.add_done_callback(self._scheduler.heard)  # a lost session is told by whoever owns it
        return task

    def _hears_outcomes(self) -> bool:
        listener = self.listener
        return listener is not None and (
            listener.hears("OutcomeUnknown") or listener.hears("OutcomeResolved")
        )

    def _begin_watching(self) -> set[str]:
        """What was told, by the receipts; what is open, and what is no longer though hooks were told it was."""
        if self._open is None:
            self._open = set()
            if self.listener is not None and self._hears_outcomes():
                self._unknown_told = self.listener.told("OutcomeUnknown")
                self._resolved_told = self.listener.told("OutcomeResolved")
                self._open = self._unknown_told - self._resolved_told
        return self._open

    def _appended(self, entry: Entry) -> None:
        if not self._begun:
            return
        if entry.kind == Kind.QUESTION and self.attended():
            kind = "permission_prompt" if entry.payload.get("permission") else "elicitation_dialog"
            facts = {"message": entry.payload.get("text", ""), "notification_type": kind}
            about = self._session.book.get(entry.payload.get("attemptId") or "")
            turn_id = entry.payload.get("turnId", "")
            self._spawn(self._tell(Happened("Notification", kind, facts, turn_id, about)), "notification")
        elif entry.kind.startswith("attempt.") and self._hears_outcomes():
            if entry.kind == Kind.RESOLVED and entry.payload["resolution"].get("kind") == "rejected":
                self._rejected.append(entry.payload["attemptId"])
            if not self.busy() and self._telling is None and self._owed():
                self.after_turn()

    def _owed(self) -> list[Happened]:
        """What is to be told now, oldest first; each of it once."""
        if not self._begun or not self._hears_outcomes():
            return []
        book, watched = self._session.book, self._begin_watching()
        unknown = [one for one in book.open() if one.state is State.UNKNOWN and recovery.fences(one)]
        watched.update(one.attempt_id for one in unknown)
        ended = [
            *(one for one in self._rejected if book.is_open(one)),
            *(one for one in watched if not book.is_open(one)),
        ]
        return [
            *(
                Happened("OutcomeUnknown", about=one, turn_id=one.turn_id)
                for one in unknown
                if one.attempt_id not in self._unknown_told
            ),
            *(
                Happened("OutcomeResolved", about=one, turn_id=one.turn_id)
                for one in map(book.get, ended)
                if one is not None
            ),
        ]

    async def _tell_outcomes(self) -> None:
        try:
            while not self._barrier.stopping and (owed := self._owed()):
                self._note_told(owed[0])
                await self._tell(owed[0])  # what is answered is not read: no text decides an outcome
        finally:
            self._telling = None

    def _note_told(self, happened: Happened) -> None:
        if happened.about is None:
            return
        attempt = happened.about.attempt_id
        if happened.event == "OutcomeUnknown":
            self._unknown_told.add(attempt)
        elif attempt in self._rejected:
            self._rejected.remove(attempt)
        elif self._open is not None:
            self._open.discard(attempt)
