"""The entries the barrier writes about one attempt, as drafts.

Owns: what a refusal, a start and an end hold (TR-3), which trace an outcome leaves
(TR-39), and when a batch must wait for somebody to look (TR-88). Does not own: when
any of it is written (`barrier`), the words (`core.results`).
Promises: receipt:exact.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.core import recovery, results
from surefoot.core.canonical import digest_text, idempotency_key
from surefoot.core.effects import UNDECLARED, Effect, stricter
from surefoot.core.model import Draft, EffectClass, EffectTrace, ExecutorState, Kind, Receipt, State
from surefoot.core.redact import redact
from surefoot.errors import BrokenInvariant
from surefoot.runtime.live import Call, Looked, Permit, Refused
from surefoot.runtime.scheduler import Scheduler
from surefoot.runtime.tools import NEVER_RAN, Outcome, Prepared, Tool, scope_of

MARGIN_SECONDS = 5
ANSWERS = frozenset({"duplicate_call", "answered_from_receipt", "postcondition_satisfied"})
"""Refusals that give an answer instead: what was wanted is so already, and the batch goes on."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes: the owner as JSON, and the clocks."""

    owner: Mapping[str, Any]
    scheduler: Scheduler


def refused(code: str, text: str | None = None, **facts: Any) -> Refused:
    """A refusal with its words for the model."""
    return Refused(code, results.refusal_text(code, facts) if text is None else text, facts)


def unlooked(
    call: Call, code: str, *, tool: Tool | None = None, text: str | None = None, **facts: Any
) -> Looked:
    """A call that D2 could not read or resolve."""
    display = redact(call.arguments or "", () if tool is None else tool.secret_arguments)
    return Looked(call, tool, None, UNDECLARED, display, refused=refused(code, text, **facts))


def misshapen(call: Call) -> Looked | None:
    """The refusal of a call for what its message looks like, whatever it asks for (TR-32 to TR-34)."""
    if call.refused_whole:
        return unlooked(call, "duplicate_call", whole_message=True)
    if call.cut:
        return unlooked(call, "truncated_call")
    if call.duplicate_of:
        return unlooked(call, "duplicate_call", original=call.duplicate_of)
    return None


def departs(stored: Effect, now: Effect) -> bool:
    """Whether a call reaches elsewhere, or is judged stricter, than when it was first started."""
    both = stricter(stored, now)
    return set(now.reach) != set(stored.reach) or both.effect_class is not stored.effect_class


def is_no_reader(looked: Looked, allowed: Effect) -> bool:
    """Whether a call that was allowed as a reader turned out to be none (EC-59)."""
    return allowed.effect_class is EffectClass.READ_ONLY is not looked.effect.effect_class


def departure(looked: Looked) -> Refused | None:
    """The refusal of a retry that became another call on its way: by a hook, a link, a declaration (TR-136)."""
    pinned = looked.call.pinned
    if pinned is None or looked.arguments is None:
        return None
    same = looked.arguments.digest == looked.call.pinned_digest and not departs(pinned, looked.effect)
    return None if same else refused("retry_target_changed")


def with_effect(looked: Looked, effect: Effect) -> Looked:
    """The same call, judged stricter."""
    return dataclasses.replace(looked, effect=effect, notes=looked.notes + effect.notes)


def not_started_draft(looked: Looked, found: Refused) -> Draft:
    """A refusal before D6 (TR-23)."""
    payload: dict[str, Any] = {
        "attemptId": looked.call.attempt_id,
        "reason": found.code,
        "effectTrace": EffectTrace.NONE.value,
        "result": {"text": found.text, "isError": found.code not in results.NOT_A_TOOL_ERROR},
        **found.facts,
    }
    if looked.tool is not None:
        payload |= {"tool": looked.tool.name, "argumentsDisplay": looked.display}
        payload |= {"class": looked.effect.effect_class.value, "reach": list(looked.effect.reach)}
    if looked.arguments is not None:
        payload["argumentDigest"] = looked.arguments.digest
    return Draft(Kind.NOT_STARTED, payload)


def never_begun_draft(attempt_id: str, found: Refused) -> Draft:
    """The end of a call that never got as far as D2."""
    result = {"text": found.text, "isError": found.code not in results.NOT_A_TOOL_ERROR}
    trace = EffectTrace.NONE.value
    return Draft(
        Kind.NOT_STARTED,
        {"attemptId": attempt_id, "reason": found.code, "effectTrace": trace, "result": result},
    )


