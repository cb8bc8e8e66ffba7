"""Print mode against a real model server: formats, exit codes, streams."""

from __future__ import annotations

import json
import re
import shlex
import signal
import socket
from typing import Any

import pytest
from cli_world import World, wait_for

READ = {"text": "Let me look.", "calls": [{"name": "read", "args": {"path": "a.txt"}}]}
DONE = {"text": "All finished.\nTwo lines."}


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_ux_29_text_prints_the_final_answer_and_nothing_else(world: World) -> None:
    (world.project / "a.txt").write_text("hello")
    world.model_says(READ, DONE)
    done = world.run("-p", "look at a.txt")
    assert (done.returncode, done.stdout) == (0, "All finished.\nTwo lines.\n")
    assert done.stderr == ""


def test_ux_30_the_last_line_of_stream_json_is_the_document_of_json(world: World) -> None:
    (world.project / "a.txt").write_text("hello")
    world.model_says(READ, DONE)
    told = lines(world.run("-p", "look", "--output-format", "stream-json").stdout)
    assert (told[0]["type"], told[0]["subtype"]) == ("system", "init")
    assert "read" in told[0]["tools"] and told[0]["barrier"] == "reach"
    kinds = [(one["type"], one.get("subtype")) for one in told]
    assert kinds.index(("assistant", None)) < kinds.index(("system", "receipt")) < kinds.index(("user", None))
    states = [one["state"] for one in told if one.get("subtype") == "receipt"]
    assert states == ["started", "succeeded"]
    world.model_says(READ, DONE)
    (document,) = lines(world.run("run", "look", "--output-format", "json").stdout)
    assert set(document) == set(told[-1])
    assert (document["type"], document["subtype"], document["is_error"]) == ("result", "success", False)
    assert document["result"] == "All finished.\nTwo lines."
    assert document["resume_command"] == f"surefoot -r {document['session_id']}"


def test_ux_12_a_pipe_on_standard_input_is_read_behind_the_prompt(world: World) -> None:
    world.model_says(DONE)
    assert world.run("-p", given="from a pipe\n").returncode == 0
    shown = world.run("session", "show").stdout
    assert "> from a pipe" in shown
    world.model_says(DONE)
    assert world.run("exec", "first", given="second\n").returncode == 0
    shown = world.run("session", "show").stdout
    assert "> first" in shown and "> second" in shown


@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
def test_ux_34_a_wrong_key_ends_with_6_in_every_format(world: World, form: str) -> None:
    (world.home / "sf").mkdir()
    (world.home / "sf/config.toml").write_text(
        '[endpoints.far]\nurl = "http://127.0.0.1:9/v1"\nmodel = "m"\nkey_env = "NO_SUCH_KEY"\n'
    )
    done = world.run("-p", "x", "--output-format", form, "-m", "far")
    assert done.returncode == 6
    assert "NO_SUCH_KEY" in done.stderr
    if form != "text":
        assert lines(done.stdout)[-1]["subtype"] == "error_credentials"


def test_ux_34_a_server_that_is_not_there_ends_with_1_and_says_so_in_one_line(world: World) -> None:
    (world.home / "sf").mkdir()
    (world.home / "sf/config.toml").write_text(
        '[endpoints.far]\nurl = "http://127.0.0.1:9/v1"\nmodel = "m"\n'
    )
    done = world.run("-p", "x", "-m", "far", "--timeout", "3s")
    assert done.returncode in (1, 124)
    assert "next: surefoot -r ses_" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nosuch",), "is no command"),
        (("sesion",), "Did you mean session"),
        (("-p",), "There is no prompt"),
        (("-p", "x", "--barrier", "strong"), "one of session, reach"),
        (("-p", "x", "--timeout", "soon"), "no duration"),
        (
            (
                "-p",
                "x",
                "--nope",
            ),
            "No such option",
        ),
        (("-p", "x", "-m", "nope/m"), "No endpoint is named"),
        (("-p", "x"), "No model is configured"),
        (("hello there",), "A chat needs a terminal"),
    ],
)
def test_ux_34_usage_and_settings_faults_end_with_2(
    world: World, arguments: tuple[str, ...], told: str
) -> None:
    done = world.run(*arguments)
    assert done.returncode == 2, done.stderr
    assert told in done.stderr and done.stdout == ""


