"""The only place that wires things together.

Owns: making a ledger, a place, tools, a model and a session fit each other, and
closing them in the right order. Does not own: what any of them does.
"""

from __future__ import annotations

import dataclasses
import os
import platform
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot import config
from surefoot.briefing import Briefing, briefing
from surefoot.config import Settings
from surefoot.core.canonical import digest_text
from surefoot.core.limits import OLDER, LimitInvalid, Limits, read_limits
from surefoot.core.model import BarrierLevel, Notice, Owner, Receipt
from surefoot.errors import (
    ProviderError,
    RecoveryRefused,
    SessionHeld,
    SessionMissing,
    SettingsError,
    UsageError,
)
from surefoot.ledger.newest import newest_said
from surefoot.ledger.opening import open_ledger
from surefoot.ledger.owners import this_process
from surefoot.ledger.places import OWNERS, PROCESSES, ledger_files
from surefoot.ledger.port import Held, Ledger, SessionRow
from surefoot.machine import boot_id
from surefoot.offering import built_in_tools, judged, packs_in_use, rules_of
from surefoot.providers import contracts
from surefoot.providers.client import Client
from surefoot.providers.endpoints import Endpoint, place_of
from surefoot.providers.hosted import enabled
from surefoot.providers.port import ToolSpec
from surefoot.providers.projection import WIRES
from surefoot.runtime.actions import Actions
from surefoot.runtime.barrier import Barrier
from surefoot.runtime.controller import Controller
from surefoot.runtime.desk import Desk
from surefoot.runtime.guarded import Guarded
from surefoot.runtime.live import Hooks, Looked, Permit, Permits
from surefoot.runtime.models import EndpointModel, Model
from surefoot.runtime.people import Asker, People
from surefoot.runtime.permission import mode_of
from surefoot.runtime.rewriting import fork
from surefoot.runtime.scheduler import Scheduler
from surefoot.runtime.session import LeaseTimes, Session, Wanted
from surefoot.runtime.standing import Policy
from surefoot.runtime.tools import Place, Registry, Tool
from surefoot.settings_files import project_files
from surefoot.settings_table import VENDOR_KEYS
from surefoot.tools.hooks import SettingsHooks, hooks_pass
from surefoot.tools.place import find_place
from surefoot.tools.processes.ancestry import Descent, Link, descent_here, descent_of_peer
from surefoot.tools.processes.client import ProcessServer
from surefoot.tools.supervision import RunFolders
from surefoot.tools.worker import Worker
from surefoot.verifiers.files import FilesVerifier

RETRY_SWITCH = "SUREFOOT_TOOL_RECOVERY_RETRY"


