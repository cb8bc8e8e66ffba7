"""What a look leaves open goes on after "does not show" on every card."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import surefoot.verifiers.port as port

FILES = sorted(Path(port.__file__).parent.glob("*.py"))
_NAMES = ("open_point", "_OPEN", "_NOT_BY_US", "_MAY_COME")


def open_points(file: Path) -> list[str]:
    """The texts a module gives as what is left open."""
    found: list[str] = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        values: list[ast.expr] = []
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") in _NAMES for t in node.targets):
            values = [node.value]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Observation":
            values = [*node.args[5:6], *(k.value for k in node.keywords if k.arg == "does_not_prove")]
        for value in values:
            found += [
                n.value for n in ast.walk(value) if isinstance(n, ast.Constant) and isinstance(n.value, str)
            ]
    return [text for text in found if text]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_ux_62_what_a_look_does_not_show_is_a_phrase_and_no_sentence(file: Path) -> None:
    for text in open_points(file):
        assert not text.endswith("."), text
        assert text[0].islower() or text[0] == " ", text
