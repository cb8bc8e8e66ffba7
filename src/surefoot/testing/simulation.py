"""A deterministic event loop: virtual time, seeded order, processes that can be killed.

Owns: which ready callback runs next, when time moves, and what dies with a process.
Does not own: the world (`world`), what is asserted. No thread, socket or real clock.

    async def main(sim: Simulation) -> None:
        process = sim.process("a")
        task = process.spawn(work(process.scheduler()))
        await asyncio.sleep(sim.random.random())
        process.kill()                      # its tasks never run again, not even `finally`

    simulate(seed, main)

The same seed gives the same run. Sets and dictionaries keyed by identity or by
randomly hashed text would break that; the code under test must not iterate over them.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import heapq
import random
import warnings
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from surefoot.core.model import Owner
from surefoot.runtime.scheduler import Scheduler

T = TypeVar("T")

_PROCESS: contextvars.ContextVar[SimProcess | None] = contextvars.ContextVar("sim_process", default=None)
_STEP_SECONDS = 0.0002
"""A callback takes at most this long in virtual time."""
_LATE_SECONDS = 1.0
"""A ready callback is late by at most about this long; a longer sleep is `SimProcess.stop`."""
_START_MS = 1_700_000_000_000
BOOT_ID = "00000000-0000-4000-8000-000000000001"


class Deadlock(Exception):
    """Nothing is ready, no timer is set, and the run has not ended."""


class Endless(Exception):
    """The run took more steps than it may."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """An event loop without a selector. `seed` decides order and time.

    `max_steps` callbacks and `max_seconds` of virtual time bound a run.

    Per seed the loop is patient (strict order), mixed or wild, and quick or slow: on a slow
    one a timer may fire although callbacks that were ready before it still wait.
    """

    def __init__(self, seed: int, max_steps: int = 500_000, max_seconds: float = 7 * 86_400.0) -> None:
        super().__init__()
        self.random = random.Random(f"order {seed}")
        self._now = 0.0
        self._wildness = self.random.choice((0.2, 0.7, 1.0))
        self._slowness = self.random.choice((0.0, 0.002, 0.02))
        self._steps_left = max_steps
        self._max_seconds = max_seconds
        self.failures: list[dict[str, Any]] = []
        """What reached the loop's exception handler."""
        self.owned: dict[asyncio.Task[Any], SimProcess] = {}
        self.tasks: list[asyncio.Task[Any]] = []
        """Every task of the run; a dead process's task must not be collected, or its `finally` would run."""
        self.set_exception_handler(lambda _, context: self.failures.append(context))
        self.set_task_factory(self._make_task)

    def time(self) -> float:
        """Virtual seconds since the run began."""
        return self._now

    def requeue(self, handle: Any) -> None:
        """Make a callback ready again that was held back."""
        self._ready.append(handle)  # type: ignore[attr-defined]

    def advance(self, seconds: float) -> None:
        """Let time pass without running anything, as on a machine that was asleep."""
        self._now += seconds

    def _make_task(self, loop: Any, work: Any, **settings: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **settings)
        self.tasks.append(task)
        context = settings.get("context")
        process = _PROCESS.get() if context is None else context.get(_PROCESS)
        if process is not None:
            self.owned[task] = process
        return task

    def _run_once(self) -> None:
        ready: deque[Any] = self._ready  # type: ignore[attr-defined]
        timers: list[Any] = self._scheduled  # type: ignore[attr-defined]
        self._drop_dead_timers(timers)
        if not ready and not timers:
            raise Deadlock("nothing is ready and no timer is set")
        if timers and (not ready or self._is_late(timers[0].when())):
            self._now = max(self._now, timers[0].when())
        while timers and timers[0].when() <= self._now:
            handle = heapq.heappop(timers)
            handle._scheduled = False
            ready.append(handle)
        if ready:
            self._run(self._take(ready))
        self._steps_left -= 1
        if self._steps_left <= 0:
            raise Endless("the run took too many steps; something repeats without end")
        if self._now > self._max_seconds:
            raise Endless(
                f"after {self._max_seconds} virtual seconds only timers go on; something waits for ever"
            )

    def _is_late(self, when: float) -> bool:
        """Whether the machine is slow just now, so that a near timer overtakes what is ready."""
        return when - self._now < _LATE_SECONDS and self.random.random() < self._slowness

    def _drop_dead_timers(self, timers: list[Any]) -> None:
        while timers and (timers[0].cancelled() or not _alive(timers[0])):
            handle = heapq.heappop(timers)
            handle._scheduled = False

    def _take(self, ready: deque[Any]) -> Any:
        if len(ready) > 1 and self.random.random() < self._wildness:
            place = self.random.randrange(len(ready))
            ready.rotate(-place)
            handle = ready.popleft()
            ready.rotate(place)
            return handle
        return ready.popleft()

    def _run(self, handle: Any) -> None:
        self._now += self.random.random() * _STEP_SECONDS
        process = _process_of(handle)
        if process is not None and process.stopped:
            process.held.append(handle)
        elif not handle.cancelled() and _alive(handle):
            handle._run()

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Any = None
    ) -> Any:
        """The same as `call_soon`: there are no threads here."""
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Any, *args: Any
    ) -> Any:
        """Run the work inline at a later step; it blocks nobody because time is virtual."""
        return self.inline(lambda: func(*args))

    def inline(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run `work` after a random moment, in one step; the future ends with it."""
        future: asyncio.Future[T] = self.create_future()

        def run() -> None:
            if future.cancelled():
                work_anyway(work)  # a thread cannot be stopped either
                return
            with _Noted(future.set_exception):
                future.set_result(work())

        self.call_later(self.random.random() * 0.01, run)
        return future

    async def shutdown_default_executor(self, *args: Any) -> None:
        """There is none."""


class _Noted:
    """Hands whatever is raised inside to `told`; `pass_on` lets it go on from there."""

    def __init__(self, told: Callable[[BaseException], object], *, pass_on: bool = False) -> None:
        self._told = told
        self._pass_on = pass_on

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is None:
            return False
        self._told(error)
        return not self._pass_on


def work_anyway(work: Callable[[], object]) -> None:
    """Run work nobody waits for any more; how it ends is not told to anybody."""
    with contextlib.suppress(BaseException):
        work()


def _process_of(handle: Any) -> SimProcess | None:
    return None if handle._context is None else handle._context.get(_PROCESS)


def _alive(handle: Any) -> bool:
    process = _process_of(handle)
    return process is None or process.alive


class SimClock:
    """The clocks of one simulated machine; the wall clock can jump, the boot clock cannot."""

    def __init__(self, loop: SimulatedLoop | None = None) -> None:
        running = loop or asyncio.get_running_loop()
        if not isinstance(running, SimulatedLoop):
            raise TypeError("SimClock needs a SimulatedLoop; call it inside simulate(seed, main)")
        self._loop = running
        self.jumped_ms = 0

    def now_ms(self) -> int:
        """Wall time, jumps included."""
        return _START_MS + self.jumped_ms + int(self._loop.time() * 1000)

    def boot_ms(self) -> int:
        """Time since boot; the machine booted 1000 s before the run began."""
        return 1_000_000 + int(self._loop.time() * 1000)

    def jump(self, milliseconds: int) -> None:
        """Set the wall clock forwards or back."""
        self.jumped_ms += milliseconds


class SeededScheduler(Scheduler):
    """The runtime's scheduler on virtual time; threads are single steps at a random later moment."""

    def thread(self, work: Callable[[], T], name: str) -> asyncio.Future[T]:
        """Run `work` in one step, a moment later."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop, SimulatedLoop):
            raise TypeError("a seeded scheduler runs inside simulate(seed, main) only")
        return loop.inline(work)


def seeded_scheduler(seed: int | str, clock: SimClock | None = None) -> SeededScheduler:
    """A scheduler whose ids and tokens follow from `seed`. Call it inside `simulate`."""
    return SeededScheduler(clock or SimClock(), random.Random(f"ids {seed}").getrandbits)


class SimProcess:
    """A group of tasks that dies at once: after `kill` none of its callbacks ever runs.

    Whatever is spawned by its tasks belongs to it. What it shares with others, such as
    a ledger in memory, must be reached through `outside`, or a lock would die with it.
    """

    def __init__(self, sim: Simulation, name: str, pid: int) -> None:
        self._sim = sim
        self.name = name
        self.alive = True
        self.stopped = False
        self.held: list[Any] = []
        """Callbacks that wait for `go_on`."""
        self.owner = Owner(
            host="sim",
            pid=pid,
            start_ticks=pid * 100,
            boot_id=BOOT_ID,
            pid_namespace="pid:[1]",
            machine_id="sim",
        )
        self._context = contextvars.Context()
        self._context.run(_PROCESS.set, self)

    def spawn(self, work: Coroutine[Any, Any, T], name: str | None = None) -> asyncio.Task[T]:
        """Start a task of this process."""
        if not self.alive:
            work.close()
            raise RuntimeError(f"the simulated process {self.name!r} is dead")
        return self._sim.loop.create_task(work, name=name or self.name, context=self._context)

    def scheduler(self) -> SeededScheduler:
        """A scheduler with entropy of its own."""
        return seeded_scheduler(f"{self._sim.seed} {self.owner.pid}", self._sim.clock)

    async def run(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Run work in this process from another one; None when the process died before it ended."""
        task = self.spawn(work)
        either: list[asyncio.Future[Any]] = [task, self._sim.death_of(self)]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None

    def kill(self) -> None:
        """Die now: no `finally`, no `except`, no callback runs."""
        self.alive = False
        self._sim.death_of(self)

    def stop(self) -> None:
        """Hold every callback back, as SIGSTOP does; time goes on meanwhile."""
        self.stopped = True

    def go_on(self) -> None:
        """Let the held callbacks run, as SIGCONT does."""
        self.stopped = False
        held, self.held = self.held, []
        for handle in held:
            self._sim.loop.requeue(handle)

    async def die(self) -> None:
        """Kill the own process at this very line: the caller never gets control back."""
        self.kill()
        await self._sim.loop.create_future()


class Simulation:
    """What a simulated run has to work with."""

    def __init__(self, seed: int, loop: SimulatedLoop) -> None:
        self.seed = seed
        self.loop = loop
        self.clock = SimClock(loop)
        self.random = random.Random(f"test {seed}")
        """Randomness for the test's own choices; the order of callbacks has another."""
        self.processes: list[SimProcess] = []
        self._deaths: dict[int, asyncio.Future[None]] = {}

    def process(self, name: str) -> SimProcess:
        """A new process with a pid of its own."""
        process = SimProcess(self, name, pid=100 + len(self.processes))
        self.processes.append(process)
        return process

    def is_alive(self, owner: Owner) -> bool:
        """Whether the process that an owner names is alive: what a ledger asks of the kernel."""
        return any(p.alive and p.owner.pid == owner.pid for p in self.processes)

    def kill_later(self, process: SimProcess, seconds: float) -> None:
        """Kill a process at a moment of virtual time."""
        self.loop.call_at(self.loop.time() + seconds, process.kill, context=contextvars.Context())

    def kill_after_steps(self, process: SimProcess, steps: int) -> None:
        """Kill a process after so many callbacks of the whole run."""

        def step(left: int) -> None:
            if left <= 0:
                process.kill()
            else:
                self.loop.call_soon(step, left - 1, context=contextvars.Context())

        step(steps)

    def death_of(self, process: SimProcess) -> asyncio.Future[None]:
        """A future that ends when the process dies."""
        future = self._deaths.setdefault(process.owner.pid, self.loop.create_future())
        if not process.alive and not future.done():
            future.set_result(None)
        return future


async def outside(work: Coroutine[Any, Any, T]) -> T:
    """Run work that outlives the calling process, as a kernel, a server or another machine does.

    The caller waits for it; when the caller dies the work goes on to its end.
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(work, context=contextvars.Context())
    # When the caller is gone nobody else looks at the outcome, which is no fault of the run.
    task.add_done_callback(_looked_at, context=contextvars.Context())
    return await asyncio.shield(task)


def _looked_at(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()


class Served:
    """An object whose coroutine methods run `outside` the caller; everything else passes through.

    Wrap a ledger in memory that several simulated processes share.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not asyncio.iscoroutinefunction(found):
            return found

        def served(*args: Any, **keywords: Any) -> Awaitable[Any]:
            return outside(found(*args, **keywords))

        return served


def simulate(
    seed: int,
    main: Callable[[Simulation], Coroutine[Any, Any, T]],
    *,
    max_steps: int = 500_000,
    max_seconds: float = 7 * 86_400.0,
) -> T:
    """Run `main` to its end under this seed and give its result. A failure names the seed.

    Raises:
        Deadlock: nothing could run any more.
        Endless: `max_steps` or `max_seconds` were not enough.
    """
    loop = SimulatedLoop(seed, max_steps, max_seconds)
    note = f"seed {seed}: run it again with simulate({seed}, …)"
    try:
        with _Noted(lambda error: error.add_note(note), pass_on=True):
            result = loop.run_until_complete(main(Simulation(seed, loop)))
            _raise_first_failure(loop)
        return result
    finally:
        _bury(loop)
        loop.close()


def _raise_first_failure(loop: SimulatedLoop) -> None:
    """A callback or forgotten task that failed is a failure of the run."""
    for task in loop.tasks:
        if task in loop.owned and not loop.owned[task].alive:
            continue  # nobody of a dead process could have looked at how it ended
        forgotten = task.done() and not task.cancelled() and getattr(task, "_log_traceback", False)
        error = task.exception() if forgotten else None
        if error is not None:
            raise error
    for context in loop.failures:
        error = context.get("exception")
        if isinstance(error, BaseException):
            raise error
        raise RuntimeError(str(context.get("message")))


class _Buried(BaseException):
    """Thrown into what is left over at the end of a run, so that nothing warns when it is collected."""


def _bury(loop: SimulatedLoop) -> None:
    """Take down the tasks left over, the dead processes' among them, without running the loop."""
    loop.set_exception_handler(lambda *_: None)
    with warnings.catch_warnings():
        # A dead process may have made a coroutine that it had no time to await.
        warnings.simplefilter("ignore", RuntimeWarning)
        for task in loop.tasks:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                _unwind(task.get_coro())


def _unwind(coroutine: Any) -> None:
    for _ in range(100):  # a `finally` may await again and again
        ended = True
        with contextlib.suppress(BaseException):
            coroutine.throw(_Buried())
            ended = False
        if ended:
            return
