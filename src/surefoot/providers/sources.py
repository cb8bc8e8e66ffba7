"""Pure. What a finished native search is shown as: its sources, or that the provider gave none.

Owns: which URL is a usable source (PR-73), what proves that a search finished (PR-74), and the
display form (PR-75). Does not own: the raw items, which are replayed as they came (PR-76); words.

The form is made once, when the reply is read, and stored beside the reply. A record
without it is never filled in later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

AVAILABLE = "available"
NOT_PROVIDED = "not_provided"


def searches(wire: str, raw: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """One display form per search of a reply whose end its raw items prove, in order.

    `{"sources": [{"url", "title"}], "sources_status": "available"}`, or `[]` with `not_provided`.
    """
    if wire == "anthropic":
        return tuple(map(_form, _anthropic(_items(raw.get("content")))))
    if wire == "responses":
        return tuple(map(_form, _responses(_items(raw.get("output")))))
    return ()


def is_usable(url: object) -> bool:
    """Whether a URL is one a person could follow: http or https, a host, no user info."""
    if not isinstance(url, str):
        return False
    try:
        parts = urlsplit(url)
        port_fits = parts.port is None or parts.port > 0
    except ValueError:
        return False
    plain = not any(letter.isspace() or ord(letter) < 0x20 for letter in url)
    return (
        plain
        and port_fits
        and parts.scheme in ("http", "https")
        and bool(parts.hostname)
        and "@" not in parts.netloc
    )


def _form(found: Sequence[dict[str, str]]) -> dict[str, Any]:
    return {"sources": list(found), "sources_status": AVAILABLE if found else NOT_PROVIDED}


def _items(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _usable(given: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Each usable source once, with its title where it has one."""
    found: dict[str, dict[str, str]] = {}
    for one in given:
        url, title = one.get("url"), one.get("title")
        if isinstance(url, str) and is_usable(url):
            found.setdefault(url, {"url": url, "title": title if isinstance(title, str) else ""})
    return list(found.values())


def _anthropic(blocks: Sequence[Mapping[str, Any]]) -> Iterable[list[dict[str, str]]]:
    """A result list proves the end; an error stands there as an object, and says nothing about sources."""
    for block in blocks:
        if block.get("type") == "web_search_tool_result" and isinstance(block.get("content"), list):
            yield _usable(_items(block["content"]))


def _responses(items: Sequence[Mapping[str, Any]]) -> Iterable[list[dict[str, str]]]:
    """A completed `web_search_call`; its own sources, else what the words behind it cite as data."""
    for place, item in enumerate(items):
        if item.get("type") == "web_search_call" and item.get("status") == "completed":
            action = item.get("action")
            own = _usable(_items(action.get("sources"))) if isinstance(action, Mapping) else []
            yield own or _cited(items[place:])


def _cited(items: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    parts = [part for item in items if item.get("type") == "message" for part in _items(item.get("content"))]
    notes = [note for part in parts for note in _items(part.get("annotations"))]
    return _usable(note for note in notes if note.get("type") == "url_citation")
