"""What the run folders of supervised commands prove to a new owner.

Owns: the map from a look at a run folder to what reconciliation writes. Does not own:
the look (`tools.processes.seen`), the write (`runtime.reconcile`).
Promises: receipt:exact.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from surefoot.core.model import EffectClass, ExecutorState, ProcessChoice, Receipt, State
from surefoot.runtime.reconcile import Judged
from surefoot.tools.processes import kernel
from surefoot.tools.processes.client import adopt
from surefoot.tools.processes.ending import kill, resource_of, survivors
from surefoot.tools.processes.seen import ProcessState, Seen, executor_of, look, outcome_of


class RunFolders:
    """Supervision over the `processes` folder of one ledger."""

    def __init__(self, processes: Path, *, background_probe_seconds: float) -> None:
        self._processes = processes
        self._probe_ms = int(background_probe_seconds * 1000)

    def judge(self, receipt: Receipt, *, epoch: int) -> Judged:
        """How a command of a dead owner ended. An unclaimed one is claimed here, so that it never runs."""
        seen = look(receipt.process or {}, boot_id=kernel.boot_id(), epoch=epoch, claim=True)
        return self._judged(receipt, seen)

    def foresee(self, receipt: Receipt) -> Judged:
        """What `judge` would find now, as far as it can be told without a claim; nothing is written."""
        return self._judged(receipt, self._seen(receipt))

    def _judged(self, receipt: Receipt, seen: Seen) -> Judged:
        record = receipt.process or {}
        outcome = outcome_of(
            seen,
            receipt.effect_class or EffectClass.UNKNOWN,
            clients=_clients(receipt),
            background_probe_ms=self._probe_ms if record.get("background") else None,
        )
        settled = (
            None if outcome.state is State.UNKNOWN and seen.state is not ProcessState.EXITED else outcome
        )
        return Judged(settled, executor_of(seen, _clients(receipt)), _identity(seen))

    def executor(self, receipt: Receipt) -> ExecutorState:
        """As the kernel and the records say now; nothing is written."""
        return executor_of(self._seen(receipt), _clients(receipt))

    def shown(self, receipt: Receipt) -> Mapping[str, Any] | None:
        """A survivor for the snapshot; None for a command that never ran."""
        if receipt.process is None:
            return None
        seen = self._seen(receipt)
        if seen.state is ProcessState.NEVER_RAN:
            return None
        state = "gone" if seen.state is ProcessState.UNCLEAR else seen.state.value
        alive = executor_of(seen, _clients(receipt)) is ExecutorState.ALIVE
        log = receipt.process.get("log")
        return {
            "state": state,
            "pid": seen.pid,
            "log": log,
            "choices": [one.value for one in ProcessChoice] if alive else [],
        }

    async def adopt(self, receipt: Receipt) -> None:
        """Wait until the command of an earlier owner, or of a limit that left it, has ended."""
        if receipt.process is not None:
            await adopt(receipt.process)

    async def kill(self, receipt: Receipt) -> Mapping[str, Any]:
        """End a command through its supervisor, else member by member; what is left is named."""
        if receipt.process is None:
            return {"gone": False, "proven": False, "how": "nothing", "left": []}
        report = await asyncio.to_thread(kill, receipt.process)
        left = [{"pid": member.pid, "command": member.command} for member in report.left]
        return {"gone": report.gone, "proven": report.proven, "how": report.how, "left": left}

    def background(self) -> Sequence[Mapping[str, Any]]:
        """Every command started in the background that still runs, of any session of the ledger."""
        return [resource_of(survivor) for survivor in survivors(self._processes) if survivor.background]

    def _seen(self, receipt: Receipt) -> Seen:
        return look(receipt.process or {}, boot_id=kernel.boot_id())


def _identity(seen: Seen) -> dict[str, Any]:
    if seen.pid is None:
        return {}
    space = kernel.pid_namespace()
    return {"pid": seen.pid, "startTicks": seen.start_ticks, "group": seen.group, "pidNamespace": space}


def _clients(receipt: Receipt) -> tuple[str, ...]:
    """The clients of the command that may have handed work to somebody else's process (EC-58)."""
    return tuple((receipt.process or {}).get("clients") or ())
