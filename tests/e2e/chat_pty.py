"""A chat in a terminal of its own, driven as a person would."""

from __future__ import annotations

from typing import Any

import pexpect
from cli_world import SUREFOOT, World


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


def leave(child: Any) -> int:
    """Ctrl+D; the exit code."""
    child.send("\x04")
    child.expect(pexpect.EOF)
    child.close()
    return int(child.exitstatus)
