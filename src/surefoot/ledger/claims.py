"""How a session of the SQLite ledger is read back and taken over: chain, book, witness, epoch.

Owns: reading a session whole, the comparison with the witness (TR-196), and the one
commit in which an ownership begins (TR-172, TR-177). Does not own: whether the last
owner is dead (`owners`), gate and threads (`sqlite`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from surefoot.core.lifecycle import Book
from surefoot.core.model import Draft, Entry, Kind, Owner
from surefoot.errors import LedgerDamaged, LedgerError
from surefoot.ledger.chain import (
    POSITION_BITS,
    POSITION_MASK,
    ChainRow,
    check,
    genesis,
    link,
    new_salt,
    payload_digest,
    payload_text,
)
from surefoot.ledger.clock import Clock
from surefoot.ledger.cover import covered
from surefoot.ledger.database import Database
from surefoot.ledger.derived import Folded, Listed, Stored, fold, fold_stored, stored_of, without_collecting
from surefoot.ledger.ownership import Ownership
from surefoot.ledger.port import Tail
from surefoot.ledger.shelf import partly_shelved, shelved
from surefoot.ledger.witness import Seen


@dataclass(frozen=True, slots=True)
class Known:
    """The row of a session."""

    number: int
    session_id: str
    epoch: int
    owner: Owner | None
    since_ms: int
    lease_ms: int
    lease_boot_ms: int
    lease_boot_id: str
    created_ms: int


@dataclass(slots=True)
class Loaded:
    """A session read whole, with what the chain and the witness need to know."""

    folded: Folded
    position: int
    head: bytes
    loss_told: str | None = None
    """What an earlier claim said of a lost tail, while nothing has been noted about it since."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Until when an ownership lasts, by the wall clock and by the boot clock of one boot."""

    until_ms: int
    until_boot_ms: int
    boot_id: str


def known(database: Database, session_id: str) -> Known | None:
    """The row of a session, or None."""
    rows = database.rows("session_by_id", session_id)
    return known_of(rows[0]) if rows else None


def known_of(row: Sequence[object]) -> Known:
    """A row of `sessions` in words."""
    number, session_id, epoch, owner, since, lease, boot, boot_id, created = row
    told = Owner.from_json(json.loads(str(owner))) if owner is not None else None
    return Known(
        int(str(number)),
        str(session_id),
        int(str(epoch)),
        told,
        int(str(since)),
        int(str(lease)),
        int(str(boot)),
        str(boot_id),
        int(str(created)),
    )


def load(database: Database, number: int, session_id: str, *, checked: bool) -> Loaded:
    """Read a session: its chain when `checked`, its book from derived rows where they hold.

    A checked one has an owner soon, who is shown what is open: the receipts of settled calls are read when
    somebody asks for them, by a connection of their own.

    Raises:
        LedgerDamaged: the chain does not hold.
    """
    with without_collecting():
        return (_checked if checked else _load)(database, number, session_id)


def _checked(database: Database, number: int, session_id: str) -> Loaded:
    start, loss = number << POSITION_BITS, _Loss()
    with database.snapshot() as stream:
        listed = database.rows("listing_of", number)
        upto = int(listed[0][0]) if listed else 0
        # What derived rows stand for is only looked at on its way past, because keeping it takes as long again.
        rows = loss.noted(stream("chain_upto", start, start + upto))
        head, position, broken = check(genesis(session_id), 0, rows)
        folded = None
        if broken is None and listed and (position, head) == listed[0][:2]:
            rest = cache(partial(_rest_aside, database, number, session_id, listed))
            folded = _shelf(database, number, listed[0], rest)
        tail: list[ChainRow] = database.rows("chain_after", start + position)
        before = database.rows("entries_after", start, position) if folded is None and position else []
    if broken is None:
        head, position, broken = check(head, position, loss.noted(tail))
    if broken is not None:
        raise damaged(session_id, broken)
    if folded is None:
        folded = fold_stored(Folded(Book(), Listed()), session_id, map(stored_of, before))
    fold_stored(folded, session_id, map(_stored, tail))
    return Loaded(folded, position, head, loss.told)


def _load(database: Database, number: int, session_id: str) -> Loaded:
    start = number << POSITION_BITS
    with database.snapshot():
        listed = database.rows("listing_of", number)
        upto = int(listed[0][0]) if listed else 0
        before = database.rows("head_at", start + upto) if listed else []
        receipts = database.rows("receipts_of", number) if before else []
        tail = database.rows("entries_after", start + upto, -1)
    folded = shelved(listed[0], receipts) if before and before[0][0] == listed[0][1] else None
    if folded is None:
        folded = Folded(Book(), Listed())
        if upto:
            tail = database.rows("entries_after", start, -1)
    last = bytes(tail[-1][5] if tail else before[0][0] if before else genesis(session_id))
    fold_stored(folded, session_id, map(stored_of, tail))
    return Loaded(folded, folded.listed.upto, last)


