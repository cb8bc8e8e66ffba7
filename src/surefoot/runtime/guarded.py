"""Calls of a program that brings its own loop: the barrier without model or controller.

Owns: how a call of foreign code is dispatched, known again by its identity (TR-31), and
how its receipt becomes a value or an exception for that code. Does not own: the order of
one call (`barrier`), the wiring (`app`), the shape of functions (`surefoot.library`).
Promises: barrier:one-door, receipt:exact.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from surefoot.core.canonical import canonical_json, make_id, short_id
from surefoot.core.effects import judged_effect, overlaps
from surefoot.core.model import Draft, EffectClass, EffectTrace, Kind, Overlay, Receipt, State
from surefoot.core.results import result_of
from surefoot.errors import (
    LedgerError,
    OutcomeUnknown,
    ReceiptNotWritten,
    StaleEpoch,
    ToolError,
    UsageError,
    WriteFenced,
)
from surefoot.runtime.actions import Actions
from surefoot.runtime.barrier import Barrier
from surefoot.runtime.delivery import READER, Delivery
from surefoot.runtime.inside import surrounding_attempt
from surefoot.runtime.inspection import inspect
from surefoot.runtime.live import Batch, Call
from surefoot.runtime.session import Session
from surefoot.runtime.tools import Arguments, Body, LiveAttempt, Outcome, SyncBody, Tool

_FENCED = frozenset({"fenced", "confirmed_effect", "look_first", "batch_dependency"})
_NOT_DURABLE = frozenset({"receipt_not_durable", "lease_lost"})


def not_run(error: LedgerError) -> ReceiptNotWritten:
    """What a caller is told whose call could not be recorded: its body did not run (UX-103)."""
    return ReceiptNotWritten(
        f"Nothing ran: the call could not be recorded. {error.message}",
        next_command=error.next_command or "surefoot doctor",
        ledger_code=error.code,
    )


class Happened(str):
    """What is known of a call whose end was not recorded and that happened all the same (TR-45).

    In words: a person's, or what a look proved. It is no output of the function; none is known or made up.
    """

    __slots__ = ("receipt",)

    receipt: Mapping[str, Any]
    """The receipt as JSON; its `resolution` or `inspection` says who stated it, or what was seen."""

    def __new__(cls, words: str, receipt: Mapping[str, Any]) -> Happened:
        made = super().__new__(cls, words)
        made.receipt = receipt
        return made

    def __reduce__(self) -> tuple[type[Happened], tuple[str, Mapping[str, Any]]]:
        return (Happened, (str(self), self.receipt))


class Guarded:
    """One owned session whose calls come from a program of the user's own."""

    def __init__(self, session: Session, barrier: Barrier, actions: Actions) -> None:
        self.session = session
        self.barrier = barrier
        self.actions = actions
        self._turn_id = session.scheduler.new_id("trn")
        self._delivery: Delivery | None = None
        actions.state_of = self._state
        actions.retrying.on_busy = self._retry_runs

    @property
    def session_id(self) -> str:
        """Full id of the session; pass it to open the same one again."""
        return self.session.session_id

    def _state(self) -> str:
        """Calls of the program are no turn: a decision beside one waits for nothing."""
        if self.session.closed:
            return "closed"
        return "running" if self.actions.retrying.running else "idle"

    def _retry_runs(self, busy: bool) -> None:
        if not busy:
            self.session.scheduler.spawn(self.actions.border(), "border")

    async def open(self) -> None:
        """Judge what a dead owner left; no body runs (TR-48).

        Nothing is looked at yet: the functions whose verifiers could look are not guarded so far.
        """
        await self.session.history()
        await self.actions.recover()
        self._heard()

    async def close(self) -> None:
        """Give the session back once the retries that run have settled. Adopted commands go on."""
        self.actions.choices.release()
        for attempt_id in list(self.actions.retrying.running):
            await self.actions.retrying.settled(attempt_id)
        given = self._delivery.acknowledged() if self._delivery is not None else []
        if given and not self.session.lost:
            with contextlib.suppress(LedgerError, StaleEpoch):  # a missing mark counts as not delivered
                await self.session.append(*given)
        await self.session.close()

    def add(self, tool: Tool) -> None:
        """Make a tool known to this session. Raises `UsageError` when another one has its name."""
        known = self.barrier.registry.resolve(tool.name)
        if known is None:
            self.barrier.registry.add(tool)
        elif known is not tool:
            raise UsageError(f"another function is guarded as {tool.name!r} already; give this one a `name`")

    def declare(self, tool: Tool) -> None:
        """Make a tool known, so that its open calls of earlier runs can be looked up too."""
        if tool.name not in self.barrier.registry.names():
            self.barrier.registry.add(tool)

    async def inspect(self, attempt_id: str) -> Mapping[str, Any]:
        """Look at the world with the verifier of an open call's tool, and give the recorded inspection.

        Raises:
            UsageError: no call of this session is open under that id.
            LedgerError: what was seen could not be recorded.
        """
        receipt = self.session.book.get(attempt_id)
        seen = None
        if receipt is not None and self.session.book.is_open(attempt_id):
            executor = self.actions.standing.executor(receipt)
            limits = self.barrier.limits
            seen = await inspect(
                self.session, self.barrier.registry, receipt, executor=executor, limits=limits
            )
        if seen is None:
            raise UsageError(f"no call {attempt_id!r} is open in this session; list them with `open_calls()`")
        return seen

    async def call(self, tool: Tool, arguments: Mapping[str, Any], *, identity: str | None = None) -> str:
        """Run a tool behind the barrier and give its result text.

        With an `identity` that is stable over retries of the caller (an order number, a message id and index)
        a second pass of the same call meets its receipt: a success is given back and nothing runs again, and so
        is a failure that may have left something. What never started, left nothing or was denied runs again.
        Without one, a write that ended and whose result the program never got, because it died or gave up, is
        answered from its receipt when the same call comes again; once, then it is a new call.

        A call that a person confirmed, or a look proved, is answered by `Happened`: nothing of its output is known.

        Raises:
            OutcomeUnknown: it may have happened; decide before anything else.
            WriteFenced: it overlaps an open unknown call; nothing ran.
            ToolError: it ran and failed, or was refused before it started.
            ReceiptNotWritten: its start is not durable; the body did not run.
        """
        self.declare(tool)
        call_id = self.session.scheduler.new_id("cal") if identity is None else self._known_as(identity)
        earlier = self.session.book.attempts(call_id)
        settled = _speaks_for(earlier)
        delivery = self._heard()
        if settled is not None:
            with delivery.on_the_way(settled.attempt_id):
                return await self._told(settled)
        attempt_id = self.session.scheduler.new_id("att")
        text = canonical_json(dict(arguments))
        asked = {"attemptId": attempt_id, "callId": call_id, "turnId": self._turn_id, **self._place()}
        call = {**asked, "askedName": tool.name, "arguments": text, "reader": READER}
        await self._dispatch(*delivery.acknowledged(), Draft(Kind.DISPATCHED, call))
        looked = await self.barrier.look(Call(self._turn_id, call_id, attempt_id, tool.name, text))
        if identity is None:
            looked = replace(looked, undelivered=delivery.unheard(looked))
        raised: list[BaseException] = []
        looked = replace(looked, tool=looked.tool and _telling(looked.tool, raised))
        with delivery.on_the_way(attempt_id):
            receipt = await self.barrier.run(looked, Batch())
            if receipt.reason != "answered_from_receipt" or looked.undelivered is None:
                return await self._told(receipt, raised[0] if raised else None)
        with delivery.on_the_way(looked.undelivered):
            return await self._told(self.session.book.get(looked.undelivered) or receipt)

    async def _dispatch(self, *drafts: Draft) -> None:
        try:
            await self.session.append(*drafts)
        except ReceiptNotWritten:
            raise
        except LedgerError as error:
            raise not_run(error) from error

    def _place(self) -> dict[str, Any]:
        """Where a call stands: inside a body that runs in this session it is a part of that one (TR-9, TR-35)."""
        around = self.session.book.get(surrounding_attempt() or "")
        if around is None or around.state is not State.STARTED:
            return {"position": 0}
        ordinal = len(self.session.book.children(around.attempt_id))
        return {"position": ordinal, "parentAttemptId": around.attempt_id}

    def _heard(self) -> Delivery:
        if self._delivery is None:
            self._delivery = Delivery(self.session)
        return self._delivery

    def _known_as(self, identity: str) -> str:
        """A call id that follows from session and identity, so that every pass finds the same call."""
        digest = hashlib.sha256(f"{self.session.session_id}/{identity}".encode()).digest()
        return make_id("cal", int.from_bytes(digest[:6], "big"), int.from_bytes(digest[6:16], "big"))

    async def _told(self, receipt: Receipt, raised: BaseException | None = None) -> str:
        """The result of a settled call as a value, or the exception that says what is known.

        What the body `raised` becomes its `__cause__`, so that a traceback shows both (UX-102).
        """
        stored = {}
        if receipt.result_ref is not None:
            content = await self.session.ledger.get_blob(receipt.result_ref)
            stored[receipt.result_ref] = content.decode("utf-8", "surrogatepass")
        attempts = self.session.book.attempts(receipt.call_id) or [receipt]
        told = result_of(receipt, attempts, stored=stored)
        if receipt.state is State.SUCCEEDED:
            return told.text
        if receipt.has(Overlay.CONFIRMED) or receipt.has(Overlay.PROVEN):
            return Happened(told.text, receipt.to_json())
        name = receipt.tool or receipt.asked_name
        if receipt.state is State.UNKNOWN:
            raise self._unknown(receipt, name) from raised
        facts: dict[str, Any] = {"receipt": receipt.to_json(), "attempt_id": receipt.attempt_id, "tool": name}
        if receipt.reason in _FENCED:
            raise WriteFenced(
                told.text, next_command="surefoot recover list", **facts, **self._fence(receipt)
            )
        if receipt.reason in _NOT_DURABLE:
            raise ReceiptNotWritten(told.text, next_command="surefoot doctor", **facts)
        trace = "none" if receipt.effect_trace is None else receipt.effect_trace.value
        raise ToolError(
            told.text, kind=receipt.error_kind or receipt.reason, effect_trace=trace, **facts
        ) from raised

    def _fence(self, receipt: Receipt) -> dict[str, Any]:
        """Which open attempt holds this write, and over what."""
        holding = self.session.book.get(str(receipt.extra.get("fencedBy")))
        if holding is None:
            return {}
        tool = self.barrier.registry.resolve(receipt.tool or receipt.asked_name)
        kinds = () if tool is None else tool.reach_kinds
        ours, theirs = judged_effect(receipt).reach, judged_effect(holding).reach
        shared = [member for member in theirs if overlaps([member], ours, kinds=kinds)]
        return {"fenced_by": holding.attempt_id, "overlap": shared}

    def _unknown(self, receipt: Receipt, name: str) -> OutcomeUnknown:
        command = f"surefoot recover {short_id(receipt.attempt_id)}"
        error = OutcomeUnknown(
            f"{name} may or may not have happened",
            next_command=command,
            attempt_id=receipt.attempt_id,
            session_id=receipt.session_id,
            tool=name,
            effect_class=judged_effect(receipt).effect_class.value,
            reach=list(judged_effect(receipt).reach),
            started_at=receipt.started_at,
            cause=receipt.reason,
            idempotency_key=receipt.idempotency_key,
            receipt=receipt.to_json(),
        )
        error.add_note(f"  receipt   {receipt.attempt_id} · no result was written · cause: {receipt.reason}")
        error.add_note(f"  Do not retry. Decide first:  {command}   ·   {error.code}")
        return error


