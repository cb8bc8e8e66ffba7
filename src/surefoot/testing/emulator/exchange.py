"""One request of one client on its way through the checks, and the faults it meets.

Owns: the fixed order (key, JSON, faults, fields, history rules, window, faults, script,
reply) for all wires. Does not own: sockets (`wire_out`), the control paths and
the emulator's life (`server`), the rules themselves.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from surefoot.testing.emulator import (
    anthropic_replies,
    anthropic_rules,
    bedrock_replies,
    bedrock_rules,
    bindings,
    bodies,
    chat_copies,
    chat_rules,
    gemini_replies,
    gemini_rules,
    responses_replies,
    responses_rules,
    tampering,
)
from surefoot.testing.emulator.bodies import Refusal
from surefoot.testing.emulator.fault_plan import STALLING, Fault, FaultPlan, ReplyShape, Seen
from surefoot.testing.emulator.issuing import account_of, keys_of
from surefoot.testing.emulator.profiles import Place, Profile, place_of_path
from surefoot.testing.emulator.replies import ChatReply
from surefoot.testing.emulator.request_log import LogEntry
from surefoot.testing.emulator.scripts import Scripts, Spoken
from surefoot.testing.emulator.stored import Stored
from surefoot.testing.emulator.wire_out import Outgoing, Request, place_of

BAD_KEY = "sk-bad"
_READ = (
    *("messages", "input", "contents", "instructions", "system"),
    *("systemInstruction", "system_instruction", "tools", "toolConfig"),
)
"""What the model reads of a body, on whichever wire."""


@dataclass(frozen=True, slots=True)
class Rooms:
    """What every exchange of one emulator shares."""

    plan: FaultPlan
    scripts: Scripts
    stored: Stored
    chat: Mapping[str, Profile]
    """The Chat profiles, for routers."""


class Exchange:
    """One request, from its bytes to the reply it gets."""

    def __init__(
        self, rooms: Rooms, profile: Profile, request: Request, entry: LogEntry, *, nth: int
    ) -> None:
        self.rooms = rooms
        self.profile = profile
        self.request = request
        self.entry = entry
        self.fault: Fault | None = None
        self.gateway: Any = None
        named = str(profile.knobs.get("upstream", ""))
        self.upstream = rooms.chat.get(named, profile)
        """Whose rules are enforced: of a router, those of the endpoint behind it."""
        rest = request.path.lstrip("/").partition("/")[2]
        self.place = place_of_path(rest) or Place(profile.wire)
        self.account = account_of(request.headers)
        self.beta = request.headers.get("anthropic-beta", "")
        self.seen = Seen(
            entry.profile, request.path, entry.session, nth, body_sha=entry.body_sha, body=request.body
        )

    @property
    def trace_id(self) -> str:
        """The id this request has in a header of its reply, and in the body of some refusals."""
        return self.entry.trace_id

    def answer(self) -> Outgoing:
        """The reply, decided in the fixed order; nothing is sent here."""
        if BAD_KEY in keys_of(self.request.headers, self.request.query):
            return self._refuse(bodies.named("auth", True, self.profile.shape))
        body = self._parsed()
        if body is None:
            return self._refuse(Refusal(("json",), "We could not parse the JSON body of your request."))
        self.seen = replace(self.seen, tokens=tokens(body))
        early = self._pick("before_validate")
        off: frozenset[str] = frozenset()
        if early is not None:
            if not {"tamper_request", "lenient"} & set(early.action):
                return self._planned(early, body)
            off = self._loosened(early, body)
        refusal = self._judged(body, off) or self._overflow(body)
        if refusal is not None:
            out = self._refuse(refusal, streaming=self._streams(body))
            return out if early is None else self._with_transport(out, early.action)
        self.seen = replace(self.seen, signed=self._brings_signature(body))
        later = self._pick("after_validate")
        if later is not None:
            return self._planned(later, body)
        return self._reply(body)

    def _loosened(self, fault: Fault, body: dict[str, Any]) -> frozenset[str]:
        """Carry out what a fault does to the request and its rules; it fires only if that mattered."""
        off = frozenset(fault.action.get("lenient") or ())
        self.gateway = fault.action.get("gateway")
        mattered = False
        with contextlib.suppress(ValueError):  # it led nowhere, so it did not fire
            edits = fault.action.get("tamper_request") or []
            tampering.edit(body, edits)
            mattered = bool(edits)
        strict = self._judged(body, frozenset()) if off else None
        if mattered or (strict is not None and off & set(strict.rules)):
            fault.happened()
        return off

    def account_for(self, cut: bool, stalled: bool) -> None:
        """Count the fault as fired when what it holds back or breaks off really happened."""
        if self.fault is None:
            return
        action = self.fault.action
        missing = ("cut_at" in action and not cut) or ("stall_at" in action and not stalled)
        if not missing:
            self.fault.happened()

    def _parsed(self) -> dict[str, Any] | None:
        try:
            body = json.loads(self.request.body)
            if isinstance(body, dict):
                tokens(body)
        except (ValueError, RecursionError):
            return None
        return body if isinstance(body, dict) else None

    def _judged(self, body: dict[str, Any], off: frozenset[str]) -> Refusal | None:
        if self.profile.wire == "responses":
            return responses_rules.check(body, self.profile, self.rooms.stored, account=self.account, off=off)
        if self.profile.wire == "anthropic":
            return anthropic_rules.check(body, self.profile, off, self.beta)
        if self.profile.wire == "gemini":
            return gemini_rules.check(body, self.profile, off)
        if self.profile.wire == "converse":
            return bedrock_rules.check(body, self.profile, off)
        passed_on = chat_copies.routed(body, self.profile.reasoning_field, self.upstream.reasoning_field)
        return chat_rules.check(passed_on, self.upstream, off)

    def _brings_signature(self, body: dict[str, Any]) -> bool:
        if self.profile.wire == "responses":
            return responses_rules.carries_cipher(body)
        if self.profile.wire == "anthropic":
            return bindings.carries_signature(body)
        if self.profile.wire == "gemini":
            return gemini_rules.carries_signature(body)
        return chat_copies.carries_signature(body)

    def _pick(self, stage: str, shape: ReplyShape | None = None) -> Fault | None:
        fault = self.rooms.plan.pick(stage, self.seen, shape)
        if fault is not None:
            self.entry.fault = fault.action
            self.entry.faults.append(fault.action)
        return fault

    def _refuse(self, refusal: Refusal, *, streaming: bool = False) -> Outgoing:
        self.entry.rules = list(refusal.rules)
        self.rooms.scripts.note_refusal(self.entry.profile, self.entry.session)
        out = refused(refusal, self.upstream.shape, self.trace_id)
        if self.upstream is not self.profile and refusal.rules[0] not in ("json", "X-01"):
            whole = bodies.error_object(refusal, self.upstream.shape, self.trace_id)
            names = {"router": self.profile.name, "upstream": self.upstream.name}
            passed_on, out.status = bodies.wrapped(whole, refusal.status, **names)
            out.pieces = [bodies.dumped(passed_on)]
        if streaming and self.upstream.shape == "mimo" and self.upstream is self.profile:
            out.pieces = [b"data:" + out.pieces[0]]
        if self.profile.knobs.get("octet_stream"):
            out.content_type = "application/octet-stream"
        gateway, action = self.gateway, {}
        if gateway is None and refusal.rules[0] not in ("json", "X-01"):
            fault = self._pick("refusal")
            if fault is not None:
                self.fault = fault
                gateway, action = fault.action.get("gateway"), fault.action
        return self._with_transport(_through_gateway(out, gateway), action)

    def _overflow(self, body: dict[str, Any]) -> Refusal | None:
        count, window = tokens(body), self.upstream.window_tokens
        if window and count > window:
            return bodies.overflow(self.upstream.shape, count, window)
        return None

    def _planned(self, fault: Fault, body: dict[str, Any]) -> Outgoing:
        """What a fault answers in place of the model."""
        action, shape = fault.action, self.profile.shape
        self.fault = fault
        named = [knob for knob in bodies.NAMED_KNOBS if action.get(knob) not in (None, False)]
        if named:
            refusal = bodies.named(named[0], action[named[0]], shape)
        elif fault.needs_signature():
            refusal = bodies.expired_incident(self.profile.wire)
        else:
            message = action.get("message") or (bodies.FLAP if "flip" in action else "Something went wrong.")
            status = int(action.get("status") or (200 if "ok_error" in action else 400))
            refusal = Refusal(("fault",), message, status=status, param=action.get("param"))
            refusal = _typed(refusal, action, shape)
        self.entry.rules = list(refusal.rules)
        self.rooms.scripts.note_refusal(self.entry.profile, self.entry.session)
        out = refused(refusal, shape, self.trace_id)
        whole = bodies.error_object(refusal, shape, self.trace_id)
        self._shape_body(out, action, whole, self._model(body))
        return self._with_transport(_through_gateway(out, action.get("gateway")), action)

    def _shape_body(self, out: Outgoing, action: dict[str, Any], whole: Any, model: str) -> None:
        if "raw" in action:
            out.pieces = [str(action["raw"]).encode("utf-8", "surrogateescape")]
        elif "body" in action:
            content, out.content_type = bodies.broken_body(str(action["body"]), whole, model)
            out.pieces = [content]

    def _reply(self, body: dict[str, Any]) -> Outgoing:
        told = self._conversation(body)
        before = dict(self.rooms.scripts.hosted)
        spoken = self.rooms.scripts.speak(self.profile, self.entry.session, told, ids=self.upstream.ids)
        after = self.rooms.scripts.hosted
        ran = {kind: count - before.get(kind, 0) for kind, count in after.items()}
        self.entry.hosted = {kind: count for kind, count in ran.items() if count}
        if self.profile.wire == "chat" and chat_rules.silently_ignored(body, self.upstream):
            spoken.text, spoken.calls, spoken.finish = "", [], "stop"
            self.entry.rules = ["KI-05"]
        fault = self._pick("reply", self._shape(spoken, body))
        self.fault = fault
        action = fault.action if fault else {}
        if fault is not None and fault.refuses():
            return self._planned(fault, body)
        if self._streams(body):
            out = self._streamed(self._failing_events(spoken, body, action))
        else:
            out = Outgoing(200, [self._whole(spoken, body, action)])
        return self._with_transport(out, action)

    def _failing_events(self, spoken: Spoken, body: dict[str, Any], action: dict[str, Any]) -> list[bytes]:
        """The events of a stream; an error planned for a place behind its end does not happen."""
        events = self._events(spoken, body, action)
        if len(events) <= int(action.get("stream_error_at", 0)):
            self.fault = None
            kept = {key: value for key, value in action.items() if key != "stream_error_at"}
            return self._events(spoken, body, kept)
        return events

    def _streamed(self, events: list[bytes]) -> Outgoing:
        if self.profile.wire == "gemini" and self.request.query.get("alt") != "sse":
            return Outgoing(200, gemini_replies.as_array(events), stream=True)
        return Outgoing(200, events, content_type="text/event-stream", stream=True)

    def _streams(self, body: dict[str, Any]) -> bool:
        """Whether the reply is a stream: what the path says, or else the body."""
        return body.get("stream") is True if self.place.streams is None else self.place.streams

    def _model(self, body: dict[str, Any]) -> str:
        """The model that was asked, by the path or the body."""
        return str(self.place.model or body.get("model") or "scripted")

    def _shape(self, spoken: Spoken, body: dict[str, Any]) -> ReplyShape:
        thought = bool(spoken.thinking) and self.profile.reasoning_field is not None
        signed = self.profile.reasoning_field in ("signed", "encrypted")
        if self.profile.wire == "anthropic" and signed:
            thought = thought and anthropic_rules.thinking_is_on(body)
        if self.profile.reasoning_field == "thought_signature":
            on_text = bool(spoken.thinking) and self.profile.wire == "gemini"
            thought = signed = bool(spoken.calls) or on_text
        said = len(spoken.calls[-1]["arguments"]) if spoken.calls else 0
        return ReplyShape(len(spoken.calls), self._streams(body), self.profile.wire, thought, signed, said)

    def _conversation(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request as the model sees it: with the part the server kept."""
        previous = body.get("previous_response_id")
        kept = self.rooms.stored.conversation(str(previous)) if previous else None
        if self.profile.wire != "responses" or kept is None:
            return body
        return {**body, "input": [*kept, *responses_rules.items_of(body)]}

    def _whole(self, spoken: Spoken, body: dict[str, Any], action: dict[str, Any]) -> bytes:
        if self.profile.wire == "chat":
            return ChatReply(spoken, self._chat_envelope(body), action).as_json()
        if self.profile.wire == "converse":
            envelope = bedrock_replies.Envelope(self._model(body), self.account, tokens(body))
            return bedrock_replies.BedrockReply(spoken, envelope, action).as_json()
        return self._built(spoken, body, action).as_json()

    def _events(self, spoken: Spoken, body: dict[str, Any], action: dict[str, Any]) -> list[bytes]:
        if self.profile.wire == "chat":
            options = body.get("stream_options")
            usage = isinstance(options, dict) and bool(options.get("include_usage"))
            return ChatReply(spoken, self._chat_envelope(body), action).as_events(usage)
        return self._built(spoken, body, action).as_events()

    def _built(
        self, spoken: Spoken, body: dict[str, Any], action: dict[str, Any]
    ) -> responses_replies.ResponsesReply | anthropic_replies.AnthropicReply | gemini_replies.GeminiReply:
        if self.profile.wire == "gemini":
            return gemini_replies.GeminiReply(spoken, self._gemini_envelope(body, action), action)
        if self.profile.wire == "anthropic":
            return anthropic_replies.AnthropicReply(spoken, self._anthropic_envelope(body, action), action)
        reply = responses_replies.ResponsesReply(spoken, self._responses_envelope(body), action)
        if body.get("store") is not False and "OR-05" in self.profile.rules:
            given = responses_rules.items_of(self._conversation(body))
            self.rooms.stored.keep(reply.envelope.id, given, reply.output)
        return reply

    def _key(self) -> str:
        return f"{self.entry.profile}/{self.entry.session}/{self.entry.sequence}"

    def _anthropic_envelope(self, body: dict[str, Any], action: dict[str, Any]) -> anthropic_replies.Envelope:
        dropped = anthropic_rules.dropped(body, self.profile, self.beta)
        signed = self.profile.reasoning_field == "signed"
        model = str(body.get("model") or "scripted")
        facts = bindings.prefix_of(body, dropped).facts()
        return anthropic_replies.Envelope(
            id=anthropic_replies.message_id(self._key()),
            model=model,
            prompt_tokens=tokens(body),
            issue=bindings.Issue(model, self.account, facts, action.get("signature_mode")),
            signed=signed,
            shown_thinking=anthropic_rules.thinking_is_on(body, usual=not signed),
            transformations=[
                {
                    "type": "thinking_dropped",
                    "path": f"messages.{index}.content.{place}",
                    "reason": "prefix_binding_mismatch",
                }
                for index, place in sorted(dropped)
            ],
        )

    def _gemini_envelope(self, body: dict[str, Any], action: dict[str, Any]) -> gemini_replies.Envelope:
        model = self._model(body)
        return gemini_replies.Envelope(
            id=hashlib.sha256(self._key().encode()).hexdigest()[:22],
            model=model,
            prompt_tokens=tokens(body),
            signature=gemini_rules.issue(model, action.get("signature_mode")),
            shown_thinking=gemini_rules.shows_thoughts(body),
        )

    def _responses_envelope(self, body: dict[str, Any]) -> responses_replies.Envelope:
        wanted = body.get("include")
        return responses_replies.Envelope(
            reply=hashlib.sha256(self._key().encode()).hexdigest()[:20],
            created=int(time.time()),
            model=str(body.get("model") or "scripted"),
            account=self.account,
            prompt_tokens=tokens(body),
            request=body,
            reasoning=self.profile.reasoning_field,
            cipher_wanted=isinstance(wanted, list) and "reasoning.encrypted_content" in wanted,
        )

    def _chat_envelope(self, body: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.entry.sequence:012d}",
            "created": int(time.time()),
            "model": str(body.get("model") or "scripted"),
            "reasoning_field": self.profile.reasoning_field,
            "signs_calls": "thought_signature"
            in (self.profile.reasoning_field, self.upstream.reasoning_field),
            "prompt_tokens": tokens(body),
            "account": self.account,
        }

    def _with_transport(self, out: Outgoing, action: dict[str, Any]) -> Outgoing:
        for name, value in (action.get("headers") or {}).items():
            out.set_header(str(name), str(value))
        if "delay_headers" in action:
            out.delay_seconds = _seconds(action["delay_headers"])
        if "cut_at" in action:
            out.cut = place_of(action["cut_at"], out.pieces)
        if "stall_at" in action:
            at, beside = action["stall_at"], {key: action[key] for key in STALLING & set(action)}
            stall = {**beside, **(at if isinstance(at, dict) else {"events": at})}
            out.stall = place_of(stall, out.pieces)
            out.stall_seconds = _seconds(stall.get("seconds"))
            out.keep_alive = bool(stall.get("keep_alive"))
        return out


