"""Pure. The receipt state machine: fold, legal next entries, what is open, what is told.

Owns: how entries become receipts (`Book.apply`), which entry may come next
(`refusal`), when a call is open (TR-42), and the result a receipt gives (TR-44).
Does not own: what recovery decides (`recovery`), who may write (`ledger`).
Promises: receipt:exact, recovery:never-guess.

Everything a ledger holds about attempts is folded here and nowhere else, by the
owner in memory and by readers alike.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from surefoot.core.model import (
    EffectClass,
    EffectTrace,
    Entry,
    Kind,
    Overlay,
    Receipt,
    State,
    camel,
    receipt_fields,
)

LEGAL: Mapping[State, frozenset[State]] = {
    State.DISPATCHED: frozenset({State.NOT_STARTED, State.STARTED, State.UNKNOWN}),
    State.STARTED: frozenset({State.SUCCEEDED, State.FAILED, State.UNKNOWN}),
    State.NOT_STARTED: frozenset(),
    State.SUCCEEDED: frozenset(),
    State.FAILED: frozenset(),
    State.UNKNOWN: frozenset(),
}
"""The moves of TR-37; every other pair is refused. `late` settles an unknown one by its own rule."""

SETTLED = frozenset({State.NOT_STARTED, State.SUCCEEDED, State.FAILED, State.UNKNOWN})
RESOLUTIONS = {
    "confirmed": Overlay.CONFIRMED,
    "denied": Overlay.DENIED,
    "rejected": Overlay.REJECTED,
    "released": Overlay.RELEASED,
}
_CLOSING = frozenset({Overlay.PROVEN, Overlay.CONFIRMED, Overlay.DENIED, Overlay.RELEASED})
_ENUMS: Mapping[str, type[Any]] = {
    "state": State,
    "effect_class": EffectClass,
    "effect_trace": EffectTrace,
}
_TUPLES = frozenset({"reach", "late", "write_intents", "overlays", "notes"})
_BY_KEY = {key: name for name, key in receipt_fields()}


def dispatched(session_id: str, turn_id: str, call: Mapping[str, Any], entry: Entry) -> Receipt:
    """The receipt a call has from the moment its message is durable (D1)."""
    given = {**call, "sessionId": session_id, "turnId": turn_id, "epoch": entry.epoch}
    given.setdefault("dispatchedAt", entry.at_ms)
    given.setdefault("position", 0)
    return receipt_from_json(given)


def receipt_from_json(value: Mapping[str, Any]) -> Receipt:
    """Read a receipt from its JSON names; unknown fields go to `extra`, unknown states read as unknown."""
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, item in value.items():
        name = _BY_KEY.get(key)
        if name is None:
            extra[key] = item
        elif name in _TUPLES:
            fields[name] = _tuple_of(name, item, extra, key)
        elif name in _ENUMS and item is not None:
            fields[name] = _enum_of(name, item, extra, key)
        else:
            fields[name] = item
    return Receipt(**fields, extra=extra)


def _tuple_of(name: str, items: Any, extra: dict[str, Any], key: str) -> tuple[Any, ...]:
    if name != "overlays":
        return tuple(items or ())
    known = {overlay.value: overlay for overlay in Overlay}
    if any(item not in known for item in items or ()):
        extra[key] = items
    return tuple(known[item] for item in items or () if item in known)


def _enum_of(name: str, item: Any, extra: dict[str, Any], key: str) -> Any:
    """A word of a newer version reads as the most careful one, and its own text is kept (TR-8)."""
    try:
        return _ENUMS[name](item)
    except ValueError:
        extra[key] = item
        return {"state": State.UNKNOWN, "effect_class": EffectClass.UNKNOWN}.get(name, EffectTrace.POSSIBLE)


def refusal(receipt: Receipt | None, kind: str, payload: Mapping[str, Any]) -> str | None:
    """Why the ledger refuses this entry for that receipt, or None when it is legal (TR-2, TR-37)."""
    if receipt is None:
        return None if kind == Kind.DISPATCHED else "attempt_unknown"
    if kind == Kind.DISPATCHED:
        return "attempt_exists"
    if "state" in receipt.extra:
        return "newer_state"  # TR-8: nothing of such a receipt is rewritten
    target = _target(kind, payload)
    if target is not None:
        return None if target in LEGAL[receipt.state] else f"illegal_{receipt.state}_{target}"
    if kind in (Kind.RESOLVED, Kind.LATE) and receipt.state is not State.UNKNOWN:
        return f"illegal_{receipt.state}_{kind}"
    if kind == Kind.INSPECTED and receipt.state is not State.UNKNOWN:
        return f"illegal_{receipt.state}_{kind}"
    if kind == Kind.RESOLVED:
        return _resolution_refusal(receipt, payload)
    return None


def _target(kind: str, payload: Mapping[str, Any]) -> State | None:
    if kind == Kind.NOT_STARTED:
        return State.NOT_STARTED
    if kind == Kind.STARTED:
        return State.STARTED
    if kind == Kind.CLOSED:
        try:
            return State(payload.get("state", ""))
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
    if entry.kind == Kind.NOT_STARTED:
        return _merged(receipt, payload, state=State.NOT_STARTED, finished_at=entry.at_ms)
    if entry.kind == Kind.STARTED:
        return _merged(receipt, payload, state=State.STARTED, started_position=entry.position, epoch=entry.epoch)
    if entry.kind == Kind.CLOSED:
        return _merged(receipt, payload)
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


def _merged(receipt: Receipt, payload: Mapping[str, Any], **fixed: Any) -> Receipt:
    """Lay the fields of `payload` over the receipt; a state this version does not know reads as unknown."""
    change = receipt_from_json({**_IDENTITY, **payload})
    known = {_BY_KEY[key] for key in payload if key in _BY_KEY} - {"attempt_id", "session_id"}
    fields = {name: getattr(change, name) for name in known}
    notes = receipt.notes + tuple(note for note in change.notes if note not in receipt.notes)
    return dataclasses.replace(
        receipt, **{**fields, **fixed, "notes": notes, "extra": {**receipt.extra, **change.extra}}
    )


_IDENTITY = {"sessionId": "", "turnId": "", "callId": "", "attemptId": "", "position": 0}


def _with_process(receipt: Receipt, payload: Mapping[str, Any]) -> Receipt:
    process = {**(receipt.process or {}), **(payload.get("process") or {})}
    executor = payload.get("executor", receipt.executor)
    return dataclasses.replace(receipt, process=process, executor=executor)


def _with_late(receipt: Receipt, payload: Mapping[str, Any]) -> Receipt:
    """A late result is evidence; one from the attempt's own executor settles it (TR-43)."""
    kept = {key: payload[key] for key in sorted(payload) if key != "attemptId"}
    evidence = _laid(dataclasses.replace(receipt, late=(*receipt.late, kept)), Overlay.LATE)
    if not payload.get("settles"):
        return evidence
    names = ("result", "resultRef", "resultDigest", "errorKind", "effectTrace")
    given = {name: payload.get(name) for name in names}
    return _merged(evidence, {"state": payload["state"], **given, "finishedAt": payload.get("at")})


