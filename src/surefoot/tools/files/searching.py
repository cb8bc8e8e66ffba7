"""What the killable worker does: glob, grep and diff. Runs in a process of its own.

Owns: walking a tree as git sees it (`.gitignore`), name patterns, line search,
unified diff, and their bounds. Does not own: when the process is killed
(`tools.worker`), how results are worded (`search`). Reads only, runs no program,
and opens no file of the ledger.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from surefoot.verifiers.sight import TEMPORARY, FileIds, Unopenable, decode, open_regular, read_bounded

FILES = 200_000
FILE_BYTES = 32 << 20
LINE_CHARACTERS = 500
_GRACE_SECONDS = 2.0


def serve() -> None:
    """Answer one JSON request per line until the input closes."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        # The kernel ends this process by itself when its parent is no longer there to do it.
        signal.setitimer(signal.ITIMER_REAL, request["seconds"] + _GRACE_SECONDS)
        try:
            answer = {"answer": _OPERATIONS[request["operation"]](request)}
        except (ValueError, OSError, re.error) as error:
            answer = {"error": str(error)}
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


class Tree:
    """Files below a folder, in the order of their names, those that git ignores left out."""

    def __init__(self, folder: str, *, ignored_too: bool = False) -> None:
        self.folder = folder
        self.seen = 0
        self.cut = False
        specs = [] if ignored_too else _outer_specs(folder)
        # A folder that was named although it is ignored is meant: look into it.
        self._ignored_too = ignored_too or _is_ignored(folder, True, specs)
        self._specs = [] if self._ignored_too else specs

    def __iter__(self) -> Iterator[os.DirEntry[str]]:
        yield from self._below(self.folder, self._specs)

    def _below(self, folder: str, specs: list[tuple[str, Any]]) -> Iterator[os.DirEntry[str]]:
        if not self._ignored_too and folder != self.folder:
            specs = specs + _specs_of(folder)
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            return
        for entry in entries:
            if self.cut:
                return
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name == ".git" or entry.name.startswith(TEMPORARY):
                continue
            if specs and _is_ignored(entry.path, is_folder, specs):
                continue
            if is_folder:
                yield from self._below(entry.path, specs)
                continue
            self.seen += 1
            self.cut = self.seen >= FILES
            yield entry


def _outer_specs(folder: str) -> list[tuple[str, Any]]:
    """Rules that stand above or at `folder`, from the top of its repository down."""
    chain = [folder, *map(str, Path(folder).parents)]
    top = next((place for place in chain if os.path.lexists(f"{place}/.git")), None)
    if top is None:
        return _specs_of(folder)
    specs = _spec_from(top, f"{top}/.git/info/exclude")
    for place in reversed(chain[: chain.index(top) + 1]):
        specs += _specs_of(place)
    return specs


def _specs_of(folder: str) -> list[tuple[str, Any]]:
    return _spec_from(folder, f"{folder}/.gitignore")


def _spec_from(folder: str, path: str) -> list[tuple[str, Any]]:
    from pathspec import GitIgnoreSpec

    try:
        handle = open_regular(path)
    except Unopenable:
        return []
    try:
        content = read_bounded(handle, 1 << 20) or b""
    finally:
        os.close(handle)
    try:
        return [(folder, GitIgnoreSpec.from_lines(content.decode("utf-8", "replace").splitlines()))]
    except ValueError:  # a pattern git would not accept either
        return []


def _is_ignored(path: str, is_folder: bool, specs: Sequence[tuple[str, Any]]) -> bool:
    """The innermost rule that speaks of the path decides, as git has it."""
    for folder, spec in reversed(specs):
        name = path[len(folder.rstrip("/")) + 1 :] + ("/" if is_folder else "")
        if name in ("", "/"):
            continue  # a folder's own rules say nothing of itself
        include = spec.check_file(name).include
        if include is not None:
            return bool(include)
    return False


def name_pattern(pattern: str) -> re.Pattern[str]:
    """A glob with `*`, `?`, `[…]`, `{a,b}` and `**` for any number of folders, over `/`-separated names.

    Raises:
        ValueError: an open bracket or brace.
    """
    return re.compile(_glob_source(pattern) + r"\Z", re.DOTALL)


def _glob_source(pattern: str) -> str:
    out: list[str] = []
    index = 0
    depth = 0
    while index < len(pattern):
        character = pattern[index]
        if pattern.startswith("**/", index):
            out.append("(?:.*/)?")
            index += 3
            continue
        if pattern.startswith("**", index):
            out.append(".*")
            index += 2
            continue
        if character == "[":
            source, index = _bracket(pattern, index)
            out.append(source)
            continue
        if character in "{}":
            depth += 1 if character == "{" else -1
            out.append("(?:" if character == "{" else ")")
        else:
            out.append(_single(character, depth))
        if depth < 0:
            break
        index += 1
    if depth != 0:
        raise ValueError(f"the pattern {pattern!r} has an open or stray brace")
    return "".join(out)


def _single(character: str, depth: int) -> str:
    if character == "*":
        return "[^/]*"
    if character == "?":
        return "[^/]"
    if character == "," and depth:
        return "|"
    return re.escape(character)


