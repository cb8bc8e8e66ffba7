"""Pure. The JSON schemas of tool recovery: snapshot, action and error, made from the code's own words (TR-148).

Owns: their shape and version. Does not own: the published files, which a test compares
with what is made here, nor who prints them (`surfaces`).

What is read from us may grow: a reader skips fields it does not know. What is sent to us
may not: an unknown field is refused (TR-125). A change that breaks a reader or a sender
needs a new `VERSION`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.core.lifecycle import COUNTED, RESOLUTIONS
from surefoot.core.model import (
    Action,
    BarrierLevel,
    Decision,
    EffectClass,
    ExecutorState,
    Grade,
    InspectionState,
    Overlay,
    State,
    Word,
)

VERSION = 1
NAMES = ("snapshot", "action", "process", "error")

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_DIGEST: Schema = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
_CODE: Schema = {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"}
_ERROR_CODE: Schema = {"type": "string", "pattern": "^([a-z][a-z0-9_]*|SF-[A-Z-]+)$"}
"""Of a refusal, or of the page about an error that came before anything was admitted."""
_TIME: Schema = {"type": "integer", "description": "milliseconds since 1970 UTC"}
CHOICES = ("adopt", "kill", "leave")


def schema_of(name: str) -> Schema:
    """The schema `name` of this version, one of `NAMES`. Raises KeyError for another."""
    made = {"snapshot": _snapshot, "action": _action, "process": _process_choice, "error": _error}[name]()
    return {
        "$schema": _DIALECT,
        "$id": f"https://surefoot.dev/schemas/tool-recovery/{VERSION}/{name}.json",
        "title": f"surefoot tool recovery: {name}, version {VERSION}",
        **made,
    }


def _id(kind: str) -> Schema:
    return {"type": "string", "pattern": f"^{kind}_[0-9a-z]{{26}}$"}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _word(words: type[Word]) -> Schema:
    return {"enum": [word.value for word in words]}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _object(fields: Mapping[str, Schema], more: Mapping[str, Schema] | None = None) -> Schema:
    """An object with these fields, and `more` that may be missing."""
    return {"type": "object", "required": list(fields), "properties": {**fields, **(more or {})}}


def _snapshot() -> Schema:
    fields = {
        "sessionPath": _TEXT,
        "runtimeEpoch": _TEXT,
        "revision": _DIGEST,
        "silent": _FLAG,
        "retryEnabled": _FLAG,
        "barrier": _word(BarrierLevel),
        "onUnknown": {"enum": ["stop", "continue"]},
        "more": _COUNT,
        "background": _list(_resource()),
        "statistics": _object(dict.fromkeys(("unknown", *COUNTED), _COUNT)),
        "calls": _list({"$ref": "#/$defs/call"}),
    }
    more = {"foreseen": _list(_foreseen()), "process": {"type": "object"}, "replaces": _word(Action)}
    return {**_object(fields, more), "$defs": {"call": _call(), "card": _card()}}


def _resource() -> Schema:
    fields = {"attemptId": _id("att"), "pid": _or_null(_COUNT), "command": _TEXT, "log": _or_null(_TEXT)}
    return _object(fields, {"startedAt": _or_null(_TIME), "startedBoot": _or_null(_COUNT)})


def _foreseen() -> Schema:
    return _object(
        {"attemptId": _id("att"), "summary": _TEXT, "state": _word(State), "reason": _or_null(_CODE)}
    )


def _call_fields() -> dict[str, Schema]:
    return {
        "attemptId": _id("att"),
        "callId": _TEXT,
        "turnId": _TEXT,
        "tool": _TEXT,
        "class": _word(EffectClass),
        "reach": _list(_TEXT),
        "state": _word(State),
        "reason": _or_null(_CODE),
        "overlays": _list({"enum": [one.value for one in Overlay if one is not Overlay.DELIVERED]}),
        "open": _FLAG,
        "fencing": _FLAG,
        "decision": _word(Decision),
        "executor": _object({"state": _word(ExecutorState)}),
        "parked": _or_null(_word(Action)),
        "idempotencyKey": _or_null({"type": "string", "pattern": "^sf1-[0-9a-f]{64}$"}),
        "argumentDigest": _or_null(_DIGEST),
        "startedAt": _or_null(_TIME),
        "finishedAt": _or_null(_TIME),
        "inspectionId": _or_null(_id("ins")),
        "inspection": _or_null(_inspection()),
        "resolution": _or_null(_resolution()),
        "offBranch": _FLAG,
        "process": _or_null(_process()),
        "actions": _offered({}),
    }


def _call() -> Schema:
    origin = _object({"attemptId": _id("att"), "sessionId": _or_null(_id("ses"))})
    return _object(
        _call_fields(),
        {"summary": _TEXT, "origin": origin, "arguments": _TEXT, "card": {"$ref": "#/$defs/card"}},
    )


def _card() -> Schema:
    """A call as it is told to a person: its fields, and words in the reader's language (UX-62)."""
    check = {"sentence": _TEXT, "doesNotProve": _TEXT, "grade": _word(Grade), "at": _or_null(_TIME)}
    words = ("shortId", "summary", "words", "mark", "cause", "known", "notKnown", "next", "command")
    fence = _or_null(_object({"reach": _list(_TEXT), "since": _or_null(_TIME)}))
    fields = {
        **_call_fields(),
        **dict.fromkeys(words, _TEXT),
        "executor": _object({"state": _word(ExecutorState), "sentence": _TEXT}),
        "actions": _offered({"key": _or_null(_TEXT), "label": _TEXT, "needsCode": _FLAG}),
        "checks": _list(_object(check)),
        "fence": fence,
        "sessionPath": _TEXT,
        "runtimeEpoch": _TEXT,
        "revision": _DIGEST,
    }
    return _object(fields, {"arguments": _TEXT})


