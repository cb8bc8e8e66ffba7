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
    ProcessChoice,
    State,
    Word,
)

VERSION = 1
NAMES = ("snapshot", "action", "process", "error")

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
_DIGEST: Schema = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
CODE: Schema = {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"}
_ERROR_CODE: Schema = {"type": "string", "pattern": "^([a-z][a-z0-9_]*|SF-[A-Z-]+)$"}
"""Of a refusal, or of the page about an error that came before anything was admitted."""
TIME: Schema = {"type": "integer", "description": "milliseconds since 1970 UTC"}


def schema_of(name: str) -> Schema:
    """The schema `name` of this version, one of `NAMES`. Raises KeyError for another."""
    made = {"snapshot": _snapshot, "action": _action, "process": _process_choice, "error": _error}[name]()
    return {
        "$schema": DIALECT,
        "$id": f"https://surefoot.dev/schemas/tool-recovery/{VERSION}/{name}.json",
        "title": f"surefoot tool recovery: {name}, version {VERSION}",
        **made,
    }


def _id(kind: str) -> Schema:
    return {"type": "string", "pattern": f"^{kind}_[0-9a-z]{{26}}$"}


def or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def word_of(words: type[Word]) -> Schema:
    return {"enum": [word.value for word in words]}


def list_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def object_of(fields: Mapping[str, Schema], more: Mapping[str, Schema] | None = None) -> Schema:
    """An object with these fields, and `more` that may be missing."""
    return {"type": "object", "required": list(fields), "properties": {**fields, **(more or {})}}


def _snapshot() -> Schema:
    fields = {
        "sessionPath": TEXT,
        "runtimeEpoch": TEXT,
        "revision": _DIGEST,
        "silent": FLAG,
        "retryEnabled": FLAG,
        "barrier": word_of(BarrierLevel),
        "onUnknown": {"enum": ["stop", "continue"]},
        "more": COUNT,
        "background": list_of(_resource()),
        "statistics": object_of(dict.fromkeys(("unknown", *COUNTED), COUNT)),
        "calls": list_of({"$ref": "#/$defs/call"}),
    }
    more = {"foreseen": list_of(_foreseen()), "process": {"type": "object"}, "replaces": word_of(Action)}
    more |= {"survivors": list_of(_survivor())}
    return {**object_of(fields, more), "$defs": {"call": _call(), "card": card_schema()}}


def _resource() -> Schema:
    fields = {"attemptId": _id("att"), "pid": or_null(COUNT), "command": TEXT, "log": or_null(TEXT)}
    return object_of(fields, {"startedAt": or_null(TIME), "startedBoot": or_null(COUNT)})


def _survivor() -> Schema:
    """What an earlier owner left running, which the command line lists beside the calls (TR-78)."""
    fields = {
        "attemptId": _id("att"),
        "pids": list_of(COUNT),
        "supervisorPid": or_null(COUNT),
        "command": TEXT,
    }
    return object_of({**fields, "log": or_null(TEXT), "startedBoot": or_null(COUNT), "settled": FLAG})


def _foreseen() -> Schema:
    return object_of(
        {"attemptId": _id("att"), "summary": TEXT, "state": word_of(State), "reason": or_null(CODE)}
    )


def _call_fields() -> dict[str, Schema]:
    return {
        "attemptId": _id("att"),
        "callId": TEXT,
        "turnId": TEXT,
        "tool": TEXT,
        "class": word_of(EffectClass),
        "reach": list_of(TEXT),
        "state": word_of(State),
        "reason": or_null(CODE),
        "overlays": list_of({"enum": [one.value for one in Overlay if one is not Overlay.DELIVERED]}),
        "open": FLAG,
        "fencing": FLAG,
        "decision": word_of(Decision),
        "executor": object_of({"state": word_of(ExecutorState)}),
        "parked": or_null(word_of(Action)),
        "idempotencyKey": or_null({"type": "string", "pattern": "^sf1-[0-9a-f]{64}$"}),
        "argumentDigest": or_null(_DIGEST),
        "startedAt": or_null(TIME),
        "finishedAt": or_null(TIME),
        "inspectionId": or_null(_id("ins")),
        "inspection": or_null(_inspection()),
        "resolution": or_null(_resolution()),
        "offBranch": FLAG,
        "process": or_null(_process()),
        "actions": _offered({}),
    }


def _call() -> Schema:
    origin = object_of({"attemptId": _id("att"), "sessionId": or_null(_id("ses"))})
    return object_of(
        _call_fields(),
        {"summary": TEXT, "origin": origin, "arguments": TEXT, "card": {"$ref": "#/$defs/card"}},
    )


def card_schema() -> Schema:
    """A call as it is told to a person: its fields, and words in the reader's language (UX-62)."""
    check = {"sentence": TEXT, "doesNotProve": TEXT, "grade": word_of(Grade), "at": or_null(TIME)}
    words = ("shortId", "summary", "words", "mark", "cause", "known", "notKnown", "next", "command")
    fence = or_null(object_of({"reach": list_of(TEXT), "since": or_null(TIME)}))
    fields = {
        **_call_fields(),
        **dict.fromkeys(words, TEXT),
        "executor": object_of({"state": word_of(ExecutorState), "sentence": TEXT}),
        "actions": _offered({"key": or_null(TEXT), "label": TEXT, "needsCode": FLAG}),
        "checks": list_of(object_of(check)),
        "fence": fence,
        "sessionPath": TEXT,
        "runtimeEpoch": TEXT,
        "revision": _DIGEST,
    }
    return object_of(fields, {"arguments": TEXT})


def _offered(more: Mapping[str, Schema]) -> Schema:
    """All six actions, each enabled or with the code a press would be refused with (TR-142)."""
    one = object_of({"action": word_of(Action), "enabled": FLAG, "code": or_null(CODE), **more})
    return {**list_of(one), "minItems": len(Action), "maxItems": len(Action)}


def _inspection() -> Schema:
    """What a look found (TR-101); `evidence` is the verifier's own."""
    fields = {"id": _id("ins"), "state": word_of(InspectionState), "grade": word_of(Grade)}
    check = object_of(
        {}, {"sentence": TEXT, "doesNotProve": TEXT, "grade": word_of(Grade), "at": or_null(TIME)}
    )
    more = {
        "summary": TEXT,
        "evidence": {},
        "doesNotProve": TEXT,
        "verifier": or_null(TEXT),
        "reason": or_null(CODE),
        "observedAt": or_null(TIME),
        "checks": list_of(check),
    }
    return object_of(fields, more)


def _resolution() -> Schema:
    """Who decided what, and how they were let in (TR-129)."""
    texts = ("method", "client", "letInBy", "ancestry", "assurance", "revision", "inspectionId", "note")
    more = {"who": TEXT, "channel": TEXT, "at": TIME, **dict.fromkeys(texts, or_null(TEXT))}
    return object_of({"kind": {"enum": list(RESOLUTIONS)}}, more)


def _process() -> Schema:
    fields = {"state": TEXT, "pid": or_null(COUNT), "log": or_null(TEXT)}
    return object_of({**fields, "choices": list_of(word_of(ProcessChoice))})


def _request() -> dict[str, Schema]:
    return {"sessionPath": TEXT, "runtimeEpoch": TEXT, "revision": {"type": "string", "minLength": 1}}


def _action() -> Schema:
    """The body of a press (TR-143), or of a bulk one (TR-132)."""
    looked = or_null(TEXT)
    item = {**object_of({"attemptId": TEXT}, {"inspectionId": looked}), "additionalProperties": False}
    items = {**list_of(item), "minItems": 1, "description": "at most limits.bulk_items"}
    note = {"type": "string", "description": "at most limits.note_characters"}
    more = {"attemptId": TEXT, "inspectionId": looked, "note": or_null(note), "items": items}
    in_bulk = [one.value for one in Action if one not in (Action.INSPECT, Action.RETRY)]
    return {
        **object_of({**_request(), "action": word_of(Action)}, more),
        "additionalProperties": False,
        "anyOf": [{"required": ["attemptId"]}, {"required": ["items"]}],
        "if": {"required": ["items"]},
        "then": {"properties": {"action": {"enum": in_bulk}}},
    }


def _process_choice() -> Schema:
    """What becomes of a process that a call left running (TR-146)."""
    shape = object_of({**_request(), "attemptId": TEXT, "choice": word_of(ProcessChoice)})
    return {**shape, "additionalProperties": False}


def _error() -> Schema:
    """A refusal (TR-145); `record` is the decision that stands already."""
    more = {"reason": CODE, "record": _resolution(), "runtimeEpoch": TEXT, "revision": _DIGEST}
    return object_of({"code": _ERROR_CODE, "message": TEXT}, more)
