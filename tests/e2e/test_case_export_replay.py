"""Case J12: what somebody exports is enough to play their bad session again elsewhere, without its secrets."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from cli_world import World

SECRET = "ghp_" + "a1B2" * 9


def shell(command: str) -> dict[str, Any]:
    return {"text": "I run it.", "calls": [{"name": "shell", "args": {"command": command}}]}


BAD = (
    {"calls": [{"name": "read", "args": {"path": "missing.txt"}}]},
    shell(f"echo {SECRET} > note.txt"),
    shell("touch begun; kill -9 $$"),
    {"calls": [{"name": "write", "args": {"path": "later.txt", "content": "x"}}]},
    {"calls": [{"name": "no_such_tool", "args": {}}]},
    {"text": "I give up."},
)


def export(world: World) -> dict[str, Any]:
    done = world.run("session", "export", "--format", "json")
    assert done.returncode == 0, done.stderr
    whole: dict[str, Any] = json.loads(done.stdout)
    return whole


def recorded(whole: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """The person's words and the model's replies, as an export holds them."""
    words = [one["text"] for one in whole["entries"] if one["kind"] == "user"]
    replies = [
        {
            "text": one["text"],
            "calls": [{"name": call["askedName"], "raw_args": call["arguments"]} for call in one["calls"]],
        }
        for one in whole["entries"]
        if one["kind"] == "assistant"
    ]
    return words[0], replies


def decisions(whole: dict[str, Any]) -> list[tuple[Any, ...]]:
    keys = ("tool", "class", "effectTrace", "state", "reason", "errorKind")
    return [tuple(one[key] for key in keys) for one in whole["receipts"]]


def test_case_j12_ux_54_an_export_carries_the_replies_redacted_and_leads_to_the_same_decisions_elsewhere(
    world: World, tmp_path: Path
) -> None:
    world.model_says(*BAD)
    first = world.run("-p", "Make a mess.", "--yolo")
    whole = export(world)
    assert SECRET not in json.dumps(whole) and len(decisions(whole)) == 5
    elsewhere = World(tmp_path / "elsewhere" / "home", tmp_path / "elsewhere" / "project")
    elsewhere.home.mkdir(parents=True)
    elsewhere.project.mkdir()
    subprocess.run(["git", "init", "-q", str(elsewhere.project)], check=True)
    try:
        words, replies = recorded(whole)
        elsewhere.model_says(*replies)
        again = elsewhere.run("-p", words, "--yolo")
        played = export(elsewhere)
    finally:
        elsewhere.close()
    assert (again.returncode, again.stdout) == (first.returncode, first.stdout) and words == "Make a mess."
    assert decisions(played) == decisions(whole)
    assert len(played["open_calls"]) == len(whole["open_calls"]) == 1
    assert {one[3] for one in decisions(whole)} == {"failed", "succeeded", "unknown", "not_started"}
