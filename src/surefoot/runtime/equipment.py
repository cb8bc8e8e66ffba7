"""What an owner works with: model, effort, contract, project settings, instructions, tools and their classes.

Owns: its comparison with what the session worked with before, so that a resume names the differences before
its first request (TR-183, UX-55). Does not own: when that is recorded and told (`controller`), the words
(`surfaces`). A difference is news and never an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.runtime.session import Session
from surefoot.runtime.tools import Registry

BY_ARGUMENTS = "by arguments"


class Equipment:
    """The equipment of one owned session."""

    def __init__(self, session: Session, registry: Registry) -> None:
        self.given: Mapping[str, Any] = {}
        """`model`, `effort`, `contract`, `settings` (a digest of the project's own), `instructions` (path → digest),
        as whoever wires it knows them."""
        self._session = session
        self._registry = registry
        self._told = False

    def now(self) -> dict[str, Any]:
        """What this owner works with."""
        return {**self.given, "tools": {tool.name: _class_of(tool.effect) for tool in self._registry}}

    def news(self) -> dict[str, Any] | None:
        """What the next turn records: the equipment where it is not the recorded one, else None."""
        now = self.now()
        return None if now == self._session.works_with else now

    def changes(self) -> list[dict[str, Any]]:
        """What is otherwise than before: rows of `what`, `name`, `old`, `new`; none in a session that is new."""
        before = self._session.works_with
        if before is None:
            return []
        now = self.now()
        rows = [
            {"what": what, "name": None, "old": before.get(what), "new": now.get(what)}
            for what in ("model", "effort", "contract", "settings")
            if what in before and before[what] != now.get(what)
        ]
        old, new = before.get("tools") or {}, now["tools"]
        return rows + [
            {"what": "tool", "name": name, "old": old.get(name), "new": new.get(name)}
            for name in sorted({*old, *new})
            if old.get(name) != new.get(name)
        ]

    def untold(self) -> list[dict[str, Any]]:
        """The changes, once for each owner."""
        if self._told:
            return []
        self._told = True
        return self.changes()


def _class_of(effect: Any) -> str:
    return BY_ARGUMENTS if callable(effect) else str(effect.effect_class.value)
