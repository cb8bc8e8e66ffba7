"""Warm children for crash tests: one process that has imported everything and forks a child for each run.

Owns: the program (`python -m surefoot.testing.nursery`), and `Nursery`, its other end.
Does not own: what a child does (`child`), how its end is judged (`crash`).

A child is a process of its own in a session of its own, made from a process that holds no
ledger, no thread and no event loop. It differs from a started program in one thing: the
quarter of a second that importing takes is spent once for all of them.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surefoot.testing import child

LOADED_LATE = (
    "anyio._backends._asyncio",
    "encodings.idna",
    "h11",
    "httpcore2._async.connection_pool",
    "httpx2",
    "jsonschema",
    "jsonschema_specifications",
    "surefoot.tools.classify.shell",
    "truststore",
)
"""What a run loads on first use, loaded here once."""
_START_SECONDS = 30.0


class Nursery:
    """Forks children. It dies with the process that started it, and so do children that still run."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._read = b""
        self._running: set[int] = set()
        self._ended: dict[int, int] = {}

    def __enter__(self) -> Nursery:
        command = [sys.executable, "-m", "surefoot.testing.nursery"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self._line(_START_SECONDS) != "ready":
            self.__exit__()
            raise RuntimeError(
                "the nursery did not start; run `python -m surefoot.testing.nursery` to see why"
            )
        return self

    def __exit__(self, *exit_: object) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for pid in list(self._running):
            kill_group(pid)
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def start(self, spec: Path, *, errors: Path, environ: Mapping[str, str]) -> int:
        """Fork a child that runs the spec; gives its pid, which is also its group."""
        asked = {"spec": str(spec), "errors": str(errors), "environ": dict(environ)}
        if self._process is None or self._process.stdin is None:
            raise RuntimeError("enter the nursery first: `with Nursery() as nursery`")
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        while not (word := self._line(_START_SECONDS)).startswith("pid "):
            self._take(word)
        pid = int(word.split()[1])
        self._running.add(pid)
        return pid

    def wait(self, pid: int, seconds: float) -> int:
        """The return code of a child, negative for a signal. Raises `subprocess.TimeoutExpired`."""
        if not self.has_ended(pid, seconds):
            kill_group(pid)
            raise subprocess.TimeoutExpired(f"child {pid}", seconds)
        self._running.discard(pid)
        return self._ended.pop(pid)

    def has_ended(self, pid: int, seconds: float) -> bool:
        """Whether a child ends within `seconds`; `wait` gives its return code."""
        until = time.monotonic() + seconds
        while pid not in self._ended:
            word = self._line(until - time.monotonic())
            if not word:
                return False
            self._take(word)
        return True

    def _take(self, word: str) -> None:
        _, pid, code = word.split()
        self._ended[int(pid)] = int(code)

    def _line(self, seconds: float) -> str:
        """The next line, empty after `seconds` without one."""
        out = None if self._process is None else self._process.stdout
        until = time.monotonic() + seconds
        while b"\n" not in self._read:
            left = until - time.monotonic()
            if out is None or left <= 0 or not select.select([out], [], [], left)[0]:
                return ""
            content = os.read(out.fileno(), 65536)
            if not content:
                raise RuntimeError("the nursery ended")
            self._read += content
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()


def kill_group(pid: int) -> None:
    """Kill a child and what it left in its group; a group that is gone is no error."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def main() -> int:
    """Fork a child for each line on standard input; tell `pid N` at once and `end N CODE` at its end."""
    for name in LOADED_LATE:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _say("ready")
    pending = b""
    while True:
        ready, _, _ = select.select([0, read], [], [])
        if read in ready:
            os.read(read, 4096)
            _reap()
        if 0 in ready:
            content = os.read(0, 65536)
            if not content:
                return 0
            *lines, pending = (pending + content).split(b"\n")
            for line in lines:
                _fork(json.loads(line), (read, write))


def _say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def _reap() -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _say(f"end {pid} {os.waitstatus_to_exitcode(status)}")


def _fork(asked: Mapping[str, Any], wakeup: tuple[int, int]) -> None:
    pid = os.fork()
    if pid:
        _say(f"pid {pid}")
        return
    status = 1
    try:
        _become(asked, wakeup)
        status = child.main([asked["spec"]])
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)  # as an interpreter ends that was interrupted
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    finally:
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(status)


def _become(asked: Mapping[str, Any], wakeup: tuple[int, int]) -> None:
    """Leave everything of the nursery behind: its group, its pipes, its signals, its environment."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)  # whoever started the tests may have ignored it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for descriptor in wakeup:
        os.close(descriptor)
    null = os.open(os.devnull, os.O_RDWR)
    errors = os.open(asked["errors"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for source, target in ((null, 0), (null, 1), (errors, 2)):
        os.dup2(source, target)
    os.close(null)
    os.close(errors)
    os.environ.clear()
    os.environ.update(asked["environ"])


if __name__ == "__main__":
    sys.exit(main())
