"""Asking a model for one step: the port, and the visible waits between refused requests.

Owns: how often one step may be asked for, and that every wait is shown and can be
cancelled. Does not own: HTTP (`providers.client`), what a refusal means (there too).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from surefoot.core.history import Message
from surefoot.core.model import Notice
from surefoot.errors import ProviderError
from surefoot.providers.port import Reply, TextDelta
from surefoot.runtime.scheduler import Scheduler


class Model(Protocol):
    """A model behind one endpoint, with its tools and system text already chosen."""

    wire: str
    batch_split: bool
    """Whether calls closed before the cut of a reply may run (PR-71)."""

    async def complete(self, messages: Sequence[Message], on_delta: Callable[[TextDelta], None]) -> Reply:
        """One request. Raises `ProviderError`; runs no tool, repeats nothing by itself."""
        ...

    def wait_seconds(self, error: ProviderError, tries: int) -> float | None:
        """How long to wait before asking again after the `tries`-th failure; None means give up."""
        ...


async def ask_until_answered(
    model: Model,
    messages: Sequence[Message],
    *,
    scheduler: Scheduler,
    on_delta: Callable[[TextDelta], None],
    notify: Callable[[Notice], None],
) -> Reply:
    """Ask for one step, waiting visibly between transient refusals. Nothing ran yet, so asking again is harmless.

    Raises the last `ProviderError`.
    """
    tries = 0
    while True:
        try:
            return await model.complete(messages, on_delta)
        except ProviderError as error:
            tries += 1
            wait = model.wait_seconds(error, tries)
            if wait is None:
                raise
            facts = {"code": error.code, "cause": error.message, "waitSeconds": wait, "try": tries}
            notify(Notice("model_wait", facts))
        await scheduler.sleep(wait)
