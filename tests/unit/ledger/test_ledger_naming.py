"""The guard on the names of the ledger's files: it sees every swap, and asks for no times."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import pytest

from surefoot.ledger import naming


@pytest.fixture(params=["statx", "stat"])
def way(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "stat":
        monkeypatch.setattr(naming, "by_statx", lambda path: None)
    return str(request.param)


def test_tr_194_a_name_that_leads_to_another_file_is_noticed(tmp_path: Path, way: str) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("1")
    two.write_text("2")
    names = naming.Names(one, two)
    assert names.lead_there_still()
    one.write_text("3")
    assert names.lead_there_still()  # other bytes in the same file are no other file
    two.rename(tmp_path / "away")
    assert not names.lead_there_still()
    two.write_text("2")
    assert not names.lead_there_still()
    two.unlink()
    (tmp_path / "away").rename(two)
    assert names.lead_there_still()


def test_tr_194_a_link_counts_as_what_it_leads_to(tmp_path: Path, way: str) -> None:
    one, link = tmp_path / "one", tmp_path / "link"
    one.write_text("1")
    link.symlink_to(one)
    names = naming.Names(link)
    assert names.lead_there_still()
    link.unlink()
    link.symlink_to(tmp_path)
    assert not names.lead_there_still()


def test_tr_194_a_name_that_led_nowhere_at_first_never_does(tmp_path: Path, way: str) -> None:
    names = naming.Names(tmp_path / "one")
    (tmp_path / "one").write_text("1")
    assert not names.lead_there_still()


@pytest.mark.parametrize("kind", ["no such call", "forbidden", "nonsense"])
def test_where_statx_cannot_be_used_stat_is(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Call:
        def __call__(self, *given: Any) -> int:
            return 0 if kind == "nonsense" else -1

    class Library:
        def __init__(self, *given: Any, **more: Any) -> None:
            if kind != "no such call":
                self.statx = Call()

    monkeypatch.setattr(ctypes, "CDLL", Library)
    assert naming.by_statx(os.fsencode(tmp_path)) is None
    assert naming.Names(tmp_path).lead_there_still()