def _bracket(pattern: str, start: int) -> tuple[str, int]:
    end = pattern.find("]", start + 2)
    if end < 0:
        raise ValueError(f"the pattern {pattern!r} has an open bracket")
    inner = pattern[start + 1 : end]
    negated = inner[:1] in ("!", "^")
    inner = inner[1:] if negated else inner
    return f"[{'^' if negated else ''}{inner.translate(_CLASS)}]", end + 1


_CLASS = str.maketrans({"\\": "\\\\", "[": "\\[", "^": "\\^", "&": "\\&", "~": "\\~", "|": "\\|"})


def glob(request: dict[str, Any]) -> dict[str, Any]:
    """Files whose path below `folder` matches, newest first."""
    tree = Tree(request["folder"], ignored_too=bool(request.get("ignored_too")))
    wanted = name_pattern(request["pattern"])
    found: list[tuple[int, str]] = []
    for entry in tree:
        name = entry.path[len(tree.folder.rstrip("/")) + 1 :]
        if wanted.match(name):
            found.append((-_changed(entry), name))
    found.sort()
    limit = int(request["limit"])
    return {"names": [name for _, name in found[:limit]], "total": len(found), "cut": tree.cut}


def _changed(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0


def grep(request: dict[str, Any]) -> dict[str, Any]:
    """Lines that match a regular expression, file by file."""
    flags = re.IGNORECASE if request.get("ignore_case") else 0
    try:
        wanted = re.compile(request["pattern"], flags)
    except re.error as error:
        raise ValueError(f"the pattern is no regular expression: {error}") from None
    ledger: FileIds = frozenset((dev, ino) for dev, ino in request.get("ledger_files", ()))
    search = _Search(wanted, int(request.get("around") or 0), int(request["limit"]), str(request["output"]))
    for path, name in _searched(request, search):
        lines = _text_lines(path, ledger)
        if lines is not None:
            search.file(name, lines)
        if search.full:
            break
    return search.answer()


def _searched(request: dict[str, Any], search: _Search) -> Iterator[tuple[str, str]]:
    folder = request["folder"]
    if os.path.isfile(folder):  # noqa: PTH113
        yield folder, folder
        return
    tree = Tree(folder, ignored_too=bool(request.get("ignored_too")))
    glob_text: str = request.get("glob") or ""
    names = name_pattern(glob_text) if glob_text else None
    for entry in tree:
        name = entry.path[len(folder.rstrip("/")) + 1 :]
        if entry.is_symlink() and _leads_out(entry.path, folder):
            continue
        if names is None or names.match(name) or ("/" not in glob_text and names.match(entry.name)):
            yield entry.path, name
    search.cut = tree.cut


def _leads_out(path: str, folder: str) -> bool:
    """Whether a link leads out of the folder that may be searched: what lies there was not asked about."""
    return not os.path.realpath(path).startswith(folder.rstrip("/") + "/")


def _text_lines(path: str, ledger: FileIds) -> list[str] | None:
    try:
        handle = open_regular(path, ledger)
    except Unopenable:
        return None
    try:
        content = read_bounded(handle, FILE_BYTES)
    except OSError:
        return None
    finally:
        os.close(handle)
    decoded = None if content is None else decode(content)
    return None if decoded is None else decoded[0].splitlines()


class _Search:
    """Collects matches up to a limit."""

    def __init__(self, wanted: re.Pattern[str], around: int, limit: int, output: str) -> None:
        self._wanted = wanted
        self._around = around
        self._limit = limit
        self._output = output
        self._rows: list[str] = []
        self._count = 0
        self._files = 0
        self.cut = False

    @property
    def full(self) -> bool:
        return len(self._rows) >= self._limit

    def file(self, name: str, lines: list[str]) -> None:
        hits = [index for index, line in enumerate(lines) if self._wanted.search(line)]
        if not hits:
            return
        self._files += 1
        self._count += len(hits)
        shown = name if name.isprintable() else json.dumps(name)
        if self._output == "files":
            self._rows.append(shown)
        elif self._output == "count":
            self._rows.append(f"{shown}:{len(hits)}")
        else:
            self._lines(shown, lines, hits)

    def _lines(self, name: str, lines: list[str], hits: list[int]) -> None:
        matched = set(hits)
        last = -1
        for hit in hits:
            start, end = max(last + 1, hit - self._around), min(len(lines), hit + self._around + 1)
            if self._around and self._rows and start > last + 1:
                self._rows.append("--")
            for index in range(start, end):
                if self.full:
                    return
                mark = ":" if index in matched else "-"
                line = lines[index]
                if len(line) > LINE_CHARACTERS:
                    line = f"{line[:LINE_CHARACTERS]} … [cut]"
                self._rows.append(f"{name}{mark}{index + 1}{mark}{line}")
            last = max(last, end - 1)

    def answer(self) -> dict[str, Any]:
        return {
            "rows": self._rows[: self._limit],
            "matches": self._count,
            "files": self._files,
            "full": self.full,
            "cut": self.cut,
        }


def diff(request: dict[str, Any]) -> str:
    """A unified diff of two texts."""
    before, after = request["before"].splitlines(), request["after"].splitlines()
    name = str(request.get("name") or "file")
    lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm="")
    return "\n".join(lines)


_OPERATIONS: dict[str, Callable[[dict[str, Any]], Any]] = {"glob": glob, "grep": grep, "diff": diff}
