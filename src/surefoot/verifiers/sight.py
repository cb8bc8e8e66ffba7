"""What stands at a path right now, read without blocking and without touching a ledger file.

Owns: opening regular files safely (TR-191: device and inode are compared before the
file is opened), digests and encodings, names resolved as a write resolves them, and
the names of an attempt's temporary files. Does not own: what a sight proves
(`verifiers.files`), how a file is changed (`tools.files`). Reads only.
"""

from __future__ import annotations

import codecs
import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass

from surefoot.core.canonical import digest_bytes

DIGEST_FILE_BYTES = 64 << 20
"""Files above this have an identity only, no digest (TR-105)."""

ABSENT = "absent"
FileIds = frozenset[tuple[int, int]]
"""Pairs of device and inode."""
LedgerFiles = Callable[[], FileIds]

TICK_NS = 20_000_000
"""A time stamp younger than this when a call started cannot tell a later write apart (TR-107)."""
TEMPORARY = ".surefoot-"
_TRIES = 3
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-bom", "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16-be"),
)


def is_before(stamp_ns: int, started_at_ms: int) -> bool:
    """Whether a time stamp is older than a start by more than a tick, so that a write since then would show."""
    return started_at_ms * 1_000_000 - stamp_ns > TICK_NS


@dataclass(frozen=True, slots=True)
class Sight:
    """One look at one path, final symbolic link not followed."""

    kind: str
    """`file`, `folder`, `link`, `other` (device, FIFO, socket), `absent`, `ledger` or `unreadable`."""
    dev: int = 0
    ino: int = 0
    """Of the target; for an absent one of its nearest existing folder."""
    ctime_ns: int = 0
    mtime_ns: int = 0
    size: int = 0
    mode: int = 0
    links: int = 0
    uid: int = 0
    gid: int = 0
    digest: str | None = None
    """None for what has an identity only."""
    encoding: str | None = None
    why: str = ""
    """For `unreadable`: the reason in a word of the kernel."""

    @property
    def state(self) -> str | None:
        """What an intent stores: `absent`, a digest, or None for an identity without digest."""
        return ABSENT if self.kind == ABSENT else self.digest


class Unopenable(Exception):
    """A path that is not opened: `code` is `ledger_file`, `not_regular`, `not_found` or `unreadable`."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def temporary_name(attempt_id: str, ordinal: int) -> str:
    """The name of an attempt's temporary file; recognisable long after its death."""
    return f"{TEMPORARY}{attempt_id}-{ordinal}.tmp"


def resolve(path: str, *, follow: bool) -> str:
    """The real path of `path`, of which the tail may not exist yet.

    `follow` False resolves the folder only: a delete or a move concerns the link itself.
    """
    if follow:
        return os.path.realpath(path)
    folder, name = os.path.split(path)
    if name in ("", ".", ".."):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(folder), name)  # noqa: PTH118 - text in, text out


