"""One answer of the doctor, and the checks of what surrounds a run: settings in force, keys, owners, files, tools.

Owns: the form of an answer, and the checks that need no look into a ledger's chain. Does not own: which checks
there are in which order, and the document (`doctor`). Reads only.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.config import Settings, read_instructions
from surefoot.settings_files import untold
from surefoot.surfaces.cli import reading

RANK = {"ok": 0, "unavailable": 1, "warning": 2, "fail": 3}
HEADER_BYTES = 100
MAGIC = b"SQLite format 3\0"
WAL_FORMAT = 2
"""Byte 18 of a SQLite file whose journal is the write-ahead log."""
LARGE_LOG_BYTES = 256 * 1024 * 1024
CLOCK_SLACK_MS = 60_000


@dataclass(slots=True)
class Check:
    """One answer: `status` is ok, warning, fail or unavailable."""

    category: str
    status: str
    summary: str
    details: dict[str, Any] = field(default_factory=dict)
    issues: list[dict[str, Any]] = field(default_factory=list)

    def blame(
        self, status: str, cause: str, remedy: str, *, measured: Any = None, expected: Any = None
    ) -> Check:
        """Lower the answer to `status` and name why, with the way out."""
        if RANK[status] > RANK[self.status]:
            self.status = status
        severity = "error" if status == "fail" else status
        self.issues.append(
            {
                "severity": severity,
                "cause": cause,
                "measured": measured,
                "expected": expected,
                "remedy": remedy,
            }
        )
        return self


def counted(number: int, thing: str) -> str:
    """The number with its noun."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def around() -> dict[str, Callable[[], Check]]:
    """Checks of the machine and the terminal, which need no settings."""
    return {
        "clock.wall": _wall,
        "extras.grammar": _grammar,
        "extras.python": _python,
        "processes.programs": _programs,
        "settings.variables": _variables,
        "terminal.colour": _colour,
        "terminal.person": _person,
        "terminal.size": _size,
    }


def in_force(settings: Settings) -> dict[str, Callable[[], Check]]:
    """Checks of what the settings say and where it leads."""
    return {
        "keys.endpoints": lambda: _endpoints(settings),
        "ledger.journal": lambda: _journal(settings),
        "ledger.log": lambda: _log(settings),
        "mcp.servers": lambda: _servers(settings),
        "owners.sessions": lambda: _owners(settings),
        "settings.barrier": lambda: _barrier(settings),
        "settings.hooks": lambda: _hooks(settings),
        "settings.instructions": lambda: _instructions(settings),
        "settings.packs": lambda: _packs(settings),
        "settings.permissions": lambda: _permissions(settings),
    }


# The machine ----------------------------------------------------------------------------------------


def _wall() -> Check:
    zone = time.strftime("%Z") or "UTC"
    return Check("clock", "ok", f"local time zone {zone}", {"utc_offset_seconds": time.localtime().tm_gmtoff})


def _grammar() -> Check:
    """Without its grammar every command of a shell is one that nothing is known of."""
    missing = [one for one in ("tree_sitter", "tree_sitter_bash") if importlib.util.find_spec(one) is None]
    check = Check("extras", "ok", "the grammar of the shell is installed")
    if missing:
        check.summary = "the grammar of the shell is not installed"
        check.blame("fail", "no shell command can be classified", f"pip install {' '.join(missing)}")
    return check


def _python() -> Check:
    return Check("extras", "ok", f"Python {platform.python_version()} on {platform.system()}")


def _programs() -> Check:
    found = {name: shutil.which(name) for name in ("bash", "git")}
    told = ", ".join(name for name, place in found.items() if place) or "none"
    check = Check("processes", "ok", f"programs found: {told}", {"programs": found})
    if found["bash"] is None:
        check.blame("warning", "without bash the shell tool cannot run", "install bash")
    return check


def _variables() -> Check:
    names = sorted(name for name in os.environ if name.startswith("SUREFOOT_"))
    return Check("settings", "ok", f"variables of surefoot set: {len(names)}", {"names": names})


def _colour() -> Check:
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    told = "colour is switched off" if plain else "colour is written on a terminal"
    return Check("terminal", "ok", told)


def _person() -> Check:
    here = sys.stdin.isatty() and sys.stderr.isatty()
    return Check("terminal", "ok", "a person can be asked here" if here else "nobody can be asked here")


def _size() -> Check:
    size = shutil.get_terminal_size((80, 24))
    check = Check("terminal", "ok", f"{size.columns} columns, {size.lines} rows")
    if size.columns < 40 or size.lines < 24:
        check.blame("warning", "a card needs 40 columns and 24 rows", "make the window larger")
    return check


