"""Pure. The incident record: its form, its states, the budget, and who may act on it.

Owns: decoding and merging without loss (PR-19 to PR-23), what makes a record stale,
spent or in force (PR-24, PR-40 to PR-43, PR-49, PR-99), the tables of kinds, offer and
admission (PR-13, PR-27, PR-28, PR-30). Does not own: when a record is written
(`runtime.incidents`), repairs (`providers.ladder`), words for people (`surfaces.words`).
Promises: protocol:account-first.

A record is JSON text. A change merges keys into the text that was stored; what this
version does not know stays as it was written, to the letter.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.core.canonical import digest_json
from surefoot.core.history import CHAT_CARRIERS, AssistantWords, History, Message, ResultGiven, UserWords
from surefoot.core.lifecycle import Book
from surefoot.core.model import Entry, Kind, Word
from surefoot.core.results import speaking

VERSION = 1
STATES = ("pending", "consumed", "expired")

REPLAY_KINDS = ("replay_pairing", "replay_reasoning", "replay_signature", "replay_ids", "replay_arguments")
"""The families of a refusal of the replayed history (PR-13)."""
WORDLESS_KINDS = frozenset({"upstream_reason_missing", "upstream_reason_unrecognised"})


class Ways(Word):
    """What is left to a person whose provider refused, in the order of PR-45."""

    RESUME = "resume_unchanged"
    MESSAGE = "write_a_message"
    FORK = "fork_before"
    CHANGE = "change_settings"
    SUMMARY = "start_from_summary"
    EXPORT = "export"


def may_concern_history(kind: Any) -> bool:
    """Whether a refusal of this kind is, or may be, one of the replayed history."""
    return kind in REPLAY_KINDS or kind in WORDLESS_KINDS


def may_repair_alone(kind: str, certainty: str) -> bool:
    """PR-13: whether the automatic path may be taken."""
    return kind in REPLAY_KINDS and certainty in ("confirmed", "reported")


def may_be_offered(kind: str, certainty: str) -> bool:
    """PR-13: whether a person may be offered a recovery."""
    if kind in REPLAY_KINDS:
        return certainty in ("confirmed", "reported", "probable")
    return kind in WORDLESS_KINDS


# --- the record ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Incident:
    """One record, as the entry at `position` stored it."""

    text: str
    fields: Mapping[str, Any]
    """Parsed; empty when the text is no JSON object."""
    position: int = 0

    @property
    def known(self) -> bool:
        """Whether this version may judge it (PR-23)."""
        version = self.fields.get("version")
        return version == VERSION and not isinstance(version, bool)

    @property
    def actionable(self) -> bool:
        """PR-21: it decodes and is `pending` or `consumed`."""
        prefix = self.fields.get("prefix")
        named = all(
            isinstance(self.fields.get(key), str) and self.fields[key] for key in ("id", "fingerprint")
        )
        whole = isinstance(prefix, int) and not isinstance(prefix, bool) and prefix > 0
        return self.known and named and whole and self.state in ("pending", "consumed")

    @property
    def id(self) -> str:
        return str(self.fields.get("id") or "")

    @property
    def state(self) -> str:
        return str(self.fields.get("state") or "")

    @property
    def prefix(self) -> int:
        return int(self.fields.get("prefix") or 0)

    @property
    def repairs(self) -> tuple[tuple[str, int], ...]:
        """Pairs of R-id and message position."""
        return tuple((str(rid), int(place)) for rid, place in self.fields.get("repairs") or ())

    @property
    def told(self) -> tuple[tuple[int, int], ...]:
        """Pairs of prefix and ledger position: which facts stand where in the repaired prefix."""
        return tuple((int(prefix), int(at)) for prefix, at in self.fields.get("told") or ())


def decode(text: str, position: int = 0) -> Incident:
    """Read a stored record. Never raises: what cannot be read is not actionable."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = {}
    return Incident(text, found if isinstance(found, dict) else {}, position)


