"""The only source of time, sleep, concurrency, randomness and ids in the runtime.

Owns: the port, and its real implementation on asyncio. The simulation runs the
same runtime on a seeded event loop with a clock of its own
(`surefoot.testing.simulation`), so nothing else in `runtime` may import
`asyncio`, `time`, `random` or `uuid`.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Protocol, TypeVar

from surefoot import machine
from surefoot.core.canonical import make_id

T = TypeVar("T")


class Clock(Protocol):
    """Wall time for people, boot time (suspend included) for deadlines."""

    def now_ms(self) -> int:
        """Milliseconds since 1970 UTC. Decides nothing but what TR-3 names."""
        ...

    def boot_ms(self) -> int:
        """Milliseconds since this machine booted, suspend included."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return machine.now_ms()

    def boot_ms(self) -> int:
        return machine.boot_ms()


class Scheduler:
    """Time, waiting, tasks, threads, randomness and ids, from one place.

    The event loop it runs on decides the order of tasks: the real one, or the
    simulation's seeded one.
    """

    def __init__(self, clock: Clock | None = None, entropy: Callable[[int], int] | None = None) -> None:
        self._clock = clock or SystemClock()
        self._entropy = entropy or secrets.randbits
        self._last_ms = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def boot_ms(self) -> int:
        return self._clock.boot_ms()

    def new_id(self, prefix: str) -> str:
        """A typed id; later ids sort after earlier ones of this process, also when the clock steps back."""
        self._last_ms = max(self._last_ms, self._clock.now_ms())
        return make_id(prefix, self._last_ms, self._entropy(80))

    def token(self, bits: int = 128) -> str:
        """Random hex text of `bits` bits."""
        return f"{self._entropy(bits):0{bits // 4}x}"

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def spawn(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Start a task that is kept alive until it ends."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @staticmethod
    def heard(task: asyncio.Future[Any]) -> None:
        """A callback for the end of work whose failure is told elsewhere, so that no loop warns of it."""
        if not task.cancelled():
            task.exception()

    def event(self) -> asyncio.Event:
        return asyncio.Event()

    def lock(self) -> asyncio.Lock:
        return asyncio.Lock()

    def future(self) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()

    def call_soon(self, work: Callable[[], object]) -> None:
        asyncio.get_running_loop().call_soon(work)

    def call_later(self, seconds: float, work: Callable[[], object]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(seconds, work)

    async def wait(self, *tasks: asyncio.Future[Any], seconds: float | None = None) -> bool:
        """Wait until all are done or the time is over; True when all are. Cancels nothing."""
        if not tasks:
            return True
        _, pending = await asyncio.wait(tasks, timeout=seconds)
        return not pending

    async def first(self, *tasks: asyncio.Future[Any], seconds: float | None = None) -> bool:
        """Wait until one is done or the time is over; True when one is. Cancels nothing."""
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)

    def begin(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Future[T]:
        """Start work of our own without a turn of the loop: it runs here until it first waits, then as a task.

        The future is done already when it never waited. Not for code of others, which may ask for its task.
        """
        ended: asyncio.Future[T] = self.future()
        try:
            waits = work.send(None)
        except StopIteration as end:
            ended.set_result(end.value)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            ended.set_exception(error)
        else:
            return self.spawn(_rest(work, waits), name)
        return ended

    async def shielded(self, work: Coroutine[Any, Any, T]) -> T:
        """Finish `work` even when the caller is cancelled; the cancel is raised again afterwards (TR-29).

        It begins here, and only what has to wait becomes a task: most appends never do.
        """
        try:
            waits = work.send(None)
        except StopIteration as end:
            whole: T = end.value
            return whole
        task = asyncio.get_running_loop().create_task(_rest(work, waits))
        task.add_done_callback(self.heard)  # a caller that was cancelled is told of the cancel alone
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError as error:
                if task.cancelled():
                    raise
                cancelled = error
            except BaseException:
                if not task.done():
                    raise  # it is the waiting that ends here: nobody runs the caller any more
                break  # the task's own end; told below
        if cancelled is not None:
            raise cancelled
        return task.result()

    async def watched(self, work: asyncio.Task[T], *, on_cancel: Callable[[], object]) -> T:
        """Await `work`; when the caller is cancelled, call `on_cancel` and let `work` go on by itself.

        Also when `work` ended in that very moment, since its result then reaches nobody.
        """
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            if not work.cancelled():
                on_cancel()
            raise

    async def noting_cancel(
        self, work: Coroutine[Any, Any, T], note: Callable[[], Coroutine[Any, Any, None]]
    ) -> T:
        """Await `work`; when the caller is cancelled, await `note` before the cancel is raised again."""
        try:
            return await work
        except asyncio.CancelledError:
            await note()
            raise

    async def off_loop(self, work: Callable[[], T]) -> T:
        """Run short blocking work of our own in the loop's thread pool."""
        return await asyncio.to_thread(work)

    def thread(self, work: Callable[[], T], name: str) -> asyncio.Future[T]:
        """Run `work` in a thread of its own, not a pool; the future ends when it returns (TR-77).

        Cancelling the future does not stop the thread, because nothing can.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(value: T | None, error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(value)  # type: ignore[arg-type]
            else:
                future.set_exception(error)

        def run() -> None:
            value, error = None, None
            try:
                value = work()
            except BaseException as raised:
                error = raised
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, value, error)

        threading.Thread(target=run, name=name, daemon=True).start()
        return future

    @staticmethod
    def is_cancel(error: BaseException) -> bool:
        """Whether an exception is the cancel of a task."""
        return isinstance(error, asyncio.CancelledError)


async def _rest(work: Coroutine[Any, Any, T], waits: Any) -> T:
    """The rest of a coroutine whose first steps were taken outside a task, up to where it waits for `waits`."""
    ended: T = await _resumed(work, waits)
    return ended


@types.coroutine
def _resumed(work: Coroutine[Any, Any, T], waits: Any) -> Generator[Any, Any, T]:
    try:
        while True:
            try:
                sent = yield waits
            except BaseException as error:
                waits = work.throw(error)
            else:
                waits = work.send(sent)
    except StopIteration as end:
        whole: T = end.value
        return whole
