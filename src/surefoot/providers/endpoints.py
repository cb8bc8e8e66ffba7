"""Pure. An endpoint as its owner declared it, and one request made ready for it.

Owns: where an endpoint is and what its requests carry, the bytes that will leave (`freeze`), and refusing
those that its contract says would fail (PR-14, X-12). Does not own: sending them (`client`), how a history
becomes a request (`projection`), which rules it breaks (`rules`).
Promises: projection:pure. Nothing here is guessed from a name, and no error holds a key or a header's value.
"""

from __future__ import annotations

import dataclasses
import hashlib
import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from surefoot.core.lifecycle import Book
from surefoot.errors import ProviderError, ProviderRefused, ProviderUnreachable, SettingsError
from surefoot.providers.port import ModelRequest, Wire
from surefoot.providers.projection import InForce, project
from surefoot.providers.rules import Finding, refusing
from surefoot.providers.shaping import body_bytes

_HEADER_NAME = re.compile(r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")


@dataclass(frozen=True, slots=True)
class EndpointLimits:
    """Time limits of one request."""

    connect_seconds: float = 10.0
    first_byte_seconds: float = 300.0
    """From the request's end to the first byte of the reply; a large prompt is read meanwhile."""
    idle_seconds: float = 120.0
    """Between two pieces of the reply; keep-alives count (S-36)."""
    total_seconds: float = 1800.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One model server as the owner declared it. Nothing here is guessed from a name."""

    name: str
    url: str
    """Without the wire's path, e.g. `https://llm.example.net/v1`."""
    wire: str
    contract: str
    """Id of its contract."""
    model: str
    key: Callable[[], str | None] | None = field(default=None, repr=False)
    """Called for each request; None for a server without a key."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    limits: EndpointLimits = EndpointLimits()
    reasoning_protocol: str | None = None
    lasting_url: str | None = None
    """What stands for this server in an incident's scope where `url` changes with every start (PR-19)."""

    @property
    def shown_url(self) -> str:
        """The URL without user info and query, for messages."""
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        host = f"[{host}]" if ":" in host else host
        place = f"{host}:{parts.port}" if parts.port else host
        return urlunsplit((parts.scheme, place, parts.path, "", ""))


def target_of(
    endpoint: Endpoint, wire: str, contract: Mapping[str, Any], effort: str | None
) -> dict[str, Any]:
    """What an incident's budget is bound to: wire, URL, model, contract, thinking and effort (PR-19)."""
    return {
        "wire": wire,
        "url": endpoint.lasting_url or endpoint.shown_url,
        "model": endpoint.model,
        "contract": str(contract["contract.id"]),
        "digest": str(getattr(contract, "digest", "")),
        "thinking": endpoint.reasoning_protocol,
        "effort": effort,
    }


@dataclass(frozen=True, slots=True)
class Frozen:
    """One request made ready: what is asked, as JSON and as the bytes that will leave."""

    request: ModelRequest
    body: Mapping[str, Any]
    content: bytes
    findings: tuple[Finding, ...] = ()
    """What the validator finds in it."""
    limit_bytes: int = 0
    """How large a body the endpoint takes (`limits.body_bytes`); 0 where that is not known."""

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes, in hex."""
        return hashlib.sha256(self.content).hexdigest()


@dataclass(frozen=True, slots=True)
class Known:
    """What is known beside the messages of a request: the receipts, and the repair that is in force."""

    receipts: Book = field(default_factory=Book)
    repair: InForce | None = None


def freeze(
    endpoint: Endpoint,
    wire: Wire,
    contract: Mapping[str, Any],
    request: ModelRequest,
    known: Known | None = None,
) -> Frozen:
    """Make a request ready through the one door of the projection. Deterministic: same input, same bytes."""
    request = dataclasses.replace(request, endpoint=endpoint.name)
    given = known or Known()
    made = project(request.messages, given.receipts, contract, given.repair, request=request, wire=wire)
    limit = int(contract["limits.body_bytes"])
    return Frozen(made.request, made.body, body_bytes(made.body), made.findings, limit)


def request_path(endpoint: Endpoint, wire: Wire) -> str:
    """The path a request goes to, without query, at most 512 characters (PR-15)."""
    return (urlsplit(endpoint.url).path.rstrip("/") + wire.path)[:512]


def place_of(name: str, url: str) -> SplitResult:
    """The URL of an endpoint in parts.

    Raises:
        ProviderUnreachable: it is no HTTP address.
    """
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    except ValueError:
        pass  # brackets or a port that are none; told below
    raise bad_url(name)


def bad_url(name: str) -> ProviderError:
    return ProviderUnreachable(
        f"The URL of endpoint {name!r} is not one that can be asked; it must begin with "
        "http:// or https:// and name a host.",
        next_command="surefoot config show",
        kind="transport",
        transport_code="bad_url",
        transient=False,
    )


def own_headers(endpoint: Endpoint) -> dict[str, str]:
    """The headers the owner declared.

    Raises:
        SettingsError: one cannot stand in a request; named without its value, which may be secret.
    """
    for name, value in endpoint.headers.items():
        if not _HEADER_NAME.match(name) or not value.isascii() or not value.isprintable():
            raise SettingsError(
                f"Header {name!r} of endpoint {endpoint.name!r} holds characters no header can carry.",
                next_command="surefoot config show",
            )
    return {name.lower(): value for name, value in endpoint.headers.items()}


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_locally(frozen: Frozen, endpoint: Endpoint) -> None:
    """Refuse a request that its contract says would fail; it is never sent to learn that (PR-14).

    Raises:
        ProviderRefused: with `local`, and the kind `payload` with both sizes (X-12), or the kind of the first
            finding with the rule ids.
    """
    _refuse_large(frozen, endpoint)
    found = refusing(list(frozen.findings))
    if not found:
        return
    rules = list(dict.fromkeys(finding.rule for finding in found))[:16]
    raise ProviderRefused(
        f"The request was not sent: it breaks {', '.join(rules)} of the contract of endpoint {endpoint.name!r} "
        f"(at {found[0].position}).",
        next_command=f"surefoot contract show {endpoint.contract}",
        kind=found[0].kind,
        certainty="confirmed",
        local=True,
        status=None,
        rules=rules,
        endpoint=endpoint.name,
        transient=False,
    )


def _refuse_large(frozen: Frozen, endpoint: Endpoint) -> None:
    size = len(frozen.content)
    if not frozen.limit_bytes or size <= frozen.limit_bytes:
        return
    raise ProviderRefused(
        f"The request was not sent: it has {size} bytes, and the contract of endpoint {endpoint.name!r} says that "
        f"limits.body_bytes = {frozen.limit_bytes}. Shorten the conversation with /compact, or start a new session.",
        next_command=f"surefoot contract show {endpoint.contract}",
        kind="payload",
        certainty="confirmed",
        local=True,
        status=None,
        rules=["X-12"],
        body_bytes=size,
        limit_bytes=frozen.limit_bytes,
        endpoint=endpoint.name,
        transient=False,
    )
