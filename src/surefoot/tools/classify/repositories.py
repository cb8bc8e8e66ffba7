"""Pure. Which repository, remote or forge a command speaks of (EC-14).

Owns: `repo:` and `host:` members of git and gh. Does not own: looking remotes up; they
come with the place.
"""

from __future__ import annotations

import os.path
import re

from surefoot.core.effects import EVERYTHING
from surefoot.tools.classify.rules import Shape, tables
from surefoot.tools.classify.scene import Scene, resolved

_SCP = re.compile(r"(?:[^@/\s]+@)?([A-Za-z0-9.-]+):(?!/)(.+)")
_URL = re.compile(r"[a-z+]+://(?:[^@/\s]+@)?([A-Za-z0-9.-]+)(?::\d+)?/(.+)")


def repository(scene: Scene) -> tuple[str, ...]:
    """The work tree's name; with the folder beside it when a repository may be nested there."""
    tree = scene.place.work_tree
    if tree is None or scene.bases is None:
        return (EVERYTHING,)
    found = {f"repo:{tree}"}
    for base in scene.bases:
        real = resolved(base, scene.place)
        if real in (str(tree), str(scene.place.directory)):
            continue
        if os.path.commonpath([real, str(tree)]) != str(tree):
            return (EVERYTHING,)
        found.add(f"path:{real}")
    return tuple(sorted(found))


def remote_names(shape: Shape, scene: Scene) -> tuple[str, ...]:
    """Names of the remote a push or pull speaks with; all known ones when it does not say."""
    remotes = scene.place.remotes
    named = shape.values(["--repo"]) or list(shape.operands[:1])
    if not named:
        return tuple(f"repo:{name}" for name in remotes.values()) or (EVERYTHING,)
    first = named[0]
    if not first.certain:
        return (EVERYTHING,)
    if first.text in remotes:
        return (f"repo:{remotes[first.text]}",)
    address = address_name(first.text)
    return (EVERYTHING,) if address is None else (f"repo:{address}",)


def address_name(address: str) -> str | None:
    """`host/owner/name` of an address; None when it is none."""
    found = _URL.fullmatch(address) or _SCP.fullmatch(address)
    if found is None:
        return None
    return f"{found[1].lower()}/{found[2].strip('/').removesuffix('.git')}"


def forge_names(shape: Shape, scene: Scene) -> tuple[str, ...]:
    """The repository a forge command speaks of, under both names when they are known."""
    asked = [word.text for word in shape.values(["-R", "--repo"])]
    remotes = scene.place.remotes
    if not asked:
        if not remotes:
            return forge_hosts(shape, scene)
        return tuple(sorted({*repository(scene), *(f"repo:{name}" for name in remotes.values())}))
    names: set[str] = set()
    for text in asked:
        plain = address_name(text) or text
        full = [plain] if plain.count("/") >= 2 else [f"{host}/{plain}" for host in _hosts(shape, scene)]
        names.update(f"repo:{name}" for name in full)
        if any(name in remotes.values() for name in full):
            names.update(repository(scene))
    return tuple(sorted(names))


def forge_hosts(shape: Shape, scene: Scene) -> tuple[str, ...]:
    """`host:` of the forge: the one asked for, those of the remotes, else the usual one."""
    return tuple(f"host:{host}" for host in _hosts(shape, scene))


def _hosts(shape: Shape, scene: Scene) -> list[str]:
    asked = [word.text for word in shape.values(["--hostname"])]
    remotes = sorted({name.partition("/")[0] for name in scene.place.remotes.values()})
    return asked or remotes or [str(tables().lists["forge"]["default_host"])]
