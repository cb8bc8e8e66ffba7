"""What a stop leaves running unseen: `python -m surefoot.testing.orphans --runs 1000 [--seed 7]` (`make orphans`).

Owns: commands that try to get away from their agent, one run of them (start, end the agent, wait
two seconds, compare what lives with what is listed), and the count. Does not own: who is killed when (`kills`
judges effects), how processes are found and listed (`tools.processes`).

Everything is done from outside: the real command line, its signals, and `surefoot recover list --json`.
A living process is named when its pid stands in the list, or when it belongs to a listed background command.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.testing.crash import supervisors
from surefoot.testing.emulator.process import EmulatorProcess
from surefoot.tools.processes import kernel

SUREFOOT = (sys.executable, "-c", "from surefoot.surfaces.cli import main; main()")
AFTER_SECONDS = 2.0
"""How long after the stop the processes are looked for (UX-146)."""
MOST_DELAY_SECONDS = 1.2
LINGER_SECONDS = 97
"""What the commands sleep for; long past the end of any run."""
BOUND_SECONDS = 90.0

_PYTHON = f'exec "{sys.executable}" -I -S -c'
_TWICE = (
    "import os,time\n"
    "if os.fork(): time.sleep({n})\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "os.chdir('/'); os.closerange(0, 64)\n"
    "time.sleep({n})"
)
_MOVING = (
    "import os,time,signal\n"
    "for s in (1,2,15): signal.signal(s, signal.SIG_IGN)\n"
    "end=time.time()+{n}\n"
    "while time.time()<end:\n"
    "  time.sleep(0.02)\n"
    "  if os.fork(): os._exit(0)\n"
    "  os.setsid()"
)
_TERMINAL = "import pty,sys\npty.spawn(['sh','-c','trap : HUP INT; sleep {n} & sleep {n}'])"

COMMANDS: Mapping[str, str] = {
    "plain": "sleep {n}",
    "child beside": "sleep {n} & sleep {n}",
    "left behind": "sleep {n} & echo done",
    "without hangup": "nohup sleep {n} >/dev/null 2>&1 & sleep {n}",
    "session of its own": "setsid sleep {n} >/dev/null 2>&1 & sleep {n}",
    "session left behind": "(setsid sh -c 'sleep {n} & sleep {n}' >/dev/null 2>&1 &); echo done",
    "deaf": "trap '' INT TERM HUP; sleep {n}; sleep {n}",
    "answers by starting more": "trap 'sleep {n} & sleep {n} &' INT TERM; while :; do sleep 0.1; done",
    "without variables": "env -i setsid sleep {n} >/dev/null 2>&1 & sleep {n}",
    "stopped": "sleep {n} & kill -STOP $!; kill -STOP $$; sleep {n}",
    "forked twice": f'{_PYTHON} "{_TWICE}"',
    "on the move": f'{_PYTHON} "{_MOVING}"',
    "in a terminal": f'{_PYTHON} "{_TERMINAL}"',
    "flood": "yes & sleep {n}",
}
"""Shell scripts by name; `{n}` is how many seconds they stay."""
ENDINGS = {
    "stop": signal.SIGINT,
    "terminate": signal.SIGTERM,
    "hang up": signal.SIGHUP,
    "kill": signal.SIGKILL,
}


@dataclass(frozen=True, slots=True)
class Escape:
    """One run as it was chosen."""

    command: str
    background: bool
    ending: str
    whole_group: bool
    """The signal goes to the agent's process group, as a terminal and a service send it."""
    delay_seconds: float
    """From the moment the command is seen to live."""


@dataclass(slots=True)
class Found:
    """What one run left two seconds after its end."""

    left: int = 0
    unnamed: list[str] = field(default_factory=list)
    problem: str | None = None


