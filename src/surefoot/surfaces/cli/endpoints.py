"""`surefoot models` and `surefoot auth status`: the model servers of the settings, and where their keys are.

Owns: what is printed. Does not own: endpoints and keys (`config`). Asks no server and runs no key
command; a key itself is never read into a line (UX-26).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click

from surefoot.config import Endpoint
from surefoot.errors import SurefootError
from surefoot.surfaces.cli import reading
from surefoot.surfaces.cli.output import headed, look_here, say_json, say_lines


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def models(as_json: bool) -> None:
    """The models of the settings; the one that a run would use is marked."""
    settings = reading.settings_here()
    try:
        chosen = str(settings.chosen())
    except SurefootError:
        chosen = ""  # nothing is chosen yet; what is configured is told all the same
    rows = [_model(one, chosen) for one in settings.endpoints.values()]
    if as_json:
        say_json(rows)
        return
    shown = [["*" if row["chosen"] else "", *(str(row[key] or "-") for key in _MODEL)] for row in rows]
    say_lines(headed(shown, "head_models", look_here(settings).language))


@click.group()
def auth() -> None:
    """Keys of the model servers."""


@auth.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def status(as_json: bool) -> None:
    """Which key is found where; never the key."""
    settings = reading.settings_here()
    rows = [key_of(one, os.environ) for one in settings.endpoints.values()]
    if as_json:
        say_json(rows)
        return
    shown = [[row["endpoint"], row["state"], row["where"] or "-"] for row in rows]
    say_lines(headed(shown, "head_keys", look_here(settings).language))


_MODEL = ("name", "wire", "contract", "url")


def _model(endpoint: Endpoint, chosen: str) -> dict[str, Any]:
    name = f"{endpoint.name}/{endpoint.model}" if endpoint.model else endpoint.name
    here = chosen.partition("/")[0] == endpoint.name
    return {
        "name": chosen if here else name,
        "endpoint": endpoint.name,
        "model": endpoint.model,
        "wire": endpoint.wire,
        "contract": endpoint.contract,
        "url": endpoint.url or None,
        "chosen": here,
    }


def key_of(endpoint: Endpoint, environ: Mapping[str, str]) -> dict[str, Any]:
    """Where the key of an endpoint comes from: `found`, `missing`, `command` (asked at each run) or `none_needed`."""
    if endpoint.key_env and environ.get(endpoint.key_env):
        state, where = "found", endpoint.key_env
    elif endpoint.key_command:
        state, where = "command", endpoint.key_command[0]
    elif endpoint.key_env:
        state, where = "missing", endpoint.key_env
    else:
        state, where = "none_needed", None
    return {"endpoint": endpoint.name, "state": state, "where": where}
