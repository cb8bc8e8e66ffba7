"""Whether registry and packs agree, in both directions (EC-54, EC-55). Pure.

Owns: the findings of `surefoot tools check`, each with a stable code. Does not own: the
registry, the packs, printing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.core.effects import UNDECLARED, judged_effect, stricter_class
from surefoot.core.model import EffectClass, Receipt
from surefoot.runtime.tools import Tool
from surefoot.tools.packs.reading import Pack, PackEntry


@dataclass(frozen=True, slots=True)
class PackFinding:
    """One disagreement. `code` is `tool_without_class`, `entry_without_tool`, `alias_conflict`,
    `laxer_than_open_call`, `counts_differ` or `unknown_key`; `fails` makes the check fail."""

    code: str
    subject: str
    detail: str
    fails: bool = True


def check(
    tools: Sequence[Tool], packs: Sequence[Pack], open_calls: Iterable[Receipt] = ()
) -> list[PackFinding]:
    """Compare the registry with the packs in use, and both with the stored class of open calls."""
    found = [*_without_class(tools, packs)]
    for pack in packs:
        found += _without_tool(tools, pack) + _aliases(pack) + _counts(pack)
        found += [
            PackFinding("unknown_key", pack.name, f"{key} is not known to this version", fails=False)
            for key in pack.unknown_keys
        ]
    return found + _laxer(tools, open_calls)


def _without_class(tools: Sequence[Tool], packs: Sequence[Pack]) -> list[PackFinding]:
    return [
        PackFinding("tool_without_class", tool.name, "no declaration and no pack names its class")
        for tool in tools
        if tool.effect is UNDECLARED and not any(pack.named(tool.name) for pack in packs)
    ]


def _without_tool(tools: Sequence[Tool], pack: Pack) -> list[PackFinding]:
    names = {name for tool in tools for name in (tool.name, *tool.aliases)}
    return [
        PackFinding(
            "entry_without_tool", entry.name, f"pack {pack.name} marks it registered; no tool has that name"
        )
        for entry in pack.entries.values()
        if entry.registered and not names & {entry.name, *entry.aliases}
    ]


def _aliases(pack: Pack) -> list[PackFinding]:
    """An alias that is another tool's name: the stricter of both holds, and different answers fail (EC-39)."""
    found = []
    for entry in pack.entries.values():
        for alias in entry.aliases:
            other = pack.entries.get(alias)
            if other is None or other is entry:
                continue
            same = (entry.effect_class, entry.reach, entry.rules) == (
                other.effect_class,
                other.reach,
                other.rules,
            )
            detail = f"alias {alias} of {entry.name} is a tool of its own ({_told(entry)}, {_told(other)})"
            found.append(PackFinding("alias_conflict", entry.name, detail, fails=not same))
    return found


def _told(entry: PackEntry) -> str:
    return f"{entry.name}: {entry.effect_class.value}"


def _counts(pack: Pack) -> list[PackFinding]:
    actual = count(pack)
    return [
        PackFinding("counts_differ", pack.name, f"{key} is {actual.get(key)}, declared {value}")
        for key, value in pack.counts.items()
        if actual.get(key) != value
    ]


def count(pack: Pack) -> dict[str, Any]:
    """The numbers a pack may declare about itself in `[pack.counts]`."""
    entries = list(pack.entries.values())
    published = [entry for entry in entries if entry.published is not None]
    both = [entry for entry in published if entry.registered]
    return {
        "entries": len(entries),
        "registered": sum(entry.registered for entry in entries),
        "published": len(published),
        "published_by_class": _by_class(published),
        "registered_and_published": len(both),
        "registered_and_published_by_class": _by_class(both),
        "registered_only": sum(entry.registered and entry.published is None for entry in entries),
        "defined_only": sum(entry.kind == "defined" for entry in entries),
        "words": sum(entry.kind == "word" for entry in entries),
    }


def _by_class(entries: Iterable[PackEntry]) -> dict[str, int]:
    counts = Counter(entry.published.value for entry in entries if entry.published is not None)
    return {effect_class.value: counts[effect_class.value] for effect_class in EffectClass}


def _laxer(tools: Sequence[Tool], open_calls: Iterable[Receipt]) -> list[PackFinding]:
    """A class laxer than the stored one of an open call; the stored one is what counts (EC-7)."""
    fixed = {tool.name: tool.effect for tool in tools if not callable(tool.effect)}
    found = []
    for receipt in open_calls:
        now = fixed.get(receipt.tool or "")
        stored = judged_effect(receipt).effect_class
        if now is not None and stricter_class(stored, now.effect_class) is not now.effect_class:
            detail = f"{receipt.attempt_id} was started as {stored.value}, now {now.effect_class.value}"
            found.append(PackFinding("laxer_than_open_call", receipt.tool or "", detail))
    return found
