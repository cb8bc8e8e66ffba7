"""A project, a home and a scripted model server for tests of the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema

from surefoot.surfaces.cli.configs import published_schema

SUREFOOT = [sys.executable, "-c", "from surefoot.surfaces.cli import main; main()"]
SECONDS = 120.0
IDLE_START_SECONDS = 0.015
BUSY = 4
"""How many times longer than on an idle machine a thing may take before it counts as late."""
"""A bare interpreter without `site`, on an idle core."""


def check_output(text: str) -> None:
    """Every line of every run is true to the schema that ships (UX-32)."""
    validator = jsonschema.Draft202012Validator(json.loads(published_schema("output")))
    for line in text.splitlines():
        faults = [
            f"{list(one.absolute_path)}: {one.message[:300]}"
            for one in validator.iter_errors(json.loads(line))
        ]
        assert not faults, "\n".join([*faults, line[:500]])


@dataclass
class World:
    """One person's home, one project, and what their model will say."""

    home: Path
    project: Path
    servers: list[subprocess.Popen[str]] = field(default_factory=list)
    started: list[subprocess.Popen[str]] = field(default_factory=list)
    more: dict[str, str] = field(default_factory=dict)

    def model_says(self, *steps: dict[str, Any]) -> None:
        """Start a strict model server with these steps; the last of these calls counts."""
        script = self.home / f"script-{len(self.servers)}.json"
        script.write_text(json.dumps(list(steps)))
        server = subprocess.Popen(
            [sys.executable, "-m", "surefoot.testing.emulator", "--profile", "openai", "--script", str(script),
             "--until-stdin-closes"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.servers.append(server)
        assert server.stdout is not None
        self.more |= {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": server.stdout.readline().strip()}

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
        return {**kept, "HOME": str(self.home), "SUREFOOT_HOME": str(self.home / "sf"), "LANG": "C.UTF-8",
                "TERM": "xterm-256color", **self.more}  # fmt: skip

    def run(self, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run one command line to its end."""
        stdin: dict[str, Any] = {"stdin": subprocess.DEVNULL} if given is None else {"input": given}
        ended = subprocess.run(
            [*SUREFOOT, *arguments], cwd=self.project, env=self.environ, capture_output=True, text=True,
            timeout=SECONDS, check=False, **stdin,
        )  # fmt: skip
        if "--output-format" in arguments and {"json", "stream-json"} & set(arguments):
            check_output(ended.stdout)
        return ended

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start one command line; it ends with the world at the latest, also when a test gave up half way."""
        run = subprocess.Popen(
            [*SUREFOOT, *arguments], cwd=self.project, env=self.environ, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.started.append(run)
        return run

    def close(self) -> None:
        """End the servers, and the commands of killed runs, which outlive their agents by design."""
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "cwd").resolve().is_relative_to(self.home.parent):
                    os.kill(int(process.name), signal.SIGKILL)
            except (OSError, RuntimeError):
                continue  # it ended meanwhile, or is not ours to look at
        for run in self.started:
            run.kill()
            run.wait(timeout=SECONDS)
            for stream in (run.stdout, run.stderr):
                if stream is not None:
                    stream.close()
        for server in self.servers:
            server.terminate()
            server.communicate(timeout=SECONDS)


def slowness() -> float:
    """How many times longer than on an idle machine a bare interpreter takes to start just now; at least 1.

    Bounds of whole programs in seconds hold for two idle cores; multiplied by this they hold for a busy machine.
    """
    began = time.monotonic()
    for _ in range(5):
        subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)
    return max(1.0, (time.monotonic() - began) / 5 / IDLE_START_SECONDS)


def within(bound_seconds: float, took_seconds: float) -> bool:
    """Whether something kept its bound, with room for what a neighbour on the machine takes meanwhile.

    A test tells a bound that is kept from one that is not there at all; `make bench` prints the seconds.
    """
    return took_seconds <= bound_seconds * BUSY or took_seconds <= bound_seconds * BUSY * slowness()


def wait_for(condition: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Wait until a condition holds, bounded."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "the condition never held"
        time.sleep(0.02)
