"""The `shell` tool as the barrier calls it: prepare, body, cancel, limit, background."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from typing import Any

import pytest

from surefoot.core.model import EffectClass, Receipt, State
from surefoot.runtime.tools import LiveAttempt, Outcome, Place, Prepared
from surefoot.tools.processes import ending, folder, kernel
from surefoot.tools.processes.background import End, Ends, background_tool
from surefoot.tools.processes.seen import ProcessState, look
from surefoot.tools.shell import shell_tool


class Calls:
    """Does for one call what the barrier does around `prepare` and body, and keeps what it is told."""

    def __init__(self, bench: Any) -> None:
        self.bench = bench
        self.place = Place(bench.work, roots=(bench.work,))
        self.services: dict[str, Any] = {"processes": bench.server}
        self.late: list[tuple[Outcome, str]] = []
        self.noted: dict[str, Any] = {}
        self.shown: list[str] = []
        self.record: Mapping[str, Any] = {}
        self._count = 0

    async def prepare(self, tool: Any, arguments: dict[str, Any]) -> tuple[Receipt, Prepared]:
        self._count += 1
        effect = tool.effect(arguments, self.place) if callable(tool.effect) else tool.effect
        receipt = Receipt(
            "ses_1", "trn_1", f"cal_{self._count}", f"att_s{self._count}", 0,
            effect_class=effect.effect_class, check=effect.check, epoch=1,
        )  # fmt: skip
        prepared = Prepared() if tool.prepare is None else await tool.prepare(
            arguments, self.place, receipt, self.services
        )  # fmt: skip
        self.record = prepared.fields.get("process", {})
        return receipt, prepared

    def attempt(self, receipt: Receipt, prepared: Prepared, deadline: int | None = None) -> LiveAttempt:
        async def note(keys: Mapping[str, Any]) -> None:
            self.noted.update(keys)

        return LiveAttempt(
            session_id="ses_1", turn_id="trn_1", call_id=receipt.call_id, attempt_id=receipt.attempt_id,
            idempotency_key="sf1-abc", deadline_boot_ms=deadline, place=self.place, prepared=prepared.value,
            note=note, late=lambda outcome, source: self.late.append((outcome, source)),
            progress=self.shown.append, services=self.services,
        )  # fmt: skip

    async def run(self, command: str, tool: Any = None, **arguments: Any) -> Outcome:
        tool = tool or shell_tool()
        arguments["command"] = command
        receipt, prepared = await self.prepare(tool, arguments)
        assert prepared.refuse is None, prepared.refuse
        return await asyncio.wait_for(tool.body(self.attempt(receipt, prepared), arguments), 90)

    async def run_background(self, action: str, attempt: str | None = None) -> Outcome:
        arguments = {"action": action, **({} if attempt is None else {"attempt": attempt})}
        tool = background_tool()
        receipt, prepared = await self.prepare(tool, arguments)
        assert tool.body is not None
        outcome = await tool.body(self.attempt(receipt, prepared), arguments)
        assert isinstance(outcome, Outcome)
        return outcome

    def seen(self) -> Any:
        return look(self.record, boot_id=kernel.boot_id())


@pytest.fixture
def calls(bench: Any) -> Calls:
    return Calls(bench)


async def test_tr_69_output_and_exit_code_are_what_the_model_is_given(calls: Calls) -> None:
    assert (await calls.run("echo hi")).text == "hi\n"
    assert (await calls.run("true")).text == "(no output)"
    failed = await calls.run("echo oops >&2; exit 3")
    assert (failed.state, failed.error_kind, failed.text) == (
        State.FAILED,
        "exit_code",
        "oops\n[exit code 3]",
    )


async def test_tr_66_the_start_receipt_names_folder_token_boot_and_secret_hash(calls: Calls) -> None:
    _, prepared = await calls.prepare(shell_tool(), {"command": "git push"})
    record = prepared.fields["process"]
    assert {"path", "dev", "ino", "token", "bootId", "commandDigest", "log", "secretHash"} <= set(record)
    assert record["clients"] == ["git"]
    assert prepared.value.run.secret not in json.dumps(record)
    assert look(record, boot_id=kernel.boot_id(), epoch=2, claim=True).state is ProcessState.NEVER_RAN


async def test_tr_16_a_command_gets_its_key_and_no_other_variable_of_ours(
    calls: Calls, monkeypatch: Any
) -> None:
    monkeypatch.setenv("SUREFOOT_MODEL", "secret thing")
    assert (await calls.run("env | grep ^SUREFOOT")).text == "SUREFOOT_IDEMPOTENCY_KEY=sf1-abc\n"
    assert (await calls.run("sh -c 'env' | grep ^SUREFOOT; sleep 0")).text.count("SUREFOOT") == 1


async def test_tr_105_a_literal_target_is_looked_at_before_it_is_written(calls: Calls) -> None:
    (calls.bench.work / "a.txt").write_text("old")
    _, prepared = await calls.prepare(shell_tool(), {"command": "echo x > a.txt"})
    (intent,) = prepared.fields["writeIntents"]
    assert intent["path"] == str(calls.bench.work / "a.txt")
    assert intent["before"].startswith("sha256:") and intent["after"] is None


async def test_tr_191_a_shell_write_to_a_file_of_the_ledger_is_refused(calls: Calls) -> None:
    path = calls.bench.work / "ledger.db"
    path.write_text("x")
    found = path.stat()
    calls.services["ledger_files"] = lambda: frozenset({(found.st_dev, found.st_ino)})
    _, prepared = await calls.prepare(shell_tool(), {"command": "echo x > ledger.db"})
    assert prepared.refuse is not None and prepared.refuse[0] == "ledger_file"


async def test_ec_59_a_reader_starts_no_program_of_the_repository(calls: Calls) -> None:
    work = calls.bench.work
    quiet = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=work, env=quiet, check=True, capture_output=True)

    git("init", "-q")
    git("config", "core.fsmonitor", "touch ran; false")
    (work / "a").write_text("1")
    outcome = await calls.run("git status --porcelain")
    assert outcome.text == "?? a\n"
    assert not (work / "ran").exists()


async def test_tr_206_the_bash_startup_file_is_not_read_by_readers(calls: Calls, monkeypatch: Any) -> None:
    (calls.bench.work / "startup").write_text("echo from startup\n")
    monkeypatch.setenv("BASH_ENV", str(calls.bench.work / "startup"))
    assert (await calls.run("echo hi")).text == "hi\n"


async def test_tr_73_a_limit_gives_unknown_with_a_handle_and_the_truth_replaces_it(calls: Calls) -> None:
    tool = shell_tool(at_deadline="keep")
    command = "echo begun; while ! test -e go; do sleep 0.01; done; echo ended > done; exit 7"
    outcome = await calls.run(command, tool, timeout_seconds=4.0)
    assert (outcome.state, outcome.reason, outcome.executor) == (State.UNKNOWN, "time_limit", "alive")
    assert outcome.text.startswith("begun\n") and "att_s1" in outcome.text
    assert calls.late == []
    assert calls.seen().state is ProcessState.RUNNING
    (calls.bench.work / "go").touch()
    await calls.bench.until(lambda: calls.late)
    ((late, source),) = calls.late
    assert (late.state, late.text, source) == (State.FAILED, "begun\n[exit code 7]", "supervisor")
    await calls.bench.until(lambda: calls.noted.get("quiet"))


async def test_tr_73_a_limit_stops_the_command_unless_declared_otherwise(calls: Calls) -> None:
    outcome = await calls.run("exec sleep 300", timeout_seconds=4.0)
    assert outcome.reason == "time_limit"
    await calls.bench.until(lambda: calls.late)
    assert (calls.late[0][0].state, calls.late[0][0].reason) == (State.UNKNOWN, "time_limit")


async def test_tr_74_a_cancel_frees_the_caller_at_once_and_the_end_is_handed_in_later(calls: Calls) -> None:
    calls.bench.limits.stop_term_seconds = 0.2
    tool, arguments = (
        shell_tool(),
        {"command": "trap '' INT; trap 'echo bye; exit 4' TERM; echo up > up; while :; do sleep 0.01; done"},
    )
    receipt, prepared = await calls.prepare(tool, arguments)
    task = asyncio.create_task(tool.body(calls.attempt(receipt, prepared), arguments))
    await calls.bench.read("up")
    start = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - start < 100.0
    assert list(calls.bench.server.still_ending()) == [receipt.attempt_id]
    await calls.bench.until(lambda: calls.late)
    ((late, source),) = calls.late
    assert (late.state, source) == (State.FAILED, "supervisor")
    assert late.text.endswith("bye\n[exit code 4]")
    assert calls.seen().stop["why"] == "cancelled"
    await calls.bench.until(lambda: not calls.bench.server.still_ending())


async def test_tr_74_a_cancel_waits_for_no_supervisor_that_hangs(calls: Calls) -> None:
    tool, arguments = shell_tool(), {"command": "exec sleep 300"}
    receipt, prepared = await calls.prepare(tool, arguments)
    task = asyncio.create_task(tool.body(calls.attempt(receipt, prepared), arguments))
    await calls.bench.until(lambda: (prepared.value.run.path / folder.LEADER).exists())
    pid = calls.bench.supervisor_pid(prepared.value.run)
    os.kill(pid, signal.SIGSTOP)  # as if it waited for a disk that does not answer
    try:
        start = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - start < 100.0
        assert list(calls.bench.server.still_ending()) == [receipt.attempt_id]
    finally:
        os.kill(pid, signal.SIGCONT)
    await calls.bench.until(lambda: calls.late)
    assert calls.late[0][0].reason == "process_signal"


async def test_tr_77_a_cancel_before_anything_was_asked_is_told_as_never_ran(calls: Calls) -> None:
    tool, arguments = shell_tool(), {"command": "touch ran; sleep 0"}
    receipt, prepared = await calls.prepare(tool, arguments)
    task = asyncio.create_task(tool.body(calls.attempt(receipt, prepared), arguments))
    await asyncio.sleep(0)
    task.cancel()
    outcome = await task
    assert (outcome.state, outcome.reason) == (State.FAILED, "never_ran")
    await calls.bench.until(lambda: calls.seen().state is ProcessState.NEVER_RAN)
    assert not (calls.bench.work / "ran").exists()


async def test_case_f04_a_call_that_is_only_prepared_has_created_no_process(calls: Calls) -> None:
    await calls.prepare(shell_tool(), {"command": "touch ran; sleep 300"})
    assert calls.bench.server.server_pid is None
    assert ending.survivors(calls.bench.processes) == []
    assert sorted(path.name for path in (calls.bench.processes / "att_s1").iterdir()) == [folder.TOKEN]


async def test_tr_205_a_background_command_succeeds_once_it_has_lived(calls: Calls) -> None:
    ends = Ends(calls.bench.processes, probe_seconds=0.3)
    outcome = await calls.run("echo serving; exec sleep 300", background=True)
    assert (outcome.state, outcome.executor) == (State.SUCCEEDED, "alive")
    await calls.bench.until(lambda: calls.noted.get("pid"))
    listed = await calls.run_background("list")
    assert "att_s1" in listed.text and "sleep 300" in listed.text
    assert (await calls.run_background("log", "att_s1")).text == "serving\n"
    assert (await calls.run_background("stop", "att_s1")).state is State.SUCCEEDED
    told: list[End] = []
    await calls.bench.until(lambda: told.extend(ends.take()) or told)
    assert (told[0].attempt_id, told[0].signal) == ("att_s1", signal.SIGTERM)
    assert (await calls.run_background("list")).text == "Nothing runs in the background."


async def test_tr_205_a_background_command_that_ends_sooner_is_told_by_its_end(calls: Calls) -> None:
    calls.bench.limits.background_probe_seconds = 20.0  # sooner than this, however slow the machine is
    assert (await calls.run("exit 3", background=True)).text == "[exit code 3]"
    assert (await calls.run("kill -9 $$", background=True)).state is State.UNKNOWN
    assert Ends(calls.bench.processes, probe_seconds=20.0).take() == []  # its call told it


async def test_ux_157_the_end_of_a_background_command_is_told_once_by_one_of_all_who_look(
    calls: Calls,
) -> None:
    await calls.run("while ! test -e go; do sleep 0.01; done; exit 3", background=True)
    looks = [Ends(calls.bench.processes, probe_seconds=0.3) for _ in range(3)]
    assert [end for one in looks for end in one.take()] == []
    (calls.bench.work / "go").touch()
    told: list[End] = []
    await calls.bench.until(lambda: [told.extend(one.take()) for one in looks] and told)
    assert [(end.attempt_id, end.exit_code, end.signal) for end in told] == [("att_s1", 3, None)]
    assert [end for one in looks for end in one.take()] == []
    assert Ends(calls.bench.processes, probe_seconds=0.3).take() == []


async def test_ec_60_background_has_no_limit_and_a_cancel_of_the_turn_leaves_it(calls: Calls) -> None:
    await calls.run("exec sleep 300", background=True, timeout_seconds=0.01)
    assert calls.seen().state is ProcessState.RUNNING
    assert calls.late == []


async def test_tr_68_a_killed_supervisor_is_told_as_unknown(calls: Calls) -> None:
    tool, arguments = shell_tool(), {"command": "exec sleep 300"}
    receipt, prepared = await calls.prepare(tool, arguments)
    task = asyncio.create_task(tool.body(calls.attempt(receipt, prepared), arguments))
    await calls.bench.until(lambda: (prepared.value.run.path / folder.LEADER).exists())
    os.kill(calls.bench.supervisor_pid(prepared.value.run), 9)
    outcome = await asyncio.wait_for(task, 90)
    assert (outcome.state, outcome.reason, outcome.executor) == (State.UNKNOWN, "connection_lost", "alive")


@pytest.mark.parametrize("program", ["/nonexistent", "/bin/true"])
async def test_tr_203_without_any_supervisor_the_call_is_proven_never_run(
    calls: Calls, monkeypatch: Any, program: str
) -> None:
    monkeypatch.setattr("sys.executable", program)
    outcome = await calls.run("touch ran")
    assert (outcome.state, outcome.reason) == (State.FAILED, "never_ran")
    assert not (calls.bench.work / "ran").exists()


async def test_output_is_shown_while_the_command_runs(calls: Calls) -> None:
    waiting = asyncio.create_task(calls.run("echo first; while ! test -e go; do sleep 0.01; done"))
    await calls.bench.until(lambda: "".join(calls.shown) == "first\n")
    (calls.bench.work / "go").touch()
    assert (await waiting).text == "first\n"


async def test_tr_204_a_notice_is_shown_above_the_log_bound(calls: Calls) -> None:
    calls.bench.limits.process_log_bytes = 100
    waiting = asyncio.create_task(calls.run("seq 100; while ! test -e go; do sleep 0.01; done"))
    await calls.bench.until(lambda: "more than 100 bytes" in "".join(calls.shown))
    (calls.bench.work / "go").touch()
    assert (await waiting).text.endswith("100\n")


def test_the_class_of_background_verbs_follows_what_they_do() -> None:
    tool = background_tool(lambda attempt: ("path:/a",) if attempt == "att_1" else ())
    assert callable(tool.effect)
    place: Any = None
    assert tool.effect({"action": "list"}, place).effect_class is EffectClass.READ_ONLY
    stop = tool.effect({"action": "stop", "attempt": "att_1"}, place)
    assert (stop.effect_class, stop.reach) == (EffectClass.IDEMPOTENT_WRITE, ("path:/a",))
    assert tool.effect({"action": "stop", "attempt": "att_2"}, place).reach == ("*",)
