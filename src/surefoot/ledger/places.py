"""Where a ledger lies: its folder, the files in it, and the name of a project's folder.

Owns: the layout (UX-164), which files are the ledger's own (TR-191), and setting a
damaged ledger aside whole (UX-163). Does not own: who chooses the folder (`config`).
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from surefoot.errors import LedgerError

LEDGER = "ledger.db"
WAL = "ledger.db-wal"
SHM = "ledger.db-shm"
WITNESS = "witness"
GATE = "gate"
BALLAST = "ballast"
BLOBS = "blobs"
PROCESSES = "processes"
OWNERS = "owners"
ASIDE = "damaged-"

_GUARDED = (LEDGER, WAL, SHM, "ledger.db-journal")


def project_root(directory: Path) -> Path:
    """The repository root that holds `directory`, or `directory` itself outside a repository."""
    real = Path(os.path.realpath(directory))
    for folder in (real, *real.parents):
        if (folder / ".git").exists():
            return folder
    return real


def project_name(path: Path) -> str:
    """The name of a project's folder: its root's name, a hyphen, 12 hex digits of its real path (UX-164)."""
    root = project_root(path)
    digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:12]
    name = os.fsencode(root.name or "root").decode("utf-8", "replace")  # the engine opens UTF-8 names only
    return f"{os.fsdecode(name.encode())}-{digest}"


def project_folder(ledgers: Path, directory: Path) -> Path:
    """The ledger folder of the project that `directory` belongs to, under the folder of all ledgers."""
    return ledgers / project_name(directory)


def make_folder(folder: Path) -> None:
    """Make the folder of a ledger and its rooms, for its owner alone, and sync each new parent."""
    for room in (folder, folder / BLOBS, folder / PROCESSES, folder / OWNERS):
        make_durable_folder(room)


def make_durable_folder(folder: Path) -> None:
    """Make `folder` with mode 0700; the parent of every new folder is synced (TR-6)."""
    if folder.is_dir():
        return
    if not folder.parent.is_dir():
        make_durable_folder(folder.parent)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not folder.is_dir():
            raise
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def ledger_files(folder: Path) -> frozenset[tuple[int, int]]:
    """Device and inode of each file that only the engine may open (TR-191)."""
    found = set()
    for name in _GUARDED:
        try:
            facts = os.stat(folder / name)  # noqa: PTH116
        except OSError:
            continue
        found.add((facts.st_dev, facts.st_ino))
    return frozenset(found)


def is_ledger_file(path: Path | str | os.stat_result, folder: Path) -> bool:
    """Whether `path` leads, by whatever name, to a file of the ledger in `folder` (TR-191).

    Opens nothing: to open and close such a file would drop the engine's locks.
    """
    if isinstance(path, os.stat_result):
        facts = path
    else:
        try:
            facts = os.stat(path)  # noqa: PTH116
        except (OSError, ValueError):
            return False
    return (facts.st_dev, facts.st_ino) in ledger_files(folder)


def set_aside(folder: Path) -> Path:
    """Move a damaged ledger whole into a folder beside it; nothing is deleted or stripped (UX-163).

    Only for a person's explicit act. Its sessions stay listed, as unreadable.

    Raises:
        LedgerError: there is nothing to set aside.
    """
    present = [name for name in (*_GUARDED, WITNESS, BLOBS) if (folder / name).exists()]
    if not present:
        raise LedgerError(f"there is no ledger in {str(folder)!r} to set aside; check the path")
    number = 1
    while (aside := folder / f"{ASIDE}{number}").exists():
        number += 1
    aside.mkdir(mode=0o700)
    for name in present:
        (folder / name).rename(aside / name)
    sync_folder(aside)
    sync_folder(folder)
    return aside


def set_aside_folders(folder: Path) -> list[Path]:
    """The folders of ledgers that were set aside, oldest first."""
    if not folder.is_dir():
        return []
    named = [item for item in folder.iterdir() if item.name.startswith(ASIDE) and item.is_dir()]
    return sorted(named, key=lambda item: (len(item.name), item.name))