def encode(fields: Mapping[str, Any]) -> str:
    """A record as text, keys in the order given."""
    return json.dumps(dict(fields), ensure_ascii=False)


def merged(text: str, changes: Mapping[str, Any]) -> str:
    """The stored text with `changes` merged in; every other member to the letter as it was written (PR-22)."""
    members = _members(text)
    for key, value in changes.items():
        written, _ = members.get(key, (json.dumps(key, ensure_ascii=False), ""))
        members[key] = (written, json.dumps(value, ensure_ascii=False))
    return "{" + ", ".join(f"{key}: {value}" for key, value in members.values()) + "}"


def _members(text: str) -> dict[str, tuple[str, str]]:
    """The members of an object by their names: name and value as they are written. The text was read before."""
    decoder, members = json.JSONDecoder(), dict[str, tuple[str, str]]()
    at = _behind(text, text.index("{") + 1)
    while text[at] != "}":
        name, end = decoder.raw_decode(text, at)
        written = text[at:end]
        at = _behind(text, _behind(text, end) + 1)
        _, end = decoder.raw_decode(text, at)
        members[str(name)] = (written, text[at:end])
        at = _behind(text, end)
        at = _behind(text, at + 1) if text[at] == "," else at
    return members


def _behind(text: str, at: int) -> int:
    """The first place from `at` on that is no white space."""
    while text[at] in " \t\n\r":
        at += 1
    return at


def incidents_of(entries: Sequence[Entry]) -> list[Incident]:
    """The records among these entries, oldest first."""
    return [
        decode(str(entry.payload.get("record") or ""), entry.position)
        for entry in entries
        if entry.kind == Kind.INCIDENT
    ]


@dataclass(frozen=True, slots=True)
class IncidentRow:
    """One incident in a list of what happened (PR-83): its first entry's place, its state by the newest change."""

    session_id: str
    incident_id: str
    kind: str
    state: str
    position: int
    """Ledger position of the entry this state comes from."""
    first: int
    """Ledger position at which the incident began."""
    moved: bool = False
    """The session went on without it, and no write has recorded its end yet (PR-25)."""

    @property
    def actionable(self) -> bool:
        """Whether a person may still act on it, as far as the session alone says; admission judges the rest."""
        return self.state == "pending" and not self.moved


def row_of(entry: Entry) -> IncidentRow | None:
    """The row an entry tells of; None for any other entry, and for a record this version cannot judge."""
    if entry.kind != Kind.INCIDENT:
        return None
    record = decode(str(entry.payload.get("record") or ""), entry.position)
    if not record.known or not record.id or record.state not in STATES:
        return None
    kind = str(record.fields.get("kind") or "")
    return IncidentRow(entry.session_id, record.id, kind, record.state, entry.position, entry.position)


def updated_row(row: IncidentRow, news: IncidentRow) -> IncidentRow:
    """The row after a display update; one for another session, id or change, or an older one, is refused (PR-65)."""
    same = (news.session_id, news.incident_id) == (row.session_id, row.incident_id)
    moves = row.state == "pending" and news.state in ("consumed", "expired")
    if not same or not moves or news.position <= row.position:
        return row
    return dataclasses.replace(row, state=news.state, position=news.position)


def rows_of(
    entries: Sequence[Entry], scope_now: Callable[[Incident], str | None] = lambda record: None
) -> dict[int, IncidentRow]:
    """The incidents of a whole session by the position at which each began, as they are now.

    `scope_now` is asked for a pending record: the scope that would hold if it were acted on here, or None
    when that is not known.
    """
    rows: dict[str, IncidentRow] = {}
    newest = None
    for entry in entries:
        news = row_of(entry)
        if news is not None:
            known = rows.get(news.incident_id)
            rows[news.incident_id] = news if known is None else updated_row(known, news)
        newest = entry if entry.kind == Kind.INCIDENT else newest
    pending = [row for row in rows.values() if row.state == "pending"]
    record = incidents_of([newest])[0] if newest is not None and pending else None
    for row in pending:
        moved = (
            record is None or record.id != row.incident_id or _has_moved(record, entries, scope_now(record))
        )
        rows[row.incident_id] = dataclasses.replace(row, moved=moved)
    return {row.first: row for row in rows.values()}


