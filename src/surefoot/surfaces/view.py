"""The one view model: facts of a snapshot, told in words. Pure.

Owns: the card (UX-62), rows, resume and count lines, and the cleaning of
foreign text (UX-10). Does not own: what is true (`core.snapshot`), the texts (`words`),
how anything is drawn (`plain`, `chat`).
Promises: surface:same-story.

Everything here takes JSON values as `core.snapshot` makes them and returns values;
two surfaces that show one ledger show the same keys with the same words.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from surefoot.core import admission
from surefoot.core.canonical import short_id as short_id
from surefoot.core.model import Action, EffectClass, ExecutorState
from surefoot.surfaces.phrases import translated
from surefoot.surfaces.words import cause, grade_word, mark, not_run, say, state_words

Call = Mapping[str, Any]
Clock = Callable[[int], str]

KEYS = {"confirm": "h", "deny": "n", "reject": "l", "release": "f", "retry": "r", "inspect": "i"}
"""The key of each action, the same on every surface (UX-71)."""


_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC, to its end or to the end of the text
    r"|\x1b[PX^_].*?(?:\x1b\\|$)"  # DCS, SOS, PM, APC
    r"|[\x1b\x9b]\[?[0-?]*[ -/]*[@-~]?",  # CSI and two-character escapes
    re.DOTALL,
)
_KEEP_FORMAT = frozenset({"\u200d"})
"""Joins emoji and letters of several scripts and moves nothing."""


def clean(text: object, *, lines: bool = False) -> str:
    """Foreign text without control, escape and bidirectional characters.

    One line unless `lines`; then line feeds stay and tabs become spaces.
    """
    raw = _ESCAPES.sub("", str(text)).replace("\r\n", "\n")
    kept: list[str] = []
    for letter in raw:
        category = unicodedata.category(letter)
        if letter == "\n" and lines:
            kept.append(letter)
        elif letter in "\n\t\u2028\u2029":
            kept.append(" ")
        elif category == "Cs":
            kept.append("\ufffd")  # half a pair cannot be written out
        elif category not in ("Cc", "Cf") or letter in _KEEP_FORMAT:
            kept.append(letter)
    return "".join(kept)


def local_time(ms: int) -> str:
    """`12:01:07` in the zone of this machine."""
    return datetime.fromtimestamp(ms / 1000).astimezone().strftime("%H:%M:%S")


def fact_key(call: Call) -> str:
    """The row of UX-63 that tells this call."""
    state = call.get("state")
    if state == "not_started":
        silent = call.get("reason") in (None, "cancelled_before_start", "owner_died_before_start")
        return "not_started" if silent else "not_started_refused"
    if state == "failed":
        return "failed_possible" if call.get("effectTrace") in ("possible", "done") else "failed"
    if state in ("dispatched", "started", "succeeded"):
        return str(state)
    overlays = call.get("overlays") or ()
    for overlay, key in _OVERLAYS:
        if overlay in overlays:
            return key
    return _inspected_key(call.get("inspection") or {})


_OVERLAYS = (
    ("superseded", "superseded"),
    ("released", "released"),
    ("denied", "denied"),
    ("confirmed", "confirmed"),
    ("proven", "present_proof"),
    ("rejected", "rejected"),
)


_UNDECIDED = ("unknown", "present", "postcondition_satisfied", "absent_fenced", "inspection_unknown")


def is_told_open(key: str) -> bool:
    """Whether a row of UX-63 tells a call whose effect is not settled by a result or a person."""
    return key in (*_UNDECIDED, "rejected")


def _inspected_key(inspection: Mapping[str, Any]) -> str:
    state, grade = inspection.get("state"), inspection.get("grade")
    if state == "present":
        return "present_proof" if grade == "proof" else "present"
    if state in ("postcondition_satisfied", "absent_fenced"):
        return str(state)
    return "inspection_unknown" if state else "unknown"


def told(call: Call, language: str, *, you: bool = False) -> str:
    """One call's state in words."""
    key = fact_key(call)
    if key == "not_started_refused":
        nobody = call.get("reason") == "permission_denied" and call.get("by") == "nobody"
        return not_run("nobody_to_ask" if nobody else call.get("reason"), language)
    if key == "superseded":
        return state_words(key, language, attempt=short_id(str(call.get("supersededBy") or "att_")))
    return state_words(key, language, you=you)


