"""The model's tool for commands that run in the background: list, log, stop.

Owns: what is listed, the end of a log, handing a stop on, and that each end is told once, by
whichever agent of the project is open (UX-157). Does not own: starting one (`tools.shell`), the
surfaces' own list (`ending.survivors`), the words of an end (surfaces).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.core.effects import EVERYTHING, Effect
from surefoot.core.model import EffectClass, State
from surefoot.runtime.tools import Arguments, LiveAttempt, Outcome, Place, Tool
from surefoot.tools.processes import folder
from surefoot.tools.processes.ending import Survivor, kill, lives_on, survivors
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


@dataclass(frozen=True, slots=True)
class End:
    """How a background command ended; without a record of its supervisor nobody knows how."""

    attempt_id: str
    exit_code: int | None
    signal: int | None
    log: str


class Ends:
    """The ends of background commands that nobody was told of, each given once to one agent of all.

    Remembers which run folders have nothing more to tell, so that a look costs what is new.
    """

    def __init__(self, processes: Path, *, probe_seconds: float) -> None:
        self._processes = processes
        self._probe_ms = int(probe_seconds * 1000)
        self._over: set[str] = set()

    def take(self) -> list[End]:
        """Ends since the last look, ours from now on: no other agent tells them. Reads and marks files only."""
        try:
            names = sorted(os.listdir(self._processes))  # noqa: PTH208
        except OSError:
            return []
        found = []
        for name in names:
            if name in self._over:
                continue
            with contextlib.suppress(OSError):
                end = self._ended(name)
                found += [end] if end is not None else []
        return found

    def _ended(self, name: str) -> End | None:
        place = folder.open_folder(str(self._processes / name))
        try:
            claimed = folder.read_record(place, folder.CLAIM)
            if claimed is None:
                return None  # not begun; a later look finds it
            if not claimed.get("background"):
                self._over.add(name)
                return None
            # Life is looked for before the record of its end: what ends in between is found by the next look.
            lives = lives_on(self._processes / name, place)
            found = folder.read_record(place, folder.EXIT)
            if lives:
                return None
            self._over.add(name)
            if self._told_by_its_call(found) or not mark_told(place):
                return None
        finally:
            os.close(place)
        found = found or {}
        log = str(self._processes / name / folder.LOG)
        return End(name, found.get("code"), found.get("signal"), log)

    def _told_by_its_call(self, found: Mapping[str, Any] | None) -> bool:
        """Whether it ended before it had lived long enough to be a resource (TR-205)."""
        begun, over = (found or {}).get("startedBoot"), (found or {}).get("endedBoot")
        return bool(begun and over and over - begun < self._probe_ms)


def mark_told(place: int) -> bool:
    """Note in an open run folder that its end is told; False when somebody did so before."""
    try:
        made = os.open(folder.TOLD, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=place)
    except OSError:
        return False
    os.close(made)
    return True


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
