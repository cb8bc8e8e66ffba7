"""What the commands print, against the schemas that ship: nothing undescribed, nothing missing."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import jsonschema
import pytest
from cli_world import World, wait_for


def schema(world: World, name: str) -> Any:
    run = world.run("config", "schema", "--recovery", name)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def closed(value: Any) -> Any:
    """The same schema for a reader who wants to know every field it is shown."""
    if isinstance(value, dict):
        strict = {key: closed(item) for key, item in value.items()}
        return {**strict, "additionalProperties": False} if len(value.get("properties", {})) > 4 else strict
    return [closed(item) for item in value] if isinstance(value, list) else value


def check(world: World, name: str, document: Any, *, strict: bool = True) -> None:
    wanted = schema(world, name)
    validator = jsonschema.Draft202012Validator(closed(wanted) if strict else wanted)
    faults = [
        f"{list(error.absolute_path)}: {error.message[:300]}" for error in validator.iter_errors(document)
    ]
    assert not faults, "\n".join(faults)


@pytest.fixture
def open_call(world: World) -> str:
    world.model_says(
        {"calls": [{"name": "shell", "args": {"command": "touch started; sleep 600; echo x >> out.txt"}}]},
        {"text": "x"},
    )
    run = world.start("-p", "do it", "--yolo")
    wait_for((world.project / "started").exists)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=120)
    check(world, "snapshot", listed(world), strict=False)  # nobody has taken over yet
    world.run("-c", "-p", "go on")
    return str(listed(world)["calls"][0]["attemptId"])


def listed(world: World, *flags: str) -> Any:
    return json.loads(world.run("recover", "list", "--json", *flags).stdout)


def test_tr_148_every_document_of_recover_is_true_to_the_published_schema(
    world: World, open_call: str
) -> None:
    check(world, "snapshot", listed(world))
    refused = world.run("recover", "confirm", open_call, "--json")
    assert refused.returncode == 4
    check(world, "error", json.loads(refused.stdout), strict=False)
    looked = json.loads(world.run("recover", "inspect", open_call, "--json").stdout)
    assert any("arguments" in call for call in looked["calls"])
    check(world, "snapshot", looked)
    check(world, "snapshot", json.loads(world.run("recover", "show", open_call, "--json").stdout))
    check(world, "snapshot", json.loads(world.run("recover", "process", open_call, "kill", "--json").stdout))
    looked = json.loads(world.run("recover", "inspect", open_call, "--json").stdout)
    inspection = next(call["inspectionId"] for call in looked["calls"] if call["attemptId"] == open_call)
    pressed = ("recover", "confirm", open_call, "--inspection", inspection, "--note", "seen", "--json")
    done = world.run(*pressed)
    assert done.returncode == 0, done.stderr
    check(world, "snapshot", json.loads(done.stdout))
    again = world.run("recover", "reject", open_call, "--inspection", inspection, "--json")
    assert again.returncode == 4 and "record" in again.stdout
    check(world, "error", json.loads(again.stdout), strict=False)
    check(world, "snapshot", listed(world, "--all"))


def test_tr_148_the_schema_of_settings_stays_where_it_was_and_an_unknown_name_is_refused(
    world: World,
) -> None:
    assert "properties" in json.loads(world.run("config", "schema").stdout)
    wrong = world.run("config", "schema", "--recovery", "nothing")
    assert wrong.returncode == 2 and "snapshot" in wrong.stderr


def test_tr_148_a_snapshot_without_calls_is_true_to_the_schema(world: World) -> None:
    world.model_says({"text": "Done."})
    world.run("-p", "say something")
    check(world, "snapshot", listed(world))


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("list", "--session", "nope"), "SF-NOT-FOUND"),
        (("show", "nope"), "attempt_unknown"),
        (("confirm", "nope"), "attempt_unknown"),
    ],
)
def test_tr_149_tr_125_with_json_a_fault_is_the_error_object_and_nothing_else(
    world: World, command: tuple[str, ...], code: str
) -> None:
    world.model_says({"text": "Done."})
    world.run("-p", "say something")
    run = world.run("recover", *command, "--json")
    assert (run.returncode, run.stderr) == (1, "")
    document = json.loads(run.stdout)
    check(world, "error", document)
    assert document["code"] == code


def test_ux_32_every_line_of_a_run_is_true_to_the_schema_that_config_prints(
    world: World, open_call: str
) -> None:
    printed = world.run("config", "schema", "--output")
    assert printed.returncode == 0, printed.stderr
    validator = jsonschema.Draft202012Validator(json.loads(printed.stdout))
    stopped = world.run("-c", "-p", "go on", "--output-format", "stream-json")
    assert stopped.returncode == 3
    world.model_says(
        {"text": "I look.", "calls": [{"name": "list_files", "args": {"path": "."}}]}, {"text": "Done."}
    )
    whole = world.run("-p", "look", "--output-format", "stream-json")
    assert whole.returncode == 0, whole.stderr
    documents = [json.loads(line) for run in (stopped, whole) for line in run.stdout.splitlines()]
    assert all(validator.is_valid(one) for one in documents)
    told = {(one["type"], one.get("subtype") if one["type"] == "system" else None) for one in documents}
    assert told >= {("system", "init"), ("system", "resume"), ("system", "outcome_unknown"), ("system", "receipt"),
                    ("assistant", None), ("user", None), ("result", None)}  # fmt: skip
    for one in documents:
        for field in one:
            if field not in (
                "type",
                "session_id",
                "changes",
                "will_ask_again",
                "will_run_approved",
                "deaths",
                "searches",
            ):
                left = {key: value for key, value in one.items() if key != field}
                known = field == "subtype" and one["type"] == "system"
                assert known or not validator.is_valid(left), f"{one['type']} without {field}"
    assert validator.is_valid({"type": "of a newer version", "session_id": None, "new": 1})


def test_ux_32_one_schema_is_asked_for_at_a_time(world: World) -> None:
    both = world.run("config", "schema", "--output", "--recovery", "error")
    assert both.returncode == 2 and "ask for one" in both.stderr
