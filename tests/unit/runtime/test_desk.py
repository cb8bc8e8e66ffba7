"""What the model's own recovery tool may see and say; none of it decides anything."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from surefoot.core.limits import Limits
from surefoot.core.model import EffectClass, Kind, State
from surefoot.runtime.desk import Desk
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
        assert [row["attemptId"] for row in rows] == [attempt] and "arguments" not in rows[0]
        none: Any = None
        assert await desk.report(none, attempt, finding="it happened", reads=[look.attempt_id]) == {
            "grade": "weak"
        }
        assert await desk.report(none, attempt, finding="I am sure", reads=[]) == {"grade": "none"}
        refused = await desk.report(none, attempt, finding="x", reads=[attempt])
        assert refused == {"refused": "not_a_settled_read"}
        assert (await desk.report(none, "att_x", finding="x", reads=[])) == {"refused": "attempt_unknown"}
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
