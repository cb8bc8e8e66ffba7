"""What less is promised where the kernel tells less: on the record, by the doctor, and in the documentation."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from surefoot.surfaces.cli import doctor
from surefoot.surfaces.phrases import translated
from surefoot.tools.processes import ancestry, kernel

PAGE = Path(__file__).parents[2] / "docs/how-to/decide-about-an-unknown-call.md"


def hidden(pid: int, number: int) -> None:
    raise PermissionError


def gone(pid: int, number: int) -> None:
    raise ProcessLookupError


SEEN = {"full": (True, hidden), "partial": (False, hidden), "none": (False, gone)}


def test_ux_121_the_page_has_the_table_of_the_code() -> None:
    section = PAGE.read_text(encoding="utf-8").split("\n## Who may decide\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", section, re.MULTILINE)
    assert rows == [(word, told.where, told.checked) for word, told in ancestry.PROMISES.items()]


@pytest.mark.parametrize("word", ancestry.PROMISES)
def test_ux_121_the_record_and_the_doctor_say_how_much_was_seen(
    word: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real, parent = kernel.stat_of, os.getppid()
    visible, kill = SEEN[word]
    monkeypatch.setattr(
        ancestry.kernel, "stat_of", lambda pid: None if pid == parent and not visible else real(pid)
    )
    monkeypatch.setattr(ancestry.os, "kill", kill)
    found = ancestry.descent_here(tmp_path, recorded=())
    assert found.ancestry == word == ancestry.ancestry_here()
    assert word != "none" or found.reason is not None  # nobody is let in by a chain that cannot be read
    check = doctor._ancestry()
    assert check.status == {"full": "ok", "partial": "warning", "none": "fail"}[word]
    assert check.details == {"ancestry": word} and check.summary.startswith(f"{word}: ")
    for text in (check.summary, *(issue["cause"] for issue in check.issues)):
        assert re.search(r"[\u4e00-\u9fff]", translated(text, "zh-Hans"))
