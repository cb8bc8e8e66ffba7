"""Cases of family G: one owner, told apart from others by what the kernel says.

Covered where they belong: g02, g03 and g05 by the ledger's own tests (a shut gate, a commit of one
piece, a shared file system proves nothing), g09 and g10 by the parking of words (TR-184). The
threads of g04 wait for their adapter.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from surefoot.errors import SessionHeld
from surefoot.testing.crash import Ended
from surefoot.testing.kills import TELLS, Site
from surefoot.testing.model import call


def told(ended: Ended) -> list[tuple[str, str | None]]:
    return [(one["state"], one["reason"]) for one in ended.report["receipts"]]


def effects(site: Site) -> int:
    return site.equipment.sink.count(site.label)


def test_case_g01_many_agents_on_one_ledger_lose_no_receipt(site: Site) -> None:
    site.script({"calls": [call("pay", label=site.label) for _ in range(10)]}, {"text": "Done."})
    workers = []
    for _ in range(6):
        worker = site.started(prompts=("go",))
        workers.append((worker, worker.__enter__()))
    try:
        codes = [child.nursery.wait(child.pid, 60) for _, child in workers]
    finally:
        for worker, _ in workers:
            worker.__exit__(None, None, None)
    reports = [json.loads(path.read_text()) for path in site.root.glob("report-*.json")]
    assert codes == [0] * 6 and len(reports) == 6 and len({one["sessionId"] for one in reports}) == 6
    states = [receipt["state"] for one in reports for receipt in one["receipts"]]
    assert len(states) == 60 and effects(site) == states.count("succeeded") == 60
    assert max(one["sessions"] for one in reports) == 6


def test_case_g06_a_second_writer_is_refused_and_may_read(site: Site) -> None:
    site.script({"calls": [call("ask_user", question="Go on?")]}, TELLS)
    with site.started(prompts=("go",), answers=(), kill_at=9, only=("asked",)) as child:
        child.until_seam("asked")
        second = site.again(prompts=("me too",))
        assert second.report["error"] == SessionHeld.code
        assert second.report["facts"]["pid"] == child.pid
        os.kill(child.pid, signal.SIGKILL)
    assert site.again().report["words"] == ["go"]


@pytest.mark.promise("ledger:fenced")
def test_case_g07_a_stalled_writer_that_lost_its_session_writes_nothing_more(site: Site) -> None:
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)
    at = {"kill_at": 1, "only": ("append[attempt.closed].before",), "signal": signal.SIGSTOP}
    with site.started(prompts=("go",), **at) as child:
        child.until_seam("append[attempt.closed].before")
        until = time.monotonic() + 90
        while Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            assert time.monotonic() < until
            time.sleep(0.005)
        taken = site.again(take_over=True, verify=False)
        os.kill(child.pid, signal.SIGCONT)
        assert child.nursery.wait(child.pid, 90) == 1
    assert told(taken) == [("unknown", "owner_died")] or told(taken)[0][0] == "unknown"
    assert told(site.again(verify=False)) == told(taken) and effects(site) == 1


def test_case_g08_a_dead_owners_session_is_free_at_once(site: Site) -> None:
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)
    seam = "tool[pay].after_effect"
    assert site.run(prompts=("go",), kill_at=1, only=(seam,), flags={"limits.lease_seconds": 600}).killed
    since = time.monotonic()
    assert told(site.again(verify=False)) == [("unknown", "owner_died")]
    assert time.monotonic() - since < 100  # far below the lease of ten minutes
