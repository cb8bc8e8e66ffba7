"""A file that took the inode of another is another: what scopes hold of databases and repositories (TR-99)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from surefoot.core.model import Grade, Receipt
from surefoot.runtime.tools import observe
from surefoot.verifiers import sameness
from surefoot.verifiers.database import SqliteVerifier
from surefoot.verifiers.port import Deadline, Observation

LATER = Deadline(1 << 60)
QUERY = "select id from outbox where key = :key"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table outbox (id integer, key text)")
    return path


def looked(database: Path, scope: str | None = None) -> Observation:
    """What is seen of a call that recorded `scope`, or the one of now."""
    verifier = SqliteVerifier(database, QUERY)
    known = Receipt("ses_1", "trn_1", "cal_1", "att_1", 0)
    scope = scope or verifier.recovery_scope(known)
    told = Receipt("ses_1", "trn_1", "cal_1", "att_1", 0, tool="order", idempotency_key="sf1-a", scope=scope)
    return observe(verifier, told, LATER, fenced=True)


def test_tr_99_a_file_born_at_another_time_is_another_one_with_the_same_inode(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whether an inode is given again is the file system's whim, so the kernel's answer is replaced.
    monkeypatch.setattr(sameness, "born_ns", lambda path, inode: 1)
    known = Receipt("ses_1", "trn_1", "cal_1", "att_1", 0)
    scope = SqliteVerifier(database, QUERY).recovery_scope(known)
    assert looked(database, scope).state == "absent"
    monkeypatch.setattr(sameness, "born_ns", lambda path, inode: 2)
    found = looked(database, scope)
    assert (found.state, found.reason) == ("unknown", "scope_changed")


def test_tr_99_absence_is_not_proven_where_no_time_of_birth_is_kept(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sameness, "born_ns", lambda path, inode: None)
    found = looked(database)
    assert (found.state, found.grade, found.reason) == ("absent", Grade.STRONG, "identity_unsure")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("insert into outbox values (1, 'sf1-a')")
        connection.commit()
    assert (looked(database).state, looked(database).grade) == ("present", Grade.PROOF)


def test_tr_99_a_scope_recorded_without_a_birth_answers_unknown_where_one_is_kept(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sameness, "born_ns", lambda path, inode: 1)
    about = database.stat()
    older = json.dumps(["sqlite", str(database), about.st_dev, about.st_ino], separators=(",", ":"))
    assert looked(database, older).reason == "scope_changed"


def test_tr_99_the_identity_of_a_file_outlives_writes_and_a_new_name(tmp_path: Path) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_text("one")
    known = sameness.identity(path)
    path.write_text("two")
    path.chmod(0o600)
    assert sameness.identity(path.rename(other)) == known != sameness.identity(path)


def test_tr_99_no_birth_is_told_of_a_name_that_leads_to_another_inode(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("one")
    assert sameness.born_ns(path, path.stat().st_ino + 1) is None
    assert sameness.born_ns(tmp_path / "absent", 1) is None
