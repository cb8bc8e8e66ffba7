"""Pure. The one door from a history to the request of a wire: `project` (PR-47 to PR-50).

Owns: the order in which facts, repairs and missing results meet a history, and what is told of it:
the R-ids that were applied and the findings that are left. Does not own: what a repair does
(`repairs`, `missing`, `shaping`), the JSON of a wire (`chat`, `responses`, `anthropic`), reading
ordinary repairs off the outcome (`reported`), which repairs an incident needs (`ladder`).
Promises: projection:pure, projection:prefix-stable. The stored history is never touched, and a
history with nothing to repair is encoded unchanged.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from surefoot.core.history import AssistantWords, Message, ResultGiven
from surefoot.core.lifecycle import Book
from surefoot.core.restated import with_facts
from surefoot.providers import chaining
from surefoot.providers.anthropic import AnthropicWire
from surefoot.providers.chat import ChatWire
from surefoot.providers.missing import is_constant, receipt_first, with_missing_results
from surefoot.providers.port import ModelRequest, ToolSpec, Wire
from surefoot.providers.repairs import Repair, asks_to_drop, repaired
from surefoot.providers.reported import in_ladder_order, ordinary, place_of
from surefoot.providers.responses import ResponsesWire
from surefoot.providers.rules import Finding, check
from surefoot.providers.shaping import messages_of

WIRES: Mapping[str, Callable[[], Wire]] = {
    "chat": ChatWire,
    "responses": ResponsesWire,
    "anthropic": AnthropicWire,
}


@dataclass(frozen=True, slots=True)
class InForce:
    """The repair of an incident, as it applies to the history of now."""

    repairs: tuple[Repair, ...] = ()
    told: tuple[tuple[int, Book], ...] = ()
    """Length of a prefix, and the receipts as they stood when its facts were told (PR-57)."""
    offset: int = 0
    """By how much the prefix has moved since (PR-49)."""


@dataclass(frozen=True)
class Projection:
    """A request as its wire has it, and what became of the history on the way."""

    request: ModelRequest
    """What was asked, with the messages as they were shown to the wire."""
    body: Mapping[str, Any]
    findings: tuple[Finding, ...]
    """What the validator still finds in the encoded request."""
    read_repairs: Callable[[], tuple[Repair, ...]] = field(repr=False, compare=False)

    @functools.cached_property
    def repairs(self) -> tuple[Repair, ...]:
        """Every repair that was applied, ordinary ones included, as R-id and position in the history; −1 is the
        request itself. Read off when asked for: no request waits for it."""
        return self.read_repairs()

    @property
    def messages(self) -> Any:
        """The messages in the JSON of the wire."""
        return messages_of(self.body)


def project(
    history: Sequence[Message],
    receipts: Book,
    contract: Mapping[str, Any],
    incident: InForce | None = None,
    *,
    request: ModelRequest,
    wire: Wire | None = None,
) -> Projection:
    """Show a history to a wire under a contract. Same input, same bytes, in every process.

    `request` says everything but the messages; without `wire` the contract's own is taken.
    """
    force = incident or InForce()
    shown = list(history)
    for prefix, known in force.told:
        shown = with_facts(shown, prefix + force.offset, known)
    shown = repaired(shown, force.repairs, offset=force.offset)
    whole = with_missing_results(receipt_first(shown, receipts.attempts), receipts.attempts)
    asked = dataclasses.replace(request, messages=whole, tools=_offered(request.tools, whole, contract))
    spoken = wire or WIRES[str(contract["contract.id"]).partition("/")[2]]()
    if chaining.is_on(contract) and (force.repairs or force.told):
        contract = {**contract, "pairing.chaining": chaining.NONE}  # the provider keeps what is repaired here
    body = spoken.encode(asked, contract)
    if asks_to_drop(force.repairs):
        body = _dropping_blocks(body)
    stored = tuple(history)

    def read_repairs() -> tuple[Repair, ...]:
        places = place_of(stored)
        applied = [(rid, place if place < 0 else place + force.offset) for rid, place in force.repairs]
        applied += [("R5" if is_constant(one) else "R1", places(one)) for one in _added(shown, whole)]
        applied += [(rid, places(one)) for rid, one in ordinary(asked, body, contract, wire=spoken.name)]
        return in_ladder_order(applied)

    return Projection(asked, body, tuple(check(body, contract)), read_repairs)


STUB = ToolSpec(
    "no_tool", "Stands for the tools of earlier messages. None can be called now; answer in words.", {}
)
"""Offered where a host wants tools beside calls of the past and there are none (BR-05). No registry knows its
name, so that a call of it is refused like that of any missing tool."""


def _offered(
    tools: Sequence[ToolSpec], messages: Sequence[Message], contract: Mapping[str, Any]
) -> Sequence[ToolSpec]:
    if tools or not contract["tools.required_with_history"] or contract["tools.mode"] != "native":
        return tools
    calls = any(isinstance(one, AssistantWords) and one.calls for one in messages)
    return (STUB,) if calls else tools


def _added(before: Sequence[Message], after: Sequence[Message]) -> list[ResultGiven]:
    known = {id(one) for one in before}
    return [one for one in after if isinstance(one, ResultGiven) and id(one) not in known]


def _dropping_blocks(body: dict[str, Any]) -> dict[str, Any]:
    """R9: the same request, in which the service may drop blocks of another conversation (AN-09)."""
    thinking = body.get("thinking")
    if not isinstance(thinking, Mapping):
        return body
    binding = {"prefix_mismatch_behavior": "drop_block"}
    return {**body, "thinking": {**thinking, "block_binding": binding}}
