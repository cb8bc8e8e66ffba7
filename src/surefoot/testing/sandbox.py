"""A throw-away world in which commands called readers are really run (EC-31, EC-59).

Owns: a small project with its remote, archive and database, a web server that counts what
it is asked, and the comparison of both before and after each command. Does not own: which
commands there are (the tests), what class they get (`tools.classify`).
Promises: what is run here sees no network but its own where the kernel allows name spaces.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gzip
import hashlib
import http.server
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from surefoot.core.model import EffectClass
from surefoot.runtime.tools import Place
from surefoot.tools.classify.shell import classify_shell
from surefoot.tools.processes.preparing import reading

COMMAND_SECONDS = 1.0
PLACEHOLDER = "https://h.example"
"""Stands for the sandbox's own server in a labelled command."""
_ISOLATED = ("unshare", "-Urmn", "--pid", "--fork", "--mount-proc", "--kill-child")
_BUILTINS = frozenset(
    re.findall(
        r"\S+",
        """. : [ alias bg break builtin cd command compgen continue declare dirs echo eval exec exit export
    false fg getopts hash help history jobs let local popd printf pushd pwd read return set shift shopt
    source test times trap true type typeset ulimit umask unset wait""",
    )
)
_PEERS = frozenset(
    re.findall(
        r"\S+",
        """kubectl docker podman docker-compose gh helm aws gcloud az terraform psql mysql dig host nslookup
    ping systemctl journalctl npm pnpm yarn pip pip3 brew""",
    )
)
"""Programs that ask a peer which a sandbox does not have; they are judged by their label."""
_WITHOUT_PEER = ("--version", "-V")
_GIT_NAMES = {
    f"GIT_{who}_{what}": "lin@h.example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of one command: how it was judged, whether it was run, and what it changed."""

    command: str
    judged: str
    ran: bool = False
    missing: tuple[str, ...] = ()
    """Programs that are not installed here, or whose peer is not."""
    exit_code: int | None = None
    """None when it was stopped at its limit."""
    changed: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    """Requests that a server may act on."""


def isolation() -> tuple[str, ...]:
    """The words before a command that give it name spaces of its own; none where they are refused."""
    try:
        found = subprocess.run([*_ISOLATED, "true"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return _ISOLATED if found.returncode == 0 else ()


def run_all(commands: Sequence[str], folder: Path, *, parallel: int = 2, seconds: float = 120.0) -> list[Ran]:
    """Judge and run every command, each in a world below `folder`; answers in order.

    One more answer, of no command, comes last when the contents differ at the end though no name told it.

    Raises `RuntimeError` when a world could not be made, `subprocess.TimeoutExpired` past `seconds`.
    """
    before = isolation()
    workers = []
    for number in range(parallel):
        place = folder / f"world{number}"
        place.mkdir()
        workers.append(
            subprocess.Popen(
                [*before, sys.executable, "-m", "surefoot.testing.sandbox", str(place)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        )
    found: dict[str, Ran] = {}
    threads = [
        threading.Thread(target=_collect, args=(worker, commands[number::parallel], found, seconds))
        for number, worker in enumerate(workers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spoiled = found.pop("", None)
    if len(found) != len(set(commands)):
        raise RuntimeError(f"the sandbox answered {len(found)} of {len(set(commands))} commands")
    return [*(found[command] for command in commands), *([spoiled] if spoiled else [])]


def _collect(
    worker: subprocess.Popen[str], commands: Sequence[str], found: dict[str, Ran], seconds: float
) -> None:
    try:
        out, _ = worker.communicate(json.dumps(list(commands)), seconds)
    except subprocess.TimeoutExpired:
        os.killpg(worker.pid, signal.SIGKILL)
        out, _ = worker.communicate()
    for line in out.splitlines():
        row: dict[str, Any] = json.loads(line)
        lists = {name: tuple(row[name]) for name in ("missing", "changed", "requests")}
        found[row["command"]] = Ran(**{**row, **lists})


class _Asked(http.server.BaseHTTPRequestHandler):
    """Answers everything, and remembers what was more than a look."""

    protocol_version = "HTTP/1.1"
    acted: list[str]

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else b""
        if self.command not in ("GET", "HEAD", "OPTIONS") or body:
            self.acted.append(f"{self.command} {self.path}")
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(b"{}\n")

    def __getattr__(self, name: str) -> Any:
        """Whatever the method is called, it is answered."""
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def log_message(self, format: str, *args: Any) -> None:
        del format, args


class World:
    """One project with its surroundings; everything below `folder` is watched."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tree = folder / "project"
        self.home = folder / "home"
        self.variables = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(self.home),
            "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        self.acted: list[str] = []
        handler = type("Asked", (_Asked,), {"acted": self.acted})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        _fill(self)

    def close(self) -> None:
        """Stop the server."""
        self.server.shutdown()
        self.server.server_close()

    def seen(self) -> dict[str, tuple[Any, ...]]:
        """Every name with what tells a change of it; folders by mode only, as their times follow their names.

        The change time of an inode moves with every write, whatever a program sets the other times to.
        """
        found: dict[str, tuple[Any, ...]] = {}
        for root, folders, files in os.walk(self.folder):
            for name in (*folders, *files):
                path = f"{root}/{name}"
                with contextlib.suppress(FileNotFoundError):
                    about = os.lstat(path)
                    whole = (about.st_mode, about.st_ino)
                    times = (about.st_size, about.st_mtime_ns, about.st_ctime_ns) if name in files else ()
                    found[os.path.relpath(path, self.folder)] = (*whole, *times)
        return found

    def digest(self) -> str:
        """The contents of all files in one digest."""
        whole = hashlib.sha256()
        for path in sorted(path for path in self.folder.rglob("*") if path.is_file()):
            whole.update(str(path).encode() + b"\0" + path.read_bytes() + b"\0")
        return whole.hexdigest()

    def run(self, command: str) -> Ran:
        """Judge one command and, when it is called a reader and can run here, run it as the shell tool does."""
        text = command.replace(PLACEHOLDER, self.address)
        place = Place(self.tree, (self.tree,), work_tree=self.tree, home=self.home)
        found = classify_shell(text, place)
        judged = found.effect.effect_class.value
        if found.effect.effect_class is not EffectClass.READ_ONLY or found.reading_text is None:
            return Ran(command, judged)
        missing = missing_programs(found.simple_commands or (), self.variables["PATH"])
        if missing:
            return Ran(command, judged, missing=missing)
        made = asyncio.run(reading(self.variables, found.repositories, found.projects))
        if made is None:
            return Ran(command, judged, missing=("reading environment",))
        argv = ["bash", *made.shell_options, "-c", found.reading_text]
        before = self.seen()
        self.acted.clear()
        code = _ended(argv, self.tree, dict(made.variables))
        after = self.seen()
        changed = tuple(name for name in sorted({*before, *after}) if before.get(name) != after.get(name))
        return Ran(command, judged, True, (), code, changed, tuple(self.acted))


def missing_programs(parts: Iterable[str], path: str) -> tuple[str, ...]:
    """Programs of a line that are not here, or ask a peer that is not."""
    found = []
    for part in parts:
        words = part.split()
        if not words or words[0] in _BUILTINS or words[0] in (">", ">>", "test"):
            continue
        alone = len(words) > 1 and words[1] in _WITHOUT_PEER
        if shutil.which(words[0], path=path) is None or (words[0] in _PEERS and not alone):
            found.append(words[0])
    return tuple(dict.fromkeys(found))


def _ended(argv: Sequence[str], directory: Path, variables: dict[str, str]) -> int | None:
    process = subprocess.Popen(
        argv,
        cwd=directory,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(COMMAND_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _fill(world: World) -> None:
    tree = world.tree
    for folder in (tree / "src", tree / "build", tree / "sub", world.home / "project", world.folder / "tmp"):
        folder.mkdir(parents=True)
    for name in (
        "a",
        "b",
        "c",
        "f",
        "conf",
        "log.txt",
        "dirs",
        "list",
        "README.md",
        "a.txt",
        "b.txt",
        "x.py",
    ):
        (tree / name).write_text(f"one foo\ntwo x bar 3 9\n# TODO {name}\n")
    (tree / "dirs").write_text("src\nbuild\n")
    (tree / "src" / "main.py").write_text("import os\n\n\ndef main():\n    return 'foo'\n")
    (tree / "src" / "x.py").write_text("# TODO foo\n")
    for name in ("a.json", "b.json", "p.json"):
        (tree / name).write_text('{"name": "x", "x": [1, 2], "items": [{"name": "y"}]}\n')
    (tree / "a.csv").write_text("id,name\n1,long name\n")
    (tree / "a.xml").write_text("<a><b>x</b></a>\n")
    with gzip.open(tree / "a.gz", "wb") as packed:
        packed.write(b"one\ntwo\n")
    with tarfile.open(tree / "a.tar", "w") as archive:
        archive.add(tree / "src", "src")
    with tarfile.open(tree / "a.tgz", "w:gz") as archive:
        archive.add(tree / "src", "src")
    with zipfile.ZipFile(tree / "a.zip", "w") as archive_zip:
        archive_zip.write(tree / "a.txt", "a.txt")
    with contextlib.closing(sqlite3.connect(tree / "app.db")) as base:
        base.executescript("create table t (id integer primary key, n text); insert into t values (1, 'x');")
    _repository(world)


def _repository(world: World) -> None:
    tree, remote = world.tree, world.folder / "remote.git"
    git = _Git(world)
    git(world.folder, "init", "-q", "--bare", "-b", "main", str(remote))
    git(tree / "sub", "init", "-q", "-b", "main")
    (tree / "sub" / "x").write_text("x\n")
    git(tree / "sub", "add", "x")
    git(tree / "sub", "commit", "-q", "-m", "inner")
    (tree / ".gitignore").write_text("sub/\nbuild/\n")
    git(tree, "init", "-q", "-b", "main")
    git(tree, "remote", "add", "origin", str(remote))
    for number in range(4):
        (tree / "a").write_text(f"round {number}\none foo\n")
        git(tree, "add", "-A")
        git(tree, "commit", "-q", "-m", f"round {number}")
    git(tree, "tag", "v1")
    git(tree, "branch", "other")
    git(tree, "push", "-q", "-u", "origin", "main")
    (tree / "b").write_text("stashed\n")
    git(tree, "stash", "-q")
    (tree / "a").write_text("one foo\ntwo x, not committed\n")
    (tree / "new").write_text("untracked\n")
    # A look at an old index would like to write it afresh.
    os.utime(tree / "README.md", (1_000_000_000, 1_000_000_000))


class _Git:
    def __init__(self, world: World) -> None:
        self.variables = {**world.variables, **_GIT_NAMES, "GIT_CONFIG_GLOBAL": os.devnull}

    def __call__(self, folder: Path, *words: str) -> None:
        subprocess.run(["git", *words], cwd=folder, env=self.variables, check=True, capture_output=True)


def _raise_loopback() -> None:
    """Bring `lo` up in a network of our own; elsewhere it is up, and nobody lets us."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        asked = struct.pack("16sH14s", b"lo", 0x1 | 0x40, b"")
        fcntl.ioctl(link, 0x8914, asked)  # SIOCSIFFLAGS: up and running


def _main() -> int:
    folder = Path(sys.argv[1])
    commands = json.load(sys.stdin)
    _raise_loopback()
    world = World(folder)
    begun, whole = time.monotonic(), world.digest()
    for command in commands:
        print(json.dumps(asdict(world.run(command))), flush=True)
    changed = world.digest() != whole
    world.close()
    if changed:
        print(json.dumps(asdict(Ran("", "", True, changed=("the contents of a file",)))), flush=True)
    print(f"{len(commands)} commands in {time.monotonic() - begun:.1f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
