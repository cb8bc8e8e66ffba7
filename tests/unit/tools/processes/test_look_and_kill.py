"""What is proven of a command after its agent or its supervisor died, and how it is ended."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from dataclasses import replace
from typing import Any

import pytest

from surefoot.core.model import EffectClass, ExecutorState, State
from surefoot.tools.classify.exits import exit_meaning
from surefoot.tools.processes import ending, folder, kernel
from surefoot.tools.processes.client import adopt
from surefoot.tools.processes.seen import Member, ProcessState, Seen, look, outcome_of


async def test_tr_67_no_claim_reads_as_unclear_and_a_reconciliations_claim_as_never_ran(bench: Any) -> None:
    run = bench.make()
    assert bench.look(run).reason == "unclaimed"
    assert not (run.path / folder.CLAIM).exists(), "looking alone claims nothing"
    assert bench.look(run, epoch=3, claim=True).state is ProcessState.NEVER_RAN
    assert bench.look(run).state is ProcessState.NEVER_RAN
    assert json.loads((run.path / folder.CLAIM).read_text()) == {"by": "reconciliation", "epoch": 3}


async def test_tr_67_another_folder_under_the_name_proves_nothing(bench: Any) -> None:
    run = bench.make()
    shutil.copytree(run.path, run.path.with_name("copy"))
    shutil.rmtree(run.path)
    assert bench.look(run, epoch=1, claim=True).reason == "folder_missing"
    run.path.with_name("copy").rename(run.path)
    seen = bench.look(run, epoch=1, claim=True)
    assert (seen.state, seen.reason) == (ProcessState.UNCLEAR, "folder_replaced")
    assert outcome_of(seen, EffectClass.UNKNOWN).state is State.UNKNOWN


async def test_tr_67_another_token_or_boot_proves_nothing(bench: Any) -> None:
    run = bench.make()
    record = bench.records[run.attempt_id]
    other = look({**record, "token": "else"}, boot_id=kernel.boot_id(), epoch=1, claim=True)
    assert other.state is ProcessState.UNCLEAR
    older = look({**record, "bootId": "older"}, boot_id=kernel.boot_id(), epoch=1, claim=True)
    assert (older.state, older.reason) == (ProcessState.LOST, "machine_restarted")
    assert not (run.path / folder.CLAIM).exists()


async def test_tr_67_a_claim_that_was_taken_away_cannot_be_put_again(bench: Any) -> None:
    job = bench.launch("sleep 600")
    await job.running
    claim = (run := job.run).path / folder.CLAIM
    kept = claim.read_text()
    claim.unlink()
    assert bench.look(run, epoch=1, claim=True).reason == "claim_missing"
    claim.write_text(kept)


async def test_tr_67_a_command_cannot_forge_that_it_never_ran(bench: Any) -> None:
    run = bench.make()
    forged = json.dumps({"by": "reconciliation", "epoch": 1})
    script = f"cd '{run.path}'; echo '{forged}' > x; mv x claim; exec sleep 300"
    job = bench.launch(script, run)
    claim = run.path / folder.CLAIM
    await bench.until(lambda: claim.exists() and "reconciliation" in claim.read_text())
    assert bench.look(run, epoch=2, claim=True).reason == "claim_contradicted"
    job.stop("kill")
    await asyncio.wait_for(asyncio.shield(job.quiet), 90)


async def test_tr_74_nonsense_on_the_stop_socket_ends_nothing(bench: Any) -> None:
    job = bench.launch("exec sleep 300")
    await job.running
    for line in (b"[" * 60000, b"{}", b"no json", b'{"do": "stop", "why": "kill", "pressedBoot": "soon"}'):
        descriptor = folder.open_folder(str(job.run.path))
        with ending._connected(descriptor) as connection:
            connection.sendall(line + b"\n")
        os.close(descriptor)
    record = await asyncio.wait_for(asyncio.shield(job.exited), 90)
    assert record["stop"]["why"] == "kill", "only the last one asked for anything"


async def test_tr_67_a_claim_that_cannot_be_made_gives_unclear(bench: Any, monkeypatch: Any) -> None:
    run = bench.make()

    def full(*_: Any) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder, "put_claim", full)
    assert bench.look(run, epoch=1, claim=True).reason == "claim_impossible"


async def test_tr_68_an_exit_record_without_the_secret_is_weak_and_settles_nothing(bench: Any) -> None:
    job = bench.launch("sleep 600")
    await job.running
    (job.run.path / folder.EXIT).write_text(json.dumps({"code": 0, "signal": None, "secret": "guess"}))
    seen = bench.look(job.run)
    assert seen.state is ProcessState.RUNNING
    assert seen.weak is not None
    assert outcome_of(seen, EffectClass.NON_IDEMPOTENT).state is State.UNKNOWN


async def test_f17_a_killed_supervisor_leaves_the_group_listed_killable_and_not_fenced(bench: Any) -> None:
    job = bench.launch("sleep 300 & sleep 300")
    await job.running
    await bench.until(lambda: len(bench.look(job.run).members) >= 3)
    os.kill(bench.supervisor_pid(job.run), signal.SIGKILL)
    assert await job.exited is None
    assert await job.quiet is False
    await bench.until(lambda: not bench.look(job.run).supervisor_alive)
    seen = bench.look(job.run)
    assert seen.state is ProcessState.RUNNING
    assert (seen.supervisor_alive, seen.quiet, len(seen.members)) == (False, False, 3)
    report = await asyncio.to_thread(ending.kill, bench.records[job.run.attempt_id])
    assert (report.gone, report.proven, report.how) == (True, False, "members")
    after = bench.look(job.run)
    assert (after.state, after.executor) == (ProcessState.GONE, ExecutorState.NOT_PROVEN)
    assert outcome_of(after, EffectClass.READ_ONLY).state is State.UNKNOWN


async def test_tr_70_a_reused_pid_never_matches(bench: Any) -> None:
    job = bench.launch("exit 0")
    await job.quiet
    claim = json.loads((job.run.path / folder.CLAIM).read_text())
    ours = kernel.stat_of(os.getpid())
    assert ours is not None
    # The numbers of the dead now belong to somebody else: this very process.
    (job.run.path / folder.EXIT).unlink()
    (job.run.path / folder.QUIET).unlink()
    (job.run.path / folder.CLAIM).write_text(json.dumps({**claim, "pid": ours.pid}))
    leader = {"pid": ours.pid, "startTicks": ours.start_ticks - 1, "group": ours.group}
    (job.run.path / folder.LEADER).write_text(json.dumps(leader))
    assert bench.look(job.run).state is ProcessState.GONE
    assert kernel.send(ours.pid, ours.start_ticks - 1, signal.SIGTERM) is False
    report = await asyncio.to_thread(ending.kill, bench.records[job.run.attempt_id])
    assert report.how == "nothing"


async def test_tr_70_another_pid_namespace_can_be_told_nothing(bench: Any) -> None:
    job = bench.launch("exit 0")
    await job.quiet
    claim = json.loads((job.run.path / folder.CLAIM).read_text())
    (job.run.path / folder.EXIT).unlink()
    (job.run.path / folder.CLAIM).write_text(json.dumps({**claim, "pidNamespace": "pid:[1]"}))
    assert bench.look(job.run).reason == "other_pid_namespace"


async def test_case_f02_a_tree_with_a_session_of_its_own_is_listed_and_one_action_ends_all(
    bench: Any,
) -> None:
    script = (
        'bash -c \'bash -c "sleep 300" & setsid bash -c "trap : TERM INT; while :; do sleep 0.05; done" & wait\' &'
        " wait"
    )
    job = bench.launch(script)
    await bench.until(lambda: len(bench.look(job.run).members) >= 4)
    listed = ending.survivors(bench.processes)
    assert [survivor.attempt_id for survivor in listed] == [job.run.attempt_id]
    report = await asyncio.to_thread(ending.kill, bench.records[job.run.attempt_id])
    assert (report.gone, report.proven, report.how) == (True, True, "supervisor")
    assert bench.look(job.run).quiet is True


async def test_case_f07_a_kill_that_fails_is_told(bench: Any) -> None:
    job = bench.launch("sleep 300")
    await job.running
    pid = bench.supervisor_pid(job.run)
    os.kill(pid, signal.SIGSTOP)  # it can neither act nor answer
    try:
        report = await asyncio.to_thread(ending.kill, bench.records[job.run.attempt_id], wait_ms=300)
        assert report.gone is False
        assert report.left
    finally:
        os.kill(pid, signal.SIGCONT)


async def test_tr_71_adopting_a_running_command_tells_its_output_and_end(bench: Any) -> None:
    job = bench.launch("while ! test -e go; do sleep 0.01; done; echo late; exit 5")
    await job.running
    waiting = asyncio.ensure_future(adopt(bench.records[job.run.attempt_id]))
    (bench.work / "go").touch()
    seen = await asyncio.wait_for(waiting, 90)
    assert (seen.state, seen.code, seen.output) == (ProcessState.EXITED, 5, "late\n")


async def test_tr_71_adopting_what_has_lost_its_supervisor_waits_for_its_end_and_claims_no_record(
    bench: Any,
) -> None:
    job = bench.launch("while ! test -e go; do sleep 0.01; done")
    await job.running
    os.kill(bench.supervisor_pid(job.run), signal.SIGKILL)
    assert await job.exited is None
    waiting = asyncio.ensure_future(adopt(bench.records[job.run.attempt_id]))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done(), "it returned while the command ran"
    (bench.work / "go").touch()
    seen = await asyncio.wait_for(waiting, 90)
    assert seen.state is ProcessState.GONE and not seen.quiet


async def test_tr_72_a_command_that_removes_its_own_run_folder_leaves_it_unknown(bench: Any) -> None:
    run = bench.make()
    job = bench.launch(f"rm -rf '{run.path}'; exit 0", run)
    record = await asyncio.wait_for(asyncio.shield(job.exited), 90)
    assert (record["code"], record["recorded"]) == (0, False), (
        "its own agent is told, though nothing is on disk"
    )
    seen = bench.look(run, epoch=1, claim=True)
    assert (seen.state, seen.reason) == (ProcessState.UNCLEAR, "folder_missing")


_ENDED = Seen(ProcessState.EXITED, code=0, quiet=True, lived_ms=10)
_READ, _SAFE, _ONCE, _ANY = EffectClass


@pytest.mark.parametrize(
    ("code", "number", "clients", "expected"),
    [
        (0, None, (), ["succeeded"] * 4),
        (1, None, (), ["failed"] * 4),
        (None, 9, (), ["failed", "unknown", "unknown", "unknown"]),
        (128, None, (), ["failed"] * 4),
        (129, None, (), ["failed", "failed", "unknown", "unknown"]),
        (192, None, (), ["failed", "failed", "unknown", "unknown"]),
        (193, None, (), ["failed"] * 4),
        (28, None, ("curl",), ["failed", "failed", "unknown", "unknown"]),
        (28, None, (), ["failed"] * 4),
        (128, None, ("git",), ["failed", "failed", "unknown", "unknown"]),
    ],
)
def test_tr_69_one_mapping_from_end_to_outcome(
    code: Any, number: Any, clients: Any, expected: list[str]
) -> None:
    seen = replace(_ENDED, code=code, signal=number)
    found = [outcome_of(seen, effect, clients=clients) for effect in EffectClass]
    assert [outcome.state.value for outcome in found] == expected
    assert [exit_meaning(effect, code, number, clients)[0].value for effect in EffectClass] == expected
    if number is not None:
        assert all("exit code" not in outcome.text for outcome in found)


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        (Seen(ProcessState.RUNNING, pid=4, members=(Member(4, 1, 4, "serve"),)), State.SUCCEEDED),
        (Seen(ProcessState.RUNNING, pid=4, supervisor_alive=True), State.UNKNOWN),
        (replace(_ENDED, code=1, lived_ms=2000), State.SUCCEEDED),
        (replace(_ENDED, code=1, lived_ms=1999), State.FAILED),
        (replace(_ENDED, code=0, lived_ms=5), State.SUCCEEDED),
        (Seen(ProcessState.GONE), State.UNKNOWN),
        (Seen(ProcessState.NEVER_RAN, "claimed_by_reconciliation"), State.FAILED),
    ],
)
def test_tr_205_a_background_start_is_judged_by_claim_and_life(seen: Seen, state: State) -> None:
    assert outcome_of(seen, EffectClass.UNKNOWN, background_probe_ms=2000).state is state


def test_tr_72_work_handed_to_a_service_is_never_proven_ended() -> None:
    assert outcome_of(_ENDED, EffectClass.UNKNOWN, clients=("git",)).executor == "ended"
    assert outcome_of(_ENDED, EffectClass.UNKNOWN, clients=("docker",)).executor == "not_proven"
