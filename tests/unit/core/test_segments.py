"""Where a history may be divided: between tool segments and nowhere else."""

from __future__ import annotations

import random
from typing import Any

import pytest

from surefoot.core.history import AssistantWords, CallAsked, History, Message, ResultGiven, UserWords
from surefoot.core.lifecycle import Book
from surefoot.core.model import Entry, Kind
from surefoot.core.rewriting import cut
from surefoot.providers.repairs import REMOVE_SEGMENT, repaired


def history(dice: random.Random) -> list[Message]:
    """Turns with batches of one to three calls, each with its results."""
    made: list[Message] = []
    for turn in range(dice.randint(1, 4)):
        made.append(UserWords(f"t{turn}", f"question {turn}"))
        for step in range(dice.randint(1, 3)):
            name = f"{turn}{step}"
            calls = tuple(
                CallAsked(f"cal_{name}{n}", f"att_{name}{n}", n, "look", "{}", f"id_{name}{n}")
                for n in range(dice.randint(0, 3))
            )
            text = dice.choice(["", "words"]) if calls else "answer"
            made.append(AssistantWords(len(made), text, calls, "chat", {}))
            made += [ResultGiven(call, "ok", False) for call in calls]
    return made


def whole(messages: list[Message]) -> bool:
    """Whether every call stands with its results and every result with its call."""
    asked = [call.call_id for one in messages if isinstance(one, AssistantWords) for call in one.calls]
    given = [one.call.call_id for one in messages if isinstance(one, ResultGiven)]
    return sorted(asked) == sorted(given)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("mid_turn", [False, True])
def test_pr_52_a_compaction_cuts_between_segments(seed: int, mid_turn: bool) -> None:
    messages = history(random.Random(seed))
    made = cut(messages, Book(), mid_turn=mid_turn)
    if made is None:
        return
    kept = messages[len(made.dropped) :]
    assert whole(list(made.dropped)) and whole(kept)


@pytest.mark.parametrize("seed", range(40))
def test_pr_52_a_repair_takes_a_segment_whole(seed: int) -> None:
    dice = random.Random(seed)
    messages = history(dice)
    places = [n for n, one in enumerate(messages) if isinstance(one, AssistantWords) and one.calls]
    for place in places:
        shown = repaired(messages, [(REMOVE_SEGMENT, place)])
        gone = {call.call_id for call in getattr(messages[place], "calls", ())}
        assert whole(shown)
        assert not any(isinstance(one, ResultGiven) and one.call.call_id in gone for one in shown)


def entry(position: int, kind: str, **payload: Any) -> Entry:
    return Entry("ses_a", position, 1, 0, kind, payload)


def test_pr_52_after_a_compaction_no_result_is_made_for_a_call_that_is_gone() -> None:
    told, book = History(), Book()
    calls = [{"callId": "cal_a", "attemptId": "att_a", "position": 0, "askedName": "look", "arguments": "{}"}]
    rows = [
        entry(1, Kind.USER, turnId="t1", text="go"),
        entry(2, Kind.ASSISTANT, turnId="t1", text="", calls=calls, seenPosition=1),
        entry(3, Kind.COMPACTED, notes="Notes.", prompt=None, requests=[], keepsLast=False, pinned=[]),
    ]
    for row in rows:
        told.apply(row)
        book.apply(row)
    late = entry(4, Kind.NOT_STARTED, attemptId="att_a", reason="stopped")
    told.apply(late)
    book.apply(late)
    told.apply(entry(5, Kind.USER, turnId="t2", text="and now?"))
    shown = told.messages(book)
    assert [type(one) for one in shown] == [UserWords, UserWords]
