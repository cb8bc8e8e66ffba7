"""Supervisors are found by the claims in their run folders, which is all that an ordinary user may read of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from surefoot.testing.crash import end_leftovers, leftovers, supervisors
from surefoot.tools.processes import kernel

UNDUMPABLE = """
from surefoot.tools.processes import kernel
kernel.become_undumpable()
print("up", flush=True)
input()
"""


def test_a_supervisor_that_shows_nothing_of_itself_is_found_and_ended(tmp_path: Path) -> None:
    run = tmp_path / "site" / "processes" / "att_x"
    run.mkdir(parents=True)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", UNDUMPABLE], stdin=pipe, stdout=pipe, env={}) as process:
        assert process.stdout is not None and process.stdout.readline() == b"up\n"
        stat = kernel.stat_of(process.pid)
        assert stat is not None
        claim = {"by": "supervisor", "pid": stat.pid, "pidNamespace": kernel.pid_namespace()}
        (run / "claim").write_text(json.dumps({**claim, "startTicks": stat.start_ticks + 1}))
        assert supervisors(tmp_path) == [], "the pid was given to another process"
        (run / "claim").write_text(json.dumps({**claim, "startTicks": stat.start_ticks}))
        assert supervisors(tmp_path) == leftovers(tmp_path, below=True) == [process.pid]
        assert end_leftovers(tmp_path, below=True) == [process.pid]
    assert process.returncode == -9


def test_a_run_folder_that_recovery_claimed_has_no_supervisor(tmp_path: Path) -> None:
    run = tmp_path / "processes" / "att_x"
    run.mkdir(parents=True)
    (run / "claim").write_text('{"by": "reconciliation", "epoch": 2}')
    assert supervisors(tmp_path) == []
