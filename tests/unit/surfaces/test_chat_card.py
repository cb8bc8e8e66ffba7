"""The card of a chat: what a press becomes, `H` over several calls, a living process."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

import pytest

from surefoot.surfaces.chat_card import Cards
from surefoot.surfaces.port import Screen
from surefoot.surfaces.words import LANGUAGES

ACTIONS = ("inspect", "confirm", "deny", "reject", "release", "retry")


def call(number: int, grade: str, **change: Any) -> dict[str, Any]:
    return {
        "attemptId": f"att_{number:026d}", "class": "NON_IDEMPOTENT", "open": True, "fencing": True, "state": "unknown",
        "reason": "owner_died", "tool": "shell", "summary": f"push {number}", "reach": ["repo:h/o/n"], "overlays": [],
        "inspectionId": f"ins_{number}", "inspection": {"id": f"ins_{number}", "state": "present", "grade": grade},
        "executor": {"state": "ended"}, "process": None, "startedAt": 1, "decision": "ASK_USER",
        "argumentDigest": "sha256:0", "parked": None,
        "actions": [{"action": one, "enabled": one != "retry", "code": None} for one in ACTIONS], **change,
    }  # fmt: skip


class Driver:
    """A session that records every press."""

    def __init__(self, calls: list[dict[str, Any]]) -> None:
        self.calls = calls
        self.pressed: list[tuple[str, str, Any]] = []
        self.chosen: list[str] = []

    @property
    def deciding(self) -> Driver:
        return self

    def snapshot(self) -> dict[str, Any]:
        return {"calls": [dict(one) for one in self.calls], "sessionPath": "p", "runtimeEpoch": "1", "revision": "r",
                "barrier": "reach", "background": []}  # fmt: skip

    async def incident(self) -> None:
        return None

    def last_output(self, _: Mapping[str, Any]) -> list[str]:
        return ["still \x1b[31mhere"]

    async def act(self, action: str, one: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        self.pressed.append((action, one["attemptId"], one["inspectionId"]))
        for known in self.calls:
            if known["attemptId"] == one["attemptId"]:
                known |= {"open": False, "overlays": ["confirmed"], "resolution": {"kind": "confirmed"}}
        return 200, self.snapshot()

    async def process(self, choice: str, _: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        self.chosen.append(choice)
        return 200, {**self.snapshot(), "process": {"choice": choice, "gone": True, "left": []}}


class Chat:
    """The chat around the card, as far as a card needs one."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.tasks: list[asyncio.Task[Any]] = []
        self.running = False

    def say(self, *lines: str) -> None:
        self.said += lines

    def keep(self, work: Coroutine[Any, Any, Any]) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    def redraw(self) -> None: ...

    def ask_to_look(self, card: Mapping[str, Any]) -> None: ...

    def show(self, command: str) -> None: ...


def at_work(calls: list[dict[str, Any]], language: str = "en") -> tuple[Cards, Driver, Chat]:
    driver, chat = Driver(calls), Chat()
    screen = Screen(language, lambda: 80, False, print)
    return Cards(driver, screen, chat), driver, chat  # type: ignore[arg-type]


async def pressed(cards: Cards, chat: Chat, *keys: str) -> None:
    """Press keys as slowly as a person does."""
    for key in keys:
        await asyncio.sleep(0.45)
        assert cards.press(key) == ""
    await asyncio.sleep(0.45)
    await asyncio.gather(*chat.tasks)


async def test_ux_75_h_twice_confirms_exactly_what_was_listed_each_as_its_own_record() -> None:
    cards, driver, chat = at_work([call(1, "strong"), call(2, "weak"), call(3, "strong")])
    cards.show()
    await pressed(cards, chat, "H")
    assert driver.pressed == []
    listed = "\n".join(chat.said)
    assert "push 1" in listed and "push 3" in listed and "H again: you say of these 2" in listed
    await pressed(cards, chat, "H")
    assert driver.pressed == [
        ("confirm", call(1, "")["attemptId"], "ins_1"),
        ("confirm", call(3, "")["attemptId"], "ins_3"),
    ]
    assert [one["open"] for one in driver.calls] == [False, True, False]


async def test_ux_75_without_evidence_h_confirms_nothing_and_says_so() -> None:
    cards, driver, chat = at_work([call(1, "weak"), call(2, "none")])
    cards.show()
    await pressed(cards, chat, "H", "H")
    assert driver.pressed == [] and any("none has proof or strong signs" in line for line in chat.said)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_ux_78_a_living_process_is_named_with_pid_age_last_output_and_three_choices(
    language: str,
) -> None:
    process = {"state": "running", "pid": 4711, "log": "/x/log", "choices": ["adopt", "kill", "leave"]}
    cards, driver, chat = at_work([call(1, "none", process=process, executor={"state": "alive"})], language)
    cards.show()
    drawn = "\n".join(chat.said)
    assert "◐" in drawn and "4711" in drawn and "\x1b" not in drawn and "│ still here" in drawn
    assert all(f"{key} " in drawn for key in "tsv")
    await pressed(cards, chat, "s")
    assert driver.chosen == ["kill"] and driver.pressed == []
