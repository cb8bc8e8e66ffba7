"""The tools delete, move and make_directory: names come, go and change.

Owns: their arguments, what they refuse, their plans. Does not own: the steps
(`changes`). A final symbolic link is removed or moved itself, never what it leads to.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import Any

from surefoot.core.model import EffectClass, Receipt
from surefoot.runtime.tools import Arguments, Outcome, Place, Prepared, Tool
from surefoot.tools.files.changes import ALREADY, CHANGED, Change
from surefoot.tools.files.disk import Disk
from surefoot.tools.files.paths import (
    PATH,
    barred,
    ledger_refusal,
    lexical,
    locate,
    path_effect,
    path_subjects,
    shown,
    write_roots,
)
from surefoot.tools.files.plans import (
    Found,
    Impossible,
    Plan,
    PlanBody,
    Refused,
    SeenFiles,
    digest_limit,
    earlier_word,
    find,
    laid_ready,
    ledger_below,
    missing_folders,
    repeated,
    underneath,
)
from surefoot.verifiers.files import FilesVerifier
from surefoot.verifiers.sight import ABSENT

FindOut = Callable[[Arguments, Place, Receipt, Mapping[str, Any]], "Plan | Outcome"]


def _preparing(find_out: FindOut, effect_class: EffectClass, *names: str) -> Any:
    classify = path_effect(effect_class, *names)

    async def prepare(
        arguments: Arguments, place: Place, receipt: Receipt, services: Mapping[str, Any]
    ) -> Prepared:
        """Find out everything before D6; the disk is read off the event loop."""
        try:
            plan = await asyncio.to_thread(find_out, arguments, place, receipt, services)
        except Refused as refused:
            return Prepared(refuse=refused.refusal)
        except Impossible as impossible:
            return Prepared(value=impossible.outcome)
        paths = [lexical(arguments[name], place) for name in names]
        return await laid_ready(plan, place, paths, services, classify(arguments, place))

    return prepare


def _not_a_root(found: Found, place: Place) -> None:
    if found.located.resolved in write_roots(place):
        raise Refused(
            "permission_denied",
            f"{shown(found.located.path)} is the working folder itself and stays where it is.",
        )


def _no_ledger_below(found: Found, services: Mapping[str, Any]) -> None:
    if found.sight.kind == "folder" and ledger_below(found.located.resolved, services):
        raise Refused(*ledger_refusal(found.located.path))


def _missing(found: Found) -> Impossible:
    return Impossible("not_found", f"{shown(found.located.path)} does not exist.")


def _plan_delete(
    arguments: Arguments, place: Place, receipt: Receipt, services: Mapping[str, Any]
) -> Plan | Outcome:
    found = find(locate(arguments["path"], place, follow=False), place, services, content=False)
    _not_a_root(found, place)
    word = earlier_word(receipt, services, found)
    if word is not None:
        return repeated(word, found, "delete")
    if found.sight.kind == ABSENT:
        raise _missing(found)
    tree = bool(arguments.get("recursive"))
    path = shown(found.located.path)
    if found.sight.kind == "folder" and not tree and os.listdir(found.located.resolved):  # noqa: PTH208
        raise Impossible(
            "not_empty", f"{path} is a folder that is not empty. Set `recursive` to delete all of it."
        )
    _no_ledger_below(found, services)
    change = Change(
        "delete", found.located.path, found.located.resolved, found.sight, after=ABSENT, tree=tree
    )
    return Plan((change,), f"Deleted {path}.", digest_limit(services))


def _plan_move(
    arguments: Arguments, place: Place, receipt: Receipt, services: Mapping[str, Any]
) -> Plan | Outcome:
    source = find(locate(arguments["source"], place, follow=False), place, services, content=False)
    target = find(locate(arguments["target"], place, follow=False), place, services, content=False)
    _not_a_root(source, place)
    done = _moved_earlier(receipt, services, source, target)
    if done is not None:
        return done
    if source.sight.kind == ABSENT:
        raise _missing(source)
    _check_target(source, target, overwrite=bool(arguments.get("overwrite")))
    _no_ledger_below(source, services)
    change = Change(
        "move",
        target.located.path,
        target.located.resolved,
        target.sight,
        after=source.sight.digest,
        encoding=source.sight.encoding,
        source=source.located.resolved,
        source_path=source.located.path,
        source_before=source.sight,
    )
    done_text = f"Moved {shown(source.located.path)} to {shown(target.located.path)}."
    return Plan((*missing_folders(target.located), change), done_text, digest_limit(services))


def _moved_earlier(
    receipt: Receipt, services: Mapping[str, Any], source: Found, target: Found
) -> Plan | Outcome | None:
    """What a repetition finds: both ends as wanted, or later work at one of them."""
    words = [earlier_word(receipt, services, source), earlier_word(receipt, services, target)]
    if words == [ALREADY, ALREADY]:
        return repeated(ALREADY, target, "move")
    if CHANGED in words or ALREADY in words:
        return underneath(target.located.path)
    return None


def _check_target(source: Found, target: Found, *, overwrite: bool) -> None:
    path = shown(target.located.path)
    if target.located.resolved == source.located.resolved:
        raise Impossible("nothing_to_change", f"{path} is source and target at once.")
    if target.located.resolved.startswith(source.located.resolved + "/"):
        raise Impossible("into_itself", f"{path} lies inside the folder that is to be moved.")
    if target.sight.kind == ABSENT:
        return
    if target.sight.kind == "folder" or source.sight.kind == "folder":
        raise Impossible("exists", f"{path} exists already. Name the full new path, which must be free.")
    if not overwrite:
        raise Impossible("exists", f"{path} exists already. Set `overwrite` to replace it.")


def _plan_folder(
    arguments: Arguments, place: Place, receipt: Receipt, services: Mapping[str, Any]
) -> Plan | Outcome:
    found = find(locate(arguments["path"], place), place, services, content=False)
    path = shown(found.located.path)
    if found.sight.kind not in ("folder", ABSENT):
        raise Impossible("exists", f"{path} exists and is not a folder.")
    if found.sight.kind == "folder":
        there = Change("mkdir", found.located.path, found.located.resolved, found.sight)
        return Plan((there,), f"Made the folder {path}.", already=f"The folder {path} is there already.")
    return Plan(missing_folders(found.located, itself=True), f"Made the folder {path}.")


def moving_tools(seen: SeenFiles, verifier: FilesVerifier, disk: Disk | None = None) -> tuple[Tool, ...]:
    """`delete`, `move` and `make_directory`."""
    return (
        _delete_tool(seen, verifier, disk),
        _move_tool(seen, verifier, disk),
        _folder_tool(seen, verifier, disk),
    )


def _delete_tool(seen: SeenFiles, verifier: FilesVerifier, disk: Disk | None) -> Tool:
    return Tool(
        name="delete",
        description=(
            "Delete a file, a symbolic link (not what it leads to) or an empty folder. With `recursive` a "
            "folder goes with everything in it. There is no undo."
        ),
        parameters={
            "type": "object",
            "properties": {
                "path": {**PATH, "description": "What to delete."},
                "recursive": {"type": "boolean", "description": "Delete a folder with all it holds."},
            },
            "required": ["path"],
            "additionalProperties": False,
        },
        sync_body=PlanBody(seen, disk),
        effect=path_effect(EffectClass.NON_IDEMPOTENT, "path"),
        refuses=barred("path", follow=False),
        prepare=_preparing(_plan_delete, EffectClass.NON_IDEMPOTENT, "path"),
        aliases=("delete_file", "remove_file", "Delete"),
        rule_name="Write",
        subjects=path_subjects("path", follow=False),
        verifier=verifier,
        summary=lambda a: f"delete {a.get('path')}" + (" and all below" if a.get("recursive") else ""),
    )


def _move_tool(seen: SeenFiles, verifier: FilesVerifier, disk: Disk | None) -> Tool:
    return Tool(
        name="move",
        description=(
            "Move or rename a file, link or folder. `target` is the full new path, not the folder to move "
            "into; it must be free unless `overwrite` is set (files only). Missing folders are made."
        ),
        parameters={
            "type": "object",
            "properties": {
                "source": {**PATH, "description": "What to move."},
                "target": {**PATH, "description": "Its new path."},
                "overwrite": {"type": "boolean", "description": "Replace a file that is already there."},
            },
            "required": ["source", "target"],
            "additionalProperties": False,
        },
        sync_body=PlanBody(seen, disk),
        effect=path_effect(EffectClass.NON_IDEMPOTENT, "source", "target"),
        refuses=barred("source", "target", follow=False),
        prepare=_preparing(_plan_move, EffectClass.NON_IDEMPOTENT, "source", "target"),
        aliases=("move_file", "rename", "Move"),
        rule_name="Write",
        subjects=path_subjects("source", "target", follow=False),
        reads=path_subjects("source", follow=False),  # under its new name it could be read
        verifier=verifier,
        summary=lambda a: f"move {a.get('source')} to {a.get('target')}",
    )


def _folder_tool(seen: SeenFiles, verifier: FilesVerifier, disk: Disk | None) -> Tool:
    return Tool(
        name="make_directory",
        description="Make a folder, and the folders above it that are missing. One that exists is left as it is.",
        parameters={
            "type": "object",
            "properties": {"path": {**PATH, "description": "Folder to make."}},
            "required": ["path"],
            "additionalProperties": False,
        },
        sync_body=PlanBody(seen, disk),
        effect=path_effect(EffectClass.IDEMPOTENT_WRITE, "path"),
        refuses=barred("path"),
        prepare=_preparing(_plan_folder, EffectClass.IDEMPOTENT_WRITE, "path"),
        aliases=("create_directory", "mkdir", "make_dir"),
        rule_name="Write",
        subjects=path_subjects("path"),
        verifier=verifier,
        summary=lambda a: f"make folder {a.get('path')}",
    )
