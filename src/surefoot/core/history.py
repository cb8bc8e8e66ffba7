"""Pure. The neutral conversation, and the facts an interruption leaves to the model.

Owns: what a model is shown, in which order, before any wire form is chosen.
Does not own: the wire form (`providers`), the words for people (`surfaces.words`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class UserWords:
    """What a person typed, and the facts appended at its tail on the wire copy (TR-57)."""

    turn_id: str
    text: str
    facts: str | None = None


@dataclass(frozen=True, slots=True)
class CallAsked:
    """One call of an assistant message. Identity is the message and `position` (TR-31)."""

    call_id: str
    attempt_id: str
    position: int
    asked_name: str
    arguments: str
    """Argument text as the model wrote it."""
    provider_call_id: str | None


@dataclass(frozen=True, slots=True)
class AssistantWords:
    """One reply of a model: its text, its calls, and the message as its wire sent it."""

    entry_position: int
    text: str
    calls: tuple[CallAsked, ...]
    wire: str
    raw: Mapping[str, Any]
    """The assistant message in the JSON of `wire`, stored byte for byte in meaning (never normalised)."""


@dataclass(frozen=True, slots=True)
class ResultGiven:
    """What is told to the model about one call, rendered from its receipts."""

    call: CallAsked
    text: str
    is_error: bool


Message = UserWords | AssistantWords | ResultGiven
