"""Wrappers around ports fail, count and die exactly where they say; the counting world counts."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.history import AssistantWords, CallAsked, ResultGiven, UserWords
from surefoot.core.model import Draft, EffectClass, Kind, Receipt, State
from surefoot.errors import LedgerError, LedgerUncertain, ProviderUnreachable, ToolError
from surefoot.ledger.opening import open_ledger
from surefoot.ledger.owners import this_process
from surefoot.ledger.port import Appended, Claim, Ledger
from surefoot.runtime.tools import LiveAttempt, Outcome, Place, Tool
from surefoot.testing.faults import (
    CountingLedger,
    DyingLedger,
    FailingLedger,
    KillingLedger,
    Seams,
    fault_point,
    read_trace,
    seamed,
)
from surefoot.testing.model import ScriptedModel, call
from surefoot.testing.played import PlayedModel
from surefoot.testing.simulation import Served, Simulation, simulate
from surefoot.testing.world import Behaviour, CountingWorld
from surefoot.verifiers.port import Deadline

TURN = Draft(Kind.NOTICE, {"code": "n"})


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    opened = await open_ledger(tmp_path / "ledger")
    yield opened
    await opened.close()


async def claimed(ledger: Ledger, folder: Path) -> tuple[Claim, Any]:
    owner, lock = this_process(folder)
    claim = await ledger.claim("ses_" + "0" * 26, owner, opening=Draft(Kind.SESSION_OPENED, {}))
    assert isinstance(claim, Claim)
    return claim, lock


def attempt(key: str = "k", attempt_id: str = "att_1", call_id: str = "cal_1") -> LiveAttempt:
    async def note(process: Any) -> None:
        return None

    return LiveAttempt(
        session_id="s",
        turn_id="t",
        call_id=call_id,
        attempt_id=attempt_id,
        idempotency_key=key,
        deadline_boot_ms=None,
        place=Place(Path("/")),
        prepared=None,
        note=note,
        late=lambda outcome, source: None,
        progress=lambda text: None,
        services={},
    )


async def test_counting_and_failing_ledgers_tell_the_truth_about_a_real_one(
    ledger: Ledger, tmp_path: Path
) -> None:
    counting = CountingLedger(ledger)
    claim, lock = await claimed(counting, tmp_path)
    refusing = FailingLedger(counting, 2)
    session = claim.session_id
    assert isinstance(await refusing.append(session, [TURN], epoch=claim.epoch), Appended)
    with pytest.raises(LedgerError, match="planned"):
        await refusing.append(session, [TURN], epoch=claim.epoch)
    assert isinstance(await refusing.append(session, [TURN], epoch=claim.epoch), Appended)
    assert (refusing.fired, counting.counts["append"], counting.counts[Kind.NOTICE]) == (1, 2, 2)

    for how, kept in (("lost", False), ("kept", True)):
        failing = FailingLedger(counting, 1, how=how, unsure=1)
        before = len(await ledger.read(session))
        with pytest.raises(LedgerUncertain) as caught:
            await failing.append(session, [TURN], epoch=claim.epoch)
        with pytest.raises(LedgerUncertain):
            await failing.resolve(caught.value)
        entries = await failing.resolve(caught.value)
        assert (entries is not None) is kept
        assert len(await ledger.read(session)) - before == kept
    lock.close()


async def test_each_call_of_the_port_passes_two_named_seams(ledger: Ledger, tmp_path: Path) -> None:
    seams = Seams(4, strike=lambda name: struck.append(name), trace=tmp_path / "trace")
    struck: list[str] = []
    killing = KillingLedger(ledger, seams)
    claim, lock = await claimed(killing, tmp_path)
    await killing.append(claim.session_id, [TURN], epoch=claim.epoch)
    assert seams.passed == [
        "claim[opening].before",
        "claim[opening].after",
        "append[notice].before",
        "append[notice].after",
    ]
    assert struck == ["append[notice].after"] and seams.fired
    assert read_trace(tmp_path / "trace") == (seams.passed, "append[notice].after")
    assert fault_point(f"append[{Kind.STARTED}].before") == "K0"
    assert fault_point("tool[x].after_effect") == "K4" and fault_point("claim.before") == "other"
    lock.close()


def test_a_process_dies_by_sigkill_at_its_seam_and_the_trace_names_it(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from surefoot.testing.faults import Seams\n"
        "seams = Seams(int(sys.argv[1]), trace=Path(sys.argv[2]), only=('a',))\n"
        "for name in ('a1', 'b', 'a2', 'a3'): seams.reach(name)\n"
    )
    for number, expected in ((1, "a1"), (3, "a3"), (4, None)):
        trace = tmp_path / f"trace{number}"
        ended = subprocess.run(
            [sys.executable, "-c", program, str(number), str(trace)], timeout=120, check=False
        )
        assert read_trace(trace)[1] == expected
        assert ended.returncode == (-signal.SIGKILL if expected else 0)
    assert read_trace(tmp_path / "none") == ([], None) and os.getpid()


async def test_a_seamed_tool_passes_a_seam_before_and_after_its_body() -> None:
    world = CountingWorld()
    seams = Seams()

    async def point(name: str) -> None:
        seams.reach(f"tool[pay].{name}")

    tool = world.tool("pay", EffectClass.NON_IDEMPOTENT, behaviour=Behaviour(point=point))
    wrapped = seamed(tool, seams)
    assert wrapped.body is not None
    assert await wrapped.body(attempt(), {"label": "x"}) == "did x"
    assert [fault_point(name) for name in seams.passed] == ["K2", "K3", "K4", "K5"]

    blocking = seamed(Tool("b", "", {}, sync_body=lambda live, arguments: "ok"), seams)
    assert blocking.sync_body is not None and blocking.sync_body(attempt(), {}) == "ok"
    assert seams.passed[-2:] == ["tool[b].entered", "tool[b].returned"]


async def test_the_world_counts_by_key_and_shows_what_happened_twice() -> None:
    world = CountingWorld()
    tool = world.tool("pay", EffectClass.NON_IDEMPOTENT, reach=("host:b", "host:a"))
    assert tool.body is not None and not callable(tool.effect) and tool.effect.reach == ("host:a", "host:b")
    for number in range(2):
        await tool.body(attempt(attempt_id=f"att_{number}"), {"label": "x"})
    assert world.count("x") == 2 and world.twice() == ["k"] and len(world.bodies) == 2
    reader = world.tool("look", EffectClass.READ_ONLY)
    assert reader.body is not None and await reader.body(attempt(), {"label": "x"}) == "2 effects"
    honest = world.tool("put", EffectClass.IDEMPOTENT_WRITE, behaviour=Behaviour(honours_keys=True))
    assert honest.body is not None
    for _ in range(2):
        await honest.body(attempt(key="q"), {"label": "y"})
    assert world.count("y") == 1

    receipt = Receipt("s", "t", "c", "a", 0)
    seen = world.verifier().inspect_effect("q", receipt, Deadline(0), fenced=True)
    gone = world.verifier(can_fence=False).inspect_effect("none", receipt, Deadline(0), fenced=True)
    assert seen.state == "present" and (gone.state, gone.fenced) == ("absent", False)


@pytest.mark.parametrize(
    ("fails", "effects", "ends"),
    [
        ("before", 0, ToolError),
        ("after", 1, ToolError),
        ("raises", 1, RuntimeError),
        ("value", 1, "failed"),
        ("unknown", 1, "unknown"),
    ],
)
async def test_a_tool_of_the_world_fails_as_told(fails: str, effects: int, ends: Any) -> None:
    world = CountingWorld()
    tool = world.tool("pay", EffectClass.UNKNOWN, behaviour=Behaviour(fails=fails))
    assert tool.body is not None
    if isinstance(ends, str):
        outcome = await tool.body(attempt(), {"label": "x"})
        assert isinstance(outcome, Outcome) and outcome.state is State(ends)
    else:
        with pytest.raises(ends):
            await tool.body(attempt(), {"label": "x"})
    assert world.count() == effects


def test_a_dying_ledger_stops_its_simulated_process_at_the_nth_seam() -> None:
    class Rows:
        def __init__(self) -> None:
            self.rows: list[str] = []

        async def append(self, session_id: str, drafts: Any, **more: Any) -> Appended:
            await asyncio.sleep(0.1)
            self.rows.append(session_id)
            return Appended(())

    async def main(sim: Simulation, kill_at: int) -> tuple[list[str], list[str]]:
        inner, process, said = Rows(), sim.process("p"), []
        ledger = DyingLedger(Served(inner), kill_at, process.die)

        async def work() -> None:
            for name in ("a", "b"):
                await ledger.append(name, [TURN], epoch=1)
                said.append(name)

        await process.run(work())
        await asyncio.sleep(10)
        return inner.rows, said

    for seed in range(5):
        for kill_at, expected in (
            (1, ([], [])),
            (2, (["a"], [])),
            (3, (["a"], ["a"])),
            (5, (["a", "b"], ["a", "b"])),
        ):
            assert simulate(seed, lambda sim, n=kill_at: main(sim, n)) == expected


async def test_a_played_model_answers_by_history_and_fails_first() -> None:
    steps = ScriptedModel().calls(call("note", text="a")).repeats().echoes().steps
    model = PlayedModel(steps, failures=[ProviderUnreachable("down")], wait_seconds=1.0)
    with pytest.raises(ProviderUnreachable):
        await model.complete([UserWords("t", "go")], lambda delta: None)
    history: list[Any] = [UserWords("t", "go")]
    first = await model.complete(history, lambda delta: None)
    assert first.calls[0].arguments == '{"text": "a"}' and first.finish == "tool_calls"
    asked = CallAsked("cal_1", "att_1", 0, "note", '{"text": "a"}', "call_0_0")
    history += [AssistantWords(1, "", (asked,), "chat", first.raw), ResultGiven(asked, "wrote", False)]
    again = await model.complete(history, lambda delta: None)
    assert again.calls[0].arguments == first.calls[0].arguments
    assert again.calls[0].provider_call_id != first.calls[0].provider_call_id
    history += [AssistantWords(2, "", (asked,), "chat", again.raw), ResultGiven(asked, "fenced", True)]
    heard: list[str] = []
    assert (await model.complete(history, lambda delta: heard.append(delta.text))).text == "fenced"
    assert heard == ["fenced"] and len(model.asked) == 4