class Place:
    """One project and one home, and how the command line is run there."""

    def __init__(self, root: Path, url: str) -> None:
        self.root = root
        self.project = root / "project"
        self.home = root / "home"
        self.project.mkdir(parents=True)
        self.home.mkdir()
        kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
        ours = {"HOME": str(self.home), "SUREFOOT_HOME": str(self.home / "sf"), "LANG": "C.UTF-8"}
        self.environ = {**kept, **ours, "OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": url}

    @contextlib.contextmanager
    def agent(self) -> Iterator[subprocess.Popen[bytes]]:
        """A print run in a process group of its own; it is gone at the end."""
        with (self.root / "stderr.txt").open("wb") as errors:
            run = subprocess.Popen(
                [*SUREFOOT, "-p", "go", "--yolo"], cwd=self.project, env=self.environ, process_group=0,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
            )  # fmt: skip
        try:
            yield run
        finally:
            run.kill()
            run.wait()

    def listed(self) -> dict[str, Any]:
        """What `surefoot recover list --json` says here. Raises `ValueError` when it says nothing."""
        done = subprocess.run(
            [*SUREFOOT, "recover", "list", "--json"], cwd=self.project, env=self.environ,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=BOUND_SECONDS, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise ValueError(f"the list ended with {done.returncode}: {done.stderr.decode()[:300]}")
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def living(self, agent: int) -> dict[int, kernel.Stat]:
        """Every living process of this place's command, wherever it went; agents and supervisors are none."""
        above = {agent, *supervisors(self.home)}
        family = {stat.pid for pid in above for stat in kernel.descendants(pid)}
        found = {}
        for stat in kernel.all_stats():
            if stat.ended or stat.pid in above or not (stat.pid in family or self._is_ours(stat.pid)):
                continue
            if not _is_of_the_runtime(stat.pid):
                found[stat.pid] = stat
        return found

    def _is_ours(self, pid: int) -> bool:
        """By directory or command line; a process without any of ours is found below its supervisor."""
        with contextlib.suppress(OSError):
            if (Path("/proc") / str(pid) / "cwd").resolve().is_relative_to(self.project):
                return True
        with contextlib.suppress(OSError):
            return str(self.root).encode() in (Path("/proc") / str(pid) / "cmdline").read_bytes()
        return False

    def end(self, agent: int) -> None:
        """Kill what is left, supervisors last, so that nothing gets away. Raises `TimeoutError`."""
        until = time.monotonic() + BOUND_SECONDS
        while left := [*self.living(agent), *supervisors(self.home)]:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > until:
                raise TimeoutError(f"processes {left} could not be ended")
            time.sleep(0.01)


def _is_of_the_runtime(pid: int) -> bool:
    """Agents, warm servers and supervisors: no process of a command."""
    try:
        words = (Path("/proc") / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return True
    return any(
        word.startswith((b"from surefoot", b"import surefoot", b"import sys; ")) for word in words
    ) or (words[-2:-1] in ([b"warm"], [b"cold"]))


def named(listing: Mapping[str, Any], processes: Path) -> set[int]:
    """The pids that a list names, those below a listed background command included."""
    pids = {pid for one in listing.get("survivors", ()) for pid in one["pids"]}
    for one in listing["background"]:
        claim = json.loads((processes / one["attemptId"] / "claim").read_bytes())
        pids |= {one["pid"], *(stat.pid for stat in kernel.descendants(claim["pid"]))}
    return pids


def try_once(place: Place, escape: Escape, *, after_seconds: float = AFTER_SECONDS) -> Found:
    """Start, end the agent, wait, and compare. The place is empty of processes afterwards."""
    found = Found()
    with place.agent() as agent:
        try:
            _until_lives(place, agent)
            time.sleep(escape.delay_seconds)
            number = ENDINGS[escape.ending]
            with contextlib.suppress(ProcessLookupError):
                os.killpg(agent.pid, number) if escape.whole_group else os.kill(agent.pid, number)
            time.sleep(after_seconds)
            before = place.living(agent.pid)
            found.left = len(before)
            if before:
                compare(place, before, agent.pid, found)
        except (ValueError, TimeoutError, OSError) as error:
            found.problem = f"{type(error).__name__}: {error}"
        finally:
            agent.kill()
            agent.wait()
            place.end(agent.pid)
    return found


def _until_lives(place: Place, agent: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + BOUND_SECONDS
    while not (place.project / "begun").exists():
        if time.monotonic() > until or agent.poll() is not None:
            told = (place.root / "stderr.txt").read_text(errors="replace")
            raise TimeoutError(f"the command never began: {told[:500]}")
        time.sleep(0.01)


def compare(place: Place, before: Mapping[int, kernel.Stat], agent: int, found: Found) -> None:
    """Hold the list against what lives before and after it was made; a moving target is judged by its command."""
    (processes,) = place.home.glob("**/processes")
    listing = place.listed()
    pids = named(listing, processes)
    after = place.living(agent)
    missing = [stat for pid, stat in after.items() if pid in before and pid not in pids]
    if not pids and after and not missing:
        missing = list(after.values())  # every process was followed by another one, and none was listed
    found.unnamed = [f"{stat.pid} {_words(stat.pid)}" for stat in missing]
    if found.unnamed:
        (place.root / "listing.json").write_text(json.dumps(listing, indent=1))


def _words(pid: int) -> str:
    with contextlib.suppress(OSError):
        raw = (Path("/proc") / str(pid) / "cmdline").read_bytes()
        return raw.replace(b"\0", b" ").decode(errors="replace").strip()[:80]
    return "?"


def script_of(escape: Escape) -> list[dict[str, Any]]:
    """What the model says: one shell call, then a word."""
    text = "touch begun; " + COMMANDS[escape.command].format(n=LINGER_SECONDS)
    arguments: dict[str, Any] = {"command": text}
    if escape.background:
        arguments["background"] = True
    return [{"calls": [{"name": "shell", "args": arguments}]}, {"text": "All done."}]


def choose(chance: random.Random) -> Escape:
    """A random run."""
    return Escape(
        command=chance.choice(sorted(COMMANDS)),
        background=chance.random() < 0.2,
        ending=chance.choice(("stop", "stop", "terminate", "terminate", "hang up", "kill")),
        whole_group=chance.random() < 0.3,
        delay_seconds=chance.choice((0.0, chance.uniform(0, MOST_DELAY_SECONDS))),
    )


@dataclass(slots=True)
class Totals:
    """Counts of all runs so far."""

    runs: int = 0
    left: int = 0
    unnamed: int = 0
    problems: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    def take(self, escape: Escape, found: Found) -> None:
        """Add one run."""
        self.runs += 1
        self.left += found.left
        self.unnamed += len(found.unnamed)
        self.problems += found.problem is not None
        self.kinds[escape.ending] += found.left > 0

    def line(self, seed: int) -> str:
        """The last line of the program."""
        kinds = ", ".join(f"{name} {self.kinds[name]}" for name in ENDINGS)
        return (
            f"runs {self.runs} · with processes left after {AFTER_SECONDS:.0f} s: {kinds} · "
            f"processes left {self.left} · named by no list {self.unnamed} · "
            f"runs without an answer {self.problems} · seed {seed}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until the wanted number is reached; 0 when every process that was left was named."""
    parser = argparse.ArgumentParser(prog="python -m surefoot.testing.orphans")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args(arguments)
    seed = random.SystemRandom().randint(1, 10**9) if options.seed is None else options.seed
    chance = random.Random(seed)
    totals = Totals()
    folder = Path(tempfile.mkdtemp(prefix="surefoot-orphans-"))
    with EmulatorProcess(folder) as emulator:
        for number in range(options.runs):
            escape = choose(chance)
            emulator.script(script_of(escape), by="history")
            place = Place(folder / str(number), emulator.base_url("compat"))
            found = try_once(place, escape)
            totals.take(escape, found)
            for sentence in [*found.unnamed, *([found.problem] if found.problem else [])]:
                print(f"{escape}: {sentence} (kept: {place.root})", flush=True)
            if not found.unnamed and found.problem is None:
                shutil.rmtree(place.root)
            if (number + 1) % 50 == 0:
                print(f"… {totals.line(seed)}", flush=True)
    if not totals.unnamed and not totals.problems:
        shutil.rmtree(folder)
    print(totals.line(seed))
    return 1 if totals.unnamed or totals.problems else 0


if __name__ == "__main__":
    sys.exit(main())
