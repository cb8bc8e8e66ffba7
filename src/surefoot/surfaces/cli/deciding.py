"""One decision from the command line: what it asks for, where it goes, how it is told.

Owns: what a verb needs on a terminal and without one (UX-77), handing it to a live owner or
taking an idle session for it (TR-151), the exit codes of TR-150. Does not own: the verbs
(`recover`), the rules (`core.admission`), the record (`runtime.actions`).
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import click

from surefoot.errors import SessionHeld
from surefoot.ledger.port import SessionRow
from surefoot.surfaces import plain, view
from surefoot.surfaces.cli import reading
from surefoot.surfaces.cli.output import (
    Look,
    complain,
    confirmed,
    is_person_here,
    look_here,
    say_json,
    say_lines,
    show_lines,
)
from surefoot.surfaces.cli.tongue import language_here
from surefoot.surfaces.phrases import translated
from surefoot.surfaces.words import refusal, say
from surefoot.surfaces.words_chat import why_asked

OPEN, REFUSED, UNSUPPORTED = 3, 4, 5
ONE_OWNER_SECONDS, MOST_WAIT_SECONDS = 5.0, 30.0
"""How long a command waits for one owner without a socket, and for a row of them."""
RECORDED_AS = {"confirm": "confirmed", "deny": "denied", "reject": "rejected", "release": "released"}


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line brings for a decision."""

    inspection: str | None = None
    note: str | None = None
    yes: bool = False
    code: str | None = None
    as_json: bool = False
    session: str | None = None
    """The call is looked for in this session only."""


def call_of(snapshot: Mapping[str, Any], attempt_id: str) -> dict[str, Any] | None:
    """One call of a snapshot."""
    return next((dict(c) for c in snapshot["calls"] if c["attemptId"] == attempt_id), None)


def draw(call: Mapping[str, Any], snapshot: Mapping[str, Any], look: Look, *, to_output: bool) -> None:
    """Print the card of a call."""
    made = view.card(call, snapshot, look.language)
    columns = min(look.columns, 80)
    how = plain.Choices.WORDS  # a command's question takes words, not keys (UX-77)
    lines = look.drawing.card(made, look.language, columns=columns, ascii_only=look.ascii_only, how=how)
    if made.get("arguments"):
        named = translated("arguments:", look.language)
        lines.append(f"{named} {view.clean(made['arguments'])}")
    (show_lines if to_output else complain)(lines)


def press(verb: str, references: Sequence[str], given: Given) -> int:
    """Carry out one verb on each call in turn; the first refusal ends it."""
    import asyncio  # lists and cards start without it

    for reference in references:
        code = asyncio.run(_press_one(verb, reference, given))
        if code:
            return code
    return 0


def choose(reference: str, choice: str, given: Given) -> int:
    """Adopt, kill or leave what a call left running."""
    import asyncio  # lists and cards start without it

    return asyncio.run(_choose_one(reference, choice, given))


async def _press_one(verb: str, reference: str, given: Given) -> int:
    settings = reading.settings_here()
    look = look_here(settings)
    place, row, receipt = await reading.find_attempt(settings, reference, given.session)
    try:
        async with _desk(settings, place, row, asks=verb == "retry") as desk:
            return await _decide(desk, verb, receipt.attempt_id, given, look)
    except SessionHeld as held:
        return _refuse({"code": "not_owner", "detail": held.message}, given, look)


async def _choose_one(reference: str, choice: str, given: Given) -> int:
    settings = reading.settings_here()
    look = look_here(settings)
    place, row, receipt = await reading.find_attempt(settings, reference, given.session)
    try:
        async with _desk(settings, place, row) as desk:
            await desk.refresh(receipt.attempt_id)
            call = call_of(desk.snapshot(), receipt.attempt_id) or {"attemptId": receipt.attempt_id}
            status, body = await desk.process(choice, call)
    except SessionHeld as held:
        return _refuse({"code": "not_owner", "detail": held.message}, given, look)
    if status != 200:
        return _refuse(body, given, look)
    return _tell_process(body, receipt.attempt_id, given, look, followed=isinstance(desk, Distant))


