"""The only file that speaks HTTP to a model.

Owns: one request per call and never another (no re-request, no redirect), time
limits, the proxy rule, reading replies and refusals, and what may be told of them.
Does not own: the request and whether it may leave (`endpoints`), the JSON (`chat`), what a refusal
means (`diagnosis`), whether to ask again (`runtime.controller`, with `diagnosis.next_wait`).

A cancel closes the connection at once. The key and the provider's words stand in
no error. `httpx2` is imported with the first request.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult

from surefoot.errors import (
    ProviderCredentials,
    ProviderError,
    ProviderNonsense,
    ProviderRefused,
    ProviderUnreachable,
)
from surefoot.providers.asked_waits import retry_after
from surefoot.providers.diagnosis import BODY_BYTES, certainty, clean_trace, diagnose, error_of
from surefoot.providers.endpoints import (
    Endpoint,
    Frozen,
    bad_url,
    freeze,
    is_loopback,
    own_headers,
    place_of,
    refuse_locally,
    request_path,
)
from surefoot.providers.port import ModelRequest, Reply, TextDelta, Wire
from surefoot.providers.rules import check
from surefoot.providers.shaping import lacks_carrier
from surefoot.providers.sources import searches

if TYPE_CHECKING:
    import httpx2

_REPLY_BYTES = 256 << 20


def _hear_validator(error: ProviderError, body: Mapping[str, Any], contract: Mapping[str, Any]) -> None:
    """Set the findings over the bytes that were sent beside the refusal (PR-10, lines 10 and 16)."""
    if not isinstance(error, ProviderRefused):
        return
    findings = [(one.rule, one.kind) for one in check(body, contract)]
    kind, status = str(error.facts.get("kind")), error.facts.get("status")
    heard = certainty(kind, status, findings, reasoned=error.facts.get("reasoned") is True)
    error.facts |= {"kind": heard.kind, "certainty": heard.word, "rules": list(heard.rules)}
    if heard.notes:
        error.facts["notes"] = list(heard.notes)


class Client:
    """Sends model requests from one event loop. Use as an async context manager, or `await close()`.

    Every request has a connection of its own. On a kept one a server's silent close looks like a
    lost request, and nobody could say whether it had been read; TLS set-up is small beside a step.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[bool, bool], httpx2.AsyncClient] = {}

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection still open."""
        clients, self._open = list(self._open.values()), {}
        for client in clients:
            await client.aclose()

    async def send(
        self,
        endpoint: Endpoint,
        wire: Wire,
        contract: Mapping[str, Any],
        request: ModelRequest,
        *,
        on_event: Callable[[TextDelta], object] | None = None,
    ) -> Reply:
        """Send one step to the model, once, and give its finished reply.

        Raises:
            ProviderRefused: the server refused, or the request breaks its contract and was not
                sent (`facts["local"]`).
            ProviderCredentials: the key is missing or refused, or the quota is spent.
            ProviderUnreachable: no connection, no answer in time, a broken stream, an overload.
            ProviderNonsense: the reply is not of the wire's form.
        """
        frozen = freeze(endpoint, wire, contract, request)
        refuse_locally(frozen, endpoint)
        return await self.send_frozen(endpoint, wire, contract, frozen, on_event=on_event)

    async def send_frozen(
        self,
        endpoint: Endpoint,
        wire: Wire,
        contract: Mapping[str, Any],
        frozen: Frozen,
        *,
        on_event: Callable[[TextDelta], object] | None = None,
    ) -> Reply:
        """Send bytes that were made ready before, once. Raises as `send` does; checks nothing anew."""
        place = place_of(endpoint.name, endpoint.url)
        told = {
            "endpoint": endpoint.name,
            "request_path": request_path(endpoint, wire),
            "request_digest": frozen.digest,
        }
        exchange = _Exchange(endpoint, wire, contract, on_event, stream=frozen.request.stream)
        try:
            reply = await exchange.run(self._client(place), frozen.content)
        except ProviderError as error:
            error.facts = {**told, **error.facts, "streamed": exchange.streamed}
            _hear_validator(error, frozen.body, contract)
            raise
        marked = _marked(_marked_at_limit(reply, frozen.request), endpoint, contract, frozen.request)
        enabled, shown = tuple(frozen.request.hosted), searches(wire.name, marked.raw)
        return dataclasses.replace(marked, enabled=enabled, searches=shown)

    def _client(self, place: SplitResult) -> httpx2.AsyncClient:
        """One client per kind of place: proxies of the environment never see loopback traffic."""
        kind = (is_loopback(place.hostname or ""), place.scheme == "https")
        if kind not in self._open:
            import httpx2

            loopback, secure = kind
            try:
                self._open[kind] = httpx2.AsyncClient(
                    trust_env=not loopback,
                    verify=secure or not loopback,
                    follow_redirects=False,
                    timeout=None,
                    limits=httpx2.Limits(max_keepalive_connections=0),
                    headers={"accept-encoding": "identity", "connection": "close"},
                )
            except (ImportError, ValueError, OSError, httpx2.InvalidURL):
                raise _bad_surroundings() from None
        return self._open[kind]


def _bad_surroundings() -> ProviderError:
    return ProviderUnreachable(
        "The proxy or certificate settings of the environment cannot be used (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, "
        "SSL_CERT_FILE); correct or unset them.",
        next_command="surefoot doctor",
        kind="transport",
        transport_code="proxy",
        transient=False,
    )


def _marked_at_limit(reply: Reply, request: ModelRequest) -> Reply:
    """S-04: as many tokens as were allowed is the sign of a cut, whatever the finish word says."""
    limit, used = request.max_output_tokens, reply.usage.output_tokens
    if not reply.calls or limit is None or used is None or used < limit:
        return reply
    return dataclasses.replace(
        reply, calls=tuple(dataclasses.replace(call, cut=True) for call in reply.calls)
    )


def _marked(reply: Reply, endpoint: Endpoint, contract: Mapping[str, Any], request: ModelRequest) -> Reply:
    """The reply with who made it, and a note where it lacks reasoning that will be wanted back (DS-09)."""
    issuer = {"endpoint": endpoint.name, "model": request.model, "contract": endpoint.contract}
    lacking = request.effort != "none" and lacks_carrier(reply, contract, tools=bool(request.tools))
    notes = (*reply.notes, "reasoning_missing") if lacking else reply.notes
    return dataclasses.replace(reply, issuer=issuer, notes=notes)


class _Exchange:
    """One request and its reply."""

    def __init__(
        self,
        endpoint: Endpoint,
        wire: Wire,
        contract: Mapping[str, Any],
        on_event: Callable[[TextDelta], object] | None,
        *,
        stream: bool,
    ) -> None:
        self._endpoint = endpoint
        self._wire = wire
        self._contract = contract
        self._on_event = on_event
        self._stream = stream
        self._clock = _Limit(endpoint)
        self._reply_began = False
        self.streamed = False
        """Whether a piece of the answer was shown before an error."""

    async def run(self, client: httpx2.AsyncClient, content: bytes) -> Reply:
        import httpx2

        try:
            async with self._clock, self._asked(client, content) as response:
                if response.status_code != 200:
                    raise await self._refused(response)
                return await self._read(response)
        except TimeoutError:
            raise self._clock.error() from None
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol):
            raise bad_url(self._endpoint.name) from None
        except httpx2.DecodingError:
            raise ProviderNonsense(
                f"{self._who} sent a reply that cannot be decompressed.", kind="nonsense"
            ) from None
        except httpx2.TransportError as error:
            raise self._broken(error) from None

    @asynccontextmanager
    async def _asked(self, client: httpx2.AsyncClient, content: bytes) -> AsyncIterator[httpx2.Response]:
        import httpx2

        limits = self._endpoint.limits
        timeout = httpx2.Timeout(None, connect=limits.connect_seconds)
        url = self._endpoint.url.rstrip("/") + self._wire.path
        headers = {
            **self._wire.headers,
            **own_headers(self._endpoint),
            **self._authorisation(),
            "content-type": "application/json",
        }
        headers["accept"] = "text/event-stream, application/json" if self._stream else "application/json"
        async with client.stream("POST", url, content=content, headers=headers, timeout=timeout) as response:
            yield response

    def _authorisation(self) -> dict[str, str]:
        key = self._endpoint.key() if self._endpoint.key is not None else None
        if key is None:
            return {}
        key = key.strip()
        if not key or not key.isascii() or not key.isprintable():
            raise ProviderCredentials(
                f"The key of endpoint {self._endpoint.name!r} is empty or holds characters no header can carry.",
                next_command="surefoot config show",
                kind="auth",
                status=None,
                transient=False,
            )
        return {self._wire.key_header: self._wire.key_form.format(key=key)}

    async def _read(self, response: httpx2.Response) -> Reply:
        decoder = self._wire.decoder(self._contract, stream=self._stream)
        size = 0
        try:
            async for chunk in response.aiter_bytes():
                self._reply_began = True
                self._clock.moved()
                size += len(chunk)
                if size > _REPLY_BYTES:
                    raise ProviderNonsense(
                        f"{self._who} sent more than {_REPLY_BYTES >> 20} MiB.", kind="nonsense"
                    )
                for event in decoder.feed(chunk):
                    self.streamed = True
                    if self._on_event is not None:
                        self._on_event(event)
                if decoder.finished:
                    break
            return decoder.end()
        except ProviderError as error:
            error.facts = {"kind": "nonsense", "transient": False, **error.facts, **self._told(response)}
            raise

    async def _refused(self, response: httpx2.Response) -> ProviderError:
        """Read at most 64 KiB of the body, name the refusal, and forget the body."""
        import httpx2

        body, complete = b"", True
        try:
            async for chunk in response.aiter_bytes():
                self._clock.moved()
                body += chunk
                if len(body) > BODY_BYTES:
                    body, complete = body[:BODY_BYTES], False
                    break
        except (httpx2.TransportError, httpx2.DecodingError):
            complete = False
        refusal = diagnose(response.status_code, body, self._contract, complete=complete)
        return error_of(refusal, **self._told(response))

    def _told(self, response: httpx2.Response) -> dict[str, Any]:
        """What may be kept of a reply's headers (PR-4, PR-15)."""
        names = self._contract["errors.trace_headers"]
        traces = (clean_trace(response.headers.get(name)) for name in names)
        again = response.headers.get("x-should-retry", "").strip().lower()
        return {
            "trace_id": next((trace for trace in traces if trace is not None), None),
            "retry_after_seconds": retry_after(response.headers, time.time()),
            "should_retry": {"true": True, "false": False}.get(again),
        }

    @property
    def _who(self) -> str:
        return f"The model's server of endpoint {self._endpoint.name!r} ({self._endpoint.shown_url})"

    def _broken(self, error: httpx2.TransportError) -> ProviderError:
        code = transport_code(error, began=self._reply_began)
        if code == "connect_timeout":
            seconds = self._endpoint.limits.connect_seconds
            said = f"could not be reached within connect_seconds = {seconds:g}"
        else:
            said = _TRANSPORT[code]
        return ProviderUnreachable(
            f"{self._who} {said}; nothing of a reply ran.",
            next_command="surefoot doctor",
            kind="transport",
            transport_code=code,
            transient=code not in ("dns", "tls"),
        )


