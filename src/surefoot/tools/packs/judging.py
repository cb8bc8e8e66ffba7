"""What packs say of one call (EC-36 to EC-40). Pure.

Owns: the rules of an entry, the filling of reach strings, and which of several answers
holds. Does not own: the format (`reading`), the shell and the MCP rules, which are handed in.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from surefoot.core.effects import EVERYTHING, UNDECLARED, Effect, stricter
from surefoot.core.model import EffectClass
from surefoot.runtime.tools import Arguments, Place, Tool, classify
from surefoot.tools.packs.reading import Pack, PackEntry, Rule

_SLOT = re.compile(r"\{(?:([A-Za-z0-9_.-]+):)?([A-Za-z0-9_.-]+)\}")
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Judges:
    """Who judges what a pack hands on: a command line (section 5), a tool of an MCP server (section 8)."""

    shell: Callable[[str, Place], Effect]
    mcp: Callable[[Arguments], Effect] = lambda arguments: UNDECLARED


def judge(entry: PackEntry, arguments: Arguments, place: Place, judges: Judges) -> Effect:
    """The effect this entry gives a call. A word has no tool behind it and stays unknown (EC-40)."""
    if entry.kind == "word":
        return UNDECLARED
    effect_class, reach = entry.effect_class, entry.reach
    for rule in entry.rules:
        holds = _holds(rule, arguments)
        if holds is None:
            return replace(UNDECLARED, notes=("pack_argument_unreadable",))
        if holds and rule.shell:
            return judges.shell(str(arguments[rule.argument]), place)
        if holds and rule.mcp:
            return judges.mcp(arguments)
        if holds:
            effect_class = rule.effect_class or effect_class
            reach = rule.reach if rule.reach is not None else reach
            break
    members = () if effect_class is EffectClass.READ_ONLY else _filled(reach, arguments, place)
    return Effect(effect_class, members, check=entry.check, interaction=entry.interaction)


def _holds(rule: Rule, arguments: Arguments) -> bool | None:
    """Whether a rule's condition holds; None when the argument is of a type it cannot read."""
    value = arguments.get(rule.argument, _ABSENT)
    if rule.present is not None:
        return (value is not _ABSENT and value is not None) is rule.present
    if value is _ABSENT or value is None:
        return rule.or_absent
    if rule.shell or rule.mcp:
        return True if isinstance(value, str) else None
    if rule.any_key is not None:
        return _any_key(rule, value)
    wanted = (rule.equals,) if rule.one_of is None else rule.one_of
    if not isinstance(value, type(wanted[0])):
        return None
    return _folded(value, rule.fold) in [_folded(one, rule.fold) for one in wanted]


def _any_key(rule: Rule, value: Any) -> bool | None:
    if not isinstance(value, Mapping):
        return None
    keys = {_folded(key, rule.fold) for key in value}
    return any(_folded(key, rule.fold) in keys for key in rule.any_key or ())


def _folded(value: Any, fold: bool) -> Any:
    return value.casefold() if fold and isinstance(value, str) else value


def _filled(reach: Sequence[str] | None, arguments: Arguments, place: Place) -> tuple[str, ...]:
    """Reach strings with their slots filled; one that cannot be filled makes the whole session (EC-37)."""
    if reach is None:
        return (EVERYTHING,)
    members = [_fill(member, arguments, place) for member in reach]
    return (EVERYTHING,) if None in members else tuple(sorted(member for member in members if member))


def _fill(member: str, arguments: Arguments, place: Place) -> str | None:
    missing = False

    def slot(match: re.Match[str]) -> str:
        nonlocal missing
        first, second = match.groups()
        name, part = (second, None) if first is None else (first, second)
        value = arguments.get(name)
        if not isinstance(value, str) or not value:
            missing = True
            return ""
        if part is None:
            return value
        host = urlsplit(value).hostname if part == "host" else None
        missing = missing or host is None
        return host or ""

    filled = _SLOT.sub(slot, member)
    if missing:
        return None
    kind, _, rest = filled.partition(":")
    if kind == "path":
        return "path:" + os.path.normpath(os.path.join(str(place.directory), rest))  # noqa: PTH118
    return filled


def with_packs(tool: Tool, packs: Sequence[Pack], judges: Judges) -> Tool:
    """The tool judged by its own declaration and the packs in use (EC-38).

    An entry of the owner replaces what the tool and shipped packs say; among the rest the stricter answer
    holds, and where the tool declares nothing shipped packs speak for it. A project's pack only tightens. Kinds
    of reach that the others add are known to every tool, whichever of them a pack speaks of (EC-11).
    """
    kinds = frozenset(kind for pack in packs if pack.source != "project" for kind in pack.reach_kinds)
    tool = replace(tool, reach_kinds=kinds) if kinds else tool
    named = [(pack, entry) for pack in packs for entry in pack.named(tool.name)]
    if not named:
        return tool

    def effect(arguments: Arguments, place: Place) -> Effect:
        said: dict[str, list[Effect]] = {"owner": [], "shipped": [], "project": []}
        for pack, entry in named:
            said[pack.source].append(judge(entry, arguments, place, judges))
        speaking = said["owner"] or said["shipped"]
        if not said["owner"] and (tool.effect is not UNDECLARED or not speaking):
            speaking = [*speaking, classify(tool, arguments, place)]
        answer = speaking[0]
        for other in [*speaking[1:], *said["project"]]:
            answer = stricter(answer, other)
        return answer

    return replace(tool, effect=effect)
