"""HTTP requests, SQL text and exit codes (EC-17 to EC-19, EC-57, TR-69)."""

from __future__ import annotations

import pytest

from surefoot.core.model import EffectClass, State
from surefoot.tools.classify.exits import exit_meaning, hands_work_on
from surefoot.tools.classify.http import classify_http
from surefoot.tools.classify.sql import Dialect, classify_sql

READ, IDEMPOTENT, NON, UNKNOWN = EffectClass
URL = "https://h.example/x"


@pytest.mark.parametrize(
    ("method", "cls"),
    [
        ("GET", READ),
        ("get", READ),
        ("HEAD", READ),
        ("OPTIONS", READ),
        ("PUT", IDEMPOTENT),
        ("DELETE", NON),
        ("POST", UNKNOWN),
        ("PATCH", UNKNOWN),
        ("PURGE", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_ec_17_the_method_decides(method: str, cls: EffectClass) -> None:
    found = classify_http(method, {}, False, URL)
    assert (found.effect_class, found.reach) == (cls, () if cls is READ else ("host:h.example",))


def test_ec_17_a_body_or_an_override_makes_a_read_unknown() -> None:
    assert classify_http("GET", {}, True, URL).effect_class is UNKNOWN
    assert classify_http("GET", {"X-HTTP-Method-Override": "PUT"}, False, URL).effect_class is UNKNOWN
    assert classify_http("PUT", {"x-http-method": "DELETE"}, True, URL).effect_class is UNKNOWN


@pytest.mark.parametrize(
    ("url", "member"),
    [
        ("https://h.example:8080/x", "host:h.example:8080"),
        ("https://u:p@H.example/", "host:h.example"),
        ("https://{a,b}.example/", "*"),
        ("nonsense", "*"),
        ("https://h.example:bad/", "*"),
    ],
)
def test_ec_17_reach_is_the_host(url: str, member: str) -> None:
    assert classify_http("PUT", {}, True, url).reach == (member,)


def test_ec_18_a_living_key_or_a_declared_query_makes_a_post_looser() -> None:
    assert classify_http("POST", {}, True, URL, key_lives=True).effect_class is IDEMPOTENT
    assert classify_http("POST", {}, True, URL, declared_query=True).effect_class is READ
    assert classify_http("PATCH", {}, True, URL, key_lives=True).effect_class is UNKNOWN
    overridden = {"X-HTTP-Method-Override": "DELETE"}
    assert classify_http("POST", overridden, True, URL, key_lives=True).effect_class is UNKNOWN


STATEMENTS = [
    ("select 1", READ),
    ("SELECT a, count(*) FROM t WHERE b IN (1, 2) GROUP BY a;", READ),
    ("select 'drop table t; --' as x", READ),
    ('select "insert" from t', READ),
    ("select 1 -- drop table t", READ),
    ("select /* drop table t; */ 1", READ),
    ("select 1; select 2", READ),
    ("show tables", READ),
    ("explain delete from t", READ),
    ("with x as (select 1) select * from x", READ),
    ("with x(a, b) as (select 1, 2) select * from x", READ),
    ("select * from (select 1) s", READ),
    ("select pg_catalog.now()", READ),
    ("create table if not exists t (a int)", IDEMPOTENT),
    ("create index if not exists i on t (a)", IDEMPOTENT),
    ("create or replace view v as select 1", IDEMPOTENT),
    ("create table t (a int)", NON),
    ("create or replace function f() returns int as 'select 1' language sql", NON),
    ("insert into t values (1)", NON),
    ("update t set a = 1", NON),
    ("delete from t", NON),
    ("merge into t using s on true when matched then delete", NON),
    ("truncate t", NON),
    ("drop table t", NON),
    ("alter table t add a int", NON),
    ("with x as (delete from t returning *) select * from x", NON),
    ("explain analyze delete from t", NON),
    ("explain (analyze, buffers) update t set a = 1", NON),
    ("explain analyze select 1", READ),
    ("select * into x from t", UNKNOWN),
    ("select * from t for update", UNKNOWN),
    ("select * from t for no key update", UNKNOWN),
    ("select nextval('s')", UNKNOWN),
    ("select evil.count(*)", UNKNOWN),
    ('select "count"(1)', UNKNOWN),
    ("select 1; drop table t", UNKNOWN),
    ("insert into t values (1); select 1", UNKNOWN),
    ("call f()", UNKNOWN),
    ("do 'begin end'", UNKNOWN),
    ("copy t to program 'x'", UNKNOWN),
    ("vacuum", UNKNOWN),
    ("frobnicate", UNKNOWN),
    ("", UNKNOWN),
    ("select 'a", UNKNOWN),
    ("select 'a\\'; drop table t; --'", UNKNOWN),
    ("select /*! 1; drop table t */ 1", UNKNOWN),
    ("select /* /* */ 1; drop table t */", UNKNOWN),
    ("select 1 # x\n; drop table t", UNKNOWN),
    ("select 5--1; drop table t", UNKNOWN),
    ("\\! id", UNKNOWN),
    ("select $$a$$", UNKNOWN),
    ("pragma journal_mode = wal", UNKNOWN),
    ("pragma table_info(t)", READ),
]


@pytest.mark.parametrize(("text", "cls"), STATEMENTS)
def test_ec_19_each_statement_has_its_class(text: str, cls: EffectClass) -> None:
    found = classify_sql(text, reach=("db:s/d",))
    expected = {READ: (), UNKNOWN: ("*",)}.get(cls, ("db:s/d",))
    assert (found.effect_class, found.reach) == (cls, expected)


def test_ec_19_dollar_quotes_are_known_where_they_exist() -> None:
    assert classify_sql("select $$drop; 'x$$", Dialect.POSTGRES).effect_class is READ
    assert classify_sql("select $a$ $$ ; drop $a$", Dialect.POSTGRES).effect_class is READ
    assert classify_sql("select $a$ x", Dialect.POSTGRES).effect_class is UNKNOWN
    assert classify_sql("select $$a$$", Dialect.MYSQL).effect_class is UNKNOWN


def test_ec_19_a_read_only_connection_reads_unless_it_calls_out() -> None:
    assert classify_sql("delete from t", Dialect.SQLITE, read_only=True).effect_class is READ
    assert classify_sql("select writefile('a', 'b')", Dialect.SQLITE, read_only=True).effect_class is UNKNOWN
    assert classify_sql("attach 'x' as y", Dialect.SQLITE, read_only=True).effect_class is UNKNOWN


CODES = {
    "curl": [16, 18, 22, 28, 52, 55, 56, 92, 95],
    "wget": [4, 7, 8],
    "git": [128],
    "ssh": [255],
    "scp": [255],
    "sftp": [255],
    "rsync": [10, 12, 30, 35],
    "psql": [2],
}


@pytest.mark.parametrize(
    ("client", "code"), [(client, code) for client, codes in CODES.items() for code in codes]
)
def test_ec_57_a_lost_reply_is_unknown_for_writes_that_may_not_repeat(client: str, code: int) -> None:
    lost = (State.UNKNOWN, "connection_lost")
    assert exit_meaning(NON, code, None, (client,)) == lost
    assert exit_meaning(UNKNOWN, code, None, ("docker", client)) == lost
    assert exit_meaning(IDEMPOTENT, code, None, (client,)) == (State.FAILED, None)
    assert exit_meaning(READ, code, None, (client,)) == (State.FAILED, None)
    assert exit_meaning(NON, code, None, ()) == (State.FAILED, None)


@pytest.mark.parametrize(
    "output",
    [
        "error: RPC failed; curl 52 Empty reply from server\nEverything up-to-date",
        "Fehler: RPC fehlgeschlagen; curl 18 transfer closed",
        "fatal: the remote end hung up unexpectedly",
        " ! [remote failure]  main -> main (remote failed to report status)",
    ],
)
def test_ec_57_words_of_a_lost_push_make_it_unknown_and_never_known(output: str) -> None:
    assert exit_meaning(NON, 1, None, ("git",), output=output) == (State.UNKNOWN, "connection_lost")
    assert exit_meaning(NON, 1, None, (), output=output) == (State.FAILED, None)
    assert exit_meaning(NON, 128, None, ("git",), output="nothing was done") == (
        State.UNKNOWN,
        "connection_lost",
    )
    refused = " ! [rejected]  main -> main (fetch first)\nerror: failed to push some refs"
    assert exit_meaning(NON, 1, None, ("git",), output=refused) == (State.FAILED, None)


@pytest.mark.parametrize("cls", list(EffectClass))
def test_tr_69_the_end_of_a_command_maps_to_a_state(cls: EffectClass) -> None:
    by_signal = (State.FAILED, None) if cls is READ else (State.UNKNOWN, "process_signal")
    assert exit_meaning(cls, 0, None) == (State.SUCCEEDED, None)
    assert exit_meaning(cls, 1, None) == (State.FAILED, None)
    assert exit_meaning(cls, None, 9) == by_signal
    told = (State.UNKNOWN, "process_signal") if cls in (NON, UNKNOWN) else (State.FAILED, None)
    assert {exit_meaning(cls, code, None) for code in (129, 137, 143, 192)} == {told}
    assert {exit_meaning(cls, code, None) for code in (2, 126, 127, 128, 193, 255)} == {(State.FAILED, None)}


def test_ec_58_services_are_told_from_other_clients() -> None:
    assert hands_work_on(("curl", "docker"))
    assert not hands_work_on(("curl", "git"))
