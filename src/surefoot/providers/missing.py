"""Pure. One result for each call, as its receipt has it (R1, R5, and R7 of two that differ; PR-56).

Owns: the two constant texts for a call that nothing is told of, a stored result put back beside its
call, and which of two results of one call is the receipt's. Does not own: what a receipt says
(`core.results`), the order on the wire, and leaving a second result out (`shaping`).
Promises: projection:no-invented-success. The constant texts never look like output, and texts are
never joined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from surefoot.core.history import AssistantWords, CallAsked, Message, ResultGiven
from surefoot.core.model import Receipt, State
from surefoot.core.results import Told, result_of, speaking

NOT_EXECUTED = "This call was not executed: nothing of it was started."
OUTCOME_UNKNOWN = (
    "This call was started and its outcome is unknown. Look with a read-only tool first; do not repeat it."
)
AttemptsOf = Callable[[str], Sequence[Receipt]]
"""Call id → the receipts of its attempts, oldest first; empty when none is known."""
_NEVER = (State.NOT_STARTED, State.DISPATCHED)
_ENDED = (State.SUCCEEDED, State.FAILED)


def with_missing_results(messages: Sequence[Message], attempts_of: AttemptsOf) -> list[Message]:
    """The messages with a result for every call that has none; all others keep their identity."""
    answered = {one.call.call_id for one in messages if isinstance(one, ResultGiven)}
    shown: list[Message] = []
    for message in messages:
        shown.append(message)
        for call in message.calls if isinstance(message, AssistantWords) else ():
            if call.call_id not in answered:
                shown.append(_missing(call, attempts_of(call.call_id)))
    return shown


def is_constant(result: ResultGiven) -> bool:
    """Whether a result is one of the two constants (R5), and no stored one (R1)."""
    return result.text in (NOT_EXECUTED, OUTCOME_UNKNOWN)


def receipt_first(messages: Sequence[Message], attempts_of: AttemptsOf) -> list[Message]:
    """The messages with the receipt's own result before every other one of its call.

    The first result of a call is the one that is sent. Where no call has two, nothing moves.
    """
    places: dict[str, list[int]] = {}
    for place, one in enumerate(messages):
        if isinstance(one, ResultGiven):
            places.setdefault(one.call.call_id, []).append(place)
    shown = list(messages)
    for call_id, several in places.items():
        attempts = attempts_of(call_id) if len(several) > 1 else ()
        if not attempts:
            continue
        first, own = several[0], _own_place(messages, several, result_of(attempts[-1], attempts))
        shown[first], shown[own] = messages[own], messages[first]
    return shown


def _own_place(messages: Sequence[Message], several: Sequence[int], told: Told) -> int:
    """Where the result stands that says what the receipt says; a text that lies elsewhere is known by its flag."""
    given = [(place, one) for place in several if isinstance(one := messages[place], ResultGiven)]
    same = [place for place, one in given if (one.text, one.is_error) == (told.text, told.is_error)]
    alike = [place for place, one in given if one.is_error == told.is_error]
    return (same or alike or list(several))[0]


def _missing(call: CallAsked, attempts: Sequence[Receipt]) -> ResultGiven:
    """A stored end is told as it is stored; else one of the constants, flagged as an error."""
    telling = speaking(attempts) if attempts else None
    if telling is not None and telling.state in _ENDED:
        told = result_of(telling, attempts)
        return ResultGiven(call, told.text, told.is_error)
    never = telling is not None and telling.state in _NEVER
    return ResultGiven(call, NOT_EXECUTED if never else OUTCOME_UNKNOWN, True)
