"""A group of commands called without one of them."""

from __future__ import annotations

import pytest

from surefoot.surfaces.cli.entry import run


@pytest.mark.parametrize("group", ["ledger", "session", "config", "contract"])
def test_a_group_without_its_command_prints_its_help_and_no_fault(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([group]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"Usage: surefoot {group}")
    assert "SF-" not in told.err


@pytest.mark.parametrize("group", ["recover", "session", "ledger", "config", "contract", "auth"])
def test_the_help_of_a_group_cuts_no_sentence_of_its_commands(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([group, "--help"]) == 0
    told = capsys.readouterr().out
    assert "Commands:" in told and "..." not in told.split("Commands:")[1]
