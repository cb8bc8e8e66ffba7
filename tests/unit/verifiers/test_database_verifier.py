"""Rows looked up afterwards in a real SQLite file: the row `database` of TR-109, with killed writers."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from surefoot.core.model import EffectClass, Grade, Receipt
from surefoot.runtime.tools import observe
from surefoot.verifiers.clock import boot_ms
from surefoot.verifiers.database import SqliteVerifier
from surefoot.verifiers.port import Deadline, EffectVerifier, Observation

KEY = "sf1-abc"
LATER = Deadline(1 << 60)
QUERY = "select id from outbox where key = :key"
WRITER = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("pragma cache_size = 1")
connection.execute("begin immediate")
connection.execute("insert into outbox values (1, ?)", (sys.argv[2],))
connection.executemany("insert into filler values (?)", [("x" * 4000,) for _ in range(200)])
print("written", flush=True)
if sys.stdin.readline().strip() == "commit":
    connection.execute("commit")
    print("committed", flush=True)
time.sleep(60)
"""


@pytest.fixture(params=["delete", "wal"])
def database(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path.resolve() / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"pragma journal_mode = {request.param}")
        connection.execute("create table outbox (id integer, key text)")
        connection.execute("create table filler (x text)")
        connection.commit()
    return path


class Writer:
    """A process in the middle of a transaction that holds the row."""

    def __init__(self, database: Path) -> None:
        command = [sys.executable, "-c", WRITER, str(database), KEY]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.said() == "written"

    def said(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def commit(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("commit\n")
        self.process.stdin.flush()
        assert self.said() == "committed"

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


def call(database: Path) -> Receipt:
    known = Receipt("ses_1", "trn_1", "cal_1", "att_1", 0, tool="order", idempotency_key=KEY)
    return Receipt(**{**fields(known), "scope": SqliteVerifier(database, QUERY).recovery_scope(known)})


def fields(receipt: Receipt) -> dict[str, object]:
    return {name: getattr(receipt, name) for name in Receipt.__dataclass_fields__}


def seen(
    database: Path, *, fenced: bool = True, query: str = QUERY, deadline: Deadline = LATER
) -> Observation:
    return observe(SqliteVerifier(database, query), call(database), deadline, fenced=fenced)


def contents(database: Path) -> dict[str, bytes]:
    """Every file of the database but the shared memory, which is an index of the log."""
    beside = database.parent.glob(f"{database.name}*")
    return {path.name: path.read_bytes() for path in beside if not path.name.endswith("-shm")}


def test_the_database_verifier_fits_the_port_and_only_reads(tmp_path: Path) -> None:
    verifier: EffectVerifier = SqliteVerifier(tmp_path / "x.db", QUERY)
    assert (verifier.name, verifier.far) == ("database", False)
    assert SqliteVerifier.operations == (("select", EffectClass.READ_ONLY),)


def test_tr_109_a_committed_row_with_the_key_is_present_with_proof(database: Path) -> None:
    writer = Writer(database)
    writer.commit()
    writer.kill()
    assert (seen(database).state, seen(database).grade) == ("present", Grade.PROOF)


def test_tr_109_an_open_transaction_is_never_absent_and_fenced_and_a_late_commit_is_seen(
    database: Path,
) -> None:
    writer = Writer(database)
    try:
        early = seen(database, fenced=False)
        assert (early.state, early.fenced) in [("absent", False), ("unknown", False)]
        writer.commit()
        assert seen(database, fenced=False).state == "present"
    finally:
        writer.kill()


def test_tr_109_the_transaction_of_a_killed_writer_is_absent_and_fenced(database: Path) -> None:
    writer = Writer(database)
    writer.kill()
    before = contents(database)
    found = seen(database)
    assert (found.state, found.grade, found.fenced) == ("absent", Grade.PROOF, True)
    after = contents(database)
    assert after == before, "looking undid nothing in the file itself"
    assert seen(database, fenced=False).fenced is False


def test_tr_109_a_row_under_another_key_is_not_this_call(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("insert into outbox values (1, 'sf1-other')")
        connection.commit()
    assert seen(database).state == "absent"


@pytest.mark.parametrize(
    "query",
    [
        "delete from outbox where key = :key returning id",
        "insert into outbox values (9, :key) returning id",
        "pragma user_version = 7",
        "attach 'other.db' as other",
        "create table t (x)",
    ],
)
def test_tr_103_a_query_that_would_write_voids_the_verdict(database: Path, query: str) -> None:
    before = database.read_bytes()
    found = seen(database, query=query)
    assert (found.state, found.reason) == ("unknown", "verifier_wrote")
    assert database.read_bytes() == before


def test_tr_102_a_wrong_query_or_file_is_unknown(database: Path) -> None:
    assert seen(database, query="select nothing from nowhere").reason == "database_unreadable"
    database.write_bytes(b"not a database at all" * 100)
    for suffix in ("-wal", "-shm"):
        Path(f"{database}{suffix}").unlink(missing_ok=True)
    assert seen(database).reason == "database_unreadable"


def test_tr_104_a_query_past_its_deadline_is_interrupted(database: Path) -> None:
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
    found = seen(database, query=endless, deadline=Deadline(boot_ms() + 200))
    assert (found.state, found.reason) == ("unknown", "verifier_timeout")


def test_tr_99_another_file_in_the_same_place_is_another_scope(database: Path) -> None:
    told = call(database)
    database.rename(database.with_name("old.db"))
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("create table outbox (id integer, key text)")
    found = observe(SqliteVerifier(database, QUERY), told, LATER, fenced=True)
    assert (found.state, found.reason) == ("unknown", "scope_changed")
    database.unlink()
    gone = observe(SqliteVerifier(database, QUERY), told, LATER, fenced=True)
    assert (gone.state, gone.reason) == ("unknown", "verifier_raised")


def test_tr_191_a_file_of_the_ledger_is_not_opened(database: Path) -> None:
    found = database.stat()
    verifier = SqliteVerifier(database, QUERY, ledger_files=lambda: frozenset({(found.st_dev, found.st_ino)}))
    answer = observe(verifier, call(database), LATER, fenced=True)
    assert (answer.state, answer.reason) == ("unknown", "ledger_file")
