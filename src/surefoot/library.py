"""surefoot inside a program of your own: sessions, guarded functions, sync and async.

Owns: the shape of the library's few doors, and the one bridge for synchronous users.
Does not own: what a call goes through (`runtime.barrier`), the wiring (`app`).

    async with surefoot.open() as ledger:
        async with ledger.session() as session:
            charge = session.guard(charge_card, effect="NON_IDEMPOTENT", reach=["host:bank.example"])
            await charge(amount=5)

Used as a plain `with`, the same objects take no `await`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import json
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from surefoot.errors import LedgerForked, OutcomeUnknown, RecoveryRefused, UsageError

if TYPE_CHECKING:
    from surefoot.app import App
    from surefoot.runtime.guarded import Guarded
    from surefoot.runtime.requests import Answer, Caller
    from surefoot.runtime.tools import Tool

T = TypeVar("T")


class Opened:
    """A project's ledger, opened for guarded calls. Use it with `async with` or with `with`."""

    def __init__(self, directory: Path | str | None, ledger: Path | str | None) -> None:
        self._directory = Path(directory or ".")
        self._ledger = None if ledger is None else Path(ledger)
        self._stack = AsyncExitStack()
        self._bridge: _Bridge | None = None
        self._app: App | None = None

    async def __aenter__(self) -> Opened:
        from surefoot import app, config

        environ = dict(os.environ)
        if self._ledger is not None:
            environ["SUREFOOT_HOME"] = str(self._ledger)
        settings = config.load_settings({}, environ, self._directory)
        opening = app.open_app(settings, directory=self._directory)
        self._app = await self._stack.enter_async_context(opening)
        return self

    async def __aexit__(self, *exit_: object) -> None:
        await self._stack.aclose()

    def __enter__(self) -> Opened:
        with ExitStack() as opening:
            self._bridge = opening.enter_context(closing(_Bridge()))
            self._bridge.run(self.__aenter__())
            opening.pop_all()  # opened: from here on `__exit__` closes the bridge
        return self

    def __exit__(self, *exit_: object) -> None:
        if self._bridge is not None and self._bridge.is_here():
            self._bridge.run(self.__aexit__())
            self._bridge.close()

    def session(self, session_id: str | None = None) -> GuardedSession:
        """A session: a new one, or an existing one by its id. Own it with `async with` or `with`.

        Raises when it is entered: `SessionHeld` (another live process owns it), `SessionMissing`.
        """
        if self._app is None:
            raise UsageError("open the ledger first: `with surefoot.open() as ledger:`")
        return GuardedSession(self._app, session_id, self._bridge)