@dataclass(slots=True)
class App:
    """A project's ledger, tools and model, ready for sessions."""

    settings: Settings
    directory: Path
    place: Place
    ledger: Ledger
    folder: Path
    scheduler: Scheduler
    owner: Owner
    limits: Limits
    asker: Asker | None
    on_notice: Callable[[Notice], None] | None
    model: Model | None
    _stack: AsyncExitStack
    _worker: Worker
    _processes: ProcessServer
    _supervision: RunFolders
    extra_tools: Sequence[Tool] = ()
    each_tool: Callable[[Tool], Tool] = lambda tool: tool
    hooks: Sequence[Hooks] = ()
    _briefing: Briefing | None = None

    async def sessions(self) -> list[SessionRow]:
        """The sessions of this project's ledger."""
        return await self.ledger.sessions()

    async def session(
        self,
        ref: str | None = None,
        *,
        new: bool = False,
        continue_newest: bool = False,
        take_over: bool = False,
    ) -> Controller:
        """Own a session and make it ready; runs no tool and sends nothing. A new one gets `ref` as its id.

        Raises `SessionMissing`, `SessionHeld`, `LedgerError`, and `UsageError` for an id that is taken.
        """
        session_id = await self._which(ref, new=new, continue_newest=continue_newest)
        # A model that cannot be had must not leave an empty session behind.
        await self.ready()
        session = await self._own(session_id, is_new=new, take_over=take_over)
        hooks = SettingsHooks(self.settings.hooks, self.place, session.session_id)
        barrier, people, actions = self._around(session, hooks)
        model = await self.ready()
        if isinstance(model, EndpointModel):
            model.offers = people.offered_of(barrier.registry)
        controller = Controller(session, barrier, people, model, actions)
        if self.settings.hooks:
            hooks.mode, hooks.notify = lambda: people.mode.value, controller.notify
            controller.events.listener = hooks
        controller.equipment.given = self._worked_with()
        controller.incidents.automatic = self.settings.recovery.automatic == "on"
        if self.on_notice is not None:
            controller.subscribe(self.on_notice)
        controller.rewriting.window_tokens = (
            self.settings.values.get("window_tokens") or controller.rewriting.window_tokens
        )
        await controller.open()
        return controller

    async def ready(self) -> Model:
        """The model, with its key found; a chat asks for it before there is a session. Raises as `session` does."""
        self.model = self.model or await self._endpoint_model()
        return self.model

    def still_ending(self) -> Mapping[str, float]:
        """Attempts that were told to end and have not, with the seconds until they are killed (UX-18)."""
        now = self.scheduler.boot_ms()
        kills = self._processes.still_ending()
        return {attempt: max(0.0, (at - now) / 1000) for attempt, at in kills.items()}

    def background(self) -> Sequence[Mapping[str, Any]]:
        """What was started in the background in this project and still runs (UX-157)."""
        return self._supervision.background()

    async def fork(self, ref: str) -> str:
        """Begin a session with the view of another one and copies of its open calls; its id (TR-96).

        Runs no tool, sends nothing, and writes nothing to the origin. Raises `SessionMissing`, `LedgerError`.
        """
        origin = find_session(await self.ledger.sessions(), ref)
        times = self._times()
        opening = self._opening()
        session = await fork(self.ledger, self.scheduler, self.owner, origin, opening=opening, times=times)
        await session.close()
        return session.session_id

    async def guarded(self, session_id: str | None = None) -> Guarded:
        """Own a session for calls of a program of the user's own, without model or controller.

        Raises `SessionMissing`, `SessionHeld`, `LedgerError`.
        """
        session = await self._own(session_id, take_over=False)
        if session.book.dropped:
            await session.close()
            raise _dropped(session.session_id)
        # A program that guards its own functions brings its own hooks; those of the settings are the agent's.
        hooks = SettingsHooks((), self.place, session.session_id)
        barrier, _, actions = self._around(session, hooks, permits=_let, registry=Registry())
        guarded = Guarded(session, barrier, actions)
        await guarded.open()
        return guarded

    async def _which(self, ref: str | None, *, new: bool, continue_newest: bool) -> str | None:
        if new and ref is not None and ref in {row.session_id for row in await self.ledger.sessions()}:
            raise UsageError(
                f"Session {ref} is there already; go on with it, or give another id.",
                next_command=f"surefoot -r {ref}",
            )
        if new or (ref is None and not continue_newest):
            return ref
        rows = [row for row in await self.ledger.sessions() if row.status == "ok"]
        if ref is None:
            if not rows:
                raise SessionMissing(
                    "There is no session to continue in this project yet.", next_command='surefoot "…"'
                )
            return await self.newest(rows)
        return find_session(await self.ledger.sessions(), ref)

    async def newest(self, rows: Sequence[SessionRow]) -> str:
        """The newest session somebody said a word in; a chat that was only opened is nothing to go on with."""
        return (await newest_said(self.ledger, rows)).session_id

    async def _own(self, session_id: str | None, *, take_over: bool, is_new: bool = False) -> Session:
        opening = self._opening() if session_id is None or is_new else None
        wanted = Wanted(session_id, opening=opening, take_over=take_over)
        session = await Session.open(self.ledger, self.scheduler, self.owner, wanted, times=self._times())
        if isinstance(session, Held):
            raise _held(session, session_id or "", self.scheduler.now_ms())
        self._stack.push_async_callback(session.close)
        return session

    def _times(self) -> LeaseTimes:
        limits = self.limits
        return LeaseTimes(limits.lease_seconds, limits.lease_renewal_seconds, limits.lease_extension_seconds)

    def _opening(self) -> Mapping[str, Any]:
        return {
            "directory": str(self.directory),
            "model": self._model_name(),
            "platform": platform.system(),
            "barrier": self.settings.recovery.barrier,
            "instructions": dict(self.briefing().instructions),
        }

    def _worked_with(self) -> dict[str, Any]:
        """What a resume compares with what the session worked with before (UX-55)."""
        contract = effort = None
        with suppress(SettingsError):  # a part put in its place needs no endpoint
            chosen = self.settings.chosen()
            contract, effort = chosen.endpoint.contract, chosen.effort
        shared, own = project_files(self.settings.root)
        files = [*shared, *own] if self.settings.trusted else []
        text = "".join(file.read_text(encoding="utf-8") for file in files)
        return {
            "model": self._model_name(),
            "effort": effort,
            "contract": contract,
            "settings": digest_text(text) if text else None,
            "instructions": dict(self.briefing().instructions),
        }

    def _model_name(self) -> str | None:
        try:
            return str(self.settings.chosen())
        except SettingsError:
            return self.settings.model  # a part put in its place needs no endpoint

    def _around(
        self,
        session: Session,
        hooks: SettingsHooks,
        *,
        permits: Permits | None = None,
        registry: Registry | None = None,
    ) -> tuple[Barrier, People, Actions]:
        """Barrier, people and actions of one owned session, wired to each other."""
        if registry is None:
            registry = self.registry(session)
        if hooks.any:
            registry.add(hooks.tool())
        mode = mode_of(self.settings.permissions.mode)
        rules = rules_of(self.settings, self.place)
        people = People(session, rules, mode=mode, place=self.place, asker=self.asker)
        services: dict[str, Any] = {}
        barrier = Barrier(
            session,
            registry,
            self.place,
            self.owner,
            permits=permits or hooks_pass(people.permit),
            services=services,
            limits=self.limits,
            hooks=[*self.hooks, hooks],
        )
        hooks.attach(barrier)
        actions = Actions(session, barrier, self._supervision, self._policy(session), self.limits)
        actions.descent = lambda: self._descent(session)
        desk = Desk(actions, self.limits)
        services.update(
            {
                "processes": self._processes,
                "left": set(),
                "ledger_files": lambda: ledger_files(self.folder),
                "put_blob": self.ledger.put_blob,
                "questions": people,
                "todo": desk,
                "recovery": desk,
                "limits": dataclasses.asdict(self.limits),
                "earlier": lambda receipt: _earlier(session, receipt),
            }
        )
        session.level = BarrierLevel(self.settings.recovery.barrier)
        return barrier, people, actions

    def _descent(self, session: Session) -> tuple[str | None, str]:
        """Whether this process descends from a tool, before it decides about this session (UX-119)."""
        found = descent_here(self.settings.places.ledgers, recorded=_recorded(session))
        return found.reason, found.ancestry

    def check_take_over(self) -> None:
        """Refuse a take-over by a process that descends from a tool (UX-119). Raises `RecoveryRefused`."""
        found = descent_here(self.settings.places.ledgers, recorded=())
        if found.reason is not None:
            raise RecoveryRefused(
                f"Only a person may take a session over ({found.reason}).",
                code="person_required",
                reason=found.reason,
            )

    def descent_of(self, pid: int, session: Session) -> Descent:
        """What the parents of a process that connected to us say of it (UX-119)."""
        return descent_of_peer(pid, self.settings.places.ledgers, recorded=_recorded(session))

    def registry(self, session: Session | None = None) -> Registry:
        """The built-in tools, and those of the program that opened this app."""
        verifier = FilesVerifier(
            lambda: ledger_files(self.folder),
            roots=lambda: self.place.roots,
            digest_file_bytes=self.limits.digest_file_bytes,
        )

        def reach_of(attempt_id: str) -> tuple[str, ...]:
            receipt = None if session is None else session.book.get(attempt_id)
            return () if receipt is None else receipt.reach

        own = built_in_tools(self.settings, worker=self._worker, verifier=verifier, reach_of=reach_of)
        offered = self._offered()
        return Registry(
            self.each_tool(tool)
            for tool in judged([*own, *self.extra_tools], self.settings)
            if offered is None or _is_named(tool, offered)
        )

    def _offered(self) -> Sequence[str] | None:
        """The only tools to offer: those of the command line, else those of the endpoint, else all."""
        given = self.settings.offered_tools
        if given is not None:
            return given
        with suppress(SettingsError):  # a part put in its place needs no endpoint
            return self.settings.chosen().endpoint.tools or None
        return None

    def _policy(self, session: Session) -> Policy:
        recovery = self.settings.recovery
        return Policy(
            session_path=f"{self.folder.name}/{session.session_id}",
            on_unknown=recovery.on_unknown,
            resume_retry=recovery.resume_retry,
            retry_enabled=os.environ.get(RETRY_SWITCH) == "1",
            boot_id=boot_id(),
            assurance=recovery.assurance_for_irreversible,
            inspect_on_resume=recovery.inspect_on_resume,
            release_stopped_checks=recovery.release_stopped_checks,
            named=recovery.policy,
        )

    async def _endpoint_model(self) -> Model:
        """The model of the settings, with its key found. Raises `SettingsError`, `ProviderCredentials`."""
        chosen = self.settings.chosen()
        wire = WIRES.get(chosen.endpoint.wire)
        if wire is None:
            raise UsageError(
                f"Endpoint {chosen.endpoint.name!r} asks for wire {chosen.endpoint.wire!r}; known: {', '.join(WIRES)}."
            )
        endpoint = await self._endpoint(chosen)
        own = self.settings.places.settings_folder / "contracts"
        contract = contracts.resolve_for(endpoint.name, chosen.endpoint.wire, endpoint.contract, [own])
        if not chosen.endpoint.key_command:
            config.read_key(chosen.endpoint)
        contract = contract.with_reasoning_protocol(chosen.endpoint.reasoning_protocol)
        try:
            enabled(chosen.endpoint.hosted_tools, contract)
        except ValueError as error:
            raise SettingsError(
                f"hosted_tools of endpoint {chosen.endpoint.name!r}: {error}.",
                next_command=f"surefoot contract show {endpoint.contract}",
            ) from None
        client = await self._stack.enter_async_context(Client())
        origin = self.settings.origins.get("model")
        by_flag = self.settings.model if origin is not None and origin.source == "flags" else None
        return EndpointModel(
            client,
            endpoint,
            wire(),
            contract,
            system=self.briefing().text,
            tools=[ToolSpec(tool.name, tool.description, tool.parameters) for tool in self.registry()],
            max_requests=self.settings.recovery.max_requests_per_step,
            effort=contract.effort(chosen.effort, chosen.endpoint.name),
            hosted=chosen.endpoint.hosted_tools,
            asked_for={"model": by_flag, "effort": self.settings.effort},
        )

    async def _endpoint(self, chosen: config.Chosen) -> Endpoint:
        if chosen.endpoint.embedded:
            return await self._local(chosen.model)
        return Endpoint(
            name=chosen.endpoint.name,
            url=chosen.endpoint.url,
            wire=chosen.endpoint.wire,
            contract=chosen.endpoint.contract,
            model=chosen.model,
            key=lambda: config.read_key(chosen.endpoint),
            headers=chosen.endpoint.headers,
            reasoning_protocol=chosen.endpoint.reasoning_protocol,
        )

    async def _local(self, name: str) -> Endpoint:
        from surefoot.providers.local import LocalServer

        server = LocalServer(name)
        self._stack.push_async_callback(server.stop)
        return await server.start(self._progress)

    def _progress(self, text: str) -> None:
        if self.on_notice is not None:
            self.on_notice(Notice("local_model", {"text": text}))

    def briefing(self) -> Briefing:
        """What its models are told first, read once: a session begins with the instructions as they are then."""
        self._briefing = self._briefing or briefing(self.settings, self.place)
        return self._briefing


