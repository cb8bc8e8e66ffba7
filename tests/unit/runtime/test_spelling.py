"""Paths whose file system does not tell upper from lower case meet in every spelling.

A folder looks like one of those where a name and the same name with its letters swapped are one file. Two
hard links make such a folder on any disk.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from surefoot.core.effects import Effect, overlaps
from surefoot.core.model import EffectClass, State
from surefoot.runtime.spelling import compared, is_blind, with_compared
from surefoot.testing.rig import Rig, Setup
from surefoot.testing.simulation import Simulation, simulate
from surefoot.testing.world import Behaviour

ONCE = EffectClass.NON_IDEMPOTENT


@pytest.fixture
def blind(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "Disk"
    folder.mkdir()
    (folder / "Note.txt").write_text("a")
    os.link(folder / "Note.txt", folder / "nOTE.TXT")
    return folder


@pytest.fixture
def telling(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "Project"
    folder.mkdir()
    (folder / "Note.txt").write_text("a")
    return folder


def reach(*members: str) -> tuple[str, ...]:
    return with_compared(Effect(ONCE, members)).reach


@pytest.mark.parametrize("name", ["Note.txt", "New.txt", "New/Deep/Ärger.txt", "straße/A"])
def test_ec_12_every_spelling_on_such_a_disk_is_compared_as_one(blind: Path, name: str) -> None:
    assert compared(f"{blind}/{name}") == f"{blind}/{name.casefold()}"
    assert is_blind(f"{blind}/{name}")
    for kind in ("path:", "repo:", "db:file", "db:file:"):
        one, other = reach(f"{kind}{blind}/{name}"), reach(f"{kind}{blind}/{name.swapcase()}")
        assert overlaps(one, other), kind
        assert one[0] == f"{kind}{blind}/{name}", "the spelling that was asked for stays"
    assert overlaps(reach(f"path:{blind}"), reach(f"path:{blind}/{name}"))


@pytest.mark.parametrize("name", ["Note.txt", "New.txt", "New/Deep", "123"])
def test_ec_12_where_case_tells_names_apart_nothing_is_added(telling: Path, name: str) -> None:
    member = f"path:{telling}/{name}"
    assert reach(member) == (member,)
    assert not is_blind(f"{telling}/{name}")
    assert name == "123" or not overlaps(reach(member), reach(f"path:{telling}/{name.swapcase()}"))


def test_ec_12_an_empty_folder_of_an_ordinary_disk_stays_as_it_is(telling: Path) -> None:
    (telling / "Empty").mkdir()
    assert compared(f"{telling}/Empty/New.txt") == f"{telling}/Empty/New.txt"


@pytest.mark.parametrize(
    "member",
    ["*", "host:Example.com/A", "repo:github.com/Owner/Name", "mcp:Files", "path:relative/A", "path:/"],
)
def test_ec_12_what_names_no_place_on_a_disk_is_not_looked_at(member: str) -> None:
    assert reach(member) == (member,)


def test_ec_12_an_unknown_write_holds_back_the_same_file_in_another_spelling(
    blind: Path, telling: Path
) -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        lost = Behaviour(fails="unknown")
        tools = [
            rig.world.tool(f"{one}_{folder.name}", ONCE, reach=[f"path:{folder}/{name}"], behaviour=how)
            for folder in (blind, telling)
            for one, name, how in (("first", "Note.txt", lost), ("second", "NOTE.TXT", Behaviour()))
        ]
        crew = await rig.own(Setup(tools=tools))
        assert (await crew.call("first_Disk", label="a")).state is State.UNKNOWN
        assert (await crew.call("second_Disk", label="b")).reason == "fenced"
        assert (await crew.call("first_Project", label="c")).state is State.UNKNOWN
        assert (await crew.call("second_Project", label="d")).state is State.SUCCEEDED

    simulate(1, main)
