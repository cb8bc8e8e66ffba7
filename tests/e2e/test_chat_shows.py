"""Slash commands that show something: what changed, what the model is given, the session as a file."""

from __future__ import annotations

import json
import subprocess
import time

import pexpect
import pytest
from chat_pty import chat, heard, leave, quiet
from cli_world import World

DONE = {"text": "All finished."}
SLASH = (
    "/help", "/model", "/permissions", "/mcp", "/resume", "/diff", "/context", "/usage", "/cost", "/export", "/doctor",
    "/recover", "/timeline",
)  # fmt: skip
"""Those of UX-17 that only show something."""


@pytest.fixture
def repository(world: World) -> World:
    (world.home / ".gitconfig").write_text("[user]\nname = T\nemail = t@example.org\n")
    (world.project / "a.txt").write_text("one\n")
    for words in (["init", "-q"], ["add", "a.txt"], ["commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=world.project, env=world.environ, check=True)
    return world


def test_ux_17_every_slash_command_of_the_list_is_known(world: World) -> None:
    world.model_says(DONE)
    child = chat(world, rows=50, columns=250)
    child.send("hello\r")
    child.expect("All finished.")
    for word in SLASH:
        child.send(f"{word}\r")
        time.sleep(0.1)
    child.send("/quit\r")
    child.expect(pexpect.EOF)
    child.close()
    assert "is no command" not in child.before and "shows nothing here" not in child.before


def test_ux_17_diff_shows_the_work_tree_and_runs_no_program_of_the_repository(repository: World) -> None:
    world = repository
    (world.project / "a.txt").write_text("two\n")
    (world.project / "b.txt").write_text("new\n")
    (world.project / ".gitattributes").write_text("*.txt diff=evil\n")
    evil = f"sh -c 'touch {world.home}/ran; cat \"$0\"'"
    for key, value in (
        ("diff.evil.textconv", evil),
        ("diff.external", evil),
        ("core.fsmonitor", evil),
        ("core.pager", evil),
    ):
        subprocess.run(["git", "config", key, value], cwd=world.project, env=world.environ, check=True)
    world.model_says(DONE)
    child = chat(world, rows=50, columns=250)
    child.send("/diff\r")
    child.expect("-one")
    child.expect(r"\+two")
    child.expect("not tracked: b.txt")
    assert leave(child) == 0
    assert not (world.home / "ran").exists()


def test_ux_17_context_tells_what_the_model_is_given(world: World) -> None:
    (world.project / "AGENTS.md").write_text("Be brief.\n")
    world.model_says(DONE)
    child = chat(world, rows=50, columns=250)
    child.send("hello\r")
    child.expect("All finished.")
    child.send("/context\r")
    child.expect(r"2 messages · (\d+|\?) tokens")
    child.expect("instructions: .*AGENTS.md")
    assert leave(child) == 0


def test_ux_54_export_in_a_chat_writes_a_new_file_without_secrets(world: World) -> None:
    world.model_says(DONE)
    child = chat(world, rows=50, columns=250)
    child.send("my password=swordfish99\r")
    child.expect("All finished.")
    child.send("/export talk.md\r")
    child.expect("written: talk.md")
    child.send("/export talk.md\r")
    child.expect("exists already")
    assert leave(child) == 0
    text = (world.project / "talk.md").read_text()
    assert "All finished." in text and "swordfish99" not in text


def test_ux_16_ux_157_ctrl_t_names_what_runs_in_the_background(world: World) -> None:
    serve = {
        "calls": [{"name": "shell", "args": {"command": "touch up; exec sleep 300", "background": True}}]
    }
    world.model_says(serve, DONE)
    child = chat(world, "--yolo", rows=50, columns=250)
    child.send("\x14")
    child.expect("nothing runs in the background")
    child.send("serve it\r")
    child.expect("All finished.")
    child.send("\x14")
    child.expect(r"▸ sleep 300 · pid \d+ · \d+ s · log")
    child.expect(
        r"surefoot\s+recover\s+process\s+att_\S+\s+kill"
    )  # behind the path of the log, so wherever a line ends
    assert leave(child) == 0


@pytest.mark.parametrize("flags", [[], ["--screen-reader"]])
def test_ux_16_esc_esc_lists_earlier_words_and_a_number_goes_back_to_before_them(
    world: World, flags: list[str]
) -> None:
    world.model_says({"text": "One."}, {"text": "Two."}, {"text": "Three."})
    child = chat(world, *flags)
    child.send("\x1b\x1b")
    child.expect("no earlier words")
    for words, answered in (("first words", "One"), ("second 字", "Two")):
        child.send(f"{words}\r")
        child.expect(answered)
    quiet(child)
    child.send("\x1b\x1b")
    child.expect("1.*second 字.*2.*first words")
    heard(child)
    child.send("\x1b")
    child.expect("nothing was changed")
    quiet(child)
    child.send("\x1b\x1b")
    child.expect("1.*second 字.*2.*first words")
    heard(child)
    child.send("1\r")
    child.expect("goes on from before that turn")
    child.expect("second 字")
    heard(child)
    child.send(" again\r")
    child.expect("Three")
    assert leave(child) == 0
    told = json.loads(world.run("session", "show", "--json").stdout)["entries"]
    assert [one["text"] for one in told if one["kind"] == "user"] == [
        "first words",
        "second 字",
        "second 字 again",
    ]
    assert [one["offBranch"] for one in told if one["kind"] == "view.rewound"] == [[]]
