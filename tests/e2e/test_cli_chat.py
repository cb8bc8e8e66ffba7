"""The inline chat in a real pseudo-terminal."""

from __future__ import annotations

import json
import os
import re
import signal
import time

import pexpect
import pytest
from chat_pty import chat, expect_all, heard, leave, quiet, spawned
from cli_world import World, wait_for, within

DONE = {"text": "All finished."}
HANG = {
    "text": "Waiting.",
    "calls": [{"name": "shell", "args": {"command": "touch started; sleep 600; rm out.txt"}}],
}


def test_ux_16_a_key_pressed_before_the_first_prompt_counts(world: World) -> None:
    world.model_says(DONE)
    child = spawned(world)
    child.delaybeforesend = None
    child.expect("s")  # the first letter of the greeting, long before a prompt reads keys
    assert leave(child) == 0


def test_the_chat_streams_an_answer_and_leaves_with_0(world: World) -> None:
    (world.project / "a.txt").write_text("hello")
    world.model_says({"text": "Looking.", "calls": [{"name": "read", "args": {"path": "a.txt"}}]}, DONE)
    child = chat(world)
    child.send("look at it\r")
    child.expect("read a.txt: done")
    child.expect("All finished.")
    assert leave(child) == 0


def test_ux_18_a_stop_frees_the_session_within_two_seconds_and_counts(world: World) -> None:
    world.model_says(HANG, DONE)
    child = chat(world, "--yolo")
    child.send("hang\r")
    wait_for((world.project / "started").exists)
    child.send("words meanwhile\r")
    child.expect("Kept until this turn ends: words meanwhile")
    began = time.monotonic()
    child.send("\x1b")
    child.expect(r"stopped: ([^\r]*)\r")
    assert within(2.0, time.monotonic() - began)
    assert re.search(
        "1 (may have happened|still ending)", child.match.group(1)
    )  # the latter on a busy machine
    child.expect("known ")
    child.expect("your words, kept:")
    child.send("\x03")
    assert leave(child) == 3


def test_ux_71_one_key_and_its_code_decide_about_the_card(world: World) -> None:
    world.model_says(HANG, DONE)
    child = chat(world, "--yolo")
    child.send("hang\r")
    wait_for((world.project / "started").exists)
    child.send("\x1b")
    child.expect("surefoot recover inspect")
    quiet(child)
    child.send("i")
    child.expect(r"then type (\w\w)")
    code = child.match.group(1)
    child.expect("surefoot recover confirm")
    quiet(child)
    child.send("h" + "x")
    child.send("\x15")
    quiet(child)
    child.send("h")
    for letter in code:
        heard(child)
        child.send(letter)
    child.expect("you said it happened .* this terminal", timeout=90)
    assert leave(child) == 0


@pytest.mark.parametrize("keys", ["\r", " ", "y", "1"])
def test_case_e18_ux_71_enter_space_and_y_decide_nothing(world: World, keys: str) -> None:
    world.model_says(HANG, DONE)
    child = chat(world, "--yolo")
    child.send("hang\r")
    wait_for((world.project / "started").exists)
    child.send("\x1b")
    child.expect("surefoot recover inspect")
    quiet(child)
    child.send(keys)
    quiet(child)
    child.send("\x03")
    child.send("\x15")
    assert leave(child) == 3


def test_ux_41_a_permission_question_shows_what_would_run_and_n_is_no(world: World) -> None:
    world.model_says({"calls": [{"name": "shell", "args": {"command": "rm -r build"}}]}, DONE)
    (world.project / "build").mkdir()
    child = chat(world)
    child.send("clean up\r")
    child.expect("shell .*NON_IDEMPOTENT|shell .*UNKNOWN|shell .*IDEMPOTENT")
    child.expect("rm -r build")
    child.send("n\r")
    child.expect("did not run: permission was not given")
    child.expect("All finished.")
    assert (world.project / "build").is_dir()
    assert leave(child) == 0


def test_ux_17_a_typing_error_offers_the_nearest_name(world: World) -> None:
    world.model_says(DONE)
    child = chat(world)
    child.send("/recovr\r")
    child.expect("did you mean /recover")
    child.send("/quit\r")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_ux_60_with_no_color_not_one_colour_byte_is_written(world: World) -> None:
    world.more["NO_COLOR"] = "1"
    world.model_says(DONE)
    child = chat(world)
    child.send("hello\r")
    child.expect("All finished.")
    written = child.before
    leave(child)
    assert not re.search(r"\x1b\[[0-9;:]*m", written + child.before)


def test_ux_50_a_resumed_chat_shows_the_card_of_the_killed_run_before_anything_runs(world: World) -> None:
    world.model_says(HANG, DONE)
    child = chat(world, "--yolo")
    child.send("hang\r")
    wait_for((world.project / "started").exists)
    child.kill(signal.SIGKILL)
    child.expect(pexpect.EOF)
    child.close()
    again = spawned(world, "-c")
    again.expect("Resumed .* 1 may have happened")
    again.expect("not known")
    again.expect("surefoot recover")
    assert leave(again) == 3


