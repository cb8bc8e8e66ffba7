"""How long ago an attempt can have sent its last byte.

Owns: the one measure of commit windows (TR-100, TR-109). Does not own: the windows themselves,
which a declaration states. Wall clocks take no part: they may be set while a call is open.
"""

from __future__ import annotations

from collections.abc import Callable

from surefoot.core.model import ExecutorState, Receipt
from surefoot.machine import boot_id, boot_ms, machine_id

BootMs = Callable[[], int]


def since_end_ms(call: Receipt, now_ms: BootMs = boot_ms) -> int | None:
    """At least so long ago the executor of a call had ended; None when nobody can tell.

    After a restart of the machine it is the time since then: nothing of an older boot sends any more.
    """
    executor, owner = call.executor or {}, call.owner or {}
    if executor.get("state") != ExecutorState.ENDED:
        return None
    if owner.get("bootId") and owner.get("bootId") != boot_id():
        same = bool(owner.get("machineId")) and owner.get("machineId") == machine_id()
        return now_ms() if same else None
    ended = executor.get("endedBoot")
    if not isinstance(ended, int) or not owner.get("bootId"):
        return None
    return max(0, now_ms() - ended)
