"""Faults at the seams: wrappers around the ledger port and tool bodies that die or fail at the nth call.

Owns: counting seams, the trace of seams passed, and death by SIGKILL at one of them.
Does not own: what must be true afterwards. Production code has no hook for any of
this; a seam exists only inside these wrappers.

A crash test runs a child with `Seams(kill_at=n)` for n = 1, 2, 3 … and stops when the
child ends by itself: then every seam has been tried. The trace file tells which one fired.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from surefoot.core.lifecycle import Book
from surefoot.core.model import Draft, Entry, Kind, Owner
from surefoot.errors import LedgerError, LedgerUncertain
from surefoot.ledger import owners
from surefoot.ledger.gate import is_gate_held
from surefoot.ledger.port import Appended, Claim, Held, Judge, Ledger, NotAppended, Report, SessionRow
from surefoot.runtime.tools import Arguments, LiveAttempt, Outcome, Tool
from surefoot.tools.processes import client, kernel, server

T = TypeVar("T")


class Seams:
    """The seams one process passes. At number `kill_at` (from 1) it dies, or `strike` is called.

    `only` limits counting to names that start with one of these words, e.g. `("append", "tool")`.
    `trace` is a file that gets one line per seam passed, written before anybody dies.
    """

    def __init__(
        self,
        kill_at: int | None = None,
        *,
        number: int = signal.SIGKILL,
        trace: Path | None = None,
        only: Sequence[str] = (),
        strike: Callable[[str], None] | None = None,
    ) -> None:
        self.kill_at = kill_at
        self.passed: list[str] = []
        self._signal = number
        self._trace = trace
        self._only = tuple(only)
        self._strike = strike

    @property
    def fired(self) -> bool:
        """Whether the chosen seam was reached."""
        return self.kill_at is not None and len(self.passed) >= self.kill_at

    def reach(self, name: str) -> None:
        """Pass a seam, or die at it."""
        if self._only and not name.startswith(self._only):
            return
        self.passed.append(name)
        chosen = len(self.passed) == self.kill_at
        if self._trace is not None:
            _write_line(self._trace, f"{'! ' if chosen else ''}{name}")
        if not chosen:
            return
        if self._strike is not None:
            self._strike(name)
        else:
            if self._signal == signal.SIGSTOP:
                _wait_for_the_gate()
                # To this thread: sent to the process, another thread takes it first, and this one runs on meanwhile.
                signal.pthread_kill(threading.get_ident(), self._signal)
            else:
                os.kill(os.getpid(), self._signal)


def _wait_for_the_gate() -> None:
    """Stop between commits, as a terminal's stop does: a gate that a stopped process holds holds everybody."""
    ends = time.monotonic() + 90
    while is_gate_held() and time.monotonic() < ends:
        time.sleep(0.0005)


def read_trace(path: Path) -> tuple[list[str], str | None]:
    """The seams a process passed, and the one it died at (None when none fired)."""
    if not path.exists():
        return [], None
    lines = path.read_text(encoding="utf-8").splitlines()
    fatal = [line.removeprefix("! ") for line in lines if line.startswith("! ")]
    return [line.removeprefix("! ") for line in lines], fatal[-1] if fatal else None


