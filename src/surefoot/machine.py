"""What the kernel says of this machine: its clocks, this boot, its own name.

Owns: the readings, of which every layer takes the same. Does not own: what a time or a name decides, nor what
is known of processes (`ledger.owners`, `tools.processes.kernel`).
"""

from __future__ import annotations

import time
from pathlib import Path


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