def test_ux_34_a_terminated_chat_ends_with_143_and_its_call_is_listed(world: World) -> None:
    world.model_says(HANG, DONE)
    child = chat(world, "--yolo")
    child.send("hang\r")
    wait_for((world.project / "started").exists)
    child.kill(signal.SIGTERM)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 143
    assert "may have happened" in world.run("recover", "list").stdout


def test_ux_60_the_chat_opens_with_who_works_where_and_shows_it_below(world: World) -> None:
    world.model_says(DONE)
    child = spawned(world, columns=100)
    child.expect("surefoot · openai/.* mode default · barrier reach")
    child.expect("openai/[^ ]* · default")
    child.send("hello\r")
    child.expect("Esc stops · the model answers · 0 s|All finished.")
    assert leave(child) == 0


def test_ux_41_an_edit_is_asked_about_with_its_diff_and_y_lets_it_run(world: World) -> None:
    (world.project / "a.txt").write_text("one\ntwo\n")
    edit = {"calls": [{"name": "edit", "args": {"path": "a.txt", "old": "two", "new": "2"}}]}
    world.model_says({"calls": [{"name": "read", "args": {"path": "a.txt"}}]}, edit, DONE)
    child = chat(world)
    child.send("edit it\r")
    child.expect("edit · IDEMPOTENT_WRITE: it writes")
    child.expect("-two")
    child.expect(r"\+2")
    child.expect("y once · a always this in this session · n no")
    child.send("y\r")
    child.expect("All finished.")
    assert (world.project / "a.txt").read_text() == "one\n2\n"
    assert leave(child) == 0


def test_ux_16_words_pasted_in_several_lines_are_one_prompt(world: World) -> None:
    world.model_says(DONE)
    child = chat(world)
    child.send("\x1b[200~first line\nsecond line\x1b[201~")
    heard(child)
    child.send("\r")
    child.expect("All finished.")
    assert leave(child) == 0
    assert "> first line\n> second line\n" in world.run("session", "show").stdout


def test_ux_50_a_resumed_chat_shows_the_last_exchange_and_how_to_go_on(world: World) -> None:
    world.model_says(HANG, DONE)
    child = chat(world, "--yolo")
    child.send("hang\r")
    wait_for((world.project / "started").exists)
    child.kill(signal.SIGKILL)
    child.expect(pexpect.EOF)
    child.close()
    again = spawned(world, "-c")
    again.expect("> hang")
    again.expect("Waiting.")
    again.expect("Resumed .* 1 may have happened")
    again.expect("/continue goes on from here")
    quiet(again)
    again.send("?")
    again.expect("A letter decides when it stands alone")
    assert leave(again) == 3


def test_ux_15_continue_means_the_newest_session_with_words_and_no_chat_that_was_only_opened(
    world: World,
) -> None:
    world.model_says({"text": "One."}, {"text": "Two."})
    world.run("-p", "first")
    assert leave(chat(world)) == 0
    assert world.run("-c", "-p", "second").stdout == "Two.\n"
    assert "> first" in world.run("session", "show").stdout


def test_ux_38_a_mode_chosen_in_the_chat_holds_for_the_next_call(world: World) -> None:
    world.model_says({"calls": [{"name": "shell", "args": {"command": "touch made"}}]}, DONE)
    child = chat(world)
    child.send("/permissions bypassPermissions\r")
    child.expect("mode bypassPermissions")
    child.send("do it\r")
    child.expect("All finished.")
    assert (world.project / "made").exists()
    assert leave(child) == 0


def test_ux_33_a_chat_in_which_nothing_was_said_leaves_no_session_and_no_hint(world: World) -> None:
    world.model_says(DONE)
    child = chat(world)
    child.send("/usage\r")
    child.expect("Nothing was said")
    child.send("\x04")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0 and "surefoot -r" not in child.before
    assert json.loads(world.run("session", "list", "--json").stdout) == []


STUBBORN = {
    "calls": [
        {
            "name": "shell",
            "args": {"command": "trap '' INT TERM; touch started; rm -f x; while :; do sleep 1; done"},
        }
    ]
}


def test_ux_18_a_command_that_has_not_ended_is_counted_with_the_time_until_it_is_killed(world: World) -> None:
    world.model_says(STUBBORN, DONE)
    child = chat(world, "--yolo")
    child.send("hang\r")
    wait_for((world.project / "started").exists)
    child.send("\x1b")
    child.expect(r"stopped: 1 still ending · Told to end; killed after (\d+) s\.")
    assert 1 <= int(child.match.group(1)) <= 10
    child.send("\x15")
    assert leave(child) == 3


LOOKED = {
    "text": "",
    "calls": [
        {"name": "write", "args": {"path": "made.txt", "content": "x"}},
        {"name": "read", "args": {"path": "seen.txt"}},
    ],
}


