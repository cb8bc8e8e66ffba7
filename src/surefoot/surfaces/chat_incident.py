"""The protocol card of a chat: what its keys do (UX-124, UX-126).

Owns: when it stands on screen, its keys, the incident that a press means. Does not own: whether it is offered
(`core.incident`), its lines (`incident_card`), which press is a decision (`keys`), the request (`runtime.incidents`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from surefoot.surfaces import incident_card
from surefoot.surfaces.drawing import APART
from surefoot.surfaces.keys import QUIET_MS, Keys
from surefoot.surfaces.port import Driver, Lines, Screen
from surefoot.surfaces.words_aloud import aloud

SEND = {"p": "recover"}
WAYS = {"m": "/model", "e": "/export", "b": "/rewind", "?": "help"}
"""What each of the other ways shows."""


@dataclass(slots=True)
class Offer:
    """The incident a person may act on in this chat, while nothing runs."""

    driver: Driver
    screen: Screen
    lines: Lines
    keys: Keys = field(default_factory=lambda: Keys(decisions=SEND, looks=WAYS, moves={"escape": "away"}))
    _told: str = ""
    """The incident whose card stands on screen; it is told once, and again after another refusal."""

    @property
    def on(self) -> bool:
        """Whether there is a card whose keys may be pressed."""
        return self.keys.call is not None

    @property
    def hint(self) -> str:
        """The key that sends, and what it does."""
        return incident_card.keys(self.screen.language).split(APART)[0]

    def again(self) -> None:
        """The next look tells the card, also one that was told before."""
        self._told = ""

    def hide(self) -> None:
        """Something else goes on; no key is taken."""
        self.keys.show(None, _now_ms())

    async def look(self) -> None:
        """Ask what may be acted on; a card that does not stand on screen yet is told, and takes keys (PR-29)."""
        card = await self.driver.deciding.incident()
        if card is None or self.lines.running:
            self.hide()
            return
        if card["incident_id"] != self._told:
            self._told = str(card["incident_id"])
            language = self.screen.language
            choices = self.screen.drawing.options(incident_card.keys(language), language)
            self.lines.say(*incident_card.lines(card, language, choices))
        self.keys.show(_as_call(card), _now_ms())
        self.lines.redraw()

    def press(self, data: str) -> str:
        """One key; the letters that were only text come back."""
        press = self.keys.press(data, _now_ms())
        if press.kind == "text":
            return press.name + (data if data != "escape" else "")
        if press.kind == "armed":
            asyncio.get_running_loop().call_later((QUIET_MS + 10) / 1000, self._settle)
        elif press.kind == "look":
            self._way(press.name)
        elif press.kind == "move":
            self.hide()
            self.lines.redraw()
        return ""

    def numbered(self, line: str) -> bool:
        """A choice named by its number: a way is shown; of sending it is told which key does it (UX-71)."""
        told = line.strip()
        if not (self.on and self.screen.drawing.numbered and told.isdecimal() and len(told) < 3):
            return False
        choices = incident_card.keys(self.screen.language).split(APART)
        if not 0 < int(told) <= len(choices):
            return False
        key, _, what = choices[int(told) - 1].partition(" ")
        if key in SEND:
            self.lines.say(aloud("press", self.screen.language, n=told, what=what, keys=key))
        elif key in WAYS:
            self._way(WAYS[key])
        else:
            self.hide()
        return True

    def _settle(self) -> None:
        press, call = self.keys.settle(_now_ms()), self.keys.call
        if press is not None and call is not None:
            # The id goes with the press, so that it can never recover a later incident (PR-81).
            self.lines.begin(self.driver.go_on(str(call["attemptId"])))

    def _way(self, shown: str) -> None:
        if shown == "help":
            language = self.screen.language
            self.lines.say(*self.screen.drawing.options(incident_card.keys(language), language))
        else:
            self.lines.show(shown)


def _as_call(card: Mapping[str, Any]) -> dict[str, Any]:
    """The card as the rules of key presses want a card: an id, and what may be done."""
    return {"attemptId": card["incident_id"], "actions": [{"action": "recover", "enabled": True}]}


def _now_ms() -> float:
    return time.monotonic() * 1000
