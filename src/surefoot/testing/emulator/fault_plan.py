"""Faults of the emulator: which request they meet, how often, and proof that they fired.

Owns: matching, counting down, the firing counter of each fault, and the list of
knobs. Does not own: what a knob does to bytes (`replies`, `server`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from surefoot.testing.emulator.bodies import BODY_FORMS, NAMED_KNOBS
from surefoot.testing.emulator.profiles import known_profile

STAGES = ("before_validate", "refusal", "after_validate", "reply")
"""When a fault is looked for. `refusal` is the moment in which a rule refuses; `reply` comes after the
model has spoken and its hosted tools have run."""
REFUSING = frozenset({"status", "ok_error", "flip", *NAMED_KNOBS})
"""Knobs that answer in place of the model."""
NEEDS_CALL = frozenset({"truncate_args", "index_mode", "id_mode", "name_mode", "args_mode"})
NEEDS_THINKING = frozenset({"reasoning_mode", "signature_mode"})
TERMINAL = frozenset({"no_done", "no_finish", "no_message_stop", "no_message_delta", "duplicate_final"})
NEEDS_STREAM = frozenset({"index_mode", "stream_error_at"} | TERMINAL)
REPLYING = frozenset(
    {"headers", "delay_headers", "cut_at", "stall_at", "finish", "tamper_request", "lenient", "gateway"}
    | NEEDS_CALL
    | NEEDS_THINKING
    | NEEDS_STREAM
)
COMPANIONS = frozenset({"body", "raw", "message", "type", "code", "param"})
"""Details of a `status` fault; `message` also of an error inside a stream."""
STALLING = frozenset({"seconds", "keep_alive"})
"""Details of `stall_at`; they may stand inside it or beside it."""
MODES: dict[str, set[Any]] = {
    "index_mode": {"gap", "missing", "all_zero", "two_in_one_chunk", "reverse"},
    "id_mode": {
        "missing",
        "empty_later",
        "null_later",
        "duplicate_in_batch",
        "reuse_across_turns",
        "long",
        "long 86",
        "bad_chars",
    },
    "name_mode": {"empty", "unknown", "repeat_each_delta"},
    "args_mode": {"object", "double_encoded", "array", "empty", "cumulative"},
    "flip": {"once", "for_ever"},
    "reasoning_mode": {"omit", "blank", "unsigned", "lost_signature_delta", "redacted", "signature_only"},
    "signature_mode": {"foreign_model", "foreign_account", "corrupt_one_byte", "expired_incident"},
    "gateway": {500, 502, "nested_string"},
}
_NEEDS_TWO = {"gap", "all_zero", "two_in_one_chunk", "reverse", "duplicate_in_batch"}
_STREAM_MODES = {
    "empty_later",
    "null_later",
    "repeat_each_delta",
    "cumulative",
    "lost_signature_delta",
}
_NOT_ON: dict[str, frozenset[str]] = {
    "chat": frozenset(
        {"no_message_stop", "no_message_delta", "lost_signature_delta", "redacted", "signature_only"}
    ),
    "responses": frozenset(
        {"no_message_stop", "no_message_delta", "two_in_one_chunk", "empty_later", "null_later", "redacted"}
        | {"repeat_each_delta", "finish=pause_turn", "finish=None"}
    ),
    "anthropic": frozenset(
        {"no_done", "no_finish", "two_in_one_chunk", "empty_later", "null_later", "repeat_each_delta"}
        | {"object"}
    ),
    "gemini": frozenset(
        {"no_done", "no_message_stop", "no_message_delta", "truncate_args", "object", "cumulative"}
        | {
            "gap",
            "index_mode=missing",
            "all_zero",
            "reverse",
            "empty_later",
            "null_later",
            "repeat_each_delta",
        }
        | {"lost_signature_delta", "redacted", "signature_only"}
    ),
    "converse": frozenset({"object"}),
}
"""Knobs and modes that a wire has no form for; a fault that names one never fires there. A mode that means
something under another knob is written with its own."""
_NUMBERS = ("truncate_args", "stream_error_at", "overflow_at")
_PLACES = ("cut_at", "stall_at")
_TIMES = ("delay_headers", "seconds")
_SWITCHES = frozenset({"ok_error", *NAMED_KNOBS, *TERMINAL} - {"rate", "overflow_at"})
"""Knobs that are on when they stand there."""
_ON_THE_WAY = frozenset({"gateway", "headers", "delay_headers", "cut_at", "stall_at", *STALLING})
"""What may happen to any answer between the endpoint and its client."""
_MATCHES = {"profile", "path", "session", "nth", "body_sha", "body_contains"}


class FaultNotFired(AssertionError):
    """A fault was planned and never happened, so the test proved nothing."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a fault may look at of one request."""

    profile: str
    path: str
    session: str
    nth: int
    """1 for the first request of this profile and session."""
    body_sha: str
    body: bytes
    signed: bool = False
    """Whether it brings back a signature or ciphertext this emulator issued."""
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class ReplyShape:
    """What a fault may need to know of the reply it would bend."""

    calls: int = 0
    stream: bool = True
    wire: str = "chat"
    thought: bool = False
    signed: bool = False
    last_arguments: int = 0
    """Characters of the last call's arguments."""


