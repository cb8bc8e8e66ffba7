"""The chat without a terminal: broken-up stream, slash commands, counts of a turn. Pure.

Owns: where a stream may be broken into lines, what a typed line means, what the stop
line counts, what a turn is doing now, the details of a card. Does not own: keys and drawing (`chat`), words (`words`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from surefoot.errors import SurefootError
from surefoot.settings_table import MODES
from surefoot.surfaces import notices
from surefoot.surfaces.markup import Light
from surefoot.surfaces.phrases import translated
from surefoot.surfaces.plain import GUTTER, cut, width_of, wrap
from surefoot.surfaces.view import clean, summary_of
from surefoot.surfaces.ways import next_of
from surefoot.surfaces.words import say
from surefoot.surfaces.words_chat import SLASH

RECOVER = "/recover-context"
OWN_LINES = 200
ALIASES = {"/cost": "/usage", "/exit": "/quit", "/?": "/help"}


@dataclass(slots=True)
class Stream:
    """Foreign text as it arrives, given out in whole lines behind the gutter (UX-10)."""

    columns: int = 80
    light: Light | None = None
    """Draws Markdown where styles may be written; None leaves the text as it came."""
    _rest: str = ""

    def feed(self, text: str) -> list[str]:
        """The lines that are complete now; a line longer than the screen is broken at a space."""
        self._rest += text
        *done, self._rest = self._rest.split("\n")
        lines = [line for part in done for line in self._broken(part)]
        room = self._room()
        if width_of(self._rest) > room:
            *full, self._rest = wrap(self._rest, room)
            lines += [drawn for line in full for drawn in self._broken(line)]
        return lines

    def finish(self) -> list[str]:
        """What is left, as lines."""
        rest, self._rest = self._rest, ""
        lines = self._broken(rest) if rest else []
        if self.light is not None:
            self.light.fenced = False  # no code block reaches over the end of a reply
        return lines

    def _broken(self, part: str) -> list[str]:
        text = clean(part)
        room = self._room()
        return [GUTTER + line for line in (self.light.lines(text, room) if self.light else wrap(text, room))]

    def _room(self) -> int:
        return max(20, self.columns - len(GUTTER))


@dataclass(frozen=True, slots=True)
class Typed:
    """What a line means. `kind`: `prompt`, `command`, `own` (a command line of the person), `mistake`, `nothing`."""

    kind: str
    word: str = ""
    rest: str = ""


def typed(line: str) -> Typed:
    """A slash command, a prompt, or a typing error with the nearest name in `rest`."""
    text = line.strip()
    if not text.strip("!"):
        return Typed("nothing")
    if text.startswith("!"):
        return Typed("own", rest=text[1:].strip())
    if not text.startswith("/"):
        return Typed("prompt", rest=line)
    word, _, rest = text.partition(" ")
    word = ALIASES.get(word, word)
    head = re.split(r"\s", text, maxsplit=1)[0]
    if head == RECOVER:
        return Typed("command", head, line.lstrip()[len(head) + 1 :])  # guidance keeps every space (PR-61)
    if head.startswith(RECOVER):
        return Typed("prompt", rest=line)
    if word in SLASH:
        return Typed("command", word, rest.strip())
    if "/" in word[1:]:
        return Typed("prompt", rest=line)  # a path such as /etc/hosts begins a sentence
    near = difflib.get_close_matches(word, [*SLASH, *ALIASES], n=1, cutoff=0.4)
    return Typed("mistake", word, near[0] if near else "/help")


def recovery_words(rest: str) -> tuple[str | None, str]:
    """The rest of a `/recover-context` line: the incident it names, and the guidance as it was typed (PR-81)."""
    named, _, words = rest.partition(" ") if " " in rest.split("\n", 1)[0] else rest.partition("\n")
    return (named, words) if named.startswith("inc_") else (None, rest)


def own_output(text: str, language: str) -> list[str]:
    """What a command of the person's own said, behind the gutter; a long one by its end (UX-10, UX-19)."""
    rows = clean(text, lines=True).strip("\n").split("\n")
    left_out = len(rows) - OWN_LINES
    head = [say("more_lines", language, n=left_out)] if left_out > 0 else []
    return [*head, *(GUTTER + row for row in rows[-OWN_LINES:])] if text.strip() else []


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

    def open_checks(self) -> list[str]:
        """Checks of this turn that were stopped and that nobody, and no policy, has decided about yet."""
        return [
            attempt
            for attempt, receipt in self._states.items()
            if stopped_check(receipt) and not receipt.get("overlays")
        ]

    def attempts(self) -> list[str]:
        """The calls of this turn, by attempt."""
        return list(self._states)

    def clear(self) -> None:
        """Begin a turn."""
        self._states.clear()

    def counts(self, still_ending: Container[str] = ()) -> dict[str, int]:
        """How many calls ended in which way; those still at it are `ending`."""
        found: dict[str, int] = {}
        for attempt, receipt in self._states.items():
            key = "ending" if attempt in still_ending else _counted_as(receipt)
            found[key] = found.get(key, 0) + 1
        return found