def _write_line(path: Path, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(handle, f"{text}\n".encode())
    finally:
        os.close(handle)


class WrappedLedger:
    """A ledger whose twelve verbs all pass through `_around`; subclasses break them there."""

    def __init__(self, inner: Ledger) -> None:
        self._inner = inner

    async def _around(self, verb: str, detail: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do `work`, the inner call. `detail` is the kinds of the drafts for `append`."""
        return await work()

    async def append(
        self,
        session_id: str,
        drafts: Sequence[Draft],
        *,
        epoch: int,
        after: int | None = None,
        judge: Judge | None = None,
    ) -> Appended | NotAppended:
        kinds = "+".join(str(draft.kind) for draft in drafts)
        return await self._around(
            "append",
            kinds,
            lambda: self._inner.append(session_id, drafts, epoch=epoch, after=after, judge=judge),
        )

    async def resolve(self, uncertain: Exception) -> tuple[Entry, ...] | None:
        return await self._around("resolve", "", lambda: self._inner.resolve(uncertain))

    async def read(
        self, session_id: str, *, after: int = 0, limit: int | None = None, kinds: Collection[str] = ()
    ) -> list[Entry]:
        return await self._around(
            "read", "", lambda: self._inner.read(session_id, after=after, limit=limit, kinds=kinds)
        )

    async def sessions(self) -> list[SessionRow]:
        return await self._around("sessions", "", self._inner.sessions)

    async def receipts(self, session_id: str) -> Book:
        return await self._around("receipts", "", lambda: self._inner.receipts(session_id))

    async def claim(
        self, session_id: str, owner: Owner, *, opening: Draft | None = None, take_over: bool = False
    ) -> Claim | Held:
        return await self._around(
            "claim",
            "opening" if opening is not None else "",
            lambda: self._inner.claim(session_id, owner, opening=opening, take_over=take_over),
        )

    async def renew(self, session_id: str, *, epoch: int, until_ms: int) -> bool:
        return await self._around(
            "renew", "", lambda: self._inner.renew(session_id, epoch=epoch, until_ms=until_ms)
        )

    async def release(self, session_id: str, *, epoch: int) -> None:
        await self._around("release", "", lambda: self._inner.release(session_id, epoch=epoch))

    async def put_blob(self, content: bytes) -> str:
        return await self._around("put_blob", "", lambda: self._inner.put_blob(content))

    async def get_blob(self, ref: str) -> bytes:
        return await self._around("get_blob", "", lambda: self._inner.get_blob(ref))

    async def verify(self, session_id: str | None = None) -> Report:
        return await self._around("verify", "", lambda: self._inner.verify(session_id))

    async def close(self) -> None:
        await self._around("close", "", self._inner.close)


class KillingLedger(WrappedLedger):
    """Dies before or after an inner call: each call passes two seams.

    Their names are `append[attempt.started].before`, `append[attempt.started].after`, `claim.before` …
    Before a write means K0 or K5 (nothing is on disk); after it means K2 or K7 (all of it is).
    """

    def __init__(self, inner: Ledger, seams: Seams) -> None:
        super().__init__(inner)
        self._seams = seams

    async def _around(self, verb: str, detail: str, work: Callable[[], Awaitable[T]]) -> T:
        name = f"{verb}[{detail}]" if detail else verb
        self._seams.reach(f"{name}.before")
        answer = await work()
        self._seams.reach(f"{name}.after")
        return answer


class FailingLedger(WrappedLedger):
    """Fails the nth append, from 1, `times` times in a row; `kind` counts only those with such a draft.

    `how`: `refused` raises `LedgerError` and nothing is written; `lost` raises
    `LedgerUncertain` and nothing is written; `kept` raises `LedgerUncertain` although it is
    all written. `resolve` answers truly, after raising `LedgerUncertain` `unsure` times.
    """

    def __init__(
        self,
        inner: Ledger,
        at: int,
        *,
        how: str = "refused",
        kind: str = "",
        times: int = 1,
        unsure: int = 0,
    ) -> None:
        super().__init__(inner)
        if how not in ("refused", "lost", "kept"):
            raise ValueError(f"how={how!r}: choose refused, lost or kept")
        self.fired = 0
        self._at, self._how, self._kind = at, how, kind
        self._times, self._unsure, self._seen = times, unsure, 0
        self._outcomes: dict[int, tuple[Exception, tuple[Entry, ...] | None]] = {}

    async def _around(self, verb: str, detail: str, work: Callable[[], Awaitable[T]]) -> T:
        if verb != "append" or self._kind not in detail:
            return await work()
        self._seen += 1
        if not self._at <= self._seen < self._at + self._times:
            return await work()
        self.fired += 1
        if self._how == "refused":
            raise LedgerError("the disk is full (planned by a test); free some space and try again")
        answer = await work() if self._how == "kept" else None
        error = LedgerUncertain("the answer of a commit was lost (planned by a test); resolve it")
        entries = answer.entries if isinstance(answer, Appended) else None
        self._outcomes[id(error)] = (error, entries)
        raise error

    async def resolve(self, uncertain: Exception) -> tuple[Entry, ...] | None:
        if id(uncertain) not in self._outcomes:
            return await super().resolve(uncertain)
        if self._unsure > 0:
            self._unsure -= 1
            raise LedgerUncertain("still not certain (planned by a test)")
        return self._outcomes[id(uncertain)][1]


class CountingLedger(WrappedLedger):
    """Counts verbs and, for appends, the kinds appended; `log` keeps them in order."""

    def __init__(self, inner: Ledger) -> None:
        super().__init__(inner)
        self.counts: Counter[str] = Counter()
        self.log: list[str] = []

    async def _around(self, verb: str, detail: str, work: Callable[[], Awaitable[T]]) -> T:
        self.counts[verb] += 1
        for kind in detail.split("+") if verb == "append" else ():
            self.counts[kind] += 1
        self.log.append(f"{verb}[{detail}]" if detail else verb)
        return await work()


class DyingLedger(WrappedLedger):
    """For simulations: `die` is awaited at the chosen seam and never returns (`SimProcess.die`)."""

    def __init__(self, inner: Ledger, kill_at: int, die: Callable[[], Coroutine[Any, Any, None]]) -> None:
        super().__init__(inner)
        self.seams = Seams(kill_at, strike=lambda _: None)
        self._die = die

    async def _around(self, verb: str, detail: str, work: Callable[[], Awaitable[T]]) -> T:
        name = f"{verb}[{detail}]" if detail else verb
        await self._pass(f"{name}.before")
        answer = await work()
        await self._pass(f"{name}.after")
        return answer

    async def _pass(self, name: str) -> None:
        fired = self.seams.fired
        self.seams.reach(name)
        if self.seams.fired and not fired:
            await self._die()


_FAILING_SYNC = """\
import errno, os
def fsync(descriptor, real=os.fsync, switch={switch!r}, seen=[0]):
    seen[0] += 1
    if os.path.exists(switch) and seen[0] >= int(open(switch).read()):
        with open(switch + ".fired", "a") as noted:
            noted.write("sync\\n")
        raise OSError(errno.EIO, "planned by a test")
    real(descriptor)
os.fsync = fsync
"""


def fail_syncs_of_supervisors(switch: str) -> None:
    """Let syncs fail in the supervisors that this process starts from now on.

    While the file `switch` holds the number N, every sync from the N-th of a supervisor on fails;
    each failure adds a line to `switch` + `.fired`. For one command the order is: log, exit
    record, run folder, its parent.
    """
    vars(client)["BOOTSTRAP"] = _FAILING_SYNC.format(switch=switch) + server.BOOTSTRAP


def pretend_name_space(name: str) -> None:
    """Let this process and the supervisors it starts say that they live in another process name space."""
    for module in (owners, kernel):
        vars(module)["pid_namespace"] = lambda: name
    told = f"kernel.pid_namespace = lambda: {name!r}\nserver.main("
    vars(client)["BOOTSTRAP"] = server.BOOTSTRAP.replace(
        "import server\nserver.main(", f"import kernel, server\n{told}"
    )


def seamed(tool: Tool, seams: Seams) -> Tool:
    """The same tool with a seam before its body is entered (K2) and after it returned (K5).

    Names: `tool[NAME].entered`, `tool[NAME].returned`. A body that wants seams around its
    effect calls `seams.reach` itself (`tool[NAME].before_effect`, `.after_effect`: K3, K4).
    """
    if tool.sync_body is not None:
        inner = tool.sync_body

        def blocking(live: LiveAttempt, arguments: Arguments) -> Outcome | str:
            seams.reach(f"tool[{tool.name}].entered")
            answer = inner(live, arguments)
            seams.reach(f"tool[{tool.name}].returned")
            return answer

        return dataclasses.replace(tool, sync_body=blocking)
    body = tool.body
    if body is None:
        raise ValueError(f"tool {tool.name!r} has no body")

    async def running(live: LiveAttempt, arguments: Arguments) -> Outcome | str:
        seams.reach(f"tool[{tool.name}].entered")
        answer = await body(live, arguments)
        seams.reach(f"tool[{tool.name}].returned")
        return answer

    return dataclasses.replace(tool, body=running)


def fault_point(seam: str) -> str:
    """The fault point of cases A to T that a seam's name stands for, or `other`."""
    points = {
        f"append[{Kind.STARTED}].before": "K0",
        f"append[{Kind.STARTED}].after": "K2",
        f"append[{Kind.CLOSED}].before": "K5",
        f"append[{Kind.CLOSED}].after": "K7",
    }
    if seam.startswith("tool["):
        endings = {"entered": "K2", "before_effect": "K3", "after_effect": "K4", "returned": "K5"}
        return endings.get(seam.rpartition(".")[2], "other")
    return points.get(seam, "other")
