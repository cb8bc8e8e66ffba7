"""Content-addressed blobs: large outputs beside the ledger (TR-6).

Owns: their names, that they are durable before they are named in an entry, that what is
read is what was stored, and the removal of those that are too old to be waited for. Does
not own: when a result is a blob (`runtime`), which ones are named (`shedding`).

A blob is stored before the entry that names it. Its age therefore counts from its last
storing, and both storing one that is there and removing one pass the gate: a blob that
somebody is about to name is never taken away under it.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from surefoot.core.canonical import digest_bytes
from surefoot.errors import LedgerDamaged, LedgerError
from surefoot.ledger.gate import Gate
from surefoot.ledger.places import GATE, make_durable_folder, sync_folder

_PREFIX = "sha256:"


class Blobs:
    """The blob folder of one ledger. Every call blocks; engines call it off the event loop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, content: bytes) -> str:
        """Store `content` and return its reference; durable when this returns.

        Raises:
            LedgerError: it could not be stored.
        """
        ref = digest_bytes(content)
        path = self._path(ref)
        try:
            make_durable_folder(path.parent)
            if not path.exists() or not self._renewed(path, ref):
                self._write(path, content)
            sync_folder(path.parent)
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise LedgerError(f"a blob could not be stored ({reason}); free space and try again") from error
        return ref

    def get(self, ref: str) -> bytes:
        """The content behind a reference.

        Raises:
            LedgerDamaged: missing, or not what was stored.
        """
        try:
            content = self._path(ref).read_bytes()
        except OSError as error:
            raise LedgerDamaged(f"blob {ref!r} cannot be read; run `surefoot ledger verify`") from error
        if digest_bytes(content) != ref:
            raise LedgerDamaged(f"blob {ref!r} is not what was stored; run `surefoot ledger verify`")
        return content

    def findings(self) -> tuple[int, list[tuple[str, str]]]:
        """How many blobs there are, and each that is not what its name says."""
        count, wrong = 0, []
        for path in sorted(self._folder.glob("??/*")):
            if path.name.startswith("."):
                continue
            count += 1
            ref = _PREFIX + path.name
            if not self._whole(path, ref):
                wrong.append(("blob_damaged", ref))
        return count, wrong

    def aged(self, before_ms: int) -> list[tuple[Path, int]]:
        """Files last stored before that moment, drafts of dead writers included, with their size in bytes."""
        found = []
        for path in sorted(self._folder.glob("??/*")):
            facts = _facts(path)
            if facts is not None and facts.st_mtime_ns < before_ms * 1_000_000:
                found.append((path, facts.st_size))
        return found

    def remove_aged(self, path: Path, before_ms: int) -> bool:
        """Remove a file unless it was stored again meanwhile. Behind the gate."""
        facts = _facts(path)
        if facts is None or facts.st_mtime_ns >= before_ms * 1_000_000:
            return False
        path.unlink(missing_ok=True)
        return True

    def has(self, ref: str) -> bool:
        """Whether there is a file for `ref`."""
        return self._path(ref).is_file()

    def _path(self, ref: str) -> Path:
        name = ref.removeprefix(_PREFIX)
        if len(name) != 64 or not all(digit in "0123456789abcdef" for digit in name):
            raise LedgerDamaged(f"{ref!r} is no blob reference; it must be `sha256:` and 64 hex digits")
        return self._folder / name[:2] / name

    def _renewed(self, path: Path, ref: str) -> bool:
        """Whether the blob is there and whole; then it is young again and synced by us.

        One found by name counts only so: the process that wrote it may have died before its sync.
        """
        gate = Gate(self._folder.parent / GATE)
        try:
            gate.enter()
            try:
                if not self._whole(path, ref):
                    return False
                os.utime(path)
                _sync_file(path)
            finally:
                gate.leave()
        finally:
            gate.close()
        return True

    def _whole(self, path: Path, ref: str) -> bool:
        try:
            return digest_bytes(path.read_bytes()) == ref
        except OSError:
            return False

    def _write(self, path: Path, content: bytes) -> None:
        draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            draft.rename(path)
        except OSError:
            draft.unlink(missing_ok=True)
            raise


def _facts(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None  # it went meanwhile


def _sync_file(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
