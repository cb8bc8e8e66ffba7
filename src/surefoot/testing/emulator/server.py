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
from surefoot.testing.emulator.exchange import BAD_KEY, Exchange, Rooms, refused
from surefoot.testing.emulator.fault_plan import Fault, FaultPlan
from surefoot.testing.emulator.issuing import keys_of
from surefoot.testing.emulator.profiles import (
    WIRES,
    Profile,
    check_knobs,
    client_url,
    known_profile,
    place_of_path,
)
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
        return client_url(self.url, known_profile(profile), wire)

    def set_knobs(self, profile: str, *, wire: str = "chat", **knobs: str | bool) -> None:
        """Choose a variant of a profile, e.g. `v4_mode="tool_turns"`, `allow_prefill=True`."""
        known_profile(profile)
        if not isinstance(wire, str) or profile not in self.wires.get(wire, {}):
            raise ValueError(f"profile {profile!r} is not known on the wire {wire!r}")
        check_knobs(knobs)
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
            await self._unreadable(bad, connection)
            return False
        if request is None:
            return False
        if request.path.startswith("/_ctl/"):
            await connection.send(self._control(request), self.waiting)
        else:
            await self._model(request, connection)
        return request.headers.get("connection", "").lower() != "close"

    async def _unreadable(self, bad: BadRequest, connection: Connection) -> None:
        """Refuse what was no request, in the form of the endpoint that was asked, and close."""
        request = bad.request or Request("", "", {})
        profile = self._profile(request)
        shape = "openai" if profile is None else profile.shape
        refusal = Refusal(("http",), str(bad), status=bad.status, type=bodies.usual_type(bad.status, shape))
        if profile is None:
            out = refused(refusal, shape)
        else:
            entry = self.log.arrived(
                profile=profile.name, path=request.path, headers=request.headers, body=request.body
            )
            out = refused(refusal, shape, entry.trace_id)
            out.headers[profile.trace_header] = entry.trace_id
        out.headers["connection"] = "close"
        await connection.send(out, self.waiting)
        if profile is not None:
            entry.status, entry.rules, entry.done = bad.status, ["http"], True
            entry.bytes_sent = connection.sent
            self.log.note(entry)
        await connection.see_off()

    def _profile(self, request: Request) -> Profile | None:
        """Whose rules a path names, on which wire; None when it is no request for a model."""
        name, _, rest = request.path.lstrip("/").partition("/")
        place = place_of_path(rest)
        return None if place is None else self.wires[place.wire].get(name)

    async def _model(self, request: Request, connection: Connection) -> None:
        name, _, rest = request.path.lstrip("/").partition("/")
        wanted = "GET" if rest == "v1/models" else "POST"
        place = place_of_path(rest)
        if request.method != wanted and (place is not None or rest == "v1/models"):
            await connection.send(_wrong_method(request, wanted), self.waiting)
            return
        if rest == "v1/models" and any(name in profiles for profiles in self.wires.values()):
            await connection.send(self._models(name, request), self.waiting)
            return
        profile = self._profile(request)
        if profile is None:
            shape = _SHAPES.get(place.wire if place is not None else "", "openai")
            kind = bodies.usual_type(404, shape)
            refusal = Refusal(("http",), f"Unknown request URL: {request.path}", status=404, type=kind)
            await connection.send(refused(refusal, shape), self.waiting)
            return
        entry = self.log.arrived(profile=name, path=request.path, headers=request.headers, body=request.body)
        nth = self.log.nth(entry.profile, entry.session)
        rooms = Rooms(self.plan, self.scripts, self.stored, self.profiles)
        exchange = Exchange(rooms, profile, request, entry, nth=nth)
        out = exchange.answer()
        if profile.trace_header not in out.names():
            out.headers[profile.trace_header] = entry.trace_id
        entry.status = out.status
        self.log.note(entry)  # before it is sent: what a client has read stands in the log
        try:
            cut, stalled = await connection.send(out, self.waiting)
            exchange.account_for(cut, stalled)
        finally:
            entry.bytes_sent = connection.sent
            entry.client_closed_early = connection.client_gone and out.cut is None
            entry.done = True
            self.log.note(entry)

    def _models(self, name: str, request: Request) -> Outgoing:
        """The one model there is, with the keys of both official SDKs."""
        profile = next(profiles[name] for profiles in self.wires.values() if name in profiles)
        traced = {profile.trace_header: "req_models"}
        if BAD_KEY in keys_of(request.headers, request.query):
            out = refused(bodies.named("auth", True, profile.shape), profile.shape, "req_models")
            out.headers |= traced
            return out
        model = {"id": "scripted", "object": "model", "created": 0, "owned_by": name}
        model |= {"type": "model", "display_name": "Scripted", "created_at": "1970-01-01T00:00:00Z"}
        model["lifecycle"] = "active"
        ends = {"has_more": False, "first_id": "scripted", "last_id": "scripted"}
        return Outgoing(200, [bodies.dumped({"object": "list", "data": [model], **ends})], traced)

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
                knobs = one.get("knobs", {})
                if not isinstance(knobs, dict):
                    raise ValueError(f"knobs={knobs!r}: an object of names and values")
                self.set_knobs(one["profile"], wire=one.get("wire", "chat"), **knobs)
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
