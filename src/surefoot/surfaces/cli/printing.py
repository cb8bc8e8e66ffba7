"""Print mode: one prompt to the end, in text, json or stream-json, without a question.

Owns: which lines are printed when (UX-29, UX-30), signals and the time limit of a run,
the last line on standard error. Does not own: the documents (`verdict`), the run
(`running`).
"""

from __future__ import annotations

import asyncio
import shlex
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from surefoot import __version__
from surefoot.core.model import Notice
from surefoot.core.turns import StopCause
from surefoot.errors import SessionHeld, SurefootError, UsageError
from surefoot.runtime.permission import EDITS
from surefoot.surfaces import incident_card, notices, plain, verdict, view
from surefoot.surfaces.cli import conversing, reading, running, survivors
from surefoot.surfaces.cli.naming import name_of
from surefoot.surfaces.cli.output import complain, forget_output, say_json, say_lines
from surefoot.surfaces.cli.run_inputs import write_last
from surefoot.surfaces.cli.talk import Wish
from surefoot.surfaces.phrases import translated
from surefoot.surfaces.ways import next_of
from surefoot.surfaces.words import say
from surefoot.tools.processes import kernel

CODES = {
    "during_execution": "SF-ERROR",
    "outcome_unknown": "SF-OUTCOME-UNKNOWN",
    "credentials": "SF-PROVIDER-CREDENTIALS",
    "provider_refused": "SF-PROVIDER-REFUSED",
    "session_held": "SF-SESSION-HELD",
}
"""The code of a failure that no exception tells, by subtype; a limit or a signal is none."""
CAPABILITIES = ("receipts", "resume", "outcome_unknown")


def print_run(wish: Wish) -> int:
    """Run one prompt; the exit code."""
    return asyncio.run(_Run(wish).whole())


