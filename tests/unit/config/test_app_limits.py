"""Bounds on their way from the settings into an opened app."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest

from surefoot.app import open_app
from surefoot.config import Settings, load_settings
from surefoot.errors import SettingsError
from surefoot.ledger.opening import open_ledger
from surefoot.ledger.places import BALLAST
from surefoot.ledger.port import Held
from surefoot.ledger.sqlite import Tuning


def settings(tmp_path: Path, **flags: Any) -> Settings:
    environ = {**os.environ, "SUREFOOT_HOME": str(tmp_path / "home")}
    return load_settings({name.replace("__", "."): value for name, value in flags.items()}, environ, tmp_path)


async def test_tr_185_the_two_bounds_with_older_names_reach_the_app(tmp_path: Path) -> None:
    given = settings(tmp_path, recovery__inspect_seconds=3, recovery__crash_attempts=1)
    async with open_app(given, directory=tmp_path) as app:
        assert (app.limits.inspect_seconds, app.limits.crash_attempts) == (3, 1)


def test_tr_185_a_bound_outside_its_range_is_one_sentence_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(
        SettingsError, match=r"limits\.free_bytes must be a whole number from 1 to 68 719 476 736"
    ):
        settings(tmp_path, limits__free_bytes=1 << 60)


async def test_tr_185_two_bounds_at_odds_are_one_sentence_that_names_both(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"limits\.lease_renewal_seconds .* limits\.lease_seconds"):
        async with open_app(settings(tmp_path, limits__lease_seconds=5), directory=tmp_path):
            pass


async def test_tr_174_a_session_is_owned_for_the_lease_that_is_set_from_its_claim_on(tmp_path: Path) -> None:
    """Its death in the first seconds is known by the end of that lease as well."""
    times = {"limits__lease_seconds": 20, "limits__lease_renewal_seconds": 5}
    given = settings(tmp_path, model="x/y", endpoints__x__url="http://127.0.0.1:9", **times)
    async with open_app(given, directory=tmp_path) as app:
        began_ms = app.scheduler.now_ms()
        controller = await app.session(None)
        blind = Tuning(death=lambda owner, owners: "cannot_tell")
        other = await open_ledger(given.places.ledger_folder(tmp_path), tuning=blind)
        held = await other.claim(controller.session_id, dataclasses.replace(app.owner, pid=1))
        await other.close()
        assert isinstance(held, Held) and held.lease_until_ms is not None
        assert began_ms + 20_000 <= held.lease_until_ms <= app.scheduler.now_ms() + 20_000


async def test_tr_197_the_room_that_is_set_is_kept_free_for_the_end_of_a_call(tmp_path: Path) -> None:
    given = settings(tmp_path, limits__ballast_bytes=12_288)
    async with open_app(given, directory=tmp_path):
        ballast = given.places.ledger_folder(tmp_path) / BALLAST
        assert ballast.stat().st_size == 12_288