def _laid(receipt: Receipt, overlay: Overlay) -> Receipt:
    if overlay in receipt.overlays:
        return receipt
    return dataclasses.replace(receipt, overlays=(*receipt.overlays, overlay))


class Book:
    """All receipts of one session, folded entry by entry; every step costs the same at any size.

    Not thread-safe: one owner folds it. Keeps what the barrier and the snapshot ask
    for at once: attempts by call, children by parent, and the open ones.
    """

    def __init__(self, receipts: Iterable[Receipt] = ()) -> None:
        self._by_attempt: dict[str, Receipt] = {}
        self._by_call: dict[str, list[str]] = {}
        self._children: dict[str, list[str]] = {}
        self._open: dict[str, None] = {}
        self._unsettled: dict[str, None] = {}
        for receipt in receipts:
            self._put(receipt)

    def __len__(self) -> int:
        return len(self._by_attempt)

    def __iter__(self) -> Iterator[Receipt]:
        return iter(list(self._by_attempt.values()))

    def get(self, attempt_id: str) -> Receipt | None:
        """The receipt of an attempt, or None."""
        return self._by_attempt.get(attempt_id)

    def attempts(self, call_id: str) -> list[Receipt]:
        """The receipts of a call, oldest first."""
        return [self._by_attempt[attempt] for attempt in self._by_call.get(call_id, ())]

    def children(self, attempt_id: str) -> list[Receipt]:
        """The receipts of calls nested in an attempt."""
        return [self._by_attempt[child] for child in self._children.get(attempt_id, ())]

    def open(self) -> list[Receipt]:
        """Every open attempt (TR-42), reads included, oldest first."""
        return [self._by_attempt[attempt] for attempt in self._open]

    def unsettled(self) -> list[Receipt]:
        """Every attempt still `dispatched` or `started`."""
        return [self._by_attempt[attempt] for attempt in self._unsettled]

    def is_open(self, attempt_id: str) -> bool:
        """Whether this attempt is open (TR-42)."""
        return attempt_id in self._open

    def refusal(self, kind: str, payload: Mapping[str, Any]) -> str | None:
        """Why an entry may not be appended now, or None."""
        if kind == Kind.ASSISTANT:
            repeated = any(call["attemptId"] in self._by_attempt for call in payload.get("calls") or ())
            return "attempt_exists" if repeated else None
        if not kind.startswith("attempt."):
            return None
        found = refusal(self.get(payload.get("attemptId", "")), kind, payload)
        if found is None and kind == Kind.STARTED and payload.get("supersedes"):
            old = self.get(payload["supersedes"])
            if old is None or old.state is not State.UNKNOWN:
                return "nothing_to_supersede"
        return found

    def apply(self, entry: Entry) -> None:
        """Fold one appended entry. Entries that concern no attempt change nothing."""
        payload = entry.payload
        if entry.kind == Kind.ASSISTANT:
            for call in payload.get("calls") or ():
                self._put(dispatched(entry.session_id, payload.get("turnId", ""), call, entry))
        elif entry.kind == Kind.DISPATCHED:
            self._put(dispatched(entry.session_id, payload.get("turnId", ""), payload, entry))
        elif "attemptId" in payload:
            receipt = self.get(payload["attemptId"])
            if receipt is None:
                return  # a kind of a newer version, or an attempt of another session
            self._put(advance(receipt, entry))
            if entry.kind == Kind.STARTED and payload.get("supersedes"):
                self._supersede(payload["supersedes"], receipt.attempt_id)

    def _supersede(self, old_id: str, new_id: str) -> None:
        old = self.get(old_id)
        if old is not None:
            self._put(dataclasses.replace(_laid(old, Overlay.SUPERSEDED), superseded_by=new_id))

    def _put(self, receipt: Receipt) -> None:
        attempt = receipt.attempt_id
        if attempt not in self._by_attempt:
            self._by_call.setdefault(receipt.call_id, []).append(attempt)
            if receipt.parent_attempt_id:
                self._children.setdefault(receipt.parent_attempt_id, []).append(attempt)
        self._by_attempt[attempt] = receipt
        _mark(self._unsettled, attempt, receipt.state in (State.DISPATCHED, State.STARTED))
        # An attempt's openness may change that of the attempt it superseded and of its parent.
        for affected in (attempt, receipt.supersedes, receipt.parent_attempt_id):
            if affected and affected in self._by_attempt:
                _mark(self._open, affected, self._judge_open(self._by_attempt[affected]))

    def _judge_open(self, receipt: Receipt) -> bool:
        if receipt.state is not State.UNKNOWN or _CLOSING & set(receipt.overlays):
            return False
        if receipt.reason == "child_open":
            return any(self.is_open(child.attempt_id) for child in self.children(receipt.attempt_id))
        if receipt.superseded_by:
            return self._open_beside(receipt, self.get(receipt.superseded_by))
        return True

    def _open_beside(self, receipt: Receipt, successor: Receipt | None) -> bool:
        """TR-42: which of two attempts at one call stands for it."""
        if receipt.effect_class is EffectClass.READ_ONLY or successor is None:
            return False
        if (receipt.inspection or {}).get("state") == "absent_fenced":
            return False
        if successor.state in (State.SUCCEEDED, State.STARTED, State.UNKNOWN):
            return False  # done, or the successor stands for both
        return True  # it ended otherwise and left the old uncertainty as it was


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
    "advance",
    "camel",
    "dispatched",
    "receipt_from_json",
    "refusal",
    "settles",
]
