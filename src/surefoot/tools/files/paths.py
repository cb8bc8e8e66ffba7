"""From the path a model wrote to the path that is changed, and where writing is allowed.

Owns: lexical and resolved paths, write roots (EC-16), effects and subjects of file
tools. Does not own: what stands at a path (`verifiers.sight`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.core.effects import Effect
from surefoot.core.model import EffectClass
from surefoot.runtime.permission import ALSO
from surefoot.runtime.spelling import compared, is_blind
from surefoot.runtime.tools import Arguments, Place
from surefoot.verifiers.files import no_ledger_files
from surefoot.verifiers.sight import FileIds, resolve

PATH = {"type": "string", "minLength": 1, "maxLength": 4096, "pattern": "^[^\\u0000]+$"}
READ = Effect(EffectClass.READ_ONLY)


@dataclass(frozen=True, slots=True)
class Located:
    """One path argument: `path` absolute as written, `resolved` with links followed."""

    path: str
    resolved: str


def lexical(path: str, place: Place) -> str:
    """The absolute form of a path argument, without looking at the disk."""
    return os.path.normpath(os.path.join(str(place.directory), path))  # noqa: PTH118 - text in, text out


def locate(path: str, place: Place, *, follow: bool = True) -> Located:
    """Resolve a path argument as a write resolves it; reads the disk.

    `..` is resolved behind links, as the kernel does it, so `path` keeps its `..`.
    """
    joined = os.path.join(str(place.directory), path)  # noqa: PTH118
    joined = joined.rstrip("/") or "/"
    return Located(joined, resolve(joined, follow=follow))


def write_roots(place: Place) -> tuple[str, ...]:
    """The folders that may be written, real paths."""
    roots = place.roots or (place.work_tree or place.directory,)
    return tuple(os.path.realpath(root) for root in roots)


def inside(path: str, roots: tuple[str, ...]) -> bool:
    """Whether `path` is one of `roots` or lies below one."""
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)


def outside_roots(located: Located, place: Place) -> tuple[str, str] | None:
    """The refusal of a target outside the write roots (EC-16), or None."""
    roots = write_roots(place)
    if inside(located.resolved, roots):
        return None
    where = ", ".join(shown(root) for root in roots)
    return (
        "permission_denied",
        f"{shown(located.resolved)} lies outside the folders that may be written ({where}). "
        "Write inside them, or ask the person to add a folder.",
    )


def barred(*names: str, follow: bool = True) -> Callable[[Arguments, Place], tuple[str, str] | None]:
    """The check of EC-16 over the path arguments `names`, before class and permission."""

    def refuses(arguments: Arguments, place: Place) -> tuple[str, str] | None:
        located = (locate(arguments[name], place, follow=follow) for name in names)
        return next(filter(None, (outside_roots(one, place) for one in located)), None)

    return refuses


def ledger_refusal(path: str) -> tuple[str, str]:
    """The refusal of a file of surefoot's own ledger (TR-191)."""
    return (
        "ledger_file",
        f"{shown(path)} belongs to surefoot's own ledger and is not opened by tools. "
        "Use the `recovery` tool, or `surefoot ledger verify` on a command line.",
    )


def ledger_files(services: Mapping[str, Any]) -> FileIds:
    """Device and inode of the ledger's files, from what `app` wired."""
    found: FileIds = services.get("ledger_files", no_ledger_files)()
    return found


def shown(path: str) -> str:
    """A path as it is printed: quoted when it holds characters that could draw or break a line."""
    return path if path.isprintable() and path.strip() == path else json.dumps(path)


def path_effect(effect_class: EffectClass, *names: str) -> Callable[[Arguments, Place], Effect]:
    """A classifier for tools whose reach is the paths in the arguments `names`."""

    def classify(arguments: Arguments, place: Place) -> Effect:
        return Effect(effect_class, reach_of(*(lexical(arguments[name], place) for name in names)))

    return classify


def reach_of(*paths: str) -> tuple[str, ...]:
    """The reach members of absolute paths."""
    return tuple(sorted({f"path:{path}" for path in paths}))


def path_subjects(*names: str, follow: bool = True) -> Callable[[Arguments, Place], tuple[str, ...]]:
    """What permission patterns are matched against: the resolved path of each argument (UX-40)."""

    def subjects(arguments: Arguments, place: Place) -> tuple[str, ...]:
        found = (arguments.get(name) or "." for name in names)
        return spelled([locate(path, place, follow=follow).resolved for path in found if "\0" not in path])

    return subjects


def spelled(paths: Sequence[str]) -> tuple[str, ...]:
    """Real paths, and beside them the one spelling of each that lies where upper and lower case are one."""
    return tuple(dict.fromkeys((*paths, *(ALSO + compared(path) for path in paths if is_blind(path)))))
