"""The one action on a refused request by its body: what is read, what is not, and the answers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from surefoot.core.incident import Refusal
from surefoot.core.model import EffectClass, TurnStatus
from surefoot.runtime.controller import TurnEnd
from surefoot.runtime.refused import BODY_BYTES, Press, act, answered, read
from surefoot.runtime.requests import Answer
from surefoot.testing.replayed import FarSide, RefusingModel
from surefoot.testing.rig import Crew, Rig, Setup
from surefoot.testing.simulation import Simulation, simulate

GOOD = {"action": "protocol_recovery", "recoveryId": "inc_a"}


async def card() -> dict[str, Any]:
    return {"incident_id": "inc_a"}


async def pressed(crew: Crew, body: dict[str, Any]) -> Any:
    return await act(crew.controller, crew.controller.incidents.card, body)


def test_pr_80_pr_61_the_body_names_its_incident_and_may_bring_guidance_as_it_was_typed() -> None:
    assert read(GOOD) == Press("inc_a")
    words = " /new\n!rm  \n"
    assert read(json.dumps({**GOOD, "input": words}).encode()) == Press("inc_a", words)


@pytest.mark.parametrize(
    ("body", "code", "reason", "status"),
    [
        (b"", "bad_request", None, 400),
        (b"[]", "bad_request", None, 400),
        (b"\xff", "bad_request", None, 400),
        ({**GOOD, "action": "retry"}, "unknown_action", None, 400),
        ({"recoveryId": "inc_a"}, "unknown_action", None, 400),
        ({**GOOD, "format": "json"}, "bad_request", "format_not_supported", 400),
        ({**GOOD, "format": None}, "bad_request", "format_not_supported", 400),
        ({**GOOD, "path": "/etc/passwd"}, "unknown_field", None, 400),
        ({"action": "protocol_recovery"}, "bad_request", "id_missing", 400),
        ({**GOOD, "recoveryId": ""}, "bad_request", "id_missing", 400),
        ({**GOOD, "recoveryId": ["inc_a"]}, "bad_request", None, 400),
        ({**GOOD, "input": 7}, "bad_request", None, 400),
        ({**GOOD, "input": "x" * (16 * 1024 + 1)}, "bad_request", "guidance_too_long", 400),
        (b" " * (BODY_BYTES + 1), "body_too_large", None, 413),
    ],
)
def test_pr_80_pr_31_pr_82_every_other_body_has_its_code(
    body: Any, code: str, reason: str | None, status: int
) -> None:
    refused = read(body)
    assert refused == Refusal(code, reason)
    assert isinstance(refused, Refusal)
    told = asyncio.run(answered(card, refused))
    assert told.status == status
    assert (
        told.body["code"] == code
        and told.body["message"]
        and told.body["incident"] == {"incident_id": "inc_a"}
    )


@pytest.mark.parametrize(
    ("code", "status"), [("recovery_spent", 409), ("running", 409), ("storage_failed", 503)]
)
def test_pr_80_refusals_of_admission_are_409_and_a_disk_that_fails_is_503(code: str, status: int) -> None:
    assert asyncio.run(answered(card, Refusal(code))).status == status


def test_pr_80_pr_82_the_body_takes_the_one_way_and_a_second_press_shows_the_first_ones_result() -> None:
    async def main(sim: Simulation) -> None:
        rig, far = Rig(sim), FarSide()
        far.refuse(2)
        steps = [{"calls": [{"name": "pay", "args": {"label": "a"}}]}, {"text": "Paid."}]
        tools = [rig.world.tool("pay", EffectClass.NON_IDEMPOTENT)]
        model = RefusingModel(steps, far, tools=("pay",))
        crew = await rig.own(Setup(tools=tools, model=model))
        await crew.turn("Pay once.")
        found = await crew.controller.pending_recovery()
        assert found is not None
        refused = await pressed(crew, {"action": "protocol_recovery"})
        assert isinstance(refused, Answer) and refused.body["incident"]["offered"] and len(far.requests) == 2
        wrong = await pressed(crew, {**GOOD, "recoveryId": "inc_../../etc"})
        assert isinstance(wrong, Answer) and wrong.body["code"] == "recovery_unavailable"
        done = await pressed(crew, {**GOOD, "recoveryId": found.id, "input": "only the count"})
        assert isinstance(done, TurnEnd) and done.status is TurnStatus.COMPLETED
        sent = len(far.requests)
        again = await pressed(crew, {**GOOD, "recoveryId": found.id})
        assert isinstance(again, Answer) and again.body["code"] == "recovery_spent"
        assert again.body["incident"]["outcome"] == "recovered" and len(far.requests) == sent
        rows = crew.told("incident")
        assert [one["state"] for one in rows][:2] == ["pending", "consumed"]
        assert {one["incidentKind"] for one in rows} == {"upstream_reason_missing"}

    simulate(21, main)
