"""The fault matrix: which test proves which cell, run and printed (`make matrix`).

Owns: the table of steps by faults (TR-186), the row of further faults (TR-187), running their
tests, and the page that shows the result. Does not own: the tests themselves.

    python -m surefoot.testing.matrix --write docs/reference/fault-matrix.md

A cell is `ok` when every test that is named for it passed. A cell without a test is `not
built`, and one that cannot occur says why. No cell depends on chance: each fault strikes a
named seam, so there is no seed to replay, and one cell is run again by the names of its tests.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as Tree
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from surefoot.testing.strikes import ENGINES

COLUMNS = (
    "SIGKILL of the runtime",
    "disk full",
    "fsync error",
    "cancel",
    "time limit",
    "lost connection",
)
STEPS = {
    "F1": "message with calls (D1)",
    "F2": "checks and hooks (D2–D5)",
    "F3": "start commit (D6)",
    "F4": "body, effect not made",
    "F5": "effect made, body not returned",
    "F6": "close commit (D8)",
    "F7": "closed, before the next request",
    "F8": "post-tool hooks",
    "F9": "reconciliation",
    "F10": "safe retry on resume",
    "F11": "inspect",
    "F12": "confirm, deny, reject, release",
    "F13": "retry action",
    "F14": "compaction, rewind, fork",
    "F15": "takeover, renewal",
    "F16": "question and answer",
    "F17": "supervised process",
    "F18": "background start",
    "F19": "result on its way to a foreign reader",
    "F20": "parked press",
}
PREFIX = "test_tr_186_"
NEEDS_THE_FILE = (
    "test_tr_186_f3_a_disk_with_too_little",
    "test_tr_186_f3_an_fsync_error_that_lasts",
    "test_tr_186_f3_killed_with_the_tail",
    "test_tr_187_a_bit_flipped",
    "test_tr_187_a_tail_cut",
    "test_tr_187_a_ghost_frame",
    "test_tr_191_a_foreign",
    "test_tr_193_a_foreign",
)
"""Tests that strike the files of the SQLite engine themselves; another engine has faults of its own."""
OK, WRONG, ABSENT, UNBUILT = "ok", "WRONG", "n/a", "not built"


@dataclass(frozen=True, slots=True)
class Absent:
    """A cell that cannot occur, and why."""

    why: str


@dataclass(frozen=True, slots=True)
class Unbuilt:
    """A cell without a test, and what is missing."""

    why: str


Cell = tuple[str, ...] | Absent | Unbuilt
"""The beginnings of the names of its tests, behind `test_tr_186_`; each must name one at least."""

NO_LINE = Absent("the ledger is a file of this machine; there is no line to it")

MATRIX: Mapping[str, tuple[Cell, Cell, Cell, Cell, Cell, Cell]] = {
    "F1": (
        ("f1_killed_before", "f1_killed_after"),
        ("f1_disk_full",),
        ("f1_fsync_error",),
        ("f1_cancel",),
        ("f1_at_the_time_limit",),
        ("f1_a_lost_connection",),
    ),
    "F2": (
        ("f2_killed_during", "f2_killed_inside_a_hook"),
        ("f2_a_refusal_that_cannot_be_recorded",),
        ("f2_a_refusal_that_cannot_be_recorded",),
        ("f2_a_stop",),
        ("f2_at_the_time_limit",),
        ("f2_a_lost_line",),
    ),
    "F3": (
        ("f3_killed_with_the_tail", "f17_killed_before_the_claim", "f2_killed_during"),
        ("f3_disk_full", "f3_a_disk_with_too_little"),
        ("f3_fsync_error", "f3_an_fsync_error_that_lasts"),
        ("f3_cancel",),
        ("f3_at_the_time_limit",),
        NO_LINE,
    ),
    "F4": (
        ("f4_killed_before_the_effect", "f17_a_command_outlives"),
        ("f4_a_full_disk",),
        ("f4_a_full_disk",),
        ("f4_f5_cancel_or_time_limit",),
        ("f4_f5_cancel_or_time_limit",),
        ("f4_no_byte_sent", "f4_a_lost_line", "f5_a_lost_connection"),
    ),
    "F5": (
        ("f5_killed_after",),
        ("f4_a_full_disk",),
        ("f4_a_full_disk",),
        ("f4_f5_cancel_or_time_limit",),
        ("f4_f5_cancel_or_time_limit",),
        ("f5_a_lost_connection",),
    ),
    "F6": (
        ("f6_killed_before", "f17_killed_after_the_end"),
        ("f6_a_close_that_fails", "f6_a_close_that_never"),
        ("f6_a_close_that_fails", "f6_a_close_that_never"),
        ("f6_cancel",),
        ("f6_f7_at_the_time_limit",),
        NO_LINE,
    ),
    "F7": (
        ("f7_killed_after",),
        ("f7_a_disk_that_fails",),
        ("f7_a_disk_that_fails",),
        ("f7_cancel",),
        ("f6_f7_at_the_time_limit",),
        ("f7_a_line_lost",),
    ),
    "F8": (
        ("f8_killed_inside",),
        ("f8_a_disk_that_fails",),
        ("f8_a_disk_that_fails",),
        ("f8_a_stop",),
        ("f8_a_hooks_call_that_ends_unclear",),
        ("f8_a_hooks_call_that_ends_unclear",),
    ),
    "F9": (
        ("f9_a_reconciliation_that_was_killed",),
        ("f9_a_reconciliation_that_cannot_be_written",),
        ("f9_a_reconciliation_that_cannot_be_written", "f9_one_failed_sync"),
        ("f9_a_reconciliation_nobody_waits_for",),
        ("f9_a_reconciliation_nobody_waits_for",),
        NO_LINE,
    ),
    "F10": (
        ("f10_a_retry_that_is_killed",),
        ("f10_a_retry_whose_start_cannot_be_written",),
        ("f10_a_retry_whose_start_cannot_be_written",),
        ("f10_a_stop",),
        ("f10_a_retry_that_ends_unknown",),
        ("f10_a_retry_that_ends_unknown",),
    ),
    "F11": (
        ("f11_a_look_that_is_killed",),
        ("f11_a_look_that_cannot_be_written",),
        ("f11_a_look_that_cannot_be_written", "f11_one_failed_sync"),
        ("f11_a_look_nobody_waits_for",),
        ("f11_a_look_that_takes_too_long",),
        ("f11_a_list_that_cannot_be_reached",),
    ),
    "F12": (
        ("f12_a_decision_that_is_killed",),
        ("f12_a_decision_that_cannot_be_written",),
        ("f12_a_decision_that_cannot_be_written", "f12_one_failed_sync"),
        ("f12_a_decision_nobody_waits_for",),
        ("f12_a_decision_nobody_waits_for",),
        ("f12_a_press_sent_again",),
    ),
    "F13": (
        ("f13_killed_before", "f13_killed_after"),
        ("f13_a_start_that_cannot_be_written",),
        ("f13_a_start_that_cannot_be_written",),
        ("f13_given_up_before", "f13_a_stop_after"),
        ("f13_a_retry_that_ends_unclear",),
        ("f13_a_retry_that_ends_unclear",),
    ),
    "F14": (
        ("f14_a_rewrite_that_was_killed",),
        ("f14_a_rewrite_that_cannot_be_written",),
        ("f14_a_rewrite_that_cannot_be_written",),
        ("f14_a_rewrite_nobody_waits_for",),
        ("f14_a_rewrite_nobody_waits_for",),
        ("f14_a_line_lost",),
    ),
    "F15": (
        ("f15_an_owner_killed", "f15_killed_before_anything"),
        ("f15_a_takeover_that_cannot_be_written",),
        ("f15_a_takeover_that_cannot_be_written",),
        Absent("a takeover is one commit, and nobody can stop it half way"),
        ("f15_an_owner_that_cannot_renew",),
        ("f15_a_body_that_outlives",),
    ),
    "F16": (
        ("f16_killed_while", "f16_killed_after"),
        ("f16_a_question_or_answer_that_cannot_be_written",),
        ("f16_a_failed_sync",),
        ("f16_a_stop",),
        ("f16_at_the_time_limit",),
        ("f16_a_question_whose_terminal",),
    ),
    "F17": (
        ("f17_a_command_outlives", "f17_killed_before", "f17_killed_after", "f17_a_killed_supervisor"),
        ("f17_f18_a_claim_that_cannot_be_written", "f17_without_an_exit_record"),
        ("f17_a_sync_that_fails",),
        ("f17_a_stop",),
        ("f17_a_time_limit",),
        ("f17_a_command_outlives",),
    ),
    "F18": (
        ("f18_killed_after", "f18_killed_before", "f18_a_background_command_that_ended"),
        ("f17_f18_a_claim_that_cannot_be_written",),
        ("f18_a_sync_that_fails",),
        ("f18_a_stop_at_the_start", "f18_a_stop_later"),
        Absent("a background start has no time limit of its own"),
        ("f18_a_background_command_survives",),
    ),
    "F19": (
        ("f19_killed_before_it_took",),
        ("f19_a_mark_that_cannot_be_written",),
        ("f19_a_mark_that_cannot_be_written",),
        ("f19_a_caller_that_gave_up", "f19_a_late_result"),
        ("f19_a_caller_that_gave_up", "f19_a_late_result"),
        ("f19_killed_before_it_took",),
    ),
    "F20": (
        ("f20_a_parked_press_dies",),
        ("f20_a_parked_press_that_cannot_be_written",),
        ("f20_a_parked_press_that_cannot_be_written",),
        ("f20_a_stop",),
        Absent("a parked press waits for its border, however long that takes"),
        ("f20_a_line_lost",),
    ),
}

BEYOND: Mapping[str, tuple[str, ...] | Unbuilt] = {
    "owner and supervisor killed together": ("test_tr_186_f17_a_killed_supervisor",),
    "SIGSTOP past the lease, then SIGCONT": ("test_tr_187_a_stopped_owner", "test_tr_187_an_owner_that_lost"),
    "suspend over the deadline": ("test_tr_187_a_suspend",),
    "five crashes in one call's life": ("test_tr_187_five_deaths",),
    "a full disk that recovers": ("test_tr_187_a_full_disk_that_recovers",),
    "two processes opening at once": ("test_tr_187_two_processes",),
    "two containers on one volume": ("test_tr_173_tr_187_two_containers",),
    "clock moved a day either way": ("test_tr_187_a_clock",),
    "foreign programs that read, lock or checkpoint the ledger's file": (
        "test_tr_191_a_foreign",
        "test_tr_193_a_foreign",
    ),
    "every engine": ("test_tr_187_every_engine",),
    "a bit flipped at every byte of ledger or log": ("test_tr_187_a_bit_flipped",),
    "the tail cut at every byte": ("test_tr_187_a_tail_cut",),
    "a ghost frame after D1, D6, D8 and a decision": ("test_tr_187_a_ghost_frame",),
    "run folder removed, replaced or of an older boot": ("test_tr_187_a_run_folder",),
    "reconciler killed after its claim": ("test_tr_187_a_reconciler",),
    "`RETRY` with a living process": ("test_tr_187_a_retry_beside",),
    "successor that fails before its first byte": ("test_tr_187_a_successor",),
}


@dataclass(frozen=True, slots=True)
class Shown:
    """One cell as it came out."""

    word: str
    detail: str
    tests: int = 0


def collected(folder: Path) -> list[str]:
    """The names of the tests that are written in a folder, in their order."""
    found = []
    for path in sorted(folder.glob("test_*.py")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith(("def test_", "async def test_")):
                found.append(line.partition("def ")[2].partition("(")[0])
    return found


def wanted() -> Iterator[str]:
    """The beginnings of the names of all tests in the two tables."""
    for cells in MATRIX.values():
        for cell in cells:
            if isinstance(cell, tuple):
                yield from (PREFIX + name for name in cell)
    for further in BEYOND.values():
        if isinstance(further, tuple):
            yield from further


def run(folder: Path, workers: int, engine: str) -> dict[str, bool]:
    """Run the tests of the matrix on an engine; for each name whether every variant of it passed."""
    names = [name for name in collected(folder) if name.startswith(tuple(wanted()))]
    if engine != "sqlite":
        names = [name for name in names if not name.startswith(NEEDS_THE_FILE)]
    environ = {**os.environ, "MATRIX_ENGINE": engine}
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), f"--junitxml={report}"]
        subprocess.run([*command, "-k", " or ".join(names), str(folder)], check=False, env=environ)
        return read_report(report)


def read_report(report: Path) -> dict[str, bool]:
    """The results of a junit file by the name of the test, its variants taken together."""
    passed: dict[str, bool] = {}
    for case in Tree.parse(report).iter("testcase"):
        name = str(case.get("name")).partition("[")[0]
        bad = any(case.find(kind) is not None for kind in ("failure", "error", "skipped"))
        passed[name] = passed.get(name, True) and not bad
    return passed


def for_engine(engine: str, cell: Cell, prefix: str = PREFIX) -> Cell:
    """The cell as it is asked of an engine: without the tests that strike the files of another one."""
    if engine == "sqlite" or not isinstance(cell, tuple):
        return cell
    left = tuple(name for name in cell if not f"{prefix}{name}".startswith(NEEDS_THE_FILE))
    return left or Absent("it strikes the files of the SQLite engine")


def show(cell: Cell, passed: Mapping[str, bool], prefix: str = PREFIX) -> Shown:
    """What became of a cell. A name without a test is wrong, since nothing proves it."""
    if isinstance(cell, Absent):
        return Shown(ABSENT, cell.why)
    if isinstance(cell, Unbuilt):
        return Shown(UNBUILT, cell.why)
    wrong, tests = [], 0
    for name in cell:
        found = [ok for test, ok in passed.items() if test.startswith(prefix + name)]
        tests += len(found)
        if not found or not all(found):
            wrong.append(f"{prefix}{name}…")
    return Shown(WRONG, ", ".join(wrong), tests) if wrong else Shown(OK, "", tests)


def draw(passed: Mapping[str, bool], engine: str = "sqlite") -> tuple[str, dict[str, int]]:
    """The page, and how many cells came out how."""
    counts = {OK: 0, WRONG: 0, ABSENT: 0, UNBUILT: 0}
    notes: list[str] = []

    def told(where: str, shown: Shown) -> str:
        counts[shown.word] += 1
        if shown.detail:
            notes.append(f"- {where}: {shown.word}; {shown.detail}.")
        return f"{shown.word} ({shown.tests})" if shown.word == OK else shown.word

    lines = [f"| step | {' | '.join(COLUMNS)} |", "|---" * 7 + "|"]
    for step, cells in MATRIX.items():
        row = [
            told(f"{step}, {column}", show(for_engine(engine, cell), passed))
            for column, cell in zip(COLUMNS, cells, strict=True)
        ]
        lines.append(f"| {step} {STEPS[step]} | {' | '.join(row)} |")
    lines += ["", "| further fault (TR-187) | |", "|---|---|"]
    for name, further in BEYOND.items():
        lines.append(f"| {name} | {told(name, show(for_engine(engine, further, ''), passed, ''))} |")
    total = ", ".join(f"{count} {word}" for word, count in counts.items())
    return "\n".join([*_HEAD, *lines, "", f"Cells: {total}.", "", *_merged(notes), ""]), counts


_HEAD = (
    "# Fault matrix",
    "",
    "Generated by `make matrix`; do not edit. Each cell runs its step in a child process, shows that its fault",
    "fired, opens the session again in a fresh process and compares what it finds (TR-186). The number is how many",
    "tests stand behind a cell. Nothing here is left to chance: a fault strikes a named seam, so there are no seeds.",
    "Run one cell again with `pytest tests/crash -k f6_cancel`.",
    "",
)


def _merged(notes: Sequence[str]) -> list[str]:
    """One line for each reason, with all its places."""
    places: dict[str, list[str]] = {}
    for note in notes:
        where, _, why = note.removeprefix("- ").partition(": ")
        places.setdefault(why, []).append(where)
    return [f"- {'; '.join(where)}: {why}" for why, where in places.items()]


def main(arguments: Sequence[str]) -> int:
    """Run, print, and write the page when asked; 1 when a cell is wrong."""
    parser = argparse.ArgumentParser(prog="surefoot.testing.matrix", description="Run the fault matrix.")
    parser.add_argument("--tests", type=Path, default=Path("tests/crash"), help="folder of the tests")
    parser.add_argument("--workers", type=int, default=2, help="how many tests run side by side")
    parser.add_argument("--engine", choices=sorted(ENGINES), default="sqlite", help="what children run on")
    parser.add_argument("--write", type=Path, help="write the page to this file")
    asked = parser.parse_args(arguments)
    page, counts = draw(run(asked.tests, asked.workers, asked.engine), asked.engine)
    print(page)
    if asked.write is not None:
        asked.write.write_text(page, encoding="utf-8")
    return 1 if counts[WRONG] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