@dataclass(slots=True)
class Fault:
    """One planned fault. `count` −1 means always; `fired` counts what really happened."""

    action: dict[str, Any]
    match: dict[str, Any] = field(default_factory=dict)
    stage: str = ""
    count: int = 1
    fired: int = 0
    digests: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if not (isinstance(self.action, dict) and isinstance(self.match, dict)):
            raise ValueError("a fault's action and match are objects")
        known_knobs = REFUSING | REPLYING | COMPANIONS | STALLING
        unknown = set(self.action) - known_knobs
        if unknown or not self.action:
            known = ", ".join(sorted(known_knobs))
            raise ValueError(f"fault knob {sorted(unknown)!r} is not known; the knobs are {known}")
        beside = COMPANIONS - ({"message"} if "stream_error_at" in self.action else set())
        if beside & set(self.action) and not REFUSING & set(self.action):
            raise ValueError(f"{', '.join(sorted(self.action))}: details of a fault that has a status")
        if STALLING & set(self.action) and "stall_at" not in self.action:
            raise ValueError(f"{', '.join(sorted(self.action))}: details of a fault that has a stall_at")
        for knob, words in MODES.items():
            if knob in self.action:
                _one_of(knob, self.action[knob], words)
        if "body" in self.action:
            _one_of("body", self.action["body"], {*BODY_FORMS, *(("raw",) if "raw" in self.action else ())})
        _check_values(self.action)
        _check_match(self.match)
        if not _is_number(self.count) or self.count < -1 or self.count == 0:
            raise ValueError(f"count={self.count!r}: a number from 1, or -1 for always")
        if not self.stage:
            self.stage = self._usual_stage()
        if self.stage not in STAGES:
            raise ValueError(f"stage {self.stage!r}: choose one of {', '.join(STAGES)}")
        idle = set(self.action) - self._acting()
        if idle:
            raise ValueError(
                f"{', '.join(sorted(idle))}: nothing a fault of stage {self.stage!r} with "
                f"{', '.join(sorted(set(self.action) - idle)) or 'nothing else'} can do; plan it as one of its own"
            )

    def _usual_stage(self) -> str:
        if {"tamper_request", "lenient"} & set(self.action):
            return "before_validate"
        if REFUSING & set(self.action) or self.action.get("signature_mode") == "expired_incident":
            return "after_validate"
        return "refusal" if "gateway" in self.action else "reply"

    def refuses(self) -> bool:
        """Whether it answers in place of the model."""
        return bool(REFUSING & set(self.action)) or self.needs_signature()

    def _acting(self) -> frozenset[str]:
        """The knobs that do something at this stage beside the others of this fault."""
        editing = {"tamper_request", "lenient"} & set(self.action)
        if self.stage == "refusal" or (self.stage == "before_validate" and editing):
            return _ON_THE_WAY | editing
        if self.refuses():
            return _ON_THE_WAY | REFUSING | COMPANIONS | {"signature_mode"}
        if self.stage == "reply":
            return (REPLYING | STALLING | {"message"}) - {"tamper_request", "lenient", "gateway"}
        return frozenset()

    def meets(self, seen: Seen) -> bool:
        """Whether this fault is meant for that request."""
        wanted = self.match
        if "body_contains" in wanted and str(wanted["body_contains"]).encode() not in seen.body:
            return False
        plain = ("profile", "path", "session", "nth", "body_sha")
        if any(key in wanted and wanted[key] != getattr(seen, key) for key in plain):
            return False
        if seen.tokens <= self.action.get("overflow_at", -1):
            return False
        return self._flip_meets(seen)

    def _flip_meets(self, seen: Seen) -> bool:
        mode = self.action.get("flip")
        if mode == "once":
            return seen.body_sha not in self.digests
        if mode == "for_ever":
            return not self.digests or seen.body_sha in self.digests
        return True

    def needs_signature(self) -> bool:
        """Whether it refuses valid signatures, so that a request without any is not meant."""
        return self.action.get("signature_mode") == "expired_incident"

    def take(self, seen: Seen) -> None:
        """Use it up once."""
        if self.count > 0 and self.action.get("flip") != "for_ever":
            self.count -= 1
        if "flip" in self.action:
            self.digests.add(seen.body_sha)

    def happened(self) -> None:
        """Count a firing: the bytes of the fault really left, or were really held back."""
        self.fired += 1

    def fits(self, shape: ReplyShape) -> bool:
        """Whether such a reply can show this fault at all."""
        knobs = set(self.action)
        modes = {str(self.action[knob]) for knob in knobs & set(MODES)}
        named = {f"{knob}={self.action[knob]}" for knob in knobs & {"finish", *MODES}}
        if (knobs & NEEDS_CALL and shape.calls == 0) or (modes & _NEEDS_TWO and shape.calls < 2):
            return False
        if "truncate_args" in knobs and self.action["truncate_args"] >= shape.last_arguments:
            return False
        if (knobs | modes | named) & _NOT_ON.get(shape.wire, frozenset()):
            return False
        if knobs & NEEDS_THINKING and not shape.thought:
            return False
        if ("signature_mode" in knobs or "unsigned" in modes) and not shape.signed:
            return False
        return shape.stream or not (knobs & NEEDS_STREAM or modes & _STREAM_MODES)


