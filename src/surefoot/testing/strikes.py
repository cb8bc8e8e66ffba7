"""What strikes at a seam of a child: Stop, a full or failing disk, jumping clocks, a person's press.

Owns: reading the `strike` of a spec, the engines a child can run on, and doing the harm
to this very process. Does not own: the seams (`faults`), the child's work (`child`).
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Protocol

import apsw

from surefoot.errors import LedgerError, LedgerUncertain
from surefoot.ledger.opening import open_ledger
from surefoot.ledger.port import Ledger
from surefoot.runtime.controller import Controller
from surefoot.testing.faults import Seams
from surefoot.testing.faulty_disk import Fault, FaultyDisk
from surefoot.testing.filed import FiledLedger, FiledStore, open_filed


class Struck(Protocol):
    """The fields of `child.ChildSpec` that stand for a fault."""

    @property
    def engine(self) -> str: ...
    @property
    def kill_at(self) -> int | None: ...
    @property
    def only(self) -> tuple[str, ...]: ...
    @property
    def press_at(self) -> str: ...
    @property
    def signal(self) -> int: ...
    @property
    def strike(self) -> Mapping[str, Any] | None: ...
    @property
    def trace(self) -> str | None: ...


class PressingSeams(Seams):
    """Seams at one of which the actions of the spec are pressed, once."""

    press_at = ""
    press: Callable[[], None] = staticmethod(lambda: None)

    def reach(self, name: str) -> None:
        """Press if it is here, then pass the seam."""
        if name == self.press_at:
            self.press_at = ""
            self.press()
        super().reach(name)


ENGINES: Mapping[str, Callable[..., Coroutine[Any, Any, Ledger]]] = {
    "sqlite": open_ledger,
    "memory": open_filed,
}
"""How each engine is opened. One without files of its own gets its faults at the store (`MemoryStore.fault`)."""


class Faults:
    """The seams of one run, and what strikes there."""

    def __init__(self, spec: Struck) -> None:
        self.controller: Controller | None = None
        self.disk: FaultyDisk | None = None
        self.store: FiledStore | None = None
        self.struck_at: str | None = None
        self.waited_for: asyncio.Task[Any] | None = None
        """What the surface of this child waits for now."""
        self.press: Callable[[], Coroutine[Any, Any, None]] | None = None
        self.engine = self._opening(ENGINES[spec.engine])
        self._strike = dict(spec.strike or {})
        self._loop = asyncio.get_running_loop()
        self._fault: Fault | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._refused = 0
        if self._strike.get("do") in ("disk", "full") and spec.engine == "sqlite":
            self.disk = FaultyDisk()
            apsw.set_default_vfs(self.disk.name)
        self.seams = PressingSeams(
            spec.kill_at,
            number=spec.signal,
            trace=Path(spec.trace) if spec.trace else None,
            only=spec.only,
            strike=self._act if spec.strike is not None else None,
        )
        self.seams.press_at = spec.press_at
        self.seams.press = self._press

    def _press(self) -> None:
        """Press, and wait in the thread of the tool's body for the answer. The press is none of that body's."""
        press, pressed = self.press, threading.Event()

        def begin() -> None:
            if press is not None:
                task = self._loop.create_task(press())
                task.add_done_callback(lambda _: pressed.set())
                self._tasks.append(task)

        self._loop.call_soon_threadsafe(begin, context=contextvars.Context())
        if not pressed.wait(90):
            raise TimeoutError("the press was not answered within 90 s")

    async def waits(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Await something as a surface does; None when it was given up."""
        self.waited_for = asyncio.ensure_future(work)
        await asyncio.wait({self.waited_for})
        if not self.waited_for.cancelled():
            return self.waited_for.result()
        until = self._loop.time() + 90
        while self.controller is not None and self.controller.state not in ("idle", "closed"):
            if self._loop.time() > until:
                raise TimeoutError("the turn nobody waits for has not ended within 90 s")
            await asyncio.wait({self._loop.create_future()}, timeout=0.005)
        return None

    def told(self) -> dict[str, Any]:
        """Where it struck, and how often the disk failed."""
        disk = self._refused if self._fault is None else self._fault.fired
        return {"at": self.struck_at, "disk": disk}

    def _act(self, name: str) -> None:
        self.struck_at = name
        what = self._strike
        if what["do"] in ("stop", "recover"):
            self._loop.call_soon_threadsafe(self._ask, what["do"])
        elif what["do"] == "give_up":
            self._loop.call_soon_threadsafe(lambda: self.waited_for and self.waited_for.cancel())
        elif what["do"] == "clock":
            jump_clocks(wall_ms=what.get("wall_ms", 0), boot_ms=what.get("boot_ms", 0))
        elif what["do"] == "crowded":
            self._crowd()
        elif self.store is not None and what["do"] in ("disk", "full"):
            self._fail_the_store(what)
        elif what["do"] == "full" and self.disk is not None:
            self.disk.full = self._is_full
        elif self.disk is not None:
            self._fault = self.disk.fail(
                what["operation"],
                what.get("nth", 1),
                how=what.get("how", "error"),
                lasting=what.get("lasting", False),
            )

    def _opening(
        self, opens: Callable[..., Coroutine[Any, Any, Ledger]]
    ) -> Callable[..., Coroutine[Any, Any, Ledger]]:
        async def opening(folder: Path, **how: Any) -> Ledger:
            ledger = await opens(folder, **how)
            if isinstance(ledger, FiledLedger):
                self.store = ledger.store
            return ledger

        return opening

    def _fail_the_store(self, what: Mapping[str, Any]) -> None:
        """The same faults where there is no disk: a refused commit, or one whose answer is lost."""
        store = self.store
        if store is None:
            return
        full = what["do"] == "full"
        times = int(what.get("times", sys.maxsize) if full or what.get("lasting") else 1)

        def fails(kinds: list[str]) -> LedgerError | None:
            if self._refused >= times:
                return None
            self._refused += 1
            if full or what.get("operation") != "sync":
                return LedgerError("the store is full (planned by a test); free some space and try again")
            return LedgerUncertain("the answer of a commit was lost (planned by a test); resolve it")

        def after(kinds: list[str]) -> LedgerError | None:
            return None if kinds == ["look_up"] else fails(kinds)

        if full or what.get("operation") != "sync":
            store.fault = fails
        else:
            store.fault_after = after
            if what.get("lasting"):
                store.fault = lambda kinds: fails(kinds) if kinds == ["look_up"] else None

    def _crowd(self) -> None:
        """Let the kernel say that one block is free."""
        real = os.statvfs

        def crowded(path: Any) -> os.statvfs_result:
            self._refused += 1
            facts = list(real(path))
            facts[3] = facts[4] = 1
            return os.statvfs_result(facts)

        os.statvfs = crowded

    def _is_full(self) -> bool:
        self._refused += 1
        return self._refused <= int(self._strike.get("times", sys.maxsize))

    def _ask(self, what: str) -> None:
        if self.controller is not None:
            work = self.controller.stop() if what == "stop" else self.controller.open()
            self._tasks.append(self._loop.create_task(work))


def jump_clocks(*, wall_ms: int = 0, boot_ms: int = 0) -> None:
    """Let the clocks of this process jump: the wall clock as a person sets it, boot time as in a suspend."""
    wall, boot = time.time_ns, time.clock_gettime_ns
    time.time_ns = lambda: wall() + wall_ms * 1_000_000
    time.clock_gettime_ns = lambda clock: (
        boot(clock) + (boot_ms * 1_000_000 if clock == time.CLOCK_BOOTTIME else 0)
    )
