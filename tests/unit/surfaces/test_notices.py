"""Notices: each kind the runtime can tell has one sentence in every language."""

from __future__ import annotations

import ast
import string
from pathlib import Path
from typing import Any

import pytest

from surefoot.surfaces import notices, view, words
from surefoot.surfaces.words_notices import NOTICES

SOURCE = Path(notices.__file__).parents[1]
SURFACES_OWN = ("check_stopped", "no_sources")
UNKNOWN = "att_01jq0000000000000000007f3a"
FACTS: dict[str, dict[str, Any]] = {
    "advised": {"attemptId": "att_01jq000000000000000000aaaa", "unknown": UNKNOWN, "tool": "shell"},
    "check_stopped": {"attemptId": UNKNOWN, "tool": "shell"},
    "background_end": {"attemptId": UNKNOWN, "command": "serve \x1b[31m", "exitCode": 3, "log": "/x/log"},
}


def kinds_of_the_runtime() -> set[str]:
    """The first argument of every `Notice(…)` of the source."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Notice"
            )
            if named and node.args and isinstance(node.args[0], ast.Constant):  # type: ignore[attr-defined]
                found.add(node.args[0].value)  # type: ignore[attr-defined]
    return found


def test_ux_1_every_notice_the_runtime_makes_has_its_words_or_a_drawing_of_its_own() -> None:
    told = kinds_of_the_runtime()
    assert {
        "advised",
        "open_elsewhere",
        "effect_after_absent",
        "not_reconciled",
        "tool_without_class",
    } <= told
    assert told <= set(NOTICES) | notices.DRAWN | set(SURFACES_OWN)


@pytest.mark.parametrize("key", NOTICES)
def test_ux_11_a_notice_stands_in_three_languages_with_the_same_values(key: str) -> None:
    texts = NOTICES[key]
    fields = [{name for _, name, _, _ in string.Formatter().parse(text) if name} for text in texts]
    assert fields[0] == fields[1] == fields[2]
    assert all(any("\u4e00" <= letter <= "\u9fff" for letter in text) for text in texts[1:])


@pytest.mark.parametrize("language", words.LANGUAGES)
@pytest.mark.parametrize("kind", sorted(kinds_of_the_runtime() - notices.DRAWN))
def test_ux_1_a_notice_is_told_also_when_facts_are_missing(kind: str, language: str) -> None:
    line = notices.line(kind, FACTS.get(kind, {}), language)
    assert line and "\x1b" not in line and "{" not in line


def test_ux_5_what_goes_on_beside_an_unknown_write_names_it_and_the_command_that_leads_out() -> None:
    line = notices.line("advised", FACTS["advised"], "en")
    assert line is not None
    assert "att_7f3a" in line and "surefoot recover att_7f3a" in line and "may have happened" in line


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_ux_156_a_stopped_check_is_one_line_with_its_mark_and_no_word_of_failure(language: str) -> None:
    line = notices.line("check_stopped", FACTS["check_stopped"], language)
    assert line is not None and line.startswith("⊡ ") and words.say("check_stopped", language) in line
    assert not any(word in line.lower() for word in words.banned("released", language))
    ascii_line = notices.line("check_stopped", FACTS["check_stopped"], "en", ascii_only=True)
    assert ascii_line is not None and ascii_line.startswith("R ")


def test_ux_157_the_end_of_a_background_command_says_exit_code_signal_or_that_nothing_says_how() -> None:
    facts = FACTS["background_end"]
    assert "exit code 3." in str(notices.line("background_end", facts, "en"))
    by_signal = {**facts, "exitCode": None, "signal": 9}
    assert "signal 9." in str(notices.line("background_end", by_signal, "en"))
    assert "nothing says how." in str(notices.line("background_end", {**facts, "exitCode": None}, "en"))


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_tr_116_ux_42_what_runs_or_is_asked_again_is_named(language: str) -> None:
    rows = [{"attemptId": "att_00000000000000000000007f3a", "tool": "look", "reach": []}]
    assert "look (att_7f3a)" in str(notices.line("will_run_again", {"calls": rows}, language))
    assert view.reask_line([], language) is None
    assert "look" in str(view.reask_line(rows, language))
