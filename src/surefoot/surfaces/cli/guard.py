"""A small process that gives the terminal back when a chat dies without a chance to do so itself.

Owns: remembering the terminal's modes before a chat, restoring them after its death, letting the
last words be said then (`last_words`, UX-33), and that Ctrl+D typed before the first prompt stays a
key, where a terminal that reads lines would swallow it. Does not own: the chat, which restores the
terminal at every end it sees. A shell that edits lines has set modes of its own by then; those are
recognised by their signals being on, and left alone.
"""

from __future__ import annotations

import mmap
import os
import select
import signal
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from surefoot.surfaces.typed_early import left_unread

SHELL_SECONDS = 0.3
"""How long a shell is given to take its terminal back by itself."""
_LOCAL_MODES = 3
_KEYS = 6
_NO_KEY = b"\x00"
_RESET = b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?25h\x1b[0m\r\n"
"""Mouse and bracketed paste off, cursor and plain letters on."""
_ID_BYTES = 64
_IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGHUP, signal.SIGTERM, signal.SIGTTOU)


@contextmanager
def terminal_guard() -> Iterator[Callable[[str], None]]:
    """Watch over the terminal while the chat runs; without a terminal nothing is watched.

    Gives a function that takes the id of the chat's session, for the last words after its death.
    """
    shared = mmap.mmap(-1, _ID_BYTES)  # written by the chat, and read by the guard once that is gone
    guard = _begin(shared)

    def remember(session_id: str) -> None:
        shared[:] = session_id.encode()[:_ID_BYTES].ljust(_ID_BYTES, b"\0")

    try:
        with _end_of_file_is_a_key():
            yield remember
    finally:
        if guard is not None:
            with suppress(ProcessLookupError):
                os.kill(guard, signal.SIGKILL)
            os.waitpid(guard, 0)
        shared.close()


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


def _begin(shared: mmap.mmap) -> int | None:
    try:
        terminal = sys.stdin.fileno()
        modes = termios.tcgetattr(terminal)
        chat = os.pidfd_open(os.getpid())
    except (OSError, ValueError, AttributeError, termios.error):
        return None  # no terminal, or a kernel that cannot tell of a death at once
    guard = os.fork()
    if guard == 0:
        _watch(chat, terminal, modes, shared)
    os.close(chat)
    return guard


def _watch(chat: int, terminal: int, modes: list[Any], shared: mmap.mmap) -> None:
    """Wait for the end of the chat; never returns."""
    try:
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        _close_all_but(chat, terminal)
        select.select([chat], [], [])
        time.sleep(SHELL_SECONDS)
        left = termios.tcgetattr(terminal)
        if left_raw(left) or left_unread(left):
            termios.tcsetattr(terminal, termios.TCSANOW, modes)
            os.write(terminal, _RESET)
            _say_last_words(terminal, shared[:].rstrip(b"\0").decode())
        elif left[_KEYS][termios.VEOF] == _NO_KEY:
            _set_end_of_file(terminal, modes[_KEYS][termios.VEOF])
    except (OSError, termios.error):
        pass  # the terminal is gone too
    finally:
        os._exit(0)


def _say_last_words(terminal: int, session_id: str) -> None:
    """Become the program that reads the ledger and says what is open; a forked copy of a chat is no place for it."""
    if session_id:
        for number in (1, 2):
            os.dup2(terminal, number)
        os.execv(sys.executable, [sys.executable, "-m", "surefoot.surfaces.cli.last_words", session_id])


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
