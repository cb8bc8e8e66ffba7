"""The strict emulator: a model server that enforces what endpoints enforce and fails on command.

Owns: its life on loopback, which path is which wire, the control paths, the request
log. Does not own: what one request meets (`exchange`), the words of the model
(`scripts`), bytes on the socket (`wire_out`).

    async with Emulator() as emulator:
        emulator.script([{"calls": [{"name": "write", "args": {"path": "a"}}]}, {"text": "done"}])
        client = openai.AsyncOpenAI(base_url=emulator.base_url("openai"), api_key="sk-test")
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surefoot.testing.emulator import bodies
from surefoot.testing.emulator.bodies import Refusal
from surefoot.testing.emulator.exchange import Exchange, Rooms, refused
from surefoot.testing.emulator.fault_plan import Fault, FaultPlan
from surefoot.testing.emulator.profiles import KNOBS, WIRES, client_url, place_of_path
from surefoot.testing.emulator.request_log import LogEntry, RequestLog
from surefoot.testing.emulator.scripts import Script, Scripts, scripts_of
from surefoot.testing.emulator.stored import Stored
from surefoot.testing.emulator.wire_out import BadRequest, Connection, Outgoing, Request, Waiting

BODY_BYTES = 32 * 1024 * 1024


class Emulator:
    """A model server for tests. Use it as an async context manager; it listens on 127.0.0.1 only.

    `log_path` also writes the request log to a file. `body_bytes` is the limit of a request body.
    """

    def __init__(self, *, port: int = 0, log_path: Path | None = None, body_bytes: int = BODY_BYTES) -> None:
        self._wanted_port = port
        self._log_path = log_path
        self._body_bytes = body_bytes
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.wires = {wire: dict(profiles) for wire, profiles in WIRES.items()}
        """Profiles by wire and name; a test may replace one."""
        self.profiles = self.wires["chat"]
        self.plan = FaultPlan()
        self.scripts = Scripts()
        self.stored = Stored()
        self.log = RequestLog()
        self.waiting = Waiting()

    async def __aenter__(self) -> Emulator:
        self.log = RequestLog(self._log_path)
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._wanted_port)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *exit_: object) -> None:
        if self._server is not None:
            self._server.close()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._server.wait_closed()
        self.log.close()

    @property
    def url(self) -> str:
        """The server's root, without profile."""
        return f"http://127.0.0.1:{self.port}"

    def base_url(self, profile: str = "compat", *, wire: str = "chat") -> str:
        """What a client takes as its base URL; the SDKs of some wires add the version themselves."""
        known = {name for profiles in self.wires.values() for name in profiles}
        if profile not in known:
            raise ValueError(f"profile {profile!r}: choose one of {', '.join(sorted(known))}")
        return client_url(self.url, profile, wire)

    def set_knobs(self, profile: str, *, wire: str = "chat", **knobs: str | bool) -> None:
        """Choose a variant of a profile, e.g. `v4_mode="tool_turns"`, `allow_prefill=True`."""
        if profile not in self.wires.get(wire, {}):
            raise ValueError(f"profile {profile!r} is not known on the wire {wire!r}")
        if set(knobs) - KNOBS:
            raise ValueError(f"knobs are {', '.join(sorted(KNOBS))}, not {sorted(knobs)!r}")
        if "upstream" in knobs and knobs["upstream"] not in self.wires["chat"]:
            raise ValueError(f"upstream={knobs['upstream']!r}: a profile of the Chat wire")
        old = self.wires[wire][profile]
        self.wires[wire][profile] = dataclasses.replace(old, knobs={**old.knobs, **knobs})

    @property
    def hosted(self) -> dict[str, int]:
        """How often each kind of hosted tool really ran on this side."""
        return dict(self.scripts.hosted)

    def script(
        self,
        steps: Sequence[dict[str, Any]],
        *,
        profile: str | None = None,
        session: str | None = None,
        by: str = "requests",
        then: str = "end",
    ) -> None:
        """Set what the model says; None stands for every profile or session that has no script of its own."""
        self.scripts.add(Script(list(steps), profile=profile, session=session, by=by, then=then))

    def fault(
        self,
        *,
        match: dict[str, Any] | None = None,
        stage: str = "",
        count: int = 1,
        **action: Any,
    ) -> Fault:
        """Plan a fault; the knobs are the keyword arguments, e.g. `fault(status=500, body="html")`."""
        return self.plan.add(Fault(action, match or {}, stage, count))

    def requests(self, session: str | None = None) -> list[LogEntry]:
        """The requests for a model that arrived, oldest first."""
        return [e for e in self.log.entries if session is None or e.session == session]

    async def wait_for_requests(self, count: int, *, session: str | None = None, seconds: float = 90) -> None:
        """Return when so many requests have arrived. Raises `TimeoutError`."""
        async with asyncio.timeout(seconds):
            while len(self.requests(session)) < count:
                await self.log.changed()

    async def wait_until_held(self, seconds: float = 90) -> None:
        """Return when a reply is stalled or delayed. Raises `TimeoutError`."""
        async with asyncio.timeout(seconds):
            await self.waiting.until_held()

    def release(self) -> None:
        """Let replies go on that are stalled or delayed without a time."""
        self.waiting.release()

    def assert_fired(self) -> None:
        """Raise `FaultNotFired` when a planned fault never happened."""
        self.plan.assert_fired()

    def reset(self) -> None:
        """Forget scripts, faults and log."""
        self.plan, self.scripts, self.stored = FaultPlan(), Scripts(), Stored()
        self.log.forget()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        connection = Connection(reader, writer)
        try:
            while not connection.client_gone:
                if not await self._one(connection):
                    break
        except asyncio.CancelledError:
            connection.abort()  # the server is closing; streams log a cancelled task as a fault
        finally:
            with contextlib.suppress(asyncio.CancelledError):
                await connection.close()

    async def _one(self, connection: Connection) -> bool:
        try:
            request = await connection.read_request(self._body_bytes)
        except BadRequest as bad:
            refusal = Refusal(("http",), str(bad), status=bad.status)
            await connection.send(refused(refusal, "openai"), self.waiting)
            return False
        if request is None:
            return False
        if request.path.startswith("/_ctl/"):
            await connection.send(self._control(request), self.waiting)
        else:
            await self._model(request, connection)
        return request.headers.get("connection", "").lower() != "close"

    async def _model(self, request: Request, connection: Connection) -> None:
        name, _, rest = request.path.lstrip("/").partition("/")
        wanted = "GET" if rest == "v1/models" else "POST"
        place = place_of_path(rest)
        if request.method != wanted and (place is not None or rest == "v1/models"):
            await connection.send(_wrong_method(request, wanted), self.waiting)
            return
        if rest == "v1/models" and any(name in profiles for profiles in self.wires.values()):
            listed = {"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": name}]}
            await connection.send(Outgoing(200, [bodies.dumped(listed)]), self.waiting)
            return
        wire = place.wire if place is not None else ""
        profile = self.wires.get(wire, {}).get(name)
        if place is None or profile is None:
            shape = _SHAPES.get(wire, "openai")
            refusal = Refusal(("http",), f"Unknown request URL: {request.path}", status=404)
            await connection.send(refused(refusal, shape), self.waiting)
            return
        entry = self.log.arrived(profile=name, path=request.path, headers=request.headers, body=request.body)
        nth = self.log.nth(entry.profile, entry.session)
        rooms = Rooms(self.plan, self.scripts, self.stored, self.profiles)
        exchange = Exchange(rooms, profile, request, entry, nth=nth)
        out = exchange.answer()
        out.headers.setdefault(profile.trace_header, f"req_{entry.sequence:06d}")
        entry.status = out.status
        try:
            cut, stalled = await connection.send(out, self.waiting)
            exchange.account_for(cut, stalled)
        finally:
            entry.bytes_sent = connection.sent
            entry.client_closed_early = connection.client_gone and out.cut is None
            entry.done = True
            self.log.note(entry)

    def _control(self, request: Request) -> Outgoing:
        command = request.path.removeprefix("/_ctl/")
        wanted = "GET" if command in _READING else "POST"
        if request.method != wanted:
            return _wrong_method(request, wanted)
        try:
            answer = self._commanded(command, _given(request.body))
        except ValueError as error:
            return Outgoing(400, [bodies.dumped({"error": {"message": str(error)}})])
        return Outgoing(200, [bodies.dumped(answer)])

    def _commanded(self, command: str, given: Any) -> Any:
        if command == "script":
            for script in scripts_of(given):
                self.scripts.add(script)
        elif command == "fault":
            for fault in _each(given, "action", {"action", "match", "stage", "count"}):
                self.plan.add(Fault(**fault))
        elif command == "reset":
            self.reset()
        elif command == "release":
            self.release()
        elif command == "log":
            return [entry.to_json() for entry in self.log.entries]
        elif command == "faults":
            return self.plan.to_json()
        elif command == "hosted":
            return self.hosted
        elif command == "knobs":
            for one in _each(given, "profile", {"profile", "wire", "knobs"}):
                self.set_knobs(one["profile"], wire=one.get("wire", "chat"), **one.get("knobs", {}))
        elif command == "waiting":
            return {"waiting": self.waiting.now_waiting}
        else:
            raise ValueError(f"no control path {command!r}")
        return {"ok": True}


_SHAPES = {"anthropic": "anthropic", "gemini": "gemini-own", "converse": "bedrock"}
"""How a wire words that it does not know an address."""
_READING = frozenset({"log", "faults", "hosted", "waiting"})
"""Control paths that are read; all others change something and are posted to."""


def _given(body: bytes) -> Any:
    try:
        return json.loads(body or b"{}")
    except ValueError as error:
        raise ValueError(f"the body is not JSON: {error}") from None


def _each(given: Any, needed: str, keys: set[str]) -> list[dict[str, Any]]:
    """One object or a list of them, each with the key it cannot do without."""
    each = given if isinstance(given, list) else [given]
    for one in each:
        if not isinstance(one, dict) or needed not in one or set(one) - keys:
            told = sorted(one) if isinstance(one, dict) else one
            raise ValueError(
                f"give an object with {needed!r}; its keys are {', '.join(sorted(keys))}, not {told!r}"
            )
    return each


def _wrong_method(request: Request, wanted: str) -> Outgoing:
    text = f"{request.method} is not taken here. Use {wanted}."
    return Outgoing(405, [bodies.dumped({"error": {"message": text}})], {"allow": wanted})
