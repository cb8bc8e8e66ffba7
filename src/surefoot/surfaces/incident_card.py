"""The protocol card: what was refused, what one recovery would change, what else can be done. Pure.

Owns: the lines of UX-124 to UX-129 from the card's facts. Does not own: the facts
(`runtime.incidents`), the words (`words_incident`), drawing (each surface).
Promises: surface:same-story. The provider's body is in none of it (UX-128).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from surefoot.core.incident import IncidentRow
from surefoot.surfaces.view import clean
from surefoot.surfaces.words import in_language
from surefoot.surfaces.words_incident import KINDS, LINES, NOT_OFFERED, OUTCOMES, WAYS
from surefoot.surfaces.words_table import Texts

FIELDS = (
    "incident_id", "kind", "status", "trace_id", "state", "scope", "offered", "reason_not_offered",
    "changes", "done_calls", "open_calls", "ways",
)  # fmt: skip
"""The data of a card (UX-129)."""
_CHANGES = {"R11": "carrier", "R14": "segment", "R10": "ids", "R9": "blocks"}


def as_data(card: Mapping[str, Any]) -> dict[str, Any]:
    """The card as JSON, these keys and no others."""
    return {key: card.get(key) for key in FIELDS}


def lines(card: Mapping[str, Any], language: str, keys: Sequence[str] = ()) -> list[str]:
    """The card as lines of text; `keys` are those of a surface that has some, and stand where it is offered."""
    shown = [_told(_happened(card), language, status=card.get("status") or "-")]
    if card.get("trace_id"):
        shown.append(_told(LINES["trace"], language, trace=clean(card["trace_id"])))
    if card.get("rules"):
        shown.append(_told(LINES["rules"], language, rules=", ".join(map(clean, card["rules"]))))
    shown += [
        _told(LINES[key], language, value=clean(card[key]))
        for key in ("code", "param", "endpoint", "contract")
        if card.get(key)
    ]
    counts = {"done": card.get("done_calls") or 0, "open": card.get("open_calls") or 0}
    shown.append(_told(LINES["done"], language, **counts))
    if card.get("offered"):
        shown.append(_told(LINES["offer"], language, changes=changes_of(card, language)))
        command = _told(LINES["press"], language, incident=clean(card.get("incident_id") or ""))
        shown += [*keys, command, _told(LINES["advice"], language)]
    elif card.get("state") == "consumed":
        outcome = OUTCOMES.get(str(card.get("outcome")), OUTCOMES["none"])
        shown.append(_told(LINES["spent"], language, outcome=_told(outcome, language)))
        if card.get("origin") != "regeneration":
            shown.append(_told(LINES["advice"], language))
    else:
        shown.append(why_not(card.get("reason_not_offered"), language))
    ways = ", ".join(_told(WAYS[way], language) for way in card.get("ways") or () if way in WAYS)
    return [*shown, _told(LINES["ways"], language, ways=ways)]


def _happened(card: Mapping[str, Any]) -> Texts:
    """What the incident began with: a refusal of some kind, or a reply that was asked for once more (PR-35)."""
    if card.get("origin") == "regeneration":
        return LINES["regeneration"]
    return KINDS.get(str(card.get("kind")), KINDS["other"])


def row(found: IncidentRow, language: str) -> str:
    """One incident as a row of a history, with id and kind (PR-83)."""
    kind = found.kind if found.kind in KINDS else "other"
    state = "moved" if found.moved else found.state
    key = f"row_{state}" if found.kind else "row_regeneration"
    return _told(LINES[key], language, incident=clean(found.incident_id), kind=kind)


def row_data(found: IncidentRow) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "type": "incident",
        "incident_id": found.incident_id,
        "incident_kind": found.kind or None,
        "state": found.state,
        "actionable": found.actionable,
        "as_of": found.position,
    }


def why_not(reason: Any, language: str) -> str:
    """The sentence for a reason why nothing is offered or admitted (PR-28, PR-31)."""
    return _told(NOT_OFFERED.get(str(reason), NOT_OFFERED["unavailable"]), language)


def changes_of(card: Mapping[str, Any], language: str) -> str:
    """What a recovery sends differently, in counts (UX-124, UX-131)."""
    counts = card.get("changes") or {}
    told = [
        _told(LINES[_CHANGES.get(rid, "other")], language, n=n, rid=clean(rid)) for rid, n in counts.items()
    ]
    return ", ".join(told) or "-"


def keys(language: str) -> str:
    """The keys of the card in a chat, apart from each other by ` · ` (UX-126)."""
    return _told(LINES["keys"], language)


def _told(texts: Texts, language: str, **values: Any) -> str:
    return in_language(texts, language).format(**values)
