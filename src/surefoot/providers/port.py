"""The wire port: sans-I/O codecs between the neutral conversation and one provider format.

Owns: the request and reply values every wire shares. Does not own: HTTP
(`client`), what an endpoint demands (`contracts`), whether a request is valid (`rules`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from surefoot.core.history import Message


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model is told of it; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One step asked of a model, before any wire form."""

    model: str
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    stream: bool = True
    max_output_tokens: int | None = None
    temperature: float | None = None
    effort: str | None = None
    """How much to reason: a word of the endpoint, `none` for off, None for its default."""
    hosted: Sequence[str] = ()
    """Kinds of the provider's own tools that this request switches on (PR-98)."""
    endpoint: str = ""
    """Name of the endpoint asked: with `model`, what a carrier may be tied to (`reasoning.binding`)."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer, for display, provisional until the step commits; `kind` is `text` or `reasoning`."""

    text: str
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class ReplyCall:
    """One call of a finished reply. `arguments` is the raw accumulated text, never repaired (S-06)."""

    name: str
    arguments: str | None
    provider_call_id: str | None
    cut: bool = False
    """True when the reply ended before this call was closed (S-03); it never runs."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as told; unknown stays None, never 0 (S-35)."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply that ended with its wire's terminal event."""

    text: str
    calls: tuple[ReplyCall, ...]
    finish: str | None
    """The provider's own finish word. The presence of valid calls decides, not this (PR-70)."""
    raw: Mapping[str, Any]
    """The assistant message in the wire's JSON, for faithful replay."""
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    reasoning: str = ""
    paused: bool = False
    """The provider stopped in the middle of its own work: send the history again and it goes on (S-29)."""
    hosted: tuple[str, ...] = ()
    """Kinds of the provider's own tools that stand in this reply (S-28)."""
    enabled: tuple[str, ...] = ()
    """Kinds the request had switched on."""
    searches: tuple[Mapping[str, Any], ...] = ()
    """What each finished native search is shown as: `sources`, `sources_status` (PR-73). Never sent back."""
    notes: tuple[str, ...] = ()
    """Found at receipt: `unreplayable_reasoning` (S-26), `only_reasoning_at_limit` (S-24), `input_transformed`
    (OR-12), `reasoning_missing` (DS-09)."""
    issuer: Mapping[str, str] = field(default_factory=dict)
    """Who made it: `endpoint`, `model` as asked for, `contract`. A carrier returns only there."""

    @property
    def unasked(self) -> tuple[str, ...]:
        """Kinds the provider ran although the request had not switched them on (PR-98)."""
        return tuple(kind for kind in self.hosted if kind not in self.enabled)


class Decoder(Protocol):
    """Turns the bytes of one reply into events and, at its end, a `Reply`."""

    @property
    def finished(self) -> bool:
        """Whether the wire's last marker came, so that nothing more need be read."""
        ...

    def feed(self, chunk: bytes) -> list[TextDelta]:
        """Take bytes as they come, split anywhere, also inside a character."""
        ...

    def end(self) -> Reply:
        """The transport closed cleanly.

        Raises:
            ProviderUnreachable: the reply had not ended (S-07, S-08).
            ProviderNonsense: it is not of the wire's form.
            ProviderRefused: an error under status 200.
        """
        ...


class Wire(Protocol):
    """One request and stream format."""

    name: str
    path: str
    """Path appended to the endpoint's URL."""
    key_header: str
    """Header that carries the key."""
    key_form: str
    """Its value, with `{key}` where the key stands."""
    headers: Mapping[str, str]
    """Headers every request of the wire needs; the owner's own win over them."""

    def encode(self, request: ModelRequest, contract: Mapping[str, Any]) -> dict[str, Any]:
        """The request body as JSON-ready data. Deterministic: same input, same bytes."""
        ...

    def decoder(self, contract: Mapping[str, Any], *, stream: bool) -> Decoder:
        """A fresh decoder for one reply."""
        ...
