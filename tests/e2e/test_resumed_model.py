"""A session that is gone on with keeps the model and effort it worked with, unless a flag says otherwise."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest
from chat_pty import chat
from cli_world import World

from surefoot.testing.emulator.process import EmulatorProcess

READ = {"text": "Let me look.", "calls": [{"name": "read", "args": {"path": "a.txt"}}]}
DONE = {"text": "All finished."}
ONLY_OPENED = """
import asyncio, os
from pathlib import Path
from surefoot.app import open_app
from surefoot.config import load_settings

async def main():
    async with open_app(load_settings({}, os.environ, Path.cwd()), directory=Path.cwd()) as app:
        await (await app.session(new=True)).close()

asyncio.run(main())
"""
"""A session in which nobody says a word."""
AS_FIRST = ("-m", "openai/another", "--effort", "high")


@pytest.fixture
def emulator(world: World, tmp_path: Path) -> Iterator[EmulatorProcess]:
    (world.project / "a.txt").write_text("hello")
    with EmulatorProcess(tmp_path) as process:
        world.more |= {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": process.base_url("openai")}
        yield process


def asked(emulator: EmulatorProcess) -> list[tuple[str, str | None]]:
    bodies = [entry.json() for entry in emulator.requests()]
    return [(body["model"], body.get("reasoning_effort")) for body in bodies]


def test_tr_183_a_resume_goes_on_with_the_sessions_own_model_and_effort_and_says_where_the_settings_differ(
    world: World, emulator: EmulatorProcess
) -> None:
    emulator.script([DONE] * 5)
    assert world.run("-p", "first", *AS_FIRST).returncode == 0
    kept = world.run("-c", "-p", "second")
    assert kept.returncode == 0
    assert (
        "This session goes on with openai/another (high), as before; your settings say openai/" in kept.stderr
    )
    effort = world.run("-c", "-p", "third", "--effort", "low")
    assert effort.returncode == 0 and "the effort is low, was high" in effort.stderr
    named = world.run("-c", "-p", "fourth", "-m", "openai/third")
    assert named.returncode == 0 and "as before" not in named.stderr, "what a flag says needs no telling"
    assert "the model is openai/third, was openai/another" in named.stderr
    assert asked(emulator) == [("another", "high"), ("another", "high"), ("another", "low"), ("third", None)]
    assert world.run("-p", "a new one").returncode == 0
    assert asked(emulator)[-1][0] not in ("another", "third"), "another session has the settings"


def test_tr_183_a_model_whose_endpoint_is_gone_is_no_fault_and_the_difference_is_named(
    world: World, emulator: EmulatorProcess
) -> None:
    emulator.script([DONE] * 2)
    config = world.home / "sf/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    own = (
        f'[endpoints.own]\nurl = "{emulator.base_url("openai")}"\nmodel = "m1"\nkey_env = "OPENAI_API_KEY"\n'
    )
    config.write_text(own)
    assert world.run("-p", "first", "-m", "own").returncode == 0
    config.unlink()
    done = world.run("-c", "-p", "second")
    assert done.returncode == 0 and "as before" not in done.stderr and "was own/m1" in done.stderr


def test_pr_1_a_chat_that_is_resumed_without_the_flags_recovers_what_was_refused_with_them(
    world: World, emulator: EmulatorProcess
) -> None:
    emulator.script([READ, DONE])
    emulator.fault(match={"nth": 2}, status=400, raw="")
    assert world.run("-p", "look at a.txt", *AS_FIRST).returncode == 7
    child = chat(world, "-c")
    try:
        child.expect("another")
        child.send("/recover-context\r")
        child.expect("All finished")
        child.send("\x04")
        child.expect(pexpect.EOF)
    finally:
        child.close(force=True)
    assert asked(emulator) == [("another", "high")] * 3


def test_ux_15_ux_164_what_goes_on_with_the_newest_session_and_what_shows_it_mean_the_same_one(
    world: World,
) -> None:
    world.model_says({"text": "One."}, {"text": "Two."})
    assert world.run("-p", "hello").returncode == 0
    spoken = world.run("session", "show", "--id").stdout
    subprocess.run([sys.executable, "-c", ONLY_OPENED], cwd=world.project, env=world.environ, check=True)
    rows = json.loads(world.run("session", "list", "--json").stdout)
    assert len(rows) == 2 and rows[0]["session_id"] != spoken.strip()
    assert world.run("session", "show", "--id").stdout == spoken
    went_on = json.loads(world.run("-c", "-p", "on", "--output-format", "json").stdout)
    assert (went_on["result"], went_on["session_id"]) == ("Two.", spoken.strip())
