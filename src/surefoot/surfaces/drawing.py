"""The three drawings of the one view: inline, plain, for a screen reader (UX-60). Pure.

Owns: the table of drawings, and the one for screen readers: a labelled line per fact, numbered choices, no box
or block characters. Does not own: boxes and columns (`plain`), words (`words`, `words_aloud`), the facts (`view`).
Promises: surface:same-story. A surface asks its drawing and never which one it has.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from surefoot.surfaces import plain
from surefoot.surfaces.keys import CHOICES, DECISIONS, LOOKS, MOVES, choices_of, drawn
from surefoot.surfaces.plain import LABELS, Card, Choices
from surefoot.surfaces.view import code_of, grade_tag, needs_code
from surefoot.surfaces.words import say, state_words
from surefoot.surfaces.words_aloud import aloud
from surefoot.surfaces.words_table import STATES

Rows = Sequence[Sequence[str]]
APART = " · "
"""What stands between the facts of a line that has several."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """One way to draw; every member is a column of the table below."""

    name: str
    card: Callable[..., list[str]]
    choices: Callable[..., list[str]]
    """The choices of a card by themselves."""
    table: Callable[[Rows, Sequence[str], str, int | None], list[str]]
    """Rows, their headings if they have some, the language, and the columns at whose end a line is cut."""
    line: Callable[[str], str]
    """A line of our own as it is written."""
    facts: Callable[[str], list[str]]
    """The lines of one that has several facts."""
    strip: Callable[..., str]
    """The calls of a run in one line."""
    options: Callable[[str, str], list[str]]
    """The lines of several ways to answer a question."""
    numbered: bool = False
    """Whether a choice may be named by its number."""
    still: bool = False
    """Whether nothing that stands on screen is drawn again."""
    marks: bool = True
    """Whether states have their marks, and pictures their cells."""
    columns: int | None = None
    """Columns that lines are broken at, where it is not the terminal's."""


def _columns(rows: Rows, headings: Sequence[str], language: str, columns: int | None) -> list[str]:
    return plain.table([headings, *rows] if headings else rows, columns=columns)


def _same(line: str) -> str:
    return line


def _one(line: str) -> list[str]:
    return [line]


def _together(text: str, language: str) -> list[str]:
    return [text]


# For a screen reader ----------------------------------------------------------------------------

_SIGNS = "".join(state.mark for state in STATES.values())
_LEADING = re.compile(rf"^(\s*)[{re.escape(_SIGNS)}] ")
_COUNTED = re.compile(r"[◇▸](?=\d)")
_GUTTER = re.compile(r"^(\s*)│ ?")
_DRAWN = re.compile(r"[\u2500-\u259f]+")
"""Box and block characters."""


def spoken(line: str) -> str:
    """A line without marks, boxes and blocks; foreign text stands right of a colon instead of a bar (UX-10)."""
    told = _COUNTED.sub("", _LEADING.sub(r"\1", line))
    return _DRAWN.sub(" ", _GUTTER.sub(r"\1: ", told)).rstrip()


def _apart(line: str) -> list[str]:
    return line.split(APART)


def _options(text: str, language: str) -> list[str]:
    return [aloud("option", language, n=n, what=what) for n, what in enumerate(text.split(APART), 1)]


def _labelled(rows: Rows, headings: Sequence[str], language: str, columns: int | None) -> list[str]:
    """Each cell on a line of its own behind the heading of its column; without headings behind the row's name."""
    lines: list[str] = []
    for n, row in enumerate(rows, 1):
        if not headings:
            name, *cells = [cell.strip() for cell in row]
            told = " ".join(cell for cell in cells if cell)
            lines.append(aloud("fact", language, name=name, what=told) if told and name else name or told)
            continue
        lines.append(aloud("row", language, n=n, all=len(rows)))
        named = [(label, cell.strip()) for label, cell in zip(headings, row, strict=True)]
        lines += [aloud("fact", language, name=label, what=cell) for label, cell in named if label and cell]
    return [spoken(line) for line in lines]