def _tell_process(
    snapshot: Mapping[str, Any], attempt: str, given: Given, look: Look, *, followed: bool
) -> int:
    """A kill that did not prove its end says so, and is no success."""
    made = snapshot["process"]
    if given.as_json:
        say_json(view.with_cards(snapshot, look.language))
    else:
        say_lines([view.process_line(made, attempt, look.language, followed=followed)])
        _show_done(snapshot, attempt, given, look)
    return 0 if made.get("gone", True) else 1


# Where the decision goes --------------------------------------------------------------------------


@asynccontextmanager
async def _desk(
    settings: Any, place: reading.Place, row: SessionRow, *, asks: bool = False
) -> AsyncIterator[Any]:
    """The session itself when nobody owns it, else its live owner. Raises `SessionHeld` when that one cannot be
    reached."""
    # Loaded here: lists and cards need neither tools nor a supervisor.
    from surefoot.surfaces.cli import running

    directory = reading.directory_of(place, row)
    async with AsyncExitStack() as stack:
        asker = _Terminal() if asks and is_person_here() else None

        async def reach() -> Any:
            try:
                return await stack.enter_async_context(
                    running.owned(settings, directory, row.session_id, asker=asker)
                )
            except SessionHeld as held:
                return await _distant(stack, settings, row.session_id, held)

        yield await _patiently(reach)


async def _patiently(reach: Callable[[], Awaitable[Any]]) -> Any:
    """Try again while the session passes from one short owner to the next: another press of the same moment, which
    has no socket, is waited for, so that this one is judged by the record it made (TR-131). An owner that stays is
    `SessionHeld`."""
    import asyncio  # lists and cards start without it

    clock = asyncio.get_running_loop().time
    end, holder, until = clock() + MOST_WAIT_SECONDS, None, 0.0
    while True:
        try:
            return await reach()
        except SessionHeld as held:
            if held.__cause__ is not None:
                raise  # it has a socket and does not answer: that is no short owner
            now, found = clock(), (held.facts.get("pid"), held.facts.get("since"))
            if found != holder:
                holder, until = found, min(end, now + ONE_OWNER_SECONDS)
            if now >= until:
                raise
        await asyncio.sleep(0.05)


async def _distant(stack: AsyncExitStack, settings: Any, session_id: str, held: SessionHeld) -> Any:
    from surefoot.surfaces.cli.running import CLIENT
    from surefoot.surfaces.control import OwnerSilent, connected

    try:
        bounds = {
            "answer_bytes": int(settings.limits["snapshot_bytes"]),
            "refusal_bytes": int(settings.limits["error_text_bytes"]),
        }
        line = await stack.enter_async_context(
            connected(settings.places.runtime, session_id, CLIENT, **bounds)
        )
        line.on_wait = _tell_waiting
        desk = Distant(line, held)
        await desk.refresh()
    except OwnerSilent as silent:
        key = "owner_stopped" if silent.stopped else "owner_silent"
        complain([say(key, language_here(), pid=silent.pid)])
        raise held from silent
    except OSError:
        raise held from None
    return desk


def _tell_waiting(pid: int, stopped: bool) -> None:
    """What a command that stands still waits for."""
    complain([say("owner_stopped" if stopped else "owner_waited_for", language_here(), pid=pid)])