def stopped_check(receipt: Mapping[str, Any]) -> bool:
    """A test run, build or linter that was stopped or met its limit, released by policy or about to be (UX-156)."""
    overlays, resolution = receipt.get("overlays") or (), receipt.get("resolution") or {}
    released = resolution.get("channel") == "policy" or not overlays
    ended = receipt.get("reason") in (
        "cancelled",
        "time_limit",
    )  # ends that we made, as the policy counts them
    return bool(receipt.get("check")) and receipt.get("state") == "unknown" and ended and released


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


@dataclass(slots=True)
class Doing:
    """What a turn is doing now and since when, for the status line."""

    what: str = ""
    since: float = 0.0
    _running: dict[str, str] = field(default_factory=dict)

    def begin(self, now: float) -> None:
        """A turn begins: the model is asked."""
        self._running.clear()
        self.what, self.since = "", now

    def see(self, receipt: Mapping[str, Any], now: float) -> None:
        """Note a call that began or ended."""
        attempt = str(receipt["attemptId"])
        if receipt.get("state") == "started":
            self._running[attempt] = clean(summary_of(receipt))[:60]
        else:
            self._running.pop(attempt, None)
        what = next(iter(self._running.values()), "")
        if what != self.what:
            self.what, self.since = what, now

    def line(self, language: str, now: float) -> str:
        """`git push · 4 s`, or that the model answers."""
        seconds = int(now - self.since)
        if self.what:
            return say("call_runs", language, what=self.what, seconds=seconds)
        return say("model_waits", language, seconds=seconds)


def opinions(text: str, attempts: Collection[str]) -> tuple[int, int]:
    """How many sentences a reply has, and how many of them name no call of its turn (UX-116)."""
    sentences = [part for part in re.split(r"(?<=[.!?。！？])\s+|\n+", text) if re.search(r"\w", part)]
    cited = [
        any(one in attempts or any(full.endswith(one[4:]) for full in attempts) for one in _IDS.findall(part))
        for part in sentences
    ]
    return len(sentences), cited.count(False)


_IDS = re.compile(r"att_[0-9a-z]{4,}")


def told_error(error: SurefootError, language: str) -> list[str]:
    """An error with its code, and the command that leads on (UX-9)."""
    told = clean(translated(error.message, language))
    return [
        f"{error.facts.get('code') or error.code}: {told}",
        say("end_next", language, command=next_of(error)),
    ]


def failure(end: Any, language: str) -> list[str]:
    """Why a turn failed: its error, or in words what ended it."""
    error = getattr(end, "error", None)
    if error is not None:
        return told_error(error, language)
    return [say("end_during_execution", language, reason=notices.why_ended(end.reason, language))]


def status_line(parts: Sequence[str], columns: int) -> str:
    """The status line in one row: where it is narrow the model gives way first, and what is cut is its end (UX-61)."""
    line = " · ".join(parts)
    return line if width_of(line) <= columns else cut(" · ".join(parts[1:]), columns)


def next_mode(mode: str) -> str:
    """The permission mode behind this one; bypass is never reached by a key."""
    ring = MODES[:-1]
    return ring[(ring.index(mode) + 1) % len(ring)] if mode in ring else ring[0]


def details(card: Mapping[str, Any]) -> list[list[str]]:
    """Everything the card has beside its words: reach, digest, evidence, codes of what is off."""
    rows = [
        ["attempt", str(card["attemptId"])],
        ["class", str(card.get("class"))],
        ["reach", ", ".join(card.get("reach") or ())],
        ["decision", str(card.get("decision"))],
        ["digest", str(card.get("argumentDigest"))],
    ]
    if card.get("arguments"):
        rows.append(["arguments", clean(card["arguments"])])
    for action in card.get("actions") or ():
        if not action.get("enabled"):
            rows.append([str(action["action"]), str(action.get("code"))])
    return rows
