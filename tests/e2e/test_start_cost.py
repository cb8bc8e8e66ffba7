"""What a start costs is what it loads: each command is asked which modules it ended with.

Times are the bench's (`bench/starting.py`); a list of modules is the same on every machine.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from cli_world import World

HEAVY = frozenset(
    {"apsw", "fastapi", "uvicorn", "mcp", "acp", "pydantic", "httpx2", "rich", "prompt_toolkit", "jsonschema"}
)
SLOW_TO_LOAD = frozenset({"asyncio", "dataclasses", "inspect", "json", "subprocess", "ssl", "click"})
"""Parts of the standard library, and `click`, that take longer to load than the interpreter to start."""
REPORT = """
import sys
before = set(sys.modules)
{body}
found = sorted(set(sys.modules) - before)
import json
print(json.dumps(found), file=sys.stderr)
"""
COMMAND = """
sys.argv = ["surefoot", *{arguments!r}]
from surefoot.surfaces.cli import main
try:
    main()
except SystemExit:
    pass
"""


def loaded(world: World, body: str) -> set[str]:
    """The modules a fresh interpreter holds after `body` that it did not hold before."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT.format(body=body)], cwd=world.project, env=world.environ,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("body", ["import surefoot", COMMAND.format(arguments=["--version"])])
def test_ux_138_the_import_and_the_version_load_nothing_that_is_slow_to_load(world: World, body: str) -> None:
    found = loaded(world, body)
    assert not found & (HEAVY | SLOW_TO_LOAD)
    ours = {name for name in found if name.startswith("surefoot")}
    assert ours <= {"surefoot", "surefoot.surfaces", "surefoot.surfaces.cli"}


def test_ux_138_the_help_reads_no_settings(world: World) -> None:
    found = loaded(world, COMMAND.format(arguments=["--help"]))
    assert "click" in found
    assert not found & {"asyncio", "tomllib", "surefoot.config", "surefoot.app", *HEAVY}


@pytest.mark.parametrize(
    ("arguments", "used"),
    [
        (["recover", "list"], {"apsw"}),
        (["session", "list"], {"apsw"}),
        (["config", "show"], set()),
        (["config", "path"], set()),
        (["ledger", "path"], set()),
        (["completion", "bash"], set()),
        (["recover", "--help"], set()),
        (["nosuch"], set()),
    ],
)
def test_ux_139_reading_commands_load_the_driver_at_most(
    world: World, arguments: list[str], used: set[str]
) -> None:
    found = loaded(world, COMMAND.format(arguments=arguments))
    assert found & HEAVY <= used
    assert not found & {"surefoot.app", "surefoot.runtime.barrier", "surefoot.providers.client"}


def test_ux_139_a_list_of_open_calls_loads_no_part_for_commands_incidents_or_settings_files(
    world: World,
) -> None:
    found = loaded(world, COMMAND.format(arguments=["recover", "list"]))
    unused = {"surefoot.tools.processes.ending", "surefoot.tools.supervision", "surefoot.runtime.reconcile"}
    assert not found & (unused | {"surefoot.runtime.tools", "surefoot.core.incident", "tomllib", "random"})


def test_ux_70_a_chat_is_there_before_the_editor_of_its_line(world: World) -> None:
    """The card of a session that was killed is drawn by what this loads, and the editor is loaded after it."""
    found = loaded(world, "import surefoot.surfaces.cli.chatting, surefoot.surfaces.chat")
    assert not found & {"prompt_toolkit", "wcwidth", "pydantic", "jsonschema", "httpx2", "rich"}
