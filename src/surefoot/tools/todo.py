"""The tool todo: the model's own list for this session, replaced as a whole.

Owns: its arguments and the form of an item. Does not own: where the list is kept
(`services["todo"]`, an entry of the ledger) and how it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from surefoot.core.effects import Effect
from surefoot.core.model import EffectClass
from surefoot.runtime.tools import Arguments, LiveAttempt, Outcome, Tool

ITEMS = 100
STATUSES = ("pending", "in_progress", "done")
_MARKS = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]"}


class TodoList(Protocol):
    """`services["todo"]`: keeps the newest list of the session."""

    async def replace(self, attempt: LiveAttempt, items: Sequence[Mapping[str, Any]]) -> None:
        """Store the whole list; equal lists may be stored once."""
        ...


def rendered(items: Sequence[Mapping[str, Any]]) -> str:
    """The list as lines of text."""
    return "\n".join(f"{_MARKS.get(str(item.get('status')), '[ ]')} {item.get('text')}" for item in items)


async def _body(attempt: LiveAttempt, arguments: Arguments) -> Outcome:
    items = [{"text": item["text"], "status": item.get("status", "pending")} for item in arguments["items"]]
    keeper: TodoList = attempt.services["todo"]
    await keeper.replace(attempt, items)
    if not items:
        return Outcome("The list is empty now.")
    left = sum(item["status"] != "done" for item in items)
    return Outcome(f"The list has {len(items)} items, {left} not done:\n{rendered(items)}")


def todo_tool() -> Tool:
    """`todo`: `IDEMPOTENT_WRITE` without reach, since it touches its own session only."""
    item = {
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "maxLength": 500},
            "status": {"type": "string", "enum": list(STATUSES)},
        },
        "required": ["text"],
        "additionalProperties": False,
    }
    return Tool(
        name="todo",
        description=(
            "Replace your task list for this session. Always give the whole list; keep at most one item "
            "`in_progress`. Use it for work of three steps or more."
        ),
        parameters={
            "type": "object",
            "properties": {"items": {"type": "array", "maxItems": ITEMS, "items": item}},
            "required": ["items"],
            "additionalProperties": False,
        },
        body=_body,
        effect=Effect(EffectClass.IDEMPOTENT_WRITE),
        aliases=("todo_write", "TodoWrite"),
        summary=lambda a: f"todo list of {len(a.get('items') or ())}",
    )
