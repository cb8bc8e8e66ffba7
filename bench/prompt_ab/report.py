"""Pure. The report of a run, as JSON and as Markdown.

Owns: what a report says, above all what it is: scripted, reduced, partial. Does not own: files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bench.prompt_ab.design import ARMS, Design
from bench.prompt_ab.gate import Gate, gate, told
from bench.prompt_ab.prompts import applies
from bench.prompt_ab.summary import Cell, cells, side, together, unmeasured


def report(
    design: Design, records: Sequence[Mapping[str, Any]], *, reason: str | None = None
) -> dict[str, Any]:
    """Everything of a run as JSON."""
    found = cells(records)
    missing = unmeasured(found)
    judged = gate(side("base", found), side("candidate", found), unmeasured=missing, reason=reason)
    judged = _closed(judged, _why_it_cannot_decide(design, len(records)))
    return {
        "what": what(design, len(records)),
        "design": design.to_json(),
        "candidateIsMeantForThisModel": applies(design.model.partition("/")[2]),
        "trials": {"planned": len(design.trials()), "ended": len(records)},
        "cells": [asdict(cell) for cell in found],
        "all": [asdict(together(arm, records)) for arm in ARMS],
        "sides": {arm: asdict(side(arm, found)) for arm in ARMS},
        "notMeasured": list(missing),
        "failures": {
            arm: dict(Counter(one["failure"] for one in records if one["arm"] == arm and one["failure"]))
            for arm in ARMS
        },
        "gate": asdict(judged),
        "maintainersReason": reason,
    }


def _why_it_cannot_decide(design: Design, ended: int) -> tuple[str, ...]:
    """What a run lacks to open the gate, whatever its numbers are."""
    planned = len(design.trials())
    lacks = (
        (design.scripted, "the model was scripted"),
        (not design.is_whole(), "the design is smaller than the one that decides"),
        (ended < planned, f"only {ended} of {planned} trials ended"),
    )
    return tuple(told for holds, told in lacks if holds)


def _closed(judged: Gate, reasons: tuple[str, ...]) -> Gate:
    if not reasons:
        return judged
    return Gate(False, (*reasons, *judged.reasons), judged.difference, judged.interval, judged.token_growth)


def what(design: Design, ended: int) -> str:
    """What this run can be taken for."""
    planned = len(design.trials())
    if design.scripted:
        kind = (
            "Trial run of the harness against the strict emulator. The model's replies, its disobedience included, "
            "were written in advance; the numbers show that counting and judging work and say nothing about a prompt."
        )
    elif not design.is_whole():
        kind = (
            f"Reduced design: {design.per_cell} trial(s) in each cell of {' and '.join(design.efforts)} instead of "
            "ten at both efforts. It shows that the harness runs with a real model; it decides nothing."
        )
    else:
        kind = "The whole design against one model. It says something about this model at this time."
    return kind if ended == planned else f"{kind} Partial: {ended} of {planned} trials ended."


def markdown(made: Mapping[str, Any]) -> str:
    """The same for people."""
    design, judged = made["design"], made["gate"]
    reasons = "; ".join(judged["reasons"]) or "every condition holds"
    lines = [
        f"# Prompt experiment: {design['model']}",
        "",
        str(made["what"]),
        "",
        f"Seed {design['seed']} · {made['trials']['ended']} of {made['trials']['planned']} trials · prompts "
        f"`{design['base_digest'][:12]}` (base) and `{design['candidate_digest'][:12]}` (candidate).",
        "",
        "![Success by cell](plot.svg)",
        "",
        "| effort / task / prompt | ok | requests | proposals | repeated | first call invalid (corrected) | tokens |"
        " mean s |",
        "|---|---|---|---|---|---|---|---|",
        *(_line(Cell(**cell)) for cell in made["cells"]),
        *(_line(Cell(**cell)) for cell in made["all"]),
        "",
        f"**Gate: {'open' if judged['open'] else 'closed'}.** {reasons}.",
        "",
    ]
    if judged["interval"] is not None:
        growth = judged["token_growth"]
        lines += [
            f"Success difference {judged['difference'] * 100:+.1f} points, 95 % interval (Newcombe) "
            f"{told(tuple(judged['interval']))}; tokens per success {_or_unknown(growth, '{:+.1%}')}. "
            "Latency is reported and never decides.",
            "",
        ]
    lines += ["## Failures", ""]
    for arm in ARMS:
        found = made["failures"][arm]
        told_ones = "; ".join(f"{times} × {why}" for why, times in found.items())
        lines.append(f"- {arm}: {told_ones or 'none'}")
    return "\n".join(lines) + "\n"


def _line(cell: Cell) -> str:
    name = " / ".join(dict.fromkeys((cell.effort, cell.task, cell.arm)))
    if not cell.trials:
        return f"| {name} | not measured | | | | | | |"
    wrong = f"{_or_unknown(cell.first_invalid)} ({_or_unknown(cell.corrected)})"
    return (
        f"| {name} | {cell.successes}/{cell.trials} | {_or_unknown(cell.requests)} | {_or_unknown(cell.proposals)} | "
        f"{_or_unknown(cell.repeated)} | {wrong} | {_or_unknown(cell.tokens, '{:,}')} | "
        f"{_or_unknown(cell.wall_seconds, '{:.2f}')} |"
    )


def _or_unknown(value: Any, form: str = "{}") -> str:
    return "unknown" if value is None else form.format(value)
