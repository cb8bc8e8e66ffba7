"""Which verifier looks after a shell call, and what it is given to look with.

Owns: the choice by the record on the receipt (TR-109, TR-110), and the sight of a run folder as the
verifiers take it. Does not own: the looks (`verifiers`), the record (`processes.git_record`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from surefoot.core.model import EffectClass, ExecutorState, Receipt
from surefoot.machine import machine_id
from surefoot.tools.processes import folder, kernel, runs
from surefoot.tools.processes.seen import ProcessState, end_words, executor_of, look
from surefoot.verifiers.port import EffectVerifier
from surefoot.verifiers.process import ProcessVerifier, RunSight


def shell_verifier(*, push_window_seconds: float | None = None) -> Callable[[Receipt], EffectVerifier]:
    """Choose per call: git for a recorded git write, else what the run folder proves.

    `push_window_seconds`: how long after a push's connection ended its remote may still take it, as the
    owner declares it; without it an absent push stays unknown.
    """
    processes = ProcessVerifier(run_sight)

    def choose(call: Receipt) -> EffectVerifier:
        record = (call.process or {}).get("git")
        if not isinstance(record, Mapping):
            return processes
        from surefoot.tools.processes.git_record import git_variables
        from surefoot.verifiers.git import GitVerifier

        far = record.get("kind") == "push"
        return GitVerifier(
            git_variables, far=far, since_end=since_quiet_ms, commit_window_seconds=push_window_seconds
        )

    return choose


def git_stood(
    command: str, directory: Path, variables: Mapping[str, str], effect_class: EffectClass
) -> dict[str, Any] | None:
    """What stood before the one git write a command is; None for every other command. Blocks."""
    if effect_class is EffectClass.READ_ONLY or "git" not in command:
        return None
    from surefoot.tools.classify.git_writes import git_write
    from surefoot.tools.processes.git_record import git_record

    wanted = git_write(command)
    return None if wanted is None else git_record(wanted, directory, variables)


def run_sight(call: Receipt) -> RunSight:
    """The run folder of a call as it is now."""
    record = call.process or {}
    seen = look(record, boot_id=kernel.boot_id())
    clients = tuple(record.get("clients") or ())
    return RunSight(
        never_ran=seen.state is ProcessState.NEVER_RAN,
        ended=end_words(seen) if seen.state is ProcessState.EXITED else None,
        quiet=seen.quiet,
        fenced=executor_of(seen, clients) is ExecutorState.ENDED,
        state=seen.state.value,
    )


def since_quiet_ms(call: Receipt) -> int | None:
    """Milliseconds since the last process of a command was proven gone; None when that is not proven."""
    record = call.process or {}
    if record.get("bootId") != kernel.boot_id():
        same = (call.owner or {}).get("machineId") == machine_id() != ""
        return kernel.boot_ms() if same and record.get("bootId") else None
    try:
        descriptor = folder.open_folder(str(record.get("path", "")))
    except OSError:
        return None
    try:
        quiet = folder.read_record(descriptor, folder.QUIET)
    finally:
        os.close(descriptor)
    if quiet is None or not runs.is_proven(quiet, record.get("quietHash")):
        return None
    at = quiet.get("atBoot")
    return max(0, kernel.boot_ms() - at) if isinstance(at, int) else None
