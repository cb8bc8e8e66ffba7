"""Cases of family F about agents that die without a word.

The job that f03 leaves running is listed by the tests of f01.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import termios
import time
from pathlib import Path

import pexpect
import pytest
from cli_world import SECONDS, SUREFOOT, World, wait_for

from surefoot.surfaces.cli.guard import left_raw

WORK = {"calls": [{"name": "shell", "args": {"command": "touch started; sleep 600; touch ended"}}]}
DONE = {"text": "Done."}
PROMPT_SECONDS = 90.0


def listed(world: World) -> tuple[int, float]:
    """Open calls of the only session, and how long it took to be told."""
    began = time.monotonic()
    done = world.run("session", "list", "--json")
    document = json.loads(done.stdout)
    rows = document["sessions"] if isinstance(document, dict) else document
    return rows[0]["open_calls"], time.monotonic() - began


def test_case_f05_the_death_of_an_agent_at_work_is_told_at_once_to_whoever_looks(world: World) -> None:
    world.model_says(WORK, DONE)
    agent = world.start("-p", "go", "--yolo")
    wait_for((world.project / "started").exists)
    opened, usual_seconds = listed(world)
    assert opened == 0, "a living agent's call is no open one"
    agent.kill()
    agent.communicate(timeout=SECONDS)
    opened, seconds = listed(world)
    assert opened == 1 and seconds <= usual_seconds + PROMPT_SECONDS
    assert "may have happened" in world.run("recover", "list").stdout


def chat_below(shell: int) -> int:
    """The process that the shell started."""
    found = [int(path.name) for path in Path("/proc").glob("[0-9]*") if f"PPid:\t{shell}\n" in _status(path)]
    assert len(found) == 1, found
    return found[0]


def _status(path: Path) -> str:
    try:
        return (path / "status").read_text()
    except OSError:
        return ""


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "left"])
def test_case_f03_k09_ux_33_a_killed_chat_gives_the_terminal_back_and_its_job_is_listed(
    world: World, killed: bool
) -> None:
    world.model_says(WORK, DONE)
    shell = pexpect.spawn(
        "/bin/sh", ["-i"], cwd=str(world.project), env={**world.environ, "PS1": "here> "}, encoding="utf-8",
        timeout=90, dimensions=(40, 90),
    )  # fmt: skip
    shell.expect("here> ")
    usual = termios.tcgetattr(shell.child_fd)
    shell.sendline(f"{shlex.join(SUREFOOT)} --yolo")
    wait_for(lambda: left_raw(termios.tcgetattr(shell.child_fd)))
    if killed:
        shell.send("go\r")
        wait_for((world.project / "started").exists)
        wait_for(lambda: left_raw(termios.tcgetattr(shell.child_fd)))
        os.kill(chat_below(shell.pid), signal.SIGKILL)
        shell.expect("ended in the middle of its work")  # K09: by whichever process is left
        shell.expect("1 may have happened")
        shell.expect(r"surefoot -r (\S+)")
        resumed = world.run("session", "show", shell.match.group(1))
        assert resumed.returncode == 0, resumed.stderr
        shell.sendline("")
    else:
        shell.sendcontrol("d")
    shell.expect("here> ")
    wait_for(lambda: termios.tcgetattr(shell.child_fd)[3] == usual[3])
    if killed:
        assert "may have happened" in world.run("recover", "list").stdout
    shell.sendline("exit")
    shell.expect(pexpect.EOF)
    shell.close()
