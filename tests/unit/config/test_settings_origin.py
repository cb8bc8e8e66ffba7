"""Settings: precedence, origin, what a project may not set, and where things lie."""

from __future__ import annotations

import hashlib
import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from surefoot import config, settings_files
from surefoot.errors import ProviderCredentials, SettingsError
from surefoot.settings_files import untold
from surefoot.settings_table import EXAMPLE, LIMITS, SETTINGS, forbidden_in_project
from surefoot.surfaces.phrases import translated


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(settings_files, "MANAGED_FILE", tmp_path / "none" / "managed.toml")
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / ".git").mkdir(parents=True)
    (root / ".surefoot").mkdir()
    return root


def load(home: Path, project: Path, flags: dict[str, Any] | None = None, **environ: str) -> config.Settings:
    return config.load_settings(flags or {}, {"SUREFOOT_HOME": str(home), **environ}, project)


def test_ux_28_the_example_is_valid_as_it_stands(home: Path, project: Path) -> None:
    (home / "config.toml").write_text(EXAMPLE)
    settings = load(home, project)
    assert settings.warnings == ()
    assert str(settings.chosen()) == "deepseek/deepseek-chat"
    assert settings.endpoints["desk"].contract == "llamacpp/chat"
    assert settings.limits["stop_kill_seconds"] == 10
    assert settings.mcp_servers["github"]["tools"]["create_issue"]["class"] == "NON_IDEMPOTENT"