def test_ux_14_a_word_behind_a_double_dash_is_a_prompt(world: World) -> None:
    world.model_says(DONE)
    assert world.run("-p", "--", "list").returncode == 0
    assert "> list" in world.run("session", "show").stdout


def test_ux_43_without_a_person_a_question_of_permission_is_a_denial_and_the_turn_goes_on(
    world: World,
) -> None:
    write = {"calls": [{"name": "write", "args": {"path": "b.txt", "content": "x"}}]}
    world.model_says(write, DONE)
    done = world.run("-p", "write it", "--output-format", "json")
    (document,) = lines(done.stdout)
    assert done.returncode == 0 and not (world.project / "b.txt").exists()
    assert [denied["tool"] for denied in document["permission_denials"]] == ["write"]


def test_ux_35_an_interrupt_stands_before_an_unknown_call_and_that_before_the_time_limit(
    world: World,
) -> None:
    started = world.project / "started"
    hang = {"calls": [{"name": "shell", "args": {"command": "cat started; touch started; sleep 600"}}]}
    world.model_says(hang, DONE)
    run = world.start("-p", "hang", "--yolo", "--output-format", "json")
    wait_for(started.exists)
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate(timeout=120)
    assert run.returncode == 130
    (document,) = lines(out)
    assert document["subtype"] == "error_interrupted"
    assert [card["state"] for card in document["unknown_outcomes"]] == ["unknown"]
    started.unlink()
    (world.home / "other").mkdir()
    world.model_says(hang, DONE)
    done = world.run("-p", "hang again", "--yolo", "--timeout", "2s", "--output-format", "json")
    assert done.returncode == 3, "an unknown call stands before the time limit"
    (document,) = lines(done.stdout)
    assert [card["reason"] for card in document["unknown_outcomes"]] == ["time_limit"]


def test_ux_34_a_reader_that_goes_away_ends_with_141(world: World) -> None:
    world.model_says(READ, DONE)
    run = world.start("-p", "look", "--output-format", "stream-json")
    assert run.stdout is not None
    run.stdout.close()
    assert run.wait(timeout=120) == 141
    assert run.stderr is not None
    run.stderr.close()


