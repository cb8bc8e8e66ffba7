"""The protocol card of a chat: which key sends, which incident it means, and what is no press at all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping
from typing import Any

import pytest

from surefoot.surfaces import chat_incident
from surefoot.surfaces.chat_incident import Offer
from surefoot.surfaces.drawing import INLINE, SCREEN_READER, Drawing
from surefoot.surfaces.port import Screen

CARD = {
    "incident_id": "inc_a", "kind": "upstream_reason_missing", "status": 400, "state": "pending", "offered": True,
    "changes": {"R14": 1}, "done_calls": 1, "open_calls": 0, "ways": ["write_a_message", "export"],
}  # fmt: skip


class Session:
    """A session with, or without, something to recover; and the chat around the card."""

    def __init__(self, card: Mapping[str, Any] | None) -> None:
        self.card = card
        self.running = False
        self.said: list[str] = []
        self.shown: list[str] = []
        self.sent: list[str] = []

    @property
    def deciding(self) -> Session:
        return self

    async def incident(self) -> Mapping[str, Any] | None:
        return self.card

    async def go_on(self, recovering: str) -> None:
        self.sent.append(recovering)

    def say(self, *lines: str) -> None:
        self.said += lines

    def show(self, command: str) -> None:
        self.shown.append(command)

    def redraw(self) -> None:
        """Nothing is drawn here."""

    def keep(self, work: Coroutine[Any, Any, Any]) -> None:
        raise AssertionError("nothing runs beside the card")

    def begin(self, work: Awaitable[Any]) -> None:
        self.running = True
        self.turn = asyncio.ensure_future(work)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still until it is moved."""
    now = [0.0]
    monkeypatch.setattr(chat_incident, "_now_ms", lambda: now[0])
    return now


def offer(session: Session, drawing: Drawing = INLINE) -> Offer:
    screen = Screen("en", lambda: 80, ascii_only=False, write=session.said.append, drawing=drawing)
    return Offer(session, screen, session)  # type: ignore[arg-type]


async def pressed(card: Offer, clock: list[float], key: str) -> str:
    """A key that stands alone, and the time that makes a decision of it."""
    clock[0] += 1_000
    text = card.press(key)
    clock[0] += 1_000
    card._settle()
    await asyncio.sleep(0)
    return text


async def test_ux_126_pr_81_one_key_sends_for_the_incident_whose_card_stands_there(
    clock: list[float],
) -> None:
    session = Session(CARD)
    card = offer(session)
    await card.look()
    assert any("p send again from valid history" in line for line in session.said)
    assert card.hint == "p send again from valid history"
    session.card = {**CARD, "incident_id": "inc_later"}
    assert await pressed(card, clock, "p") == ""
    assert session.sent == ["inc_a"]


async def test_ux_126_letters_of_a_word_and_a_key_before_its_time_send_nothing(clock: list[float]) -> None:
    session = Session(CARD)
    card = offer(session)
    await card.look()
    assert card.press("p") == ""  # the card has only just come up
    clock[0] += 1_000
    assert card.press("p") == ""
    clock[0] += 20
    assert card.press("l") == "pl"
    clock[0] += 1_000
    card._settle()
    assert session.sent == []


async def test_ux_124_pr_29_nothing_is_told_and_no_key_taken_where_nothing_may_be_acted_on(
    clock: list[float],
) -> None:
    for session in (Session(None), Session(CARD)):
        session.running = session.card is not None
        card = offer(session)
        await card.look()
        assert (card.on, session.said) == (False, [])
        assert await pressed(card, clock, "p") == "p" and session.sent == []


async def test_ux_124_a_card_is_told_once_and_again_after_another_refusal(clock: list[float]) -> None:
    session = Session(CARD)
    card = offer(session)
    await card.look()
    told = len(session.said)
    card.hide()
    await card.look()
    assert card.on and len(session.said) == told
    card.again()
    await card.look()
    assert len(session.said) == 2 * told


@pytest.mark.parametrize(("key", "shown"), [("m", "/model"), ("e", "/export"), ("b", "/rewind")])
async def test_ux_126_the_other_ways_have_keys_and_escape_lays_the_card_aside(
    clock: list[float], key: str, shown: str
) -> None:
    session = Session(CARD)
    card = offer(session)
    await card.look()
    assert await pressed(card, clock, key) == "" and session.shown == [shown]
    assert await pressed(card, clock, "escape") == "" and not card.on
    assert session.sent == []


async def test_ux_71_read_aloud_a_number_names_the_key_that_sends_and_sends_nothing(
    clock: list[float],
) -> None:
    session = Session(CARD)
    card = offer(session, SCREEN_READER)
    await card.look()
    assert "choice 1: p send again from valid history" in session.said
    assert card.numbered("1") and session.said[-1].endswith("press p") and session.sent == []
    assert card.numbered("4") and session.shown == ["/rewind"]
    assert not card.numbered("9") and not offer(session).numbered("1")
    assert card.numbered("5") and not card.on
