"""Incidents as rows of a history: how one is read from entries, and which display update may change it."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Sequence
from typing import Any

import pytest

from surefoot.core.history import History
from surefoot.core.incident import (
    STATES,
    IncidentRow,
    anchor,
    authored,
    evidence,
    fingerprint,
    row_of,
    rows_of,
    updated_row,
)
from surefoot.core.lifecycle import Book
from surefoot.core.model import Entry, Kind

SESSION = "ses_01hf7z0000000000000000000a"
FIRST = IncidentRow(SESSION, "inc_a", "replay_ids", "pending", 7, 7)


def entry(position: int, of: str = Kind.INCIDENT, **changed: Any) -> Entry:
    record = {"version": 1, "id": "inc_a", "state": "pending", "kind": "replay_ids", **changed}
    return Entry(SESSION, position, 1, 0, of, {"record": json.dumps(record)})


@pytest.mark.parametrize(("before", "after"), list(itertools.product(STATES, STATES)))
def test_pr_65_only_pending_becomes_consumed_or_expired(before: str, after: str) -> None:
    row = dataclasses.replace(FIRST, state=before)
    news = dataclasses.replace(FIRST, state=after, position=9)
    moved = updated_row(row, news)
    if (before, after) in (("pending", "consumed"), ("pending", "expired")):
        assert (moved.state, moved.position, moved.first) == (after, 9, 7)
    else:
        assert moved is row


@pytest.mark.parametrize("position", [0, 6, 7])
def test_pr_65_an_older_position_changes_nothing(position: int) -> None:
    assert updated_row(FIRST, dataclasses.replace(FIRST, state="consumed", position=position)) is FIRST


@pytest.mark.parametrize("other", [{"incident_id": "inc_b"}, {"session_id": "ses_other"}])
def test_pr_65_another_id_or_a_late_answer_of_another_session_changes_nothing(other: dict[str, str]) -> None:
    assert updated_row(FIRST, dataclasses.replace(FIRST, state="consumed", position=9, **other)) is FIRST


def test_pr_83_an_incident_is_one_row_with_id_and_kind_where_it_began() -> None:
    rows = rows_of(
        [
            entry(3, Kind.USER),
            entry(4),
            entry(5, id="inc_b", kind=None, state="consumed"),
            entry(6, state="expired"),
        ]
    )
    assert {at: (row.incident_id, row.kind, row.state) for at, row in rows.items()} == {
        4: ("inc_a", "replay_ids", "expired"),
        5: ("inc_b", "", "consumed"),
    }


def said(position: int, text: str) -> Entry:
    return Entry(SESSION, position, 1, 0, Kind.USER, {"turnId": f"trn_{position}", "text": text})


def offered(position: int, entries: Sequence[Entry], **changed: Any) -> Entry:
    """A pending record of what these entries hold."""
    history, book = History(), Book()
    for one in entries:
        book.apply(one)
        history.apply(one)
    view = history.messages(book)
    made_of = {
        "scope": "here",
        "fingerprint": fingerprint(view),
        "count": len(authored(view)),
        "prefix": len(view),
    }
    return entry(position, **made_of, anchor=anchor(view[-1]), evidence=evidence(view, book), **changed)


def test_pr_25_pr_83_a_record_the_session_went_on_from_is_not_actionable() -> None:
    began = [said(3, "go")]
    pending = [*began, offered(4, began)]
    (row,) = rows_of(pending).values()
    assert (row.state, row.moved, row.actionable) == ("pending", False, True)
    reply = {"turnId": "trn_3", "text": "done", "calls": [], "wire": "chat", "raw": {}, "seenPosition": 4}
    for later in (said(5, "more"), Entry(SESSION, 5, 1, 0, Kind.ASSISTANT, reply)):
        (row,) = rows_of([*pending, later]).values()
        assert (row.state, row.moved, row.actionable) == ("pending", True, False)
    host = Entry(SESSION, 5, 1, 0, Kind.HOST, {"turnId": "trn_5", "text": "go on"})
    assert [row.actionable for row in rows_of([*pending, host]).values()] == [True]


def test_pr_25_pr_29_changed_settings_make_a_listed_record_not_actionable() -> None:
    began = [said(3, "go")]
    pending = [*began, offered(4, began)]
    for scope, actionable in (("here", True), ("elsewhere", False), (None, True)):
        assert [row.actionable for row in rows_of(pending, lambda _, now=scope: now).values()] == [actionable]


def test_pr_29_only_the_newest_record_is_actionable() -> None:
    began = [said(3, "go")]
    rows = rows_of([*began, offered(4, began), offered(5, began, id="inc_b")])
    assert {row.incident_id: row.actionable for row in rows.values()} == {"inc_a": False, "inc_b": True}


@pytest.mark.parametrize("odd", [{"version": 9}, {"version": True}, {"id": ""}, {"state": "later"}])
def test_pr_83_pr_23_a_record_that_cannot_be_judged_is_no_row(odd: dict[str, Any]) -> None:
    assert row_of(entry(4, **odd)) is None
    assert row_of(Entry(SESSION, 4, 1, 0, Kind.INCIDENT, {"record": "{"})) is None
