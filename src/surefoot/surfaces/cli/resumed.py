"""The ledger, model and effort of a session that is gone on with (UX-164, TR-183).

Owns: that a session named by its whole id is found in any project, that a resume keeps what the session worked
with last unless a flag says otherwise, and the line that tells where the settings differ. Does not own: opening
the session (`running`), other differences, which are told before the first request (`runtime.equipment`).
Reads only; what cannot be read is told where the session is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from surefoot.config import Settings
from surefoot.core.model import Kind
from surefoot.core.turns import equipment_of
from surefoot.errors import SettingsError, SurefootError
from surefoot.surfaces.cli import reading
from surefoot.surfaces.notices import sentence

WINDOW = 256
_TELLING = (Kind.TURN.value,)


def as_before(settings: Settings, flags: Mapping[str, Any], language: str) -> tuple[Settings, list[str]]:
    """The settings of a command that goes on with a session, and what a person is told of them.

    Raises `UsageError` where the session is one of a project that lies elsewhere.
    """
    settings = reading.with_its_ledger(settings, flags["resume"] or None)
    if not (flags["go_on"] or flags["resume"] is not None) or flags["model"]:
        return settings, []  # another model was named; the effort of the old one says nothing about it
    worked = reading.run(lambda: _worked_with(settings, flags["resume"] or None))
    model = str(worked.get("model") or "")
    if not model or not _is_known(replace(settings, model=model)):
        return settings, []
    kept = replace(settings, model=model)
    if not flags["effort"] and "effort" in worked:
        kept = replace(kept, effort=worked["effort"])
    now, before = _named(settings), _named(kept)
    told = [sentence("as_before", language, session=before, settings=now)] if now != before else []
    return kept, told


async def _worked_with(settings: Settings, reference: str | None) -> Mapping[str, Any]:
    """What the newest turn of the session worked with; nothing where that cannot be read."""
    try:
        place, row = await reading.find_session(settings, reference)
        async with reading.reader(place) as ledger:
            newest = await ledger.read(row.session_id, after=max(0, row.position - WINDOW), kinds=_TELLING)
            found = equipment_of(newest)
            if found is None and row.position > WINDOW:
                found = equipment_of(await ledger.read(row.session_id, kinds=_TELLING))
            return found or {}
    except SurefootError:
        return {}


def _is_known(settings: Settings) -> bool:
    """Whether its endpoint is still configured."""
    try:
        settings.chosen()
    except SettingsError:
        return False
    return True


def _named(settings: Settings) -> str:
    try:
        chosen = settings.chosen()
    except SettingsError:
        return "-"
    return f"{chosen} ({chosen.effort})" if chosen.effort else str(chosen)
