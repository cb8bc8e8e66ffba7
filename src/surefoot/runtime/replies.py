"""Pure. One reply of a model as the entry that records it, and what a person is told beside it.

Owns: the form of an `assistant` entry (D1), the notices a reply gives rise to. Does not own: when it
is recorded (`controller`), its calls (`batches`), the words (`surfaces.words_notices`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.core.model import Draft, Kind, Notice
from surefoot.providers.hosted import with_effects
from surefoot.providers.port import Reply
from surefoot.providers.spelled import spells_a_call

AT_LIMIT = "only_reasoning_at_limit"
"""The note of a reply that was cut inside its reasoning: a larger output limit helps, asking again does not (S-24)."""
NUDGE = (
    "Your last message holds a tool call written as text. Text is never executed, so nothing of it ran. Ask for "
    "tools through the interface for tool calls; if that is not possible, say so in plain words."
)
"""The host's words after a call that was spelled out (S-22)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the reply answers: its turn, its wire, and the position the request was built at.

    What became known behind that position was not shown to the model (TR-63).
    """

    turn_id: str
    wire: str
    seen: int


def reply_draft(reply: Reply, calls: Sequence[Mapping[str, Any]], asked: Asked) -> Draft:
    """The message with all its calls, each `dispatched` with it.

    What was found at receipt stands beside the raw message, never in it: `notes` (S-24, S-26, OR-12) and
    the display form of native searches (PR-76). Both keys are absent where there is nothing to say.
    """
    payload: dict[str, Any] = {
        "turnId": asked.turn_id,
        "seenPosition": asked.seen,
        "wire": asked.wire,
        "raw": reply.raw,
        "issuer": dict(reply.issuer),
        "text": reply.text,
        "finish": reply.finish,
        "usage": {"inputTokens": reply.usage.input_tokens, "outputTokens": reply.usage.output_tokens},
        "calls": list(calls),
    }
    if reply.notes:
        payload["notes"] = list(reply.notes)
    if reply.searches:
        payload["searches"] = [dict(one) for one in reply.searches]
    return Draft(Kind.ASSISTANT, payload)


def notices_of(reply: Reply) -> list[Notice]:
    """What a person is told beside the words of a reply: once each, and only what is known."""
    told = []
    if reply.unasked:
        told.append(Notice("hosted_unasked", {"kinds": list(reply.unasked)}))
    if any(not one["sources"] for one in reply.searches):
        told.append(Notice("no_sources", {"sources": [], "sources_status": "not_provided"}))
    if "unreplayable_reasoning" in reply.notes:
        told.append(Notice("unreplayable_reasoning", {"finish": reply.finish}))
    return told


def is_empty(reply: Reply) -> bool:
    """Whether nothing of a reply is worth a record; what the provider's own tools left in it is (S-28)."""
    return not (reply.calls or reply.text.strip() or reply.paused or reply.hosted)


def empty_end(reply: Reply) -> str | None:
    """Why a reply without words and calls ends the turn at once; None when asking again may help (S-02)."""
    if AT_LIMIT in reply.notes:
        return "output_limit"
    return (
        "empty_reply" if with_effects(reply.enabled) else None
    )  # such a request is never sent again (PR-98)


def spelled_out(reply: Reply) -> Notice | None:
    """What a person is told when the model wrote a call as text: it did not run, and why that happens (S-22)."""
    if reply.calls or reply.paused or not spells_a_call(reply.text):
        return None
    return Notice("call_spelled_out", {"finish": reply.finish})


def nudge_draft(turn_id: str) -> Draft:
    """The host's one word about it to the model."""
    return Draft(Kind.HOST, {"turnId": turn_id, "text": NUDGE, "prompt": "spelled_out"})