def read_card(
    card: Card,
    language: str,
    *,
    columns: int = 0,
    number: tuple[int, int] = (1, 1),
    ascii_only: bool = False,
    how: Choices = Choices.KEYS,
) -> list[str]:
    """The card, a labelled line per fact, with numbered choices; nothing of it depends on a width."""
    facts = (card["known"], card["notKnown"], card["next"])
    lines = [
        aloud("call", language, n=number[0], all=number[1], what=card["summary"]),
        aloud("id", language, what=card["shortId"]),
        aloud("state", language, what=card["words"]),
        *(
            aloud("fact", language, name=say(label, language), what=fact)
            for label, fact in zip(LABELS, facts, strict=False)
            if fact
        ),
    ]
    for n, check in enumerate(card.get("checks") or (), 1):
        lines.append(aloud("check", language, n=n, what=check["sentence"]))
        if check.get("doesNotProve"):
            limit = say("does_not_prove", language, what=check["doesNotProve"])
            lines.append(aloud("check_limit", language, n=n, what=limit))
        lines.append(aloud("check_grade", language, n=n, what=grade_tag(check, language)))
    if card.get("running"):
        lines.append(aloud("process", language, what=spoken(str(card["running"]))))
    lines += read_choices(card, language, how)
    lines.append(aloud("command", language, what=card["command"]))
    told = [spoken(line) for line in lines]
    return [plain.only_ascii(line) for line in told] if ascii_only else told


def read_choices(card: Card, language: str, how: Choices = Choices.KEYS) -> list[str]:
    """The choices with their numbers, the code that some cost, and what may still act."""
    if how is Choices.NONE:
        return []
    lines = [
        aloud("choice", language, n=n, key=key, what=label)
        for n, (key, label) in enumerate(listed(card, language, how), 1)
    ]
    lines += [aloud("code", language, what=line) for line in plain.code_lines(card, language, how)]
    if (card.get("executor") or {}).get("state") != "ended":
        lines.append(aloud("executor", language, what=card["executor"]["sentence"]))
    return lines


def listed(card: Card, language: str, how: Choices = Choices.KEYS) -> list[tuple[str, str]]:
    """The choices in the order of their numbers: key or word, and label."""
    by_key = how is Choices.KEYS
    offered = {str(action["action"]): action for action in card.get("actions") or ()}
    found = [
        (str(offered[name]["key"]) if by_key else name, str(offered[name]["label"])) for name in drawn(card)
    ]
    if not by_key:
        return found
    left = [
        (key, say(f"choice_{name}", language)) for key, name in CHOICES.items() if name in choices_of(card)
    ]
    looks = [(key, say(word, language)) for key, word in plain.LOOKS]
    return [*found, *left, ("a", say("ask_model", language)), *looks]


def key_of(card: Card, language: str, number: int) -> str:
    """The key of a numbered choice that only looks or moves; empty for one that decides, or that there is not."""
    shown = listed(card, language)
    key = shown[number - 1][0] if 0 < number <= len(shown) else ""
    key = "escape" if key == "Esc" else key
    return key if key in LOOKS or key in MOVES else ""


def how_to_press(card: Card, language: str, number: int) -> str | None:
    """What to press for a numbered choice that decides: a number never does (UX-71)."""
    shown = listed(card, language)
    if not 0 < number <= len(shown):
        return None
    key, label = shown[number - 1]
    action = DECISIONS.get(key, "")
    coded = bool(action) and needs_code(action, card)
    keys = aloud("then_code", language, key=key, code=code_of(card)) if coded else key
    return aloud("press", language, n=number, what=label, keys=keys)


def read_strip(
    cells: Sequence[str | None], language: str, *, earlier: int = 0, ascii_only: bool = False
) -> str:
    """What a run strip shows, in counts; empty where nothing ran."""
    counts = Counter(key for key in cells if key is not None)
    told = [
        aloud("fact", language, name=state_words(key, language, reason="…", attempt="…"), what=n)
        for key, n in counts.items()
    ]
    return ", ".join([*told, *([aloud("earlier", language, n=earlier)] if earlier else [])])


INLINE = Drawing("inline", plain.draw_card, plain.choices, _columns, _same, _one, plain.strip, _together)
PLAIN = replace(INLINE, name="plain", still=True)
SCREEN_READER = Drawing(
    "screen-reader", read_card, read_choices, _labelled, spoken, _apart, read_strip, _options,
    numbered=True, still=True, marks=False, columns=100_000,
)  # fmt: skip
DRAWINGS: Mapping[str, Drawing] = {one.name: one for one in (INLINE, PLAIN, SCREEN_READER)}
"""Every drawing there is."""


def drawing_of(
    environ: Mapping[str, str], *, aloud_wanted: bool, plain_flag: bool, is_terminal: bool
) -> Drawing:
    """The drawing for this place: what somebody asked for first, then what the terminal can do."""
    if aloud_wanted:
        return SCREEN_READER
    return PLAIN if plain.plain_wanted(plain_flag, environ, is_terminal=is_terminal) else INLINE
