"""Rows looked up afterwards at a real PostgreSQL server: the row `database` of TR-109, with killed clients."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from surefoot.core.model import EffectClass, Grade, Receipt
from surefoot.runtime.tools import observe
from surefoot.testing.postgres import PostgresServer
from surefoot.verifiers.clock import boot_ms
from surefoot.verifiers.port import Deadline, EffectVerifier, Observation
from surefoot.verifiers.postgres import PostgresVerifier, session_name

KEY = "sf1-" + "ab" * 32
LATER = Deadline(1 << 60)
QUERY = "select id from outbox where key = %(key)s"
WRITER = """
import psycopg, sys
info, name, key = sys.argv[1:]
with psycopg.connect(info, application_name=name, autocommit=True) as link:
    link.execute("begin")
    link.execute("insert into outbox values (1, %s)", (key,))
    print(link.execute("select pg_current_xact_id()::text").fetchone()[0], flush=True)
    for line in sys.stdin:
        link.execute(line)
        print("done", flush=True)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as made:
        run(made, "create role lin login", database="postgres")
        yield made


@pytest.fixture
def shop(server: PostgresServer) -> Iterator[PostgresServer]:
    run(server, "create database shop", database="postgres")
    run(server, "create table outbox (id integer, key text)", "grant all on outbox to lin")
    yield server
    run(server, "drop database shop with (force)", database="postgres")


def run(server: PostgresServer, *statements: str, database: str = "shop") -> None:
    with psycopg.connect(server.conninfo(database), autocommit=True) as link:
        for statement in statements:
            link.execute(statement)


def waits_for_a_lock(server: PostgresServer) -> bool:
    """Whether the server is in the middle of a statement of the call's session."""
    with psycopg.connect(server.conninfo("postgres"), autocommit=True) as link:
        asked = (
            "select count(*) from pg_stat_activity where application_name = %s and wait_event_type = 'Lock'"
        )
        return bool(link.execute(asked, [session_name(KEY)]).fetchone()[0])


def insert(server: PostgresServer, key: str = KEY) -> None:
    run(server, f"insert into outbox values (1, '{key}')")


def verifier(server: PostgresServer, user: str = "surefoot", **given: Any) -> PostgresVerifier:
    known: dict[str, Any] = {"session": session_name, "far": False}
    return PostgresVerifier(server.conninfo("shop", user=user), QUERY, **{**known, **given})


def call(scope: str | None = None, **fields: Any) -> Receipt:
    return Receipt(
        "ses_1", "trn_1", "cal_1", "att_1", 0, tool="t", idempotency_key=KEY, scope=scope, **fields
    )


def seen(looking: EffectVerifier, *, fenced: bool = True, deadline: Deadline = LATER) -> Observation:
    return observe(looking, call(looking.recovery_scope(call())), deadline, fenced=fenced)


