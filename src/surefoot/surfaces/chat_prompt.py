"""The line a person types into: its editor, its keys, its completion.

Owns: all that is said to prompt_toolkit; the only file that imports it. Does not own: what a key does (`chat`),
the echo where nothing is drawn twice (`chat_echo`).

Loaded once the first card stands on screen, because that takes as long as a good part of a start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.output import DummyOutput, Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from surefoot.surfaces.port import KeyRow, Screen
from surefoot.surfaces.words_chat import SLASH

REFRESH_SECONDS = 0.5


def editor(
    screen: Screen, keys: Iterable[KeyRow], *, message: Callable[[], str], toolbar: Callable[[], str]
) -> PromptSession[str]:
    """The editor of one chat, on this screen and with these keys."""
    still = screen.drawing.still
    session: PromptSession[str] = PromptSession(
        output=_output(screen),
        message=message,
        key_bindings=_bindings(keys),
        completer=_Words(),
        complete_while_typing=False,
        history=InMemoryHistory(),
        bottom_toolbar=None if still else toolbar,
        enable_suspend=True,
        multiline=False,
        refresh_interval=0 if still else REFRESH_SECONDS,
        style=Style.from_dict({"bottom-toolbar": "noreverse"}),
    )
    session.app.ttimeoutlen = 0.05
    session.app.timeoutlen = 0.2
    return session


def lines_above(screen: Screen) -> AbstractContextManager[None]:
    """Keep lines of others above an editor that draws itself anew; where nothing does, they are just written."""
    return nullcontext() if screen.drawing.still else patch_stdout(raw=True)


def in_its_place(write: Callable[[], None]) -> None:
    """Write while the editor makes room for it."""
    run_in_terminal(write)


def _output(screen: Screen) -> Output:
    # No question is put to the terminal itself: some never answer, and a warning would stand here.
    output = DummyOutput() if screen.drawing.still else create_output()
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
        # Without an answer of the terminal its status line would never be drawn: one row is always there.
        output.get_rows_below_cursor_position = lambda: 1  # type: ignore[method-assign]
        if not screen.colour:  # the byte that ends a colour is one, too (UX-60)
            output.reset_attributes = lambda: None  # type: ignore[method-assign]
            output.set_attributes = lambda attrs, color_depth: None  # type: ignore[method-assign]
    return output


def _bindings(rows: Iterable[KeyRow]) -> KeyBindings:
    bindings = KeyBindings()
    for row in rows:
        when = True if row.when is None else Condition(row.when)
        bindings.add(*row.keys, filter=when)(row.action)
    return bindings


class _Words(Completer):
    """Slash commands at the beginning, files behind `@`."""

    def __init__(self) -> None:
        self._paths = PathCompleter(get_paths=lambda: [str(Path.cwd())])

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Any:
        before = document.text_before_cursor
        if before.startswith("/") and " " not in before:
            for word in SLASH:
                if word.startswith(before):
                    yield Completion(word, start_position=-len(before))
            return
        _, found, name = before.rpartition("@")
        if found and " " not in name:
            yield from self._paths.get_completions(Document(name), complete_event)
