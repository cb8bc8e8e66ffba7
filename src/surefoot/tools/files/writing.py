"""The tools write, edit and multi_edit: which content a file is to have.

Owns: their arguments, the search and replacement of text, and their answers. Does
not own: how a content reaches the disk (`changes`), what is found out before
(`plans`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.core.effects import Effect
from surefoot.core.model import EffectClass, Receipt
from surefoot.runtime.tools import Arguments, Outcome, Place, Prepared, Tool
from surefoot.tools.files.disk import Disk
from surefoot.tools.files.paths import (
    PATH,
    barred,
    lexical,
    locate,
    path_effect,
    path_subjects,
    reach_of,
    shown,
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
    repeated,
    written,
)
from surefoot.verifiers.files import FilesVerifier
from surefoot.verifiers.sight import ABSENT, decode, encode

_SNIPPET_LINES = 12
_LINE_CHARACTERS = 200

Planner = Callable[[Arguments, Found, int], Plan]
Classify = Callable[[Arguments, Place], Effect]


def preparing(plan: Planner, classify: Classify, seen: SeenFiles) -> Any:
    """Make the `prepare` of a tool that changes one file, named by `path`."""

    def find_out(
        arguments: Arguments, place: Place, receipt: Receipt, services: Mapping[str, Any]
    ) -> Plan | Outcome:
        found = find(locate(arguments["path"], place), place, services)
        word = earlier_word(receipt, services, found)
        if word is not None:
            return repeated(word, found)
        # Adding at the end destroys nothing that was not read.
        appending = arguments.get("mode") == "append"
        if not appending and seen.stale(receipt.session_id, found.located.resolved, found.sight.digest):
            raise Impossible(
                "changed_since_read",
                f"{shown(found.located.path)} changed since it was read. Read it again, then decide anew.",
            )
        return plan(arguments, found, digest_limit(services))

    async def prepare(
        arguments: Arguments, place: Place, receipt: Receipt, services: Mapping[str, Any]
    ) -> Prepared:
        """Find out everything before D6; the disk is read off the event loop."""
        try:
            found = await asyncio.to_thread(find_out, arguments, place, receipt, services)
        except Refused as refused:
            return Prepared(refuse=refused.refusal)
        except Impossible as impossible:
            return Prepared(value=impossible.outcome)
        effect = classify(arguments, place)
        if effect.effect_class is EffectClass.IDEMPOTENT_WRITE and _edit_without_digest(arguments, found):
            effect = Effect(EffectClass.NON_IDEMPOTENT, effect.reach)
        return await laid_ready(found, place, [lexical(arguments["path"], place)], services, effect)

    return prepare


def _edit_without_digest(arguments: Arguments, plan: Plan | Outcome) -> bool:
    """An edit without digests is no compare-and-set, so repeating it may apply twice (EC-15)."""
    if isinstance(plan, Outcome) or "content" in arguments:
        return False
    return any(c.kind != "mkdir" and (c.after is None or c.before.state is None) for c in plan.changes)


def _write_effect(arguments: Arguments, place: Place) -> Effect:
    appending = arguments.get("mode") == "append"
    kind = EffectClass.NON_IDEMPOTENT if appending else EffectClass.IDEMPOTENT_WRITE
    return Effect(kind, reach_of(lexical(arguments["path"], place)))


def _plan_write(arguments: Arguments, found: Found, limit: int) -> Plan:
    text: str = arguments["content"]
    path = shown(found.located.path)
    lines = f"{_line_count(text)} lines, {len(text.encode())} bytes"
    if arguments.get("mode") == "append":
        old = found.content or b""
        content = old + _tail(text, found) if old else text.encode()
        return Plan(written(found, content, limit=limit), f"Appended to {path}: {lines}.", limit)
    verb = "Created" if found.sight.kind == ABSENT else "Overwrote"
    content = encode(text, found.sight.encoding)
    return Plan(written(found, content, limit=limit), f"{verb} {path}: {lines}.", limit)


def _tail(text: str, found: Found) -> bytes:
    """Appended text in the encoding of the file, without a second byte order mark."""
    encoding = found.sight.encoding or ""
    return text.encode(encoding if encoding.startswith("utf-16") else "utf-8")


@dataclass(frozen=True, slots=True)
class Replaced:
    """A text after one replacement: how often, and where the first one begins."""

    text: str
    count: int
    at: int
    old: str
    new: str


def replace_text(text: str, old: str, new: str, *, everywhere: bool) -> Replaced:
    """Replace `old`, which must occur once unless `everywhere`.

    A file with CRLF line ends is matched by an `old` written with LF, and stays CRLF.

    Raises:
        Impossible: nothing to change, not found, or found several times.
    """
    if old == new:
        raise Impossible("nothing_to_change", "`old` and `new` are equal: there is nothing to change.")
    if "\r\n" in text and "\r" not in old and old not in text:
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    count = text.count(old)
    if count == 0:
        raise Impossible("old_not_found", _not_found(text, old))
    if count > 1 and not everywhere:
        raise Impossible(
            "old_not_unique",
            f"`old` was found {count} times (lines {_where(text, old)}). Give more of the text around "
            "the one you mean, or set `replace_all`. Nothing was changed.",
        )
    at = text.index(old)
    return Replaced(text.replace(old, new), count, at, old, new)


def _where(text: str, old: str) -> str:
    numbers: list[str] = []
    start = text.find(old)
    while start >= 0 and len(numbers) < 8:
        numbers.append(str(text.count("\n", 0, start) + 1))
        start = text.find(old, start + len(old))
    return ", ".join(numbers) + (", …" if start >= 0 else "")


def _not_found(text: str, old: str) -> str:
    """Say what is nearest: the same words with other white space, or a first line that occurs."""
    answer = "`old` was not found, so nothing was changed."
    wanted = [line.strip() for line in old.strip().splitlines()]
    lines = [line.strip() for line in text.splitlines()]
    if wanted and wanted[0]:
        for index, line in enumerate(lines):
            if line == wanted[0] and lines[index : index + len(wanted)] == wanted:
                return f"{answer} The same words stand at line {index + 1} with other white space."
        if wanted[0] in lines:
            return (
                f"{answer} Its first line stands at line {lines.index(wanted[0]) + 1}; what follows differs."
            )
    return f"{answer} Read the file again and copy the text exactly, without line numbers."


def _edits(arguments: Arguments) -> Sequence[Mapping[str, Any]]:
    many = arguments.get("edits")
    return many if many is not None else [arguments]


def _plan_edit(arguments: Arguments, found: Found, limit: int) -> Plan:
    text, encoding = _text_of(found)
    counts, added, removed, last = 0, 0, 0, None
    edits = _edits(arguments)
    for number, edit in enumerate(edits, start=1):
        try:
            last = replace_text(text, edit["old"], edit["new"], everywhere=bool(edit.get("replace_all")))
        except Impossible as error:
            if len(edits) == 1:
                raise
            kind = error.outcome.error_kind or "edit"
            raise Impossible(kind, f"Edit {number} of {len(edits)}: {error.outcome.text}") from None
        text, counts = last.text, counts + last.count
        added += last.count * _line_count(last.new)
        removed += last.count * _line_count(last.old)
    replacements = "1 replacement" if counts == 1 else f"{counts} replacements"
    done = f"Edited {shown(found.located.path)}: {replacements}, +{added} −{removed} lines."
    if last is not None:
        done += "\n" + _snippet(text, last)
    return Plan(written(found, encode(text, encoding), limit=limit), done, limit)


def _text_of(found: Found) -> tuple[str, str]:
    path = shown(found.located.path)
    if found.sight.kind == ABSENT:
        raise Impossible("not_found", f"{path} does not exist. Use `write` to create it.")
    if found.sight.kind != "file":
        raise Impossible("not_a_file", f"{path} is not a file.")
    if found.content is None:
        raise Impossible("too_large", f"{path} is too large to be edited here.")
    decoded = decode(found.content)
    if decoded is None:
        raise Impossible("binary", f"{path} is not a text file, so it cannot be edited.")
    return decoded


def _line_count(text: str) -> int:
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def _snippet(text: str, last: Replaced) -> str:
    """The lines around the last replacement, numbered as `read` numbers them."""
    first = text.count("\n", 0, last.at)
    lines = text.split("\n")
    start = max(0, first - 2)
    end = min(len(lines), start + min(_SNIPPET_LINES, _line_count(last.new) + 4))
    return "\n".join(
        f"{number + 1:6}\t{lines[number].rstrip(chr(13))[:_LINE_CHARACTERS]}" for number in range(start, end)
    )


_OLD = {"type": "string", "minLength": 1, "description": "Exact text to replace, white space included."}
_NEW = {"type": "string", "description": "Text that takes its place."}
_ALL = {"type": "boolean", "description": "Replace every occurrence instead of exactly one."}


def write_tool(seen: SeenFiles, verifier: FilesVerifier, disk: Disk | None = None) -> Tool:
    """`write`: a whole content, or more at the end."""
    return Tool(
        name="write",
        description=(
            "Write a text file: `overwrite` (default) gives it exactly this content, `append` adds at its "
            "end. Missing folders are made. The file is replaced in one step, so nobody sees half of it; a "
            "file that already has the content is left alone. Prefer `edit` for small changes."
        ),
        parameters={
            "type": "object",
            "properties": {
                "path": {
                    **PATH,
                    "description": "File to write, absolute or relative to the working directory.",
                },
                "content": {"type": "string", "description": "The text."},
                "mode": {"type": "string", "enum": ["overwrite", "append"]},
            },
            "required": ["path", "content"],
            "additionalProperties": False,
        },
        sync_body=PlanBody(seen, disk),
        effect=_write_effect,
        refuses=barred("path"),
        prepare=preparing(_plan_write, _write_effect, seen),
        aliases=("write_file", "Write", "create_file"),
        rule_name="Write",
        subjects=path_subjects("path"),
        verifier=verifier,
        summary=lambda a: f"write {a.get('path')}" + (" (append)" if a.get("mode") == "append" else ""),
    )


def edit_tools(seen: SeenFiles, verifier: FilesVerifier, disk: Disk | None = None) -> tuple[Tool, Tool]:
    """`edit` and `multi_edit`: replace text that must be found exactly."""
    effect = path_effect(EffectClass.IDEMPOTENT_WRITE, "path")
    path = {**PATH, "description": "File to edit, absolute or relative to the working directory."}
    one = {"old": _OLD, "new": _NEW, "replace_all": _ALL}
    edit = Tool(
        name="edit",
        description=(
            "Replace one exact piece of text in a file. `old` must occur exactly once (or set "
            "`replace_all`); copy it from `read` without the line numbers. Fails without writing when it is "
            "not found, found several times, or the file changed since it was read."
        ),
        parameters={
            "type": "object",
            "properties": {"path": path, **one},
            "required": ["path", "old", "new"],
            "additionalProperties": False,
        },
        sync_body=PlanBody(seen, disk),
        effect=effect,
        refuses=barred("path"),
        prepare=preparing(_plan_edit, effect, seen),
        aliases=("edit_file", "Edit", "str_replace"),
        rule_name="Edit",
        subjects=path_subjects("path"),
        verifier=verifier,
        summary=lambda a: f"edit {a.get('path')}",
    )
    item = {"type": "object", "properties": one, "required": ["old", "new"], "additionalProperties": False}
    multi = Tool(
        name="multi_edit",
        description=(
            "Make several replacements in one file, one after another, all or none. Each `old` must occur "
            "exactly once in the text as the earlier edits left it, or carry `replace_all`."
        ),
        parameters={
            "type": "object",
            "properties": {
                "path": path,
                "edits": {"type": "array", "minItems": 1, "maxItems": 200, "items": item},
            },
            "required": ["path", "edits"],
            "additionalProperties": False,
        },
        sync_body=PlanBody(seen, disk),
        effect=effect,
        refuses=barred("path"),
        prepare=preparing(_plan_edit, effect, seen),
        aliases=("multiedit", "MultiEdit"),
        rule_name="Edit",
        subjects=path_subjects("path"),
        verifier=verifier,
        summary=lambda a: f"edit {a.get('path')} ({len(a.get('edits') or ())} places)",
    )
    return edit, multi
