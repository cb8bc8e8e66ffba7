"""surefoot: an AI agent runtime whose tool calls tell the truth.

The public names. Nothing is loaded before it is used, so that importing the package
does no I/O and stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "library": ("open", "Opened", "GuardedSession"),
    "runtime.tools": ("Tool", "LiveAttempt", "Outcome", "Prepared", "Place"),
    "core.effects": ("Effect", "overlaps"),
    "core.model": (
        "Action",
        "BarrierLevel",
        "Decision",
        "EffectClass",
        "EffectTrace",
        "Grade",
        "Receipt",
        "State",
    ),
    "runtime.guarded": ("Happened",),
    "verifiers.port": ("EffectVerifier", "Observation", "Deadline"),
    "errors": (
        "SurefootError",
        "UsageError",
        "SettingsError",
        "LedgerError",
        "LedgerDamaged",
        "LedgerNewer",
        "LedgerLocked",
        "ReceiptNotWritten",
        "SessionHeld",
        "SessionMissing",
        "OutcomeUnknown",
        "WriteFenced",
        "RecoveryRefused",
        "ToolError",
        "ExtraMissing",
    ),
}
_WHERE = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_WHERE)]  # noqa: PLE0604

if TYPE_CHECKING:
    from surefoot.core.effects import Effect, overlaps
    from surefoot.core.model import (
        Action,
        BarrierLevel,
        Decision,
        EffectClass,
        EffectTrace,
        Grade,
        Receipt,
        State,
    )
    from surefoot.errors import (
        ExtraMissing,
        LedgerDamaged,
        LedgerError,
        LedgerLocked,
        LedgerNewer,
        OutcomeUnknown,
        ReceiptNotWritten,
        RecoveryRefused,
        SessionHeld,
        SessionMissing,
        SettingsError,
        SurefootError,
        ToolError,
        UsageError,
        WriteFenced,
    )
    from surefoot.library import GuardedSession, Opened, open
    from surefoot.runtime.guarded import Happened
    from surefoot.runtime.tools import LiveAttempt, Outcome, Place, Prepared, Tool
    from surefoot.verifiers.port import Deadline, EffectVerifier, Observation


def __getattr__(name: str) -> Any:
    home = _WHERE.get(name)
    if home is None:
        raise AttributeError(f"module 'surefoot' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"surefoot.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
