"""The HTTP verifier: is what a call sent there now, by a look-up its owner declares?

Owns: the row `http` of TR-109: reading every page of a look-up, confirming a 404, the commit window
and the lag of the look-up, comparing what a PUT sent, and the far side's clock, by which the age of a key
can be told across a restart of this machine (TR-18). Does not own: which addresses and fields
a far side uses (the declaration), the class of a request (`tools.classify`). Sends GET alone.

    HttpVerifier(HttpLook(
        scope=lambda call: "shop.example/account/7",
        by_key=lambda key, call: f"https://shop.example/orders?key={key}",
        commit_window_seconds=30, lookup_lag_seconds=5,
    ))
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from surefoot.core.canonical import canonical_json
from surefoot.core.model import EffectClass, Grade, Receipt
from surefoot.machine import boot_id, boot_ms
from surefoot.verifiers.clock import since_end_ms
from surefoot.verifiers.port import SUMMARY_CHARACTERS, Deadline, Observation, WriteAttempted

if TYPE_CHECKING:
    import http.client

PAGES = 1000
REPLY_BYTES = 8 << 20
REDIRECTS = 5
REPLY_SECONDS = 10.0
DATE_STEP_MS = 1000
"""A `Date` header tells whole seconds, so a difference of two may be short by one."""
_NEXT = re.compile(r'<([^>]*)>\s*;[^,]*\brel="?next"?', re.IGNORECASE)
_MORE = ("has_more", "hasMore", "next", "next_page", "nextPage", "next_page_token", "nextPageToken", "next_cursor",
         "nextCursor", "nextLink", "@odata.nextLink", "truncated", "isTruncated")  # fmt: skip
"""Members by which a reply says that there are further pages."""
_REDIRECT = frozenset({301, 302, 303, 307, 308})


class Unanswered(Exception):
    """The far side could not be asked, or did not answer in the form that was declared; `args[0]` is a reason."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the far side."""

    status: int
    url: str
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        """The content as JSON. Raises `Unanswered`."""
        try:
            return json.loads(self.content)
        except ValueError:
            raise Unanswered("lookup_unreadable") from None


