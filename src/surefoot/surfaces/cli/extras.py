"""Small commands: demo, emulate, tools, contract, completion.

Owns: starting `demo` and `emulate` in a process (they are never imported), and the
printing of tools and contracts.
"""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import click

from surefoot.errors import SurefootError
from surefoot.surfaces import plain
from surefoot.surfaces.cli.output import headed, look_here, reads_aloud, say_json, say_lines, show_lines
from surefoot.surfaces.cli.tongue import language_here
from surefoot.surfaces.phrases import translated

_UNSETTLED = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


def _child(module: str, arguments: list[str]) -> int:
    """Run a module of `surefoot.testing` in the foreground; its exit code is ours.

    An interrupt reaches both; the child ends first and is waited for.
    """
    child = subprocess.Popen([sys.executable, "-m", module, *arguments])
    while True:
        try:
            code = child.wait()
        except KeyboardInterrupt:
            continue
        return code if code >= 0 else 128 - code


@click.command(context_settings=_UNSETTLED)
@click.pass_context
def demo(ctx: click.Context) -> None:
    """A killed agent that tells the truth, in under a minute; needs no key and no network."""
    from surefoot.surfaces.cli.reading import settings_here

    settings = None
    with suppress(SurefootError):  # the demo needs no settings; all they may say is how it is drawn
        settings = settings_here()
    more = ["--screen-reader"] if reads_aloud(settings) else []
    ctx.exit(_child("surefoot.testing.demo", [*ctx.args, *more]))


@click.command(context_settings=_UNSETTLED)
@click.pass_context
def emulate(ctx: click.Context) -> None:
    """A strict model server for tests, on this machine."""
    # It takes this process over: whoever ends `surefoot emulate` by any signal has ended the server.
    os.execv(sys.executable, [sys.executable, "-m", "surefoot.testing.emulator", *ctx.args])


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def tools(name: str | None, as_json: bool) -> None:
    """The tools a model is offered, with the name that permission rules use; `check` compares them with packs."""
    from pathlib import Path

    from surefoot import offering
    from surefoot.errors import SessionMissing
    from surefoot.surfaces.cli.reading import settings_here

    if name == "check":
        _check_tools(offering.tool_findings(settings_here(), directory=Path.cwd()), as_json=as_json)
        return
    found = offering.tool_table(settings_here(), directory=Path.cwd())
    if name is not None:
        every = found
        found = [row for row in every if name in (row["name"], row.get("rule"))]
        if not found:
            known = ["check", *(str(row[key]) for row in every for key in ("name", "rule") if row.get(key))]
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise SessionMissing(f"No tool is called {name!r}.{hint}", next_command="surefoot tools")
    if as_json:
        say_json([_with_environment(row) for row in found] if name is not None else found)
    else:
        language = look_here(settings_here()).language
        rows = [[translated(_cell(value), language) for value in row.values()] for row in found]
        show_lines(headed(rows, "head_tools", language, cut=True))
        if name is not None and any(row["name"] in READERS for row in found):
            say_lines(["", *reading_lines(language, commands=found[0]["name"] == READERS[0])])


def _with_environment(row: dict[str, Any]) -> dict[str, Any]:
    """A tool's facts, with the reading environment where commands run in it."""
    from surefoot.tools.classify.environment import environment_rows

    return {**row, "reading_environment": dict(environment_rows())} if row["name"] == READERS[0] else row


READERS = ("shell", "http")
"""Tools whose class depends on how they are run, or on the word of a far side; the first runs commands."""


def reading_lines(language: str, *, commands: bool = True) -> list[str]:
    """The reading environment as text (UX-159); without `commands` only what no environment can promise."""
    from surefoot.surfaces.words import in_language
    from surefoot.surfaces.words_tools import READING_NOTES, READING_ROWS
    from surefoot.tools.classify.environment import environment_rows

    notes = {key: in_language(texts, language) for key, texts in READING_NOTES.items()}
    if not commands:
        return [notes["get"]]
    rows = [f"  {in_language(READING_ROWS[key], language)}: {told}" for key, told in environment_rows()]
    return [notes["head"], *rows, notes["changes"], notes["get"]]


def _cell(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) and value else str(value or "-")


def _check_tools(findings: list[dict[str, Any]], *, as_json: bool) -> None:
    """Registry and packs, both ways (EC-54): exit code 1 when a finding fails the check."""
    if as_json:
        say_json(findings)
    else:
        language = language_here()
        rows = [[one["code"], one["subject"], translated(one["detail"], language)] for one in findings]
        say_lines(plain.table(rows) if rows else [translated("Registry and packs agree.", language)])
    if any(one["fails"] for one in findings):
        click.get_current_context().exit(1)


@click.group()
def contract() -> None:
    """What an endpoint demands of replayed history, declared as data."""


@contract.command()
@click.argument("identity")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def show(identity: str, as_json: bool) -> None:
    """The resolved contract, each key with its origin."""
    from surefoot.providers import contracts
    from surefoot.surfaces.cli.reading import settings_here

    folder = settings_here().places.settings_folder / "contracts"
    own = [folder] if folder.is_dir() else []
    if not as_json:
        say_lines(contracts.show(identity, own))
        return
    found = contracts.resolve(identity, own)
    keys = {key: {"value": plain_value(found[key]), "origin": found.origin[key]} for key in sorted(found)}
    say_json({"id": identity, "digest": found.digest, "keys": keys})


def plain_value(value: Any) -> Any:
    """A frozen value as JSON has it."""
    if isinstance(value, Mapping):
        return {str(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [
            plain_value(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)
        ]
    return value


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class

    from surefoot.surfaces.cli.entry import commands

    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    click.echo(made(commands, {}, "surefoot", "_SUREFOOT_COMPLETE").source())
    _ = os
