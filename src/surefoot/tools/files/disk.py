"""The system calls by which files are changed, one method each.

Owns: how each step is asked of the kernel. Does not own: their order and what a
mismatch means (`changes`). A seam: the crash tests wrap this class and die at the
n-th step.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil

_AT_FDCWD = -100
_NOREPLACE = 1
_EXCHANGE = 2
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
_NO_XATTRS = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENODATA})


class Disk:
    """The file system as the kernel offers it."""

    def create(self, path: str, mode: int = 0o666) -> int:
        """Open a new file for writing; fails when anything is there."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)

    def write(self, handle: int, content: bytes, offset: int = 0) -> None:
        """Write all of `content` at `offset`."""
        view = memoryview(content)
        while view:
            written = os.pwrite(handle, view, offset)
            view, offset = view[written:], offset + written

    def truncate(self, handle: int, size: int) -> None:
        os.ftruncate(handle, size)

    def sync(self, handle: int) -> None:
        os.fsync(handle)

    def copy_attributes(self, source: str, handle: int) -> None:
        """Give the file behind `handle` the owner, ACL, extended attributes and mode of `source`."""
        status = os.stat(source, follow_symlinks=False)  # noqa: PTH116
        mine = os.fstat(handle)
        if (status.st_uid, status.st_gid) != (mine.st_uid, mine.st_gid):
            os.fchown(handle, status.st_uid, status.st_gid)
        wanted = _attributes(source)
        for name, value in wanted.items():
            os.setxattr(handle, name, value)
        for name in _attributes(handle).keys() - wanted.keys():
            if not name.startswith("security."):  # labels are the system's to give
                os.removexattr(handle, name)
        os.fchmod(handle, status.st_mode & 0o7777)

    def link(self, source: str, target: str) -> None:
        """Give `source` a second name; fails when anything is at `target`."""
        os.link(source, target, follow_symlinks=False)

    def exchange(self, one: str, other: str) -> bool:
        """Swap two names in one step; False where the kernel or file system cannot."""
        return _renameat2(one, other, _EXCHANGE)

    def rename(self, source: str, target: str, *, over: bool) -> None:
        """Rename; without `over` it fails when anything is at `target`."""
        if not over:
            if _renameat2(source, target, _NOREPLACE):
                return
            # Without the kernel's help the look and the rename are two steps.
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        os.rename(source, target)  # noqa: PTH104

    def remove(self, path: str) -> None:
        """Remove a file or link; an absent one is no error."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108

    def remove_folder(self, path: str, *, tree: bool) -> None:
        """Remove an empty folder, or with `tree` everything below it too."""
        if tree:
            shutil.rmtree(path)
        else:
            os.rmdir(path)  # noqa: PTH106

    def make_folder(self, path: str) -> None:
        os.mkdir(path)  # noqa: PTH102

    def sync_folder(self, path: str) -> None:
        """Make the names in a folder durable."""
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:  # some network file systems cannot sync a folder
                raise
        finally:
            os.close(handle)


def _attributes(file: str | int) -> dict[str, bytes]:
    """Extended attributes, ACLs among them; none where the file system has none."""
    try:
        names = os.listxattr(file) if isinstance(file, int) else os.listxattr(file, follow_symlinks=False)
        return {name: os.getxattr(file, name) for name in names}
    except OSError as error:
        if error.errno in _NO_XATTRS:
            return {}
        raise


def attributes_copyable(path: str, uid: int, gid: int) -> bool:
    """Whether this process may give a new file the owner and attributes of `path`."""
    if os.geteuid() == 0:
        return True
    if uid != os.geteuid() or (gid != os.getegid() and gid not in os.getgroups()):
        return False
    allowed = ("user.", "system.posix_acl_access", "security.selinux")
    try:
        return all(name.startswith(allowed) for name in _attributes(path))
    except OSError:
        return False


def _renameat2(source: str, target: str, flags: int) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return False
    answer = libc.renameat2(
        ctypes.c_int(_AT_FDCWD),
        os.fsencode(source),
        ctypes.c_int(_AT_FDCWD),
        os.fsencode(target),
        ctypes.c_uint(flags),
    )
    if answer == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), source, None, target)


def is_mount_point(path: str, mountinfo: str | None = None) -> bool:
    """Whether something is mounted exactly at `path`, a single file included."""
    if mountinfo is None:
        try:
            with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
                mountinfo = table.read()
        except OSError:
            return os.path.ismount(path)
    for line in mountinfo.splitlines():
        parts = line.split(" ")
        if len(parts) > 4 and _unescaped(parts[4]) == path:
            return True
    return False


def _unescaped(text: str) -> str:
    for escape, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(escape, character)
    return text
