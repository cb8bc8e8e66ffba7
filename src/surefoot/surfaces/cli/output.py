"""Where lines go: data to standard output, words for people to standard error (UX-7).

Owns: the two streams, the language and width of this terminal. Does not own: what is said.
Loads drawing and words where they are used: help and completion need neither (UX-138).
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from surefoot.config import Settings
    from surefoot.surfaces.drawing import Drawing

NOT_FOUND = 127
"""Exit code of a shell that found no such command."""


@dataclass(frozen=True, slots=True)
class Look:
    """How things are drawn here."""

    language: str
    columns: int
    ascii_only: bool
    colour: bool
    drawing: Drawing


READER = "screen_reader"
"""The setting that asks for the drawing for screen readers; `SUREFOOT_SCREEN_READER` is its variable."""
_asked: ContextVar[bool] = ContextVar("asked", default=False)
_drawing: ContextVar[Drawing | None] = ContextVar("drawing", default=None)
"""How this command draws; set when its look is made, so that no line for a person is drawn otherwise."""


def _note_flag(ctx: click.Context, option: click.Parameter, given: bool) -> None:
    if given:
        _asked.set(True)


SCREEN_READER_FLAG: Callable[[Any], Any] = click.option(
    "--screen-reader", is_flag=True, is_eager=True, expose_value=False, callback=_note_flag,
    help="Draw for a screen reader: a labelled line per fact, numbered choices, no redraw.",
)  # fmt: skip


def begin_command() -> None:
    """Forget how an earlier command of this process was drawn."""
    _asked.set(False)
    _drawing.set(None)


def reads_aloud(settings: Settings | None) -> bool:
    """Whether the drawing for screen readers is asked for, by the flag or by a setting."""
    return _asked.get() or (settings is not None and bool(settings.values.get(READER)))


def look_here(settings: Settings, *, plain_flag: bool = False, colour: str = "auto") -> Look:
    """The look that fits standard error, where people read."""
    from surefoot.surfaces import drawing, plain
    from surefoot.surfaces.words import language_of

    is_terminal = sys.stderr.isatty()
    chosen = drawing.drawing_of(
        os.environ, aloud_wanted=reads_aloud(settings), plain_flag=plain_flag, is_terminal=is_terminal
    )
    _drawing.set(chosen)
    allowed = plain.colour_allowed(colour, os.environ, is_terminal=is_terminal)
    return Look(
        language=language_of(settings.language, os.environ),
        columns=chosen.columns or shutil.get_terminal_size((80, 24)).columns,
        ascii_only=plain.ascii_wanted(os.environ, sys.stderr.encoding),
        colour=allowed and chosen.marks,
        drawing=chosen,
    )


def say_lines(lines: Iterable[str]) -> None:
    """Data, on standard output."""
    text = "".join(line + "\n" for line in lines)
    _write(sys.stdout, text)


def show_lines(lines: Iterable[str]) -> None:
    """Data as people read it, on standard output."""
    say_lines(_drawn(lines))


def _drawn(lines: Iterable[str]) -> Iterable[str]:
    chosen = _drawing.get()
    return lines if chosen is None else map(chosen.line, lines)


def page_lines(lines: Iterable[str]) -> None:
    """Long data for a person: through `PAGER` when it would leave the screen, else as `show_lines` (UX-27)."""
    text = "".join(line + "\n" for line in _drawn(lines))
    pager = os.environ.get("PAGER", "").strip()
    is_long = text.count("\n") >= shutil.get_terminal_size((80, 24)).lines
    person = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    paged = pager and pager != "cat" and person and is_long and not os.environ.get("CI")
    if not (paged and _paged(pager, text)):
        _write(sys.stdout, text)


def _paged(pager: str, text: str) -> bool:
    """Let the person's pager show the text; False when it could not be started."""
    import subprocess

    # A shell takes it, because `PAGER="less -R"` is how it is usually set; the value is the person's own.
    environ = {"LESS": "FRX", "LV": "-c", **os.environ}
    child = subprocess.Popen(["sh", "-c", pager], stdin=subprocess.PIPE, env=environ)
    rest: bytes | None = text.encode("utf-8", "replace")
    while True:
        try:
            child.communicate(rest)
        except KeyboardInterrupt:
            rest = (
                None  # what is left goes on; the key is meant for the pager, which does with it what it likes
            )
        else:
            return child.returncode != NOT_FOUND


def headed(rows: Sequence[Sequence[str]], headings: str, language: str, *, cut: bool = False) -> list[str]:
    """A table; on a terminal with the headings of `words` above it, in a pipe rows alone.

    `cut` ends each line at the edge of the terminal.
    """
    from surefoot.surfaces.drawing import PLAIN
    from surefoot.surfaces.words import say

    chosen, on_screen = _drawing.get() or PLAIN, sys.stdout.isatty()
    shown = say(headings, language).split("|") if rows and (on_screen or chosen.numbered) else ()
    columns = shutil.get_terminal_size((80, 24)).columns if cut and on_screen else None
    return chosen.table(rows, shown, language, columns)


def say_json(document: Any) -> None:
    """One JSON document on one line of standard output."""
    _write(sys.stdout, json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")


def complain(lines: Iterable[str]) -> None:
    """Words for people, on standard error."""
    tell("".join(line + "\n" for line in _drawn(lines)))


def tell(text: str) -> None:
    """Write to standard error. What nobody can read, on a full disk or a closed line, changes no answer and no run."""
    try:
        _write(sys.stderr, text)
    except OSError:
        _forget(sys.stderr)


def _write(stream: Any, text: str) -> None:
    """Write whole; what the stream's encoding cannot show is replaced, never a crash."""
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()


def confirmed(question: str, language: str) -> bool:
    """The answer of the person at this terminal; Enter is no. Raises `click.Abort` when nobody answers any more."""
    import click

    from surefoot.surfaces.phrases import translated

    while True:
        typed = click.prompt(f"{question} [y/N]", default="", show_default=False, err=True).strip().lower()
        if typed in ("", "n", "no"):
            return False
        if typed in ("y", "yes"):
            return True
        complain([translated("Answer y or n.", language)])


def forget_output() -> None:
    """The reader of standard output is gone; the interpreter must not try to flush into it at exit."""
    _forget(sys.stdout)


def _forget(stream: Any) -> None:
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, stream.fileno())
    os.close(quiet)


def is_person_here() -> bool:
    """Whether a person can be asked: input and error are both a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()
