"""The incident records of one owned session: reading, admission, expiry, and their entries.

Owns: the scene a record is judged against, the one validity check of every surface (PR-29,
PR-30), what expires a record (PR-24, PR-25), the form of an entry. Does not own: what a
record means (`core.incident`), the requests it allows (`incidents`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from surefoot.core import incident
from surefoot.core.canonical import make_id
from surefoot.core.history import AssistantWords, Message
from surefoot.core.incident import Incident, Pressed, Refusal, Scene
from surefoot.core.model import Draft, Kind
from surefoot.errors import ProviderRefused
from surefoot.ledger.results import stored_texts
from surefoot.runtime.models import Replaying
from surefoot.runtime.session import RECORD_LOST, Session


class Records:
    """The records of one owned session. Reading never writes."""

    def __init__(self, session: Session, replaying: Replaying | None) -> None:
        self.session = session
        self._replaying = replaying

    async def messages(self) -> list[Message]:
        """The model view as it is now, stored results read in; one that is torn is told as missing."""
        history = await self.session.history()
        book = self.session.book
        history.stored |= await stored_texts(self.session.ledger, history.stored_refs(book))
        return history.messages(self.session.book)

    @property
    def newest(self) -> Incident | None:
        """The newest record of the session."""
        return self.session.incidents[-1] if self.session.incidents else None

    def scene(self, messages: Sequence[Message]) -> Scene:
        """What records are judged against now."""
        target = {} if self._replaying is None else self._replaying.target()
        return Scene(
            messages,
            self.session.book,
            incident.scope(self.session.session_id, target),
            self.session.record_lost_at,
        )

    async def pending(self) -> Incident | None:
        """The incident a person may act on, or nothing (PR-29). Reads only."""
        refused, newest = await self.judge(None, "idle")
        return newest if refused is None else None

    async def judge(self, named: str | None, controller: str) -> tuple[Refusal | None, Incident | None]:
        """The admission of PR-30, without the expiry that goes with it."""
        scene = self.scene(await self.messages())
        live = not (self.session.lost or self.session.closed)
        newest = self.newest
        refused = incident.admit(Pressed(controller, live, newest, named, scene))
        if refused is None and self._replaying is None:
            refused = Refusal("recovery_unavailable")
        return refused, newest

    async def admit(self, named: str | None, controller: str) -> Refusal | None:
        """Admission; a pending record found stale is written as expired (PR-24, PR-31)."""
        await self.session.certain()
        refused, newest = await self.judge(named, controller)
        if (
            refused is not None
            and refused.code == "recovery_stale"
            and newest is not None
            and newest.state == "pending"
        ):
            await self.change(newest, self.expired(str(refused.reason)))
        return refused

    def expiry(self) -> list[Draft]:
        """What goes into the same commit as new words of a person: `pending` ends (PR-24)."""
        newest = self.newest
        if newest is None or not newest.actionable or newest.state != "pending":
            return []
        return [self.changed(newest, self.expired("new_input"))]

    async def note_lost_tail(self) -> None:
        """Write down that a record may be among the entries that were lost (PR-99)."""
        if self.session.claim.tail.lost:
            view = len(await self.messages())
            await self.session.append(Draft(Kind.NOTICE, {"code": RECORD_LOST, "view": view}))

    # Entries ----------------------------------------------------------------------------------

    def draft(self, record: Mapping[str, Any]) -> Draft:
        """A new record as an entry."""
        return self._entry(incident.encode(record), record)

    def changed(self, old: Incident, changes: Mapping[str, Any]) -> Draft:
        """A change of a record as an entry that holds the whole object again, and its own epoch (PR-19, PR-26)."""
        changes = {**changes, "epoch": self.session.epoch}
        return self._entry(incident.merged(old.text, changes), {**old.fields, **changes})

    async def change(self, old: Incident, changes: Mapping[str, Any]) -> None:
        """Append a change of a record, unless another one came first: an account is never taken back."""
        await self.session.append(
            self.changed(old, changes), judge=lambda: None if self.newest is old else "record_moved"
        )

    def _entry(self, text: str, fields: Mapping[str, Any]) -> Draft:
        payload = {
            "incidentId": fields.get("id"),
            "state": fields.get("state"),
            "projected": fields.get("projected") is True,
            "at": fields.get("at"),
            "record": text,
        }
        return Draft(Kind.INCIDENT, payload)

    def expired(self, reason: str) -> dict[str, Any]:
        """The keys of an end without a request (PR-24)."""
        return {"state": "expired", "expired_by": reason, "expired_ms": self.session.scheduler.now_ms()}


_KEPT = ("kind", "certainty", "status", "rules", "trace_id", "linked")


def remembered(record: Incident) -> ProviderRefused:
    """The refusal a record was made of, as far as it was kept; an older record kept less."""
    kept = {key: record.fields.get(key) for key in _KEPT}
    told = incident.diagnostic(record.fields)
    code = {"provider_code": told.pop("code")} if "code" in told else {}
    return ProviderRefused("The model's server refused the replayed history.", **kept, **told, **code)


def new_record(
    session: Session, scene: Scene, facts: Mapping[str, Any], *, wire: str, contract: str | None, **more: Any
) -> dict[str, Any]:
    """A new record of a refusal of the messages of this scene; `facts` are those of its error (PR-15, PR-19)."""
    messages, scheduler = scene.messages, session.scheduler
    number = int(scheduler.token(128), 16)
    record: dict[str, Any] = {
        "version": incident.VERSION,
        "id": make_id("inc", number >> 80, number),
        "state": more.pop("state"),
        "scope": scene.scope,
        "fingerprint": incident.fingerprint(messages),
        "count": len(incident.authored(messages)),
        "prefix": len(messages),
        "anchor": incident.anchor(messages[-1]),
        "run": 1 + sum(isinstance(one, AssistantWords) for one in messages),
        "evidence": incident.evidence(messages, session.book),
        "projected": more.pop("projected"),
        "kind": facts.get("kind") or None,
        "certainty": str(facts.get("certainty") or "none"),
        "status": facts.get("status"),
        "rules": list(facts.get("rules") or ())[:16],
        "trace_id": facts.get("trace_id"),
        **incident.diagnostic(facts),
        "linked": bool(facts.get("linked")) or None,
        "notes": list(facts.get("notes") or ()) or None,
        "asked_for": dict(facts.get("asked_for") or {}) or None,
        "refused": facts.get("request_digest") or None,
        "wire": wire,
        "contract": contract,
        "epoch": session.epoch,
        "created_ms": scheduler.now_ms(),
    }
    record = {key: value for key, value in record.items() if value is not None}
    return {**record, **{key: _plain(value) for key, value in more.items()}}


def _plain(value: Any) -> Any:
    return [_plain(one) for one in value] if isinstance(value, tuple) else value