@asynccontextmanager
async def open_app(
    settings: Settings,
    *,
    directory: Path,
    asker: Asker | None = None,
    on_notice: Callable[[Notice], None] | None = None,
    parts: Parts | None = None,
) -> AsyncIterator[App]:
    """Open this project's ledger and make tools ready; everything is closed at the end, sessions first."""
    given = parts or Parts()
    limits = _limits(settings)
    folder = settings.places.ledger_folder(directory)
    async with AsyncExitStack() as outer:
        ledger = given.ledger(await given.engine(folder, limits=limits))
        outer.push_async_callback(ledger.close)
        owner, lock = this_process(folder / OWNERS)
        outer.callback(lock.close)
        worker = Worker()
        outer.callback(worker.close)
        processes = ProcessServer(folder / PROCESSES, limits)
        outer.push_async_callback(processes.close)
        place = dataclasses.replace(
            find_place(directory, settings.added_folders),
            classifier_bytes=limits.classifier_bytes,
            classifier_nodes=limits.classifier_nodes,
        )
        async with AsyncExitStack() as stack:
            yield App(
                settings=settings,
                directory=place.directory,
                place=place,
                ledger=ledger,
                folder=folder,
                scheduler=given.scheduler or Scheduler(),
                owner=owner,
                limits=limits,
                asker=asker,
                on_notice=on_notice,
                model=given.model,
                _stack=stack,
                _worker=worker,
                _processes=processes,
                _supervision=RunFolders(
                    folder / PROCESSES, background_probe_seconds=limits.background_probe_seconds
                ),
                extra_tools=given.tools,
                hooks=given.hooks,
                each_tool=given.each_tool,
            )


