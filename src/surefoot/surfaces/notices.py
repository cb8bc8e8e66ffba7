"""One line per notice, the same on every surface. Pure.

Owns: which notices are told as a sentence of their own, and how their facts fill it.
Does not own: the texts (`words_notices`), what a surface draws of its own accord
(streams, receipts, questions, cards), when something is told (`runtime`).
Promises: surface:same-story.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from surefoot.core.canonical import short_id
from surefoot.surfaces.incident_card import changes_of
from surefoot.surfaces.view import clean, summary_of
from surefoot.surfaces.words import in_language, mark, refusal, say
from surefoot.surfaces.words_notices import NOTICES

Facts = Mapping[str, Any]

DRAWN = frozenset(
    {
        "text", "receipt", "progress", "turn", "user", "assistant", "question", "answer", "hand_off", "host",
        "incident", "provider_refused", "model_wait", "rewound", "local_model", "looked", "unknownOpen",
    }
)  # fmt: skip
"""Kinds that have a drawing of their own, or tell a person nothing."""


def line(kind: str, facts: Facts, language: str, *, ascii_only: bool = False) -> str | None:
    """The sentence of a notice; None for what is drawn otherwise. A kind of a newer version is named, not hidden."""
    if kind in DRAWN:
        return None
    if kind == "check_stopped":
        sign = mark("released", ascii_only=ascii_only)
        return (
            f"{sign} {clean(summary_of(facts))}: {say('check_stopped', language)} {_id(facts, 'attemptId')}"
        )
    if kind == "no_sources":
        return say("no_sources", language)  # information, not a fault (UX-130)
    if kind == "discard" and f"discard_{facts.get('reason')}" in NOTICES:
        kind = f"discard_{facts['reason']}"
    if kind not in NOTICES:
        told = facts.get("text") or facts.get("message") or facts.get("cause")
        return f"{kind}: {clean(told)}" if told else None
    fill = _FILLED.get(kind)
    return sentence(kind, language, **(fill(facts, language) if fill else _plain(facts, language)))


def why_ended(reason: str | None, language: str) -> str:
    """Why a turn ended without an error: in words where there are some, else as recorded (S-02, S-24, PR-69)."""
    key = f"ended_{reason}"
    return sentence(key, language) if key in NOTICES else clean(reason or "?")


def sentence(key: str, language: str, **values: Any) -> str:
    """A text of the table of notices with its values."""
    return in_language(NOTICES[key], language).format(**values)


def _id(facts: Facts, name: str) -> str:
    return short_id(str(facts.get(name) or "att_"))


def _plain(facts: Facts, language: str) -> dict[str, Any]:
    return {
        "attempt": _id(facts, "attemptId"),
        "tool": clean(facts.get("tool") or "?"),
        "cause": clean(facts.get("cause") or facts.get("text") or "?"),
    }


def _beside(facts: Facts, language: str) -> dict[str, Any]:
    unknown = _id(facts, "unknown")
    session = short_id(str(facts.get("sessionId") or "ses_"))
    command = f"surefoot recover {unknown}"
    return {**_plain(facts, language), "unknown": unknown, "session": session, "command": command}


def _dropped(facts: Facts, language: str) -> dict[str, Any]:
    code = str(facts.get("code") or "bad_request")
    word = say(str(facts.get("action") or "inspect"), language)
    return {**_plain(facts, language), "word": word, "code": code, "sentence": refusal(code, language)}


def _waits(facts: Facts, language: str) -> dict[str, Any]:
    seconds = f"{float(facts.get('waitSeconds') or 0):g}"
    number = facts.get("try") or "?"
    return {**_plain(facts, language), "seconds": seconds, "number": number, "of": facts.get("of") or "?"}


def _compacted(facts: Facts, language: str) -> dict[str, Any]:
    counts = facts.get("counts") or {}
    listed = " · ".join(f"{count} {clean(group)}" for group, count in sorted(counts.items()))
    return {"messages": facts.get("messages", 0), "counts": listed or "0"}


def _repeated(facts: Facts, language: str) -> dict[str, Any]:
    return {**_plain(facts, language), "earlier": _id(facts, "earlier")}


def _recovered(facts: Facts, language: str) -> dict[str, Any]:
    incident = short_id(str(facts.get("incidentId") or "inc_"))
    return {"changes": changes_of(facts, language), "incident": incident}


def _hosted(facts: Facts, language: str) -> dict[str, Any]:
    return {"kinds": ", ".join(clean(kind) for kind in facts.get("kinds") or ())}


def _again(facts: Facts, language: str) -> dict[str, Any]:
    rows = facts.get("calls") or ()
    return {"calls": ", ".join(f"{clean(row['tool'])} ({_id(row, 'attemptId')})" for row in rows)}


def _otherwise(facts: Facts, language: str) -> dict[str, Any]:
    told = [_change(row, language) for row in facts.get("changes") or ()]
    return {"changes": " · ".join(told) or "?"}


def _change(row: Facts, language: str) -> str:
    key = f"changed_{row.get('what')}"
    if row.get("what") == "tool" and not (row.get("old") and row.get("new")):
        key = "new_tool" if row.get("new") else "gone_tool"
    shown = {name: clean(row.get(name) or "-") for name in ("name", "old", "new")}
    return sentence(key, language, **shown)


def _hook_fenced(facts: Facts, language: str) -> dict[str, Any]:
    named = {"command": clean(facts.get("command") or "?"), "event": clean(facts.get("event") or "?")}
    return {**named, "unknown": _id(facts, "fencedBy")}


def _held(facts: Facts, language: str) -> dict[str, Any]:
    return {"reason": clean(facts.get("reason") or "-")}


def _ended(facts: Facts, language: str) -> dict[str, Any]:
    code, signal = facts.get("exitCode"), facts.get("signal")
    if signal is not None:
        end = sentence("end_signal", language, number=signal)
    elif code is not None:
        end = sentence("end_exit", language, number=code)
    else:
        end = sentence("end_unrecorded", language)
    shown = {"command": clean(facts.get("command") or "?"), "log": clean(facts.get("log") or "-")}
    return {**_plain(facts, language), **shown, "end": end}


_FILLED: Mapping[str, Callable[[Facts, str], dict[str, Any]]] = {
    "advised": _beside,
    "open_elsewhere": _beside,
    "parked_dropped": _dropped,
    "will_run_again": _again,
    "works_otherwise": _otherwise,
    "resumes_spent": lambda facts, language: {"times": facts.get("times", 0)},
    "tool_wait": _waits,
    "compacted": _compacted,
    "repeats_settled": _repeated,
    "recovered_request": _recovered,
    "background_end": _ended,
    "hosted_unasked": _hosted,
    "hook_fenced": _hook_fenced,
    "held_words": _held,
    "held_compaction": _held,
}