def skim(database: Database, number: int, session_id: str) -> Loaded:
    """Read a session as one does who neither checks nor writes: receipts of settled calls when they are asked for.

    That reads them from `database`, so the book is used where and while that is.
    """
    start = number << POSITION_BITS
    with without_collecting():
        with database.snapshot():
            listed_rows = database.rows("listing_of", number)
            upto = int(listed_rows[0][0]) if listed_rows else 0
            before = database.rows("head_at", start + upto) if listed_rows else []
            folded = None
            if before and before[0][0] == listed_rows[0][1]:
                rest = partial(_rest, database, number, session_id, listed_rows)
                folded = partly_shelved(database, number, listed_rows[0], rest)
            tail = database.rows("entries_after", start + upto, -1) if folded is not None else []
        if folded is None:
            return _load(database, number, session_id)
        fold_stored(folded, session_id, map(stored_of, tail))
    return Loaded(folded, folded.listed.upto, bytes(tail[-1][5] if tail else before[0][0]))


def _rest(database: Database, number: int, session_id: str, listed_rows: list[tuple[Any, ...]]) -> Book:
    """The whole book as of these derived rows: from all of them, or anew where they do not hold or were replaced."""
    start, upto = number << POSITION_BITS, int(listed_rows[0][0])
    with without_collecting():
        with database.snapshot():
            same = database.rows("listing_of", number) == listed_rows
            receipts = database.rows("receipts_of", number) if same else []
            folded = shelved(listed_rows[0], receipts)
            entries = database.rows("entries_after", start, upto) if folded is None else []
        if folded is None:
            if not entries or entries[-1][5] != listed_rows[0][1]:
                raise damaged(session_id, f"entry {upto} is not the one that was read before")
            folded = fold_stored(Folded(Book(), Listed()), session_id, map(stored_of, entries))
    return folded.book


def _rest_aside(database: Database, number: int, session_id: str, listed_rows: list[tuple[Any, ...]]) -> Book:
    """The same by a connection of its own: an owner asks in its loop, while a thread may be reading by this one."""
    with closing(Database(database.path, read_only=True, vfs=database.vfs)) as aside:
        return _rest(aside, number, session_id, listed_rows)


def taken(loaded: dict[int, Loaded], database: Database, number: int, session_id: str) -> Loaded:
    """What was read a moment ago, given away once if nothing was appended since; else read now."""
    kept = loaded.pop(number, None)
    last = database.rows("last_entry", number) if kept is not None else []
    if kept is not None and last and bytes(last[0][1]) == kept.head:
        return kept
    return skim(database, number, session_id)


def damaged(session_id: str, broken: str) -> LedgerDamaged:
    """The error for a chain that does not hold."""
    return LedgerDamaged(
        f"the history of session {session_id!r} does not hold: {broken}; run `surefoot ledger verify`",
        session=session_id,
    )


def _shelf(database: Database, number: int, listed: Sequence[Any], rest: Callable[[], Book]) -> Folded | None:
    """The derived state, when it agrees with its own checks: few of its rows where few are enough."""
    part = partly_shelved(database, number, listed, rest)
    return part or shelved(listed, database.rows("receipts_of", number))


def _stored(row: ChainRow) -> Stored:
    key, epoch, at_ms, kind, head, _, payload, _ = row
    return (key & POSITION_MASK, epoch, at_ms, kind), payload, head


class _Loss:
    """A claim that found a lost tail says so in its entry until a notice of it follows.

    The owner that found it may have died before it noted anything, and the witness has been
    overwritten by its claim.
    """

    def __init__(self) -> None:
        self.told: str | None = None

    def noted(self, rows: Iterable[ChainRow]) -> Iterator[ChainRow]:
        """The rows as they pass, with what they say of a loss noted."""
        # Plain words compare faster than members of an enumeration, and rows are many.
        owned, notice = Kind.SESSION_OWNED.value, Kind.NOTICE.value
        for row in rows:
            kind = row[3]
            if kind in (owned, notice):
                self._note(kind == owned, row[6])
            yield row

    def _note(self, owned: bool, payload: bytes | None) -> None:
        if owned and payload is not None and b'"tailLost"' in payload:
            self.told = str(json.loads(payload).get("tailLost") or "") or None
        elif not owned and payload is not None and b'"tail_lost"' in payload:
            self.told = None


def tail_of(loaded: Loaded, seen: Seen | None, head_at: Callable[[int], bytes | None]) -> Tail:
    """Compare a session with what the witness saw of it (TR-196); `head_at` gives the head after a position."""
    if seen is not None and seen.position > loaded.position:
        return Tail(True, f"the witness saw entry {seen.position}, the ledger ends at {loaded.position}")
    if seen is not None and seen.position and not seen.same_head(head_at(seen.position)):
        return Tail(True, f"entry {seen.position} is not the one the witness saw")
    if loaded.loss_told is not None:
        return Tail(True, loaded.loss_told)
    return Tail(False)


@dataclass(frozen=True, slots=True)
class Begun:
    """An ownership whose commit was made, with its first rows."""

    ownership: Ownership
    tail: Tail
    folded: Folded
    taken_over: bool


