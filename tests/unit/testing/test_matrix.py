"""The table of the fault matrix: complete, and every name in it has its tests."""

from __future__ import annotations

from pathlib import Path

from surefoot.testing import matrix
from surefoot.testing.matrix import BEYOND, COLUMNS, MATRIX, STEPS, Absent, Unbuilt

CRASH = Path(__file__).parents[2] / "crash"


def test_tr_186_every_step_has_a_cell_for_every_fault() -> None:
    assert list(MATRIX) == list(STEPS) == [f"F{number}" for number in range(1, 21)]
    assert all(len(cells) == len(COLUMNS) for cells in MATRIX.values())


def test_tr_186_every_name_in_the_tables_has_a_test() -> None:
    names = matrix.collected(CRASH)
    assert [name for name in matrix.wanted() if not any(one.startswith(name) for one in names)] == []


def test_tr_186_a_cell_is_right_only_when_each_of_its_tests_passed() -> None:
    passed = {"test_tr_186_f1_a": True, "test_tr_186_f1_b": False}
    assert matrix.show(("f1_a",), passed).word == matrix.OK
    assert matrix.show(("f1_a", "f1_b"), passed).word == matrix.WRONG
    assert matrix.show(("f1_unheard_of",), passed).word == matrix.WRONG
    assert matrix.show(Absent("why"), passed).word == matrix.ABSENT
    assert matrix.show(Unbuilt("why"), passed).word == matrix.UNBUILT


def test_tr_186_a_variant_that_failed_or_was_left_out_fails_its_test(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite><testcase name="test_a[1]"/><testcase name="test_a[2]"><failure/></testcase>'
        '<testcase name="test_b"><skipped/></testcase><testcase name="test_c[x]"/></testsuite></testsuites>'
    )
    assert matrix.read_report(report) == {"test_a": False, "test_b": False, "test_c": True}


def test_tr_187_the_page_shows_every_step_and_every_further_fault() -> None:
    page, counts = matrix.draw({})
    assert all(f"| {step} " in page for step in STEPS) and all(name in page for name in BEYOND)
    assert sum(counts.values()) == len(STEPS) * len(COLUMNS) + len(BEYOND) and counts[matrix.OK] == 0
