"""Opening a ledger: the four answers, and what for.

Owns: `open_ledger`, `open_reader`, and that a damaged or vanished ledger is never answered with an
empty one (UX-163). Does not own: where ledgers lie (`places`, `config`).

Absent (`SessionMissing`), unreadable (`LedgerDamaged`, or `LedgerError` when permissions
are the reason), locked (`LedgerLocked`) and newer (`LedgerNewer`) are four answers;
`facts["answer"]` holds the word.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from surefoot.core.limits import Limits
from surefoot.errors import LedgerDamaged, LedgerError, SessionMissing
from surefoot.ledger import places
from surefoot.ledger.ballast import Room
from surefoot.ledger.clock import Clock
from surefoot.ledger.gate import watch_stop_signal
from surefoot.ledger.reader import Reader
from surefoot.ledger.witness import Witness

if TYPE_CHECKING:
    from surefoot.ledger.sqlite import SqliteLedger, Tuning


async def open_ledger(
    folder: Path,
    *,
    create: bool = True,
    clock: Clock | None = None,
    tuning: Tuning | None = None,
    limits: Limits | None = None,
) -> SqliteLedger:
    """Open the ledger in `folder`, which is made when `create` is set and nothing is there.

    `limits` are the owner's, in place of what `tuning` says: how long a claim lasts until its first renewal, how
    long the gate is waited for, how much must be free on the disk and is kept for the end of a call.

    Raises:
        SessionMissing: absent, and not to be made.
        LedgerDamaged: unreadable, or gone while its witness knows sessions.
        LedgerLocked: the gate was not free within its time.
        LedgerNewer: written by a newer surefoot.
        LedgerError: permissions or the disk refuse.
    """
    # Loaded here, so that whoever only reads does not pay for what writing needs.
    import asyncio

    from surefoot.ledger.sqlite import SqliteLedger, Tuning

    chosen = tuning or Tuning()
    if limits is not None:
        chosen = dataclasses.replace(
            chosen,
            room=Room(limits.free_bytes, limits.ballast_bytes),
            gate_wait_seconds=limits.gate_wait_seconds,
            lease_seconds=limits.lease_seconds,
        )
    watch_stop_signal()

    def work() -> SqliteLedger:
        real = folder.absolute()
        _look(real, create)
        try:
            if create:
                places.make_folder(real)
            return SqliteLedger(real, clock, chosen, create=create)
        except OSError as error:
            raise _refused(folder, error) from error

    return await asyncio.to_thread(work)


def open_reader(folder: Path) -> Reader:
    """Open the ledger in `folder` to read it. Raises as `open_ledger` does where nothing is to be made."""
    real = folder.absolute()
    _look(real, False)
    try:
        return Reader(real)
    except OSError as error:
        raise _refused(folder, error) from error


def _refused(folder: Path, error: OSError) -> LedgerError:
    return LedgerError(
        f"the ledger folder {str(folder)!r} cannot be used ({error.strerror}); check its permissions",
        answer="unreadable",
    )


def _look(folder: Path, make: bool) -> None:
    """Tell absent from vanished before anything is made."""
    path = folder / places.LEDGER
    if path.exists() and path.stat().st_size:
        return
    sessions = _witnessed(folder)
    if sessions:
        raise LedgerDamaged(
            f"the ledger {str(path)!r} is gone or empty, but its witness knows {sessions} sessions; put the file "
            "back, or run `surefoot ledger begin` to start a new ledger beside what is left",
            answer="unreadable",
        )
    if not make and not path.exists():
        raise SessionMissing(
            f"there is no ledger at {str(path)!r}; start a session there first", answer="absent"
        )


def _witnessed(folder: Path) -> int:
    try:
        witness = Witness(folder / places.WITNESS, read_only=True)
    except OSError:
        return 0
    try:
        return len(witness.all())
    finally:
        witness.close()
