"""Servers that act and then drop, stall or break their protocol, for the rows of EC-57."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

PREFACE = 24
DATA, HEADERS, RESET, SETTINGS, GOAWAY = 0, 1, 3, 4, 7
INTERNAL_ERROR = 2
SSHD = "/usr/sbin/sshd"
SFTP = "/usr/lib/openssh/sftp-server"


def until(found: Callable[[], bool], seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end
        time.sleep(0.01)


def reset(link: socket.socket) -> None:
    """Let the other side see a connection that was reset."""
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    link.close()


class Listener:
    """Accepts connections on loopback and hands each to `talk` in a thread of its own."""

    def __init__(self, talk: Callable[[socket.socket], None]) -> None:
        self._talk = talk
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._links: list[socket.socket] = []
        self._threads[0].start()

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self._socket.accept()
            except OSError:
                return
            self._links.append(link)
            self._threads.append(threading.Thread(target=self._one, args=(link,), daemon=True))
            self._threads[-1].start()

    def _one(self, link: socket.socket) -> None:
        with link, contextlib.suppress(OSError):
            self._talk(link)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for link in self._links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)


# HTTP/2 -------------------------------------------------------------------------------------------


def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


def stream_reset(stream: int) -> bytes:
    return frame(RESET, 0, stream, INTERNAL_ERROR.to_bytes(4, "big"))


def goes_away(stream: int) -> bytes:
    """Says that it knows of no stream at all, although it took one."""
    return frame(GOAWAY, 0, 0, bytes(4) + INTERNAL_ERROR.to_bytes(4, "big"))


def http2(answer: Callable[[int], bytes], acted: Callable[[], None]) -> Callable[[socket.socket], None]:
    """Takes one request whole, acts, and answers with these frames alone."""

    def talk(link: socket.socket) -> None:
        with link.makefile("rb") as heard:
            heard.read(PREFACE)
            link.sendall(frame(SETTINGS, 0, 0))
            while True:
                head = heard.read(9)
                if len(head) < 9:
                    return
                heard.read(int.from_bytes(head[:3], "big"))
                kind, ends, stream = head[3], head[4] & 1, int.from_bytes(head[5:], "big")
                if kind == SETTINGS and not ends:
                    link.sendall(frame(SETTINGS, 1, 0))
                if kind in (DATA, HEADERS) and ends:
                    acted()
                    link.sendall(answer(stream))
                    heard.read()
                    return

    return talk


# FTP ----------------------------------------------------------------------------------------------


def ftp(took: Callable[[bytes], None]) -> Callable[[socket.socket], None]:
    """Takes the beginning of an upload, and resets the connection it comes by."""
    plain = {"USER": "230 in", "PWD": '257 "/" is it', "QUIT": "221 bye"}

    def talk(link: socket.socket) -> None:
        with link.makefile("r") as heard, socket.create_server(("127.0.0.1", 0)) as door:
            link.sendall(b"220 here\r\n")
            for line in heard:
                word = line.split()[0].upper()
                said = plain.get(word, "200 done")
                if word == "EPSV":
                    said = f"229 Entering (|||{door.getsockname()[1]}|)"
                link.sendall(f"{'150 go' if word == 'STOR' else said}\r\n".encode())
                if word == "STOR":
                    sent, _ = door.accept()
                    took(sent.recv(1000))
                    reset(sent)

    return talk


# In the middle ------------------------------------------------------------------------------------


def between(port: int, has_acted: Callable[[], bool], way: str) -> Callable[[socket.socket], None]:
    """Passes bytes both ways until the server behind it has acted; then it drops the line, or says no more."""

    def talk(link: socket.socket) -> None:
        far = socket.create_connection(("127.0.0.1", port))
        up = threading.Thread(target=_pass_on, args=(link, far), daemon=True)
        up.start()
        with far, contextlib.suppress(OSError):
            while True:
                readable, _, _ = select.select([far], [], [], 0.02)
                block = far.recv(1 << 16) if readable else b""
                if has_acted() or (readable and not block):
                    break  # what it says from here on is heard by nobody
                link.sendall(block)
            if way == "stall":
                up.join(20)  # the client gives up
            for end in (link, far):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        up.join(10)

    return talk


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while block := source.recv(1 << 16):
            sink.sendall(block)


# Real servers -------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


class Daemon:
    """A server process on a loopback port of its own, ended with its group."""

    def __init__(self, command: list[str], port: int, log: Path) -> None:
        self.port = port
        with open(log, "wb") as said:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
            )
        until(lambda: answers(port) or self.process.poll() is not None)
        assert self.process.poll() is None, log.read_text()

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(120)


def rsync_daemon(folder: Path) -> Daemon:
    """A daemon whose module `m` is `folder/m`."""
    (folder / "m").mkdir()
    owner = f"uid = {os.getuid()}\ngid = {os.getgid()}\n" if os.getuid() == 0 else ""
    settings = folder / "rsyncd.conf"
    settings.write_text(f"use chroot = no\n{owner}[m]\npath = {folder / 'm'}\nread only = no\n")
    port = free_port()
    command = [
        "rsync",
        "--daemon",
        "--no-detach",
        "--address=127.0.0.1",
        f"--port={port}",
        f"--config={settings}",
    ]
    return Daemon(command, port, folder / "rsyncd.log")


class SecureShell:
    """A real `sshd` for this account, with a key that is made for it; `options` are for its clients."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("host", "key"):
            self._run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
        (folder / "known").write_bytes((folder / "key.pub").read_bytes())
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # a server run by root insists on it
        settings = folder / "sshd_config"
        settings.write_text(
            f"HostKey {folder / 'host'}\nAuthorizedKeysFile {folder / 'known'}\nStrictModes no\nUsePAM no\n"
            f"PermitRootLogin prohibit-password\nPidFile none\nSubsystem sftp {SFTP}\n"
        )
        port = free_port()
        command = [SSHD, "-D", "-e", "-f", str(settings), "-p", str(port), "-o", "ListenAddress=127.0.0.1"]
        self.daemon = Daemon(command, port, folder / "sshd.log")
        self.options = (
            f"-F /dev/null -i {folder / 'key'} -o BatchMode=yes -o StrictHostKeyChecking=no"
            " -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
        )

    @staticmethod
    def _run(*command: str) -> None:
        subprocess.run(command, check=True, capture_output=True)

    def close(self) -> None:
        self.daemon.close()