def test_ux_116_a_lets_the_model_look_and_nothing_else_and_marks_what_cites_no_call(world: World) -> None:
    (world.project / "seen.txt").write_text("there")
    world.model_says(HANG, LOOKED, {"text": "It surely happened. I am certain."})
    child = chat(world, "--yolo")
    child.send("hang\r")
    wait_for((world.project / "started").exists)
    child.send("\x1b")
    child.expect("a ask the model to look")
    quiet(child)
    child.send("a")
    child.expect("Looking only: 8 model requests at most")
    child.expect("write made.txt: did not run: looking only")
    child.expect("read seen.txt: done")
    child.expect("2 of 2 sentences name no call of this turn")
    assert not (world.project / "made.txt").exists()
    child.expect("surefoot recover")
    assert leave(child) == 3


def test_ux_16_o_on_the_card_draws_the_timeline_with_the_open_call(world: World) -> None:
    world.model_says(HANG, DONE)
    child = chat(world, "--yolo")
    child.send("hang\r")
    wait_for((world.project / "started").exists)
    child.send("\x1b")
    child.expect("o timeline")
    quiet(child)
    child.send("o")
    child.expect(r"shell +◇")
    quiet(child)
    child.send("/timeline\r")
    child.expect(r"shell +◇")
    assert leave(child) == 3


def test_ux_50_a_resume_draws_the_run_strip_with_the_death(world: World) -> None:
    world.model_says(HANG, DONE)
    killed = world.start("-p", "hang", "--yolo")
    wait_for((world.project / "started").exists)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert "◇" in world.run("session", "list").stdout.splitlines()[0].split("  ")[3]
    child = spawned(world, "-c")
    child.expect(r"◇┊  the process died at \d\d:\d\d:\d\d")
    child.expect("h |i look")
    assert leave(child) == 3


def test_ux_76_ux_68_two_keys_lead_from_a_resumed_card_to_a_working_model_and_nothing_runs_between(
    world: World,
) -> None:
    target = {"calls": [{"name": "shell", "args": {"command": "touch started; sleep 600; rm out.txt"}}]}
    world.model_says(target, DONE)
    killed = world.start("-p", "hang", "--yolo")
    wait_for((world.project / "started").exists)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    child = spawned(world, "-c")
    child.expect("Esc later")
    child.expect("◇1")
    quiet(child)
    child.send("l")
    child.expect(r"⊟ left open, still fenced · \d\d:\d\d:\d\d · this terminal · c continue")
    calls = json.loads(world.run("session", "show", "--json").stdout)["entries"]
    assert [one["kind"] for one in calls].count("assistant") == 1
    quiet(child)
    child.send("c")
    child.expect("All finished.")
    assert leave(child) == 0


def test_ux_156_a_stopped_test_run_is_one_line_with_no_card_and_exit_0(world: World) -> None:
    programs = world.home / "bin"
    programs.mkdir()
    (programs / "pytest").write_text("#!/bin/sh\ntouch started\nsleep 300\n")
    (programs / "pytest").chmod(0o755)
    world.more["PATH"] = f"{programs}:{os.environ['PATH']}"
    world.model_says({"calls": [{"name": "shell", "args": {"command": "pytest"}}]}, DONE)
    child = chat(world, "--yolo")
    child.send("run the tests\r")
    wait_for((world.project / "started").exists)
    child.send("\x1b")
    line = "⊡ pytest: Stopped before its end. It was a check: nothing waits for it."
    seen = expect_all(
        child, line, r"stopped: 1 (check stopped|still ending)"
    )  # the latter on a machine too busy
    assert "may have happened" not in seen and "┌" not in seen
    child.send("and now the edit\r")
    child.expect("All finished.")
    child.send("\x04")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0 and "may have happened and nobody" not in child.before
    assert "recover" not in child.before
    listed = world.run("recover", "list", "--all").stdout
    assert listed.startswith("⊡") and "◇" not in listed


def test_ux_11_the_chat_speaks_the_language_of_the_locale(world: World) -> None:
    world.more["LANG"] = "zh_CN.UTF-8"
    world.model_says(DONE)
    child = chat(world)
    child.send("/help\r")
    child.expect("/timeline +何时执行了什么")
    child.expect("Enter 发送")
    child.send("/recovr\r")
    child.expect("/recovr 不是命令，你是想用 /recover 吗？")
    assert leave(child) == 0


def test_ux_19_a_command_of_ones_own_passes_the_door_asks_no_model_and_the_chat_goes_on(world: World) -> None:
    world.model_says(DONE)
    (world.home / "sf").mkdir(exist_ok=True)
    (world.home / "sf/config.toml").write_text('[permissions]\ndeny = ["Bash(touch *)"]\n')
    child = chat(world)
    child.send("!echo made | tee own.txt\r")
    child.expect("own.txt: done")
    child.expect("│ made")
    assert (world.project / "own.txt").read_text() == "made\n"
    child.send("!touch never\r")
    child.expect("did not run")
    child.send("go on\r")
    child.expect("All finished.")
    assert leave(child) == 0
    assert not (world.project / "never").exists()
    exported = json.loads(world.run("session", "export", "--json").stdout)
    receipts = [one for one in exported["receipts"] if "asked_by_person" in one["notes"]]
    assert [(one["tool"], one["state"]) for one in receipts] == [
        ("shell", "succeeded"),
        ("shell", "not_started"),
    ]
