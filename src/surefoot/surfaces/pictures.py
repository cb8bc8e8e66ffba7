"""Pictures of a run as text: what ran when, in which lane, and where its process died (UX-132). Pure.

Owns: the facts of a picture, folding of dead time, the text twins of run strip and timeline.
Does not own: their SVG (`pictures_svg`), the strip's cells and the words (`view`, `words`).
Promises: surface:same-story. Same ledger, width, theme and language, same bytes.

No picture shows an argument that a card would hide: a call is named by its redacted line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from surefoot.core.canonical import short_id
from surefoot.core.model import Entry, Kind, Receipt
from surefoot.surfaces import plain
from surefoot.surfaces.plain import cut, width_of
from surefoot.surfaces.view import (
    Clock,
    age,
    clean,
    fact_key,
    is_told_open,
    local_time,
    summary_of,
)
from surefoot.surfaces.words import mark, say, state_words
from surefoot.surfaces.words_aloud import aloud

if TYPE_CHECKING:
    from surefoot.surfaces.drawing import Drawing

IDLE_MS = 60_000
"""Time in which nothing ran and nobody was waited for is folded from here on."""
MODEL, WAITING, PROVIDER = "lane_model", "lane_waiting", "lane_provider"
SHOWN_OPEN = 8
CELLS, KEPT = 60, 54
"""Cells of a run strip at most; how many are kept beside the count of the folded ones."""
FILLS: Mapping[str, str] = {
    "unknown": "▒",
    "failed": "▓",
    "started": "░",
    MODEL: "─",
    WAITING: "·",
    PROVIDER: "=",
}
ASCII_FILLS: Mapping[str, str] = {
    "unknown": "?", "failed": "!", "started": "~", MODEL: "-", WAITING: ".", PROVIDER: "=",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bar:
    """One thing that took time. `end_ms` is None for a call whose end nobody wrote: it has no right end."""

    lane: str
    """A key of the words, or the name of a tool."""
    start_ms: int
    end_ms: int | None
    key: str
    """The row of UX-63 for a call; the lane for what is none."""
    label: str = ""
    attempt_id: str = ""


@dataclass(frozen=True, slots=True)
class Fold:
    """A stretch of time in which nothing happened; `death` when a process died at its beginning."""

    start_ms: int
    end_ms: int
    death: bool


@dataclass(frozen=True, slots=True)
class Run:
    """Everything a picture shows, in order."""

    session_id: str
    bars: Sequence[Bar]
    folds: Sequence[Fold]
    calls: Sequence[tuple[str, bool]]
    """Each call in order: its row of UX-63, and whether a process died after it."""
    start_ms: int
    end_ms: int
    earlier: int = 0
    """Calls before these that it was made without."""

    @property
    def lanes(self) -> list[str]:
        """Model, tools by name, waiting for you, provider; those with something in them."""
        tools = dict.fromkeys(bar.lane for bar in self.bars if bar.lane not in (MODEL, WAITING, PROVIDER))
        found = {bar.lane for bar in self.bars}
        return [lane for lane in (MODEL, *tools, WAITING, PROVIDER) if lane in found]

    def shown_ms(self, at_ms: int) -> int:
        """Milliseconds of shown time up to a moment: folded stretches count nothing."""
        hidden = sum(min(at_ms, fold.end_ms) - fold.start_ms for fold in self.folds if fold.start_ms < at_ms)
        return at_ms - self.start_ms - hidden


def run_of(
    session_id: str, entries: Sequence[Entry], receipts: Sequence[Receipt], *, died: bool = False
) -> Run:
    """The facts of a session's pictures, from its entries and receipts.

    `died` says that its last owner is proven dead and that nobody has come after it.
    """
    told = {receipt.attempt_id: receipt.to_json() for receipt in receipts}
    deaths = _deaths(entries)
    if died and entries:
        deaths.append((entries[-1].at_ms, entries[-1].at_ms))
    bars = [*_model_bars(entries), *_waiting_bars(entries), *_provider_bars(entries)]
    bars += [bar for receipt in told.values() if (bar := _call_bar(receipt)) is not None]
    bars.sort(key=lambda bar: (bar.start_ms, bar.attempt_id))
    start = min((entry.at_ms for entry in entries), default=0)
    end = max([*(entry.at_ms for entry in entries), *(bar.end_ms or bar.start_ms for bar in bars)], default=0)
    folds = _folds(entries, bars, deaths)
    run = Run(session_id, bars, folds, _calls(told, deaths), start, max(end, start))
    return replace(run, bars=[_torn(bar, deaths) for bar in bars])


def facts(run: Run) -> dict[str, Any]:
    """The facts of the pictures as JSON."""
    return {
        "session_id": run.session_id,
        "start_ms": run.start_ms,
        "end_ms": run.end_ms,
        "lanes": run.lanes,
        "bars": [asdict(bar) for bar in run.bars],
        "folds": [asdict(fold) for fold in run.folds],
        "calls": [{"key": key, "died_after": died} for key, died in run.calls],
    }


def _call_bar(receipt: Mapping[str, Any]) -> Bar | None:
    started = receipt.get("startedAt")
    if not started:
        return None
    lane = str(receipt.get("tool") or receipt.get("askedName") or "?")
    open_end = receipt.get("state") in ("unknown", "started")
    end = None if open_end else max(int(receipt.get("finishedAt") or started), int(started))
    label = clean(summary_of(receipt))
    return Bar(clean(lane), int(started), end, fact_key(receipt), label, str(receipt["attemptId"]))


def _torn(bar: Bar, deaths: Sequence[tuple[int, int]]) -> Bar:
    """An end that a later process wrote is not when the call ended: it reaches to the death at most."""
    if bar.end_ms is None:
        return bar
    death = next((at for at, back in deaths if bar.start_ms <= at and (bar.end_ms or 0) >= back), None)
    return bar if death is None else replace(bar, end_ms=death)


def _deaths(entries: Sequence[Entry]) -> list[tuple[int, int]]:
    """When a process died, by its last entry, and when the next one came."""
    found: list[tuple[int, int]] = []
    for before, after in pairwise(entries):
        if after.epoch != before.epoch and _tells_death(entries, after.epoch):
            found.append((before.at_ms, max(after.at_ms, before.at_ms)))
    return found


def _tells_death(entries: Sequence[Entry], epoch: int) -> bool:
    """How a machine gets here: the next owner writes what the dead one left, and says why."""
    return any(
        entry.epoch == epoch
        and (
            entry.payload.get("cause") == "runtime_restart"
            or str(entry.payload.get("reason") or "").startswith("owner_died")
        )
        for entry in entries
    )


def _model_bars(entries: Sequence[Entry]) -> list[Bar]:
    """From the entry that stood before a reply to the reply: the model was asked in between."""
    return [
        Bar(MODEL, before.at_ms, after.at_ms, MODEL)
        for before, after in pairwise(entries)
        if after.kind == Kind.ASSISTANT and before.epoch == after.epoch
    ]


def _waiting_bars(entries: Sequence[Entry]) -> list[Bar]:
    asked: dict[str, int] = {}
    bars = []
    for entry in entries:
        name = str(entry.payload.get("questionId") or "")
        if entry.kind == Kind.QUESTION:
            asked[name] = entry.at_ms
        elif entry.kind == Kind.ANSWER and name in asked:
            bars.append(Bar(WAITING, asked.pop(name), entry.at_ms, WAITING))
    return bars + [Bar(WAITING, at, None, WAITING) for at in asked.values()]


def _provider_bars(entries: Sequence[Entry]) -> list[Bar]:
    return [Bar(PROVIDER, one.at_ms, one.at_ms, PROVIDER) for one in entries if one.kind == Kind.INCIDENT]


def _folds(entries: Sequence[Entry], bars: Sequence[Bar], deaths: Sequence[tuple[int, int]]) -> list[Fold]:
    """Dead time always, and long time in which nothing ran."""
    folds = [Fold(at, back, True) for at, back in deaths]
    busy = sorted((bar.start_ms, bar.end_ms or bar.start_ms) for bar in bars)
    reached = busy[0][0] if busy else 0
    marks = [*busy, *((entry.at_ms, entry.at_ms) for entry in entries[-1:])]
    for begin, end in marks:
        dead = any(at < begin and back > reached for at, back in deaths)
        if begin - reached > IDLE_MS and not dead:
            folds.append(Fold(reached, begin, False))
        reached = max(reached, end)
    return sorted(folds, key=lambda fold: fold.start_ms)


def _calls(
    receipts: Mapping[str, Mapping[str, Any]], deaths: Sequence[tuple[int, int]]
) -> list[tuple[str, bool]]:
    placed = [
        (int(one.get("startedAt") or one.get("dispatchedAt") or 0), fact_key(one))
        for one in receipts.values()
    ]
    last = {
        max((index for index, (at, _) in enumerate(placed) if at <= death), default=-1) for death, _ in deaths
    }
    return [(key, index in last) for index, (_, key) in enumerate(placed)]


# Text ------------------------------------------------------------------------------------------


def strip_cells(run: Run) -> tuple[int, list[str | None]]:
    """How many cells are folded away, and the rows of UX-63 of those shown; None is a death."""
    cells: list[str | None] = []
    for key, died in run.calls:
        cells += [key, None] if died else [key]
    count = run.earlier + len(cells)
    return (0, cells) if count <= CELLS else (count - KEPT, cells[-KEPT:])


def strip_text(run: Run, *, ascii_only: bool = False) -> str:
    """One cell per call, at most 60; older ones are folded with a count."""
    hidden, cells = strip_cells(run)
    return plain.strip(cells, "en", earlier=hidden, ascii_only=ascii_only)


def timeline(
    run: Run, language: str, drawing: Drawing, *, columns: int = 80, ascii_only: bool = False
) -> list[str]:
    """The timeline as this drawing has it: lanes over one axis, or a labelled line per thing that took time."""
    if drawing.marks:
        return timeline_text(run, language, columns=columns, ascii_only=ascii_only)
    return timeline_read(run, language)


def timeline_read(run: Run, language: str, *, clock: Clock = local_time) -> list[str]:
    """The timeline read aloud: what began when, in order, and when a process died."""
    if not run.bars:
        return [say("nothing_ran", language)]
    head = say("timeline_head", language, session=short_id(run.session_id), start=clock(run.start_ms),
               end=clock(run.end_ms))  # fmt: skip
    placed = [(bar.start_ms, _read_bar(bar, language, clock)) for bar in run.bars]
    placed += [(fold.start_ms, _fold_line(fold, language, clock)) for fold in run.folds if fold.death]
    return [head, *(line for _, line in sorted(placed, key=lambda one: one[0]))]


def _read_bar(bar: Bar, language: str, clock: Clock) -> str:
    told = [cut(bar.label, 60)] if bar.label else []
    told += (
        [state_words(bar.key, language, reason="…", attempt="…"), short_id(bar.attempt_id)]
        if bar.attempt_id
        else []
    )
    if bar.end_ms is not None:
        told.append(age(bar.end_ms - bar.start_ms))
    return aloud(
        "bar", language, time=clock(bar.start_ms), lane=lane_name(bar.lane, language), what=", ".join(told)
    )


def timeline_text(
    run: Run, language: str, *, columns: int = 80, ascii_only: bool = False, clock: Clock = local_time
) -> list[str]:
    """Lanes over one axis; a death is a torn edge across all of them, an open call has no right end."""
    if not run.bars:
        return [say("nothing_ran", language)]
    labels = {lane: lane_name(lane, language) for lane in run.lanes}
    left = min(max(width_of(label) for label in labels.values()), 18) + 2
    room = max(10, min(columns, 200) - left)
    cells = [_cells(run, lane, room, ascii_only=ascii_only) for lane in run.lanes]
    head = say("timeline_head", language, session=short_id(run.session_id), start=clock(run.start_ms),
               end=clock(run.end_ms))  # fmt: skip
    lines = [head]
    for lane, row in zip(run.lanes, cells, strict=True):
        label = cut(labels[lane], left - 2)
        lines.append(label + " " * (left - width_of(label)) + "".join(row).rstrip())
    lines += [_fold_line(fold, language, clock) for fold in run.folds if fold.death]
    lines += _open_lines(run, language, ascii_only=ascii_only)
    return [*lines, _legend(run, language, ascii_only=ascii_only)]


def lane_name(lane: str, language: str) -> str:
    """The words of a lane; a tool's lane is its name."""
    return say(lane, language) if lane in (MODEL, WAITING, PROVIDER) else lane


