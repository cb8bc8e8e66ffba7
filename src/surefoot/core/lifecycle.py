"""Pure. The receipt state machine: fold, legal next entries, what is open, what is told.

Owns: how entries become receipts (`Book.apply`), which entry may come next
(`refusal`), when a call is open (TR-42), and the counts of TR-158.
Does not own: what recovery decides (`recovery`), the text a receipt gives
(`results`), who may write (`ledger`).
Promises: receipt:exact, recovery:never-guess.

Everything a ledger holds about attempts is folded here and nowhere else, by the
owner in memory and by readers alike.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from surefoot.core.effects import judged_effect
from surefoot.core.model import EffectClass, Entry, Kind, Overlay, Receipt, State, camel
from surefoot.core.shelf import PLACE, Shelf, lay_over, receipt_by_place, receipt_from_json, values_of
from surefoot.core.unread import attempt_of, may_wait, says_nothing

LEGAL: Mapping[State, frozenset[State]] = {
    State.DISPATCHED: frozenset({State.NOT_STARTED, State.STARTED, State.UNKNOWN}),
    State.STARTED: frozenset({State.SUCCEEDED, State.FAILED, State.UNKNOWN}),
    State.NOT_STARTED: frozenset(),
    State.SUCCEEDED: frozenset(),
    State.FAILED: frozenset(),
    State.UNKNOWN: frozenset(),
}
"""The moves of TR-37; every other pair is refused. `late` settles an unknown one by its own rule."""

OFF_BRANCH = "off_branch"
"""Note on an attempt whose messages a rewind left behind (TR-95)."""
SETTLED = frozenset({State.NOT_STARTED, State.SUCCEEDED, State.FAILED, State.UNKNOWN})
RESOLUTIONS = {
    "confirmed": Overlay.CONFIRMED,
    "denied": Overlay.DENIED,
    "rejected": Overlay.REJECTED,
    "released": Overlay.RELEASED,
}
_CLOSABLE = frozenset({State.SUCCEEDED, State.FAILED, State.UNKNOWN})
_TRUE_ENDS = frozenset({State.SUCCEEDED.value, State.FAILED.value})
_IDENTITY = [
    PLACE[name]
    for name in ("attempt_id", "session_id", "call_id", "turn_id", "position", "parent_attempt_id")
]
_CLOSING = frozenset({Overlay.PROVEN, Overlay.CONFIRMED, Overlay.DENIED, Overlay.RELEASED})


def dispatched(session_id: str, turn_id: str, call: Mapping[str, Any], entry: Entry) -> Receipt:
    """The receipt a call has from the moment its message is durable (D1)."""
    given = {**call, "sessionId": session_id, "turnId": turn_id, "epoch": entry.epoch}
    given.setdefault("dispatchedAt", entry.at_ms)
    given.setdefault("position", 0)
    if given.get("arguments") is None:
        given["arguments"] = ""  # absent argument text (TR-11); the receipt notes it at D6
    return receipt_from_json(given)


def refusal(receipt: Receipt | None, kind: str, payload: Mapping[str, Any]) -> str | None:
    """Why the ledger refuses this entry for that receipt, or None when it is legal (TR-2, TR-37)."""
    if receipt is None:
        return None if kind == Kind.DISPATCHED else "attempt_unknown"
    if kind == Kind.DISPATCHED:
        return "attempt_exists"
    if "state" in receipt.extra:
        return "newer_state"  # TR-8: nothing of such a receipt is rewritten
    for key, held in (("callId", receipt.call_id), ("turnId", receipt.turn_id)):
        if payload.get(key, held) != held:
            return "call_mismatch"
    target = _target(kind, payload)
    if target is not None:
        legal = target in LEGAL[receipt.state] and (kind != Kind.CLOSED or target in _CLOSABLE)
        return None if legal else f"illegal_{receipt.state}_{target}"
    if kind == Kind.DELIVERED and receipt.state not in _CLOSABLE:
        return f"illegal_{receipt.state}_{kind}"
    if kind in _ON_UNKNOWN and receipt.state is not State.UNKNOWN:
        return f"illegal_{receipt.state}_{kind}"
    if kind == Kind.RESOLVED:
        return _resolution_refusal(receipt, payload)
    return None


_ON_UNKNOWN = frozenset({Kind.RESOLVED.value, Kind.LATE.value, Kind.INSPECTED.value})


def _target(kind: str, payload: Mapping[str, Any]) -> State | None:
    if kind == Kind.NOT_STARTED:
        return State.NOT_STARTED
    if kind == Kind.STARTED:
        return State.STARTED
    if kind == Kind.CLOSED:
        if "state" not in payload:
            return State.DISPATCHED  # an end that names none is no end; never a legal move
        try:
            return State(payload["state"])
        except ValueError:
            return State.UNKNOWN
    return None


def _resolution_refusal(receipt: Receipt, payload: Mapping[str, Any]) -> str | None:
    """A receipt is resolved once; only a rejected one may be resolved again, otherwise (TR-190)."""
    kind = (payload.get("resolution") or {}).get("kind")
    if kind not in RESOLUTIONS:
        return "unknown_resolution"
    if _CLOSING & set(receipt.overlays):
        return "already_resolved"
    if kind == "rejected" and receipt.has(Overlay.REJECTED):
        return "already_resolved"
    return None


def advance(receipt: Receipt, entry: Entry) -> Receipt:
    """The receipt after one more entry about it. The entry was legal when it was written."""
    payload = entry.payload
    if entry.kind == Kind.STARTED:
        return _started(receipt, entry)
    if entry.kind == Kind.CLOSED:
        return _closed(receipt, entry)
    if entry.kind == Kind.NOT_STARTED:
        return _merged(receipt, payload, state=State.NOT_STARTED, finished_at=entry.at_ms)
    if entry.kind == Kind.PROCESS:
        return _with_process(receipt, payload)
    if entry.kind == Kind.LATE:
        return _with_late(receipt, payload)
    if entry.kind == Kind.INSPECTED:
        seen = dataclasses.replace(receipt, inspection=payload.get("inspection"))
        return _laid(seen, Overlay.PROVEN) if payload.get("proven") else seen
    if entry.kind == Kind.RESOLVED:
        resolution = payload["resolution"]
        overlay = RESOLUTIONS.get(resolution.get("kind"))
        resolved = dataclasses.replace(receipt, resolution=resolution)
        return _laid(resolved, overlay) if overlay else resolved
    if entry.kind == Kind.DELIVERED:
        return _laid(dataclasses.replace(receipt, delivered=True), Overlay.DELIVERED)
    if entry.kind == Kind.APPROVAL:
        return dataclasses.replace(receipt, approval=payload)
    return receipt


def _started(receipt: Receipt, entry: Entry) -> Receipt:
    fixed: dict[str, Any] = {"state": State.STARTED, "started_position": entry.position, "epoch": entry.epoch}
    if entry.payload.get("startedAt") is None:
        fixed["started_at"] = entry.at_ms
    return _merged(receipt, entry.payload, **fixed)


def _closed(receipt: Receipt, entry: Entry) -> Receipt:
    """An end that is known gets a time; of an unknown one there is none to give."""
    ended = _merged(receipt, entry.payload)
    if ended.state is State.UNKNOWN:
        return dataclasses.replace(ended, finished_at=None)
    if ended.finished_at is not None:
        return ended
    return dataclasses.replace(ended, finished_at=entry.at_ms)


def _merged(receipt: Receipt, payload: Mapping[str, Any], **fixed: Any) -> Receipt:
    """Lay the fields of `payload` over the receipt; a state this version does not know reads as unknown."""
    before = values_of(receipt)
    values = list(before)
    extra = lay_over(values, payload)
    for place in _IDENTITY:
        values[place] = before[place]
    noted = values[PLACE["notes"]]
    if noted is not receipt.notes:
        values[PLACE["notes"]] = receipt.notes + tuple(note for note in noted if note not in receipt.notes)
    for name, value in fixed.items():
        values[PLACE[name]] = value
    if extra:
        values[PLACE["extra"]] = {**receipt.extra, **extra}
    return receipt_by_place(values)


def _with_process(receipt: Receipt, payload: Mapping[str, Any]) -> Receipt:
    # News of the executor alone make no process record: an in-process body has none.
    process = {**(receipt.process or {}), **(payload.get("process") or {})} or None
    executor = payload.get("executor", receipt.executor)
    return dataclasses.replace(receipt, process=process, executor=executor)


def _with_late(receipt: Receipt, payload: Mapping[str, Any]) -> Receipt:
    """A late result is evidence; one from the attempt's own executor settles it (TR-43).

    One whose own outcome is unknown, such as a signal, settles nothing whoever sent it.
    """
    kept = {key: payload[key] for key in sorted(payload) if key != "attemptId"}
    evidence = _laid(dataclasses.replace(receipt, late=(*receipt.late, kept)), Overlay.LATE)
    if not payload.get("settles") or payload.get("state") not in _TRUE_ENDS:
        return evidence
    names = ("reason", "result", "resultRef", "resultDigest", "errorKind", "effectTrace")
    given = {name: payload.get(name) for name in names}
    return _merged(evidence, {"state": payload["state"], **given, "finishedAt": payload.get("at")})


def _laid(receipt: Receipt, overlay: Overlay) -> Receipt:
    if overlay in receipt.overlays:
        return receipt
    return dataclasses.replace(receipt, overlays=(*receipt.overlays, overlay))


class _Waiting:
    """A call and what followed it, unread; its receipt is folded when it is asked for."""

    __slots__ = ("_call", "_first", "_turn_id", "later")

    def __init__(self, first: tuple[str, int, int, int, str], turn_id: str, call: Mapping[str, Any]) -> None:
        self._first, self._turn_id, self._call = first, turn_id, call
        self.later: list[tuple[tuple[int, int, int, str], str]] = []
        """Position, epoch, at_ms, kind and payload text of each further entry."""

    def receipt(self) -> Receipt:
        session_id = self._first[0]
        receipt = dispatched(session_id, self._turn_id, self._call, Entry(*self._first, {}))
        for facts, text in self.later:
            receipt = advance(receipt, Entry(session_id, *facts, json.loads(text)))
        return receipt

    def mentions(self, word: str) -> bool:
        return word in json.dumps(self._call) or any(word in text for _, text in self.later)


class Book(Shelf):
    """All receipts of one session, folded entry by entry; every step costs the same at any size.

    Not thread-safe: one owner folds it. Keeps what the barrier and the snapshot ask
    for at once: attempts by call, children by parent, the open ones, the resolved
    ones, and the counts of TR-158. After retention it holds what was left of them.
    """

    def __init__(self, receipts: Iterable[Receipt] = ()) -> None:
        super().__init__()
        for receipt in receipts:
            self._put(receipt)

    def open(self) -> list[Receipt]:
        """Every open attempt (TR-42), reads included, oldest first."""
        return [self._by_attempt[attempt] for attempt in sorted(self._open, key=self._rank.__getitem__)]

    def resolved(self) -> list[Receipt]:
        """Every attempt that was open once and is no longer, the last resolved one last."""
        return [self._by_attempt[attempt] for attempt in self._resolved]

    def unsettled(self) -> list[Receipt]:
        """Every attempt still `dispatched` or `started`."""
        return [self._by_attempt[attempt] for attempt in self._unsettled]

    def is_open(self, attempt_id: str) -> bool:
        """Whether this attempt is open (TR-42)."""
        return attempt_id in self._open

    def judge_by_today(self, attempt_id: str, stricter_now: Mapping[str, Any]) -> None:
        """Note on a receipt what today's declaration says, because it is stricter (EC-7). It is no entry."""
        receipt = self.get(attempt_id)
        if receipt is not None:
            # Another day's declaration may say something else.
            self.suppose(dataclasses.replace(receipt, stricter_now=stricter_now))

    def suppose(self, receipt: Receipt) -> None:
        """Judge by this receipt in place of the recorded one. It is no entry, and it is not stored."""
        changed = dict(self._changed)
        self._put(receipt)
        self._changed = changed

    def inspection_overtaken(self, attempt_id: str) -> bool:
        """Whether a late result or a record of its process came after the newest inspection (TR-125)."""
        return attempt_id in self._overtaken

    def statistics(self) -> dict[str, int]:
        """The counts of TR-158, kept while folding; equal to a recount over all receipts."""
        return {"unknown": len(self._open), **{name: self._counts[name] for name in COUNTED}}

    def refusal(self, kind: str, payload: Mapping[str, Any]) -> str | None:
        """Why an entry may not be appended now, or None."""
        if kind == Kind.ASSISTANT:
            repeated = any(call["attemptId"] in self._rank for call in payload.get("calls") or ())
            return "attempt_exists" if repeated else None
        if not kind.startswith("attempt."):
            return None
        attempt_id = payload.get("attemptId", "")
        found = refusal(self.get(attempt_id), kind, payload)
        if found is None and kind == Kind.STARTED and payload.get("supersedes"):
            # A second retry of one attempt, or one of a resolved attempt, starts nothing (TR-137).
            return None if self.is_open(payload["supersedes"]) else "nothing_to_supersede"
        if found is None and kind in (Kind.RESOLVED, Kind.INSPECTED) and not self.is_open(attempt_id):
            return "already_resolved"  # closed by a successor or with its last open child
        return found

    def apply(self, entry: Entry) -> None:
        """Fold one appended entry. Entries that concern no attempt change nothing."""
        payload = entry.payload
        if entry.kind == Kind.ASSISTANT:
            for call in payload.get("calls") or ():
                self._put(dispatched(entry.session_id, payload.get("turnId", ""), call, entry))
        elif entry.kind == Kind.DISPATCHED:
            self._meet(payload["callId"])
            self._put(dispatched(entry.session_id, payload.get("turnId", ""), payload, entry))
        elif entry.kind == Kind.SESSION_DROPPED:
            self._begin_anew()
            for left in payload.get("receipts") or ():
                self._put(receipt_from_json(left))
            self.dropped = True
        elif entry.kind == Kind.REWOUND:
            for attempt in payload.get("offBranch") or ():
                left = self.get(attempt)
                if left is not None and OFF_BRANCH not in left.notes:
                    self._put(dataclasses.replace(left, notes=(*left.notes, OFF_BRANCH)))
        elif "attemptId" in payload:
            receipt = self.get(payload["attemptId"])
            if receipt is None:
                return  # a kind of a newer version, or an attempt of another session
            self._put(advance(receipt, entry))
            self._note_order(receipt, entry)
            if entry.kind == Kind.STARTED and payload.get("supersedes"):
                self._supersede(payload["supersedes"], receipt.attempt_id)

    def apply_unread(self, session_id: str, facts: tuple[int, int, int, str], text: str) -> bool:
        """Fold one stored entry as `apply` would without reading its payload; False when it must be read.

        `facts` are position, epoch, at_ms and kind. A call that `apply_later` folded is read when its receipt
        is asked for.
        """
        kind = facts[3]
        attempt = attempt_of(kind, text)
        waiting = None if attempt is None else self._by_attempt.unread.get(attempt)
        if attempt is None or not isinstance(waiting, _Waiting):
            return says_nothing(kind, text)
        waiting.later.append((facts, text))
        self._changed[attempt] = None
        if kind == Kind.STARTED:
            self._unsettled.setdefault(attempt)
        elif kind == Kind.CLOSED:
            self._unsettled.pop(attempt, None)
        return True

    def apply_later(self, entry: Entry) -> None:
        """Fold one entry as `apply` does, and build the receipts of the calls in it when they are asked for."""
        payload = entry.payload
        if entry.kind not in (Kind.ASSISTANT, Kind.DISPATCHED):
            self.apply(entry)
            return
        turn_id = payload.get("turnId", "")
        first = (entry.session_id, entry.position, entry.epoch, entry.at_ms, entry.kind)
        calls = payload.get("calls") or ()
        if entry.kind == Kind.DISPATCHED:
            self._meet(payload["callId"])  # which may have attempts already; a message only has new calls
            calls = (payload,)
        for call in calls:
            attempt = call["attemptId"]
            if attempt in self._rank or not may_wait(call):
                self._put(dispatched(entry.session_id, turn_id, call, entry))
                continue
            self._by_attempt.lay(attempt, _Waiting(first, turn_id, call))
            self._index(attempt, call["callId"], None)
            self._changed[attempt] = None
            self._unsettled.setdefault(attempt)

    def _note_order(self, before: Receipt, entry: Entry) -> None:
        if entry.kind == Kind.INSPECTED:
            self._overtaken.discard(before.attempt_id)
        elif before.inspection is not None and _is_news(entry):
            self._overtaken.add(before.attempt_id)

    def _supersede(self, old_id: str, new_id: str) -> None:
        old = self.get(old_id)
        if old is not None:
            self._put(dataclasses.replace(_laid(old, Overlay.SUPERSEDED), superseded_by=new_id))

    def _put(self, receipt: Receipt) -> None:
        attempt = receipt.attempt_id
        before = self.get(attempt)
        if before is None:
            self._index(attempt, receipt.call_id, receipt.parent_attempt_id)
        old, new = () if before is None else _counted(before), _counted(receipt)
        if old or new:
            self._counts.subtract(old)
            self._counts.update(new)
        self._by_attempt[attempt] = receipt
        self._changed[attempt] = None
        _mark(self._unsettled, attempt, receipt.state in (State.DISPATCHED, State.STARTED))
        self._judge(receipt)

    def _judge(self, changed: Receipt) -> None:
        """Set what is open. A change reaches the attempt it superseded and its parent, and goes on
        from each whose own openness changed: a child that opens again opens all its ancestors."""
        self._judge_one(changed)
        pending = [changed.supersedes, changed.parent_attempt_id]
        while pending:
            attempt = pending.pop()
            receipt = self.get(attempt) if attempt else None
            if receipt is not None and self._judge_one(receipt):
                pending += [receipt.supersedes, receipt.parent_attempt_id]

    def _judge_one(self, receipt: Receipt) -> bool:
        """Judge one attempt; True when its openness changed."""
        attempt = receipt.attempt_id
        was, now = attempt in self._open, self._is_open(receipt)
        _mark(self._open, attempt, now)
        if now:
            self._resolved.pop(attempt, None)
        elif was or receipt.state is State.UNKNOWN:
            self._resolved.setdefault(attempt)
        return was != now

    def _is_open(self, receipt: Receipt) -> bool:
        if receipt.state is not State.UNKNOWN or _CLOSING & set(receipt.overlays):
            return False
        if receipt.superseded_by:
            return self._open_beside(receipt, self.get(receipt.superseded_by))
        if receipt.reason == "child_open":
            return any(self.is_open(child.attempt_id) for child in self.children(receipt.attempt_id))
        return True

    def _open_beside(self, receipt: Receipt, successor: Receipt | None) -> bool:
        """TR-42: which of two attempts at one call stands for it."""
        if judged_effect(receipt).effect_class is EffectClass.READ_ONLY:
            return False
        if (receipt.inspection or {}).get("state") == "absent_fenced":
            return False
        if successor is None:
            return True  # a successor nobody knows stands for nothing
        # It is done, or the successor stands for both; one that ended otherwise left the old
        # uncertainty as it was.
        return successor.state not in (State.SUCCEEDED, State.STARTED, State.UNKNOWN)


