"""Refusals of replayed history: the record, the order in which it is spent, the request it allows.

Owns: asking for one step with the repaired prefix in force, the automatic repair (PR-34),
regeneration (PR-35), the offer (PR-24, PR-27), the manual order (PR-32, PR-33), admission and
expiry, the recovery window (PR-59). Does not own: what a record means (`core.incident`),
repairs (`providers.ladder`), the turn around a request (`controller`), words for people.
Promises: protocol:account-first. A recovery request leaves only after its `consumed` record is
durable; one incident, one request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from surefoot.core import incident, restated
from surefoot.core.history import Message, UserWords
from surefoot.core.incident import Incident, Offer, Refusal, Scene
from surefoot.core.lifecycle import Book
from surefoot.core.model import Draft, Kind, Notice
from surefoot.errors import LedgerError, ProviderError, ProviderNonsense, ProviderRefused
from surefoot.ledger.port import NotAppended
from surefoot.providers import ladder, rules
from surefoot.providers.endpoints import Known
from surefoot.providers.hosted import with_effects
from surefoot.providers.port import Reply, TextDelta
from surefoot.providers.projection import InForce
from surefoot.providers.repairs import Repair
from surefoot.runtime.hosting import HostedRequests
from surefoot.runtime.live import Looked, Refused
from surefoot.runtime.models import Model, Replaying, ask_until_answered
from surefoot.runtime.records import Records, new_record, remembered
from surefoot.runtime.session import Session
from surefoot.runtime.window import Window


@dataclass(frozen=True, slots=True)
class Step:
    """One step to be asked for: the model view, and the ledger position it was built at."""

    messages: Sequence[Message]
    seen: int
    on_delta: Callable[[TextDelta], None]
    turn_id: str = ""
    step_id: str = ""
    """Names the step in every notice about its candidates (PR-64)."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A manual recovery made ready in memory: nothing of it is consumed yet (PR-32)."""

    drafts: tuple[Draft, ...]
    frozen: Any
    record: str
    window: Window
    changes: Mapping[str, int]
    """How many messages each repair of it changes."""


@dataclass(slots=True)
class _Facts:
    """What one refusal is judged by."""

    error: ProviderError
    step: Step
    scene: Scene
    force: Incident | None
    body_digest: str
    repaired_in_step: bool = False
    plan: ladder.Plan | None = field(default=None)

    @property
    def kind(self) -> str:
        return str(self.error.facts.get("kind") or "")

    @property
    def certainty(self) -> str:
        return str(self.error.facts.get("certainty") or "none")


def discarded(step_id: str, reason: str, incident_id: str | None = None) -> Notice:
    """What was shown of a step's candidate does not count (PR-64)."""
    about = {} if incident_id is None else {"incidentId": incident_id}
    return Notice("discard", {"stepId": step_id, "reason": reason, **about})


def recovered(incident_id: str, changes: Mapping[str, int]) -> Notice:
    """What the one request of an incident sends differently, told once its account is durable (UX-131)."""
    return Notice("recovered_request", {"incidentId": incident_id, "changes": dict(changes)})


