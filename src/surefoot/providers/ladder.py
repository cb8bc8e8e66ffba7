"""Pure. Which repairs a refusal needs: the levels per family, least destructive first (PR-53).

Owns: the plan of each family, the order of levels, stopping at the first that holds (PR-50).
Does not own: what a repair does (`repairs`), the ordinary repairs of every request
(`shaping`: R1 to R8, R12, R13 are in the refused bytes already), who may recover
(`core.incident`).
Promises: projection:valid, projection:pure. Levels are never added to be safe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from surefoot.core.history import AssistantWords, Message, UserWords
from surefoot.core.incident import WORDLESS_KINDS
from surefoot.providers import chaining
from surefoot.providers.repairs import (
    DROP_BLOCKS,
    OMIT_CARRIER,
    REMOVE_SEGMENT,
    UNLINK,
    Repair,
    asks_to_drop,
    has_carrier,
)
from surefoot.providers.rules import Finding, refusing
from surefoot.providers.shaping import demands_carrier, messages_of


class Encoded(Protocol):
    """A request as the projection made it (PR-47)."""

    @property
    def body(self) -> Mapping[str, Any]: ...

    @property
    def findings(self) -> Sequence[Finding]: ...


Encode = Callable[[Sequence[Repair]], Encoded]
"""Repairs → the prefix projected with them."""

FAMILY_LEVELS: Mapping[str, tuple[str, ...]] = {
    "replay_pairing": (REMOVE_SEGMENT,),
    "replay_ids": (UNLINK, REMOVE_SEGMENT),
    "replay_arguments": (REMOVE_SEGMENT,),
    "replay_reasoning": (UNLINK, OMIT_CARRIER, REMOVE_SEGMENT),
    "replay_signature": (DROP_BLOCKS, OMIT_CARRIER, REMOVE_SEGMENT),
}
"""What is left of PR-53 for an incident: the lossless levels have been tried on every request."""
LINK_RULES = frozenset({"OR-03", "OR-04", "OR-05", "OR-06"})


@dataclass(frozen=True, slots=True)
class Refused:
    """The refusal to be repaired, and what the local validator said of the bytes that were sent."""

    kind: str
    findings: tuple[Finding, ...] = ()
    linked: bool = False
    """The refusal speaks of linked items (OR-03 to OR-06)."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What a plan is made on: the frozen prefix, its contract and wire, and the repairs in force."""

    messages: Sequence[Message]
    contract: Mapping[str, Any]
    encode: Encode
    in_force: tuple[Repair, ...] = ()
    tools: bool = True
    may_drop: bool = False
    """The endpoint lets the service drop blocks (AN-09)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Repairs that change the encoded prefix and satisfy the validator; those in force included."""

    repairs: tuple[Repair, ...]
    added: tuple[Repair, ...]
    body: Mapping[str, Any]


def plan(ground: Ground, refused: Refused) -> Plan | None:
    """The first level that holds, or None when nothing can be changed (`nothing_to_change`).

    Where each level leaves a suspicion that no repair can remove, such as an empty carrier which the
    contract itself asks for, the last one that the validator lets pass is taken.
    """
    before = messages_of(ground.encode(ground.in_force).body)
    suspected: Plan | None = None
    for added in _levels(ground, refused):
        new = tuple(one for one in added if one not in ground.in_force)
        repairs = (*ground.in_force, *new)
        encoded = ground.encode(repairs)
        body = encoded.body
        dropping = asks_to_drop(new)  # a field of the request, which changes no message
        findings = list(encoded.findings)
        if not new or refusing(findings) or not (dropping or messages_of(body) != before):
            continue
        made = Plan(repairs, new, body)
        left = any(one.kind == refused.kind for one in findings) or _fills_in(ground, refused, added)
        if dropping or not left:
            return made
        suspected = made
    return suspected