@dataclass(frozen=True, slots=True)
class Wish:
    """What a claim wants to write."""

    session_id: str
    owner: Owner
    at_ms: int
    lease: Lease
    taken_over: bool = False
    leased: Clock | None = None
    """Set when only the end of the old lease speaks for the owner's death; looked at again inside the commit."""


def lease_is_over(found: Known, book: Book, clock: Clock, boot_id: str) -> bool:
    """Whether nothing of the old owner may begin any more: its lease is over and so is every start's cover.

    By boot time within one boot, so that a jump of the wall clock changes nothing (TR-174).
    """
    cover = covered(book, boot_id)
    if found.lease_boot_id and found.lease_boot_id == boot_id:
        return clock.boot_ms() > max(found.lease_boot_ms, cover.until_boot_ms)
    return clock.now_ms() > max(found.lease_ms, cover.until_ms)


def begin(database: Database, wish: Wish, seen: Known, loaded: Loaded, witness: Seen | None) -> Begun | None:
    """Raise the epoch in one commit, unless somebody did so since `seen` was read."""
    number = seen.number
    with database.commit():
        now = known(database, wish.session_id)
        if now is None or now.epoch != seen.epoch or (now.owner is None) != (seen.owner is None):
            return None
        _catch_up(database, number, wish.session_id, loaded)
        if wish.leased is not None:
            book, here = loaded.folded.book, wish.lease.boot_id
            if not lease_is_over(now, book, wish.leased, here):
                return None  # it renewed, or started something, while its lease was being judged
        tail = tail_of(loaded, witness, partial(_head_at, database, number))
        # After a lost tail the witness may know an epoch the ledger has forgotten; it is not given twice.
        epoch = max(now.epoch, witness.epoch if witness is not None and tail.lost else 0) + 1
        lease = wish.lease
        owner = payload_text(wish.owner.to_json())[0]
        database.change(
            "own",
            number,
            now.epoch,
            epoch,
            owner,
            wish.at_ms,
            lease.until_ms,
            lease.until_boot_ms,
            lease.boot_id,
        )
        payload = {
            "owner": wish.owner.to_json(),
            "takenOver": wish.taken_over,
            "previousEpoch": now.epoch,
            **({"tailLost": tail.detail} if tail.lost else {}),
        }
        _append(
            database, (number, epoch, wish.at_ms), loaded, Draft(Kind.SESSION_OWNED, payload), wish.session_id
        )
    return _begun(wish, (number, epoch), loaded, tail)


def create(database: Database, wish: Wish, opening: Draft, number: int) -> Begun | None:
    """Make a session and its first ownership in one commit, unless somebody just made it."""
    loaded = Loaded(Folded(Book(), Listed()), 0, genesis(wish.session_id))
    with database.commit():
        if known(database, wish.session_id) is not None:
            return None
        lease = wish.lease
        owner = wish.owner.to_json()
        database.change(
            "create_session",
            number,
            wish.session_id,
            1,
            payload_text(owner)[0],
            wish.at_ms,
            lease.until_ms,
            lease.until_boot_ms,
            lease.boot_id,
        )
        place = (number, 1, wish.at_ms)
        _append(database, place, loaded, opening, wish.session_id)
        owned = {"owner": owner, "takenOver": False, "previousEpoch": 0}
        _append(database, place, loaded, Draft(Kind.SESSION_OWNED, owned), wish.session_id)
    return _begun(wish, (number, 1), loaded, Tail(False))


def _begun(wish: Wish, place: tuple[int, int], loaded: Loaded, tail: Tail) -> Begun:
    number, epoch = place
    book = loaded.folded.book
    owned = Ownership(wish.session_id, number, epoch, wish.owner, book, loaded.position, loaded.head)
    owned.unlisted = 1
    return Begun(owned, tail, loaded.folded, wish.taken_over)


def _head_at(database: Database, number: int, position: int) -> bytes | None:
    rows = database.rows("head_at", (number << POSITION_BITS) + position)
    return bytes(rows[0][0]) if rows else None


def _catch_up(database: Database, number: int, session_id: str, loaded: Loaded) -> None:
    """What was appended between the reading and this commit."""
    rows: list[ChainRow] = database.rows("chain_after", (number << POSITION_BITS) + loaded.position)
    head, position, broken = check(loaded.head, loaded.position, rows)
    if broken is not None:
        raise damaged(session_id, broken)
    fold_stored(loaded.folded, session_id, map(_stored, rows))
    loaded.head, loaded.position = head, position


def _append(
    database: Database, place: tuple[int, int, int], loaded: Loaded, draft: Draft, session_id: str
) -> None:
    number, epoch, at_ms = place
    text, raw = payload_text(draft.payload)
    salt = new_salt()
    position = loaded.position + 1
    head = link(loaded.head, (position, epoch, at_ms), str(draft.kind), payload_digest(salt, raw))
    row = ((number << POSITION_BITS) + position, epoch, at_ms, str(draft.kind), head, salt, text)
    if not database.append_inside(row):
        raise LedgerError(f"session {session_id!r} changed while it was claimed; try again")
    loaded.position, loaded.head = position, head
    fold(
        loaded.folded, [Entry(session_id, position, epoch, at_ms, str(draft.kind), draft.payload, head.hex())]
    )
