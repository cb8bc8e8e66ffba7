"""Entries for tests of the core, written as short as a story."""

from __future__ import annotations

from typing import Any

import pytest

from surefoot.core.lifecycle import Book
from surefoot.core.model import Entry, Kind


class Story:
    """Writes entries of one session in order and folds them."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.book = Book()

    def add(self, kind: str, **payload: Any) -> Entry:
        position = len(self.entries) + 1
        entry = Entry("ses_1", position, 1, 1000 * position, str(kind), payload)
        self.entries.append(entry)
        self.book.apply(entry)
        return entry

    def ask(self, *attempts: str, **more: Any) -> Story:
        calls = [
            {"callId": f"cal_{a}", "attemptId": a, "position": i, "askedName": "push", "arguments": "{}"}
            for i, a in enumerate(attempts)
        ]
        self.add(Kind.ASSISTANT, turnId="trn_1", calls=calls, text="", wire="chat", raw={}, **more)
        return self

    def again(self, attempt: str, call: str, parent: str | None = None) -> Story:
        self.add(Kind.DISPATCHED, attemptId=attempt, callId=call, turnId="trn_1", parentAttemptId=parent)
        return self

    def start(self, attempt: str, effect_class: str = "NON_IDEMPOTENT", **more: Any) -> Story:
        given = {"reach": ["*"], "tool": "push", "argumentDigest": "d", **more}
        self.add(Kind.STARTED, attemptId=attempt, **{"class": effect_class}, **given)
        return self

    def close(self, attempt: str, state: str = "unknown", **more: Any) -> Story:
        if state == "unknown":
            more.setdefault("reason", "owner_died")
        self.add(Kind.CLOSED, attemptId=attempt, state=state, **more)
        return self

    def unknown(self, attempt: str, effect_class: str = "NON_IDEMPOTENT", **more: Any) -> Story:
        return self.ask(attempt).start(attempt, effect_class, **more).close(attempt)

    def retry(self, attempt: str, old: str, effect_class: str = "NON_IDEMPOTENT") -> Story:
        old_call = self.book.get(old)
        assert old_call is not None
        return self.again(attempt, old_call.call_id).start(attempt, effect_class, supersedes=old)

    def resolve(self, attempt: str, kind: str) -> Story:
        self.add(Kind.RESOLVED, attemptId=attempt, resolution={"kind": kind})
        return self

    def inspect(self, attempt: str, state: str, grade: str = "none", proven: bool = False) -> Story:
        inspection = {"id": f"ins_{len(self.entries)}", "state": state, "grade": grade, "summary": "seen"}
        self.add(Kind.INSPECTED, attemptId=attempt, inspection=inspection, proven=proven)
        return self

    def late(self, attempt: str, state: str, settles: bool = True, **more: Any) -> Story:
        self.add(Kind.LATE, attemptId=attempt, state=state, settles=settles, **more)
        return self

    def refold(self) -> Book:
        book = Book()
        for entry in self.entries:
            book.apply(entry)
        return book

    def open(self) -> list[str]:
        return [receipt.attempt_id for receipt in self.book.open()]


@pytest.fixture
def tell() -> type[Story]:
    """`tell()` begins a story: entries of one session, folded as they are written."""
    return Story
