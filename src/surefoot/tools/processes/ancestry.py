"""Who stands behind a press: the chain of parents of a process, as the kernel tells it.

Owns: reading that chain with start ticks, twice (UX-119), and whether a supervisor, a tool's
process or an owner stands in it. Does not own: who may decide (`core.admission`), the peer
of a socket (`surfaces`).
Promises: recovery:never-guess. What cannot be read is no person.

The defence reaches as far as the account does: work handed to a service, and children of a
supervisor that was killed, reach a person's own shell and look like one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from surefoot.ledger.places import OWNERS, PROCESSES
from surefoot.tools.processes import folder, kernel
from surefoot.tools.processes.preparing import KEY_VARIABLE

TRIES = 5
MOST_LINKS = 4096
_SERVER = b"from surefoot.tools.processes import server"
"""Stands on the command line of every supervisor and of the server that forks them."""

Link = tuple[int, int]
"""Pid and raw start ticks: together they name one process of this boot."""


@dataclass(frozen=True, slots=True)
class Descent:
    """What the chain of a process says. `reason` None: nothing in it speaks against a person."""

    reason: str | None
    """`descendant_of_tool` or `inside_tool_body` (UX-65)."""
    ancestry: str
    """`full`, `partial` when a parent is hidden from us, `none` when the chain cannot be read (UX-122)."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What an `ancestry` on a record is worth (UX-121)."""

    where: str
    """Where one gets it."""
    checked: str
    """What was asked of the kernel."""


PROMISES: Mapping[str, Promise] = {
    "full": Promise(
        "Linux, every parent can be read",
        "the user and all parents up to the first process; what detached itself keeps its supervisor above it",
    ),
    "partial": Promise(
        "Linux, a parent of another account is hidden",
        "the user and the parents that can be seen; what stands above them is not known",
    ),
    "none": Promise(
        "Linux without a readable or steady `/proc`; macOS and Windows",
        "the user alone, so no press counts as that of a person",
    ),
}


UNREADABLE = Descent("descendant_of_tool", "none")


def descent_of_peer(pid: int, ledgers: Path, *, recorded: Collection[Link]) -> Descent:
    """Judge a process that connected to this one. `recorded` are the processes named on receipts.

    Only on Linux; elsewhere, and where the chain cannot be read, nobody is let in.
    """
    if pid == os.getpid():
        # Code inside a tool's body that connects to its own process.
        return Descent("inside_tool_body", "full")
    return _judged(pid, ledgers, {os.getpid()}, recorded, with_itself=True)


def ancestry_here() -> str:
    """How much of its own chain a process gets to see here: a key of `PROMISES`."""
    found = chain_of(os.getpid())
    return "none" if found is None else "full" if found[1] else "partial"


def descent_here(ledgers: Path, *, recorded: Collection[Link]) -> Descent:
    """Judge this very process, which is about to decide in a session it took over from nobody alive."""
    return _judged(os.getpid(), ledgers, set(), recorded, with_itself=False)


def _judged(
    pid: int, ledgers: Path, owners: set[int], recorded: Collection[Link], *, with_itself: bool
) -> Descent:
    found = chain_of(pid)
    if found is None:
        return UNREADABLE
    links, whole = found
    above = links if with_itself else links[1:]
    ancestry = "full" if whole else "partial"
    pids = {link[0] for link in above}
    known = {*recorded, *_claimed(ledgers, pids)}
    is_tool = (
        any(link in known for link in above)
        or bool(pids & (owners | _owners(ledgers, pids)))
        or any(_is_marked(link[0]) for link in links)
    )
    return Descent("descendant_of_tool" if is_tool else None, ancestry)


def chain_of(pid: int) -> tuple[list[Link], bool] | None:
    """The process and its parents up to the first one, read twice alike; False: the top is hidden.

    None when it kept changing or the process is gone.
    """
    before = _read_chain(pid)
    for _ in range(TRIES):
        now = _read_chain(pid)
        if now is not None and now == before:
            return now
        before = now
    return None


def _read_chain(pid: int) -> tuple[list[Link], bool] | None:
    links: list[Link] = []
    while pid > 0 and len(links) < MOST_LINKS:
        stat = kernel.stat_of(pid)
        if stat is None:
            # A parent of another account may be hidden; one that is gone was replaced as a parent.
            return (links, False) if links and _is_hidden(pid) else None
        links.append((pid, stat.start_ticks))
        pid = stat.parent
    return (links, True) if links else None


def _is_hidden(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _claimed(ledgers: Path, pids: Collection[int]) -> Iterator[Link]:
    """Supervisors and leaders that the run folders of all projects name, as far as they stand in the chain."""
    boot, space = kernel.boot_id(), kernel.pid_namespace()
    for run in _rooms(ledgers, PROCESSES):
        with contextlib.suppress(OSError), _opened(run) as descriptor:
            claimed = folder.read_record(descriptor, folder.CLAIM) or {}
            if claimed.get("by") != "supervisor":
                continue
            leader = folder.read_record(descriptor, folder.LEADER) or {}
            if (claimed.get("bootId"), claimed.get("pidNamespace")) == (boot, space):
                for record in (claimed, leader):
                    if record.get("pid") in pids:
                        yield int(record["pid"]), int(record.get("startTicks") or 0)


def _owners(ledgers: Path, pids: Collection[int]) -> set[int]:
    """The pids among these that own something in any project: their lock file is held."""
    found = set()
    for lock in _rooms(ledgers, OWNERS):
        number = lock.name.partition("-")[0]
        if number.isdigit() and int(number) in pids and _is_held(lock):
            found.add(int(number))
    return found


def _is_held(lock: Path) -> bool:
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _rooms(ledgers: Path, name: str) -> Iterator[Path]:
    """Every entry of this room in the ledger of every project."""
    with contextlib.suppress(OSError):
        for project in sorted(ledgers.iterdir()):
            with contextlib.suppress(OSError):
                yield from (project / name).iterdir()


def _is_marked(pid: int) -> bool:
    """Whether a process shows by itself that it is a supervisor or was started by one.

    Says something only when it is there: an environment can be emptied, and a run folder deleted.
    """
    if _SERVER in _of_kernel(pid, "cmdline"):
        return True
    begins = f"{KEY_VARIABLE}=".encode()
    return any(one.startswith(begins) for one in _of_kernel(pid, "environ").split(b"\0"))


def _of_kernel(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = folder.open_folder(str(path))
    try:
        yield descriptor
    finally:
        os.close(descriptor)
