"""The recovery window: what is answered from a receipt, how often, and until which write (PR-59)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from surefoot.core.canonical import read_arguments
from surefoot.core.effects import Effect
from surefoot.core.history import AssistantWords, CallAsked, Message, ResultGiven, UserWords
from surefoot.core.lifecycle import Book
from surefoot.core.model import EffectClass, Entry, Kind
from surefoot.core.restated import STORED_NOTE
from surefoot.runtime.live import Call, Looked
from surefoot.runtime.window import Window
from surefoot.testing.world import CountingWorld

WORLD = CountingWorld()


class Story:
    """A book grown entry by entry, and the model view that goes with it."""

    def __init__(self) -> None:
        self.book = Book()
        self.messages: list[Message] = []
        self._position = 0

    def say(self, text: str) -> None:
        self.messages.append(UserWords("t1", text))

    def _apply(self, kind: str, payload: dict[str, Any]) -> None:
        self._position += 1
        self.book.apply(Entry("ses", self._position, 1, 0, kind, payload))

    def call(
        self, number: int, tool: str, state: str, *, reach: tuple[str, ...] = ("path:/a",), label: str = "a"
    ) -> None:
        text = json.dumps({"label": label})
        effect = EffectClass.READ_ONLY if tool == "look" else EffectClass.NON_IDEMPOTENT
        row = {
            "callId": f"cal_{number}",
            "attemptId": f"att_{number}",
            "position": 0,
            "askedName": tool,
            "arguments": text,
        }
        self._apply(Kind.ASSISTANT, {"turnId": "t1", "calls": [row]})
        start = {"attemptId": f"att_{number}", "tool": tool, "class": effect.value, "reach": list(reach)}
        self._apply(Kind.STARTED, {**start, "argumentDigest": read_arguments(text).digest})
        result = {"text": f"result {number}", "isError": False}
        self._apply(Kind.CLOSED, {"attemptId": f"att_{number}", "state": state, "result": result})
        asked = CallAsked(f"cal_{number}", f"att_{number}", 0, tool, text, None)
        self.messages += [
            AssistantWords(number, "", (asked,), "chat", {}),
            ResultGiven(asked, f"result {number}", False),
        ]


def looked(tool: str, attempt: str = "att_new", label: str = "a") -> Looked:
    text = json.dumps({"label": label})
    effect = EffectClass.READ_ONLY if tool == "look" else EffectClass.NON_IDEMPOTENT
    call = Call("t2", "cal_new", attempt, tool, text)
    return Looked(call, WORLD.tool(tool, effect), read_arguments(text), Effect(effect, ("path:/a",)), text)


def test_pr_59_a_read_is_answered_once_and_then_takes_the_ordinary_door() -> None:
    story = Story()
    story.say("go")
    story.call(1, "look", "succeeded")
    window = Window.over(story.messages, story.book)
    first = window.answer(looked("look"), story.book)
    assert first is not None and (first.code, first.text) == (
        "answered_from_receipt",
        f"{STORED_NOTE}\nresult 1",
    )
    assert window.answer(looked("look"), story.book) is first  # one attempt is one answer
    assert window.answer(looked("look", "att_more"), story.book) is None


def test_pr_59_a_write_is_answered_for_the_whole_window() -> None:
    story = Story()
    story.say("go")
    story.call(1, "pay", "succeeded")
    window = Window.over(story.messages, story.book)
    assert all(window.answer(looked("pay", f"att_{n}"), story.book) for n in range(10, 14))


@pytest.mark.parametrize("state", ["failed", "unknown"])
def test_pr_59_failed_and_unknown_calls_are_never_answered(state: str) -> None:
    story = Story()
    story.say("go")
    story.call(1, "pay", state)
    assert Window.over(story.messages, story.book).answer(looked("pay"), story.book) is None


def test_pr_59_calls_of_earlier_turns_and_other_arguments_are_never_answered() -> None:
    story = Story()
    story.say("go")
    story.call(1, "look", "succeeded")
    story.say("next")
    story.call(2, "look", "succeeded", label="b")
    window = Window.over(story.messages, story.book)
    assert window.answer(looked("look", label="a"), story.book) is None
    assert window.answer(looked("look", label="b"), story.book) is not None


@pytest.mark.parametrize(
    ("reach", "answered"), [(("path:/a",), False), (("*",), False), (("path:/b",), True)]
)
def test_pr_59_an_overlapping_write_since_ends_the_answer(reach: tuple[str, ...], answered: bool) -> None:
    story = Story()
    story.say("go")
    story.call(1, "look", "succeeded")
    window = Window.over(story.messages, story.book)
    story.call(2, "pay", "unknown", reach=reach)
    assert (window.answer(looked("look"), story.book) is not None) is answered