def is_card(call: Call) -> bool:
    """Whether a call is shown as a card: open, and no read (UX-162)."""
    return bool(call.get("open")) and call.get("class") != "READ_ONLY"


def code_of(call: Call) -> str:
    """The two characters of UX-74; they change with each inspection."""
    return admission.code_of(str(call.get("attemptId")), call.get("inspectionId"))


def needs_code(action: str, call: Call) -> bool:
    """Whether this decision costs the code (UX-74); the rule is the runtime's own."""
    inspection, executor = call.get("inspection") or {}, ExecutorState(executor_state(call))
    return admission.costs_code(Action(action), EffectClass(call["class"]), inspection, executor)


def executor_state(call: Call) -> str:
    """`ended`, `alive` or `not_proven`; what is not told is not proven."""
    return str((call.get("executor") or {}).get("state") or "not_proven")


def summary(call: Call) -> str:
    """One redacted line naming the call: what the runtime tells, else the tool."""
    shown = call.get("summary") or call.get("tool") or call.get("askedName") or "?"
    return clean(shown)[:240]


def summary_of(receipt: Call) -> str:
    """One line from a receipt's redacted arguments: `git push origin main`, `write src/a.py`."""
    tool = str(receipt.get("tool") or receipt.get("askedName") or "?")
    display = receipt.get("argumentsDisplay") or ""
    try:
        arguments = json.loads(display)
    except ValueError:
        return f"{tool} {display}".strip()
    if not isinstance(arguments, dict):
        return tool
    if isinstance(arguments.get("command"), str):
        return str(arguments["command"])
    named = next((arguments[key] for key in _TELLING if isinstance(arguments.get(key), str)), "")
    return f"{tool} {named}".strip()


_TELLING = ("path", "file_path", "source", "url", "pattern", "name", "text", "question")


def with_summaries(snapshot: Mapping[str, Any], receipts: Mapping[str, Call]) -> dict[str, Any]:
    """The snapshot with the line that names each call; `receipts` by attempt id, in JSON names."""
    calls = [
        {**call, **_named(receipts[call["attemptId"]])} if call["attemptId"] in receipts else call
        for call in snapshot.get("calls") or ()
    ]
    return {**snapshot, "calls": calls}


def _named(receipt: Call) -> dict[str, Any]:
    """The line that names a call, and for a copy in a fork the call it was copied from (UX-52)."""
    named: dict[str, Any] = {"summary": summary_of(receipt)}
    if receipt.get("originAttemptId"):
        named["origin"] = {
            "attemptId": receipt["originAttemptId"],
            "sessionId": receipt.get("originSessionId"),
        }
    return named


def card(
    call: Call,
    snapshot: Mapping[str, Any],
    language: str,
    *,
    stopped: bool = False,
    clock: Clock = local_time,
) -> dict[str, Any]:
    """The card of one unknown call, as data (UX-62).

    `stopped` is true for an unattended run that ended because of it. Arguments stay
    only where the snapshot has them, which is the answer to an inspect (TR-141).
    """
    attempt = str(call["attemptId"])
    others = [str(other["attemptId"]) for other in snapshot.get("calls") or ()]
    reach = [clean(member) for member in call.get("reach") or ()]
    fenced = bool(call.get("fencing"))
    waits = [say("next_wait", language)] if stopped else []
    return {
        **call,
        "shortId": short_id(attempt, others),
        "summary": summary(call),
        "words": told(call, language),
        "mark": mark(fact_key(call)),
        "cause": cause(call.get("reason"), language),
        "known": _known(call, language, clock),
        "notKnown": _not_known(call, reach, language),
        "next": _joined([*waits, _next(reach, fenced, snapshot.get("barrier"), language)], language),
        "checks": _checks(call, language),
        "fence": {"reach": reach, "since": call.get("startedAt")} if fenced else None,
        "executor": {"state": executor_state(call), "sentence": _executor_sentence(call, language)},
        "command": _command(call, short_id(attempt, others)),
        "actions": [_action(action, call, language) for action in call.get("actions") or ()],
        "sessionPath": snapshot.get("sessionPath"),
        "runtimeEpoch": snapshot.get("runtimeEpoch"),
        "revision": snapshot.get("revision"),
    }


