"""Every command that prints facts prints them as JSON too, and what names one place prints one line."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from cli_world import World

from surefoot.surfaces.cli.entry import COMMANDS, commands

READING = (
    "recover list", "recover stats", "session list", "session show", "session export", "timeline", "ledger verify",
    "ledger prune --dry-run", "config show", "config check", "config get language", "trust", "doctor", "tools",
    "tools check", "tools read", "models", "auth status", "contract show deepseek/chat",
)  # fmt: skip
NO_FACTS = {
    "demo", "emulate", "completion", "config path", "config set", "config schema", "ledger path", "ledger begin",
    "session rename", "session rm", "session resume", "run", "exec",
}  # fmt: skip
"""Without `--json`: what begins a run, prints one line or a file of its own, or only changes something."""
DONE = {"text": "Done."}


def every_command() -> list[tuple[str, click.Command]]:
    """Each command of the tree by its words."""
    context = click.Context(commands)
    found: list[tuple[str, click.Command]] = []
    for name in COMMANDS:
        command = commands.get_command(context, name)
        assert command is not None
        found.append((name, command))
        if isinstance(command, click.Group):
            found += [(f"{name} {below}", one) for below, one in command.commands.items()]
    return found


def test_ux_13_every_command_that_prints_facts_takes_json() -> None:
    without = {
        name for name, command in every_command()
        if not isinstance(command, click.Group) and not any("--json" in one.opts for one in command.params)
    }  # fmt: skip
    assert {name.replace("sessions ", "session ") for name in without} <= NO_FACTS


def test_ux_13_what_every_reading_command_prints_as_json_is_one_document(world: World) -> None:
    (world.project / "a.txt").write_text("x")
    world.model_says({"calls": [{"name": "read", "args": {"path": "a.txt"}}]}, DONE)
    assert world.run("-p", "look").returncode == 0
    for words in READING:
        done = world.run(*words.split(), "--json")
        assert done.returncode in (0, 1) and done.stdout.endswith("\n"), (words, done.stderr)
        json.loads(done.stdout)


@pytest.mark.parametrize("words", ["config path", "ledger path", "session show --id"])
def test_ux_13_what_names_one_thing_prints_exactly_one_line(world: World, words: str) -> None:
    world.model_says(DONE)
    assert world.run("-p", "hello there").returncode == 0
    done = world.run(*words.split())
    assert done.returncode == 0 and done.stdout.count("\n") == 1 and done.stdout.endswith("\n")
    assert done.stdout.strip() == str(Path(done.stdout.strip()))


def test_ux_13_the_list_of_keys_says_where_and_never_what(world: World) -> None:
    world.model_says(DONE)
    world.more["OPENAI_API_KEY"] = "sk-very-secret-words"
    told = world.run("auth", "status")
    assert told.returncode == 0 and "OPENAI_API_KEY" in told.stdout and "very-secret" not in told.stdout
    rows = json.loads(world.run("auth", "status", "--json").stdout)
    assert {"endpoint": "openai", "state": "found", "where": "OPENAI_API_KEY"} in rows


def test_ux_13_the_models_of_the_settings_are_listed_and_the_chosen_one_is_marked(world: World) -> None:
    world.model_says(DONE)
    rows = json.loads(world.run("models", "--json").stdout)
    assert [row["endpoint"] for row in rows if row["chosen"]] == ["openai"]
