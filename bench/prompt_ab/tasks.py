"""The three tasks: the world each begins in, the words of the person, and who succeeded (PR-85).

Owns: read, edit and the fixed verification, and their judges. Does not own: running (`trial`).
A judge looks at the world and at receipts; the answer's text is never asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from surefoot.core.model import Receipt, State

WRITERS = ("write", "edit", "multi_edit")
FILE_TOOLS = ("read", "list", "delete", "move", "make_directory", *WRITERS)
NOTE, SETTINGS, CHECK, CHECKED = "notes/marker.txt", "settings.ini", "verify.py", "verified.json"
COMMAND = f"python3 {CHECK}"
_CHECK = '''"""The fixed verification. It records that it really ran, and which variables it was given."""
import json, os, pathlib
settings = pathlib.Path("settings.ini").read_text()
runs = pathlib.Path("verified.json")
before = json.loads(runs.read_text()) if runs.exists() else []
runs.write_text(json.dumps([*before, {"settings": settings, "variables": sorted(os.environ)}]))
print("verified")
'''


@dataclass(frozen=True, slots=True)
class Ran:
    """What a judge may look at."""

    project: Path
    marker: str
    receipts: Sequence[Receipt]
    credentials: Collection[str]
    """Names of variables that hold a credential of a provider."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a person asks for. `judge` answers None for success, else why it failed."""

    words: str
    judge: Callable[[Ran], str | None]


def lay_out(project: Path, marker: str) -> None:
    """Make the world of a trial: the same files for every task, and a marker nobody can guess."""
    (project / "notes").mkdir(parents=True)
    (project / NOTE).write_text(f"The marker is {marker}.\n")
    (project / SETTINGS).write_text(_settings("draft", marker))
    (project / CHECK).write_text(_CHECK)


def _settings(mode: str, marker: str) -> str:
    return f"name = {marker}\nmode = {mode}\nkeep = yes\n"


def _read(ran: Ran) -> str | None:
    reads = [one for one in ran.receipts if one.tool == "read" and one.state is State.SUCCEEDED]
    if any(ran.marker in str((one.result or {}).get("text")) for one in reads):
        return None
    return "the file was read, but not the one with the marker" if reads else "nothing was read"


def _edit(ran: Ran) -> str | None:
    text = (ran.project / SETTINGS).read_text()
    if text == _settings("draft", ran.marker):
        return "the file was not edited"
    if text != _settings("ready", ran.marker):
        return "the file holds something else than what was asked for"
    made = [one for one in ran.receipts if one.tool in WRITERS and one.state is State.SUCCEEDED]
    return None if len(made) == 1 else f"{len(made)} effective edits instead of one"


def _verify(ran: Ran) -> str | None:
    if (ran.project / CHECK).read_text() != _CHECK:
        return "the verification itself was changed"
    runs = ran.project / CHECKED
    recorded = json.loads(runs.read_text()) if runs.exists() else []
    if not recorded:
        return "the verification did not run"
    if {name for run in recorded for name in run["variables"]} & set(ran.credentials):
        return "the verification process was given a credential"
    if not any(one.tool == "shell" and one.state is State.SUCCEEDED for one in ran.receipts):
        return "no receipt says that the verification ran"
    return (
        None if recorded[-1]["settings"] == _settings("draft", ran.marker) else "it verified something else"
    )


TASKS: Mapping[str, Task] = {
    "read": Task(f"Read the file {NOTE} and tell me the marker that stands in it.", _read),
    "edit": Task(f"In {SETTINGS}, change `mode = draft` to `mode = ready`. Change nothing else.", _edit),
    "verify": Task(f"Run the verification with `{COMMAND}` and tell me whether it passed.", _verify),
}
OFFERED = ("read", "list", "edit", "write", "shell")
ALLOWED = ("Read", "Edit", "Write", f"Bash({COMMAND})")
"""What runs without a question; everything else is denied, so that a model can reach nothing outside."""
