"""One owner of one session inside a simulation: session, barrier, people, actions, controller.

Owns: putting the runtime's own parts together on virtual time, a ledger in memory and a
played model. Does not own: the order of events (`simulation`), effects (`world`).

    store = memory_store(sim)
    owner = Actor(sim, store, tools=[world.tool(…)], model=PlayedModel(steps))
    ended = await owner.run(owner.turn("go"))       # None when it was killed meanwhile
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from surefoot.core.limits import Limits, read_limits
from surefoot.core.model import Mode, Owner
from surefoot.errors import SessionHeld
from surefoot.ledger.memory import MemoryLedger, MemoryStore
from surefoot.ledger.owners import Death
from surefoot.ledger.port import Held, Ledger
from surefoot.runtime.actions import Actions
from surefoot.runtime.barrier import Barrier
from surefoot.runtime.controller import Controller, Parked, TurnEnd
from surefoot.runtime.people import Asker, People
from surefoot.runtime.permission import parse_rules
from surefoot.runtime.reconcile import NoSupervision
from surefoot.runtime.session import LeaseTimes, Session, Wanted
from surefoot.runtime.standing import Policy
from surefoot.runtime.tools import Place, Registry, Tool
from surefoot.testing.played import PlayedModel
from surefoot.testing.simulation import BOOT_ID, SimProcess, Simulation

T = TypeVar("T")


def memory_store(sim: Simulation, *, deaths_seen: bool = True) -> MemoryStore:
    """A store whose owners are the simulated processes.

    `deaths_seen` False is another machine: nobody can tell, so that a lease must run out.
    """

    def death(owner: Owner) -> Death:
        if not deaths_seen:
            return "cannot_tell"
        return "alive" if sim.is_alive(owner) else "dead"

    return MemoryStore(sim.clock, death=death)


@dataclass(frozen=True, slots=True)
class ActorSettings:
    """What may differ from the usual owner."""

    asker: Asker | None = None
    wrap: Callable[[Ledger, SimProcess], Ledger] = lambda ledger, process: ledger
    """Puts a faulty ledger around the actor's own handle, e.g. `DyingLedger`."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `runtime.actions.Policy`."""


class Actor:
    """A simulated process that owns, or tries to own, one session."""

    def __init__(
        self,
        sim: Simulation,
        store: MemoryStore,
        *,
        tools: Sequence[Tool],
        model: PlayedModel,
        name: str = "owner",
        settings: ActorSettings | None = None,
    ) -> None:
        chosen = settings or ActorSettings()
        self.process = sim.process(name)
        self.ledger: Ledger = chosen.wrap(MemoryLedger(store), self.process)
        self.model = model
        self.asker = chosen.asker
        self.limits: Limits = read_limits(dict(chosen.limits))
        self.controller: Controller | None = None
        self._tools = tuple(tools)
        self._policy = dict(chosen.policy)
        self._scheduler = self.process.scheduler()

    async def run(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Do something as this process; None when it died before the end."""
        return await self.process.run(work)

    async def open(self, session_id: str, *, new: bool = False, take_over: bool = False) -> Controller:
        """Own the session and judge what a dead owner left. Raises `SessionHeld`."""
        wanted = Wanted(session_id, opening={"directory": "/sim"} if new else None, take_over=take_over)
        times = LeaseTimes(self.limits.lease_seconds, self.limits.lease_renewal_seconds)
        session = await Session.open(self.ledger, self._scheduler, self.process.owner, wanted, times=times)
        if isinstance(session, Held):
            raise SessionHeld("another simulated process holds the session; kill it or wait", how=session.how)
        self.controller = self._assembled(session)
        await self.controller.open()
        return self.controller

    async def turn(self, text: str) -> TurnEnd | Parked:
        """One turn with words of a person. Call `open` first."""
        if self.controller is None:
            raise RuntimeError("open() the session before a turn")
        return await self.controller.submit(text)

    def _assembled(self, session: Session) -> Controller:
        place = Place(Path("/sim"))
        rules = parse_rules((), (), ())
        people = People(session, rules, mode=Mode.BYPASS, place=place, asker=self.asker)
        barrier = Barrier(
            session,
            Registry(self._tools),
            place,
            self.process.owner,
            permits=people.permit,
            services={"questions": people},
            limits=self.limits,
        )
        policy = Policy(**{"session_path": session.session_id, "boot_id": BOOT_ID, **self._policy})
        actions = Actions(session, barrier, NoSupervision(), policy, self.limits)
        return Controller(session, barrier, people, self.model, actions)
