"""Pure. Which kind of tool the provider ran itself, by the contract's lists (PR-98, S-28).

Owns: matching a type of the wire against `tools.hosted`. Does not own: whether the
request enabled it, or what a person is told (`runtime`).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from typing import Any


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
