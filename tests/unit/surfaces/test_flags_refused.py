"""Flags that mean nothing where they stand are refused before anything is opened or sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.core.canonical import is_id
from surefoot.surfaces.cli import entry
from surefoot.surfaces.cli.run_inputs import session_of

UUID = "01939A2E-7c41-7b7e-9d2f-0a1b2c3d4e5f"
FAR = '{"properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}}'


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("hello there", "--no-session-persistence"), "add -p"),
        (("hello there", "--json-schema", "{}"), "add -p"),
        (("-p", "x", "--session-id", "mine"), "must be a UUID"),
        (("-p", "x", "-c", "--session-id", UUID), "names a new session"),
        (("-p", "x", "-c", "--no-session-persistence"), "keeps no session"),
        (("-p", "x", "--input-format", "stream-json"), "needs --output-format stream-json"),
        (("-p", "x", "--add-dir", "nowhere"), "is no folder"),
        (("-p", "x", "--json-schema", '{"type": 3}'), "no valid JSON schema at type"),
        (("-p", "x", "--json-schema", "{"), "is not valid JSON"),
        (("-p", "x", "--json-schema", FAR), "only lead into the schema"),
    ],
)
def test_ux_15_what_belongs_to_another_kind_of_run_is_refused(
    arguments: tuple[str, ...],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUREFOOT_HOME", str(tmp_path / "sf"))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert entry.run(arguments) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "sf").exists()


def test_ux_15_a_uuid_is_the_session_with_the_same_bits() -> None:
    found = session_of(UUID)
    assert is_id(found, "ses") and session_of(UUID.lower()) == found
    assert session_of("f" * 8 + "-ffff-ffff-ffff-" + "f" * 12) == "ses_7" + "z" * 25
    assert session_of("ses_ab12") == "ses_ab12" and session_of("my session") == "my session"
