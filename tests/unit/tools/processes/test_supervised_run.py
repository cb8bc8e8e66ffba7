"""A command under its supervisor while the agent lives."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.model import EffectClass, ExecutorState, State
from surefoot.tools.processes import folder, kernel, server
from surefoot.tools.processes.client import Command
from surefoot.tools.processes.seen import ProcessState, outcome_of
from surefoot.tools.processes.server import BOOTSTRAP
from surefoot.tools.shell import shell_argv


async def test_tr_68_exit_code_output_and_quiet_are_told(bench: Any) -> None:
    job = bench.launch("echo out; echo err >&2; exit 3")
    await job.exited
    seen = bench.seen(job)
    assert (seen.state, seen.code, seen.signal) == (ProcessState.EXITED, 3, None)
    assert seen.output == "out\nerr\n"
    assert await job.quiet is True
    again = bench.look(job.run)
    assert (again.code, again.output, again.quiet) == (3, "out\nerr\n", True)
    assert again.executor is ExecutorState.ENDED


async def test_tr_203_the_command_sees_null_input_no_descriptor_and_only_its_key(bench: Any) -> None:
    script = (
        "cat; readlink /proc/self/fd/0; ls /proc/self/fd; env | grep SUREFOOT; ps -o pgid= -p $$; echo $$"
    )
    job = bench.launch(script)
    await job.exited
    lines = bench.seen(job).output.split()
    assert lines[0] == "/dev/null"
    # 0, 1, 2 and the folder that `ls` itself opens
    assert lines[1:5] == ["0", "1", "2", "3"]
    assert lines[5] == "SUREFOOT_IDEMPOTENCY_KEY=sf1-k"
    assert lines[6] == lines[7], "it leads a group of its own"


async def test_tr_65_no_signal_of_the_commands_group_reaches_the_agent_or_the_supervisor(bench: Any) -> None:
    seen = await bench.ended("trap '' TERM; kill -TERM 0; echo still here")
    assert (seen.code, seen.output) == (0, "still here\n")
    assert os.getsid(0) == os.getsid(os.getpid())


async def test_tr_203_the_supervisor_is_not_dumpable_and_in_a_session_of_its_own(bench: Any) -> None:
    job = bench.launch("sleep 600")
    await job.running
    pid = bench.supervisor_pid(job.run)
    stat = kernel.stat_of(pid)
    assert stat is not None and stat.session == pid
    assert stat.session != os.getsid(0)
    # The kernel gives what belongs to a process that may not be dumped to root.
    assert await asyncio.to_thread(lambda: Path(f"/proc/{pid}/mem").stat().st_uid) == 0
    job.stop("kill")
    assert await asyncio.wait_for(job.quiet, 90) is True


async def test_tr_203_the_warm_server_has_one_thread_and_serves_all_commands(bench: Any) -> None:
    await bench.ended("true")
    first = bench.server.server_pid
    assert len(await asyncio.to_thread(lambda: list(Path(f"/proc/{first}/task").iterdir()))) == 1
    await bench.ended("true")
    assert bench.server.server_pid == first


def test_tr_203_the_warm_server_loads_nothing_of_surefoot_but_its_own_modules() -> None:
    ask = BOOTSTRAP.replace("server.main(sys.argv[2])", "print(*sorted(sys.modules))")
    root = Path(server.__file__).parents[3]
    command = [sys.executable, "-I", "-S", "-c", ask, str(root)]
    loaded = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
    ours = {name for name in loaded if name.startswith("surefoot")}
    names = ("folder", "kernel", "server", "supervisor")
    assert ours == {"surefoot", "surefoot.tools", "surefoot.tools.processes"} | {
        f"surefoot.tools.processes.{name}" for name in names
    }
    assert not {"site", "asyncio", "apsw", "pydantic", "sqlite3", "ssl"} & set(loaded)


async def test_tr_203_a_descriptor_left_inheritable_by_the_agent_is_not_kept_open(bench: Any) -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        job = bench.launch("exec sleep 300")
        await job.running
        os.close(write)
        os.set_blocking(read, False)
        await bench.until(lambda: _at_end(read))
        job.stop("kill")
    finally:
        os.close(read)


def _at_end(read: int) -> bool:
    try:
        return os.read(read, 1) == b""
    except BlockingIOError:
        return False


async def test_tr_203_a_dead_warm_server_is_done_without(bench: Any) -> None:
    await bench.ended("true")
    os.kill(bench.server.server_pid, signal.SIGKILL)
    seen = await bench.ended("echo cold")
    assert (seen.code, seen.output) == (0, "cold\n")
    assert (await bench.ended("echo warm again")).code == 0


async def test_tr_203_a_supervisor_outlives_the_warm_server(bench: Any) -> None:
    job = bench.launch("while ! test -e go; do sleep 0.01; done; exit 4")
    await job.running
    os.kill(bench.server.server_pid, signal.SIGKILL)
    (bench.work / "go").touch()
    assert (await job.exited)["code"] == 4
    assert await job.quiet is True


async def test_tr_67_a_command_whose_claim_stands_elsewhere_never_runs(bench: Any) -> None:
    run = bench.make()
    assert bench.look(run, epoch=7, claim=True).state is ProcessState.NEVER_RAN
    job = bench.launch("touch ran", run)
    assert await job.exited is None
    assert job.refused == "claimed"
    assert bench.seen(job).state is ProcessState.NEVER_RAN
    assert not (bench.work / "ran").exists()


@pytest.mark.parametrize("limit", ["start_before_boot_ms", "deadline_boot_ms"])
async def test_tr_175_a_deadline_already_past_is_never_executed(bench: Any, limit: str) -> None:
    job = bench.launch("touch ran", **{limit: kernel.boot_ms() - 1})
    await job.exited
    outcome = outcome_of(bench.seen(job), EffectClass.UNKNOWN)
    assert (outcome.state, outcome.reason) == (State.FAILED, "never_ran")
    assert not (bench.work / "ran").exists()
    assert bench.look(job.run).state is ProcessState.NEVER_RAN


async def test_tr_67_a_folder_that_is_gone_is_told_as_never_ran(bench: Any) -> None:
    bench.work.rmdir()
    job = bench.launch("true")
    await job.exited
    seen = bench.look(job.run)
    assert seen.state is ProcessState.NEVER_RAN
    assert "directory" in (seen.reason or "")
    bench.work.mkdir()


_SIGNALS = [
    s for s in signal.Signals
    if s not in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT,
                 signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH, signal.SIGRTMIN, signal.SIGRTMAX)
]  # fmt: skip


_SHAPES = {
    "bare": "exec sleep 300",
    "shell": "sleep 300; exit $?",
    "two shells": "bash -c 'sleep 300; exit $?'; exit $?",
    "pipe": "sleep 300 | cat",
    "make": "printf 'all:\n\tsleep 300\n' > makefile; make -f makefile",
}


@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("number", _SIGNALS, ids=lambda found: found.name)
async def test_case_c07_a_signal_is_never_shown_as_exit_code_zero(
    bench: Any, number: signal.Signals, shape: str
) -> None:
    if (shape, number) == ("pipe", signal.SIGPIPE):
        return  # how a pipe tells its writer that its reader has enough; no kill
    run = bench.make()
    argv = shell_argv(_SHAPES[shape], ())
    environment = {"PATH": os.environ["PATH"]}
    job = bench.server.launch(run, Command(argv, environment, bench.work, "sf1-k"))
    await job.running
    victim = await bench.until(
        lambda: next((m for m in bench.look(run).members if m.command == "sleep 300"), None)
    )
    assert kernel.send(victim.pid, victim.start_ticks, number)
    await asyncio.wait_for(asyncio.shield(job.exited), 90)
    seen = bench.seen(job)
    assert seen.code != 0
    assert shape == "make" or seen.signal == number or seen.code == 128 + number
    outcome = outcome_of(seen, EffectClass.UNKNOWN)
    assert outcome.state is not State.SUCCEEDED
    assert shape == "make" or (outcome.state, outcome.reason) == (State.UNKNOWN, "process_signal")
    assert "exit code 0" not in outcome.text
    assert outcome_of(seen, EffectClass.READ_ONLY).state is State.FAILED


async def test_tr_204_a_child_that_keeps_the_output_open_delays_nothing(bench: Any) -> None:
    start = time.monotonic()
    job = bench.launch("(sleep 600; echo too late) & echo now")
    await job.exited
    assert time.monotonic() - start < 200
    seen = bench.seen(job)
    assert seen.output == "now\n"
    assert seen.executor is ExecutorState.ALIVE, "something of it still runs"
    assert not job.quiet.done()
    job.stop("kill")
    assert await asyncio.wait_for(job.quiet, 90) is True


async def test_tr_204_head_and_tail_with_a_mark_above_the_bound(bench: Any) -> None:
    seen = await bench.ended("echo first; seq 1 20000; echo last")
    assert seen.output.startswith("first\n") and seen.output.endswith("last\n")
    assert "bytes left out here" in seen.output
    assert len(seen.output.encode()) < 30_500


async def test_tr_74_stop_sends_int_then_term_then_kill_counted_from_the_press(bench: Any) -> None:
    bench.limits.stop_term_seconds, bench.limits.stop_kill_seconds = 0.3, 0.8
    script = "trap 'echo int >> seen' INT; trap 'echo term >> seen' TERM; echo up > up; while :; do sleep 0.02; done"
    job = bench.launch(script)
    await bench.read("up")
    pressed = kernel.boot_ms()
    job.stop("cancelled", pressed)
    record = await asyncio.wait_for(asyncio.shield(job.exited), 90)
    assert record["signal"] == signal.SIGKILL
    assert record["stop"] == {"why": "cancelled", "pressedBoot": pressed, "signals": [2, 15, 9]}
    assert 800 <= record["endedBoot"] - pressed < 2500
    assert (bench.work / "seen").read_text().split() == ["int", "term"]


async def test_tr_74_a_check_is_killed_after_one_step(bench: Any) -> None:
    bench.limits.stop_kill_check_seconds = 0.2
    job = bench.launch("trap '' INT TERM; echo up > up; while :; do sleep 0.02; done", check=True)
    await bench.read("up")
    job.stop("cancelled")
    assert (await asyncio.wait_for(asyncio.shield(job.exited), 90))["stop"]["signals"] == [2, 9]


async def test_tr_203_the_deadline_is_kept_by_the_supervisor(bench: Any) -> None:
    job = bench.launch("sleep 600", deadline_boot_ms=kernel.boot_ms() + 2000)
    record = await asyncio.wait_for(asyncio.shield(job.exited), 90)
    assert record["stop"]["why"] == "time_limit"
    outcome = outcome_of(bench.seen(job), EffectClass.UNKNOWN)
    assert (outcome.state, outcome.reason) == (
        State.UNKNOWN,
        "time_limit",
    )  # whoever noticed it first (TR-73)
    assert job.over_limit.is_set()


async def test_case_f11_past_a_limit_it_goes_on_when_declared_and_its_end_is_known(bench: Any) -> None:
    script = "while ! test -e go; do sleep 0.01; done; echo done"
    job = bench.launch(script, deadline_boot_ms=kernel.boot_ms() + 2000, at_deadline="keep")
    await asyncio.wait_for(job.over_limit.wait(), 90)
    assert bench.look(job.run).state is ProcessState.RUNNING
    (bench.work / "go").touch()
    await job.exited
    assert (bench.seen(job).code, bench.seen(job).output) == (0, "done\n")


async def test_tr_68_read_only_runs_sync_nothing_and_still_leave_records(bench: Any) -> None:
    job = bench.launch("echo read", sync=False)
    await job.quiet
    assert bench.look(job.run).output == "read\n"


async def test_case_f08_ux_120_a_double_forked_grandchild_holds_quiet_back_until_it_ends(bench: Any) -> None:
    script = "(setsid bash -c 'echo $$ > grandchild; while ! test -e go; do sleep 0.01; done' &) ; exit 0"
    job = bench.launch(script)
    await job.exited
    pid = int(await bench.read("grandchild"))
    await bench.until(lambda: bench.look(job.run).members)
    seen = bench.look(job.run)
    assert pid in {member.pid for member in seen.members}
    assert (seen.quiet, seen.executor) == (False, ExecutorState.ALIVE)
    # A quiet record forged with the secret that the exit record gave away proves nothing.
    stolen = json.loads((job.run.path / folder.EXIT).read_text())["secret"]
    (job.run.path / folder.QUIET).write_text(json.dumps({"secret": stolen}))
    assert bench.look(job.run).quiet is False
    (bench.work / "go").touch()
    assert await asyncio.wait_for(job.quiet, 90) is True
    assert bench.look(job.run).executor is ExecutorState.ENDED


async def test_tr_68_many_orphans_are_reaped_and_leave_no_zombie(bench: Any) -> None:
    job = bench.launch(
        "for i in $(seq 20); do (sleep 0.01 &) ; done; echo up > up; while ! test -e go; do sleep 0.01; done"
    )
    await bench.read("up")
    pid = bench.supervisor_pid(job.run)
    await bench.until(lambda: len(kernel.children(pid)) == 1)
    (bench.work / "go").touch()
    assert await asyncio.wait_for(job.quiet, 90) is True
