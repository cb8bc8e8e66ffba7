"""Run folders from the agent's side: made before the start receipt, recognised afterwards.

Owns: making the folder with its token and secrets, the `process` record that names it, and
telling whether a folder is still the one of the record. Does not own: the files a supervisor
writes there (`folder`, `supervisor`), what they mean (`seen`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.core.canonical import digest_text
from surefoot.tools.processes import folder, kernel


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A fresh run folder and what only its maker knows of it."""

    attempt_id: str
    path: Path
    dev: int
    ino: int
    token: str
    secret: str = field(repr=False)
    """Proves an exit record; its hash alone is written down."""
    quiet_secret: str = field(repr=False)
    """Proves a quiet record. A second one, since the exit record gives the first away to
    descendants that still run."""

    @property
    def log(self) -> Path:
        """Where the command's output goes."""
        return self.path / folder.LOG

    def record(
        self, command: str, *, clients: Sequence[str] = (), check: bool = False, background: bool = False
    ) -> dict[str, Any]:
        """The `process` record of the start receipt (TR-66)."""
        return {
            "path": str(self.path),
            "dev": self.dev,
            "ino": self.ino,
            "token": self.token,
            "bootId": kernel.boot_id(),
            "commandDigest": digest_text(command),
            "log": str(self.log),
            "secretHash": secret_hash(self.secret),
            "quietHash": secret_hash(self.quiet_secret),
            "clients": list(clients),
            "check": check,
            "background": background,
        }

    def open(self) -> int:
        """A descriptor of this very folder. Raises OSError when it is gone or another one."""
        descriptor = folder.open_folder(str(self.path))
        if not is_same(descriptor, {"dev": self.dev, "ino": self.ino, "token": self.token}):
            os.close(descriptor)
            raise FileNotFoundError(f"the run folder {str(self.path)!r} was replaced")
        return descriptor


def make_run(processes: Path, attempt_id: str) -> RunFolder:
    """Make the run folder of an attempt. Raises OSError, also when it exists already."""
    processes.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = processes / attempt_id
    path.mkdir(mode=0o700)
    token, secret, quiet_secret = (os.urandom(32).hex() for _ in range(3))
    descriptor = os.open(path / folder.TOKEN, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, token.encode())
    finally:
        os.close(descriptor)
    found = path.lstat()
    return RunFolder(attempt_id, path, found.st_dev, found.st_ino, token, secret, quiet_secret)


def is_same(descriptor: int, record: Mapping[str, Any]) -> bool:
    """Whether an open folder is the one the record names: device, inode and token."""
    found = os.fstat(descriptor)
    return (
        found.st_dev == record.get("dev")
        and found.st_ino == record.get("ino")
        and folder.read_text(descriptor, folder.TOKEN) == record.get("token")
    )


def secret_hash(secret: str) -> str:
    """`sha256:` and the hex digest of a secret."""
    return "sha256:" + hashlib.sha256(secret.encode()).hexdigest()


def is_proven(found: Mapping[str, Any] | None, expected_hash: Any) -> bool:
    """Whether a record carries the secret whose hash the start receipt names."""
    secret = (found or {}).get("secret")
    return isinstance(secret, str) and bool(expected_hash) and secret_hash(secret) == expected_hash
