"""The run folder of a supervised command: its files, and how they are put in place.

Owns: the names `token`, `claim`, `leader`, `exit`, `quiet`, `log`, `stop`; finished files
put in place by `link()` (a claim, which only one can win) or by renaming (records).
Does not own: who may write which (`supervisor`, `seen`), what they prove (`seen`).
Everything works by a descriptor of the folder, so a folder moved or replaced under its
name is never written to by mistake. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

TOKEN = "token"
CLAIM = "claim"
LEADER = "leader"
EXIT = "exit"
QUIET = "quiet"
LOG = "log"
STOP = "stop"
TOLD = "told"

_RECORD_BYTES = 64 * 1024
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_folder(path: str) -> int:
    """A descriptor of the folder at `path`, which must be no link. Raises OSError."""
    return os.open(path, _FOLDER_FLAGS)


def read_text(folder: int, name: str) -> str | None:
    """The text of a small file in the folder, or None when it is absent or no plain file."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return None
    try:
        return os.read(descriptor, _RECORD_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(descriptor)


def read_record(folder: int, name: str) -> dict[str, Any] | None:
    """A record of the folder, or None when it is absent or no JSON object."""
    text = read_text(folder, name)
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def put_claim(folder: int, record: dict[str, Any]) -> bool:
    """Put a finished claim in place; False when another one stands there already.

    Raises:
        OSError: it could not be made; whether anybody claims later is then open.
    """
    temporary = _write(folder, CLAIM, record, sync=False)
    try:
        os.link(temporary, CLAIM, src_dir_fd=folder, dst_dir_fd=folder)
        return True
    except FileExistsError:
        return False
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)


def put_record(folder: int, name: str, record: dict[str, Any], *, sync: bool) -> None:
    """Rename a finished record into place; with `sync` it survives a power cut. Raises OSError."""
    temporary = _write(folder, name, record, sync=sync)
    try:
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    if sync:
        os.fsync(folder)
        parent = os.open("..", _FOLDER_FLAGS, dir_fd=folder)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)


def _write(folder: int, name: str, record: dict[str, Any], *, sync: bool) -> str:
    temporary = f".{name}.{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        content = json.dumps(record, sort_keys=True).encode()
        while content:
            content = content[os.write(descriptor, content) :]
        if sync:
            os.fsync(descriptor)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    finally:
        os.close(descriptor)
    return temporary
