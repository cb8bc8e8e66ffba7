"""Laws of the core that must hold for all inputs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.core.canonical import ArgumentsInvalid, canonical_json, make_id, read_arguments, short_id
from surefoot.core.effects import Effect, overlaps, retry_safe, stricter, union
from surefoot.core.handoff import escaped
from surefoot.core.history import AssistantWords, History, ResultGiven
from surefoot.core.lifecycle import Book, receipt_from_json
from surefoot.core.model import EffectClass, Entry, Kind, Receipt, State
from surefoot.core.recovery import fence_reach, fencing
from surefoot.core.redact import redact, redact_text
from surefoot.core.results import result_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | TEXT
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=5)


# --- the canonical form ----------------------------------------------------------------------


@given(OBJECTS)
def test_tr_12_the_canonical_form_reads_back_and_is_its_own_canonical_form(value: dict[str, Any]) -> None:
    form = canonical_json(value)
    assert json.loads(form) == value
    assert read_arguments(form).canonical == form


@given(OBJECTS, st.booleans(), st.sampled_from([None, 0, 2]), st.randoms())
def test_tr_13_how_a_text_is_written_does_not_change_its_digest(
    value: dict[str, Any], ascii_only: bool, indent: int | None, chance: Any
) -> None:
    keys = list(value)
    chance.shuffle(keys)
    text = json.dumps({key: value[key] for key in keys}, ensure_ascii=ascii_only, indent=indent)
    assert read_arguments(text).digest == read_arguments(canonical_json(value)).digest


@given(OBJECTS, OBJECTS)
def test_tr_13_different_objects_have_different_digests(one: dict[str, Any], other: dict[str, Any]) -> None:
    same = canonical_json(one) == canonical_json(other)
    assert (
        read_arguments(canonical_json(one)).digest == read_arguments(canonical_json(other)).digest
    ) is same


@given(st.text(max_size=40) | st.binary(max_size=40))
def test_tr_10_any_text_is_read_or_refused_and_nothing_else_happens(text: str | bytes) -> None:
    try:
        assert isinstance(read_arguments(text).value, dict)
    except ArgumentsInvalid:
        pass


@given(
    st.integers(0, 2**48 - 1), st.integers(0, 2**80 - 1), st.integers(0, 2**48 - 1), st.integers(0, 2**80 - 1)
)
def test_tr_1_ids_sort_by_time_and_then_by_entropy(at: int, chance: int, later: int, other: int) -> None:
    one, two = make_id("att", at, chance), make_id("att", later, other)
    assert (one < two) is ((at, chance) < (later, other))


@given(st.lists(st.integers(0, 2**12), min_size=1, max_size=8, unique=True))
def test_a_short_id_names_exactly_one_of_those_it_was_made_among(numbers: list[int]) -> None:
    ids = [make_id("att", 5, number << 8 | 7) for number in numbers]
    for full in ids:
        tail = short_id(full, ids).removeprefix("att_")
        assert [one for one in ids if one.endswith(tail)] == [full]


# --- reach -----------------------------------------------------------------------------------

SEGMENTS = st.lists(st.sampled_from(["a", "A", "b", "c.d"]), max_size=3)
HOSTS = st.sampled_from(["h.example", "api.h.example", "example", "xh.example", "[::1]"])
PORTS = st.sampled_from(["", ":80", ":443"])
MEMBERS = st.one_of(
    st.just("*"),
    SEGMENTS.map(lambda parts: "path:/" + "/".join(parts)),
    SEGMENTS.map(lambda parts: "repo:/" + "/".join(parts)),
    st.tuples(HOSTS, PORTS).map(lambda pair: f"host:{pair[0]}{pair[1]}"),
    st.tuples(HOSTS, st.sampled_from(["o/n", "o/m", "O/n.git"])).map(
        lambda pair: f"repo:{pair[0]}/{pair[1]}"
    ),
    st.tuples(HOSTS, PORTS, SEGMENTS).map(lambda it: f"db:{it[0]}{it[1]}/" + "/".join(it[2])),
    SEGMENTS.map(lambda parts: "db:file:/" + "/".join(parts)),
    st.sampled_from(["mcp:a", "mcp:b", "app:x", "path:relative", "odd", "path:/a/../b", "", "host:"]),
)
REACHES = st.lists(MEMBERS, min_size=1, max_size=3)


@settings(max_examples=1200)
@given(REACHES, REACHES)
def test_ec_12_overlap_is_symmetric_and_reflexive(one: list[str], other: list[str]) -> None:
    assert overlaps(one, other) is overlaps(other, one)
    assert overlaps(one, one)


@given(REACHES, REACHES, MEMBERS)
def test_ec_12_a_wider_reach_overlaps_no_less(one: list[str], other: list[str], more: str) -> None:
    if overlaps(one, other):
        assert overlaps([*one, more], other)
    assert overlaps([*one, "*"], other)


EFFECTS = st.builds(
    Effect, st.sampled_from(list(EffectClass)), REACHES.map(lambda it: tuple(sorted(set(it)))), st.booleans()
)


@given(EFFECTS, EFFECTS, REACHES)
def test_ec_7_ec_9_neither_union_nor_the_stricter_of_two_loosens_either(
    one: Effect, other: Effect, reach: list[str]
) -> None:
    for both in (union([one, other]), stricter(one, other)):
        assert both.effect_class.strictness == max(one.effect_class.strictness, other.effect_class.strictness)
        assert retry_safe(both) is (retry_safe(one) and retry_safe(other))
        for part in (one, other):
            if overlaps(part.reach, reach):
                assert overlaps(both.reach, reach)


# --- the fold --------------------------------------------------------------------------------

CLASSES = [word.value for word in EffectClass]


def stories(limit: int = 40) -> st.SearchStrategy[list[tuple[int, int, int]]]:
    """Choices from which a legal session is written: what, about which attempt, in which way."""
    return st.lists(st.tuples(st.integers(0, 11), st.integers(0, 7), st.integers(0, 7)), max_size=limit)


def written(choices: list[tuple[int, int, int]]) -> list[Entry]:
    """A session of legal entries: each is taken only when the book does not refuse it."""
    book, entries, attempts = Book(), [], []

    def add(kind: str, payload: dict[str, Any]) -> None:
        if book.refusal(kind, payload) is None:
            entries.append(Entry("ses", len(entries) + 1, 1, 1000 + len(entries), str(kind), payload))
            book.apply(entries[-1])

    for what, which, way in choices:
        number = len(attempts)
        target = attempts[which % number] if number else "none"
        receipt = book.get(target)
        if what <= 1 or receipt is None:
            names = [f"a{number + i}" for i in range(1 + way % 3)]
            calls = [{"callId": f"c_{one}", "attemptId": one, "position": i} for i, one in enumerate(names)]
            add(Kind.ASSISTANT, {"turnId": "t", "calls": calls, "wire": "chat", "raw": {}, "text": ""})
            attempts += names
        elif what == 2:  # another attempt of the same call, or a nested call
            nested = way % 2 == 0
            call = f"c_n{number}" if nested else receipt.call_id
            parent = target if nested else None
            payload = {"attemptId": f"a{number}", "callId": call, "turnId": "t", "parentAttemptId": parent}
            add(Kind.DISPATCHED, payload)
            attempts.append(f"a{number}")
        elif what <= 4:
            begun: dict[str, Any] = {
                "attemptId": target,
                "class": CLASSES[way % 4],
                "reach": ["*"],
                "tool": "t",
            }
            if way > 3 and number > 1:
                begun["supersedes"] = attempts[(which + way) % number]
            add(Kind.STARTED, begun)
        elif what <= 7:
            state = ["unknown", "unknown", "unknown", "succeeded", "failed", "failed", "unknown", "unknown"][
                way
            ]
            reason = {0: "child_open", 1: "owner_died"}.get(way % 2) if state == "unknown" else None
            add(Kind.CLOSED, {"attemptId": target, "state": state, "reason": reason})
        elif what == 8:
            kind = ["confirmed", "denied", "rejected", "released"][way % 4]
            add(Kind.RESOLVED, {"attemptId": target, "resolution": {"kind": kind}})
        elif what == 9:
            state = ["absent_fenced", "present", "unknown", "present"][way % 4]
            look = {"id": f"i{len(entries)}", "state": state, "grade": "proof"}
            add(Kind.INSPECTED, {"attemptId": target, "inspection": look, "proven": way == 1})
        elif what == 10:
            state = ["succeeded", "failed", "unknown"][way % 3]
            add(Kind.LATE, {"attemptId": target, "state": state, "settles": way % 2 == 0})
        else:
            add(
                Kind.NOT_STARTED,
                {"attemptId": target, "reason": "fenced" if way % 2 else "permission_denied"},
            )
    return entries


def folded(entries: list[Entry]) -> Book:
    book = Book()
    for entry in entries:
        book.apply(entry)
    return book


def open_by_hand(receipts: dict[str, Receipt], attempt: str) -> bool:
    """TR-42, read off the receipts with no index and no memory."""
    one = receipts[attempt]
    closing = {"proven", "confirmed", "denied", "released"}
    if one.state is not State.UNKNOWN or closing & {overlay.value for overlay in one.overlays}:
        return False
    if one.superseded_by is not None:
        if (
            one.effect_class is EffectClass.READ_ONLY
            or (one.inspection or {}).get("state") == "absent_fenced"
        ):
            return False
        return receipts[one.superseded_by].state in (State.FAILED, State.NOT_STARTED, State.DISPATCHED)
    if one.reason == "child_open":
        return any(
            open_by_hand(receipts, key) for key, it in receipts.items() if it.parent_attempt_id == attempt
        )
    return True


@settings(max_examples=250)
@given(stories())
def test_tr_42_the_open_ones_equal_what_a_reader_finds_by_hand_after_every_entry(
    choices: list[tuple[int, int, int]],
) -> None:
    book = Book()
    for entry in written(choices):
        book.apply(entry)
        receipts = {one.attempt_id: one for one in book}
        wanted = [key for key in receipts if open_by_hand(receipts, key)]
        assert [one.attempt_id for one in book.open()] == wanted
        unsettled = [key for key, it in receipts.items() if it.state in (State.DISPATCHED, State.STARTED)]
        assert sorted(one.attempt_id for one in book.unsettled()) == sorted(unsettled)
        assert not {one.attempt_id for one in book.resolved()} & set(wanted)


@given(stories())
def test_tr_158_the_counts_equal_a_recount(choices: list[tuple[int, int, int]]) -> None:
    book = folded(written(choices))
    names = {"retried": "superseded", "blocked": None, "unknown": None}
    for name, count in book.statistics().items():
        overlay = names.get(name, name)
        if overlay is not None:
            assert count == sum(overlay in [it.value for it in one.overlays] for one in book)
    assert book.statistics()["unknown"] == len(book.open())
    assert book.statistics()["blocked"] == sum(one.reason == "fenced" for one in book)


@given(stories())
def test_folding_again_gives_the_same_book(choices: list[tuple[int, int, int]]) -> None:
    entries = written(choices)
    one, other = folded(entries), folded(entries)
    assert list(one) == list(other)
    assert [it.attempt_id for it in one.open()] == [it.attempt_id for it in other.open()]
    assert [it.attempt_id for it in one.resolved()] == [it.attempt_id for it in other.resolved()]


@given(stories())
def test_tr_8_a_receipt_reads_back_from_its_json(choices: list[tuple[int, int, int]]) -> None:
    for receipt in folded(written(choices)):
        assert receipt_from_json(json.loads(json.dumps(receipt.to_json()))) == receipt


@given(stories())
def test_a_book_made_of_receipts_agrees_with_the_one_that_was_folded(
    choices: list[tuple[int, int, int]],
) -> None:
    book = folded(written(choices))
    again = Book(list(book))
    assert [one.attempt_id for one in again.open()] == [one.attempt_id for one in book.open()]
    assert again.statistics() == book.statistics()


@pytest.mark.promise("recovery:never-guess")
@given(stories())
def test_recovery_never_guess_no_entry_about_one_attempt_changes_another_ones_state(
    choices: list[tuple[int, int, int]],
) -> None:
    book = Book()
    for entry in written(choices):
        before = {one.attempt_id: one for one in book}
        book.apply(entry)
        touched = {entry.payload.get("attemptId")} | {
            c["attemptId"] for c in entry.payload.get("calls") or ()
        }
        for key, old in before.items():
            new = book.get(key)
            assert new is not None
            if key not in touched:
                assert new.state is old.state and new.result == old.result


@given(stories())
def test_tr_79_the_fence_is_open_writes_and_nothing_else(choices: list[tuple[int, int, int]]) -> None:
    book = folded(written(choices))
    writes = [one for one in book.open() if one.effect_class is not EffectClass.READ_ONLY]
    assert fencing(book.open()) == writes
    assert bool(fence_reach(book.open())) is bool(writes)


# --- what the model is told ------------------------------------------------------------------


@given(stories())
def test_tr_44_every_call_of_every_story_has_a_result(choices: list[tuple[int, int, int]]) -> None:
    book = folded(written(choices))
    for receipt in book:
        attempts = book.attempts(receipt.call_id)
        assert result_of(receipt, attempts).text
        if any(one.state is State.SUCCEEDED for one in attempts):
            assert not result_of(receipt, attempts).is_error


@given(stories())
def test_tr_63_messages_are_always_in_a_valid_order_and_shown_answers_never_change(
    choices: list[tuple[int, int, int]],
) -> None:
    history, book, shown = History(), Book(), []
    for entry in written(choices):
        book.apply(entry)
        history.apply(entry)
        messages = history.messages(book)
        if entry.kind == Kind.ASSISTANT:
            settled = len(messages) - 1 - len(entry.payload["calls"])
            assert messages[: len(shown)] == shown[: len(messages)]
            shown = messages[:settled]
        assert messages[: len(shown)] == shown
        expected: list[Any] = []
        for message in messages:
            if isinstance(message, AssistantWords):
                assert not expected
                expected = list(message.calls)
            elif isinstance(message, ResultGiven):
                assert message.call == expected.pop(0)
        assert not expected


@given(st.text(max_size=60))
def test_tr_61_escaped_values_read_back_and_hold_nothing_that_closes_a_frame(text: str) -> None:
    assert json.loads(escaped([text])) == [text]
    assert not set("<>&\u2028\u2029") & set(escaped([text]))


@given(OBJECTS)
def test_tr_5_redaction_is_stable_and_total(value: dict[str, Any]) -> None:
    assert redact(value) == redact(json.dumps(value))
    text = json.dumps(value, ensure_ascii=False)
    assert redact_text(redact_text(text)) == redact_text(text)


@pytest.mark.parametrize("size", [10, 1000])
def test_the_fold_does_the_same_work_at_any_size(size: int) -> None:
    """Counted in judgements of openness, not in time: one entry must not look at the whole session."""
    judged = 0

    class Counting(Book):
        def _is_open(self, receipt: Receipt) -> bool:
            nonlocal judged
            judged += 1
            return super()._is_open(receipt)

    book = Counting()
    position = 0
    for number in range(size):
        for kind, payload in (
            (Kind.ASSISTANT, {"calls": [{"callId": f"c{number}", "attemptId": f"a{number}"}]}),
            (Kind.STARTED, {"attemptId": f"a{number}", "class": "UNKNOWN", "reach": ["*"]}),
            (Kind.CLOSED, {"attemptId": f"a{number}", "state": "unknown", "reason": "owner_died"}),
        ):
            position += 1
            book.apply(Entry("ses", position, 1, position, str(kind), payload))
    assert judged == 3 * size


@given(stories(), stories(20))
def test_a_book_laid_away_as_rows_and_taken_up_again_goes_on_the_same(
    choices: list[tuple[int, int, int]], more: list[tuple[int, int, int]]
) -> None:
    entries = written(choices + more)
    cut = len(written(choices))
    book = folded(entries[:cut])
    rows = json.loads(json.dumps(list(book.rows([one.attempt_id for one in book]))))
    again = Book.shelved([tuple(row) for row in rows], json.loads(json.dumps(book.marks())))
    for entry in entries[cut:]:
        assert again.refusal(entry.kind, entry.payload) == book.refusal(entry.kind, entry.payload)
        book.apply(entry)
        again.apply(entry)
    assert list(again) == list(book)
    assert [one.attempt_id for one in again.open()] == [one.attempt_id for one in book.open()]
    assert [one.attempt_id for one in again.resolved()] == [one.attempt_id for one in book.resolved()]
    assert again.statistics() == book.statistics()
