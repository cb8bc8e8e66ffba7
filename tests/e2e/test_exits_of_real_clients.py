"""EC-57 with real clients against real bad servers: each acts, and then the client loses its reply."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from bad_servers import (
    SSHD,
    Listener,
    SecureShell,
    between,
    ftp,
    goes_away,
    http2,
    rsync_daemon,
    stream_reset,
)
from shell_lines import Run, code_of

from surefoot.core.model import State
from surefoot.testing.postgres import PostgresServer
from surefoot.tools.classify.rules import load

TABLE = load("exits")["lost_reply"]
LOST = (State.UNKNOWN, "connection_lost")
SECURE = [name for name in ("ssh", "scp", "sftp") if shutil.which(name) and Path(SSHD).exists()]
RSYNC = ["drop", "stall"] if shutil.which("rsync") else []
NONE = ["not installed"]


@pytest.mark.parametrize(("answer", "code"), [(goes_away, 16), (stream_reset, 92)], ids=["16", "92"])
async def test_ec_57_a_broken_stream_of_http_2_after_the_act_is_unknown(
    run: Run, answer: Callable[[int], bytes], code: int
) -> None:
    acted: list[int] = []
    far = Listener(http2(answer, lambda: acted.append(1)))
    outcome = await run(f"curl -sS -m 60 --http2-prior-knowledge -d a=1 http://127.0.0.1:{far.port}/x")
    far.close()
    assert acted == [1]
    assert code_of(outcome) == code and code in TABLE["curl"]
    assert (outcome.state, outcome.reason) == LOST


async def test_ec_57_an_upload_whose_line_breaks_under_it_is_unknown(run: Run, tmp_path: Path) -> None:
    (tmp_path / "work" / "big").write_bytes(bytes(20_000_000))
    took: list[bytes] = []
    far = Listener(ftp(took.append))
    outcome = await run(f"python3 -c pass; curl -sS -m 60 -T big ftp://127.0.0.1:{far.port}/x")
    far.close()
    assert took and code_of(outcome) == 55 and 55 in TABLE["curl"]
    assert (outcome.state, outcome.reason) == LOST


@pytest.mark.parametrize("client", ["wget"] if shutil.which("wget") else NONE)
async def test_ec_57_an_answer_that_breaks_the_protocol_after_the_act_is_unknown(
    run: Run, client: str
) -> None:
    acted: list[bytes] = []

    def talk(link: socket.socket) -> None:
        acted.append(link.recv(1 << 16))
        link.sendall(b"HTTP/1.1 401 No\r\nWWW-Authenticate: Digest x\r\nContent-Length: 0\r\n\r\n")
        link.recv(1)

    far = Listener(talk)
    if client == "wget":
        asks = "wget -q -t 1 -T 60 --user=lin --password=x --post-data=a -O /dev/null"
        outcome = await run(f"{asks} http://127.0.0.1:{far.port}/x")
        assert acted and code_of(outcome) == 7 and 7 in TABLE["wget"]
        assert (outcome.state, outcome.reason) == LOST
    far.close()


@pytest.mark.parametrize("way", ["drop", "statement kills its session"])
async def test_ec_57_a_statement_that_a_real_server_takes_before_the_line_breaks_is_unknown(
    run: Run, way: str
) -> None:
    if shutil.which("psql") is None:
        return
    with PostgresServer(tcp=True) as server, psycopg.connect(server.conninfo(), autocommit=True) as link:
        link.execute("create table t (x int)")

        def rows() -> int:
            return int((link.execute("select count(*) from t").fetchone() or (0,))[0])

        far = Listener(between(server.port, lambda: rows() > 0, "drop"))
        port = far.port if way == "drop" else server.port
        statement = "insert into t values (1)"
        if way != "drop":
            link.execute(
                "create function die() returns trigger language plpgsql as"
                " $$begin perform pg_terminate_backend(pg_backend_pid()); return null; end$$;"
                "create trigger die after insert on t execute function die()"
            )
        outcome = await run(f"psql -h 127.0.0.1 -p {port} -U surefoot -d postgres -c '{statement}'")
        far.close()
        assert rows() == (1 if way == "drop" else 0)  # the client cannot tell the two apart
    assert code_of(outcome) == 2 and 2 in TABLE["psql"]
    assert (outcome.state, outcome.reason) == LOST


@pytest.fixture
def secure(plain: Path) -> Iterator[SecureShell | None]:
    if not SECURE:
        yield None
        return
    made = SecureShell(Path(tempfile.mkdtemp(dir=plain)))
    yield made
    made.close()


@pytest.mark.parametrize("client", SECURE or NONE)
async def test_ec_57_a_secure_shell_whose_far_side_acts_and_goes_away_is_unknown(
    run: Run, secure: SecureShell | None, tmp_path: Path, client: str
) -> None:
    if secure is None:
        return
    target = secure.folder / "there"
    (tmp_path / "work" / "a").write_bytes(os.urandom(1000))
    (tmp_path / "work" / "batch").write_text(f"put a {target}\n")
    far = Listener(between(secure.daemon.port, lambda: target.exists() and target.stat().st_size > 0, "drop"))
    who = f"{getpass.getuser()}@127.0.0.1"
    line = {
        "ssh": f"ssh {secure.options} -p {far.port} {who} 'echo x > {target}'",
        "scp": f"scp {secure.options} -P {far.port} a {who}:{target}",
        "sftp": f"sftp {secure.options} -P {far.port} -b batch {who}",
    }[client]
    outcome = await run(line)
    far.close()
    assert target.stat().st_size > 0
    assert code_of(outcome) == 255 and 255 in TABLE[client]
    assert (outcome.state, outcome.reason) == LOST


@pytest.mark.parametrize("way", RSYNC or NONE)
async def test_ec_57_a_transfer_whose_daemon_takes_it_and_is_not_heard_of_again_is_unknown(
    run: Run, tmp_path: Path, way: str
) -> None:
    if not RSYNC:
        return
    folder = tmp_path / "far"
    folder.mkdir()
    (tmp_path / "work" / "a").write_bytes(os.urandom(100_000))
    daemon = rsync_daemon(folder)
    far = Listener(between(daemon.port, lambda: (folder / "m" / "a").exists(), way))
    line = f"rsync --timeout={1 if way == 'stall' else 60} a rsync://127.0.0.1:{far.port}/m/"
    outcome = await run(line)
    while way == "stall" and not (folder / "m" / "a").exists():  # its one second was over before it had sent
        outcome = await run(line)
    far.close()
    daemon.close()
    assert (folder / "m" / "a").stat().st_size == 100_000
    assert code_of(outcome) == {"drop": 12, "stall": 30}[way] and code_of(outcome) in TABLE["rsync"]
    assert (outcome.state, outcome.reason) == LOST


@pytest.mark.parametrize("way", ["refused", "full"] if RSYNC else NONE)
async def test_ec_57_a_daemon_that_cannot_be_reached_ends_with_the_codes_of_the_table(
    run: Run, way: str
) -> None:
    if not RSYNC:
        return
    waiting: list[socket.socket] = []
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        address: Any = door.getsockname()
        if way == "full":
            door.listen(0)
            for _ in range(4):
                waiting.append(socket.socket())
                waiting[-1].setblocking(False)
                waiting[-1].connect_ex(address)
        outcome = await run(f"touch a; rsync --contimeout=1 a rsync://127.0.0.1:{address[1]}/m/")
        for one in waiting:
            one.close()
    assert code_of(outcome) == {"refused": 10, "full": 35}[way] and code_of(outcome) in TABLE["rsync"]
    assert (outcome.state, outcome.reason) == LOST
