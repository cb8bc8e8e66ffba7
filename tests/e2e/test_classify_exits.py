"""Each client of the table against a far side that acts and then drops, stalls or answers 5xx (EC-57)."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import os
import shutil
import socket
import struct
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.model import Receipt, State
from surefoot.runtime.tools import LiveAttempt, Outcome, Place
from surefoot.tools.classify.rules import load
from surefoot.tools.processes.client import ProcessServer
from surefoot.tools.shell import shell_tool

TABLE = load("exits")["lost_reply"]
NAMES = {f"GIT_{who}_{what}": "lin" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
QUIET = {**os.environ, **NAMES, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


class Limits:
    stop_term_seconds = 1.0
    stop_kill_seconds = 5.0
    stop_kill_check_seconds = 1.0
    background_probe_seconds = 0.3
    log_wait_ms = 200
    process_log_bytes = 1 << 20


Run = Callable[[str], Any]


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    """Runs one line through the shell tool, with nothing of it replaced."""
    server = ProcessServer(tmp_path / "processes", Limits())
    work = tmp_path / "work"
    work.mkdir()
    place, tool, count = Place(work, (work,)), shell_tool(), iter(range(99))

    async def note(keys: Any) -> None:
        del keys

    async def through(command: str) -> Outcome:
        arguments = {"command": command}
        effect = tool.effect(arguments, place) if callable(tool.effect) else tool.effect
        attempt = f"att_e{next(count)}"
        receipt = Receipt("ses_1", "trn_1", "cal_1", attempt, 0, effect_class=effect.effect_class, epoch=1)
        services: dict[str, Any] = {"processes": server}
        assert tool.prepare is not None and tool.body is not None
        prepared = await tool.prepare(arguments, place, receipt, services)
        live = LiveAttempt(
            session_id="ses_1", turn_id="trn_1", call_id="cal_1", attempt_id=attempt, idempotency_key="sf1-k",
            deadline_boot_ms=None, place=place, prepared=prepared.value, note=note,
            late=lambda outcome, source: None, progress=lambda text: None, services=services,
        )  # fmt: skip
        outcome = await asyncio.wait_for(tool.body(live, arguments), 30)
        assert isinstance(outcome, Outcome)
        return outcome

    yield through
    await server.close()


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
            self.over.wait(20)
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


def code_of(outcome: Outcome) -> int:
    return int(outcome.text.rpartition("[exit code ")[2].rstrip("]"))


WEB = [
    ("curl", "curl -sS -m 1 -d a=1 {0}/x", "drop", 52),
    ("curl", "curl -sS -m 1 -d a=1 {0}/x", "reset", 56),
    ("curl", "curl -sS -m 1 -d a=1 {0}/x", "half", 18),
    ("curl", "curl -sS -m 1 -d a=1 {0}/x", "stall", 28),
    ("curl", "curl -fsS -m 1 -d a=1 {0}/x", "5xx", 22),
    ("curl", "curl -fsS -m 1 -X DELETE {0}/x", "5xx", 22),
    ("wget", "wget -q -t 1 -T 1 --post-data=a -O /dev/null {0}/x", "drop", 4),
    ("wget", "wget -q -t 1 -T 1 --post-data=a -O /dev/null {0}/x", "reset", 4),
    ("wget", "wget -q -t 1 -T 1 --post-data=a -O /dev/null {0}/x", "half", 4),
    ("wget", "wget -q -t 1 -T 1 --post-data=a -O /dev/null {0}/x", "stall", 4),
    ("wget", "wget -q -t 1 -T 1 --post-data=a -O /dev/null {0}/x", "5xx", 8),
]


@pytest.mark.parametrize(
    ("client", "line", "way", "code"), [row for row in WEB if shutil.which(row[0]) is not None]
)
async def test_ec_57_a_request_whose_reply_is_lost_is_unknown(
    run: Run, far: Far, client: str, line: str, way: str, code: int
) -> None:
    far.way = way
    outcome = await run(line.format(far.address))
    assert far.acted == 1
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
        ["config", "http.lowSpeedLimit", "100"],
        ["config", "http.lowSpeedTime", "1"],
    ):
        subprocess.run(["git", *words], cwd=work, check=True, env=QUIET)
    return far


def heads(far: Far) -> str:
    bare = f"{far.repositories}/r.git"
    return subprocess.run(
        ["git", "-C", bare, "for-each-ref"], check=True, env=QUIET, capture_output=True, text=True
    ).stdout


@pytest.mark.parametrize("way", ["drop", "reset", "half", "5xx", "stall"])
async def test_ec_57_a_push_over_http_whose_reply_is_lost_is_unknown(
    run: Run, pushing: Far, way: str
) -> None:
    """Its code is that of a refused push, so that its words are asked too."""
    pushing.way = way
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
    run: Run, pushing: Far, tmp_path: Path
) -> None:
    cut = tmp_path / "cut"
    cut.write_text(_CUT)
    cut.chmod(0o755)
    outcome = await run(f"git push --receive-pack={cut} {pushing.repositories}/r.git main")
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


class Listener:
    """Accepts one connection after another and hands each to `talk`."""

    def __init__(self, talk: Callable[[socket.socket], None]) -> None:
        self.talk = talk
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self.socket.accept()
            except OSError:
                return
            with link:
                self.talk(link)

    def close(self) -> None:
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(5)


def _postgres(link: socket.socket, taken: list[bytes]) -> None:
    """As much of the protocol as a client needs to send one statement; then the link is dropped."""

    def said(kind: bytes, body: bytes) -> bytes:
        return kind + struct.pack("!i", len(body) + 4) + body

    def heard() -> bytes:
        size = struct.unpack("!i", link.recv(4))[0]
        return link.recv(size - 4)

    while struct.unpack("!i", heard()[:4])[0] in (80877103, 80877104):
        link.sendall(b"N")
    status = said(b"S", b"server_version\x0015.0\0") + said(b"S", b"client_encoding\0UTF8\0")
    keys = said(b"K", struct.pack("!ii", 1, 1))
    link.sendall(said(b"R", struct.pack("!i", 0)) + status + keys + said(b"Z", b"I"))
    link.recv(1)
    taken.append(heard())


PSQL = ["psql"] if shutil.which("psql") else []
SSH = [name for name in ("ssh", "scp", "sftp") if shutil.which(name)]


@pytest.mark.parametrize("client", PSQL or ["none installed"])
async def test_ec_57_a_statement_whose_server_goes_away_is_unknown(run: Run, client: str) -> None:
    taken: list[bytes] = []
    listener = Listener(lambda link: _postgres(link, taken))
    line = f"{client} -h 127.0.0.1 -p {listener.port} -U lin -d app -c 'insert into t values (1)'"
    if client in PSQL:
        outcome = await run(line)
        assert taken == [b"insert into t values (1)\0"]
        assert code_of(outcome) == 2 and 2 in TABLE["psql"]
        assert outcome.state is State.UNKNOWN
    listener.close()


@pytest.mark.parametrize("client", SSH or ["none installed"])
async def test_ec_57_a_secure_shell_that_loses_its_far_side_is_unknown(run: Run, client: str) -> None:
    """Only the drop is shown: no server of this protocol can be taken for granted on a machine of a test."""
    listener = Listener(lambda link: link.sendall(b"SSH-2.0-x\r\n"))
    what = {"ssh": "lin@127.0.0.1 true", "scp": "a lin@127.0.0.1:b", "sftp": "lin@127.0.0.1"}
    port = "-p" if client == "ssh" else "-P"
    options = "-o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    if client in SSH:
        outcome = await run(f"touch a; {client} {options} {port} {listener.port} {what[client]}")
        assert code_of(outcome) == 255 and 255 in TABLE[client]
        assert (outcome.state, outcome.reason) == (State.UNKNOWN, "connection_lost")
    listener.close()


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
