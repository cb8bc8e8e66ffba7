"""How runs of the recovery matrix are judged, counted and printed. Pure.

Owns: the verdict of a run, the columns, the sums (PR-95, FI-5). Does not own: what is run (`recovery_matrix`).
Promises: an edit that the service accepted is never counted as passed; automatic and explicit recovery stand apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

NOT_EXERCISED = "not_exercised"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run of one row."""

    good: bool
    statuses: Sequence[int] = ()
    executions: int = 0
    how: str = "-"
    """`automatic`, `explicit`, `not_exercised`, or what was seen."""

    @property
    def exercised(self) -> bool:
        """Whether the endpoint refused at all; an edit that it accepts proves nothing."""
        return self.how != NOT_EXERCISED

    @property
    def verdict(self) -> str:
        """`ok`, `FAIL`, or that nothing was proved."""
        if not self.good:
            return "FAIL"
        return "ok" if self.exercised else "-"


@dataclass(slots=True)
class Tally:
    """Runs that passed and failed, the passed ones by who recovered, and those that proved nothing (FI-5)."""

    passed: int = 0
    failed: int = 0
    not_exercised: int = 0
    automatic: int = 0
    explicit: int = 0

    def count(self, seen: Outcome) -> None:
        """Count one run."""
        self.failed += not seen.good
        self.not_exercised += seen.good and not seen.exercised
        passed = seen.good and seen.exercised
        self.passed += passed
        self.automatic += passed and seen.how.startswith("automatic")
        self.explicit += passed and seen.how.startswith("explicit")

    def add(self, other: Tally) -> None:
        """Take the runs of a row into the whole."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def __str__(self) -> str:
        words = [f"{self.passed}/{self.passed + self.failed} passed"]
        words += [f"{self.automatic} automatic"] if self.automatic else []
        words += [f"{self.explicit} explicit"] if self.explicit else []
        words += [f"{self.failed} failed"] if self.failed else []
        words += [f"{self.not_exercised} not_exercised"] if self.not_exercised else []
        return ", ".join(words)


_RECOVERED = ("automatic", "explicit")
"""Who made the recovery: each has a column of its own, so that neither is counted as the other."""


def shown(contract: str, model: str, seen: Outcome) -> str:
    """One run as a line."""
    statuses = str(list(seen.statuses)) if len(seen.statuses) <= 5 else f"{len(seen.statuses)} requests"
    who, _, more = seen.how.partition(", ")
    columns = ["yes" if who == one else "-" for one in _RECOVERED]
    told = more if who in _RECOVERED else seen.how
    counted = (str(len(seen.statuses)), str(seen.executions))
    return _line(contract, model, statuses, *counted, *columns, seen.verdict, told)


def _line(*cells: str, row: str = "") -> str:
    contract, model, statuses, asked, ran, automatic, explicit, verdict, told = cells
    return (
        f"{row:6} {contract:28} {model:9} {statuses:22} {asked:>4} {ran:>4}  {automatic:9} {explicit:8} "
        f"{verdict:4} {told}"
    ).rstrip()


HEAD = _line("contract", "model", "statuses", "req", "exec", *_RECOVERED, "bar", "seen", row="row")
