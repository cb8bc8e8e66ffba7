"""What is found out before a file tool starts: targets, contents, intents, refusals.

Owns: turning wanted contents into `Change`s, what an earlier attempt of the call
already did (EC-15), which versions of files the model has seen, and the body that
carries a plan out. Does not own: the steps (`changes`), the arguments of each tool
(`writing`, `moving`).

Nothing here changes the world of the user; a content that will be overwritten in
place is put into a blob.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from surefoot.core.canonical import digest_bytes
from surefoot.core.effects import Effect
from surefoot.core.model import EffectTrace, Receipt, State
from surefoot.errors import ToolError
from surefoot.runtime.tools import Arguments, LiveAttempt, Outcome, Place, Prepared
from surefoot.tools.files.changes import ALREADY, CHANGED, Applier, Change
from surefoot.tools.files.disk import Disk, attributes_copyable, is_mount_point
from surefoot.tools.files.paths import (
    Located,
    inside,
    ledger_files,
    ledger_refusal,
    outside_roots,
    reach_of,
    shown,
    write_roots,
)
from surefoot.verifiers.sight import (
    ABSENT,
    DIGEST_FILE_BYTES,
    TEMPORARY,
    Sight,
    encoding_of,
    look,
    look_and_read,
)

CONTENT_BYTES = 256 << 20
"""Larger files are not changed by these tools."""
_REMEMBERED = 10_000


class SeenFiles:
    """Which version of a file the model was shown or made, per session; lost with the process.

    Not knowing a file forbids nothing; knowing another version of it refuses an edit.
    """

    def __init__(self) -> None:
        self._versions: OrderedDict[tuple[str, str], str] = OrderedDict()

    def note(self, session_id: str, resolved: str, version: str | None) -> None:
        """Remember what the model knows of a file."""
        if version is None:
            self._versions.pop((session_id, resolved), None)
            return
        self._versions[session_id, resolved] = version
        self._versions.move_to_end((session_id, resolved))
        while len(self._versions) > _REMEMBERED:
            self._versions.popitem(last=False)

    def stale(self, session_id: str, resolved: str, version: str | None) -> bool:
        """Whether the model knows another version than this one."""
        known = self._versions.get((session_id, resolved))
        return known is not None and version is not None and known != version


@dataclass(frozen=True, slots=True)
class Plan:
    """Changes in order, and what is said when they are done."""

    changes: tuple[Change, ...]
    done: str
    limit: int = DIGEST_FILE_BYTES
    already: str = "Already in the wanted state; nothing was written."


@dataclass(frozen=True, slots=True)
class Found:
    """A target as it is now, with its content when it is a regular file of bounded size."""

    located: Located
    sight: Sight
    content: bytes | None = field(default=None, repr=False)


class Refused(Exception):
    """The call must not start; `refusal` is a code of TR-41 and a text."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.refusal = (code, text)


