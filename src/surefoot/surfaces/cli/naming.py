"""How a session is named in a line for people: by its name, else by its short id.

Owns: a reference that `-r` accepts and a person can type. Does not own: what a reference
means (`app.find_session`).
"""

from __future__ import annotations

import shlex
from typing import Any

from surefoot.surfaces.view import clean, short_id


async def name_of(app: Any, session_id: str) -> str:
    """The session's name as a sentence says it, else its shortest unique ending."""
    rows = await app.sessions()
    row = next((one for one in rows if one.session_id == session_id), None)
    if row is not None and row.name and [one.name for one in rows].count(row.name) == 1:
        return clean(row.name)
    return short_id(session_id, [one.session_id for one in rows])


async def known_as(app: Any, session_id: str) -> str:
    """The same, quoted for a shell where it has to be."""
    return shlex.quote(await name_of(app, session_id))
