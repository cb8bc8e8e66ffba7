"""The emulator in a process of its own, for tests that are not asynchronous or whose own process dies.

Owns: starting, stopping and talking to it over its control paths. Does not own: what it does.

    with EmulatorProcess(directory) as emulator:
        emulator.script(model.steps, by="history")
        run_child(emulator.base_url("compat"))
        assert emulator.requests()[0].status == 200
"""

from __future__ import annotations

import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surefoot.testing.emulator.fault_plan import FaultNotFired
from surefoot.testing.emulator.profiles import client_url
from surefoot.testing.emulator.request_log import LogEntry, entry_from_json, read_log
from surefoot.testing.loopback import ask
from surefoot.testing.sink import post

_START_SECONDS = 20.0


class EmulatorProcess:
    """A running emulator; it dies with the process that started it. Its log is `requests.jsonl`."""

    def __init__(self, directory: Path) -> None:
        self.log_path = directory / "requests.jsonl"
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> EmulatorProcess:
        command = [sys.executable, "-m", "surefoot.testing.emulator", "--log", str(self.log_path)]
        command += ["--profile", "compat", "--until-stdin-closes"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        out = self._process.stdout
        if out is None or not select.select([out], [], [], _START_SECONDS)[0]:
            self.__exit__()
            raise TimeoutError(f"the emulator did not start within {_START_SECONDS:.0f} s")
        self.url = out.readline().decode().strip().removesuffix("/compat/v1")
        return self

    def __exit__(self, *exit_: object) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def base_url(self, profile: str = "compat", *, wire: str = "chat") -> str:
        """What a client takes as its base URL; the SDKs of some wires add the version themselves."""
        return client_url(self.url, profile, wire)

    def script(self, steps: Sequence[dict[str, Any]], **settings: Any) -> None:
        """Set what the model says; `settings` are `profile`, `session`, `by`, `then`."""
        post(f"{self.url}/_ctl/script", {"steps": list(steps), **settings})

    def fault(
        self, *, match: dict[str, Any] | None = None, stage: str = "", count: int = 1, **action: Any
    ) -> None:
        """Plan a fault."""
        planned = {"match": match or {}, "stage": stage, "count": count, "action": action}
        post(f"{self.url}/_ctl/fault", planned)

    def set_knobs(self, profile: str, *, wire: str = "chat", **knobs: str | bool) -> None:
        """Choose a variant of a profile, e.g. `v4_mode="tool_turns"`."""
        post(f"{self.url}/_ctl/knobs", {"profile": profile, "wire": wire, "knobs": knobs})

    def hosted(self) -> dict[str, int]:
        """How often each kind of hosted tool really ran on the server's side."""
        return dict(self._get("hosted"))

    def release(self) -> None:
        """Let held replies go on."""
        post(f"{self.url}/_ctl/release", {})

    def requests(self) -> list[LogEntry]:
        """The requests that arrived, read from the server, or from its file when it is gone."""
        if self._process is None:
            return read_log(self.log_path)
        return [entry_from_json(item) for item in self._get("log")]

    def wait_for_requests(self, count: int, *, seconds: float = 90) -> None:
        """Return when so many requests have arrived. Raises `TimeoutError`."""
        until = time.monotonic() + seconds
        while len(self.requests()) < count:
            if time.monotonic() > until:
                raise TimeoutError(f"only {len(self.requests())} of {count} requests came in {seconds} s")
            time.sleep(0.01)

    def assert_fired(self) -> None:
        """Raise `FaultNotFired` when a planned fault never happened."""
        silent = [fault["action"] for fault in self._get("faults") if not fault["fired"]]
        if silent:
            raise FaultNotFired(f"these faults never fired: {silent!r}")

    def _get(self, name: str) -> Any:
        return ask(f"{self.url}/_ctl/{name}")
