"""What a chat needs of the session behind it, and of the terminal in front of it.

Owns: `Driver`, `Deciding`, `Lines`, `KeyRow` and `Screen`. Does not own: the chat (`chat`), the session
(`cli.chatting`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from surefoot.surfaces.drawing import INLINE, Drawing

LOOK_REQUESTS = 8
"""The most model requests of a turn in which the model only looks (UX-116)."""


class Deciding(Protocol):
    """What the card on screen needs of a session: its keys, and what it shows beside the facts."""

    async def act(self, action: str, call: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]: ...

    async def process(self, choice: str, call: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]: ...

    async def incident(self) -> Mapping[str, Any] | None: ...

    def last_output(self, call: Mapping[str, Any]) -> list[str]: ...


class Driver(Protocol):
    """What the chat needs of a session; made by the command line."""

    session_id: str
    model: str
    mode: str

    @property
    def deciding(self) -> Deciding: ...

    def snapshot(self) -> Mapping[str, Any]: ...

    def still_ending(self) -> Mapping[str, float]: ...

    async def submit(self, text: str) -> Any: ...

    async def go_on(self, recovering: str | None = None) -> Any: ...

    async def ask_to_look(self, card: Mapping[str, Any]) -> Any: ...

    async def stop(self) -> None: ...

    async def close(self) -> None: ...

    def take_parked(self) -> list[str]: ...

    async def command(self, word: str, rest: str) -> list[str]: ...

    def set_mode(self, mode: str) -> None: ...


class Lines(Protocol):
    """What a card on screen needs of the chat around it."""

    def say(self, *lines: str) -> None: ...

    def keep(self, work: Coroutine[Any, Any, Any]) -> None: ...

    def redraw(self) -> None: ...

    def ask_to_look(self, card: Mapping[str, Any]) -> None: ...

    def show(self, command: str) -> None: ...

    def begin(self, work: Awaitable[Any]) -> None: ...

    @property
    def running(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class KeyRow:
    """Keys pressed in this order, by the names of the editor, what they do, and when they do it; None is always.

    What a key does is told of the press by the editor's own event: `current_buffer`, `app`, `data`.
    """

    keys: tuple[str, ...]
    action: Callable[[Any], None]
    when: Callable[[], bool] | None = None


@dataclass(frozen=True, slots=True)
class Screen:
    """How the chat is drawn here."""

    language: str
    columns: Callable[[], int]
    ascii_only: bool
    write: Callable[[str], None]
    colour: bool = False
    """Whether styles may be written; without them text stays as it came."""
    drawing: Drawing = INLINE