class GuardedSession:
    """One durable session of guarded calls."""

    def __init__(self, app: App, session_id: str | None, bridge: _Bridge | None) -> None:
        self._app = app
        self._wanted = session_id
        self._bridge = bridge
        self._guarded: Guarded | None = None

    async def __aenter__(self) -> GuardedSession:
        self._guarded = await self._app.guarded(self._wanted)
        return self

    async def __aexit__(self, *exit_: object) -> None:
        if self._guarded is not None:
            await self._guarded.close()

    def __enter__(self) -> GuardedSession:
        return self._synchronous().run(self.__aenter__())

    def __exit__(self, *exit_: object) -> None:
        if self._synchronous().is_here():  # a fork that leaves the block gives nothing back
            self._synchronous().run(self.__aexit__())

    @property
    def id(self) -> str:
        """Full id of this session."""
        return self._entered().session_id

    def guard(
        self,
        function: Callable[..., Any],
        *,
        effect: str = "UNKNOWN",
        reach: Sequence[str] = ("*",),
        name: str | None = None,
        **declared: Any,
    ) -> Callable[..., Any]:
        """A function whose every call has a durable receipt before it runs, and is fenced while it must be.

        `effect` is one of the four classes; `reach` names what it touches; `declared` are further fields
        of `surefoot.Tool` (`verifier`, `time_limit_seconds`, `key_argument`, …). A parameter named
        `attempt` is filled with the `LiveAttempt`: key, deadline, ids. The guarded function takes the same
        arguments, which must be JSON, and `identity=` for a call that a retrying caller may ask for twice.

        Gives the function's result as JSON gives it back; of a call that was confirmed or proved since, and is asked
        for again under its identity, `Happened`.

        Raises: here `UsageError` for a declaration that cannot hold; each call `OutcomeUnknown` (it may have
        happened: decide first), `WriteFenced` (it overlaps an open call; nothing ran), `ToolError` (it ran and
        failed, or was refused), `ReceiptNotWritten` (its start is not durable; nothing ran).
        """
        tool = tool_of(function, effect=effect, reach=reach, name=name, **declared)
        self._entered().add(tool)
        self._entered().declare(tool)

        from surefoot.runtime.guarded import Happened, not_run

        async def call(*positional: Any, identity: str | None = None, **arguments: Any) -> Any:
            named = _by_name(function, positional, arguments)
            try:
                text = await self._entered().call(tool, named, identity=identity)
                return text if isinstance(text, Happened) else json.loads(text)
            except OutcomeUnknown as unknown:
                self._complete(unknown)
                raise

        if self._bridge is None:
            return functools.wraps(function)(call)
        bridge = self._bridge

        def call_and_wait(*positional: Any, identity: str | None = None, **arguments: Any) -> Any:
            work = call(*positional, identity=identity, **arguments)
            try:
                return bridge.run(work)
            except LedgerForked as error:
                raise not_run(error) from error

        return functools.wraps(function)(call_and_wait)

    def _complete(self, unknown: OutcomeUnknown) -> None:
        """Give the exception its card and a way to look at the call from here (UX-101)."""
        from surefoot.surfaces.view import card

        attempt_id = str(unknown.attempt_id)
        snapshot = self._entered().actions.snapshot(named=attempt_id)
        calls = [call for call in snapshot["calls"] if call["attemptId"] == attempt_id]
        unknown.facts["card"] = card(calls[0], snapshot, "en") if calls else {}
        if self._bridge is None:
            unknown.alook = functools.partial(self.inspect, attempt_id)
        else:
            unknown.look = functools.partial(self.inspect, attempt_id)

    def open_calls(self) -> list[dict[str, Any]]:
        """The calls that may have happened and that nobody has decided about, as in the snapshot."""
        snapshot = self._entered().actions.snapshot()
        return [call for call in snapshot["calls"] if call["open"]]

    def inspect(self, attempt_id: str) -> Any:
        """Look at the world with the verifier of an open call; gives (or awaits) the recorded inspection.

        Its `state` is `present`, `postcondition_satisfied`, `absent_fenced` or `unknown`; `present` with
        grade `proof` closes the call. Guard the function before: its declaration names the verifier.

        Raises: `UsageError` when no such call is open, `LedgerError` when it could not be recorded.
        """
        looking = self._entered().inspect(attempt_id)
        return looking if self._bridge is None else self._bridge.run(looking)

    @property
    def recovery(self) -> Recovery:
        """The open calls as JSON, and the decisions about them."""
        return Recovery(self._entered(), self._bridge)

    def _entered(self) -> Guarded:
        if self._guarded is None:
            raise UsageError("own the session first: `with ledger.session() as session:`")
        return self._guarded

    def _synchronous(self) -> _Bridge:
        if self._bridge is None:
            raise UsageError(
                "this ledger was opened with `async with`; use `async with` for its sessions too"
            )
        return self._bridge


class Recovery:
    """What `GET` and `POST /tool-recovery` say and take, for a program: same JSON, same codes, same rules."""

    def __init__(self, guarded: Guarded, bridge: _Bridge | None) -> None:
        self._guarded = guarded
        self._bridge = bridge

    def snapshot(self) -> dict[str, Any]:
        """The snapshot: open calls first, each with its six actions and why a press would be refused."""

        async def reading() -> dict[str, Any]:
            return self._guarded.actions.snapshot()

        # Under the bridge another thread changes the facts; there it is read between two of its steps.
        return self._guarded.actions.snapshot() if self._bridge is None else self._bridge.run(reading())

    def act(self, request: Mapping[str, Any] | None = None, /, *, by: str, **fields: Any) -> Any:
        """Inspect, confirm, deny, reject, release or retry; gives (or awaits) the new snapshot.

        The request is a mapping, its fields by name, or both: `sessionPath`, `runtimeEpoch` and `revision`
        of the snapshot that was decided on, `action`, `attemptId` (or `items`), `inspectionId`, `note`.
        `by` names the person whose word it is. Code inside a tool body is refused.

        Raises: `RecoveryRefused`; its facts hold `code`, and `reason` and `record` where they apply.
        """
        asked = {**(request or {}), **fields}
        return self._done(self._admitted(lambda: self._guarded.actions.act(asked, _caller(by))))

    def process(self, request: Mapping[str, Any] | None = None, /, *, by: str, **fields: Any) -> Any:
        """Adopt, kill or leave what a call left running: the request of `act`, with `choice` for `action`.

        Raises: `RecoveryRefused`.
        """
        asked = {**(request or {}), **fields}
        return self._done(self._admitted(lambda: self._guarded.actions.process(asked, _caller(by))))

    def _done(self, work: Coroutine[Any, Any, dict[str, Any]]) -> Any:
        return work if self._bridge is None else self._bridge.run(work)

    async def _admitted(self, press: Callable[[], Awaitable[Answer]]) -> dict[str, Any]:
        answer = await press()
        if answer.status == 200:
            return dict(answer.body)
        from surefoot.surfaces.words import refusal  # the sentence that every other surface shows

        facts = {key: value for key, value in answer.body.items() if key != "message"}
        text = refusal(facts["code"], "en", reason=facts.get("reason"))
        raise RecoveryRefused(text, **facts)


