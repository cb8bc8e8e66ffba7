"""What the owner's settings settle without asking, and what no policy can say."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from surefoot.core.model import EffectClass, Overlay, State
from surefoot.runtime.policies import RECORDS
from surefoot.settings_table import SETTINGS
from surefoot.testing.rig import Rig, Setup
from surefoot.testing.simulation import Simulation, simulate
from surefoot.testing.world import Behaviour

ONCE = EffectClass.NON_IDEMPOTENT


def play(main: Callable[[Simulation], Coroutine[Any, Any, Any]], seed: int = 1) -> Any:
    return simulate(seed, main)


@pytest.mark.parametrize(("action", "stays_open"), [("release", False), ("reject", True)])
def test_tr_122_a_named_tool_is_settled_by_policy_and_others_are_not(action: str, stays_open: bool) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [
            rig.world.tool(name, ONCE, reach=(f"host:{name}",), behaviour=Behaviour(fails="unknown"))
            for name in ("mail", "pay")
        ]
        crew = await rig.own(Setup(tools=tools, policy={"named": {"mail": action}}))
        mail, pay = await crew.call("mail", label="a"), await crew.call("pay", label="a")
        await crew.session.scheduler.sleep(1)
        settled = crew.receipt(mail.attempt_id)
        assert settled.state is State.UNKNOWN and settled.resolution is not None
        assert settled.resolution["channel"] == "policy"
        assert crew.session.book.is_open(mail.attempt_id) is stays_open
        assert settled.has(Overlay.REJECTED if stays_open else Overlay.RELEASED)
        assert crew.receipt(pay.attempt_id).resolution is None

    play(main)


def test_tr_122_no_policy_can_confirm_or_deny() -> None:
    assert set(SETTINGS["recovery.policy.*"].allowed) == {*RECORDS, "retry"} == {"release", "reject", "retry"}


def test_tr_75_an_unknown_call_that_is_no_check_is_never_released_by_the_built_in_policy() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tools = [rig.world.tool("pay", ONCE, behaviour=Behaviour(seconds_before=9), time_limit_seconds=1)]
        crew = await rig.own(Setup(tools=tools))
        receipt = await crew.call("pay", label="a")
        await crew.session.scheduler.sleep(60)
        assert receipt.reason == "time_limit" and crew.session.book.is_open(receipt.attempt_id)

    play(main)
