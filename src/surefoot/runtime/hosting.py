"""A model request that switches on tools of the provider: a call of its own, sent once (PR-98, TR-9).

Owns: making such a request a call behind the barrier, what its end says about effects on the
provider's side, and going without these tools while a fence overlaps. Does not own: the order of
a call's steps (`barrier`), the request itself (`models`), what becomes of a refusal (`incidents`).
Promises: barrier:one-door, recovery:never-guess. Nothing here sends a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.core.canonical import canonical_json, read_arguments
from surefoot.core.effects import EVERYTHING, Effect
from surefoot.core.history import HOSTED_REQUEST, Message
from surefoot.core.model import Draft, EffectClass, EffectTrace, Kind, State
from surefoot.core.redact import redact
from surefoot.errors import ProviderCredentials, ProviderError, ProviderRefused, ProviderUnreachable
from surefoot.providers.endpoints import Known
from surefoot.providers.port import Reply, TextDelta
from surefoot.runtime.barrier import Barrier
from surefoot.runtime.live import Batch, Call, Looked
from surefoot.runtime.models import Hosting
from surefoot.runtime.tools import Arguments, LiveAttempt, Outcome, Tool

EFFECT = Effect(EffectClass.UNKNOWN, (EVERYTHING,))
NOT_SENT = frozenset(
    {"refused", "dns", "tls", "connect", "connect_timeout", "proxy", "bad_url", "local_start"}
)
"""Transport codes under which no byte of the request had left."""
_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "request": {"type": "string"}},
    "required": ["name", "request"],
}


@dataclass(slots=True)
class _Heard:
    """What came of the one request."""

    reply: Reply | None = None
    error: ProviderError | None = None


class HostedRequests:
    """The requests of one session that switch hosted tools on."""

    def __init__(self, barrier: Barrier, model: object) -> None:
        self._barrier = barrier
        self._session = barrier.session
        self._model: Hosting | None = model if isinstance(model, Hosting) else None

    async def ask(
        self,
        view: Sequence[Message],
        on_delta: Callable[[TextDelta], None],
        *,
        turn_id: str,
        known: Known,
    ) -> Reply | None:
        """Ask for one step with the hosted tools on; None when this request has to go without them.

        Raises the `ProviderError` it ended with, marked `hosted`; `StaleEpoch`, `LedgerError` as the barrier does.
        """
        model = self._model
        if model is None or not model.hosted:
            return None
        frozen, heard = model.freeze(view, known, hosted=True), _Heard()

        async def body(attempt: LiveAttempt, arguments: Arguments) -> Outcome:
            try:
                heard.reply = await model.send_checked(frozen, on_delta)
            except ProviderError as error:
                heard.error = error
                return outcome_of(error)
            return Outcome(heard.reply.text)

        looked = self._looked(model, frozen.digest, body, turn_id)
        if self._barrier.verdict(looked, Batch()) is not None:
            return None  # a call with an unknown outcome overlaps everything: its fence holds these tools too
        call = looked.call
        asked = {"attemptId": call.attempt_id, "callId": call.call_id, "turnId": turn_id, "position": 0}
        await self._session.append(
            Draft(Kind.DISPATCHED, {**asked, "askedName": HOSTED_REQUEST, "arguments": call.arguments})
        )
        receipt = await self._barrier.run(looked, Batch())
        if receipt.state is State.NOT_STARTED:
            return None
        if heard.reply is not None:
            return heard.reply
        error = heard.error or ProviderUnreachable(
            "The request ended without a reply; its hosted tools may have run.",
            next_command="surefoot recover list",
            kind="transport",
            transient=False,
        )
        error.facts |= {"hosted": list(model.hosted), "attempt_id": receipt.attempt_id, "transient": False}
        raise error

    def _looked(self, model: Hosting, digest: str, body: Any, turn_id: str) -> Looked:
        """The request as a call. Its digest stands in the arguments, so that no two requests are the same action."""
        new_id = self._session.scheduler.new_id
        text = canonical_json({"name": " ".join(model.hosted), "request": digest})
        call = Call(turn_id, new_id("cal"), new_id("att"), HOSTED_REQUEST, text)
        tool = Tool(
            name=HOSTED_REQUEST,
            description="A model request that lets the provider run tools of its own.",
            parameters=_PARAMETERS,
            body=body,
            effect=EFFECT,
            rule_name="Hosted",
            subjects=lambda arguments, place: tuple(arguments["name"].split()),
            switched_on=True,
            starts_processes=True,  # what it set going is the provider's; our end proves nothing about it
            summary=lambda arguments: str(arguments.get("name") or ""),
        )
        arguments = read_arguments(text)
        return Looked(call, tool, arguments, EFFECT, redact(arguments.value, ()))


def outcome_of(error: ProviderError) -> Outcome:
    """A refusal before any event ran nothing; whatever was cut or went unanswered may have (PR-98).

    A server error is no refusal: the request had been taken, and the tools may have run before it failed.
    """
    facts = error.facts
    status, kind = facts.get("status"), str(facts.get("kind") or error.code)
    local = facts.get("local") or (isinstance(error, ProviderCredentials) and status is None)
    refused = isinstance(error, (ProviderRefused, ProviderCredentials)) or isinstance(status, int)
    taken = status in (None, 200, 408) or (isinstance(status, int) and status >= 500)
    if (
        local
        or facts.get("transport_code") in NOT_SENT
        or (refused and not taken and not facts.get("streamed"))
    ):
        return Outcome("", State.FAILED, error_kind=kind, effect_trace=EffectTrace.NONE)
    reason = "time_limit" if facts.get("transport_code") == "time_limit" else "connection_lost"
    return Outcome("", State.UNKNOWN, reason, executor="not_proven")


__all__ = ["HostedRequests", "outcome_of"]
