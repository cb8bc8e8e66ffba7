"""Whether names still lead to the files they led to, told by device and inode and by nothing else.

Owns: the system call of the guard that every commit passes (TR-194). Does not own: which
names are watched, and what follows when one leads elsewhere (`database`, `sqlite`).

Asking for the times of a file is not free: since Linux 6.13 whoever reads them makes the
next write to that file store a time of its own, and the sync of that write takes a third
longer. So the times are not asked for where a system lets one say so.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_AT_FDCWD = -100
_STATX_INO = 0x100
_STATX_BYTES = 256
_INO, _DEVICE = slice(32, 40), slice(136, 144)

Look = Callable[[bytes], tuple[Any, Any]]
"""What stands for inode and device of the file behind a name, in a form of its own. Raises `OSError`."""


def by_stat(path: bytes) -> tuple[Any, Any]:
    """Look by the call that every system has."""
    facts = os.stat(path)  # noqa: PTH116
    return facts.st_ino, facts.st_dev


def by_statx() -> Look | None:
    """A look by `statx`, or None where the C library, the kernel or a sandbox has none."""
    try:
        statx: Any = ctypes.CDLL(None, use_errno=True).statx
    except (AttributeError, OSError, TypeError):
        return None
    statx.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
    told = ctypes.create_string_buffer(_STATX_BYTES)
    address = ctypes.addressof(told)

    def look(path: bytes) -> tuple[Any, Any]:
        if statx(_AT_FDCWD, path, 0, _STATX_INO, address):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)
        raw = told.raw
        return raw[_INO], raw[_DEVICE]

    try:
        inode, _ = look(os.fsencode(os.sep))
    except OSError:
        return None
    right = int.from_bytes(inode, sys.byteorder) == by_stat(os.fsencode(os.sep))[0]
    return look if right else None


class Names:
    """The names of files that are open, and what they led to. Not for two threads at once."""

    def __init__(self, *paths: Path) -> None:
        self._paths = [os.fsencode(path) for path in paths]
        self._look = by_statx() or by_stat
        self._first = self._now()

    def _now(self) -> list[tuple[Any, Any]] | None:
        try:
            return [self._look(path) for path in self._paths]
        except OSError:
            return None

    def lead_there_still(self) -> bool:
        """Whether each name leads to the file it led to at first; one that is gone leads nowhere."""
        return self._first is not None and self._now() == self._first
