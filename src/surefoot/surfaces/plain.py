"""The plain drawing of the one view: cards, tables, with or without a box.

Owns: layout in columns, wrapping, the gutter, and whether colour may be written.
Does not own: words and facts (`view`), keys (`keys`).

Draws to text only; nothing here knows a terminal. Foreign text was cleaned by `view`
and stays right of a gutter that only surefoot draws.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from surefoot.core.model import Word
from surefoot.surfaces.keys import CHOICES, choices_of, drawn
from surefoot.surfaces.view import code_of, fact_key, grade_tag, needs_code
from surefoot.surfaces.words import mark, say

BOX_COLUMNS = 60
GUTTER = "│ "
"""Stands before each line of foreign text (UX-10)."""
WIDEST = 100
SETTLED = frozenset({"succeeded", "confirmed", "present_proof"})
"""Rows of UX-63 that a strip draws as a block."""
Card = Mapping[str, Any]


class Choices(Word):
    """How the choices of a card are made where it is drawn."""

    KEYS = "keys"
    """A key press in a chat."""
    WORDS = "words"
    """A word typed at a command's question, or a command."""
    NONE = "none"
    """Not here: the card of a run that nobody attends."""


def colour_allowed(setting: str, environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Whether a colour byte may be written; `NO_COLOR` forbids, `--color` decides first."""
    if setting in ("always", "never"):
        return setting == "always"
    if environ.get("NO_COLOR") or environ.get("TERM") == "dumb" or environ.get("CLICOLOR") == "0":
        return False
    return is_terminal or environ.get("CLICOLOR_FORCE", "0") != "0" or bool(environ.get("FORCE_COLOR"))


def plain_wanted(flag: bool, environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Whether the plain drawing is used: a pipe, `--plain`, `TERM=dumb` or `CI` (UX-60)."""
    return flag or not is_terminal or environ.get("TERM") == "dumb" or bool(environ.get("CI"))


def ascii_wanted(environ: Mapping[str, str], encoding: str | None) -> bool:
    """Whether marks are drawn in ASCII, because the output is not UTF-8."""
    if encoding is not None:
        return "utf" not in encoding.lower()
    locale = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or ""
    return "utf" not in locale.lower()


def width_of(text: str) -> int:
    """Columns of a text; East Asian wide letters count two, marks over letters none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def wrap(text: str, columns: int) -> list[str]:
    """Lines of at most `columns`; breaks at spaces, between wide letters, else inside a word."""
    lines: list[str] = []
    for part in text.split("\n"):
        line = ""
        for piece in _pieces(part):
            if line and width_of(line + piece.rstrip()) > columns:
                lines.append(line.rstrip())
                line = ""
                piece = piece.lstrip()
            while width_of(piece) > columns:
                head = _fitting(piece, columns)
                lines.append(head)
                piece = piece[len(head) :]
            line += piece
        lines.append(line.rstrip())
    return lines


def _pieces(text: str) -> list[str]:
    pieces: list[str] = []
    word = ""
    for letter in text:
        wide = unicodedata.east_asian_width(letter) in "WF"
        if wide and word and not word.endswith(" "):
            pieces.append(word)
            word = ""
        word += letter
        if letter == " " or wide:
            pieces.append(word)
            word = ""
    return [*pieces, word] if word else pieces


def _fitting(text: str, columns: int) -> str:
    """The longest beginning that fits, at least one letter."""
    used = 0
    for index, letter in enumerate(text):
        used += width_of(letter)
        if used > columns and index:
            return text[:index]
    return text


def cut(text: str, columns: int) -> str:
    """`text` in one line of at most `columns`, with an ellipsis where something is missing."""
    if width_of(text) <= columns:
        return text
    return _fitting(text, columns - 1) + "…"


def draw_card(
    card: Card,
    language: str,
    *,
    columns: int = 68,
    number: tuple[int, int] = (1, 1),
    ascii_only: bool = False,
    how: Choices = Choices.KEYS,
) -> list[str]:
    """The card in lines, in a box from 60 columns on (UX-69). `how` says which choices are drawn."""
    columns = min(columns, WIDEST)
    if columns < BOX_COLUMNS:
        return _narrow(card, language, columns, number=number, ascii_only=ascii_only, how=how)
    inner = columns - 5
    label_width = max(width_of(say(label, language)) for label in LABELS) + 2
    body: list[str] = []
    for label, text in _parts(card, language):
        lines = wrap(text, inner - label_width)
        body.append(_padded(label, label_width) + lines[0])
        body += [" " * label_width + line for line in lines[1:]]
    body += _checked(card, language, inner, label_width)
    body += wrap(card["running"], inner) if card.get("running") else []
    body += [line for text in choices(card, language, how) for line in wrap(text, inner)]
    return _boxed(card, body, language, columns=columns, number=number, ascii_only=ascii_only)


LABELS = ("label_known", "label_not_known", "label_next", "label_checked")


def _parts(card: Card, language: str) -> list[tuple[str, str]]:
    """Known, not known, next: always in this order (UX-2); of a settled call nothing is not known."""
    parts = [
        (say("label_known", language), str(card["known"])),
        (say("label_not_known", language), str(card["notKnown"])),
        (say("label_next", language), str(card["next"])),
    ]
    return [(label, text) for label, text in parts if text]


def _checked(card: Card, language: str, inner: int, label_width: int) -> list[str]:
    lines: list[str] = []
    label = say("label_checked", language)
    for check in card.get("checks") or ():
        tag = grade_tag(check, language)
        texts = wrap(str(check["sentence"]), inner - label_width)
        if check.get("doesNotProve"):
            texts += wrap(
                "· " + say("does_not_prove", language, what=check["doesNotProve"]), inner - label_width
            )
        room = inner - label_width - width_of(texts[-1]) - width_of(tag)
        if room >= 1:
            texts[-1] += " " * room + tag
        else:
            texts.append(" " * (inner - label_width - width_of(tag)) + tag)
        for text in texts:
            lines.append(_padded(label, label_width) + text)
            label = ""
    return lines


APART = "   "
"""What stands between two choices."""
LOOKS = (("d", "details"), ("o", "timeline"), ("?", "help"), ("Esc", "later"))


def choices(card: Card, language: str, how: Choices = Choices.KEYS) -> list[str]:
    """The lines of choices, the code line and the warning about a living executor."""
    return [] if how is Choices.NONE else [*_choices(card, language, how), *_warnings(card, language, how)]


def _choices(card: Card, language: str, how: Choices) -> list[str]:
    by_name = {str(action["action"]): action for action in card.get("actions") or ()}
    shown, by_key = drawn(card), how is Choices.KEYS

    def named(names: Sequence[str]) -> str:
        return APART.join(
            f"{by_name[n]['key'] if by_key else n} {by_name[n]['label']}" for n in names if n in shown
        )

    left = [
        f"{key} {say(f'choice_{name}', language)}"
        for key, name in CHOICES.items()
        if name in choices_of(card)
    ]
    ask = f"a {say('ask_model', language)}" if by_key else ""
    lines = [
        named(("confirm", "deny", "reject")),
        APART.join(part for part in (named(("release", "retry")), ask) if part),
        named(("inspect",)),
        APART.join(left) if by_key else "",
        APART.join(f"{key} {say(word, language)}" for key, word in LOOKS) if by_key else "",
    ]
    return [line for line in lines if line]


def _warnings(card: Card, language: str, how: Choices) -> list[str]:
    lines = code_lines(card, language, how)
    if (card.get("executor") or {}).get("state") != "ended":
        lines.append(str(card["executor"]["sentence"]))
    return lines


def code_lines(card: Card, language: str, how: Choices) -> list[str]:
    """The line that says which choices cost a code, and which code; none where no choice does."""
    by_name = {str(action["action"]): action for action in card.get("actions") or ()}
    coded = [
        str(by_name[n]["key"]) if how is Choices.KEYS else n
        for n in drawn(card)
        if by_name[n].get("enabled") and needs_code(n, card)
    ]
    return [say("code", language, keys=", ".join(coded), code=code_of(card))] if coded else []


def _boxed(
    card: Card, body: list[str], language: str, *, columns: int, number: tuple[int, int], ascii_only: bool
) -> list[str]:
    corner = ("+", "+", "+", "+", "-", "|") if ascii_only else ("┌", "┐", "└", "┘", "─", "│")
    left_top, right_top, left_foot, right_foot, dash, side = corner
    sign = mark(fact_key(card), ascii_only=ascii_only)
    short = str(card["shortId"])
    room = columns - width_of(short) - 12
    title = f"{sign} {say('of', language, n=number[0], all=number[1])} · {card['summary']}"
    title = cut(title, room)
    fill = columns - 7 - width_of(title) - width_of(short) - 1
    top = f" {left_top}{dash} {title} {dash * max(1, fill - 1)} {short} {dash}{right_top}"
    command = cut(str(card["command"]), columns - 8)
    foot = f" {left_foot}{dash} {command} {dash * (columns - 6 - width_of(command))}{right_foot}"
    rows = [f" {side} {_padded(line, columns - 5)} {side}" for line in body]
    return [only_ascii(line) if ascii_only else line for line in (top, *rows, foot)]


def _narrow(
    card: Card, language: str, columns: int, *, number: tuple[int, int], ascii_only: bool, how: Choices
) -> list[str]:
    """Without box and second id; labels get their own lines."""
    sign = mark(fact_key(card), ascii_only=ascii_only)
    title = f"{sign} {say('of', language, n=number[0], all=number[1])} · {card['summary']}"
    lines = [cut(title, columns)]
    for label, text in _parts(card, language):
        lines += [label, *("  " + line for line in wrap(text, columns - 2))]
    for check in card.get("checks") or ():
        lines += [say("label_checked", language)]
        told = f"{check['sentence']} {grade_tag(check, language)}"
        lines += ["  " + line for line in wrap(told, columns - 2)]
    lines += wrap(card["running"], columns) if card.get("running") else []
    if how is not Choices.NONE:
        parts = [part for row in _choices(card, language, how) for part in row.split(APART)]
        warned = [line for row in _warnings(card, language, how) for line in wrap(row, columns)]
        lines += [*_packed(parts, columns), *warned]
    lines += wrap(str(card["command"]), columns)
    return [only_ascii(line) if ascii_only else line for line in lines]


def _packed(parts: Sequence[str], columns: int) -> list[str]:
    """As many choices in a line as fit; one that is longer than a line is wrapped."""
    lines: list[str] = []
    for part in parts:
        if lines and width_of(lines[-1] + APART + part) <= columns:
            lines[-1] += APART + part
        else:
            lines += wrap(part, columns)
    return lines


_ASCII = str.maketrans(
    {"·": "-", "…": ".", "─": "-", "│": "|", "“": '"', "”": '"', "◇": "?", "┊": "|", "█": "#"}
)


def only_ascii(line: str) -> str:
    """Our own signs in ASCII; foreign letters stay."""
    return line.translate(_ASCII)


def sign_of(call: Card, *, ascii_only: bool) -> str:
    """The mark of a call as it is now."""
    return mark(fact_key(call), ascii_only=ascii_only)


def strip(cells: Sequence[str | None], language: str, *, earlier: int = 0, ascii_only: bool = False) -> str:
    """Cells of a run: a block for what is settled, else the mark; None is a death. Older ones are counted."""
    block, torn = ("#", "|") if ascii_only else ("█", "┊")
    drawn_cells = "".join(
        torn if key is None else block if key in SETTLED else mark(key, ascii_only=ascii_only)
        for key in cells
    )
    return f"+{earlier} {drawn_cells}" if earlier else drawn_cells


def _padded(text: str, columns: int) -> str:
    return text + " " * max(0, columns - width_of(text))


def table(rows: Sequence[Sequence[str]], *, columns: int | None = None) -> list[str]:
    """Rows in aligned columns, two spaces apart; the last column is cut when `columns` is given."""
    if not rows:
        return []
    widths = [max(width_of(row[index]) for row in rows) for index in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [_padded(cell, width) for cell, width in zip(row[:-1], widths[:-1], strict=True)]
        line = "  ".join([*cells, row[-1]]).rstrip()
        lines.append(cut(line, columns) if columns else line)
    return lines
