"""Reading a git repository: refs, reflogs, commits, and what a remote lists.

Owns: running git commands that only read (the closed list `READS`), finding a repository's
folders without running anything, and the marks by which a later look tells that a reflog or a
folder was left alone. Does not own: the variables git is run with, by which no program of the
project starts (`tools` give them), what a sight proves (`verifiers.git`).
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.machine import boot_ms
from surefoot.verifiers.port import WriteAttempted

READS = frozenset(
    {
        "rev-parse",
        "symbolic-ref",
        "cat-file",
        "rev-list",
        "merge-base",
        "for-each-ref",
        "ls-remote",
        "config",
        "remote",
    }
)
OUTPUT_BYTES = 8 << 20
ASK_SECONDS = 30.0
"""No single question to git takes longer, whatever the deadline of the look."""
_USER = re.compile(r"^([a-z+]+://)[^@/\s]+@")
_WRITING_OPTIONS = re.compile(
    r"--(?:add|unset|unset-all|replace-all|edit|rename-section|remove-section)$|-[de]$|--delete$"
)


class Unreadable(Exception):
    """Git could not be asked, or took too long; nothing can be said."""


class Repository:
    """One working directory, read by git until `until_boot_ms`."""

    def __init__(self, directory: Path, variables: Mapping[str, str], until_boot_ms: int) -> None:
        self.directory = directory
        self._variables = dict(variables)
        self._until = until_boot_ms

    def ask(self, *arguments: str) -> str | None:
        """The output of a reading git command without its last line end; None when git says no.

        Raises:
            WriteAttempted: it is none of `READS`.
            Unreadable: git is not there, took too long or said too much.
        """
        if not arguments or arguments[0] not in READS or _writes(arguments):
            raise WriteAttempted(f"git {' '.join(arguments[:2])}")
        seconds = min((self._until - boot_ms()) / 1000, ASK_SECONDS)
        if seconds <= 0:
            raise Unreadable("verifier_timeout")
        command = ["git", "--no-pager", "--no-optional-locks", "--no-replace-objects", *arguments]
        try:
            ran = subprocess.run(
                command, cwd=self.directory, env=self._variables, stdin=subprocess.DEVNULL, capture_output=True,
                timeout=seconds, check=False, start_new_session=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Unreadable("verifier_timeout") from None
        except OSError as error:
            raise Unreadable(f"git_cannot_run: {error.strerror}") from None
        if len(ran.stdout) > OUTPUT_BYTES:
            raise Unreadable("too_much_output")
        if ran.returncode != 0:
            return None
        return ran.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")

    def oid(self, name: str) -> str | None:
        """The object a name means, a tag object itself for an annotated tag."""
        return self.ask("rev-parse", "--verify", "--quiet", "--end-of-options", name)

    def head_ref(self) -> str | None:
        """The full name of the branch that is checked out; None when detached."""
        return self.ask("symbolic-ref", "-q", "HEAD")

    def commit(self, oid: str) -> Commit | None:
        """Tree, parents and message of a commit."""
        text = self.ask("cat-file", "commit", oid)
        return None if text is None else _commit(oid, text)

    def descends(self, oid: str, ancestor: str | None) -> bool:
        """Whether `oid` is `ancestor` or comes after it; everything comes after nothing."""
        return ancestor is None or self.ask("merge-base", "--is-ancestor", ancestor, oid) is not None

    def log_path(self, ref: str) -> Path:
        """Where git keeps the reflog of a ref."""
        found = self.ask("rev-parse", "--git-path", f"logs/{ref}")
        if found is None:
            raise Unreadable("no_repository")
        return self.directory / found

    def push_address(self, remote: str) -> str | None:
        """Where a push to a remote goes; None when it has no single address."""
        found = self.ask("remote", "get-url", "--push", "--all", remote)
        return found if found and "\n" not in found else None

    def remote_refs(self, address: str) -> dict[str, str] | None:
        """Every ref a remote lists; None when it cannot be asked. Leaves the machine."""
        found = self.ask("ls-remote", "--refs", "--upload-pack=git-upload-pack", "--", address)
        if found is None:
            return None
        pairs = (line.partition("\t") for line in found.splitlines())
        return {name: oid for oid, _, name in pairs}


def _writes(arguments: tuple[str, ...]) -> bool:
    """Whether one of the reading names is used to write."""
    if arguments[0] == "remote":
        return arguments[1:2] != ("get-url",)
    if arguments[0] == "config":
        return not any(word.startswith(("--get", "--list")) for word in arguments)
    if arguments[0] == "symbolic-ref":
        return sum(not word.startswith("-") for word in arguments[1:]) != 1 or "-d" in arguments
    return any(_WRITING_OPTIONS.match(word) for word in arguments[1:]) and arguments[0] != "cat-file"


@dataclass(frozen=True, slots=True)
class Commit:
    """What a commit object says."""

    oid: str
    tree: str
    parents: tuple[str, ...]
    message: str


def _commit(oid: str, text: str) -> Commit:
    head, _, message = text.partition("\n\n")
    lines = [line.partition(" ") for line in head.splitlines()]
    parents = tuple(value for key, _, value in lines if key == "parent")
    return Commit(oid, next(value for key, _, value in lines if key == "tree"), parents, message)


def message_digest(text: str) -> str:
    """A digest of a message as git cleans it: no blank ends, no trailing blanks, single empty lines."""
    lines = [line.rstrip() for line in text.split("\n")]
    kept = [line for index, line in enumerate(lines) if line or (index and lines[index - 1])]
    return hashlib.sha256("\n".join(kept).strip("\n").encode("utf-8", "surrogateescape")).hexdigest()


# Reflogs --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Moved:
    """One line of a reflog."""

    old: str
    new: str
    message: str


def log_mark(path: Path) -> dict[str, Any] | None:
    """The top of a reflog: its size and the digest of its last line. None when there is none."""
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unreadable(f"reflog: {error.strerror}") from None
    return {"size": len(content), "digest": _last_line(content)}


def log_since(path: Path, mark: Mapping[str, Any] | None) -> list[Moved] | None:
    """What was logged after a mark, oldest first; None when the log no longer continues from it."""
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return [] if mark is None else None
    except OSError as error:
        raise Unreadable(f"reflog: {error.strerror}") from None
    size = 0 if mark is None else int(mark["size"])
    if mark is not None and (len(content) < size or _last_line(content[:size]) != mark["digest"]):
        return None
    lines = content[size:].decode("utf-8", "surrogateescape").splitlines()
    return [_moved(line) for line in lines if line.count(" ") >= 2]


def _moved(line: str) -> Moved:
    old, new, _ = line.split(" ", 2)
    return Moved(old, new, line.partition("\t")[2])


def _last_line(content: bytes) -> str:
    return hashlib.sha256(content.rstrip(b"\n").rpartition(b"\n")[2]).hexdigest()


# Folders --------------------------------------------------------------------------------------


def common_folder(directory: Path) -> Path | None:
    """The folder that holds a repository's objects and refs, found without running anything."""
    for folder in (directory, *directory.parents):
        marker = folder / ".git"
        if marker.is_dir():
            return marker.resolve()
        if marker.is_file():
            return _linked(folder, marker)
    return None


def _linked(folder: Path, marker: Path) -> Path | None:
    try:
        text = os.fsdecode(marker.read_bytes())
        private = (folder / text.removeprefix("gitdir:").strip()).resolve()
        shared = private / "commondir"
        return (private / os.fsdecode(shared.read_bytes()).strip()).resolve() if shared.exists() else private
    except OSError:
        return None


def place_mark(common: Path, ref: str) -> dict[str, Any]:
    """The kernel's marks of where a ref is or would be kept: any ref made or taken away beside it shows."""
    place = (common / ref).parent
    while not place.exists():
        place = place.parent
    return {"folder": _mark(place), "packed": _mark(common / "packed-refs")}


def _mark(path: Path) -> list[Any] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return [str(path), found.st_dev, found.st_ino, found.st_ctime_ns]


def index_digest(path: Path) -> str | None:
    """Hex SHA-256 of an index file, `absent` where there is none; None when it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return "absent"
    except OSError:
        return None


def listing_digest(refs: Mapping[str, str]) -> str:
    """A digest of everything a remote listed."""
    lines = "".join(f"{name} {oid}\n" for name, oid in sorted(refs.items()))
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def scrubbed(address: str) -> str:
    """An address without the name and password inside it."""
    return _USER.sub(r"\1", address)
