"""The supervisor of one command: claims it, runs it, records its end, and outlives the agent.

Owns: the order claim, deadline, fork, own group, exec; the `leader`, `exit` and `quiet`
records; stop requests and the deadline, in boot time, whether or not the agent lives.
Does not own: what an exit means for the call (`seen`), who may ask for a command (`client`).
Promises: a command runs only after its claim won; an exit by signal is never written as an
exit code; `quiet` is written only when the kernel says that no descendant is left.

Forked from the warm server, or started cold. Standard library only, no threads.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
from typing import Any

from surefoot.tools.processes import folder, kernel

TICK_MS = 100
"""How often a kill is repeated while descendants are left."""
CLOCK_MS = 1000
"""The longest wait with a deadline: `poll` counts no suspend, so boot time is looked at again."""
RETRY_MS = 1000
GIVE_UP_MS = 600_000
"""How long a record that cannot be written is tried again."""

_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP,
            signal.SIGTTIN, signal.SIGTTOU, signal.SIGUSR1, signal.SIGUSR2)  # fmt: skip


class Press:
    """One request to end the command, and how far its escalation has come."""

    def __init__(self, why: str, pressed_boot: int, steps: list[tuple[int, int, bool]]) -> None:
        self.why = why
        self.pressed_boot = pressed_boot
        self.steps = steps
        """`(milliseconds after the press, signal, whole tree)`, earliest first."""
        self.sent: list[int] = []

    def to_json(self) -> dict[str, Any]:
        """As the `stop` field of the exit record."""
        return {"why": self.why, "pressedBoot": self.pressed_boot, "signals": self.sent}


def press_of(message: dict[str, Any], request: dict[str, Any]) -> Press:
    """The escalation a stop message asks for: INT, TERM, KILL; sooner for checks and kills."""
    why = str(message.get("why", "stop"))
    asked, now = message.get("pressedBoot"), kernel.boot_ms()
    pressed = min(asked, now) if isinstance(asked, int) else now
    if why == "kill":
        steps = [(0, signal.SIGTERM, True), (request["stopTermMs"], signal.SIGKILL, True)]
    elif request.get("check"):
        steps = [(0, signal.SIGINT, False), (request["stopKillCheckMs"], signal.SIGKILL, True)]
    else:
        steps = [
            (0, signal.SIGINT, False),
            (request["stopTermMs"], signal.SIGTERM, True),
            (request["stopKillMs"], signal.SIGKILL, True),
        ]
    return Press(why, pressed, [(after, int(number), tree) for after, number, tree in steps])


class Line:
    """A connection that gets events and may send requests, one JSON object a line."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self._pending = b""

    def tell(self, event: dict[str, Any]) -> None:
        """Send an event; a reader that is gone or does not read loses it and nothing else."""
        with contextlib.suppress(OSError):
            self.connection.send(json.dumps(event).encode() + b"\n", socket.MSG_NOSIGNAL)

    def read(self) -> list[dict[str, Any]] | None:
        """The whole requests that have come, or None when the other end is gone."""
        try:
            chunk = self.connection.recv(4096)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not chunk or len(self._pending) > 65536:
            return None
        *whole, self._pending = (self._pending + chunk).split(b"\n")
        found = []
        for text in whole:
            with contextlib.suppress(ValueError, RecursionError):
                value = json.loads(text)
                if isinstance(value, dict):
                    found.append(value)
        return found


