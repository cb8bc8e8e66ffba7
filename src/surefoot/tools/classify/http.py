"""Pure. The class of one HTTP request (EC-17, EC-18).

Owns: method, body and override headers. Does not own: how `curl` spells them (`clients`).
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from surefoot.core.effects import EVERYTHING, Effect
from surefoot.core.model import EffectClass
from surefoot.tools.classify.rules import load

_BY_METHOD = {
    "GET": EffectClass.READ_ONLY,
    "HEAD": EffectClass.READ_ONLY,
    "OPTIONS": EffectClass.READ_ONLY,
    "PUT": EffectClass.IDEMPOTENT_WRITE,
    "DELETE": EffectClass.NON_IDEMPOTENT,
}


def classify_http(
    method: str,
    headers: Mapping[str, str],
    body_present: bool,
    url: str,
    *,
    key_lives: bool = False,
    declared_query: bool = False,
) -> Effect:
    """Classify a request by method; its reach is the host.

    `key_lives`: the owner declared key support for this host and the key has not expired.
    `declared_query`: the owner declared this address as a query (both EC-18).
    """
    found = method_class(method.upper(), headers, body_present)
    if method.upper() == "POST" and not overridden(headers):
        if declared_query:
            found = EffectClass.READ_ONLY
        elif key_lives:
            found = EffectClass.IDEMPOTENT_WRITE
    if found is EffectClass.READ_ONLY:
        return Effect(found)
    return Effect(found, (host_member(url),))


def method_class(method: str, headers: Mapping[str, str], body_present: bool) -> EffectClass:
    """The class of a method with these headers; a body where none belongs makes it UNKNOWN."""
    found = _BY_METHOD.get(method, EffectClass.UNKNOWN)
    if overridden(headers) or (found is EffectClass.READ_ONLY and body_present):
        return EffectClass.UNKNOWN
    return found


def overridden(headers: Mapping[str, str]) -> bool:
    """Whether a header asks the server to take another method."""
    known = load("network")["http"]["override_headers"]
    return any(name.strip().lower() in known for name in headers)


def host_member(url: str) -> str:
    """`host:` of an address, with its port when it names one; `*` when it cannot be told."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return EVERYTHING
    if not host or any(char in host for char in "{}[]* \t\\"):
        return EVERYTHING
    return f"host:{host}" if port is None else f"host:{host}:{port}"
