"""What the kernel says about processes, read from `/proc` and asked through `prctl`.

Owns: boot time and boot id, start ticks, pid namespace, children, signals over process
descriptors. Does not own: what follows from it (`seen`, `supervisor`). Standard library
only and light to load, because the supervisor is forked from a process that has nothing else.
Promises: a pid alone never names a process here; pid and start ticks together do.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_ENDED = frozenset("ZXx")


class Stat(NamedTuple):
    """The fields of `/proc/<pid>/stat` that tell one process from another."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    start_ticks: int

    @property
    def ended(self) -> bool:
        """True for a zombie: it runs no code any more."""
        return self.state in _ENDED


def now_ms() -> int:
    """Milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


def boot_ms() -> int:
    """Milliseconds since this machine booted, suspend included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def boot_id() -> str:
    """The kernel's id of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def pid_namespace() -> str:
    """The pid namespace of this process, e.g. `pid:[4026531836]`."""
    return os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - the link leads to no path


def stat_of(pid: int) -> Stat | None:
    """What the kernel knows of `pid`, or None when it shows no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            line = file.read()
    except OSError:
        return None
    # The name stands in parentheses and may hold anything, parentheses included.
    fields = line[line.rindex(b")") + 2 :].split()
    numbers = (int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))
    return Stat(pid, fields[0].decode(), *numbers)


def all_stats() -> Iterator[Stat]:
    """Every process this one may see."""
    for name in os.listdir("/proc"):  # noqa: PTH208 - names only, and hundreds of them
        if name.isdigit() and (found := stat_of(int(name))) is not None:
            yield found


def children(pid: int) -> list[int]:
    """Direct children of `pid`, zombies included."""
    try:
        found: list[int] = []
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += [int(word) for word in file.read().split()]
        return found
    except OSError:
        # A kernel without that file; the slow way gives the same answer.
        return [stat.pid for stat in all_stats() if stat.parent == pid]


def descendants(pid: int) -> list[Stat]:
    """Everything below `pid` that still runs code."""
    found: list[Stat] = []
    ahead = children(pid)
    while ahead:
        child = ahead.pop()
        stat = stat_of(child)
        if stat is None:
            continue
        if not stat.ended:
            found.append(stat)
        ahead += children(child)
    return found


def is_alive(pid: int, start_ticks: int) -> bool | None:
    """Whether this very process runs; None when it is hidden and nothing can be said."""
    stat = stat_of(pid)
    if stat is not None:
        return stat.start_ticks == start_ticks and not stat.ended
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return None  # it exists and its entry in /proc is hidden from us
    # It appeared or vanished between the two looks; one more decides.
    stat = stat_of(pid)
    return None if stat is None else stat.start_ticks == start_ticks and not stat.ended


def open_process(pid: int, start_ticks: int) -> int | None:
    """A process descriptor of exactly this process, or None when it is not there any more."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return None
    # Compared after opening: from here on the descriptor cannot come to mean another one.
    stat = stat_of(pid)
    if stat is None or stat.start_ticks != start_ticks or stat.ended:
        os.close(descriptor)
        return None
    return descriptor


def send(pid: int, start_ticks: int, number: int) -> bool:
    """Signal exactly this process; False when it was gone or may not be signalled."""
    descriptor = open_process(pid, start_ticks)
    if descriptor is None:
        return False
    try:
        signal.pidfd_send_signal(descriptor, number)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def become_subreaper() -> None:
    """Make orphaned descendants children of this process. Raises OSError."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def become_undumpable() -> None:
    """Let no process of the same user read this one's memory. Raises OSError."""
    _prctl(_PR_SET_DUMPABLE, 0)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
