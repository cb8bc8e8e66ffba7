"""Equipment that all crash tests of a module share: one sink, one emulator, one nursery.

`MATRIX_ENGINE` is the engine their children run on.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from surefoot.testing.crash import end_leftovers
from surefoot.testing.kills import Equipment, Site
from surefoot.testing.sink import post


@pytest.fixture(scope="module")
def equipment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Equipment]:
    engine = os.environ.get("MATRIX_ENGINE", "sqlite")
    with Equipment.at(tmp_path_factory.mktemp("equipment"), engine) as found:
        yield found


@pytest.fixture
def new_site(equipment: Equipment, tmp_path: Path) -> Iterator[Callable[[], Site]]:
    """Makes sites; whatever their children left running is ended with the test."""
    numbers = itertools.count(1)
    post(f"{equipment.emulator.url}/_ctl/reset", {})
    equipment.sink.switch(keys="ignore", commit="now", reply="now", cancel="ignore", look_up=True, fail=0)
    yield lambda: Site(tmp_path / str(next(numbers)), equipment)
    end_leftovers(tmp_path, below=True)


@pytest.fixture
def site(new_site: Callable[[], Site]) -> Site:
    return new_site()
