"""Starting the inline chat: the session behind it, and the person it asks.

Owns: the driver the chat sees, the asker that puts questions to it, the exit code of a
chat. Does not own: keys and drawing (`surfaces.chat`, loaded by name: surfaces do not
import each other).
"""

from __future__ import annotations

import asyncio
import importlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from surefoot.core.model import Kind, Notice
from surefoot.errors import RecoveryRefused, UsageError
from surefoot.runtime.own_commands import OwnCommands
from surefoot.runtime.people import Answer, PermissionAnswer, PermissionQuestion, Question
from surefoot.runtime.permission import mode_of
from surefoot.surfaces import incident_card, notices, pictures, plain, view
from surefoot.surfaces.asking import permission_lines
from surefoot.surfaces.chat_lines import own_output, recovery_words
from surefoot.surfaces.cli import chat_shows, reading, running, survivors
from surefoot.surfaces.cli.guard import terminal_guard
from surefoot.surfaces.cli.naming import known_as, name_of
from surefoot.surfaces.cli.output import Look, complain
from surefoot.surfaces.cli.talk import Wish
from surefoot.surfaces.markup import diff_line
from surefoot.surfaces.phrases import translated
from surefoot.surfaces.port import LOOK_REQUESTS
from surefoot.surfaces.words import refusal, say
from surefoot.surfaces.words_chat import answer
from surefoot.tools.processes import kernel

PERMITS = {"1": "y", "2": "a", "3": "n"}
"""The answers to a permission question by the numbers of their choices, where those are told."""
SHOWN_FILE_BYTES = 1024 * 1024
LISTED = 10
LAST_ENTRIES = 200
LAST_LINES = 8
TAIL_LINES = 5
LOOK = """Look only, and change nothing: find out whether this call took effect.
{attempt} · {summary}
Use read-only tools; everything else is refused in this turn. Report what you found with the `recovery` tool, and name
in your answer, for each thing you say, the attempt id of the read that shows it. The person decides, not you."""
"""What the model is given when a person asks it to look."""


def columns_of(look: Look) -> int:
    """Where lines break now: at the edge of the terminal, unless the drawing leaves that to whoever reads it."""
    return look.drawing.columns or shutil.get_terminal_size((80, 24)).columns


def chat_run(wish: Wish) -> int:
    """Chat until the person leaves; the exit code."""
    with terminal_guard() as remember:
        return asyncio.run(_chat(wish, remember))


class _Person:
    """The asker of a chat. Silence, Stop and an empty line are never consent (TR-168)."""

    def __init__(self, look: Look) -> None:
        self.chat: Any = None
        self._look = look

    async def permission(self, question: PermissionQuestion) -> PermissionAnswer:
        look = self._look
        lines = permission_lines(
            asdict(question),
            look.language,
            columns=columns_of(look),
            read=_reader(Path(question.directory)),
            styled=diff_line if look.colour else str,
            drawing=look.drawing,
        )
        typed = (await self.chat.ask(lines, say("permit_hint", look.language))).strip()
        typed = PERMITS.get(typed, typed) if look.drawing.numbered else typed
        if typed.lower() in ("y", "yes"):
            return PermissionAnswer("approved", by="os_user")
        if typed.lower() in ("a", "always"):
            return PermissionAnswer("approved", scope="session", by="os_user")
        return PermissionAnswer("denied", by="os_user", words="" if typed.lower() in ("n", "no") else typed)

    async def question(self, question: Question) -> Answer:
        lines = [f"│ {part}" for part in view.clean(question.text, lines=True).split("\n")]
        lines += [f"  {number} {view.clean(choice)}" for number, choice in enumerate(question.choices, 1)]
        typed = (await self.chat.ask(lines, answer("answer_hint", self._look.language))).strip()
        if typed.isdigit() and 0 < int(typed) <= len(question.choices):
            typed = question.choices[int(typed) - 1]
        return Answer("answered" if typed else "expired", typed, by="os_user")


def _reader(directory: Path) -> Callable[[str], str | None]:
    """Reads a file for the diff of a question; what is large or no text is not shown."""

    def read(path: str) -> str | None:
        try:
            file = directory / path
            if file.is_file() and file.stat().st_size <= SHOWN_FILE_BYTES:
                return file.read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None
        return None

    return read


