"""Asking a model for one step: the port, and the visible waits between refused requests.

Owns: how often one step may be asked for, and that every wait is shown and can be
cancelled. Does not own: HTTP (`providers.client`), what a refusal means (there too).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from surefoot.core.history import Message
from surefoot.core.model import Notice
from surefoot.errors import ProviderError
from surefoot.providers.client import Client, Endpoint
from surefoot.providers.diagnosis import next_wait
from surefoot.providers.port import ModelRequest, Reply, TextDelta, ToolSpec, Wire
from surefoot.runtime.scheduler import Scheduler


class Model(Protocol):
    """A model behind one endpoint, with its tools and system text already chosen."""

    wire: str
    batch_split: bool
    """Whether calls closed before the cut of a reply may run (PR-71)."""

    async def complete(self, messages: Sequence[Message], on_delta: Callable[[TextDelta], None]) -> Reply:
        """One request. Raises `ProviderError`; runs no tool, repeats nothing by itself."""
        ...

    def wait_seconds(self, error: ProviderError, tries: int) -> float | None:
        """How long to wait before asking again after the `tries`-th failure; None means give up."""
        ...


async def ask_until_answered(
    model: Model,
    messages: Sequence[Message],
    *,
    scheduler: Scheduler,
    on_delta: Callable[[TextDelta], None],
    notify: Callable[[Notice], None],
) -> Reply:
    """Ask for one step, waiting visibly between transient refusals. Nothing ran yet, so asking again is harmless.

    Raises the last `ProviderError`.
    """
    tries = 0
    while True:
        try:
            return await model.complete(messages, on_delta)
        except ProviderError as error:
            tries += 1
            wait = model.wait_seconds(error, tries)
            if wait is None:
                raise
            facts = {"code": error.code, "cause": error.message, "waitSeconds": wait, "try": tries}
            notify(Notice("model_wait", facts))
        await scheduler.sleep(wait)


class EndpointModel:
    """A model behind one declared endpoint, with its system text and tools."""

    def __init__(
        self,
        client: Client,
        endpoint: Endpoint,
        wire: Wire,
        contract: Mapping[str, Any],
        *,
        system: str,
        tools: Sequence[ToolSpec],
        max_requests: int = 6,
        max_output_tokens: int | None = None,
    ) -> None:
        self.wire = wire.name
        self.batch_split = bool(contract["pairing.batch_split"])
        self.repeated_ids = str(contract["ids.repeated_in_reply"])
        self.endpoint = endpoint
        self._client = client
        self._wire = wire
        self._contract = contract
        self._system = system
        self._tools = tuple(tools)
        self._max_requests = max_requests
        self._max_output_tokens = max_output_tokens

    async def complete(self, messages: Sequence[Message], on_delta: Callable[[TextDelta], None]) -> Reply:
        """One request to the endpoint, streamed. Raises `ProviderError`."""
        request = ModelRequest(
            model=self.endpoint.model,
            system=self._system,
            messages=messages,
            tools=self._tools,
            stream=True,
            max_output_tokens=self._max_output_tokens,
        )
        return await self._client.send(self.endpoint, self._wire, self._contract, request, on_event=on_delta)

    def wait_seconds(self, error: ProviderError, tries: int) -> float | None:
        """As the endpoint's diagnosis says; a refusal that is not transient is never asked again."""
        return next_wait(tries, error.facts, max_requests=self._max_requests)
