"""The one place where the command line meets `app`: opening a session, and one turn in it.

Owns: waiting for a held session, what an unattended run does before its first request
(UX-36), how a turn's end becomes the facts of an exit code. Does not own: wiring (`app`),
printing (`printing`), the chat (`surfaces.chat`).
"""

from __future__ import annotations

import asyncio
import getpass
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from surefoot import __version__
from surefoot import app as wiring
from surefoot.config import Settings
from surefoot.core.model import Draft, Kind, Notice
from surefoot.errors import (
    ExtraMissing,
    LedgerError,
    ProviderCredentials,
    ProviderRefused,
    SessionHeld,
    SessionMissing,
    SurefootError,
    UsageError,
)
from surefoot.runtime.requests import Answer, Caller
from surefoot.surfaces import background
from surefoot.surfaces.cli.output import complain, is_person_here
from surefoot.surfaces.cli.talk import Wish
from surefoot.surfaces.cli.tongue import language_here
from surefoot.surfaces.phrases import translated
from surefoot.surfaces.verdict import Ending
from surefoot.surfaces.view import is_card, short_id, summary_of, with_summaries

HELD_AGAIN_SECONDS = 0.25


@dataclass(slots=True)
class Opened:
    """An app with its session. `controller` is None as long as nothing was said in a new session:
    a chat that is only opened leaves nothing behind. `resumed` is true when the session existed before."""

    app: Any
    wish: Wish
    controller: Any = None
    resumed: bool = False
    _control: Any = None
    _beginning: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def begin(self) -> Any:
        """The session of this run, made now if it is not there yet."""
        async with self._beginning:
            if self.controller is None:
                controller = await _session(self.app, self.wish)
                if self.wish.name and (self.wish.fork or not self.resumed):
                    named = Draft(Kind.SESSION_NAMED, {"name": self.wish.name[:80]})
                    await controller.session.append(named)
                if self.wish.max_turns is not None:
                    controller.max_steps = self.wish.max_turns
                self.controller = controller
                await self._listen()
        return self.controller

    async def leave(self) -> None:
        """Give the session back; one that is just being made is made first."""
        await self.close()
        self.controller = None

    async def close(self) -> None:
        """Close the session; it can still be read."""
        async with self._beginning:
            await self._unlisten()
            if self.controller is not None:
                await self.controller.close()

    async def _listen(self) -> None:
        """Let other terminals decide in this session (UX-118)."""
        from surefoot.surfaces.control import Control

        app, controller = self.app, self.controller
        self._control = Control(
            app.settings.places.runtime,
            controller.session_id,
            Desk(app, controller),
            lambda pid: app.descent_of(pid, controller.session),
            request_bytes=app.limits.action_body_bytes,
        )
        controller.subscribe(self._control.notice)
        await self._control.open()

    async def _unlisten(self) -> None:
        if self._control is not None:
            await self._control.close()
            self._control = None


@asynccontextmanager
async def opened(
    wish: Wish,
    *,
    asker: Any = None,
    on_notice: Callable[[Notice], None] | None = None,
    later: bool = False,
) -> AsyncIterator[Opened]:
    """Open the app and the session a command line means; close both at the end.

    `later` leaves a new session to `begin`. `on_notice` is told every notice of the session, those
    of its opening too, and the ends of background commands as long as this is open.
    """
    async with AsyncExitStack() as stack:
        if wish.log is not None and on_notice is not None:
            stack.callback(wish.log.close)
            on_notice = wish.log.hearing(on_notice)
        settings, parts = (wish.settings, None) if wish.kept else _unkept(wish, stack)
        app = await stack.enter_async_context(
            wiring.open_app(settings, directory=wish.directory, asker=asker, on_notice=on_notice, parts=parts)
        )
        made = Opened(app, wish, resumed=wish.go_on or wish.resume is not None)
        if later and not made.resumed:
            await app.ready()
        else:
            await made.begin()
        try:
            if on_notice is None:
                yield made  # nobody would draw it, so no end is taken from those who do
                return
            async with background.watched(app.folder, app.ledger, app.limits, on_notice):
                yield made
        finally:
            await made.leave()


def _unkept(wish: Wish, stack: AsyncExitStack) -> tuple[Settings, wiring.Parts]:
    """A ledger in memory, and for files of the moment a folder that goes with the run."""
    from surefoot.ledger.memory import MemoryLedger

    async def engine(folder: Path, **_: Any) -> MemoryLedger:
        return MemoryLedger()

    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="surefoot-"))
    places = replace(wish.settings.places, ledgers=Path(folder))
    places.ledger_folder(wish.directory).mkdir(parents=True, mode=0o700)
    return replace(wish.settings, places=places), wiring.Parts(engine=engine)


