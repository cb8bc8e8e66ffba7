"""Another view of a long session: compaction, rewind, and the fork into a session of its own.

Owns: when a view may be rewritten, the one entry that does it, the request for a summary,
and the copies of open calls in a fork (TR-93 to TR-96). Does not own: what the notes say
and where is cut (`core.rewriting`), the fold (`core.history`).
Promises: recovery:never-guess. No receipt is removed, changed or doubled.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from surefoot.core import rewriting
from surefoot.core.history import History, Message, UserWords
from surefoot.core.lifecycle import Book
from surefoot.core.model import Draft, EffectClass, Entry, ExecutorState, Kind, Notice, Owner, Receipt, State
from surefoot.errors import ProviderError, ProviderUnreachable
from surefoot.ledger.port import Held, Ledger, NotAppended
from surefoot.ledger.results import stored_texts
from surefoot.runtime.models import Model
from surefoot.runtime.scheduler import Scheduler
from surefoot.runtime.session import LeaseTimes, Session, Wanted

FULL = 0.8
"""Part of the model's window from which on a session is compacted by itself."""
TRIES = 3
_COPIED = (
    "tool", "arguments", "argumentsDisplay", "argumentDigest", "class", "reach", "scope", "interaction",
    "check", "idempotencyKey", "keyExpiresAt", "owner", "deadlineAt", "deadlineBoot", "startedAt", "startedBoot",
    "notes", "writeIntents", "process",
)  # fmt: skip


