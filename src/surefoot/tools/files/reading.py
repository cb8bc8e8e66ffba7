"""The tools read and list: what a file says, what a folder holds.

Owns: numbered lines, paging, bounds, and words for what cannot be read. Does not
own: opening files safely (`verifiers.sight`), searching (`search`).

Nothing blocks here: FIFOs and devices are told before they are opened.
"""

from __future__ import annotations

import base64
import difflib
import os
import stat
from dataclasses import dataclass

from surefoot.core.canonical import digest_bytes
from surefoot.runtime.tools import Arguments, LiveAttempt, Outcome, SyncBody, Tool
from surefoot.tools.files.paths import (
    PATH,
    READ,
    Located,
    ledger_files,
    ledger_refusal,
    locate,
    path_subjects,
    shown,
)
from surefoot.tools.files.pictures import sight_of
from surefoot.tools.files.plans import SeenFiles, digest_limit, failed
from surefoot.verifiers.sight import Unopenable, decode, open_regular, read_bounded

LINES = 2000
LINE_CHARACTERS = 2000
TEXT_CHARACTERS = 200_000
ENTRIES = 1000
_SAMPLE_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Page:
    """Numbered lines of a text, and what was left out."""

    text: str
    first: int
    last: int
    total: int | None
    """Number of lines of the whole text; None when it was not read to its end."""


def page_of(lines: list[str], offset: int, limit: int) -> Page:
    """Number the lines from `offset` (counted from 1), at most `limit`, within the character bound."""
    shown_lines: list[str] = []
    size = 0
    for number in range(offset, min(len(lines), offset + limit - 1) + 1):
        line = lines[number - 1]
        if len(line) > LINE_CHARACTERS:
            line = f"{line[:LINE_CHARACTERS]} … [cut: the line has {len(line)} characters]"
        size += len(line) + 8
        if size > TEXT_CHARACTERS and shown_lines:
            break
        shown_lines.append(f"{number:6}\t{line}")
    return Page("\n".join(shown_lines), offset, offset + len(shown_lines) - 1, len(lines))


def read_body(seen: SeenFiles) -> SyncBody:
    """Make the body of `read`."""

    def body(attempt: LiveAttempt, arguments: Arguments) -> Outcome:
        located = locate(arguments["path"], attempt.place)
        try:
            handle = open_regular(located.resolved, ledger_files(attempt.services))
        except Unopenable as error:
            return _unreadable(located, error)
        try:
            return _read(handle, located, attempt, arguments, seen)
        except OSError as error:
            return failed("unreadable", f"{shown(located.path)} cannot be read: {error.strerror}.")
        finally:
            os.close(handle)

    return body


def _read(
    handle: int, located: Located, attempt: LiveAttempt, arguments: Arguments, seen: SeenFiles
) -> Outcome:
    limit = digest_limit(attempt.services)
    size = os.fstat(handle).st_size
    content = read_bounded(handle, limit) if size <= limit else None
    path = shown(located.path)
    if content is None:
        return failed(
            "too_large",
            f"{path} has {size} bytes, more than the {limit} that are read. Use `grep` to find the place, "
            "or a shell command such as `sed -n`.",
        )
    decoded = decode(content)
    if decoded is None and (sight := sight_of(content)) is not None:
        seen.note(attempt.session_id, located.resolved, digest_bytes(content))
        return Outcome(
            f"{path} is a {_sort_of(content)} of {len(content)} bytes, {sight.width} x {sight.height} pixels. "
            "It stands beside this text, unless the server of this model takes no pictures: then it was not seen.",
            pictures=((sight.media_type, base64.b64encode(content).decode("ascii")),),
        )
    if decoded is None:
        return failed("binary", f"{path} is a binary file of {len(content)} bytes ({_sort_of(content)}).")
    seen.note(attempt.session_id, located.resolved, digest_bytes(content))
    return Outcome(_paged(decoded[0], path, arguments))


def _paged(text: str, path: str, arguments: Arguments) -> str:
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    lines = [line.removesuffix("\r") for line in lines]
    if not lines:
        return f"({path} is empty)"
    offset = int(arguments.get("offset") or 1)
    if offset > len(lines):
        return f"({path} has {len(lines)} lines; there is nothing at line {offset})"
    page = page_of(lines, offset, int(arguments.get("limit") or LINES))
    if page.first == 1 and page.last == len(lines):
        return page.text
    note = f"[lines {page.first} to {page.last} of {page.total}"
    if page.last < len(lines):
        note += f"; go on with offset {page.last + 1}"
    return f"{page.text}\n{note}]"


