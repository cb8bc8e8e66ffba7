"""The ledger port: what an engine must do so that "durable" is true.

Owns: the twelve verbs, their answers, and what each promises. Engines
(`sqlite`, `memory`, later `postgres`) implement it and pass one conformance
suite. Does not own: what entries mean (`core.lifecycle`), when they are written
(`runtime.barrier`).
Promises: ledger:append-only, ledger:fenced, ledger:engines-agree.

Expected things are values: a stale epoch, a conflict, a refusal by the judge, a
session held by another owner. Exceptions are for callers who must stop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from surefoot.core.lifecycle import Book
from surefoot.core.model import Draft, Entry, Owner

Judge = Callable[[], "str | None"]
"""Called under the writer lock directly before the statement: a code refuses, None lets pass (TR-21).

It must be fast, must not await and must not touch the ledger.
"""


@dataclass(frozen=True, slots=True)
class Appended:
    """The entries are durable, in this order, and folded into the owner's book."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class NotAppended:
    """Nothing was written. `code` is `lease_lost` (stale epoch), `position_conflict`, the code of a
    judge, or a code of `core.lifecycle.refusal` (an illegal move)."""

    code: str


@dataclass(frozen=True, slots=True)
class Tail:
    """What the witness says of a session's newest entries (TR-196)."""

    lost: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """An ownership that has begun; its epoch is higher than every earlier one (TR-172).

    `book` is live: the engine folds every later append of this owner into it.
    `previous` is the owner before this one, or None for a new session.
    `taken_over` is True when the previous owner was not proven dead: a person's word, or a lease that ran out.
    """

    session_id: str
    epoch: int
    book: Book
    position: int
    tail: Tail
    previous: Owner | None
    previous_epoch: int
    taken_over: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """Somebody else owns the session. `how` says how its death would be known: `at_once` or `lease`."""

    owner: Owner
    epoch: int
    since_ms: int
    how: str
    lease_until_ms: int | None


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One line of the listing, from derived data; correct after that data was deleted (UX-49)."""

    session_id: str
    name: str | None
    directory: str
    model: str | None
    created_ms: int
    changed_ms: int
    position: int
    epoch: int
    calls: int
    open_calls: int
    status: str
    """`ok`, `dropped` (its payloads are gone, what is left of its calls is kept), `lost` (known to the
    witness alone) or `unreadable`."""
    owner: Owner | None = None
    """Who owns it, alive or not; None after it was given back."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing `verify` found wrong; `code` is stable (`chain_broken`, `tail_lost`, `blob_missing`, …)."""

    code: str
    session_id: str | None
    position: int | None
    detail: str


@dataclass(frozen=True, slots=True)
class Report:
    """The answer of `verify`: what was checked and what was found."""

    sessions: int
    entries: int
    blobs: int
    findings: tuple[Finding, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Swept:
    """Blobs and run folders that nobody names: how many went, or would go, and the size of the blobs."""

    blobs: int
    size_bytes: int
    runs: int = 0


class Shedder(Protocol):
    """The one way by which something leaves a ledger; beside the verbs, because no run ever does it.

    It drops only what an entry `session.dropped` has announced durably, and blobs no payload names.
    Holds the gate for each commit and for the removal of files (TR-6).
    """

    async def drop(self, session_id: str, *, epoch: int, upto: int) -> int:
        """Drop payload and salt of the entries up to `upto` and leave their digests; how many went.

        Whole after a crash when called again; `session.opened` and `session.named` stay.

        Raises:
            LedgerError: the session has another owner, or the disk refuses.
        """
        ...

    async def held(self, session_id: str) -> int:
        """How many payloads a session still has that a drop would take."""
        ...

    async def sweep(
        self, *, older_than_ms: int, living: Collection[str] = (), dry_run: bool = False
    ) -> Swept:
        """Remove blobs and run folders that no payload names, unless stored or written to since then.

        `living` are the attempts of commands that still run, whose folders stay.
        """
        ...

    async def close(self) -> None:
        """Let go of every file."""
        ...


class Readable(Protocol):
    """The verbs that only read: what a reader and an owner of a ledger both have."""

    async def read(
        self, session_id: str, *, after: int = 0, limit: int | None = None, kinds: Collection[str] = ()
    ) -> list[Entry]:
        """The entries of a session behind position `after`, in order; of these kinds, when there are any.

        Takes no lock that a writer waits for.
        """
        ...

    async def sessions(self) -> list[SessionRow]:
        """Every session, those only the witness knows included."""
        ...

    async def receipts(self, session_id: str) -> Book:
        """Receipts as of now, for readers that do not own the session; to be read, not folded further.

        Asking the book for the open or the resolved ones costs nothing for the others.
        """
        ...

    async def get_blob(self, ref: str) -> bytes:
        """The content of a blob, checked against its digest. Raises `LedgerDamaged` when missing or torn."""
        ...

    async def verify(self, session_id: str | None = None) -> Report:
        """Check chains, witness and blobs without changing anything."""
        ...

    async def close(self) -> None:
        """Finish what was begun, catch derived tables up, let go of every lock. Deletes no file."""
        ...


class Ledger(Readable, Protocol):
    """Twelve verbs. Every coroutine may raise `LedgerError`; only the classes named are special."""

    async def append(
        self,
        session_id: str,
        drafts: Sequence[Draft],
        *,
        epoch: int,
        after: int | None = None,
        judge: Judge | None = None,
    ) -> Appended | NotAppended:
        """Append the drafts durably, all or none, in one commit that may be shared with others.

        `epoch` and, when given, `after` (the position the caller saw last) are decided inside
        the statement. Illegal moves of a receipt are refused. Queueing is synchronous up to the
        first await; a cancelled caller cancels only the waiting (TR-29).

        Raises:
            LedgerUncertain: the commit's answer was lost; call `resolve` with it (TR-27).
            LedgerError: certainly not written (disk full, gate not passed, …).
        """
        ...

    async def resolve(self, uncertain: Exception) -> tuple[Entry, ...] | None:
        """Find out what an uncertain append did: its entries, or None for certainly absent (TR-27).

        Raises:
            LedgerUncertain: still not certain; nothing may be told as written or refused.
        """
        ...

    async def claim(
        self, session_id: str, owner: Owner, *, opening: Draft | None = None, take_over: bool = False
    ) -> Claim | Held:
        """Become owner: raise the epoch and fold the book, unless another owner is alive (TR-173, TR-177).

        `opening` (`session.opened`) creates the session; without it an unknown id raises.
        An owner whose death cannot be told keeps the session until its lease is over and, for at most ten
        minutes after their start, until the deadlines of its unsettled calls have passed (TR-174, TR-175).
        `take_over` is a person's word: the epoch rises although the owner is not proven dead.
        Checks the chain of this session (TR-200) and its witness (TR-196).

        Raises:
            SessionMissing: no such session and no `opening`.
            LedgerDamaged: the session's chain does not hold.
        """
        ...

    async def renew(self, session_id: str, *, epoch: int, until_ms: int) -> bool:
        """Extend the lease to at least `until_ms` (TR-174, TR-175); False when the epoch is stale."""
        ...

    async def release(self, session_id: str, *, epoch: int) -> None:
        """End this ownership; a stale epoch is no error (TR-178)."""
        ...

    async def put_blob(self, content: bytes) -> str:
        """Store content by its digest (`sha256:…`), durable when this returns (TR-6)."""
        ...