class Rewriting:
    """Rewrites the view of one owned session."""

    def __init__(
        self, session: Session, model: Model, messages: Callable[[], Awaitable[list[Message]]]
    ) -> None:
        self.notify: Callable[[Notice], None] = lambda notice: None
        self.rotate: Callable[[Callable[[], Awaitable[Mapping[str, Any]]]], Awaitable[Mapping[str, Any]]]
        """Runs work while no turn is on, and refuses it while one is; set by the controller."""
        self.rotate = lambda work: work()
        self.before: Callable[[str], Awaitable[str | None]] = _nobody_minds
        """Asked before a compaction, `manual` or `auto`; why it must not be, or None."""
        self.window_tokens: int | None = getattr(model, "window_tokens", None)
        """The budget for one request; None leaves compaction to a person."""
        self.used_tokens = 0
        """What the newest request and its reply took, as the server says."""
        self._session = session
        self._model = model
        self._messages = messages
        self._asking: Any = None
        self._wrote: dict[tuple[str, str], str] = {}
        """Tool and digest → attempt of every write that a compaction took out of the view."""
        session.watch(self._appended)

    async def keep_within(self, *, mid_turn: bool) -> None:
        """Compact when the next request could come near the window. Raises `LedgerError`."""
        if self.window_tokens is not None and self.used_tokens >= FULL * self.window_tokens:
            await self._compact(who="budget", mid_turn=mid_turn)

    async def make_room(self, error: ProviderError) -> bool:
        """Compact in the middle of a turn because a server said that the view is too long (R16, X-06).

        The one request of an incident is not followed by another (PR-36), nor one that ran tools of the
        provider's own (PR-98). The summary is asked of what leaves the view only, since the whole was
        refused. Raises `LedgerError`.
        """
        facts = error.facts
        if facts.get("kind") != "context_overflow" or facts.get("hosted") or facts.get("recovery"):
            return False
        return "code" not in await self._compact(who="overflow", mid_turn=True, refused=True)

    async def compact(self, *, who: str = "person") -> Mapping[str, Any]:
        """Put notes in the place of earlier messages (TR-94); `{code}` when nothing was done.

        Raises `LedgerError`.
        """
        return await self.rotate(lambda: self._compact(who=who))

    async def rewind(self, turn_id: str | None = None, *, who: str = "person") -> Mapping[str, Any]:
        """Take the view back to before a turn, the newest one by default (TR-95).

        `remaining` lists the effects that stay in the world; `{code}` when that turn is not in the view.
        Raises `LedgerError`.
        """
        return await self.rotate(lambda: self._rewind(turn_id, who=who))

    async def points(self) -> list[tuple[str, str]]:
        """The turns that can be gone back to, newest first, each with the words it began with."""
        told = {
            one.turn_id: one.text
            for one in reversed(await self._messages())
            if isinstance(one, UserWords) and one.origin == "person"
        }
        return list(told.items())

    def cancel(self) -> None:
        """Stop asking for a summary; nothing is rewritten."""
        if self._asking is not None:
            self._asking.cancel()

    async def _compact(self, *, who: str, mid_turn: bool = False, refused: bool = False) -> Mapping[str, Any]:
        messages = await self._messages()
        first = rewriting.cut(messages, self._session.book, mid_turn=mid_turn)
        if first is None:
            return {"code": "nothing_to_compact"}
        why = await self.before("manual" if who == "person" else "auto")
        if why is not None:
            self.notify(Notice("held_compaction", {"reason": why}))
            return {"code": "hook_refused"}
        summary, stopped = await self._summary(first.dropped if refused else messages)
        if stopped:
            return {"code": "cancelled"}
        for _ in range(TRIES):
            position, messages = self._session.position, await self._messages()
            made = rewriting.cut(messages, self._session.book, mid_turn=mid_turn)
            if made is None:
                return {"code": "nothing_to_compact"}
            before = (await self._session.history()).requests
            payload = rewriting.notes_payload(
                made, messages, self._session.book, told_before=before, summary=summary
            )
            draft = Draft(Kind.COMPACTED, {**payload, "who": who, "at": self._session.scheduler.now_ms()})
            answer = await self._session.append(draft, after=position)
            if not isinstance(answer, NotAppended):
                self.used_tokens = 0
                self.notify(Notice("compacted", _told(payload)))
                return payload
        return {"code": "busy"}

    async def _summary(self, messages: Sequence[Message]) -> tuple[str | None, bool]:
        """The model's own words, by an ordinary request that people see and can stop; calls in it never run."""
        scheduler = self._session.scheduler
        asked = [*messages, UserWords("", rewriting.SUMMARY_PROMPT, origin="host")]
        self.notify(Notice("compacting", {"text": "The model is asked for a summary; Stop ends that."}))
        self._asking = scheduler.spawn(self._model.complete(asked, lambda delta: None), "summary")
        self._asking.add_done_callback(scheduler.heard)
        task = self._asking
        await scheduler.wait(task)
        self._asking = None
        if task.cancelled():
            return None, True
        error = task.exception()
        if isinstance(error, ProviderError):
            self.notify(Notice("summary_missing", {"text": error.message}))
            # A lost line may come back, so the view stays (F14). A refusal stays a refusal: the history may be
            # too long to be summed up at all, and the notes alone are then the way out.
            return None, isinstance(error, ProviderUnreachable)
        return task.result().text, False

    async def _rewind(self, turn_id: str | None, *, who: str) -> Mapping[str, Any]:
        for _ in range(TRIES):
            position, messages = self._session.position, await self._messages()
            newest = [
                one.turn_id for one in messages if isinstance(one, UserWords) and one.origin == "person"
            ]
            goal = turn_id or (newest[-1] if newest else "")
            payload = rewriting.rewind_payload(messages, goal, self._session.book)
            if payload is None:
                return {"code": "turn_not_in_view"}
            draft = Draft(Kind.REWOUND, {**payload, "who": who, "at": self._session.scheduler.now_ms()})
            if not isinstance(await self._session.append(draft, after=position), NotAppended):
                self.notify(Notice("rewound", {"turnId": goal, "remaining": payload["remaining"]}))
                return payload
        return {"code": "busy"}

    def _appended(self, entry: Entry) -> None:
        """A write that repeats one the model no longer sees is noted: nobody runs it in silence."""
        payload = entry.payload
        if entry.kind == Kind.COMPACTED:
            for receipt in self._session.book:
                if receipt.state is State.SUCCEEDED and receipt.effect_class is not EffectClass.READ_ONLY:
                    self._wrote[receipt.tool or "", receipt.argument_digest or ""] = receipt.attempt_id
        elif entry.kind == Kind.STARTED and payload.get("class") != EffectClass.READ_ONLY:
            earlier = self._wrote.get((payload.get("tool") or "", payload.get("argumentDigest") or ""))
            if earlier is not None:
                tool = payload.get("tool")
                text = f"{tool} runs again with the same arguments as {earlier}, which the summary speaks of."
                self.notify(
                    Notice(
                        "repeats_settled",
                        {"attemptId": payload["attemptId"], "earlier": earlier, "text": text},
                    )
                )


