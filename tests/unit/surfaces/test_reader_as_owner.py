"""What a reader is shown of a session as a whole, beside what its owner is shown: the same, from the same entries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from surefoot.config import Settings, load_settings
from surefoot.core.model import BarrierLevel, Draft, Kind
from surefoot.ledger.newest import WINDOW
from surefoot.surfaces.cli import reading
from surefoot.testing.rig import Crew, Setup, on_disk


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings({}, {"HOME": str(tmp_path), "SUREFOOT_HOME": str(tmp_path / "sf")}, tmp_path)


async def read(folder: Path, settings: Settings) -> dict[str, Any]:
    """The snapshot as somebody else reads it from the disk."""
    place = reading.Place("led_x", folder, here=True)
    [(_, row)], broken = await reading.rows_of([place])
    assert not broken
    return await reading.read_snapshot(place, row, settings)


def told(snapshot: dict[str, Any]) -> tuple[bool, str]:
    return snapshot["silent"], snapshot["barrier"]


async def turn(crew: Crew, name: str, *statuses: str, **more: Any) -> None:
    for status in statuses:
        begins = {"barrier": crew.session.level.value} if status == "queued" else {}
        payload = {"turnId": name, "status": status, **begins, **more}
        await crew.session.append(Draft(Kind.TURN, payload))


@pytest.mark.parametrize("spoke", [False, True])
async def test_tr_55_tr_139_a_reader_and_the_next_owner_tell_the_same_of_a_turn_that_died(
    tmp_path: Path, settings: Settings, spoke: bool
) -> None:
    folder = tmp_path / "ledger"
    async with on_disk(folder) as crew:
        await turn(crew, "trn_1", "queued", "running")
        if spoke:
            await crew.session.append(Draft(Kind.ASSISTANT, {"turnId": "trn_1", "text": "hm", "calls": []}))
        assert told(await read(folder, settings)) == (False, "reach"), "its owner lives"
    before = await read(folder, settings)
    assert before["silent"] is (not spoke), "nobody owns it, and its turn has not ended"
    async with on_disk(folder, new=False) as crew:
        assert told(crew.actions.snapshot()) == told(before) == told(await read(folder, settings))
    async with on_disk(folder, new=False) as crew:
        again = crew.actions.snapshot()
        assert told(again) == told(before) == told(await read(folder, settings)), "opened once more"
        await turn(crew, "trn_2", "queued", "running")
        assert not crew.actions.snapshot()["silent"] and not (await read(folder, settings))["silent"]


async def test_tr_55_a_turn_is_not_silent_because_its_words_lie_far_back(
    tmp_path: Path, settings: Settings
) -> None:
    folder = tmp_path / "ledger"
    async with on_disk(folder) as crew:
        await turn(crew, "trn_1", "queued", "running")
        await crew.session.append(Draft(Kind.ASSISTANT, {"turnId": "trn_1", "text": "hm", "calls": []}))
        await crew.session.append(*[Draft(Kind.NOTICE, {"code": "x"}) for _ in range(WINDOW)])
        await turn(crew, "trn_1", "waiting_user", "running")
    assert not (await read(folder, settings))["silent"]
    async with on_disk(folder, new=False) as crew:
        assert not crew.actions.snapshot()["silent"]


@pytest.mark.parametrize("turns", [1, 3])
async def test_tr_83_tr_139_a_reader_tells_the_level_of_the_session_and_not_its_own(
    tmp_path: Path, settings: Settings, turns: int
) -> None:
    folder = tmp_path / "ledger"
    assert settings.recovery.barrier == "reach"
    async with on_disk(folder, Setup(level=BarrierLevel.ACTION)) as crew:
        for number in range(turns):
            await turn(crew, f"trn_{number}", "queued", "running", "completed")
        assert told(crew.actions.snapshot()) == told(await read(folder, settings)) == (False, "action")
    assert told(await read(folder, settings)) == (False, "action")
    async with on_disk(folder, Setup(level=BarrierLevel.SESSION), new=False) as crew:
        assert told(crew.actions.snapshot()) == told(await read(folder, settings)) == (False, "session")
        changes = [one.payload for one in await crew.entries(Kind.BARRIER_SET)]
    assert [(one["old"], one["new"], one["who"]) for one in changes] == [("action", "session", "owner")]
    assert json.dumps(await read(folder, settings))


async def test_tr_83_a_session_without_a_turn_tells_the_level_it_was_opened_with(
    tmp_path: Path, settings: Settings
) -> None:
    folder = tmp_path / "ledger"
    async with on_disk(folder, Setup(level=BarrierLevel.ADVISE)) as crew:
        await crew.session.append(Draft(Kind.BARRIER_SET, {"old": "reach", "new": "advise"}))
    assert (await read(folder, settings))["barrier"] == "advise"
