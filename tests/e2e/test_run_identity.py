"""Flags of a run that scripts of other agents bring: who it is, what is kept, what comes in, what form comes out."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from cli_world import SUREFOOT, World, check_output

DONE = {"text": "Fine."}
UUID = "01939a2e-7c41-7b7e-9d2f-0a1b2c3d4e5f"
SCHEMA = '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}'


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def message(words: Any) -> str:
    return json.dumps({"type": "user", "message": {"role": "user", "content": words}}) + "\n"


def streamed(world: World, given: str) -> subprocess.CompletedProcess[str]:
    return world.run("-p", "--input-format", "stream-json", "--output-format", "stream-json", given=given)


def test_ux_15_a_session_id_is_that_of_the_new_session_and_a_uuid_finds_it_again(world: World) -> None:
    world.model_says(DONE)
    first = world.run("-p", "hi", "--session-id", UUID, "--output-format", "json")
    assert first.returncode == 0, first.stderr
    found = lines(first.stdout)[0]["session_id"]
    assert found.startswith("ses_") and len(found) == 30
    again = world.run("-p", "hi", "--session-id", UUID)
    assert again.returncode == 2 and "is there already" in again.stderr
    world.model_says(DONE)
    resumed = world.run("-p", "more", "-r", UUID, "--output-format", "json")
    assert (resumed.returncode, lines(resumed.stdout)[0]["session_id"]) == (0, found)


def test_ux_15_without_persistence_nothing_is_on_disk_and_nothing_but_readers_is_offered(
    world: World,
) -> None:
    (world.project / "a.txt").write_text("hello")
    read = {"calls": [{"name": "read", "args": {"path": "a.txt"}}]}
    world.model_says(read, DONE)
    done = world.run("-p", "look", "--no-session-persistence", "--yolo", "--output-format", "stream-json")
    assert done.returncode == 0, done.stderr
    told = lines(done.stdout)
    assert "read" in told[0]["tools"] and not {"write", "edit", "shell"} & set(told[0]["tools"])
    assert [one["state"] for one in told if one.get("subtype") == "receipt"] == ["started", "succeeded"]
    assert told[-1]["result"] == "Fine." and told[-1]["resume_command"] is None
    assert "no receipts, no resume" in done.stderr
    assert not list((world.home / "sf").rglob("ledger.db"))
    assert world.run("session", "list", "--json").stdout == "[]\n"


def test_ux_15_each_message_of_standard_input_is_a_turn_with_its_own_result(world: World) -> None:
    world.model_says({"text": "One."}, {"text": "Two."})
    blocks = [{"type": "text", "text": "second"}, {"type": "text", "text": "part"}]
    done = streamed(world, message("first") + '{"type": "control_request"}\n\n' + message(blocks).strip())
    assert done.returncode == 0, done.stderr
    results = [one for one in lines(done.stdout) if one["type"] == "result"]
    assert [one["result"] for one in results] == ["One.", "Two."]
    assert results[0]["session_id"] == results[1]["session_id"] and lines(done.stdout)[-1] == results[1]
    assert "Line 2 of standard input is no message" in done.stderr
    shown = world.run("session", "show").stdout
    assert "> first" in shown and "> second" in shown and "> part" in shown


def test_ux_15_a_message_may_answer_the_result_of_the_one_before(world: World) -> None:
    world.model_says({"text": "One."}, {"text": "Two."})
    run = subprocess.Popen(
        [*SUREFOOT, "-p", "--input-format=stream-json", "--output-format=stream-json"], cwd=world.project,
        env=world.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    world.started.append(run)
    assert run.stdin is not None and run.stdout is not None
    heard = []
    for words in ("first", "second"):
        run.stdin.write(message(words))
        run.stdin.flush()
        while not heard or heard[-1]["type"] != "result" or heard[-1] in heard[:-1]:
            heard.append(json.loads(run.stdout.readline()))
        heard.append({"type": "mark"})
    run.stdin.close()
    assert run.wait(timeout=90) == 0 and run.stdout.read() == ""
    assert [one["result"] for one in heard if one["type"] == "result"] == ["One.", "Two."]


def test_ux_34_a_run_that_no_message_comes_to_ends_with_its_time_and_leaves_no_session(world: World) -> None:
    world.model_says(DONE)
    run = subprocess.Popen(
        [*SUREFOOT, "-p", "--input-format=stream-json", "--output-format=stream-json", "--timeout", "200ms"],
        cwd=world.project, env=world.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    world.started.append(run)
    assert run.stdin is not None and run.stdout is not None
    assert run.wait(timeout=90) == 124
    (document,) = lines(run.stdout.read())
    run.stdin.close()
    assert (document["subtype"], document["session_id"]) == ("error_timeout", None)
    assert world.run("session", "list", "--json").stdout == "[]\n"


def test_ux_34_a_line_that_is_no_message_ends_the_run_with_2_and_its_number(world: World) -> None:
    world.model_says(DONE)
    for given, told in (
        ("\n", "There is no prompt"),
        ("no json\n", "Line 1"),
        (message("ok") + message([{"type": "image"}]), "Line 2"),
    ):
        done = streamed(world, given)
        assert done.returncode == 2 and told in done.stderr
        check_output(done.stdout)
        assert lines(done.stdout)[-1]["exit_code"] == 2


def test_ux_37_an_answer_that_fits_is_given_as_a_value_and_a_fence_around_it_comes_off(world: World) -> None:
    world.model_says({"text": '```json\n{"n": 3}\n```'})
    done = world.run("-p", "count", "--json-schema", SCHEMA, "--output-format", "json")
    assert done.returncode == 0, done.stderr
    (document,) = lines(done.stdout)
    assert (document["structured_output"], json.loads(document["result"])) == ({"n": 3}, {"n": 3})


def test_ux_37_an_answer_that_does_not_fit_is_asked_for_once_more(world: World) -> None:
    (world.project / "form.json").write_text(SCHEMA)
    world.model_says({"text": "Three."}, {"text": '{"n": 3}'})
    done = world.run("-p", "count", "--json-schema", "form.json")
    assert (done.returncode, done.stdout) == (0, '{"n": 3}\n'), done.stderr
    assert "does not fit the JSON schema" in world.run("session", "show").stdout


def test_ux_37_after_a_second_wrong_answer_the_run_ends_with_1_and_the_faults(world: World) -> None:
    world.model_says({"text": "Three."}, {"text": '{"n": "three"}'}, {"text": '{"n": 3}'})
    done = world.run("-p", "count", "--json-schema", SCHEMA, "--output-format", "json")
    assert done.returncode == 1
    (document,) = lines(done.stdout)
    assert document["subtype"] == "error_during_execution" and "structured_output" not in document
    assert "/n: 'three' is not of type 'integer'" in document["result"]
    assert "/n: 'three' is not of type" in done.stderr


def test_ux_15_an_added_folder_counts_to_the_project(world: World) -> None:
    beside = world.home / "beside"
    beside.mkdir()
    write = {"calls": [{"name": "write", "args": {"path": str(beside / "b.txt"), "content": "x"}}]}
    world.model_says(write, DONE)
    refused = world.run("-p", "go", "--permission-mode", "acceptEdits")
    assert not (beside / "b.txt").exists(), refused.stderr
    world.model_says(write, DONE)
    done = world.run("-p", "go", "--permission-mode", "acceptEdits", "--add-dir", str(beside))
    assert done.returncode == 0, done.stderr
    assert (beside / "b.txt").read_text() == "x"


def test_ux_52_right_after_a_fork_continue_and_show_mean_the_fork(world: World) -> None:
    world.model_says(DONE)
    first = lines(world.run("-p", "hi", "--output-format", "json").stdout)[0]["session_id"]
    forked = json.loads(world.run("session", "fork", first, "--json").stdout)["session_id"]
    assert world.run("session", "show", "--id").stdout == forked + "\n"
    world.model_says(DONE)
    gone_on = world.run("-p", "more", "-c", "--output-format", "json")
    assert lines(gone_on.stdout)[0]["session_id"] == forked


def test_ux_4_no_file_of_a_run_without_persistence_stays(world: World, tmp_path: Path) -> None:
    world.more["TMPDIR"] = str(tmp_path / "moment")
    (tmp_path / "moment").mkdir()
    world.model_says(DONE)
    assert world.run("-p", "hi", "--no-session-persistence").returncode == 0
    assert not list((tmp_path / "moment").iterdir())