class Writer:
    """A client in the middle of a transaction that holds the row."""

    def __init__(self, server: PostgresServer, name: str = session_name(KEY), user: str = "surefoot") -> None:
        command = [sys.executable, "-c", WRITER, server.conninfo("shop", user=user), name, KEY]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.transaction = int(self.process.stdout.readline())

    def do(self, statement: str) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(statement + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().strip() == "done"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def writer(shop: PostgresServer) -> Iterator[Callable[..., Writer]]:
    made: list[Writer] = []

    def make(**given: Any) -> Writer:
        made.append(Writer(shop, **given))
        return made[-1]

    yield make
    for one in made:
        one.kill()


def until(found: Callable[[], bool]) -> None:
    end = time.monotonic() + 90
    while not found():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_tr_103_it_fits_the_port_and_only_reads(shop: PostgresServer) -> None:
    looking: EffectVerifier = verifier(shop)
    assert (looking.name, looking.far) == ("database", False)
    assert all(kind is EffectClass.READ_ONLY for _, kind in PostgresVerifier.operations)
    assert PostgresVerifier("dbname=x", QUERY).far


# Present ------------------------------------------------------------------------------------------


def test_tr_109_a_committed_row_with_the_key_is_present_with_proof(shop: PostgresServer) -> None:
    insert(shop)
    found = seen(verifier(shop), fenced=False)
    assert (found.state, found.grade) == ("present", Grade.PROOF)


def test_tr_109_a_committed_transaction_is_present_though_its_row_is_gone(
    shop: PostgresServer, writer: Callable[..., Writer]
) -> None:
    one = writer()
    one.do("commit")
    one.kill()
    run(shop, "delete from outbox")
    found = seen(verifier(shop, transaction=lambda receipt: one.transaction))
    assert (found.state, found.grade, found.evidence["transaction"]) == ("present", Grade.PROOF, "committed")


# Absent -------------------------------------------------------------------------------------------


def test_tr_109_none_is_absent_and_fenced_when_the_session_of_the_call_is_over(shop: PostgresServer) -> None:
    found = seen(verifier(shop))
    assert (found.state, found.grade, found.fenced) == ("absent", Grade.PROOF, True)
    open_point = seen(verifier(shop), fenced=False)
    assert (open_point.fenced, open_point.reason) == (False, "not_fenced")


def test_tr_109_a_killed_client_whose_server_session_goes_on_is_no_fence_and_its_late_commit_is_found(
    shop: PostgresServer,
) -> None:
    """The server is in the middle of a statement: it hears of the death only when it wants to answer."""
    run(shop, "create table gate (x int)")
    with psycopg.connect(shop.conninfo("shop")) as holds:
        holds.execute("lock table gate in access exclusive mode")
        line = (
            "import psycopg, sys\n"
            "with psycopg.connect(sys.argv[1], application_name=sys.argv[2], autocommit=True) as link:\n"
            "    link.execute(f\"with x as (insert into outbox values (1, '{sys.argv[3]}') returning 1)"
            ' select count(*) from x, (select count(*) from gate) g")\n'
        )
        client = subprocess.Popen([sys.executable, "-c", line, shop.conninfo("shop"), session_name(KEY), KEY])
        until(lambda: waits_for_a_lock(shop))  # before that its end is noticed, and nothing is committed
        client.kill()
        client.wait()
        found = seen(verifier(shop))
        assert (found.state, found.fenced, found.reason) == ("absent", False, "session_alive")
    until(lambda: seen(verifier(shop)).state == "present")


def test_tr_109_an_open_transaction_of_a_living_session_is_no_fence(
    shop: PostgresServer, writer: Callable[..., Writer]
) -> None:
    one = writer()
    assert seen(verifier(shop)).reason == "session_alive"
    assert seen(verifier(shop, transaction=lambda receipt: one.transaction)).reason == "transaction_open"
    one.kill()
    until(lambda: seen(verifier(shop)).fenced)
    aborted = seen(verifier(shop, session=None, transaction=lambda receipt: one.transaction))
    assert (aborted.state, aborted.fenced, aborted.evidence["transaction"]) == ("absent", True, "aborted")


def test_tr_109_a_session_nobody_named_is_no_fence(shop: PostgresServer) -> None:
    found = seen(verifier(shop, session=None))
    assert (found.state, found.fenced, found.reason) == ("absent", False, "session_unnamed")


def test_tr_109_a_session_of_another_user_is_seen_too(
    shop: PostgresServer, writer: Callable[..., Writer]
) -> None:
    one = writer(user="surefoot")
    assert seen(verifier(shop, user="lin")).reason == "session_alive"
    one.kill()
    until(lambda: seen(verifier(shop, user="lin")).fenced)


def test_tr_109_a_prepared_transaction_outlives_its_session_and_is_no_fence(
    shop: PostgresServer, writer: Callable[..., Writer]
) -> None:
    one = writer()
    one.do("prepare transaction 'two phases'")
    one.kill()
    until(lambda: seen(verifier(shop)).reason == "transaction_prepared")
    run(shop, "commit prepared 'two phases'")
    assert seen(verifier(shop)).state == "present"


def test_tr_109_the_sudden_death_of_the_server_ends_every_session_of_it(
    shop: PostgresServer, writer: Callable[..., Writer]
) -> None:
    scope = verifier(shop).recovery_scope(call())
    writer()
    shop.crash()
    down = observe(verifier(shop), call(scope), LATER, fenced=True)
    assert down.state == "unknown"
    shop.start()
    found = seen(verifier(shop))
    assert (found.state, found.fenced) == ("absent", True)


# Neither ------------------------------------------------------------------------------------------


def test_tr_99_another_database_under_the_same_name_is_another_resource(shop: PostgresServer) -> None:
    looking = verifier(shop)
    scope = looking.recovery_scope(call())
    run(shop, "drop database shop", "create database shop", database="postgres")
    found = observe(looking, call(scope), LATER, fenced=True)
    assert (found.state, found.reason) == ("unknown", "scope_changed")


def test_tr_103_a_query_that_writes_is_refused_by_the_server_and_its_verdict_is_void(
    shop: PostgresServer,
) -> None:
    looking = PostgresVerifier(shop.conninfo("shop"), "insert into outbox values (9, %(key)s) returning 1")
    found = seen(looking)
    assert (found.state, found.reason) == ("unknown", "verifier_wrote")
    with psycopg.connect(shop.conninfo("shop")) as link:
        assert link.execute("select count(*) from outbox").fetchone() == (0,)


def test_tr_104_a_query_that_takes_too_long_is_ended_by_the_server(shop: PostgresServer) -> None:
    looking = PostgresVerifier(shop.conninfo("shop"), "select pg_sleep(60), %(key)s::text")
    found = seen(looking, deadline=Deadline(boot_ms() + 300))
    assert (found.state, found.reason) == ("unknown", "verifier_timeout")


def test_tr_102_a_query_that_fails_is_unknown_and_names_the_fault(shop: PostgresServer) -> None:
    looking = PostgresVerifier(shop.conninfo("shop"), "select 1 from nowhere where key = %(key)s")
    found = seen(looking)
    assert (found.state, found.reason) == ("unknown", "database_unreadable")
    assert "nowhere" in found.summary


def test_a_name_of_a_session_is_as_long_as_the_server_keeps_it() -> None:
    assert session_name(KEY) == KEY[:63]
