"""TR-187: what goes wrong beside the steps of a call: clocks, sleep, disks, folders, bits.

The bit and tail tests visit every byte when `EVERY_BYTE=1` (`make every-byte`), in parts that can
run side by side; otherwise a sample whose first byte a seed chooses (`MATRIX_SEED`, shown when a test fails).
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import LedgerError, SessionHeld, SessionMissing
from surefoot.ledger.opening import open_ledger
from surefoot.ledger.owners import this_process
from surefoot.testing.crash import Blow, Ended, Started, start_child
from surefoot.testing.kills import TELLS, Site
from surefoot.testing.model import call
from surefoot.testing.sink import Sink

DAY_MS = 86_400_000
FULL = {"do": "full"}
FSYNC_LASTING = {"do": "disk", "operation": "sync", "lasting": True}
STARTED, CLOSED, RESOLVED = "append[attempt.started]", "append[attempt.closed]", "append[attempt.resolved]"
RUNNING = "append[attempt.process].after"
RECONCILED = "append[attempt.closed+turn+hand_off]"
WAITS = "while ! test -e go; do sleep 0.01; done; echo effect >> effects"
SEED = int(os.environ.get("MATRIX_SEED", "7"))
EVERY_BYTE = os.environ.get("EVERY_BYTE") == "1"
PARTS = 64 if EVERY_BYTE else 1


def told(ended: Ended) -> list[tuple[str, str | None]]:
    return [(one["state"], one["reason"]) for one in ended.report["receipts"]]


def effects(site: Site, suffix: str = "") -> int:
    return site.equipment.sink.count(site.label + suffix)


def until(holds: Callable[[], Any]) -> None:
    end = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < end, "it did not come to hold in time"
        time.sleep(0.005)


def stands_still(child: Started) -> bool:
    return Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def dead_in(site: Site, seam: str, tool: str = "pay") -> None:
    site.script({"calls": [call(tool, label=site.label)]}, TELLS)
    assert site.run(prompts=("go",), kill_at=1, only=(seam,)).fatal == seam


def test_tr_186_f4_killed_before_the_effect_is_unknown_and_nothing_is_repeated(site: Site) -> None:
    dead_in(site, "tool[pay].before_effect")
    opened = site.again(verify=False, carry_out=True)
    assert told(opened) == [("unknown", "owner_died")] and effects(site) == 0


def test_tr_186_f4_a_lost_line_before_the_effect_is_unknown(site: Site, tmp_path: Path) -> None:
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)
    with Sink(tmp_path) as own:
        own.switch(commit="hold")
        spec = dataclasses.replace(site.spec(prompts=("go",)), sink_url=own.url)
        with start_child(spec, site.root, site.equipment.nursery) as child:
            until(lambda: own.state()["waiting"])
            os.kill(int(own.state()["pid"]), signal.SIGKILL)
            assert child.nursery.wait(child.pid, 90) == 0
    assert told(site.again(verify=False)) == [("unknown", "declared")]


# Clocks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wall_ms", [DAY_MS, -DAY_MS])
@pytest.mark.parametrize("seam", [f"{STARTED}.before", "tool[pay].before_effect", f"{CLOSED}.before"])
def test_tr_187_a_clock_moved_a_day_either_way_changes_no_outcome(
    site: Site, seam: str, wall_ms: int
) -> None:
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)
    strike = {"do": "clock", "wall_ms": wall_ms}
    ended = site.run(prompts=("go",), kill_at=1, only=(seam,), strike=strike)
    assert ended.report["fault"]["at"] == seam and ended.report["turns"][0]["status"] == "completed"
    assert told(ended) == told(site.again()) == [("succeeded", None)] and effects(site) == 1


@pytest.mark.parametrize("wall_ms", [DAY_MS, -DAY_MS])
def test_tr_187_a_clock_moved_during_recovery_makes_no_second_effect(site: Site, wall_ms: int) -> None:
    dead_in(site, "tool[put].after_effect", "put")
    site.equipment.sink.switch(keys="honour")
    strike = {"do": "clock", "wall_ms": wall_ms}
    at = {"kill_at": 1, "only": ("claim.after",), "strike": strike}
    ended = site.again(verify=False, carry_out=True, **at)
    assert ended.report["fault"]["at"] == "claim.after"
    assert told(ended)[-1] == ("succeeded", None) or len(ended.report["receipts"]) == 1
    assert len({one["key"] for one in site.equipment.sink.effects(site.label)}) == 1


@pytest.mark.parametrize("seam", [f"{STARTED}.before", "tool[pay].before_effect", f"{CLOSED}.before"])
def test_tr_187_a_suspend_over_the_deadline_is_told_as_what_is_known(site: Site, seam: str) -> None:
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)
    strike = {"do": "clock", "boot_ms": DAY_MS, "wall_ms": DAY_MS}
    at = {"kill_at": 1, "only": (seam,), "strike": strike, "limit_seconds": 30.0}
    ended = site.run(prompts=("go",), **at)
    assert ended.report["fault"]["at"] == seam
    (receipt,) = site.again(verify=False).report["receipts"]
    never = receipt["state"] == "not_started" or receipt["reason"] == "never_ran"
    assert effects(site) == (0 if never else 1)
    assert never or receipt["state"] in ("unknown", "succeeded")


# Disks --------------------------------------------------------------------------------------------


def test_tr_187_a_full_disk_that_recovers_serves_the_next_call(site: Site) -> None:
    """The first message meets the full disk; words sent after it meet room again."""
    paid = {"calls": [call("pay", label=f"{site.label}-later")]}
    site.script({"calls": [call("pay", label=site.label)]}, *([paid] * 2), TELLS, TELLS)
    at = {"kill_at": 1, "only": (f"{STARTED}.before",), "strike": {**FULL, "times": 4}}
    ended = site.run(prompts=("go", "again"), **at)
    assert ended.report["fault"]["disk"] >= 4 and effects(site) == 0
    assert effects(site, "-later") >= 1 and told(ended)[-1] == ("succeeded", None)
    opened = site.again()
    assert told(opened)[0][0] == "not_started" and told(opened)[1:] == told(ended)[1:]


GHOSTS = {"d1": "append[assistant]", "d6": STARTED, "d8": CLOSED, "decision": RESOLVED}


@pytest.mark.parametrize("where", sorted(GHOSTS))
def test_tr_187_a_ghost_frame_is_judged_once_and_the_same_ever_after(site: Site, where: str) -> None:
    seam = f"{GHOSTS[where]}.before"
    at = {"kill_at": 1, "only": (seam,), "strike": FSYNC_LASTING, "blow": Blow(0.8)}
    if where == "decision":
        dead_in(site, "tool[pay].after_effect")
        site.again(verify=False)
        ended = site.again(verify=False, actions=({"action": "confirm", "attemptId": "open"},), **at)
    else:
        site.script({"calls": [call("pay", label=site.label)]}, TELLS)
        ended = site.run(prompts=("go",), **at)
    assert ended.seams[:1] == [seam]
    opened = site.again(verify=False)
    made = 1 if where in ("d8", "decision") else 0
    assert effects(site) == made and len(opened.report["receipts"]) <= 1
    for receipt in opened.report["receipts"]:
        assert receipt["state"] in (
            ("unknown", "succeeded") if made else ("not_started", "unknown", "failed")
        )
        assert receipt["state"] != "failed" or receipt["reason"] == "never_ran"
    again = site.again(verify=False)
    assert told(again) == told(opened)
    assert [one["overlays"] for one in again.report["receipts"]] == [
        one["overlays"] for one in opened.report["receipts"]
    ]


# Owners -------------------------------------------------------------------------------------------


def test_tr_187_two_processes_that_open_at_once_are_one_owner_and_one_that_is_told(site: Site) -> None:
    dead_in(site, "tool[pay].after_effect")
    held = 0
    for _ in range(3):
        with (
            site.started(session="newest", verify=False) as one,
            site.started(session="newest", verify=False) as two,
        ):
            for child in (one, two):
                child.nursery.wait(child.pid, 90)
        reports = [json.loads(path.read_text()) for path in sorted(site.root.glob("report-*.json"))[-2:]]
        errors = [report.get("error") for report in reports]
        held += errors.count(SessionHeld.code)
        assert set(errors) <= {None, SessionHeld.code} and None in errors
    opened = site.again(verify=False)
    assert told(opened) == [("unknown", "owner_died")] and effects(site) == 1
    assert opened.report["statuses"].count("interrupted") == 1


def test_tr_187_a_reconciler_killed_after_its_claim_leaves_a_command_that_never_runs(site: Site) -> None:
    site.script({"calls": [call("shell", command="echo effect >> effects")]}, TELLS)
    seam = f"{STARTED}.after"
    assert site.run(prompts=("go",), kill_at=1, only=(seam,)).fatal == seam
    for _ in range(3):
        assert site.again(kill_at=1, only=(f"{RECONCILED}.before",)).killed
    assert told(site.again()) == [("failed", "never_ran")]
    site.quiet()
    assert site.lines("effects") == 0


def test_tr_187_a_successor_that_fails_before_its_first_byte_leaves_the_old_call_open(site: Site) -> None:
    dead_in(site, "tool[put].after_effect", "put")
    site.equipment.sink.switch(fail=1)
    ended = site.again(verify=False, carry_out=True)
    site.equipment.sink.switch(fail=0)
    first, second = ended.report["receipts"]
    assert (second["state"], second["effectTrace"]) == ("failed", "none") and effects(site) == 1
    assert first["state"] == "unknown" and ended.report["open"] == [first["attemptId"]]
    assert site.again(verify=False).report["open"] == [first["attemptId"]]


# Run folders --------------------------------------------------------------------------------------


def running_without_owner(site: Site, command: str = WAITS) -> Path:
    """A command that outlives its agent; gives its run folder."""
    site.script({"calls": [call("shell", command=command)]}, TELLS)
    assert site.run(prompts=("go",), kill_at=1, only=(RUNNING,)).killed
    (claim,) = site.root.rglob("processes/*/claim")
    return claim.parent


@pytest.mark.parametrize("how", ["removed", "replaced", "older boot"])
def test_tr_187_a_run_folder_that_is_not_the_one_of_the_call_proves_nothing(site: Site, how: str) -> None:
    folder = running_without_owner(site)
    (site.project / "go").touch()
    site.quiet()
    until(lambda: site.lines("effects") == 1 and (folder / "exit").exists() and (folder / "quiet").exists())
    if how == "older boot":
        for name in ("claim", "leader"):
            record = json.loads((folder / name).read_text())
            (folder / name).write_text(json.dumps({**record, "bootId": "another"}))
        (folder / "exit").unlink()
    else:
        kept = folder.with_name("kept")
        folder.rename(kept)
        if how == "replaced":
            shutil.copytree(kept, folder, ignore=shutil.ignore_patterns("stop"))
            forged = json.loads((kept / "exit").read_text()) | {"secret": "0" * 64}
            (folder / "exit").write_text(json.dumps(forged))
    opened = site.again()
    (receipt,) = opened.report["receipts"]
    assert receipt["state"] == "unknown" and receipt["effectTrace"] == "possible"
    assert opened.report["snapshot"]["calls"][0]["process"]["state"] != "running"


def test_tr_186_f17_a_killed_supervisor_with_its_agent_leaves_an_unfenced_unknown(site: Site) -> None:
    site.script({"calls": [call("shell", command=WAITS)]}, TELLS)
    at = {"kill_at": 1, "only": (RUNNING,), "signal": signal.SIGSTOP}
    with site.started(prompts=("go",), **at) as child:
        child.until_seam(RUNNING)
        until(lambda: stands_still(child))
        (claim,) = site.root.rglob("processes/*/claim")
        os.kill(int(json.loads(claim.read_text())["pid"]), signal.SIGKILL)
        os.kill(child.pid, signal.SIGKILL)
        child.nursery.wait(child.pid, 90)
    (receipt,) = site.again().report["receipts"]
    assert (receipt["state"], receipt["executor"]["state"]) == ("unknown", "alive")
    (site.project / "go").touch()
    site.quiet()
    ended = site.again()
    (receipt,) = ended.report["receipts"]
    (shown,) = ended.report["snapshot"]["calls"]
    assert (receipt["state"], shown["executor"]["state"]) == ("unknown", "not_proven")
    assert site.lines("effects") == 1
    inspected = site.again(actions=({"action": "inspect", "attemptId": "open"},))
    assert inspected.report["receipts"][0]["inspection"]["state"] != "absent_fenced"


# Bits and tails -----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Original:
    """A small ledger that a killed agent left, and what it says."""

    folder: Path
    session: str
    entries: list[Any]


@pytest.fixture
def original(site: Site) -> Original:
    dead_in(site, "tool[pay].after_effect")
    ended = site.again(verify=False)
    (path,) = site.root.rglob("ledger.db")
    entries = asyncio.run(read_all(path.parent, ended.report["sessionId"]))
    return Original(path.parent, ended.report["sessionId"], entries)


async def read_all(folder: Path, session: str) -> list[Any]:
    """Open as an owner does, verify, and give what it says. Raises `LedgerError` for what it notices."""
    ledger = await open_ledger(folder, create=False)
    try:
        owner, lock = this_process(folder / "owners")
        try:
            try:
                claim = await ledger.claim(session, owner, take_over=True)
            except SessionMissing:
                rows = [row.status for row in await ledger.sessions() if row.session_id == session]
                if "lost" not in rows:
                    return []
                raise LedgerError("the session is listed as lost") from None
            tail = getattr(claim, "tail", None)
            if tail is not None and tail.lost:
                raise LedgerError("the tail is lost")
            findings = (await ledger.verify()).findings
            if findings:
                raise LedgerError(str(findings))
            entries = [(one.kind, one.payload) for one in await ledger.read(session)]
        finally:
            lock.close()
    finally:
        await ledger.close()
    return entries


def offsets(size: int, part: int, samples: int = 150) -> Iterable[int]:
    """Every byte of a part, or about so many of them from a seeded start, always the last."""
    if EVERY_BYTE:
        return range(part, size, PARTS)
    step = max(1, size // samples)
    return [*range(random.Random(SEED).randrange(step), size, step), size - 1]


def damaged(original: Original, name: str, change: Callable[[bytearray], None], number: int) -> bool:
    """Whether a changed copy is noticed, or says exactly what it said before."""
    copy = original.folder.parent / f"copy-{number}"
    shutil.copytree(original.folder, copy, ignore=shutil.ignore_patterns("*-shm", "owners", "processes"))
    content = bytearray((copy / name).read_bytes())
    change(content)
    (copy / name).write_bytes(content)
    try:
        entries = asyncio.run(read_all(copy, original.session))
    except LedgerError:
        return True
    finally:
        shutil.rmtree(copy)
    return entries[: len(original.entries)] == original.entries


def files_of(original: Original) -> Iterator[tuple[str, int]]:
    for name in ("ledger.db", "ledger.db-wal"):
        with contextlib.suppress(FileNotFoundError):
            yield name, (original.folder / name).stat().st_size


def unnoticed(
    original: Original, part: int, change: Callable[[bytearray, int], None]
) -> list[tuple[str, int]]:
    """The places of this part where a change says something else and nobody notices."""
    numbers = itertools.count(1)
    found = []
    for name, size in files_of(original):
        for offset in offsets(size, part) if size else ():

            def here(content: bytearray, offset: int = offset) -> None:
                change(content, offset)

            if not damaged(original, name, here, next(numbers)):
                found.append((name, offset))
    return found


@pytest.mark.parametrize("part", range(PARTS))
def test_tr_187_a_bit_flipped_anywhere_is_noticed_or_changes_nothing(original: Original, part: int) -> None:
    def flip(content: bytearray, offset: int) -> None:
        content[offset] ^= 1 << (offset % 8)

    assert unnoticed(original, part, flip) == [], f"MATRIX_SEED={SEED}"


@pytest.mark.parametrize("part", range(PARTS))
def test_tr_187_a_tail_cut_anywhere_is_noticed_or_loses_nothing(original: Original, part: int) -> None:
    def cut(content: bytearray, offset: int) -> None:
        del content[offset:]

    assert unnoticed(original, part, cut) == [], f"MATRIX_SEED={SEED}"
