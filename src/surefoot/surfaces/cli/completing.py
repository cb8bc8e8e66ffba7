"""What a shell completes beside commands and flags: sessions, open calls, models (UX-59).

Owns: the words offered. Does not own: the scripts (`extras.completion`), what a word means (`reading`).
Reads only, and offers nothing rather than complain: a shell has no place for an error.
"""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from surefoot.errors import SurefootError

if TYPE_CHECKING:
    from surefoot.config import Settings

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
    from surefoot.core.canonical import short_id
    from surefoot.ledger.opening import open_reader
    from surefoot.ledger.reader import at_once

    with open_reader(_settings().places.ledger_folder(Path.cwd())) as ledger:
        rows = at_once(ledger.sessions)
    ids = [row.session_id for row in rows]
    named = [row.name for row in rows if row.name]
    return [*named, *(short_id(one, ids) for one in ids)]


def _open_calls() -> list[str]:
    from surefoot.core.canonical import short_id
    from surefoot.core.effects import judged_effect
    from surefoot.core.model import EffectClass
    from surefoot.ledger.opening import open_reader
    from surefoot.ledger.reader import at_once
    from surefoot.surfaces.cli.finding import Finder

    settings = _settings()
    folder = settings.places.ledger_folder(Path.cwd())
    finder = Finder(folder, settings)
    ids = []
    with open_reader(folder) as ledger:
        for row in at_once(ledger.sessions):
            try:
                book = at_once(functools.partial(ledger.receipts, row.session_id))
            except SurefootError:
                continue  # one that cannot be read hides no other
            finder.suppose(book)
            ids += [
                receipt.attempt_id
                for receipt in book.open()
                if judged_effect(receipt).effect_class is not EffectClass.READ_ONLY
            ]
    return [short_id(one, ids) for one in ids]


def _settings() -> Settings:
    from surefoot.config import load_settings

    return load_settings({}, os.environ, Path.cwd())


def _models() -> list[str]:
    endpoints = _settings().endpoints
    return [
        *endpoints,
        *(f"{name}/{endpoint.model}" for name, endpoint in endpoints.items() if endpoint.model),
    ]


sessions, open_calls, models = _quiet(_sessions), _quiet(_open_calls), _quiet(_models)

REFERENCES: dict[tuple[str, ...], Offer] = {
    ("timeline",): sessions,
    **{
        (group, verb): sessions
        for group in ("session", "sessions")
        for verb in ("show", "export", "fork", "resume")
    },
    **{
        ("recover", verb): open_calls
        for verb in ("show", "card", "inspect", "confirm", "deny", "reject", "release", "retry", "process")
    },
}
"""What is offered behind these words, so that their commands, which load far more, need not be loaded for it."""


def plainly_asked(environ: Mapping[str, str]) -> Offer | None:
    """What is offered where the words so far are a command that takes a reference next, and no flag is among them."""
    from click.shell_completion import get_completion_class

    shell, _, asked = environ.get("_SUREFOOT_COMPLETE", "").partition("_")
    made = get_completion_class(shell) if asked == "complete" else None
    if made is None:
        return None
    words, incomplete = made(
        click.Command("surefoot"), {}, "surefoot", "_SUREFOOT_COMPLETE"
    ).get_completion_args()
    return None if incomplete.startswith("-") else REFERENCES.get(tuple(words))
