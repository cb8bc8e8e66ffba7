"""The chat without a terminal: broken-up stream, slash commands, counts of a turn. Pure.

Owns: where a stream may be broken into lines, what a typed line means, what the stop
line counts. Does not own: keys and drawing (`chat`), words (`words`).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from surefoot.surfaces.plain import width_of, wrap
from surefoot.surfaces.view import clean

GUTTER = "│ "

SLASH: Mapping[str, str] = {
    "/help": "these commands and the keys",
    "/model": "the model in use",
    "/permissions": "mode and rules; /permissions MODE sets the mode",
    "/mcp": "MCP servers of the settings",
    "/resume": "sessions of this project",
    "/clear": "start a new session",
    "/usage": "tokens of this session (also /cost)",
    "/doctor": "check settings, ledger, keys and terminal",
    "/recover": "calls that may have happened",
    "/continue": "go on without new words",
    "/quit": "leave; what runs under supervision goes on",
}
ALIASES = {"/cost": "/usage", "/exit": "/quit", "/?": "/help"}
MODES = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")
KEY_HELP = (
    "Enter send · Alt+Enter or Ctrl+J new line · Esc stop the turn · Ctrl+C clear, stop, leave",
    "Ctrl+D leave · Shift+Tab next permission mode · Ctrl+R search history · Ctrl+G editor",
    "Ctrl+O full transcript · Ctrl+Z suspend · / commands · @ files · ? keys",
)


@dataclass(slots=True)
class Stream:
    """Foreign text as it arrives, given out in whole lines behind the gutter (UX-10)."""

    columns: int = 80
    _rest: str = ""

    def feed(self, text: str) -> list[str]:
        """The lines that are complete now; a line longer than the screen is broken at a space."""
        self._rest += text
        *done, self._rest = self._rest.split("\n")
        lines = [line for part in done for line in self._broken(part)]
        room = self._room()
        if width_of(self._rest) > room:
            *full, self._rest = wrap(self._rest, room)
            lines += [GUTTER + clean(line) for line in full]
        return lines

    def finish(self) -> list[str]:
        """What is left, as lines."""
        rest, self._rest = self._rest, ""
        return self._broken(rest) if rest else []

    def _broken(self, part: str) -> list[str]:
        return [GUTTER + line for line in wrap(clean(part), self._room())]

    def _room(self) -> int:
        return max(20, self.columns - len(GUTTER))


@dataclass(frozen=True, slots=True)
class Typed:
    """What a line means. `kind`: `prompt`, `command`, `mistake`, `nothing`."""

    kind: str
    word: str = ""
    rest: str = ""


def typed(line: str) -> Typed:
    """A slash command, a prompt, or a typing error with the nearest name in `rest`."""
    text = line.strip()
    if not text:
        return Typed("nothing")
    if not text.startswith("/"):
        return Typed("prompt", rest=line)
    word, _, rest = text.partition(" ")
    word = ALIASES.get(word, word)
    if word in SLASH:
        return Typed("command", word, rest.strip())
    if "/" in word[1:]:
        return Typed("prompt", rest=line)  # a path such as /etc/hosts begins a sentence
    near = difflib.get_close_matches(word, [*SLASH, *ALIASES], n=1, cutoff=0.4)
    return Typed("mistake", word, near[0] if near else "/help")


@dataclass(slots=True)
class Count:
    """The newest state of each call of a turn."""

    _states: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def see(self, receipt: Mapping[str, Any]) -> bool:
        """Note a receipt as it is now; True when what is told of it has changed."""
        before = self._states.get(str(receipt["attemptId"]))
        self._states[str(receipt["attemptId"])] = receipt
        keys = ("state", "overlays", "inspection")
        return before is None or any(before.get(key) != receipt.get(key) for key in keys)

    def clear(self) -> None:
        """Begin a turn."""
        self._states.clear()

    def counts(self) -> dict[str, int]:
        """How many calls ended in which way; those still at it are `ending`."""
        found: dict[str, int] = {}
        for receipt in self._states.values():
            key = _counted_as(receipt)
            found[key] = found.get(key, 0) + 1
        return found


def _counted_as(receipt: Mapping[str, Any]) -> str:
    state = str(receipt.get("state"))
    if state == "started":
        return "ending"
    if state == "dispatched":
        return "not_started"
    if state == "unknown":
        if receipt.get("class") == "READ_ONLY":
            return "not_started"
        alive = (receipt.get("executor") or {}).get("state") == "alive"
        if receipt.get("check") and not alive:
            return "check"
        return "ending" if alive else "unknown"
    return state


def next_mode(mode: str) -> str:
    """The permission mode behind this one; bypass is never reached by a key."""
    ring = MODES[:-1]
    return ring[(ring.index(mode) + 1) % len(ring)] if mode in ring else ring[0]