async def _nobody_minds(trigger: str) -> str | None:
    return None


def _told(payload: Mapping[str, Any]) -> dict[str, Any]:
    counts = " · ".join(f"{count} {group}" for group, count in sorted(payload["counts"].items()))
    text = f"{payload['messages']} messages are replaced by notes. Calls: {counts or 'none'}."
    return {"counts": payload["counts"], "messages": payload["messages"], "text": text}


# --- fork ---------------------------------------------------------------------------------


async def fork(
    ledger: Ledger,
    scheduler: Scheduler,
    owner: Owner,
    origin_id: str,
    *,
    opening: Mapping[str, Any],
    times: LeaseTimes,
) -> Session:
    """Begin a session with the view of another one and a copy of each of its open calls (TR-96).

    Reads the origin, whoever owns it, and writes nothing there. Raises `SessionMissing`, `LedgerError`.
    """
    entries = await ledger.read(origin_id)
    history, book = History(), Book()
    for entry in entries:
        history.apply(entry)
        book.apply(entry)
    history.stored |= await stored_texts(ledger, history.stored_refs(book))
    position = entries[-1].position if entries else 0
    copies = [copy for receipt in _carried(book) for copy in _copies(receipt, origin_id, scheduler)]
    origin = {"sessionId": origin_id, "position": position}
    wanted = Wanted(None, {**opening, "forkedFrom": origin})
    session = await Session.open(ledger, scheduler, owner, wanted, times=times)
    if isinstance(session, Held):  # a new id is held by nobody
        raise RuntimeError("a session that was just named has another owner")
    view = {
        "origin": origin,
        "messages": [rewriting.as_json(message) for message in history.messages(book)],
        "pinned": [copy.payload["attemptId"] for copy in copies if copy.kind == Kind.DISPATCHED],
    }
    await session.append(*copies, Draft(Kind.FORKED, view))
    return session


def _carried(book: Book) -> list[Receipt]:
    """The open calls, and those that run in the origin now: here nobody knows their end."""
    running = [one for one in book.unsettled() if one.state is State.STARTED]
    return [one for one in [*book.open(), *running] if not one.interaction]


def _copies(receipt: Receipt, origin_id: str, scheduler: Scheduler) -> list[Draft]:
    attempt_id = scheduler.new_id("att")
    known = receipt.to_json()
    call = {
        "attemptId": attempt_id,
        "callId": scheduler.new_id("cal"),
        "turnId": receipt.turn_id,
        "position": receipt.position,
        "askedName": receipt.asked_name,
        "arguments": receipt.arguments,
        "providerCallId": receipt.provider_call_id,
        "originAttemptId": receipt.attempt_id,
        "originSessionId": origin_id,
    }
    runs = receipt.state is State.STARTED
    executor = {"state": ExecutorState.ALIVE.value} if runs else known["executor"]
    closed = {
        "attemptId": attempt_id,
        "state": State.UNKNOWN.value,
        "reason": "no_evidence" if runs else receipt.reason,
        "effectTrace": known["effectTrace"],
        "executor": executor or {"state": ExecutorState.NOT_PROVEN.value},
    }
    started = {"attemptId": attempt_id, **{name: known[name] for name in _COPIED if known[name] is not None}}
    return [Draft(Kind.DISPATCHED, call), Draft(Kind.STARTED, started), Draft(Kind.CLOSED, closed)]