def _known(call: Call, language: str, clock: Clock) -> str:
    started = call.get("startedAt")
    parked = say("parked", language) if call.get("parked") else ""
    key = fact_key(call)
    since = "" if key in _UNDECIDED else say("known_since", language, what=told(call, language))
    if call.get("state") != "unknown":
        first = say("known_start", language, time=clock(started)) if started else ""
        return _joined([first, since, *_origin(call, language)], language)
    first = say("known", language, time=clock(started)) if started else say("known_before_start", language)
    why = cause(call.get("reason"), language)
    return _joined([first, why, *_origin(call, language), since, parked], language)


def _origin(call: Call, language: str) -> list[str]:
    """Where a copy in a fork comes from, and what had been decided there when it was looked at (UX-52)."""
    origin = call.get("origin")
    if not origin:
        return []
    session, attempt = (short_id(str(origin.get(key) or "?_")) for key in ("sessionId", "attemptId"))
    lines = [say("copied", language, session=session, attempt=attempt)]
    evidence = (call.get("inspection") or {}).get("evidence")
    seen = evidence.get("origin") if isinstance(evidence, Mapping) else None
    if isinstance(seen, Mapping):
        kind = (seen.get("resolution") or {}).get("kind")
        there = {"state": seen.get("state"), "overlays": [kind] if kind else []}
        settled = kind or seen.get("state") != "unknown"
        key = "there_decided" if settled else "there_open"
        lines.append(say(key, language, what=told(there, language)))
    return lines


def _joined(sentences: Sequence[str], language: str) -> str:
    """Sentences one behind the other; Chinese full stops carry their own space."""
    return (" " if language == "en" else "").join(part for part in sentences if part)


def _not_known(call: Call, reach: Sequence[str], language: str) -> str:
    """Empty where a result or a proof has told it; what a person said is a word, and proves nothing."""
    if call.get("state") != "unknown" or "proven" in (call.get("overlays") or ()):
        return ""
    if not reach or "*" in reach:
        return say("not_known_any", language)
    return say("not_known", language, reach=_listed(reach))


def _next(reach: Sequence[str], fenced: bool, level: str | None, language: str) -> str:
    if not fenced or level in ("advise", "off"):
        return say("next_none", language)
    if level == "action":
        return say("next_fence_same", language)
    if level == "session" or "*" in reach or not reach:
        return say("next_fence_all", language)
    return say("next_fence", language, reach=_listed(reach))


def _listed(reach: Sequence[str]) -> str:
    return ", ".join(reach[:4]) + (f" +{len(reach) - 4}" if len(reach) > 4 else "")


def _checks(call: Call, language: str) -> list[dict[str, Any]]:
    inspection = call.get("inspection")
    if not inspection:
        return []
    rows = inspection.get("checks") or [inspection]
    return [_check(row, inspection, language) for row in rows]


def _check(row: Mapping[str, Any], inspection: Mapping[str, Any], language: str) -> dict[str, Any]:
    evidence = row.get("evidence")
    hint = evidence.get("doesNotProve", "") if isinstance(evidence, Mapping) else ""
    sentence = row.get("sentence") or row.get("summary") or say("no_verifier", language)
    return {
        "sentence": translated(clean(sentence), language),
        "doesNotProve": translated(clean(row.get("doesNotProve") or hint), language),
        "grade": row.get("grade") or "none",
        "at": row.get("at") or row.get("observedAt") or inspection.get("observedAt"),
    }


def _executor_sentence(call: Call, language: str) -> str:
    state = executor_state(call)
    if state == "ended":
        return say("executor_ended", language)
    what = say("what_process" if call.get("process") else "what_run", language)
    return say("release_alive", language, what=what)


