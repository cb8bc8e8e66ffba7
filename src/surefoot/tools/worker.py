"""A child process that searches and compares text, and can be killed while it does (TR-207).

Owns: starting it lazily, one request at a time over pipes, the deadline, the kill.
Does not own: what it does (`files.searching`). One pattern chosen by a model can hold
an interpreter for hours; here it holds only a process that nobody else needs.

The child limits itself too (a timer of the kernel), so it does not outlive an agent
that died while it was busy; idle, it ends when its input closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ANSWER_BYTES = 8 << 20
_ROOT = str(Path(__file__).resolve().parents[2])
_PROGRAM = (
    f"import sys; sys.path.insert(0, {_ROOT!r}); from surefoot.tools.files.searching import serve; serve()"
)


class WorkerStopped(Exception):
    """The request was not answered: `code` is `time_limit`, `worker_died` or `stopped`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class _Ticket:
    """One request; `stopped` is set when nobody waits for its answer any more."""

    def __init__(self) -> None:
        self.stopped = False


class Worker:
    """One killable child per agent; safe to use from several threads and loops."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._process: list[subprocess.Popen[bytes]] = []
        self._owner = os.getpid()
        self._current: _Ticket | None = None
        self._end = weakref.finalize(self, _end_all, self._process, self._owner)

    @property
    def pid(self) -> int | None:
        """The living child, if there is one."""
        return self._process[0].pid if self._process else None

    def close(self) -> None:
        """End the child; a later request starts a new one."""
        _end_all(self._process, self._owner)

    async def ask(self, request: Mapping[str, Any], seconds: float) -> Any:
        """Answer of the child within `seconds`, or the kill of the child.

        A cancel of the caller kills a child that works for it.

        Raises:
            WorkerStopped: no answer in time, or the child died.
        """
        ticket = _Ticket()
        try:
            return await asyncio.to_thread(self._ask, dict(request), seconds, ticket)
        except asyncio.CancelledError:
            ticket.stopped = True
            if self._current is ticket:
                self.close()
            raise

    def _ask(self, request: dict[str, Any], seconds: float, ticket: _Ticket) -> Any:
        until = time.monotonic() + seconds
        if not self._turn.acquire(timeout=max(0.0, seconds)):
            raise WorkerStopped("time_limit")
        try:
            if ticket.stopped:
                raise WorkerStopped("stopped")
            self._current = ticket
            request["seconds"] = max(0.05, until - time.monotonic())
            answer = self._exchange(json.dumps(request).encode() + b"\n", until)
        except WorkerStopped:
            self.close()
            raise
        finally:
            self._current = None
            self._turn.release()
        if "error" in answer:
            raise ValueError(str(answer["error"]))
        return answer["answer"]

    def _exchange(self, line: bytes, until: float) -> dict[str, Any]:
        process = self._living()
        if process.stdin is None or process.stdout is None:
            raise WorkerStopped("worker_died")
        try:
            _send(process.stdin.fileno(), line, until)
            answer: dict[str, Any] = json.loads(_receive(process.stdout.fileno(), until))
        except (OSError, ValueError):  # a killed child closes its pipes, or breaks off in a line
            raise WorkerStopped("worker_died") from None
        return answer

    def _living(self) -> subprocess.Popen[bytes]:
        if self._owner != os.getpid():  # a forked copy must not talk to its parent's child
            self._process, self._owner = [], os.getpid()
            self._end = weakref.finalize(self, _end_all, self._process, self._owner)
        if self._process and self._process[0].poll() is not None:
            self.close()
        if not self._process:
            process = subprocess.Popen(
                [sys.executable, "-I", "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,  # Ctrl-C of the terminal is the agent's to handle
                bufsize=0,
            )
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    os.set_blocking(pipe.fileno(), False)
            self._process.append(process)
        return self._process[0]


def _end_all(processes: list[subprocess.Popen[bytes]], owner: int) -> None:
    if owner != os.getpid():
        return
    while processes:
        process = processes.pop()
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _wait(handle: int, event: int, until: float) -> None:
    poll = select.poll()
    poll.register(handle, event)
    left = until - time.monotonic()
    if left <= 0 or not poll.poll(left * 1000):
        raise WorkerStopped("time_limit")


def _send(handle: int, line: bytes, until: float) -> None:
    view = memoryview(line)
    while view:
        _wait(handle, select.POLLOUT, until)
        view = view[os.write(handle, view[: 1 << 16]) :]


def _receive(handle: int, until: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    while not parts or not parts[-1].endswith(b"\n"):
        _wait(handle, select.POLLIN, until)
        part = os.read(handle, 1 << 16)
        size += len(part)
        if not part or size > ANSWER_BYTES:
            raise WorkerStopped("worker_died")
        parts.append(part)
    return b"".join(parts)
