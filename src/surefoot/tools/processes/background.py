"""The model's tool for commands that run in the background: list, log, stop.

Owns: what is listed, the end of a log, handing a stop on. Does not own: starting one
(`tools.shell`), the surfaces' own list (`ending.survivors`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from surefoot.core.effects import EVERYTHING, Effect
from surefoot.core.model import EffectClass, State
from surefoot.runtime.tools import Arguments, LiveAttempt, Outcome, Place, Tool
from surefoot.tools.processes import folder
from surefoot.tools.processes.ending import Survivor, kill, survivors
from surefoot.tools.processes.output import SHOWN_BYTES, shown_output

_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": ["list", "log", "stop"]},
        "attempt": {"type": "string", "description": "Which one, as `list` names it; for log and stop."},
    },
    "required": ["action"],
    "additionalProperties": False,
}


def list_background(processes: Path) -> list[Survivor]:
    """Every command that was started in the background and still runs."""
    return [survivor for survivor in survivors(processes) if survivor.background]


def log_text(processes: Path, attempt_id: str, *, limit: int = SHOWN_BYTES) -> str:
    """The log of an attempt's command, head and tail. Raises OSError when there is none."""
    descriptor = folder.open_folder(str(processes / attempt_id))
    try:
        size = os.stat(folder.LOG, dir_fd=descriptor).st_size
        return shown_output(descriptor, size, log=str(processes / attempt_id / folder.LOG), limit=limit)
    finally:
        os.close(descriptor)


def background_tool(reach_of: Callable[[str], tuple[str, ...]] | None = None) -> Tool:
    """The `background` tool. `reach_of(attempt id)` gives the reach of the call that started it."""

    def effect(arguments: Arguments, place: Place) -> Effect:
        if arguments.get("action") != "stop":
            return Effect(EffectClass.READ_ONLY)
        reach = reach_of(str(arguments.get("attempt", ""))) if reach_of else (EVERYTHING,)
        return Effect(EffectClass.IDEMPOTENT_WRITE, reach or (EVERYTHING,))

    return Tool(
        name="background",
        description="List commands running in the background, read the log of one, or stop one.",
        parameters=_PARAMETERS,
        body=_body,
        effect=effect,
        summary=lambda arguments: f"{arguments.get('action')} {arguments.get('attempt', '')}".strip(),
    )


async def _body(attempt: LiveAttempt, arguments: Arguments) -> Outcome:
    processes: Path = attempt.services["processes"].processes
    if arguments["action"] == "list":
        found = await asyncio.to_thread(list_background, processes)
        return Outcome("\n".join(_row(survivor) for survivor in found) or "Nothing runs in the background.")
    name = str(arguments.get("attempt", ""))
    if not name or not folder_name(name):
        return Outcome("Name one of the attempts that `list` shows.", State.FAILED, error_kind="not_found")
    try:
        if arguments["action"] == "log":
            return Outcome(log_text(processes, name) or "(no output yet)")
    except OSError:
        return Outcome(f"There is no log of {name!r}.", State.FAILED, error_kind="not_found")
    if name not in {survivor.attempt_id for survivor in list_background(processes)}:
        return Outcome(f"{name} does not run in the background.")
    report = await asyncio.to_thread(kill, {"path": str(processes / name)})
    if report.gone:
        return Outcome(f"{name} has ended.")
    left = ", ".join(str(member.pid) for member in report.left)
    return Outcome(
        f"{name} has not ended; still alive: {left or 'unknown'}.", State.FAILED, error_kind="alive"
    )


def folder_name(text: str) -> bool:
    """Whether `text` is a plain name and leads to no other folder."""
    return text == Path(text).name and text not in (".", "..")


def _row(survivor: Survivor) -> str:
    age = survivor.age_ms // 1000
    return f"{survivor.attempt_id}  pid {survivor.pid}  {age} s  {survivor.command}  log {survivor.log}"
