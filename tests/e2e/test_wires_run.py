"""The command line on every wire: a whole tool round against the strict server, from a settings file alone."""

from __future__ import annotations

import json

import pytest
from cli_world import World

READ = {"text": "Let me look.", "calls": [{"name": "read", "args": {"path": "a.txt"}}]}
DONE = {"text": "It says hello."}
PLACES = [
    ("responses", "openai", "/v1"),
    ("responses", "compat", "/v1"),
    ("anthropic", "anthropic", "/v1"),
    ("anthropic", "deepseek", "/v1"),
]


def declare(world: World, wire: str, profile: str, tail: str) -> None:
    """An endpoint of the owner's settings that leads to the running server."""
    root = world.more["OPENAI_BASE_URL"].rpartition("/openai")[0]
    (world.home / "sf").mkdir(exist_ok=True)
    (world.home / "sf/config.toml").write_text(
        f'model = "desk/m"\n[endpoints.desk]\nurl = "{root}/{profile}{tail}"\nwire = "{wire}"\n'
        f'contract = "{profile}/{wire}"\nmodel = "m"\nkey_env = "DESK_KEY"\n'
    )
    world.more["DESK_KEY"] = "sk-test"


@pytest.mark.parametrize(("wire", "profile", "tail"), PLACES, ids=[f"{p}-{w}" for w, p, _ in PLACES])
def test_a_tool_round_and_a_second_turn_run_on_every_wire(
    world: World, wire: str, profile: str, tail: str
) -> None:
    (world.project / "a.txt").write_text("hello")
    world.model_says(READ, DONE, READ, DONE)
    declare(world, wire, profile, tail)
    for more in ((), ("-c",)):
        done = world.run("-p", "look at a.txt", "--output-format", "json", *more)
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout.splitlines()[-1])
        assert document["result"] == "It says hello."


def test_case_s29_a_paused_turn_is_sent_back_and_goes_on(world: World) -> None:
    world.model_says({"text": "Looking.", "server_search": {"sources": 1}, "finish": "pause_turn"}, DONE)
    declare(world, "anthropic", "anthropic", "/v1")
    done = world.run("-p", "search", "--output-format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["result"] == "It says hello."
