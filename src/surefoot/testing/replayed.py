"""A played model whose provider refuses on plan: recovery in simulations, without HTTP.

Owns: the far side's log of requests and its planned refusals, shared by all owners of a
session; the model over it with the real Chat wire and a contract. Does not own: the
replies (`played`), the order of events (`simulation`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from surefoot.core.history import Message
from surefoot.errors import ProviderRefused
from surefoot.providers import contracts
from surefoot.providers.chat import ChatWire
from surefoot.providers.endpoints import Endpoint, Frozen, Known, freeze, refuse_locally
from surefoot.providers.port import ModelRequest, Reply, TextDelta, ToolSpec
from surefoot.testing.played import PlayedModel

ENDPOINT = Endpoint("played", "http://127.0.0.1/v1", "chat", "deepseek/chat", "played")


@dataclass(slots=True)
class FarSide:
    """The provider as all processes see it."""

    refusals: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """Number of a request, from 1 → the facts of its refusal."""
    requests: list[str] = field(default_factory=list)
    """Digest of every request that arrived."""
    on_request: Callable[[Frozen], None] = lambda frozen: None
    """Called when a request has arrived, before anything is answered."""
    missing: frozenset[int] = frozenset()
    """Numbers of requests whose reply leaves reasoning out that will be wanted back."""

    def refuse(self, *numbers: int, kind: str = "upstream_reason_missing", certainty: str = "none") -> None:
        """Plan the same refusal for these requests."""
        for number in numbers:
            self.refusals[number] = {"kind": kind, "certainty": certainty, "status": 400}


class RefusingModel(PlayedModel):
    """Plays its steps; the far side refuses where it is planned."""

    def __init__(
        self, steps: Sequence[dict[str, Any]], far: FarSide, *, tools: Sequence[str] = (), **played: Any
    ) -> None:
        super().__init__(steps, **played)
        self.far = far
        self.contract = contracts.resolve(ENDPOINT.contract)
        self.max_requests = 6
        self.has_tools = bool(tools)
        self.may_drop_blocks = False
        self.effort: str | None = None
        self._tools = tuple(ToolSpec(name, name, {"type": "object"}) for name in tools)

    def target(self) -> dict[str, Any]:
        """What a budget is bound to."""
        return {"wire": "chat", "model": "played", "contract": ENDPOINT.contract, "effort": self.effort}

    def freeze(self, messages: Sequence[Message], known: Known | None = None) -> Frozen:
        """The request's bytes on the real Chat wire."""
        request = ModelRequest("played", "system", list(messages), self._tools, effort=self.effort)
        return freeze(ENDPOINT, ChatWire(), self.contract, request, known)

    async def complete(self, messages: Sequence[Message], on_delta: Callable[[TextDelta], None]) -> Reply:
        """One request."""
        return await self.send_checked(self.freeze(messages), on_delta)

    async def send_checked(self, frozen: Frozen, on_delta: Callable[[TextDelta], None]) -> Reply:
        """One request, unless the contract refuses it."""
        refuse_locally(frozen, ENDPOINT)
        return await self.send(frozen, on_delta)

    async def send(self, frozen: Frozen, on_delta: Callable[[TextDelta], None]) -> Reply:
        """One request, refused where the far side planned it."""
        self.far.requests.append(frozen.digest)
        self.far.on_request(frozen)
        planned = self.far.refusals.get(len(self.far.requests))
        number = len(self.far.requests)
        if planned is not None:
            await asyncio.sleep(0.001)
            raise ProviderRefused("refused on plan", request_digest=frozen.digest, **planned)
        reply = await super().complete(frozen.request.messages, on_delta)
        if number in self.far.missing:
            return Reply(reply.text, reply.calls, reply.finish, reply.raw, notes=("reasoning_missing",))
        return reply