@dataclass(slots=True)
class _Run:
    wish: Wish
    ending: verdict.Ending = field(default_factory=verdict.Ending)
    tally: verdict.Tally = field(default_factory=verdict.Tally)
    controller: Any = None
    _began: float = 0.0
    _answered: dict[str, Any] | None = None
    """The document of a turn that another message may follow; None while a turn is on."""
    _signal: int | None = None
    _timed_out: bool = False
    _reader_gone: bool = False
    _stopping: Any = None
    _error: SurefootError | None = None
    _asked_at: float | None = None
    """When the small model was first asked; None once its first words were told."""
    _name: str | None = None
    """How people name the session: its name, or its short id."""
    _told: dict[str, str] = field(default_factory=dict)
    _incoming: conversing.Incoming | None = None
    _until: float | None = None
    """When `--timeout` ends this run, by the monotonic clock."""
    _halted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when no message more is to be waited for."""
    _early: list[Notice] | None = field(default_factory=list)
    """Notices of the opening; None once the first line is printed."""

    async def whole(self) -> int:
        self._began = time.monotonic()
        self._watch_signals()
        try:
            await self._session()
        except SurefootError as error:
            self.ending = running.of_error(error)
            self._error = error
            if isinstance(error, SessionHeld):  # it is there, only not ours
                self.tally.session_id, self.tally.on_disk = str(error.facts["session_id"]), True
        except BrokenPipeError:
            self._reader_gone = True
        self._add_what_happened_outside()
        self.tally.duration_ms = round((time.monotonic() - self._began) * 1000)
        return self._finish()

    def _watch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._interrupt, number)

    def _interrupt(self, number: int) -> None:
        """State is written first; the second press of the same key changes nothing."""
        self._signal = self._signal or number
        self._stop()

    def _stop(self) -> None:
        self._halted.set()
        if self.controller is None:
            task = asyncio.current_task()
            if task is not None:
                task.cancel()
        elif self._stopping is None:
            # A terminated run leaves supervised commands running and listed; an interrupted one ends them.
            leaving = self._signal in (signal.SIGTERM, signal.SIGHUP)
            end = self.controller.close if leaving else self.controller.stop
            work = end(self._cause())
            self._stopping = asyncio.ensure_future(work)

    def _cause(self) -> StopCause:
        if self._signal is not None:
            return StopCause.PERSON if self._signal == signal.SIGINT else StopCause.TERMINATED
        return StopCause.TIME_LIMIT if self._timed_out else StopCause.READER_GONE

    async def _session(self) -> None:
        wish = self.wish
        if wish.conversing:
            self._set_limit()
            said = wish.look.language
            self._incoming = conversing.Incoming(lambda line: complain([translated(line, said)]))
        prompt = wish.prompt if wish.prompt.strip() or not wish.conversing else await self._next()
        if prompt is None:
            if not self._halted.is_set():
                raise UsageError("There is no prompt: give one as an argument or on standard input.")
            return
        async with running.opened(wish, on_notice=self._notice) as opened:
            self.controller = opened.controller
            self._name = await name_of(opened.app, opened.controller.session_id)
            self.tally.session_id = opened.controller.session_id
            self.tally.on_disk = self.wish.kept
            self._line(self._init(opened.controller))
            early, self._early = self._early or [], None
            for notice in early:
                self._notice(notice)
            if self._until is None:
                self._set_limit()
            if self._signal is None and await self._may_begin(opened):
                await self._turns(opened, prompt)
            if self._stopping is not None:
                await self._stopping
            if self.ending.history_refused:
                self._tell_refusal(await opened.controller.incidents.card() or {})
            if self._answered is None:
                self._look_at_the_end(running.Desk(opened.app, opened.controller).snapshot())

    async def _may_begin(self, opened: running.Opened) -> bool:
        """With an undecided call, `on_unknown = "stop"` asks no model (UX-36)."""
        if not opened.resumed:
            return True
        desk = running.Desk(opened.app, opened.controller)
        recovery = self.wish.settings.recovery
        resumed = desk.resumed()
        self._line(verdict.resume_document(resumed, self.tally.session_id or ""))
        self._say_resumed(resumed)
        if resumed["ownerDeaths"] >= self.wish.settings.limits["owner_deaths"]:
            self._say_crash_loop(resumed["deaths"])
            return False
        await opened.controller.actions.look(far=True)
        await opened.controller.actions.retry_by_policy()
        if running.undecided(desk.snapshot()) and recovery.on_unknown == "stop":
            return False
        await opened.controller.actions.carry_out()
        return True

    def _say_crash_loop(self, deaths: Sequence[Mapping[str, Any]]) -> None:
        """Its owners died again and again: nothing runs unattended, and each death is told (UX-161)."""
        minutes = round(self.wish.settings.limits["owner_deaths_seconds"] / 60)
        language = self.wish.look.language
        told = say("crash_loop", language, n=len(deaths), minutes=minutes)
        self.ending = replace(self.ending, question_unanswered=True, reason=told)
        complain([told, *view.death_lines(deaths, language)])

    def _say_resumed(self, resumed: dict[str, Any]) -> None:
        """The lines of a resume are printed before anything goes on (UX-50)."""
        look = self.wish.look
        name = self._name or ""
        lines = [view.resume_line(name, resumed["settled"], resumed["open"], look.language)]
        again = view.rerun_line(resumed["willRunAgain"], look.language)
        allowed = view.approved_line(resumed.get("willRunApproved") or (), look.language)
        complain([*lines, *(line for line in (again, allowed) if line)])
        self._say_background(resumed.get("background") or ())
        complain(
            survivors.lines(survivors.left_running(reading.places_of(self.wish.settings, every=False)), look)
        )

    async def _turns(self, opened: running.Opened, prompt: str | None) -> None:
        """The turn of the prompt; then one for each message of standard input, as long as it is open."""
        controller, wish = opened.controller, self.wish
        while prompt is not None:
            await self._turn(controller, prompt)
            await self._fit_form(controller)
            if not wish.conversing or self._halted.is_set():
                return
            self._look_at_the_end(running.Desk(opened.app, controller).snapshot())
            self.tally.duration_ms = round((time.monotonic() - self._began) * 1000)
            self._answered = verdict.result_document(self.ending, self.tally)
            self._line(self._answered)
            if self.tally.unknown_outcomes and wish.settings.recovery.on_unknown == "stop":
                return  # no request more until somebody decided (UX-36)
            prompt = await self._next()

    async def _next(self) -> str | None:
        """The words of the next message; None at their end, or when the run is to end."""
        if self._incoming is None:
            return None
        coming = asyncio.ensure_future(self._incoming.next())
        halted = asyncio.ensure_future(self._halted.wait())
        done, _ = await asyncio.wait(
            {coming, halted}, timeout=self._left(), return_when=asyncio.FIRST_COMPLETED
        )
        if not done:
            self._timed_out = True
            self._halted.set()
            if self.controller is not None:
                self._stop()
        for task in (coming, halted):
            task.cancel()
        return coming.result() if coming in done and not self._halted.is_set() else None

    def _set_limit(self) -> None:
        limit = self.wish.timeout_seconds
        self._until = None if limit is None else time.monotonic() + limit

    def _left(self) -> float | None:
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    async def _fit_form(self, controller: Any) -> None:
        """Hold the final answer against `--json-schema`; the model is asked once more, and then it counts (UX-37)."""
        form = self.wish.form
        if form is None:
            return
        for again in (True, False):
            if verdict.exit_code(self.ending) or self._halted.is_set():
                return
            judged = form.judge(self.tally.text)
            if not judged.faults:
                self.tally.text = judged.text()
                self.tally.structured = {"structured_output": judged.value}
                return
            if again:
                before = self.tally.num_turns
                await self._turn(controller, form.again(judged))
                self.tally.num_turns += before
        faults = "; ".join(judged.faults)
        self.tally.text, self._error = (
            "",
            SurefootError(f"The final answer does not fit the JSON schema: {faults}."),
        )
        self.ending = replace(self.ending, failed=True, reason=self._error.message)

    async def _turn(self, controller: Any, prompt: str) -> None:
        self._answered, self.tally.structured = None, {}
        work = controller.submit(prompt) if prompt.strip() else controller.go_on()
        task = asyncio.ensure_future(work)
        if self.wish.output == "text" and self.wish.settings.chosen().endpoint.embedded:
            self._asked_at = time.monotonic()
            complain([say("small_model_reads", self.wish.look.language)])
        done, _ = await asyncio.wait({task}, timeout=self._left())
        if not done:
            self._timed_out = True
            self._stop()
        end = await task
        # A question that nobody could be asked stays a fact of this run, however its turn went on (UX-34).
        self.ending = replace(running.judged(end), question_unanswered=self.ending.question_unanswered)
        self._error = end.error
        self.tally.text = end.text
        self.tally.turn_id = end.turn_id or None  # words that a hook held back began no turn
        self.tally.num_turns = end.steps
        self.tally.usage = {
            "input_tokens": end.usage.input_tokens,
            "output_tokens": end.usage.output_tokens,
        }

    def _look_at_the_end(self, snapshot: dict[str, Any]) -> None:
        look = self.wish.look
        people = getattr(self.controller, "people", None)
        self.tally.permission_denials = list(people.denials) if people is not None else []
        self._say_how_to_allow()
        open_calls = running.undecided(snapshot)
        stopped = self.wish.settings.recovery.on_unknown == "stop"  # with `continue` the run went on (UX-64)
        cards = [view.card(call, snapshot, look.language, stopped=stopped) for call in open_calls]
        self.tally.unknown_outcomes = cards
        self.tally.background = list(snapshot.get("background") or ())
        if cards:
            self.ending = replace(self.ending, unknown_undecided=True)
        for index, card in enumerate(cards, start=1):
            self._line(verdict.unknown_document(card, self.tally.session_id or ""))
            numbers = (index, len(cards))
            complain(
                look.drawing.card(
                    card, look.language, columns=min(look.columns, 80), number=numbers,
                    ascii_only=look.ascii_only, how=plain.Choices.NONE,
                )
            )  # fmt: skip
        self._say_background(self.tally.background)

    def _say_background(self, resources: Sequence[Mapping[str, Any]]) -> None:
        """What goes on without this run is named, so that nobody has to look for it (UX-157)."""
        look = self.wish.look
        lines = view.background_lines(
            resources, look.language, boot_ms=kernel.boot_ms(), ascii_only=look.ascii_only
        )
        complain([say("head_background", look.language), *lines] if lines else [])

    def _tell_refusal(self, card: Mapping[str, Any]) -> None:
        """The protocol card: what was refused, what may be recovered, what else can be done (UX-129)."""
        self.tally.incident = incident_card.as_data(card)
        head = {"type": "system", "subtype": "provider_refused", "session_id": self.tally.session_id}
        self._line({**head, **self.tally.incident, "position": None})
        complain(incident_card.lines(card, self.wish.look.language))

    def _say_how_to_allow(self) -> None:
        """One line for all calls that nobody could be asked about (UX-43)."""
        asked = [one for one in self.tally.permission_denials if one.get("by") == "nobody"]
        if not asked:
            return
        names = list(dict.fromkeys(str(one.get("rule") or one["tool"]) for one in asked))
        flags = f"--allowed-tools {','.join(names)}"
        if set(names) <= EDITS:
            flags += " / --permission-mode acceptEdits"
        tools = ", ".join(dict.fromkeys(view.clean(one["tool"]) for one in asked))
        complain([say("nobody_allowed", self.wish.look.language, tools=tools, flags=flags)])

    def _add_what_happened_outside(self) -> None:
        number = self._signal
        self.ending = replace(
            self.ending,
            reader_gone=self._reader_gone,
            interrupted=number == signal.SIGINT,
            terminated=number in (signal.SIGTERM, signal.SIGHUP),
            timed_out=self._timed_out,
        )

    # Lines ------------------------------------------------------------------------------------

    def _init(self, controller: Any) -> dict[str, Any]:
        settings = self.wish.settings
        chosen, registry = settings.chosen(), controller.barrier.registry
        return {
            "type": "system",
            "subtype": "init",
            "session_id": self.tally.session_id,
            "model": chosen.model,
            "endpoint": chosen.endpoint.name,
            "cwd": str(self.wish.directory),
            "tools": list(filter(controller.people.offered_of(registry), registry.names())),
            "mcp_servers": [],
            "permission_mode": settings.permissions.mode,
            "barrier": settings.recovery.barrier,
            "capabilities": list(CAPABILITIES),
            "schema_version": verdict.SCHEMA_VERSION,
            "surefoot_version": __version__,
            "position": None,
        }

    def _notice(self, notice: Notice) -> None:
        """A subscriber only draws and never raises: a reader that went away stops the run instead.

        What is told before the first line of the run waits for it; the small model is started before.
        """
        if self._early is not None and notice.kind != "local_model":
            if notice.kind not in notices.DRAWN:
                self._early.append(notice)
            return
        try:
            self._tell(notice)
        except BrokenPipeError:
            self._reader_gone = True
            self._stop()

    def _tell(self, notice: Notice) -> None:
        session = self.tally.session_id or ""
        facts = dict(notice.facts)
        facts["ledgerPosition"] = facts.get("position")
        if notice.kind in ("text", "assistant") and self._asked_at is not None:
            seconds = round(time.monotonic() - self._asked_at)
            self._asked_at = None
            complain([say("small_model_began", self.wish.look.language, seconds=seconds)])
        if notice.kind == "text" and self.wish.partial:
            self._line(verdict.fragment_line(facts, session))
        if notice.kind == "discard" and self.wish.partial:
            self._line(verdict.discard_line(facts, session))
        if notice.kind == "assistant":
            self._line(verdict.assistant_line(facts, session))
        elif notice.kind == "receipt":
            self._receipt(facts, session)
        elif notice.kind == "answer" and facts.get("verdict") == "unattended":
            self.ending = replace(self.ending, question_unanswered=True)
        elif notice.kind == "local_model":
            complain([translated(view.clean(notice.facts["text"]), self.wish.look.language)])
        else:
            self._say_notice(notice)

    def _receipt(self, facts: dict[str, Any], session: str) -> None:
        """One line per change of state; a process record alone changes nothing that is told."""
        receipt = facts["receipt"].to_json()
        told = {**receipt, "ledgerPosition": facts["ledgerPosition"], "position": None}
        attempt, state = str(receipt["attemptId"]), str(receipt["state"])
        if self._told.get(attempt) == state:
            return
        self._told[attempt] = state
        self._line(verdict.receipt_line(told, session))
        if state in ("succeeded", "failed", "not_started", "unknown"):
            self._line(verdict.result_line({**told, **verdict.given(facts["receipt"])}, session))
        if self.wish.verbose:
            look = self.wish.look
            complain([view.receipt_line(receipt, look.language, ascii_only=look.ascii_only)])

    def _say_notice(self, notice: Notice) -> None:
        look = self.wish.look
        if notice.kind == "model_wait":
            told: str | None = view.wait_line(notice.facts, look.language)
        else:
            told = notices.line(notice.kind, notice.facts, look.language, ascii_only=look.ascii_only)
        complain([told] if told else [])

    def _line(self, document: dict[str, Any]) -> None:
        if self.wish.output == "stream-json" and not self._reader_gone:
            say_json(document)

    def _finish(self) -> int:
        if not self._reader_gone:
            try:
                self._last_lines()
            except BrokenPipeError:
                self.ending = replace(self.ending, reader_gone=True)
        if self.ending.reader_gone:
            forget_output()
        return verdict.exit_code(self.ending)

    def _last_lines(self) -> None:
        document = verdict.result_document(self.ending, self.tally)
        if self.wish.last_message is not None and self.tally.text:
            write_last(self.wish.last_message, self.tally.text)
        if self.wish.output == "text":
            if self.tally.text:
                say_lines([self.tally.text])
        elif self._answered is None or {**document, "duration_ms": 0} != {**self._answered, "duration_ms": 0}:
            say_json(document)
        if document["exit_code"]:
            complain([self._why(document)])

    def _why(self, document: dict[str, Any]) -> str:
        """One last line: its code, why, and the next command (UX-9, UX-29)."""
        language = self.wish.look.language
        key = str(document["subtype"]).removeprefix("error_")
        cards = self.tally.unknown_outcomes
        error = None if cards else self._error
        if error is not None:
            told = view.clean(translated(error.message, language))
            why = f"{error.facts.get('code') or error.code}: {told}"
        else:
            reason = notices.why_ended(self.ending.reason or key, language)
            told = say(f"end_{key}", language, reason=reason, n=len(cards))
            why = f"{CODES[key]}: {told}" if key in CODES else told
        command = cards[0]["command"] if cards else self._way_on(document)
        why += "" if why.endswith((".", "?", "!", "。")) else "."
        return why + (" " + say("end_next", language, command=command) if command else "")

    def _way_on(self, document: dict[str, Any]) -> str | None:
        """A turn that ended is gone on with; before that, the error itself knows the way."""
        if document["resume_command"] and (self.tally.turn_id or self._error is None):
            return f"surefoot -r {shlex.quote(self._name or '')}"
        return None if self._error is None else next_of(self._error)
