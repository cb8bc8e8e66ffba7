"""What the model's own recovery tool may see and say; none of it decides anything."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from surefoot.core.canonical import canonical_json
from surefoot.core.effects import Effect
from surefoot.core.limits import Limits
from surefoot.core.model import BarrierLevel, EffectClass, ExecutorState, Kind, State
from surefoot.runtime.desk import Desk
from surefoot.runtime.inspection import inspect
from surefoot.runtime.tools import Tool
from surefoot.testing.rig import Rig, Setup
from surefoot.testing.simulation import Simulation, simulate
from surefoot.testing.world import Behaviour


def play(main: Callable[[Simulation], Coroutine[Any, Any, Any]]) -> Any:
    return simulate(1, main)


@pytest.mark.promise("recovery:never-guess")
def test_tr_153_a_report_of_the_model_is_a_weak_finding_and_changes_no_state() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [
            rig.world.tool("pay", EffectClass.NON_IDEMPOTENT, behaviour=Behaviour(fails="unknown")),
            rig.world.tool("look", EffectClass.READ_ONLY),
        ]
        crew = await rig.own(Setup(tools=tools))
        receipt, look = await crew.call("pay", label="a"), await crew.call("look", label="a")
        limits = Limits()
        desk, attempt = Desk(crew.actions, limits), receipt.attempt_id
        rows = await desk.open_calls()
        assert [row["attempt"] for row in rows] == [attempt] and "arguments" not in rows[0]
        assert receipt.idempotency_key not in str(rows) and receipt.argument_digest not in str(rows)
        none: Any = None
        assert await desk.report(none, attempt, finding="it happened", reads=[look.attempt_id]) == {
            "grade": "weak"
        }
        assert await desk.report(none, attempt, finding="I am sure", reads=[]) == {"grade": "none"}
        refused = await desk.report(none, attempt, finding="x", reads=[attempt])
        assert refused == {"refused": "not_a_settled_read"}
        assert (await desk.report(none, "att_x", finding="x", reads=[])) == {"refused": "attempt_unknown"}
        longest = "ä" * (limits.report_bytes // 2)
        assert await desk.report(none, attempt, finding=longest, reads=[]) == {"grade": "none"}
        above = await desk.report(none, attempt, finding=longest + "x", reads=[])
        assert above == {"refused": "finding_too_long", "most_bytes": limits.report_bytes}
        small = Desk(crew.actions, Limits(report_bytes=3))
        assert (await small.report(none, attempt, finding="four", reads=[]))["most_bytes"] == 3
        now = crew.receipt(attempt)
        assert now.state is State.UNKNOWN and now.overlays == () and crew.session.book.is_open(attempt)
        assert (await crew.call("pay", label="a")).reason == "fenced"
        for _ in range(limits.reports_per_call):
            last = await desk.report(none, attempt, finding="again", reads=[])
        assert last == {"refused": "too_many_reports"}
        assert len(await crew.entries(Kind.REPORTED)) == limits.reports_per_call

    play(main)


def test_tr_153_the_model_reads_state_evidence_and_redacted_arguments_or_the_stored_result() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [
            rig.world.tool(
                "pay",
                EffectClass.NON_IDEMPOTENT,
                behaviour=Behaviour(fails="unknown"),
                secret_arguments=("label",),
            ),
            rig.world.tool("look", EffectClass.READ_ONLY),
        ]
        crew = await rig.own(Setup(tools=tools))
        desk = Desk(crew.actions, Limits())
        look, receipt = await crew.call("look", label="a"), await crew.call("pay", label="hunter2")
        seen = await desk.inspect(receipt.attempt_id)
        assert seen is not None and seen["inspection"]["state"] == "unknown"
        assert "hunter2" not in str(seen) and "[redacted]" in seen["arguments"]
        assert await desk.inspect(look.attempt_id) == {"state": "succeeded", "result": "0 effects"}
        assert await desk.inspect("att_x") is None

    play(main)


@pytest.mark.promise("recovery:never-guess")
def test_tr_60_tr_185_every_open_call_can_be_read_also_those_above_the_bounds_of_a_snapshot() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tool = rig.world.tool(
            "pay", EffectClass.NON_IDEMPOTENT, reach=("host:a",), behaviour=Behaviour(fails="unknown")
        )
        few = {"snapshot_calls": 2, "snapshot_resolved": 1}
        crew = await rig.own(Setup(tools=[tool], limits=few, level=BarrierLevel.OFF))
        for number in range(4):
            await crew.call("pay", label=str(number))
        assert len(crew.actions.snapshot()["calls"]) == 2
        assert len(await Desk(crew.actions, Limits()).open_calls()) == 4

    play(main)


def test_tr_185_what_a_look_records_is_bounded_by_the_owners_settings() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tool = rig.world.tool("pay", EffectClass.NON_IDEMPOTENT, behaviour=Behaviour(fails="unknown"))
        usual = await rig.own(Setup(tools=[tool]))
        receipt = await usual.call("pay", label="a")
        seen = (await usual.press("inspect", receipt.attempt_id)).body["calls"][0]["inspection"]
        size = len(canonical_json(seen["evidence"]).encode())
        for bytes_, kept in ((max(size, 1), seen["evidence"]), (max(size - 1, 1), {"omittedBytes": size})):
            limits = Limits(evidence_bytes=bytes_, summary_characters=3)
            told = await inspect(
                usual.session, usual.barrier.registry, receipt, executor=ExecutorState.ENDED, limits=limits
            )
            assert told is not None and told["summary"] == seen["summary"][:3]
            assert told["evidence"] == kept or size <= 2

    play(main)


@pytest.mark.parametrize("torn", [False, True])
def test_tr_153_tr_6_a_stored_result_above_one_mebibyte_is_read_for_the_model(torn: bool) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        text = "é" * (1024 * 1024) + "end"

        async def body(live: Any, arguments: Any) -> str:
            return text

        crew = await rig.own(
            Setup(tools=[Tool("look", "", {}, body=body, effect=Effect(EffectClass.READ_ONLY))])
        )
        receipt = await crew.call("look")
        assert receipt.result is None and receipt.result_ref is not None
        if torn:
            rig.store.blobs.clear()
        seen = await Desk(crew.actions, Limits()).inspect(receipt.attempt_id)
        assert seen is not None and seen["state"] == "succeeded"
        assert (seen["result"] == text) is not torn
        assert not torn or "cannot be read now" in seen["result"]

    play(main)
