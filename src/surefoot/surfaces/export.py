"""A session as one document: entries, receipts, evidence, decisions; secrets out (UX-54). Pure.

Owns: what an export holds, what is taken out of it and the list of that, its Markdown form.
Does not own: reading the ledger and writing files (`cli.exporting`), which text counts as a
secret (`core.redact`), the schema (`export_schema`).

Redaction works on the copy alone. Beside the shapes of secrets it knows values: those under a
secret name in any argument of the session, and those of the keys that the settings name; they
go wherever they stand. Foreign text of the Markdown form stands in code blocks, so that no
viewer fetches what it names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from surefoot.core.model import Entry, Kind, Receipt
from surefoot.core.redact import REDACTED, redact, redact_text, secret_like
from surefoot.surfaces import view
from surefoot.surfaces.phrases import translated
from surefoot.surfaces.words import mark
from surefoot.surfaces.words_export import told

SCHEMA_VERSION = 1
SHORTEST_VALUE = 6
"""Letters of the shortest value that is searched for by itself; a shorter one would be found by chance."""
ARGUMENTS = ("arguments", "argumentsDisplay")


@dataclass(frozen=True, slots=True)
class Source:
    """What is exported; `results` are the texts of results that lie in blobs, by their reference."""

    session: Mapping[str, Any]
    entries: Sequence[Entry]
    receipts: Sequence[Receipt]
    results: Mapping[str, str]
    open_calls: Sequence[str]
    version: str


@dataclass(slots=True)
class _Redactor:
    """Takes secrets out of a copy and counts them by place."""

    values: Sequence[str]
    removed: dict[str, int] = field(default_factory=dict)

    def clean(self, value: Any, place: str) -> Any:
        """The value without secrets."""
        if isinstance(value, str):
            return self._text(value, place)
        if isinstance(value, Mapping):
            return {str(key): self._member(str(key), item, f"{place}/{key}") for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.clean(item, f"{place}/{number}") for number, item in enumerate(value)]
        return value

    def note(self, place: str, count: int = 1) -> None:
        """Count what was taken out at a place."""
        self.removed[place] = self.removed.get(place, 0) + count

    def _member(self, key: str, value: Any, place: str) -> Any:
        if value and secret_like(key) and not isinstance(value, bool | int | float):
            self.note(place)
            return REDACTED
        if key in ARGUMENTS and isinstance(value, str):
            # What is JSON is taken apart, so that a secret name hides its value wherever it stands.
            return self._text(redact(value, (), limit=max(1, len(value) * 2)), place, before=value)
        return self.clean(value, place)

    def _text(self, text: str, place: str, *, before: str | None = None) -> str:
        shown = redact_text(text)
        for value in self.values:
            shown = shown.replace(value, REDACTED)
        count = shown.count(REDACTED) - (text if before is None else before).count(REDACTED)
        if count > 0:
            self.note(place, count)
        return shown


def document(source: Source, *, redacted: bool = True, keys: Iterable[str] = ()) -> dict[str, Any]:
    """The export as JSON. `keys` are values that never leave, such as those of the API keys in use."""
    whole = {
        "schema_version": SCHEMA_VERSION,
        "surefoot_version": source.version,
        "redacted": redacted,
        "removed": [],
        "session": dict(source.session),
        "entries": [_entry(one) for one in source.entries],
        "receipts": [_receipt(one, source.results) for one in source.receipts],
        "evidence": _of_kind(source.entries, Kind.INSPECTED, ("inspection", "proven")),
        "decisions": _of_kind(source.entries, Kind.RESOLVED, ("resolution",)),
        "open_calls": list(source.open_calls),
    }
    return _without_secrets(whole, source, keys) if redacted else whole


def _without_secrets(whole: dict[str, Any], source: Source, keys: Iterable[str]) -> dict[str, Any]:
    shown = {one.attempt_id: one.arguments_display for one in source.receipts}
    values = sorted({*_secret_values(source), *keys}, key=len, reverse=True)
    redactor = _Redactor([one for one in values if len(one) >= SHORTEST_VALUE])
    for place, entry in enumerate(whole["entries"]):
        _shorten(entry, shown, redactor, f"entries/{place}")
    for place, receipt in enumerate(whole["receipts"]):
        _shorten_call(receipt, shown, redactor, f"receipts/{place}")
    cleaned: dict[str, Any] = {
        key: redactor.clean(value, key) if key not in ("removed", "surefoot_version") else value
        for key, value in whole.items()
    }
    rows = [{"place": place, "count": count} for place, count in redactor.removed.items()]
    return {**cleaned, "removed": rows}


def _shorten(entry: dict[str, Any], shown: Mapping[str, str | None], redactor: _Redactor, place: str) -> None:
    """Leave out the reply as it was on the wire, and arguments whose display form is known."""
    if entry.pop("raw", None) is not None:
        redactor.note(f"{place}/raw")
    if isinstance(entry.get("calls"), list):
        entry["calls"] = [dict(call) for call in entry["calls"]]
        for number, call in enumerate(entry["calls"]):
            _shorten_call(call, shown, redactor, f"{place}/calls/{number}")
    elif "arguments" in entry:
        _shorten_call(entry, shown, redactor, place)


def _shorten_call(
    call: dict[str, Any], shown: Mapping[str, str | None], redactor: _Redactor, place: str
) -> None:
    """The display form in the place of the arguments: it knows which of them the tool calls secret."""
    display = shown.get(str(call.get("attemptId")))
    if display is None or not call.get("arguments"):
        return
    hidden = max(0, display.count(REDACTED) - str(call["arguments"]).count(REDACTED))
    call["arguments"] = display
    if hidden:
        redactor.note(f"{place}/arguments", hidden)


def _secret_values(source: Source) -> set[str]:
    """The values that stand under a secret name in the arguments of any call."""
    texts = [one.arguments for one in source.receipts]
    for entry in source.entries:
        texts += [str(call.get("arguments") or "") for call in entry.payload.get("calls") or ()]
    found: set[str] = set()
    for text in texts:
        try:
            found |= set(_under_secret_names(json.loads(text), secret=False))
        except (ValueError, RecursionError):
            continue
    return found


def _under_secret_names(value: Any, *, secret: bool) -> Iterable[str]:
    if isinstance(value, str):
        if secret and value != REDACTED:
            yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _under_secret_names(item, secret=secret or secret_like(str(key)))
    elif isinstance(value, list):
        for item in value:
            yield from _under_secret_names(item, secret=secret)


def _entry(entry: Entry) -> dict[str, Any]:
    head = {"position": entry.position, "at_ms": entry.at_ms, "kind": str(entry.kind)}
    return {**dict(entry.payload), **head}


def _receipt(receipt: Receipt, results: Mapping[str, str]) -> dict[str, Any]:
    made = dict(receipt.to_json())
    if receipt.result is None and receipt.result_ref in results:
        made["result"] = {"text": results[str(receipt.result_ref)]}
    return made


def _of_kind(entries: Sequence[Entry], kind: Kind, names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [
        {
            "attemptId": entry.payload.get("attemptId"),
            "position": entry.position,
            "at_ms": entry.at_ms,
            **{name: entry.payload.get(name) for name in names},
        }
        for entry in entries
        if entry.kind == kind
    ]


# As Markdown ------------------------------------------------------------------------------------


def markdown(whole: Mapping[str, Any], language: str) -> list[str]:
    """The export for a person: what was said, each call with its end, evidence and decisions."""
    session = whole["session"]
    lines = [f"# {_inline(session.get('name') or session['session_id'])}", ""]
    for key in ("session_id", "directory", "model"):
        lines.append(f"- {told(key, language)}: {_inline(session.get(key) or '-')}")
    key = "redacted" if whole["redacted"] else "whole"
    lines += [f"- {told(key, language, n=sum(one['count'] for one in whole['removed']))}", ""]
    lines += _section(told("words", language), _conversation(whole, language))
    lines += _section(told("calls", language), _calls(whole, language))
    lines += _section(told("evidence", language), _evidence(whole, language))
    return lines + _section(told("decisions", language), _decisions(whole, language))


def removed_lines(whole: Mapping[str, Any], language: str) -> list[str]:
    """What was taken out, place by place, for whoever is about to pass the file on."""
    rows = whole["removed"]
    if not whole["redacted"]:
        return [told("whole", language)]
    total = sum(one["count"] for one in rows)
    lines = [told("redacted", language, n=total)]
    return lines + [told("removed_at", language, place=one["place"], n=one["count"]) for one in rows]


def _section(title: str, lines: list[str]) -> list[str]:
    return [f"## {title}", "", *lines, ""] if lines else []


def _conversation(whole: Mapping[str, Any], language: str) -> list[str]:
    lines: list[str] = []
    for entry in whole["entries"]:
        if entry["kind"] in (Kind.USER, Kind.ASSISTANT) and entry.get("text"):
            who = told("user" if entry["kind"] == Kind.USER else "assistant", language)
            lines += [f"**{who}**", "", *_block(entry["text"]), ""]
    return lines


def _calls(whole: Mapping[str, Any], language: str) -> list[str]:
    lines: list[str] = []
    for receipt in whole["receipts"]:
        head = f"{mark(view.fact_key(receipt))} {view.told(receipt, language)}"
        facts = [receipt["attemptId"], receipt.get("class") or "-", ", ".join(receipt.get("reach") or ["-"])]
        lines += [f"**{head}** · " + " · ".join(_inline(fact) for fact in facts), ""]
        lines += [*_block(view.summary_of(receipt)), ""]
        result = (receipt.get("result") or {}).get("text")
        if result:
            lines += [*_block(result), ""]
    return lines


def _evidence(whole: Mapping[str, Any], language: str) -> list[str]:
    lines: list[str] = []
    for one in whole["evidence"]:
        look = one["inspection"] or {}
        for check in look.get("checks") or [look]:
            sentence = check.get("sentence") or check.get("summary") or "-"
            grade = view.grade_tag(check, language)
            lines.append(
                f"- {_inline(one['attemptId'])}: {_inline(translated(sentence, language))} · {grade}"
            )
    return lines


def _decisions(whole: Mapping[str, Any], language: str) -> list[str]:
    lines: list[str] = []
    for one in whole["decisions"]:
        record = one["resolution"] or {}
        names = ("kind", "who", "channel", "method", "assurance", "note")
        row = " · ".join(_inline(record[name]) for name in names if record.get(name))
        lines.append(f"- {_inline(one['attemptId'])}: {row}")
    return lines


def _block(text: object) -> list[str]:
    return ["    " + line for line in view.clean(text, lines=True).split("\n")]


def _inline(text: object) -> str:
    """One line in which nothing is Markdown."""
    letters = view.clean(text)
    return "".join(f"\\{letter}" if letter in "\\`*[]<>!#|" else letter for letter in letters)