class Impossible(Exception):
    """The tool's own failure, known before anything was touched."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.outcome = failed(kind, text)


def failed(kind: str, text: str, *, reason: str | None = None) -> Outcome:
    """A failure that touched nothing."""
    return Outcome(text, State.FAILED, reason=reason, error_kind=kind, effect_trace=EffectTrace.NONE)


def digest_limit(services: Mapping[str, Any]) -> int:
    """The bound above which a file has no digest, as the owner set it."""
    return int(services.get("limits", {}).get("digest_file_bytes", DIGEST_FILE_BYTES))


def find(located: Located, place: Place, services: Mapping[str, Any], *, content: bool = True) -> Found:
    """Look at a target that will be written; `content` False spares reading what has no digest anyway.

    Raises:
        Refused: outside the write roots, or a file of the ledger.
        Impossible: it cannot be read.
    """
    refusal = outside_roots(located, place)
    if refusal:
        raise Refused(*refusal)
    limit = digest_limit(services)
    read_limit = CONTENT_BYTES if content else 0
    sight, text = look_and_read(located.resolved, ledger_files(services), limit=limit, read_limit=read_limit)
    if sight.kind == "ledger":
        raise Refused(*ledger_refusal(located.path))
    if sight.kind == "unreadable":
        raise Impossible("unreadable", f"{shown(located.path)} cannot be read: {sight.why}.")
    return Found(located, sight, text)


def earlier_word(receipt: Receipt, services: Mapping[str, Any], found: Found) -> str | None:
    """What an earlier attempt at this call left: `already` (its wanted state holds), `changed`, or None.

    A repetition never computes its content anew from a file the first try may have changed.
    """
    earlier = services.get("earlier")
    attempts: Sequence[Receipt] = earlier(receipt) if earlier else ()
    for old in reversed(attempts):
        if receipt.tool is not None and old.tool != receipt.tool:
            continue  # no repetition of this call, whoever named it
        for intent in old.write_intents:
            after = intent.get("after")
            if intent.get("resolvedPath") != found.located.resolved or after is None:
                continue
            if intent.get("kind") == "mkdir":
                continue
            if found.sight.state == after:
                return ALREADY
            return None if found.sight.state == intent.get("before") else CHANGED
    return None


def repeated(word: str, found: Found, kind: str = "write") -> Plan | Outcome:
    """The plan of a repetition whose work is done, or the failure of one that met later work."""
    if word == CHANGED:
        return underneath(found.located.path)
    change = Change(
        kind,
        found.located.path,
        found.located.resolved,
        found.sight,
        found.content,
        found.sight.state,
        found.sight.encoding,
    )
    return Plan(
        (change,), f"{shown(found.located.path)} is already in the wanted state; nothing was written."
    )


def underneath(path: str) -> Outcome:
    """The failure of TR-106: something else is there than what the change was made for."""
    return failed(
        "changed_underneath",
        f"{shown(path)} changed while this call was being made, so nothing was written. Read it again first.",
        reason="changed_underneath",
    )


def written(found: Found, content: bytes, *, limit: int = DIGEST_FILE_BYTES) -> tuple[Change, ...]:
    """The changes that bring `content` to the target, missing folders first.

    Raises:
        Impossible: something that is no file is there, or nothing can be written there.
    """
    located, sight = found.located, found.sight
    if sight.kind not in ("file", ABSENT):
        raise Impossible("not_a_file", f"{shown(located.path)} is {_noun(sight.kind)}, not a file.")
    if len(content) > CONTENT_BYTES:
        raise Impossible("too_large", f"The content is larger than {CONTENT_BYTES >> 20} MiB.")
    digested = len(content) <= limit
    change = Change(
        "write" if sight.kind == ABSENT else _way(located.resolved, sight),
        located.path,
        located.resolved,
        sight,
        content,
        digest_bytes(content) if digested else None,
        encoding_of(content) if digested else None,
    )
    if sight.kind == ABSENT:
        return (*missing_folders(located), change)
    if found.content is None:
        raise Impossible("too_large", f"{shown(located.path)} is larger than {CONTENT_BYTES >> 20} MiB.")
    if not os.access(located.resolved, os.W_OK):
        raise Impossible("not_writable", f"{shown(located.path)} is read-only for this user.")
    return (change,)


def _noun(kind: str) -> str:
    return {"folder": "a folder", "link": "a symbolic link that leads nowhere"}.get(
        kind, "a device, FIFO or socket"
    )


def _way(resolved: str, sight: Sight) -> str:
    """`write` replaces the file; `inplace` where that would lose a name, an attribute or is not allowed."""
    folder = os.path.dirname(resolved)  # noqa: PTH120
    if _other_names(resolved, sight, folder) or is_mount_point(resolved):
        return "inplace"
    if not os.access(folder, os.W_OK | os.X_OK):
        return "inplace"
    return "write" if attributes_copyable(resolved, sight.uid, sight.gid) else "inplace"


def _other_names(resolved: str, sight: Sight, folder: str) -> bool:
    """Whether the file has further hard links; a dead attempt's temporary name is none."""
    if sight.links <= 1:
        return False
    ours = 0
    try:
        with os.scandir(folder) as entries:
            ours = sum(e.name.startswith(TEMPORARY) and e.inode() == sight.ino for e in entries)
    except OSError:
        return True
    return sight.links - ours > 1


def missing_folders(located: Located, *, itself: bool = False) -> tuple[Change, ...]:
    """A `mkdir` for every folder that does not exist yet on the way to the target.

    Raises:
        Impossible: a file stands where a folder is needed, or nothing can be made there.
    """
    missing: list[str] = []
    folder = located.resolved if itself else os.path.dirname(located.resolved)  # noqa: PTH120
    while not os.path.isdir(folder):  # noqa: PTH112
        if os.path.lexists(folder):
            raise Impossible("not_a_folder", f"{shown(folder)} is not a folder.")
        missing.append(folder)
        folder = os.path.dirname(folder)  # noqa: PTH120
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Impossible("not_writable", f"{shown(folder)} cannot be written by this user.")
    return tuple(Change("mkdir", path, path, look(path)) for path in reversed(missing))


def ledger_below(folder: str, services: Mapping[str, Any]) -> bool:
    """Whether a file of the ledger lies somewhere below `folder`."""
    ids = ledger_files(services)
    if not ids:
        return False
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                status = os.lstat(f"{parent}/{name}")
            except OSError:
                continue
            if (status.st_dev, status.st_ino) in ids:
                return True
    return False


