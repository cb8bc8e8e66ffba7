"""Bounds that a person sets in their own file are those that hold (section 23 of tool recovery)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cli_world import World

DONE = {"text": "All finished."}


def receipts(world: World, *calls: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines about receipts of a run in which the model asks for these calls."""
    world.model_says({"calls": list(calls)}, DONE)
    ran = world.run("-p", "go", "--yolo", "--output-format", "stream-json")
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    return [line for line in lines if line.get("subtype") == "receipt"]


@pytest.mark.parametrize(("most", "found"), [(6, "READ_ONLY"), (5, "UNKNOWN")])
def test_tr_185_ec_5_how_long_a_classified_text_may_be_is_the_owners_word(
    world: World, most: int, found: str
) -> None:
    (world.home / "sf").mkdir()
    assert world.run("config", "set", "limits.classifier_bytes", str(most)).returncode == 0
    told = receipts(world, {"name": "shell", "args": {"command": "ls -la"}})
    assert {line["class"] for line in told} == {found}


def test_tr_185_ec_5_of_how_many_parts_it_may_be_too(world: World) -> None:
    (world.home / "sf").mkdir()
    assert world.run("config", "set", "limits.classifier_nodes", "3").returncode == 0
    told = receipts(world, {"name": "shell", "args": {"command": "ls -l -a -h -t"}})
    assert {(line["class"], *line["reach"]) for line in told} == {("UNKNOWN", "*")}


def test_tr_185_how_much_a_finding_may_say_is_the_owners_word(world: World) -> None:
    (world.home / "sf").mkdir()
    assert world.run("config", "set", "limits.report_bytes", "4").returncode == 0
    report = {"action": "report", "attempt": "att_x", "finding": "12345"}
    world.model_says({"calls": [{"name": "shell", "args": {"command": "touch a; kill -9 $$"}}]}, DONE)
    ran = world.run("-p", "go", "--yolo")
    assert ran.returncode == 3
    (call,) = json.loads(world.run("recover", "list", "--json").stdout)["calls"]
    report["attempt"] = call["attemptId"]
    world.model_says({"calls": [{"name": "recovery", "args": report}]}, DONE)
    again = world.run(
        "-c", "-p", "go on", "--yolo", "--on-unknown", "continue", "--output-format", "stream-json"
    )
    assert "longer than 4 bytes" in again.stdout
