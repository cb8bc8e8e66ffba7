"""The JSON schema of an exported session (UX-54). Pure.

Owns: which fields an export has. Does not own: the export (`export`), the published file, which
a test compares with what is made here. A reader skips a field it does not know; a field that
goes or is renamed raises `schema_version`.
"""

from __future__ import annotations

from surefoot.core.model import State
from surefoot.core.schemas import (
    COUNT,
    DIALECT,
    FLAG,
    TEXT,
    TIME,
    Schema,
    list_of,
    object_of,
    or_null,
    word_of,
)
from surefoot.surfaces.export import SCHEMA_VERSION

_ANY: Schema = {"type": "object"}


def export_schema() -> Schema:
    """The whole document."""
    row = {"attemptId": TEXT, "position": COUNT, "at_ms": TIME}
    receipt = object_of(
        {
            "attemptId": TEXT,
            "callId": TEXT,
            "turnId": TEXT,
            "state": word_of(State),
            "class": or_null(TEXT),
            "reach": list_of(TEXT),
            "reason": or_null(TEXT),
            "arguments": TEXT,
            "argumentDigest": or_null(TEXT),
            "result": or_null(_ANY),
            "inspection": or_null(_ANY),
            "resolution": or_null(_ANY),
            "overlays": list_of(TEXT),
        }
    )
    session = object_of(
        {
            "session_id": TEXT,
            "name": or_null(TEXT),
            "directory": or_null(TEXT),
            "model": or_null(TEXT),
            "created_ms": TIME,
            "changed_ms": TIME,
            "calls": COUNT,
            "status": TEXT,
        }
    )
    return {
        "$schema": DIALECT,
        "$id": f"https://surefoot.dev/schemas/export/{SCHEMA_VERSION}/session.json",
        "title": f"surefoot session export, schema_version {SCHEMA_VERSION}",
        **object_of(
            {
                "schema_version": {"const": SCHEMA_VERSION},
                "surefoot_version": TEXT,
                "redacted": FLAG,
                "removed": list_of(object_of({"place": TEXT, "count": COUNT})),
                "session": session,
                "entries": list_of(object_of({"position": COUNT, "at_ms": TIME, "kind": TEXT})),
                "receipts": list_of(receipt),
                "evidence": list_of(object_of({**row, "inspection": or_null(_ANY), "proven": or_null(FLAG)})),
                "decisions": list_of(object_of({**row, "resolution": or_null(_ANY)})),
                "open_calls": list_of(TEXT),
            }
        ),
    }