# What holds -----------------------------------------------------------------------------------------


def _endpoints(settings: Settings) -> Check:
    """How many endpoints could be asked; which key is found, never the key."""
    ready = [
        name
        for name, one in settings.endpoints.items()
        if one.embedded or one.key_command or not one.key_env or os.environ.get(one.key_env)
    ]
    told = f"endpoints: {len(settings.endpoints)}, with their key: {len(ready)}"
    return Check("keys", "ok", told, {"ready": sorted(ready)})


def _journal(settings: Settings) -> Check:
    """The file format, from its first bytes; the engine is not needed for that."""
    file = settings.places.ledger_folder(Path.cwd()) / "ledger.db"
    if not file.exists():
        return Check("ledger", "ok", "not begun yet")
    with file.open("rb") as opened:
        head = opened.read(HEADER_BYTES)
    if len(head) < HEADER_BYTES:
        return Check("ledger", "ok", "not begun yet")
    check = Check("ledger", "ok", "the journal is the write-ahead log")
    if not head.startswith(MAGIC):
        # What the log holds hides it until the log is taken in.
        check.blame(
            "warning", "the ledger's file does not begin as SQLite's do", "copy the ledger's folder aside"
        )
    elif head[18] != WAL_FORMAT:
        check.blame(
            "warning",
            "another program changed the journal of this ledger",
            "surefoot ledger verify",
            measured=head[18],
            expected=WAL_FORMAT,
        )
    return check


def _log(settings: Settings) -> Check:
    file = settings.places.ledger_folder(Path.cwd()) / "ledger.db-wal"
    size = file.stat().st_size if file.exists() else 0
    check = Check("ledger", "ok", f"{size // 1024} KiB in the write-ahead log", {"bytes": size})
    if size > LARGE_LOG_BYTES:
        check.blame(
            "warning", "a reader keeps the log from being taken in", "end old readers of the ledger",
            measured=size, expected=LARGE_LOG_BYTES,
        )  # fmt: skip
    return check


def _servers(settings: Settings) -> Check:
    names = sorted(settings.mcp_servers)
    return Check(
        "mcp", "ok", f"MCP servers in the settings: {', '.join(names) or 'none'}", {"servers": names}
    )


def _owners(settings: Settings) -> Check:
    """Who holds sessions now, and whether anything stands in a future this clock has not reached."""
    from surefoot.surfaces.cli.finding import Finder

    rows, _ = reading.run(lambda: reading.rows_of(reading.places_of(settings, every=False)))
    finder = Finder(settings.places.ledger_folder(Path.cwd()), settings)
    held = [row.session_id for _, row in rows if finder.is_owned(row.owner)]
    check = Check("owners", "ok", f"{counted(len(held), 'session')} open in a living process", {"held": held})
    ahead = max((row.changed_ms for _, row in rows), default=0) - round(time.time() * 1000)
    if ahead > CLOCK_SLACK_MS:
        check.blame("warning", "the ledger is ahead of the wall clock", "set the clock", measured=ahead)
    return check


def _barrier(settings: Settings) -> Check:
    level, word = settings.recovery.barrier, settings.recovery.on_unknown
    check = Check("settings", "ok", f"barrier {level}, on_unknown {word}")
    if level in ("advise", "off"):
        check.blame(
            "warning", "no write waits for an open call", "surefoot config set recovery.barrier reach"
        )
    return check


def _hooks(settings: Settings) -> Check:
    return Check("settings", "ok", f"hooks in force: {len(settings.hooks)}")


def _instructions(settings: Settings) -> Check:
    found = read_instructions(Path.cwd(), settings.places)
    files = sorted(found.digests)
    check = Check("settings", "ok", f"instruction files read: {len(files)}", {"files": files})
    for sentence in untold(found):
        check.blame("warning", sentence, "surefoot trust" if found.left_out else "shorten them")
    return check


def _packs(settings: Settings) -> Check:
    return Check("settings", "ok", f"packs in force: {', '.join(settings.packs) or 'none'}")


def _permissions(settings: Settings) -> Check:
    said = settings.permissions
    rules = len(said.allow) + len(said.ask) + len(said.deny)
    check = Check("settings", "ok", f"permission mode {said.mode}, {counted(rules, 'rule')}")
    if said.mode == "bypassPermissions":
        check.blame(
            "warning", "everything that no deny rule names runs without a question",
            "surefoot config set permissions.mode default",
        )  # fmt: skip
    return check
