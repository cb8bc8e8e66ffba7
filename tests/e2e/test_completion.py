"""What a shell is offered: commands, flags, sessions, open calls, models; read only, and never an error."""

from __future__ import annotations

import subprocess

import pytest
from cli_world import SUREFOOT, World, wait_for

HANG = {"calls": [{"name": "shell", "args": {"command": "touch started; sleep 600; rm out.txt"}}]}


def offered(world: World, line: str) -> list[str]:
    """The words bash is offered at the end of `line`."""
    words = line.split(" ")
    environ = {
        **world.environ, "_SUREFOOT_COMPLETE": "bash_complete", "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }  # fmt: skip
    done = subprocess.run(
        SUREFOOT, cwd=world.project, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=120, check=False,
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
