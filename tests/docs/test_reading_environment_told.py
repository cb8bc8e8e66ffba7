"""What the documentation and the command say of the reading environment is what a reader runs in."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from surefoot.surfaces.cli.extras import reading_lines, tools
from surefoot.surfaces.words import LANGUAGES
from surefoot.surfaces.words_tools import READING_NOTES, READING_ROWS
from surefoot.tools.classify.environment import environment_rows, insertions, reading_environment

PAGE = Path(__file__).parents[2] / "docs/reference/effect-classes.md"


def test_ux_159_the_page_has_the_table_that_readers_run_in() -> None:
    section = PAGE.read_text(encoding="utf-8").split("## The reading environment\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\w.*) \| `(.*)` \|$", section, re.MULTILINE)
    assert rows == [(READING_ROWS[key][0], told) for key, told in environment_rows()]
    for texts in READING_NOTES.values():
        assert texts[0] in section


def test_ux_159_every_row_is_what_is_applied() -> None:
    told = dict(environment_rows())
    dropped = [name for name in told["dropped"].split(", ") if "*" not in name]
    made = reading_environment({**dict.fromkeys(dropped, "trap"), "PATH": "bin:.:"}, ["filter.x.clean"])
    assert made is not None
    assert told["path"] == f"PATH={made.variables['PATH']}"
    assert "trap" not in made.variables.values()
    for pair in told["set"].split(", "):
        name, _, value = pair.partition("=")
        assert made.variables[name] == value
    settings = {
        made.variables[f"GIT_CONFIG_KEY_{n}"]: made.variables[f"GIT_CONFIG_VALUE_{n}"]
        for n in range(int(made.variables["GIT_CONFIG_COUNT"]))
    }
    for pair in told["git_settings"].split(", "):
        name, _, value = pair.partition("=")
        assert settings[name] == value
    assert "filter.*.{clean=" in told["git_named"] and settings["filter.x.clean"] == ""
    assert told["shell"].split()[1:] == list(made.shell_options)
    for line in told["git_options"].split(", "):
        git, verb, options = line.split(" ", 2)
        assert insertions([git, verb], [3, 4 + len(verb)]) == [(4 + len(verb), options)]
    assert reading_environment({}, ["remote.any.vcs"]) is None and told["git_refused"] == "remote.*.vcs"
    for fact in ("sqlite3 -readonly", f"PGOPTIONS={made.variables['PGOPTIONS']}"):
        assert fact in told["databases"]


def test_ux_159_the_command_shows_it_for_the_tool_that_runs_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUREFOOT_HOME", str(tmp_path))
    monkeypatch.setenv("SUREFOOT_LANGUAGE", "en")
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(tools, ["Bash"], catch_exceptions=False).stdout
    assert told.endswith("\n".join(reading_lines("en")) + "\n")
    assert "Reading environment" not in CliRunner().invoke(tools, ["write"], catch_exceptions=False).stdout
    (row,) = json.loads(CliRunner().invoke(tools, ["shell", "--json"], catch_exceptions=False).stdout)
    assert row["reading_environment"] == dict(environment_rows())
    for language in LANGUAGES:
        assert len(reading_lines(language)) == len(environment_rows()) + 3