class Supervision:
    """One command from its claim to the end of its last descendant."""

    def __init__(self, connection: socket.socket, place: int, request: dict[str, Any]) -> None:
        self._place = place
        self._request = request
        self._lines = [Line(connection)]
        self._listener: socket.socket | None = None
        self._wake = -1
        self._log = -1
        self._leader = 0
        self._leader_reaped = False
        self._status: tuple[int | None, int | None] | None = None
        self._started = (0, 0)
        self._ended_boot = 0
        self._exit: dict[str, Any] | None = None
        self._exit_written = False
        self._retry_boot = 0
        self._press: Press | None = None
        self._deadline_told = False

    def run(self) -> None:
        """Do it all; returns when nothing of the command is left or it never ran."""
        if not self._claim():
            return
        deadlines = [self._request.get("startBeforeBoot"), self._request.get("deadlineBoot")]
        if any(limit is not None and kernel.boot_ms() >= limit for limit in deadlines):
            self._never_ran("deadline_passed")
            return
        self._listen()
        problem = self._start()
        if problem is not None:
            self._never_ran(problem)
            return
        while not self._step():
            self._wait()

    def _tell(self, event: dict[str, Any]) -> None:
        for line in self._lines:
            line.tell(event)

    def _claim(self) -> bool:
        stat = kernel.stat_of(os.getpid())
        record = {
            "by": "supervisor",
            "pid": os.getpid(),
            "startTicks": stat.start_ticks if stat else 0,
            "pidNamespace": kernel.pid_namespace(),
            "bootId": kernel.boot_id(),
            "atBoot": kernel.boot_ms(),
            "at": kernel.now_ms(),
            "key": self._request.get("key"),
            "background": bool(self._request.get("background")),
        }
        try:
            won = folder.put_claim(self._place, record)
        except OSError as error:
            self._tell({"event": "refused", "reason": "claim_impossible", "errno": error.errno})
            return False
        if not won:
            self._tell({"event": "refused", "reason": "claimed"})
            return False
        self._tell({**record, "event": "claimed"})
        return True

    def _listen(self) -> None:
        """Take stop requests in the run folder; without it only the living agent can stop the command."""
        with contextlib.suppress(OSError):
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            # A path through the descriptor stays short and leads to the folder itself.
            listener.bind(f"/proc/self/fd/{self._place}/{folder.STOP}")
            listener.listen(8)
            listener.setblocking(False)
            self._listener = listener

    def _start(self) -> str | None:
        """Fork and execute; None when the command runs, else why it never did."""
        request = self._request
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._log = os.open(folder.LOG, flags, 0o600, dir_fd=self._place)
            self._wake = _wake_on_children()
            # It forks without copying our memory, closes every descriptor and tells a failed `exec`.
            command = subprocess.Popen(
                request["argv"],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                cwd=request["directory"],
                env=request["environment"],
                umask=int(request.get("umask", 0o022)),
                process_group=0,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            return f"start_failed: {error}"
        command.returncode = 0  # reaped here and nowhere else
        self._leader = child = command.pid
        self._started = (kernel.now_ms(), kernel.boot_ms())
        leader = {"pid": child, "startTicks": _ticks(child), "group": child, "startedBoot": self._started[1]}
        # For whoever comes after us; without it the processes are known by the log they hold open.
        with contextlib.suppress(OSError):
            folder.put_record(self._place, folder.LEADER, leader, sync=False)
        self._tell({**leader, "event": "running"})
        return None

    def _never_ran(self, reason: str) -> None:
        """Record that the command was claimed and not executed, which settles the call."""
        self._exit = self._record({"code": None, "signal": None, "neverRan": reason})
        self._write_exit()
        with contextlib.suppress(OSError):
            folder.put_record(self._place, folder.QUIET, self._quiet_record(), sync=self._sync)
        self._tell({"event": "quiet"})

    @property
    def _sync(self) -> bool:
        return bool(self._request.get("sync", True))

    def _step(self) -> bool:
        """Look at everything once; True when nothing is left to do."""
        others = self._reap_others()
        if self._status is None:
            self._status = _ended(self._leader)
            if self._status is not None:
                self._ended_boot = kernel.boot_ms()
        if self._status is not None:
            self._settle(alone=not others)
            if not self._leader_reaped and (not others or not self._group_lives()):
                os.waitpid(self._leader, 0)
                self._leader_reaped = True
        if self._leader_reaped and not kernel.children(os.getpid()) and self._no_child():
            return self._finish()
        self._limit()
        self._escalate()
        return False

    def _reap_others(self) -> list[int]:
        """Reap what was left to us and has ended; the leader stays unreaped. Returns the living rest."""
        living = []
        for pid in kernel.children(os.getpid()):
            if pid == self._leader and not self._leader_reaped:
                continue
            try:
                reaped, _ = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue
            if not reaped:
                living.append(pid)
        return living

    def _group_lives(self) -> bool:
        return any(stat.group == self._leader and not stat.ended for stat in kernel.all_stats())

    def _no_child(self) -> bool:
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        return False

    def _settle(self, *, alone: bool) -> None:
        """Write the exit record, at once or when the log had its time (TR-204)."""
        waited = kernel.boot_ms() - self._ended_boot
        if self._exit is None and (alone or waited >= self._request["logWaitMs"]):
            code, number = self._status or (None, None)
            self._exit = self._record({"code": code, "signal": number, "alone": alone})
            self._write_exit()
        elif self._exit is not None and not self._exit_written and kernel.boot_ms() >= self._retry_boot:
            self._write_exit()

    def _record(self, end: dict[str, Any]) -> dict[str, Any]:
        started_ms, started_boot = self._started
        return {
            "version": 1,
            **end,
            "startedAt": started_ms,
            "startedBoot": started_boot,
            "endedAt": kernel.now_ms(),
            "endedBoot": self._ended_boot or kernel.boot_ms(),
            "logBytes": os.fstat(self._log).st_size if self._log >= 0 else 0,
            "stop": self._press.to_json() if self._press else None,
            "secret": self._request["secret"],
        }

    def _write_exit(self) -> None:
        """Log, record and folder reach the disk in this order; a failure is told and tried again."""
        first = self._retry_boot == 0
        try:
            if self._sync and self._log >= 0:
                os.fsync(self._log)
            folder.put_record(self._place, folder.EXIT, self._exit or {}, sync=self._sync)
            self._exit_written = True
        except OSError:
            self._retry_boot = kernel.boot_ms() + RETRY_MS
        if first or self._exit_written:
            self._tell({**(self._exit or {}), "event": "exit", "recorded": self._exit_written})

    def _quiet_record(self) -> dict[str, Any]:
        return {
            "version": 1,
            "at": kernel.now_ms(),
            "atBoot": kernel.boot_ms(),
            "secret": self._request["quietSecret"],
        }

    def _finish(self) -> bool:
        """No descendant is left: say so, unless the exit record is still owed."""
        if not self._exit_written and self._may_still_write():
            return False
        with contextlib.suppress(OSError):
            folder.put_record(self._place, folder.QUIET, self._quiet_record(), sync=self._sync)
        self._tell({"event": "quiet"})
        return True

    def _may_still_write(self) -> bool:
        """False when the run folder was removed, which no waiting brings back, or the time is over."""
        if os.fstat(self._place).st_nlink == 0:
            return False
        return kernel.boot_ms() - self._ended_boot < GIVE_UP_MS

    def _limit(self) -> None:
        limit = self._request.get("deadlineBoot")
        if limit is None or self._status is not None or self._deadline_told or kernel.boot_ms() < limit:
            return
        self._deadline_told = True
        self._tell({"event": "deadline"})
        if self._request.get("atDeadline") != "keep" and self._press is None:
            self._press = press_of({"why": "time_limit", "pressedBoot": limit}, self._request)

    def _escalate(self) -> None:
        press = self._press
        if press is None:
            return
        since = kernel.boot_ms() - press.pressed_boot
        while press.steps and press.steps[0][0] <= since:
            _, number, tree = press.steps.pop(0)
            self._signal(number, tree=tree)
            press.sent.append(number)
        if not press.steps and press.sent[-1:] == [signal.SIGKILL]:
            self._signal(signal.SIGKILL, tree=True)  # whatever was born between the two looks

    def _signal(self, number: int, *, tree: bool) -> None:
        # The group's number is ours as long as its leader is unreaped, so it cannot be somebody else's.
        reached = 0
        if not self._leader_reaped:
            with contextlib.suppress(OSError):
                os.killpg(self._leader, number)
                reached = self._leader
                if number != signal.SIGKILL:
                    os.killpg(self._leader, signal.SIGCONT)  # a stopped process could not act on it
        if tree:
            for stat in kernel.descendants(os.getpid()):
                if stat.group != reached:
                    kernel.send(stat.pid, stat.start_ticks, number)

    def _wait(self) -> None:
        """Sleep until a child ends, a request comes or a time is reached."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if self._listener is not None:
            poll.register(self._listener, select.POLLIN)
        for line in self._lines:
            poll.register(line.connection, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(self._patience_ms())}
        if self._wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, 4096)
        if self._listener is not None and self._listener.fileno() in ready:
            self._accept(self._listener)
        for line in [line for line in self._lines if line.connection.fileno() in ready]:
            self._hear(line)

    def _patience_ms(self) -> int | None:
        waits: list[int] = []
        now = kernel.boot_ms()
        limit = self._request.get("deadlineBoot")
        if limit is not None and self._status is None and not self._deadline_told:
            waits.append(min(limit - now, CLOCK_MS))
        if self._press is not None:
            after = self._press.steps[0][0] if self._press.steps else None
            waits.append(TICK_MS if after is None else min(self._press.pressed_boot + after - now, CLOCK_MS))
        if self._status is not None and self._exit is None:
            waits.append(self._ended_boot + int(self._request["logWaitMs"]) - now)
        if self._exit is not None and not self._exit_written:
            waits.append(self._retry_boot - now)
        return max(1, min(waits)) if waits else None

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        line = Line(connection)
        self._lines.append(line)
        if self._exit is not None:
            line.tell({**self._exit, "event": "exit", "recorded": self._exit_written})

    def _hear(self, line: Line) -> None:
        requests = line.read()
        if requests is None:
            self._lines.remove(line)
            line.connection.close()
            return
        for request in requests:
            if request.get("do") == "stop" and (self._press is None or request.get("why") == "kill"):
                self._press = press_of(request, self._request)


def _drop(_number: int, _frame: object) -> None:
    """What a signal to the supervisor does."""


def _ticks(pid: int) -> int:
    stat = kernel.stat_of(pid)
    return stat.start_ticks if stat else 0


def _ended(leader: int) -> tuple[int | None, int | None] | None:
    """`(exit code, None)` or `(None, signal)` when the leader has ended; it stays unreaped."""
    found = os.waitid(os.P_PID, leader, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    if found.si_code == os.CLD_EXITED:
        return found.si_status, None
    return None, found.si_status


def _wake_on_children() -> int:
    """A descriptor that becomes readable when a child changes."""
    read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    return read


def read_request(connection: socket.socket) -> dict[str, Any] | None:
    """The request on a fresh connection: four bytes of length, then JSON. None when it broke off."""
    size = int.from_bytes(_exactly(connection, 4), "big")
    content = _exactly(connection, size) if size else b""
    if not content:
        return None
    value = json.loads(content)
    return value if isinstance(value, dict) else None


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        chunk = connection.recv(size - len(parts))
        if not chunk:
            return b""
        parts += chunk
    return parts


def supervise(connection: socket.socket, place: int) -> None:
    """Be the supervisor of the command that `connection` asks for, in this process."""
    # Caught and dropped rather than ignored: what is ignored here the command would ignore too.
    for number in (*_IGNORED, signal.SIGCHLD):
        signal.signal(number, _drop)
    request = read_request(connection)
    if request is None:
        return
    try:
        kernel.become_subreaper()
        kernel.become_undumpable()
    except OSError as error:
        # Without them nothing could prove the command's end, or keep the secret one.
        Line(connection).tell({"event": "refused", "reason": "unsupported", "errno": error.errno})
        return
    Supervision(connection, place, request).run()
