"""How a run ended: exit code, subtype, and the result document. Pure.

Owns: the table of exit codes and their order (UX-34, UX-35), the subtypes (UX-31), the
lines of `json` and `stream-json` (UX-30). Does not own: running (`cli.running`), cards (`view`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from surefoot.core.model import Receipt
from surefoot.core.redact import redact
from surefoot.core.results import result_of

SCHEMA_VERSION = 1

ORDER = (141, 130, 143, 3, 8, 4, 7, 6, 124, 5, 1, 2)
"""When several hold, the first of these is given (UX-35); usage faults end before a run begins."""

SUBTYPES: Mapping[int, str] = {
    0: "success",
    1: "error_during_execution",
    2: "error_during_execution",
    3: "error_outcome_unknown",
    4: "error_question_unanswered",
    5: "error_max_turns",
    6: "error_credentials",
    7: "error_provider_refused",
    8: "error_session_held",
    124: "error_timeout",
    130: "error_interrupted",
    141: "error_interrupted",
    143: "error_interrupted",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """The facts of a run's end. Each is true or false by itself; `exit_code` picks."""

    reader_gone: bool = False
    interrupted: bool = False
    terminated: bool = False
    unknown_undecided: bool = False
    session_held: bool = False
    question_unanswered: bool = False
    history_refused: bool = False
    credentials: bool = False
    timed_out: bool = False
    turn_limit: bool = False
    money_limit: bool = False
    failed: bool = False
    usage: bool = False
    reason: str = ""


def exit_code(ending: Ending) -> int:
    """The code of this ending, the first of `ORDER` that holds; 0 when none does."""
    holds = {
        141: ending.reader_gone,
        130: ending.interrupted,
        143: ending.terminated,
        3: ending.unknown_undecided,
        8: ending.session_held,
        4: ending.question_unanswered,
        7: ending.history_refused,
        6: ending.credentials,
        124: ending.timed_out,
        5: ending.turn_limit or ending.money_limit,
        1: ending.failed,
        2: ending.usage,
    }
    return next((code for code in ORDER if holds[code]), 0)


def subtype(ending: Ending) -> str:
    """The subtype of the result document that goes with the exit code."""
    code = exit_code(ending)
    if code == 5 and not ending.turn_limit:
        return "error_max_budget_usd"
    return SUBTYPES[code]


@dataclass(slots=True)
class Tally:
    """What a result document counts beside the ending."""

    session_id: str | None = None
    turn_id: str | None = None
    text: str = ""
    num_turns: int = 0
    duration_ms: int = 0
    duration_waiting_ms: int = 0
    usage: Mapping[str, Any] = field(default_factory=dict)
    total_cost_usd: float | None = None
    permission_denials: list[Mapping[str, Any]] = field(default_factory=list)
    unknown_outcomes: Sequence[Mapping[str, Any]] = ()
    background: Sequence[Mapping[str, Any]] = ()
    incident: Mapping[str, Any] | None = None
    structured: Mapping[str, Any] = field(default_factory=dict)
    """Under `structured_output` the final answer as a value, where a form was asked for (UX-37)."""
    on_disk: bool = False
    """Whether the session can really be resumed (UX-33)."""


def result_document(ending: Ending, tally: Tally) -> dict[str, Any]:
    """The last line of every format but text. An unknown cost is null, never 0."""
    kind = subtype(ending)
    resume = f"surefoot -r {tally.session_id}" if tally.on_disk and tally.session_id else None
    return {
        "type": "result",
        "subtype": kind,
        "is_error": kind != "success",
        "result": tally.text or (ending.reason if kind != "success" else ""),
        "session_id": tally.session_id,
        "turn_id": tally.turn_id,
        "num_turns": tally.num_turns,
        "duration_ms": tally.duration_ms,
        "duration_waiting_ms": tally.duration_waiting_ms,
        "usage": dict(tally.usage),
        "total_cost_usd": tally.total_cost_usd,
        "permission_denials": list(tally.permission_denials),
        "unknown_outcomes": list(tally.unknown_outcomes),
        "background": list(tally.background),
        "incident": tally.incident,
        **tally.structured,
        "exit_code": exit_code(ending),
        "resume_command": resume,
        "schema_version": SCHEMA_VERSION,
    }


