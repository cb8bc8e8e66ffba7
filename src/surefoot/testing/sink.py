"""The counting sink: a process of its own that makes each effect durable and counts it.

Owns: the file of effects (append and sync before anything is answered), and the
switches by which a far side may behave well or badly. Does not own: what a test
concludes. Standard library only.

    with Sink(directory) as sink:
        sink.switch(reply="drop")          # commits, then drops the line
        ...
        assert sink.count() == 1

As a program: `python -m surefoot.testing.sink --port 0 --file F` prints its URL first.
`POST /effect` with `{"label", "key", "note"}` makes one effect.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import select
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from surefoot.testing.loopback import NO_PROXY, ask

SWITCHES: dict[str, tuple[Any, ...]] = {
    "keys": ("ignore", "honour", "refuse_after_failure"),
    "commit": ("now", "hold", "late"),
    "reply": ("now", "hold", "drop"),
    "cancel": ("ignore", "obey"),
    "look_up": (True, False),
    "list": ("whole", "behind"),
    "page": (0, 1, 2, 3),
    "items": ("shown", "masked"),
}
"""The first word of each is the default. `commit="hold"` waits for `release` before the effect,
`"late"` answers at once and makes the effect on `release`; `reply="hold"` waits after the effect.
`list="behind"` is a look-up that does not know the effects yet, `page` its effects per page (0: all in one),
`items="masked"` a far side that answers 404 for what a caller may not see."""
_WAIT_SECONDS = 60.0


def append_effect(path: Path, label: str, *, key: str | None = None, note: str = "") -> None:
    """Make one effect in this process: append a line, synced before this returns."""
    line = json.dumps({"label": label, "key": key, "note": note, "pid": os.getpid()}) + "\n"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(handle, line.encode())
        os.fsync(handle)
    finally:
        os.close(handle)


def read_effects(path: Path) -> list[dict[str, Any]]:
    """Every effect in the file, oldest first."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class _World:
    """The state of one sink: switches, keys, held requests."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.switches: dict[str, Any] = {name: words[0] for name, words in SWITCHES.items()}
        self.fail = 0
        """So many of the next requests answer 500 before any effect."""
        self.lock = threading.Lock()
        self.freed = threading.Condition(self.lock)
        self.generation = 0
        self.waiting = 0
        self.requests = 0
        self.done_keys: dict[str, int] = {}
        self.failed_keys: set[str] = set()

    def commit(self, asked: dict[str, Any]) -> None:
        """Make the effect; the caller holds the lock."""
        key = asked.get("key")
        append_effect(self.path, str(asked.get("label", "")), key=key, note=str(asked.get("note", "")))
        if key:
            self.done_keys[str(key)] = len(read_effects(self.path))

    def wait_for_release(self) -> None:
        """Wait until `release`; the caller holds the lock."""
        generation = self.generation
        self.waiting += 1
        self.freed.notify_all()
        self.freed.wait_for(lambda: self.generation != generation, timeout=_WAIT_SECONDS)
        self.waiting -= 1

    def set(self, given: dict[str, Any]) -> None:
        """Turn switches. Raises ValueError for a word that is none."""
        for name, word in given.items():
            if name == "fail":
                self.fail = int(word)
            elif name not in SWITCHES or word not in SWITCHES[name]:
                raise ValueError(f"{name}={word!r} is no switch; choose from {SWITCHES!r} or fail=n")
            else:
                self.switches[name] = word


class _Door(BaseHTTPRequestHandler):
    """One connection of the sink."""

    protocol_version = "HTTP/1.1"
    world: _World

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing on standard error."""

    def do_GET(self) -> None:
        """`/effects` (the look-up list, `?key=…&page=…`), `/item/NAME`, `/keys?key=…`, `/count`, `/state`."""
        world = self.world
        path, _, query = self.path.partition("?")
        asked = dict(urllib.parse.parse_qsl(query))
        if path == "/effects" and not world.switches["look_up"]:
            self._answer(404, {"error": "this sink has no list"})
        elif path == "/effects":
            self._list(asked)
        elif path.startswith("/item/"):
            self._item(path.removeprefix("/"))
        elif path == "/keys":
            refuses = world.switches["keys"] == "refuse_after_failure"
            self._answer(200, {"refused": refuses and asked.get("key") in world.failed_keys})
        elif path == "/count":
            self._answer(200, {"count": len(read_effects(world.path))})
        elif path == "/state":
            self._answer(
                200,
                {"pid": os.getpid(), "waiting": world.waiting, "requests": world.requests, **world.switches},
            )
        else:
            self._answer(404, {"error": "no such path"})

    def _list(self, asked: dict[str, str]) -> None:
        """One page of the effects, with a link to the next one."""
        world = self.world
        behind = world.switches["list"] == "behind"
        effects = [] if behind else read_effects(world.path)
        found = [e for e in effects if "key" not in asked or e["key"] == asked["key"]]
        size, page = int(world.switches["page"]), int(asked.get("page", 0))
        if not size:
            self._answer(200, found)
            return
        more = len(found) > (page + 1) * size
        query = urllib.parse.urlencode({**asked, "page": page + 1})
        link = {"link": f'</effects?{query}>; rel="next"'} if more else {}
        self._answer(200, found[page * size : (page + 1) * size], link)

    def _item(self, label: str) -> None:
        """The newest content put under a name; 404 when there is none, or it is masked."""
        found = [e["note"] for e in read_effects(self.world.path) if e["label"] == label]
        if not found or self.world.switches["items"] == "masked":
            self._answer(404, {"error": "no such item"})
        else:
            self._answer(200, json.loads(found[-1]))

    def do_PUT(self) -> None:
        """`/item/NAME` with JSON: one effect under that name."""
        content = self.rfile.read(int(self.headers.get("content-length") or 0))
        self._effect({"label": self.path.removeprefix("/"), "note": content.decode()})

    def do_POST(self) -> None:
        """`/effect`, `/switch`, `/release`, `/hold`, `/expire_keys`."""
        length = int(self.headers.get("content-length") or 0)
        try:
            given = json.loads(self.rfile.read(length) or b"{}")
            self._command(given if isinstance(given, dict) else {})
        except ValueError as error:
            self._answer(400, {"error": str(error)})

    def _command(self, given: dict[str, Any]) -> None:
        world = self.world
        if self.path == "/effect":
            self._effect(given)
            return
        with world.lock:
            if self.path == "/switch":
                world.set(given)
            elif self.path == "/hold":
                world.set({"reply": "hold"})
            elif self.path == "/release":
                world.generation += 1
                world.freed.notify_all()
            elif self.path == "/expire_keys":
                world.done_keys.clear()
            else:
                raise ValueError(f"no path {self.path!r}")
        self._answer(200, {"ok": True})

    def _effect(self, asked: dict[str, Any]) -> None:
        world = self.world
        asked.setdefault("key", self.headers.get("idempotency-key"))
        with world.lock:
            world.requests += 1
            refused = self._refusal(asked)
            if refused is None:
                refused = self._make(asked)
            dropped = refused is None and world.switches["reply"] == "drop"
            if refused is None and world.switches["reply"] == "hold":
                world.wait_for_release()
        if dropped:
            self._drop()
        elif refused is not None:
            self._answer(*refused)
        else:
            self._answer(200, {"ok": True, "label": asked.get("label")})

    def _refusal(self, asked: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        """What is answered instead of an effect; the lock is held."""
        world, key = self.world, str(asked.get("key") or "")
        mode = world.switches["keys"]
        if mode == "refuse_after_failure" and key in world.failed_keys:
            return 409, {"error": "this key failed before and is refused"}
        if mode != "ignore" and key and key in world.done_keys:
            return 200, {"ok": True, "replayed": True, "label": asked.get("label")}
        if world.fail > 0:
            world.fail -= 1
            world.failed_keys.add(key)
            return 500, {"error": "the sink failed before any effect"}
        return None

    def _make(self, asked: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        world = self.world
        if world.switches["commit"] == "late":
            threading.Thread(target=self._later, args=(asked,), daemon=True).start()
            return 202, {"ok": True, "queued": True}
        if world.switches["commit"] == "hold":
            world.wait_for_release()
        if world.switches["cancel"] == "obey" and self._client_gone():
            return 499, {"error": "cancelled before any effect"}
        world.commit(asked)
        return None

    def _later(self, asked: dict[str, Any]) -> None:
        with self.world.lock:
            self.world.wait_for_release()
            self.world.commit(asked)

    def _client_gone(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""

    def _drop(self) -> None:
        """Close the line without a word."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _answer(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
        content = json.dumps(value).encode()
        try:
            self.send_response(status)
            for name, text in (headers or {}).items():
                self.send_header(name, text)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        except OSError:
            self.close_connection = True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no fault of the sink."""


class Sink:
    """A sink process for a test. It dies with the process that started it.

    `directory` holds its file, `effects.jsonl`.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / "effects.jsonl"
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Sink:
        command = [sys.executable, "-m", "surefoot.testing.sink", "--port", "0", "--file", str(self.path)]
        command.append("--until-stdin-closes")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self._process.stdout is None or not select.select([self._process.stdout], [], [], 15)[0]:
            self.__exit__()
            raise TimeoutError("the sink did not start within 15 s")
        self.url = self._process.stdout.readline().decode().strip()
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

    def effects(self, label: str | None = None) -> list[dict[str, Any]]:
        """Every durable effect, read from the file and not from the process."""
        return [e for e in read_effects(self.path) if label is None or e["label"] == label]

    def count(self, label: str | None = None) -> int:
        """How many effects there are."""
        return len(self.effects(label))

    def switch(self, **words: Any) -> None:
        """Turn switches (`SWITCHES`), or `fail=n`."""
        post(self.url + "/switch", words)

    def release(self) -> None:
        """Let held requests go on, and late effects happen."""
        post(self.url + "/release", {})

    def expire_keys(self) -> None:
        """Forget every key seen so far."""
        post(self.url + "/expire_keys", {})

    def state(self) -> dict[str, Any]:
        """`waiting` (requests held now), `requests` (seen so far), `pid` and the switches."""
        return dict(ask(self.url + "/state"))


def post(
    url: str, value: dict[str, Any], *, seconds: float = 30.0, sent: Callable[[], object] = lambda: None
) -> dict[str, Any]:
    """Post JSON and read the JSON answer; an error status raises `urllib.error.HTTPError`.

    `sent` is called once the request has been written, before any answer is awaited.
    """

    class Line(http.client.HTTPConnection):
        def getresponse(self) -> http.client.HTTPResponse:
            sent()
            return super().getresponse()

    class Opens(urllib.request.HTTPHandler):
        def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Line, request)

    request = urllib.request.Request(url, json.dumps(value).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.build_opener(Opens, NO_PROXY).open(request, timeout=seconds) as reply:
            return dict(json.load(reply))
    except urllib.error.HTTPError as error:
        error.close()
        raise


def main(arguments: list[str] | None = None) -> int:
    """Run the sink until it is killed or its parent is gone."""
    parser = argparse.ArgumentParser(prog="python -m surefoot.testing.sink")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--until-stdin-closes", action="store_true")
    options = parser.parse_args(arguments)
    door = type("Door", (_Door,), {"world": _World(options.file)})
    with _Server(("127.0.0.1", options.port), door) as server:
        print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
        if options.until_stdin_closes:
            threading.Thread(target=_until_stdin_closes, args=(server,), daemon=True).start()
        try:
            server.serve_forever(poll_interval=0.05)
        except KeyboardInterrupt:
            return 0
    return 0


def _until_stdin_closes(server: ThreadingHTTPServer) -> None:
    while os.read(0, 4096):
        pass
    server.shutdown()


if __name__ == "__main__":
    sys.exit(main())
