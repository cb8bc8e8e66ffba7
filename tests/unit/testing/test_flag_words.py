"""Flags of the emulator and the demo in three languages."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

from surefoot.testing.demo import main as demo
from surefoot.testing.emulator.__main__ import main as emulate
from surefoot.testing.flag_words import WORDS, mistake

HAN = re.compile("[\u4e00-\u9fff]")
MISTAKEN = (
    ["--profile", "nobody"], ["--wire", "nope"], ["--port", "abc"], ["--port", "-1"], ["--port", "99999"],
    ["--bogus"], ["--port"], ["--profile", "deepseek", "--wire", "gemini"], ["--script", "no-such-file"],
    ["--script", "bad.json"], ["--until-stdin-closes=yes"], ["--p", "1"],
)  # fmt: skip


@pytest.fixture(params=["en", "zh-Hans", "zh-Hant"])
def language(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setenv("SUREFOOT_LANGUAGE", request.param)
    monkeypatch.setenv("SUREFOOT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.json").write_text("{")
    return str(request.param)


@pytest.mark.parametrize("arguments", MISTAKEN, ids=" ".join)
def test_ux_11_ux_9_a_mistake_in_the_flags_of_the_emulator_is_told_in_the_language_of_the_person(
    language: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        emulate(arguments)
    told = capsys.readouterr().err
    assert (
        ended.value.code == 2 and told.startswith("SF-USAGE: ") and told.endswith("surefoot emulate --help\n")
    )
    assert bool(HAN.search(told.splitlines()[0])) == (language != "en"), told
    assert arguments[0].partition("=")[0] in told or arguments[-1] in told


@pytest.mark.parametrize("program", [emulate, demo])
def test_ux_11_the_help_of_emulator_and_demo_is_told_in_the_language_of_the_person(
    language: str, program: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(program)
    with pytest.raises(SystemExit) as ended:
        program(["--help"])
    told = capsys.readouterr().out
    assert ended.value.code == 0
    assert bool(HAN.search(told)) == (language != "en")
    assert ("usage:" in told and "options:" in told) == (language == "en")


def test_ux_11_every_text_of_a_flag_stands_in_three_languages_with_the_same_places() -> None:
    for key, texts in WORDS.items():
        places = [{name for _, name, _, _ in string.Formatter().parse(text) if name} for text in texts]
        assert all(texts) and places[0] == places[1] == places[2], key
    assert mistake("something new.", "zh-Hans") == "something new."
