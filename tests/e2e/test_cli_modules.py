"""Each command loads only what it uses."""

from __future__ import annotations

import subprocess
import sys

import pytest
from cli_world import World

HEAVY = {
    "apsw",
    "fastapi",
    "uvicorn",
    "mcp",
    "acp",
    "pydantic",
    "httpx2",
    "rich",
    "prompt_toolkit",
    "jsonschema",
}
REPORT = """
import sys
sys.argv = ["surefoot", *{arguments!r}]
from surefoot.surfaces.cli import main
try:
    main()
except SystemExit:
    pass
print("loaded:", *sorted({heavy!r} & set(sys.modules)), "click" if "click" in sys.modules else "", file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (["--version"], set()),
        (["--help"], {"click"}),
        (["config", "show"], {"click"}),
        (["config", "path"], {"click"}),
        (["ledger", "path"], {"click"}),
        (["session", "list"], {"click", "apsw"}),
        (["recover", "list"], {"click", "apsw"}),
        (["completion", "bash"], {"click"}),
        (["nosuch"], {"click"}),
    ],
)
def test_ux_139_a_command_loads_nothing_heavy_that_it_does_not_use(
    world: World, arguments: list[str], allowed: set[str]
) -> None:
    script = REPORT.format(arguments=arguments, heavy=HEAVY)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=world.project, env=world.environ, capture_output=True, text=True,
        timeout=120, check=True,
    )  # fmt: skip
    loaded = set(done.stderr.splitlines()[-1].removeprefix("loaded:").split())
    assert loaded <= allowed, loaded


def test_ux_7_standard_output_carries_data_and_ends_with_a_newline(world: World) -> None:
    for arguments in (["config", "path"], ["ledger", "path"], ["--version"], ["--help"], ["doctor"]):
        done = world.run(*arguments)
        assert done.stdout.endswith("\n") and done.returncode == 0, arguments
    assert len(world.run("config", "path").stdout.splitlines()) == 1


def test_ux_12_no_command_is_advertised_that_does_not_answer_help(world: World) -> None:
    told = world.run("--help").stdout
    names = [line.split()[0] for line in told[told.index("Commands:") :].splitlines()[1:] if line.strip()]
    assert {"recover", "session", "ledger", "config", "doctor", "demo"} <= set(names)
    for name in set(names) - {"demo", "emulate"}:
        if name.isalpha():
            done = world.run(name, "--help")
            assert done.returncode == 0 and "Usage" in done.stdout, name
