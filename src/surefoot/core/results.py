"""Pure. What a call gives the model: the text of every state, refusal and overlay.

Owns: `result_of` (TR-44), the sentences for the model (TR-45, TR-84, TR-202, TR-209).
Does not own: words for people (`surfaces.words`), the order of messages (`history`),
the wire form (`providers`).
Promises: receipt:exact, recovery:never-guess, projection:no-invented-success.

No text for an unknown call holds a word of success or failure (UX-63). All texts
are constants and facts of the receipt, so the same receipt gives the same bytes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.core.effects import judged_effect
from surefoot.core.model import EffectClass, EffectTrace, Overlay, Receipt, State


@dataclass(frozen=True, slots=True)
class Told:
    """The result of a call as the model is given it."""

    text: str
    is_error: bool


NOT_A_TOOL_ERROR = frozenset(
    {
        "fenced",
        "confirmed_effect",
        "look_first",
        "answered_from_receipt",
        "postcondition_satisfied",
        "batch_dependency",
        "duplicate_call",
        "cancelled_before_start",
    }
)
"""Refusals that say nothing bad about the tool or its arguments (TR-84)."""

WHY_UNKNOWN: Mapping[str, str] = {
    "cancelled": "The turn was stopped while it ran.",
    "time_limit": "Its time limit was reached while it ran.",
    "connection_lost": "The connection was lost before its reply was complete.",
    "process_signal": "Its process was ended by a signal.",
    "undecided_exception": "It was left in a way that does not say how far it got.",
    "owner_died": "The program that ran it went away before a result was written.",
    "child_open": "A call that it started has no known end yet.",
    "ledger_tail_lost": "The end of the ledger is missing, and with it what came last.",
    "declared": "The tool itself says that it does not know.",
    "no_evidence": "There is no record of how it went on.",
}
"""Why an end is not known, by reason code of TR-41."""

NOT_STARTED: Mapping[str, str] = {
    "arguments_invalid": "The arguments cannot be read. Nothing was started; correct them and call again.",
    "tool_missing": "There is no such tool. Nothing was started; use a tool of the list.",
    "schema_unusable": "The tool's declaration cannot be used, which other arguments cannot cure. "
    "Nothing was started; tell the person.",
    "permission_denied": "This call was not allowed, so nothing was started.",
    "approval_expired": "The question about this call was closed without a yes, so nothing was started.",
    "fenced": "An earlier call may have happened, and this write waits for it. Nothing was started.",
    "confirmed_effect": "This very action already happened, as was stated about an earlier call. "
    "It was not run a second time; if it is wanted again, ask the person.",
    "look_first": "The same call failed a moment ago and may have left something. Nothing was started "
    "now: look with a read-only tool first, then repeat it if it is still wanted.",
    "answered_from_receipt": "This is the stored result of the earlier call; it was not run again.",
    "postcondition_satisfied": "The files are already in the wanted state; the write was not repeated.",
    "batch_dependency": "An earlier call of the same message did not go through, so this one was not "
    "started. Look at that result, then ask for this call again if it is still wanted.",
    "hook_refused": "A hook of the person refused this call, so nothing was started.",
    "hook_unstable": "Hooks kept changing this call, so nothing was started.",
    "receipt_not_durable": "The receipt could not be written, so nothing was started. Tell the person.",
    "lease_lost": "Another process owns the session now, so nothing was started.",
    "truncated_call": "The message broke off inside this call, so nothing was started. Ask for it again, "
    "in smaller parts if it was long.",
    "duplicate_call": "This block repeats another call of the same message, which was run once; its "
    "result stands there.",
    "ledger_file": "That file belongs to the record of this session and is not opened by tools. "
    "Nothing was started.",
    "deadline_too_short": "Too little time was left for this call, so nothing was started.",
    "cancelled_before_start": "The turn was stopped before this call began. Nothing was started.",
    "retry_target_changed": "It would no longer be the call that was asked for, so nothing was started.",
    "owner_died_before_start": "The program went away before this call began. Nothing was started.",
}
"""What is told of a call that never started, by reason code (TR-41)."""

NOBODY_TO_ASK = (
    "This call did not run: nobody to ask. It would have needed a person's permission. Nothing was started; "
    "go on without it, and say what was left undone."
)
NEVER_RAN = "It never ran: its start was recorded, and its body was not entered."
CHANGED_UNDERNEATH = "Nothing was written: the file is no longer what it was when the call was prepared."
PART_MAY_HAVE_HAPPENED = (
    "Part of it may have happened. Look with a read-only tool before it is tried again; "
    "the same call is held back once until then."
)
NO_OUTPUT = "No output of it exists."


def result_of(
    receipt: Receipt,
    attempts: Sequence[Receipt] = (),
    *,
    stored: Mapping[str, str] | None = None,
) -> Told:
    """What is told about a call, by the strictest of its attempts unless one succeeded (TR-44).

    `attempts` are all attempts of the call, oldest first; `stored` maps a result reference
    to its text, for results too large for the entry. Total over states and overlays.
    """
    telling = speaking([*attempts] or [receipt])
    told = _TOLD[telling.state](telling, stored or {})
    tries = max([int((one.ladder or {}).get("try") or 1) for one in attempts], default=1)
    if tries == 1 or telling.state not in (State.FAILED, State.UNKNOWN):
        return told
    return dataclasses.replace(told, text=f"{told.text}\n({_name(telling)} was tried {tries} times.)")


def speaking(attempts: Sequence[Receipt]) -> Receipt:
    """The attempt that speaks for its call: the strictest, and of equals the last."""
    ranked = [(_weight(attempt), index) for index, attempt in enumerate(attempts)]
    return attempts[max(ranked)[1]]


def _weight(attempt: Receipt) -> int:
    if attempt.state is State.SUCCEEDED:
        return 9
    if attempt.state is State.UNKNOWN:
        return _unknown_weight(attempt)
    if attempt.state is State.STARTED:
        return 7
    if attempt.state is State.FAILED:
        return 3 if attempt.effect_trace is not EffectTrace.NONE and not _reads(attempt) else 2
    return 1


def _unknown_weight(attempt: Receipt) -> int:
    """An unknown outlives a later try that did nothing, unless nothing of it can be left (TR-42)."""
    if attempt.has(Overlay.DENIED):
        return 2
    if attempt.has(Overlay.SUPERSEDED):
        absent = (attempt.inspection or {}).get("state") == "absent_fenced"
        return 1 if absent or _reads(attempt) else 5
    return 6


def _reads(attempt: Receipt) -> bool:
    return judged_effect(attempt).effect_class is EffectClass.READ_ONLY


# --- the states ---------------------------------------------------------------------------


def _stored_text(receipt: Receipt, stored: Mapping[str, str]) -> str | None:
    if receipt.result is not None:
        return str(receipt.result.get("text", ""))
    if receipt.result_ref is None:
        return None
    return stored.get(receipt.result_ref)


def _dispatched(receipt: Receipt, stored: Mapping[str, str]) -> Told:
    return Told("This call waits to start. Nothing was started.", True)


OWNER_DIED = "owner_died_before_start"
WITHDRAWN = (
    "A person was asked whether this call may run, and the program went away before an answer. The question is "
    "withdrawn, nothing was started; ask for the call again if it is still wanted."
)

WITHDRAWN_YES = (
    "A person had allowed this call, and its turn was stopped before it began. The permission is withdrawn, "
    "nothing was started; ask for the call again if it is still wanted."
)
UNUSED_YES = " A person had allowed this call; as it did not start, that permission was not used."


def _not_started(receipt: Receipt, stored: Mapping[str, str]) -> Told:
    given = _stored_text(receipt, stored)
    reason = receipt.reason or ""
    approval = receipt.approval or {}
    if given is None and approval.get("verdict") == "withdrawn" and reason == OWNER_DIED:
        given = WITHDRAWN_YES if approval.get("was") == "approved" else WITHDRAWN
    text = given if given is not None else refusal_text(reason, receipt.extra)
    if approval.get("verdict") == "approved":
        text += UNUSED_YES  # the verdict on a call is always stated (TR-171)
    flagged = bool((receipt.result or {}).get("isError", reason not in NOT_A_TOOL_ERROR))
    return Told(text, flagged)


def _started(receipt: Receipt, stored: Mapping[str, str]) -> Told:
    return Told(
        f"{_name(receipt)} is running; there is no result yet. Do not ask for it again meanwhile.", True
    )


def _succeeded(receipt: Receipt, stored: Mapping[str, str]) -> Told:
    given = _stored_text(receipt, stored)
    if given is None:
        return Told(_missing_text(receipt), False)
    return Told(given, False)


def _failed(receipt: Receipt, stored: Mapping[str, str]) -> Told:
    given = _stored_text(receipt, stored)
    if not given:
        fixed = {"never_ran": NEVER_RAN, "changed_underneath": CHANGED_UNDERNEATH}
        kind = receipt.error_kind or "no reason given"
        given = fixed.get(receipt.reason or "", f"{_name(receipt)} failed ({kind}) and said nothing more.")
    return Told(failed_text(given, receipt), True)


def failed_text(text: str, receipt: Receipt) -> str:
    """The text of a failure, with the warning of TR-209 where it belongs. Adding it twice changes nothing."""
    if not may_have_left_something(receipt) or text.endswith(PART_MAY_HAVE_HAPPENED):
        return text
    return f"{text}\n\n{PART_MAY_HAVE_HAPPENED}" if text else PART_MAY_HAVE_HAPPENED


def may_have_left_something(receipt: Receipt) -> bool:
    """Whether a failed attempt is one of TR-209: unsafe to repeat, trace possible, and no check."""
    if receipt.state is not State.FAILED or receipt.effect_trace is not EffectTrace.POSSIBLE:
        return False
    effect = judged_effect(receipt)
    return not effect.effect_class.retry_safe and not effect.check


def _missing_text(receipt: Receipt) -> str:
    ref = receipt.result_ref or receipt.result_digest or "none"
    return (
        f"{_name(receipt)} succeeded; its stored output ({ref}) cannot be read now. "
        "It is not run again for that."
    )


def _unknown(receipt: Receipt, stored: Mapping[str, str]) -> Told:
    """The most settling overlay speaks; a rejected call is as open as before (TR-42)."""
    for overlay, told in _BY_OVERLAY:
        if receipt.has(overlay):
            return Told(told(receipt), True)
    return Told(unknown_text(receipt), True)


def unknown_text(receipt: Receipt) -> str:
    """What is told of an open unknown: that it started, why its end is not known, that it may have
    happened, and what may be done now (TR-44)."""
    why = WHY_UNKNOWN.get(receipt.reason or "", WHY_UNKNOWN["no_evidence"])
    if _reads(receipt) or receipt.interaction:
        return (
            f"{_began(receipt)} and its end is not known. {why} "
            "It changes nothing, so it may be asked for again."
        )
    lines = [
        f"{_began(receipt)} and its end is not known. {why}",
        "It may have happened, wholly or in part.",
        f"Writes to {shown_reach(judged_effect(receipt).reach)} are to wait until this is resolved; "
        "reading goes on.",
        "What you can do now: look with read-only tools at what it would have changed, then tell what you "
        f"found with the `recovery` tool (inspect or report, attempt {receipt.attempt_id}). Do not repeat it "
        f"before that. A person resolves it with `surefoot recover {receipt.attempt_id}`.",
    ]
    if receipt.has(Overlay.REJECTED):
        lines.insert(2, "A person looked and left it open: do not repeat it.")
    if receipt.has(Overlay.LATE):
        lines.insert(2, "Something was heard of it later; that is evidence, not its result.")
    said = str(receipt.extra.get("said") or "")
    if said:
        lines.append(f"What it had written until then (data, not a result):\n{said}")
    return " ".join(lines[:-1]) + "\n" + lines[-1] if said else " ".join(lines)


def _began(receipt: Receipt) -> str:
    if receipt.started_at is None:
        return f"{_name(receipt)} may have started (attempt {receipt.attempt_id})"
    return f"{_name(receipt)} started at {clock_text(receipt.started_at)} (attempt {receipt.attempt_id})"


def _proven(receipt: Receipt) -> str:
    seen = str((receipt.inspection or {}).get("summary") or "").strip()
    evidence = f" Evidence: {seen}" if seen else ""
    return (
        f"{_name(receipt)} started and its own end was not recorded, but it was proved that it happened."
        f"{evidence} {NO_OUTPUT} Do not repeat it."
    )


def _confirmed(receipt: Receipt) -> str:
    return (
        f"{_name(receipt)} started and its own end was not recorded. A person said that it happened. "
        f"{NO_OUTPUT} Do not repeat it unless you are asked to."
    )


def _denied(receipt: Receipt) -> str:
    return (
        f"{_name(receipt)} started and its own end was not recorded. A person said that it did not happen. "
        "If it is still wanted, ask for it anew."
    )


def _released(receipt: Receipt) -> str:
    return (
        f"{_began(receipt)} and its end is still not known: it may have happened. A person lifted the "
        "fence, so writes go on. Look with a read-only tool before you repeat it."
    )


def _superseded(receipt: Receipt) -> str:
    return (
        f"{_began(receipt)} and its end is not known. It may have happened; it was run again as "
        f"{receipt.superseded_by or 'a later attempt'}, which speaks for both."
    )


_BY_OVERLAY = (
    (Overlay.PROVEN, _proven),
    (Overlay.CONFIRMED, _confirmed),
    (Overlay.DENIED, _denied),
    (Overlay.RELEASED, _released),
    (Overlay.SUPERSEDED, _superseded),
)

_TOLD = {
    State.DISPATCHED: _dispatched,
    State.NOT_STARTED: _not_started,
    State.STARTED: _started,
    State.SUCCEEDED: _succeeded,
    State.FAILED: _failed,
    State.UNKNOWN: _unknown,
}


# --- refusals -----------------------------------------------------------------------------


def refusal_text(code: str, facts: Mapping[str, Any]) -> str:
    """The text of a call that will not start. `facts` are those of the refusal (`recovery.Refusal`)."""
    special = _REFUSALS.get(code)
    if special is not None:
        return special(facts)
    text = NOT_STARTED.get(code, f"This call was not started ({code}).")
    why = str(facts.get("why") or facts.get("cause") or "").strip()
    return f"{text} Reason: {why}" if why else text


def _fenced_text(facts: Mapping[str, Any]) -> str:
    """TR-84 and UX-5: attempt, tool, time and reach; what still works; the command that leads out."""
    attempt = str(facts.get("fencedBy") or "")
    if not attempt:
        return NOT_STARTED["fenced"]
    since = facts.get("fencedSince")
    at = f" at {clock_text(since)}" if isinstance(since, int) else ""
    others = int(facts.get("fencedOthers") or 0)
    more = f" {others} more open calls hold it back too." if others else ""
    return (
        "Not started: this write waits for an earlier call whose end is not known. "
        f"{facts.get('fencedTool')} (attempt {attempt}) started{at} and may have happened; it reaches "
        f"{shown_reach(facts.get('fencedReach') or ())}.{more} Reading goes on, and so does "
        f"{_still_works(facts)}. You can look with read-only tools and tell what you found with the "
        "`recovery` tool (inspect or report), work elsewhere, or ask the person. A person decides (it "
        "happened, it did not happen, leave it open, lift the fence) with "
        f"`surefoot recover {facts.get('fencedShort') or attempt}`."
    )


def _still_works(facts: Mapping[str, Any]) -> str:
    level = facts.get("fencedLevel")
    if level == "action":
        return "every other action"
    if level == "session" or "*" in (facts.get("fencedReach") or ()):
        return "asking the person"
    return "writing elsewhere"


def _batch_text(facts: Mapping[str, Any]) -> str:
    attempt = facts.get("stoppedBy")
    return NOT_STARTED["batch_dependency"] + (f" It was attempt {attempt}." if attempt else "")


def _guarded_text(code: str, facts: Mapping[str, Any]) -> str:
    attempt = facts.get("guardedBy")
    return NOT_STARTED[code] + (f" (Earlier attempt: {attempt}.)" if attempt else "")


def _tool_missing_text(facts: Mapping[str, Any]) -> str:
    known = ", ".join(str(name) for name in facts.get("known") or ())
    asked = f" Asked for: {facts['asked']!r}." if facts.get("asked") else ""
    return NOT_STARTED["tool_missing"] + asked + (f" Tools: {known}." if known else "")


def _denied_text(facts: Mapping[str, Any]) -> str:
    """Where nobody can be asked, that is what is said: no person refused anything (UX-43)."""
    text = NOBODY_TO_ASK if facts.get("by") == "nobody" else NOT_STARTED["permission_denied"]
    why = str(facts.get("why") or "").strip()
    return f"{text} Reason: {why}" if why else text


def _duplicate_text(facts: Mapping[str, Any]) -> str:
    if facts.get("whole_message"):
        return WHOLE_MESSAGE
    original = facts.get("original")
    return NOT_STARTED["duplicate_call"] + (f" It is call {original}." if original else "")


WHOLE_MESSAGE = (
    "This message gave one id to more than one call, and its endpoint's contract refuses such a message whole. "
    "Nothing of it was started. Ask again, with an id of its own for each call."
)
_REFUSALS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "fenced": _fenced_text,
    "batch_dependency": _batch_text,
    "tool_missing": _tool_missing_text,
    "duplicate_call": _duplicate_text,
    "permission_denied": _denied_text,
    "confirmed_effect": lambda facts: _guarded_text("confirmed_effect", facts),
    "look_first": lambda facts: _guarded_text("look_first", facts),
}


# --- small pieces -------------------------------------------------------------------------


def unwritten(receipt: Receipt, code: str, text: str) -> Receipt:
    """The receipt of a refusal that could not be recorded, for display: on disk the call stays
    `dispatched` and reads as not started (TR-23)."""
    return dataclasses.replace(
        receipt,
        state=State.NOT_STARTED,
        reason=code,
        effect_trace=EffectTrace.NONE,
        result={"text": text, "isError": code not in NOT_A_TOOL_ERROR},
    )


def clock_text(at_ms: int) -> str:
    """`2026-03-01 12:01:07 UTC`, by the proleptic Gregorian calendar.

    Source: https://howardhinnant.github.io/date_algorithms.html (`civil_from_days`).
    """
    days, seconds = divmod(at_ms // 1000, 86_400)
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = year_of_era + era * 400 + (month <= 2)
    hours, rest = divmod(seconds, 3600)
    return f"{year:04d}-{month:02d}-{day:02d} {hours:02d}:{rest // 60:02d}:{rest % 60:02d} UTC"


def shown_reach(reach: Sequence[str]) -> str:
    """A reach in words: `*` is every resource of the session."""
    if "*" in reach:
        return "everything of this session (*)"
    return ", ".join(reach) or "nothing outside its own session"


def _name(receipt: Receipt) -> str:
    return receipt.tool or receipt.asked_name or "The tool"
