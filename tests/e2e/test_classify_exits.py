"""Each client of the table against a far side that acts and then drops, stalls or answers 5xx (EC-57)."""

from __future__ import annotations

import contextlib
import http.server
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from shell_lines import Run, code_of

from surefoot.core.model import State
from surefoot.tools.classify.rules import load

TABLE = load("exits")["lost_reply"]
NAMES = {f"GIT_{who}_{what}": "lin" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
QUIET = {**os.environ, **NAMES, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


class Far:
    """A web server that does what it is asked, counts it, and then answers as `way` says."""

    def __init__(self) -> None:
        self.way = "drop"
        self.acted = 0
        self.repositories = ""
        self.over = threading.Event()
        far = self

        class Asked(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def __getattr__(self, name: str) -> Any:
                if name.startswith("do_"):
                    return lambda: far.answer(self)
                raise AttributeError(name)

            def log_message(self, format: str, *args: Any) -> None:
                del format, args

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Asked)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, asked: Any) -> None:
        body = asked.rfile.read(int(asked.headers.get("Content-Length") or 0))
        kind, reply = self._act(asked, body)
        if asked.command == "GET":
            self._say(asked, 200, kind, reply, len(reply))
            return
        self.acted += 1
        if self.way == "stall":
            self.over.wait(120)
        if self.way == "half":
            self._say(asked, 200, kind, reply[: len(reply) // 2], len(reply))
        if self.way == "5xx":
            self._say(asked, 503, kind, b"", 0)
            return
        if self.way == "reset":
            asked.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            asked.connection.close()
        else:
            with contextlib.suppress(OSError):
                asked.connection.shutdown(socket.SHUT_RDWR)
        asked.close_connection = True

    def _act(self, asked: Any, body: bytes) -> tuple[str, bytes]:
        if not self.repositories:
            return "text/plain", b"done, and this is the whole reply"
        path, _, query = asked.path.partition("?")
        given = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": self.repositories, "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": asked.command, "REMOTE_USER": "lin",
            "CONTENT_TYPE": asked.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
        }  # fmt: skip
        done = subprocess.run(["git", "http-backend"], env=given, input=body, capture_output=True, check=True)
        head, _, reply = done.stdout.partition(b"\r\n\r\n")
        kinds = [line for line in head.decode().splitlines() if line.lower().startswith("content-type:")]
        return kinds[0].partition(":")[2].strip(), reply

    @staticmethod
    def _say(asked: Any, status: int, kind: str, reply: bytes, length: int) -> None:
        asked.send_response(status)
        asked.send_header("Content-Type", kind)
        asked.send_header("Content-Length", str(length))
        asked.end_headers()
        asked.wfile.write(reply)
        asked.wfile.flush()

    def close(self) -> None:
        self.over.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def far() -> Iterator[Far]:
    made = Far()
    yield made
    made.close()


WEB = [
    ("curl", "curl -sS -m 60 -d a=1 {0}/x", "drop", 52),
    ("curl", "curl -sS -m 60 -d a=1 {0}/x", "reset", 56),
    ("curl", "curl -sS -m 60 -d a=1 {0}/x", "half", 18),
    ("curl", "curl -sS -m 1 -d a=1 {0}/x", "stall", 28),
    ("curl", "curl -fsS -m 60 -d a=1 {0}/x", "5xx", 22),
    ("curl", "curl -fsS -m 60 -X DELETE {0}/x", "5xx", 22),
    ("wget", "wget -q -t 1 -T 60 --post-data=a -O /dev/null {0}/x", "drop", 4),
    ("wget", "wget -q -t 1 -T 60 --post-data=a -O /dev/null {0}/x", "reset", 4),
    ("wget", "wget -q -t 1 -T 60 --post-data=a -O /dev/null {0}/x", "half", 4),
    ("wget", "wget -q -t 1 -T 1 --post-data=a -O /dev/null {0}/x", "stall", 4),
    ("wget", "wget -q -t 1 -T 60 --post-data=a -O /dev/null {0}/x", "5xx", 8),
]


@pytest.mark.parametrize(
    ("client", "line", "way", "code"), [row for row in WEB if shutil.which(row[0]) is not None]
)
async def test_ec_57_a_request_whose_reply_is_lost_is_unknown(
    run: Run, far: Far, client: str, line: str, way: str, code: int
) -> None:
    far.way = way
    outcome = await run(line.format(far.address))
    while way == "stall" and not far.acted:  # the client's one second was over before it was heard
        outcome = await run(line.format(far.address))
    assert far.acted
    assert code_of(outcome) == code and code in TABLE[client]
    assert (outcome.state, outcome.reason) == (State.UNKNOWN, "connection_lost")


async def test_ec_57_a_connection_refused_is_no_lost_reply(run: Run) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        outcome = await run(f"curl -sS -d a=1 http://127.0.0.1:{closed.getsockname()[1]}/x")
    assert (code_of(outcome), outcome.state) == (7, State.FAILED)


@pytest.fixture
def pushing(far: Far, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Far:
    """A repository in the working directory with one commit to push to the far side."""
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    work, bare = tmp_path / "work", tmp_path / "far" / "r.git"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True, env=QUIET)
    subprocess.run(["git", "-C", str(bare), "config", "http.receivepack", "true"], check=True, env=QUIET)
    far.repositories = str(bare.parent)
    (work / "a").write_text("x")
    for words in (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        ["commit", "-q", "-m", "x"],
        ["remote", "add", "origin", f"{far.address}/r.git"],
    ):
        subprocess.run(["git", *words], cwd=work, check=True, env=QUIET)
    return far


def heads(far: Far) -> str:
    bare = f"{far.repositories}/r.git"
    return subprocess.run(
        ["git", "-C", bare, "for-each-ref"], check=True, env=QUIET, capture_output=True, text=True
    ).stdout


def be_impatient(work: Path) -> None:
    """Let pushes from here give up after a second in which nothing came."""
    with open(work / ".git" / "config", "a") as settings:
        settings.write("[http]\n\tlowSpeedLimit = 100\n\tlowSpeedTime = 1\n")


@pytest.mark.parametrize("way", ["drop", "reset", "half", "5xx", "stall"])
async def test_ec_57_a_push_over_http_whose_reply_is_lost_is_unknown(
    run: Run, pushing: Far, tmp_path: Path, way: str
) -> None:
    """Its code is that of a refused push, so that its words are asked too."""
    pushing.way = way
    if way == "stall":
        be_impatient(tmp_path / "work")
    outcome = await run("git push origin main")
    while way == "stall" and not heads(pushing):  # the client's one second was over before it had asked
        outcome = await run("git push origin main")
    assert "refs/heads/main" in heads(pushing)
    assert (outcome.state, outcome.reason) == (State.UNKNOWN, "connection_lost")


_CUT = """#!/usr/bin/env python3
import os, subprocess, sys
far = subprocess.Popen(["git", "receive-pack", *sys.argv[1:]], stdout=subprocess.PIPE)
while True:
    size = far.stdout.read(4)
    os.write(1, size + (far.stdout.read(int(size, 16) - 4) if size != b"0000" else b""))
    if size == b"0000":
        break
far.stdout.read()
"""


async def test_ec_57_a_push_whose_far_side_takes_it_and_goes_away_is_unknown(
    run: Run, pushing: Far, plain: Path
) -> None:
    cut = plain / "cut"
    cut.write_text(_CUT)
    cut.chmod(0o755)
    outcome = await run(f"git push --receive-pack={cut} '{pushing.repositories}/r.git' main")
    assert "refs/heads/main" in heads(pushing)
    assert (outcome.state, outcome.reason) == (State.UNKNOWN, "connection_lost")


async def test_ec_57_a_push_that_finds_no_far_side_ends_with_the_code_of_the_table(
    run: Run, pushing: Far
) -> None:
    outcome = await run("git push ./nowhere main")
    assert code_of(outcome) in TABLE["git"]
    assert outcome.state is State.UNKNOWN


def push_first(bare: str, other: Path) -> None:
    """Let somebody else push a commit that ours does not follow."""
    subprocess.run(["git", "clone", "-q", bare, str(other)], check=True, env=QUIET, capture_output=True)
    for words in (["commit", "-q", "--allow-empty", "-m", "first"], ["push", "-q", bare, "HEAD:main"]):
        subprocess.run(["git", *words], cwd=other, check=True, env=QUIET, capture_output=True)


async def test_ec_57_a_push_that_was_refused_has_failed(run: Run, pushing: Far, tmp_path: Path) -> None:
    bare = f"{pushing.repositories}/r.git"
    push_first(bare, tmp_path / "other")
    outcome = await run(f"git push {bare} main")
    assert (code_of(outcome), outcome.state) == (1, State.FAILED)


@pytest.mark.parametrize("client", sorted(TABLE))
async def test_ec_57_every_code_of_the_table_ends_its_call_as_unknown(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    """A stand-in of the client's name ends with each code: the whole table passes through the tool."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / client).write_text('#!/bin/sh\nexit "$(cat code)"\n')
    (folder / client).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    words = {"git": "push origin main", "curl": "-d a http://h.example", "psql": "-c 'delete from t'"}
    for code in TABLE[client]:
        (tmp_path / "work" / "code").write_text(str(code))
        outcome = await run(f"{client} {words.get(client, 'a b')}")
        assert (code_of(outcome), outcome.state, outcome.reason) == (code, State.UNKNOWN, "connection_lost")
