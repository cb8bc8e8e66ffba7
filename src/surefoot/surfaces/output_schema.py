"""The JSON schema of `--output-format json` and `stream-json`, made from the code's own words (UX-32). Pure.

Owns: which fields each line has. Does not own: the lines (`verdict`), the card
(`core.schemas`), the published file, which a test compares with what is made here.

A reader skips a line or a field it does not know; a field that goes or is renamed raises
`schema_version`.
"""

from __future__ import annotations

from typing import Any

from surefoot.core.model import BarrierLevel, EffectClass, State
from surefoot.core.schemas import (
    COUNT,
    DIALECT,
    FLAG,
    TEXT,
    Schema,
    card_schema,
    list_of,
    object_of,
    or_null,
    word_of,
)
from surefoot.surfaces.verdict import SCHEMA_VERSION, SUBTYPES

_ANY: Schema = {"type": "object"}
_POSITION = {"position": or_null(COUNT)}


def output_schema() -> Schema:
    """One line of the output; its `type` and `subtype` say which fields it has."""
    lines = _lines()
    return {
        "$schema": DIALECT,
        "$id": f"https://surefoot.dev/schemas/output/{SCHEMA_VERSION}/line.json",
        "title": f"surefoot output: one line, schema_version {SCHEMA_VERSION}",
        **object_of({"type": TEXT, "session_id": or_null(TEXT)}, {"subtype": TEXT}),
        "allOf": [_when(name) for name in lines],
        "$defs": {**lines, "card": card_schema()},
    }


def _when(name: str) -> Schema:
    kind, _, subtype = name.partition("_") if name.startswith("system_") else (name, "", "")
    told: dict[str, Any] = {"type": {"const": kind}, **({"subtype": {"const": subtype}} if subtype else {})}
    return {
        "if": {"required": list(told), "properties": told},
        "then": {"$ref": f"#/$defs/{name}"},
    }


def _lines() -> dict[str, Schema]:
    card: Schema = {"$ref": "#/$defs/card"}
    return {
        "system_init": object_of(_init()),
        "system_resume": object_of(
            _resume(),
            {
                "changes": list_of({}),
                "will_ask_again": list_of(_ANY),
                "will_run_approved": list_of(_ANY),
                "deaths": list_of(_ANY),
            },
        ),
        "system_receipt": object_of(_receipt()),
        "system_outcome_unknown": object_of({"card": card}),
        "system_provider_refused": object_of({"incident_id": or_null(TEXT), **_POSITION}),
        "assistant": object_of(_said("assistant", ["text", "tool_use"]), {"searches": list_of(_ANY)}),
        "user": object_of(_said("user", ["tool_result"])),
        "stream_event": object_of(
            {
                "event": object_of(
                    {"type": TEXT, "text": TEXT, "step_id": or_null(TEXT)},
                    {"reason": TEXT, "incident_id": or_null(TEXT)},
                ),
                **_POSITION,
            }
        ),
        "result": object_of(_result(card), {"structured_output": {}}),
    }


def _init() -> dict[str, Schema]:
    return {
        "model": TEXT,
        "endpoint": TEXT,
        "cwd": TEXT,
        "tools": list_of(TEXT),
        "mcp_servers": list_of({}),
        "permission_mode": TEXT,
        "barrier": word_of(BarrierLevel),
        "capabilities": list_of(TEXT),
        "schema_version": COUNT,
        "surefoot_version": TEXT,
        **_POSITION,
    }


def _resume() -> dict[str, Schema]:
    return {
        "settled": COUNT,
        "open": COUNT,
        "will_run_again": list_of(_ANY),
        "background": list_of(_ANY),
        "owner_deaths": COUNT,
    }


def _receipt() -> dict[str, Schema]:
    return {
        "attempt_id": TEXT,
        "call_id": or_null(TEXT),
        "tool": or_null(TEXT),
        "state": word_of(State),
        "class": or_null(word_of(EffectClass)),
        "reach": list_of(TEXT),
        **_POSITION,
    }


def _said(role: str, blocks: list[str]) -> dict[str, Schema]:
    block = object_of({"type": {"enum": blocks}})
    message = object_of({"role": {"const": role}, "content": list_of(block)})
    return {"message": message, "turn_id": or_null(TEXT), **_POSITION}


def _result(card: Schema) -> dict[str, Schema]:
    subtypes = [*dict.fromkeys(SUBTYPES.values()), "error_max_budget_usd"]
    return {
        "subtype": {"enum": subtypes},
        "is_error": FLAG,
        "result": TEXT,
        "turn_id": or_null(TEXT),
        "num_turns": COUNT,
        "duration_ms": COUNT,
        "duration_waiting_ms": COUNT,
        "usage": _ANY,
        "total_cost_usd": or_null({"type": "number"}),
        "permission_denials": list_of(_ANY),
        "unknown_outcomes": list_of(card),
        "background": list_of(_ANY),
        "incident": or_null(_ANY),
        "exit_code": COUNT,
        "resume_command": or_null(TEXT),
        "schema_version": COUNT,
    }
