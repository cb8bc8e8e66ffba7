"""Pure. Receipts as they are stored and found: read from JSON, kept by attempt, laid away as rows.

Owns: reading a receipt from its JSON names (TR-8), and the shelf on which the receipts of a
session lie. Does not own: how entries change them, which are open (`lifecycle`), where
rows are kept (`ledger`).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self

from surefoot.core.model import EffectClass, EffectTrace, Overlay, Receipt, State, receipt_fields

_ENUMS: Mapping[str, type[Any]] = {
    "state": State,
    "effect_class": EffectClass,
    "effect_trace": EffectTrace,
}
_WORDS = {name: {word.value: word for word in words} for name, words in _ENUMS.items()}
_CAREFUL = {
    "state": State.UNKNOWN,
    "effect_class": EffectClass.UNKNOWN,
    "effect_trace": EffectTrace.POSSIBLE,
}
_TUPLES = frozenset({"reach", "late", "write_intents", "overlays", "notes"})
_NEEDED = object()
_BLANK = [
    _NEEDED if field.default is dataclasses.MISSING else field.default
    for field in dataclasses.fields(Receipt)
]
"""The values of a receipt nothing is known of, by place."""
PLACE = {field.name: place for place, field in enumerate(dataclasses.fields(Receipt))}
"""Where each field of a receipt stands among its values."""
values_of = operator.attrgetter(*PLACE)
_SHAPED = {key: name for name, key in receipt_fields() if name in _TUPLES or name in _ENUMS}
_PLAIN = {key: PLACE[name] for name, key in receipt_fields() if key not in _SHAPED}
"""The fields that are kept as they are read, which most are."""
_EXTRA = PLACE["extra"]
_ALWAYS = [name for name, place in PLACE.items() if _BLANK[place] is _NEEDED and place != _EXTRA]


def receipt_from_json(value: Mapping[str, Any]) -> Receipt:
    """Read a receipt from its JSON names; unknown fields go to `extra`, unknown states read as unknown."""
    values = _BLANK.copy()
    values[_EXTRA] = lay_over(values, value)
    missing = [name for name in _ALWAYS if values[PLACE[name]] is _NEEDED]
    if missing:
        raise TypeError(f"a receipt without {', '.join(missing)}")
    return receipt_by_place(values)


def lay_over(values: list[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Lay fields, by their JSON names, over the values of a receipt; gives those this version does not know."""
    extra: dict[str, Any] = {}
    for key, item in given.items():
        place = _PLAIN.get(key)
        if place is not None:
            values[place] = item
            continue
        name = _SHAPED.get(key)
        if name is None:
            extra[key] = item
        elif name in _TUPLES:
            values[PLACE[name]] = _tuple_of(name, item, extra, key)
        else:
            values[PLACE[name]] = None if item is None else _enum_of(name, item, extra, key)
    return extra


def receipt_by_place(values: Iterable[Any]) -> Receipt:
    """The receipt with these values, one for each field in order of definition.

    Every result waits for it, and a frozen dataclass sets its fields one by one past its own guard, which takes
    five times as long. So a twin that guards nothing is filled, and becomes the receipt.
    """
    made: Any = _twin()(*values)
    made.__class__ = Receipt
    receipt: Receipt = made
    return receipt


@functools.cache
def _twin() -> type[Any]:
    return dataclasses.make_dataclass("_Twin", PLACE, slots=True, eq=False, repr=False, match_args=False)


def _tuple_of(name: str, items: Any, extra: dict[str, Any], key: str) -> tuple[Any, ...]:
    if name != "overlays":
        return tuple(items or ())
    known = {overlay.value: overlay for overlay in Overlay}
    if any(item not in known for item in items or ()):
        extra[key] = items
    return tuple(known[item] for item in items or () if item in known)


def _enum_of(name: str, item: Any, extra: dict[str, Any], key: str) -> Any:
    """A word of a newer version reads as the most careful one, and its own text is kept (TR-8)."""
    word = _WORDS[name].get(item) if isinstance(item, str) else None
    if word is not None:
        return word
    extra[key] = item
    return _CAREFUL[name]


Shelved = tuple[str, str, "str | None", str]
"""A stored receipt: attempt, call, parent attempt, and the receipt as JSON text."""


class Unread(Protocol):
    """A receipt that nobody has asked for yet, in the form it is stored in. Reading it changes nothing."""

    def receipt(self) -> Receipt:
        """The receipt; the same at each reading."""
        ...

    def mentions(self, word: str) -> bool:
        """Whether `word` stands in its stored form."""
        ...


