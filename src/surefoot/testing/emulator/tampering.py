"""Pure. Edits of an incoming request before it is checked, so that a real rule fires on a whole history."""

from __future__ import annotations

from typing import Any


def edit(body: dict[str, Any], edits: list[dict[str, Any]]) -> None:
    """Carry out edits such as `{"path": ["messages", 2, "reasoning_content"], "remove": true}` or with `value`.

    Raises:
        ValueError: a path does not lead anywhere in this request.
    """
    for change in edits:
        *way, last = change["path"]
        place: Any = body
        try:
            for step in way:
                place = place[step]
            if change.get("remove"):
                del place[last]
            else:
                place[last] = change.get("value")
        except (KeyError, IndexError, TypeError):
            raise ValueError(f"the path {change['path']!r} leads nowhere in this request") from None
