"""The control socket: decisions from another terminal reach a session that runs (UX-118, UX-119).

Owns: the socket in the runtime folder, who may speak on it, its lines of JSON, and the other
end for commands. Does not own: the rules (`core.admission`), what the kernel says of a
process (`tools.processes.ancestry`), words (`words`).
Promises: surface:same-story. It lets in what the kernel names as the same user, and decides nothing itself.

One JSON object a line, each answered by one: `{"do": "snapshot"}` (with an `attemptId` that call is in it,
however many there are), `{"do": "act", "request": …}`, `{"do": "process", "request": …}`,
`{"do": "wait", "attemptId": …}`; answers are `{"status", "body"}`.
Linux only: elsewhere the kernel names no peer, so there is no socket and a command is `not_owner`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
import socket
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from surefoot.core.model import Notice
from surefoot.errors import Signal, SurefootError
from surefoot.runtime.requests import Answer, Caller
from surefoot.tools.processes import kernel

REQUEST_BYTES, ENVELOPE_BYTES = 16 * 1024, 1024
"""The largest request, and what its line may hold beside it; how large the request is, its own rule judges."""
ANSWER_BYTES, REFUSAL_BYTES = 2 * 1024 * 1024, 4 * 1024
"""What a client reads of an answer, and of one that refuses, unless told; more is no answer (TR-147)."""
ANSWER_SECONDS, SNAPSHOT_SECONDS = 60.0, 15.0
"""How long an answer is waited for; a look at the world takes its time, reading what is known does not."""
_LOOK_SECONDS, _TELL_SECONDS = 0.25, 2.0
CONNECTIONS = 16
_CREDENTIALS = struct.Struct("3i")


class OwnerSilent(ConnectionError):
    """The owner of the session gave no answer in time, or is `stopped` and cannot give one."""

    def __init__(self, pid: int, *, stopped: bool) -> None:
        super().__init__(pid)
        self.pid = pid
        self.stopped = stopped


class Served(Protocol):
    """What a session offers on its socket; `running.Desk` does."""

    def snapshot(self, named: str | None = None) -> Mapping[str, Any]: ...

    async def press(self, request: Mapping[str, Any], caller: Caller) -> Answer: ...

    async def choose(self, request: Mapping[str, Any], caller: Caller) -> Answer: ...


class Judge(Protocol):
    """What the parents of a peer say of it: `reason` and `ancestry`."""

    @property
    def reason(self) -> str | None: ...

    @property
    def ancestry(self) -> str: ...


def is_possible() -> bool:
    """Whether the kernel names the process at the other end of a socket."""
    return hasattr(socket, "SO_PEERCRED")


class Control:
    """The socket of one owned session, for as long as it is owned."""

    def __init__(
        self,
        folder: Path,
        session_id: str,
        desk: Served,
        judge: Callable[[int], Judge],
        *,
        request_bytes: int = REQUEST_BYTES,
    ) -> None:
        self._folder = folder
        self._name = f"{session_id}.sock"
        self._desk = desk
        self._judge = judge
        self._line_bytes = request_bytes + ENVELOPE_BYTES
        self._server: asyncio.Server | None = None
        self._identity: tuple[int, int] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._dropped: dict[str, str] = {}
        self._changed = asyncio.Event()

    async def open(self) -> bool:
        """Start to listen; False where that cannot be. The session works without it."""
        if not is_possible():
            return False
        try:
            listener = _bound(self._folder, self._name)
        except OSError:
            return False
        self._identity = _identity(self._folder / self._name)
        self._server = await asyncio.start_unix_server(self._connected, sock=listener, limit=self._line_bytes)
        return True

    async def close(self) -> None:
        """Stop listening, end what is connected, and take the file away if it is still ours."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        path = self._folder / self._name
        if self._identity is not None and _identity(path) == self._identity:
            path.unlink(missing_ok=True)

    def notice(self, notice: Notice) -> None:
        """Be told what changes: whoever waits for a parked press looks again."""
        if notice.kind == "parked_dropped":
            self._dropped[str(notice.facts["attemptId"])] = str(notice.facts["code"])
        self._changed.set()

    # One connection -----------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            if len(self._tasks) <= CONNECTIONS:
                await self._speak(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the other end is gone
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = _seen_peer(writer.get_extra_info("socket"))
        if peer is None:
            await _send(writer, _refused("unauthenticated", 401))
            return
        while True:
            try:
                line = await reader.readline()
            except ValueError:
                await _send(writer, _refused("body_too_large", 400))
                return
            if not line:
                return
            await _send(writer, await self._answered(line, peer))

    async def _answered(self, line: bytes, peer: Peer) -> Answer:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return _refused("bad_request", 400)
        if not isinstance(message, dict):
            return _refused("bad_request", 400)
        try:
            return await self._done(message, peer)
        except SurefootError as error:
            return Answer(409, {"code": "storage_failed", "message": error.message})
        except Signal:
            return _refused("lease_lost", 409)

    async def _done(self, message: Mapping[str, Any], peer: Peer) -> Answer:
        do, request = message.get("do"), message.get("request")
        if do == "snapshot":
            named = message.get("attemptId")
            return Answer(200, self._desk.snapshot(named if isinstance(named, str) else None))
        if do == "wait" and isinstance(message.get("attemptId"), str):
            return await self._decided(message["attemptId"])
        if do not in ("act", "process") or not isinstance(request, dict):
            return _refused("bad_request", 400)
        # Read for every press: a connection may be handed on, and parents change.
        descent = await asyncio.to_thread(self._judge, peer.pid)
        caller = _caller(message, descent)
        if not peer.start_ticks or _ticks(peer.pid) != peer.start_ticks:
            # Whoever connected is gone, and its number may be a person's shell by now.
            caller = replace(caller, not_a_person="descendant_of_tool", ancestry="none")
        if do == "process":
            return await self._desk.choose(request, caller)
        self._dropped.pop(str(request.get("attemptId")), None)
        return await self._desk.press(request, caller)

    async def _decided(self, attempt_id: str) -> Answer:
        """Wait for the border at which a parked press is recorded or dropped (TR-210)."""
        while True:
            self._changed.clear()
            code = self._dropped.get(attempt_id)
            if code is not None:
                return _refused(code, 409)
            shown = self._desk.snapshot(attempt_id)
            call = next((one for one in shown["calls"] if one["attemptId"] == attempt_id), None)
            if call is None or call["resolution"] is not None or not call["open"]:
                return Answer(200, shown)
            await self._changed.wait()


@dataclass(frozen=True, slots=True)
class Peer:
    """The process that connected, of this account."""

    pid: int
    start_ticks: int


def _seen_peer(connection: Any) -> Peer | None:
    pid, uid = _peer(connection)
    return Peer(pid, _ticks(pid)) if uid == os.getuid() and pid > 0 else None


def _ticks(pid: int) -> int:
    stat = kernel.stat_of(pid)
    return 0 if stat is None else stat.start_ticks


def _caller(message: Mapping[str, Any], descent: Judge) -> Caller:
    try:
        who = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        who = str(os.getuid())
    client = message.get("client")
    return Caller(
        who=who,
        channel="cli",
        method="command",
        client=client[:80] if isinstance(client, str) else None,
        ancestry=descent.ancestry,
        not_a_person=descent.reason,
    )


def _refused(code: str, status: int) -> Answer:
    return Answer(status, {"code": code, "message": code})


async def _send(writer: asyncio.StreamWriter, answer: Answer) -> None:
    document = {"status": answer.status, "body": answer.body}
    writer.write(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    await writer.drain()


def _peer(connection: Any) -> tuple[int, int]:
    """Pid and user id of the process at the other end, from the kernel."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    return pid, uid


def _bound(folder: Path, name: str) -> socket.socket:
    """A listening socket for this account alone. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if os.fstat(place).st_uid != os.getuid():
            raise PermissionError(f"{folder} belongs to another account")
        os.fchmod(place, 0o700)
        # The session is ours, so a socket that still stands there is of an owner that died.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=place)
        # By descriptor: a path may be longer than an address of a socket can be.
        listener.bind(f"/proc/self/fd/{place}/{name}")
        os.chmod(name, 0o600, dir_fd=place)
        listener.listen(CONNECTIONS)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    finally:
        os.close(place)
    return listener


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        facts = path.lstat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


# The other end ------------------------------------------------------------------------------------


class Line:
    """A connection to the session's owner; one request at a time."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        client: str,
        session_id: str,
        *,
        refusal_bytes: int = REFUSAL_BYTES,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._client = client
        self._session_id = session_id
        self._refusal_bytes = refusal_bytes
        self._owner = _peer(writer.get_extra_info("socket"))[0]
        self.on_wait: Callable[[int, bool], None] = lambda pid, stopped: None
        """Told once of an answer that does not come at once: which process is waited for, and whether it is stopped."""

    async def ask(self, do: str, *, patient: bool = False, **more: Any) -> Answer:
        """Send one request and give its answer. Raises OSError when the owner is gone or does not answer.

        An answer that is too long, or about another session, is none.
        A press whose answer is lost is never sent again: read the snapshot (TR-147).
        """
        document = {"do": do, "client": self._client, **more}
        self._writer.write(json.dumps(document, ensure_ascii=False).encode() + b"\n")
        await self._writer.drain()
        try:
            line = await self._line(patient, SNAPSHOT_SECONDS if do == "snapshot" else ANSWER_SECONDS)
            told = json.loads(line)
            answer = Answer(int(told["status"]), dict(told["body"]))
        except (ValueError, KeyError, TypeError) as error:
            raise ConnectionError("the owner of the session gave no answer") from error
        if answer.status != 200 and len(line) > self._refusal_bytes:
            raise ConnectionError("the owner of the session gave no answer that can be read")
        path = answer.body.get("sessionPath")
        if path is not None and str(path).rpartition("/")[2] != self._session_id:
            raise ConnectionError("the answer is about another session")
        return answer

    async def _line(self, patient: bool, limit_seconds: float) -> bytes:
        """The next line. Raises `OwnerSilent`; whoever is patient waits for a stopped owner too."""
        reading = asyncio.ensure_future(self._reader.readline())
        clock = asyncio.get_running_loop().time
        began, told = clock(), False
        try:
            while not (await asyncio.wait({reading}, timeout=_LOOK_SECONDS))[0]:
                stat, waited = kernel.stat_of(self._owner), clock() - began
                stopped = stat is not None and stat.state == "T"
                if not patient and (stopped or waited >= limit_seconds):
                    raise OwnerSilent(self._owner, stopped=stopped)
                if not told and (stopped or waited >= _TELL_SECONDS):
                    told = True
                    self.on_wait(self._owner, stopped)
            return reading.result()
        finally:
            reading.cancel()


@asynccontextmanager
async def connected(
    folder: Path,
    session_id: str,
    client: str,
    *,
    answer_bytes: int = ANSWER_BYTES,
    refusal_bytes: int = REFUSAL_BYTES,
) -> AsyncIterator[Line]:
    """Connect to the session's owner. Raises OSError when nobody of this account listens."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        path = f"/proc/self/fd/{place}/{session_id}.sock"
        reader, writer = await asyncio.open_unix_connection(path, limit=answer_bytes)
    finally:
        os.close(place)
    try:
        if _peer(writer.get_extra_info("socket"))[1] != os.getuid():
            raise PermissionError("the socket belongs to another account")
        yield Line(reader, writer, client, session_id, refusal_bytes=refusal_bytes)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
