"""Leaving a chat in the very moment of speaking: words are recorded, or shown again; never dropped."""

from __future__ import annotations

import json
from typing import Any

import pexpect
import pytest
from chat_pty import chat
from cli_world import World, wait_for

HANG = {"calls": [{"name": "shell", "args": {"command": "touch started; sleep 60; echo x >> out.txt"}}]}
DONE = {"text": "All finished."}


def ended(child: Any) -> str:
    child.expect(pexpect.EOF)
    child.close()
    return str(child.before)


@pytest.mark.parametrize("number", range(3))
def test_ux_18_words_and_ctrl_d_in_one_breath_are_recorded_or_shown_again(world: World, number: int) -> None:
    world.model_says(DONE)
    child = chat(world, "--yolo")
    child.send(f"remember number {number}\r\x04")
    shown = ended(child)
    rows = json.loads(world.run("session", "list", "--json").stdout)
    recorded = [world.run("session", "show", row["session_id"]).stdout for row in rows]
    words = f"> remember number {number}"
    assert any(words in text for text in recorded) or words in shown.partition("went to no model")[2]


def test_ux_18_words_parked_while_a_turn_ran_are_shown_again_when_a_person_leaves(world: World) -> None:
    world.model_says(HANG, DONE)
    child = chat(world, "--yolo")
    child.send("hang\r")
    wait_for((world.project / "started").exists)
    child.send("and then the second thing\r")
    child.expect("Kept until this turn ends")
    child.send("\x04")
    shown = ended(child)
    assert "> and then the second thing" in shown.partition("went to no model")[2]
