"""Going on in a copy of a session: its open calls come along, and the card says where from."""

from __future__ import annotations

import json

from cli_world import World, wait_for

HANG = {"calls": [{"name": "shell", "args": {"command": "touch started; sleep 600; rm out.txt"}}]}


def test_ux_52_a_run_in_a_fork_meets_the_open_call_of_its_origin_and_leaves_that_session_alone(
    world: World,
) -> None:
    world.model_says(HANG, {"text": "done"})
    killed = world.start("-p", "clean", "--yolo")
    wait_for((world.project / "started").exists)
    killed.kill()
    killed.communicate()
    before = json.loads(world.run("session", "list", "--json").stdout)
    done = world.run("-p", "go on", "-c", "--fork-session", "--output-format", "json")
    result = json.loads(done.stdout)
    assert done.returncode == 3 and result["session_id"] != before[0]["session_id"]
    card = result["unknown_outcomes"][0]
    assert card["origin"]["sessionId"] == before[0]["session_id"]
    assert "Copied from att_" in card["known"] and before[0]["session_id"][-4:] in card["known"]
    shown = json.loads(world.run("session", "show", before[0]["session_id"], "--json").stdout)
    assert shown["position"] == before[0]["position"]


def test_ux_52_fork_session_alone_says_which_flags_name_a_session(world: World) -> None:
    done = world.run("-p", "hello", "--fork-session")
    assert done.returncode == 2 and "-r REF" in done.stderr and "next: surefoot session list" in done.stderr
