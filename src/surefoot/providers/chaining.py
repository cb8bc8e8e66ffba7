"""Pure. When a request may go on from a response that the provider keeps (`pairing.chaining`, OR-11).

Owns: that decision. Does not own: the items of a request (`responses`), going back to the whole local
history after a refusal (`ladder`, R10).

Local history is the source of truth. A chain is used only where it holds exactly what would be sent: the last
reply is this endpoint's and this model's own, whole, and nothing before it was rewritten or repaired since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from surefoot.core.history import AssistantWords, Message, UserWords
from surefoot.providers.port import ModelRequest

NONE = "none"


def is_on(contract: Mapping[str, Any]) -> bool:
    """Whether the provider is asked to keep its responses."""
    return bool(contract["pairing.chaining"] != NONE)


def chain_of(
    request: ModelRequest, ordered: Sequence[Message], ids: Mapping[str, str], contract: Mapping[str, Any]
) -> tuple[str, int] | None:
    """Id of the response to go on from, and the place in `ordered` of what comes behind it; None for no chain."""
    place = max((n for n, one in enumerate(ordered) if isinstance(one, AssistantWords)), default=-1)
    last = ordered[place] if 0 <= place < len(ordered) - 1 else None
    if not is_on(contract) or not isinstance(last, AssistantWords):
        return None
    made = {"endpoint": request.endpoint, "model": request.model, "contract": contract["contract.id"]}
    own = last.wire == "responses" and all(last.issuer.get(key) == value for key, value in made.items())
    # What a compaction or a recovery says stands for messages that the provider still has.
    rewritten = any(isinstance(one, UserWords) and one.origin == "host" for one in ordered)
    same_ids = all(ids[call.call_id] == call.provider_call_id for call in last.calls)
    kept = last.raw.get("id")
    whole = last.raw.get("status") == "completed" and isinstance(kept, str) and bool(kept)
    return (str(kept), place + 1) if own and whole and same_ids and not rewritten else None
