"""The words of every surface, looked up by key and language. Pure.

Owns: `say`, `state_words`, the sentence of a code, marks, and the words banned for a
state (UX-3). Does not own: the tables themselves (`words_table`, `words_codes`), the choice
of language (`tongues`), which facts are told (`view`).
Promises: surface:same-story. A missing text is an exception, never an English fallback.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.surfaces.tongues import LANGUAGES, language_of
from surefoot.surfaces.words_codes import CAUSES, FAILED, NOT_RUN, REASONS, REFUSALS
from surefoot.surfaces.words_table import BANNED_CHINESE, SENTENCES, STATES, Texts

GRADES: Mapping[str, Texts] = {
    "proof": ("PROOF", "确证", "確證"),
    "strong": ("STRONG", "有力", "有力"),
    "weak": ("WEAK", "薄弱", "薄弱"),
    "none": ("NONE", "无", "無"),
}
BANNED_GRADE_WORDS = ("likely", "probably", "safe")


def say(key: str, language: str, **values: Any) -> str:
    """The sentence `key` with its values filled in. Raises KeyError for an unknown key."""
    return _filled(SENTENCES[key], language, values)


def state_words(key: str, language: str, *, you: bool = False, **values: Any) -> str:
    """The words of a state (UX-63). `you` names the reader as the one who decided."""
    who = say("who_you" if you else "who_person", language)
    return _filled(STATES[key].texts, language, {"who": who, **values})


def mark(key: str, *, ascii_only: bool = False) -> str:
    """The mark of a state; ASCII where the locale is not UTF-8."""
    return STATES[key].ascii if ascii_only else STATES[key].mark


def grade_word(grade: str, language: str) -> str:
    """PROOF, STRONG, WEAK or NONE in this language; an unknown grade counts as none."""
    return _filled(GRADES.get(grade, GRADES["none"]), language, {})


def cause(reason: str | None, language: str) -> str:
    """Why a call is unknown, as a sentence; empty when no reason is recorded or it is of a newer version."""
    texts = CAUSES.get(reason or "")
    return _filled(texts, language, {}) if texts else ""


def not_run(reason: str | None, language: str) -> str:
    """`did not run: …`, or `never started` for what nobody refused (UX-63)."""
    if reason in (None, "cancelled_before_start", "owner_died_before_start"):
        return state_words("not_started", language)
    texts = NOT_RUN.get(reason or "")
    told = _filled(texts, language, {}) if texts else str(reason)
    return state_words("not_started_refused", language, reason=told)


def refusal(code: str, language: str, *, reason: str | None = None) -> str:
    """The sentence of a refused action, with its reason when there is one (UX-65)."""
    texts = REFUSALS.get(code) or NOT_RUN.get(code)
    told = _filled(texts, language, {}) if texts else code
    more = REASONS.get(reason or "")
    return f"{told} {_filled(more, language, {})}" if more else told


def banned(key: str, language: str) -> tuple[str, ...]:
    """Words that may not stand where this state is told, in this language."""
    never = STATES[key].never
    if language == "en":
        return never
    return tuple(word for english in never for word in BANNED_CHINESE.get(english, ()))


def in_language(texts: Texts, language: str) -> str:
    """The text of a table's row in one language, its places not yet filled."""
    return texts[LANGUAGES.index(language)]


def _filled(texts: Texts, language: str, values: Mapping[str, Any]) -> str:
    return in_language(texts, language).format(**values)


__all__ = [
    "CAUSES",
    "FAILED",
    "GRADES",
    "LANGUAGES",
    "NOT_RUN",
    "REASONS",
    "REFUSALS",
    "SENTENCES",
    "STATES",
    "banned",
    "cause",
    "grade_word",
    "in_language",
    "language_of",
    "mark",
    "not_run",
    "refusal",
    "say",
    "state_words",
]
