"""Every bound is a setting that can be moved, is listed with its unit, and is never lifted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from surefoot import config, settings_files
from surefoot.config import load_settings, variable_of
from surefoot.errors import SettingsError
from surefoot.settings_table import LIMITS
from surefoot.surfaces.cli.configs import config as command
from surefoot.surfaces.cli.configs import schema_of_settings

KIB, MIB = 1 << 10, 1 << 20
BOUNDS: dict[str, tuple[float, str]] = {
    "limits.arguments_bytes": (MIB, "bytes"),
    "limits.arguments_depth": (64, "levels"),
    "limits.classifier_bytes": (64 * KIB, "bytes"),
    "limits.classifier_nodes": (20_000, "nodes"),
    "limits.inline_result_bytes": (MIB, "bytes"),
    "limits.blob_bytes": (256 * MIB, "bytes"),
    "limits.hand_off_calls": (24, "calls"),
    "limits.hand_off_files": (8, "files per call"),
    "limits.hand_off_value_characters": (240, "characters"),
    "limits.hand_off_bytes": (16 * KIB, "bytes"),
    "limits.action_body_bytes": (16 * KIB, "bytes"),
    "limits.error_text_bytes": (4 * KIB, "bytes"),
    "limits.snapshot_bytes": (2 * MIB, "bytes"),
    "limits.snapshot_calls": (200, "calls"),
    "limits.snapshot_resolved": (50, "calls"),
    "limits.inspect_action_seconds": (30, "s"),
    "limits.inspect_resume_seconds": (15, "s"),
    "limits.evidence_bytes": (8 * KIB, "bytes"),
    "limits.summary_characters": (500, "characters"),
    "limits.note_characters": (500, "characters"),
    "limits.report_bytes": (2 * KIB, "bytes"),
    "limits.reports_per_call": (20, "reports"),
    "limits.stop_term_seconds": (1, "s"),
    "limits.stop_kill_seconds": (10, "s"),
    "limits.stop_kill_check_seconds": (1, "s"),
    "limits.session_free_seconds": (2, "s"),
    "limits.abort_wait_ms": (250, "ms"),
    "limits.lease_seconds": (30, "s"),
    "limits.lease_renewal_seconds": (10, "s"),
    "limits.lease_extension_seconds": (600, "s"),
    "limits.ladder_retries_per_call": (7, "retries"),
    "limits.ladder_retries_per_turn": (7, "retries"),
    "limits.owner_deaths": (3, "deaths"),
    "limits.owner_deaths_seconds": (600, "s"),
    "limits.resume_retry_age_seconds": (120, "s"),
    "limits.process_log_bytes": (64 * MIB, "bytes"),
    "limits.background_probe_seconds": (2, "s"),
    "limits.pending_questions": (16, "questions"),
    "limits.bulk_items": (100, "items"),
    "limits.digest_file_bytes": (64 * MIB, "bytes"),
    "limits.gate_wait_seconds": (5, "s"),
    "limits.turn_resumes": (3, "resumes"),
    "limits.log_wait_ms": (200, "ms"),
    "limits.free_bytes": (8 * MIB, "bytes"),
    "limits.ballast_bytes": (2 * MIB, "bytes"),
    "limits.blob_age_hours": (24, "h"),
    "recovery.inspect_seconds": (10, "s"),
    "recovery.crash_attempts": (2, "tries"),
    "recovery.max_requests_per_step": (6, "requests"),
}
"""The bounds that the specification marks as defaults, each with its value and unit."""
LIFTING: tuple[Any, ...] = (0, -1, 1 << 62, float("inf"), float("nan"), "none", "unlimited", False, [])
"""Values by which somebody would try to have no bound at all."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("SUREFOOT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(settings_files, "MANAGED_FILE", tmp_path / "none.toml")
    monkeypatch.setenv("SUREFOOT_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


def load(home: Path, **environ: str) -> config.Settings:
    return load_settings({}, {"SUREFOOT_HOME": str(home), **environ}, Path.cwd())


def test_ux_166_there_is_no_bound_that_the_table_does_not_name() -> None:
    assert {f"limits.{name}" for name in LIMITS} == {name for name in BOUNDS if name.startswith("limits.")}


def test_ux_166_every_bound_is_listed_with_value_unit_default_and_origin(home: Path) -> None:
    (home / "config.toml").write_text("[limits]\npending_questions = 5\n")
    told = CliRunner().invoke(command, ["show", "--origin"], catch_exceptions=False).stdout.splitlines()
    as_json = json.loads(CliRunner().invoke(command, ["show", "--json"], catch_exceptions=False).stdout)
    for name, (default, unit) in BOUNDS.items():
        value = 5 if name == "limits.pending_questions" else default
        origin = f"user ({home}/config.toml:2)" if value != default else "built in"
        (line,) = (line for line in told if line.split()[0] == name)
        assert line.split() == [name, str(value), *unit.split(), str(default), *origin.split()]
        assert as_json[name] == {"value": value, "unit": unit, "default": default, "origin": origin}


@pytest.mark.parametrize("name", BOUNDS)
def test_ux_166_a_bound_can_be_moved_by_file_and_variable_and_never_lifted(name: str, home: Path) -> None:
    table, _, key = name.rpartition(".")
    unit = BOUNDS[name][1]
    moved = 11 if unit == "s" and name != "limits.lease_renewal_seconds" else 12
    moved = 2048 if unit == "bytes" else moved
    (home / "config.toml").write_text(f"[{table}]\n{key} = {moved}\n")
    assert {path: value for path, value, _ in load(home).rows()}[name] == moved
    for lifting in LIFTING:
        written = {True: "true", False: "false"}.get(lifting) if isinstance(lifting, bool) else None
        written = written or (json.dumps(lifting) if not isinstance(lifting, float) else str(lifting))
        (home / "config.toml").write_text(f"[{table}]\n{key} = {written}\n")
        with pytest.raises(SettingsError, match=rf"config\.toml:2: {name} must be .* from .* not lifted"):
            load(home)
    (home / "config.toml").unlink()
    for text in ("0", "-1", "inf", "nan", "none", "", "1e30", "false"):
        with pytest.raises(SettingsError, match=f"{variable_of(name)}: {name} must be .* not lifted"):
            load(home, **{variable_of(name): text})


def test_ux_166_what_would_lift_a_bound_is_not_written_and_the_schema_says_the_ends(home: Path) -> None:
    told = CliRunner().invoke(command, ["set", "limits.pending_questions", "1000000"])
    assert "from 1 to 1 000; this bound can be moved and not lifted" in str(told.exception)
    assert not (home / "config.toml").exists()
    ends = schema_of_settings()["properties"]
    for name in BOUNDS:
        table, _, key = name.partition(".")
        row = ends[table]["properties"][key]
        assert row["minimum"] <= row["default"] <= row["maximum"], name