def _caller(by: str) -> Caller:
    """Who decides in a program. Whether that code may is judged where it is recorded."""
    from surefoot.runtime.requests import Caller

    if not isinstance(by, str) or not by.strip():
        raise UsageError("say who decides: `by` names a person")
    return Caller(who=by, channel="python", client=Path(sys.argv[0] or "python").name)


def tool_of(
    function: Callable[..., Any],
    *,
    effect: str = "UNKNOWN",
    reach: Sequence[str] = ("*",),
    name: str | None = None,
    **declared: Any,
) -> Tool:
    """A tool whose body is `function`; its parameters become the JSON Schema of the arguments.

    Raises: `UsageError` for a class, a reach or a field that is none.
    """
    from surefoot.core.effects import Effect
    from surefoot.core.model import EffectClass
    from surefoot.runtime.tools import Tool

    classes = [member.value for member in EffectClass]
    if effect not in classes:
        raise UsageError(f"{function.__name__}: effect {effect!r} is none of {', '.join(classes)}.")
    if isinstance(reach, str):
        raise UsageError(f"{function.__name__}: reach is a list of places; write [{reach!r}].")
    wrong = sorted(set(declared) - {field.name for field in dataclasses.fields(Tool)})
    if wrong:
        raise UsageError(
            f"{function.__name__}: {wrong[0]!r} is no field of surefoot.Tool; help(surefoot.Tool) lists them."
        )
    effect_class = EffectClass(effect)
    members = () if effect_class is EffectClass.READ_ONLY else tuple(sorted(reach))
    wants_attempt = "attempt" in inspect.signature(function).parameters

    def bound(attempt: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {**arguments, **({"attempt": attempt} if wants_attempt else {})}

    async def body(attempt: Any, arguments: Mapping[str, Any]) -> str:
        return _as_text(await function(**bound(attempt, arguments)))

    def sync_body(attempt: Any, arguments: Mapping[str, Any]) -> str:
        return _as_text(function(**bound(attempt, arguments)))

    is_async = inspect.iscoroutinefunction(function)
    return Tool(
        name=name or function.__name__,
        description=inspect.getdoc(function) or f"Calls {function.__name__}.",
        parameters=_schema(function),
        body=body if is_async else None,
        sync_body=None if is_async else sync_body,
        effect=Effect(effect_class, members),
        **declared,
    )


def _by_name(
    function: Callable[..., Any], positional: Sequence[Any], arguments: dict[str, Any]
) -> dict[str, Any]:
    """Arguments by their names, as a receipt holds them. Raises `TypeError` as the function itself would."""
    if not positional:
        return arguments
    return dict(inspect.signature(function).bind_partial(*positional, **arguments).arguments)


def _as_text(value: Any) -> str:
    """The result as JSON. What has no JSON form is told by its `repr`: the effect happened all the same."""
    return json.dumps(value, ensure_ascii=False, default=repr)


def _schema(function: Callable[..., Any]) -> dict[str, Any]:
    """JSON Schema of a function's keyword arguments, from its annotations."""
    from pydantic import TypeAdapter

    properties, required = {}, []
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if parameter.name == "attempt":
            continue
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise UsageError(f"{function.__name__}: parameter {parameter.name!r} cannot be recorded by name")
        annotated = parameter.annotation is not parameter.empty
        properties[parameter.name] = TypeAdapter(parameter.annotation).json_schema() if annotated else {}
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


class _Bridge:
    """The one bridge from synchronous code: an event loop in a thread of its own."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="surefoot", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T] | Awaitable[T]) -> T:
        """Run `work` on the loop and wait for it. Ctrl+C ends the waiting, not what was begun.

        Raises `LedgerForked` at once in a forked child, where nobody runs the loop (TR-198).
        """

        if not self.is_here():
            if asyncio.iscoroutine(work):
                work.close()
            raise LedgerForked(
                "this ledger was opened by the process that forked this one; open the ledger anew after a fork"
            )

        async def waiting() -> T:
            return await work

        return asyncio.run_coroutine_threadsafe(waiting(), self._loop).result()

    def is_here(self) -> bool:
        """Whether this process made the bridge, and is no fork of the one that did."""
        return os.getpid() == self._pid

    def close(self) -> None:
        """Stop the loop and wait for its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def open(directory: Path | str | None = None, *, ledger: Path | str | None = None) -> Opened:
    """Open the ledger of a project for guarded calls.

    `directory` is where the program works (the current one by default); `ledger` moves ledgers and
    settings to a folder of your own instead of the person's. Nothing is read before the `with` is entered.

    Raises: when it is entered, `SettingsError`, `LedgerError` (damaged, newer, locked, a full disk).
    """
    return Opened(directory, ledger)