def _fills_in(ground: Ground, refused: Refused, added: Sequence[Repair]) -> bool:
    """Whether an omitted carrier leaves a placeholder where the contract requires it.

    Of a carrier that was sent and refused an empty one is no repair: R8 is for those that lacked it (PR-53).
    """
    omitted = {place for rid, place in added if rid == OMIT_CARRIER}
    return refused.kind == "replay_reasoning" and not omitted.isdisjoint(_required(ground))


def _levels(ground: Ground, refused: Refused) -> list[list[Repair]]:
    if refused.kind == "replay_pairing" and chaining.is_on(ground.contract):
        return [[(UNLINK, -1)], *_family_levels(ground, refused)]  # OR-11: the local history is whole
    return _family_levels(ground, refused)


def _family_levels(ground: Ground, refused: Refused) -> list[list[Repair]]:
    if refused.kind in WORDLESS_KINDS:
        return [*_levels_of_findings(ground, refused), *_wordless(ground)]
    levels: list[list[Repair]] = []
    so_far: list[Repair] = []
    for rid in FAMILY_LEVELS.get(refused.kind, ()):
        added = _level(rid, ground, refused)
        if added is None:
            continue
        if rid == REMOVE_SEGMENT:
            gone = {place for _, place in added}
            added = [*(one for one in so_far if one[0] == OMIT_CARRIER and one[1] not in gone), *added]
        so_far = added
        levels.append(added)
    return levels


def _levels_of_findings(ground: Ground, refused: Refused) -> list[list[Repair]]:
    """V never renames a wordless refusal; its ladders are tried first (PR-12, PR-53)."""
    families = dict.fromkeys(one.kind for one in refused.findings if one.kind in FAMILY_LEVELS)
    return [
        level
        for family in families
        for level in _levels(ground, Refused(family, refused.findings, refused.linked))
    ]


def _wordless(ground: Ground) -> list[list[Repair]]:
    """Carriers and every message whose reasoning is required; else the open tool segments (PR-53)."""
    last_user, required = _last_user(ground.messages), _required(ground)
    first = [(OMIT_CARRIER, place) for place in _carriers(ground) if place not in required]
    first += [(REMOVE_SEGMENT, place) for place in required]
    newest = [(REMOVE_SEGMENT, place) for place in _segments(ground.messages) if place > last_user]
    return [level for level in (first, newest) if level]


def _required(ground: Ground) -> list[int]:
    """The assistant messages whose reasoning the contract requires."""
    last_user = _last_user(ground.messages)
    return [
        place
        for place, one in enumerate(ground.messages)
        if isinstance(one, AssistantWords)
        and demands_carrier(
            ground.contract, bool(one.calls), tools=ground.tools, since_user=place > last_user
        )
    ]


def _level(rid: str, ground: Ground, refused: Refused) -> list[Repair] | None:
    """The repairs of one level, or None where it has nothing to work on."""
    if rid == DROP_BLOCKS:
        return [(DROP_BLOCKS, -1)] if ground.may_drop else None
    if rid == UNLINK:
        linked = refused.linked or any(one.rule in LINK_RULES for one in refused.findings)
        places = [n for n, one in enumerate(ground.messages) if _is_item_list(one)] if linked else []
        return [(UNLINK, place) for place in places] or None
    if rid == OMIT_CARRIER:
        return [(OMIT_CARRIER, place) for place in _carriers(ground)] or None
    return [(REMOVE_SEGMENT, place) for place in _segments(ground.messages)] or None


def _carriers(ground: Ground) -> list[int]:
    return [place for place, one in enumerate(ground.messages) if has_carrier(one)]


def _segments(messages: Sequence[Message]) -> list[int]:
    """Every tool segment, by the position of its assistant message."""
    return [n for n, one in enumerate(messages) if isinstance(one, AssistantWords) and one.calls]


def _is_item_list(message: Message) -> bool:
    return isinstance(message, AssistantWords) and message.wire == "responses"


def _last_user(messages: Sequence[Message]) -> int:
    return max(
        (
            n
            for n, one in enumerate(messages)
            if isinstance(one, UserWords) and one.origin == "person" and one.text
        ),
        default=-1,
    )
