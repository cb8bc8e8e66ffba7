"""One change to one path, and how it is carried out (TR-106).

Owns: write intents, the comparison with what was seen before, atomic replacement,
writing in place, removal, renaming, and whether anything was touched when it
fails. Does not own: which content is wanted (`writing`), what an intent proves
later (`verifiers.files`).

The target is compared three times: when the change is prepared, before the first
step, and when the old content has come *out*; a mismatch is swapped back.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import Any

from surefoot.tools.files.disk import Disk
from surefoot.verifiers.files import INTENT_VERSION, follows, host_name
from surefoot.verifiers.sight import (
    ABSENT,
    DIGEST_FILE_BYTES,
    FileIds,
    Sight,
    Unopenable,
    look,
    look_and_read,
    open_regular,
    resolve,
    temporary_name,
)

DONE = "done"
ALREADY = "already"
CHANGED = "changed"

_DEFINITE = frozenset(
    {
        errno.EACCES,
        errno.EBUSY,
        errno.EDQUOT,
        errno.EEXIST,
        errno.EINVAL,
        errno.EISDIR,
        errno.ELOOP,
        errno.EMLINK,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOSPC,
        errno.ENOTDIR,
        errno.ENOTEMPTY,
        errno.EPERM,
        errno.EROFS,
        errno.EXDEV,
    }
)
"""Errors by which a kernel says that a rename or link did not happen; after any other it may have."""

_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK})
"""Answers of file systems that give a file one name only."""


@dataclass(frozen=True, slots=True)
class Change:
    """What one path was, and what it is to be."""

    kind: str
    """`write`, `inplace`, `delete`, `move` (with `source`) or `mkdir`."""
    path: str
    resolved: str
    before: Sight
    content: bytes | None = None
    after: str | None = None
    """Digest, `absent`, or None where only an identity is known."""
    encoding: str | None = None
    source: str | None = None
    """For `move`: the resolved path that comes here; `source_path` is as it was written."""
    source_path: str = ""
    source_before: Sight | None = None
    tree: bool = False
    """For `delete`: a folder goes with everything below it."""

    def intents(self) -> list[dict[str, Any]]:
        """As stored in D6 (TR-105); a move has one for each end."""
        own = _intent(
            self.kind,
            self.path,
            resolved=self.resolved,
            before=self.before,
            after=self.after,
            encoding=self.encoding,
        )
        if self.source is None or self.source_before is None:
            return [own]
        left = _intent(
            "move",
            self.source_path,
            resolved=self.source,
            before=self.source_before,
            after=ABSENT,
            encoding=None,
        )
        return [left, own]


def _intent(
    kind: str, path: str, *, resolved: str, before: Sight, after: str | None, encoding: str | None
) -> dict[str, Any]:
    return {
        "version": INTENT_VERSION,
        "kind": kind,
        "path": path,
        "resolvedPath": resolved,
        "host": host_name(),
        "route": "disk",
        "transportId": None,
        "before": before.state,
        "after": after,
        "dev": before.dev,
        "ino": before.ino,
        "ctimeNs": before.ctime_ns,
        "encoding": encoding,
    }


def same(before: Sight, now: Sight) -> bool:
    """Whether the content is what it was: by digest, else by identity."""
    if before.kind != now.kind:
        return False
    if before.kind == ABSENT:
        return True
    if before.digest is not None and now.digest is not None:
        return before.digest == now.digest
    identity = (before.dev, before.ino) == (now.dev, now.ino)
    if before.kind == "folder":
        return identity
    return identity and (before.size, before.mtime_ns) == (now.size, now.mtime_ns)


class Applier:
    """Carries out the changes of one attempt, in order."""

    def __init__(
        self,
        attempt_id: str,
        *,
        disk: Disk | None = None,
        ledger_files: FileIds = frozenset(),
        limit: int = DIGEST_FILE_BYTES,
    ) -> None:
        self._attempt = attempt_id
        self._disk = disk or Disk()
        self._ledger_files = ledger_files
        self._limit = limit
        self._ordinal = 0
        self.touched = False
        """Whether a step that shows in the world was taken, or may have been."""
        self.left_beside: str | None = None
        """A file somebody else wrote meanwhile and that could not be put back."""

    def apply(self, change: Change) -> str:
        """Carry out one change: `done`, `already` (nothing was written) or `changed` (underneath).

        Raises:
            OSError: the kernel refused a step; `touched` tells whether anything shows.
        """
        if resolve(change.path, follow=follows(change.kind)) != change.resolved:
            return CHANGED  # a link on the way was turned since
        steps = {
            "mkdir": self._make_folder,
            "delete": self._delete,
            "move": self._move,
            "inplace": self._write_in_place,
            "write": self._replace,
        }
        return steps[change.kind](change)

    def _look(self, path: str) -> Sight:
        return look(path, self._ledger_files, limit=self._limit)

    def _temporary(self, resolved: str) -> str:
        """A name beside the target; what an earlier try of this attempt left there goes first."""
        name = temporary_name(self._attempt, self._ordinal)
        self._ordinal += 1
        path = f"{os.path.dirname(resolved).rstrip('/')}/{name}"  # noqa: PTH120
        self._disk.remove(path)
        return path

    def _mark(self, error: OSError) -> None:
        if error.errno not in _DEFINITE:
            self.touched = True

    def _replace(self, change: Change) -> str:
        now = self._look(change.resolved)
        if now.kind == "file" and change.after is not None and now.digest == change.after:
            return ALREADY
        if not same(change.before, now):
            return CHANGED
        temporary = self._temporary(change.resolved)
        try:
            self._fill(temporary, change)
            return self._lay(temporary, change)
        except OSError as error:
            self._mark(error)
            if not self.touched:
                self._disk.remove(temporary)
            raise

    def _fill(self, temporary: str, change: Change) -> None:
        """Write the new content, whole and durable, under the temporary name."""
        replacing = change.before.kind == "file"
        handle = self._disk.create(temporary, 0o600 if replacing else 0o666)
        try:
            self._disk.write(handle, change.content or b"")
            if replacing:
                self._disk.copy_attributes(change.resolved, handle)
            self._disk.sync(handle)
        finally:
            os.close(handle)

    def _lay(self, temporary: str, change: Change) -> str:
        """Put the finished file in place of exactly what was seen before."""
        folder = os.path.dirname(change.resolved)  # noqa: PTH120
        try:
            if change.before.kind == ABSENT:
                self._give_name(temporary, change.resolved)
                swapped = False
            else:
                swapped = self._disk.exchange(temporary, change.resolved)
                if not swapped:
                    self._disk.rename(temporary, change.resolved, over=True)
        except (FileExistsError, FileNotFoundError):
            self._disk.remove(temporary)
            return CHANGED
        self.touched = True
        if swapped and not same(change.before, self._look(temporary)):
            return self._swap_back(temporary, change)
        self._disk.sync_folder(folder)
        self._disk.remove(temporary)
        return DONE

    def _give_name(self, temporary: str, resolved: str) -> None:
        """Create the target, which fails when anything is there."""
        try:
            self._disk.link(temporary, resolved)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            self._disk.rename(temporary, resolved, over=False)

    def _swap_back(self, temporary: str, change: Change) -> str:
        """Somebody wrote between the look and the exchange: their file goes back where it was."""
        self._disk.exchange(temporary, change.resolved)
        out = self._look(temporary)
        if out.digest is not None and out.digest == change.after:
            self._disk.remove(temporary)
            self.touched = False
        else:
            # They wrote once more while ours stood there: the newest stands, the one before it is kept beside.
            self._disk.exchange(temporary, change.resolved)
            self.left_beside = temporary
        return CHANGED

    def _write_in_place(self, change: Change) -> str:
        """For targets that cannot be replaced; the old content lies in a blob since before D6."""
        now, old = look_and_read(
            change.resolved,
            self._ledger_files,
            limit=self._limit,
            read_limit=max(self._limit, change.before.size),
        )
        if change.after is not None and now.digest == change.after:
            return ALREADY
        if not same(change.before, now) or old is None:
            return CHANGED
        content = change.content or b""
        kept = len(old) if content.startswith(old) else 0
        try:
            handle = open_regular(change.resolved, self._ledger_files, flags=os.O_RDWR)
        except Unopenable as error:
            raise OSError(errno.EACCES, error.text, change.resolved) from None
        try:
            self.touched = True
            self._disk.write(handle, content[kept:], kept)
            self._disk.truncate(handle, len(content))
            self._disk.sync(handle)
        finally:
            os.close(handle)
        return DONE

    def _make_folder(self, change: Change) -> str:
        now = self._look(change.resolved)
        if now.kind == "folder":
            return ALREADY
        if now.kind != ABSENT:
            return CHANGED
        try:
            self._disk.make_folder(change.resolved)
        except FileExistsError:
            return ALREADY if self._look(change.resolved).kind == "folder" else CHANGED
        except OSError as error:
            self._mark(error)
            raise
        self.touched = True
        self._disk.sync_folder(os.path.dirname(change.resolved))  # noqa: PTH120
        return DONE

    def _delete(self, change: Change) -> str:
        now = self._look(change.resolved)
        if now.kind == ABSENT:
            return ALREADY if change.before.kind == ABSENT else CHANGED
        if not same(change.before, now):
            return CHANGED
        try:
            if now.kind == "folder" and not change.tree:
                self._disk.remove_folder(change.resolved, tree=False)
                self.touched = True
            elif not self._take_out(change):
                return CHANGED
        except OSError as error:
            self._mark(error)
            raise
        self._disk.sync_folder(os.path.dirname(change.resolved))  # noqa: PTH120
        return DONE

    def _take_out(self, change: Change) -> bool:
        """Move the entry aside, compare what came out, and only then destroy it."""
        temporary = self._temporary(change.resolved)
        self._disk.rename(change.resolved, temporary, over=False)
        self.touched = True
        if not same(change.before, self._look(temporary)):
            self._put_back(temporary, change.resolved)
            return False
        if change.before.kind == "folder":
            self._disk.remove_folder(temporary, tree=True)
        else:
            self._disk.remove(temporary)
        return True

    def _put_back(self, temporary: str, resolved: str) -> None:
        try:
            self._disk.rename(temporary, resolved, over=False)
            self.touched = False
        except FileExistsError:
            self.left_beside = temporary

    def _move(self, change: Change) -> str:
        source, source_before = change.source, change.source_before
        if source is None or source_before is None:  # a repetition that found everything done
            return ALREADY if same(change.before, self._look(change.resolved)) else CHANGED
        now_source, now_target = self._look(source), self._look(change.resolved)
        if (
            now_source.kind == ABSENT
            and change.after not in (None, ABSENT)
            and now_target.digest == change.after
        ):
            return ALREADY
        if not same(source_before, now_source) or not same(change.before, now_target):
            return CHANGED
        try:
            return self._carry(change, source, source_before)
        except (FileExistsError, FileNotFoundError):
            return CHANGED
        except OSError as error:
            self._mark(error)
            raise

    def _carry(self, change: Change, source: str, source_before: Sight) -> str:
        target = change.resolved
        replacing = change.before.kind != ABSENT
        swapped = replacing and self._disk.exchange(source, target)
        if replacing and not swapped:
            self._disk.rename(source, target, over=True)
        elif not replacing:
            self._disk.rename(source, target, over=False)
        self.touched = True
        came = same(source_before, self._look(target))
        went = not swapped or same(change.before, self._look(source))
        if not came or not went:
            if swapped:
                self._disk.exchange(source, target)
                self.touched = False
            elif not replacing:
                self._put_back(target, source)
            return CHANGED
        if swapped:
            self._disk.remove(source)
        for folder in {os.path.dirname(source), os.path.dirname(target)}:  # noqa: PTH120
            self._disk.sync_folder(folder)
        return DONE