def deadline_span_ms(tool: Tool) -> int | None:
    """The tool's own budget plus a margin (TR-76)."""
    if tool.time_limit_seconds is None:
        return None
    return int((tool.time_limit_seconds + MARGIN_SECONDS) * 1000)


def start_draft(
    looked: Looked, prepared: Prepared, permit: Permit, receipt: Receipt, writer: Writer
) -> Draft:
    """D6: everything known at the start, the consumed approval and the older attempt included."""
    tool, arguments, call = looked.tool, looked.arguments, looked.call
    if tool is None or arguments is None:
        raise BrokenInvariant("a call without tool reached D6")
    intents = tuple(prepared.fields.get("writeIntents") or ())
    known = receipt
    if tool.verifier is not None or tool.choose_verifier is not None:
        # As a verifier may see it before D6: canonical tool and effective arguments.
        known = dataclasses.replace(
            receipt,
            tool=tool.name,
            arguments=arguments.canonical,
            write_intents=intents,
            process=prepared.fields.get("process"),
        )
    scope, scope_notes = scope_of(tool, known)
    key = call.idempotency_key or idempotency_key(
        argument_digest=arguments.digest,
        call=call.call_id,
        scope=scope,
        session=receipt.session_id,
        tool=tool.name,
        turn=call.turn_id,
    )
    now_ms, boot_ms = writer.scheduler.now_ms(), writer.scheduler.boot_ms()
    span_ms = deadline_span_ms(tool)
    payload: dict[str, Any] = {
        "attemptId": call.attempt_id,
        "tool": tool.name,
        "arguments": arguments.canonical,
        "argumentsDisplay": looked.display,
        "argumentDigest": arguments.digest,
        "class": looked.effect.effect_class.value,
        "reach": list(looked.effect.reach),
        "scope": scope,
        "interaction": looked.effect.interaction,
        "check": looked.effect.check,
        "idempotencyKey": key,
        "owner": writer.owner,
        "startedAt": now_ms,
        "startedBoot": boot_ms,
        "deadlineAt": None if span_ms is None else now_ms + span_ms,
        "deadlineBoot": None if span_ms is None else boot_ms + span_ms,
        "notes": [*looked.notes, *scope_notes, *_notes_of(tool, arguments.value)],
    }
    lifetime_seconds = tool.key_lifetime_for(arguments.value)
    if lifetime_seconds is not None:
        payload["keyExpiresAt"] = now_ms + int(lifetime_seconds * 1000)
    if call.supersedes is not None:
        payload["supersedes"] = call.supersedes
    if permit.approval is not None:
        payload["approval"] = permit.approval
    return Draft(Kind.STARTED, {**payload, **prepared.fields})


