"""What is said when a chat died and could not say it: what is open, and how to go on (UX-33).

Owns: the last lines after a crash, printed by a process of its own that only reads.
Does not own: noticing the death (`guard`), the lines of a chat that leaves (`chatting`).

    python -m surefoot.surfaces.cli.last_words SESSION

Nothing is printed of a session that is not on disk.
"""

from __future__ import annotations

import sys

from surefoot.errors import SurefootError
from surefoot.surfaces import view
from surefoot.surfaces.cli import reading
from surefoot.surfaces.cli.output import complain, look_here
from surefoot.surfaces.words import say


def last_words(session_id: str) -> list[str]:
    """The lines about a session whose chat is gone."""
    settings = reading.settings_here()
    language = look_here(settings).language

    async def work() -> list[str]:
        place, row = await reading.find_session(settings, session_id)
        snapshot = await reading.read_snapshot(place, row, settings)
        rows, _ = await reading.rows_of([place])
        known = view.short_id(row.session_id, [one.session_id for _, one in rows])
        undecided = sum(view.is_card(call) for call in snapshot["calls"])
        counted = [say("end_outcome_unknown", language, n=undecided)] if undecided else []
        return [say("ended_without_word", language), *counted, f"surefoot -r {known}"]

    try:
        return reading.run(work)
    except SurefootError:
        return []


if __name__ == "__main__":
    complain(last_words(sys.argv[1]))
