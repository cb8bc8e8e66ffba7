"""From the paths that the words of a shell line name to the real paths it would open (UX-38, UX-40).

Owns: looking on the disk: what stands at a path, which names fit a pattern, where links lead. Does not own:
which words name a path (`classify.naming`), whether a path may be read (`runtime.permission`).
Promises: reads folders and links only, opens no file; what is more than can be looked at is told as untold.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from surefoot.runtime.permission import UNTOLD
from surefoot.runtime.tools import Place
from surefoot.tools.files.paths import inside, spelled, write_roots

if TYPE_CHECKING:  # the classifier is heavy to load
    from surefoot.tools.classify.naming import Named, Names

MOST_PATHS = 4096
MOST_ENTRIES = 100_000
_PATTERN = re.compile(r"[*?\[]")
_OF_A_PROCESS = re.compile(r"/+proc/(?:self|thread-self)(?:/|$)")
_CLASS = re.compile(r"\[(?=[:.=])")


class _TooMany(Exception):
    pass


def real_reads(names: Names, place: Place) -> tuple[str, ...]:
    """The real path of everything that stands where the line may open it, with `UNTOLD` if there may be more.

    A path at which nothing stands is left out: nothing is shown of it.
    """
    found: dict[str, None] = {}
    untold = names.untold
    for named in names.named:
        try:
            found.update(dict.fromkeys(_real(named)))
        except _TooMany:
            untold = True
    if names.follows:
        roots = write_roots(place)
        try:
            for folder in [path for path in found if inside(path, roots)]:
                found.update(dict.fromkeys(_led_to(folder)))
        except _TooMany:
            untold = True
    reads = spelled(list(found))
    return (*reads, UNTOLD) if untold else reads


def _real(named: Named) -> Iterator[str]:
    paths = _fitting(named.path) if named.pattern else [named.path]
    for path in paths:
        if _OF_A_PROCESS.match(os.path.normpath(path)):
            yield os.path.normpath(path)  # it means another file to the command than to us
        if not os.path.lexists(path):
            continue
        real = os.path.realpath(path)
        if named.folders or not os.path.isdir(real):  # noqa: PTH112 - text in, text out
            yield real


def _fitting(path: str) -> Sequence[str]:
    """The paths a shell would make of a pattern, and the one that is spelled like it."""
    found, seen = ["/"], 0
    for part in path.strip("/").split("/"):
        fitting = []
        for folder in found:
            stem = folder if folder == "/" else folder + "/"
            fitting.append(stem + part)
            if _PATTERN.search(part):
                names = _entries(folder)
                seen += len(names)
                fitting.extend(stem + name for name in names if _fits(name, part))
            if len(fitting) > MOST_PATHS or seen > MOST_ENTRIES:
                raise _TooMany
        # Below a path where nothing stands, nothing stands either.
        found = [one for one in fitting if os.path.lexists(one)]
    return found


def _fits(name: str, pattern: str) -> bool:
    if name.startswith(".") and not pattern.startswith("."):
        return False
    if _CLASS.search(pattern):
        return True  # classes of letters depend on the language of the shell
    return fnmatchcase(name, pattern.replace("[^", "[!"))


def _entries(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as listed:
            return [entry.name for entry in listed]
    except OSError:
        return []


def _is_program(path: str) -> bool:
    """Whether a link leads to an executable file, as those of a virtual environment do, or nowhere."""
    try:
        status = os.stat(path)  # noqa: PTH116 - text in
    except OSError:
        return True
    return stat.S_ISREG(status.st_mode) and bool(status.st_mode & 0o111)


def _led_to(folder: str) -> Iterator[str]:
    """Where the links below a folder lead. Raises when there is more than can be looked at."""
    waiting, seen = [folder], 0
    while waiting:
        try:
            listed = os.scandir(waiting.pop())
        except OSError:
            continue
        with listed:
            for entry in listed:
                seen += 1
                if seen > MOST_ENTRIES:
                    raise _TooMany
                if entry.is_symlink():
                    if not _is_program(entry.path):
                        yield os.path.realpath(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