def _has_moved(record: Incident, entries: Sequence[Entry], scope_now: str | None) -> bool:
    """Whether words or receipts came since, or settings changed; the anchor's stored texts an owner reads."""
    history, book = History(), Book()
    for entry in entries:
        book.apply(entry)
        history.apply(entry)
    scene = Scene(history.messages(book), book, scope_now or str(record.fields.get("scope")))
    return stale(record, scene) not in (None, "anchor_missing")


_BOUNDS: Mapping[str, int] = {
    "endpoint": 64,
    "request_path": 512,
    "transport_code": 64,
    "body_kind": 64,
    "code": 64,
    "param": 128,
}
"""What of a refusal is kept beside kind, status and rules, and how many characters of it (PR-15)."""


def diagnostic(told: Mapping[str, Any]) -> dict[str, str]:
    """What a record keeps of a refusal's facts: names and identifiers, never a sentence, a query or a key (PR-15)."""
    given = {**told, "code": told.get("provider_code", told.get("code"))}
    kept = {}
    for key, limit in _BOUNDS.items():
        text = given.get(key)
        if isinstance(text, str) and text.isprintable() and _is_kept(key, text, limit):
            kept[key] = text[:limit]
    return kept


def _is_kept(key: str, text: str, limit: int) -> bool:
    """A path has no query; a cut code or parameter would be another one, so those are kept whole or not at all."""
    if key == "request_path":
        return text.startswith("/") and not any(mark in text for mark in "?#")
    return bool(text) and (key == "endpoint" or len(text) <= limit)


# --- what a record was made of ------------------------------------------------------------


def is_authored(message: Message) -> bool:
    """Whether the message belongs to the authored view: not from the host."""
    return not isinstance(message, UserWords) or (message.origin == "person" and bool(message.text))


def ends_window(message: Message) -> bool:
    """Whether a message behind the prefix ends the recovery window: words of a person, or a final answer."""
    if isinstance(message, AssistantWords):
        return not message.calls
    return isinstance(message, UserWords) and is_authored(message)


def authored(messages: Sequence[Message]) -> list[Any]:
    """The authored view as JSON: no host messages, no times.

    A result stands there by its call: what is known of a call is `evidence`, so that news about it
    neither renews a budget nor drops a repair in force (PR-46).
    """
    return [_authored(message) for message in messages if is_authored(message)]


def _authored(message: Message) -> Any:
    if isinstance(message, UserWords):
        return {"role": "user", "text": message.text}
    if isinstance(message, ResultGiven):
        return {"role": "result", "call": message.call.call_id}
    return {"role": "assistant", **_replayed(message)}


def _replayed(message: AssistantWords) -> dict[str, Any]:
    calls = [
        [call.call_id, call.position, call.asked_name, call.arguments, call.provider_call_id]
        for call in message.calls
    ]
    raw = json.dumps(message.raw, ensure_ascii=False, sort_keys=True)
    return {"text": message.text, "calls": calls, "wire": message.wire, "raw": raw}


def fingerprint(messages: Sequence[Message]) -> str:
    """SHA-256 of the authored view."""
    return _hex(authored(messages))


def anchor(message: Message) -> str:
    """SHA-256 of one message over what is replayed of it."""
    if isinstance(message, UserWords):
        return _hex({"role": "user", "text": message.text, "facts": message.facts, "origin": message.origin})
    if isinstance(message, ResultGiven):
        shown = {"text": message.text, "isError": message.is_error}
        return _hex({"role": "result", "call": message.call.call_id, **shown})
    return _hex({"role": "assistant", **_replayed(message)})


