"""The parent's side of a crash test: run the child, see how it died, and do it for every seam.

Owns: starting `surefoot.testing.child`, its time limit, and what is left of it. Does not
own: what must be true afterwards.

    for number in count(1):
        first = run_child(dataclasses.replace(spec, kill_at=number), directory)
        ... start again with session="newest", judge sink, report and emulator ...
        if not first.killed:
            break
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.testing.child import ChildSpec
from surefoot.testing.faults import fault_point, read_trace
from surefoot.testing.nursery import Nursery, kill_group
from surefoot.tools.processes import kernel

MARK = "CRASH_TEST_RUN"
"""The variable by which descendants of a child are found again; commands do not get variables of ours."""
_SEAM_SECONDS = 60.0
"""How long a blow waits for its seam."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How one run of the child ended."""

    returncode: int
    seams: list[str]
    """Every seam it passed."""
    fatal: str | None
    """The seam it died at."""
    report: dict[str, Any]
    """Empty when it was killed."""
    stderr: str

    @property
    def killed(self) -> bool:
        """Whether it died by its seam."""
        return self.fatal is not None

    @property
    def point(self) -> str:
        """The fault point K0 to K7 it died at, or `other`."""
        return "none" if self.fatal is None else fault_point(self.fatal)


class ChildFailed(AssertionError):
    """The child ended in a way no fault explains."""


@dataclass(frozen=True, slots=True)
class Blow:
    """A signal from outside, whatever the child does then.

    It falls `seconds` after the child reached the seam its spec has chosen, however long the machine took to
    come there; after the start when none is chosen. It never falls on a child that ended before.
    """

    seconds: float
    number: int = signal.SIGKILL


def run_child(
    spec: ChildSpec,
    directory: Path,
    *,
    seconds: float = 60.0,
    nursery: Nursery | None = None,
    blow: Blow | None = None,
    prefix: Sequence[str] = (),
) -> Ended:
    """Run the child to its end in its own process group, which is killed afterwards whole.

    Supervised commands outlive it on purpose; call `end_leftovers(directory)` when the test is over.

    `directory` takes its spec, trace and report. With a `nursery` it is forked, without one
    started as a program. Raises `ChildFailed` when it neither died as planned nor wrote a
    report, and `subprocess.TimeoutExpired` after `seconds`. `prefix` is a command that starts it
    elsewhere (`containers`); it needs a program.
    """
    run = _number(directory)
    trace, report = directory / f"trace-{run}.txt", directory / f"report-{run}.json"
    spec = dataclasses.replace(spec, trace=str(trace), report=str(report))
    path = directory / f"spec-{run}.json"
    path.write_text(spec.to_json(), encoding="utf-8")
    errors = directory / f"stderr-{run}.txt"
    errors.touch()
    environ = {**os.environ, MARK: str(directory)}
    strike = _Strike(blow, trace if spec.kill_at is not None else None)
    if nursery is not None:
        returncode = _run_forked(nursery, path, errors, environ, seconds, strike)
    else:
        command = [*prefix, sys.executable, "-m", "surefoot.testing.child", str(path)]
        returncode = _run_started(command, errors, environ, seconds, strike)
    return _ended(returncode, trace, report, errors, spec, blow)


@dataclass(frozen=True, slots=True)
class Started:
    """A child that still runs."""

    pid: int
    trace: Path
    nursery: Nursery

    def until_seam(self, name: str, *, seconds: float = 90.0) -> None:
        """Return when the child has passed a seam. Raises `TimeoutError`."""
        until = time.monotonic() + seconds
        while name not in read_trace(self.trace)[0]:
            if time.monotonic() > until:
                raise TimeoutError(f"seam {name!r} was not passed within {seconds} s")
            time.sleep(0.005)


@contextlib.contextmanager
def start_child(spec: ChildSpec, directory: Path, nursery: Nursery) -> Iterator[Started]:
    """Fork a child and leave it running; its group is killed at the end."""
    run = _number(directory)
    trace, path = directory / f"trace-{run}.txt", directory / f"spec-{run}.json"
    spec = dataclasses.replace(spec, trace=str(trace), report=str(directory / f"report-{run}.json"))
    path.write_text(spec.to_json(), encoding="utf-8")
    errors = directory / f"stderr-{run}.txt"
    pid = nursery.start(path, errors=errors, environ={**os.environ, MARK: str(directory)})
    try:
        yield Started(pid, trace, nursery)
    finally:
        kill_group(pid)


