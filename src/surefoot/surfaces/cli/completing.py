"""What a shell completes beside commands and flags: sessions, open calls, models (UX-59).

Owns: the words offered. Does not own: the scripts (`extras.completion`), what a word means (`reading`).
Reads only, and offers nothing rather than complain: a shell has no place for an error.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import click

from surefoot.errors import SurefootError

Offer = Callable[[click.Context, click.Parameter, str], list[str]]


def of_a_run(environ: Mapping[str, str]) -> bool:
    """Whether the line being completed is a run (`surefoot -m …`) and no command."""
    try:
        words = shlex.split(environ.get("COMP_WORDS", ""))[1:]
    except ValueError:
        return False
    return bool(words) and words[0].startswith("-")


def _quiet(found: Callable[[], Iterable[str]]) -> Offer:
    def offer(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        try:
            return sorted(word for word in set(found()) if word.startswith(incomplete))
        except (SurefootError, OSError, ValueError):
            return []

    return offer


def _sessions() -> list[str]:
    from surefoot.surfaces.cli import reading
    from surefoot.surfaces.view import short_id

    settings = reading.settings_here()
    rows, _ = reading.read(lambda: reading.rows_of(reading.places_of(settings, every=False)))
    ids = [row.session_id for _, row in rows]
    named = [row.name for _, row in rows if row.name]
    return [*named, *(short_id(one, ids) for one in ids)]


def _open_calls() -> list[str]:
    from surefoot.surfaces.cli import reading
    from surefoot.surfaces.view import is_card, short_id

    settings = reading.settings_here()
    places = reading.places_of(settings, every=False)
    snapshots, _ = reading.read(lambda: reading.snapshots_of(places, settings))
    ids = [call["attemptId"] for one in snapshots for call in one["calls"] if is_card(call)]
    return [short_id(one, ids) for one in ids]


def _models() -> list[str]:
    from surefoot.config import load_settings

    endpoints = load_settings({}, os.environ, Path.cwd()).endpoints
    return [
        *endpoints,
        *(f"{name}/{endpoint.model}" for name, endpoint in endpoints.items() if endpoint.model),
    ]


sessions, open_calls, models = _quiet(_sessions), _quiet(_open_calls), _quiet(_models)
