"""What a shell is offered: commands, flags, sessions, open calls, models; read only, and never an error."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
from typing import Any

import click
import pytest
from cli_world import SUREFOOT, World, wait_for

from surefoot.config import load_settings
from surefoot.ledger.opening import open_ledger
from surefoot.surfaces.cli import completing, entry

HANG = {"calls": [{"name": "shell", "args": {"command": "touch started; sleep 600; rm out.txt"}}]}


def asking(line: str) -> dict[str, str]:
    """The variables with which bash asks for the words at the end of `line`."""
    return {"_SUREFOOT_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}


def offered(world: World, line: str) -> list[str]:
    """The words bash is offered at the end of `line`."""
    done = subprocess.run(
        SUREFOOT, cwd=world.project, env={**world.environ, **asking(line)}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return [one.partition(",")[2] for one in done.stdout.splitlines() if one]


@pytest.fixture
def killed(world: World) -> World:
    """A named session with one open call."""
    world.model_says(HANG, {"text": "done"})
    run = world.start("-p", "hang", "--yolo", "-n", "night shift")
    wait_for((world.project / "started").exists)
    run.kill()
    run.communicate()
    return world


def test_ux_59_commands_and_flags_are_offered(world: World) -> None:
    assert {"recover", "session", "timeline"} <= set(offered(world, "surefoot "))
    assert {"--continue", "--fork-session"} <= set(offered(world, "surefoot --"))
    assert "--all-projects" in offered(world, "surefoot recover list --")


def test_ux_59_sessions_open_calls_and_models_are_offered(killed: World) -> None:
    assert "night shift" in offered(killed, "surefoot -r ")
    assert any(word.startswith("ses_") for word in offered(killed, "surefoot session show ses"))
    assert [word[:4] for word in offered(killed, "surefoot recover confirm ")] == ["att_"]
    assert "openai/gpt-4.1-mini" in offered(killed, "surefoot -m openai")


def test_ux_59_a_project_without_a_ledger_offers_no_session_and_makes_none(world: World) -> None:
    assert offered(world, "surefoot session show ") == []
    assert not (world.home / "sf" / "ledgers").exists()


def referring() -> dict[tuple[str, ...], Any]:
    """The commands whose first argument is a session or an open call, by their words, and what each offers."""
    found: dict[tuple[str, ...], Any] = {}

    def walk(command: click.Command, words: tuple[str, ...]) -> None:
        for name, below in command.commands.items() if isinstance(command, click.Group) else ():
            walk(below, (*words, name))
        first = next((one for one in command.params if isinstance(one, click.Argument)), None)
        offer = getattr(first, "_custom_shell_complete", None)
        if offer in (completing.sessions, completing.open_calls):
            found[words] = offer

    for name in entry.COMMANDS:
        module, _, attribute = entry.COMMANDS[name][0].partition(":")
        walk(getattr(importlib.import_module(f"surefoot.surfaces.cli.{module}"), attribute), (name,))
    return found


def test_ux_59_what_is_offered_without_loading_a_command_is_what_the_command_says() -> None:
    assert referring() == completing.REFERENCES


@pytest.mark.parametrize(
    "line", ["surefoot session show ", "surefoot recover confirm ", "surefoot timeline "]
)
def test_ux_59_a_session_or_a_call_is_offered_without_a_loop_and_without_its_command(
    world: World, line: str
) -> None:
    async def make() -> None:
        settings = load_settings({}, world.environ, world.project)
        await (await open_ledger(settings.places.ledger_folder(world.project))).close()

    asyncio.run(make())
    report = (
        "import sys; sys.argv = ['surefoot']; from surefoot.surfaces.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", report], cwd=world.project, env={**world.environ, **asking(line)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    found = set(done.stderr.split())
    assert {"apsw", "surefoot.ledger.reader"} <= found
    unused = {"asyncio", "surefoot.ledger.sqlite", "surefoot.surfaces.cli.reading", "surefoot.surfaces.words"}
    assert not found & unused
