"""Cases of families A to D about what is known after a return: children, settings, copies, unreadable stores.

Agents below an agent are not built; their rows are played by what surefoot starts below a call,
which are calls of hooks and commands in the background.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pytest

from surefoot.core.model import Draft, EffectClass, State
from surefoot.errors import LedgerError
from surefoot.ledger.opening import open_ledger, open_reader
from surefoot.ledger.owners import this_process
from surefoot.ledger.places import OWNERS, PROCESSES
from surefoot.testing.crash import Ended
from surefoot.testing.faults import WrappedLedger
from surefoot.testing.kills import TELLS, Site
from surefoot.testing.model import call
from surefoot.testing.rig import Rig, Setup
from surefoot.testing.simulation import Simulation, simulate
from surefoot.tools.processes.background import Ends

T = TypeVar("T")
CLOSED = "append[attempt.closed].after"


def pay(site: Site) -> dict[str, Any]:
    return call("pay", label=site.label)


def effects(site: Site, suffix: str = "") -> int:
    return site.equipment.sink.count(site.label + suffix)


def told(ended: Ended) -> list[tuple[str, str | None]]:
    return [(one["state"], one["reason"]) for one in ended.report["receipts"]]


def digests(site: Site) -> dict[str, str]:
    (path,) = site.root.rglob("ledger.db")
    found = [one for one in sorted(path.parent.glob("ledger.db*")) if not one.name.endswith("-shm")]
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in found}


def surefoot(site: Site, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line in the project of a site."""
    program = "from surefoot.surfaces.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=site.project,
        env={**os.environ, "SUREFOOT_HOME": str(site.root / "home"), "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# C ------------------------------------------------------------------------------------------------


def test_case_c04_the_result_of_a_child_whose_parent_died_is_found_in_the_ledger(site: Site) -> None:
    site.script({"calls": [pay(site)]}, TELLS)
    assert site.run(prompts=("go",), hook="before", kill_at=1, only=(CLOSED,)).killed
    for _ in range(2):
        asked, own = site.again().report["receipts"]
        assert (own["state"], own["parentAttemptId"]) == ("succeeded", asked["attemptId"])
        assert f"did {site.label}-hook" in own["result"]["text"]
        assert (asked["state"], asked["reason"]) == ("not_started", "owner_died_before_start")
    assert (effects(site), effects(site, "-hook")) == (0, 1)


def test_case_c04_a_background_command_that_ended_while_nobody_was_there_is_still_known(site: Site) -> None:
    command = "while ! test -e go; do sleep 0.01; done; echo made > out; exit 7"
    site.script({"calls": [call("shell", command=command, background=True)]}, TELLS, TELLS)
    assert site.run(prompts=("go",), kill_at=1, only=(CLOSED,)).killed
    (running,) = site.again().report["background"]
    (site.project / "go").touch()
    site.quiet()
    (path,) = site.root.rglob("ledger.db")
    ends = Ends(path.parent / PROCESSES, probe_seconds=0)
    found = ends.take()
    until = time.monotonic() + 90
    while not found:
        assert time.monotonic() < until, "no end was found"
        time.sleep(0.01)
        found = ends.take()
    (end,) = found
    assert end.attempt_id == running["attemptId"] and end.exit_code == 7
    assert ends.take() == [], "told once"
    (receipt,) = site.again(carry_out=True, go_on=True).report["receipts"]
    assert receipt["attemptId"] == running["attemptId"] and (site.project / "out").exists()
    assert Path(receipt["process"]["log"]).exists()


NO_LAUNCH = [
    ("shell", {"command": "/nowhere/agent --run"}, "exit_code"),
    ("shell", {"command": "exec /nowhere/agent --run"}, "exit_code"),
    ("shell", {"command": "true", "directory": "nowhere"}, None),
]


@pytest.mark.parametrize(("tool", "arguments", "kind"), NO_LAUNCH, ids=["not found", "exec", "no folder"])
def test_case_c08_a_command_that_cannot_be_launched_is_no_success(
    site: Site, tool: str, arguments: dict[str, Any], kind: str | None
) -> None:
    site.script({"calls": [call(tool, **arguments)]}, TELLS)
    ended = site.run(prompts=("go",))
    (receipt,) = ended.report["receipts"]
    assert receipt["state"] in ("failed", "not_started")
    assert kind is None or receipt["errorKind"] == kind
    assert told(site.again()) == told(ended)


def test_case_c15_a_send_that_failed_is_told_by_its_receipt_in_front_of_a_summary_that_lies(
    site: Site,
) -> None:
    lie = "The mail was sent to everybody."
    site.script(
        {"calls": [call("send", label=site.label)]}, {"text": lie}, {"text": lie}, {"text": lie}, TELLS
    )
    site.equipment.sink.switch(fail=1)
    ended = site.run(prompts=("go",))
    assert told(ended) == [("failed", None)] and effects(site) == 0
    site.run(session="newest", prompts=("and?",))
    compacted = site.again(rewrite="compact")
    payload = json.dumps(compacted.report["rewritten"])
    assert '"failed"' in payload and "succeeded" not in payload
    site.script(*([TELLS] * 12))
    site.again(prompts=("go on",))
    asked = json.dumps(site.equipment.emulator.requests()[-1].json()["messages"])
    assert "failed" in asked and asked.index("failed") < asked.index(lie)
    assert told(site.again()) == [("failed", None)] and effects(site) == 0


# D ------------------------------------------------------------------------------------------------


def test_case_d06_a_loader_keeps_what_it_does_not_know_and_writes_nothing_while_it_reads(site: Site) -> None:
    site.script({"calls": [pay(site)]}, TELLS)
    session = site.run(prompts=("go",)).report["sessionId"]
    (path,) = site.root.rglob("ledger.db")

    async def append() -> None:
        ledger = await open_ledger(path.parent)
        owner, lock = this_process(path.parent / OWNERS)
        try:
            claim: Any = await ledger.claim(session, owner)
            await ledger.append(session, [Draft("future.kind", {"words": "kept"})], epoch=claim.epoch)
            await ledger.release(session, epoch=claim.epoch)
        finally:
            await ledger.close()
            lock.close()

    async def read() -> list[Any]:
        ledger = open_reader(path.parent)
        try:
            return [dict(one.payload) for one in await ledger.read(session) if one.kind == "future.kind"]
        finally:
            await ledger.close()

    asyncio.run(append())
    before = digests(site)
    assert asyncio.run(read()) == [{"words": "kept"}] and digests(site) == before
    went_on = site.again(prompts=("go on",))
    assert went_on.report["turns"][0]["status"] == "completed" and went_on.report["verified"] == []
    assert asyncio.run(read()) == [{"words": "kept"}] and effects(site) == 1


class UnreadableOnce(WrappedLedger):
    """The first read of a session fails, as on a disk that is away for a moment."""

    fired = 0

    async def _around(self, verb: str, detail: str, work: Callable[[], Awaitable[T]]) -> T:
        if verb in ("claim", "read") and not UnreadableOnce.fired:
            UnreadableOnce.fired += 1
            raise LedgerError("the disk is away (planned by a test); try again")
        return await work()


def test_case_d11_a_store_that_cannot_be_read_for_a_moment_is_no_empty_one() -> None:
    UnreadableOnce.fired = 0

    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        steps = [{"calls": [{"name": "pay", "args": {"label": "a"}}]}, {"text": "Done."}]
        setup = Setup(tools=[rig.world.tool("pay", EffectClass.NON_IDEMPOTENT)], steps=steps)
        first = await rig.own(setup)
        await first.turn("Pay.")
        first.process.kill()  # type: ignore[union-attr]
        with pytest.raises(LedgerError, match="the disk is away"):
            await rig.own(setup, wrap=lambda ledger, _: UnreadableOnce(ledger))
        assert UnreadableOnce.fired == 1 and len(rig.store.sessions) == 1
        heir = await rig.own(setup)
        assert [one.state for one in heir.session.book] == [State.SUCCEEDED] and rig.world.count("a") == 1

    simulate(1, main)


SECRET = "sk-ant-api03-" + "Zq7" * 30 + "AA"


def test_case_d15_a_secret_of_a_result_is_in_no_view_no_list_and_no_export(site: Site) -> None:
    site.script({"calls": [call("shell", command=f"echo token={SECRET}; exit 3")]}, {"text": "Seen."})
    ended = site.run(prompts=("go",))
    (receipt,) = ended.report["receipts"]
    assert receipt["resultDigest"] and SECRET not in json.dumps(ended.report["snapshot"])
    assert SECRET not in str(receipt["argumentsDisplay"])
    for words in (
        ("session", "list", "--json"), ("recover", "list", "--all", "--json"), ("session", "export"),
        ("session", "export", "--format", "md"), ("timeline", "--json"), ("doctor",),
    ):  # fmt: skip
        told = surefoot(site, *words)
        assert SECRET not in told.stdout + told.stderr, words
        assert told.stdout or told.stderr, words
        assert "export" not in words or (told.returncode == 0 and "echo token=" in told.stdout)
    told_again = site.again()
    assert told_again.report["receipts"][0]["resultDigest"] == receipt["resultDigest"]


def test_case_d16_a_copy_that_was_changed_on_its_way_is_found_out(site: Site, tmp_path: Path) -> None:
    site.script({"calls": [pay(site)]}, TELLS)
    site.run(prompts=("go",))
    (path,) = site.root.rglob("ledger.db")
    copy = tmp_path / "copy"
    with closing(sqlite3.connect(path)) as origin:
        origin.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copytree(path.parent, copy)

    async def verified() -> list[str]:
        ledger = open_reader(copy)
        try:
            return [one.code for one in (await ledger.verify()).findings]
        finally:
            await ledger.close()

    assert asyncio.run(verified()) == []
    with closing(sqlite3.connect(copy / "ledger.db")) as changed:
        said = "UPDATE entries SET payload = replace(payload, ?, ?) WHERE kind = 'attempt.closed'"
        changed.execute(said, (f"did {site.label}", f"Did {site.label}"))
        assert changed.total_changes == 1
        changed.commit()
    assert asyncio.run(verified()) != []


@pytest.mark.parametrize("form", ["text", "json"])
def test_ux_66_a_call_that_opening_proved_says_what_proved_it(site: Site, form: str) -> None:
    site.script({"calls": [pay(site)]}, TELLS)
    assert site.run(prompts=("go",), kill_at=1, only=("tool[pay].after_effect",)).killed
    (receipt,) = site.again().report["receipts"]
    assert receipt["overlays"] == ["proven"]
    told = surefoot(site, "recover", "inspect", receipt["attemptId"], *(["--json"] if form == "json" else []))
    assert told.returncode == 4
    said = json.loads(told.stdout)["message"] if form == "json" else told.stderr
    assert "Nobody decided it: sink proved that it happened (1 effect)." in said
