"""Pure. R5: a result for a call that has none, from what its receipt says (PR-56).

Owns: the two constant texts, and where they stand. Does not own: results that exist
(`core.history` renders them), the order on the wire (`shaping`).
Promises: projection:no-invented-success. The texts never look like output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from surefoot.core.history import AssistantWords, Message, ResultGiven

NOT_EXECUTED = "This call was not executed: nothing of it was started."
OUTCOME_UNKNOWN = (
    "This call was started and its outcome is unknown. Look with a read-only tool first; do not repeat it."
)
StateOf = Callable[[str], str | None]
"""Call id → state of its receipt, or None when no receipt is known."""
_NEVER = ("not_started", "dispatched")


def with_missing_results(messages: Sequence[Message], state_of: StateOf) -> list[Message]:
    """The messages with an error-flagged result for every call that has none; all others keep their identity."""
    answered = {one.call.call_id for one in messages if isinstance(one, ResultGiven)}
    shown: list[Message] = []
    for message in messages:
        shown.append(message)
        for call in message.calls if isinstance(message, AssistantWords) else ():
            if call.call_id not in answered:
                text = NOT_EXECUTED if state_of(call.call_id) in _NEVER else OUTCOME_UNKNOWN
                shown.append(ResultGiven(call, text, True))
    return shown
