"""Pure. Which trials there are, and in which order they run.

Owns: the cells of the design and the shuffle by a recorded seed (PR-84). Does not own: what a task is
(`tasks`), how a trial runs (`trial`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

EFFORTS = ("low", "max")
TASKS = ("read", "edit", "verify")
ARMS = ("base", "candidate")
PER_CELL = 10


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of one task with one prompt."""

    effort: str
    task: str
    arm: str
    number: int

    @property
    def key(self) -> str:
        """Its name in the results, e.g. `low-read-base-03`."""
        return f"{self.effort}-{self.task}-{self.arm}-{self.number:02}"


@dataclass(frozen=True, slots=True)
class Design:
    """Everything that decides which trials run. Results of another design are never mixed in."""

    model: str
    seed: int
    base_digest: str
    candidate_digest: str
    efforts: tuple[str, ...] = EFFORTS
    tasks: tuple[str, ...] = TASKS
    per_cell: int = PER_CELL
    scripted: bool = False
    """The model's replies were written in advance, so its successes say nothing about prompts."""

    def trials(self) -> list[Trial]:
        """Every trial, in the order in which they begin."""
        every = [
            Trial(effort, task, arm, number)
            for effort in self.efforts
            for task in self.tasks
            for arm in ARMS
            for number in range(1, self.per_cell + 1)
        ]
        random.Random(self.seed).shuffle(every)
        return every

    def is_whole(self) -> bool:
        """Whether this is the design that may decide: all cells, ten each or more."""
        return (
            set(self.efforts) >= set(EFFORTS) and set(self.tasks) >= set(TASKS) and self.per_cell >= PER_CELL
        )

    def to_json(self) -> dict[str, Any]:
        """As the first line of a results file holds it."""
        return asdict(self)


def design_from_json(value: dict[str, Any]) -> Design:
    """Read what `Design.to_json` wrote."""
    lists: dict[str, Sequence[str]] = {name: tuple(value[name]) for name in ("efforts", "tasks")}
    return Design(**{**value, **lists})
