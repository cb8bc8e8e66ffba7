"""A session over the emulator on loopback: the real wires, client, ledger and controller.

Owns: putting them together for one wire, profile and contract, counting what a run did
(statuses, starts, incidents), and the emulator's verdict on a request that is not sent.
Does not own: what is asserted, the faults (`emulator`).

    async with Emulator() as emulator, Stand(emulator, Peer("chat", "deepseek", "deepseek/chat")) as stand:
        end = await stand.crew.controller.submit("go")
        assert stand.statuses() == [200, 400, 200]
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.core.history import AssistantWords, Message
from surefoot.core.model import EffectClass, Kind
from surefoot.ledger.opening import open_ledger
from surefoot.ledger.owners import this_process
from surefoot.ledger.places import OWNERS
from surefoot.providers import contracts
from surefoot.providers.client import Client
from surefoot.providers.endpoints import Endpoint
from surefoot.providers.port import ToolSpec
from surefoot.providers.projection import WIRES
from surefoot.providers.shaping import body_bytes
from surefoot.runtime.models import EndpointModel
from surefoot.runtime.people import Asker
from surefoot.runtime.scheduler import Scheduler
from surefoot.runtime.session import Wanted
from surefoot.runtime.tools import Tool
from surefoot.testing.emulator import anthropic_rules, chat_rules, profiles, responses_rules
from surefoot.testing.emulator.issuing import account_of
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.emulator.stored import Stored
from surefoot.testing.rig import SESSION, Crew, Setup, assemble
from surefoot.testing.world import CountingWorld

KEY = "sk-emulated"
SYSTEM = "You work with tools."


@dataclass(frozen=True, slots=True)
class Peer:
    """Whom a session speaks to: wire, profile of the emulator, contract, and a declared protocol."""

    wire: str
    profile: str
    contract: str
    reasoning_protocol: str | None = None
    effort: str | None = None
    model: str = "scripted"
    hosted: tuple[str, ...] = ()
    """Kinds of the provider's own tools that are switched on."""
    endpoint: str = "emulated"
    """Name of the endpoint; two names are two places, whatever their address."""
    key: str = KEY
    """Its account at the server."""
    system: str = SYSTEM
    declared: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)
    """Keys in which the owner's contract differs from the one named."""

    @property
    def name(self) -> str:
        """As tables show it."""
        return self.contract + (f" + {self.reasoning_protocol}" if self.reasoning_protocol else "")


TIER_ONE: tuple[Peer, ...] = (
    Peer("chat", "compat", "compat/chat"),
    Peer("chat", "openai", "openai/chat"),
    Peer("chat", "azure", "azure/chat"),
    Peer("chat", "deepseek", "deepseek/chat"),
    Peer("chat", "deepseek-v32", "deepseek-v32/chat"),
    Peer("chat", "deepseek-r1", "deepseek-r1/chat"),
    Peer("chat", "kimi", "kimi/chat"),
    Peer("chat", "kimi-k3", "kimi-k3/chat"),
    Peer("chat", "kimi-selfhosted", "kimi-selfhosted/chat"),
    Peer("chat", "llamacpp", "llamacpp/chat"),
    Peer("chat", "vllm", "vllm/chat"),
    Peer("chat", "ollama", "ollama/chat"),
    Peer("responses", "compat", "compat/responses"),
    Peer("responses", "openai", "openai/responses"),
    Peer("responses", "deepseek", "deepseek/responses"),
    Peer("responses", "xai", "xai/responses"),
    Peer("anthropic", "compat", "compat/anthropic", effort="low"),
    Peer("anthropic", "anthropic", "anthropic/anthropic", effort="low"),
    Peer("anthropic", "anthropic-bound", "anthropic-bound/anthropic", effort="low"),
    Peer("anthropic", "deepseek", "deepseek/anthropic", effort="low"),
)
"""Every contract of tier 1 with the profile that enforces it."""


