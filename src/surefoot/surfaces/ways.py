"""The command that leads on from an error, for errors that do not name one themselves (UX-9). Pure.

Owns: one command per kind of error. Does not own: what an error says (`errors` and who raises it).
"""

from __future__ import annotations

from surefoot.errors import (
    LedgerDamaged,
    LedgerNewer,
    RecoveryRefused,
    SessionHeld,
    SessionMissing,
    SettingsError,
    SurefootError,
    UsageError,
)

NEXT: tuple[tuple[type[SurefootError], str], ...] = (
    (SettingsError, "surefoot config check"),
    (UsageError, "surefoot --help"),
    (LedgerNewer, "pip install --upgrade surefoot"),
    (LedgerDamaged, "surefoot ledger verify"),
    (SessionHeld, "surefoot session list"),
    (RecoveryRefused, "surefoot recover list"),
    (SessionMissing, "surefoot session list"),
)
"""The first row that fits; what fits none is for the doctor."""


def next_of(error: SurefootError) -> str:
    """The next command of an error: its own, else the one that leads on from errors of its kind (UX-9)."""
    if error.next_command:
        return error.next_command
    return next((command for kind, command in NEXT if isinstance(error, kind)), "surefoot doctor")
