"""Rules as flags give them: several in one text, with commas, spaces and brackets in their patterns."""

from __future__ import annotations

import pytest

from surefoot.errors import SettingsError
from surefoot.runtime.permission import parse_rules
from surefoot.surfaces.cli.talk import rules_of


@pytest.mark.parametrize(
    ("given", "rules"),
    [
        (("Read,Write",), ["Read", "Write"]),
        (("Read Write", "Edit"), ["Read", "Write", "Edit"]),
        (("Bash(git status), Bash(pytest *)",), ["Bash(git status)", "Bash(pytest *)"]),
        (("Bash(echo (a), b) Read",), ["Bash(echo (a), b)", "Read"]),
        (("Write(a b/**)\tRead",), ["Write(a b/**)", "Read"]),
        ((" , ,", ""), []),
    ],
)
def test_ux_39_commas_and_spaces_outside_brackets_separate_rules(
    given: tuple[str, ...], rules: list[str]
) -> None:
    assert rules_of(given) == rules


@pytest.mark.parametrize("text", ["Bash(git", "Bash(", "Read,Bash(rm *", "Bash)", "Bash(a) b)"])
def test_ux_39_a_rule_whose_brackets_do_not_match_is_no_wider_rule(text: str) -> None:
    with pytest.raises(SettingsError):
        parse_rules(allow=rules_of((text,)))
