"""A press whose facts change between its admission and its commit, and the form of what it names."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from surefoot.core.model import Draft, EffectClass, Kind
from surefoot.errors import LedgerError
from surefoot.runtime.requests import Caller
from surefoot.testing.rig import Crew, Rig, Setup
from surefoot.testing.simulation import Simulation, simulate
from surefoot.testing.world import Behaviour

ONCE = EffectClass.NON_IDEMPOTENT


async def doubtful(rig: Rig) -> tuple[Crew, str]:
    """An owner with one open unknown write that was looked at."""
    tool = rig.world.tool("pay", ONCE, reach=("host:h",), behaviour=Behaviour(fails="unknown"))
    crew = await rig.own(Setup(tools=[tool]))
    attempt = (await crew.call("pay", label="a")).attempt_id
    await crew.press("inspect", attempt)
    return crew, attempt


@pytest.mark.parametrize("action", ["inspect", "confirm", "deny", "reject", "release", "leave"])
def test_tr_125_tr_172_an_owner_that_learns_in_the_commit_that_it_is_none_answers_lease_lost(
    action: str,
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew, attempt = await doubtful(rig)
        await crew.session.append(Draft(Kind.PROCESS, {"attemptId": attempt, "process": {"pid": 1}}))
        await crew.press("inspect", attempt)
        heir = await rig.own(take_over=True)
        if action == "leave":
            shown = crew.actions.snapshot()
            request = {key: shown[key] for key in ("sessionPath", "runtimeEpoch", "revision")}
            request |= {"attemptId": attempt, "choice": action}
            answer = await crew.do(crew.actions.process(request, Caller("lin", "python")))
        else:
            answer = await crew.press(action, attempt)
        assert (answer.status, answer.body["code"]) == (409, "lease_lost")
        assert answer.body["runtimeEpoch"] and answer.body["revision"], "what to read again by (TR-145)"
        assert await heir.entries(Kind.RESOLVED) == [], "the press of an owner of before records nothing"

    simulate(1, main)


@pytest.mark.parametrize("action", ["confirm", "deny", "reject"])
def test_tr_125_tr_131_news_of_the_attempt_between_a_press_and_its_commit_makes_the_look_stale(
    action: str,
) -> None:
    orders = set()

    async def main(sim: Simulation) -> None:
        crew, attempt = await doubtful(Rig(sim))
        news = Draft(Kind.PROCESS, {"attemptId": attempt, "process": {"quiet": True}})
        _, answer = await asyncio.gather(crew.do(crew.session.append(news)), crew.press(action, attempt))
        kinds = [entry.kind for entry in await crew.entries() if entry.kind in (Kind.PROCESS, Kind.RESOLVED)]
        assert kinds != [Kind.PROCESS, Kind.RESOLVED], "nobody decided on what they had not seen"
        assert answer.body.get("code") in (None, "inspection_stale")
        orders.add(answer.body.get("code"))

    for seed in range(12):
        simulate(seed, main)
    assert orders == {None, "inspection_stale"}, "the schedules hold both orders"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda attempt: [{"attemptId": attempt}, {"attemptId": attempt}],
        lambda attempt: [{"attemptId": attempt, "inspectionId": 7}],
        lambda attempt: [{"attemptId": attempt, "inspectionId": ["ins_a"]}],
    ],
)
def test_tr_125_tr_132_a_call_named_twice_or_an_id_that_is_no_text_is_a_bad_request(wrong: Any) -> None:
    async def main(sim: Simulation) -> None:
        crew, attempt = await doubtful(Rig(sim))
        answer = await crew.press("release", attempt, items=wrong(attempt))
        assert (answer.status, answer.body["code"]) == (400, "bad_request")
        assert crew.session.book.is_open(attempt)

    simulate(1, main)


def test_tr_145_a_decision_that_could_not_be_stored_says_what_to_read_again_by() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        crew, attempt = await doubtful(rig)
        rig.store.fault = lambda kinds: LedgerError("the disk is full")
        answer = await crew.press("release", attempt)
        shown = crew.actions.snapshot()
        assert answer.body["code"] == "storage_failed"
        assert [answer.body[key] for key in ("runtimeEpoch", "revision")] == [
            shown[key] for key in ("runtimeEpoch", "revision")
        ]

    simulate(1, main)
