"""The pages say what the recovery matrix does not prove, and which rows nobody has run live."""

from __future__ import annotations

from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def words(page: str) -> str:
    return " ".join((DOCS / page).read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    "said",
    [
        "does not prove what arbitrary endpoints do",
        "that a provider will not change",
        "that a model never asks twice",
        "only that what it asks twice is answered or counted truthfully",
    ],
)
def test_pr_97_the_page_says_what_the_matrix_does_not_prove(said: str) -> None:
    assert said in words("explanation/protocol-recovery.md")


def test_pr_97_what_was_not_run_live_is_listed_as_not_run() -> None:
    page = words("how-to/run-the-live-suite.md")
    assert "What it does not prove" in page and "not run" in page
