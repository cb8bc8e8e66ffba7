"""Whether names still lead to the files they led to, told by device and inode and by nothing else.

Owns: the look of the guard that every commit passes (TR-194). Does not own: which
names are watched, and what follows when one leads elsewhere (`database`, `sqlite`).

Asking for the times of a file is not free: since Linux 6.13 whoever reads them makes the
next write to that file store a time of its own, and the sync of that write takes a third
longer. So the times are not asked for where a system lets one say so.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from surefoot import machine

_INO, _DEVICE = slice(32, 40), slice(136, 144)

Look = Callable[[], object]
"""What stands for inode and device of the file a name leads to now; None when it leads nowhere."""


def by_stat(path: bytes) -> Look:
    """Look by the call that every system has."""

    def look() -> object:
        try:
            facts = os.stat(path)  # noqa: PTH116
        except OSError:
            return None
        return facts.st_ino, facts.st_dev

    return look


def by_statx(path: bytes) -> Look | None:
    """Look by `statx`, or None where the C library, the kernel or a sandbox has none."""
    ask = machine.statx(path, machine.INODE)
    if ask is None:
        return None

    def look() -> tuple[bytes, bytes] | None:
        raw = ask()
        return None if raw is None else (raw[_INO], raw[_DEVICE])

    found, facts = look(), by_stat(path)()
    right = (
        found is not None and isinstance(facts, tuple) and int.from_bytes(found[0], sys.byteorder) == facts[0]
    )
    return look if right else None


class Names:
    """The names of files that are open, and what they led to. Not for two threads at once."""

    def __init__(self, *paths: Path) -> None:
        names = [os.fsencode(path) for path in paths]
        self._looks = [by_statx(name) or by_stat(name) for name in names]
        self._first = [look() for look in self._looks]

    def lead_there_still(self) -> bool:
        """Whether each name leads to the file it led to at first; one that is gone leads nowhere."""
        now = [look() for look in self._looks]
        return now == self._first and None not in now
