"""Whether the running code belongs to a tool body: such code decides nothing (TR-130).

Owns: the mark that a body, its tasks and its threads carry, which names its attempt. Does not own: what follows from
it (`actions`); child processes, which are told by their parents (`tools.processes.ancestry`).

Tasks inherit the mark by their context. A thread inherits none, so `Thread.start` is wrapped
when the first body is entered, and never on import. A hostile library can take the mark off
again; it could as well write the ledger's file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_INSIDE: ContextVar[str | None] = ContextVar("inside_tool_body", default=None)
_watching = threading.Lock()


def inside_tool_body() -> bool:
    """Whether the running code belongs to a tool body, its tasks and threads included."""
    return _INSIDE.get() is not None


def surrounding_attempt() -> str | None:
    """The attempt whose body the running code belongs to; None outside of bodies."""
    return _INSIDE.get() or None


@contextmanager
def marked(attempt_id: str) -> Iterator[None]:
    """Mark what runs inside as the code of the body of `attempt_id`."""
    _watch()
    before = _INSIDE.set(attempt_id)
    try:
        yield
    finally:
        _INSIDE.reset(before)


def _watch() -> None:
    """Let a thread that a marked one starts carry the mark."""
    if not _watching.acquire(blocking=False):
        return  # taken once and never given back
    start = threading.Thread.start

    def start_marked(thread: threading.Thread) -> None:
        around = _INSIDE.get()
        if around is not None:
            thread.run = _inside(thread.run, around)  # type: ignore[method-assign]
        start(thread)

    threading.Thread.start = start_marked  # type: ignore[assignment, method-assign]


def _inside(run: Callable[[], None], attempt_id: str) -> Callable[[], None]:
    def marked_run() -> None:
        _INSIDE.set(attempt_id)
        run()

    return marked_run