async def _session(app: Any, wish: Wish) -> Any:
    """The session, or a copy of it; waits for its holder as long as `--wait` says."""
    if wish.fork:  # a copy needs no ownership of what it copies, so nobody is waited for
        return await app.session(await app.fork(wish.resume or await _newest(app)))
    until = time.monotonic() + wish.wait_seconds
    while True:
        try:
            return await app.session(
                wish.resume or wish.session_id,
                new=not wish.go_on and wish.resume is None,
                continue_newest=wish.go_on or wish.resume == "",
            )
        except SessionHeld as held:
            if time.monotonic() >= until:
                if not wish.take_over:
                    raise
                _ask_to_take_over(app, held)
                return await app.session(str(held.facts["session_id"]), take_over=True)
            await asyncio.sleep(HELD_AGAIN_SECONDS)


async def _newest(app: Any) -> str:
    """The session changed last; that of `-c`."""
    rows = [row for row in await app.sessions() if row.status == "ok"]
    if not rows:
        raise SessionMissing("There is no session to copy in this project yet.", next_command='surefoot "…"')
    return str(await app.newest(rows))


def _ask_to_take_over(app: Any, held: SessionHeld) -> None:
    """A take-over is a person's word at a terminal: the session's short id is typed (UX-51).

    Asked only while the holder lives; an owner proven dead is followed without a word. Raises when it is not given.
    """
    app.check_take_over()
    if not is_person_here():
        raise UsageError("--take-over is decided by a person at a terminal.")
    import click

    wanted, language = short_id(str(held.facts["session_id"])), language_here()
    complain(
        [
            translated(held.message, language),
            translated("Every call it is running will count as one that may have happened.", language),
        ]
    )
    question = translated(f"Type {wanted} to take it over", language)
    typed = click.prompt(question, default="", show_default=False, err=True)
    if typed.strip() != wanted:
        raise held


