"""What `/diff`, `/context` and `/export` of a chat answer.

Owns: these three answers. Does not own: the other slash commands (`chatting`), what an export holds
(`export`), the environment a reader runs in (`tools.processes.preparing`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from surefoot.config import Settings, read_instructions
from surefoot.core.model import Kind
from surefoot.errors import UsageError
from surefoot.surfaces import export, plain, view
from surefoot.surfaces.cli import exporting
from surefoot.surfaces.phrases import translated
from surefoot.surfaces.words_chat import answer
from surefoot.surfaces.words_export import told
from surefoot.tools.processes.preparing import reading

DIFF_LINES = 400
DIFF = ("git", "--no-pager", "diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD", "--")
UNTRACKED = ("git", "ls-files", "--others", "--exclude-standard")


async def diff_lines(directory: Path, language: str, styled: Callable[[str], str] = str) -> list[str]:
    """What the work tree has that its last commit has not, without running a program of the repository."""
    changed, fresh = await _git(directory, DIFF), await _git(directory, UNTRACKED)
    if changed is None:
        return [answer("no_repository", language)]
    lines = [styled(view.clean(line)) for line in changed.splitlines()]
    lines += [answer("untracked", language, file=view.clean(name)) for name in (fresh or "").splitlines()]
    if not lines:
        return [answer("no_change", language)]
    more = [answer("more_lines", language, n=len(lines) - DIFF_LINES)] if len(lines) > DIFF_LINES else []
    return [*(plain.GUTTER + line for line in lines[:DIFF_LINES]), *more]


async def _git(directory: Path, command: tuple[str, ...]) -> str | None:
    """The output of a git that only reads (EC-59); None where there is no repository, or where it could not."""
    environment = await reading(os.environ, [str(directory)])
    if environment is None:
        return None
    try:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=directory, env=dict(environment.variables), stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
    except OSError:
        return None
    out, _ = await process.communicate()
    return out.decode("utf-8", "replace") if process.returncode == 0 else None


async def context_lines(controller: Any, settings: Settings, directory: Path, language: str) -> list[str]:
    """What the model is given with the next request, in counts."""
    session = controller.session
    messages = (await session.history()).messages(session.book)
    entries = await session.ledger.read(session.session_id)
    usages = [entry.payload.get("usage") or {} for entry in entries if entry.kind == Kind.ASSISTANT]
    sizes = [usage["inputTokens"] for usage in usages if usage.get("inputTokens")]
    lines = [answer("context", language, messages=len(messages), tokens=sizes[-1] if sizes else "?")]
    found = read_instructions(directory, settings.places)
    return [*lines, *(answer("instructions", language, file=view.clean(name)) for name in found.digests)]


async def export_lines(settings: Settings, session_id: str, file: str, language: str) -> list[str]:
    """Write the session into a new file, secrets taken out, and tell what was."""
    target = Path(file or f"surefoot-{session_id[-8:]}.md")
    whole = await exporting.read_export(settings, session_id)
    try:
        form = "json" if target.suffix == ".json" else "md"
        exporting.write_new(target, exporting.text_of(whole, form, language))
    except UsageError as error:
        return [f"{error.code}: {translated(error.message, language)}"]
    return [told("written", language, file=view.clean(target)), *export.removed_lines(whole, language)]
