"""Pure. Whether an encoded request asks for thinking: one reading for every validator.

Owns: the request fields that say so. Does not own: what thinking demands of history (`contracts`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_off(request: Mapping[str, Any]) -> bool:
    """Whether thinking is switched off in so many words; silence leaves it to the provider."""
    thinking, reasoning = request.get("thinking"), request.get("reasoning")
    return (
        (isinstance(thinking, Mapping) and thinking.get("type") == "disabled")
        or (isinstance(reasoning, Mapping) and reasoning.get("effort") == "none")
        or request.get("reasoning_effort") == "none"
        or request.get("enable_thinking") is False
    )


def demanded(request: Mapping[str, Any], contract: Mapping[str, Any]) -> bool:
    """Whether the contract's demand for carriers holds for this request (`reasoning.when`, PR-78)."""
    return contract["reasoning.when"] == "always" or not is_off(request)
