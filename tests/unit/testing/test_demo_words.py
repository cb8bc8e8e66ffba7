"""The demo speaks the languages of the interface, and nothing on its stage is spelled in its code."""

from __future__ import annotations

import ast
import string
from pathlib import Path

import pytest

from surefoot.surfaces.tongues import LANGUAGES
from surefoot.testing import demo
from surefoot.testing.demo_words import SENTENCES, told

CALLS = ("say", "tell", "told", "print", "TimeoutError", "Flags", "add_argument")
SPOKEN_BESIDE = {"kill -9 {pid}. {how}", "surefoot demo"}


def places(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name)


def calls() -> list[ast.Call]:
    """Every call in the demo that could put words before a person."""
    tree = ast.parse(Path(demo.__file__).read_text(encoding="utf-8"))
    named = lambda call: getattr(call.func, "attr", getattr(call.func, "id", ""))  # noqa: E731
    return [one for one in ast.walk(tree) if isinstance(one, ast.Call) and named(one) in CALLS]


def literals(call: ast.Call) -> list[str]:
    given = [*call.args, *(one.value for one in call.keywords)]
    inner = [part for one in given for part in ast.walk(one) if not isinstance(one, ast.Call)]
    return [one.value for one in inner if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def test_ux_11_no_sentence_of_the_demo_stands_in_its_code() -> None:
    commands = ("  surefoot ", "next: surefoot ", "\nnext: surefoot ")
    found = [text for call in calls() for text in literals(call)]
    wordy = [text for text in found if len(text.split()) > 1 and text not in SPOKEN_BESIDE]
    assert [text for text in wordy if not text.startswith(commands)] == []


def test_ux_11_every_sentence_is_said_by_the_demo() -> None:
    source = Path(demo.__file__).read_text(encoding="utf-8")
    computed = {"killed_before", "killed_during", "killed_after"}
    assert {key for key in SENTENCES if f'"{key}"' not in source and f"'{key}'" not in source} == computed


@pytest.mark.parametrize("key", SENTENCES)
def test_ux_11_each_sentence_has_the_same_places_in_every_language(key: str) -> None:
    english, *others = SENTENCES[key]
    assert len(SENTENCES[key]) == len(LANGUAGES)
    for text in others:
        assert places(text) == places(english) and text != english
    values = dict.fromkeys(places(english), "x")
    assert all(told(key, language, **values) for language in LANGUAGES)
