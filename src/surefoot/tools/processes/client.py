"""The agent's side of supervision: asks the warm server, follows a command, stops it.

Owns: starting the warm server on first use and doing without it when it died, the request,
following events until the command is quiet. Does not own: run folders (`runs`), what an end
means (`seen`), the tool (`tools.shell`).
Promises: a request that was never claimed can be taken back by a claim of our own, so a
command never runs behind an answer of "never ran".
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import socket
import sys
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from surefoot.tools.processes import folder, kernel
from surefoot.tools.processes.ending import stop_message
from surefoot.tools.processes.output import SHOWN_BYTES
from surefoot.tools.processes.runs import RunFolder, is_proven, make_run
from surefoot.tools.processes.seen import Member, ProcessState, Seen, look, seen_of_exit
from surefoot.tools.processes.server import BOOTSTRAP, CHANNEL, PLACE

_ROOT = Path(__file__).resolve().parents[3]
_KEPT = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR")
"""All the warm server gets of our environment: it needs no key of anybody."""
_END_SECONDS = 2.0
_LOOK_SECONDS = 0.1


class ProcessLimits(Protocol):
    """What is read of the owner's limits (TR section 23)."""

    @property
    def stop_term_seconds(self) -> float: ...

    @property
    def stop_kill_seconds(self) -> float: ...

    @property
    def stop_kill_check_seconds(self) -> float: ...

    @property
    def background_probe_seconds(self) -> float: ...

    @property
    def log_wait_ms(self) -> int: ...

    @property
    def process_log_bytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Command:
    """What a supervisor is asked to run."""

    argv: tuple[str, ...]
    """`argv[0]` is an absolute path."""
    environment: Mapping[str, str]
    directory: Path
    key: str
    sync: bool = True
    """False for `READ_ONLY`: its records need not survive a power cut."""
    check: bool = False
    background: bool = False
    start_before_boot_ms: int | None = None
    """Not executed from this moment on (TR-175)."""
    deadline_boot_ms: int | None = None
    at_deadline: str = "stop"
    """`stop` or `keep`."""


