"""A prompt line on a terminal on which nothing is drawn twice: what is typed is only written behind.

Owns: which letters a change of the line adds, and when the prompt stands. Does not own: keys and the line
itself (`chat`), how lines above it look (`drawing`). Writes no escape sequence (UX-60).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from surefoot.surfaces.plain import width_of

REST_SECONDS = 0.05
"""How long lines have come to rest before the prompt is put below them."""


@dataclass(slots=True)
class Echo:
    """The line being typed, as far as it stands on screen."""

    write: Callable[[str], None]
    """Writes as it is given, without an end of line."""
    prompt: Callable[[], str]
    at_rest: Callable[[], str | None]
    """What is typed where a person may speak now; None where no prompt is to stand."""
    _shown: str | None = None
    """What stands behind the prompt; None when no prompt stands."""
    _resting: asyncio.TimerHandle | None = None

    def above(self, line: str) -> None:
        """Write a whole line; one that is being typed is begun anew below."""
        if self._shown is not None:
            self.write("\n")
            self._shown = None
        self.write(line + "\n")
        self.rest()

    def rest(self) -> None:
        """Let the prompt stand once the lines have come to rest."""
        if self._resting is not None:
            self._resting.cancel()
        self._resting = asyncio.get_running_loop().call_later(REST_SECONDS, self._stand)

    def _stand(self) -> None:
        text = self.at_rest()
        if text is not None:
            self.offer(text)

    def offer(self, text: str = "") -> None:
        """Let the prompt stand, with what was typed so far."""
        if self._shown is None:
            self.write(self.prompt() + text)
            self._shown = text

    def typed(self, text: str) -> None:
        """The line is this now: what is new is written, what was taken back at its end is wiped out."""
        shown = self._shown
        if shown is None:
            self.offer(text)
            return
        if text.startswith(shown):
            self.write(text[len(shown) :])
        elif shown.startswith(text) and "\n" not in shown[len(text) :]:
            self.write("\b \b" * width_of(shown[len(text) :]))
        else:
            self.write("\n" + self.prompt() + text)
        self._shown = text

    def sent(self) -> None:
        """The line was given; the next one begins below."""
        if self._shown is not None:
            self.write("\n")
        self._shown = None
