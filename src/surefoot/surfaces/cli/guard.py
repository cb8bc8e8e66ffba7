"""A small process that gives the terminal back when a chat dies without a chance to do so itself.

Owns: remembering the terminal's modes before a chat, restoring them after its death, and that Ctrl+D typed
before the first prompt stays a key, where a terminal that reads lines would swallow it. Does not
own: the chat, which restores the terminal at every end it sees. A shell that edits lines has set modes
of its own by then; those are recognised by their signals being on, and left alone.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

SHELL_SECONDS = 0.3
"""How long a shell is given to take its terminal back by itself."""
_LOCAL_MODES = 3
_KEYS = 6
_NO_KEY = b"\x00"
_RESET = b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?25h\x1b[0m\r\n"
"""Mouse and bracketed paste off, cursor and plain letters on."""
_IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGHUP, signal.SIGTERM, signal.SIGTTOU)


@contextmanager
def terminal_guard() -> Iterator[None]:
    """Watch over the terminal while the chat runs; without a terminal nothing is watched."""
    guard = _begin()
    try:
        with _end_of_file_is_a_key():
            yield
    finally:
        if guard is not None:
            with suppress(ProcessLookupError):
                os.kill(guard, signal.SIGKILL)
            os.waitpid(guard, 0)


@contextmanager
def _end_of_file_is_a_key() -> Iterator[None]:
    try:
        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal)
    except (OSError, ValueError, termios.error):
        yield
        return
    _set_end_of_file(terminal, _NO_KEY)
    try:
        yield
    finally:
        with suppress(termios.error):
            _set_end_of_file(terminal, before[_KEYS][termios.VEOF])


def _set_end_of_file(terminal: int, key: bytes) -> None:
    modes = termios.tcgetattr(terminal)
    modes[_KEYS][termios.VEOF] = key
    termios.tcsetattr(terminal, termios.TCSANOW, modes)


def _begin() -> int | None:
    try:
        terminal = sys.stdin.fileno()
        modes = termios.tcgetattr(terminal)
        chat = os.pidfd_open(os.getpid())
    except (OSError, ValueError, AttributeError, termios.error):
        return None  # no terminal, or a kernel that cannot tell of a death at once
    guard = os.fork()
    if guard == 0:
        _watch(chat, terminal, modes)
    os.close(chat)
    return guard


def _watch(chat: int, terminal: int, modes: list[Any]) -> None:
    """Wait for the end of the chat; never returns."""
    try:
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        _close_all_but(chat, terminal)
        select.select([chat], [], [])
        time.sleep(SHELL_SECONDS)
        left = termios.tcgetattr(terminal)
        if left_raw(left):
            termios.tcsetattr(terminal, termios.TCSANOW, modes)
            os.write(terminal, _RESET)
        elif left[_KEYS][termios.VEOF] == _NO_KEY:
            _set_end_of_file(terminal, modes[_KEYS][termios.VEOF])
    except (OSError, termios.error):
        pass  # the terminal is gone too
    finally:
        os._exit(0)


def _close_all_but(*kept: int) -> None:
    """Hold nothing of the chat's: whoever waits for the end of a pipe waits for the chat alone."""
    before = 0
    for number in sorted(kept):
        if before < number:  # an empty range would be taken for all of them
            os.closerange(before, number)
        before = number + 1
    os.closerange(before, 1 << 16)


def left_raw(modes: list[Any]) -> bool:
    """Whether a program left these modes that read single keys, signals included, and is gone."""
    local = modes[_LOCAL_MODES]
    return not local & termios.ISIG and not local & termios.ECHO
