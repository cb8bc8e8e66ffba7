"""A book that leaves entries unread or rows unfetched until somebody asks is, at every moment, the whole book."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from surefoot.core.lifecycle import Book
from surefoot.core.model import Entry, Kind
from surefoot.core.shelf import Whole, needed
from surefoot.ledger.chain import payload_text
from surefoot.ledger.derived import Folded, Listed, Stored, fold, fold_stored, read_entry

SESSION = "ses_1"
ATTEMPTS = [f"att_{number}" for number in range(5)]
ATTEMPT = st.sampled_from(ATTEMPTS)
TRICKY = st.sampled_from(
    [
        "{}",
        '{"attemptId":"att_3"}',
        '"state":"unknown"',
        '","state":"unknown","x":"',
        "supersedes",
        "overlays",
        'ends in \\"',
        "lone \ud800, é, \u2028, \x1b[0m",
    ]
)
"""Words of a model that look like ours."""
WORD = st.sampled_from(["succeeded", "failed", "unknown", "started", "dispatched", "not_started", "newer"])
RAW = st.sampled_from([{}, {"calls": [{"attemptId": "att_9", "callId": "c"}]}, {"attemptId": "att_8"}])
SHAPES: dict[str, st.SearchStrategy[Any]] = {
    "tool": TRICKY,
    "class": st.sampled_from(["READ_ONLY", "NON_IDEMPOTENT", "UNKNOWN", "NEWER"]),
    "reach": st.sampled_from([["*"], ["state"], []]),
    "notes": st.sampled_from([["a"], ["overlays"], []]),
    "reason": st.sampled_from(["child_open", "owner_died", "fenced", None]),
    "effectTrace": st.sampled_from(["none", "done", "newer"]),
    "process": st.sampled_from([{"pid": 1}, {"attemptId": "att_2"}, {"left": True}]),
    "executor": st.sampled_from([{"state": "ended"}, {"state": "succeeded"}]),
    "argumentsDisplay": TRICKY,
    "overlays": st.sampled_from([["confirmed"], ["delivered"], ["newer"], []]),
    "supersedes": ATTEMPT,
    "supersededBy": ATTEMPT,
    "inspection": st.just({"state": "absent_fenced"}),
    "parentAttemptId": ATTEMPT | st.none(),
    "late": st.just([{"at": 1}]),
    "state": WORD,
    "new": RAW,
    "callId": st.just("cal_other"),
    "delivered": st.booleans(),
    "finishedAt": st.integers(0, 9),
    "startedAt": st.none() | st.integers(0, 9),
    "result": st.builds(lambda text: {"text": text, "isError": False}, TRICKY),
}


@st.composite
def extra(draw: st.DrawFn) -> dict[str, Any]:
    """Fields beside those an entry must have, of the shape they should have."""
    names = draw(st.lists(st.sampled_from(list(SHAPES)), max_size=4, unique=True))
    return {name: draw(SHAPES[name]) for name in names}


@st.composite
def call(draw: st.DrawFn) -> dict[str, Any]:
    attempt = draw(ATTEMPT)
    asked = {
        "callId": f"cal_{attempt[-1]}" if draw(st.booleans()) else "cal_shared",
        "attemptId": attempt,
        "position": draw(st.integers(0, 3)),
        "askedName": draw(TRICKY),
        "arguments": draw(TRICKY | st.none()),
        "providerCallId": draw(st.none() | st.just("p")),
    }
    return {**asked, **draw(extra())} if draw(st.integers(0, 3)) == 0 else asked


@st.composite
def about(draw: st.DrawFn, kind: str, must: st.SearchStrategy[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """An entry about one attempt: now as we write it, now with its keys in another order or more of them."""
    fixed = {"attemptId": draw(ATTEMPT), **draw(must)}
    if draw(st.booleans()):
        return kind, fixed
    payload = {**draw(extra()), **fixed}
    return kind, payload if draw(st.booleans()) else {**fixed, **payload}


NONE: st.SearchStrategy[dict[str, Any]] = st.just({})
ENDS = st.builds(lambda word: {"state": word, "reason": None}, WORD)
LEFT = st.builds(lambda one: {"sessionId": SESSION, "turnId": "t", **one}, call())
ENTRIES = st.one_of(
    st.builds(
        lambda calls, raw: (Kind.ASSISTANT, {"turnId": "t", "raw": raw, "calls": calls}),
        st.lists(call(), max_size=3),
        RAW,
    ),
    st.builds(lambda one: (Kind.DISPATCHED, {"turnId": "u", **one}), call()),
    about(Kind.STARTED, NONE),
    about(Kind.STARTED, NONE),
    about(Kind.CLOSED, ENDS),
    about(Kind.CLOSED, st.just({"state": "succeeded"})),
    about(Kind.PROCESS, st.builds(lambda pid: {"process": {"pid": pid}}, st.integers(0, 9))),
    about(Kind.APPROVAL, st.just({"verdict": "approved"})),
    about(Kind.NOT_STARTED, st.just({"reason": "fenced"})),
    about(Kind.LATE, st.builds(lambda word: {"settles": True, "state": word}, WORD)),
    about(Kind.INSPECTED, st.builds(lambda yes: {"inspection": {"state": "present"}, "proven": yes}, st.booleans())),
    about(Kind.RESOLVED, st.sampled_from([{"resolution": {"kind": kind}} for kind in ("denied", "rejected", "x")])),
    about(Kind.DELIVERED, NONE),
    about(Kind.QUESTION, st.just({"questionId": "q"})),
    st.builds(lambda off: (Kind.REWOUND, {"offBranch": off}), st.lists(ATTEMPT, max_size=2)),
    st.builds(lambda left: (Kind.SESSION_DROPPED, {"changedMs": 5, "receipts": left}), st.lists(LEFT, max_size=2)),
    st.builds(lambda name: (Kind.SESSION_NAMED, {"name": name}), TRICKY),
    st.builds(lambda text: (Kind.USER, {"turnId": "t", "text": text}), TRICKY),
    st.builds(lambda raw: ("kind.of.tomorrow", {"turnId": "t", **raw}), RAW),
)  # fmt: skip


def stored(written: list[tuple[str, dict[str, Any]]], gone: set[int]) -> list[Stored]:
    """Rows as a ledger holds them; of those in `gone` the payload was dropped."""
    rows: list[Stored] = []
    for place, (kind, payload) in enumerate(written, 1):
        text, raw = payload_text(payload)
        kept = None if place in gone else (text if place % 2 else raw)
        rows.append(((place, 1 + place // 7, 1000 + place, str(kind)), kept, b"\1" * 32))
    return rows


def state_of(folded: Folded) -> dict[str, Any]:
    """Everything a book knows without its receipts, and its line in the listing."""
    book = folded.book
    inside = {key: getattr(book, key) for key in ("_rank", "_by_call", "_children", "_overtaken", "_counts")}
    return {
        **inside,
        "marks": json.dumps(book.marks()),
        "changed": list(book._changed),
        "ids": book.ids(),
        "listed": dataclasses.asdict(folded.listed),
        "anew": folded.anew,
    }


def eager(rows: list[Stored]) -> Folded:
    entries: list[Entry] = [read_entry(SESSION, facts, payload, head) for facts, payload, head in rows]
    return fold(Folded(Book(), Listed()), entries)


BEGUN = (Kind.STARTED, {"attemptId": "att_0"})
PROCESS = (Kind.PROCESS, {"attemptId": "att_0", "process": {"pid": 1}})
ASKED = (
    Kind.ASSISTANT,
    {"turnId": "t", "calls": [{"callId": "c", "attemptId": "att_0", "position": 0, "askedName": "n"}]},
)


def closed(state: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return Kind.CLOSED, {"attemptId": "att_0", "state": state, **more}


@settings(max_examples=400, deadline=None)
@given(st.lists(ENTRIES, max_size=25), st.sets(st.integers(1, 25), max_size=2), st.integers(0, 25), st.data())
@example([ASKED, BEGUN, closed("succeeded", overlays=["confirmed"])], set(), 3, None)
@example([ASKED, BEGUN, closed("unknown"), closed("succeeded")], set(), 3, None)
@example([ASKED, BEGUN, closed("succeeded"), BEGUN], set(), 4, None)
@example([ASKED, (Kind.STARTED, {"attemptId": "att_0", "inspection": {}}), PROCESS], set(), 3, None)
@example([ASKED, BEGUN, (Kind.STARTED, {"attemptId": "att_0", "supersedes": "att_0"})], set(), 3, None)
def test_ux_138_a_book_read_late_is_the_book_read_at_once(
    written: list[tuple[str, dict[str, Any]]], gone: set[int], asked_at: int, data: Any
) -> None:
    rows = stored(written, gone)
    late = Folded(Book(), Listed())
    for place, row in enumerate(rows, 1):
        fold_stored(late, SESSION, [row])
        assert state_of(late) == state_of(eager(rows[:place]))
        if place == asked_at and data is not None and late.book.ids():
            one = data.draw(st.sampled_from(late.book.ids()))
            assert late.book.get(one) == eager(rows[:place]).book.get(one)
    whole = eager(rows).book
    assert list(late.book.rows(late.book.ids())) == list(whole.rows(whole.ids()))
    assert list(late.book) == list(whole)
    assert late.book.open() == whole.open()
    assert late.book.unsettled() == whole.unsettled()


QUESTIONS = ("get", "attempts", "children", "after", "mentioning", "is_open", "inspection_overtaken")


def answer(book: Book, question: str, attempt: str) -> Any:
    """What a book says to one question about an attempt it has."""
    if question == "attempts":
        receipt = book.get(attempt)
        return None if receipt is None else book.attempts(receipt.call_id)
    if question == "mentioning":
        return book.mentioning(attempt)
    return list(book.after(attempt)) if question == "after" else getattr(book, question)(attempt)


def told_of(book: Book) -> list[Any]:
    """What a list of calls is made of."""
    return [book.statistics(), book.open(), book.unsettled(), book.resolved(), book.ids(),
            len(book), book.call_count(), book.dropped]  # fmt: skip


def new_calls(place: int, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    """The calls of a message are new ones, whatever their attempts are called."""
    if kind != Kind.ASSISTANT:
        return payload
    calls = [{**one, "callId": f"cal_new_{place}_{number}"} for number, one in enumerate(payload["calls"])]
    return {**payload, "calls": calls}


def asked(*numbers: int, **more: Any) -> tuple[str, dict[str, Any]]:
    calls = [
        {"callId": f"c{n}", "attemptId": f"att_{n}", "position": 0, "askedName": "n", **more} for n in numbers
    ]
    return Kind.ASSISTANT, {"turnId": "t", "calls": calls}


def sent(call: str, attempt: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """A call that stands in no message: another attempt, or one from inside a call."""
    about = {"turnId": "t", "callId": call, "attemptId": attempt, "position": 0, "askedName": "n"}
    return Kind.DISPATCHED, {**about, **more}


def ends(state: str, *numbers: int) -> list[tuple[str, dict[str, Any]]]:
    return [(Kind.CLOSED, {"attemptId": f"att_{one}", "state": state}) for one in numbers]


AGAIN = sent("c0", "att_2")
INSIDE = sent("c3", "att_3", parentAttemptId="att_0")
DENIED = (Kind.RESOLVED, {"attemptId": "att_0", "resolution": {"kind": "denied"}})
OLD_PARENT = [asked(0), INSIDE, *ends("succeeded", 3, 0), asked(1)]
DENIED_PARENT = [asked(0), INSIDE, *ends("succeeded", 3), *ends("unknown", 0), DENIED, asked(1)]
DENIED_AND_AGAIN = [asked(0), *ends("unknown", 0), DENIED, AGAIN, *ends("succeeded", 2), asked(1)]
TWO_OLD = [asked(0, 2), *ends("succeeded", 0, 2), asked(1)]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(ENTRIES, max_size=25),
    st.integers(0, 25),
    st.lists(st.tuples(st.sampled_from(QUESTIONS), ATTEMPT), max_size=3),
)
@example([asked(0, 1), *ends("succeeded", 0), AGAIN], 2, [("attempts", "att_2")])
@example(OLD_PARENT, 5, [("children", "att_0")])
@example(DENIED_PARENT, 6, [("children", "att_0")])
@example(DENIED_AND_AGAIN, 6, [("attempts", "att_0")])
@example(TWO_OLD, 4, [("after", "att_0")])
@example([*TWO_OLD, asked(0)], 4, [])
@example([*TWO_OLD, (Kind.REWOUND, {"offBranch": ["att_0"]})], 4, [])
def test_ux_138_a_book_of_which_part_is_at_hand_says_what_the_whole_book_says(
    written: list[tuple[str, dict[str, Any]]], laid_at: int, questions: list[tuple[str, str]]
) -> None:
    later = [(kind, new_calls(place, kind, one)) for place, (kind, one) in enumerate(written[laid_at:])]
    rows = stored(written[:laid_at] + later, set())
    before = eager(rows[:laid_at]).book
    laid, marks = list(before.rows(before.ids())), json.loads(json.dumps(before.marks()))

    fetched: list[int] = []

    def rest() -> Book:
        fetched.append(1)
        return Book.shelved(laid, marks)

    wanted = needed(before.ids(), marks)
    assert wanted is not None
    whole = Folded(Book.shelved(laid, marks), Listed(), anew=False)
    at_hand = [row for row in laid if row[0] in wanted]
    left_out = Whole(before.ids(), whole.book.call_count(), rest)
    part = Folded(Book.shelved(at_hand, marks, whole=left_out), Listed(), anew=False)
    assert told_of(part.book) == told_of(whole.book)
    assert not fetched, "a list of calls is told from what is at hand"
    fold_stored(part, SESSION, rows[laid_at:])
    fold_stored(whole, SESSION, rows[laid_at:])
    assert told_of(part.book) == told_of(whole.book)
    for question, attempt in questions:
        if attempt in whole.book.ids():
            assert answer(part.book, question, attempt) == answer(whole.book, question, attempt)
    assert len(fetched) <= 1
    whole.book.mentioning("")
    part.book.mentioning("")
    assert state_of(part) == state_of(whole)
    assert list(part.book) == list(whole.book)
    assert list(part.book.rows(part.book.ids())) == list(whole.book.rows(whole.book.ids()))