def _command(call: Call, short: str) -> str:
    enabled = [action["action"] for action in call.get("actions") or () if action.get("enabled")]
    verb = next((verb for verb in ("confirm", "inspect", "release") if verb in enabled), None)
    return f"surefoot recover {verb} {short}" if verb else f"surefoot recover {short}"


def _action(action: Mapping[str, Any], call: Call, language: str) -> dict[str, Any]:
    name = str(action["action"])
    label = say(name, language)
    if name == "inspect":
        host = call.get("inspectHost")
        label = say("inspect_far", language, host=clean(host)) if host else label
    return {**action, "key": KEYS.get(name), "label": label, "needsCode": needs_code(name, call)}


def cards(snapshot: Mapping[str, Any], language: str, *, stopped: bool = False) -> list[dict[str, Any]]:
    """The cards of a session in order: every open call that is no read."""
    return [
        card(call, snapshot, language, stopped=stopped)
        for call in snapshot.get("calls") or ()
        if is_card(call)
    ]


def with_cards(snapshot: Mapping[str, Any], language: str) -> dict[str, Any]:
    """The snapshot with its card on each open call, as `recover … --json` prints it."""
    calls = [
        {**call, "card": card(call, snapshot, language)} if is_card(call) else dict(call)
        for call in snapshot.get("calls") or ()
    ]
    return {**snapshot, "calls": calls}


def row(call: Call, language: str, *, ascii_only: bool = False, others: Iterable[str] = ()) -> str:
    """One line of a list: mark, tool, words, id."""
    sign = mark(fact_key(call), ascii_only=ascii_only)
    return f"{sign} {summary(call)}  {told(call, language)}  {short_id(str(call['attemptId']), others)}"


def wait_line(facts: Mapping[str, Any], language: str) -> str:
    """A model that could not be asked, and when it is asked again."""
    seconds = f"{float(facts['waitSeconds']):.1f}"
    told = {"code": facts["code"], "cause": clean(facts["cause"]), "seconds": seconds}
    return say("model_wait", language, **told, number=facts["try"] + 1)


def foreseen_line(call: Call, language: str, *, ascii_only: bool = False, others: Iterable[str] = ()) -> str:
    """A call whose end is proven and that the next owner will write down."""
    return f"{row(call, language, ascii_only=ascii_only, others=others)}  {say('foreseen', language)}"


def background_lines(
    resources: Iterable[Mapping[str, Any]], language: str, *, boot_ms: int, ascii_only: bool = False
) -> list[str]:
    """What runs in the background: command, pid, age, log, and how to stop it; each once (UX-157)."""
    lines: dict[str, str] = {}
    for resource in resources:
        attempt, begun = str(resource["attemptId"]), resource.get("startedBoot")
        told = {key: clean(resource.get(key) or "-") for key in ("pid", "log")}
        told["command"] = clean(resource.get("command") or "-")[:60]
        told["age"] = "-" if begun is None else age(boot_ms - int(begun))
        told["stop"] = f"surefoot recover process {short_id(attempt)} kill"
        lines[attempt] = f"{mark('background', ascii_only=ascii_only)} {say('background', language, **told)}"
    return list(lines.values())


def running_line(call: Call, language: str, *, now_ms: int, ascii_only: bool = False) -> str | None:
    """`◐ still running · process 4711 · 5 min`, for what a dead agent left (UX-78); None when nothing lives."""
    process = call.get("process") or {}
    if not process.get("choices"):
        return None
    begun = call.get("startedAt")
    facts = {"pid": clean(process.get("pid") or "-"), "age": "-" if begun is None else age(now_ms - begun)}
    return f"{mark('started', ascii_only=ascii_only)} {say('still_running', language, **facts)}"