def test_ux_34_a_model_server_that_hangs_ends_with_124_at_the_time_limit(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        (world.home / "sf").mkdir()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        (world.home / "sf/config.toml").write_text(f'[endpoints.far]\nurl = "{url}"\nmodel = "m"\n')
        done = world.run("-p", "x", "-m", "far", "--timeout", "1s", "--output-format", "json")
    assert done.returncode == 124
    document = json.loads(done.stdout)
    assert document["subtype"] == "error_timeout" and document["result"] == "time_limit"
    shown = world.run("session", "show").stdout
    assert "the time of its run was over" in shown and "stopped" not in shown


def test_ux_43_what_nobody_could_be_asked_about_says_so_and_one_line_says_how_to_allow_it(
    world: World,
) -> None:
    write = {"calls": [{"name": "write", "args": {"path": "b.txt", "content": "x"}}]}
    world.model_says(write, DONE)
    done = world.run("-p", "write it", "--output-format", "stream-json")
    told = lines(done.stdout)
    results = [one["message"]["content"][0]["content"] for one in told if one["type"] == "user"]
    assert any("did not run: nobody to ask" in str(text) for text in results)
    (denied,) = told[-1]["permission_denials"]
    assert denied["message"] == "did not run: nobody to ask" and denied["rule"] == "Write"
    (hint,) = done.stderr.splitlines()
    assert "--allowed-tools Write / --permission-mode acceptEdits" in hint
    assert "did not run: nobody to ask" in world.run("session", "show").stdout


def test_ux_34_a_question_that_nobody_could_be_asked_ends_with_4(world: World) -> None:
    world.model_says({"calls": [{"name": "ask_user", "args": {"question": "Which?"}}]}, DONE)
    done = world.run("-p", "ask", "--output-format", "json")
    (document,) = lines(done.stdout)
    assert done.returncode == 4 and document["subtype"] == "error_question_unanswered"
    assert document["result"] == DONE["text"], "the turn went on"


@pytest.mark.parametrize("arguments", [("-m", "nosuch"), (), ("-m", "far"), ("-m", "local/nosuch")])
def test_a_run_that_fails_on_its_settings_makes_no_session(world: World, arguments: tuple[str, ...]) -> None:
    (world.home / "sf").mkdir()
    (world.home / "sf/config.toml").write_text(
        '[endpoints.far]\nurl = "http://127.0.0.1:9/v1"\nmodel = "m"\nkey_env = "NO_SUCH_KEY"\n'
    )
    done = world.run("-p", "hi", *arguments) if arguments else world.run("-p", "hi", "-m", "nope")
    assert done.returncode in (2, 6), done.stderr
    assert re.match(r"SF-[A-Z-]+: .* next: ", done.stderr), done.stderr
    assert "ses_" not in world.run("session", "list").stdout


def test_ux_50_a_resumed_run_is_named_by_its_name(world: World) -> None:
    world.model_says({"text": "One."}, {"text": "Two."})
    world.run("-p", "first", "-n", "auth refactor")
    done = world.run("-r", "auth refactor", "-p", "second", "--timeout", "30s")
    assert done.stdout == "Two.\n" and "Resumed. 0 calls settled, 0 open." in done.stderr


def test_ux_14_two_words_that_are_no_command_name_the_nearest_and_the_prompt(world: World) -> None:
    done = world.run("sesion", "lst")
    assert done.returncode == 2
    assert "Did you mean session?" in done.stderr and "surefoot 'sesion lst'" in done.stderr


def test_an_endpoint_says_which_tools_its_model_is_offered_and_a_flag_says_otherwise(world: World) -> None:
    world.model_says(DONE, DONE)
    (world.home / "sf").mkdir()
    (world.home / "sf/config.toml").write_text(
        f'[endpoints.few]\nurl = "{world.more["OPENAI_BASE_URL"]}"\ncontract = "openai/chat"\nmodel = "m"\n'
        'key_env = "OPENAI_API_KEY"\ntools = ["read", "grep"]\n'
    )
    few = lines(world.run("-p", "x", "-m", "few", "--output-format", "stream-json").stdout)
    assert few[0]["tools"] == ["read", "grep"]
    other = lines(
        world.run("-p", "x", "-m", "few", "--tools", "shell", "--output-format", "stream-json").stdout
    )
    assert other[0]["tools"] == ["shell"]


SAID_OF = {
    "rm nothere": ("failed", True, "Part of it may have happened"),
    "touch a; kill -9 $$": ("unknown", True, "its end is not known"),
    "echo 1 > a": ("succeeded", False, "(no output)"),
}


@pytest.mark.parametrize("command", SAID_OF)
@pytest.mark.promise("surface:same-story")
def test_ux_30_tr_44_tr_209_a_result_of_stream_json_is_what_the_model_is_given(
    world: World, command: str
) -> None:
    state, is_error, words = SAID_OF[command]
    world.model_says({"calls": [{"name": "shell", "args": {"command": command}}]}, DONE)
    told = lines(world.run("-p", "go", "--yolo", "--output-format", "stream-json").stdout)
    assert [one["state"] for one in told if one.get("subtype") == "receipt"] == ["started", state]
    ((block,),) = [one["message"]["content"] for one in told if one["type"] == "user"]
    assert words in block["content"] and block["is_error"] is is_error


def test_ux_38_ux_43_a_shell_command_that_reads_outside_does_not_run_where_nobody_can_be_asked(
    world: World,
) -> None:
    secret = world.home / "secret"
    secret.write_text("TOP-SECRET")
    looks = {"calls": [{"name": "shell", "args": {"command": f"cat {shlex.quote(str(secret))}"}}]}
    world.model_says(looks, DONE)
    done = world.run("-p", "look", "--output-format", "json")
    (document,) = lines(done.stdout)
    (denial,) = document["permission_denials"]
    assert (denial["tool"], denial["by"], denial["message"]) == (
        "shell",
        "nobody",
        "did not run: nobody to ask",
    )
    assert denial["reason"] == f"it reads outside the workspace: {secret.resolve()}"
    assert "--allowed-tools Read" in done.stderr and done.returncode == 0, "the turn goes on"
    assert "TOP-SECRET" not in world.run("session", "show", "--json").stdout
    world.model_says(looks, DONE)
    (document,) = lines(
        world.run("-p", "look", "--output-format", "json", "--allowed-tools", "Read(~/secret)").stdout
    )
    assert document["permission_denials"] == []