class Stand:
    """One owner of one session that speaks to the emulator. Use as an async context manager."""

    def __init__(
        self,
        emulator: Emulator,
        peer: Peer,
        folder: Path,
        *,
        tools: Sequence[Tool] | None = None,
        automatic: bool = True,
        new: bool = True,
        asker: Asker | None = None,
    ) -> None:
        self.emulator = emulator
        self.peer = peer
        self.world = CountingWorld()
        self.folder = folder
        self._tools = tools
        self._automatic = automatic
        self._new = new
        self._asker = asker
        """A person, who is asked before `pay`; without one everything is allowed."""
        self._stack = AsyncExitStack()
        self._crew: Crew | None = None

    @property
    def crew(self) -> Crew:
        """The owner at work."""
        if self._crew is None:
            raise RuntimeError("the stand is not open")
        return self._crew

    async def __aenter__(self) -> Stand:
        ledger = await open_ledger(self.folder)
        self._stack.push_async_callback(ledger.close)
        owner, lock = this_process(self.folder / OWNERS)
        self._stack.callback(lock.close)
        client = await self._stack.enter_async_context(Client())
        tools = self._tools if self._tools is not None else self.tools()
        model = endpoint_model(client, self.emulator, self.peer, tools)
        wanted = Wanted(SESSION, {"directory": str(self.folder)} if self._new else None)
        asked = () if self._asker is None else ("pay",)
        setup: Any = dataclasses.replace(Setup(tools=tools, asker=self._asker, ask=asked), model=model)  # type: ignore[arg-type]
        crew = await assemble(ledger, Scheduler(), owner, wanted, setup, None)
        self._stack.push_async_callback(crew.session.close)
        crew.controller.incidents.automatic = self._automatic
        self._crew = crew
        await crew.controller.open()
        return self

    async def __aexit__(self, *exit_: object) -> None:
        await self._stack.aclose()

    def tools(self) -> list[Tool]:
        """A read and a write of the counting world."""
        return [
            self.world.tool("look", EffectClass.READ_ONLY),
            self.world.tool("pay", EffectClass.NON_IDEMPOTENT),
        ]

    def statuses(self) -> list[int]:
        """The status of every request so far."""
        return [entry.status for entry in self.emulator.requests()]

    def starts(self) -> int:
        """How many calls were started, by their receipts."""
        return sum(1 for receipt in self.crew.session.book if receipt.started_at is not None)

    async def history(self) -> list[Message]:
        """What was said so far, as the next request is made from it."""
        return list(await self.crew.controller.incidents.records.messages())

    def frozen(self, history: Sequence[Message], peer: Peer | None = None) -> dict[str, Any]:
        """The request that would be sent for this history."""
        model = endpoint_model(Client(), self.emulator, peer or self.peer, self.tools())
        return dict(model.freeze(history).body)

    async def records(self) -> list[Any]:
        """The incident entries, oldest first."""
        return await self.crew.entries(Kind.INCIDENT)


def open_loop(history: Sequence[Message]) -> list[Message]:
    """The history up to the newest result: a tool loop whose answer is still to come."""
    last = max(n for n, one in enumerate(history) if not isinstance(one, AssistantWords))
    return list(history[: last + 1])


def parts(body: Mapping[str, Any]) -> list[Any]:
    """Messages or input items of a request."""
    found: list[Any] = body.get("messages", body.get("input"))
    return found


def contract_of(peer: Peer) -> contracts.Contract:
    """The contract in force for a peer."""
    named = contracts.resolve(peer.contract).with_reasoning_protocol(peer.reasoning_protocol)
    return dataclasses.replace(named, keys_by_name={**named.keys_by_name, **peer.declared})


def refusal(peer: Peer, body: Mapping[str, Any]) -> tuple[str, ...]:
    """The rules for which the peer's profile would refuse this request; empty when it takes it."""
    given, profile = json.loads(body_bytes(body)), profiles.WIRES[peer.wire][peer.profile]
    if peer.wire == "responses":
        found = responses_rules.check(given, profile, Stored(), account=account_of({"x-api-key": peer.key}))
    elif peer.wire == "anthropic":
        found = anthropic_rules.check(given, profile)
    else:
        found = chat_rules.check(given, profile)
    return () if found is None else found.rules


def endpoint_model(client: Client, emulator: Emulator, peer: Peer, tools: Sequence[Tool]) -> EndpointModel:
    """The model behind a profile of the emulator."""
    url = emulator.base_url(peer.profile, wire=peer.wire)
    if peer.wire == "anthropic":
        url += "/v1"
    endpoint = Endpoint(
        name=peer.endpoint,
        url=url,
        wire=peer.wire,
        contract=peer.contract,
        model=peer.model,
        key=lambda: peer.key,
        reasoning_protocol=peer.reasoning_protocol,
    )
    contract = contract_of(peer)
    specs = [ToolSpec(tool.name, tool.description, tool.parameters) for tool in tools]
    return EndpointModel(
        client,
        endpoint,
        WIRES[peer.wire](),
        contract,
        system=peer.system,
        tools=specs,
        effort=peer.effort,
        hosted=peer.hosted,
    )
