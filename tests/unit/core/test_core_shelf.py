"""The shelf on which receipts lie: read when asked for, and looked at by another thread without a trace."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from surefoot.core import shelf
from surefoot.core.lifecycle import Book
from surefoot.core.model import Entry, Kind, Receipt, State

WAIT_SECONDS = 30


def begun() -> Book:
    """A book taken up from rows, with one call that has begun."""
    book = Book()
    calls = [{"callId": "cal_1", "attemptId": "att_1", "position": 0}]
    book.apply(Entry("ses_1", 1, 1, 1000, Kind.ASSISTANT, {"turnId": "trn_1", "calls": calls}))
    book.apply(Entry("ses_1", 2, 1, 1001, Kind.STARTED, {"attemptId": "att_1", "tool": "push"}))
    return Book.shelved(list(book.rows(["att_1"])), book.marks())


def unread() -> Book:
    """The same book, folded from entries of which none was read further than needed."""
    book = Book()
    calls = [{"callId": "cal_1", "attemptId": "att_1", "position": 0}]
    book.apply_later(Entry("ses_1", 1, 1, 1000, Kind.ASSISTANT, {"turnId": "trn_1", "calls": calls}))
    assert book.apply_unread("ses_1", (2, 1, 1001, Kind.STARTED), '{"attemptId":"att_1","tool":"push"}')
    return book


@pytest.mark.promise("receipt:exact")
@pytest.mark.parametrize("made", [begun, unread])
def test_tr_22_a_thread_that_makes_rows_never_puts_an_older_receipt_over_a_newer_one(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread reads the stored receipt; before it is done, the owner folds the end of the call."""
    book, ended = made(), threading.Event()
    reading = threading.Event()
    plain = shelf.receipt_from_json

    def slowly(value: Mapping[str, Any]) -> Receipt:
        found = plain(value)
        if threading.current_thread() is not threading.main_thread():
            reading.set()
            assert ended.wait(WAIT_SECONDS)
        return found

    monkeypatch.setattr(shelf, "receipt_from_json", slowly)
    monkeypatch.setattr("surefoot.core.lifecycle.receipt_from_json", slowly)
    rows: list[Any] = []
    thread = threading.Thread(target=lambda: rows.extend(book.rows(["att_1"])))
    thread.start()
    try:
        assert reading.wait(WAIT_SECONDS)
        book.apply(Entry("ses_1", 3, 1, 1002, Kind.CLOSED, {"attemptId": "att_1", "state": "succeeded"}))
    finally:
        ended.set()
        thread.join(WAIT_SECONDS)
    found = book.get("att_1")
    assert found is not None
    assert (found.state, found.tool, found.finished_at) == (State.SUCCEEDED, "push", 1002)
    assert len(rows) == 1
    assert '"state": "started"' in rows[0][3]


@pytest.mark.parametrize("made", [begun, unread])
def test_tr_22_what_is_looked_at_for_a_row_stays_unread(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    book, read = made(), []
    plain = shelf.receipt_from_json

    def counted(value: Mapping[str, Any]) -> Receipt:
        read.append(1)
        return plain(value)

    monkeypatch.setattr(shelf, "receipt_from_json", counted)
    monkeypatch.setattr("surefoot.core.lifecycle.receipt_from_json", counted)
    assert list(book.rows(["att_1"])) == list(book.rows(["att_1"]))
    assert len(read) == 2
    assert book.get("att_1") is book.get("att_1")
    assert len(read) == 3


@pytest.mark.parametrize("made", [begun, unread])
def test_a_word_of_an_unread_receipt_is_found_where_it_is_stored(made: Any) -> None:
    assert made().mentioning('"tool"') == [made().get("att_1")]
    assert made().mentioning('"cal_1"') == [made().get("att_1")]
    assert made().mentioning('"background"') == []
