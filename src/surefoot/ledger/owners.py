"""What the kernel says of processes: who this one is, and whether an owner is dead.

Owns: the facts of a process (pid, raw start ticks, boot, pid namespace, machine), the
lock file that the kernel drops when its process dies, and the proof of death (TR-173).
Does not own: what a dead owner's calls become (`runtime.reconcile`).

A process is known by what the kernel says, never by a converted time. A stopped or
hung owner is alive. What cannot be told waits for the lease.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import socket
from dataclasses import replace
from pathlib import Path
from typing import Literal

from surefoot.core.model import Owner
from surefoot.machine import boot_id, machine_id

Death = Literal["dead", "alive", "cannot_tell"]

_ESCAPE = re.compile(r"\\([0-7]{3})")
_REMOTE = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4"}
    | {"ocfs2", "orangefs", "pvfs2", "smb3", "smbfs", "virtiofs"}
)


class OwnerLock:
    """The lock of this process: held while the file is open, dropped by the kernel at its death."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd

    def close(self) -> None:
        """Drop the lock and remove its file. Ownerships must have ended before."""
        if self._fd >= 0:
            self.path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1


def this_process(lock_folder: Path) -> tuple[Owner, OwnerLock]:
    """Who this process is, with a fresh lock file in `lock_folder` that it holds."""
    lock_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    pid = os.getpid()
    owner = Owner(
        host=socket.gethostname(),
        pid=pid,
        start_ticks=start_ticks(pid) or 0,
        boot_id=boot_id(),
        pid_namespace=pid_namespace(),
        machine_id=machine_id(),
    )
    path = lock_folder / f"{_begins(owner)}{secrets.token_hex(8)}"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    facts = os.fstat(fd)
    return replace(owner, lock_dev=facts.st_dev, lock_ino=facts.st_ino), OwnerLock(path, fd)


def proof_of_death(owner: Owner, lock_folder: Path) -> Death:
    """Whether the kernel proves that `owner` is dead, or that it lives (TR-173).

    `lock_folder` is where owners of this ledger keep their locks.
    """
    if owner.boot_id and owner.boot_id == boot_id():
        by_lock = _by_lock(owner, lock_folder)
        by_pid = _by_pid(owner)
        if "dead" in (by_lock, by_pid):
            return "dead"
        return "alive" if "alive" in (by_lock, by_pid) else "cannot_tell"
    same_machine = bool(owner.machine_id) and owner.machine_id == machine_id()
    if same_machine and owner.boot_id and boot_id() and is_local(lock_folder):
        return "dead"  # the machine has booted since
    return "cannot_tell"


def _by_lock(owner: Owner, folder: Path) -> Death:
    """A lock that can be taken has lost its holder; one that is held, by it or its child, lives."""
    if owner.lock_ino is None or not is_local(folder):
        return "cannot_tell"
    path = _lock_file(owner, folder)
    if path is None:
        return "cannot_tell"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return "cannot_tell"
    try:
        facts = os.fstat(fd)
        if (facts.st_dev, facts.st_ino) != (owner.lock_dev, owner.lock_ino):
            return "cannot_tell"
        # Shared, so that two who ask at the same moment do not take each other for the owner.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return "alive"
    except OSError:
        return "cannot_tell"
    finally:
        os.close(fd)
    return "dead"


def _lock_file(owner: Owner, folder: Path) -> Path | None:
    """The file of this lock, by inode and name: an inode is given to the next file once its own is gone."""
    begins = _begins(owner)
    try:
        with os.scandir(folder) as found:
            for item in found:
                if item.inode() == owner.lock_ino and item.name.startswith(begins):
                    return Path(item.path)
    except OSError:
        return None
    return None


def _begins(owner: Owner) -> str:
    """How the name of this process's lock begins: its pid, and who else it is as a digest."""
    facts = f"{owner.boot_id}\n{owner.pid_namespace}\n{owner.pid}\n{owner.start_ticks}"
    return f"{owner.pid}-{hashlib.sha256(facts.encode()).hexdigest()[:16]}-"


def _by_pid(owner: Owner) -> Death:
    """In the same pid namespace a missing pid, or one with another start tick, is another process."""
    if not owner.pid_namespace or owner.pid_namespace != pid_namespace():
        return "cannot_tell"
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return "dead"
    except PermissionError:
        pass  # it exists and belongs to somebody else
    except OverflowError:
        return "cannot_tell"
    ticks = start_ticks(owner.pid)
    if ticks is None or not owner.start_ticks:
        return "cannot_tell"  # hidden from us
    return "alive" if ticks == owner.start_ticks else "dead"


def start_ticks(pid: int) -> int | None:
    """The raw start tick of a process (field 22 of its `stat`), or None when it cannot be read."""
    try:
        return ticks_in(Path(f"/proc/{pid}/stat").read_bytes())
    except (OSError, ValueError, IndexError):
        return None


def ticks_in(stat: bytes) -> int:
    """Field 22 of a `stat` line; the name in field 2 may hold spaces and parentheses."""
    behind_name = stat[stat.rindex(b")") + 1 :].split()
    return int(behind_name[19])


def pid_namespace() -> str:
    """The pid namespace of this process, such as `pid:[4026531836]`."""
    try:
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115
    except OSError:
        return ""


def is_local(path: Path) -> bool:
    """Whether `path` lies on a file system of this machine alone. What cannot be told is not local."""
    try:
        kind = _kind_of(os.path.realpath(path), os.fsdecode(Path("/proc/self/mountinfo").read_bytes()))
    except OSError:
        return False
    return kind is not None and kind not in _REMOTE and kind.partition(".")[0] != "fuse"


def _kind_of(real: str, mounts: str) -> str | None:
    """The kind of file system under the longest mount point that leads to `real`; a later mount hides."""
    longest, found = -1, None
    for line in mounts.split("\n"):
        front, _, back = line.partition(" - ")
        if not back:
            continue
        # Spaces and the like in a mount point are written as octal escapes.
        point = _ESCAPE.sub(lambda found: chr(int(found[1], 8)), front.split(" ")[4])
        if (real == point or real.startswith(point.rstrip("/") + "/")) and len(point) >= longest:
            longest, found = len(point), back.split()[0]
    return found
