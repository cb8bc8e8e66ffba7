"""What a run folder and the kernel show of a supervised command, and what that means.

Owns: `look` (claim, exit, quiet, living members; TR-67, TR-70, TR-72), and `outcome_of`, the
one mapping from an end to an outcome that live calls, reconciliation and adoption share
(TR-69, TR-205). Does not own: writing anything into the ledger, asking a supervisor (`ending`).
Promises: receipt:exact, recovery:never-guess. Whatever is not proven stays unknown.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from surefoot.core.model import EffectClass, EffectTrace, ExecutorState, State, Word
from surefoot.runtime.tools import Outcome
from surefoot.tools.classify.exits import exit_meaning, hands_work_on
from surefoot.tools.processes import folder, kernel, runs
from surefoot.tools.processes.output import SHOWN_BYTES, shown_output


class ProcessState(Word):
    """What can be said of a supervised command."""

    NEVER_RAN = "never_ran"
    EXITED = "exited"
    RUNNING = "running"
    GONE = "gone"
    """Claimed, no exit record, and nothing of it is alive."""
    LOST = "lost"
    """The machine was restarted since."""
    UNCLEAR = "unclear"
    """Nothing is proven; `reason` says why."""


@dataclass(frozen=True, slots=True)
class Member:
    """A living process of the command, matched by pid and start ticks in our pid namespace and boot."""

    pid: int
    start_ticks: int
    group: int
    command: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """One look. `code`, `signal` and times are set for `exited` only."""

    state: ProcessState
    reason: str | None = None
    code: int | None = None
    signal: int | None = None
    started_at_ms: int | None = None
    lived_ms: int | None = None
    output: str = ""
    """What the model is shown of the log, head and tail."""
    stop: Mapping[str, Any] | None = None
    """Who asked for the end: `why` is `cancelled`, `time_limit`, `kill`, …"""
    pid: int | None = None
    start_ticks: int | None = None
    group: int | None = None
    supervisor_alive: bool = False
    members: tuple[Member, ...] = ()
    quiet: bool = False
    """Proven that no descendant is left. Says nothing of work handed to a service (EC-58)."""
    weak: Mapping[str, Any] | None = None
    """An exit record without the right secret: evidence of grade `weak`, no more."""

    @property
    def executor(self) -> ExecutorState:
        """Whether something of this attempt can still act (TR-208)."""
        if self.quiet or self.state is ProcessState.NEVER_RAN:
            return ExecutorState.ENDED
        if self.members or self.supervisor_alive:
            return ExecutorState.ALIVE
        return ExecutorState.NOT_PROVEN


def look(
    record: Mapping[str, Any],
    *,
    boot_id: str,
    epoch: int | None = None,
    claim: bool = False,
    shown_bytes: int = SHOWN_BYTES,
) -> Seen:
    """Say what became of a command; with `claim` also make sure that an unclaimed one never runs.

    `record` is the `process` record of its receipt. Without `claim` nothing is written.
    """
    try:
        descriptor = folder.open_folder(str(record.get("path", "")))
    except OSError:
        return _without_folder(record, boot_id, "folder_missing")
    try:
        found = folder.read_record(descriptor, folder.EXIT)
        quiet = runs.is_proven(folder.read_record(descriptor, folder.QUIET), record.get("quietHash"))
        if runs.is_proven(found, record.get("secretHash")) and found is not None:
            return _ended(descriptor, record, found, quiet=quiet, boot_id=boot_id, shown_bytes=shown_bytes)
        if record.get("bootId") != boot_id:
            # The start receipt is of an older boot: no process of it can be left here.
            return Seen(ProcessState.LOST, "machine_restarted", quiet=quiet, weak=found)
        if not runs.is_same(descriptor, record):
            return _without_folder(record, boot_id, "folder_replaced")
        seen = _by_claim(descriptor, record, epoch if claim else None)
        if seen.state is ProcessState.GONE:
            # The supervisor may have written its record between our two looks.
            again = folder.read_record(descriptor, folder.EXIT)
            if runs.is_proven(again, record.get("secretHash")):
                return look(record, boot_id=boot_id, shown_bytes=shown_bytes)
        return replace(seen, quiet=quiet, weak=found)
    finally:
        os.close(descriptor)


def _without_folder(record: Mapping[str, Any], boot_id: str, reason: str) -> Seen:
    """No folder that could be trusted: only a process noted on the receipt can be seen (TR-67)."""
    if record.get("bootId") != boot_id:
        return Seen(ProcessState.LOST, "machine_restarted")
    pid, ticks = record.get("pid"), record.get("startTicks")
    same_space = record.get("pidNamespace") == kernel.pid_namespace()
    if pid and ticks and same_space and kernel.is_alive(pid, ticks):
        member = Member(pid, ticks, int(record.get("group") or 0), command_of(pid))
        return Seen(ProcessState.RUNNING, reason, pid=pid, start_ticks=ticks, members=(member,))
    return Seen(ProcessState.UNCLEAR, reason)


def _ended(
    descriptor: int,
    record: Mapping[str, Any],
    found: Mapping[str, Any],
    *,
    quiet: bool,
    boot_id: str,
    shown_bytes: int,
) -> Seen:
    seen = seen_of_exit(found, descriptor, log=str(record.get("log", "")), shown_bytes=shown_bytes)
    if quiet or seen.state is ProcessState.NEVER_RAN or record.get("bootId") != boot_id:
        return replace(seen, quiet=quiet)
    claimed = folder.read_record(descriptor, folder.CLAIM) or {}
    alive, members = living(descriptor, claimed)
    return replace(seen, supervisor_alive=bool(alive), members=members)


def seen_of_exit(found: Mapping[str, Any], descriptor: int, *, log: str, shown_bytes: int) -> Seen:
    """What an exit record says, with the output that belongs to the result."""
    if found.get("neverRan"):
        return Seen(ProcessState.NEVER_RAN, str(found["neverRan"]))
    started, ended = found.get("startedBoot"), found.get("endedBoot")
    return Seen(
        ProcessState.EXITED,
        code=found.get("code"),
        signal=found.get("signal"),
        started_at_ms=found.get("startedAt"),
        lived_ms=ended - started if isinstance(started, int) and isinstance(ended, int) else None,
        output=shown_output(descriptor, int(found.get("logBytes") or 0), log=log, limit=shown_bytes),
        stop=found.get("stop"),
    )


def _by_claim(descriptor: int, record: Mapping[str, Any], epoch: int | None) -> Seen:
    """The folder is the right one and holds no exit record that counts: the claim decides."""
    claimed = folder.read_record(descriptor, folder.CLAIM)
    if claimed is None:
        if _has_run(descriptor) or _exists(descriptor, folder.CLAIM):
            # Something ran here and its claim was taken away: a new claim would prove nothing.
            return Seen(ProcessState.UNCLEAR, "claim_missing")
        if epoch is None:
            return Seen(ProcessState.UNCLEAR, "unclaimed")
        try:
            won = folder.put_claim(descriptor, {"by": "reconciliation", "epoch": epoch})
        except OSError:
            return Seen(ProcessState.UNCLEAR, "claim_impossible")
        if won:
            return Seen(ProcessState.NEVER_RAN, "claimed_by_reconciliation")
        claimed = folder.read_record(descriptor, folder.CLAIM) or {}
    if claimed.get("by") == "reconciliation":
        if _has_run(descriptor):
            # A supervisor that lost its claim leaves nothing; this one was put here by a command that ran.
            return Seen(ProcessState.UNCLEAR, "claim_contradicted")
        return Seen(ProcessState.NEVER_RAN, "claimed_by_reconciliation")
    if claimed.get("bootId") != record.get("bootId"):
        return Seen(ProcessState.UNCLEAR, "claim_unreadable")
    if claimed.get("pidNamespace") != kernel.pid_namespace():
        return Seen(ProcessState.UNCLEAR, "other_pid_namespace")
    alive, members = living(descriptor, claimed)
    leader = folder.read_record(descriptor, folder.LEADER) or {}
    running = bool(alive or members)
    state = ProcessState.RUNNING if running else ProcessState.GONE
    if alive is None and not running:
        state = ProcessState.UNCLEAR
    return Seen(
        state,
        None if running else ("hidden" if alive is None else "no_exit_record"),
        pid=leader.get("pid"),
        start_ticks=leader.get("startTicks"),
        group=leader.get("group"),
        supervisor_alive=bool(alive),
        members=members,
    )


def _has_run(descriptor: int) -> bool:
    return any(_exists(descriptor, name) for name in (folder.LEADER, folder.LOG, folder.STOP, folder.EXIT))


def _exists(descriptor: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def living(descriptor: int, claimed: Mapping[str, Any]) -> tuple[bool | None, tuple[Member, ...]]:
    """Whether the supervisor lives (None: hidden), and the living processes of its command."""
    pid, ticks = claimed.get("pid"), claimed.get("startTicks")
    if not pid or not ticks or claimed.get("pidNamespace") != kernel.pid_namespace():
        return None, ()
    if claimed.get("bootId") != kernel.boot_id():
        return False, ()
    alive = kernel.is_alive(pid, ticks)
    if alive:
        return True, tuple(_member(stat) for stat in kernel.descendants(pid))
    leader = folder.read_record(descriptor, folder.LEADER) or {}
    return alive, tuple(_orphans(descriptor, claimed, leader))


def _orphans(descriptor: int, claimed: Mapping[str, Any], leader: Mapping[str, Any]) -> Iterable[Member]:
    """Processes of a command whose supervisor is dead.

    Numbers of groups and sessions may be somebody else's by now, so a process counts only as
    the leader itself, or when it still writes to this run's log, or carries this call's key
    in the supervisor's session. Others may exist; that is why nothing is fenced here.
    """
    log = _identity(f"/proc/self/fd/{descriptor}/{folder.LOG}")
    key = claimed.get("key")
    marked = f"SUREFOOT_IDEMPOTENCY_KEY={key}".encode()
    for stat in kernel.all_stats():
        if stat.ended or stat.start_ticks < claimed["startTicks"] or stat.pid == os.getpid():
            continue
        is_leader = (stat.pid, stat.start_ticks) == (leader.get("pid"), leader.get("startTicks"))
        writes = log is not None and log in (_identity(f"/proc/{stat.pid}/fd/{n}") for n in (1, 2))
        marked_so = bool(key) and stat.session == claimed.get("pid") and marked in _environment(stat.pid)
        if is_leader or writes or marked_so:
            yield _member(stat)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - a link of /proc
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _member(stat: kernel.Stat) -> Member:
    return Member(stat.pid, stat.start_ticks, stat.group, command_of(stat.pid))


def command_of(pid: int) -> str:
    """The command line of a process, at most 200 characters."""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ""
    return raw.replace(b"\0", b" ").decode("utf-8", "replace").strip()[:200]


def executor_of(seen: Seen, clients: Collection[str] = ()) -> ExecutorState:
    """Whether something of the attempt can still act; never `ended` when work was handed to a service."""
    found = seen.executor
    if found is ExecutorState.ENDED and seen.state is not ProcessState.NEVER_RAN and hands_work_on(clients):
        return ExecutorState.NOT_PROVEN
    return found


def outcome_of(
    seen: Seen,
    effect_class: EffectClass,
    *,
    clients: Collection[str] = (),
    background_probe_ms: int | None = None,
) -> Outcome:
    """What a look means for the call, live, on reconciliation and on adoption alike.

    `background_probe_ms` is set for a background start: one that lived so long has succeeded.
    """
    executor = executor_of(seen, clients).value
    if seen.state is ProcessState.NEVER_RAN:
        text = f"The command did not run ({seen.reason}). Nothing was executed."
        return Outcome(
            text, State.FAILED, "never_ran", "never_ran", effect_trace=EffectTrace.NONE, executor="ended"
        )
    if background_probe_ms is not None and _lives_on(seen, background_probe_ms):
        return Outcome(_background_text(seen), executor=executor)
    if seen.state is not ProcessState.EXITED:
        return Outcome("", State.UNKNOWN, "owner_died", executor=executor)
    state, reason = exit_meaning(effect_class, seen.code, seen.signal, clients, output=seen.output)
    if seen.signal is not None and state is State.UNKNOWN and (seen.stop or {}).get("why") == "time_limit":
        reason = "time_limit"  # its supervisor kept the limit before its busy owner could (TR-73)
    kind = None if state is State.SUCCEEDED else ("signal" if seen.signal is not None else "exit_code")
    return Outcome(_text(seen), state, reason, kind, executor=executor)


def _lives_on(seen: Seen, probe_ms: int) -> bool:
    if seen.state is ProcessState.RUNNING:
        # A supervisor that is left alone still owes the exit record: its command is not running.
        return bool(seen.members)
    return seen.state is ProcessState.EXITED and seen.lived_ms is not None and seen.lived_ms >= probe_ms


def _background_text(seen: Seen) -> str:
    if seen.state is ProcessState.RUNNING:
        return f"Started in the background (pid {seen.pid}); it is running."
    return f"Started in the background and ended since: {end_words(seen)}\n{seen.output}".rstrip()


def _text(seen: Seen) -> str:
    if seen.code == 0:
        return seen.output or "(no output)"
    body = seen.output and seen.output.rstrip("\n") + "\n"
    return f"{body}[{end_words(seen)}]"


def end_words(seen: Seen) -> str:
    """How a command ended: `exit code 3`, `ended by signal 9 (SIGKILL)`."""
    if seen.signal is None:
        return f"exit code {seen.code}"
    return f"ended by signal {signal_name(seen.signal)}"


def signal_name(number: int) -> str:
    """`9 (SIGKILL)`; a number without a name stands alone."""
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:
        return str(number)
