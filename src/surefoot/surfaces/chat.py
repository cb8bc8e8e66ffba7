"""The inline chat: one prompt line below, the terminal's own scrollback above.

Owns: reading keys, drawing lines, questions put to the person.
Does not own: the card on screen (`chat_card`), what a line means (`chat_lines`), facts and
words (`view`, `words`), turns (`runtime.controller`), the editor of the line (`chat_prompt`).

Never uses the alternate screen. A notice only draws; nothing here decides by itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from surefoot.surfaces import notices, plain, view
from surefoot.surfaces.chat_card import Cards
from surefoot.surfaces.chat_echo import Echo
from surefoot.surfaces.chat_lines import (
    Count,
    Doing,
    Stream,
    failure,
    next_mode,
    opinions,
    status_line,
    stopped_check,
    told_error,
    typed,
)
from surefoot.surfaces.chat_rewind import rewound
from surefoot.surfaces.markup import Light
from surefoot.surfaces.port import LOOK_REQUESTS, Driver, KeyRow, Screen
from surefoot.surfaces.typed_early import kept_as_pressed
from surefoot.surfaces.words import say
from surefoot.surfaces.words_chat import answer, key_help, slash_help

STOP_SECONDS = 2.0
ENDING_SECONDS = 1.6
ENDING_LOOKS = 80
COMMAND_LOOKS = 20
"""After a stop: how long a check is waited for, in how many looks, and after how many no other command is."""
TWICE_MS = 1000
"""Within how long a second Esc means the list of earlier turns."""


@dataclass(slots=True)
class _Question:
    """A question on screen; the next line typed is its answer."""

    answered: asyncio.Future[str]
    hint: str
    may_be_left: bool = False
    """Whether Esc is an answer: nothing."""


@dataclass(slots=True)
class Chat:
    """One chat. `run` returns the exit code's facts through the driver; it raises nothing of a tool."""

    driver: Driver
    screen: Screen
    earlier: Callable[[], Awaitable[list[tuple[str, str]]]]
    """The turns that can be gone back to, with their words."""
    first_prompt: str = ""
    cards: Cards = field(init=False)
    count: Count = field(default_factory=Count)
    stream: Stream = field(default_factory=Stream)
    doing: Doing = field(default_factory=Doing)
    below_cards: tuple[str, ...] = ()
    """Lines of a resume that stand below its card (UX-50)."""
    transcript: list[str] = field(default_factory=list)
    _session: Any = None
    _turn: asyncio.Task[Any] | None = None
    _question: _Question | None = None
    _leaving: bool = False
    _stopped_at: float | None = None
    _escaped_ms: float = float("-inf")
    _echo: Echo | None = None
    """Where nothing is drawn twice, what is typed is echoed by it."""
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.cards = Cards(self.driver, self.screen, self)

    # Life -------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Read lines until the person leaves; then stop what runs."""
        self.stream.light = Light() if self.screen.colour else None
        if self.screen.drawing.still:
            self._echo = Echo(lambda text: print(text, end="", flush=True), self._message, self._at_rest)
        with kept_as_pressed():
            self.cards.show()
            self.say(*self.below_cards)
            # What takes longest is loaded while the card is read (UX-70).
            from surefoot.surfaces import chat_prompt

            keys = self._keys(chat_prompt.in_its_place)
            self._session = chat_prompt.editor(
                self.screen, keys, message=self._message, toolbar=self._toolbar
            )
        if self._echo is not None:
            self._session.default_buffer.on_text_changed += self._typed
        with chat_prompt.lines_above(self.screen):
            if self.first_prompt:
                self.say(*[f"> {line}" for line in view.clean(self.first_prompt, lines=True).split("\n")])
                self.begin(self.driver.submit(self.first_prompt))
            await self._lines()
            await self._end()

    async def _lines(self) -> None:
        while not self._leaving:
            if self._echo is not None:
                self._echo.rest()
            try:
                line = await self._session.prompt_async()
            except EOFError:
                return
            except KeyboardInterrupt:
                if self._turn is None:
                    return
                continue
            if self._echo is not None:
                self._echo.sent()
            await self._line(line)

    async def _end(self) -> None:
        """Leaving cancels the turn, not what runs under supervision (UX-165)."""
        self._leaving = True
        if self._echo is not None:
            self._echo.sent()
        await self.driver.close()
        parked = self.driver.take_parked()
        if parked:  # they were given and went to no model; whoever leaves gets them back (UX-18)
            self.say(answer("not_sent", self.screen.language))
            self.say(*(f"> {line}" for text in parked for line in view.clean(text, lines=True).split("\n")))
        for task in list(self._tasks):
            task.cancel()

    async def _line(self, line: str) -> None:
        if self._question is not None:
            if not self._question.answered.done():
                self._question.answered.set_result(line)
            return
        if self.cards.numbered(line):
            return
        meant = typed(line)
        if meant.kind == "nothing":
            return
        if meant.kind == "mistake":
            self.say(answer("mistake", self.screen.language, word=meant.word, near=meant.rest))
        elif meant.kind == "command":
            await self._command(meant.word, meant.rest)
        elif meant.kind == "own":
            self._own(meant.rest)
        else:
            self._submit(meant.rest)

    def _submit(self, text: str) -> None:
        """Start a turn; words typed while one runs are parked and shown, never dropped (TR-184)."""
        if self._turn is not None:
            self.say(say("parked_words", self.screen.language, text=view.clean(text)))
        self.transcript.append("> " + text)
        self.begin(self.driver.submit(text))

    def _own(self, command: str) -> None:
        """Run a command of the person's own; beside a turn there is no room for it (UX-19)."""
        if self._turn is not None:
            self.say(answer("turn_runs", self.screen.language))
            return
        self.transcript.append("> !" + command)
        self.begin(self._ran(command))

    async def _ran(self, command: str) -> None:
        self.say(*await self.driver.command("!", command))

    async def _command(self, word: str, rest: str) -> None:
        if word == "/quit":
            self._leaving = True
        elif word == "/help":
            language = self.screen.language
            table = self.screen.drawing.table(slash_help(language), (), language, None)
            self.say(*table, *key_help(language))
        elif word == "/continue":
            self.begin(self.driver.go_on())
        elif word == "/recover-context":
            self.begin(self.driver.go_on(rest))
        elif word == "/recover":
            self.cards.away = False
            if not self.cards.show():
                self.say(say("nothing_open", self.screen.language))
        else:
            self.say(*await self.driver.command(word, rest))

    def begin(self, work: Awaitable[Any]) -> None:
        """Start a turn; what is begun beside a running one only waits for its answer."""
        self.cards.begun()
        task = asyncio.ensure_future(self._turned(work, own=self._turn is None))
        if self._turn is None:
            self.count.clear()
            self.doing.begin(time.monotonic())
            self._turn = task
        self._hold(task)

    async def _turned(self, work: Awaitable[Any], *, own: bool) -> None:
        """Wait for a turn and tell its end. Parked words come back at once and end nothing."""
        from surefoot.errors import SurefootError

        try:
            end = await work
        except SurefootError as error:
            self.say(*told_error(error, self.screen.language))
            end = None
        finally:
            if own:
                self._turn = None
                self.say(*self.stream.finish())
        if own:
            if str(getattr(end, "status", "")) == "cancelled":
                await self._ended()
            self._tell_end(end)
            self.cards.show()
            self._deliver_parked(end)

    def _deliver_parked(self, end: Any) -> None:
        """Words typed while a turn ran begin the next one; after a stop they are offered again (UX-18)."""
        parked = [] if self._leaving else self.driver.take_parked()
        if not parked:
            return
        if str(getattr(end, "status", "")) == "completed":
            self.begin(self.driver.submit("\n\n".join(parked)))
            return
        self.say(say("offered_prompt", self.screen.language))
        self._session.default_buffer.insert_text("\n".join(parked))

    def leave(self) -> None:
        """Leave from outside, as if the terminal had been closed."""
        self._leaving = True
        if self._session is not None and self._session.app.is_running:
            self._session.app.exit(exception=EOFError)

    def _tell_end(self, end: Any) -> None:
        if end is None:
            return
        status = str(getattr(end, "status", ""))
        if status == "cancelled":
            self._say_stopped()
        elif status == "failed":
            self.say(*failure(end, self.screen.language))

    async def stop(self) -> None:
        """Stop the turn; the session is free within two seconds whatever still ends (UX-18)."""
        turn = self._turn
        if turn is None or self._stopped_at is not None:
            return
        self._stopped_at = time.monotonic()
        try:
            await asyncio.wait({asyncio.ensure_future(self.driver.stop())}, timeout=STOP_SECONDS)
            left = STOP_SECONDS - (time.monotonic() - self._stopped_at)
            done, _ = await asyncio.wait({turn}, timeout=max(0.0, left))
            if not done:
                self.say(say("stop_not_written", self.screen.language))
                self._say_stopped()
        finally:
            self._stopped_at = None

    async def _ended(self) -> None:
        """Most commands end as soon as they are told to, and a check is killed soon after; the counts and the
        card wait that long for them, and for the policy that releases a stopped check (UX-156)."""
        for look in range(ENDING_LOOKS):
            checks = self.count.open_checks()
            if not checks and (look >= COMMAND_LOOKS or not self.driver.still_ending()):
                return
            await asyncio.sleep(ENDING_SECONDS / ENDING_LOOKS)

    def _say_stopped(self) -> None:
        """The counts of a stop; what has not ended yet is counted with the time until it is killed (UX-18)."""
        ending = self.driver.still_ending()
        seconds = max(ending.values()) if ending else None
        self.say(view.stop_line(self.count.counts(ending), self.screen.language, ending_seconds=seconds))

    def keep(self, work: Coroutine[Any, Any, Any]) -> None:
        """Let work run beside the lines; leaving ends it."""
        self._hold(asyncio.ensure_future(work))

    def _hold(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Drawing ----------------------------------------------------------------------------------

    def say(self, *lines: str) -> None:
        """Lines above the prompt."""
        for line in lines:
            self.transcript.append(line)
            # A line that carries styles was wrapped where they were put in.
            fits = "\x1b" in line or plain.width_of(line) <= self.screen.columns()
            for part in [line] if fits else plain.wrap(line, max(20, self.screen.columns())):
                self._write(part)

    def _write(self, line: str) -> None:
        told = self.screen.drawing.line(line)
        told = plain.only_ascii(told) if self.screen.ascii_only else told
        if self._echo is None:
            self.screen.write(told)
            return
        self._echo.above(told)

    def _at_rest(self) -> str | None:
        """What is typed, where a person may speak; None while a turn runs and nobody has begun to type."""
        if self._session is None:
            return None
        text = str(self._session.default_buffer.text)
        resting = self._turn is None or self._question is not None or bool(text)
        return text if resting and self._session.app.is_running else None

    def _typed(self, buffer: Any) -> None:
        if self._echo is not None and self._session.app.is_running:
            self._echo.typed(buffer.text)

    def notice(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Draw one notice; called by the controller, never waits."""
        if kind == "text":
            if facts.get("kind", "text") == "text":
                self.stream.columns = self.screen.columns()
                self.say(*self.stream.feed(str(facts.get("text", ""))))
        elif kind == "receipt":
            self._receipt(facts["receipt"].to_json())
        elif kind == "progress":
            self._progress(str(facts.get("text", "")))
        elif kind == "provider_refused":
            self.cards.offer.again()
            if facts.get("incident_id") is None:  # what is offered stands at the turn's end, with its keys
                self.show("/recover-context")
        elif kind == "looked" and self._turn is None:
            self.cards.show()  # a look of the opening took its time; the card shows what it saw
        elif kind == "model_wait":
            self.say(view.wait_line(facts, self.screen.language))
        else:
            if kind == "discard":
                self.stream.finish()  # what was shown of it is no answer (PR-64)
            told = notices.line(kind, facts, self.screen.language, ascii_only=self.screen.ascii_only)
            self.say(*([told] if told else []))

    def show(self, command: str) -> None:
        """Show what a command without words shows: the protocol card (UX-124), the timeline, earlier turns."""
        self.keep(self._rewind() if command == "/rewind" else self._shown(command))

    async def _shown(self, command: str) -> None:
        self.say(*await self.driver.command(command, ""))

    @property
    def running(self) -> bool:
        """Whether a turn runs."""
        return self._turn is not None

    def ask_to_look(self, card: Mapping[str, Any]) -> None:
        """The model looks and decides nothing; while a turn runs there is nobody to ask (UX-116)."""
        if self._turn is not None:
            self.say(say("look_later", self.screen.language))
            return
        self.say(say("looks_only", self.screen.language, requests=LOOK_REQUESTS))
        self.begin(self._looked(card))

    async def _looked(self, card: Mapping[str, Any]) -> Any:
        """A look of the model; what it says without naming a call of this turn is told as opinion."""
        end = await self.driver.ask_to_look(card)
        said, unsupported = opinions(str(getattr(end, "text", "")), self.count.attempts())
        if unsupported:
            self.say(*self.stream.finish(), say("opinion", self.screen.language, n=unsupported, all=said))
        return end

    def _receipt(self, receipt: Mapping[str, Any]) -> None:
        self.doing.see(receipt, time.monotonic())
        if not self.count.see(receipt):
            return
        self.say(*self.stream.finish())
        if stopped_check(receipt):
            return  # told in one line by its notice, or by its card
        told_now = (
            () if self.screen.drawing.still else ("started",)
        )  # what runs now stands in the status line
        if receipt.get("state") not in ("dispatched", *told_now):
            room, ascii_only = max(20, self.screen.columns() - 30), self.screen.ascii_only
            self.say(view.receipt_line(receipt, self.screen.language, ascii_only=ascii_only, room=room))

    def _progress(self, text: str) -> None:
        for line in text.splitlines()[-5:]:
            room = max(20, self.screen.columns() - 6)
            self._write(f"  {plain.GUTTER}{plain.cut(view.clean(line), room)}")

    def _message(self) -> str:
        return "? " if self._question is not None else "> "

    def _toolbar(self) -> str:
        snapshot = self.driver.snapshot()
        open_calls = sum(1 for call in snapshot.get("calls") or () if view.is_card(call))
        background = len(snapshot.get("background") or ())
        parts = [self.driver.model, self.driver.mode]
        if open_calls:
            parts.append(f"{'?' if self.screen.ascii_only else '◇'}{open_calls}")
        if background:
            parts.append(f"{'&' if self.screen.ascii_only else '▸'}{background}")
        if self._question is not None:
            parts.append(self._question.hint)
        elif self._turn is not None:
            parts.append(say("esc_stops", self.screen.language))
            parts.append(self.doing.line(self.screen.language, time.monotonic()))
        elif self.cards.may_go_on:
            parts.append(f"c {say('go_on', self.screen.language)}")
        elif self.cards.keys.call is None and self.cards.offer.on:
            parts.append(self.cards.offer.hint)
        return status_line(parts, self.screen.columns())

    # Questions --------------------------------------------------------------------------------

    async def ask(self, lines: list[str], hint: str, *, may_be_left: bool = False) -> str:
        """Put a question; the next line typed is the answer. A stop withdraws it."""
        while self._question is not None:
            await asyncio.wait({self._question.answered})
            await asyncio.sleep(0)
        self.say(*self.stream.finish(), *lines)
        question = _Question(asyncio.get_running_loop().create_future(), hint, may_be_left)
        self._question = question
        self.redraw()
        try:
            return await question.answered
        finally:
            self._question = None
            self.redraw()

    async def _rewind(self) -> None:
        """The list of earlier turns; the words of the one gone back to stand in the line again (UX-16)."""
        points = await self.earlier()
        if self._turn is None and self._question is None:
            words = await rewound(self.driver, self.screen, self, points)
            if not self._session.default_buffer.text:
                self._session.default_buffer.insert_text(words)

    def redraw(self) -> None:
        """Draw the prompt and the status line anew."""
        if self._session is not None and self._session.app.is_running:
            self._session.app.invalidate()

    # Keys -------------------------------------------------------------------------------------

    def _keys(self, in_its_place: Callable[[Callable[[], None]], None]) -> list[KeyRow]:
        return [*self._keys_of_lines(in_its_place), *self._keys_that_stop(), *self._keys_of_cards()]

    def _keys_of_lines(self, in_its_place: Callable[[Callable[[], None]], None]) -> list[KeyRow]:
        def mode(event: Any) -> None:
            self.driver.set_mode(next_mode(self.driver.mode))
            if self.screen.drawing.still:
                self.say(answer("mode", self.screen.language, mode=self.driver.mode))
            event.app.invalidate()

        def transcript(event: Any) -> None:
            lines = list(self.transcript)
            in_its_place(lambda: self.screen.write("\n".join(lines)))

        def new_line(event: Any) -> None:
            event.current_buffer.insert_text("\n")

        return [
            KeyRow(("escape", "enter"), new_line),
            KeyRow(("c-j",), new_line),
            KeyRow(("c-g",), lambda event: event.current_buffer.open_in_editor()),
            KeyRow(("s-tab",), mode),
            KeyRow(("c-o",), transcript),
            KeyRow(("c-t",), lambda event: self.show("/processes")),
            KeyRow(
                ("?",),
                lambda event: self.say(*key_help(self.screen.language)),
                lambda: self._line_is_empty() and not self.cards.takes_keys,
            ),
        ]

    def _keys_that_stop(self) -> list[KeyRow]:
        def escape(event: Any) -> None:
            if self._turn is not None:
                self.keep(self.stop())
            elif self._question is not None:
                if self._question.may_be_left and not self._question.answered.done():
                    event.current_buffer.reset()
                    self._question.answered.set_result("")
            elif self.cards.takes_keys:
                self._card_key("escape", event)
            elif self._line_is_empty():
                since, self._escaped_ms = _now_ms() - self._escaped_ms, _now_ms()
                if since < TWICE_MS:
                    self._escaped_ms = float("-inf")
                    self.keep(self._rewind())

        def clear_stop_leave(event: Any) -> None:
            if event.current_buffer.text:
                event.current_buffer.reset()
            elif self._turn is not None:
                self.keep(self.stop())
            else:
                event.app.exit(exception=EOFError)

        return [
            KeyRow(("escape",), escape),
            KeyRow(("c-c",), clear_stop_leave),
            KeyRow(("c-d",), lambda event: event.app.exit(exception=EOFError), self._line_is_empty),
        ]

    def _keys_of_cards(self) -> list[KeyRow]:
        def paste(event: Any) -> None:
            self.cards.keys.press("paste", _now_ms(), pasted=True)
            event.current_buffer.insert_text(event.data.replace("\r\n", "\n").replace("\r", "\n"))

        def card_takes() -> bool:
            waits = self.cards.takes_keys or self.cards.may_go_on
            return self._line_is_empty() and self._question is None and waits

        return [
            KeyRow(("<bracketed-paste>",), paste),
            KeyRow(("<any>",), lambda event: self._card_key(event.data, event), card_takes),
        ]

    def _line_is_empty(self) -> bool:
        return self._session is not None and not self._session.default_buffer.text

    def _card_key(self, data: str, event: Any) -> None:
        if data == "c" and self.cards.may_go_on and self.cards.keys.quiet(_now_ms()):
            self.begin(self.driver.go_on())
            return
        text = self.cards.press(data)
        if text:
            event.current_buffer.insert_text(text)


def _now_ms() -> float:
    return time.monotonic() * 1000
