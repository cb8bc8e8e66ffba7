"""What is typed while the editor of the line is still being loaded.

Owns: the modes of the terminal in that time. Does not own: those of the editor (`chat_prompt`), and giving the
terminal back after a death (`cli.guard`), which knows these modes by `left_unread`.
"""

from __future__ import annotations

import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_INPUT, _LOCAL = 0, 3


@contextmanager
def kept_as_pressed(terminal: int | None = None) -> Iterator[None]:
    """Keep each key as it was pressed, for the editor: else Enter would reach it as Ctrl+J, and every letter would
    stand on screen twice. Signals stay keys of the terminal. Without a terminal nothing changes.
    """
    try:
        terminal = sys.stdin.fileno() if terminal is None else terminal
        before = termios.tcgetattr(terminal)
    except (OSError, ValueError, termios.error):
        yield
        return
    modes = termios.tcgetattr(terminal)
    modes[_INPUT] &= ~termios.ICRNL
    modes[_LOCAL] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, modes)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(terminal, termios.TCSANOW, before)


def left_unread(modes: list[Any]) -> bool:
    """Whether these are the modes of that time; a line without echo that Enter does not end is nobody else's."""
    local = modes[_LOCAL]
    return not modes[_INPUT] & termios.ICRNL and not local & termios.ECHO and bool(local & termios.ICANON)
