"""What the shell tool looks up before its start receipt.

Owns: the reading environment with what a repository and a project name (EC-59), write
intents for literal targets (TR-105), the environment of any command. Does not own: classes
(`classify`), run folders (`runs`). Nothing here changes anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from surefoot.tools.classify.environment import (
    ReadingEnvironment,
    files_of_project,
    reading_environment,
    runs_others,
)

KEY_VARIABLE = "SUREFOOT_IDEMPOTENCY_KEY"
LOOK_SECONDS = 5.0
MOST_BYTES = 1_048_576


class Refused(Exception):
    """The command must not start: `code` of TR-41 and a sentence."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def without_ours(variables: Mapping[str, str]) -> dict[str, str]:
    """An environment without any `SUREFOOT_*` variable."""
    return {name: value for name, value in variables.items() if not name.startswith("SUREFOOT_")}


async def reading(
    variables: Mapping[str, str], repositories: Sequence[str], projects: Sequence[tuple[str, str]] = ()
) -> ReadingEnvironment | None:
    """The environment a reader runs in, or None when it cannot be kept a reader here.

    `repositories` are all folders a git of the line may run in: settings of each can name programs.
    `projects` are its package clients, each with a folder it may run in, whose files can do the same.
    """
    for client, folder in projects:
        if await asyncio.to_thread(_runs_others, client, folder):
            return None
    plain = reading_environment(variables)
    if plain is None or not repositories:
        return plain
    names: list[str] = []
    for folder in repositories:
        found = await _git_settings(plain.variables, folder)
        if found is None:
            return None
        names.extend(found)
    return reading_environment(variables, names)


def _runs_others(client: str, folder: str) -> bool:
    """Whether a file of the project around `folder` may make its package client run something. Blocks."""
    here = Path(os.path.realpath(folder))
    for above in (here, *here.parents):
        for name in files_of_project(client):
            try:
                content = _content(above / name)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                content = None
            if content is None or runs_others(client, name, content):
                return True  # what cannot be looked at is not known to be harmless
    return False


def _content(path: Path) -> str | None:
    """What the file holds; None for what is no file, which is not waited for, and for a very long one."""
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return None
        content = file.read(MOST_BYTES + 1)
    return None if len(content) > MOST_BYTES else content.decode("utf-8", "replace")


async def _git_settings(variables: Mapping[str, str], directory: str) -> list[str] | None:
    """Names of the settings git would use there; listing them runs no program. None: cannot be told."""
    try:
        process = await asyncio.create_subprocess_exec(
            "git", "config", "--list", "--name-only", "-z",
            cwd=directory, env=dict(variables), start_new_session=True,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
    except OSError:
        return []  # no git here, or no such folder: the command will say so itself
    try:
        out, _ = await asyncio.wait_for(process.communicate(), LOOK_SECONDS)
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode != 0:
        return None
    return [name.decode("utf-8", "surrogateescape") for name in out.split(b"\0") if name]


def write_intents(targets: Iterable[str], ledger_files: frozenset[tuple[int, int]]) -> list[dict[str, Any]]:
    """One write intent for each literal target, with what stands there now. Blocks while it digests.

    Raises:
        Refused: a target is a file of the ledger, or cannot be looked at.
    """
    from surefoot.tools.files.changes import Change
    from surefoot.verifiers.sight import look, resolve

    found: list[dict[str, Any]] = []
    for target in targets:
        resolved = resolve(target, follow=True)
        before = look(resolved, ledger_files)
        if before.kind == "ledger":
            raise Refused("ledger_file", f"{target!r} belongs to the ledger and is not written by tools.")
        if before.kind == "unreadable":
            raise Refused("permission_denied", f"{target!r} cannot be looked at before it is written.")
        found += Change("write", target, resolved, before).intents()
    return found
