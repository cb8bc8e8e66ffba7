"""Pure. Guards against repeating an action whose earlier attempt is not simply over.

Owns: which (tool, digest) pairs are guarded after a confirmed or a failed write
(TR-91, TR-209), folded from entries as they come. Does not own: the fence, which
rests on open calls (`recovery`).

How a machine gets here: a person confirmed that an unknown payment happened, and the
model asks for the same payment again in the same turn; or a command failed half way and
the model repeats it without looking.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.core.effects import Effect, overlaps
from surefoot.core.model import EffectClass, Entry, Kind

_Action = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Guard:
    """Why an action is held back now: `confirmed_effect` or `look_first`, and by which attempt."""

    code: str
    attempt_id: str


@dataclass(frozen=True, slots=True)
class _Started:
    action: _Action
    effect_class: EffectClass
    reach: tuple[str, ...]
    check: bool


class Guards:
    """Folds entries in order of position; every step costs the same at any size of the session."""

    def __init__(self) -> None:
        self._started: dict[str, _Started] = {}
        self._confirmed: dict[_Action, tuple[str, tuple[str, ...]]] = {}
        self._failed: dict[_Action, str] = {}

    def against(self, tool: str, argument_digest: str, effect: Effect) -> Guard | None:
        """The guard that holds this action back, or None. Reads and questions are never guarded."""
        if effect.effect_class is EffectClass.READ_ONLY or effect.interaction:
            return None
        action = (tool, argument_digest)
        if action in self._confirmed:
            return Guard("confirmed_effect", self._confirmed[action][0])
        if action in self._failed and not effect.check:
            return Guard("look_first", self._failed[action])
        return None

    def apply(self, entry: Entry) -> None:
        """Fold one appended entry."""
        payload = entry.payload
        if entry.kind == Kind.USER and payload.get("text"):
            # Going on without words writes such an entry too, for the facts alone; nobody said anything then.
            self._confirmed.clear()
            self._failed.clear()
        elif entry.kind == Kind.STARTED:
            self._start(payload)
        elif entry.kind in (Kind.CLOSED, Kind.LATE):
            self._settle(payload)
        elif entry.kind == Kind.NOT_STARTED and payload.get("reason") == "look_first":
            self._failed.pop(
                (payload.get("tool", ""), payload.get("argumentDigest", "")), None
            )  # refused once
        elif _says_it_happened(entry):
            self._confirm(payload["attemptId"])

    def _start(self, payload: Mapping[str, Any]) -> None:
        self._started[payload["attemptId"]] = _Started(
            (payload.get("tool", ""), payload.get("argumentDigest", "")),
            _class_of(payload.get("class")),
            tuple(payload.get("reach") or ()),
            bool(payload.get("check")),
        )

    def _settle(self, payload: Mapping[str, Any]) -> None:
        state = payload.get("state")
        if state not in ("succeeded", "failed"):
            return  # still unknown, or evidence only: the attempt stays remembered
        started = self._started.pop(payload["attemptId"], None)
        if started is None:
            return
        if started.effect_class is EffectClass.READ_ONLY:
            self._failed.clear()  # somebody looked
            return
        self._confirmed = {
            action: (attempt, reach)
            for action, (attempt, reach) in self._confirmed.items()
            if not overlaps(reach, started.reach)
        }
        unsafe = not started.effect_class.retry_safe
        if state == "failed" and payload.get("effectTrace") == "possible" and unsafe and not started.check:
            self._failed[started.action] = payload["attemptId"]

    def _confirm(self, attempt_id: str) -> None:
        started = self._started.pop(attempt_id, None)
        if started is not None:
            self._confirmed[started.action] = (attempt_id, started.reach)


def _says_it_happened(entry: Entry) -> bool:
    if entry.kind == Kind.RESOLVED:
        return (entry.payload.get("resolution") or {}).get("kind") == "confirmed"
    return entry.kind == Kind.INSPECTED and bool(entry.payload.get("proven"))


def _class_of(word: Any) -> EffectClass:
    """A word of a newer version counts as the strictest class (TR-8)."""
    try:
        return EffectClass(word)
    except ValueError:
        return EffectClass.UNKNOWN