@dataclass(slots=True)
class Distant:
    """A session that another process of this account owns, reached by its control socket."""

    line: Any
    held: SessionHeld
    _shown: dict[str, Any] = field(default_factory=dict)

    def snapshot(self) -> dict[str, Any]:
        """The snapshot as last read."""
        return self._shown

    async def refresh(self, attempt: str | None = None) -> None:
        """Read the snapshot, with the call of `attempt` in any case."""
        answer = await self.line.ask("snapshot", **({} if attempt is None else {"attemptId": attempt}))
        if answer.status == 200:
            self._shown = dict(answer.body)

    async def act(
        self, action: str, call: Mapping[str, Any], *, note: str | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Press once; a parked press is waited for until the owner recorded or dropped it (TR-151, TR-210)."""
        request = self._request(call)
        request["inspectionId"] = None if action == "inspect" else call.get("inspectionId")
        answer = await self._asked("act", {**request, "action": action, "note": note})
        if answer[0] == 200:
            self._shown = answer[1]
        return answer

    async def decided(self, attempt: str) -> tuple[int, dict[str, Any]]:
        """Wait for the border at which a parked press is recorded or dropped."""
        answer = await self.line.ask("wait", patient=True, attemptId=attempt)
        return answer.status, dict(answer.body)

    async def process(self, choice: str, call: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Adopt, kill or leave what a call left running."""
        return await self._asked("process", {**self._request(call), "choice": choice})

    async def settled(self, attempt: str) -> None:
        """The outcome of a retry follows in the session that runs it (TR-138)."""

    def _request(self, call: Mapping[str, Any]) -> dict[str, Any]:
        shown = self._shown
        keys = ("sessionPath", "runtimeEpoch", "revision")
        return {**{key: shown[key] for key in keys}, "attemptId": call["attemptId"]}

    async def _asked(self, do: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        try:
            answer = await self.line.ask(do, request=request)
        except OSError:
            complain([say("press_unanswered", language_here())])
            raise self.held from None
        return answer.status, dict(answer.body)


class _Terminal:
    """Asks the person at this terminal whether a call they want run again may start."""

    async def permission(self, question: Any) -> Any:
        import asyncio

        from surefoot.runtime.people import PermissionAnswer

        complain([f"{question.tool} · {question.effect_class} · {', '.join(question.reach) or '-'}"])
        language = language_here()
        why = why_asked(view.clean(question.why), language)
        complain([f"│ {view.clean(question.arguments)}", f"  {why}"])
        allowed = await asyncio.to_thread(confirmed, translated("Allow it?", language), language)
        return PermissionAnswer("approved" if allowed else "denied", by="os_user")

    async def question(self, question: Any) -> Any:
        from surefoot.runtime.people import Answer

        return Answer("expired", "", by="os_user")


# Deciding -----------------------------------------------------------------------------------------


async def _decide(desk: Any, verb: str, attempt: str, given: Given, look: Look) -> int:
    """Look where a look is due, ask the person for the word, press once, show the record."""
    await desk.refresh(attempt)
    snapshot = desk.snapshot()
    call, seen = call_of(snapshot, attempt), {key: snapshot[key] for key in ("runtimeEpoch", "revision")}
    if call is None or not view.is_card(call):
        known = {**seen, "record": (call or {}).get("resolution"), **_proof(call or {}, look)}
        return _refuse({"code": "already_resolved", **known}, given, look, verb=verb)
    person = is_person_here() and not given.as_json and not (given.inspection or given.yes)
    if verb != "inspect" and person:
        if call["inspectionId"] is None:
            await desk.act("inspect", call)
            call = call_of(desk.snapshot(), attempt) or call
        draw(call, desk.snapshot(), look, to_output=False)
        if not _typed_word(verb, call, look):
            complain([say("nothing_decided", look.language)])
            return OPEN
    elif verb != "inspect":
        missing = _missing(verb, call, given)
        if missing:
            return _refuse({**missing, **seen}, given, look, call=_named(desk, attempt))
    inspection = given.inspection or call["inspectionId"]
    status, body = await desk.act(verb, {**call, "inspectionId": inspection}, note=given.note)
    if status == 200 and verb == "retry":
        return await _tell_retry(desk, body, attempt, given, look)
    if status == 200 and (call_of(body, attempt) or {}).get("parked"):
        complain([say("parked", look.language)])
        if body.get("replaces"):
            complain([say("parked_replaces", look.language, word=body["replaces"])])
        with contextlib.suppress(OSError):
            status, body = await desk.decided(attempt)
    if status != 200:
        return _refuse(body, given, look, verb=verb, call=_named(desk, attempt))
    if (call_of(body, attempt) or {}).get("parked"):
        return OPEN  # its owner went away; the press went with it (TR-210)
    _show_done(body, attempt, given, look)
    return 0


async def _tell_retry(desk: Any, body: Mapping[str, Any], attempt: str, given: Given, look: Look) -> int:
    """It began; in a session of our own its outcome is waited for, elsewhere it follows there (TR-138)."""
    await desk.settled(attempt)
    await desk.refresh(attempt)
    if not given.as_json:
        complain([say("retry_began", look.language, attempt=view.short_id(attempt))])
    _show_done(desk.snapshot() or body, attempt, given, look)
    return 0


def _proof(call: Mapping[str, Any], look: Look) -> dict[str, str]:
    """What closed a call that no person decided about, in words; nothing for any other."""
    inspection = call.get("inspection") or {}
    if "proven" not in (call.get("overlays") or ()) or call.get("resolution"):
        return {}
    verifier, summary = (view.clean(str(inspection.get(key) or "?")) for key in ("verifier", "summary"))
    return {
        "detail": say(
            "proven_instead", look.language, verifier=verifier, summary=translated(summary, look.language)
        )
    }


def _typed_word(verb: str, call: Mapping[str, Any], look: Look) -> bool:
    """The word of the choice, typed, and the code where the evidence does not carry it (UX-74)."""
    label = say(verb, look.language)
    typed = click.prompt(
        say("type_word", look.language, word=verb, label=label), default="", show_default=False, err=True
    )
    if typed.strip() != verb:
        return False
    if not view.needs_code(verb, call):
        return True
    code = view.code_of(call)
    again = click.prompt(say("type_code", look.language, code=code), default="", show_default=False, err=True)
    return bool(again.strip().lower() == code)


def _missing(verb: str, call: Mapping[str, Any], given: Given) -> dict[str, Any] | None:
    """What a press without a terminal lacks (UX-77); a code that was given must be the right one (UX-74)."""
    lacks_code = {"code": "person_required", "reason": "code_missing"}
    if given.code is not None and given.code.strip().lower() != view.code_of(call):
        return {**lacks_code, "hint": "--code"}
    if verb == "release":
        if not given.yes:
            return {**lacks_code, "hint": "--yes"}
        unclear = view.executor_state(call) != "ended"
        return {**lacks_code, "hint": "--code"} if unclear and given.code is None else None
    if not given.inspection:
        return {"code": "inspection_required", "hint": "--inspection"}
    return None


_AGAIN = {
    "inspection_required": "surefoot recover inspect {call}",
    "inspection_stale": "surefoot recover inspect {call}",
    "revision_stale": "surefoot recover show {call}",
    "code_missing": "surefoot recover show {call}",
}
"""Where a refused press goes on; the card that `show` draws holds the two characters."""


def _named(desk: Any, attempt: str) -> str:
    return view.short_id(attempt, [str(call["attemptId"]) for call in desk.snapshot()["calls"]])


def _refuse(
    body: Mapping[str, Any], given: Given, look: Look, *, verb: str | None = None, call: str = ""
) -> int:
    """The code and sentence of a refusal; exit code 4, or 5 where recovery is not supported.

    The second of two equal presses is answered with the first one's record, and that is no failure (UX-66).
    """
    code = str(body.get("code"))
    told = refusal(code, look.language, reason=body.get("reason"))
    if body.get("detail"):
        told = f"{told} {translated(str(body['detail']), look.language)}"
    record = body.get("record") or {}
    same = verb in RECORDED_AS and record.get("kind") == RECORDED_AS[verb]
    equal = same and code in ("already_resolved", "revision_stale")
    if given.as_json:
        say_json({**body, "message": told})
    else:
        hint = f" ({body['hint']})" if body.get("hint") else ""
        next_ = _AGAIN.get(code) or _AGAIN.get(str(body.get("reason")))
        way = say("end_next", look.language, command=next_.format(call=call)) if call and next_ else ""
        complain([f"{code}: {told}{hint} {way}".rstrip()])
        if record:
            complain([f"  {record.get('kind')} · {record.get('who')} · {record.get('channel')}"])
    if equal:
        return 0
    return UNSUPPORTED if code == "unsupported" else REFUSED


def _show_done(snapshot: Mapping[str, Any], attempt: str, given: Given, look: Look) -> None:
    if given.as_json:
        say_json(view.with_cards(snapshot, look.language))
        return
    call = call_of(snapshot, attempt)
    if call is None:
        return
    if view.is_card(call):
        arguments = call.get("arguments") if sys.stdout.isatty() else None
        draw({**call, "arguments": arguments}, snapshot, look, to_output=True)
        return
    sign = plain.sign_of(call, ascii_only=look.ascii_only)
    show_lines([f"{sign} {view.summary(call)}: {view.told(call, look.language, you=True)}"])