COUNTED = ("confirmed", "denied", "retried", "rejected", "released", "proven", "late", "blocked")
COUNTED_OVERLAYS = {
    Overlay.CONFIRMED: "confirmed",
    Overlay.DENIED: "denied",
    Overlay.SUPERSEDED: "retried",
    Overlay.REJECTED: "rejected",
    Overlay.RELEASED: "released",
    Overlay.PROVEN: "proven",
    Overlay.LATE: "late",
}


def _counted(receipt: Receipt) -> list[str]:
    """Under which names of TR-158 an attempt counts, `unknown` excepted."""
    if not receipt.overlays and receipt.state is not State.NOT_STARTED:
        return []  # as nearly always
    names = [COUNTED_OVERLAYS[overlay] for overlay in receipt.overlays if overlay in COUNTED_OVERLAYS]
    if receipt.state is State.NOT_STARTED and receipt.reason == "fenced":
        names.append("blocked")
    return names


def _is_news(entry: Entry) -> bool:
    """Whether an entry is a later fact about the attempt itself (TR-125, rule 11).

    That a person knows of a process and leaves it running changes nothing about it (TR-71).
    """
    only_left = set(entry.payload.get("process") or ()) == {"left"} and not entry.payload.get("executor")
    return entry.kind == Kind.LATE or (entry.kind == Kind.PROCESS and not only_left)


def _mark(index: dict[str, None], attempt: str, present: bool) -> None:
    if present:
        index.setdefault(attempt)
    else:
        index.pop(attempt, None)


def settles(receipt: Receipt) -> bool:
    """Whether nothing more is expected of the attempt's own executor."""
    return receipt.state in SETTLED


__all__ = [
    "LEGAL",
    "RESOLUTIONS",
    "Book",
    "Shelf",
    "advance",
    "camel",
    "dispatched",
    "receipt_from_json",
    "refusal",
    "settles",
]