def _items(value: Any) -> list[Any]:
    """The usual forms of a list: a JSON array, or one under `items`, `data` or `results`; else one object."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        lists = [value[name] for name in ("items", "data", "results") if isinstance(value.get(name), list)]
        return lists[0] if lists else [value]
    raise Unanswered("lookup_unreadable")


def _next_by_link(reply: Reply) -> str | None:
    """The page a `Link` header names. One that the content alone speaks of is not known how to ask for."""
    found = _NEXT.search(reply.headers.get("link", ""))
    if found is not None:
        return found[1]
    try:
        value = reply.json()
    except Unanswered:
        return None  # whoever reads the items says so
    if isinstance(value, dict) and any(value.get(name) for name in _MORE):
        raise Unanswered("pages_unread")
    return None


@dataclass(frozen=True, slots=True)
class HttpLook:
    """How an owner says that a far side can be asked. Every function must only compute."""

    scope: Callable[[Receipt], str]
    """Stable name of service and account; raises or gives an empty text when it cannot be told."""
    by_key: Callable[[str, Receipt], str] | None = None
    """Address of the first page that lists what was made under a key, or of the object with our own id."""
    is_it: Callable[[Any, str, Receipt], bool] | None = None
    """Whether a listed item is the effect. Without it an item counts that holds the key as one of its values,
    and items without the key are no answer: a far side may have overlooked the filter."""
    items: Callable[[Any], list[Any]] = _items
    next_page: Callable[[Reply], str | None] = _next_by_link
    neighbour: Callable[[Receipt], str] | None = None
    """Address of another object of the same collection, to tell a 404 from a missing right."""
    commit_window_seconds: float | None = None
    """How long after the last byte a request may still take effect; None is not declared."""
    lookup_lag_seconds: float | None = None
    """How long the look-up may not know yet what has happened; None is not declared."""
    refusal: Callable[[str, Receipt], str] | None = None
    """Address that answers whether the far side refuses the key from now on."""
    refused: Callable[[Any], bool] = lambda value: isinstance(value, dict) and value.get("refused") is True
    put: Callable[[Receipt], tuple[str, Any]] | None = None
    """For a PUT: its address and the JSON that was sent."""
    headers: Callable[[], Mapping[str, str]] = dict
    """Credentials to read with."""


class Reader:
    """Sends GET and HEAD to one origin at a time; anything else voids the verdict (TR-103)."""

    def __init__(self, headers: Mapping[str, str], deadline: Deadline) -> None:
        self._headers = dict(headers)
        self._deadline = deadline
        self.wrote = False
        self.date_ms: int | None = None
        """What the far side's clock said in its last answer; a cache's copy says nothing."""

    def get(self, url: str) -> Reply:
        """GET, following redirects inside the origin. Raises `Unanswered`."""
        return self.request("GET", url)

    def request(self, method: str, url: str) -> Reply:
        """One reading request. Raises `WriteAttempted` for any other method, and `Unanswered`."""
        if method not in ("GET", "HEAD"):
            self.wrote = True
            raise WriteAttempted(method)
        origin = urlsplit(url)[:2]
        for _ in range(REDIRECTS + 1):
            reply = self._once(method, url)
            if reply.status not in _REDIRECT or "location" not in reply.headers:
                return reply
            url = urljoin(url, reply.headers["location"])
            if urlsplit(url)[:2] != origin:
                raise Unanswered("lookup_led_away")
        raise Unanswered("too_many_redirects")

    def _once(self, method: str, url: str) -> Reply:
        import http.client

        left = min((self._deadline.boot_ms - boot_ms()) / 1000, REPLY_SECONDS)
        if left <= 0:
            raise Unanswered("verifier_timeout")
        connection = _connection(url, left)
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection.request(method, target, headers={"accept": "application/json", **self._headers})
            answer = connection.getresponse()
            content = answer.read(REPLY_BYTES + 1)
        except TimeoutError:
            raise Unanswered("verifier_timeout") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unanswered(f"far_side_unreachable: {type(error).__name__}") from None
        finally:
            connection.close()
        if len(content) > REPLY_BYTES:
            raise Unanswered("lookup_too_large")
        if answer.length and method == "GET":
            raise Unanswered("lookup_cut_off")
        headers = {name.lower(): value for name, value in answer.getheaders()}
        self.date_ms = _date_ms(headers) or self.date_ms
        return Reply(answer.status, url, headers, content)


def _connection(url: str, seconds: float) -> http.client.HTTPConnection:
    import http.client

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Unanswered("lookup_address")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname, parts.port, timeout=seconds)


def _date_ms(headers: Mapping[str, str]) -> int | None:
    from email.utils import parsedate_to_datetime  # heavy to load

    if "age" in headers:
        return None
    try:
        return int(parsedate_to_datetime(headers.get("date", "")).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def far_clock(call: Receipt, date_ms: int | None) -> Mapping[str, Any] | None:
    """How old the call's key was at an answer of the far side; None when that cannot be told (TR-18).

    Within the boot of the start our own boot time tells. After it the difference of two `Date` headers
    does: of this answer, and of one that was seen when the age was still known.
    """
    before = ((call.inspection or {}).get("evidence") or {}).get("farClock")
    before = before if isinstance(before, dict) else None
    if date_ms is None:
        return before
    now = {"dateMs": date_ms, "bootId": boot_id(), "bootMs": boot_ms()}
    if call.started_boot is not None and (call.owner or {}).get("bootId") == now["bootId"]:
        return {**now, "keyAgeMs": boot_ms() - call.started_boot}
    if before is None or date_ms < before["dateMs"]:
        return None
    return {**now, "keyAgeMs": before["keyAgeMs"] + date_ms - before["dateMs"] + DATE_STEP_MS}


class HttpVerifier:
    """Looks for an effect at a far side by a declared look-up; implements `verifiers.port.EffectVerifier`."""

    name = "http"
    far = True
    operations = (("GET", EffectClass.READ_ONLY), ("HEAD", EffectClass.READ_ONLY))

    def __init__(self, look: HttpLook, *, since_end: Callable[[Receipt], int | None] = since_end_ms) -> None:
        self._look = look
        self._since_end = since_end

    def recovery_scope(self, call: Receipt) -> str:
        """Service and account, as the owner names them."""
        return self._look.scope(call)

    def inspect_effect(self, key: str, call: Receipt, deadline: Deadline, *, fenced: bool) -> Observation:
        """Ask the far side. What it does not answer, or not in the declared form, is unknown."""
        reader = Reader(self._look.headers(), deadline)
        try:
            found = self._ask(reader, key, call, fenced=fenced)
        except Unanswered as error:
            found = _unknown(str(error).partition(":")[0], "The far side gave no answer that counts.")
        if reader.wrote:
            raise WriteAttempted("a look-up tried to write")
        clock = far_clock(call, reader.date_ms)
        return found if clock is None else replace(found, evidence={**found.evidence, "farClock": clock})

    def _ask(self, reader: Reader, key: str, call: Receipt, *, fenced: bool) -> Observation:
        if self._look.by_key is not None and key:
            elapsed = (
                self._since_end(call) if fenced else None
            )  # what is over before pages are read adds none
            seen = self._by_key(reader, key, call)
            if isinstance(seen, Observation):
                return seen
            return self._refused(reader, key, call) or self._absent(seen, elapsed, fenced=fenced)
        if self._look.put is not None:
            return _compared(reader, *self._look.put(call), fenced=fenced)
        return _unknown("no_lookup", "No look-up by key is declared, and nothing was put.")

    def _by_key(self, reader: Reader, key: str, call: Receipt) -> Observation | dict[str, Any]:
        """Present, unknown, or what was read when every page holds none."""
        pages = 0
        for reply in self._pages(reader, key, call):
            if reply.status == 404 and pages == 0:
                return self._missing(reader, call)
            if reply.status != 200:
                return _unknown(
                    "lookup_failed", f"The look-up answered {reply.status}.", {"status": reply.status}
                )
            pages += 1
            items = self._look.items(reply.json())
            hits = [item for item in items if self._fits(item, key, call)]
            if items and not hits and self._look.is_it is None:
                return _unknown("lookup_not_by_key", "The look-up lists what does not hold the key.")
            if hits:
                said = f"The look-up by key lists it ({len(hits)} on page {pages})."
                return Observation(
                    "present", Grade.PROOF, False, said, {"pages": pages, "item": _small(hits[0])}
                )
        return {"pages": pages}

    def _fits(self, item: Any, key: str, call: Receipt) -> bool:
        return _holds(item, key) if self._look.is_it is None else self._look.is_it(item, key, call)

    def _pages(self, reader: Reader, key: str, call: Receipt) -> Iterator[Reply]:
        if self._look.by_key is None:
            return
        url: str | None = self._look.by_key(key, call)
        seen: set[str] = set()
        while url is not None:
            if url in seen or len(seen) >= PAGES:
                raise Unanswered("pages_unread")
            seen.add(url)
            reply = reader.get(url)
            yield reply
            following = self._look.next_page(reply)
            url = None if following is None else urljoin(reply.url, following)

    def _missing(self, reader: Reader, call: Receipt) -> Observation | dict[str, Any]:
        """A 404 counts only when another object of the collection can be read (TR-109)."""
        if self._look.neighbour is None:
            return _unknown(
                "not_found_unconfirmed", "The far side answered 404, which may mean a missing right."
            )
        status = reader.get(self._look.neighbour(call)).status
        if status != 200:
            said = f"The far side answered 404, and {status} for another object."
            return _unknown("not_found_unconfirmed", said, {"neighbour": status})
        return {"status": 404, "neighbour": 200}

    def _refused(self, reader: Reader, key: str, call: Receipt) -> Observation | None:
        """What the look-up finds once the far side refuses the key; None when it does not say so."""
        if self._look.refusal is None:
            return None
        reply = reader.get(self._look.refusal(key, call))
        if reply.status != 200 or not self._look.refused(reply.json()):
            return None
        read = self._by_key(reader, key, call)  # what took effect before the refusal is listed by now
        if isinstance(read, Observation):
            return read
        said = "The look-up finds none, and the far side refuses the key from now on."
        return Observation("absent", Grade.PROOF, True, said, {**read, "keyRefused": True})

    def _absent(self, read: Mapping[str, Any], elapsed: int | None, *, fenced: bool) -> Observation:
        window, lag = self._look.commit_window_seconds, self._look.lookup_lag_seconds
        evidence = {**read, "commitWindowSeconds": window, "lookupLagSeconds": lag, "msSinceEnd": elapsed}
        reason = _why_open(window, lag, elapsed, fenced=fenced)
        said = "The look-up by key read all its pages and finds none."
        if reason is not None:
            open_point = "that a request which was sent cannot still take effect, or is only not listed yet"
            return Observation("absent", Grade.STRONG, False, said, evidence, open_point, reason)
        return Observation("absent", Grade.PROOF, True, said, evidence)


def _why_open(window: float | None, lag: float | None, elapsed: int | None, *, fenced: bool) -> str | None:
    """Why nothing found is no proof yet; None when it is one. First it may commit, then be listed."""
    if not fenced:
        return "not_fenced"
    if window is None or lag is None:
        return "no_commit_window" if window is None else "no_lookup_lag"
    if elapsed is None:
        return "end_unknown"
    if elapsed < window * 1000:
        return "commit_window_open"
    return None if elapsed >= (window + lag) * 1000 else "lookup_lag_open"


def _compared(reader: Reader, url: str, sent: Any, *, fenced: bool) -> Observation:
    """A GET that equals what was PUT says how things are, never who made them so."""
    reply = reader.get(url)
    if reply.status != 200:
        return _unknown("lookup_failed", f"The address answered {reply.status}.", {"status": reply.status})
    if canonical_json(reply.json()) != canonical_json(sent):
        return _unknown("differs", "What stands there is not what was sent.", {"status": 200})
    open_point = "that this call put it there"
    return Observation(
        "satisfied", Grade.STRONG, fenced, "What stands there equals what was sent.", {}, open_point
    )


def _holds(item: Any, key: str) -> bool:
    """Whether a value of JSON is the key, or holds it somewhere inside."""
    if isinstance(item, dict):
        return any(_holds(value, key) for value in item.values())
    if isinstance(item, list):
        return any(_holds(value, key) for value in item)
    return bool(item == key)


def _small(item: Any) -> Any:
    text = canonical_json(item)
    return item if len(text) <= SUMMARY_CHARACTERS else text[:SUMMARY_CHARACTERS]


def _unknown(reason: str, summary: str, evidence: Mapping[str, Any] | None = None) -> Observation:
    return Observation("unknown", Grade.NONE, False, summary, evidence or {}, reason=reason)
