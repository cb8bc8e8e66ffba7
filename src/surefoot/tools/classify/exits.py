"""Pure. What the end of a command says about its call (TR-69, EC-57, EC-58)."""

from __future__ import annotations

import re
from collections.abc import Collection

from surefoot.core.model import EffectClass, State
from surefoot.tools.classify.rules import load

SIGNAL_CODES = range(129, 193)
"""How a shell tells that a command it ran was ended by a signal."""


def exit_meaning(
    effect_class: EffectClass,
    exit_code: int | None,
    signal: int | None,
    clients: Collection[str] = (),
    *,
    output: str = "",
) -> tuple[State, str | None]:
    """State and reason (TR-41) of a command that ended with a code or by a signal.

    `output` is what it printed; words in it only ever turn a failure into an unknown (EC-53).
    """
    reading = effect_class is EffectClass.READ_ONLY
    if signal is not None or exit_code is None:
        return (State.FAILED, None) if reading else (State.UNKNOWN, "process_signal")
    if exit_code == 0:
        return State.SUCCEEDED, None
    if effect_class.retry_safe:
        return State.FAILED, None
    if exit_code in SIGNAL_CODES:
        return State.UNKNOWN, "process_signal"
    table = load("exits")
    if any(exit_code in table["lost_reply"].get(client, ()) for client in clients):
        return State.UNKNOWN, "connection_lost"
    if any(re.search(words, output) for client, words in table["lost_words"].items() if client in clients):
        return State.UNKNOWN, "connection_lost"
    return State.FAILED, None


def hands_work_on(clients: Collection[str]) -> bool:
    """Whether a command gives work to somebody else's process, which its own end never fences (EC-58)."""
    return any(client in load("exits")["services"]["names"] for client in clients)