def open_regular(path: str, ledger_files: FileIds = frozenset(), *, flags: int = os.O_RDONLY) -> int:
    """Open a regular file and nothing else; never waits for a FIFO, never opens a ledger file.

    The path is first opened without access (`O_PATH`), which takes and drops no lock;
    what was compared is then the very file that is opened.

    Raises:
        Unopenable: with the code of what stood in the way.
    """
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        raise _unopenable(error) from None
    try:
        status = os.fstat(handle)
        if (status.st_dev, status.st_ino) in ledger_files:
            raise Unopenable("ledger_file", "this file belongs to surefoot's own ledger")
        if not stat.S_ISREG(status.st_mode):
            raise Unopenable("not_regular", f"not a regular file but {_kind_words(status.st_mode)}")
        try:
            return os.open(f"/proc/self/fd/{handle}", flags | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise _unopenable(error) from None
    finally:
        os.close(handle)


def _unopenable(error: OSError) -> Unopenable:
    missing = error.errno in (errno.ENOENT, errno.ENOTDIR)
    return Unopenable("not_found" if missing else "unreadable", _word(error))


def _word(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _kind_words(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a FIFO"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device"


def read_bounded(handle: int, limit: int) -> bytes | None:
    """All bytes of an open file, or None when there are more than `limit`."""
    parts: list[bytes] = []
    total = 0
    while True:
        part = os.read(handle, min(1 << 20, limit + 1 - total))
        if not part:
            return b"".join(parts)
        parts.append(part)
        total += len(part)
        if total > limit:
            return None


def look(path: str, ledger_files: FileIds = frozenset(), *, limit: int = DIGEST_FILE_BYTES) -> Sight:
    """What stands at `path`, with digest and encoding of a regular file up to `limit` bytes."""
    return look_and_read(path, ledger_files, limit=limit, read_limit=limit)[0]


def look_and_read(
    path: str,
    ledger_files: FileIds = frozenset(),
    *,
    limit: int = DIGEST_FILE_BYTES,
    read_limit: int = DIGEST_FILE_BYTES,
) -> tuple[Sight, bytes | None]:
    """As `look`, with the content of a regular file up to `read_limit` bytes."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return _absent(path), None
    except (OSError, ValueError) as error:
        return Sight("unreadable", why=str(error)), None
    if (status.st_dev, status.st_ino) in ledger_files:
        return Sight("ledger", status.st_dev, status.st_ino), None
    if not stat.S_ISREG(status.st_mode):
        return _of(status, _KINDS.get(stat.S_IFMT(status.st_mode), "other")), None
    for _ in range(_TRIES):
        try:
            return _steady(path, ledger_files, limit, read_limit)
        except _Moving:
            continue  # somebody writes right now: look again
        except Unopenable as error:
            return Sight("ledger" if error.code == "ledger_file" else "unreadable", why=error.text), None
        except OSError as error:
            return Sight("unreadable", why=_word(error)), None
    return Sight("unreadable", why="changing while it is read"), None


_KINDS = {stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}


class _Moving(Exception):
    """The file changed while it was read."""


def _steady(path: str, ledger_files: FileIds, limit: int, read_limit: int) -> tuple[Sight, bytes | None]:
    handle = open_regular(path, ledger_files)
    try:
        first = os.fstat(handle)
        content = (
            None if first.st_size > max(limit, read_limit) else read_bounded(handle, max(limit, read_limit))
        )
        last = os.fstat(handle)
    finally:
        os.close(handle)
    if (first.st_ctime_ns, first.st_size) != (last.st_ctime_ns, last.st_size):
        raise _Moving
    digested = content is not None and len(content) <= limit
    digest = digest_bytes(content) if content is not None and digested else None
    encoding = encoding_of(content) if content is not None and digested else None
    given = content if content is not None and len(content) <= read_limit else None
    return _of(last, "file", digest, encoding), given


def _of(status: os.stat_result, kind: str, digest: str | None = None, encoding: str | None = None) -> Sight:
    return Sight(
        kind,
        status.st_dev,
        status.st_ino,
        status.st_ctime_ns,
        status.st_mtime_ns,
        status.st_size,
        status.st_mode,
        status.st_nlink,
        status.st_uid,
        status.st_gid,
        digest,
        encoding,
    )


def _absent(path: str) -> Sight:
    """An absent target is known by its nearest existing folder."""
    folder = os.path.dirname(path)  # noqa: PTH120
    while folder and folder != os.path.dirname(folder):  # noqa: PTH120
        try:
            status = os.stat(folder)  # noqa: PTH116
            return Sight(ABSENT, status.st_dev, status.st_ino, status.st_ctime_ns)
        except OSError:
            folder = os.path.dirname(folder)  # noqa: PTH120
    return Sight(ABSENT)


def encoding_of(content: bytes) -> str:
    """`utf-8`, `utf-8-bom`, `utf-16-le`, `utf-16-be` (both with mark) or `binary`."""
    for mark, name, codec in _MARKS:
        if content.startswith(mark):
            return name if _decodes(content, codec) else "binary"
    if b"\0" in content:
        return "binary"
    return "utf-8" if _decodes(content, "utf-8") else "binary"


def _decodes(content: bytes, codec: str) -> bool:
    try:
        content.decode(codec)
    except UnicodeDecodeError:
        return False
    return True


def decode(content: bytes) -> tuple[str, str] | None:
    """Text and encoding of a text file, without its byte order mark; None for a binary one."""
    encoding = encoding_of(content)
    if encoding == "binary":
        return None
    for mark, name, codec in _MARKS:
        if name == encoding:
            return content[len(mark) :].decode(codec), encoding
    return content.decode("utf-8"), encoding


def encode(text: str, encoding: str | None) -> bytes:
    """Bytes of `text` in an encoding of `encoding_of`, byte order mark included."""
    for mark, name, codec in _MARKS:
        if name == encoding:
            return mark + text.encode(codec)
    return text.encode("utf-8")