class Incidents:
    """The incidents of one owned session."""

    def __init__(
        self,
        session: Session,
        model: Model,
        hosted: HostedRequests,
        *,
        notify: Callable[[Notice], None],
    ) -> None:
        self.session = session
        self.model = model
        self.automatic = True
        """`recovery.automatic`: off, a confirmed refusal is offered instead of repaired (PR-34)."""
        self.window: Window | None = None
        self.last_refusal: Mapping[str, Any] | None = None
        """The card's facts of the newest refusal that made no record (UX-125)."""
        self._hosted = hosted
        self._notify = notify
        self._replaying: Replaying | None = model if isinstance(model, Replaying) else None
        self.records = Records(session, self._replaying)
        self._books: dict[int, Book] = {}

    # A step -----------------------------------------------------------------------------------

    async def ask(self, step: Step) -> Reply:
        """Ask for one step. Raises the `ProviderError` that stands after what PR-34 and PR-35 allow."""
        await self._expire_stale(step)
        scene = self.records.scene(step.messages)
        force = incident.in_force(self.session.incidents, scene)
        known = await self._known(step.messages, force)
        self._reopen(force, step.messages)
        counted = [0]
        try:
            reply = await self._until_answered(known, step, counted)
        except ProviderRefused as error:
            replaying = self._replaying
            if replaying is None:
                raise
            refused = _Facts(error, step, scene, force, str(error.facts.get("request_digest") or ""))
            reply = await self._refused(refused, counted[0], replaying)
        else:
            if "reasoning_missing" in reply.notes and self._replaying is not None:
                return await self._regenerated(reply, step, scene, force, known)
        return reply

    async def _until_answered(self, known: Known, step: Step, counted: list[int]) -> Reply:
        model: Model = self.model
        reply = await self._hosted.ask(step.messages, step.on_delta, turn_id=step.turn_id, known=known)
        if reply is not None:
            return reply
        if self._replaying is not None:
            model = _Projected(self.model, self._replaying, known)
        return await ask_until_answered(
            model,
            step.messages,
            scheduler=self.session.scheduler,
            on_delta=step.on_delta,
            notify=self._notify,
            counted=counted,
        )

    def _reopen(self, force: Incident | None, messages: Sequence[Message]) -> None:
        """A turn that an owner's death interrupted has not ended, and neither has its window (PR-38, PR-59)."""
        if force is None or self.window is not None:
            return
        end = incident.boundary(force, messages) or force.prefix
        if not any(incident.ends_window(one) for one in messages[end:]):
            self.window = Window.over(messages[:end], self.session.book)

    async def _expire_stale(self, step: Step) -> None:
        newest = self.records.newest
        if newest is None or not newest.actionable or newest.state != "pending":
            return
        reason = incident.stale(newest, self.records.scene(step.messages))
        if reason is not None:
            await self.records.change(newest, self.records.expired(reason))

    async def _known(self, messages: Sequence[Message], force: Incident | None) -> Known:
        """What the projection of these messages needs beside them: receipts, and the repair in force (PR-43)."""
        if force is None:
            return Known(self.session.book)
        end = incident.boundary(force, messages) or force.prefix
        return await self._repairing(force.repairs, force.told, offset=end - force.prefix)

    async def _repairing(
        self, repairs: Sequence[Repair], told: Sequence[tuple[int, int]], *, offset: int = 0
    ) -> Known:
        facts = [(prefix, await self._book_at(at)) for prefix, at in told]
        return Known(self.session.book, InForce(tuple(repairs), tuple(facts), offset))

    async def _book_at(self, at: int) -> Book:
        """The receipts as they stood at a ledger position, so that facts never change later."""
        if at not in self._books:
            book = Book()
            for entry in await self.session.ledger.read(self.session.session_id):
                if entry.position > at:
                    break
                book.apply(entry)
            self._books[at] = book
        return self._books[at]

    # A refusal --------------------------------------------------------------------------------

    async def _refused(self, refused: _Facts, asked: int, replaying: Replaying) -> Reply:
        if refused.kind == "context_overflow" and refused.error.facts.get("streamed"):
            self._notify(discarded(refused.step.step_id, "context_limit"))
        refused.plan = self._plan(refused, replaying)
        may = (
            self.automatic
            and not refused.error.facts.get("hosted")
            and asked < replaying.max_requests
            and incident.may_repair_alone(refused.kind, refused.certainty)
            and not incident.is_spent(self.records.newest, refused.scene)
        )
        if may and refused.plan is not None:
            return await self._repair(refused, refused.plan, replaying)
        await self._offer(refused, replaying)
        raise refused.error

    def _plan(self, refused: _Facts, replaying: Replaying) -> ladder.Plan | None:
        """The plan of PR-53 on the frozen prefix; None for a refusal that is none of the history."""
        if not incident.may_be_offered(refused.kind, refused.certainty):
            return None
        force = refused.force
        ground = self._ground(refused.step.messages, force, replaying)
        findings = tuple(ground.encode(ground.in_force).findings)
        linked = bool(refused.error.facts.get("linked"))
        return ladder.plan(ground, ladder.Refused(refused.kind, findings, linked))

    def _ground(
        self, messages: Sequence[Message], force: Incident | None, replaying: Replaying
    ) -> ladder.Ground:
        def encode(repairs: Sequence[Repair]) -> ladder.Encoded:
            made: ladder.Encoded = replaying.freeze(
                messages, Known(self.session.book, InForce(tuple(repairs)))
            )
            return made

        offset = 0
        if force is not None:
            offset = (incident.boundary(force, messages) or force.prefix) - force.prefix
        kept = (
            () if force is None else tuple((rid, at if at < 0 else at + offset) for rid, at in force.repairs)
        )
        return ladder.Ground(
            messages,
            replaying.contract,
            encode,
            kept,
            tools=replaying.has_tools,
            may_drop=replaying.may_drop_blocks,
        )

    async def _repair(self, refused: _Facts, plan: ladder.Plan, replaying: Replaying) -> Reply:
        """PR-34: project, validate, persist `consumed`, send once."""
        told = self._told(refused.force, len(refused.step.messages), refused.step.seen)
        frozen = replaying.freeze(refused.step.messages, await self._repairing(plan.repairs, told))
        if rules.refusing(list(frozen.findings)):
            raise refused.error
        record = self._new_record(
            refused,
            state="consumed",
            projected=True,
            repairs=plan.repairs,
            told=told,
            origin="automatic",
            at=refused.step.seen,
            sent=frozen.digest,
            consumed_ms=self.session.scheduler.now_ms(),
        )
        try:
            await self.session.append(self.records.draft(record))
        except LedgerError as failure:
            self._notify(Notice("recovery_not_recorded", {"cause": failure.message}))
            raise refused.error from failure
        self.window = Window.over(refused.step.messages, self.session.book)
        self._notify(discarded(refused.step.step_id, "replay_refused", record["id"]))
        self._notify(recovered(str(record["id"]), counts_of(plan.added)))
        refused.repaired_in_step = True
        return await self._sent(record["id"], frozen, refused.step, replaying)

    async def _sent(self, identity: str, frozen: Any, step: Step, replaying: Replaying) -> Reply:
        """The one request of an incident; whatever becomes of it is added to the record (PR-36, PR-37)."""
        try:
            reply: Reply = await self.session.scheduler.noting_cancel(
                replaying.send(frozen, step.on_delta), lambda: self._outcome(identity, "cancelled")
            )
        except ProviderRefused as error:
            kind = error.facts.get("kind")
            error.facts["recovery"] = True
            error.facts["history"] = incident.may_concern_history(kind)
            await self._outcome(identity, "refused")
            raise
        except ProviderError:
            await self._outcome(identity, "failed")
            raise
        await self._outcome(identity, "recovered")
        return reply

    async def _outcome(self, identity: str, word: str) -> None:
        newest = self.records.newest
        if newest is None or newest.id != identity:
            return
        try:
            await self.records.change(newest, {"outcome": word})
        except LedgerError as failure:  # it is history; the budget is spent without it
            self._notify(Notice("recovery_not_recorded", {"cause": failure.message}))

    # Regeneration -----------------------------------------------------------------------------

    async def _regenerated(
        self, reply: Reply, step: Step, scene: Scene, force: Incident | None, known: Known
    ) -> Reply:
        """PR-35: a reply that its contract will refuse later is asked for once more, before any call of it runs."""
        replaying = self._replaying
        effects = with_effects((*reply.enabled, *reply.hosted))
        if replaying is None or effects or incident.is_spent(self.records.newest, scene):
            return self._with_placeholder(reply)
        frozen = replaying.freeze(step.messages, known)
        facts: dict[str, Any] = {"certainty": "none"}
        made_of = _Facts(ProviderNonsense("", **facts), step, scene, force, frozen.digest)
        record = self._new_record(
            made_of,
            state="consumed",
            projected=False,
            origin="regeneration",
            at=step.seen,
            sent=frozen.digest,
            consumed_ms=self.session.scheduler.now_ms(),
        )
        try:
            await self.session.append(self.records.draft(record))
        except LedgerError as failure:
            self._notify(Notice("recovery_not_recorded", {"cause": failure.message}))
            return self._with_placeholder(reply)
        self._notify(discarded(step.step_id, "reasoning_missing", record["id"]))
        again = await self._sent(record["id"], frozen, step, replaying)
        return self._with_placeholder(again) if "reasoning_missing" in again.notes else again

    def _with_placeholder(self, reply: Reply) -> Reply:
        """The reply where its contract takes a placeholder later; otherwise the step stops and no call runs."""
        replaying = self._replaying
        if replaying is None or replaying.contract["reasoning.empty_ok"]:
            return reply
        raise ProviderNonsense(
            "The model's server left out reasoning that it will ask for again later; no call of this reply ran. "
            "Go on to ask again, change model, endpoint or thinking, or declare an empty block in its contract if it "
            "takes one.",
            next_command=f"surefoot contract show {replaying.contract['contract.id']}",
            kind="generation",
            reason="reasoning_missing",
            transient=False,
        )

    # The offer --------------------------------------------------------------------------------

    async def _offer(self, refused: _Facts, replaying: Replaying) -> None:
        """Make `pending` durable before the turn ends, or say why nothing is offered (PR-24, PR-28)."""
        reason = self._not_offered(refused)
        newest = self.records.newest
        if reason is None and newest is not None and newest.state == "pending":
            same = incident.stale(newest, refused.scene) is None and newest.fields.get("kind") == refused.kind
            if same:  # refused again, unchanged: it is the same incident
                return self._tell_offer(refused, newest.id, None)
        identity = None
        if reason is None:
            record = self._new_record(refused, state="pending", projected=False)
            try:
                await self.session.append(self.records.draft(record))
                identity = str(record["id"])
            except LedgerError:
                reason = "storage_failed"
        self._tell_offer(refused, identity, reason)

    def _not_offered(self, refused: _Facts) -> str | None:
        newest, scene = self.records.newest, refused.scene
        lost = incident.is_spent(None, scene)
        offer = Offer(
            refused.kind,
            refused.certainty,
            replay_bearing=incident.is_replay_bearing(refused.step.messages),
            repaired_in_step=refused.repaired_in_step,
            spent=incident.is_spent(newest, scene),
            newer_record=newest is not None and bool(newest.fields) and not newest.known,
            record_lost=lost,
            changes=refused.plan is not None,
        )
        return incident.not_offered(offer)

    def _tell_offer(self, refused: _Facts, identity: str | None, reason: str | None) -> None:
        facts = refused.error.facts
        facts["history"] = incident.may_concern_history(refused.kind)
        facts["incident_id"], facts["reason_not_offered"] = identity, reason
        plan = refused.plan
        self.last_refusal = {
            "incident_id": identity,
            "kind": refused.kind,
            "status": facts.get("status"),
            "trace_id": facts.get("trace_id"),
            "rules": list(facts.get("rules") or ()),
            **self._where(facts),
            "reason_not_offered": reason,
            "changes": {} if plan is None else counts_of(plan.added),
        }
        self._notify(Notice("provider_refused", self.last_refusal))

    # The manual path --------------------------------------------------------------------------

    async def prepare(self, named: str | None, guidance: str, turn_id: str) -> Prepared | Refusal:
        """PR-32, steps 1 and 2, in memory: nothing is consumed, nothing is written but an expiry."""
        refused = await self.records.admit(named, "idle")
        newest, replaying = self.records.newest, self._replaying
        if refused is not None or newest is None or replaying is None:
            return refused or Refusal("recovery_unavailable")
        messages, seen = await self.records.messages(), self.session.position
        scene = self.records.scene(messages)
        force = incident.in_force(self.session.incidents, scene)
        prefix = incident.boundary(newest, messages) or newest.prefix
        told_of = _Facts(remembered(newest), Step(messages[:prefix], seen, _silent), scene, force, "")
        plan = self._plan(told_of, replaying)
        if plan is None:
            return Refusal("recovery_unavailable", "nothing_to_change")
        told = self._told(force, prefix, seen)
        text = restated.prompt_with(guidance)
        shown = [*messages, UserWords(turn_id, text, origin="host")]
        frozen = replaying.freeze(shown, await self._repairing(plan.repairs, told))
        broken = rules.refusing(list(frozen.findings))
        if broken:
            return Refusal("recovery_unavailable", broken[0].rule)
        consumed = {
            "state": "consumed",
            "projected": True,
            "repairs": [list(one) for one in plan.repairs],
            "told": [list(one) for one in told],
            "origin": "manual",
            "at": seen,
            "prompt": restated.PROMPT_VERSION,
            "sent": frozen.digest,
            "epoch": self.session.epoch,
            "consumed_ms": self.session.scheduler.now_ms(),
        }
        host = {"turnId": turn_id, "text": text, "prompt": restated.PROMPT_VERSION}
        drafts = (self.records.changed(newest, consumed), Draft(Kind.HOST, host))
        window = Window.over(messages[:prefix], self.session.book)
        return Prepared(drafts, frozen, newest.id, window, counts_of(plan.added))

    async def commit(
        self, prepared: Prepared, before: Sequence[Draft], after: Sequence[Draft]
    ) -> Refusal | None:
        """PR-32, steps 3 and 4: admission again, then one commit that holds record and words.

        Raises `LedgerError`: nothing is sent, and an uncertain commit counts as consumed (PR-33).
        """
        position = self.session.position
        refused = await self.records.admit(prepared.record, "idle")
        if refused is not None:
            return refused

        def still_pending() -> str | None:
            newest = self.records.newest
            same = newest is not None and newest.id == prepared.record and newest.state == "pending"
            return None if same else "recovery_stale"

        answer = await self.session.append(
            *before, *prepared.drafts, *after, after=position, judge=still_pending
        )
        if isinstance(answer, NotAppended):
            return Refusal("recovery_stale", "history_moved")
        self.window = prepared.window
        self._notify(recovered(prepared.record, prepared.changes))
        return None

    async def send(self, prepared: Prepared, step: Step) -> Reply:
        """PR-32, step 5: the frozen bytes, once."""
        replaying = self._replaying
        if replaying is None:
            raise ProviderNonsense("This model cannot be asked again.", transient=False)
        return await self._sent(prepared.record, prepared.frozen, step, replaying)

    def answered(self, looked: Looked) -> Refused | None:
        """The stored result for a call repeated in the recovery window (PR-59), or None."""
        return None if self.window is None else self.window.answer(looked, self.session.book)

    def end_turn(self) -> None:
        """The recovery window ends with its turn."""
        self.window = None

    # The card ---------------------------------------------------------------------------------

    async def card(self) -> dict[str, Any] | None:
        """The facts of UX-129 about the newest incident or refusal; None when there is none. Reads only."""
        newest = self.records.newest
        if newest is None:
            return None if self.last_refusal is None else {**_EMPTY_CARD, **self.last_refusal}
        messages = await self.records.messages()
        refused, _ = await self.records.judge(None, "idle")
        offered = refused is None
        changes: Mapping[str, int] = {}
        if self._replaying is not None and newest.actionable and newest.state == "pending" and offered:
            prefix = incident.boundary(newest, messages) or newest.prefix
            scene = self.records.scene(messages)
            force = incident.in_force(self.session.incidents, scene)
            seen = Step(messages[:prefix], self.session.position, _silent)
            plan = self._plan(_Facts(remembered(newest), seen, scene, force, ""), self._replaying)
            changes = {} if plan is None else counts_of(plan.added)
        fields = newest.fields
        reason = None if refused is None else refused.reason or refused.code.removeprefix("recovery_")
        return {
            **_EMPTY_CARD,
            "incident_id": newest.id or None,
            "kind": fields.get("kind"),
            "status": fields.get("status"),
            "trace_id": fields.get("trace_id"),
            "rules": list(fields.get("rules") or ()),
            **self._where(fields),
            "state": newest.state,
            "scope": fields.get("scope"),
            "origin": fields.get("origin"),
            "outcome": fields.get("outcome"),
            "offered": offered,
            "reason_not_offered": reason,
            "changes": dict(changes),
            **self._calls(),
        }

    def _where(self, told: Mapping[str, Any]) -> dict[str, str]:
        """The identifiers a person gets beside the kind (PR-16)."""
        contract = told.get("contract")
        if not isinstance(contract, str) and self._replaying is not None:
            contract = str(self._replaying.contract["contract.id"])
        return {**incident.diagnostic(told), **({"contract": contract} if isinstance(contract, str) else {})}

    def _calls(self) -> dict[str, int]:
        receipts = list(self.session.book)
        done = sum(one.state == "succeeded" for one in receipts)
        return {"done_calls": done, "open_calls": len(list(self.session.book.open()))}

    # Drafts -----------------------------------------------------------------------------------

    def _new_record(self, refused: _Facts, **more: Any) -> dict[str, Any]:
        told = {**refused.error.facts, "request_digest": refused.body_digest}
        told["asked_for"] = getattr(self.model, "asked_for", None)
        contract = None if self._replaying is None else str(self._replaying.contract["contract.id"])
        wire = self.model.wire
        return new_record(self.session, refused.scene, told, wire=wire, contract=contract, **more)

    def _told(self, force: Incident | None, prefix: int, at: int) -> tuple[tuple[int, int], ...]:
        """Facts in force stay where they are; those of this incident stand at its own prefix."""
        earlier = () if force is None else force.told
        return (*(one for one in earlier if one[0] != prefix), (prefix, at))