@dataclass(frozen=True, slots=True)
class _Deciding:
    """The keys of a card, as presses of the person at this chat."""

    desk: running.Desk

    async def act(self, action: str, call: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        return await self.desk.act(action, call, channel="chat", method="key")

    async def process(self, choice: str, call: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        return await self.desk.process(choice, call, channel="chat", method="key")

    async def incident(self) -> Mapping[str, Any] | None:
        """The protocol card while its incident may be acted on (PR-29)."""
        controller = self.desk.controller
        newest = None if controller is None else controller.incidents.records.newest
        if newest is None or newest.state != "pending" or controller.state != "idle":
            return None
        card: Mapping[str, Any] | None = await controller.incidents.card()
        return card if card is not None and card["offered"] else None

    def last_output(self, call: Mapping[str, Any]) -> list[str]:
        """The last lines a living process of a dead agent has written (UX-78)."""
        if not (call.get("process") or {}).get("choices"):
            return []
        return reading.last_lines(call, most=TAIL_LINES)


@dataclass(slots=True)
class _Driver:
    """The session as the chat sees it; before the first word there is none."""

    wish: Wish
    model: str
    mode: str
    opened: running.Opened

    @property
    def _controller(self) -> Any:
        """The session's controller, or None before the first word."""
        return self.opened.controller

    @property
    def _desk(self) -> running.Desk:
        """Reading and deciding in the session there is."""
        return running.Desk(self.opened.app, self._controller)

    async def _begun(self) -> Any:
        controller = await self.opened.begin()
        controller.people.mode = mode_of(self.mode)
        return controller

    @property
    def deciding(self) -> _Deciding:
        return _Deciding(self._desk)

    @property
    def session_id(self) -> str:
        return "" if self._controller is None else str(self._controller.session_id)

    def snapshot(self) -> Mapping[str, Any]:
        if self._controller is None:
            return {"calls": [], "background": list(self.opened.app.background())}
        return self._desk.snapshot()

    def still_ending(self) -> Mapping[str, float]:
        return dict(self.opened.app.still_ending())

    async def submit(self, text: str) -> Any:
        return await (await self._begun()).submit(text)

    def go_on(self, recovering: str | None = None) -> Coroutine[Any, Any, Any]:
        """Continue without words; with the rest of a `/recover-context` line, from valid history (PR-81).

        Which incident a line without an id means is settled here, when it was typed, and not when it is run.
        """
        if recovering is None or self._controller is None:
            return self._went_on()
        named, guidance = recovery_words(recovering)
        newest = self._controller.incidents.records.newest
        return self._recovered(named or (None if newest is None else newest.id or None), guidance)

    async def _went_on(self) -> Any:
        if self._controller is None:
            raise UsageError(say("nothing_said", self.wish.look.language), next_command="surefoot -c")
        return await self._desk.go_on()

    async def _recovered(self, named: str | None, guidance: str) -> Any:
        done = await self._controller.recover_context(named, guidance)
        if hasattr(done, "turn_id"):
            return done
        code, reason = str(done.body["code"]), done.body.get("reason")
        raise RecoveryRefused(refusal(code, self.wish.look.language, reason=reason), code=code, reason=reason)

    async def _own(self, command: str) -> list[str]:
        """Run a command of the person's own through the door of every call, and give what it said (UX-19)."""
        controller, language = await self._begun(), self.wish.look.language
        receipt = await OwnCommands(controller.session, controller.barrier, controller.actions).run(command)
        if receipt is None:
            return [answer("turn_runs", language)]
        text = str((receipt.result or {}).get("text", ""))
        if receipt.result_ref is not None:
            stored = await controller.session.ledger.get_blob(receipt.result_ref)
            text = stored.decode("utf-8", "replace")
        return own_output(text, language)

    async def ask_to_look(self, card: Mapping[str, Any]) -> Any:
        """A turn in which the model may only look, with a budget of its own (UX-116)."""
        controller = self._controller
        steps = controller.max_steps
        controller.people.looking, controller.max_steps = True, LOOK_REQUESTS
        try:
            return await controller.submit(LOOK.format(attempt=card["attemptId"], summary=card["summary"]))
        finally:
            controller.people.looking, controller.max_steps = False, steps

    async def stop(self) -> None:
        if self._controller is not None:
            await self._controller.stop()

    async def close(self) -> None:
        await self.opened.close()

    def take_parked(self) -> list[str]:
        if self._controller is None:
            return []
        parked = list(self._controller.parked)
        self._controller.parked.clear()
        return parked

    def set_mode(self, mode: str) -> None:
        self.mode = mode
        if self._controller is not None:
            self._controller.people.mode = mode_of(mode)

    async def command(self, word: str, rest: str) -> list[str]:
        """What a slash command that only shows something answers; `!` runs one of the person's own (UX-19)."""
        settings = self.wish.settings
        if word == "!":
            return await self._own(rest)
        if word == "/model":
            return [self.model, answer("other_model", self.wish.look.language)]
        if word == "/permissions":
            return self._permissions(rest)
        if word == "/mcp":
            names = ", ".join(sorted(settings.mcp_servers)) or "none"
            return [answer("mcp_servers", self.wish.look.language, names=names)]
        if word == "/resume":
            return await self._sessions()
        if word == "/doctor":
            from surefoot.surfaces.cli.doctor import lines

            return await asyncio.to_thread(lines)
        if word == "/processes":
            running_now = _background(self.snapshot()["background"], self.wish.look)
            return running_now or [answer("no_process", self.wish.look.language)]
        if word == "/diff":
            styled = diff_line if self.wish.look.colour else str
            return await chat_shows.diff_lines(self.wish.directory, self.wish.look.language, styled)
        if self._controller is None:
            return [say("nothing_said", self.wish.look.language)]
        return await self._of_session(word, rest)

    async def _of_session(self, word: str, rest: str) -> list[str]:
        """What a slash command shows of the session there is."""
        if word == "/recover-context":
            card = await self._controller.incidents.card()
            return [] if card is None else incident_card.lines(card, self.wish.look.language)
        if word == "/timeline":
            return await self._timeline()
        if word == "/usage":
            return await self._usage()
        if word == "/context":
            settings, directory = self.wish.settings, self.wish.directory
            return await chat_shows.context_lines(
                self._controller, settings, directory, self.wish.look.language
            )
        if word == "/export":
            settings, language = self.wish.settings, self.wish.look.language
            return await chat_shows.export_lines(settings, self.session_id, rest, language)
        if word == "/clear":
            return await self._anew()
        if word == "/compact":
            return await self._rewritten(self._controller.rewriting.compact())
        if word == "/rewind":
            return await self._rewritten(self._controller.rewriting.rewind(rest.strip() or None))
        return [translated(f"{word} shows nothing here", self.wish.look.language)]

    async def _timeline(self) -> list[str]:
        """The picture of this session, up to now (UX-132)."""
        look = self.wish.look
        run = await _picture(self._controller)
        columns = shutil.get_terminal_size((80, 24)).columns
        return pictures.timeline(
            run, look.language, look.drawing, columns=columns, ascii_only=look.ascii_only
        )

    async def _rewritten(self, work: Awaitable[Mapping[str, Any]]) -> list[str]:
        """What became of the model's view; the record of the session stays whole (TR-93, TR-95)."""
        done = await work
        code = done.get("code")
        if code is not None:
            known = str(code) if code in ("nothing_to_compact", "cancelled") else "not_now"
            return [answer(known, self.wish.look.language, code=code)]
        if "remaining" not in done:
            return []  # told by its notice
        rows = [f"{one['tool']} {', '.join(one['reach'])}" for one in done["remaining"]]
        left = [answer("remains", self.wish.look.language, what=row) for row in rows]
        return [answer("rewound", self.wish.look.language), *left]

    async def _anew(self) -> list[str]:
        """Give this session back and begin another; nothing of the old one is lost."""
        if self._controller.state != "idle":
            return [answer("turn_runs", self.wish.look.language)]
        old = await known_as(self._desk.app, self.session_id)
        await self.opened.leave()
        self.opened.wish = replace(self.wish, go_on=False, resume=None, fork=False, name=None)
        self.opened.resumed = False
        return [answer("begun_anew", self.wish.look.language, old=old)]

    async def _sessions(self) -> list[str]:
        """The newest sessions here, this one marked, and the command that opens another."""
        rows = sorted(await self._desk.app.sessions(), key=lambda row: -row.changed_ms)
        ids, now = [row.session_id for row in rows], int(time.time() * 1000)
        told = [
            [
                "*" if row.session_id == self.session_id else "",
                view.short_id(row.session_id, ids),
                view.age(now - row.changed_ms),
                view.clean(row.name or "-"),
            ]
            for row in rows[:LISTED]
        ]
        look = self.wish.look
        return [*look.drawing.table(told, (), look.language, None), answer("other_session", look.language)]

    def _permissions(self, mode: str) -> list[str]:
        from surefoot.settings_table import MODE_ALIASES, MODES

        mode = MODE_ALIASES.get(mode, mode)
        if mode in MODES:
            self.set_mode(mode)
        elif mode:
            return [answer("no_mode", self.wish.look.language, mode=mode, modes=", ".join(MODES))]
        rules = self.wish.settings.permissions
        return [
            answer("mode", self.wish.look.language, mode=self.mode),
            *(f"{kind} {rule}" for kind in ("deny", "ask", "allow") for rule in getattr(rules, kind)),
        ]

    async def _usage(self) -> list[str]:
        history = await self._controller.session.ledger.read(self.session_id)
        told = [entry.payload.get("usage") or {} for entry in history if str(entry.kind) == "assistant"]
        spent = {key: sum(one.get(key) or 0 for one in told) for key in ("inputTokens", "outputTokens")}
        given, made = spent["inputTokens"], spent["outputTokens"]
        return [answer("usage", self.wish.look.language, n=len(told), given=given, made=made)]


async def _chat(wish: Wish, remember: Callable[[str], None]) -> int:
    chat_module = importlib.import_module("surefoot.surfaces.chat")
    person = _Person(wish.look)

    early: list[Notice] = []

    def notice(seen: Notice) -> None:
        if person.chat is not None:
            remember(driver.session_id)
            person.chat.notice(seen.kind, seen.facts)
        elif seen.kind == "local_model":
            complain([translated(view.clean(seen.facts["text"]), wish.look.language)])
        elif seen.kind not in notices.DRAWN:
            early.append(seen)

    async with running.opened(wish, asker=person, on_notice=notice, later=True) as opened:
        driver = _Driver(wish, str(wish.settings.chosen()), wish.settings.permissions.mode, opened)
        screen = chat_module.Screen(
            language=wish.look.language,
            columns=lambda: columns_of(wish.look),
            ascii_only=wish.look.ascii_only,
            write=lambda line: print(line, flush=True),
            colour=wish.look.colour and not wish.look.drawing.still,
            drawing=wish.look.drawing,
        )

        async def earlier() -> list[tuple[str, str]]:
            """The turns of this session that can be gone back to, with their words, newest first."""
            return [] if opened.controller is None else await opened.controller.rewriting.points()

        chat = chat_module.Chat(driver, screen, earlier, first_prompt=wish.prompt)
        _greet(driver, wish)
        if not opened.resumed:
            _write(wish.look, _background(opened.app.background(), wish.look))
        else:
            chat.below_cards = await _tell_resumed(opened, running.Desk(opened.app, opened.controller), wish)
        person.chat = chat
        for told in early:
            notice(told)
        ended = _watch_signals(chat)
        await chat.run()
        snapshot = driver.snapshot()
        name = await known_as(opened.app, driver.session_id) if driver.session_id else None
    open_calls = running.undecided(dict(snapshot))
    if open_calls:
        complain([say("end_outcome_unknown", wish.look.language, n=len(open_calls))])
    complain([f"surefoot -r {name}"] if name else [])
    if ended:
        return 143
    return 3 if open_calls else 0


def _watch_signals(chat: Any) -> list[int]:
    """TERM and a closed terminal cancel the turn and leave; commands under supervision go on (UX-165)."""
    loop = asyncio.get_running_loop()
    seen: list[int] = []

    def leave(number: int) -> None:
        seen.append(number)
        chat.leave()

    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, leave, number)
    return seen


def _greet(driver: _Driver, wish: Wish) -> None:
    """One line that says who works where, and how freely."""
    look, home = wish.look, str(Path.home())
    place = str(wish.directory)
    place = "~" + place.removeprefix(home) if place.startswith(home + os.sep) else place
    facts = {"model": driver.model, "mode": driver.mode, "barrier": wish.settings.recovery.barrier}
    _write(look, look.drawing.facts(say("chat_opens", look.language, directory=view.clean(place), **facts)))
    _write(look, [say("chat_help", look.language)])


async def _tell_resumed(opened: running.Opened, desk: running.Desk, wish: Wish) -> tuple[str, ...]:
    """The timeline of UX-50 up to the person's Continue: the last exchange, then a line or the card.

    Gives the lines that stand below the card: what would run again, and how to go on.
    """
    look = wish.look
    facts = desk.resumed()
    name = await name_of(opened.app, opened.controller.session_id)
    lines = await _last_exchange(opened, look)
    deaths, limits = facts.get("ownerDeaths", 0), wish.settings.limits
    if deaths >= limits["owner_deaths"]:
        minutes = round(limits["owner_deaths_seconds"] / 60)
        lines.append(say("crash_loop", look.language, n=deaths, minutes=minutes))
        lines += view.death_lines(facts["deaths"], look.language)
    lines.append(view.resume_line(name, facts["settled"], facts["open"], look.language))
    run = await _end_of_picture(opened.controller)
    hidden, cells = pictures.strip_cells(run)
    strip = look.drawing.strip(cells, look.language, earlier=hidden, ascii_only=look.ascii_only)
    died = [fold.start_ms for fold in run.folds if fold.death]
    if strip:
        when = f"  {say('strip_died', look.language, time=view.local_time(died[-1]))}" if died else ""
        lines.append(strip + when)
    lines += _background(facts.get("background") or (), look)
    lines += survivors.lines(survivors.left_running(reading.places_of(wish.settings, every=False)), look)
    _write(look, lines)
    again = view.rerun_line(facts["willRunAgain"], look.language)
    asked = view.reask_line(facts["willAskAgain"], look.language)
    allowed = view.approved_line(facts["willRunApproved"], look.language)
    told = [line for line in (again, allowed, asked) if line]
    return (*told, say("how_to_go_on", look.language)) if told or facts["open"] else ()


async def _picture(controller: Any) -> pictures.Run:
    """What a picture of the session there is shows."""
    session = controller.session
    entries = await session.ledger.read(session.session_id)
    return pictures.run_of(session.session_id, entries, list(session.book))


async def _end_of_picture(controller: Any) -> pictures.Run:
    """What a strip shows of the session there is, read from its end: nobody waits for a long one to be drawn."""
    session = controller.session
    ids = session.book.ids()
    last = [receipt for receipt in map(session.book.get, ids[-pictures.CELLS :]) if receipt is not None]
    started = [receipt.started_position for receipt in last if receipt.started_position]
    first = min([*started, max(1, session.position - LAST_ENTRIES)])
    entries = await session.ledger.read(session.session_id, after=first - 1)
    run = pictures.run_of(session.session_id, entries, last)
    return replace(run, earlier=len(ids) - len(last))


def _background(resources: Sequence[Mapping[str, Any]], look: Look) -> list[str]:
    """What was left running in this project, whoever started it (UX-157)."""
    lines = view.background_lines(
        resources, look.language, boot_ms=kernel.boot_ms(), ascii_only=look.ascii_only
    )
    return [say("head_background", look.language), *lines] if lines else []


async def _last_exchange(opened: running.Opened, look: Look) -> list[str]:
    """The last words of the person and of the model, each bounded."""
    session = opened.controller.session
    after = max(0, session.position - LAST_ENTRIES)
    words: dict[str, str] = {}
    for entry in await session.ledger.read(session.session_id, after=after):
        if entry.kind in (Kind.USER, Kind.ASSISTANT) and entry.payload.get("text"):
            words[str(entry.kind)] = view.clean(entry.payload["text"], lines=True)
            if entry.kind == Kind.USER:
                words.pop(str(Kind.ASSISTANT), None)
    columns = max(30, columns_of(look) - 3)
    lines: list[str] = []
    for kind, sign in ((Kind.USER, "> "), (Kind.ASSISTANT, "│ ")):
        if kind in words:
            rows = plain.wrap(words[kind], columns)
            shown = rows if len(rows) <= LAST_LINES else ["…", *rows[1 - LAST_LINES :]]
            lines += [sign + row for row in shown]
    return lines


def _write(look: Look, lines: list[str]) -> None:
    for line in map(look.drawing.line, lines):
        sys.stdout.write((plain.only_ascii(line) if look.ascii_only else line) + "\n")
