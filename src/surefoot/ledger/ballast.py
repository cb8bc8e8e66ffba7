"""Head room and ballast: what keeps a full disk from splitting a call (TR-197).

Owns: how much must be free before a call starts, and the file that is given up so that
a started call can still be closed. Does not own: which entries may use it (`admission`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Room:
    """What is asked of the disk; the defaults are those of TR-197."""

    free_bytes: int = 8 << 20
    ballast_bytes: int = 2 << 20


class Ballast:
    """The ballast file of one ledger and the free room beside it. Called behind the gate."""

    def __init__(self, path: Path, room: Room) -> None:
        self._path = path
        self._folder = str(path.parent)
        self._room = room

    def free_bytes(self) -> int:
        """What a process without privileges may still write where the ledger lies."""
        facts = os.statvfs(self._folder)
        return facts.f_bavail * facts.f_frsize

    def enough(self) -> bool:
        """Whether a call may start; where nobody can tell, it may not."""
        try:
            return self.free_bytes() >= self._room.free_bytes
        except OSError:
            return False

    def give_up(self) -> bool:
        """Free the ballast; False when there is none left."""
        try:
            if not self._path.stat().st_size:
                return False
            os.truncate(self._path, 0)
        except OSError:
            return False
        return True

    def lay(self) -> None:
        """Lay the ballast down again when there is room for it beside the head room."""
        wanted = self._room.ballast_bytes
        try:
            present = self._path.stat().st_size if self._path.exists() else 0
            if present >= wanted or self.free_bytes() < self._room.free_bytes + wanted:
                return
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(fd, 0, wanted)
            finally:
                os.close(fd)
        except OSError:
            return  # no room after all, or a file system that allocates nothing in advance
