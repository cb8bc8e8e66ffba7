"""What a model is told before the first word of a session: our text, the place, the project's instructions (UX-45).

Owns: the joined text and the digests of the instruction files in it, of one and the same reading. Does not own:
finding and joining those files (`settings_files`), recording the digests (`app`, `runtime.equipment`).
Promises: the recorded digests are those of the files that the model was told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from surefoot.config import Settings, read_instructions
from surefoot.runtime.tools import Place

SYSTEM = """You are a careful agent that works in a project folder with tools.
Read before you write. Prefer `edit` over `write` for files that exist. Keep going until the task is done, then say
briefly what you did. Never state that something was done unless a tool result says so. When a result says that a call
may have happened, do not repeat it: look with read-only tools, report what you found with `recovery`, and let the
person decide."""


@dataclass(frozen=True, slots=True)
class Briefing:
    """The system text, and path → `sha256:…` of each instruction file in it."""

    text: str
    instructions: Mapping[str, str]


def briefing(settings: Settings, place: Place) -> Briefing:
    """Read the instruction files and join what a model is told."""
    found = read_instructions(place.directory, settings.places)
    ours, more = settings.system_text
    parts = [ours or SYSTEM, f"Working directory: {place.directory}", found.text, more]
    return Briefing("\n\n".join(part for part in parts if part), found.digests)
