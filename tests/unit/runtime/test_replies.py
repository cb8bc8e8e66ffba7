"""Replies as entries: what is noted at receipt stands beside the raw message, and a person is told once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from surefoot.providers.port import Reply
from surefoot.runtime.replies import Asked, empty_end, is_empty, notices_of, reply_draft
from surefoot.surfaces import notices
from surefoot.surfaces.words import LANGUAGES

PLAIN = Reply(text="Done.", calls=(), finish="stop", raw={"role": "assistant", "content": "Done."})
ASKED = Asked("trn_1", "chat", 4)
NO_SOURCES = {"sources": [], "sources_status": "not_provided"}


def test_pr_93_a_plain_reply_is_stored_as_before() -> None:
    assert not {"notes", "searches"} & set(reply_draft(PLAIN, [], ASKED).payload)
    assert notices_of(PLAIN) == []


def test_case_s26_what_was_found_at_receipt_is_stored_with_the_reply_and_told() -> None:
    noted = replace(PLAIN, notes=("unreplayable_reasoning",))
    payload = reply_draft(noted, [], ASKED).payload
    assert payload["notes"] == ["unreplayable_reasoning"] and payload["raw"] == PLAIN.raw
    (told,) = notices_of(noted)
    assert all(notices.line(told.kind, told.facts, language) for language in LANGUAGES)


def test_pr_75_ux_130_a_search_without_sources_is_told_once_and_the_summary_stays() -> None:
    found = replace(PLAIN, searches=(NO_SOURCES, NO_SOURCES))
    payload = reply_draft(found, [], ASKED).payload
    assert payload["searches"] == [NO_SOURCES, NO_SOURCES] and payload["text"] == "Done."
    (told,) = notices_of(found)
    assert told.facts == NO_SOURCES
    lines = [notices.line(told.kind, told.facts, language) for language in LANGUAGES]
    assert lines[0] == "The search finished; the provider gave no usable sources." and len(set(lines)) == 3
    given = {"sources": [{"url": "https://example.invalid/", "title": ""}], "sources_status": "available"}
    assert notices_of(replace(PLAIN, searches=(given,))) == []


def test_pr_98_case_s28_kinds_nobody_asked_for_are_told_in_one_notice() -> None:
    reply = replace(PLAIN, hosted=("search", "code", "other"), enabled=("search",))
    (told,) = notices_of(reply)
    assert told.facts == {"kinds": ["code", "other"]}
    assert "code, other" in str(notices.line(told.kind, told.facts, "en"))


@pytest.mark.parametrize(("notes", "why"), [((), None), (("only_reasoning_at_limit",), "output_limit")])
def test_case_s24_a_reply_cut_inside_its_reasoning_wants_a_larger_limit_not_another_try(
    notes: tuple[str, ...], why: str | None
) -> None:
    assert empty_end(replace(PLAIN, text="", notes=notes)) == why


def test_pr_98_an_empty_reply_to_a_request_with_hosted_tools_is_not_asked_for_again() -> None:
    assert empty_end(replace(PLAIN, text="", enabled=("search", "code"))) == "empty_reply"
    assert empty_end(replace(PLAIN, text="", enabled=("search",))) is None


def test_case_s28_what_a_hosted_tool_left_is_recorded_also_without_words() -> None:
    assert is_empty(replace(PLAIN, text=" "))
    assert not is_empty(replace(PLAIN, text="", hosted=("code",)))
