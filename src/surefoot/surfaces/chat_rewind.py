"""The list of earlier turns: which one the model's view goes back to before (UX-16).

Owns: the list, what its answer means. Does not own: what going back does (`runtime.rewriting`), keys (`chat`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from surefoot.surfaces import plain, view
from surefoot.surfaces.port import Driver, Screen
from surefoot.surfaces.words_chat import answer

LISTED = 20


class Asking(Protocol):
    """What the list needs of the chat around it."""

    def say(self, *lines: str) -> None: ...

    async def ask(self, lines: list[str], hint: str, *, may_be_left: bool = False) -> str: ...


async def rewound(driver: Driver, screen: Screen, chat: Asking, points: Sequence[tuple[str, str]]) -> str:
    """Ask which of these turns to go back to before; the words it began with, empty when nothing changed."""
    shown, language = points[:LISTED], screen.language
    if not shown:
        chat.say(answer("no_rewind", language))
        return ""
    room = max(20, screen.columns() - 6)
    rows = [
        f"{number:2} {plain.GUTTER}{plain.cut(view.clean(words), room)}"
        for number, (_, words) in enumerate(shown, 1)
    ]
    head, hint = answer("rewind_head", language), answer("rewind_hint", language)
    given = (await chat.ask([head, *rows], hint, may_be_left=True)).strip()
    number = int(given) if given.isdecimal() and len(given) < 3 else 0
    if not 0 < number <= len(shown):
        chat.say(answer("not_rewound", language))
        return ""
    turn_id, words = shown[number - 1]
    chat.say(*await driver.command("/rewind", turn_id))
    return words


__all__ = ["LISTED", "rewound"]
