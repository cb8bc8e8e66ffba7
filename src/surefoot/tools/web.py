"""The `http` tool: one request by a transport of our own, which knows whether any byte of it left.

Owns: sending, redirects (EC-17), the key header (TR-16), the comparison with the deadline before the
first byte (TR-175), and what an end means by what was sent (TR-39, TR-40). Does not own: classes
(`tools.classify.http`), looking an effect up (`verifiers.http`). It is offered where the owner's settings
or a program say so (`tools.http.offered`), not by default.
Promises: receipt:exact; a request of which a byte left is never told as not sent.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urljoin, urlsplit

from surefoot.core.effects import Effect
from surefoot.core.ladder import TRANSIENT_STATUSES
from surefoot.core.model import EffectClass, EffectTrace, Receipt, State
from surefoot.runtime.tools import NEVER_RAN, Arguments, LiveAttempt, Outcome, Place, Tool
from surefoot.tools.classify.http import classify_http
from surefoot.tools.processes.kernel import boot_ms
from surefoot.verifiers.http import HttpLook, HttpVerifier
from surefoot.verifiers.port import EffectVerifier

if TYPE_CHECKING:
    import http.client

SECONDS = 60.0
REDIRECTS = 10
REPLY_BYTES = 4 << 20
KEY_HEADER = "Idempotency-Key"
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", KEY_HEADER.lower()})
_CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization"})
_REDIRECT = frozenset({301, 302, 303, 307, 308})
_SAME_AGAIN = frozenset({307, 308})
_LOST = 408
"""Told by something between: whether the far side acted is not known, as with every 5xx (TR-39)."""
_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "method": {"type": "string", "pattern": "^[A-Z]+$", "description": "GET, POST, PUT, …"},
        "url": {"type": "string", "pattern": "^https?://"},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "json": {"description": "Body, sent as JSON."},
    },
    "required": ["method", "url"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class HttpService:
    """What the owner knows of one far side. Addresses may hold `{key}`, for the call's key."""

    host: str
    """The host as it stands in an address, without port; its subdomains are others."""
    key_lifetime_seconds: float | None = None
    """For so long it drops a request that carries a key it has seen (EC-18)."""
    key_after_failure: bool = True
    """It takes a key again after a failure under it; else nothing is tried again by itself."""
    in_progress_status: Sequence[int] = ()
    """Says that our own key is still being worked on, usually 409 (TR-18)."""
    queries: Sequence[str] = ()
    """Addresses where a POST only asks (EC-18)."""
    lookup: str | None = None
    """Lists what was made under a key."""
    neighbour: str | None = None
    """Another object of the same collection, to tell a 404 from a missing right."""
    refusal: str | None = None
    """Says whether a key is refused from now on."""
    commit_window_seconds: float | None = None
    lookup_lag_seconds: float | None = None


def http_tool(
    services: Sequence[HttpService] = (), *, name: str = "http", verifier: EffectVerifier | None = None
) -> Tool:
    """A tool that sends one HTTP request; `services` say what the owner knows of the far sides.

    `verifier` looks effects up for every host; without one a service's own look-up does, and a PUT
    can be looked at by reading its address.
    """
    known = {service.host.lower(): service for service in services}

    def service_of(arguments: Arguments) -> HttpService:
        host = urlsplit(str(arguments.get("url", ""))).hostname or ""
        return known.get(host) or HttpService(host)

    def effect(arguments: Arguments, place: Place) -> Effect:
        return _effect(arguments, service_of(arguments), key_lives=True)

    def body(attempt: LiveAttempt, arguments: Arguments) -> Outcome:
        effect_class = effect(arguments, attempt.place).effect_class
        return _run(attempt, arguments, effect_class, service_of(arguments))

    def choose(call: Receipt) -> EffectVerifier | None:
        return verifier or _look_up(call, service_of(json.loads(call.arguments or "{}")))

    return Tool(
        name=name,
        description="Send one HTTP request and return status and body. A write carries an idempotency key.",
        parameters=_PARAMETERS,
        sync_body=body,
        effect=effect,
        rule_name="Http",
        subjects=lambda arguments, place: (f"{arguments['method']} {arguments['url']}",),
        choose_verifier=choose,
        time_limit_seconds=SECONDS,
        choose_key_lifetime=lambda arguments: service_of(arguments).key_lifetime_seconds,
        key_after_failure=lambda arguments: service_of(arguments).key_after_failure,
        effect_without_key=lambda arguments, place: _effect(
            arguments, service_of(arguments), key_lives=False
        ),
        summary=lambda arguments: f"{arguments.get('method')} {arguments.get('url')}",
    )