def evidence(messages: Sequence[Message], book: Book) -> str:
    """SHA-256 over what the receipts say of every call in these messages, in order (PR-19)."""
    rows: list[Any] = []
    for message in messages:
        for call in message.calls if isinstance(message, AssistantWords) else ():
            attempts = book.attempts(call.call_id)
            told = speaking(list(attempts)) if attempts else None
            rows.append(
                [
                    call.call_id,
                    call.provider_call_id,
                    None if told is None else told.tool or told.asked_name,
                    None if told is None else told.state.value,
                    [] if told is None else sorted(str(one) for one in told.overlays if one != "delivered"),
                ]
            )
    return _hex(rows)


def scope(session_id: str, target: Mapping[str, Any]) -> str:
    """SHA-256 of session and target: where a budget holds."""
    return _hex([session_id, _hex(dict(target))])


def _hex(value: Any) -> str:
    return digest_json(value).partition(":")[2]


# --- the budget and the repair in force ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scene:
    """What a record is judged against: the history, the receipts and the target as they are now."""

    messages: Sequence[Message]
    book: Book
    scope: str
    lost_at: int | None = None
    """Length of the model view when the ledger's tail was found lost (PR-99)."""


def stale(record: Incident, scene: Scene) -> str | None:
    """Checks 7 to 10 of PR-30 in order: the first that fails, by the word of `expired_by`."""
    fields = record.fields
    if fields.get("scope") != scene.scope:
        return "scope_changed"
    if not _same_history(record, scene, whole=True):
        return "history_moved"
    if fields.get("evidence") != evidence(scene.messages[: record.prefix], scene.book):
        return "evidence_changed"
    return None if boundary(record, scene.messages) is not None else "anchor_missing"


def _same_history(record: Incident, scene: Scene, *, whole: bool) -> bool:
    count = record.fields.get("count")
    if not isinstance(count, int) or isinstance(count, bool):
        return False
    view = authored(scene.messages)
    right_size = len(view) == count if whole else len(view) >= count
    return right_size and record.fields.get("fingerprint") == _hex(view[:count])


def boundary(record: Incident, messages: Sequence[Message]) -> int | None:
    """Where the prefix ends: behind the anchor, at its old place or at the first later one (PR-49)."""
    wanted, start = record.fields.get("anchor"), record.prefix - 1
    if start < 0:
        return None
    return next((at + 1 for at in range(start, len(messages)) if anchor(messages[at]) == wanted), None)


def brings_round(message: Message) -> bool:
    """Whether an assistant message holds a call, a carrier or an item of a server tool (PR-40)."""
    if not isinstance(message, AssistantWords):
        return False
    if message.calls:
        return True
    raw = message.raw
    if message.wire == "chat":
        return any(raw.get(key) for key in CHAT_CARRIERS)
    key, plain = ("output", "message") if message.wire == "responses" else ("content", "text")
    items = raw.get(key)
    return isinstance(items, list) and any(
        isinstance(item, Mapping) and item.get("type") not in (plain, None) for item in items
    )


def is_spent(newest: Incident | None, scene: Scene) -> bool:
    """PR-40 and PR-99."""
    if scene.lost_at is not None and not any(map(brings_round, scene.messages[scene.lost_at :])):
        return True
    if newest is None:
        return False
    if newest.fields and not newest.known:
        return True
    return (
        newest.state == "consumed"
        and newest.fields.get("scope") == scene.scope
        and _same_history(newest, scene, whole=False)
        and not any(map(brings_round, scene.messages[newest.prefix :]))
    )


def in_force(records: Sequence[Incident], scene: Scene) -> Incident | None:
    """The record whose repaired prefix is sent, if one is (PR-43)."""
    found = next(
        (
            one
            for one in reversed(records)
            if one.actionable and one.state == "consumed" and one.fields.get("projected") is True
        ),
        None,
    )
    if found is None or found.fields.get("scope") != scene.scope:
        return None
    holds = _same_history(found, scene, whole=False) and boundary(found, scene.messages) is not None
    return found if holds else None


