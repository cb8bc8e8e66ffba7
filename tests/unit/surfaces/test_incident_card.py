"""The protocol card and the words of refusals: three languages, no provider's words, commands told from guidance."""

from __future__ import annotations

from typing import Any

import pytest

from surefoot.core import incident
from surefoot.surfaces import incident_card
from surefoot.surfaces.chat_lines import typed
from surefoot.surfaces.cli.recovering import parted
from surefoot.surfaces.words import LANGUAGES, in_language
from surefoot.surfaces.words_incident import KINDS, LINES, NOT_OFFERED, OUTCOMES, WAYS

CARD: dict[str, Any] = {
    "incident_id": "inc_1", "kind": "upstream_reason_missing", "status": 400, "trace_id": "req_1", "state": "pending",
    "scope": "5b1e", "offered": True, "reason_not_offered": None, "changes": {"R14": 2, "R11": 1}, "done_calls": 2,
    "open_calls": 1, "ways": [way.value for way in incident.Ways], "rules": ["DS-05"], "body": "secret sentence",
}  # fmt: skip
BLAME = ("reasoning", "thinking", "overflow", "context", "too long", "tool")


@pytest.mark.parametrize(
    "table", [KINDS, NOT_OFFERED, WAYS, OUTCOMES, LINES], ids=["kinds", "reasons", "ways", "ends", "lines"]
)
def test_pr_17_every_text_exists_in_three_languages(table: Any) -> None:
    for key, texts in table.items():
        assert len(texts) == len(LANGUAGES) and all(text.strip() for text in texts), key


def test_pr_17_every_kind_and_reason_has_words() -> None:
    assert set(KINDS) >= {*incident.REPLAY_KINDS, *incident.WORDLESS_KINDS}
    assert {reason for _, reason in incident.OFFER} | {"storage_failed"} <= set(NOT_OFFERED)
    assert {way.value for way in incident.Ways} == set(WAYS)


@pytest.mark.parametrize("language", LANGUAGES)
def test_ux_124_pr_17_an_offered_card_tells_the_refusal_the_change_and_the_ways(language: str) -> None:
    text = "\n".join(incident_card.lines(CARD, language))
    assert "400" in text and "req_1" in text and "DS-05" in text and "/recover-context" in text
    assert "secret sentence" not in text


def test_pr_17_pr_18_a_wordless_refusal_names_no_suspected_cause() -> None:
    for key in ("upstream_reason_missing", "upstream_reason_unrecognised"):
        assert not any(word in KINDS[key][0].casefold() for word in BLAME)
    assert "gave no reason" in KINDS["upstream_reason_missing"][0]


@pytest.mark.parametrize("reason", sorted(NOT_OFFERED))
def test_ux_125_a_card_without_an_offer_says_why_and_what_else(reason: str) -> None:
    shown = incident_card.lines({**CARD, "offered": False, "reason_not_offered": reason}, "en")
    assert NOT_OFFERED[reason][0] in shown and shown[-1].startswith("What else can be done:")
    assert not any("/recover-context" in line for line in shown)


def test_pr_45_ux_125_a_spent_card_tells_its_request_and_at_least_two_ways() -> None:
    shown = incident_card.lines({**CARD, "offered": False, "state": "consumed", "outcome": "refused"}, "en")
    assert any("refused again" in line for line in shown) and shown[-1].count(",") >= 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_pr_35_pr_45_a_reply_that_was_asked_for_again_is_not_told_as_a_refusal(language: str) -> None:
    spent = {**CARD, "kind": None, "status": None, "trace_id": None, "rules": [], "offered": False}
    card = {**spent, "state": "consumed", "origin": "regeneration", "outcome": "recovered"}
    shown = incident_card.lines(card, language)
    assert shown[0] == in_language(LINES["regeneration"], language)
    assert in_language(OUTCOMES["recovered"], language) in "\n".join(shown)
    refused = in_language(KINDS["other"], language).partition("{")[0]
    assert not any(line.startswith(refused) for line in shown)


def test_ux_129_the_card_as_data_has_these_keys_and_no_others() -> None:
    assert tuple(incident_card.as_data(CARD)) == incident_card.FIELDS


@pytest.mark.parametrize(
    ("line", "kind", "rest"),
    [
        ("/recover-context", "command", ""),
        ("/recover-context inc_1 now", "command", "inc_1 now"),
        ("/recover-context  two  spaces", "command", " two  spaces"),
        ("/recover-context a\n b", "command", "a\n b"),
        ("/recover-contextual words", "prompt", "/recover-contextual words"),
        ("/recover-context/new", "prompt", "/recover-context/new"),
        ("/recover-context /new", "command", "/new"),
    ],
)
def test_pr_62_pr_80_only_the_exact_word_is_the_command_and_guidance_is_text(
    line: str, kind: str, rest: str
) -> None:
    meant = typed(line)
    assert (meant.kind, meant.rest) == (kind, rest)


def test_pr_81_a_first_word_that_begins_like_an_id_is_one_and_all_else_is_guidance() -> None:
    assert parted(()) == (None, "")
    assert parted(("inc_abc", "go", "on")) == ("inc_abc", "go on")
    assert parted(("go", "inc_abc")) == (None, "go inc_abc")
    assert parted(("/etc/passwd",)) == (None, "/etc/passwd")


@pytest.mark.parametrize("language", LANGUAGES)
def test_pr_16_a_person_gets_the_identifiers_beside_the_kind(language: str) -> None:
    where = {"code": "E-17", "param": "messages[2].id", "endpoint": "work", "contract": "acme/chat"}
    text = "\n".join(incident_card.lines({**CARD, **where}, language))
    assert all(value in text for value in where.values())
