"""How a permission question looks: what would run, what it may reach, how to answer (UX-41). Pure.

Owns: one readable line per tool, the bounded diff of an edit, the words of a class. Does not
own: when somebody is asked (`runtime.permission`), what an answer means (`cli.chatting`).

Arguments come in redacted. All foreign text is cleaned and stands right of the gutter.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from surefoot.surfaces.drawing import INLINE, Drawing
from surefoot.surfaces.plain import GUTTER, cut, wrap
from surefoot.surfaces.view import clean
from surefoot.surfaces.words import say
from surefoot.surfaces.words_chat import why_asked

DIFF_LINES = 20
TEXT_LINES = 8
Read = Callable[[str], str | None]
"""The text of a file of the workspace, or None when it cannot be shown."""


def permission_lines(
    question: Mapping[str, Any],
    language: str,
    *,
    columns: int,
    read: Read,
    styled: Callable[[str], str],
    drawing: Drawing = INLINE,
) -> list[str]:
    """The question in lines. `question` has tool, arguments, effect_class, reach, directory and why.

    `styled` draws a line of a diff.
    """
    kind = str(question["effect_class"])
    reach = ", ".join(clean(member) for member in question["reach"]) or "-"
    room = max(30, columns - 2)
    body, diff = _body(str(question["tool"]), str(question["arguments"]), read)
    head = f"{clean(question['tool'])} · {kind}: {say(f'class_{kind.lower()}', language)}"
    lines = [row for fact in drawing.facts(head) for row in wrap(fact, room)]
    lines += [GUTTER + line for part in body for line in wrap(part, room)[:TEXT_LINES]]
    lines += [GUTTER + styled(cut(line, room)) for line in _bounded(diff, language)]
    place = say("permit_place", language, reach=reach, directory=clean(question["directory"]))
    why, choices = why_asked(clean(question["why"]), language), say("permit_choices", language)
    for text in (*drawing.facts(place), why, *drawing.options(choices, language)):
        lines += [f"  {line}" for line in wrap(text, room)]
    return lines


def _body(tool: str, display: str, read: Read) -> tuple[list[str], list[str]]:
    """Lines that name what would be done, and the diff where a file would be changed."""
    try:
        arguments = json.loads(display)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        return [clean(display)], []
    command, path = arguments.get("command"), arguments.get("path")
    if isinstance(command, str):
        more = [f"{key}: {clean(value)}" for key, value in arguments.items() if key != "command"]
        return [f"$ {line}" for line in clean(command, lines=True).split("\n")] + more, []
    if isinstance(path, str):
        made = _changed(arguments, read(path))
        if made is not None:
            before, after = made
            return [f"{tool} {clean(path)}"], _diff(before, after)
    return [tool, *(f"{key}: {clean(_short(value))}" for key, value in arguments.items())], []


def _changed(arguments: Mapping[str, Any], before: str | None) -> tuple[str, str] | None:
    """The file before and after, as far as the arguments tell; None for a tool that edits no text."""
    content = arguments.get("content")
    if isinstance(content, str):
        old = before or ""
        return old, old + content if arguments.get("mode") == "append" else content
    edits = arguments.get("edits") or ([arguments] if isinstance(arguments.get("old"), str) else None)
    if not isinstance(edits, list) or not all(isinstance(one, dict) for one in edits):
        return None
    pairs = [
        (str(one.get("old", "")), str(one.get("new", "")), bool(one.get("replace_all"))) for one in edits
    ]
    if before is None or not all(old in before for old, _, _ in pairs[:1]):
        # The file cannot be read here: the replaced pieces themselves are what can be shown.
        return "\n".join(old for old, _, _ in pairs), "\n".join(new for _, new, _ in pairs)
    after = before
    for old, new, every in pairs:
        after = after.replace(old, new) if every else after.replace(old, new, 1)
    return before, after


def _diff(before: str, after: str) -> list[str]:
    rows = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2)
    return [clean(row) for row in rows if not row.startswith(("--- ", "+++ "))]


def _bounded(rows: Sequence[str], language: str) -> list[str]:
    if len(rows) <= DIFF_LINES:
        return list(rows)
    return [*rows[: DIFF_LINES - 1], say("more_lines", language, n=len(rows) - DIFF_LINES + 1)]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else text[:199] + "…"
