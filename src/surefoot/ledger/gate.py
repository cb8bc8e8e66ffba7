"""The gate: one lock per ledger that every commit and checkpoint of every process passes.

Owns: a `flock` on a file of its own (TR-192), which no foreign close of the ledger
can drop, and the rule that a process is stopped (Ctrl-Z) between commits only.
Does not own: what is done behind the gate.

The file is opened close-on-exec. A forked child closes its copy, so that the gate of
a dead parent is free at once.
"""

from __future__ import annotations

import fcntl
import os
import signal
import threading
import time
import weakref
from pathlib import Path
from types import FrameType

from surefoot.errors import LedgerLocked

WAIT_SECONDS = 5.0

_gates: weakref.WeakSet[Gate] = weakref.WeakSet()


class Gate:
    """One process's handle on the gate of one ledger. Not reentrant."""

    def __init__(self, path: Path, wait_seconds: float = WAIT_SECONDS) -> None:
        self._path = path
        self._wait_seconds = wait_seconds
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        _gates.add(self)

    def enter_now(self) -> bool:
        """Take the gate if it is free at this moment."""
        taken = False
        _stops.hold()
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            taken = True
        except BlockingIOError:
            pass
        finally:
            if not taken:
                _stops.let_go()
        return taken

    def enter(self) -> None:
        """Take the gate, waiting at most `wait_seconds`. Blocks; not for the event loop.

        Raises:
            LedgerLocked: the gate was not free within its time.
        """
        ends = time.monotonic() + self._wait_seconds
        pause = 0.0002
        while not self.enter_now():
            if time.monotonic() >= ends:
                raise LedgerLocked(
                    f"the gate of the ledger ({str(self._path)!r}) was held by another process for "
                    f"{self._wait_seconds:g} s; look for a stopped surefoot process and continue or end it",
                    answer="locked",
                )
            time.sleep(pause)
            pause = min(pause * 2, 0.005)

    def leave(self) -> None:
        """Give the gate back."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        finally:
            _stops.let_go()

    def close(self) -> None:
        """Close the file; a gate that is held is given back with it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _close_copies() -> None:
    """In a forked child: close the copies, which would keep a dead parent's gate shut."""
    for gate in list(_gates):
        gate.close()
    _stops.forget()


class _Stops:
    """Holds a terminal stop back while any gate is held, and carries it out afterwards.

    Python runs its signal handlers between two byte codes of the main thread, so the handler
    itself can look whether a gate is held. It is put in place only over the default action.
    """

    def __init__(self) -> None:
        self._held = 0
        self._wanted = False
        self._lock = threading.Lock()

    def watch(self) -> None:
        """Take over SIGTSTP, from the main thread and only where nobody else handles it."""
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL:
            signal.signal(signal.SIGTSTP, self._on_stop)

    def hold(self) -> None:
        with self._lock:
            self._held += 1

    def let_go(self) -> None:
        with self._lock:
            self._held -= 1
            due = self._wanted and self._held == 0
        if due:
            self._stop()

    def held(self) -> bool:
        """Whether a gate is held, or tried for, by this process at this moment."""
        return self._held > 0

    def forget(self) -> None:
        self._held = 0
        self._wanted = False
        self._lock = threading.Lock()

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        # The lock is not taken: the interrupted frame may be the one that holds it.
        self._wanted = True
        if self._held == 0:
            self._stop()

    def _stop(self) -> None:
        """Stop by the default action, which knows about orphaned process groups."""
        self._wanted = False
        if threading.current_thread() is not threading.main_thread():
            # Handlers may be set by the main thread alone; a stop that cannot be caught does the same.
            os.kill(os.getpid(), signal.SIGSTOP)
            return
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._on_stop)


_stops = _Stops()
watch_stop_signal = _stops.watch
is_gate_held = _stops.held

os.register_at_fork(after_in_child=_close_copies)
