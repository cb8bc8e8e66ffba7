"""The press on a refused request as it looks from outside: its body, and why it was not taken.

Owns: the form of the one action of PR-80, the answer that carries a refusal (PR-31, PR-82). Does not
own: admission (`core.incident`), carrying it out (`controller`), HTTP or ACP, words for people.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from surefoot.core import restated
from surefoot.core.incident import Refusal
from surefoot.errors import LedgerError
from surefoot.runtime.requests import Answer

ACTION = "protocol_recovery"
BODY_BYTES = 1 << 20
"""Bodies that may hold words of a person are bounded at this (UX-85)."""
_FIELDS = frozenset({"action", "recoveryId", "input"})
_STATUS = {
    "bad_request": 400,
    "unknown_action": 400,
    "unknown_field": 400,
    "body_too_large": 413,
    "storage_failed": 503,
}


@dataclass(frozen=True, slots=True)
class Press:
    """Which incident is meant, and what the person adds for the model."""

    recovery_id: str
    guidance: str = ""


def read(body: bytes | Mapping[str, Any]) -> Press | Refusal:
    """Read the body of the action; nothing in it is a path, a format or a command (PR-62)."""
    if isinstance(body, bytes):
        if len(body) > BODY_BYTES:
            return Refusal("body_too_large")
        try:
            body = json.loads(body)
        except (ValueError, RecursionError):
            return Refusal("bad_request")
    if not isinstance(body, Mapping):
        return Refusal("bad_request")
    if body.get("action") != ACTION:
        return Refusal("unknown_action")
    if "format" in body:
        return Refusal("bad_request", "format_not_supported")
    if set(body) - _FIELDS:
        return Refusal("unknown_field")
    identity, guidance = body.get("recoveryId"), body.get("input", "")
    if identity is None or identity == "":
        return Refusal("bad_request", "id_missing")
    if not isinstance(identity, str) or not isinstance(guidance, str):
        return Refusal("bad_request")
    return (
        Press(identity, guidance)
        if restated.guidance_fits(guidance)
        else Refusal("bad_request", "guidance_too_long")
    )


Card = Callable[[], Awaitable["Mapping[str, Any] | None"]]


class Recovers(Protocol):
    """A controller, as far as this action needs one."""

    async def recover_context(self, incident_id: str | None = None, guidance: str = "") -> Any:
        """Recover once; an `Answer` says why nothing was sent."""
        ...


async def act(controller: Recovers, card: Card, body: bytes | Mapping[str, Any]) -> Any:
    """Take the body that every surface sends, which names its incident always (PR-80, PR-81)."""
    press = read(body)
    if isinstance(press, Refusal):
        return await answered(card, press)
    return await controller.recover_context(press.recovery_id, press.guidance)


async def answered(card: Card, refused: Refusal) -> Answer:
    """A refusal with the incident as it stands, so that a second press shows the first one's result."""
    told = refused.code if refused.reason is None else f"{refused.code}: {refused.reason}"
    try:
        incident = await card()
    except LedgerError:
        incident = None  # the storage that failed is the one it would be read from
    body = {"code": refused.code, "reason": refused.reason, "message": told, "incident": incident}
    return Answer(_STATUS.get(refused.code, 409), body)