def _cells(run: Run, lane: str, room: int, *, ascii_only: bool) -> list[str]:
    whole = max(1, run.shown_ms(run.end_ms))

    def place(at_ms: int) -> int:
        return min(room - 2, run.shown_ms(at_ms) * (room - 2) // whole)

    row = [" "] * room
    for bar in (bar for bar in run.bars if bar.lane == lane):
        first, last = place(bar.start_ms), place(reach_of(bar, run))
        for cell in range(first, max(first, last) + 1):
            row[cell] = _fill(bar.key, ascii_only=ascii_only)
        if bar.attempt_id:
            row[first] = mark(bar.key, ascii_only=ascii_only)
    for fold in run.folds:
        if fold.death:
            row[place(fold.start_ms) + 1] = "|" if ascii_only else "┊"  # what it cut off keeps its own cell
    return row


def reach_of(bar: Bar, run: Run) -> int:
    """Where a bar stops being drawn: its end, or for one without an end the next death or the right edge."""
    if bar.end_ms is not None:
        return bar.end_ms
    return next(
        (fold.start_ms for fold in run.folds if fold.death and fold.start_ms >= bar.start_ms), run.end_ms
    )


def _fill(key: str, *, ascii_only: bool) -> str:
    fills = ASCII_FILLS if ascii_only else FILLS
    solid = "#" if ascii_only else "█"
    if is_told_open(key):
        return fills["unknown"]
    return fills.get(key, fills["failed"] if key.startswith("failed") else solid)


def _fold_line(fold: Fold, language: str, clock: Clock) -> str:
    if fold.end_ms == fold.start_ms:
        return f"┊ {say('strip_died', language, time=clock(fold.start_ms))}"
    return say("timeline_death", language, time=clock(fold.start_ms), length=age(fold.end_ms - fold.start_ms))


def _open_lines(run: Run, language: str, *, ascii_only: bool) -> list[str]:
    opened = [bar for bar in run.bars if is_told_open(bar.key)]
    return [
        f"{mark(bar.key, ascii_only=ascii_only)} {cut(bar.label, 60)}: {state_words(bar.key, language)}  "
        f"{short_id(bar.attempt_id)}"
        for bar in opened[-SHOWN_OPEN:]
    ]


def _legend(run: Run, language: str, *, ascii_only: bool) -> str:
    keys = dict.fromkeys(bar.key for bar in run.bars if bar.attempt_id)
    told = {
        mark(key, ascii_only=ascii_only): state_words(key, language, reason="…", attempt="…") for key in keys
    }
    return "  ".join(f"{sign} {words}" for sign, words in told.items())


__all__ = [
    "Bar",
    "Fold",
    "Run",
    "lane_name",
    "reach_of",
    "run_of",
    "strip_cells",
    "strip_text",
    "timeline",
    "timeline_read",
    "timeline_text",
]
