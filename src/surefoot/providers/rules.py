"""Pure. The validator's door: which rules of its contract an encoded request breaks.

Owns: the class of each rule, rules that are copies of another, levels, request order
(WC-8). Does not own: the checks of a wire (`rules_chat`, `rules_responses`, `rules_anthropic`),
the levels (`contracts`), repairs (`shaping`), refusals of a server (`diagnosis`). The
strict emulator in `testing` has its own checks and shares no code with these (WE-2).
Promises: projection:valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.providers import rules_anthropic, rules_chat, rules_responses

_KINDS: Mapping[str, str] = {
    "replay_pairing": "OC-01 OC-02 OC-03 OC-09 OC-12 OR-01 OR-02 OR-11 AN-01 AN-02 AN-03 AN-04 AN-14 AN-19 DS-06 "
    "DS-07 KI-03 KI-04 LS-03 MS-02 MS-03 MS-04 GE-03 GE-04 GL-01 QW-01 MM-01 MM-03",
    "replay_reasoning": "OR-03 OR-04 OR-05 OR-13 AN-10 AN-11 DS-01 DS-02 DS-03 DS-04 DS-05 DS-08 KI-01 KI-02 GL-03 "
    "MM-05 MI-01 RT-03",
    "replay_signature": "OR-07 AN-07 AN-08 AN-09 AN-12 AN-13 AN-15 GE-01 GE-02 RT-04",
    "replay_ids": "OC-05 OR-06 OR-08 OR-09 AN-05 AN-06 KI-05 KI-06 MS-01",
    "replay_arguments": "OC-08 LS-01 LS-02 LS-04 QW-02 MM-02",
    "schema": "OC-04 OC-06 OC-07 OC-10 OR-10 AN-16 AN-17 AN-18 AN-20 DS-11 LS-05 GL-02 MI-02",
    "generation": "OR-14",
}
CLASSES: Mapping[str, str] = {rule: kind for kind, rules in _KINDS.items() for rule in rules.split()}
"""Rule id → the class of the refusal it would bring."""
_COPIES: Mapping[str, tuple[str, ...]] = {
    "OC-01": ("DS-06", "KI-04", "MS-03", "QW-01", "GE-04"),
    "OC-02": ("DS-06", "KI-03", "MM-01"),
    "OC-06": ("MI-02",),
    "OC-08": ("LS-04",),
    "LS-01": ("LS-02", "QW-02", "MM-02"),
    "LS-05": ("OC-10", "MI-02"),
    "OR-02": ("MM-01",),
    "OR-03": ("OR-13",),
    "AN-03": ("DS-07",),
    "DS-04": ("KI-01",),
}
"""Rules of other hosts that say the same thing; the contract names which of them counts."""
_BY_KEY: Mapping[str, str] = {
    "OC-02": "pairing.orphan_result",
    "OR-02": "pairing.orphan_result",
    "AN-02": "pairing.orphan_result",
    "OC-03": "pairing.duplicate_result",
    "AN-04": "pairing.duplicate_result",
}
"""Rules about what a key of the contract lets pass; where it is `unknown`, a finding is evidence and no more (WC-6)."""
_Check = Callable[[Mapping[str, Any], Mapping[str, Any]], Iterator[tuple[str, str]]]
_WIRES: Mapping[str, _Check] = {
    "chat": rules_chat.broken,
    "responses": rules_responses.broken,
    "anthropic": rules_anthropic.broken,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule of one request."""

    rule: str
    kind: str
    """The class of the refusal it would bring: a kind of `diagnosis`."""
    position: str
    level: str
    """`enforce` or `suspect`."""


def check(request: Mapping[str, Any], contract: Mapping[str, Any]) -> list[Finding]:
    """Every finding of an encoded request, in request order; empty for a valid one."""
    found: dict[Finding, None] = {}
    wire = str(contract["contract.id"]).partition("/")[2]
    # A long history breaks many rules that are off for this contract: those are neither sorted nor compared.
    heeded: dict[str, list[tuple[str, str]]] = {}
    broken = []
    for rule, position in _WIRES[wire](request, contract):
        if rule not in heeded:
            names = (rule, *_COPIES.get(rule, ()))
            levels = [(name, _level(rule, name, contract)) for name in names]
            heeded[rule] = [one for one in levels if one[1] != "off"]
        if heeded[rule]:
            broken.append((rule, position))
    for rule, position in sorted(broken, key=_by_position):
        for name, level in heeded[rule]:
            found[Finding(name, CLASSES[name], position, level)] = None
    return list(found)


def _level(rule: str, name: str, contract: Mapping[str, Any]) -> str:
    """The level of a rule, or of its copy `name`, as the key it is about leaves it."""
    level = str(contract.get(f"rules.{name}", "off"))
    lets = contract[_BY_KEY[rule]] if rule in _BY_KEY else "reject"
    if lets == "accept":
        return "off"
    return "suspect" if lets == "unknown" and level == "enforce" else level


def refusing(findings: list[Finding]) -> list[Finding]:
    """The findings for which a request is never sent (WC-5)."""
    return [finding for finding in findings if finding.level == "enforce"]


def _by_position(item: tuple[str, str]) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", item[1])]
