"""Which language a mistake and help are told in, before any settings are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot import settings_files
from surefoot.surfaces.cli import tongue


@pytest.fixture(autouse=True)
def managed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "etc.toml"
    monkeypatch.setattr(tongue, "MANAGED_FILE", file)
    monkeypatch.setattr(settings_files, "MANAGED_FILE", file)
    return file


def test_ux_11_managed_beats_variable_beats_file_beats_locale(tmp_path: Path, managed: Path) -> None:
    environ = {"SUREFOOT_HOME": str(tmp_path)}
    assert tongue.language_here(environ) == "en"
    environ["LANG"] = "zh_TW.UTF-8"
    assert tongue.language_here(environ) == "zh-Hant"
    (tmp_path / "config.toml").write_text("# mine\n language='zh-Hans' # so\n")
    assert tongue.language_here(environ) == "zh-Hans"
    environ["SUREFOOT_LANGUAGE"] = "zh-Hant"
    assert tongue.language_here(environ) == "zh-Hant"
    managed.write_text('language = "en"\n')
    assert tongue.language_here(environ) == "en"


@pytest.mark.parametrize(
    "text", ['[endpoints.a]\nlanguage = "zh-Hans"\n', 'language = "auto"\n', "language = 3\n", "\xff"]
)
def test_ux_11_what_names_no_language_leaves_the_choice_to_the_locale(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.toml").write_text(text, encoding="latin-1")
    assert tongue.language_here({"SUREFOOT_HOME": str(tmp_path), "LC_ALL": "zh_TW"}) == "zh-Hant"


@pytest.mark.parametrize(
    "environ", [{"SUREFOOT_HOME": "~/sf"}, {"XDG_CONFIG_HOME": "/a/b"}, {"XDG_CONFIG_HOME": "relative"}, {}]
)
def test_ux_21_the_file_that_is_looked_into_is_that_of_the_settings(environ: dict[str, str]) -> None:
    known = settings_files.places(environ)
    managed, user = tongue._files(environ)
    assert user == known.settings_file and managed == known.managed_files
