"""What each ending of the agent does to a command under supervision (UX-165, TR-206)."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SECONDS = 120.0
COMMAND = "touch started; while ! test -e go; do sleep 0.05; done; touch ended"
CALL = {"calls": [{"name": "shell", "args": {"command": COMMAND}}]}
DONE = {"text": "done"}


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until, "the condition never held"
        time.sleep(0.02)


def at_work_in(folder: Path) -> list[str]:
    """Living processes that stand in a folder, as the command of the test does."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == folder.resolve():
                found.append(process.name)
        except OSError:
            continue  # ended meanwhile, or not ours to look at
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_ux_165_a_command_goes_on_when_its_agent_is_ended_and_its_record_settles_the_call(
    world: Any, number: signal.Signals
) -> None:
    world.model_says(CALL, DONE)
    child = world.start("-p", "go", "--yolo")
    wait_for((world.project / "started").exists)
    child.send_signal(number)
    child.communicate(timeout=SECONDS)
    assert "may have happened" in world.run("recover", "list").stdout
    assert not (world.project / "ended").exists()
    (world.project / "go").touch()
    wait_for((world.project / "ended").exists)
    again = world.run("-c", "-p", "go on", "--yolo")
    assert again.returncode == 0, again.stderr
    assert world.run("recover", "list").stdout.strip() == "Nothing is open."


def test_ux_165_an_interrupt_ends_the_command_too(world: Any) -> None:
    world.model_says(CALL, DONE)
    child = world.start("-p", "go", "--yolo")
    wait_for((world.project / "started").exists)
    assert at_work_in(world.project)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=SECONDS)
    assert child.returncode in (130, 3)
    wait_for(lambda: not at_work_in(world.project))
    assert not (world.project / "ended").exists()
