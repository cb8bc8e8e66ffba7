"""Every promise has a test, and every test that names a promise names one that exists."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
MANIFEST = tomllib.loads((TESTS / "promises" / "promises.toml").read_text())


def _named() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            for mark in getattr(node, "decorator_list", []):
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.promise":
                    for argument in mark.args:
                        if isinstance(argument, ast.Constant):
                            found.setdefault(str(argument.value), []).append(f"{path.name}:{node.name}")  # type: ignore[attr-defined]
    return found


def test_every_promise_has_a_test() -> None:
    missing = sorted(set(MANIFEST["promises"]) - set(_named()))
    assert not missing, f"promises without a test: {missing}"


def test_every_named_promise_exists() -> None:
    known = set(MANIFEST["promises"]) | set(MANIFEST["later"])
    unknown = {name: where for name, where in _named().items() if name not in known}
    assert not unknown


def test_a_promise_kept_is_not_called_later() -> None:
    kept = set(MANIFEST["later"]) & set(_named())
    assert not kept, f"move these from `later` to `promises`: {kept}"