async def laid_ready(
    plan: Plan | Outcome,
    place: Place,
    lexical_paths: Sequence[str],
    services: Mapping[str, Any],
    effect: Effect,
) -> Prepared:
    """The answer of `prepare`: intents and a wider or stricter effect; keeps what is written in place."""
    if isinstance(plan, Outcome):
        return Prepared(value=plan)
    roots = write_roots(place)
    for change in plan.changes:
        if change.kind == "mkdir" and not inside(change.resolved, roots):
            return Prepared(refuse=("permission_denied", f"{shown(change.resolved)} may not be made."))
        if change.kind == "inplace":
            await _keep_old(change, services)
    intents = [intent for change in plan.changes for intent in change.intents()]
    resolved = [str(intent["resolvedPath"]) for intent in intents if intent["kind"] != "mkdir"]
    if all(intent["kind"] == "mkdir" for intent in intents):
        resolved = [str(intent["resolvedPath"]) for intent in intents]
    stricter = Effect(effect.effect_class, reach_of(*lexical_paths, *resolved))
    return Prepared(fields={"writeIntents": intents}, effect=stricter, value=plan)


async def _keep_old(change: Change, services: Mapping[str, Any]) -> None:
    """Keep what an in-place write destroys; the blob goes by the digest that stands in `before`."""
    put_blob = services.get("put_blob")
    ids = ledger_files(services)
    _, content = await asyncio.to_thread(look_and_read, change.resolved, ids, read_limit=CONTENT_BYTES)
    if put_blob is not None and content is not None:
        await put_blob(content)


class PlanBody:
    """The body of every tool that changes files: carry the prepared plan out."""

    def __init__(self, seen: SeenFiles, disk: Disk | None = None) -> None:
        self._seen = seen
        self._disk = disk

    def __call__(self, attempt: LiveAttempt, arguments: Arguments) -> Outcome:
        """Run the plan; blocks on the disk."""
        plan = attempt.prepared
        if isinstance(plan, Outcome):
            return plan
        if not isinstance(plan, Plan):
            raise ToolError(
                "this tool was started without its preparation", effect_trace="none", kind="not_prepared"
            )
        applier = Applier(
            attempt.attempt_id,
            disk=self._disk,
            ledger_files=ledger_files(attempt.services),
            limit=plan.limit,
        )
        words: set[str] = set()
        for change in plan.changes:
            try:
                word = applier.apply(change)
            except OSError as error:
                return _broken(change, error, touched=applier.touched)
            if word == CHANGED:
                return _changed(change, applier)
            words.add(word)
            self._note(attempt.session_id, change)
        if words <= {ALREADY}:
            return Outcome(plan.already, effect_trace=EffectTrace.NONE)
        return Outcome(plan.done, effect_trace=EffectTrace.DONE)

    def _note(self, session_id: str, change: Change) -> None:
        if change.kind in ("write", "inplace"):
            self._seen.note(session_id, change.resolved, change.after)
        if change.kind in ("delete", "move"):
            self._seen.note(session_id, change.resolved, None)
        if change.source is not None:
            self._seen.note(session_id, change.source, None)


def _changed(change: Change, applier: Applier) -> Outcome:
    outcome = underneath(change.path)
    if not applier.touched:
        return outcome
    beside = applier.left_beside
    text = f"{shown(change.path)} changed while it was being written; an earlier part of this call was done."
    if beside:
        path = shown(change.path)
        text = f"{path} was written by somebody else meanwhile; one version lies in {shown(beside)}."
    return Outcome(
        text, State.FAILED, "changed_underneath", "changed_underneath", effect_trace=EffectTrace.POSSIBLE
    )


def _broken(change: Change, error: OSError, *, touched: bool) -> Outcome:
    trace = EffectTrace.POSSIBLE if touched else EffectTrace.NONE
    ending = "It may have been changed: read it before you go on." if touched else "Nothing was changed."
    word = (error.strerror or type(error).__name__).lower()
    text = f"{shown(change.path)} could not be changed: {word}. {ending}"
    return Outcome(text, State.FAILED, error_kind=_error_kind(error), effect_trace=trace)


def _error_kind(error: OSError) -> str:
    return {
        errno.ENOSPC: "disk_full",
        errno.EDQUOT: "disk_full",
        errno.EACCES: "permission",
        errno.EPERM: "permission",
        errno.EROFS: "read_only_file_system",
        errno.EXDEV: "cross_device",
        errno.ENOTEMPTY: "not_empty",
        errno.EBUSY: "busy",
    }.get(error.errno or 0, "io_error")
