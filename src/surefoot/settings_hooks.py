"""What a person declares about hooks: their events, and one hook's form. Pure.

Owns: the names of events, the keys of a hook, what is wrong with one, and the flat list of
hooks that a settings file means. Does not own: which file may set them (`settings_table`,
`settings_files`), running them (`tools.hooks`).

Both forms known from other agents are read: a hook with its command, and a group of hooks
below one matcher.

    [[hooks.PreToolUse]]
    matcher = "Bash"
    command = "./check.sh"
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.core.model import EffectClass

CALL_EVENTS = ("PreToolUse", "PostToolUse")
"""Events of a call that is about to run or ran."""
OUTCOME_EVENTS = ("OutcomeUnknown", "OutcomeResolved")
"""Events of a call of which nobody knows whether it happened: a hook may watch, and cannot decide."""
SESSION_EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "Notification", "PreCompact", "SessionEnd")
"""Events that speak of no call."""
EVENTS = (*CALL_EVENTS, *SESSION_EVENTS, *OUTCOME_EVENTS)
CLASSES = tuple(word.value for word in EffectClass)
DEFAULT_SECONDS = 60.0
LEAVING_SECONDS = 5.0
"""For a hook of `SessionEnd` that says nothing: somebody waits for the end of the program."""
MOST_SECONDS = 600.0
_KEYS = frozenset({"class", "command", "matcher", "reach", "timeout", "timeout_seconds", "type"})
_ANY = frozenset({"", "*"})


@dataclass(frozen=True, slots=True)
class HookSetting:
    """One hook of the settings."""

    event: str
    command: str
    matcher: str = ""
    """Regular expression for the whole name of a tool, or for the word of an event that has one; empty matches all."""
    timeout_seconds: float = DEFAULT_SECONDS
    effect_class: str | None = None
    reach: tuple[str, ...] | None = None

    def matches(self, *names: str | None) -> bool:
        """Whether one of a tool's names, or the word of an event, is meant."""
        if self.matcher in _ANY:
            return True
        return any(name and re.fullmatch(self.matcher, name) for name in names)


def hook_tables(value: Any) -> list[Mapping[str, Any]]:
    """The hooks of one event as flat tables; what has no form of a hook is left out."""
    return list(_flat(value)) if isinstance(value, list) else []


def _flat(groups: list[Any]) -> Iterator[Mapping[str, Any]]:
    for group in groups:
        if not isinstance(group, Mapping):
            continue
        inner = group.get("hooks")
        if not isinstance(inner, list):
            yield group
            continue
        around = {key: value for key, value in group.items() if key != "hooks"}
        yield from ({**around, **one} for one in inner if isinstance(one, Mapping))


def read_hooks(values: Mapping[str, Any]) -> tuple[HookSetting, ...]:
    """The hooks of all events, in the order of the files; `values` maps `hooks.EVENT` to checked lists."""
    return tuple(
        HookSetting(
            event=event,
            command=one["command"],
            matcher=one.get("matcher", ""),
            timeout_seconds=float(one.get("timeout_seconds", one.get("timeout", _seconds(event)))),
            effect_class=one.get("class"),
            reach=tuple(one["reach"]) if "reach" in one else None,
        )
        for event in EVENTS
        for one in hook_tables(values.get(f"hooks.{event}", []))
    )


def _seconds(event: str) -> float:
    return LEAVING_SECONDS if event == "SessionEnd" else DEFAULT_SECONDS


def hooks_problem(value: Any) -> str | None:
    """What is expected instead of these hooks of one event, as a phrase, or None when they fit."""
    whole = "a list of tables, each with a command, written as [[hooks.EVENT]]"
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        return whole
    for number, one in enumerate(value, start=1):
        inner = one.get("hooks", [])
        if not isinstance(inner, list) or not all(isinstance(each, Mapping) for each in inner):
            return f"{whole}; `hooks` of number {number} is none"
    for number, one in enumerate(hook_tables(value), start=1):
        problem = _problem(one)
        if problem:
            return f"{whole}; of number {number}, {problem}"
    return None


def _problem(one: Mapping[str, Any]) -> str | None:
    unknown = sorted(set(one) - _KEYS)
    if unknown:
        return f"`{unknown[0]}` is no key (known: {', '.join(sorted(_KEYS))})"
    if one.get("type", "command") != "command":
        return "`type` must be command"
    if not isinstance(one.get("command"), str) or not one["command"].strip():
        return "`command` must be text in quotation marks"
    for key in ("timeout_seconds", "timeout"):
        if key in one and not _is_time(one[key]):
            return f"`{key}` must be a number of seconds above 0 and at most {MOST_SECONDS:.0f}"
    return _matcher_problem(one.get("matcher", "")) or _effect_problem(one)


def _is_time(value: Any) -> bool:
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return bool(fits and 0 < value <= MOST_SECONDS)


def _matcher_problem(matcher: Any) -> str | None:
    if not isinstance(matcher, str):
        return "`matcher` must be text in quotation marks"
    try:
        re.compile("" if matcher in _ANY else matcher)
    except re.error as error:
        return f"`matcher` must be a regular expression ({error})"
    return None


def _effect_problem(one: Mapping[str, Any]) -> str | None:
    if "class" in one and one["class"] not in CLASSES:
        return f"`class` must be one of {', '.join(CLASSES)}"
    reach = one.get("reach", [])
    if not isinstance(reach, list) or not all(isinstance(member, str) for member in reach):
        return "`reach` must be a list of texts"
    if "reach" in one and "class" not in one:
        return "`reach` needs a `class` beside it"
    return None
