"""The conversation: valid order, answers shown once, later changes as news."""

from __future__ import annotations

from typing import Any

import pytest

from surefoot.core.history import AssistantWords, History, ResultGiven, UserWords
from surefoot.core.model import Kind


def fold(story: Any) -> History:
    history = History()
    for entry in story.entries:
        history.apply(entry)
    return history


def texts(story: Any) -> list[str]:
    return [type(one).__name__[0] + ":" + one.text for one in fold(story).messages(story.book)]


def words(story: Any, text: str, facts: str | None = None) -> Any:
    story.add(Kind.USER, turnId="trn_1", text=text, facts=facts)
    return story


def well(story: Any, attempt: str, text: str) -> Any:
    story.start(attempt).close(attempt, "succeeded", result={"text": text, "isError": False})
    return story


def test_tr_63_each_assistant_message_is_followed_by_all_its_results_by_position(tell: Any) -> None:
    story = words(tell(), "do it").ask("a", "b", "c")
    well(story, "c", "third")
    well(story, "a", "first")
    words(story, "meanwhile")
    well(story, "b", "second")
    assert texts(story) == ["U:do it", "A:", "R:first", "R:second", "R:third", "U:meanwhile"]


def test_tr_63_calls_in_any_stored_order_are_answered_by_position(tell: Any) -> None:
    story = tell()
    calls = [{"callId": f"c{i}", "attemptId": f"a{i}", "position": i, "askedName": "t"} for i in (2, 0, 1)]
    story.add(Kind.ASSISTANT, turnId="t", calls=calls, text="", wire="chat", raw={})
    shown = fold(story).messages(story.book)
    assert [one.call.position for one in shown if isinstance(one, ResultGiven)] == [0, 1, 2]


def test_messages_carry_what_the_wire_needs(tell: Any) -> None:
    story = words(tell(), "hi", "F").ask("a")
    user, assistant, result = fold(story).messages(story.book)
    assert user == UserWords("trn_1", "hi", "F")
    assert isinstance(assistant, AssistantWords) and assistant.entry_position == 2
    assert isinstance(result, ResultGiven) and result.call is assistant.calls[0]


def test_tr_63_a_call_not_yet_shown_is_answered_by_what_is_known_at_the_first_projection(tell: Any) -> None:
    story = tell().unknown("a")
    assert "end is not known" in texts(story)[1]
    story.late("a", "succeeded", result={"text": "it went well", "isError": False})
    assert texts(story)[1] == "R:it went well"


@pytest.mark.promise("projection:prefix-stable")
def test_tr_63_an_answer_once_shown_never_changes_and_the_change_is_news(tell: Any) -> None:
    story = tell().unknown("a").ask("b")
    before = texts(story)
    story.late("a", "succeeded", result={"text": "it went well", "isError": False})
    assert texts(story)[:2] == before[:2]
    history = fold(story)
    assert [one.attempt_id for one in history.news(story.book)] == ["a"]


def test_tr_58_news_is_told_once(tell: Any) -> None:
    story = tell().unknown("a").ask("b").resolve("a", "confirmed")
    assert [one.attempt_id for one in fold(story).news(story.book)] == ["a"]
    words(story, "go on")
    assert [one.attempt_id for one in fold(story).news(story.book)] == ["a"], (
        "words without facts tell nothing"
    )
    words(story, "go on", "facts")
    assert fold(story).news(story.book) == []
    story.late("a", "failed")
    assert [one.attempt_id for one in fold(story).news(story.book)] == ["a"], "again when it changed"


def test_tr_63_what_came_between_request_and_reply_is_news_and_not_the_answer(tell: Any) -> None:
    story = tell().unknown("a")
    seen = len(story.entries)
    live = texts(story)[1]
    story.late("a", "succeeded", result={"text": "it went well", "isError": False})
    story.ask("b", seenPosition=seen)
    assert texts(story)[1] == live, "the request was built before the result came"
    assert [one.attempt_id for one in fold(story).news(story.book)] == ["a"]


def test_tr_63_a_restart_gives_the_same_messages(tell: Any) -> None:
    story = words(tell(), "x")
    live = History()
    told = 0

    def catch_up() -> list[Any]:
        nonlocal told
        for entry in story.entries[told:]:
            live.apply(entry)
        told = len(story.entries)
        return live.messages(story.book)

    catch_up()
    for step in (
        lambda: story.unknown("a"),
        lambda: story.ask("b"),
        lambda: story.late("a", "failed", result={"text": "no", "isError": True}),
        lambda: well(story, "b", "ok"),
        lambda: words(story, "and", "facts"),
        lambda: story.ask("c", "d"),
    ):
        step()
        assert catch_up() == fold(story).messages(story.book)


def test_tr_138_a_retry_in_another_call_is_told_as_a_fact_with_the_old_one(tell: Any) -> None:
    story = tell().unknown("a").ask("b").again("a2", "cal_new").start("a2", supersedes="a")
    assert [one.attempt_id for one in fold(story).news(story.book)] == ["a", "a2"]


def test_tr_117_a_retry_of_the_same_call_takes_its_place_in_history(tell: Any) -> None:
    story = tell().unknown("a", "IDEMPOTENT_WRITE").retry("a2", "a", "IDEMPOTENT_WRITE")
    story.close("a2", "succeeded", result={"text": "again, well", "isError": False})
    assert texts(story) == ["A:", "R:again, well"]


def test_nested_calls_are_no_part_of_the_conversation(tell: Any) -> None:
    story = tell().ask("p").start("p").again("c", "cal_c", "p")
    well(story, "c", "inner")
    story.close("p", "succeeded", result={"text": "outer", "isError": False})
    assert texts(story) == ["A:", "R:outer"]
    assert fold(story).news(story.book) == []


def test_tr_6_an_answer_from_a_blob_is_asked_for_and_filled_in(tell: Any) -> None:
    story = tell().ask("a").start("a")
    story.close("a", "succeeded", resultRef="sha256:1").ask("b").start("b")
    story.close("b", "succeeded", resultRef="sha256:2")
    history = fold(story)
    assert history.stored_refs(story.book) == {"sha256:1", "sha256:2"}
    history.stored.update({"sha256:1": "one", "sha256:2": "two"})
    results = [one.text for one in history.messages(story.book) if isinstance(one, ResultGiven)]
    assert results == ["one", "two"] and history.stored_refs(story.book) == set()


def test_entries_of_other_kinds_change_nothing(tell: Any) -> None:
    story = words(tell(), "x")
    before = texts(story)
    story.add(Kind.NOTICE, code="n")
    story.add("attempt.levitated", attemptId="nobody")
    assert texts(story) == before


def test_reading_messages_changes_nothing(tell: Any) -> None:
    story = tell().unknown("a")
    history = fold(story)
    assert history.messages(story.book) == history.messages(story.book)


def test_tr_55_facts_of_two_interruptions_are_handed_on_together_until_they_are_told(tell: Any) -> None:
    story = words(tell().unknown("a"), "x")
    story.add(Kind.HAND_OFF, attempts=["a"])
    story.add(Kind.HAND_OFF, attempts=["a", "b"], silent=True)
    history = fold(story)
    assert (history.handed, history.silent) == (["a", "b"], True)
    words(story, "no facts")
    assert fold(story).handed == ["a", "b"]
    words(story, "go on", "facts")
    assert (fold(story).handed, fold(story).silent) == ([], False)
