"""What can be looked up about a shell call: the row `process` of TR-109, and the choice per call."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import subprocess
from typing import Any

import pytest

from surefoot.core.model import EffectClass, Grade, Receipt
from surefoot.runtime.inspection import map_observation
from surefoot.runtime.tools import Place, observe, scope_of
from surefoot.tools.processes import kernel
from surefoot.tools.shell import shell_tool
from surefoot.tools.verifying import git_stood, run_sight, shell_verifier, since_quiet_ms
from surefoot.verifiers.clock import machine_id
from surefoot.verifiers.port import Deadline, EffectVerifier, Observation
from surefoot.verifiers.process import ProcessVerifier

LATER = Deadline(1 << 60)


def call(record: dict[str, Any] | None, **fields: Any) -> Receipt:
    known = {"tool": "shell", "process": record, "scope": "session:ses_1", **fields}
    return Receipt("ses_1", "trn_1", "cal_1", "att_1", 0, **known)


def seen(receipt: Receipt, *, fenced: bool = False) -> Observation:
    return observe(shell_verifier()(receipt), receipt, LATER, fenced=fenced)


def test_the_process_verifier_fits_the_port_and_only_reads() -> None:
    verifier: EffectVerifier = ProcessVerifier(run_sight)
    assert (verifier.name, verifier.far) == ("process", False)
    assert all(kind is EffectClass.READ_ONLY for _, kind in ProcessVerifier.operations)


def test_tr_109_the_claim_of_a_reconciliation_is_absent_and_fenced(bench: Any) -> None:
    run = bench.make()
    receipt = call(bench.records[run.attempt_id])
    assert seen(receipt).state == "unknown", "nobody has claimed it yet; a supervisor still may"
    bench.look(run, epoch=2, claim=True)
    found = seen(receipt)
    assert (found.state, found.grade, found.fenced) == ("absent", Grade.PROOF, True)
    assert map_observation(found).state == "absent_fenced"


def test_tr_109_a_claim_in_a_folder_that_is_another_one_proves_nothing(bench: Any) -> None:
    run = bench.make()
    bench.look(run, epoch=2, claim=True)
    record = {**bench.records[run.attempt_id], "token": "another"}
    assert seen(call(record)).state == "unknown"
    assert seen(call({**record, "bootId": "older"})).state == "unknown"
    assert seen(call({**record, "path": "/nowhere"})).state == "unknown"


async def test_tr_109_quiet_is_told_as_a_fence_and_never_as_absence(bench: Any) -> None:
    job = bench.launch("kill -9 $$")
    await asyncio.wait_for(asyncio.shield(job.quiet), 90)
    receipt = call(bench.records[job.run.attempt_id])
    found = seen(receipt, fenced=True)
    assert (found.state, found.fenced, found.evidence["quiet"]) == ("unknown", True, True)
    assert found.does_not_prove == "what the command did before"


async def test_tr_72_quiet_of_a_command_that_hands_work_on_fences_nothing(bench: Any) -> None:
    job = bench.launch("true")
    await asyncio.wait_for(asyncio.shield(job.quiet), 90)
    record = bench.records[job.run.attempt_id]
    assert seen(call(record)).fenced is True
    handed = seen(call({**record, "clients": ["docker"]}), fenced=True)
    assert handed.fenced is False and handed.evidence["quiet"] is True


async def test_tr_109_an_exit_record_is_named_and_left_to_settle_the_receipt(bench: Any) -> None:
    job = bench.launch("exit 3")
    await asyncio.wait_for(asyncio.shield(job.exited), 90)
    found = seen(call(bench.records[job.run.attempt_id]))
    assert (found.state, found.reason, found.evidence["ended"]) == ("unknown", "exit_record", "exit code 3")


async def test_tr_109_a_command_killed_with_its_supervisor_stays_unknown_and_unfenced(bench: Any) -> None:
    job = bench.launch("echo x > here; sleep 600")
    await bench.read("here")
    os.kill(bench.supervisor_pid(job.run), signal.SIGKILL)
    await bench.until(lambda: not run_sight(call(bench.records[job.run.attempt_id])).ended)
    found = seen(call(bench.records[job.run.attempt_id]))
    assert (found.state, found.fenced, found.reason) == ("unknown", False, "no_verifier")


async def test_tr_109_a_commit_window_counts_from_the_quiet_record(bench: Any) -> None:
    job = bench.launch("true")
    run = job.run
    record = bench.records[run.attempt_id]
    await asyncio.wait_for(asyncio.shield(job.quiet), 90)
    elapsed = since_quiet_ms(call(record))
    assert elapsed is not None and 0 <= elapsed < 20_000
    assert since_quiet_ms(call({**record, "quietHash": "sha256:other"})) is None, "somebody else wrote it"
    assert since_quiet_ms(call({**record, "path": "/nowhere"})) is None
    assert since_quiet_ms(call({**record, "bootId": "older"})) is None
    rebooted = call({**record, "bootId": "older"}, owner={"machineId": machine_id()})
    assert (since_quiet_ms(rebooted) is not None) is bool(machine_id())


async def test_tr_109_no_window_runs_while_the_command_may_still_act(bench: Any) -> None:
    job = bench.launch("echo x > here; sleep 600")
    await bench.read("here")
    assert since_quiet_ms(call(bench.records[job.run.attempt_id])) is None


# What is recorded before a start, and which verifier is chosen for it ---------------------------------


@pytest.fixture
def repository(bench: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for arguments in (
        ["init", "-q"],
        ["config", "user.name", "T"],
        ["config", "user.email", "t@example.org"],
        ["commit", "-q", "--allow-empty", "-m", "first"],
    ):
        subprocess.run(["git", *arguments], cwd=bench.work, check=True)
    return bench.work


async def prepared(bench: Any, command: str) -> Receipt:
    tool, place = shell_tool(), Place(bench.work, roots=(bench.work,), work_tree=bench.work)
    asked = {"command": command}
    effect = tool.effect(asked, place) if callable(tool.effect) else tool.effect
    attempt = f"att_{abs(hash(command))}"
    receipt = Receipt("ses_1", "trn_1", "cal_1", attempt, 0, effect_class=effect.effect_class, epoch=1)
    assert tool.prepare is not None
    found = await tool.prepare(asked, place, receipt, {"processes": bench.server})
    assert found.refuse is None
    return dataclasses.replace(receipt, tool="shell", process=found.fields["process"])


@pytest.mark.parametrize(
    ("command", "name", "far"),
    [
        ("git commit --allow-empty -m x", "git", False),
        ("git tag v1", "git", False),
        ("git branch side", "git", False),
        ("git push /nowhere HEAD:refs/heads/x", "git", True),
        ("git commit --allow-empty -m x; rm -rf other", "process", False),
        ("git status", "process", False),
        ("touch x", "process", False),
        ("docker run x git commit -m x", "process", False),
    ],
)
async def test_tr_110_only_the_recognised_git_commands_have_a_verifier_of_their_effect(
    bench: Any, repository: Any, command: str, name: str, far: bool
) -> None:
    receipt = await prepared(bench, command)
    chosen = shell_tool().verifier_for(receipt)
    assert chosen is not None and (chosen.name, chosen.far) == (name, far)
    assert ("git" in (receipt.process or {})) is (name == "git")


async def test_tr_99_the_scope_of_a_git_write_is_its_repository_and_of_other_commands_the_session(
    bench: Any, repository: Any
) -> None:
    scope, notes = scope_of(shell_tool(), await prepared(bench, "git tag v1"))
    assert str(repository) in scope and notes == ()
    assert scope_of(shell_tool(), await prepared(bench, "touch x")) == ("session:ses_1", ())


def test_tr_109_nothing_is_recorded_for_a_reader(bench: Any, repository: Any) -> None:
    assert git_stood("git tag v1", repository, os.environ, EffectClass.READ_ONLY) is None
    assert git_stood("git tag v1", repository, os.environ, EffectClass.NON_IDEMPOTENT) is not None
    assert kernel.boot_id()
