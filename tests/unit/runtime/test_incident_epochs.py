"""Whose hand wrote a record: its owner's epoch in every entry, none by a stale one, none taken along by a fork."""

from __future__ import annotations

import json

import pytest

from surefoot.core.model import Kind, TurnStatus
from surefoot.errors import StaleEpoch
from surefoot.ledger.memory import MemoryLedger
from surefoot.runtime.requests import Answer
from surefoot.runtime.rewriting import fork
from surefoot.runtime.session import LeaseTimes
from surefoot.testing.replayed import FarSide, RefusingModel
from surefoot.testing.rig import SESSION, Crew, Rig, Setup
from surefoot.testing.simulation import Simulation, simulate

STEPS = [{"calls": [{"name": "nothing", "args": {}}]}, {"text": "Done."}]


async def refused(rig: Rig, far: FarSide) -> Crew:
    """A turn whose second request was refused without a reason; the offer is pending."""
    crew = await rig.own(setup(far))
    end = await crew.turn("Go.")
    assert end.status is TurnStatus.FAILED
    assert await crew.controller.pending_recovery() is not None
    return crew


def setup(far: FarSide) -> Setup:
    return Setup(model=RefusingModel(STEPS, far, tools=("nothing",)))


def test_pr_26_every_entry_of_a_record_carries_the_epoch_of_whoever_wrote_it() -> None:
    async def main(sim: Simulation) -> None:
        rig, far = Rig(sim), FarSide()
        far.refuse(2)
        first = await refused(rig, far)
        epoch = first.session.epoch
        first.process.kill()  # type: ignore[union-attr]
        heir = await rig.own(setup(far))
        assert heir.session.epoch > epoch
        await heir.controller.recover_context()
        entries = [one for one in await heir.entries() if one.kind == Kind.INCIDENT]
        told = [json.loads(one.payload["record"])["epoch"] for one in entries]
        assert told == [epoch, *[heir.session.epoch] * (len(entries) - 1)] and len(entries) >= 2

    simulate(1, main)


def test_pr_26_an_owner_that_lost_the_session_can_write_no_record() -> None:
    async def main(sim: Simulation) -> None:
        rig, far = Rig(sim), FarSide()
        far.refuse(2)
        stale = await refused(rig, far)
        heir = await rig.own(setup(far), take_over=True)
        before = len(far.requests)
        record = stale.session.incidents[-1]
        with pytest.raises(StaleEpoch):
            await stale.controller.incidents.records.change(record, {"state": "consumed"})
        answer = await stale.controller.recover_context()
        assert isinstance(answer, Answer) and answer.status == 409
        assert len(far.requests) == before
        written = [one for one in await heir.entries() if one.kind == Kind.INCIDENT]
        assert [one.payload["state"] for one in written] == ["pending"]

    simulate(2, main)


def test_pr_26_a_fork_takes_no_pending_incident_along() -> None:
    async def main(sim: Simulation) -> None:
        rig, far = Rig(sim), FarSide()
        far.refuse(2)
        await refused(rig, far)
        process = sim.process("fork")

        async def forked() -> list[str]:
            ledger = MemoryLedger(rig.store)
            made = await fork(
                ledger,
                process.scheduler(),
                process.owner,
                SESSION,
                opening={"directory": "/sim"},
                times=LeaseTimes(),
            )
            kinds = [one.kind for one in await ledger.read(made.session_id)]
            assert made.incidents == []
            await made.close()
            return kinds

        kinds = await process.run(forked())
        assert Kind.FORKED in kinds and Kind.INCIDENT not in kinds

    simulate(3, main)
