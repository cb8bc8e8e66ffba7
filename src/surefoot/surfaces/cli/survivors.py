"""What earlier owners left running, as commands show it: lists, cards, and the opening of a session (TR-78).

Owns: which of it is named, and its lines. Does not own: finding and ending processes (`tools.processes.ending`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from surefoot.surfaces import plain, view
from surefoot.surfaces.cli import reading
from surefoot.surfaces.cli.output import Look
from surefoot.surfaces.words import say


def left_running(places: Sequence[reading.Place]) -> list[dict[str, Any]]:
    """What earlier owners left running, of any session and whether or not its call is settled.

    Each is named as a listed resource is, with every process of it in the place of the leader. Commands that were
    started in the background are listed resources, and not here.
    """
    found = [one for place in places for one in reading.survivors_in(place) if not one.background]
    if not found:
        return []
    # Only what is left running needs the part that ends processes: a plain list starts without it (UX-139).
    from surefoot.tools.processes.ending import resource_of

    named = [{key: value for key, value in resource_of(one).items() if key != "pid"} for one in found]
    return [
        {
            **name,
            "pids": [member.pid for member in one.members],
            "supervisorPid": one.supervisor_pid if one.supervisor_alive else None,
            "settled": one.settled,
        }
        for name, one in zip(named, found, strict=True)
    ]


def lines(left: Sequence[Mapping[str, Any]], look: Look) -> list[str]:
    """A line for each."""
    return [
        say(
            "survivor",
            look.language,
            command=plain.cut(view.clean(one["command"]) or "?", 60),
            attempt=view.short_id(one["attemptId"]),
            pid=", ".join(map(str, one["pids"])) or one["supervisorPid"],
            log=one["log"],
        )
        for one in left
    ]


def lines_of(places: Sequence[reading.Place], look: Look) -> list[str]:
    """The same, with the listed resources of these ledgers before it."""
    running = [one for place in places for one in reading.survivors_in(place) if one.background]
    resources: list[str] = []
    if running:
        from surefoot.tools.processes import kernel
        from surefoot.tools.processes.ending import resource_of

        resources = view.background_lines(
            [resource_of(one) for one in running],
            look.language,
            boot_ms=kernel.boot_ms(),
            ascii_only=look.ascii_only,
        )
    return [*resources, *lines(left_running(places), look)]
