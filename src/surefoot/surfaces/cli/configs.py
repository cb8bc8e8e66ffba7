"""`surefoot config` and `surefoot trust`: settings, their origin, and a person's word about a project.

Owns: how settings are printed. Does not own: which value holds (`config`).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from surefoot.config import EXAMPLE, load_settings, places, project_root, set_trust
from surefoot.settings_files import left_out
from surefoot.settings_table import form_of
from surefoot.surfaces import plain
from surefoot.surfaces.cli.output import complain, say_lines


@click.group()
def config() -> None:
    """Settings, and where each value comes from."""


@config.command()
@click.option("--origin", is_flag=True, help="Name unit, default and source of each value.")
@click.option("--example", is_flag=True, help="Print a complete example file.")
@click.option("--json", "as_json", is_flag=True)
def show(origin: bool, example: bool, as_json: bool) -> None:
    """Show every setting that holds here."""
    if example:
        click.echo(EXAMPLE, nl=False)
        return
    settings = load_settings({}, os.environ, Path.cwd())
    complain(settings.warnings)
    if as_json:
        document = {
            path: {"value": value, "origin": str(where), "unit": _unit(path), "default": _default(path)}
            for path, value, where in settings.rows()
        }
        click.echo(json.dumps(document, ensure_ascii=False, indent=1))
        return
    rows = [[path, _shown(value)] for path, value, _ in settings.rows()]
    if origin:
        rows = [
            [path, _shown(value), _unit(path), _shown(_default(path)), str(where)]
            for path, value, where in settings.rows()
        ]
    say_lines(plain.table(rows))


@config.command()
def path() -> None:
    """Print where the settings file lies, or would lie."""
    click.echo(str(places(os.environ).settings_file))


@config.command()
def check() -> None:
    """Read every settings file and say what is wrong with it."""
    settings = load_settings({}, os.environ, Path.cwd())
    complain(settings.warnings)
    click.echo("settings: " + ("ok" if not settings.warnings else f"{len(settings.warnings)} warnings"))


def _unit(name: str) -> str:
    form = form_of(name)
    return form.unit if form else ""


def _default(name: str) -> Any:
    form = form_of(name)
    return form.default if form else None


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else value


@click.command()
@click.argument("directory", required=False, type=click.Path(exists=True, file_okay=False))
@click.option("--revoke", is_flag=True, help="Take the word back.")
def trust(directory: str | None, revoke: bool) -> None:
    """Accept this project's settings files, MCP servers and packs as they are now."""
    root = project_root(Path(directory or "."))
    set_trust(places(os.environ), root, trusted=not revoke)
    names = ", ".join(left_out(root)) or "no settings files yet"
    click.echo(f"{root}: {'no longer trusted' if revoke else 'trusted'} ({names})")