def _effect(arguments: Arguments, service: HttpService, *, key_lives: bool) -> Effect:
    url = str(arguments["url"])
    return classify_http(
        str(arguments["method"]),
        dict(arguments.get("headers") or {}),
        "json" in arguments,
        url,
        key_lives=key_lives and service.key_lifetime_seconds is not None,
        declared_query=url in service.queries,
    )


def _look_up(call: Receipt, service: HttpService) -> EffectVerifier | None:
    """By the service's own look-up, else a PUT by reading where it went; any other write cannot be (TR-110)."""
    asked = json.loads(call.arguments or "{}")
    url = str(asked.get("url", ""))
    is_put = asked.get("method") == "PUT" and "json" in asked
    if service.lookup is None and not is_put:
        return None
    parts = urlsplit(url)
    where = f"{parts.scheme}://{parts.hostname}:{parts.port or ''}"
    scope = where if service.lookup is not None else where + parts.path
    neighbour = service.neighbour
    return HttpVerifier(
        HttpLook(
            scope=lambda receipt: scope,
            by_key=_filled(service.lookup),
            refusal=_filled(service.refusal),
            neighbour=None if neighbour is None else lambda receipt: neighbour,
            commit_window_seconds=service.commit_window_seconds,
            lookup_lag_seconds=service.lookup_lag_seconds,
            put=(lambda receipt: (url, asked["json"])) if is_put else None,
            headers=lambda: {k: v for k, v in (asked.get("headers") or {}).items() if k.lower() not in _OURS},
        )
    )


def _filled(address: str | None) -> Callable[[str, Receipt], str] | None:
    if address is None:
        return None
    return lambda key, receipt: address.replace("{key}", quote(key, safe=""))


# Sending --------------------------------------------------------------------------------------


class _Sent:
    """Whether a byte of any request of this attempt left; set directly before the first one does (TR-40)."""

    def __init__(self) -> None:
        self.any = False


def _run(
    attempt: LiveAttempt, arguments: Arguments, effect_class: EffectClass, service: HttpService
) -> Outcome:
    import http.client

    sent = _Sent()
    limit = boot_ms() + int(SECONDS * 1000)
    if attempt.deadline_boot_ms is not None:
        limit = min(limit, attempt.deadline_boot_ms)
    try:
        request = _Request(arguments, effect_class, attempt.idempotency_key)
        status, text = request.exchange(sent, limit)
    except _TooLate:
        return Outcome("", State.UNKNOWN, "time_limit") if sent.any else NEVER_RAN
    except TimeoutError:
        return _broken(sent, "time_limit", "no answer in time")
    except (OSError, http.client.HTTPException) as error:
        return _broken(sent, "connection_lost", f"{type(error).__name__}: {error}")
    except ValueError as error:
        return _broken(sent, "connection_lost", str(error))
    if status in service.in_progress_status:
        return Outcome(_shown(status, text), State.UNKNOWN, "declared")
    return _meaning(status, text, effect_class, retry_after=request.retry_after)


def _broken(sent: _Sent, reason: str, said: str) -> Outcome:
    if sent.any:
        return Outcome(said, State.UNKNOWN, reason)
    text = f"The request was not sent: {said}"
    return Outcome(text, State.FAILED, error_kind="not_sent", effect_trace=EffectTrace.NONE, transient=True)


def _shown(status: int, text: str) -> str:
    return f"{status}\n{text}".rstrip()


