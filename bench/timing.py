"""How a measurement is taken and told: interleaved rounds, medians, one Markdown table each.

Owns: the order in which cases take turns, percentiles, the table, the line about the machine.
Does not own: what is measured.
"""

from __future__ import annotations

import gc
import os
import platform
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

Case = Callable[[], Awaitable[float]]
"""Does the thing once and answers how long the part that counts took, in seconds."""


async def interleaved(cases: Mapping[str, Case], rounds: int) -> dict[str, list[float]]:
    """Run every case once in each round, each round beginning with another one."""
    names = list(cases)
    taken: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            taken[name].append(await cases[name]())
    return taken


def settle_memory() -> None:
    """Collect what building left behind, so that no case pays for it."""
    gc.collect()
    gc.freeze()


def median(values: Sequence[float]) -> float:
    return percentile(values, 0.5)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.3f}"


def verdict(kept: bool) -> str:
    return "yes" if kept else "**no**"


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print one Markdown table under a heading."""
    print(f"### {title}\n")
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print(flush=True)


def progress(text: str) -> None:
    """Say on standard error what is going on; standard output carries tables only."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


@contextmanager
def scratch() -> Iterator[Path]:
    """A fresh folder on the disk of this repository, gone at the end."""
    state = Path.cwd() / ".state"
    state.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=state, ignore_cleanup_errors=True) as name:
        yield Path(name)


def machine(folder: Path) -> str:
    """Date, size of the machine, and the file system of the folder that is measured."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    load = os.getloadavg()[0]
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC · {os.cpu_count()} cores ({_processor()}) · "
        f"{pages / (1 << 30):.0f} GiB · Linux {platform.release().split('-')[0]} · {_file_system(folder)} · "
        f"Python {platform.python_version()} · load {load:.1f}"
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _file_system(folder: Path) -> str:
    best, kind = "", "unknown file system"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, found, *_ = line.split()
        if str(folder.resolve()).startswith(mount) and len(mount) > len(best):
            best, kind = mount, found
    return kind


def clock() -> float:
    return time.perf_counter()
