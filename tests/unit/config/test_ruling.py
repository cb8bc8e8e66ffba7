"""`config check --explain`: which rule decides a call, and where it is written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from surefoot import config as settings_room
from surefoot import settings_files
from surefoot.config import load_settings
from surefoot.errors import SettingsError
from surefoot.ruling import Ruling, ruling
from surefoot.surfaces.cli.configs import config

USER = """\
[permissions]
allow = [
  "Bash(git *)",   # my own
  'Edit',
]
ask = ["Bash(git commit *)"]
deny = ["Bash(git push *)", "Read(**/.env)"]
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("SUREFOOT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(settings_files, "MANAGED_FILE", tmp_path / "none.toml")
    monkeypatch.setenv("SUREFOOT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SUREFOOT_LANGUAGE", "en")
    (tmp_path / "work/.git").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "home/config.toml").write_text(USER)
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


def ruled(call: str, *, trust: bool = False, flags: dict[str, Any] | None = None) -> Ruling:
    settings = load_settings(flags or {}, os.environ, Path.cwd(), trust=trust)
    return ruling(settings, call, directory=Path.cwd(), environ=os.environ)


@pytest.mark.parametrize(
    ("call", "verdict", "rule", "line"),
    [
        ("Bash(git push -f)", "deny", "Bash(git push *)", 7),
        ("Bash(git status && git push)", "deny", "Bash(git push *)", 7),
        ("Bash(git commit -m x)", "ask", "Bash(git commit *)", 6),
        ("Bash(git status)", "allow", "Bash(git *)", 3),
        ("Read(.env)", "deny", "Read(**/.env)", 7),
        ("Edit(a.txt)", "allow", "Edit", 4),
        ("edit(a.txt)", "allow", "Edit", 4),
        ("Bash(rm -rf x)", "ask", None, None),
        ("Write(a.txt)", "ask", None, None),
        ("mcp__github__create_issue", "ask", None, None),
    ],
)
def test_ux_44_the_rule_that_decides_is_named_with_its_line(
    call: str, verdict: str, rule: str | None, line: int | None, home: Path
) -> None:
    found = ruled(call)
    assert (found.verdict, found.rule) == (verdict, rule)
    assert found.written == (() if line is None else (f"{home}/config.toml:{line}",))
    assert found.kind == (verdict if rule else None)


def test_ux_44_every_place_that_has_the_rule_is_named_the_weightiest_first(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (Path.cwd() / "surefoot.toml").write_text('[permissions]\n\ndeny = ["Bash(git push *)"]\n')
    (home / "managed.toml").write_text('[permissions]\ndeny = ["Bash(git push *)"]\n')
    monkeypatch.setenv(settings_room.variable_of("permissions.deny"), "Bash(git push *)")
    places = (f"{home}/managed.toml:2", "SUREFOOT_PERMISSIONS_DENY")
    assert ruled("Bash(git push -f)").written == (*places, f"{home}/config.toml:7")
    shared = f"{Path.cwd()}/surefoot.toml:3"
    assert ruled("Bash(git push -f)", trust=True).written == (*places, shared, f"{home}/config.toml:7")


@pytest.mark.parametrize(
    ("mode", "verdict"), [("dontAsk", "deny"), ("plan", "deny"), ("bypassPermissions", "allow")]
)
def test_ux_44_where_no_rule_decides_the_mode_and_its_origin_are_named(
    mode: str, verdict: str, home: Path
) -> None:
    (home / "config.toml").write_text(f'[permissions]\nmode = "{mode}"\n')
    found = ruled("Bash(rm -rf x)")
    assert (found.verdict, found.rule, found.mode) == (verdict, None, mode)
    told = CliRunner().invoke(config, ["check", "--explain", "Bash(rm -rf x)"], catch_exceptions=False).stdout
    assert f"no rule decides; mode {mode}: user ({home}/config.toml:2)" in told


def test_ux_44_the_command_says_it_in_words_and_as_json_and_runs_nothing(home: Path) -> None:
    def explained(*more: str) -> str:
        given = ["check", "--explain", "Bash(git push -f; touch ran)", *more]
        return CliRunner().invoke(config, given, catch_exceptions=False).stdout

    assert explained().splitlines() == [
        "denied: the rule 'Bash(git push *)' denies it",
        "rule Bash(git push *) in permissions.deny",
        f"written in {home}/config.toml:7",
        "tool shell, class NON_IDEMPOTENT, reach *",
    ]
    document = json.loads(explained("--json"))
    assert (document["verdict"], document["list"], document["written"]) == (
        "deny",
        "deny",
        [f"{home}/config.toml:7"],
    )
    assert [entry.name for entry in Path.cwd().iterdir()] == [".git"]
    with pytest.raises(SettingsError, match="cannot be read"):
        ruled("Bash((")


def test_ux_44_the_call_is_classified_as_a_session_would_through_links_too(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    Path("link").symlink_to(tmp_path / "elsewhere")
    assert ruled("Bash(touch link/a)").effect.reach == (f"path:{(tmp_path / 'elsewhere').resolve()}/a",)