def _number(directory: Path) -> int:
    return sum(1 for _ in directory.glob("spec-*.json"))


@dataclass(frozen=True, slots=True)
class _Strike:
    blow: Blow | None
    seam_in: Path | None
    """The trace that the chosen seam will stand in."""

    def fall(self, pid: int, has_ended: Callable[[float], bool]) -> None:
        """Send the blow; `has_ended` waits so many seconds for the child's end and tells whether it came."""
        blow, until = self.blow, time.monotonic() + _SEAM_SECONDS
        if blow is None:
            return
        while self.seam_in is not None and read_trace(self.seam_in)[1] is None:
            if has_ended(0.01) or time.monotonic() > until:
                break
        if not has_ended(blow.seconds):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, blow.number)


def _run_forked(
    nursery: Nursery, path: Path, errors: Path, environ: dict[str, str], seconds: float, strike: _Strike
) -> int:
    pid = nursery.start(path, errors=errors, environ=environ)
    try:
        strike.fall(pid, lambda wait: nursery.has_ended(pid, wait))
        return nursery.wait(pid, seconds)
    finally:
        kill_group(pid)


def _run_started(
    command: list[str], errors: Path, environ: dict[str, str], seconds: float, strike: _Strike
) -> int:
    null = subprocess.DEVNULL
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            command, stdin=null, stdout=null, stderr=stderr, start_new_session=True, env=environ
        )

        def has_ended(wait: float) -> bool:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(wait)
            return process.returncode is not None

        try:
            strike.fall(process.pid, has_ended)
            return process.wait(seconds)
        finally:
            kill_group(process.pid)
            process.wait()


def leftovers(directory: Path, *, below: bool = False) -> list[int]:
    """Living processes that descend from children run in this directory, by the mark in their environment.

    `below` counts those of the folders in it as well, and the supervisors of its run folders: these are
    given no environment of ours, and one whose records cannot be synced waits for a disk that mends.
    """
    wanted = f"{MARK}={directory}".encode()
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            variables = (place / "environ").read_bytes().split(b"\0")
            state = (place / "stat").read_bytes().rpartition(b")")[2].split()[0]
            marked = wanted in variables or (
                below and any(one.startswith(wanted + b"/") for one in variables)
            )
            if marked and state != b"Z":
                found.append(int(place.name))
    return [*supervisors(directory), *found] if below else found


def supervisors(directory: Path) -> list[int]:
    """Living supervisors whose run folders lie below a directory, by their claims.

    They are undumpable, so what they hold open only root may read.
    """
    found = []
    for place, _, names in os.walk(directory):
        if "claim" not in names or Path(place).parent.name != "processes":
            continue
        with contextlib.suppress(OSError, ValueError):
            claim = json.loads((Path(place) / "claim").read_bytes())
            stat = kernel.stat_of(int(claim.get("pid") or 0))
            ours = claim.get("pidNamespace") == kernel.pid_namespace()
            if ours and stat is not None and not stat.ended and stat.start_ticks == claim["startTicks"]:
                found.append(stat.pid)
    return found


def end_leftovers(directory: Path, *, seconds: float = 60.0, below: bool = False) -> list[int]:
    """Kill what is left of children run in this directory; gives the pids. Raises `TimeoutError`."""
    ended = leftovers(directory, below=below)
    until = time.monotonic() + seconds
    while alive := leftovers(directory, below=below):
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > until:
            raise TimeoutError(f"processes {alive} could not be ended within {seconds} s")
        time.sleep(0.01)
    return ended


def _ended(
    returncode: int, trace: Path, report: Path, errors: Path, spec: ChildSpec, blow: Blow | None
) -> Ended:
    seams, fatal = read_trace(trace)
    if spec.strike is not None and returncode != -signal.SIGKILL:
        fatal = None
    told = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    stderr = errors.read_text(encoding="utf-8", errors="replace")
    if fatal is not None and not told and returncode != -spec.signal:
        raise ChildFailed(f"the child passed its seam {fatal!r} alive ({returncode}):\n{stderr[-4000:]}")
    struck = blow is not None and returncode == -blow.number
    if fatal is None and not told and not struck:
        raise ChildFailed(f"the child ended with {returncode} and no report:\n{stderr[-4000:]}")
    if fatal is None and struck and not told:
        fatal = "outside"
    return Ended(returncode, seams, fatal, told, stderr)
