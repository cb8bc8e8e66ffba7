"""The append path at length: 121 rounds with one call each, real ledger, real barrier, real server."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from cli_world import within

from surefoot.app import App, Parts, open_app
from surefoot.config import load_settings
from surefoot.core.history import History
from surefoot.core.model import Entry, Kind, State
from surefoot.ledger import claims, rows, sqlite
from surefoot.ledger.port import Ledger
from surefoot.runtime.controller import Controller, Parked, TurnEnd
from surefoot.runtime.models import EndpointModel
from surefoot.testing.emulator.process import EmulatorProcess
from surefoot.testing.faults import WrappedLedger

T = TypeVar("T")

ROUNDS = 121
PROGRESS_SECONDS = 5.0
HANGS_SECONDS = 60.0
WHOLE_SECONDS = 30.0
GROWTH = 1.5
CALLS_GROWTH = 1.05
"""Narrower than the bound of time, because a count has no noise: one more look at every receipt shows."""


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def steps(count: int) -> list[dict[str, Any]]:
    """One `write` call each, every one with other content."""
    return [
        {"calls": [{"name": "write", "args": {"path": f"notes/{n}.txt", "content": f"round {n:03}"}}]}
        for n in range(count)
    ]


def written_bytes() -> int:
    """What this process has handed to the kernel for files so far; sockets do not count."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("wchar")).split()[1])


