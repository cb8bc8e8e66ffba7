"""A chat draws its card before it loads what reads keys."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from surefoot.surfaces.chat import Chat
from surefoot.surfaces.port import Screen
from surefoot.surfaces.words import LANGUAGES

CALL = {
    "attemptId": "att_00000000000000000000000001", "class": "NON_IDEMPOTENT", "open": True, "fencing": True,
    "state": "unknown", "reason": "owner_died", "tool": "shell", "summary": "push", "reach": ["repo:h/o/n"],
    "overlays": [], "inspectionId": None, "inspection": None, "executor": {"state": "ended"}, "process": None,
    "startedAt": 1, "decision": "ASK_USER", "argumentDigest": "sha256:0", "parked": None, "actions": [],
}  # fmt: skip


class Driver:
    """A session with one open call."""

    session_id, model, mode = "ses_1", "openai/gpt", "default"

    @property
    def deciding(self) -> Driver:
        return self

    def snapshot(self) -> dict[str, Any]:
        return {"calls": [CALL], "sessionPath": "p", "runtimeEpoch": "1", "revision": "r", "barrier": "reach",
                "background": []}  # fmt: skip

    async def incident(self) -> None:
        return None

    def last_output(self, _: Any) -> list[str]:
        return []


class Asked(Exception):
    """The editor of the line is asked for."""


@pytest.mark.parametrize("language", LANGUAGES)
async def test_ux_70_the_card_and_what_stands_below_it_are_drawn_before_the_editor_is_loaded(
    monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    drawn: list[str] = []
    before: list[str] = []

    class Editor(ModuleType):
        """Stands for the room that loads the editor."""

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            before.extend(drawn)
            raise Asked

    monkeypatch.setitem(sys.modules, "surefoot.surfaces.chat_prompt", Editor("surefoot.surfaces.chat_prompt"))
    monkeypatch.delattr("surefoot.surfaces.chat_prompt", raising=False)

    async def earlier() -> list[tuple[str, str]]:
        return []

    chat = Chat(Driver(), Screen(language, lambda: 80, False, drawn.append), earlier)  # type: ignore[arg-type]
    chat.below_cards = ("what would run again",)
    with pytest.raises(Asked):
        await chat.run()
    assert any("push" in line for line in before)
    assert before[-1] == "what would run again"
