"""The card on screen of a chat: which one, what its keys do, what a press became.

Owns: moving between cards, carrying a press to the session and telling its record, the list of `H`
(UX-75), what is chosen about a process (UX-78). Does not own: which press is a decision (`keys`), how
a card is drawn (`plain`), the keyboard and the lines (`chat`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from surefoot.surfaces import plain, view
from surefoot.surfaces.chat_incident import Offer
from surefoot.surfaces.chat_lines import details
from surefoot.surfaces.drawing import how_to_press, key_of
from surefoot.surfaces.keys import ALL, CONFIRM_ALL, LOOKS, MOVES, QUIET_MS, Keys, carried
from surefoot.surfaces.port import Driver, Lines, Screen
from surefoot.surfaces.words import refusal, say
from surefoot.surfaces.words_chat import answer, key_help


@dataclass(slots=True)
class Cards:
    """The cards of a session, one of them on screen."""

    driver: Driver
    screen: Screen
    lines: Lines
    keys: Keys = field(default_factory=Keys)
    away: bool = False
    may_go_on: bool = False
    offer: Offer = field(init=False)
    """The protocol card; its keys are taken while no call's are."""
    _index: int = 0

    def __post_init__(self) -> None:
        self.offer = Offer(self.driver, self.screen, self.lines)

    @property
    def takes_keys(self) -> bool:
        """Whether a card on screen takes what is pressed on an empty line."""
        return self.keys.call is not None or self.offer.on

    def begun(self) -> None:
        """Something runs now: neither Continue nor the protocol card waits for a key."""
        self.may_go_on = False
        self.offer.hide()

    def show(self) -> bool:
        """Draw the card at the current place; False when nothing is open. The protocol card comes below it."""
        self.lines.keep(self.offer.look())
        language = self.screen.language
        snapshot = self.driver.snapshot()
        cards = view.cards(snapshot, language)
        self.keys.offer(carried(cards), several=len(cards) > 1)
        if not cards or self.away:
            self.keys.show(None, _now_ms())
            return bool(cards)
        self._index %= len(cards)
        card = self._with_process(cards[self._index])
        self.keys.show(card, _now_ms())
        columns, ascii_only = min(self.screen.columns() - 1, 80), self.screen.ascii_only
        numbers = (self._index + 1, len(cards))
        drawn = self.screen.drawing.card(
            card, language, columns=columns, ascii_only=ascii_only, number=numbers
        )
        self.lines.say(*drawn, *self._below(card, cards))
        return True

    def press(self, data: str) -> str:
        """One key; what it was taken for happens, and the letters that were only text come back."""
        if self.keys.call is None and self.offer.on:
            return self.offer.press(data)
        press = self.keys.press(data, _now_ms())
        if press.kind == "text":
            return press.name + (data if data != "escape" else "")
        if press.kind == "armed":
            asyncio.get_running_loop().call_later((QUIET_MS + 10) / 1000, self._settle)
        elif press.kind == "decide":
            self._decide(press.name)
        elif press.kind == "refused":
            self.lines.say(f"{press.name}: {refusal(press.name, self.screen.language)}")
        elif press.kind == "list":
            self._list()
        elif press.kind == "look":
            self._look(press.name)
        elif press.kind == "move":
            self._move(press.name)
        return ""

    def numbered(self, line: str) -> bool:
        """A choice named by its number: a look happens, of a decision it is told which key makes it (UX-71)."""
        card, drawing, language = self.keys.call, self.screen.drawing, self.screen.language
        told = line.strip()
        if card is None:
            return self.offer.numbered(line)
        if not drawing.numbered or not (told.isdecimal() and len(told) < 3):
            return False
        key, press = key_of(card, language, int(told)), how_to_press(card, language, int(told))
        if key in LOOKS:
            self._look(LOOKS[key])
        elif key in MOVES:
            self._move(MOVES[key])
        elif press is not None:
            self.lines.say(press)
        return bool(key or press)

    def _with_process(self, card: dict[str, Any]) -> dict[str, Any]:
        """The card, with a line about what the call left running (UX-78)."""
        now = int(time.time() * 1000)
        running = view.running_line(card, self.screen.language, now_ms=now, ascii_only=self.screen.ascii_only)
        return card if running is None else {**card, "running": running}

    def _below(self, card: Mapping[str, Any], cards: list[dict[str, Any]]) -> list[str]:
        """The last output of what still runs, and what `H` would list."""
        lines = [f"  {plain.GUTTER}{view.clean(line)}" for line in self.driver.deciding.last_output(card)]
        count = len(carried(cards))
        if len(cards) > 1 and count:
            lines.append(f"{ALL} {answer('lists_carried', self.screen.language, n=count)}")
        return lines

    # Deciding ---------------------------------------------------------------------------------

    def _settle(self) -> None:
        press = self.keys.settle(_now_ms())
        if press is None:
            return
        if press.kind == "choose":
            if self.keys.call is not None:
                self.lines.keep(self._choose(press.name, self.keys.call))
        else:
            self._decide(press.name)

    def _decide(self, action: str) -> None:
        if action == CONFIRM_ALL:
            self.lines.keep(self._confirm_all(self.keys.listed))
        elif self.keys.call is not None:
            self.lines.keep(self._act(action, self.keys.call))

    async def _act(self, action: str, card: Mapping[str, Any]) -> None:
        """Press once; then read again, whatever the answer was (TR-147, TR-155)."""
        await self._press(action, card)
        self.show()
        self.lines.redraw()

    async def _confirm_all(self, listed: tuple[tuple[str, str], ...]) -> None:
        """Each listed call gets its own record; one that changed meanwhile answers with its code (UX-75)."""
        for attempt, inspection in listed:
            call = _call_of(self.driver.snapshot(), attempt)
            if call is not None:
                await self._press("confirm", {**call, "inspectionId": inspection})
        self.show()
        self.lines.redraw()

    async def _press(self, action: str, card: Mapping[str, Any]) -> None:
        language = self.screen.language
        status, body = await self.driver.deciding.act(action, card)
        if status != 200:
            self._refused(body)
            return
        now = _call_of(body, str(card["attemptId"]))
        if now is not None and now.get("parked"):
            self.lines.say(say("parked", language))
            if body.get("replaces"):
                self.lines.say(say("parked_replaces", language, word=body["replaces"]))
        elif now is not None and action != "inspect":
            self._say_decided(now)

    async def _choose(self, choice: str, card: Mapping[str, Any]) -> None:
        """Attach, stop or leave a process; a stop that is not proven says what is still seen (UX-78)."""
        self.lines.say(answer(f"choosing_{choice}", self.screen.language))
        status, body = await self.driver.deciding.process(choice, card)
        if status != 200:
            self._refused(body)
        else:
            self.lines.say(*view.process_lines(body, str(card["attemptId"]), self.screen.language))
        self.show()
        self.lines.redraw()

    def _refused(self, body: Mapping[str, Any]) -> None:
        code = str(body.get("code", "bad_request"))
        self.lines.say(f"{code}: {refusal(code, self.screen.language, reason=body.get('reason'))}")
        record = body.get("record")
        if record:  # an earlier press made it; it is the outcome, not a failure (UX-66)
            self.lines.say(f"  {record.get('kind')} · {record.get('who')} · {record.get('channel')}")

    def _say_decided(self, call: Mapping[str, Any]) -> None:
        language = self.screen.language
        what = view.told(call, language, you=True)
        sign = plain.sign_of(call, ascii_only=self.screen.ascii_only)
        time_text = view.local_time(int(time.time() * 1000))
        place = say("this_terminal", language)
        self.lines.say(sign + " " + say("decided", language, what=what, time=time_text, place=place))
        self.may_go_on = not self.lines.running

    # Looking ----------------------------------------------------------------------------------

    def _list(self) -> None:
        """What a second `H` would confirm; nothing else is (UX-75)."""
        language, listed = self.screen.language, self.keys.listed
        if not listed:
            self.lines.say(answer("nothing_carried", language))
            return
        snapshot = self.driver.snapshot()
        ids = [attempt for attempt, _ in listed]
        calls = [call for attempt in ids if (call := _call_of(snapshot, attempt)) is not None]
        for call in calls:
            row = view.row(call, language, ascii_only=self.screen.ascii_only, others=ids)
            self.lines.say(f"{row}  {view.grade_tag(call['inspection'], language)}")
        self.lines.say(answer("press_again", language, n=len(calls)))

    def _look(self, name: str) -> None:
        card, language = self.keys.call, self.screen.language
        if name == "timeline":
            self.lines.show("/timeline")
        elif card is None:
            self.lines.say(*key_help(language) if name == "help" else ())
        elif name == "inspect":
            self.lines.keep(self._act("inspect", card))
        elif name == "ask_model":
            self.lines.ask_to_look(card)
        elif name == "details":
            self.lines.say(*self.screen.drawing.table(details(card), (), self.screen.language, None))
        elif name == "help":
            self.lines.say(*self.screen.drawing.choices(card, language), say("card_keys", language))

    def _move(self, name: str) -> None:
        if name == "away":
            self.away = True
            self.keys.show(None, _now_ms())
        else:
            self._index += 1 if name == "forth" else -1
            self.show()


def _call_of(snapshot: Mapping[str, Any], attempt_id: str) -> Mapping[str, Any] | None:
    return next((c for c in snapshot.get("calls") or () if c["attemptId"] == attempt_id), None)


def _now_ms() -> float:
    return time.monotonic() * 1000
