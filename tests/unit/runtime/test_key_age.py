"""TR-18 and EC-18: how long a retry may rely on a key, within one boot and across a restart."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from surefoot.core.effects import Effect
from surefoot.core.model import EffectClass, Grade, Receipt, State
from surefoot.errors import OutcomeUnknown, ToolError
from surefoot.runtime.keys import Keys
from surefoot.runtime.tools import Outcome, Tool
from surefoot.testing.rig import Crew, Rig, Setup
from surefoot.testing.simulation import Simulation, simulate
from surefoot.verifiers.port import Deadline, Observation

LIFETIME_SECONDS = 100.0


class Dated:
    """Finds nothing, with proof, and tells the far side's clock as it is given."""

    name, far = "dated", False

    def __init__(self, clock: Mapping[str, Any] | None) -> None:
        self.clock = clock

    def recovery_scope(self, call: Receipt) -> str:
        return "s"

    def inspect_effect(self, key: str, call: Receipt, deadline: Deadline, *, fenced: bool) -> Observation:
        evidence = {} if self.clock is None else {"farClock": self.clock}
        return Observation("absent", Grade.PROOF, fenced, "none", evidence)


def paying(rig: Rig, verifier: Dated, kind: EffectClass = EffectClass.NON_IDEMPOTENT) -> Tool:
    async def body(live: Any, arguments: Any) -> str:
        raise OutcomeUnknown("the line went dead")

    tool = rig.world.tool("pay", kind, reach=("host:h",), verifier=verifier)
    without = Effect(EffectClass.UNKNOWN, ("host:h",))
    return dataclasses.replace(
        tool,
        body=body,
        choose_key_lifetime=lambda arguments: LIFETIME_SECONDS,
        effect_without_key=lambda arguments, place: without,
    )


async def code_after(crew: Crew) -> str:
    receipt = await crew.call("pay", label="a")
    assert receipt.state is State.UNKNOWN
    await crew.press("inspect", receipt.attempt_id)
    answer = await crew.press("retry", receipt.attempt_id)
    for attempt in list(crew.actions.retrying.running):
        await crew.actions.retrying.settled(attempt)
    return "ok" if answer.status == 200 else str(answer.body["code"])


@pytest.mark.parametrize(
    ("age_ms", "boot", "code"),
    [
        (50_000, "later boot", "ok"),
        (95_000, "later boot", "retry_key_expired"),  # the margin of a tenth
        (50_000, "yet another boot", "retry_key_expired"),
        (None, "", "retry_key_expired"),
    ],
)
def test_tr_18_after_a_restart_a_key_lives_by_the_far_sides_clock_alone(
    age_ms: int | None, boot: str, code: str
) -> None:
    async def main(sim: Simulation) -> None:
        rig, verifier = Rig(sim), Dated(None)
        policy = {"retry_enabled": True, "boot_id": "later boot"}
        crew = await rig.own(Setup(tools=[paying(rig, verifier)], policy=policy))
        if age_ms is not None:
            now = crew.session.scheduler.boot_ms()
            verifier.clock = {"bootId": boot, "bootMs": now, "keyAgeMs": age_ms}
        assert await code_after(crew) == code

    simulate(1, main)


def test_ec_18_a_call_whose_key_is_forgotten_is_judged_as_without_key() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tool = paying(rig, Dated(None), EffectClass.IDEMPOTENT_WRITE)
        crew = await rig.own(Setup(tools=[tool]))
        receipt = await crew.call("pay", label="a")
        await crew.actions.recover()
        assert crew.receipt(receipt.attempt_id).stricter_now is None
        await crew.session.scheduler.sleep(LIFETIME_SECONDS)
        await crew.actions.recover()
        now = crew.receipt(receipt.attempt_id).stricter_now
        assert now is not None and now["class"] == "UNKNOWN"

    simulate(1, main)


def busy(rig: Rig, **declared: Any) -> Tool:
    """A write that is repeatable by its key alone, at a far side that is always busy."""

    async def body(live: Any, arguments: Any) -> Outcome:
        rig.world.bodies.append(("far", live.attempt_id))
        raise ToolError("busy", transient=True)

    tool = rig.world.tool("far", EffectClass.IDEMPOTENT_WRITE, reach=("host:h",))
    known: dict[str, Any] = {
        "body": body,
        "choose_key_lifetime": lambda arguments: 3600.0,
        "effect_without_key": lambda arguments, place: Effect(EffectClass.UNKNOWN, ("host:h",)),
    }
    return dataclasses.replace(tool, **{**known, **declared})


@pytest.mark.parametrize(
    ("declared", "tries"),
    [
        ({}, 8),
        ({"key_after_failure": lambda arguments: False}, 1),
        (
            {"choose_key_lifetime": lambda arguments: 5.0},
            2,
        ),  # after the wait of 2 s; it is forgotten before the next one, of 5 s, is over
        ({"choose_key_lifetime": lambda arguments: None, "key_after_failure": False}, 8),
        (
            {
                "key_after_failure": False,
                "effect_without_key": lambda arguments, place: Effect(
                    EffectClass.IDEMPOTENT_WRITE, ("host:h",)
                ),
            },
            8,
        ),
    ],
    ids=["accepted", "refused after a failure", "forgotten", "no key declared", "harmless without it"],
)
def test_tr_18_a_failed_write_is_tried_again_only_while_its_key_serves(
    declared: dict[str, Any], tries: int
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        steps = [{"calls": [{"name": "far", "args": {"label": "a"}}]}]
        crew = await rig.own(Setup(tools=[busy(rig, **declared)], steps=steps))
        await crew.turn()
        assert len(rig.world.bodies) == tries

    simulate(1, main)


def test_tr_18_the_age_of_a_key_is_counted_from_the_first_attempt_that_carried_it() -> None:
    """A retry carries the key of the call it takes over from, and makes it no younger."""

    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        tool = paying(rig, Dated(None))
        crew = await rig.own(Setup(tools=[tool], policy={"retry_enabled": True}))
        assert await code_after(crew) == "ok"
        first = next(iter(crew.session.book))
        second = crew.receipt(first.superseded_by or "")
        assert second.state is State.UNKNOWN and second.idempotency_key == first.idempotency_key
        keys = Keys(crew.session.book, crew.session.scheduler)
        boot = str((second.owner or {})["bootId"])
        await crew.session.scheduler.sleep(60)
        assert keys.alive(tool, second, boot)
        older = dataclasses.replace(first, started_boot=(first.started_boot or 0) - 60_000)
        crew.session.book.suppose(older)
        assert not keys.alive(tool, second, boot)

    simulate(1, main)