def process_line(made: Mapping[str, Any], attempt_id: str, language: str, *, followed: bool = False) -> str:
    """What a choice about a process came to; an adoption may be `followed` by another owner."""
    key = f"process_{made['choice']}" if made.get("gone", True) else "process_not_gone"
    if made["choice"] == "adopt" and followed:
        key = "process_followed"
    elif made["choice"] == "adopt" and made.get("running"):
        key = "process_adopt_left"
    elif made["choice"] == "adopt" and not made.get("settled", True):
        key = "process_adopt_open"
    elif made["choice"] == "kill" and made.get("gone") and not made.get("proven", True):
        key = "process_kill_unproven"
    pids = ", ".join(str(one["pid"]) for one in made.get("left") or ()) or "?"
    return say(key, language, attempt=short_id(attempt_id), pids=pids)


def process_lines(snapshot: Mapping[str, Any], attempt_id: str, language: str) -> list[str]:
    """What became of a choice about a process; a kill that did not prove its end says so (UX-78)."""
    made = snapshot["process"]
    lines = [process_line(made, attempt_id, language)]
    call = next((one for one in snapshot.get("calls") or () if one["attemptId"] == attempt_id), None)
    if made["choice"] == "kill" and call is not None and is_card(call) and executor_state(call) != "ended":
        lines.append(_executor_sentence(call, language))
    return lines


def resume_line(name: str, settled: int, open_calls: int, language: str) -> str:
    """One of the two lines of UX-50."""
    if not open_calls:
        return say("quiet_one" if settled == 1 else "quiet", language, n=settled)
    return say("resumed", language, name=clean(name), settled=settled, open=open_calls)


def death_lines(deaths: Sequence[Mapping[str, Any]], language: str) -> list[str]:
    """The calls that each dead owner of a session was in, a line each (UX-161)."""
    lines = []
    for death in deaths:
        calls = ", ".join(f"{summary(one)} ({short_id(one['attemptId'])})" for one in death["calls"])
        lines.append(say("died_in", language, calls=calls) if calls else say("died_in_none", language))
    return lines


def rerun_line(calls: Sequence[Mapping[str, Any]], language: str) -> str | None:
    """What a Continue would run again, or None (UX-50)."""
    if not calls:
        return None
    names = ", ".join(
        f"{summary(call)} ({_listed([clean(r) for r in call.get('reach') or ()])})" for call in calls
    )
    return say("will_rerun", language, calls=names)


def reask_line(calls: Sequence[Mapping[str, Any]], language: str) -> str | None:
    """What a Continue would ask a permission for again, or None (UX-42)."""
    if not calls:
        return None
    return say("will_reask", language, calls=", ".join(clean(call.get("tool") or "?") for call in calls))


def approved_line(calls: Sequence[Mapping[str, Any]], language: str) -> str | None:
    """What a Continue would run on a yes that was given before the death of its owner, or None (TR-171)."""
    if not calls:
        return None
    return say(
        "will_run_approved", language, calls=", ".join(clean(call.get("tool") or "?") for call in calls)
    )


def stop_line(counts: Mapping[str, int], language: str, *, ending_seconds: float | None = None) -> str:
    """The one line of counts after a stop (UX-18)."""
    order = ("succeeded", "failed", "unknown", "not_started", "ending", "check")
    one = {"check": "check_one"} if counts.get("check") == 1 else {}
    parts = [say(f"count_{one.get(key, key)}", language, n=counts[key]) for key in order if counts.get(key)]
    line = say("stopped", language) + ": " + (" · ".join(parts) or say("count_nothing", language))
    if counts.get("ending") and ending_seconds is not None:
        line += " · " + say("ending", language, seconds=round(ending_seconds))
    return line


def receipt_line(
    facts: Mapping[str, Any], language: str, *, ascii_only: bool = False, room: int | None = None
) -> str:
    """One change of a receipt while a run is watched; the call is named in at most `room` letters."""
    name = clean(summary_of(facts))
    name = name if room is None or len(name) <= room else name[: room - 1] + "…"
    return f"{mark(fact_key(facts), ascii_only=ascii_only)} {name}: {told(facts, language)}"


def grade_tag(check: Mapping[str, Any], language: str) -> str:
    """The word of a check's grade."""
    return grade_word(str(check.get("grade") or "none"), language)


def age(ms: int) -> str:
    """A length of time in one unit: `12 s`, `3 min`, `5 h`, `2 d`."""
    seconds = max(0, ms // 1000)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
