"""Writes behind a second reading of a line, and programs that a project names (EC-19 to EC-22, EC-59)."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.core.model import EffectClass
from surefoot.runtime.tools import Place
from surefoot.tools.classify.scripts import awk_reads
from surefoot.tools.classify.shell import classify_shell
from surefoot.tools.classify.sql import Dialect, classify_sql

PLACE = Place(directory=Path("/w"), roots=(Path("/w"),), home=Path("/home/lin"))
READ, IDEMPOTENT, NON, UNKNOWN = EffectClass


def class_of(command: str) -> EffectClass:
    return classify_shell(command, PLACE).effect.effect_class


@pytest.mark.parametrize(
    "program",
    [
        'BEGIN { x++ / 2; print "a" > "f"; y = 1 / 2 }',
        '{ if ($1) /"/; print "a" > "f"; /"/ }',
        '/[^]/]"/; { print "a" > "f" }; /"/',
        '/[]/]"/; { print "a" > "f" }; /"/',
        r'/[\]/]"/; { print "a" > "f" }; /"/',
    ],
)
def test_ec_30_a_slash_that_could_divide_or_begin_a_pattern_hides_no_write(program: str) -> None:
    assert not awk_reads(program)


@pytest.mark.parametrize(
    "program",
    [
        "{print (a+b)/2}",
        "{x = $1/2; print x/3}",
        "{n++} END{print n/2}",
        "$1/2 > 5",
        "/a|b/",
        "{print a[1]/b[2]}",
    ],
)
def test_ec_30_division_in_an_awk_program_that_only_prints_stays_a_read(program: str) -> None:
    assert awk_reads(program)


@pytest.mark.parametrize("name", ["gzip", "bzip2", "xz", "zstd"])
def test_ec_22_a_packer_that_is_told_to_unpack_after_a_test_is_no_reader(name: str) -> None:
    """Of several modes the last one holds, so `xz -l -d` unpacks and removes its file."""
    assert class_of(f"{name} -t -d a") is not READ
    assert class_of(f"{name} -td a") is not READ
    assert class_of(f"{name} -t a") is READ
    assert class_of(f"{name} -dc a") is READ


@pytest.mark.parametrize("operand", ["_a[$(touch x)]", "1+a[$(touch x)]", " a[$(touch x)]", "-a", "!a"])
def test_ec_20_a_comparison_of_numbers_evaluates_no_name(operand: str) -> None:
    assert class_of(f"[[ '{operand}' -eq 1 ]]") is UNKNOWN
    assert class_of(f"[[ 1 -lt '{operand}' ]]") is UNKNOWN
    assert class_of("[[ 3 -gt 2 ]]") is READ


@pytest.mark.parametrize(
    "command", ["nm --plugin ./x.so a.o", "nm @f", "objdump -d @f", "readelf -h @f", "arch ./x"]
)
def test_ec_22_a_reader_that_can_load_or_run_a_file_accepts_known_options_only(command: str) -> None:
    assert class_of(command) is UNKNOWN


@pytest.mark.parametrize(
    "command", ["cargo", "rustc", "rustup", "dotnet", "mvn", "gradle", "poetry", "pytest", "cargo info x"]
)
def test_ec_59_a_command_that_loads_what_the_project_names_is_no_reader(command: str) -> None:
    assert class_of(f"{command} --version") is UNKNOWN


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("explain analyse delete from t", NON),
        ("explain verbose analyse update t set a = 1", NON),
        ("explain (costs off, verbose off, buffers off, format json, analyze) delete from t", NON),
        ('explain ("analyze") delete from t', NON),
        ("explain analyze execute q((select 1))", UNKNOWN),
        ("desc analyze delete from t", NON),
        ("describe format = tree analyze select f()", UNKNOWN),
        ("explain pragma user_version = 7", UNKNOWN),
        ("explain (analyze, buffers) select 1", READ),
        ("explain (format json) delete from t", READ),
        ("explain query plan delete from t", READ),
        ("desc t", READ),
    ],
)
def test_ec_19_what_an_explain_runs_decides_wherever_it_is_asked_to(text: str, found: EffectClass) -> None:
    assert classify_sql(text).effect_class is found


def test_ec_19_a_pragma_with_a_value_in_parentheses_sets_it() -> None:
    for name in ("user_version", "main.user_version", "schema_version", "page_size"):
        assert classify_sql(f"pragma {name}(7)", Dialect.SQLITE).effect_class is UNKNOWN
    assert classify_sql("pragma user_version", Dialect.SQLITE).effect_class is READ
    assert classify_sql("pragma table_info(t)", Dialect.SQLITE).effect_class is READ


def test_ec_19_a_temporary_table_on_a_read_only_connection_may_call_what_writes() -> None:
    for text in (
        "create temp table x as select writefile('f', 'x')",
        "create table temp.x as select writefile('f', 'x')",
        "create temp table x(a); insert into x values (writefile('f', 'x'))",
    ):
        assert classify_sql(text, Dialect.SQLITE, read_only=True).effect_class is UNKNOWN
    found = classify_sql("insert into t(a) values (1)", Dialect.SQLITE, read_only=True)
    assert found.effect_class is READ


def test_ec_19_a_function_named_like_a_statement_is_a_function() -> None:
    assert classify_sql("select replace(a, 'b', 'c') from t").effect_class is READ
    assert classify_sql("with x as (select 1) replace into t select * from x").effect_class is NON
