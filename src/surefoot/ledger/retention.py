"""Retention: what is too old is dropped, in an order that tells the truth after any kill (TR-97).

Owns: which sessions are looked at, and that a drop is announced durably before it begins:
own the session, append what is left of its calls, drop the payloads, give it back. Does
not own: what may go (`core.retention`), how it goes (`shedding`), when (`surfaces`:
only by a person's command, never by opening or listing).
Promises: retention:open-stays.

Once the announcement is durable the old receipts are folded no more, so it makes no
difference how many payloads a kill left behind; the next call finishes the drop.
"""

from __future__ import annotations

from dataclasses import dataclass

from surefoot.core.model import Draft, Kind, Owner
from surefoot.core.retention import reason_to_keep, what_is_left
from surefoot.errors import LedgerDamaged
from surefoot.ledger.port import Claim, Held, Ledger, NotAppended, SessionRow, Shedder, Swept


@dataclass(frozen=True, slots=True)
class Wish:
    """What shall go: sessions unchanged since `sessions_before_ms` (None: no session), and blobs nobody
    names that were stored before `blobs_before_ms`. `living` are the attempts of commands that still run."""

    sessions_before_ms: int | None
    blobs_before_ms: int
    who: str
    dry_run: bool = False
    living: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Spared:
    """An old session of which nothing went. `reason`: `open_calls`, `unsettled_calls`, `background`,
    `owned`, `tail_lost`, `lost`, `unreadable`, or a code of the ledger."""

    session_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Pruned:
    """What went, or would go, and which old sessions stayed."""

    dropped: tuple[str, ...]
    spared: tuple[Spared, ...]
    payloads: int
    swept: Swept


async def prune(ledger: Ledger, shedder: Shedder, owner: Owner, wish: Wish) -> Pruned:
    """Drop what is too old, then the blobs that nobody names any more.

    Raises:
        LedgerError: the disk refused; what went by then is gone whole, and a next call finishes the rest.
    """
    dropped: list[str] = []
    spared: list[Spared] = []
    payloads = 0
    for row in await ledger.sessions():
        if not await _due(row, shedder, wish):
            continue
        reason = row.status if row.status in ("lost", "unreadable") else None
        reason = reason or reason_to_keep(await ledger.receipts(row.session_id))
        if reason is None and wish.dry_run:
            payloads += await shedder.held(row.session_id)
        elif reason is None:
            answer = await drop(ledger, shedder, owner, row, cause="retention", who=wish.who)
            reason = answer if isinstance(answer, str) else None
            payloads += answer if isinstance(answer, int) else 0
        if reason is None:
            dropped.append(row.session_id)
        else:
            spared.append(Spared(row.session_id, reason))
    swept = await shedder.sweep(older_than_ms=wish.blobs_before_ms, living=wish.living, dry_run=wish.dry_run)
    return Pruned(tuple(dropped), tuple(spared), payloads, swept)


async def _due(row: SessionRow, shedder: Shedder, wish: Wish) -> bool:
    if row.status == "dropped":
        return await shedder.held(row.session_id) > 0  # a kill came between
    return wish.sessions_before_ms is not None and row.changed_ms < wish.sessions_before_ms


async def drop(
    ledger: Ledger, shedder: Shedder, owner: Owner, row: SessionRow, *, cause: str, who: str
) -> int | str:
    """Drop one session; how many payloads went, or why nothing did.

    Raises:
        SessionMissing, LedgerError.
    """
    try:
        claim = await ledger.claim(row.session_id, owner)
    except LedgerDamaged:
        return "unreadable"
    if isinstance(claim, Held):
        return "owned"
    try:
        # Judged anew: until this claim somebody else may have written.
        reason = "tail_lost" if claim.tail.lost else reason_to_keep(claim.book)
        if reason is not None:
            return reason
        position = claim.position
        refused = await _announce(ledger, claim, {"changedMs": row.changed_ms, "cause": cause, "who": who})
        if refused is not None:
            return refused
        return await shedder.drop(row.session_id, epoch=claim.epoch, upto=position)
    finally:
        await ledger.release(row.session_id, epoch=claim.epoch)


async def _announce(ledger: Ledger, claim: Claim, facts: dict[str, object]) -> str | None:
    """Write durably what is dropped and what is left of it; the code of a refusal, or None."""
    payload = {"upto": claim.position, **facts, "receipts": what_is_left(claim.book)}
    draft = Draft(Kind.SESSION_DROPPED, payload)
    answer = await ledger.append(claim.session_id, [draft], epoch=claim.epoch, after=claim.position)
    return answer.code if isinstance(answer, NotAppended) else None
