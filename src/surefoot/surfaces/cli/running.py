"""The one place where the command line meets `app`: opening a session, and one turn in it.

Owns: waiting for a held session, what an unattended run does before its first request
(UX-36), how a turn's end becomes the facts of an exit code. Does not own: wiring (`app`),
printing (`printing`), the chat (`surfaces.chat`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from surefoot import app as wiring
from surefoot.core.model import Notice
from surefoot.errors import (
    LedgerError,
    ProviderCredentials,
    ProviderRefused,
    SessionHeld,
    SurefootError,
    UsageError,
)
from surefoot.surfaces.cli.output import is_person_here
from surefoot.surfaces.cli.talk import Wish
from surefoot.surfaces.verdict import Ending
from surefoot.surfaces.view import is_card

HELD_AGAIN_SECONDS = 0.25


@dataclass(slots=True)
class Opened:
    """An app with its session; `resumed` is true when the session existed before."""

    app: Any
    controller: Any
    resumed: bool


@asynccontextmanager
async def opened(
    wish: Wish, *, asker: Any = None, on_notice: Callable[[Notice], None] | None = None
) -> AsyncIterator[Opened]:
    """Open the app and the session a command line means; close both at the end."""
    async with wiring.open_app(
        wish.settings, directory=wish.directory, asker=asker, on_notice=on_notice
    ) as app:
        resumed = wish.go_on or wish.resume is not None
        controller = await _session(app, wish)
        if wish.max_turns is not None:
            controller.max_steps = wish.max_turns
        try:
            yield Opened(app, controller, resumed)
        finally:
            await controller.close()


async def _session(app: Any, wish: Wish) -> Any:
    """The session, waiting for its holder as long as `--wait` says."""
    until = time.monotonic() + wish.wait_seconds
    while True:
        try:
            return await app.session(
                wish.resume or None,
                new=not wish.go_on and wish.resume is None,
                continue_newest=wish.go_on or wish.resume == "",
                take_over=_may_take_over(wish),
            )
        except SessionHeld:
            if time.monotonic() >= until:
                raise
            await asyncio.sleep(HELD_AGAIN_SECONDS)


def _may_take_over(wish: Wish) -> bool:
    """A take-over is a person's word at a terminal: the session's short id is typed (UX-51)."""
    if not wish.take_over:
        return False
    if not is_person_here():
        raise UsageError("--take-over is decided by a person at a terminal.")
    import click

    wanted = wish.resume or ""
    if not wanted:
        raise UsageError("--take-over needs the session: surefoot -r SESSION --take-over.")
    typed = click.prompt(f"Another process holds {wanted}. Type its id to take it over", err=True)
    return bool(typed.strip() == wanted)


def undecided(snapshot: dict[str, Any]) -> list[dict[str, Any]]:
    """Open writes nobody has decided: these alone make exit code 3 (UX-34, UX-162)."""
    return [
        call for call in snapshot.get("calls") or () if is_card(call) and "rejected" not in call["overlays"]
    ]


def judged(end: Any) -> Ending:
    """The facts of an ending that a turn's end tells by itself."""
    status, reason, error = str(end.status), end.reason or "", getattr(end, "error", None)
    if status in ("completed", "cancelled"):
        return Ending(interrupted=status == "cancelled", reason=reason)
    if error is not None:
        return of_error(error)
    return Ending(failed=reason != "iteration_limit", turn_limit=reason == "iteration_limit", reason=reason)


def of_error(error: SurefootError) -> Ending:
    """The facts of an ending by an exception."""
    told = error.message
    if isinstance(error, ProviderCredentials):
        return Ending(credentials=True, reason=told)
    if isinstance(error, ProviderRefused):
        replay = bool(error.facts.get("replay") or error.facts.get("history"))
        return Ending(history_refused=replay, failed=not replay, reason=told)
    if isinstance(error, SessionHeld):
        return Ending(session_held=True, reason=told)
    if isinstance(error, UsageError):
        return Ending(usage=True, reason=told)
    if isinstance(error, LedgerError):
        return Ending(failed=True, reason=told)
    return Ending(failed=True, reason=told)