@dataclass(frozen=True, slots=True)
class Parts:
    """What a program or a test puts in place of the parts made here."""

    model: Model | None = None
    tools: Sequence[Tool] = ()
    scheduler: Scheduler | None = None
    engine: Callable[..., Awaitable[Ledger]] = open_ledger
    """Opens the ledger of a project's folder; `lease_seconds` by name is how long a claim lasts unrenewed."""
    ledger: Callable[[Ledger], Ledger] = lambda ledger: ledger
    """Wraps the ledger; ports are where faults are put in tests."""
    each_tool: Callable[[Tool], Tool] = lambda tool: tool
    """Wraps every tool, the built-in ones too; what it gives is what is registered."""
    hooks: Sequence[Hooks] = ()
    """Asked before each call and told after it; what they do themselves are calls of their own (TR-25)."""


def _limits(settings: Settings) -> Limits:
    """The bounds, the two that go by an older setting's name among them. Raises `SettingsError`."""
    older = {name: getattr(settings.recovery, name) for name in OLDER}
    try:
        return read_limits({**settings.limits, **older})
    except LimitInvalid as error:
        raise SettingsError(f"{error}.", next_command="surefoot config show --origin") from None


def find_session(rows: Sequence[SessionRow], ref: str) -> str:
    """The session a reference means: an id, a unique beginning or ending of one, or a name.

    Raises `SessionMissing` when none or more than one fits.
    """
    wanted = ref.removeprefix("ses_")
    exact = [row for row in rows if ref in (row.session_id, row.name)]
    tails = [row.session_id.removeprefix("ses_") for row in rows]
    fits = [f"ses_{tail}" for tail in tails if wanted and (tail.startswith(wanted) or tail.endswith(wanted))]
    found = [row.session_id for row in exact] or fits
    if len(found) == 1:
        _check_there(next(row for row in rows if row.session_id == found[0]))
        return found[0]
    problem = "fits more than one session" if found else "names no session of this project"
    raise SessionMissing(f"{ref!r} {problem}.", next_command="surefoot session list")


