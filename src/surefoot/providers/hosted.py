"""Pure. Tools the provider runs itself: which kinds a request switches on, and which stand in a reply.

Owns: matching a type of the wire against `tools.hosted`, and the form in which a request
enables a kind (PR-98, S-28). Does not own: the receipt of such a request (`runtime.hosting`),
what a person is told.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

SEARCH = "search"
"""Native search may be enabled freely; every other kind makes its request a call of its own (PR-98)."""


def enabled(names: Sequence[str], contract: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds an owner named, in the contract's order.

    Raises:
        ValueError: the contract has no form for one; the message names it and what is known.
    """
    forms = contract["tools.hosted_forms"]
    unknown = [name for name in names if name not in forms]
    if unknown:
        known = ", ".join(forms) or "none"
        raise ValueError(f"{unknown[0]!r} has no form in contract {contract['contract.id']}; known: {known}")
    return tuple(kind for kind in forms if kind in names)


def with_effects(kinds: Iterable[str]) -> tuple[str, ...]:
    """Those of these kinds whose effects need a receipt."""
    return tuple(kind for kind in kinds if kind != SEARCH)


def forms(kinds: Iterable[str], contract: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tools of a request that switch these kinds on, with no more cache markers than the contract allows (R4)."""
    made = [dict(contract["tools.hosted_forms"][kind]) for kind in kinds]
    left = contract["cache.markers_max"]
    for form in made:
        if "cache_control" not in form:
            continue
        if left == 0 or form.get("type") in contract["cache.forbidden_on"]:
            del form["cache_control"]
        else:
            left -= 1
    return made


def hosted_kinds(types: Iterable[str], contract: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of these item types or tool names, each once; one in no list is `other`."""
    return tuple(dict.fromkeys(_kind(one, contract) for one in types))


def _kind(name: str, contract: Mapping[str, Any]) -> str:
    """A pattern such as `web_search_*` names dated types; the tool's own name lacks the date."""
    for kind, patterns in contract["tools.hosted"].items():
        stem = re.sub(r"_(call|list_tools|approval_request)$", "", name)
        if any(fnmatch.fnmatchcase(one, p) for p in patterns for one in (name, stem, f"{name}_")):
            return str(kind)
    return "other"
