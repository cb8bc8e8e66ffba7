"""Asking a model for one step: the port, and the visible waits between refused requests.

Owns: how often one step may be asked for, and that every wait is shown and can be
cancelled. Does not own: HTTP (`providers.client`), what a refusal means (there too).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from surefoot.core.history import Message
from surefoot.core.model import Notice
from surefoot.errors import ProviderError
from surefoot.providers.client import Client
from surefoot.providers.diagnosis import next_wait
from surefoot.providers.endpoints import Endpoint, Frozen, Known, freeze, refuse_locally, target_of
from surefoot.providers.hosted import enabled, with_effects
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


@runtime_checkable
class Replaying(Protocol):
    """A model whose requests can be made ready, looked at, and sent as they are: what recovery needs."""

    contract: Mapping[str, Any]
    max_requests: int
    """The most requests of one step, re-requests and a recovery together (PR-5)."""
    has_tools: bool
    may_drop_blocks: bool
    """Whether the service may be asked to drop blocks of another conversation (AN-09)."""

    def target(self) -> Mapping[str, Any]:
        """What an incident's budget is bound to: wire, URL, model, contract, thinking and effort (PR-19)."""
        ...

    def freeze(self, messages: Sequence[Message], known: Known | None = None) -> Any:
        """The request as `body`, `content`, `digest`, `repairs` and `findings`. Pure."""
        ...

    async def send_checked(self, frozen: Any, on_delta: Callable[[TextDelta], None]) -> Reply:
        """Send these very bytes, once, unless the contract refuses them. Raises `ProviderError`."""
        ...

    async def send(self, frozen: Any, on_delta: Callable[[TextDelta], None]) -> Reply:
        """Send these very bytes, once. Raises `ProviderError`."""
        ...


@runtime_checkable
class Hosting(Protocol):
    """A model whose provider may run tools of its own, inside the request (PR-98)."""

    hosted: tuple[str, ...]
    """The kinds its owner switched on whose effects need a receipt."""

    def freeze(self, messages: Sequence[Message], known: Known | None = None, *, hosted: bool = False) -> Any:
        """The request as `body`, `content` and `digest`; `hosted` switches those kinds on. Pure."""
        ...

    async def send_checked(self, frozen: Any, on_delta: Callable[[TextDelta], None]) -> Reply:
        """Send these very bytes, once, unless the contract refuses them. Raises `ProviderError`."""
        ...


async def ask_until_answered(
    model: Model,
    messages: Sequence[Message],
    *,
    scheduler: Scheduler,
    on_delta: Callable[[TextDelta], None],
    notify: Callable[[Notice], None],
    counted: list[int] | None = None,
) -> Reply:
    """Ask for one step, waiting visibly between transient refusals. Nothing ran yet, so asking again is harmless.

    `counted[0]` is the number of requests so far. Raises the last `ProviderError`.
    """
    tries = 0
    while True:
        try:
            if counted is not None:
                counted[0] += 1
            return await model.complete(messages, on_delta)
        except ProviderError as error:
            tries += 1
            wait = 0.0 if tries == 1 and _passed_once(error) else model.wait_seconds(error, tries)
            if wait is None:
                raise
            facts = {"code": error.code, "cause": error.message, "waitSeconds": wait, "try": tries}
            notify(Notice("model_wait", facts))
        await scheduler.sleep(wait)


def _passed_once(error: ProviderError) -> bool:
    """R0: the very same ciphertext was accepted a moment later (OR-07), so it is asked for once more (PR-39)."""
    facts = error.facts
    return facts.get("provider_code") == "invalid_encrypted_content" and not facts.get("streamed")


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
        effort: str | None = None,
        hosted: Sequence[str] = (),
        asked_for: Mapping[str, str | None] | None = None,
    ) -> None:
        self.contract = contract
        self.asked_for = {key: value for key, value in (asked_for or {}).items() if value}
        """What the flags of this run said of the model; a recovery at another command line keeps it (PR-1)."""
        self.hosted = with_effects(enabled(hosted, contract))
        """Kinds of hosted tools that make a request a call of its own (PR-98)."""
        self._free = tuple(kind for kind in enabled(hosted, contract) if kind not in self.hosted)
        self.max_requests = max_requests
        self.has_tools = bool(tools)
        self.wire = wire.name
        self.batch_split = bool(contract["pairing.batch_split"])
        self.repeated_ids = str(contract["ids.repeated_in_reply"])
        self.endpoint = endpoint
        self.window_tokens = contract.get("limits.window_tokens") or None
        self._client = client
        self._wire = wire
        self._system = system
        self._tools = tuple(tools)
        self.offers: Callable[[str], bool] = lambda name: True
        """Which of the tools a request offers now; a mode may offer fewer (UX-38)."""
        self._effort = effort
        self._max_output_tokens = max_output_tokens
        beta = any(name.lower() == "anthropic-beta" for name in endpoint.headers)
        self.may_drop_blocks = (
            bool(contract["reasoning.drop_block"]) and beta and effort not in (None, "none")
        )

    async def complete(self, messages: Sequence[Message], on_delta: Callable[[TextDelta], None]) -> Reply:
        """One request to the endpoint, streamed. Raises `ProviderError`."""
        return await self.send_checked(self.freeze(messages), on_delta)

    async def send_checked(self, frozen: Frozen, on_delta: Callable[[TextDelta], None]) -> Reply:
        """Send these very bytes, once, unless the contract refuses them. Raises `ProviderError`."""
        refuse_locally(frozen, self.endpoint)
        return await self.send(frozen, on_delta)

    def freeze(
        self, messages: Sequence[Message], known: Known | None = None, *, hosted: bool = False
    ) -> Frozen:
        """The request for these messages, made ready; `hosted` switches on the tools with effects. Pure."""
        request = ModelRequest(
            model=self.endpoint.model,
            system=self._system,
            messages=messages,
            tools=tuple(tool for tool in self._tools if self.offers(tool.name)),
            stream=True,
            max_output_tokens=self._max_output_tokens,
            effort=self._effort,
            hosted=(*self._free, *(self.hosted if hosted else ())),
        )
        return freeze(self.endpoint, self._wire, self.contract, request, known)

    async def send(self, frozen: Frozen, on_delta: Callable[[TextDelta], None]) -> Reply:
        """Send these very bytes, once. Raises `ProviderError`."""
        return await self._client.send_frozen(
            self.endpoint, self._wire, self.contract, frozen, on_event=on_delta
        )

    def target(self) -> dict[str, Any]:
        """What an incident's budget is bound to (PR-19)."""
        return target_of(self.endpoint, self.wire, self.contract, self._effort)

    def wait_seconds(self, error: ProviderError, tries: int) -> float | None:
        """As the endpoint's diagnosis says; a refusal that is not transient is never asked again.

        A reply that broke off after its first words is not asked for again either: the provider may have
        counted it, and a person sees what came (PR-39 knows transport faults before any output alone).
        """
        if error.facts.get("streamed"):
            return None
        return next_wait(tries, error.facts, max_requests=self.max_requests)