def _meaning(status: int, text: str, effect_class: EffectClass, *, retry_after: float | None) -> Outcome:
    shown = _shown(status, text)
    lost = status == _LOST or status >= 500
    if lost and not effect_class.retry_safe:
        return Outcome(shown, State.UNKNOWN, "connection_lost")
    if status >= 400:
        passes = status in TRANSIENT_STATUSES
        wait = retry_after if passes else None
        return Outcome(
            shown, State.FAILED, error_kind="http_status", transient=passes, retry_after_seconds=wait
        )
    return Outcome(shown)


class _TooLate(Exception):
    """The deadline had passed directly before the first byte of a request."""


class _Request:
    """One request of the model, and the redirects that may follow it by themselves."""

    def __init__(self, arguments: Arguments, effect_class: EffectClass, key: str) -> None:
        self._method = str(arguments["method"])
        self._url = str(arguments["url"])
        self._reads = effect_class is EffectClass.READ_ONLY
        given = dict(arguments.get("headers") or {})
        self._headers = {name: value for name, value in given.items() if name.lower() not in _OURS}
        self._body: bytes | None = None
        self.retry_after: float | None = None
        """Seconds the last answer asked for before another try; dates are not read."""
        if "json" in arguments:
            self._body = json.dumps(arguments["json"], ensure_ascii=False).encode()
            self._headers.setdefault("Content-Type", "application/json")
        if not self._reads:
            self._headers[KEY_HEADER] = key

    def exchange(self, sent: _Sent, limit_boot_ms: int) -> tuple[int, str]:
        """Status and text of the last answer."""
        url, method = self._url, self._method
        for _ in range(REDIRECTS + 1):
            status, location, text = self._once(method, url, sent, limit_boot_ms)
            following = None if location is None else urljoin(url, location)
            if following is None or not self._goes_on(status, url, following):
                return status, text
            if urlsplit(url)[:2] != urlsplit(following)[:2]:
                self._headers = {k: v for k, v in self._headers.items() if k.lower() not in _CREDENTIALS}
            url = following
        raise OSError("too many redirects")

    def _goes_on(self, status: int, url: str, following: str) -> bool:
        """A read follows every redirect that stays on the web; a write only the two that repeat it, same origin."""
        if status not in _REDIRECT or not following.startswith(("http://", "https://")):
            return False
        if self._reads:
            return True
        return status in _SAME_AGAIN and urlsplit(url)[:2] == urlsplit(following)[:2]

    def _once(self, method: str, url: str, sent: _Sent, limit_boot_ms: int) -> tuple[int, str | None, str]:
        connection = _connection(url, max(0.001, (limit_boot_ms - boot_ms()) / 1000))
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection.connect()
            _guard(connection, sent, limit_boot_ms)
            connection.request(method, target, self._body, self._headers)
            answer = connection.getresponse()
            content = answer.read(REPLY_BYTES + 1)
            if answer.length and len(content) <= REPLY_BYTES:
                raise ConnectionError("the answer was cut off")
            cut = "\n[cut]" if len(content) > REPLY_BYTES else ""
            text = content[:REPLY_BYTES].decode("utf-8", "replace") + cut
            self.retry_after = _asked_wait(answer)
            return answer.status, answer.getheader("location"), text
        finally:
            connection.close()


def _asked_wait(answer: http.client.HTTPResponse) -> float | None:
    from surefoot.providers.asked_waits import retry_after  # no start reads a date of a header

    return retry_after({name.lower(): value for name, value in answer.getheaders()}, time.time())


def _guard(connection: http.client.HTTPConnection, sent: _Sent, limit_boot_ms: int) -> None:
    """Compare the deadline directly before the first byte, and note that one leaves."""
    send: Callable[[Any], None] = connection.send

    def guarded(content: Any) -> None:
        if boot_ms() >= limit_boot_ms:
            raise _TooLate
        sent.any = True
        send(content)

    connection.send = guarded  # type: ignore[method-assign, assignment]


def _connection(url: str, seconds: float) -> http.client.HTTPConnection:
    import http.client

    parts = urlsplit(url)
    if not parts.hostname:
        raise ValueError(f"{url!r} names no host")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname, parts.port, timeout=seconds)