class _Projected:
    """The model, asked through the one door: with the receipts and the repair in force (PR-47)."""

    def __init__(self, model: Model, replaying: Replaying, known: Known) -> None:
        self.wire = model.wire
        self.batch_split = model.batch_split
        self.wait_seconds = model.wait_seconds
        self._replaying = replaying
        self._known = known

    async def complete(self, messages: Sequence[Message], on_delta: Callable[[TextDelta], None]) -> Reply:
        """One request. Raises `ProviderError`."""
        frozen = self._replaying.freeze(messages, self._known)
        return await self._replaying.send_checked(frozen, on_delta)


_EMPTY_CARD: Mapping[str, Any] = {
    "incident_id": None,
    "kind": None,
    "status": None,
    "trace_id": None,
    "rules": [],
    "state": None,
    "scope": None,
    "origin": None,
    "outcome": None,
    "offered": False,
    "reason_not_offered": None,
    "changes": {},
    "done_calls": 0,
    "open_calls": 0,
    "ways": [way.value for way in incident.Ways],
}


def counts_of(repairs: Sequence[Repair]) -> dict[str, int]:
    """How many messages each repair would change."""
    counts: dict[str, int] = {}
    for rid, _ in repairs:
        counts[rid] = counts.get(rid, 0) + 1
    return counts


def _silent(delta: TextDelta) -> None:
    """Where nothing is streamed."""


__all__ = ["Incidents", "Prepared", "Step", "counts_of"]