def _notes_of(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    notes = []
    if tool.key_argument is not None and tool.key_argument in arguments:
        notes.append("key_replaced")
    if tool.starts_processes:
        # A later owner must know that the death of this one proves nothing about them (TR-208).
        notes.append("starts_processes")
    return notes


def default_trace(effect_class: EffectClass | None) -> EffectTrace:
    """What an end that says nothing may have left, by class."""
    return EffectTrace.NONE if effect_class is EffectClass.READ_ONLY else EffectTrace.POSSIBLE


def trace_of(outcome: Outcome, looked: Looked) -> EffectTrace:
    """TR-39: a success did what it says; a failure may have left something unless the owner's tool knows."""
    if outcome is NEVER_RAN:
        return EffectTrace.NONE  # the runtime's own knowledge, whoever declared the tool
    if outcome.state is State.SUCCEEDED:
        return EffectTrace.NONE if looked.effect.effect_class is EffectClass.READ_ONLY else EffectTrace.DONE
    if outcome.effect_trace is not None and looked.tool is not None and looked.tool.own:
        return outcome.effect_trace
    return default_trace(looked.effect.effect_class)


def closed_fields(outcome: Outcome, receipt: Receipt, looked: Looked, now_ms: int) -> dict[str, Any]:
    """D8 without the result: how the attempt ended, what it may have left, and whether it may pass (TR-163)."""
    climb: dict[str, Any] = {"transient": True} if outcome.transient else {}
    if outcome.retry_after_seconds is not None:
        climb["retryAfterSeconds"] = outcome.retry_after_seconds
    return {
        **({"ladder": {**(receipt.ladder or {}), **climb}} if climb else {}),
        "attemptId": looked.call.attempt_id,
        "state": outcome.state.value,
        "reason": outcome.reason,
        "errorKind": outcome.error_kind,
        "effectTrace": trace_of(outcome, looked).value,
        "finishedAt": now_ms,
    }


def within(outcome: Outcome, most_bytes: int) -> Outcome:
    """The outcome with a text that one blob may hold; what is left out is counted in it (TR-185)."""
    text = outcome.text.encode("utf-8", "surrogatepass")
    if len(text) <= most_bytes:
        return outcome
    note = f"\n[cut: the result had {len(text)} bytes, and limits.blob_bytes is {most_bytes}]"
    kept = text[: max(0, most_bytes - len(note))].decode("utf-8", "ignore")
    return dataclasses.replace(outcome, text=kept + note)


def result_fields(
    outcome: Outcome, *, ref: str | None = None, pictures: Sequence[tuple[str, str]] = ()
) -> dict[str, Any]:
    """The result of a closed call: its text, or the blob it stands in, and the blobs of its pictures."""
    digest = {"resultDigest": digest_text(outcome.text)}
    if ref is not None:
        return {"resultRef": ref, **digest}
    result: dict[str, Any] = {"text": outcome.text, "isError": outcome.state is not State.SUCCEEDED}
    if pictures:
        result["pictures"] = [{"mediaType": kind, "ref": one} for kind, one in pictures]
    return {"result": result, **digest}


def executor_fields(state: ExecutorState, scheduler: Scheduler) -> dict[str, Any]:
    """The executor as recorded; an ended one with the boot time by which it had ended, for commit windows."""
    ended = {"endedBoot": scheduler.boot_ms()} if state is ExecutorState.ENDED else {}
    return {"state": state.value, **ended}


def late_fields(outcome: Outcome, looked: Looked, source: str, now_ms: int) -> dict[str, Any]:
    """The truth about an attempt that was closed as unknown before (TR-43), without the result."""
    return {
        "attemptId": looked.call.attempt_id,
        "settles": True,
        "state": outcome.state.value,
        "errorKind": outcome.error_kind,
        "effectTrace": trace_of(outcome, looked).value,
        "source": source,
        "at": now_ms,
    }


def stops_batch(receipt: Receipt, effect: Effect) -> bool:
    """TR-88: whether later writes of the batch must wait for somebody to look."""
    if effect.effect_class is EffectClass.READ_ONLY or effect.interaction or receipt.reason in ANSWERS:
        return False
    if receipt.state in (State.UNKNOWN, State.NOT_STARTED):
        return True
    return receipt.state is State.FAILED and not receipt.check


def nested_call(turn_id: str, asked_name: str, arguments: str, scheduler: Scheduler) -> Call:
    """A call that another call or a hook makes, with ids of its own."""
    return Call(
        turn_id=turn_id,
        call_id=scheduler.new_id("cal"),
        attempt_id=scheduler.new_id("att"),
        asked_name=asked_name,
        arguments=arguments,
        nested=True,
    )


def nested_draft(call: Call, parent_attempt_id: str | None, ordinal: int) -> Draft:
    """D1 of a call that another call or a hook makes (TR-9, TR-35); one of a session's hook has no parent."""
    payload = {
        "attemptId": call.attempt_id,
        "callId": call.call_id,
        "turnId": call.turn_id,
        "position": ordinal,
        "askedName": call.asked_name,
        "arguments": call.arguments,
    }
    if parent_attempt_id is not None:
        payload["parentAttemptId"] = parent_attempt_id
    return Draft(Kind.DISPATCHED, payload)


def asked_of(looked: Looked) -> recovery.Asked:
    """The call as the barrier's verdict sees it."""
    tool, arguments = looked.tool, looked.arguments
    if tool is None or arguments is None:
        raise BrokenInvariant("a call without tool passed D2")
    return recovery.Asked(
        tool=tool.name,
        argument_digest=arguments.digest,
        effect=looked.effect,
        supersedes=looked.call.supersedes,
        recovery=looked.call.reserved,
        satisfied=looked.satisfied,
        undelivered=looked.undelivered,
        reach_kinds=tool.reach_kinds,
    )


def refusal_of(prepared: Prepared) -> Refused | None:
    """The refusal a tool prepared, if it did."""
    return None if prepared.refuse is None else Refused(*prepared.refuse)
