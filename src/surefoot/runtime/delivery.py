"""Which results the program of the user has got, and which of its writes it never heard of (TR-201, TR-202).

Owns: the mark `delivered` and its moment, and the search for a settled write that was never
delivered. Does not own: that such a call is answered from its receipt (`core.recovery`), the
order of one call (`barrier`).

A result counts as delivered once the program asks for the next thing, or gives the session
back. The mark goes with that commit and is never on the path of a result; a death before it
leaves a write that is answered from its receipt when it is asked for again, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from surefoot.core.model import Draft, EffectClass, EffectTrace, Entry, Kind, Receipt, State
from surefoot.errors import SurefootError
from surefoot.runtime.live import Looked
from surefoot.runtime.session import Session
from surefoot.runtime.tools import scope_of

READER = "program"
"""Stands on the receipts of calls whose result another program reads."""

_NEWS = frozenset({Kind.CLOSED.value, Kind.LATE.value, Kind.DELIVERED.value})
_SETTLED = frozenset({State.SUCCEEDED, State.FAILED})
_Action = tuple[str | None, str | None]


class Delivery:
    """The results of one owned session on their way to a program of the user's own."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._given: dict[str, None] = {}
        """Given to the program, which has not asked for anything since."""
        self._on_the_way: set[str] = set()
        self._unheard: dict[_Action, dict[str, None]] = {}
        """Settled writes without the mark, by tool and digest, the oldest first."""
        for receipt in session.book:
            self._consider(receipt)
        session.watch(self._appended)

    def unheard(self, looked: Looked) -> str | None:
        """A settled write of the same tool, digest and scope that the program never got, the oldest first."""
        if looked.tool is None or looked.arguments is None:
            return None
        for attempt_id in self._unheard.get((looked.tool.name, looked.arguments.digest), ()):
            receipt = self._session.book.get(attempt_id)
            if receipt is None or attempt_id in self._given or attempt_id in self._on_the_way:
                continue
            if scope_of(looked.tool, receipt)[0] == receipt.scope:
                return attempt_id
        return None

    @contextmanager
    def on_the_way(self, attempt_id: str) -> Iterator[None]:
        """What ends in here, with a value or an error, is given; a caller that gave up has got nothing."""
        self._on_the_way.add(attempt_id)
        try:
            yield
            self.give(attempt_id)
        except SurefootError:
            self.give(attempt_id)
            raise
        finally:
            self._on_the_way.discard(attempt_id)

    def give(self, attempt_id: str) -> None:
        """The program holds this result now."""
        receipt = self._session.book.get(attempt_id)
        if receipt is not None and receipt.state in _SETTLED and not receipt.delivered:
            self._given.setdefault(attempt_id)

    def acknowledged(self) -> list[Draft]:
        """The marks of all that was given, because the program asks for something new."""
        return [Draft(Kind.DELIVERED, {"attemptId": attempt_id}) for attempt_id in self._given]

    def _appended(self, entry: Entry) -> None:
        if entry.kind not in _NEWS:
            return
        receipt = self._session.book.get(entry.payload.get("attemptId", ""))
        if receipt is not None:
            self._consider(receipt)

    def _consider(self, receipt: Receipt) -> None:
        if receipt.extra.get("reader") != READER:
            return
        if receipt.delivered:
            self._given.pop(receipt.attempt_id, None)
        place = self._unheard.setdefault((receipt.tool, receipt.argument_digest), {})
        if _may_be_missed(receipt):
            place.setdefault(receipt.attempt_id)
        else:
            place.pop(receipt.attempt_id, None)


def _may_be_missed(receipt: Receipt) -> bool:
    """A settled write that left something, and that nobody is known to have heard of."""
    return (
        receipt.state in _SETTLED
        and receipt.effect_class is not EffectClass.READ_ONLY
        and receipt.effect_trace is not EffectTrace.NONE
        and not receipt.delivered
    )