def _telling(tool: Tool, raised: list[BaseException]) -> Tool:
    """The tool with a body that leaves here what it raised; its receipt keeps the text alone."""
    if tool.body is not None:
        return replace(tool, body=_async_telling(tool.body, raised))
    return tool if tool.sync_body is None else replace(tool, sync_body=_telling_too(tool.sync_body, raised))


def _async_telling(body: Body, raised: list[BaseException]) -> Body:
    async def told(attempt: LiveAttempt, arguments: Arguments) -> Outcome | str:
        with _Kept(raised):
            return await body(attempt, arguments)

    return told


def _telling_too(body: SyncBody, raised: list[BaseException]) -> SyncBody:
    def told(attempt: LiveAttempt, arguments: Arguments) -> Outcome | str:
        with _Kept(raised):
            return body(attempt, arguments)

    return told


class _Kept:
    """Sees what passes, and catches nothing."""

    def __init__(self, raised: list[BaseException]) -> None:
        self._raised = raised

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._raised.append(error)


def _speaks_for(attempts: list[Receipt]) -> Receipt | None:
    """The earlier attempt that answers a second pass of a call; None when it may run (again)."""
    for receipt in reversed(attempts):
        if receipt.state is State.FAILED and _stays_failed(receipt):
            return receipt
        if receipt.state in (State.SUCCEEDED, State.STARTED):
            return receipt
        if receipt.state is State.UNKNOWN and not receipt.has(Overlay.DENIED):
            return receipt
    return None


def _stays_failed(receipt: Receipt) -> bool:
    """Whether a body that failed may have acted, by an effect that is not to be made twice.

    An exception that a host uses to pause its own loop ends a body too, after its effect.
    """
    reads = receipt.effect_class is EffectClass.READ_ONLY
    left = receipt.effect_trace is not EffectTrace.NONE and not reads
    safe = receipt.effect_class is not None and receipt.effect_class.retry_safe
    return left and not (safe and receipt.delivered)
