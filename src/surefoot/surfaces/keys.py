"""Which key press is a decision about a card. Pure; the clock is handed in.

Owns: the rules of UX-71 to UX-74: quiet time, bursts and pastes, stable evidence, the
code. Does not own: reading keys (`chat`), what an action does (`runtime.controller`).

A press is a value in, an answer out. Nothing is preselected, and no key decides by
itself with the passing of time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from surefoot.core.admission import carries
from surefoot.surfaces.view import KEYS, code_of, needs_code

QUIET_MS = 350
BURST_MS = 15
DECISIONS = {key: action for action, key in KEYS.items() if action != "inspect"}
CHOICES = {"t": "adopt", "s": "kill", "v": "leave"}
"""The keys of what a call left running (UX-78): attach, stop it, leave it."""
ALL, CONFIRM_ALL = "H", "confirm_all"
LOOKS = {"i": "inspect", "a": "ask_model", "d": "details", "o": "timeline", "?": "help"}
MOVES = {"j": "forth", "k": "back", "escape": "away"}


@dataclass(frozen=True, slots=True)
class Press:
    """What a key was taken for.

    `kind` is `text` (it goes to the input line, after the letters in `name` that were held
    back), `swallowed`, `look`, `move`, `list` (of what `H` would confirm), `armed`, `code`, `decide`,
    `choose` (about a process) or `refused` (`name` is the code).
    """

    kind: str
    name: str = ""


@dataclass(slots=True)
class Keys:
    """The state of one card on screen: when keys and evidence last moved, and a code being typed.

    Call `press` for each key in order, with milliseconds of a clock that never steps back,
    and `settle` when `QUIET_MS` have gone by since a press was `armed`.
    """

    call: Mapping[str, Any] | None = None
    decisions: Mapping[str, str] = field(default_factory=lambda: DECISIONS)
    looks: Mapping[str, str] = field(default_factory=lambda: LOOKS)
    moves: Mapping[str, str] = field(default_factory=lambda: MOVES)
    evidence_at_ms: float = float("-inf")
    last_key_ms: float = float("-inf")
    _pending: str | None = field(default=None)
    _typed: str = field(default="")
    _held: tuple[str, str, float] | None = field(default=None)
    _several: bool = False
    _offered: tuple[tuple[str, str], ...] = field(default=())
    _listed: tuple[tuple[str, str], ...] = field(default=())
    _listed_at_ms: float = field(default=float("-inf"))

    def offer(self, carried: tuple[tuple[str, str], ...], *, several: bool) -> None:
        """The calls, by attempt and inspection, that `H` may confirm; another set is listed anew.

        `several` says that more than one call is open; with one `H` is a letter like any other.
        """
        if carried != self._offered:
            self._listed = ()
        self._offered, self._several = carried, several

    @property
    def listed(self) -> tuple[tuple[str, str], ...]:
        """What stands on screen to be confirmed by a second `H`."""
        return self._listed

    def show(self, call: Mapping[str, Any] | None, now_ms: float) -> None:
        """Put a card on screen. New evidence, or another card, starts the time anew."""
        if _evidence(call) != _evidence(self.call):
            self.evidence_at_ms = now_ms
            self._pending, self._typed, self._held = None, "", None
        self.call = call

    def press(self, key: str, now_ms: float, *, line_empty: bool = True, pasted: bool = False) -> Press:
        """What this key means now. A decision that needs no code is only armed; `settle` makes it."""
        since, self.last_key_ms = now_ms - self.last_key_ms, now_ms
        if self.call is None or not line_empty or pasted or (len(key) != 1 and key != "escape"):
            return self._text()
        if self._pending is not None:
            return self._code(key, since)
        if self._held is not None:
            return self._text()  # a second letter so soon is the beginning of a word, or of a paste
        if since < QUIET_MS:
            return Press("swallowed")
        if key == ALL and self._several:
            return self._all(now_ms)
        self._listed = ()  # the list is answered at once, or it is listed again
        if key in self.moves:
            return Press("move", self.moves[key])
        if key in self.looks:
            return Press("look", self.looks[key])
        if key in self.decisions:
            return self._arm(key, self.decisions[key], now_ms)
        if CHOICES.get(key) in choices_of(self.call):
            return self._hold(key, CHOICES[key], now_ms)
        return Press("text")

    def settle(self, now_ms: float) -> Press | None:
        """The decision whose key stood alone long enough, or None."""
        if self._held is None or now_ms - self._held[2] < QUIET_MS:
            return None
        action, self._held = self._held[1], None
        return Press("choose" if action in CHOICES.values() else "decide", action)

    def quiet(self, now_ms: float) -> bool:
        """Whether no key came in the last 350 ms; notes this one."""
        since, self.last_key_ms = now_ms - self.last_key_ms, now_ms
        return since >= QUIET_MS

    def _all(self, now_ms: float) -> Press:
        """The first press lists, the second confirms what was listed and nothing else (UX-75)."""
        if not self._offered:
            return Press("list")
        if self._listed != self._offered:
            self._listed, self._listed_at_ms = self._offered, now_ms
            return Press("list")
        if now_ms - self._listed_at_ms < QUIET_MS:
            return Press("swallowed")
        return self._hold(ALL, CONFIRM_ALL, now_ms)

    def _hold(self, key: str, action: str, now_ms: float) -> Press:
        if now_ms - self.evidence_at_ms < QUIET_MS:
            return Press("swallowed")
        self._held = (key, action, now_ms)
        return Press("armed", action)

    def _arm(self, key: str, action: str, now_ms: float) -> Press:
        if now_ms - self.evidence_at_ms < QUIET_MS:
            return Press("swallowed")
        call = self.call or {}
        refused = _refused(call, action)
        if refused:
            return Press("refused", refused)
        if action in KEYS and needs_code(action, call):
            self._pending, self._typed = action, ""
            return Press("code", action)
        return self._hold(key, action, now_ms)

    def _code(self, key: str, since: float) -> Press:
        action = self._pending or ""
        wanted = code_of(self.call or {})
        typed = self._typed + key.lower()
        if key == "escape":
            self._pending, self._typed = None, ""
            return Press("swallowed")
        if since <= BURST_MS or not wanted.startswith(typed):
            return self._text()
        if typed != wanted:
            self._typed = typed
            return Press("swallowed")
        self._pending, self._typed = None, ""
        return Press("decide", action)

    def _text(self) -> Press:
        """Nothing was decided; letters held back so far belong to the input line."""
        held = self._held[0] if self._held else ""
        if self._pending:
            held = KEYS[self._pending] + self._typed
        self._pending, self._typed, self._held = None, "", None
        return Press("text", held)


def _evidence(call: Mapping[str, Any] | None) -> tuple[Any, ...]:
    if call is None:
        return ()
    actions = tuple((a["action"], bool(a.get("enabled"))) for a in call.get("actions") or ())
    return (
        call.get("attemptId"),
        call.get("inspectionId"),
        (call.get("executor") or {}).get("state"),
        len(call.get("late") or ()),
        actions,
        choices_of(call),
    )


def choices_of(call: Mapping[str, Any]) -> tuple[str, ...]:
    """What may be chosen about the processes of a call."""
    return tuple((call.get("process") or {}).get("choices") or ())


def carried(calls: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """The open calls of which proof or strong evidence says that they happened, by attempt and inspection."""
    return tuple(
        (str(call["attemptId"]), str(call["inspectionId"]))
        for call in calls
        if carries(call.get("inspection") or {})
        and _refused(call, "confirm") is None
        and not needs_code("confirm", call)
    )


def _refused(call: Mapping[str, Any], action: str) -> str | None:
    for offered in call.get("actions") or ():
        if offered["action"] == action:
            return None if offered.get("enabled") else str(offered.get("code") or "unsupported")
    return "unsupported"


def drawn(call: Mapping[str, Any]) -> list[str]:
    """The actions drawn as choices: those that would be accepted (UX-71); `d` names the others."""
    return [str(offered["action"]) for offered in call.get("actions") or () if offered.get("enabled")]