def _one_of(knob: str, value: Any, words: set[Any]) -> None:
    if not isinstance(value, (str, int)) or value not in words:
        shown = ", ".join(sorted(str(word) for word in words))
        raise ValueError(f"{knob}={value!r}: choose one of {shown}")


def _check_values(action: dict[str, Any]) -> None:
    """Refuse a value that no reply could be bent by, while there is somebody to tell."""
    status = action.get("status", 400)
    if not (_is_number(status) and 200 <= status <= 599):
        raise ValueError(f"status={status!r}: an HTTP status from 200 to 599")
    for knob in _NUMBERS:
        if knob in action and not (_is_number(action[knob]) and action[knob] >= 0):
            raise ValueError(f"{knob}={action[knob]!r}: a number from 0")
    for knob in _SWITCHES & set(action):
        if action[knob] is not True:
            raise ValueError(f"{knob}={action[knob]!r}: true, or leave it out")
    if not isinstance(action.get("finish"), (str, type(None))):
        raise ValueError(f"finish={action['finish']!r}: a text or null")
    for knob in _TIMES:
        if not (action.get(knob) is None or _is_number(action[knob]) or isinstance(action[knob], float)):
            raise ValueError(f"{knob}={action[knob]!r}: seconds, or null to wait for a release")
    for knob in _PLACES:
        if knob in action and not _is_place(action[knob]):
            raise ValueError(
                f"{knob}={action[knob]!r}: a number of events, or an object such as {{'bytes': 10}}"
            )
    if not isinstance(action.get("headers", {}), dict):
        raise ValueError("headers: an object of names and values")
    edits = action.get("tamper_request", [])
    if not (isinstance(edits, list) and all(isinstance(one, dict) and one.get("path") for one in edits)):
        raise ValueError(
            "tamper_request: a list of {'path': [...], 'remove': true} or {'path': [...], 'value': ...}"
        )
    if not isinstance(action.get("lenient", []), list):
        raise ValueError("lenient: a list of rule ids")


def _check_match(match: dict[str, Any]) -> None:
    """Refuse what no request can meet."""
    if set(match) - _MATCHES:
        raise ValueError(f"match keys are {', '.join(sorted(_MATCHES))}, not {sorted(match)!r}")
    if "profile" in match:
        known_profile(match["profile"])
    if "nth" in match and not (_is_number(match["nth"]) and match["nth"] > 0):
        raise ValueError(f"nth={match['nth']!r}: a number from 1")
    for key in _MATCHES - {"nth"}:
        if not isinstance(match.get(key, ""), str):
            raise ValueError(f"{key}={match[key]!r}: a text")


def _is_place(value: Any) -> bool:
    """Whether it names a place in a reply: a number of events, or how many, of what, inside what."""
    if not isinstance(value, dict):
        return _is_number(value) and value >= 0
    numbers = [value[key] for key in ("events", "bytes") if key in value]
    inside = value.get("inside", "line")
    return (
        not set(value) - {"events", "bytes", "inside", "seconds", "keep_alive"}
        and all(_is_number(one) and one >= 0 for one in numbers)
        and inside in ("character", "line")
        and bool(numbers or "inside" in value)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class FaultPlan:
    """The faults of one emulator, in the order they were planned; the first that meets a request wins."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        """Plan one more fault."""
        self.faults.append(fault)
        return fault

    def pick(self, stage: str, seen: Seen, shape: ReplyShape | None = None) -> Fault | None:
        """Take the first fault of this stage that meets the request."""
        for fault in self.faults:
            if fault.stage != stage or fault.count == 0 or not fault.meets(seen):
                continue
            if shape is not None and not fault.fits(shape):
                continue
            if fault.needs_signature() and not seen.signed:
                continue
            fault.take(seen)
            return fault
        return None

    def assert_fired(self) -> None:
        """Raise `FaultNotFired` naming each planned fault that never happened."""
        silent = [fault.action for fault in self.faults if fault.fired == 0]
        if silent:
            raise FaultNotFired(f"these faults never fired: {silent!r}")

    def to_json(self) -> list[dict[str, Any]]:
        """Each fault with its counter."""
        return [
            {"action": f.action, "match": f.match, "stage": f.stage, "count": f.count, "fired": f.fired}
            for f in self.faults
        ]