def _offered(more: Mapping[str, Schema]) -> Schema:
    """All six actions, each enabled or with the code a press would be refused with (TR-142)."""
    one = _object({"action": _word(Action), "enabled": _FLAG, "code": _or_null(_CODE), **more})
    return {**_list(one), "minItems": len(Action), "maxItems": len(Action)}


def _inspection() -> Schema:
    """What a look found (TR-101); `evidence` is the verifier's own."""
    fields = {"id": _id("ins"), "state": _word(InspectionState), "grade": _word(Grade)}
    check = _object(
        {}, {"sentence": _TEXT, "doesNotProve": _TEXT, "grade": _word(Grade), "at": _or_null(_TIME)}
    )
    more = {
        "summary": _TEXT,
        "evidence": {},
        "doesNotProve": _TEXT,
        "verifier": _or_null(_TEXT),
        "reason": _or_null(_CODE),
        "observedAt": _or_null(_TIME),
        "checks": _list(check),
    }
    return _object(fields, more)


def _resolution() -> Schema:
    """Who decided what, and how they were let in (TR-129)."""
    texts = ("method", "client", "letInBy", "ancestry", "assurance", "revision", "inspectionId", "note")
    more = {"who": _TEXT, "channel": _TEXT, "at": _TIME, **dict.fromkeys(texts, _or_null(_TEXT))}
    return _object({"kind": {"enum": list(RESOLUTIONS)}}, more)


def _process() -> Schema:
    fields = {"state": _TEXT, "pid": _or_null(_COUNT), "log": _or_null(_TEXT)}
    return _object({**fields, "choices": _list({"enum": list(CHOICES)})})


def _request() -> dict[str, Schema]:
    return {"sessionPath": _TEXT, "runtimeEpoch": _TEXT, "revision": {"type": "string", "minLength": 1}}


def _action() -> Schema:
    """The body of a press (TR-143), or of a bulk one (TR-132)."""
    looked = _or_null(_TEXT)
    item = {**_object({"attemptId": _TEXT}, {"inspectionId": looked}), "additionalProperties": False}
    items = {**_list(item), "minItems": 1, "description": "at most limits.bulk_items"}
    note = {"type": "string", "description": "at most limits.note_characters"}
    more = {"attemptId": _TEXT, "inspectionId": looked, "note": _or_null(note), "items": items}
    in_bulk = [one.value for one in Action if one not in (Action.INSPECT, Action.RETRY)]
    return {
        **_object({**_request(), "action": _word(Action)}, more),
        "additionalProperties": False,
        "anyOf": [{"required": ["attemptId"]}, {"required": ["items"]}],
        "if": {"required": ["items"]},
        "then": {"properties": {"action": {"enum": in_bulk}}},
    }


def _process_choice() -> Schema:
    """What becomes of a process that a call left running (TR-146)."""
    shape = _object({**_request(), "attemptId": _TEXT, "choice": {"enum": list(CHOICES)}})
    return {**shape, "additionalProperties": False}


def _error() -> Schema:
    """A refusal (TR-145); `record` is the decision that stands already."""
    more = {"reason": _CODE, "record": _resolution(), "runtimeEpoch": _TEXT, "revision": _DIGEST}
    return _object({"code": _ERROR_CODE, "message": _TEXT}, more)