_TRANSPORT: Mapping[str, str] = {
    "refused": "refused the connection (is it running?)",
    "dns": "has a host name that cannot be found",
    "tls": "could not be trusted: its certificate or TLS failed",
    "connect": "could not be connected to",
    "proxy": "could not be reached through the proxy of the environment",
    "reset": "closed the connection before it answered",
    "cut": "broke off in the middle of its reply",
}


def transport_code(error: BaseException, *, began: bool) -> str:
    """A word for how the transport failed, from the causes of the exception, never from its text."""
    import httpx2

    causes = list(_causes(error))
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return "refused"
    names = {type(cause).__name__ for cause in causes}
    if "gaierror" in names:
        return "dns"
    if any(name.startswith("SSL") for name in names):
        return "tls"
    if isinstance(error, httpx2.ProxyError):
        return "proxy"
    if isinstance(error, httpx2.ConnectTimeout):
        return "connect_timeout"
    if isinstance(error, httpx2.ConnectError):
        return "connect"
    return "cut" if began else "reset"


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        if isinstance(error, BaseExceptionGroup):
            found.extend(error.exceptions)
        error = error.__cause__ or error.__context__
    return found


class _Limit:
    """The time limits of one exchange as one deadline that moves with every piece of the reply."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._limits = endpoint.limits
        self._timeout: asyncio.Timeout | None = None
        self._end = 0.0
        self._name = "first_byte_seconds"

    async def __aenter__(self) -> _Limit:
        now = asyncio.get_running_loop().time()
        self._end = now + self._limits.total_seconds
        first = now + self._limits.connect_seconds + self._limits.first_byte_seconds
        self._timeout = asyncio.timeout_at(min(first, self._end))
        self._name = "first_byte_seconds" if first < self._end else "total_seconds"
        await self._timeout.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        timeout, self._timeout = self._timeout, None
        if timeout is not None:
            await timeout.__aexit__(*error)

    def moved(self) -> None:
        """A piece of the reply came."""
        if self._timeout is None:
            return
        idle = asyncio.get_running_loop().time() + self._limits.idle_seconds
        self._name = "idle_seconds" if idle < self._end else "total_seconds"
        self._timeout.reschedule(min(idle, self._end))

    def error(self) -> ProviderError:
        """The error that names the limit which ended the exchange."""
        seconds = getattr(self._limits, self._name)
        return ProviderUnreachable(
            f"The model's server of endpoint {self._endpoint.name!r} was silent too long: "
            f"limit {self._name} = {seconds:g} s. Raise it for this endpoint, or stop and try again.",
            next_command="surefoot config show",
            kind="transport",
            transport_code="time_limit",
            limit=self._name,
            transient=True,
        )
