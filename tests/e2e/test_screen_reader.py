"""The drawing for screen readers in a real terminal and in pipes: bytes are scanned, nothing is drawn twice."""

from __future__ import annotations

import json
import re

import pytest
from chat_pty import chat, leave, quiet
from cli_world import World, wait_for

DRAWN = re.compile("[\u2500-\u259f\u25a0-\u25ff⊘⊖⊟⊡↻✗≈]|\x1b|\r(?!\n)")
HANG = {
    "text": "│ a box ┌─┐ ██",
    "calls": [{"name": "shell", "args": {"command": "touch started; sleep 600; rm out.txt"}}],
}
ASKED = {"calls": [{"name": "shell", "args": {"command": "rm -r build"}}]}


def test_ux_60_a_chat_read_aloud_has_labels_and_numbers_and_not_one_byte_that_draws(world: World) -> None:
    world.model_says(ASKED, {"text": "Left."}, HANG)
    child = chat(world, "--screen-reader", "--allowedTools", "Bash(touch *),Bash(sleep *),Bash(rm out.txt)")
    with (world.home / "seen").open("w") as seen:
        child.logfile_read = seen
        child.send("clean up\r")
        child.expect("choice 3: n no")
        child.send("3\r")
        child.expect("did not run: permission was not given")
        child.expect("Left")
        child.send("hang\x7fg\r")
        wait_for((world.project / "started").exists)
        child.send("\x1b")
        child.expect("state: may have happened")
        child.expect(r"choice (\d): f, lift the fence")
        number = child.match.group(1)
        child.expect("command: surefoot recover")
        quiet(child)
        child.send(number)
        quiet(child)
        child.send("\r")
        child.expect(rf"choice {number} is lift the fence; to record it press f, then type \w\w")
        assert leave(child) == 3
    told = (world.home / "seen").read_text()
    assert DRAWN.findall(told) == []
    calls = json.loads(world.run("recover", "list", "--json").stdout)["calls"]
    assert [call["overlays"] for call in calls] == [[]]
    world.more["SUREFOOT_SCREEN_READER"] = "true"
    attempt = calls[0]["attemptId"]
    for words in (["recover", "list"], ["recover", "show", attempt], ["recover"], ["session", "list"],
                  ["session", "show"], ["timeline"], ["doctor"], ["-c", "-p", "go on"]):  # fmt: skip
        ended = world.run(*words)
        assert DRAWN.findall(ended.stdout + ended.stderr) == [], words
        assert ": " in ended.stdout + ended.stderr


@pytest.mark.parametrize(("flags", "more"), [(["--plain"], {}), ([], {"TERM": "dumb"})])
def test_ux_60_a_plain_chat_draws_nothing_twice(world: World, flags: list[str], more: dict[str, str]) -> None:
    world.more |= more
    world.model_says({"text": "All finished."})
    child = chat(world, *flags)
    child.send("hell\x7fl字\r")
    child.expect("│ All finished.")
    assert leave(child) == 0
    assert not re.search("\x1b|\r(?!\n)", child.before)


def test_ux_60_the_demo_is_read_aloud_by_the_flag_before_it(world: World) -> None:
    ended = world.run("--screen-reader", "demo")
    assert ended.returncode == 3 and "\ncall 1 of 1: " in ended.stdout
    assert DRAWN.findall(ended.stdout + ended.stderr) == []
