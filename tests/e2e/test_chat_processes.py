"""A command that outlived its agent, on the card of the next chat: attach, stop it, leave it."""

from __future__ import annotations

from typing import Any

import pytest
from chat_pty import leave, quiet, spawned
from cli_world import World, wait_for

DONE = {"text": "All finished."}
WORKS = (
    "touch started; echo half way; while [ ! -e go ]; do sleep 0.05; done; echo x >> out.txt; echo all done"
)


def resumed(world: World) -> Any:
    """A chat on the session of a killed run whose command still runs, its card drawn."""
    world.model_says({"calls": [{"name": "shell", "args": {"command": WORKS}}]}, DONE)
    run = world.start("-p", "do it", "--yolo")
    wait_for((world.project / "started").exists)
    run.kill()
    run.communicate(timeout=90)
    child = spawned(world, "-c", rows=50, columns=250)
    child.expect(r"◐ still running · process \d+ · \d+ (s|min)")
    child.expect("t attach +s stop it +v leave it")
    child.expect("half way")
    quiet(child)
    return child


def test_ux_78_attach_brings_the_true_end_to_the_card(world: World) -> None:
    child = resumed(world)
    child.send("t")
    child.expect("attached; its end is told here")
    (world.project / "go").touch()
    child.expect("have ended, and what their record says is written", timeout=90)
    assert leave(child) == 0
    assert (world.project / "out.txt").read_text() == "x\n"
    assert "…: done" in world.run("session", "show").stdout


@pytest.mark.parametrize(("key", "told"), [("s", "are gone"), ("v", "go on; it is noted")])
def test_ux_78_stop_it_and_leave_it_say_what_is_known_and_resolve_nothing(
    world: World, key: str, told: str
) -> None:
    child = resumed(world)
    child.send(key)
    child.expect(told)
    assert leave(child) == 3
    assert not (world.project / "out.txt").exists()
    (world.project / "go").touch()
    if key == "v":
        wait_for((world.project / "out.txt").exists)
