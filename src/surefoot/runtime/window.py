"""The recovery window: calls asked for again after a repair are answered from their receipts (PR-59).

Owns: which stored results may answer, how often, and until which write. Does not own:
when the window opens and ends (`incidents`), the door of every call (`barrier`).
Promises: barrier:one-door. What is not answered here takes the ordinary way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from surefoot.core.effects import overlaps
from surefoot.core.history import AssistantWords, Message, ResultGiven, UserWords
from surefoot.core.lifecycle import Book
from surefoot.core.model import EffectClass, Receipt, State
from surefoot.core.restated import STORED_NOTE
from surefoot.core.results import speaking
from surefoot.runtime.drafts import refused
from surefoot.runtime.live import Looked, Refused

_Key = tuple[str, str]


@dataclass(slots=True)
class Window:
    """Succeeded calls of the refused turn, by canonical tool and argument digest."""

    stored: dict[_Key, tuple[Receipt, str]] = field(default_factory=dict)
    given: dict[str, Refused] = field(default_factory=dict)
    """Attempt → the answer it got, so that a verdict asked for twice counts once."""
    counts: dict[_Key, int] = field(default_factory=dict)

    @classmethod
    def over(cls, prefix: Sequence[Message], book: Book) -> Window:
        """The calls after the last user-authored message of the refused prefix."""
        start = max(
            (
                n
                for n, one in enumerate(prefix)
                if isinstance(one, UserWords) and one.origin == "person" and one.text
            ),
            default=-1,
        )
        texts = {one.call.call_id: one.text for one in prefix[start + 1 :] if isinstance(one, ResultGiven)}
        window = cls()
        for message in prefix[start + 1 :]:
            for call in message.calls if isinstance(message, AssistantWords) else ():
                attempts = book.attempts(call.call_id)
                told = speaking(list(attempts)) if attempts else None
                if told is None or told.state is not State.SUCCEEDED:
                    continue
                if told.tool and told.argument_digest and call.call_id in texts:
                    window.stored[told.tool, told.argument_digest] = (told, texts[call.call_id])
        return window

    def answer(self, looked: Looked, book: Book) -> Refused | None:
        """The stored result for this call, or None when it takes the ordinary door."""
        attempt = looked.call.attempt_id
        if attempt in self.given:
            return self.given[attempt]
        if looked.tool is None or looked.arguments is None:
            return None
        key = (looked.tool.name, looked.arguments.digest)
        found = self.stored.get(key)
        if found is None or _written_since(found[0], book):
            return None
        reads = looked.effect.effect_class is EffectClass.READ_ONLY
        if reads and self.counts.get(key, 0) > 0:
            return None  # a second identical reading is wanted anew
        self.counts[key] = self.counts.get(key, 0) + 1
        text = f"{STORED_NOTE}\n{found[1]}" if found[1] else STORED_NOTE
        answer = refused("answered_from_receipt", text, answeredFrom=found[0].attempt_id)
        self.given[attempt] = answer
        return answer


def _written_since(receipt: Receipt, book: Book) -> bool:
    """Whether a write that overlaps this call's reach has started after it."""
    since = receipt.started_position or 0
    return any(
        (one.started_position or 0) > since
        and one.effect_class is not EffectClass.READ_ONLY
        and overlaps(one.reach, receipt.reach)
        for one in book.after(receipt.attempt_id)
    )
