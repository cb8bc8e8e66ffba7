"""What a press looks like from outside: the request, who makes it, and its answer.

Owns: the form of a request (rule 3 of TR-125), the caller (TR-129), the answer. Does not own:
the rules about the call itself (`core.admission`), the record (`actions`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.core.effects import judged_effect
from surefoot.core.limits import Limits
from surefoot.core.model import Action, Assurance, Receipt
from surefoot.errors import LedgerError, LedgerUncertain

FIELDS = frozenset(
    {"sessionPath", "runtimeEpoch", "revision", "attemptId", "inspectionId", "action", "note", "items"}
)
LEVELS = tuple(Assurance)
KINDS = {
    Action.CONFIRM: "confirmed",
    Action.DENY: "denied",
    Action.REJECT: "rejected",
    Action.RELEASE: "released",
}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who presses, and how they were let in (TR-129)."""

    who: str
    channel: str
    method: str = "call"
    client: str | None = None
    let_in_by: str = "os_user"
    ancestry: str = "none"
    assurance: str = "same-user"
    not_a_person: str | None = None
    """Why this caller may not decide (`inside_tool_body`, `descendant_of_tool`, `code_missing`); None when it may."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an action is answered with: an HTTP status and JSON. 200 carries the new snapshot."""

    status: int
    body: Mapping[str, Any]


def assured(caller: Caller, receipt: Receipt, least: str) -> str | None:
    """Why this caller's word does not weigh enough for this call, or None (UX-122)."""
    if judged_effect(receipt).effect_class.retry_safe or caller.assurance not in LEVELS:
        return None if caller.assurance in LEVELS else "assurance_too_low"
    return None if LEVELS.index(caller.assurance) >= LEVELS.index(least) else "assurance_too_low"


def storage_failed(error: LedgerError) -> Answer:
    """Nothing is recorded, or not known to be (TR-131)."""
    body: dict[str, Any] = {"code": "storage_failed", "message": error.message}
    if isinstance(error, LedgerUncertain):
        body["reason"] = "uncertain"
    return Answer(409, body)


def malformed(request: Mapping[str, Any], limits: Limits) -> str | None:
    """Rule 3 of TR-125, as far as it concerns the value itself."""
    size = _json_bytes(request)
    if size is None:
        return "bad_request"
    if set(request) - FIELDS:
        return "unknown_field"
    if size > limits.action_body_bytes:
        return "body_too_large"
    if not isinstance(request.get("action"), str) or request["action"] not in set(Action):
        return "unknown_action"
    texts = ("sessionPath", "runtimeEpoch", "revision", "attemptId", "inspectionId", "note")
    if any(request.get(name) is not None and not isinstance(request[name], str) for name in texts):
        return "bad_request"
    if len(request.get("note") or "") > limits.note_characters:
        return "bad_request"
    items = request.get("items")
    if items is None:
        return None if request.get("attemptId") else "bad_request"
    if request["action"] not in {action.value for action in KINDS}:
        return "bad_request"
    return _malformed_items(items, limits)


def _json_bytes(request: Any) -> int | None:
    """The size of a request as JSON; None when it is no JSON object."""
    if not isinstance(request, Mapping):
        return None
    try:
        return len(json.dumps(dict(request), allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError):
        return None


def _malformed_items(items: Any, limits: Limits) -> str | None:
    if not isinstance(items, list) or not 0 < len(items) <= limits.bulk_items:
        return "bad_request"
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get("attemptId"), str):
            return "bad_request"
        if set(item) - {"attemptId", "inspectionId"}:
            return "unknown_field"
        if not isinstance(item.get("inspectionId"), str | None):
            return "bad_request"
    names = [item["attemptId"] for item in items]
    return None if len(set(names)) == len(names) else "bad_request"  # a call is resolved once
