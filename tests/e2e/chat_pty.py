"""A chat in a terminal of its own, driven as a person would."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pexpect
from cli_world import SUREFOOT, World, wait_for


def spawned(world: World, *arguments: str, rows: int = 40, columns: int = 90) -> Any:
    """A command in the world's project, on a terminal of this size; nothing of it is awaited."""
    return pexpect.spawn(
        SUREFOOT[0], [*SUREFOOT[1:], *arguments], cwd=str(world.project), env=world.environ, encoding="utf-8",
        dimensions=(rows, columns), timeout=90,
    )  # fmt: skip


def chat(world: World, *arguments: str, rows: int = 40, columns: int = 90) -> Any:
    """A chat that has drawn its first prompt."""
    child = spawned(world, *arguments, rows=rows, columns=columns)
    child.expect(">")
    return child


def expect_all(child: Any, *patterns: str) -> str:
    """Wait for lines that tasks of their own write, in whichever order; gives all that stood before the last."""
    waiting, seen = list(patterns), ""
    while waiting:
        waiting.pop(child.expect(waiting))
        seen += child.before
    return seen


def asleep(pid: int) -> bool:
    """Whether no thread of a process runs, waits for a core, or waits for a disk."""
    stats = []
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        try:
            stats.append((thread / "stat").read_text())
        except OSError:
            continue  # ended meanwhile
    return all(stat.rpartition(")")[2].split()[0] not in ("R", "D") for stat in stats)


def heard(child: Any) -> None:
    """Return when the process has taken in what was typed so far, and has drawn what it had to draw.

    The guard measures between moments at which the process reads its keys. On a machine too busy to let it
    run, two keys that were typed far apart are read at once, and the second counts as too soon.
    """
    for _ in range(3):
        time.sleep(0.03)  # the terminal hands a key over after the write of it has returned
        wait_for(lambda: asleep(child.pid), 90)


def quiet(child: Any) -> None:
    """The pause a person makes before a key that decides (UX-72); the guard is time itself."""
    heard(child)
    time.sleep(0.5)
    heard(child)


def leave(child: Any) -> int:
    """Ctrl+D; the exit code."""
    child.send("\x04")
    child.expect(pexpect.EOF)
    child.close()
    return int(child.exitstatus)
