"""Whether the running code belongs to a tool body: such code decides nothing (TR-130).

Owns: the mark that a body, its tasks and its threads carry. Does not own: what follows from
it (`actions`); child processes, which are told by their parents (`tools.processes.ancestry`).

Tasks inherit the mark by their context. A thread inherits no context, so the start of one is
watched by an audit hook, set when the first body is entered and never on import. A
hostile library can take the mark off again; it could as well write the ledger's file.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_INSIDE: ContextVar[bool] = ContextVar("inside_tool_body", default=False)
_START = "_thread.start_new_thread"
_watching = threading.Lock()


def inside_tool_body() -> bool:
    """Whether the running code belongs to a tool body, its tasks and threads included."""
    return _INSIDE.get()


@contextmanager
def marked() -> Iterator[None]:
    """Mark what runs inside as the code of a tool body."""
    _watch()
    before = _INSIDE.set(True)
    try:
        yield
    finally:
        _INSIDE.reset(before)


def _watch() -> None:
    # Taken once and never given back: a hook cannot be taken away, so a second one would only cost.
    if _watching.acquire(blocking=False):
        sys.addaudithook(_thread_starts)


def _thread_starts(event: str, arguments: tuple[Any, ...]) -> None:
    if event != _START or not _INSIDE.get():
        return
    thread = getattr(arguments[0], "__self__", None)
    if isinstance(thread, threading.Thread):
        thread.run = _inside(thread.run)  # type: ignore[method-assign]


def _inside(run: Callable[[], None]) -> Callable[[], None]:
    def marked_run() -> None:
        _INSIDE.set(True)
        run()

    return marked_run
