"""The loop of a session: words in, model, calls, results, until the turn ends.

Owns: the controller's states and admission (`idle`, `running`, `finishing`,
`rotating`, `closed`), the turn's status (TR-179 to TR-184), parked words. Does not own: one
call (`barrier`), a batch (`batches`), decisions about unknown calls (`actions`),
what a restart finds (`reconcile`).
Promises: recovery:no-self-start, barrier:settle-first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from surefoot.core import restated, turns
from surefoot.core.handoff import hook_words
from surefoot.core.incident import Incident, Refusal
from surefoot.core.model import Draft, Entry, Kind, Notice, Receipt, TurnStatus
from surefoot.errors import (
    LedgerError,
    LedgerUncertain,
    ProviderError,
    ProviderRefused,
    StaleEpoch,
    SurefootError,
)
from surefoot.providers.port import Reply, TextDelta, Usage
from surefoot.providers.written import CUT_FINISHES
from surefoot.runtime import refused as refusals
from surefoot.runtime import replies
from surefoot.runtime.actions import Actions
from surefoot.runtime.answering import Answering
from surefoot.runtime.barrier import Barrier
from surefoot.runtime.batches import as_calls, dispatch, run_batch
from surefoot.runtime.climbing import Climber
from surefoot.runtime.equipment import Equipment
from surefoot.runtime.events import Events
from surefoot.runtime.hosting import HostedRequests
from surefoot.runtime.incidents import Incidents, Step, discarded
from surefoot.runtime.models import Model
from surefoot.runtime.neighbours import Neighbours, told_beside
from surefoot.runtime.news import News
from surefoot.runtime.people import People
from surefoot.runtime.requests import Answer
from surefoot.runtime.rewriting import Rewriting
from surefoot.runtime.scheduler import Scheduler
from surefoot.runtime.session import Session
from surefoot.runtime.turning import Parked, Turn, TurnEnd, named

MAX_STEPS = 100
INVALID_REPEATS = 3
END_WAIT, SETTLE_WAIT = 1 / 8, 1 / 4
"""Shares of the time after which a stopped turn has freed its session (TR-74); its bodies have a half of it."""


_Begin = Callable[[Turn], Awaitable[Refusal | None]]
"""How a turn begins durably; a refusal says that it did not."""


class Controller:
    """One session with a model. All methods are called from one event loop."""

    def __init__(
        self, session: Session, barrier: Barrier, people: People, model: Model, actions: Actions
    ) -> None:
        self.session = session
        self.barrier = barrier
        self.people = people
        people.most_pending = barrier.limits.pending_questions
        self.model = model
        self.actions = actions
        self.state = "idle"
        self.parked: list[str] = []
        self.max_steps = MAX_STEPS
        self._scheduler: Scheduler = session.scheduler
        self._subscribers: list[Callable[[Notice], None]] = []
        self._turn: Turn | None = None
        self._recorded: dict[str, TurnStatus] = {}
        """The durable status of each turn of this owner, as the ledger's entries say."""
        self._neighbours = Neighbours(session)
        self._ending: Any = None
        """The record of the newest turn's end; the next turn begins behind it."""
        self._owed: tuple[Turn, TurnStatus, str | None] | None = None
        """The end of a turn that could not be recorded; it goes before the next one (TR-180)."""
        session.watch(self._entry_appended)
        session.watch(News(session, self._neighbours, self.notify).appended)
        self.events = Events(session, barrier)
        self.events.attended = lambda: people.asker is not None
        self.events.busy = lambda: self._turn is not None
        self._climber = Climber(barrier)
        self._climber.notify = self.notify
        self.incidents = Incidents(session, model, HostedRequests(barrier, model), notify=self.notify)
        self.rewriting = Rewriting(session, model, self.incidents.records.messages)
        self.rewriting.notify, self.rewriting.rotate = self.notify, self._rotate
        self.rewriting.before = lambda trigger: self.events.compacts(trigger, self._turn_id)
        people.answered = self.incidents.answered
        people.on_notice = self.notify
        people.on_waiting = self._waiting
        self.equipment = Equipment(session, barrier.registry)
        self.answering = Answering(session, people, actions.seen)
        barrier.on_progress = lambda attempt, text: self.notify(
            Notice("progress", {"attemptId": attempt, "text": text})
        )
        barrier.on_advice = lambda attempt, fencing: self.notify(
            Notice("advised", told_beside(attempt, fencing))
        )
        barrier.on_withheld = lambda attempt, error: self.notify(
            Notice("outcome_withheld", {"attemptId": attempt, "cause": error.message})
        )
        actions.state_of = lambda: self.state
        actions.waiting = lambda: people.waiting
        actions.notify = self.notify
        actions.policies.notify = self.notify
        actions.resuming.notify = self.notify
        actions.resuming.person = lambda: people.asker is not None
        actions.retrying.on_busy = self._retry_runs

    @property
    def _turn_id(self) -> str:
        return "" if self._turn is None else self._turn.turn_id

    @property
    def session_id(self) -> str:
        """Full id of the session."""
        return self.session.session_id

    def subscribe(self, subscriber: Callable[[Notice], None]) -> None:
        """Be told of every notice, in order. A subscriber only draws; it must not await or raise."""
        self._subscribers.append(subscriber)

    def notify(self, notice: Notice) -> None:
        """Show one thing on every surface."""
        for subscriber in self._subscribers:
            subscriber(notice)

    # Opening ----------------------------------------------------------------------------------

    async def open(self) -> None:
        """Judge what a dead owner left and look locally; no tool runs, nothing is sent (TR-48, TR-116)."""
        await self.actions.recover()
        await self.incidents.records.note_lost_tail()
        await self.session.standing()  # what it worked with, and what a dead owner was asking (UX-42)
        if self.actions.policy.inspect_on_resume:
            await self.actions.look(beside=self.people.asker is not None)
        for name in self.barrier.registry.without_class():
            text = f"{name!r} declares no effect class; every call of it counts as UNKNOWN, with reach '*'."
            self.notify(Notice("tool_without_class", {"tool": name, "text": text}))

    def resume(self) -> dict[str, Any]:
        """What stands before a resumed session goes on (UX-50); reads only."""
        plan = self.actions.resuming.plan()
        again = [planned.receipt for planned in plan if planned.runs_again]
        return {
            "settled": len(self.session.book) - len(plan),
            "open": sum(not planned.runs_again for planned in plan),
            "willRunAgain": [
                {"attemptId": one.attempt_id, "tool": one.tool, "reach": list(one.reach)} for one in again
            ],
            "willAskAgain": named(self.actions.resuming.pending_permissions()),
            "willRunApproved": named(self.actions.resuming.approved()),
            "changes": self.equipment.changes(),
            "background": self.actions.background(),
            "ownerDeaths": len(self.actions.deaths),
            "deaths": [one.to_json() for one in self.actions.deaths],
        }

    # Turns ------------------------------------------------------------------------------------

    async def submit(self, text: str) -> TurnEnd | Parked:
        """Run one turn with words of a person; park them when a turn is on (TR-184).

        Raises `LedgerError` when not even the person's words could be written.
        """
        if self.state != "idle":
            self.parked.append(text)
            return Parked(text)
        done = await self._run(lambda turn: self._begin(turn, text))
        if isinstance(done, Refusal):
            self.notify(Notice("held_words", {"reason": done.reason or ""}))
            return TurnEnd("", TurnStatus.FAILED, done.code)
        return done

    async def go_on(self) -> TurnEnd | Parked:
        """Continue without new words: an ordinary turn under the ordinary fences (TR-123)."""
        if self.state != "idle":
            return Parked("")
        done = await self._run(self._begin_resumed)
        if isinstance(done, Refusal):
            self.notify(Notice(done.code, {"times": self.session.newest_turn.resumes}))
            return TurnEnd(self.session.newest_turn.turn_id, TurnStatus.FAILED, done.code)
        return done

    async def pending_recovery(self) -> Incident | None:
        """The refused request a person may recover from now; nothing while work is on (PR-29)."""
        return await self.incidents.records.pending() if self.state == "idle" else None

    async def recover_context(self, incident_id: str | None = None, guidance: str = "") -> TurnEnd | Answer:
        """Recover from valid history, once: account for it durably, then send one request (PR-30, PR-32).

        Without an id the newest incident is meant, bound now. An `Answer` says why nothing was sent.
        """
        newest = self.incidents.records.newest
        named = incident_id or (None if newest is None else newest.id or None)
        if not restated.guidance_fits(guidance):
            return await refusals.answered(self.incidents.card, Refusal("bad_request", "guidance_too_long"))
        if self.state != "idle":
            return await refusals.answered(self.incidents.card, Refusal(self.state))
        try:
            done = await self._run(lambda turn: self._begin_recovery(turn, named, guidance))
        except LedgerError as error:
            refused = Refusal("storage_failed", "uncertain" if isinstance(error, LedgerUncertain) else None)
            return await refusals.answered(self.incidents.card, refused)
        return await refusals.answered(self.incidents.card, done) if isinstance(done, Refusal) else done

    async def _begin_recovery(self, turn: Turn, named: str | None, guidance: str) -> Refusal | None:
        """Prepare in memory, then one commit; a cancel before it consumes nothing (PR-32, PR-37)."""
        await self.session.certain()
        prepared = await self.incidents.prepare(named, guidance, turn.turn_id)
        if isinstance(prepared, Refusal) or turn.cancelled:
            return prepared if isinstance(prepared, Refusal) else None
        owed = [*self.actions.left(), *([] if self._owed is None else self._path(*self._owed))]
        before = [*owed, *self._level_change(), self._turn_draft(turn, TurnStatus.QUEUED)]
        after = [self._turn_draft(turn, TurnStatus.RUNNING)]
        self._owed = (turn, TurnStatus.FAILED, "storage_failed")  # if the commit is found durable after all
        refused = await self.incidents.commit(prepared, before, after)
        self._owed = None
        turn.status, turn.prepared = TurnStatus.RUNNING, prepared
        return refused

    async def _rotate(self, work: Callable[[], Awaitable[Mapping[str, Any]]]) -> Mapping[str, Any]:
        """Rewrite the view while no turn is on; words are parked meanwhile (TR-184)."""
        if self.state != "idle":
            return {"code": self.state}
        self.state = "rotating"
        try:
            return await work()
        finally:
            self.state = "closed" if self.session.lost or self.session.closed else "idle"

    def take_parked(self) -> list[str]:
        """The words parked so far, oldest first; whoever takes them delivers them (TR-184)."""
        parked, self.parked = self.parked, []
        return parked

    async def _run(self, begin: _Begin) -> TurnEnd | Refusal:
        """One turn, as work of its own: a caller who gives up presses Stop and leaves nothing half way."""
        self.state = "running"
        turn = Turn(self._scheduler.new_id("trn"))
        self._turn = turn
        self.barrier.resume()
        self._climber.begin_turn()
        work = self._scheduler.spawn(self._whole(turn, begin), f"turn {turn.turn_id}")
        return await self._scheduler.watched(
            work, on_cancel=lambda: self._scheduler.spawn(self.stop(turns.StopCause.CALLER), "stop")
        )

    def _retry_runs(self, busy: bool) -> None:
        """A retry that a person asked for is work like a turn: no other begins beside it (TR-126)."""
        if busy and self.state == "idle":
            self.state = "running"
        elif not busy and self._turn is None and self.state == "running":
            self.state = "idle"
            self._scheduler.spawn(self.actions.border(), "border")

    async def _whole(self, turn: Turn, begin: _Begin) -> TurnEnd | Refusal:
        try:
            if self._ending is not None:
                await self._scheduler.wait(self._ending)
            await self.session.history()
            await self._neighbours.look()
            await self.rewriting.keep_within(mid_turn=False)
            refused = await begin(turn)
            if refused is not None:
                return refused
            turn.task = self._scheduler.spawn(self._steps(turn), f"steps {turn.turn_id}")
            turn.task.add_done_callback(self._scheduler.heard)
            await self._scheduler.wait(turn.task)
            return await self._finish(turn)
        finally:
            # The end of a turn, however it came, is the last border for what was pressed in it.
            await self.actions.border()
            self._turn = None
            self.incidents.end_turn()
            self.state = "closed" if self.session.lost or self.session.closed else "idle"
            self.events.after_turn()

    async def _begin(self, turn: Turn, text: str | None) -> Refusal | None:
        resumed = bool(self.session.newest_turn.turn_id)
        said = await self.events.begin(turn.turn_id, text, resumed=resumed)
        if said.refused is not None and not turn.cancelled:
            return Refusal("hook_refused", said.refused)
        if changes := self.equipment.untold():
            self.notify(Notice("works_otherwise", {"changes": changes}))
        if text is None:
            # A far verifier is asked when a person presses Continue (UX-50).
            await self.actions.look(far=True)
        if not self.people.looking:  # a turn that only looks runs nothing again (UX-116)
            await self.actions.carry_out()
        drafts = [*self._level_change(), self._turn_draft(turn, TurnStatus.QUEUED)]
        facts = await self.actions.facts_for_next_turn()
        if said.added:
            words = hook_words("SessionStart" if text is None else "UserPromptSubmit", said.added)
            facts = words if facts is None else f"{facts}\n\n{words}"
        if text is not None or facts:
            drafts.append(Draft(Kind.USER, {"turnId": turn.turn_id, "text": text or "", "facts": facts}))
        drafts.append(self._turn_draft(turn, TurnStatus.RUNNING))
        await self.session.certain()
        owed = [*self.actions.left(), *([] if self._owed is None else self._path(*self._owed))]
        expired = [] if text is None else self.incidents.records.expiry()
        await self.session.append(*owed, *expired, *drafts)
        self._owed = None
        turn.status = TurnStatus.RUNNING
        return None

    async def _begin_resumed(self, turn: Turn) -> Refusal | None:
        """A turn that goes on with a failed or interrupted one counts, durably, and not for ever (TR-183)."""
        newest = self.session.newest_turn
        if newest.refusal(self.barrier.limits.turn_resumes) is not None:
            return Refusal("resumes_spent")
        turn.resumes = newest.next_resume()
        return await self._begin(turn, None)

    def _level_change(self) -> list[Draft]:
        """A barrier level that the owner set anew is an entry before anything runs under it (TR-83)."""
        old, new = self.session.recorded_level, self.session.level.value
        if old == new:
            return []
        return [Draft(Kind.BARRIER_SET, {"old": old, "new": new, "who": "owner", "channel": "settings"})]

    async def _steps(self, turn: Turn) -> None:
        while not turn.cancelled:
            goes_on = await self._step(turn)
            await self.events.outcomes()
            if not goes_on and not await self._sent_on(turn):
                return
            await self.actions.border()
            await self.rewriting.keep_within(mid_turn=True)
            if turn.steps >= self.max_steps:
                turn.ended_softly = "iteration_limit"
                return
            if self.barrier.stopping:
                return

    async def _sent_on(self, turn: Turn) -> bool:
        """Whether a hook of `Stop` has the model go on after its last words; it reads why (UX-48)."""
        if turn.cancelled or turn.ended_softly is not None or self.barrier.stopping:
            return False
        why = await self.events.stops(turn.turn_id, turn.text)
        if why is None or turn.cancelled:
            return False
        words = {"turnId": turn.turn_id, "text": hook_words("Stop", [why]), "prompt": "hook"}
        await self.session.append(Draft(Kind.HOST, words))
        return True

    async def _step(self, turn: Turn) -> bool:
        """One model request and the calls it asked for; True when the turn goes on."""
        turn.steps += 1
        turn.step_id = f"{turn.turn_id}.{turn.steps}"
        turn.asking = True
        step = Step(
            await self.incidents.records.messages(),
            self.session.position,
            self._delta,
            turn.turn_id,
            turn.step_id,
        )
        prepared, turn.prepared = turn.prepared, None
        try:
            asking = self.incidents.ask(step) if prepared is None else self.incidents.send(prepared, step)
            reply = await asking
        except ProviderRefused as error:
            if await self._made_room(turn, error):
                return True
            raise
        turn.asking = False
        if turn.cancelled:
            return False  # a late reply is neither committed nor run
        self.rewriting.used_tokens = (reply.usage.input_tokens or 0) + (reply.usage.output_tokens or 0)
        turn.count(reply.usage)
        if replies.is_empty(reply):
            return self._wordless(turn, reply)
        calls = dispatch(reply, self._scheduler)
        answers = replies.Asked(turn.turn_id, self.model.wire, step.seen)
        await self.session.append(replies.reply_draft(reply, calls, answers))  # D1
        for notice in replies.notices_of(reply):
            self.notify(notice)
        turn.text = reply.text
        if not reply.calls:
            turn.ended_softly = None if reply.text.strip() or reply.paused else "empty_reply"
            goes_on = reply.paused or await self._nudged(turn, reply)
            return goes_on and not self.barrier.stopping  # S-29: the provider goes on from its own turn
        asked = as_calls(
            reply,
            calls,
            turn.turn_id,
            batch_split=self.model.batch_split,
            repeated_ids=getattr(self.model, "repeated_ids", "accept"),
        )
        receipts = await run_batch(self.barrier, asked, self._scheduler, climber=self._climber)
        return self._goes_on(turn, receipts)

    async def _made_room(self, turn: Turn, error: ProviderRefused) -> bool:
        """Once per turn a view that the server calls too long is compacted, and the step begun anew (R16, X-06)."""
        again = turn.made_room or turn.cancelled or self.barrier.stopping
        turn.asking, turn.made_room = False, True
        return not again and await self.rewriting.make_room(error) and not turn.cancelled

    async def _nudged(self, turn: Turn, reply: Reply) -> bool:
        """Whether the model is asked once more because it wrote a call as text (S-22)."""
        spelled = replies.spelled_out(reply)
        if spelled is None:
            return False
        self.notify(spelled)
        again, turn.nudged = turn.nudged or not getattr(self.model, "has_tools", True), True
        if not again:
            await self.session.append(replies.nudge_draft(turn.turn_id))
        return not again

    def _wordless(self, turn: Turn, reply: Reply) -> bool:
        """A reply without words and calls is asked for once more, then the turn stops with a reason (S-02)."""
        turn.wordless += 1
        if reply.finish in CUT_FINISHES:
            self.notify(discarded(turn.step_id, "output_limit"))
        why = replies.empty_end(reply)
        if turn.wordless > 1 or why is not None:
            turn.ended_softly = why or "empty_reply"
            return False
        self.notify(Notice("empty_reply", {"finish": reply.finish}))
        return True

    def _goes_on(self, turn: Turn, receipts: Sequence[Receipt]) -> bool:
        """The same invalid call three times in one turn ends it softly (PR-69)."""
        for receipt in receipts:
            if receipt.reason in ("arguments_invalid", "tool_missing"):
                key = (receipt.asked_name, receipt.arguments)
                turn.invalid[key] = turn.invalid.get(key, 0) + 1
                if turn.invalid[key] >= INVALID_REPEATS:
                    turn.ended_softly = "invalid_call_repeated"
                    return False
        return not self.barrier.stopping

    async def _finish(self, turn: Turn) -> TurnEnd:
        """The verdict at the end of a turn: cancel, then failed, then completed (TR-181)."""
        self.state = "finishing"
        error = None if turn.task.cancelled() else turn.task.exception()
        if isinstance(error, StaleEpoch):
            raise error
        if turn.task.cancelled():
            turn.ended_softly = "aborted"  # counts where nobody asked for it (TR-181)
        ended = turns.verdict(
            cancelled=turn.cancelled, paused=False, failed=error is not None or turn.ended_softly is not None
        )
        if turn.cancelled:
            return await self._end(turn, ended, turn.stopped_by)
        if error is not None and not isinstance(error, SurefootError):
            await self._end(turn, ended, "internal_error")  # the fault is ours; the turn still ends (TR-182)
            raise error
        reason = turn.ended_softly if error is None else error.code
        return await self._end(turn, ended, reason, error)

    async def _end(
        self, turn: Turn, status: TurnStatus, reason: str | None, error: SurefootError | None = None
    ) -> TurnEnd:
        # A disk that hangs must not hold the person who pressed Stop; the record goes on behind (TR-74).
        patience = self._share(END_WAIT) if status is TurnStatus.CANCELLED else None
        record = self._scheduler.spawn(self._settle_turn(turn, status, reason), f"end {turn.turn_id}")
        record.add_done_callback(self._scheduler.heard)
        self._ending = record
        if not await self._scheduler.wait(record, seconds=patience):
            facts = {"status": status.value, "cause": "the ledger has not answered yet"}
            self.notify(Notice("turn_not_recorded", facts))
        elif not record.cancelled() and (failure := record.exception()) is not None:
            raise failure
        usage = Usage(turn.input_tokens, turn.output_tokens)
        if turn.cancelled and status is not TurnStatus.CANCELLED:
            status, reason, error = TurnStatus.CANCELLED, turn.stopped_by, None
        return TurnEnd(turn.turn_id, status, reason, turn.text, turn.steps, usage, error)

    async def _settle_turn(self, turn: Turn, status: TurnStatus, reason: str | None) -> None:
        """The last move of a turn, and the calls of it that nobody will start any more."""
        await self.barrier.settle_untaken(turn.turn_id)
        await self._move(turn, status, reason)

    async def _move(self, turn: Turn, status: TurnStatus, reason: str | None) -> None:
        """Record a move of the turn, one after another; what cannot be written now is owed, and told."""
        before, turn.moving = turn.moving, self._scheduler.event()
        mine = turn.moving
        try:
            if before is not None:
                await before.wait()
            await self.session.certain()
            drafts = self._path(turn, status, reason)
            if drafts:
                await self.session.append(*drafts)
            turn.status = status
        except LedgerError as error:
            if status in turns.ENDED:
                self._owed = (turn, status, reason)
            self.notify(Notice("turn_not_recorded", {"status": status.value, "cause": error.message}))
        finally:
            mine.set()

    def _path(self, turn: Turn, status: TurnStatus, reason: str | None) -> list[Draft]:
        """The legal moves to `status` from what is durable; none when another move came first (TR-179)."""
        if status in turns.ENDED and turn.cancelled:
            # Stop came while the end was on its way: cancel goes before completed and failed (TR-181).
            status, reason = TurnStatus.CANCELLED, turn.stopped_by
        recorded = self._recorded.get(turn.turn_id)
        if recorded is None:
            return []
        if turns.move(recorded, status) is None:
            return [self._turn_draft(turn, status, reason)]
        through = TurnStatus.CANCELLING
        if status is TurnStatus.CANCELLED and turns.move(recorded, through) is None:
            return [self._turn_draft(turn, one, reason) for one in (through, status)]
        return []

    def _turn_draft(self, turn: Turn, status: TurnStatus, reason: str | None = None) -> Draft:
        payload: dict[str, Any] = {"turnId": turn.turn_id, "status": status.value, "reason": reason}
        if status is TurnStatus.QUEUED:
            level, news = self.session.level.value, self.equipment.news()
            begins = {"resumes": turn.resumes, "with": news, "barrier": level}
            payload |= {key: value for key, value in begins.items() if value}
        return Draft(Kind.TURN, payload)

    async def _waiting(self, waiting: bool) -> None:
        turn = self._turn
        wanted = TurnStatus.WAITING_USER if waiting else TurnStatus.RUNNING
        if turn is None or turn.cancelled or turn.turn_id not in self._recorded:
            return
        if turn.status is not wanted:
            await self._move(turn, wanted, None)
        if waiting:
            await self.actions.border()

    # Stop -------------------------------------------------------------------------------------

    async def stop(self, cause: turns.StopCause = turns.StopCause.PERSON) -> None:
        """End the turn. The cancel is recorded first, but the signal waits a moment only for it (TR-180).

        Nothing that has not entered its body does so from the press on; the wait is for bodies that run.
        """
        turn = self._turn
        self.rewriting.cancel()
        self.actions.resuming.stop()
        if turn is None and (self.actions.retrying.running or self.events.running):
            await self.barrier.stop()
        if turn is None or turn.cancelled:
            return
        turn.cancelled, turn.stopped_by = True, cause
        self.barrier.stopping = True
        self._climber.stop()
        if turn.turn_id in self._recorded:
            moving = self._move(turn, TurnStatus.CANCELLING, cause)
            record = self._scheduler.spawn(moving, "cancel")
            record.add_done_callback(self._scheduler.heard)  # a lost session is told by the turn itself
            await self._scheduler.wait(record, seconds=self.barrier.limits.abort_wait_ms / 1000)
        if self._turn is not turn:
            return  # it came to its end meanwhile; the next turn is not the one that was stopped
        self.people.withdraw()
        if turn.asking and turn.task is not None:
            turn.task.cancel()  # a late reply is neither committed nor run
        await self.barrier.stop(cause.of_a_call)
        # Calls that wait their turn refuse themselves now; a disk that hangs must not hold the session.
        if turn.task is not None and not await self._scheduler.wait(
            turn.task, seconds=self._share(SETTLE_WAIT)
        ):
            turn.task.cancel()

    def _share(self, of: float) -> float:
        return of * self.barrier.limits.session_free_seconds

    async def close(self, cause: turns.StopCause = turns.StopCause.CLOSED) -> None:
        """End the turn and give the session back. Supervised commands go on, listed (TR-206)."""
        self.barrier.leave()
        self.actions.choices.release()
        await self.stop(cause)
        for attempt_id in list(self.actions.retrying.running):
            await self.actions.retrying.settled(attempt_id)
        while self._turn is not None:
            await self._scheduler.sleep(0.01)
        self.state = "closed"
        try:
            await self.events.end("other")
        finally:
            await self.session.close()

    # Notices ----------------------------------------------------------------------------------

    def _delta(self, delta: TextDelta) -> None:
        step_id = None if self._turn is None else self._turn.step_id
        self.notify(Notice("text", {"text": delta.text, "kind": delta.kind, "stepId": step_id}))

    def _entry_appended(self, entry: Entry) -> None:
        if entry.kind == Kind.TURN:
            self._recorded[entry.payload["turnId"]] = TurnStatus(entry.payload["status"])


__all__ = ["Controller", "Model", "Parked", "ProviderError", "TurnEnd"]