def set_level(level: str, home: Path, project: Path, rules: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Set one command at one level; a setting that a project may set too."""
    line = f'[mcp.servers.x]\ncommand = "{rules}"\n'
    if level == "user":
        (home / "config.toml").write_text(line)
    elif level == "project shared":
        (project / ".surefoot/config.toml").write_text(line)
    elif level == "project own":
        (project / ".surefoot/config.local.toml").write_text(line)
    elif level == "managed":
        (home / "managed.toml").write_text(line)
    elif level == "flags":
        return {"mcp.servers.x.command": rules}, {}
    return {}, {}


FILED = ("user", "project shared", "project own", "flags", "managed")


@pytest.mark.parametrize(("low", "high"), list(itertools.combinations(FILED, 2)))
def test_ux_22_of_two_levels_the_higher_one_holds_and_is_named(
    low: str, high: str, home: Path, project: Path
) -> None:
    flags: dict[str, Any] = {}
    for level in (low, high):
        more, _ = set_level(level, home, project, level)
        flags |= more
    config.set_trust(config.places({"SUREFOOT_HOME": str(home)}), project, trusted=True)
    settings = load(home, project, flags)
    assert settings.mcp_servers["x"]["command"] == high
    assert settings.origins["mcp.servers.x.command"].source == high


def test_ux_22_flag_beats_variable_beats_file_and_each_is_named(home: Path, project: Path) -> None:
    (home / "config.toml").write_text('[recovery]\non_unknown = "continue"\nbarrier = "session"\n')
    settings = load(home, project, {"recovery.barrier": "off"}, SUREFOOT_RECOVERY_ON_UNKNOWN="stop")
    assert (settings.recovery.on_unknown, settings.recovery.barrier) == ("stop", "off")
    assert str(settings.origins["recovery.on_unknown"]) == "environment (SUREFOOT_RECOVERY_ON_UNKNOWN)"
    assert settings.origins["recovery.barrier"].source == "flags"
    assert settings.origins["recovery.inspect_seconds"].source == "built in"


def test_ux_22_every_setting_without_a_star_has_one_variable(home: Path, project: Path) -> None:
    paths = [
        path
        for path, form in SETTINGS.items()
        if "*" not in path and path != "final" and form.kind != "hooks"
    ]
    variables = [config.variable_of(path) for path in paths]
    assert len(set(variables)) == len(variables)
    for path in paths:
        form = SETTINGS[path]
        value = {"switch": "off", "number": "7", "seconds": "7", "words": "a, b"}.get(form.kind, "text")
        value = str(form.ends[1]) if form.ends else value
        given = form.allowed[-1] if form.allowed else value
        settings = load(home, project, **{config.variable_of(path): given})
        assert settings.origins[path].source == "environment", path


def test_ux_22_the_short_name_of_the_barrier_is_accepted(home: Path, project: Path) -> None:
    assert load(home, project, SUREFOOT_BARRIER="session").recovery.barrier == "session"


def test_ux_22_a_managed_list_marked_final_is_the_whole_list(home: Path, project: Path) -> None:
    (home / "config.toml").write_text('[permissions]\nallow = ["Bash(*)"]\n')
    (home / "managed.toml").write_text('final = ["permissions.allow"]\n[permissions]\nallow = ["Read"]\n')
    assert load(home, project).permissions.allow == ("Read",)


def test_ux_39_rules_of_all_sources_are_joined(home: Path, project: Path) -> None:
    (home / "config.toml").write_text('[permissions]\ndeny = ["Bash(sudo *)"]\n')
    settings = load(home, project, {"permissions.deny": ["Read(.env)"]})
    assert settings.permissions.deny == ("Bash(sudo *)", "Read(.env)")


FORBIDDEN = {
    "model": '"a/b"',
    "language": '"en"',
    "packs.use": '["x"]',
    "permissions.mode": '"bypassPermissions"',
    "permissions.allow": '["Bash(rm *)"]',
    "endpoints.x.url": '"http://example.invalid"',
    "endpoints.x.hosted_tools": '["search"]',
    "endpoints.x.key_command": '["cat", "key"]',
    "mcp.servers.s.tools.t.class": '"READ_ONLY"',
    "mcp.servers.s.tools.t.reach": '["path:/a"]',
    "mcp.servers.s.tools.t.verifier": '"mcp"',
    **{
        path.replace("*", "pay"): str(form.ends[1]) if form.ends else {"switch": "true"}.get(
            form.kind, f'"{(form.allowed or ("",))[0]}"'
        )
        for path, form in SETTINGS.items() if path.startswith(("recovery.", "limits."))
    },
}  # fmt: skip


@pytest.mark.parametrize("path", sorted(FORBIDDEN))
def test_ux_24_a_project_can_never_set(path: str, home: Path, project: Path) -> None:
    before = load(home, project)
    table, _, key = path.rpartition(".")
    text = (f"[{table}]\n" if table else "") + f"{key} = {FORBIDDEN[path]}\n"
    (project / ".surefoot/config.toml").write_text("# a comment\n" + text)
    config.set_trust(before.places, project, trusted=True)
    settings = load(home, project)
    line = 3 if table else 2
    assert any(f"config.toml:{line}: {path}" in warning for warning in settings.warnings), settings.warnings
    assert settings.values.get(path) == before.values.get(path)


def test_ux_24_tighter_rules_of_a_project_are_accepted(home: Path, project: Path) -> None:
    (project / "surefoot.toml").write_text(
        '[permissions]\ndeny = ["Bash(git push *)"]\nask = ["Write"]\nallow = ["Read"]\n'
        '[mcp.servers.s.tools.t]\nclass = "UNKNOWN"\nreach = ["*"]\n'
    )
    config.set_trust(config.places({"SUREFOOT_HOME": str(home)}), project, trusted=True)
    settings = load(home, project)
    assert settings.warnings == ()
    assert settings.permissions == config.Permissions(
        allow=("Read",), ask=("Write",), deny=("Bash(git push *)",)
    )
    assert settings.mcp_servers["s"]["tools"]["t"]["class"] == "UNKNOWN"


def test_ux_24_the_table_of_forbidden_keys_names_no_unknown_setting() -> None:
    assert all(forbidden_in_project(f"limits.{name}", 1) for name in LIMITS)


def test_ux_23_an_untrusted_project_is_left_out_and_said_so(home: Path, project: Path) -> None:
    (project / ".surefoot/config.toml").write_text('[permissions]\ndeny = ["Read"]\n')
    settings = load(home, project)
    assert settings.permissions.deny == ()
    assert "not trusted" in settings.warnings[0]
    assert ".surefoot/config.toml" in settings.warnings[0]


def test_ux_23_trust_ends_when_what_can_be_executed_changes(home: Path, project: Path) -> None:
    where = config.places({"SUREFOOT_HOME": str(home)})
    (project / "surefoot.toml").write_text('[mcp.servers.s]\ncommand = "good"\n')
    config.set_trust(where, project, trusted=True)
    assert config.is_trusted(where, project)
    (project / "surefoot.toml").write_text(
        '[mcp.servers.s]\ncommand = "good"\n[permissions]\nask = ["Write"]\n'
    )
    assert config.is_trusted(where, project)
    (project / "surefoot.toml").write_text('[mcp.servers.s]\ncommand = "evil"\n')
    assert not config.is_trusted(where, project)
    config.set_trust(where, project, trusted=True)
    (project / ".mcp.json").write_text('{"mcpServers": {}}')
    assert not config.is_trusted(where, project)
    config.set_trust(where, project, trusted=False)
    assert not config.is_trusted(where, project)


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ('[recovery]\n\nbarrier = "strong"\n', 3, "one of session, reach, action, advise, off"),
        ("[limits]\npending_questions = 0\n", 2, "a whole number from 1 to 1 000"),
        ("[limits]\nlease_seconds = inf\n", 2, "a number from 1 to 3 600"),
        ("recovery.inspect_on_resume = 1\n", 1, "true or false"),
        ("[permissions]\nallow = 'Read'\n", 2, "a list of texts"),
        ("recovery = 3\n", 1, "must be a table"),
        ("a = = 2\n", 1, "not valid TOML"),
    ],
)
def test_ux_25_a_wrong_value_names_file_line_and_what_is_allowed(
    text: str, line: int, told: str, home: Path, project: Path
) -> None:
    (home / "config.toml").write_text(text)
    with pytest.raises(SettingsError) as caught:
        load(home, project)
    assert f"config.toml:{line}" in caught.value.message
    assert told in caught.value.message


def test_ux_25_an_unknown_key_is_a_warning_with_the_nearest_name(home: Path, project: Path) -> None:
    (home / "config.toml").write_text('[recovery]\nbarier = "reach"\n')
    warning = load(home, project).warnings[0]
    assert "config.toml:2" in warning and "did you mean recovery.barrier" in warning


def test_ux_26_a_key_in_a_file_is_never_repeated(home: Path, project: Path) -> None:
    (home / "config.toml").write_text('[endpoints.a]\nurl = "http://x"\nkey = "sk-secret-123"\n')
    settings = load(home, project)
    assert "sk-secret-123" not in repr(settings)
    assert "endpoints.a.key" in settings.warnings[0]


def test_ux_26_a_missing_key_names_its_variable_and_no_error_repeats_a_key() -> None:
    with pytest.raises(ProviderCredentials, match="SOME_KEY"):
        config.read_key(config.Endpoint("a", key_env="SOME_KEY"), {})
    failing = config.Endpoint("a", key_command=("sh", "-c", "echo sk-secret; exit 3"))
    with pytest.raises(ProviderCredentials) as caught:
        config.read_key(failing, {})
    assert "sk-secret" not in caught.value.message
    assert config.read_key(config.Endpoint("a", key_command=("echo", "k")), {}) == "k"
    assert config.read_key(config.Endpoint("a"), {}) is None


def test_ux_141_a_vendors_variable_alone_makes_an_endpoint(home: Path, project: Path) -> None:
    assert load(home, project, OPENAI_API_KEY="x").chosen().endpoint.name == "openai"
    assert load(home, project, DEEPSEEK_API_KEY="x").chosen().endpoint.contract == "deepseek/chat"
    claude = load(home, project, ANTHROPIC_API_KEY="x", ANTHROPIC_BASE_URL="http://127.0.0.1:9/").chosen()
    assert (claude.endpoint.wire, claude.endpoint.url) == ("anthropic", "http://127.0.0.1:9/v1")
    local = load(home, project, {"model": "local/smollm2"}).chosen()
    assert (local.endpoint.embedded, local.model) == (True, "smollm2")
    assert set(local.endpoint.tools) == {"read", "list", "glob", "grep", "write", "edit", "shell"}
    assert claude.endpoint.tools == ()
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        load(home, project).chosen()
    with pytest.raises(SettingsError, match="No endpoint is named 'nope'"):
        load(home, project, {"model": "nope/x"}).chosen()


def test_ux_21_one_variable_moves_every_place(tmp_path: Path) -> None:
    moved = config.places({"SUREFOOT_HOME": str(tmp_path)})
    for place in (moved.settings_file, moved.state_folder, moved.cache, moved.runtime, moved.ledgers):
        assert place.is_relative_to(tmp_path)


def test_ux_21_places_follow_the_desktop_rules_and_nothing_is_made(tmp_path: Path) -> None:
    where = config.places(
        {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "s"), "XDG_CACHE_HOME": "rel"}
    )
    assert where.settings_file == tmp_path / ".config/surefoot/config.toml"
    assert where.ledgers == tmp_path / "s/surefoot/ledgers"
    assert where.cache == tmp_path / ".cache/surefoot"
    assert where.runtime == tmp_path / "s/surefoot/run"
    assert config.places({"HOME": "/h", "XDG_RUNTIME_DIR": "/run/u"}).runtime == Path("/run/u/surefoot")
    assert list(tmp_path.iterdir()) == []


def test_ux_164_a_project_is_named_by_its_root_and_the_digest_of_its_real_path(project: Path) -> None:
    inner = project / "a/b"
    inner.mkdir(parents=True)
    link = project.parent / "link"
    link.symlink_to(project)
    digest = hashlib.sha256(os.fsencode(os.path.realpath(project))).hexdigest()[:12]
    assert config.project_name(inner) == f"work-{digest}"
    assert config.project_name(link / "a") == f"work-{digest}"


def test_ux_45_instructions_are_joined_root_first_under_their_paths(home: Path, project: Path) -> None:
    inner = project / "a"
    inner.mkdir()
    (project / "CLAUDE.md").write_text("at the root")
    (inner / "AGENTS.md").write_text("nearest")
    (inner / "GEMINI.md").write_text("not read")
    (home / "AGENTS.md").write_text("mine")
    found = config.read_instructions(inner, config.places({"SUREFOOT_HOME": str(home)}))
    order = [found.text.index(word) for word in ("mine", "at the root", "nearest")]
    assert order == sorted(order)
    assert str(inner / "AGENTS.md") in found.text
    assert "not read" not in found.text
    assert len(found.digests) == 3


def test_ux_45_instructions_are_cut_at_64_kib_between_letters(home: Path, project: Path) -> None:
    (project / "AGENTS.md").write_text("é" * 40_000)
    found = config.read_instructions(project, config.places({"SUREFOOT_HOME": str(home)}))
    assert found.cut and len(found.text.encode()) <= 64 * 1024
    (told,) = untold(found)
    assert "more than 64 KiB" in told and translated(told, "zh-Hans") != told


def test_ux_45_a_device_or_a_pipe_in_the_place_of_instructions_is_not_read(home: Path, project: Path) -> None:
    (project / "AGENTS.md").symlink_to("/dev/zero")
    os.mkfifo(project / "CLAUDE.md")
    (project / "GEMINI.md").write_text("plain")
    found = config.read_instructions(project, config.places({"SUREFOOT_HOME": str(home)}))
    assert list(found.digests) == [str(project / "GEMINI.md")] and "plain" in found.text


def test_ux_23_ux_45_instructions_that_lead_out_of_a_project_are_read_in_a_trusted_one_only(
    home: Path, project: Path
) -> None:
    where = config.places({"SUREFOOT_HOME": str(home)})
    secret = project.parent / "secret"
    secret.write_text("outside")
    (project / "AGENTS.md").symlink_to(secret)
    found = config.read_instructions(project, where)
    assert found.text == "" and found.digests == {} and found.left_out == (str(project / "AGENTS.md"),)
    (told,) = untold(found)
    assert str(project / "AGENTS.md") in told and translated(told, "zh-Hant") != told
    (project / "CLAUDE.md").write_text("inside")
    (project / "AGENTS.md").unlink()
    (project / "AGENTS.md").symlink_to(project / "CLAUDE.md")
    assert "inside" in config.read_instructions(project, where).text
    (project / "AGENTS.md").unlink()
    (project / "AGENTS.md").symlink_to(secret)
    config.set_trust(where, project, trusted=True)
    assert "outside" in config.read_instructions(project, where).text
    (home / "AGENTS.md").symlink_to(secret)
    assert config.read_instructions(project.parent, where).left_out == ()
