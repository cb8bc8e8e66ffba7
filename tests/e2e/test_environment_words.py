"""Variables that every program honours: PAGER, COLUMNS, NO_COLOR and its kin."""

from __future__ import annotations

import re
from typing import Any

import pexpect
import pytest
from cli_world import SUREFOOT, World

from surefoot.surfaces.plain import colour_allowed, plain_wanted

LONG = {"text": "\n".join(f"line {number}" for number in range(60))}


def at_terminal(world: World, *arguments: str, columns: int = 100) -> tuple[int, str]:
    child: Any = pexpect.spawn(
        SUREFOOT[0], [*SUREFOOT[1:], *arguments], cwd=str(world.project), env=world.environ, encoding="utf-8",
        dimensions=(20, columns), timeout=90,
    )  # fmt: skip
    child.expect(pexpect.EOF)
    child.close()
    return int(child.exitstatus), str(child.before)


@pytest.fixture
def told(world: World) -> World:
    world.model_says(LONG)
    assert world.run("-p", "tell me much").returncode == 0
    return world


def test_ux_27_what_is_longer_than_the_screen_goes_through_the_pager_of_the_person(told: World) -> None:
    told.more["PAGER"] = "sed -e 's/^/PAGED /'"
    code, text = at_terminal(told, "session", "show")
    assert code == 0 and "PAGED │ line 59" in text
    assert "PAGED" not in at_terminal(told, "session", "list")[1]
    assert "PAGED" not in told.run("session", "show").stdout


@pytest.mark.parametrize("pager", ["", "cat", "no-such-pager-here"])
def test_ux_27_without_a_pager_that_runs_the_text_is_printed_whole(told: World, pager: str) -> None:
    told.more["PAGER"] = pager
    code, text = at_terminal(told, "session", "show")
    assert code == 0 and "│ line 0\r\n" in text and "│ line 59\r\n" in text


def test_ux_27_a_dumb_terminal_and_ci_are_never_paged(told: World) -> None:
    told.more |= {"PAGER": "sed -e 's/^/PAGED /'", "CI": "1"}
    assert "PAGED" not in at_terminal(told, "session", "show")[1]
    told.more |= {"CI": "", "TERM": "dumb"}
    assert "PAGED" not in at_terminal(told, "session", "show")[1]


def test_ux_27_columns_is_the_width_of_the_terminal(told: World) -> None:
    told.more["COLUMNS"] = "44"
    lines = at_terminal(told, "timeline", columns=120)[1].splitlines()
    assert max(len(re.sub(r"\x1b\[[0-9;?]*[a-z]", "", line)) for line in lines) <= 44


@pytest.mark.parametrize(
    ("environ", "terminal", "allowed"),
    [
        ({}, True, True), ({}, False, False), ({"NO_COLOR": "1"}, True, False), ({"CLICOLOR": "0"}, True, False),
        ({"TERM": "dumb"}, True, False), ({"CLICOLOR_FORCE": "1"}, False, True), ({"FORCE_COLOR": "1"}, False, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False), ({"CLICOLOR_FORCE": "0"}, False, False),
    ],
)  # fmt: skip
def test_ux_27_colour_follows_the_variables_everybody_knows(
    environ: dict[str, str], terminal: bool, allowed: bool
) -> None:
    assert colour_allowed("auto", environ, is_terminal=terminal) is allowed
    assert colour_allowed("always", environ, is_terminal=terminal) is True


@pytest.mark.parametrize("environ", [{"CI": "1"}, {"TERM": "dumb"}])
def test_ux_27_ci_and_a_dumb_terminal_draw_plainly(environ: dict[str, str]) -> None:
    assert plain_wanted(False, environ, is_terminal=True) and not plain_wanted(False, {}, is_terminal=True)
