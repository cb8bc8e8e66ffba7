"""A program's own functions, looked up by the verifier they were declared with (TR-98, TR-109)."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import surefoot
from surefoot.verifiers.database import SqliteVerifier

QUERY = "select 1 from orders where key = :key"
PROGRAM = """
import os, signal, sqlite3, sys
from contextlib import closing
import surefoot
from surefoot.verifiers.database import SqliteVerifier

def order(item, attempt=None):
    with closing(sqlite3.connect("shop.db")) as shop:
        shop.execute("insert into orders values (?, ?)", (item, attempt.idempotency_key))
        if sys.argv[1] == "committed":
            shop.commit()
        os.kill(os.getpid(), signal.SIGKILL)

with surefoot.open(ledger="home") as ledger, ledger.session() as session:
    print(session.id, flush=True)
    look = SqliteVerifier("shop.db", "select 1 from orders where key = :key")
    session.guard(order, effect="NON_IDEMPOTENT", reach=["db:shop"], verifier=look)(item="lamp")
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with closing(sqlite3.connect("shop.db")) as made:
        made.execute("create table orders (item, key)")
    return tmp_path


def order(item: str) -> None:
    raise AssertionError("looking runs no body")


def killed(how: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, env={**os.environ}
    )
    assert ran.returncode == -9, ran.stderr
    return ran.stdout.strip()


@pytest.mark.parametrize(
    ("how", "state", "left"), [("committed", "present", 0), ("open", "absent_fenced", 1)]
)
def test_tr_109_the_order_of_a_killed_program_is_looked_up_by_the_next_one(
    shop: Path, how: str, state: str, left: int
) -> None:
    session_id = killed(how)
    with surefoot.open(ledger="home") as ledger, ledger.session(session_id) as session:
        (call,) = session.open_calls()
        look = SqliteVerifier("shop.db", QUERY)
        session.guard(order, effect="NON_IDEMPOTENT", reach=["db:shop"], verifier=look)
        found = session.inspect(call["attemptId"])
        assert (found["state"], found["grade"], found["verifier"]) == (state, "proof", "database")
        assert len(session.open_calls()) == left


async def test_tr_98_inspect_awaits_and_refuses_what_is_not_open(shop: Path) -> None:
    async with surefoot.open(ledger="home") as ledger, ledger.session() as session:
        with pytest.raises(surefoot.UsageError, match="is open in this session"):
            await session.inspect("att_nothing")
