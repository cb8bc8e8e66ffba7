"""UX-25: names in a settings file that mean nothing are told, and a byte order mark is no fault of a file."""

from __future__ import annotations

import codecs
import shutil
from importlib import resources
from pathlib import Path

import pytest
from click.testing import CliRunner

from surefoot import settings_files
from surefoot.config import Settings, load_settings
from surefoot.offering import unmatched
from surefoot.providers import contracts
from surefoot.settings_files import read_settings
from surefoot.surfaces.cli.configs import config
from surefoot.surfaces.cli.tongue import language_here
from surefoot.tools.packs.reading import read_pack_file

ENDPOINT = '[endpoints.w]\nurl = "http://127.0.0.1:9/v1"\nmodel = "m"\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(settings_files, "MANAGED_FILE", tmp_path / "none" / "managed.toml")
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("SUREFOOT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SUREFOOT_LANGUAGE", raising=False)
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


def load(home: Path, own: str) -> Settings:
    (home / "config.toml").write_text(own)
    return load_settings({}, {"SUREFOOT_HOME": str(home)}, home.parent / "work")


def test_ux_25_a_tool_that_an_endpoint_names_and_nobody_has_is_told_with_its_line(home: Path) -> None:
    settings = load(home, ENDPOINT + 'tools = ["read", "Bash", "mcp__a__b", "rad", "nope"]\n')
    told = unmatched(settings, directory=home.parent / "work")
    place = f"endpoints.w.tools ({home / 'config.toml'}:4)"
    assert told == [
        f"{place} names 'rad', which is no tool; did you mean read?",
        f"{place} names 'nope', which is no tool; see surefoot tools",
    ]
    assert unmatched(load(home, ENDPOINT), directory=home.parent / "work") == []


def test_ux_25_a_byte_order_mark_is_no_fault_of_a_settings_file(home: Path) -> None:
    file = home / "config.toml"
    file.write_bytes(codecs.BOM_UTF8 + b'language = "zh-Hans"\n' + ENDPOINT.encode())
    assert next((one.path, one.line) for one in read_settings(file)) == ("language", 1)
    assert language_here() == "zh-Hans"
    done = CliRunner().invoke(config, ["set", "language", "zh-Hant"])
    assert done.exit_code == 0, done.output
    assert file.read_text() == 'language = "zh-Hant"\n' + ENDPOINT


def test_wc_1_a_byte_order_mark_is_no_fault_of_a_contract_or_a_pack(home: Path) -> None:
    made = home / "acme.toml"
    made.write_bytes(codecs.BOM_UTF8 + b'[contract]\nschema = 1\nid = "acme/chat"\n')
    assert contracts.read_file(made)["contract.id"] == "acme/chat"
    pack = home / "pack.toml"
    with resources.as_file(resources.files("surefoot.tools.packs").joinpath("android-guru.toml")) as shipped:
        shutil.copy(shipped, pack)
    pack.write_bytes(codecs.BOM_UTF8 + pack.read_bytes())
    assert read_pack_file(pack, source="owner").name == "android-guru"