def _dropped(session_id: str) -> SessionMissing:
    return SessionMissing(
        f"The words of session {session_id} were dropped; what is left of its calls can still be listed.",
        next_command=f"surefoot recover list --all --session {session_id}",
    )


def _check_there(row: SessionRow) -> None:
    """A session whose words are gone is nothing to go on with, and is not begun anew under its id."""
    if row.status == "dropped":
        raise _dropped(row.session_id)
    if row.status != "ok":
        raise SessionMissing(
            f"Session {row.session_id} is {row.status}.", next_command="surefoot ledger verify"
        )


def _held(held: Held, session_id: str, now_ms: int) -> SessionHeld:
    """Who holds it, since when, how its death would be known, and the ways on (UX-51)."""
    when = "at once" if held.how == "at_once" else "when its lease ends, at most 10 minutes from now"
    seconds = max(0, now_ms - held.since_ms) // 1000
    since = f" for {seconds // 60} min" if seconds >= 60 else f" for {seconds} s"
    return SessionHeld(
        f"Session {session_id} is open in process {held.owner.pid} on {held.owner.host}{since}; if that process dies"
        f" it is known {when}. Read it with surefoot session show, fork it with surefoot session fork, wait with"
        " --wait SECONDS, or take it over with --take-over.",
        next_command=f"surefoot session show {session_id}",
        session_id=session_id,
        pid=held.owner.pid,
        host=held.owner.host,
        since=held.since_ms,
        how=held.how,
    )