def assistant_line(facts: Mapping[str, Any], session_id: str) -> dict[str, Any]:
    """One reply of the model, with its calls as `tool_use` blocks."""
    content: list[dict[str, Any]] = []
    if facts.get("text"):
        content.append({"type": "text", "text": facts["text"]})
    for call in facts.get("calls") or ():
        content.append(
            {
                "type": "tool_use",
                "id": call.get("callId"),
                "name": call.get("askedName"),
                "input": _shown_input(str(call.get("arguments") or "")),
            }
        )
    told: dict[str, Any] = {"message": {"role": "assistant", "content": content}}
    if facts.get("searches"):
        told["searches"] = facts["searches"]
    return _line("assistant", facts, session_id, told)


def _shown_input(arguments: str) -> Any:
    """The arguments for display: secrets out (TR-5), an object where the model wrote one, else its text."""
    shown = redact(arguments, ())
    try:
        value = json.loads(shown or "{}")
    except ValueError:
        return shown
    return value if isinstance(value, dict) else shown


def fragment_line(facts: Mapping[str, Any], session_id: str) -> dict[str, Any]:
    """A piece of a reply as it came; provisional until the reply is told whole (`--include-partial-messages`)."""
    event = {"type": facts["kind"], "text": facts["text"], "step_id": facts.get("stepId")}
    return {"type": "stream_event", "session_id": session_id, "event": event, "position": None}


def discard_line(facts: Mapping[str, Any], session_id: str) -> dict[str, Any]:
    """The pieces of this step so far count for nothing; `reason` is a word of PR-64."""
    event = {"type": "discard", "text": "", "step_id": facts.get("stepId"), "reason": facts.get("reason")}
    about = {"incident_id": facts.get("incidentId")}
    return {"type": "stream_event", "session_id": session_id, "event": {**event, **about}, "position": None}


def result_line(facts: Mapping[str, Any], session_id: str) -> dict[str, Any]:
    """What a call gave to the model, as a `tool_result` block."""
    block = {
        "type": "tool_result",
        "tool_use_id": facts.get("callId"),
        "content": facts.get("text", ""),
        "is_error": bool(facts.get("isError")),
    }
    if facts.get("ref"):
        block["result_ref"] = facts["ref"]
    return _line("user", facts, session_id, {"message": {"role": "user", "content": [block]}})


def given(receipt: Receipt) -> dict[str, Any]:
    """The text that the model is given for a call, and whether it counts as an error (TR-44)."""
    told = result_of(receipt)
    if receipt.result is None and receipt.result_ref is not None:
        text = (
            "The result is too long for a line of output. It is stored:"
            f" surefoot session export {receipt.session_id} gives it, under {receipt.attempt_id}."
        )
        return {"text": text, "isError": told.is_error, "ref": receipt.result_ref}
    return {"text": told.text, "isError": told.is_error}


def receipt_line(facts: Mapping[str, Any], session_id: str) -> dict[str, Any]:
    """One change of a receipt."""
    return {
        "type": "system",
        "subtype": "receipt",
        "session_id": session_id,
        "attempt_id": facts.get("attemptId"),
        "call_id": facts.get("callId"),
        "tool": facts.get("tool") or facts.get("askedName"),
        "state": facts.get("state"),
        "class": facts.get("class"),
        "reach": list(facts.get("reach") or ()),
        "position": facts.get("ledgerPosition"),
    }


def resume_document(facts: Mapping[str, Any], session_id: str) -> dict[str, Any]:
    """What stands before a resumed session goes on."""
    return {
        "type": "system",
        "subtype": "resume",
        "session_id": session_id,
        "settled": facts.get("settled", 0),
        "open": facts.get("open", 0),
        "will_run_again": list(facts.get("willRunAgain") or ()),
        "changes": list(facts.get("changes") or ()),
        "will_ask_again": list(facts.get("willAskAgain") or ()),
        "will_run_approved": list(facts.get("willRunApproved") or ()),
        "background": list(facts.get("background") or ()),
        "owner_deaths": facts.get("ownerDeaths", 0),
        "deaths": list(facts.get("deaths") or ()),
    }


def unknown_document(card: Mapping[str, Any], session_id: str) -> dict[str, Any]:
    """The card, as a line."""
    return {"type": "system", "subtype": "outcome_unknown", "session_id": session_id, "card": dict(card)}


def _line(kind: str, facts: Mapping[str, Any], session_id: str, more: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": kind,
        "session_id": session_id,
        **more,
        "turn_id": facts.get("turnId"),
        "position": facts.get("ledgerPosition"),
    }