class Supervised:
    """One command as its agent follows it. Every future ends, at the latest with the supervisor."""

    def __init__(self, run: RunFolder, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self.run = run
        self.running: asyncio.Future[Mapping[str, Any] | None] = loop.create_future()
        """The `leader` record once the command executes; None when it never will, or nobody knows."""
        self.exited: asyncio.Future[Mapping[str, Any] | None] = loop.create_future()
        """The exit record; None when the supervisor ended without one or refused."""
        self.quiet: asyncio.Future[bool] = loop.create_future()
        """True when no descendant is left, False when the supervisor ended without saying so."""
        self.refused: str | None = None
        self.pressed_boot_ms: int | None = None
        """When its end was asked for here, in boot time."""
        self.heard = False
        self.over_limit = asyncio.Event()
        """Set when the supervisor saw the deadline pass."""
        self.withdrawn = False
        self._connection = connection
        self._sent = False

    def stop(self, why: str, pressed_boot_ms: int | None = None) -> None:
        """Ask for the end; returns at once. A supervisor that is gone hears nothing."""
        pressed = kernel.boot_ms() if pressed_boot_ms is None else pressed_boot_ms
        self.pressed_boot_ms = self.pressed_boot_ms or pressed
        if not self._sent:
            # Half a request is never claimed, so this takes it back.
            self.withdrawn = True
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
            return
        with contextlib.suppress(OSError):
            self._connection.send(stop_message(why, pressed), socket.MSG_NOSIGNAL)

    def reconnect(self, connection: socket.socket) -> None:
        """Use another supervisor; the first one was never heard."""
        self._connection = connection
        self._sent = False

    async def follow(self, request: bytes) -> None:
        """Send the request and read events until the supervisor is gone."""
        loop = asyncio.get_running_loop()
        pending = b""
        try:
            with contextlib.suppress(ConnectionError):
                await loop.sock_sendall(self._connection, len(request).to_bytes(4, "big") + request)
            self._sent = True
            while chunk := await loop.sock_recv(self._connection, 65536):
                *whole, pending = (pending + chunk).split(b"\n")
                for text in whole:
                    self._take(json.loads(text))
        except OSError:
            pass
        finally:
            self._connection.close()

    def _take(self, event: Mapping[str, Any]) -> None:
        self.heard = True
        kind = event.get("event")
        if kind == "refused":
            self.refused = str(event.get("reason"))
        elif kind == "running":
            _set(self.running, event)
        elif kind == "deadline":
            self.over_limit.set()
        elif kind == "exit":
            _set(self.running, None)
            _set(self.exited, event)
        elif kind == "quiet":
            _set(self.quiet, True)

    def conclude(self) -> None:
        """Nothing more will be heard: end what is still waited for."""
        _set(self.running, None)
        _set(self.exited, None)
        _set(self.quiet, False)


def _set(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)


class ProcessServer:
    """Starts supervised commands for one agent. Use it from one event loop; close it at the end."""

    def __init__(self, processes: Path, limits: ProcessLimits) -> None:
        self.processes = processes
        self.limits = limits
        self.server_pid: int | None = None
        self._channel: socket.socket | None = None
        self._children: set[int] = set()
        self._jobs: dict[str, Supervised] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    def make_run(self, attempt_id: str) -> RunFolder:
        """Make the run folder of an attempt, before its start receipt. Raises OSError."""
        return make_run(self.processes, attempt_id)

    def launch(self, run: RunFolder, command: Command) -> Supervised:
        """Ask for the command and follow it from here on. Raises OSError: nothing was asked."""
        place = run.open()
        try:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
            ours.setblocking(False)
            with theirs:
                warm = self._hand_over(theirs, place)
        except OSError:
            ours.close()
            raise
        finally:
            os.close(place)
        job = Supervised(run, ours)
        self._jobs[run.attempt_id] = job
        self.spawn(self._follow(job, command, warm=warm), f"follow {run.attempt_id}")
        return job

    def _request_of(self, run: RunFolder, command: Command) -> dict[str, Any]:
        limits = self.limits
        return {
            "attempt": run.attempt_id,
            "argv": list(command.argv),
            "environment": dict(command.environment),
            "directory": str(command.directory),
            "umask": _umask(),
            "secret": run.secret,
            "quietSecret": run.quiet_secret,
            "key": command.key,
            "sync": command.sync,
            "check": command.check,
            "background": command.background,
            "startBeforeBoot": command.start_before_boot_ms,
            "deadlineBoot": command.deadline_boot_ms,
            "atDeadline": command.at_deadline,
            "stopTermMs": int(limits.stop_term_seconds * 1000),
            "stopKillMs": int(limits.stop_kill_seconds * 1000),
            "stopKillCheckMs": int(limits.stop_kill_check_seconds * 1000),
            "logWaitMs": int(limits.log_wait_ms),
        }

    async def _follow(self, job: Supervised, command: Command, *, warm: bool) -> None:
        request = json.dumps(self._request_of(job.run, command)).encode()
        try:
            await job.follow(request)
            if warm and not job.heard and not job.withdrawn:
                await self._again_cold(job, request)
        finally:
            job.conclude()
            self._jobs.pop(job.run.attempt_id, None)

    async def _again_cold(self, job: Supervised, request: bytes) -> None:
        """The warm server died with our request. Should its supervisor live after all, one claim wins."""
        self._drop_channel()
        try:
            place = job.run.open()
        except OSError:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with theirs:
                self._spawn_cold(theirs, place)
        except OSError:
            ours.close()
            return
        finally:
            os.close(place)
        ours.setblocking(False)
        job.reconnect(ours)
        await job.follow(request)

    def _hand_over(self, connection: socket.socket, place: int) -> bool:
        """Give the request's connection and folder to the warm server, else to a cold supervisor."""
        self._reap()
        if self._channel is None:
            self._start_server()
        try:
            if self._channel is not None:
                socket.send_fds(self._channel, [b"r"], [connection.fileno(), place])
                return True
        except OSError:
            self._drop_channel()
        self._spawn_cold(connection, place)
        return False

    def _start_server(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                self.server_pid = self._spawn("warm", {CHANNEL: theirs.fileno()})
        except OSError:
            ours.close()
            return
        ours.setblocking(False)
        self._channel = ours

    def _spawn_cold(self, connection: socket.socket, place: int) -> None:
        self._spawn("cold", {CHANNEL: connection.fileno(), PLACE: place})

    def _spawn(self, mode: str, descriptors: Mapping[int, int]) -> int:
        """Start a clean interpreter in a session of its own, with these descriptors and no others."""
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        arguments = [sys.executable, "-I", "-S", "-c", BOOTSTRAP, str(_ROOT), mode]
        lifted = {n: fcntl.fcntl(d, fcntl.F_DUPFD_CLOEXEC, 16) for n, d in descriptors.items()}
        actions: list[Any] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        actions += [(os.POSIX_SPAWN_OPEN, n, os.devnull, os.O_WRONLY, 0) for n in (1, 2)]
        actions += [(os.POSIX_SPAWN_DUP2, source, target) for target, source in lifted.items()]
        try:
            pid = os.posix_spawn(
                sys.executable,
                arguments,
                environment,
                file_actions=actions,
                setsid=True,
                setsigmask=(),
                setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
            )
        finally:
            for descriptor in lifted.values():
                os.close(descriptor)
        self._children.add(pid)
        return pid

    def _drop_channel(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
            self.server_pid = None

    def _reap(self) -> None:
        for pid in list(self._children):
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    continue
            self._children.discard(pid)

    def take_back(self, run: RunFolder, epoch: int) -> bool:
        """Claim the run ourselves; True means that its command never ran and never will."""
        try:
            place = run.open()
        except OSError:
            return False
        try:
            return folder.put_claim(place, {"by": "reconciliation", "epoch": epoch})
        except OSError:
            return False
        finally:
            os.close(place)

    def seen(self, job: Supervised, record: Mapping[str, Any], shown_bytes: int = SHOWN_BYTES) -> Seen:
        """What is known of a followed command now: by its events, else by its folder and the kernel."""
        if job.refused is not None and job.refused != "claimed":
            return Seen(ProcessState.NEVER_RAN, job.refused)
        found = job.exited.result() if job.exited.done() else None
        if found is None or not is_proven(found, record.get("secretHash")):
            return look(record, boot_id=kernel.boot_id(), shown_bytes=shown_bytes)
        try:
            place = job.run.open()
        except OSError:
            place = -1
        try:
            seen = seen_of_exit(found, place, log=str(job.run.log), shown_bytes=shown_bytes)
        finally:
            if place >= 0:
                os.close(place)
        alone = bool(found.get("alone")) or (job.quiet.done() and job.quiet.result())
        return _marked(seen, alone=alone)

    def still_ending(self) -> dict[str, int]:
        """Attempts that were asked to end and have not: boot milliseconds of the kill (UX-18)."""
        wait_ms = int(self.limits.stop_kill_seconds * 1000)
        pressed = {name: job.pressed_boot_ms for name, job in self._jobs.items()}
        return {name: at + wait_ms for name, at in pressed.items() if at is not None}

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run something beside the call that needs it, until it ends or the server is closed."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Let go: the warm server ends, supervisors and their commands stay."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        warm = self.server_pid
        self._drop_channel()
        loop = asyncio.get_running_loop()
        until = loop.time() + _END_SECONDS
        while warm in self._children and loop.time() < until:
            self._reap()
            if warm in self._children:
                await asyncio.sleep(0.005)
        if warm is not None and warm in self._children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(warm, signal.SIGKILL)
        self._reap()


async def adopt(record: Mapping[str, Any], *, shown_bytes: int = SHOWN_BYTES) -> Seen:
    """Wait for the end of a command of an earlier owner and say what became of it (TR-71).

    Its supervisor tells the end; where that one is dead, what is seen of the command is waited for. Returns at
    once when nothing can be waited for. Cancelling it stops nothing.
    """
    seen = look(record, boot_id=kernel.boot_id(), shown_bytes=shown_bytes)
    while seen.state is ProcessState.RUNNING and (seen.supervisor_alive or seen.members):
        if seen.supervisor_alive:
            await _until_told(record)
        else:
            await _until_ended(seen.members[0])
        seen = look(record, boot_id=kernel.boot_id(), shown_bytes=shown_bytes)
        if seen.state is ProcessState.RUNNING:
            await asyncio.sleep(_LOOK_SECONDS)  # another process of it, or a record that is still owed
    until = asyncio.get_running_loop().time() + _END_SECONDS
    while seen.supervisor_alive and not seen.members and asyncio.get_running_loop().time() < until:
        await asyncio.sleep(_LOOK_SECONDS)  # it is about to say that nothing is left
        seen = look(record, boot_id=kernel.boot_id(), shown_bytes=shown_bytes)
    return seen


async def _until_told(record: Mapping[str, Any]) -> None:
    """Wait until the supervisor tells the end of its command, or ends itself; not at all when it cannot be reached."""
    loop, heard = asyncio.get_running_loop(), b""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        place = folder.open_folder(str(record["path"]))
        try:
            await loop.sock_connect(connection, f"/proc/self/fd/{place}/{folder.STOP}")
        finally:
            os.close(place)
        while b'"event": "exit"' not in heard and (chunk := await loop.sock_recv(connection, 65536)):
            heard += chunk


async def _until_ended(member: Member) -> None:
    """Wait until exactly this process has ended; it is no child of ours."""
    descriptor = kernel.open_process(member.pid, member.start_ticks)
    if descriptor is None:
        return
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, _set, ended, None)
    try:
        await ended
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _marked(seen: Seen, *, alone: bool) -> Seen:
    return replace(seen, quiet=alone) if alone else replace(seen, supervisor_alive=True)


def _umask() -> int:
    """The umask of this process, read without setting it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    return 0o022
