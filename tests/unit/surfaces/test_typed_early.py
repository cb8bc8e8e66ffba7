"""Keys that are pressed before the editor of the line is there."""

from __future__ import annotations

import os
import select
import termios
import tty

import pytest

from surefoot.surfaces.cli.guard import left_raw
from surefoot.surfaces.typed_early import kept_as_pressed, left_unread


@pytest.mark.parametrize("typed", [b"h", b"/continue\r", b"\x1b", b"a\nb\r"])
def test_ux_70_ux_72_a_key_pressed_before_the_editor_is_there_reaches_it_as_it_was_pressed(
    typed: bytes,
) -> None:
    person, terminal = os.openpty()
    try:
        before = termios.tcgetattr(terminal)
        before[6][termios.VEOL] = b"~"  # a second end of line, by which the kernel shows what it has taken in
        termios.tcsetattr(terminal, termios.TCSANOW, before)
        with kept_as_pressed(terminal):
            modes = termios.tcgetattr(terminal)
            assert left_unread(modes), "a guard knows by these that the terminal is to be given back"
            assert not left_raw(modes), "Ctrl+C still ends what loads"
            os.write(person, typed + b"~")
            assert select.select([terminal], [], [], 90)[0]
        assert termios.tcgetattr(terminal) == before
        assert not left_unread(before)
        tty.setraw(terminal, termios.TCSANOW)
        assert not left_unread(termios.tcgetattr(terminal))
        got = b""
        while len(got) < len(typed) + 1:
            assert select.select([terminal], [], [], 90)[0], "the key was lost"
            got += os.read(terminal, 100)
        assert got == typed + b"~"
        assert not select.select([person], [], [], 0)[0], "nothing is drawn twice"
    finally:
        os.close(person)
        os.close(terminal)


def test_ux_70_a_chat_without_a_terminal_loads_all_the_same() -> None:
    reading, writing = os.pipe()
    with kept_as_pressed(reading):
        os.write(writing, b"x\r")
    assert os.read(reading, 9) == b"x\r"
    os.close(reading)
    os.close(writing)
