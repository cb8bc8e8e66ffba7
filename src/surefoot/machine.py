"""What the kernel says of this machine: its clocks, this boot, its own name.

Owns: the readings, of which every layer takes the same, and the one system call for which Python has no name.
Does not own: what a time, a name or a file decides, nor what is known of processes (`ledger.owners`,
`tools.processes.kernel`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_AT_FDCWD = -100
_STATX_BYTES = 256
INODE, BORN = 0x100, 0x800
"""Fields that `statx` may be asked for, as in linux/stat.h."""


def now_ms() -> int:
    """Milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


def boot_ms() -> int:
    """Milliseconds since this machine booted, suspend included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def boot_id() -> str:
    """The kernel's id of this boot, or an empty text when there is none."""
    return _text("/proc/sys/kernel/random/boot_id")


def machine_id() -> str:
    """The id of this machine's installation, or an empty text when there is none."""
    return _text("/etc/machine-id") or _text("/var/lib/dbus/machine-id")


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def statx(path: bytes, fields: int) -> Callable[[], bytes | None] | None:
    """Prepare the question what the file is that a name leads to: the bytes of `struct statx`, or None for no file.

    Nothing is opened, and no field is read that was not asked for; the kernel marks in the first word which
    it filled. None instead of a question where the C library, the kernel or a sandbox has no such call.
    """
    import ctypes  # only those who ask pay for it

    try:
        call: Any = ctypes.CDLL(None).statx
        told = ctypes.create_string_buffer(_STATX_BYTES)
        # Made once: converting the arguments takes as long as the call, which every commit makes twice.
        asked = (
            ctypes.c_int(_AT_FDCWD),
            ctypes.c_char_p(path),
            ctypes.c_int(0),
            ctypes.c_uint(fields),
            ctypes.byref(told),
        )
    except (AttributeError, OSError, TypeError):
        return None

    def look() -> bytes | None:
        return None if call(*asked) else told.raw

    return look
