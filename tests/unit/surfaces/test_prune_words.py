"""The words of `ledger prune`: complete in three languages, a sentence for each reason."""

from __future__ import annotations

import string

import pytest

from surefoot.surfaces.words import LANGUAGES
from surefoot.surfaces.words_ledger import KEPT, PRUNED, kept

REASONS = ("open_calls", "unsettled_calls", "background", "owned", "tail_lost", "lost", "unreadable")


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("table", [KEPT, PRUNED], ids=["kept", "pruned"])
def test_ux_64_every_text_about_pruning_stands_in_three_languages_with_the_same_values(table: object) -> None:
    for texts in dict(table).values():  # type: ignore[call-overload]
        assert len(texts) == len(LANGUAGES) and all(text.strip() for text in texts)
        assert len({frozenset(fields(text)) for text in texts}) == 1
        assert any("\u4e00" <= letter <= "\u9fff" or letter == "：" for letter in texts[1] + texts[2])


@pytest.mark.parametrize("language", LANGUAGES)
def test_tr_97_every_reason_to_keep_a_session_is_a_sentence(language: str) -> None:
    told = [kept(reason, language, session="ses_1") for reason in REASONS]
    assert set(REASONS) == set(KEPT) and len(set(told)) == len(REASONS)
    assert kept("position_conflict", language, session="ses_1") == "position_conflict"
