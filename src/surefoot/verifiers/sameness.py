"""Whether a file or folder is still the one it was: device, inode and the time it was born.

Owns: the identity that scopes of databases and repositories hold. Does not own: what a changed one means
(`scope_changed`, TR-99). A file system gives the inode of a removed file to the next one, so device and inode
alone call another file the same; the time of birth is set once and by nobody but the kernel.
Promises: where no time of birth is kept, absence is never called proven.
"""

from __future__ import annotations

import os
import struct
from dataclasses import replace
from pathlib import Path

from surefoot import machine
from surefoot.core.model import Grade
from surefoot.verifiers.port import Observation

_INO_AT, _BORN_AT = 0x20, 0x50
_SECOND_NS = 1_000_000_000
_NO_BIRTH = "that it is the same one as before; this file system keeps no time of birth"


def identity(path: Path) -> list[int] | None:
    """Device, inode and, where the file system keeps it, birth in nanoseconds; None when nothing is there."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    born = born_ns(path, found.st_ino)
    return [found.st_dev, found.st_ino, *([] if born is None else [born])]


def born_ns(path: Path, inode: int) -> int | None:
    """When the file with this inode was made; None where that is not kept, or another took the name meanwhile.

    Nothing is opened: closing a handle of a SQLite file would drop the locks that others in this process hold.
    """
    ask = machine.statx(os.fsencode(path), machine.INODE | machine.BORN)
    told = None if ask is None else ask()
    if told is None:
        return None
    (filled,) = struct.unpack_from("=I", told)
    if not filled & machine.BORN or struct.unpack_from("=Q", told, _INO_AT) != (inode,):
        return None
    seconds, rest = struct.unpack_from("=qI", told, _BORN_AT)
    return int(seconds) * _SECOND_NS + int(rest)


def as_far_as_told(found: Observation, known: list[int] | None) -> Observation:
    """The same observation, with a proven absence lowered where the identity has no time of birth."""
    if found.state != "absent" or found.grade is not Grade.PROOF or (known is not None and len(known) > 2):
        return found
    open_point = found.does_not_prove or _NO_BIRTH
    return replace(
        found, grade=Grade.STRONG, does_not_prove=open_point, reason=found.reason or "identity_unsure"
    )
