"""Readers of package clients in a project whose files would make them run something (EC-59)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from surefoot.core.model import EffectClass
from surefoot.runtime.tools import Place
from surefoot.tools.classify.shell import classify_shell
from surefoot.tools.processes.preparing import reading

VARIABLES = {"PATH": "/usr/bin:/bin", "YARN_RC_FILENAME": "own.yml"}


def kept_a_reader(command: str, folder: Path) -> bool:
    found = classify_shell(command, Place(folder))
    assert found.effect.effect_class is EffectClass.READ_ONLY, command
    made = asyncio.run(reading(VARIABLES, found.repositories, found.projects))
    if made is None:
        return False
    assert made.variables["npm_config_ignore_pnpmfile"] == "true" and "YARN_RC_FILENAME" not in made.variables
    return True


LOADING = [
    ("pnpm ls", "pnpm-workspace.yaml", 'configDependencies:\n  left-pad: "1.3.0+sha512-x"\n'),
    ("pnpm --version", "pnpm-workspace.yaml", '"config\\x44ependencies": {}\n'),
    ("pnpm audit", "pnpm-workspace.yaml", "ignorePnpmfile: false\n"),
    ("pnpm why x", "package.json", '{"pnpm": {"configDependencies": {}}}'),
    ("yarn why x", ".yarnrc.yml", "plugins:\n  - ./evil.cjs\n"),
    ("yarn --version", ".yarnrc.yml", "plugins: [./evil.cjs]\n"),
    ("yarn list", "package.json", '{"scripts": {"list": "touch x"}}'),
    ("yarn audit", "package.json", '{"scripts": {"\\u0061udit": "touch x"}}'),
]


@pytest.mark.parametrize(("command", "name", "text"), LOADING)
def test_ec_59_a_project_that_makes_its_package_client_run_something_leaves_no_reader(
    command: str, name: str, text: str, tmp_path: Path
) -> None:
    (below := tmp_path / "a" / "b").mkdir(parents=True)
    assert kept_a_reader(command, below)
    (tmp_path / name).write_text(text)
    assert not kept_a_reader(command, below) and not kept_a_reader(f"timeout 5 {command} | cat", below)
    assert not kept_a_reader(f"cd / && cd {below} && {command}", Path("/"))
    assert kept_a_reader("npm ls", below)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pnpm-workspace.yaml", "packages:\n  - 'packages/*'\n"),
        ("package.json", '{"scripts": {"build": "tsc"}, "packageManager": "pnpm@9.0.0"}'),
        (".yarnrc.yml", "nodeLinker: node-modules\nyarnPath: .yarn/releases/yarn.cjs\n"),
        (".pnpmfile.cjs", "module.exports = {}"),
    ],
)
def test_ec_30_in_an_ordinary_project_readers_of_package_clients_stay_readers(
    name: str, text: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    assert kept_a_reader("pnpm ls && yarn list && yarn info", tmp_path)


def test_ec_59_what_cannot_be_looked_at_is_not_taken_for_harmless_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "package.json")
    assert not kept_a_reader("yarn why x", tmp_path)
    (tmp_path / "package.json").unlink()
    (tmp_path / "package.json").write_text(" " * 1_048_577)
    assert not kept_a_reader("yarn why x", tmp_path)


@pytest.mark.parametrize("command", ["cd $x; pnpm ls", "cd $x && yarn why y", "uv pip list", "uv pip freeze"])
def test_ec_59_a_client_that_runs_nobody_knows_what_is_no_reader(command: str, tmp_path: Path) -> None:
    """The pip of uv runs the interpreter that stands in the project."""
    assert classify_shell(command, Place(tmp_path)).effect.effect_class is EffectClass.UNKNOWN