@dataclass(slots=True)
class Desk:
    """Reading and deciding in an owned session, as a person at this terminal."""

    app: Any
    controller: Any
    _about: str | None = None

    async def refresh(self, attempt: str | None = None) -> None:
        """Nothing to fetch: this process owns the session. The call of `attempt` is shown from now in any case."""
        self._about = attempt

    def snapshot(self, named: str | None = None) -> dict[str, Any]:
        """The snapshot, with the line that names each call; the `named` one is in it, however many there are."""
        book = self.controller.session.book
        value = self.controller.actions.snapshot(named=named or self._about)
        return with_summaries(value, self._receipts(value, book))

    def _receipts(self, value: dict[str, Any], book: Any) -> dict[str, Any]:
        found = {call["attemptId"]: book.get(call["attemptId"]) for call in value["calls"]}
        return {attempt: receipt.to_json() for attempt, receipt in found.items() if receipt is not None}

    async def act(
        self,
        action: str,
        call: Mapping[str, Any],
        *,
        note: str | None = None,
        channel: str = "cli",
        method: str = "command",
    ) -> tuple[int, dict[str, Any]]:
        """Press once."""
        request = self._request(call)
        request["inspectionId"] = None if action == "inspect" else call.get("inspectionId")
        answer = await self.press({**request, "action": action, "note": note}, caller_here(channel, method))
        return answer.status, dict(answer.body)

    def _request(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """What names a call as it was on screen (UX-86)."""
        now = self.controller.actions.snapshot(named=str(call["attemptId"]))
        revision = call.get("revision") or now["revision"]
        return {
            "sessionPath": now["sessionPath"],
            "runtimeEpoch": now["runtimeEpoch"],
            "revision": revision,
            "attemptId": call["attemptId"],
        }

    async def process(
        self, choice: str, call: Mapping[str, Any], *, channel: str = "cli", method: str = "command"
    ) -> tuple[int, dict[str, Any]]:
        """Adopt, kill or leave what a call left running."""
        request = {**self._request(call), "choice": choice}
        answer = await self.choose(request, caller_here(channel, method))
        if answer.status == 200 and choice == "adopt":
            await self.controller.actions.choices.ended(call["attemptId"])
            attempt = str(request["attemptId"])
            shown = self.snapshot(attempt)
            now: Mapping[str, Any] = next((one for one in shown["calls"] if one["attemptId"] == attempt), {})
            told = {
                **answer.body["process"],
                "settled": not self.controller.session.book.is_open(attempt),
                "running": bool((now.get("process") or {}).get("choices")),
            }
            answer = Answer(200, {**shown, "process": told})
        return answer.status, dict(answer.body)

    async def settled(self, attempt: str) -> None:
        """Wait until a retry of this attempt has settled."""
        for one in list(self.controller.actions.retrying.running):
            await self.controller.actions.retrying.settled(one)

    async def press(self, request: Mapping[str, Any], caller: Caller) -> Answer:
        """One action, with the lines that name each call in its answer."""
        return self._named(await self.controller.actions.act(request, caller))

    async def choose(self, request: Mapping[str, Any], caller: Caller) -> Answer:
        """One choice about a process, answered alike."""
        return self._named(await self.controller.actions.process(request, caller))

    def _named(self, answer: Answer) -> Answer:
        if answer.status != 200:
            return answer
        body = dict(answer.body)
        return Answer(200, with_summaries(body, self._receipts(body, self.controller.session.book)))

    def resumed(self) -> dict[str, Any]:
        """What stands before a person continues: counts, what would run again (UX-50)."""
        facts = dict(self.controller.resume())
        opened = [call for call in self.snapshot()["calls"] if is_card(call)]
        book = self.controller.session.book
        again = [book.get(one["attemptId"]) for one in facts["willRunAgain"]]
        return {
            **facts,
            "open": len(opened),
            "willRunAgain": [_again(receipt) for receipt in again if receipt is not None],
            "deaths": [{**one, "calls": self._calls(one["attempts"])} for one in facts["deaths"]],
        }

    def _calls(self, attempts: Iterable[str]) -> list[dict[str, Any]]:
        """What these attempts did, of those that began."""
        found = [self.controller.session.book.get(one) for one in attempts]
        return [
            _again(receipt) for receipt in found if receipt is not None and receipt.started_at is not None
        ]

    async def go_on(self) -> Any:
        """A person's Continue: far looks, safe retries, then the model (UX-50)."""
        return await self.controller.go_on()


def _again(receipt: Any) -> dict[str, Any]:
    return {
        "attemptId": receipt.attempt_id,
        "tool": receipt.tool,
        "summary": summary_of(receipt.to_json()),
        "reach": list(receipt.reach),
        "startedAt": receipt.started_at,
    }


CLIENT = f"surefoot {__version__}"


def caller_here(channel: str, method: str) -> Caller:
    """Who presses at this terminal; whether that is a person is judged where it is recorded (UX-119)."""
    return Caller(who=getpass.getuser(), channel=channel, method=method, client=CLIENT)


class _NoModel:
    """Stands where a decision needs a session and no model: no key is asked for, no request can leave."""

    wire = "chat"
    batch_split = False

    async def complete(self, messages: Any, on_delta: Any) -> Any:
        raise UsageError("This command asks no model.")

    def wait_seconds(self, error: Any, tries: int) -> float | None:
        return None


@asynccontextmanager
async def owned(
    settings: Settings, directory: Path, session_id: str, *, asker: Any = None
) -> AsyncIterator[Desk]:
    """Own an idle session for one decision: reconcile, act, give it back; no tool runs but a retry (TR-151)."""
    parts = wiring.Parts(model=_NoModel())
    async with wiring.open_app(settings, directory=directory, asker=asker, parts=parts) as app:
        controller = await app.session(session_id)
        try:
            yield Desk(app, controller)
        finally:
            await controller.close()


def undecided(snapshot: dict[str, Any]) -> list[dict[str, Any]]:
    """Open writes nobody has decided: these alone make exit code 3 (UX-34, UX-162)."""
    return [
        call for call in snapshot.get("calls") or () if is_card(call) and "rejected" not in call["overlays"]
    ]


def judged(end: Any) -> Ending:
    """The facts of an ending that a turn's end tells by itself."""
    status, reason, error = str(end.status), end.reason or "", getattr(end, "error", None)
    if status in ("completed", "cancelled"):
        return Ending(interrupted=status == "cancelled", reason=reason)
    if error is not None:
        return of_error(error)
    return Ending(failed=reason != "iteration_limit", turn_limit=reason == "iteration_limit", reason=reason)


def of_error(error: SurefootError) -> Ending:
    """The facts of an ending by an exception."""
    told = error.message
    if isinstance(error, ProviderCredentials):
        return Ending(credentials=True, reason=told)
    if isinstance(error, ProviderRefused):
        replay = bool(error.facts.get("replay") or error.facts.get("history"))
        return Ending(history_refused=replay, failed=not replay, reason=told)
    if isinstance(error, SessionHeld):
        return Ending(session_held=True, reason=told)
    if isinstance(error, UsageError | ExtraMissing):
        return Ending(usage=True, reason=told)
    if isinstance(error, LedgerError):
        return Ending(failed=True, reason=told)
    return Ending(failed=True, reason=told)