async def _let(looked: Looked) -> Permit:
    """A program that guards its own functions is their owner: nobody else is asked."""
    return Permit(True)


def _recorded(session: Session) -> set[Link]:
    """The processes that receipts name: of commands, and of owners (UX-119)."""
    found = set()
    for receipt in session.book:
        for record in (receipt.process or {}, receipt.owner or {}):
            if record.get("pid") and record.get("startTicks"):
                found.add((int(str(record["pid"])), int(str(record["startTicks"]))))
    return found


def _is_named(tool: Tool, names: Sequence[str]) -> bool:
    """Whether a list of tool names means this tool, by its own name, an alias or that of permission rules."""
    return bool({tool.name, tool.rule_name, *tool.aliases} & set(names))


def _earlier(session: Session, receipt: Receipt) -> list[Receipt]:
    """The attempts before this one at the same call, oldest first."""
    return [one for one in session.book.attempts(receipt.call_id) if one.attempt_id != receipt.attempt_id]


def examine(settings: Settings) -> None:
    """Refuse what a run under these settings would refuse, and open nothing: bounds, packs, rules, addresses and
    contracts. Raises `SettingsError`, `UsageError`."""
    _limits(settings)
    packs_in_use(settings)
    mode_of(settings.permissions.mode)
    own = settings.places.settings_folder / "contracts"
    for endpoint in settings.endpoints.values():
        if not endpoint.embedded:
            try:
                place_of(endpoint.name, endpoint.url)
            except ProviderError as error:
                raise SettingsError(error.message, next_command="surefoot config show --origin") from None
            contracts.resolve_for(endpoint.name, endpoint.wire, endpoint.contract, [own])
    if settings.model and settings.model.partition("/")[0] not in VENDOR_KEYS:
        settings.chosen()
