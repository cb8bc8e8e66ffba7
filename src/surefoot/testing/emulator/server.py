"""The strict emulator: a model server that enforces what endpoints enforce and fails on command.

Owns: the order of one request (limit, key, JSON, faults, fields, history rules,
window, faults, script, reply, log), the control paths, and its life on loopback.
Does not own: the rules (`chat_rules`), the words of the model (`scripts`), bytes on
the socket (`wire_out`).

    async with Emulator() as emulator:
        emulator.script([{"calls": [{"name": "write", "args": {"path": "a"}}]}, {"text": "done"}])
        client = openai.AsyncOpenAI(base_url=emulator.base_url("openai"), api_key="sk-test")
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surefoot.testing.emulator import bodies, chat_rules, tampering
from surefoot.testing.emulator.bodies import Refusal
from surefoot.testing.emulator.fault_plan import Fault, FaultPlan, Seen
from surefoot.testing.emulator.profiles import PROFILES, Profile
from surefoot.testing.emulator.replies import ChatReply
from surefoot.testing.emulator.request_log import LogEntry, RequestLog
from surefoot.testing.emulator.scripts import Script, Scripts
from surefoot.testing.emulator.wire_out import BadRequest, Connection, Outgoing, Request, Waiting, place_of

BODY_BYTES = 32 * 1024 * 1024
BAD_KEY = "sk-bad"


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
        self.profiles = dict(PROFILES)
        self.plan = FaultPlan()
        self.scripts = Scripts()
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

    def base_url(self, profile: str = "compat") -> str:
        """What an OpenAI-compatible client takes as its base URL."""
        if profile not in self.profiles:
            raise ValueError(f"profile {profile!r}: choose one of {', '.join(sorted(self.profiles))}")
        return f"{self.url}/{profile}/v1"

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

    async def wait_for_requests(self, count: int, *, session: str | None = None, seconds: float = 10) -> None:
        """Return when so many requests have arrived. Raises `TimeoutError`."""
        async with asyncio.timeout(seconds):
            while len(self.requests(session)) < count:
                await self.log.changed()

    async def wait_until_held(self, seconds: float = 10) -> None:
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
        self.plan, self.scripts = FaultPlan(), Scripts()
        self.log.entries.clear()

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
            await connection.send(_refused(refusal, "openai"), self.waiting)
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
        profile = self.profiles.get(name)
        if profile is None or f"/{rest}" not in ("/v1/models", "/v1/chat/completions"):
            refusal = Refusal(("http",), f"Unknown request URL: {request.path}", status=404)
            await connection.send(_refused(refusal, "openai"), self.waiting)
            return
        if rest == "v1/models":
            listed = {"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": name}]}
            await connection.send(Outgoing(200, [bodies.dumped(listed)]), self.waiting)
            return
        entry = self.log.arrived(profile=name, path=request.path, headers=request.headers, body=request.body)
        exchange = _Exchange(self, profile, request, entry)
        out = exchange.answer()
        out.headers.setdefault(profile.trace_header, f"req_{entry.sequence:06d}")
        entry.status = out.status
        try:
            cut, stalled = await connection.send(out, self.waiting)
            exchange.account(cut, stalled)
        finally:
            entry.bytes_sent = connection.sent
            entry.client_closed_early = connection.client_gone and out.cut is None
            entry.done = True
            self.log.note(entry)

    def _control(self, request: Request) -> Outgoing:
        try:
            answer = self._commanded(request.path.removeprefix("/_ctl/"), json.loads(request.body or b"{}"))
        except (ValueError, TypeError, KeyError) as error:
            return Outgoing(400, [bodies.dumped({"error": {"message": str(error)}})])
        return Outgoing(200, [bodies.dumped(answer)])

    def _commanded(self, command: str, given: Any) -> Any:
        if command == "script":
            for script in given if isinstance(given, list) else [given]:
                self.scripts.add(Script(**script))
        elif command == "fault":
            for fault in given if isinstance(given, list) else [given]:
                self.plan.add(Fault(**fault))
        elif command == "reset":
            self.reset()
        elif command == "release":
            self.release()
        elif command == "log":
            return [entry.to_json() for entry in self.log.entries]
        elif command == "faults":
            return self.plan.to_json()
        elif command == "waiting":
            return {"waiting": self.waiting.now_waiting}
        else:
            raise ValueError(f"no control path {command!r}")
        return {"ok": True}


class _Exchange:
    """One request on its way through the checks, and the faults it met."""

    def __init__(self, emulator: Emulator, profile: Profile, request: Request, entry: LogEntry) -> None:
        self.emulator = emulator
        self.profile = profile
        self.request = request
        self.entry = entry
        self.fault: Fault | None = None
        nth = emulator.log.nth(entry.profile, entry.session)
        self.seen = Seen(
            entry.profile, request.path, entry.session, nth, body_sha=entry.body_sha, body=request.body
        )

    def answer(self) -> Outgoing:
        """The reply, decided in the fixed order; nothing is sent here."""
        key = self.request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        if BAD_KEY in (key, self.request.headers.get("x-api-key", "")):
            return self._refuse(bodies.bad_key())
        try:
            body = json.loads(self.request.body)
            _tokens(body) if isinstance(body, dict) else None
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            return self._refuse(Refusal(("json",), "We could not parse the JSON body of your request."))
        early = self._pick("before_validate")
        off: frozenset[str] = frozenset()
        if early is not None:
            if not {"tamper_request", "lenient"} & set(early.action):
                return self._planned(early, body)
            off = frozenset(early.action.get("lenient") or ())
            with contextlib.suppress(ValueError):  # it led nowhere, so it did not fire
                tampering.edit(body, early.action.get("tamper_request") or [])
                early.happened()
        refusal = chat_rules.check(body, self.profile, off) or self._overflow(body)
        if refusal is not None:
            return self._refuse(refusal)
        later = self._pick("after_validate")
        if later is not None:
            return self._planned(later, body)
        return self._reply(body)

    def account(self, cut: bool, stalled: bool) -> None:
        """Count the fault as fired when what it holds back or breaks off really happened."""
        if self.fault is None:
            return
        action = self.fault.action
        missing = ("cut_at" in action and not cut) or ("stall_at" in action and not stalled)
        if not missing:
            self.fault.happened()

    def _pick(self, stage: str, calls: int = 0, stream: bool = True) -> Fault | None:
        fault = self.emulator.plan.pick(stage, self.seen, calls=calls, stream=stream)
        if fault is not None:
            self.entry.fault = fault.action
        return fault

    def _refuse(self, refusal: Refusal) -> Outgoing:
        self.entry.rules = list(refusal.rules)
        return _refused(refusal, self.profile.shape)

    def _overflow(self, body: dict[str, Any]) -> Refusal | None:
        tokens, window = _tokens(body), self.profile.window_tokens
        if window and tokens > window:
            return bodies.overflow(self.profile.shape, tokens, window)
        return None

    def _planned(self, fault: Fault, body: dict[str, Any]) -> Outgoing:
        """What a fault answers in place of the model."""
        action, shape = fault.action, self.profile.shape
        self.fault = fault
        named = [knob for knob in bodies.NAMED_KNOBS if action.get(knob) not in (None, False)]
        if "overflow_at" in action and _tokens(body) <= int(action["overflow_at"]):
            self.fault = None
            return self._reply(body)
        if named:
            refusal = bodies.named(named[0], action[named[0]], shape)
        else:
            message = action.get("message") or (bodies.FLAP if "flip" in action else "Something went wrong.")
            status = int(action.get("status") or (200 if "ok_error" in action else 400))
            refusal = Refusal(("fault",), message, status=status, param=action.get("param"))
            refusal = _typed(refusal, action)
        self.entry.rules = list(refusal.rules)
        out = _refused(refusal, shape)
        self._shape_body(out, action, bodies.error_object(refusal, shape), str(body.get("model")))
        return self._with_transport(out, action)

    def _shape_body(self, out: Outgoing, action: dict[str, Any], whole: dict[str, Any], model: str) -> None:
        if "raw" in action:
            out.pieces = [str(action["raw"]).encode("utf-8", "surrogateescape")]
        elif "body" in action:
            content, out.content_type = bodies.broken_body(str(action["body"]), whole, model)
            out.pieces = [content]

    def _reply(self, body: dict[str, Any]) -> Outgoing:
        stream = body.get("stream") is True
        spoken = self.emulator.scripts.speak(self.profile, self.entry.session, body)
        if chat_rules.silently_ignored(body, self.profile):
            spoken.text, spoken.calls, spoken.finish = "", [], "stop"
            self.entry.rules = ["KI-05"]
        fault = self._pick("reply", calls=len(spoken.calls), stream=stream)
        self.fault = fault
        action = fault.action if fault else {}
        reply = ChatReply(spoken, self._envelope(body), action)
        if stream:
            options = body.get("stream_options")
            usage = isinstance(options, dict) and bool(options.get("include_usage"))
            out = Outgoing(200, reply.as_events(usage), content_type="text/event-stream", stream=True)
        else:
            out = Outgoing(200, [reply.as_json()])
        return self._with_transport(out, action)

    def _envelope(self, body: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.entry.sequence:012d}",
            "created": int(time.time()),
            "model": str(body.get("model") or "scripted"),
            "reasoning_field": self.profile.reasoning_field,
            "prompt_tokens": _tokens(body),
        }

    def _with_transport(self, out: Outgoing, action: dict[str, Any]) -> Outgoing:
        out.headers |= {str(k): str(v) for k, v in (action.get("headers") or {}).items()}
        if "delay_headers" in action:
            out.delay_seconds = _seconds(action["delay_headers"])
        if "cut_at" in action:
            out.cut = place_of(action["cut_at"], out.pieces)
        if "stall_at" in action:
            stall = (
                action["stall_at"] if isinstance(action["stall_at"], dict) else {"events": action["stall_at"]}
            )
            out.stall = place_of(stall, out.pieces)
            out.stall_seconds = _seconds(stall.get("seconds"))
            out.keep_alive = bool(stall.get("keep_alive"))
        return out


def _typed(refusal: Refusal, action: dict[str, Any]) -> Refusal:
    kind = action.get("type") or ("server_error" if refusal.status >= 500 else "invalid_request_error")
    return Refusal(
        refusal.rules, refusal.message, refusal.status, kind, param=refusal.param, code=action.get("code")
    )


def _refused(refusal: Refusal, shape: str) -> Outgoing:
    whole = bodies.dumped(bodies.error_object(refusal, shape))
    return Outgoing(refusal.status, [whole], dict(refusal.headers))


def _seconds(value: Any) -> float | None:
    """None waits until released."""
    return None if value is None else float(value)


def _tokens(body: dict[str, Any]) -> int:
    """A quarter of the characters of messages and tools."""
    counted = [body.get("messages"), body.get("tools")]
    return len(json.dumps(counted, ensure_ascii=False)) // 4
