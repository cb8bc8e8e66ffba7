"""Commands left in the background: every later surface of the project names them, and one tells their end."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pexpect
from cli_world import SUREFOOT, World, wait_for
from test_cli_chat import DONE, chat, leave

SERVER = {
    "calls": [
        {
            "name": "shell",
            "args": {
                "command": "echo $$ > pid; until [ -e go ]; do sleep 0.1; done; exit 7",
                "background": True,
            },
        }
    ]
}


def left_running(world: World) -> dict[str, Any]:
    """A finished print run that left a server; its line of `background[]`."""
    world.model_says(SERVER, DONE, DONE)
    done = world.run("-p", "serve", "--yolo", "--output-format", "json")
    assert done.returncode == 0
    assert "in the background:" in done.stderr and "kill" in done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["background"][0]
    return found


def test_ux_157_a_later_chat_shows_what_runs_and_tells_its_end_once_with_its_exit_code(world: World) -> None:
    resource = left_running(world)
    short = "att_" + resource["attemptId"][-4:]
    child = chat(world, columns=300)
    child.expect("▸1")
    (world.project / "go").write_text("")
    child.expect(rf"\({short}\), which ran in the background, has ended: exit code 7\. Log: ")
    assert leave(child) == 0
    again = chat(world)
    again.send("\x04")
    again.expect(pexpect.EOF)
    assert "has ended" not in again.before
    again.close()


def test_ux_157_an_end_that_nobody_saw_is_told_by_the_next_run_on_standard_error(world: World) -> None:
    left_running(world)
    (world.project / "go").write_text("")
    pid = int((world.project / "pid").read_text())
    wait_for(lambda: not Path(f"/proc/{pid}").exists())
    first, second = world.run("-p", "go on", "-c"), world.run("-p", "go on", "-c")
    assert len(re.findall(r"has ended: exit code 7\.", first.stderr + second.stderr)) == 1


def test_ux_157_the_list_names_pid_age_command_and_log_and_its_line_stops_it(world: World) -> None:
    resource = left_running(world)
    listed = world.run("recover", "list").stdout
    line = next(line for line in listed.splitlines() if line.startswith("▸"))
    assert str(resource["pid"]) in line and resource["log"] in line and re.search(r"\d+ (s|min)", line)
    assert listed.count("▸") == 1
    command = line.split("surefoot ", 1)[1].split()
    child = pexpect.spawn(
        SUREFOOT[0], [*SUREFOOT[1:], *command], cwd=str(world.project), env=world.environ, encoding="utf-8",
        timeout=90,
    )  # fmt: skip
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0, child.before
    pid = int((world.project / "pid").read_text())
    wait_for(lambda: not Path(f"/proc/{pid}").exists())
    assert "▸" not in world.run("recover", "list").stdout


def test_ux_157_a_reader_lists_no_command_whose_process_was_killed(world: World) -> None:
    left_running(world)
    pid = int((world.project / "pid").read_text())
    os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + 90
    while "▸" in world.run("recover", "list").stdout:
        assert time.monotonic() < until
    assert "signal 9." in world.run("-p", "go on", "-c").stderr
