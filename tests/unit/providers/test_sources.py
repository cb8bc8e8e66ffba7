"""Native search: which source is usable, what proves that a search ended, and what is shown of it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from surefoot.providers.sources import is_usable, searches

NONE = ({"sources": [], "sources_status": "not_provided"},)


@pytest.mark.parametrize(
    ("url", "usable"),
    [
        ("https://example.invalid/a?b=c#d", True),
        ("http://192.0.2.1:8080/", True),
        ("https://[2001:db8::1]/x", True),
        ("ftp://example.invalid/a", False),
        ("https://", False),
        ("https:///path", False),
        ("https://user@example.invalid/", False),
        ("https://user:word@example.invalid/", False),
        ("https://@example.invalid/", False),
        ("https://[broken", False),
        ("https://example.invalid:99999/", False),
        ("javascript:alert(1)", False),
        ("//example.invalid/a", False),
        ("https://example.invalid/a b", False),
        ("", False),
        (None, False),
        (7, False),
    ],
)
def test_pr_73_a_usable_source_has_a_web_url_with_a_host_and_no_user(url: object, usable: bool) -> None:
    assert is_usable(url) is usable


def claude(content: Any) -> dict[str, Any]:
    return {"content": [{"type": "web_search_tool_result", "tool_use_id": "x", "content": content}]}


def responses(status: str, action: Any = None, text: Any = None) -> dict[str, Any]:
    message = {
        "type": "message",
        "content": [{"type": "output_text", "text": "see https://example.invalid/", **(text or {})}],
    }
    return {"output": [{"type": "web_search_call", "status": status, "action": action}, message]}


def test_pr_73_one_usable_source_is_enough() -> None:
    found = [
        {"type": "web_search_result", "url": url, "title": "T"}
        for url in ("ftp://x", "https://example.invalid/1")
    ]
    (form,) = searches("anthropic", claude(found))
    assert form == {
        "sources": [{"url": "https://example.invalid/1", "title": "T"}],
        "sources_status": "available",
    }


def test_pr_74_not_provided_needs_the_proof_that_the_search_ended() -> None:
    assert searches("anthropic", claude([])) == NONE
    assert searches("anthropic", claude([{"url": "file:///etc/passwd"}])) == NONE
    assert (
        searches("anthropic", claude({"type": "web_search_tool_result_error", "error_code": "unavailable"}))
        == ()
    )
    asked = {"type": "server_tool_use", "name": "web_search", "id": "x", "input": {}}
    assert searches("anthropic", {"content": [asked]}) == ()
    assert searches("responses", responses("completed")) == NONE
    for status in ("in_progress", "searching", "failed", ""):
        assert searches("responses", responses(status)) == ()
    assert searches("chat", responses("completed")) == ()


def test_pr_75_links_in_the_words_are_no_sources_and_citations_given_as_data_are() -> None:
    assert searches("responses", responses("completed", {"type": "search", "sources": []})) == NONE
    cited = {"annotations": [{"type": "url_citation", "url": "https://example.invalid/2", "title": "Two"}]}
    (form,) = searches("responses", responses("completed", None, cited))
    assert form["sources_status"] == "available" and form["sources"][0]["title"] == "Two"


def test_pr_76_what_is_shown_is_made_beside_the_raw_items_and_changes_none_of_them() -> None:
    raw = responses("completed", {"sources": [{"type": "url", "url": "https://example.invalid/3"}]})
    before = copy.deepcopy(raw)
    assert searches("responses", raw)[0]["sources"] == [{"url": "https://example.invalid/3", "title": ""}]
    assert raw == before


@pytest.mark.parametrize("odd", [None, 7, "x", [], [None, 7], [{"type": "web_search_tool_result"}], {}])
def test_pr_74_odd_items_prove_nothing(odd: Any) -> None:
    assert searches("anthropic", {"content": odd}) == ()
    assert searches("responses", {"output": odd}) == ()
