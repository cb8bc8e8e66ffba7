"""The chain of parents of a process, and what stands in it."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from surefoot.ledger.owners import this_process
from surefoot.tools.processes import ancestry, kernel

WAITS = "import sys; print('up', flush=True); sys.stdin.read()"


@pytest.fixture
def waiting() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Children that wait until they are closed."""
    made: list[subprocess.Popen[str]] = []

    def start(*argv: str, **how: Any) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            argv or (sys.executable, "-I", "-S", "-c", WAITS),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **how,
        )  # fmt: skip
        made.append(child)
        assert child.stdout is not None and child.stdout.readline().strip() == "up"
        return child

    yield start
    for child in made:
        child.kill()
        child.communicate(timeout=120)


def link(pid: int) -> ancestry.Link:
    found = kernel.stat_of(pid)
    assert found is not None
    return pid, found.start_ticks


def run_folder(ledgers: Path, claim: dict[str, Any], leader: dict[str, Any] | None = None) -> Path:
    run = ledgers / "project-0/processes/att_1"
    run.mkdir(parents=True)
    here = {"by": "supervisor", "bootId": kernel.boot_id(), "pidNamespace": kernel.pid_namespace()}
    (run / "claim").write_text(json.dumps({**here, **claim}))
    if leader is not None:
        (run / "leader").write_text(json.dumps(leader))
    return run


def test_ux_119_the_chain_holds_pid_and_start_ticks_up_to_the_first_process() -> None:
    found = ancestry.chain_of(os.getpid())
    assert found is not None
    links, whole = found
    assert links[0] == link(os.getpid()) and links[1] == link(os.getppid()) and whole
    assert kernel.stat_of(links[-1][0]).parent == 0  # type: ignore[union-attr]


def test_ux_119_a_process_that_is_gone_is_no_person(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait(timeout=120)
    assert ancestry.chain_of(child.pid) is None
    assert ancestry.descent_of_peer(child.pid, tmp_path, recorded=()) == ancestry.UNREADABLE
    assert ancestry.UNREADABLE.reason == "descendant_of_tool" and ancestry.UNREADABLE.ancestry == "none"


def test_ux_119_a_shell_beside_the_owner_is_a_person_and_its_chain_is_full(tmp_path: Path) -> None:
    assert ancestry.descent_here(tmp_path, recorded=()) == ancestry.Descent(None, "full")
    parent = ancestry.descent_of_peer(os.getppid(), tmp_path, recorded=())
    assert parent == ancestry.Descent(None, "full")


def test_ux_119_the_owner_itself_is_inside_a_body_and_its_children_are_its_tools(
    tmp_path: Path, waiting: Any
) -> None:
    assert ancestry.descent_of_peer(os.getpid(), tmp_path, recorded=()).reason == "inside_tool_body"
    child = waiting()
    assert ancestry.descent_of_peer(child.pid, tmp_path, recorded=()).reason == "descendant_of_tool"


@pytest.mark.parametrize("which", ["claim", "leader"])
def test_ux_119_a_supervisor_or_leader_named_by_a_run_folder_stands_for_a_tool(
    tmp_path: Path, which: str
) -> None:
    pid, ticks = link(os.getppid())
    named, nobody = {"pid": pid, "startTicks": ticks}, {"pid": 1, "startTicks": 1}
    run_folder(tmp_path, named if which == "claim" else nobody, nobody if which == "claim" else named)
    assert ancestry.descent_here(tmp_path, recorded=()).reason == "descendant_of_tool"


@pytest.mark.parametrize(
    "changed",
    [{"startTicks": 1}, {"bootId": "another boot"}, {"pidNamespace": "pid:[1]"}, {"by": "reconciliation"}],
)
def test_tr_70_a_reused_pid_an_older_boot_and_another_claimant_name_nobody(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    pid, ticks = link(os.getppid())
    run_folder(tmp_path, {"pid": pid, "startTicks": ticks, **changed})
    assert ancestry.descent_here(tmp_path, recorded=()).reason is None


def test_ux_119_a_process_recorded_on_a_receipt_stands_for_a_tool(tmp_path: Path) -> None:
    pid, ticks = link(os.getppid())
    assert ancestry.descent_here(tmp_path, recorded={(pid, ticks)}).reason == "descendant_of_tool"
    assert ancestry.descent_here(tmp_path, recorded={(pid, ticks + 1)}).reason is None


def test_ux_119_an_owner_of_any_project_in_the_chain_stands_for_a_tool(tmp_path: Path) -> None:
    owners = tmp_path / "other-1/owners"
    owners.mkdir(parents=True)
    lock = owners / f"{os.getppid()}-0123456789abcdef"
    lock.touch()
    assert ancestry.descent_here(tmp_path, recorded=()).reason is None, "nobody holds it"
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert ancestry.descent_here(tmp_path, recorded=()).reason == "descendant_of_tool"


def test_ux_119_owning_a_session_makes_nobody_a_tool_of_itself(tmp_path: Path) -> None:
    _, lock = this_process(tmp_path / "project-0/owners")
    try:
        assert ancestry.descent_here(tmp_path, recorded=()).reason is None
    finally:
        lock.close()


@pytest.mark.parametrize("mark", ["environment", "command line"])
def test_ux_119_a_process_that_shows_whose_it_is_needs_no_record(
    tmp_path: Path, waiting: Any, mark: str
) -> None:
    script = WAITS if mark == "environment" else f"# from surefoot.tools.processes import server\n{WAITS}"
    environ = {"SUREFOOT_IDEMPOTENCY_KEY": "sf1-x"} if mark == "environment" else {}
    child = waiting(sys.executable, "-I", "-S", "-c", script, env=environ)
    found: list[ancestry.Descent] = []
    # Judged as from another process: the owner's own pid must not be what speaks against it.
    judged = threading.Thread(
        target=lambda: found.append(ancestry._judged(child.pid, tmp_path, set(), (), with_itself=True))
    )
    judged.start()
    judged.join()
    assert found[0].reason == "descendant_of_tool"


def test_ux_119_a_chain_that_keeps_changing_is_not_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ticks = iter(range(10_000))
    real = kernel.stat_of

    def unsteady(pid: int) -> kernel.Stat | None:
        found = real(pid)
        return None if found is None else found._replace(start_ticks=next(ticks))

    monkeypatch.setattr(ancestry.kernel, "stat_of", unsteady)
    assert ancestry.chain_of(os.getpid()) is None
    assert ancestry.descent_here(tmp_path, recorded=()) == ancestry.UNREADABLE


def test_ux_122_a_parent_that_is_hidden_from_us_makes_the_chain_partial(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real, top = kernel.stat_of, os.getppid()
    monkeypatch.setattr(ancestry.kernel, "stat_of", lambda pid: None if pid == top else real(pid))

    def signal(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(ancestry.os, "kill", signal)
    assert ancestry.descent_here(tmp_path, recorded=()) == ancestry.Descent(None, "partial")
