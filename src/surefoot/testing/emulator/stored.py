"""What a Responses endpoint keeps between requests: answered conversations and their items.

Owns: looking up items and chains by id. Does not own: when they must exist (`responses_rules`).
"""

from __future__ import annotations

from typing import Any


class Stored:
    """Conversations kept by response id, for requests that did not say `store: false`."""

    def __init__(self) -> None:
        self._conversations: dict[str, list[dict[str, Any]]] = {}
        self._items: dict[str, dict[str, Any]] = {}

    def keep(self, response_id: str, given: list[dict[str, Any]], output: list[dict[str, Any]]) -> None:
        """Keep one answered request: everything before it, and what was answered."""
        self._conversations[response_id] = [*given, *output]
        for item in output:
            if item.get("id"):
                self._items[str(item["id"])] = item

    def conversation(self, response_id: str) -> list[dict[str, Any]] | None:
        """All items up to and with that response."""
        return self._conversations.get(response_id)

    def item(self, identity: str) -> dict[str, Any] | None:
        """One item of an answer."""
        return self._items.get(identity)