def _sort_of(content: bytes) -> str:
    for mark, name in (
        (b"\x89PNG", "PNG image"),
        (b"\xff\xd8\xff", "JPEG image"),
        (b"GIF8", "GIF image"),
        (b"%PDF", "PDF document"),
        (b"PK\x03\x04", "ZIP archive"),
        (b"\x1f\x8b", "gzip archive"),
        (b"\x7fELF", "ELF program"),
        (b"SQLite format 3", "SQLite database"),
    ):
        if content.startswith(mark):
            return name
    return "no text in UTF-8 or UTF-16"


def _unreadable(located: Located, error: Unopenable) -> Outcome:
    path = shown(located.path)
    if error.code == "ledger_file":
        return failed("ledger_file", ledger_refusal(located.path)[1])
    if error.code == "not_found":
        return failed("not_found", f"{path} does not exist.{_like(located)}")
    if error.code == "not_regular":
        advice = " Use `list`." if error.text.endswith("a folder") else ""
        return failed("not_a_file", f"{path} is {error.text}.{advice}")
    return failed("unreadable", f"{path} cannot be read: {error.text}.")


def _like(located: Located) -> str:
    """Names in the same folder that a typing error may have meant."""
    folder, name = os.path.split(located.resolved)
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for _, entry in zip(range(500), entries, strict=False)]
    except OSError:
        return ""
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    return f" Similar names there: {', '.join(shown(found) for found in close)}." if close else ""


def list_body(attempt: LiveAttempt, arguments: Arguments) -> Outcome:
    """List one folder: folders first, each with its kind and size."""
    located = locate(arguments.get("path") or ".", attempt.place)
    path = shown(located.path)
    try:
        with os.scandir(located.resolved) as entries:
            rows = sorted((_row(entry) for entry in entries), key=lambda row: (row[0], row[1]))
    except FileNotFoundError:
        return failed("not_found", f"{path} does not exist.{_like(located)}")
    except NotADirectoryError:
        return failed("not_a_folder", f"{path} is not a folder. Use `read`.")
    except OSError as error:
        return failed("unreadable", f"{path} cannot be listed: {error.strerror}.")
    if not rows:
        return Outcome(f"({path} is empty)")
    kept = rows[:ENTRIES]
    text = "\n".join(row[2] for row in kept)
    if len(rows) > ENTRIES:
        text += f"\n[{len(rows) - ENTRIES} more of {len(rows)} entries not shown; use `glob` to narrow]"
    return Outcome(text)


def _row(entry: os.DirEntry[str]) -> tuple[int, str, str]:
    name = shown(entry.name)
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return 1, entry.name, f"{name}  (cannot be looked at)"
    if stat.S_ISDIR(status.st_mode):
        return 0, entry.name, f"{name}/"
    if stat.S_ISLNK(status.st_mode):
        return 1, entry.name, f"{name} -> {_leads_to(entry)}"
    if stat.S_ISREG(status.st_mode):
        return 1, entry.name, f"{name}  {status.st_size} bytes"
    return 1, entry.name, f"{name}  (device, FIFO or socket)"


def _leads_to(entry: os.DirEntry[str]) -> str:
    try:
        return shown(os.readlink(entry.path))  # noqa: PTH115
    except OSError:
        return "?"


def reading_tools(seen: SeenFiles) -> tuple[Tool, Tool]:
    """`read` and `list`."""
    read = Tool(
        name="read",
        description=(
            f"Read a text file with line numbers, at most {LINES} lines at once; go on with `offset`. The "
            "number and the tab at the start of each line are not part of the file. Read a file before "
            "you edit it."
        ),
        parameters={
            "type": "object",
            "properties": {
                "path": {
                    **PATH,
                    "description": "File to read, absolute or relative to the working directory.",
                },
                "offset": {"type": "integer", "minimum": 1, "description": "First line, counted from 1."},
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": LINES,
                    "description": "Number of lines.",
                },
            },
            "required": ["path"],
            "additionalProperties": False,
        },
        sync_body=read_body(seen),
        effect=READ,
        aliases=("read_file", "Read", "view"),
        rule_name="Read",
        subjects=path_subjects("path"),
        summary=lambda a: f"read {a.get('path')}",
    )
    listing = Tool(
        name="list",
        description="List one folder: names, kinds and sizes. Use `glob` for whole trees.",
        parameters={
            "type": "object",
            "properties": {"path": {**PATH, "description": "Folder; the working directory by default."}},
            "additionalProperties": False,
        },
        sync_body=list_body,
        effect=READ,
        aliases=("list_directory", "list_dir", "LS", "ls"),
        rule_name="Read",
        subjects=path_subjects("path"),
        summary=lambda a: f"list {a.get('path') or '.'}",
    )
    return read, listing
