"""TR-173, TR-187: owners in two process name spaces share one volume, and cannot see each other's processes."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import SessionHeld
from surefoot.testing.containers import Container, container
from surefoot.testing.crash import Ended
from surefoot.testing.faults import read_trace
from surefoot.testing.kills import TELLS, Site
from surefoot.testing.model import call

RUNNING = "append[attempt.process].after"
WAITS = "while ! test -e go; do sleep 0.01; done; echo effect >> effects; echo told"


@pytest.fixture
def one(site: Site) -> Iterator[Container]:
    with container("one", site.root) as made:
        yield made


@pytest.fixture
def two(site: Site) -> Iterator[Container]:
    with container("two", site.root) as made:
        yield made


def told(ended: Ended) -> list[tuple[str, str | None]]:
    return [(receipt["state"], receipt["reason"]) for receipt in ended.report["receipts"]]


def until(holds: Callable[[], Any]) -> None:
    end = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < end, "it did not come to hold in time"
        time.sleep(0.01)


def pays(site: Site) -> None:
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)


def effects(site: Site) -> int:
    return site.equipment.sink.count(site.label)


def newest(site: Site, **fields: Any) -> Any:
    return site.spec(session="newest", **fields)


@pytest.mark.promise("ledger:fenced")
def test_tr_173_tr_187_two_containers_a_living_owner_next_door_is_never_taken_for_dead(
    site: Site, one: Container, two: Container
) -> None:
    pays(site)
    seam = "append[attempt.started].before"
    leases = {"limits.lease_seconds": 1, "limits.lease_renewal_seconds": 0.4}
    stops = {"kill_at": 1, "only": (seam,), "signal": signal.SIGSTOP}
    with one.started(site.spec(prompts=("go",), flags=leases, **stops)) as child:
        until(lambda: seam in read_trace(site.root / "trace-one.txt")[0])
        since = time.monotonic()
        while time.monotonic() - since < 1.2:  # longer than the lease: it is stopped, not dead
            held = two.run(newest(site, carry_out=True))
            assert held.report["error"] == SessionHeld.code
        until(lambda: os.killpg(child.pid, signal.SIGCONT) or (site.root / "report-one.json").exists())
        assert child.wait(120) == 0
    assert told(two.run(newest(site))) == [("succeeded", None)] and effects(site) == 1


def test_tr_173_tr_187_two_containers_a_dead_owner_next_door_is_known_at_once_by_its_lock(
    site: Site, one: Container, two: Container
) -> None:
    pays(site)
    seam = "tool[pay].after_effect"
    flags = {"limits.lease_seconds": 600}
    assert one.run(site.spec(prompts=("go",), kill_at=1, only=(seam,), flags=flags)).killed
    opened = two.run(newest(site, verify=False, carry_out=True))
    assert told(opened) == [("unknown", "owner_died")] and effects(site) == 1


@pytest.mark.parametrize("lease_seconds", [1, 600])
def test_tr_173_tr_187_two_containers_without_a_lock_the_next_owner_waits_for_the_lease(
    site: Site, one: Container, two: Container, lease_seconds: int
) -> None:
    """No pid of another name space proves anything, not even the number that this one has here too."""
    pays(site)
    flags = {"limits.lease_seconds": lease_seconds, "limits.lease_renewal_seconds": lease_seconds / 3}
    seam = "append[assistant].after"
    assert one.run(site.spec(prompts=("go",), kill_at=1, only=(seam,), flags=flags)).killed
    for lock in site.root.rglob("owners/*"):
        lock.unlink()
    if lease_seconds == 600:
        first = two.run(newest(site))
        assert (first.report["error"], first.report["facts"]["how"]) == (SessionHeld.code, "lease")
    else:
        until(lambda: "error" not in two.run(newest(site, verify=False)).report)
        assert told(two.run(newest(site))) == [("not_started", "owner_died_before_start")]
    assert effects(site) == 0


def runs_on(site: Site, one: Container) -> dict[str, Any]:
    """A command whose agent died in container one; gives its claim."""
    site.script({"calls": [call("shell", command=WAITS)]}, TELLS)
    assert one.run(site.spec(prompts=("go",), kill_at=1, only=(RUNNING,))).killed
    (claim,) = site.root.rglob("processes/*/claim")
    return dict(json.loads(Path(claim).read_text()))


def test_tr_173_tr_187_two_containers_a_command_next_door_is_not_fenced_and_settles_by_its_record(
    site: Site, one: Container, two: Container
) -> None:
    claim = runs_on(site, one)
    assert not one.real or claim["pidNamespace"] != str(Path("/proc/self/ns/pid").readlink())
    opened = two.run(newest(site, carry_out=True))
    (shown,) = opened.report["snapshot"]["calls"]
    assert told(opened)[0][0] == "unknown" and shown["executor"]["state"] == "not_proven"
    assert site.lines("effects") == 0
    (site.project / "go").touch()
    until(lambda: list(site.root.rglob("processes/*/exit")))
    settled = two.run(newest(site))
    assert told(settled) == [("succeeded", None)] and site.lines("effects") == 1
    assert settled.report["receipts"][0]["result"]["text"] == "told\n"


def test_tr_173_tr_187_two_containers_a_removed_container_leaves_an_unfenced_unknown(
    site: Site, one: Container, two: Container
) -> None:
    runs_on(site, one)
    one.kill()
    site.quiet()
    opened = two.run(newest(site, carry_out=True))
    (shown,) = opened.report["snapshot"]["calls"]
    assert told(opened)[0][0] == "unknown" and site.lines("effects") == 0
    if one.real:  # the processes of a pretended one die one by one, where others can see it
        assert shown["executor"]["state"] == "not_proven"
        assert not list(site.root.rglob("processes/*/exit"))