@dataclass
class Rounds:
    """How much had been done when each round's receipt was durable, and how much had been written by then."""

    calls: list[int] = field(default_factory=list)
    """Calls of functions, Python's and C's, in every thread of this process: work that no clock and no neighbour
    on the machine changes (`make bench` prints seconds). Encoding and checking a request are left out, because a
    longer history is a longer request."""
    made: int = 0
    asking: int = 0
    """How many requests are being encoded or sent."""
    asked: int = 0
    bytes: list[int] = field(default_factory=list)
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    moved_at: float = field(default_factory=time.monotonic)
    longest_seconds: float = 0.0
    """The longest time in which nothing moved."""

    def note(self, entry: Entry) -> None:
        self.moved.set()
        now = time.monotonic()
        self.longest_seconds, self.moved_at = max(self.longest_seconds, now - self.moved_at), now
        if entry.kind == Kind.CLOSED:
            self.calls.append(self.made)
            self.bytes.append(written_bytes())

    def profile(self, frame: object, event: str, argument: object) -> None:
        self.made += not self.asking and event in ("call", "c_call")

    @contextmanager
    def counting(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Count the calls of this thread and of those that begin meanwhile, but for encoding and sending requests."""
        freeze, send_checked = EndpointModel.freeze, EndpointModel.send_checked

        @contextmanager
        def left_out() -> Iterator[None]:
            self.asking, self.asked = self.asking + 1, self.asked + 1
            try:
                yield
            finally:
                self.asking -= 1

        def frozen(*given: Any, **more: Any) -> Any:
            with left_out():
                return freeze(*given, **more)

        async def sent(*given: Any) -> Any:
            with left_out():
                return await send_checked(*given)

        monkeypatch.setattr(EndpointModel, "freeze", frozen)
        monkeypatch.setattr(EndpointModel, "send_checked", sent)
        before = sys.getprofile()
        threading.setprofile(self.profile)
        sys.setprofile(self.profile)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(before)

    async def watchdog(self) -> None:
        """Fail when nothing at all moves for so long that nothing ever will."""
        while True:
            self.moved.clear()
            async with asyncio.timeout(HANGS_SECONDS):
                await self.moved.wait()


def growth(values: list[int]) -> float:
    """Median of the last 20 by the median of rounds 11 to 30."""
    return statistics.median(values[-20:]) / statistics.median(values[10:30])


def differences(values: list[int]) -> list[int]:
    return [after - before for before, after in itertools.pairwise(values)]


class Outstanding(WrappedLedger):
    """Counts appends that have not been answered yet."""

    def __init__(self, inner: Ledger) -> None:
        super().__init__(inner)
        self.appends = 0

    async def _around(self, verb: str, detail: str, work: Callable[[], Awaitable[T]]) -> T:
        self.appends += verb == "append"
        try:
            return await work()
        finally:
            self.appends -= verb == "append"


@dataclass
class Stand:
    """An opened app over a strict model server in another process."""

    app: App
    controller: Controller
    emulator: EmulatorProcess
    ledger: Outstanding


@asynccontextmanager
async def stand(tmp_path: Path, script: list[dict[str, Any]]) -> AsyncIterator[Stand]:
    project = tmp_path / "project"
    (project / "notes").mkdir(parents=True)
    with EmulatorProcess(tmp_path) as emulator:
        emulator.script(script, by="history")
        environ = {"HOME": str(tmp_path), "SUREFOOT_HOME": str(tmp_path / "sf"), "OPENAI_API_KEY": "sk-test",
                   "OPENAI_BASE_URL": emulator.base_url("openai")}  # fmt: skip
        flags = {"permissions.mode": "bypassPermissions", "model": "openai/m"}
        settings = load_settings(flags, environ, project)
        wraps: list[Outstanding] = []

        def wrapped(ledger: Ledger) -> Ledger:
            wraps.append(Outstanding(ledger))
            return wraps[-1]

        async with open_app(settings, directory=project, parts=Parts(ledger=wrapped)) as app:
            controller = await app.session()
            controller.max_steps = len(script)
            yield Stand(app, controller, emulator, wraps[0])


async def watched(rounds: Rounds, turn: Callable[[], Any]) -> TurnEnd | Parked:
    """Run a turn under the watchdog."""
    dog = asyncio.create_task(rounds.watchdog())
    work = asyncio.create_task(turn())
    try:
        await asyncio.wait({dog, work}, return_when=asyncio.FIRST_COMPLETED)
        assert not dog.done(), f"nothing moved for {HANGS_SECONDS} s after round {len(rounds.calls)}"
        end: TurnEnd | Parked = work.result()
        return end
    finally:
        dog.cancel()
        await asyncio.gather(dog, return_exceptions=True)


@pytest.mark.parametrize("slow", [False, True])
async def test_pr_91_121_rounds_make_121_requests_within_their_time_and_do_not_slow_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    rounds = Rounds()
    # Commits are made in a thread while the disk is slow, which is half as many calls again: no round changes over.
    monkeypatch.setattr(sqlite.SqliteLedger, "_note_time", lambda ledger, _: setattr(ledger, "_slow", slow))
    with rounds.counting(monkeypatch):
        async with stand(tmp_path, steps(ROUNDS)) as found:
            found.controller.session.watch(rounds.note)
            began = time.perf_counter()
            end = await watched(rounds, lambda: found.controller.submit("keep notes"))
            whole = time.perf_counter() - began
            requests = found.emulator.requests()
            receipts = list(found.controller.session.book)
    assert isinstance(end, TurnEnd) and end.reason == "iteration_limit"
    assert [entry.status for entry in requests] == [200] * ROUNDS
    assert [receipt.state for receipt in receipts] == [State.SUCCEEDED] * ROUNDS
    assert len(list((tmp_path / "project/notes").iterdir())) == ROUNDS
    assert within(WHOLE_SECONDS, whole) and within(PROGRESS_SECONDS, rounds.longest_seconds)
    assert rounds.asked >= 2 * ROUNDS, "what a longer request costs is left out"
    assert growth(differences(rounds.calls)) <= CALLS_GROWTH, rounds.calls
    assert growth(differences(rounds.bytes)) <= GROWTH, rounds.bytes


async def test_pr_90_no_derived_view_is_built_while_an_append_is_on_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A counter stands at every place that builds one: folding a session, listing, derived rows, history."""
    built: list[str] = []
    async with stand(tmp_path, steps(40)) as found:

        def counting(name: str, build: Callable[..., Any]) -> Callable[..., Any]:
            def counted(*given: Any, **more: Any) -> Any:
                if found.ledger.appends:
                    built.append(name)
                return build(*given, **more)

            return counted

        await found.controller.session.history()
        for module, name in (
            (claims, "load"),
            (rows, "listing"),
            (sqlite, "listing"),
            (sqlite, "put_derived"),
        ):
            monkeypatch.setattr(module, name, counting(name, getattr(module, name)))
        monkeypatch.setattr(History, "__init__", counting("history", History.__init__))
        await found.controller.submit("keep notes")
        assert built == []
        listed = (await found.app.sessions())[0]
        assert (listed.calls, listed.open_calls) == (40, 0)
        assert (
            built == []
        )  # asked for with no append on its way, they are built; the counter is not about that


async def test_pr_90_a_restart_builds_the_views_from_canonical_entries(tmp_path: Path) -> None:
    async with stand(tmp_path, steps(12)) as found:
        await found.controller.submit("keep notes")
        session_id = found.controller.session_id
        before = (await found.controller.session.history()).messages(found.controller.session.book)
        settings, directory = found.app.settings, found.app.directory
    import apsw

    folder = settings.places.ledger_folder(directory)
    with apsw.Connection(str(folder / "ledger.db")) as database:
        database.execute("DELETE FROM receipts; DELETE FROM listing")
    async with open_app(settings, directory=directory) as app:
        assert (await app.sessions())[0].calls == 12
        controller = await app.session(session_id)
        again = (await controller.session.history()).messages(controller.session.book)
    assert again == before


async def test_pr_93_a_healthy_session_sends_its_prefix_and_schemas_again_unchanged(tmp_path: Path) -> None:
    async with stand(tmp_path, steps(15)) as found:
        await found.controller.submit("keep notes")
        requests = found.emulator.requests()
    bodies = [entry.json() for entry in requests]
    assert len({str(body["tools"]) for body in bodies}) == 1
    for before, after in itertools.pairwise(requests):
        assert after.message_shas[: len(before.message_shas)] == before.message_shas