def refused(refusal: Refusal, shape: str, request_id: str = "") -> Outgoing:
    """The reply that tells a refusal in the form of an endpoint."""
    whole = bodies.dumped(bodies.error_object(refusal, shape, request_id))
    return Outgoing(refusal.status, [whole], bodies.error_headers(refusal, shape))


def tokens(body: dict[str, Any]) -> int:
    """A quarter of the characters of what the model reads."""
    counted = [body.get(key) for key in _READ]
    return len(json.dumps([one for one in counted if one is not None], ensure_ascii=False)) // 4


def _through_gateway(out: Outgoing, gateway: Any) -> Outgoing:
    """The refusal as a gateway in between passes it on."""
    if gateway is None:
        return out
    inner = b"".join(out.pieces).decode("utf-8", "replace")
    if gateway == "nested_string":
        error = {"code": out.status, "message": inner, "status": "INVALID_ARGUMENT"}
    else:
        error = {"message": f"Upstream {out.status}: {inner}", "type": "upstream_error", "code": gateway}
        out.status = int(gateway)
    out.pieces, out.content_type = [bodies.dumped({"error": error})], "application/json"
    return out


def _typed(refusal: Refusal, action: dict[str, Any], shape: str) -> Refusal:
    kind = action.get("type") or bodies.usual_type(refusal.status, shape)
    return replace(refusal, type=kind, code=action.get("code"))


def _seconds(value: Any) -> float | None:
    """None waits until released."""
    return None if value is None else float(value)
