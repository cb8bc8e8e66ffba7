"""A session, its barrier and its controller in one line, for tests of ten lines.

Owns: putting the runtime's own parts together over a store in memory that several
simulated processes share, or over a real ledger folder; one call or one batch without a
model; a press of a person. Does not own: the order of events (`simulation`), effects
(`world`), what is asserted.

    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew = await rig.own(Setup(tools=[rig.world.tool("pay", EffectClass.NON_IDEMPOTENT)]))
        receipt = await crew.call("pay", label="a")

    simulate(1, main)
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.core.limits import read_limits
from surefoot.core.model import BarrierLevel, Draft, Entry, Kind, Mode, Notice, Owner, Receipt
from surefoot.errors import SessionHeld
from surefoot.ledger.memory import MemoryLedger, MemoryStore
from surefoot.ledger.opening import open_ledger
from surefoot.ledger.owners import this_process
from surefoot.ledger.places import OWNERS
from surefoot.ledger.port import Held, Ledger
from surefoot.runtime.actions import Actions
from surefoot.runtime.barrier import Barrier
from surefoot.runtime.batches import run_batch
from surefoot.runtime.controller import Controller
from surefoot.runtime.live import Call, Hooks
from surefoot.runtime.people import Asker, People
from surefoot.runtime.permission import parse_rules
from surefoot.runtime.reconcile import NoSupervision
from surefoot.runtime.requests import Answer, Caller
from surefoot.runtime.scheduler import Scheduler
from surefoot.runtime.session import LeaseTimes, Session, Wanted
from surefoot.runtime.standing import Policy
from surefoot.runtime.tools import Place, Registry, Tool
from surefoot.testing.played import PlayedModel
from surefoot.testing.simulation import SimProcess, Simulation
from surefoot.testing.stage import memory_store
from surefoot.testing.world import CountingWorld

SESSION = "ses_01hf7z0000000000000000000a"
Asked = tuple[str, Mapping[str, Any] | str]
"""A tool's name and its arguments, as an object or as the text a model would write."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What may differ from the usual owner."""

    tools: Sequence[Tool] | Callable[[SimProcess], Sequence[Tool]] = ()
    steps: Sequence[dict[str, Any]] = ()
    """What the played model asks for, step by step."""
    model: PlayedModel | None = None
    asker: Asker | None = None
    hooks: Sequence[Hooks] = ()
    level: BarrierLevel = BarrierLevel.REACH
    ask: Sequence[str] = ()
    """Permission rules that ask a person; without any, everything is allowed."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)
    place: Place = Place(Path("/sim"))  # noqa: RUF009 - a frozen value


class Crew:
    """An owner at work: its controller, and what its surfaces were shown."""

    def __init__(self, controller: Controller, model: PlayedModel, process: SimProcess | None) -> None:
        self.controller = controller
        self.model = model
        self.process = process
        self.name = "this process" if process is None else process.name
        self.session: Session = controller.session
        self.barrier: Barrier = controller.barrier
        self.actions: Actions = controller.actions
        self.notices: list[Notice] = []
        self._turns = 0
        controller.subscribe(self.notices.append)

    async def do(self, work: Any) -> Any:
        """Await something as this process; None when it died before the end."""
        if self.process is None:
            return await work
        if not self.process.alive:
            work.close()
            return None
        return await self.process.run(work)

    async def dispatch(self, *asked: Asked) -> list[Call]:
        """D1 of one message: its calls are durable, and none of them has been looked at."""
        self._turns += 1
        new_id, turn_id = self.session.scheduler.new_id, f"trn_{self._turns:026d}"
        texts = [given if isinstance(given, str) else json.dumps(given) for _, given in asked]
        calls = [
            Call(turn_id, new_id("cal"), new_id("att"), name, text)
            for (name, _), text in zip(asked, texts, strict=True)
        ]
        rows = [
            {
                "callId": call.call_id,
                "attemptId": call.attempt_id,
                "position": place,
                "askedName": call.asked_name,
                "arguments": call.arguments,
                "providerCallId": f"call_{place}",
            }
            for place, call in enumerate(calls)
        ]
        await self.session.history()
        await self.session.append(Draft(Kind.ASSISTANT, {"turnId": turn_id, "text": "", "calls": rows}))
        return calls

    async def batch(self, *asked: Asked) -> list[Receipt]:
        """One message with these calls, run as the controller runs it; None when the process died."""

        async def work() -> list[Receipt]:
            return await run_batch(self.barrier, await self.dispatch(*asked), self.session.scheduler)

        receipts: list[Receipt] = await self.do(work())
        return receipts

    async def call(self, tool: str, /, **arguments: Any) -> Receipt:
        """One call in a message of its own."""
        receipts = await self.batch((tool, arguments))
        return receipts[0]

    async def turn(self, text: str = "go") -> Any:
        """One turn of the controller with words of a person."""
        return await self.do(self.controller.submit(text))

    def receipt(self, attempt_id: str) -> Receipt:
        """What the book says of an attempt now."""
        found = self.session.book.get(attempt_id)
        if found is None:
            raise KeyError(attempt_id)
        return found

    async def press(self, action: str, attempt_id: str, /, *, who: str = "lin", **changed: Any) -> Answer:
        """A press of a person on what the snapshot shows now; `changed` replaces fields of the request."""
        shown = self.actions.snapshot()
        inspection = self.receipt(attempt_id).inspection or {}
        request = {
            "sessionPath": shown["sessionPath"],
            "runtimeEpoch": shown["runtimeEpoch"],
            "revision": shown["revision"],
            "attemptId": attempt_id,
            "inspectionId": inspection.get("id"),
            "action": action,
            **changed,
        }
        answer: Answer = await self.do(self.actions.act(request, Caller(who, "python")))
        return answer

    async def entries(self, kind: str = "") -> list[Entry]:
        """The entries of the session, or those of one kind."""
        entries = await self.session.ledger.read(self.session.session_id)
        return [entry for entry in entries if kind in ("", entry.kind)]

    def told(self, kind: str) -> list[Mapping[str, Any]]:
        """The facts of the notices of one kind so far."""
        return [notice.facts for notice in self.notices if notice.kind == kind]


class Rig:
    """One store, one world, and as many owners as a test wants."""

    def __init__(self, sim: Simulation, *, deaths_seen: bool = True) -> None:
        self.sim = sim
        self.world = CountingWorld()
        self.store: MemoryStore = memory_store(sim, deaths_seen=deaths_seen)

    async def own(
        self,
        setup: Setup | None = None,
        *,
        wrap: Callable[[Ledger, SimProcess], Ledger] | None = None,
        take_over: bool = False,
        opened: bool = True,
    ) -> Crew:
        """A new process that owns the session; `opened` False leaves what it finds unjudged.

        Raises `SessionHeld`.
        """
        crew = await self.try_own(setup, wrap=wrap, take_over=take_over, opened=opened)
        if crew is None:
            raise RuntimeError("the process died while it opened the session")
        return crew

    async def try_own(
        self,
        setup: Setup | None = None,
        *,
        wrap: Callable[[Ledger, SimProcess], Ledger] | None = None,
        take_over: bool = False,
        opened: bool = True,
    ) -> Crew | None:
        """As `own`; None when the process died before it was done."""
        chosen, process = setup or Setup(), self.sim.process(f"owner {len(self.sim.processes)}")
        ledger: Ledger = MemoryLedger(self.store)
        ledger = ledger if wrap is None else wrap(ledger, process)
        opening = None if SESSION in self.store.sessions else {"directory": "/sim"}
        wanted = Wanted(SESSION, opening, take_over)

        async def begin() -> Crew:
            tools = chosen.tools(process) if callable(chosen.tools) else chosen.tools
            made = dataclasses.replace(chosen, tools=tools)
            crew = await assemble(ledger, process.scheduler(), process.owner, wanted, made, process)
            if opened:
                await crew.controller.open()
            return crew

        return await process.run(begin())


async def assemble(
    ledger: Ledger,
    scheduler: Scheduler,
    owner: Owner,
    wanted: Wanted,
    setup: Setup,
    process: SimProcess | None,
) -> Crew:
    """Own a session and put the runtime's parts around it. Raises `SessionHeld`."""
    limits = read_limits(dict(setup.limits))
    times = LeaseTimes(limits.lease_seconds, limits.lease_renewal_seconds, limits.lease_extension_seconds)
    session = await Session.open(ledger, scheduler, owner, wanted, times=times)
    if isinstance(session, Held):
        raise SessionHeld("another owner holds the session; end it or wait", how=session.how)
    session.level = setup.level
    mode = Mode.DEFAULT if setup.ask else Mode.BYPASS
    tools = () if callable(setup.tools) else setup.tools
    named = [tool.rule_name or tool.name for tool in tools]
    rules = parse_rules([name for name in named if name not in setup.ask], tuple(setup.ask), ())
    people = People(session, rules, mode=mode, place=setup.place, asker=setup.asker)
    barrier = Barrier(
        session,
        Registry(tools),
        setup.place,
        owner,
        permits=people.permit,
        services={"questions": people},
        limits=limits,
        hooks=setup.hooks,
    )
    known = {"session_path": session.session_id, "boot_id": owner.boot_id, **setup.policy}
    actions = Actions(session, barrier, NoSupervision(), Policy(**known), limits)
    model = setup.model or PlayedModel(setup.steps)
    return Crew(Controller(session, barrier, people, model, actions), model, process)


@asynccontextmanager
async def on_disk(folder: Path, setup: Setup | None = None, *, new: bool = True) -> AsyncIterator[Crew]:
    """An owner over a real ledger folder, on the real event loop."""
    ledger = await open_ledger(folder)
    owner, lock = this_process(folder / OWNERS)
    try:
        wanted = Wanted(SESSION, {"directory": str(folder)} if new else None)
        crew = await assemble(ledger, Scheduler(), owner, wanted, setup or Setup(), None)
        try:
            await crew.controller.open()
            yield crew
        finally:
            await crew.session.close()
    finally:
        await ledger.close()
        lock.close()


__all__ = ["SESSION", "Crew", "Rig", "Setup", "assemble", "on_disk"]