class _Text:
    """A receipt as the text of its row."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def receipt(self) -> Receipt:
        return receipt_from_json(json.loads(self._text))

    def mentions(self, word: str) -> bool:
        return word in self._text


_PLACEHOLDER = Receipt("", "", "", "", 0)


@dataclasses.dataclass(frozen=True, slots=True)
class Whole:
    """What is known of a session of which only some rows are at hand, and how the rest is had."""

    ids: Sequence[str]
    """Every attempt of the session, in order of appearance."""
    calls: int
    """How many calls it has."""
    rest: Callable[[], Shelf]
    """The whole shelf as of the same entry, for when somebody asks for what is not at hand."""


def needed(ids: Sequence[str], marks: Mapping[str, Any]) -> list[str] | None:
    """The attempts without which no shelf is begun, or None where the marks, of an older version, do not tell.

    What was ever open, what belongs to that, and whatever came after the oldest that is open: in place of the
    rest a settled session has only its ids.
    """
    if "kin" not in marks:
        return None
    living = {*marks["open"], *marks["unsettled"]}
    first = next((place for place, one in enumerate(ids) if one in living), len(ids))
    named = {*marks["resolved"], *marks["kin"], *living}
    return [one for one in ids[:first] if one in named] + list(ids[first:])


class _Receipts(dict[str, Receipt]):
    """Receipts by attempt. One that came from a ledger stays unread until somebody asks for it."""

    def __init__(self) -> None:
        super().__init__()
        self.unread: dict[str, Unread] = {}

    def lay(self, attempt: str, unread: Unread) -> None:
        """Add a receipt that is read when it is asked for."""
        self.unread[attempt] = unread
        super().__setitem__(attempt, _PLACEHOLDER)

    def __getitem__(self, attempt: str) -> Receipt:
        unread = self.unread.get(attempt)
        if unread is None:
            return super().__getitem__(attempt)
        # Stored before it is no longer unread, so that `peek` finds the one or the other in between.
        self[attempt] = receipt = unread.receipt()
        del self.unread[attempt]
        return receipt

    def take(self, attempt: str, other: _Receipts) -> None:
        """Take over what another has of this attempt, read or not."""
        super().__setitem__(attempt, dict.__getitem__(other, attempt))
        self.unread.pop(attempt, None)
        if attempt in other.unread:
            self.unread[attempt] = other.unread[attempt]

    def peek(self, attempt: str) -> Receipt:
        """Look without keeping what was read, as another thread must: the owner may store a newer one meanwhile."""
        unread = self.unread.get(attempt)
        return super().__getitem__(attempt) if unread is None else unread.receipt()

    def get(self, attempt: str, default: Any = None) -> Receipt | None:  # type: ignore[override]
        return self[attempt] if attempt in self.unread else super().get(attempt, default)

    def values(self) -> list[Receipt]:  # type: ignore[override]
        return [self[attempt] for attempt in self]


class Shelf:
    """The receipts of one session and the ways they are found: by attempt, by call, by parent, by age.

    Knows nothing of entries; can be laid away as rows and taken up again.
    """

    def __init__(self) -> None:
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.dropped = False
        """True when retention or a person dropped the session's payloads; these receipts are what was left."""
        self._by_attempt = _Receipts()
        self._rank: dict[str, int] = {}
        self._by_call: dict[str, list[str]] = {}
        self._children: dict[str, list[str]] = {}
        self._open: dict[str, None] = {}
        self._resolved: dict[str, None] = {}
        self._unsettled: dict[str, None] = {}
        self._overtaken: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._changed: dict[str, None] = {}
        self._again: dict[str, None] = {}
        self._more_calls = 0
        self.rest: Callable[[], Shelf] | None = None
        """What fetches everything that was laid away; None when nothing of it is missing here."""
        self._related: frozenset[str] = frozenset()
        self._gapless = 0

    @classmethod
    def shelved(
        cls, rows: Iterable[Shelved], marks: Mapping[str, Any], *, whole: Whole | None = None
    ) -> Self:
        """A shelf from rows in order of appearance and from `marks`; receipts are parsed when asked for.

        With `whole` these are some of its rows, at least those of `needed`; the rest is fetched once somebody asks
        for more than they say.
        """
        book = cls()
        for attempt, call, parent, text in rows:
            book._by_attempt.lay(attempt, _Text(text))
            book._index(attempt, call, parent)
        book._open = dict.fromkeys(marks["open"])
        book._unsettled = dict.fromkeys(marks["unsettled"])
        book._resolved = dict.fromkeys(marks["resolved"])
        book._overtaken = set(marks["overtaken"])
        book._counts = Counter(marks["counts"])
        book.dropped = bool(marks.get("dropped"))
        if whole is not None:
            book._leave_out(whole)
        return book

    def _leave_out(self, whole: Whole) -> None:
        """What is on the shelf is a part of `whole`."""
        at_hand, self._rank = self._rank, {attempt: place for place, attempt in enumerate(whole.ids)}
        self._more_calls = whole.calls - len(self._by_call)
        self.rest = whole.rest
        self._related = frozenset((*self._open, *self._unsettled, *self._resolved))
        self._gapless = len(whole.ids)
        while self._gapless and whole.ids[self._gapless - 1] in at_hand:
            self._gapless -= 1

    def _whole(self) -> None:
        """Fetch what is not at hand. What has been folded or read here stays as it is."""
        if self.rest is None:
            return
        whole, self.rest, self._more_calls = self.rest(), None, 0
        here, ranked = self._by_attempt, self._rank
        call_of = {one: call for call, attempts in self._by_call.items() for one in attempts}
        parent_of = {one: parent for parent, attempts in self._children.items() for one in attempts}
        self._by_attempt, self._rank = whole._by_attempt, whole._rank
        self._by_call, self._children, self._again = whole._by_call, whole._children, whole._again
        for attempt in ranked:
            if attempt in call_of and attempt not in self._rank:
                self._index(attempt, call_of[attempt], parent_of.get(attempt))
        for attempt in here:
            self._by_attempt.take(attempt, here)

    def rows(self, attempts: Iterable[str]) -> Iterator[Shelved]:
        """The rows `shelved` reads back. `extra` wins over the field a newer word was read into (TR-8).

        Safe in a thread, while the owner reads receipts and folds further ones.
        """
        self._whole()
        for attempt in attempts:
            receipt = self._by_attempt.peek(attempt)
            shown = {key: value for key, value in receipt.to_json().items() if value not in (None, [])}
            text = json.dumps({**shown, **receipt.extra}, default=dict)
            yield attempt, receipt.call_id, receipt.parent_attempt_id, text

    def marks(self) -> dict[str, Any]:
        """What the rows do not say, as JSON."""
        self._whole()
        ever = (*self._open, *self._unsettled, *self._resolved)
        kin = [one for call in self._again for one in self._by_call[call]]
        kin += [child for one in ever for child in self._children.get(one, ())]
        return {
            "open": list(self._open),
            "unsettled": list(self._unsettled),
            "resolved": list(self._resolved),
            "overtaken": sorted(self._overtaken),
            "counts": dict(self._counts),
            "kin": list(dict.fromkeys(kin)),
            **({"dropped": True} if self.dropped else {}),
        }

    def take_changed(self) -> list[str]:
        """The attempts whose receipt changed since this was asked last, new ones in order of appearance."""
        changed, self._changed = list(self._changed), {}
        return changed

    def put_back_changed(self, attempts: list[str]) -> None:
        """Take back `take_changed`, because what was made of it was not stored."""
        self._changed = {**dict.fromkeys(attempts), **self._changed}

    def call_count(self) -> int:
        """How many calls there are."""
        return len(self._by_call) + self._more_calls

    def __len__(self) -> int:
        return len(self._rank)

    def __iter__(self) -> Iterator[Receipt]:
        self._whole()
        return iter(list(self._by_attempt.values()))

    def get(self, attempt_id: str) -> Receipt | None:
        """The receipt of an attempt, or None."""
        found = self._by_attempt.get(attempt_id)
        if found is None and self.rest is not None and attempt_id in self._rank:
            self._whole()
            return self._by_attempt.get(attempt_id)
        return found

    def ids(self) -> list[str]:
        """The ids of all attempts, in order of appearance; parses none of them."""
        return list(self._rank)

    def mentioning(self, word: str) -> list[Receipt]:
        """The receipts in whose stored form `word` stands, and all that were parsed; parses no other."""
        self._whole()
        unread = self._by_attempt.unread
        return [
            self._by_attempt[one]
            for one in self._by_attempt
            if one not in unread or unread[one].mentions(word)
        ]

    def attempts(self, call_id: str) -> list[Receipt]:
        """The receipts of a call, oldest first."""
        self._meet(call_id)
        return [self._by_attempt[attempt] for attempt in self._by_call.get(call_id, ())]

    def _meet(self, call_id: str) -> None:
        """Have every attempt of a call at hand; of one that is known here, every one is."""
        if call_id not in self._by_call:
            self._whole()

    def children(self, attempt_id: str) -> list[Receipt]:
        """The receipts of calls nested in an attempt."""
        if attempt_id not in self._related:
            self._whole()
        return [self._by_attempt[child] for child in self._children.get(attempt_id, ())]

    def after(self, attempt_id: str) -> Iterator[Receipt]:
        """The attempts that appeared after this one, newest first; costs what came later, not the session."""
        if self._rank[attempt_id] + 1 < self._gapless:
            self._whole()
        later = len(self._rank) - self._rank[attempt_id] - 1
        return (self._by_attempt[one] for one in itertools.islice(reversed(self._rank), later))

    def _index(self, attempt: str, call: str, parent: str | None) -> None:
        self._rank[attempt] = len(self._rank)
        attempts = self._by_call.setdefault(call, [])
        attempts.append(attempt)
        if len(attempts) > 1:
            self._again[call] = None
        if parent:
            self._children.setdefault(parent, []).append(attempt)