# --- admission ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an action is not admitted: a code of PR-31, and the failed check where it has one."""

    code: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Pressed:
    """The facts of one admission: who asks for which incident, and what stands now."""

    controller: str
    owner_live: bool
    newest: Incident | None
    named: str | None
    """The id that was named; None means the newest record."""
    scene: Scene


_Check = Callable[[Pressed], "Refusal | None"]


def _controller(asked: Pressed) -> Refusal | None:
    return None if asked.controller == "idle" else Refusal(asked.controller)


def _owner(asked: Pressed) -> Refusal | None:
    return None if asked.owner_live else Refusal("not_owner")


def _exists(asked: Pressed) -> Refusal | None:
    if asked.newest is None:
        lost = asked.scene.lost_at is not None and is_spent(None, asked.scene)
        return Refusal("recovery_spent", "record_lost") if lost else Refusal("recovery_unavailable")
    if asked.newest.fields and not asked.newest.known:
        return Refusal("recovery_spent", "newer_record")
    return None


def _decodes(asked: Pressed) -> Refusal | None:
    newest = asked.newest
    readable = newest is not None and (newest.actionable or (newest.known and newest.state == "expired"))
    named = newest is not None and asked.named in (None, newest.id)
    return None if readable and named else Refusal("recovery_unavailable")


def _unspent(asked: Pressed) -> Refusal | None:
    newest = asked.newest
    if newest is not None and newest.state == "consumed":
        return Refusal("recovery_spent")
    return Refusal("recovery_spent", "record_lost") if is_spent(newest, asked.scene) else None


def _unexpired(asked: Pressed) -> Refusal | None:
    newest = asked.newest
    if newest is None or newest.state != "expired":
        return None
    return Refusal("recovery_stale", str(newest.fields.get("expired_by") or "new_input"))


def _fresh(asked: Pressed) -> Refusal | None:
    reason = None if asked.newest is None else stale(asked.newest, asked.scene)
    return None if reason is None else Refusal("recovery_stale", reason)


ADMISSION: tuple[tuple[str, _Check], ...] = (
    ("1 controller", _controller),
    ("2 owner", _owner),
    ("3 record", _exists),
    ("4 decodes, named", _decodes),
    ("5 unspent", _unspent),
    ("6 unexpired", _unexpired),
    ("7 to 10 unchanged", _fresh),
)
"""PR-30: the first row that refuses gives the answer. Row 11, the caller's cancel, is the runtime's."""


def admit(asked: Pressed) -> Refusal | None:
    """None when the incident may be acted on."""
    return next((found for _, check in ADMISSION if (found := check(asked)) is not None), None)


@dataclass(frozen=True, slots=True)
class Offer:
    """The facts on which an offer depends (PR-27)."""

    kind: str
    certainty: str
    replay_bearing: bool
    repaired_in_step: bool
    spent: bool
    newer_record: bool
    record_lost: bool
    changes: bool
    """Whether the plan performs a repair that changes the encoded prefix."""


OFFER: tuple[tuple[Callable[[Offer], bool], str], ...] = (
    (lambda one: not may_be_offered(one.kind, one.certainty), "not_a_replay_refusal"),
    (lambda one: not one.replay_bearing, "no_replay_in_request"),
    (lambda one: one.repaired_in_step, "already_repaired"),
    (lambda one: one.newer_record, "newer_record"),
    (lambda one: one.record_lost, "record_lost"),
    (lambda one: one.spent, "spent"),
    (lambda one: not one.changes, "nothing_to_change"),
)
"""PR-28: the first row that holds is the reason why nothing is offered."""


def not_offered(offer: Offer) -> str | None:
    """None when a recovery is offered, else the reason."""
    return next((reason for holds, reason in OFFER if holds(offer)), None)


def is_replay_bearing(messages: Sequence[Message]) -> bool:
    """Whether these messages hold a call, a result, a carrier or a server-tool item."""
    return any(isinstance(one, ResultGiven) or brings_round(one) for one in messages)
