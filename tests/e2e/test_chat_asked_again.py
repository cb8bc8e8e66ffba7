"""A permission question that was open when the chat was killed, in a real pseudo-terminal."""

from __future__ import annotations

import json
import signal

import pexpect
import pytest
from chat_pty import chat
from cli_world import World

RUN = {"text": "I make it.", "calls": [{"name": "shell", "args": {"command": "echo made >> made.txt"}}]}


@pytest.mark.parametrize(("key", "made"), [("y", "made\n"), ("n", None)])
def test_ux_42_tr_171_after_a_kill_the_permission_question_is_shown_again_on_continue(
    world: World, key: str, made: str | None
) -> None:
    world.model_says(RUN, {"text": "All finished."})
    killed = chat(world)
    killed.send("make it\r")
    killed.expect("made.txt")
    killed.expect("y ")
    killed.kill(signal.SIGKILL)
    killed.close(force=True)
    child = chat(world, "-c")
    child.expect("you will be asked again about: shell")
    assert not (world.project / "made.txt").exists()
    child.send("/continue\r")
    child.expect("made.txt")
    child.send(f"{key}\r")
    child.expect("All finished.")
    child.send("\x04")
    child.expect(pexpect.EOF)
    child.close()
    written = world.project / "made.txt"
    assert (written.read_text() if written.exists() else None) == made
    listed = json.loads(world.run("recover", "list", "--json").stdout)
    assert not [call for call in listed["calls"] if call["open"]]
