"""What stood before a git command, recorded for the look that may come after it (TR-109).

Owns: head, ref, tops of the reflogs, the tree and message a commit will have, the object a tag or
branch will name, what a remote listed before a push. Does not own: recognising the command
(`classify.git_writes`), what a later look concludes (`verifiers.git`).

The repository is only read. The tree of a commit is computed in a copy of its index, with a store
of objects of its own that is thrown away.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surefoot.machine import boot_ms
from surefoot.tools.classify.environment import reading_environment
from surefoot.tools.classify.git_writes import GitWrite
from surefoot.verifiers.repository import (
    Repository,
    Unreadable,
    common_folder,
    index_digest,
    listing_digest,
    log_mark,
    message_digest,
    place_mark,
    scrubbed,
)
from surefoot.verifiers.sameness import identity

RECORD_VERSION = 1
RECORD_SECONDS = 4.0
"""A record that takes longer is left out; the call runs and its outcome cannot be looked up."""
_INDEX_BYTES = 64 << 20
_REF = re.compile(r"refs/[^:\s]+")


def git_variables(directory: Path, variables: Mapping[str, str] | None = None) -> dict[str, str] | None:
    """The environment git is read in at `directory`; None when a program of the project cannot be kept out."""
    given = os.environ if variables is None else variables
    plain = reading_environment(given)
    if plain is None:
        return None
    try:
        ran = subprocess.run(
            ["git", "config", "--list", "--name-only", "-z"], cwd=directory, env=dict(plain.variables),
            stdin=subprocess.DEVNULL, capture_output=True, timeout=RECORD_SECONDS, check=False, start_new_session=True,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    if ran.returncode != 0:
        return None
    names = [name.decode("utf-8", "surrogateescape") for name in ran.stdout.split(b"\0") if name]
    found = reading_environment(given, names)
    return None if found is None else dict(found.variables)


def git_record(wanted: GitWrite, directory: Path, variables: Mapping[str, str]) -> dict[str, Any] | None:
    """The record of one git write, or None when what stands there cannot be told. Blocks."""
    if any(name.startswith("GIT_") and name.endswith(("_DIR", "_TREE", "_FILE")) for name in variables):
        return None  # git would write somewhere else than it seems
    place = Path(os.path.normpath(directory.joinpath(*wanted.folders)))
    try:
        place = place.resolve(strict=True)
        reading = git_variables(place, variables)
        common = common_folder(place)
        if reading is None or common is None:
            return None
        repository = Repository(place, reading, boot_ms() + int(RECORD_SECONDS * 1000))
        return _record(wanted, repository, common, reading)
    except (OSError, Unreadable):
        return None


def _record(
    wanted: GitWrite, repository: Repository, common: Path, reading: Mapping[str, str]
) -> dict[str, Any] | None:
    ref = repository.head_ref()
    record: dict[str, Any] = {
        "version": RECORD_VERSION,
        "kind": wanted.kind,
        "directory": str(repository.directory),
        "common": [str(common), *(identity(common) or ())],
        "head": repository.oid("HEAD"),
        "ref": ref,
        "headLog": log_mark(repository.log_path("HEAD")),
        "refLog": None if ref is None else log_mark(repository.log_path(ref)),
    }
    if wanted.kind == "commit":
        return {**record, "commit": _commit(wanted, repository, reading)}
    if wanted.kind == "push":
        pushed = _push(wanted, repository, ref)
        return None if pushed is None else {**record, "push": pushed}
    named = _named(wanted, repository, common)
    return None if named is None else {**record, "named": named}


# A commit -------------------------------------------------------------------------------------


def _commit(wanted: GitWrite, repository: Repository, reading: Mapping[str, str]) -> dict[str, Any]:
    index = _index_path(repository)
    message = _message(wanted, repository.directory)
    return {
        "tree": None if message is None else _tree(wanted, repository.directory, index, reading),
        "message": message,
        "index": index_digest(index) if wanted.adds else None,
        "adds": bool(wanted.adds),
        "indexPath": str(index),
    }


def _message(wanted: GitWrite, directory: Path) -> str | None:
    """A digest of the message, as far as it is known before git and its hooks run."""
    if wanted.messages is None or (wanted.messages and wanted.message_file):
        return None
    if wanted.message_file is None:
        return message_digest("\n\n".join(wanted.messages)) if wanted.messages else None
    try:
        return message_digest((directory / wanted.message_file).read_text("utf-8", "surrogateescape"))
    except OSError:
        return None


def _index_path(repository: Repository) -> Path:
    found = repository.ask("rev-parse", "--git-path", "index")
    if found is None:
        raise Unreadable("no_repository")
    return repository.directory / found


def _tree(wanted: GitWrite, directory: Path, index: Path, reading: Mapping[str, str]) -> str | None:
    """The tree the commit will have, computed aside; None when it takes too long or git says no."""
    if index.exists() and index.stat().st_size > _INDEX_BYTES:
        return None
    objects = _ask_path(directory, "objects", reading)
    if objects is None:
        return None
    with tempfile.TemporaryDirectory(prefix="surefoot-tree-") as aside:
        copy = Path(aside) / "index"
        if index.exists():
            shutil.copyfile(index, copy)
        store = Path(aside) / "objects"
        store.mkdir()
        variables = {
            **reading,
            "GIT_INDEX_FILE": str(copy),
            "GIT_OBJECT_DIRECTORY": str(store),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects),
        }
        steps = [["add", *arguments] for arguments in wanted.adds]
        steps += [["add", "-u", ":/"]] if wanted.all else []
        if any(_aside(step, directory, variables) is None for step in steps):
            return None
        return _aside(["write-tree"], directory, variables)


def _ask_path(directory: Path, name: str, reading: Mapping[str, str]) -> Path | None:
    found = _aside(["rev-parse", "--git-path", name], directory, reading)
    return None if not found else (directory / found).resolve()


def _aside(arguments: list[str], directory: Path, variables: Mapping[str, str]) -> str | None:
    try:
        ran = subprocess.run(
            ["git", "--no-pager", *arguments], cwd=directory, env=dict(variables), stdin=subprocess.DEVNULL,
            capture_output=True, timeout=RECORD_SECONDS, check=False, start_new_session=True,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.stdout.decode("utf-8", "surrogateescape").strip() if ran.returncode == 0 else None


# A tag or branch ------------------------------------------------------------------------------


def _named(wanted: GitWrite, repository: Repository, common: Path) -> dict[str, Any] | None:
    ref = f"refs/{'tags' if wanted.kind == 'tag' else 'heads'}/{wanted.name}"
    shown = repository.oid(wanted.start if wanted.kind == "tag" else f"{wanted.start}^{{commit}}")
    if shown is None or wanted.name.startswith("-"):
        return None
    return {
        "ref": ref,
        "object": shown,
        "before": repository.oid(ref),
        "annotated": wanted.annotated,
        "message": _message(wanted, repository.directory) if wanted.annotated else None,
        "log": log_mark(repository.log_path(ref)),
        "place": place_mark(common, ref),
    }


# A push ---------------------------------------------------------------------------------------


def _push(wanted: GitWrite, repository: Repository, ref: str | None) -> dict[str, Any] | None:
    remote = wanted.remote or _push_remote(repository, ref)
    if remote is None:
        return None
    known = (repository.ask("remote", "get-url", "--push", remote)) is not None
    address = repository.push_address(remote) if known else remote
    updates = _updates(wanted, repository, ref, remote)
    if address is None or not updates or "::" in address:
        return None
    listed = repository.remote_refs(address)
    return {
        "remote": remote if known else None,
        "url": scrubbed(address),
        "updates": [
            {"ref": there, "object": oid, "before": None if listed is None else listed.get(there)}
            for there, oid in updates
        ],
        "listing": None if listed is None else listing_digest(listed),
    }


def _push_remote(repository: Repository, ref: str | None) -> str | None:
    if ref is None:
        return None
    return repository.ask("for-each-ref", "--format=%(push:remotename)", ref) or None


def _updates(
    wanted: GitWrite, repository: Repository, ref: str | None, remote: str
) -> list[tuple[str, str]] | None:
    """Pairs of a remote ref and the object it is to name; None when git's settings decide otherwise."""
    mapped = repository.ask("config", "--get-all", f"remote.{remote}.push")
    default = repository.ask("config", "--get", "push.default") or "simple"
    if not wanted.refspecs:
        return None if mapped or ref is None else _default_update(repository, ref, default)
    found = []
    for spec in wanted.refspecs:
        here, colon, there = spec.removeprefix("+").partition(":")
        full = repository.ask("rev-parse", "--symbolic-full-name", "--verify", "--quiet", here)
        oid = repository.oid(here)
        if not colon and (mapped or default == "upstream"):
            return None
        target = there if colon else (full or "")
        if colon and not _REF.fullmatch(target):
            kind = "refs/tags/" if (full or "").startswith("refs/tags/") else "refs/heads/"
            target = f"{kind}{target}"
        if oid is None or not _REF.fullmatch(target):
            return None
        found.append((target, oid))
    return found


def _default_update(repository: Repository, ref: str, default: str) -> list[tuple[str, str]] | None:
    """What `git push` without a name pushes: the branch to its own name, or to its upstream's."""
    oid = repository.oid(ref)
    if oid is None or default not in ("simple", "current", "upstream"):
        return None
    if default == "upstream":
        there = repository.ask("for-each-ref", "--format=%(upstream:remoteref)", ref)
        return [(there, oid)] if there else None
    return [(ref, oid)]
