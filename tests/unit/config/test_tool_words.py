"""EC-8: a word of the owner about a tool, a project's that can only tighten, and the forms of hooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from surefoot import settings_files
from surefoot.config import Settings, load_settings
from surefoot.core.effects import Effect
from surefoot.core.model import EffectClass
from surefoot.errors import SettingsError
from surefoot.offering import judged, tool_findings, tool_table
from surefoot.runtime.tools import Place, Tool, classify
from surefoot.settings_hooks import hooks_problem

WRITES = Effect(EffectClass.NON_IDEMPOTENT, ("host:h",))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(settings_files, "MANAGED_FILE", tmp_path / "none" / "managed.toml")
    (tmp_path / "work" / ".surefoot").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def load(home: Path, own: str, project: str = "") -> Settings:
    (home / "config.toml").write_text(own)
    work = home.parent / "work"
    (work / ".surefoot/config.toml").write_text(project)
    return load_settings({}, {"SUREFOOT_HOME": str(home)}, work, trust=True)


def effect(settings: Settings, name: str = "send", declared: Effect = WRITES) -> Effect:
    async def body(attempt: Any, arguments: Any) -> str:
        return ""

    (tool,) = judged([Tool(name, "Send.", {"type": "object"}, body=body, effect=declared)], settings)
    return classify(tool, {"id": "7"}, Place(Path("/w")))


LOOSE = '[tools.send]\nclass = "IDEMPOTENT_WRITE"\nreach = ["host:{id}.h"]\nreason = "it drops repeats"\n'


def test_ec_8_the_owners_word_loosens_one_tool_and_no_other(home: Path) -> None:
    settings = load(home, LOOSE)
    found = effect(settings)
    assert (found.effect_class, found.reach) == (EffectClass.IDEMPOTENT_WRITE, ("host:7.h",))
    assert effect(settings, "other") == WRITES


def test_ec_8_a_loosening_is_listed_with_its_reason(home: Path) -> None:
    settings = load(home, '[tools.todo]\nclass = "READ_ONLY"\nreason = "only this session\'s list"\n')
    (row,) = [row for row in tool_table(settings, directory=home) if row["name"] == "todo"]
    assert row["class"] == "READ_ONLY" and "only this session's list" in row["reason"]
    assert settings.origins["tools.todo.reason"].where.endswith("config.toml:3")


def test_ec_8_a_word_without_its_reason_or_class_is_refused_with_its_place(home: Path) -> None:
    with pytest.raises(SettingsError, match=r"config\.toml:2: tools\.send\.class needs tools\.send\.reason"):
        load(home, '[tools.send]\nclass = "READ_ONLY"\n')
    with pytest.raises(SettingsError, match=r"config\.toml:2: tools\.send\.reach needs tools\.send\.class"):
        load(home, '[tools.send]\nreach = ["host:h"]\n')


@pytest.mark.parametrize("kind", ["READ_ONLY", "IDEMPOTENT_WRITE"])
def test_ec_8_a_projects_file_cannot_loosen(home: Path, kind: str) -> None:
    settings = load(home, "", f'[tools.send]\nclass = "{kind}"\n')
    assert effect(settings) == WRITES
    assert any("tighten" in warning for warning in settings.warnings)


def test_ec_8_a_projects_file_cannot_give_a_reason_or_narrow_a_reach(home: Path) -> None:
    settings = load(home, LOOSE, '[tools.send]\nreason = "trust me"\nreach = ["host:x"]\n')
    assert effect(settings).reach == ("host:7.h",)
    assert len(settings.warnings) == 2


def test_ec_8_a_projects_file_can_tighten_what_the_owner_loosened(home: Path) -> None:
    settings = load(home, LOOSE, '[tools.send]\nclass = "UNKNOWN"\nreach = ["*"]\n')
    found = effect(settings)
    assert (found.effect_class, found.reach) == (EffectClass.UNKNOWN, ("*",))


def test_ec_8_a_projects_class_that_is_laxer_than_the_owners_changes_nothing(home: Path) -> None:
    strict = '[tools.send]\nclass = "UNKNOWN"\nreason = "nobody knows it"\n'
    settings = load(home, strict, '[tools.send]\nclass = "NON_IDEMPOTENT"\n')
    assert effect(settings).effect_class is EffectClass.UNKNOWN


def test_ec_54_a_word_about_a_tool_that_does_not_exist_is_a_finding(home: Path) -> None:
    settings = load(home, LOOSE)
    (finding,) = tool_findings(settings, directory=home)
    assert (finding["code"], finding["subject"]) == ("entry_without_tool", "send")


def test_ec_18_what_a_service_can_do_is_never_said_by_a_project(home: Path) -> None:
    project = '[tools.http]\noffered = true\n[tools.http.services.x]\nhost = "h"\nkey_lifetime_seconds = 9\n'
    settings = load(home, "", project)
    assert not settings.http_services and len(settings.warnings) == 3
    assert "http" not in [row["name"] for row in tool_table(settings, directory=home)]


def test_the_push_window_and_the_limit_of_commands_reach_the_shell_tool(home: Path) -> None:
    settings = load(home, "[tools.shell]\npush_window_seconds = 30\n")
    assert settings.values["tools.shell.push_window_seconds"] == 30
    with pytest.raises(SettingsError, match="one of stop, keep"):
        load(home, '[tools.shell]\nat_deadline = "wait"\n')


# Hooks ----------------------------------------------------------------------------------------


def test_tr_25_hooks_of_several_files_add_up_and_both_known_forms_are_read(home: Path) -> None:
    settings = load(
        home,
        '[[hooks.PreToolUse]]\nmatcher = "Bash"\nhooks = [{ type = "command", command = "a", timeout = 5 },'
        ' { command = "b" }]\n',
        '[[hooks.PreToolUse]]\ncommand = "c"\n',
    )
    assert [hook.command for hook in settings.hooks] == ["a", "b", "c"]
    assert [hook.timeout_seconds for hook in settings.hooks] == [5, 60, 60]
    assert [hook.matches("Bash", "shell") for hook in settings.hooks] == [True] * 3
    assert [hook.matches("Edit") for hook in settings.hooks] == [False, False, True]
    rows = [row for row in tool_table(settings, directory=home) if row["name"].startswith("PreToolUse")]
    assert [row["description"] for row in rows] == ["a", "b", "c"]
    assert rows[0]["reach"] == ["call", "repo:."]


def test_ec_8_a_projects_hook_cannot_say_what_it_does(home: Path) -> None:
    settings = load(home, "", '[[hooks.PreToolUse]]\ncommand = "c"\nclass = "READ_ONLY"\n')
    assert settings.hooks == () and "hooks.PreToolUse was ignored" in settings.warnings[0]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('hooks.PreToolUse = "x"', "list of tables"),
        ('[[hooks.PreToolUse]]\nmatcher = "Bash"', "of number 1, `command` must be text"),
        ('[[hooks.PreToolUse]]\ncommand = "c"\nmatcher = "("', "`matcher` must be a regular expression"),
        (
            '[[hooks.PreToolUse]]\ncommand = "c"\ntimeout_seconds = 0',
            "`timeout_seconds` must be a number of seconds",
        ),
        ('[[hooks.PreToolUse]]\ncommand = "c"\nclass = "SAFE"', "`class` must be one of READ_ONLY"),
        ('[[hooks.PreToolUse]]\ncommand = "c"\nreach = ["*"]', "`reach` needs a `class`"),
        ('[[hooks.PreToolUse]]\ncommand = "c"\nwhen = "now"', "`when` is no key"),
        ('[[hooks.PreToolUse]]\ncommand = "c"\ntype = "prompt"', "`type` must be command"),
        ("[[hooks.PreToolUse]]\nhooks = 3", "`hooks` of number 1"),
    ],
)
def test_tr_25_a_bad_hook_is_one_sentence_that_names_file_line_and_key(
    home: Path, line: str, words: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        load(home, line + "\n")
    assert words in refused.value.message
    assert "config.toml:1: hooks.PreToolUse must be" in refused.value.message


def test_tr_25_an_event_nobody_knows_is_a_warning_with_the_nearest_name(home: Path) -> None:
    settings = load(home, '[[hooks.PreToolUser]]\ncommand = "c"\n')
    assert "did you mean hooks.PreToolUse?" in settings.warnings[0]
    assert hooks_problem([]) is None
