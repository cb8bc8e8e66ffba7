"""TR-186, steps F17 and F18: supervised commands and background starts, struck through the whole runtime.

The same seams on the supervisor alone stand in `test_supervisor_agent_death`.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from surefoot.testing.crash import Ended, leftovers
from surefoot.testing.kills import TELLS, Site
from surefoot.testing.model import call

WAITS = "while ! test -e go; do sleep 0.01; done; echo effect >> effects; echo told"
STARTED, CLOSED = "append[attempt.started]", "append[attempt.closed]"
RUNNING = "append[attempt.process].after"
LOG_SYNC, RECORD_SYNC, FOLDER_SYNC, PARENT_SYNC = 1, 2, 3, 4
"""The syncs of a supervisor at the end of its command, in their order."""


def runs(site: Site, command: str, **arguments: Any) -> None:
    site.script({"calls": [call("shell", command=command, **arguments)]}, TELLS)


def until(site: Site, state: str, **fields: Any) -> Ended:
    """Open the session again until its first call is in a state."""
    end = time.monotonic() + 90
    while (ended := site.again(**fields)).report["receipts"][0]["state"] != state:
        assert time.monotonic() < end, ended.report["receipts"]
    return ended


@pytest.mark.promise("receipt:exact")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP, signal.SIGTERM])
def test_tr_186_f17_a_command_outlives_its_agent_and_the_next_owner_adopts_its_end(
    site: Site, number: signal.Signals
) -> None:
    runs(site, WAITS)
    assert site.run(prompts=("go",), kill_at=1, only=(RUNNING,), signal=number).returncode == -number
    opened = site.again()
    (receipt,) = opened.report["receipts"]
    assert (receipt["state"], receipt["executor"]["state"]) == ("unknown", "alive")
    (shown,) = opened.report["snapshot"]["calls"]
    assert shown["process"]["state"] == "running" and site.lines("effects") == 0
    again = site.again(go_on=True, carry_out=True)
    assert site.lines("effects") == 0 and "its end is not known" in again.report["said"][1]
    (site.project / "go").touch()
    adopted = until(site, "succeeded")
    assert adopted.report["receipts"][0]["result"]["text"] == "told\n" and site.lines("effects") == 1
    site.quiet()


def test_tr_186_f17_killed_before_the_claim_the_command_never_ran(site: Site) -> None:
    runs(site, "echo effect >> effects")
    assert site.run(prompts=("go",), kill_at=1, only=(f"{STARTED}.after",)).killed
    opened = site.again()
    (receipt,) = opened.report["receipts"]
    assert (receipt["state"], receipt["reason"], receipt["effectTrace"]) == ("failed", "never_ran", "none")
    site.quiet()
    assert site.lines("effects") == 0


@pytest.mark.parametrize("at", [f"{CLOSED}.before", "tool[shell].returned"])
def test_tr_186_f17_killed_after_the_end_the_exit_record_settles(site: Site, at: str) -> None:
    runs(site, "echo effect >> effects; echo told; exit 3")
    assert site.run(prompts=("go",), kill_at=1, only=(at,)).killed
    (receipt,) = until(site, "failed").report["receipts"]
    assert receipt["errorKind"] == "exit_code" and "told" in receipt["result"]["text"]
    assert site.lines("effects") == 1


def test_tr_186_f17_a_stop_ends_the_command_and_leaves_it_unknown_and_fenced(site: Site) -> None:
    runs(site, "echo effect >> effects; exec sleep 300")
    ended = site.run(prompts=("go",), kill_at=1, only=(RUNNING,), strike={"do": "stop"})
    assert ended.report["fault"]["at"] == RUNNING and ended.report["turns"][0]["status"] == "cancelled"
    assert ended.report["receipts"][0]["state"] == "unknown"
    site.quiet()
    opened = site.again()
    (receipt,) = opened.report["receipts"]
    assert (receipt["state"], receipt["effectTrace"]) == ("unknown", "possible")
    (shown,) = opened.report["snapshot"]["calls"]
    assert shown["executor"]["state"] == "ended" and site.lines("effects") == 1


def test_tr_186_f17_a_time_limit_ends_the_command_and_leaves_it_unknown(site: Site) -> None:
    runs(site, "echo effect >> effects; exec sleep 300", timeout_seconds=6.0)
    ended = site.run(prompts=("go",))
    (receipt,) = ended.report["receipts"]
    assert (receipt["state"], receipt["reason"]) == ("unknown", "time_limit")
    assert "its end is not known" in ended.report["said"][1]
    site.quiet()
    assert site.lines("effects") == 1 and leftovers(site.root) == []


class Unsynced:
    """Syncs that fail in the supervisors of a site from the `first` one on, until it is mended."""

    def __init__(self, site: Site, first: int) -> None:
        self.switch = site.root / "unsynced"
        self.switch.write_text(str(first))

    @property
    def fired(self) -> int:
        path = Path(f"{self.switch}.fired")
        return len(path.read_text().splitlines()) if path.exists() else 0

    def until_fired(self) -> None:
        end = time.monotonic() + 90
        while not self.fired:
            assert time.monotonic() < end, "no sync failed in time"
            time.sleep(0.005)

    def mend(self) -> None:
        self.switch.unlink()


def exits(site: Site) -> list[Path]:
    return list(site.root.rglob("processes/*/exit"))


def supervisor_of(site: Site) -> int:
    (claim,) = site.root.rglob("processes/*/claim")
    return int(json.loads(claim.read_text())["pid"])


@pytest.mark.parametrize("first", [LOG_SYNC, RECORD_SYNC])
def test_tr_186_f17_a_sync_that_fails_leaves_no_exit_record_and_an_unknown(site: Site, first: int) -> None:
    unsynced = Unsynced(site, first)
    runs(site, WAITS)
    assert site.run(prompts=("go",), kill_at=1, only=(RUNNING,), unsynced=str(unsynced.switch)).killed
    (site.project / "go").touch()
    unsynced.until_fired()
    (receipt,) = site.again().report["receipts"]
    assert (receipt["state"], receipt["executor"]["state"], exits(site)) == ("unknown", "alive", [])
    os.kill(supervisor_of(site), signal.SIGKILL)
    site.quiet()
    ended = site.again()
    (receipt,) = ended.report["receipts"]
    (shown,) = ended.report["snapshot"]["calls"]
    assert (receipt["state"], shown["executor"]["state"]) == ("unknown", "not_proven")
    assert site.lines("effects") == 1 and exits(site) == []


@pytest.mark.parametrize("first", [LOG_SYNC, RECORD_SYNC])
def test_tr_186_f17_a_sync_that_fails_and_recovers_settles_the_command_exactly(
    site: Site, first: int
) -> None:
    unsynced = Unsynced(site, first)
    runs(site, WAITS)
    assert site.run(prompts=("go",), kill_at=1, only=(RUNNING,), unsynced=str(unsynced.switch)).killed
    (site.project / "go").touch()
    unsynced.until_fired()
    assert site.again().report["receipts"][0]["state"] == "unknown"
    unsynced.mend()
    settled = until(site, "succeeded").report["receipts"][0]
    assert settled["result"]["text"] == "told\n" and site.lines("effects") == 1
    site.quiet()


@pytest.mark.parametrize("first", [FOLDER_SYNC, PARENT_SYNC])
def test_tr_186_f17_a_sync_that_fails_after_the_record_stands_settles_by_the_record(
    site: Site, first: int
) -> None:
    unsynced = Unsynced(site, first)
    runs(site, WAITS)
    assert site.run(prompts=("go",), kill_at=1, only=(RUNNING,), unsynced=str(unsynced.switch)).killed
    (site.project / "go").touch()
    unsynced.until_fired()
    settled = site.again().report["receipts"][0]
    assert (settled["state"], settled["result"]["text"]) == ("succeeded", "told\n")
    assert site.lines("effects") == 1


@pytest.mark.parametrize("first", [LOG_SYNC, RECORD_SYNC, FOLDER_SYNC, PARENT_SYNC])
def test_tr_186_f17_a_sync_that_fails_beside_a_living_agent_is_settled_by_what_it_heard(
    site: Site, first: int
) -> None:
    unsynced = Unsynced(site, first)
    runs(site, "echo effect >> effects; echo told; exit 3")
    ended = site.run(prompts=("go",), unsynced=str(unsynced.switch))
    assert unsynced.fired and ended.report["receipts"][0]["state"] == "failed"
    (receipt,) = site.again().report["receipts"]
    assert (receipt["state"], receipt["errorKind"]) == ("failed", "exit_code")
    assert "told" in receipt["result"]["text"] and site.lines("effects") == 1


# F18 background start ------------------------------------------------------------------------------


@pytest.mark.parametrize("at", ["tool[shell].returned", f"{CLOSED}.before", f"{CLOSED}.after"])
def test_tr_186_f18_killed_after_the_claim_a_living_process_is_a_success_and_listed(
    site: Site, at: str
) -> None:
    runs(site, "exec sleep 300", background=True)
    assert site.run(prompts=("go",), kill_at=1, only=(at,)).killed
    opened = site.again()
    assert opened.report["receipts"][0]["state"] == "succeeded" and opened.report["open"] == []
    (listed,) = opened.report["background"]
    assert listed["attemptId"] == opened.report["receipts"][0]["attemptId"] and leftovers(site.root) != []
    again = site.again(go_on=True, carry_out=True)
    assert len(again.report["background"]) == 1 and again.report["turns"][-1]["status"] == "completed"


def test_tr_186_f18_killed_before_the_claim_nothing_was_started(site: Site) -> None:
    runs(site, "exec sleep 300", background=True)
    assert site.run(prompts=("go",), kill_at=1, only=(f"{STARTED}.after",)).killed
    opened = site.again()
    (receipt,) = opened.report["receipts"]
    assert (receipt["state"], receipt["reason"]) == ("failed", "never_ran")
    site.quiet()


def test_tr_186_f18_a_background_command_that_ended_is_judged_by_its_exit_record(site: Site) -> None:
    runs(site, "echo effect >> effects; exit 4", background=True)
    assert site.run(prompts=("go",), kill_at=1, only=(f"{CLOSED}.before",)).killed
    site.quiet()
    (receipt,) = site.again().report["receipts"]
    assert receipt["state"] == "failed" and site.lines("effects") == 1


def test_tr_186_f18_a_stop_later_leaves_the_resource_running(site: Site) -> None:
    runs(site, "exec sleep 300", background=True)
    ended = site.run(prompts=("go",), kill_at=1, only=(f"{CLOSED}.after",), strike={"do": "stop"})
    assert ended.report["turns"][0]["status"] == "cancelled"
    assert ended.report["receipts"][0]["state"] == "succeeded"
    opened = site.again()
    assert len(opened.report["background"]) == 1 and leftovers(site.root) != []


@pytest.mark.parametrize("first", [LOG_SYNC, RECORD_SYNC])
def test_tr_186_f18_a_sync_that_fails_makes_no_success_of_a_background_command_that_ended(
    site: Site, first: int
) -> None:
    unsynced = Unsynced(site, first)
    runs(site, f"{WAITS}; exit 4", background=True)
    at = {"kill_at": 1, "only": (f"{CLOSED}.before",), "unsynced": str(unsynced.switch)}
    assert site.run(prompts=("go",), **at).killed
    (site.project / "go").touch()
    unsynced.until_fired()
    opened = site.again()
    (receipt,) = opened.report["receipts"]
    assert receipt["state"] == "unknown" and exits(site) == [] and site.lines("effects") == 1
    unsynced.mend()
    settled = until(site, "succeeded").report["receipts"][0]  # it lived past its probe: the start succeeded
    assert "ended since: exit code 4" in settled["result"]["text"]
    site.quiet()


def test_tr_186_f18_a_sync_that_fails_for_good_leaves_an_ended_background_command_unknown(site: Site) -> None:
    unsynced = Unsynced(site, LOG_SYNC)
    runs(site, WAITS, background=True)
    at = {"kill_at": 1, "only": (f"{CLOSED}.before",), "unsynced": str(unsynced.switch)}
    assert site.run(prompts=("go",), **at).killed
    (site.project / "go").touch()
    unsynced.until_fired()
    os.kill(supervisor_of(site), signal.SIGKILL)
    site.quiet()
    opened = site.again()
    assert opened.report["receipts"][0]["state"] == "unknown" and opened.report["background"] == []
    assert site.lines("effects") == 1
