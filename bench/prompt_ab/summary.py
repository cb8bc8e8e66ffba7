"""Pure. From records to numbers: cells, sides, and what was not measured (PR-86).

Owns: the sums. Does not own: the judgement (`gate`), how it is told (`report`, `plot`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from bench.prompt_ab.design import ARMS, EFFORTS, TASKS
from bench.prompt_ab.gate import Side

Number = TypeVar("Number", int, float)
PUBLISHED = Path(__file__).parent / "published.json"


@dataclass(frozen=True, slots=True)
class Cell:
    """One effort, task and prompt. None is unknown."""

    effort: str
    task: str
    arm: str
    trials: int
    successes: int
    requests: int | None
    proposals: int | None
    repeated: int | None
    first_invalid: int | None
    corrected: int | None
    tokens: int | None
    wall_seconds: float | None
    """Mean of a trial; reported, never judged."""


def cells(records: Iterable[Mapping[str, Any]]) -> list[Cell]:
    """Every cell of the design, those without samples included."""
    known = list(records)
    efforts = list(dict.fromkeys([*EFFORTS, *(one["effort"] for one in known)]))
    return [
        _cell(
            effort, task, arm, [r for r in known if (r["effort"], r["task"], r["arm"]) == (effort, task, arm)]
        )
        for effort in efforts
        for task in TASKS
        for arm in ARMS
    ]


def together(arm: str, records: Iterable[Mapping[str, Any]]) -> Cell:
    """One prompt over all efforts and tasks, summed as a cell is."""
    return _cell("all", "all", arm, [one for one in records if one["arm"] == arm])


def _cell(effort: str, task: str, arm: str, records: Sequence[Mapping[str, Any]]) -> Cell:
    walls = total(one["wallSeconds"] for one in records)
    return Cell(
        effort,
        task,
        arm,
        trials=len(records),
        successes=sum(bool(one["success"]) for one in records),
        requests=total(one["requests"] for one in records),
        proposals=total(one["proposals"] for one in records),
        repeated=total(one["repeated"] for one in records),
        first_invalid=total(one["firstInvalid"] for one in records),
        corrected=total(None if one["firstInvalid"] is None else bool(one["corrected"]) for one in records),
        tokens=total(tokens_of(one) for one in records),
        wall_seconds=None if walls is None or not records else walls / len(records),
    )


def tokens_of(record: Mapping[str, Any]) -> int | None:
    """Input and output of a trial; unknown when either is."""
    return total((record["inputTokens"], record["outputTokens"]))


def total(values: Iterable[Number | None]) -> Number | None:
    """The sum; None as soon as one of them is unknown."""
    found = list(values)
    known = [one for one in found if one is not None]
    return None if len(known) < len(found) else cast(Number, sum(known))


def side(arm: str, of: Iterable[Cell]) -> Side:
    """One prompt over all its cells."""
    mine = [cell for cell in of if cell.arm == arm and cell.trials]
    return Side(
        trials=sum(cell.trials for cell in mine),
        successes=sum(cell.successes for cell in mine),
        repeated=total(cell.repeated for cell in mine),
        tokens=total(cell.tokens for cell in mine),
    )


def unmeasured(of: Iterable[Cell]) -> tuple[str, ...]:
    """The cells without a single sample."""
    return tuple(f"{cell.effort} / {cell.task} / {cell.arm}" for cell in of if not cell.trials)


def published() -> list[Cell]:
    """The data another project published, with what it did not publish left unknown."""
    found = []
    for row in json.loads(PUBLISHED.read_text(encoding="utf-8"))["cells"]:
        for arm in ARMS:
            ok, trials, requests, tokens = row[arm]
            unknown = dict.fromkeys(("proposals", "repeated", "first_invalid", "corrected", "wall_seconds"))
            found.append(
                Cell(row["effort"], row["task"], arm, trials, ok, requests=requests, tokens=tokens, **unknown)
            )
    return found
