"""Sentences that were made in English, told in another language. Pure.

Owns: finding a sentence's row by what it says, and filling it anew. Does not own: the rows (`words_mistakes`,
`words_faults`, `words_doctor`, `words_asides`, `words_evidence`, `words_help`), the words of receipts (`words`).

Errors are raised far below every surface, where no language is known: in English, with their facts
already in them. A row is found by the fixed words of its English text; what stands between
them is carried over, and told in the other language too where it is a sentence itself. That every
sentence has its row is a test, so what has none is foreign text and stays as it is.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from surefoot.surfaces.tongues import LANGUAGES

_PLACE = re.compile(r"\{(\w+)\}")
_SHAPES = {"count": r"\d+", "one": r"[^;]*", "bracket": r"(?: \(.*?\))?"}
"""Names of places where not everything can stand: a number, one entry of a list, and a remark in brackets."""


def translated(text: str, language: str) -> str:
    """The same sentence in this language; text that is no sentence of ours as it is."""
    if language == "en" or not text.strip():
        return text
    found = _found(text, language)
    if found is None and text.endswith("."):
        bare = _found(text[:-1], language)
        found = None if bare is None else bare + "。"
    if found is None and "; " in text:
        parts = text.split("; ")
        told = [_found(part, language) or part for part in parts]
        return text if told == parts else "；".join(told)
    return text if found is None else found


def help_words(text: str, language: str) -> str:
    """A text of `--help` in this language. Raises KeyError where it has no row."""
    from surefoot.surfaces.words_help import HELP

    return text if language == "en" else HELP[text][LANGUAGES.index(language) - 1]


def _found(text: str, language: str) -> str | None:
    """The row with the most fixed words that fits, filled; None where none does."""
    for pattern, texts in _rows():
        fits = pattern.fullmatch(text)
        if fits is not None:
            told = texts[LANGUAGES.index(language) - 1]
            return told.format(**{name: _value(found, language) for name, found in fits.groupdict().items()})
    return None


def _value(value: str, language: str) -> str:
    """What stands at a place: a sentence or a list of parts of ours, or a fact that stays as it is."""
    told = translated(value, language)
    if told != value or ", " not in value:
        return told
    parts = [translated(part, language) for part in value.split(", ")]
    return "、".join(parts) if parts != value.split(", ") else value


@functools.cache
def _rows() -> tuple[tuple[re.Pattern[str], tuple[str, str]], ...]:
    """Every row as a pattern, those with the most fixed words first."""
    from surefoot.surfaces import words_asides, words_doctor, words_evidence, words_faults, words_mistakes

    rows: dict[str, tuple[str, str]] = {}
    table: Mapping[str, tuple[str, str]]
    for table in (
        words_mistakes.MISTAKES,
        words_mistakes.PARSER,
        words_mistakes.MISTAKE_PARTS,
        words_faults.FAULTS,
        words_faults.FAULT_PARTS,
        words_doctor.CHECKS,
        words_asides.QUESTIONS,
        words_asides.WARNINGS,
        words_asides.FINDINGS,
        words_asides.LINES,
        words_asides.TOOLS,
        words_evidence.SEEN,
        words_evidence.NOT_SHOWN,
    ):
        rows |= table
    ordered = sorted(rows, key=lambda text: len(_PLACE.sub("", text)), reverse=True)
    return tuple((_pattern(text), rows[text]) for text in ordered)


def _pattern(text: str) -> re.Pattern[str]:
    pieces = _PLACE.split(text)  # fixed words and names by turns
    made = "".join(
        f"(?P<{piece}>{_SHAPES.get(piece, '.*?')})" if index % 2 else re.escape(piece)
        for index, piece in enumerate(pieces)
    )
    return re.compile(made, re.DOTALL)
