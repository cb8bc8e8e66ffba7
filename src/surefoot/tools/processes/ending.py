"""Survivors of supervised commands: listing them, and ending them on a person's word.

Owns: `survivors` (TR-78), `kill` (TR-71), speaking to a living supervisor's socket. Does not
own: who may ask (`core.recovery`, surfaces), what it means for the call (`seen`).
Promises: nothing is signalled that was not compared by pid and start ticks; a kill that did
not work is told.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.core.redact import redact_text
from surefoot.tools.processes import folder, kernel
from surefoot.tools.processes.seen import Member, command_of, living

KILL_WAIT_MS = 5_000


@dataclass(frozen=True, slots=True)
class Survivor:
    """A run folder whose command, or something it started, still runs."""

    attempt_id: str
    folder: str
    log: str
    background: bool
    supervisor_pid: int
    supervisor_alive: bool
    pid: int | None
    """Pid of the group's leader, dead or alive."""
    started_boot_ms: int
    age_ms: int
    command: str
    """Command line of the leader or of the first member, from the kernel."""
    members: tuple[Member, ...]
    settled: bool
    """An exit record stands; what lives outlived its leader."""


@dataclass(frozen=True, slots=True)
class KillReport:
    """What a kill achieved. `gone` is false as long as anything was seen alive."""

    gone: bool
    proven: bool
    """No descendant is left, by the supervisor's own word; else only what was found is gone."""
    how: str
    """`supervisor`, `members` or `nothing`."""
    left: tuple[Member, ...] = ()


def survivors(processes: Path) -> list[Survivor]:
    """Every run folder with something alive, oldest first; reads only, also of other sessions."""
    found = []
    try:
        names = sorted(os.listdir(processes))  # noqa: PTH208
    except OSError:
        return []
    for name in names:
        with contextlib.suppress(OSError), _opened(str(processes / name)) as descriptor:
            survivor = _survivor(processes / name, descriptor)
            if survivor is not None:
                found.append(survivor)
    return sorted(found, key=lambda survivor: survivor.started_boot_ms)


def resource_of(survivor: Survivor) -> dict[str, Any]:
    """A listed resource as a snapshot names it: nothing in it counts elapsed time (TR-140, TR-205)."""
    return {
        "attemptId": survivor.attempt_id,
        "pid": survivor.pid,
        "command": redact_text(survivor.command),
        "log": survivor.log,
        "startedBoot": survivor.started_boot_ms,
    }


def lives_on(path: Path, descriptor: int) -> bool:
    """Whether an open run folder has something alive."""
    return _survivor(path, descriptor) is not None


def _survivor(path: Path, descriptor: int) -> Survivor | None:
    claimed = folder.read_record(descriptor, folder.CLAIM)
    if claimed is None or claimed.get("by") != "supervisor":
        return None
    if folder.read_record(descriptor, folder.QUIET) is not None and not kernel.is_alive(
        int(claimed.get("pid") or 0), int(claimed.get("startTicks") or 0)
    ):
        return None  # the common case, told without looking at every process of the machine
    alive, members = living(descriptor, claimed)
    settled = folder.read_record(descriptor, folder.EXIT) is not None
    if not members and (settled or not alive):
        return None  # at most its supervisor is left, about to end
    leader = folder.read_record(descriptor, folder.LEADER) or {}
    first = next((m for m in members if m.pid == leader.get("pid")), members[0] if members else None)
    return Survivor(
        attempt_id=path.name,
        folder=str(path),
        log=str(path / folder.LOG),
        background=bool(claimed.get("background")),
        supervisor_pid=int(claimed.get("pid") or 0),
        supervisor_alive=bool(alive),
        pid=leader.get("pid"),
        started_boot_ms=int(claimed.get("atBoot") or 0),
        age_ms=kernel.boot_ms() - int(claimed.get("atBoot") or 0),
        command=first.command if first else command_of(int(leader.get("pid") or 0)),
        members=members,
        settled=settled,
    )


def kill(record: Mapping[str, Any], *, wait_ms: int = KILL_WAIT_MS) -> KillReport:
    """End a command and everything it left, and wait until that is proven or the time is over.

    Blocks for at most about `wait_ms`. `record` needs `path` only; a `process` record has it.
    """
    try:
        with _opened(str(record["path"])) as descriptor:
            return _kill(descriptor, wait_ms)
    except OSError:
        return KillReport(gone=False, proven=False, how="nothing")


def _kill(descriptor: int, wait_ms: int) -> KillReport:
    until = kernel.boot_ms() + wait_ms
    claimed = folder.read_record(descriptor, folder.CLAIM) or {}
    alive, members = living(descriptor, claimed)
    if alive:
        if _ask(descriptor, "kill", until):
            return KillReport(gone=True, proven=True, how="supervisor")
        alive, members = living(descriptor, claimed)
        if alive:
            return KillReport(gone=not members, proven=False, how="supervisor", left=members)
    if not members:
        quiet = folder.read_record(descriptor, folder.QUIET) is not None
        return KillReport(gone=alive is False, proven=quiet, how="nothing")
    for number in (signal.SIGTERM, signal.SIGKILL):
        _signal_all(members, number)
        _wait_for(members, min(until, kernel.boot_ms() + 1_000))
        _, members = living(descriptor, claimed)
        if not members:
            return KillReport(gone=True, proven=False, how="members")
    return KillReport(gone=False, proven=False, how="members", left=members)


def _signal_all(members: Iterable[Member], number: int) -> None:
    for member in members:
        kernel.send(member.pid, member.start_ticks, number)


def _wait_for(members: Iterable[Member], until_boot_ms: int) -> None:
    for member in members:
        descriptor = kernel.open_process(member.pid, member.start_ticks)
        if descriptor is None:
            continue
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(max(0, until_boot_ms - kernel.boot_ms()))
        os.close(descriptor)


def stop_message(why: str, pressed_boot_ms: int | None = None) -> bytes:
    """The line that asks a supervisor to end its command."""
    return json.dumps({"do": "stop", "why": why, "pressedBoot": pressed_boot_ms}).encode() + b"\n"


def _ask(descriptor: int, why: str, until_boot_ms: int) -> bool:
    """Ask the supervisor to end the command and wait for its word that nothing is left."""
    try:
        with _connected(descriptor) as connection:
            connection.sendall(stop_message(why))
            heard = b""
            while (left := until_boot_ms - kernel.boot_ms()) > 0:
                connection.settimeout(left / 1000)
                chunk = connection.recv(4096)
                if not chunk:
                    break
                heard += chunk
                if b'"event": "quiet"' in heard:
                    return True
    except OSError:
        pass
    return False


@contextlib.contextmanager
def _opened(path: str) -> Any:
    descriptor = folder.open_folder(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _connected(descriptor: int) -> Any:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(1.0)
        connection.connect(f"/proc/self/fd/{descriptor}/{folder.STOP}")
        yield connection
