"""The results file: one line for the design, one when a trial begins, one when it ends.

Owns: the file, and what is still to do after an interruption. Does not own: running or judging.
A trial that began and has no end is a failure, `interrupted`: it is not run again, because a sample
may not be replaced (PR-86).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.prompt_ab.design import Design, Trial, design_from_json


class OtherDesign(ValueError):
    """The file belongs to another design, so nothing may be added to it."""


class Results:
    """Records of one design, kept in a file as they are made."""

    def __init__(self, path: Path, design: Design) -> None:
        self.ended: dict[str, dict[str, Any]] = {}
        self._begun: dict[str, Trial] = {}
        known = self._read(path, design)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8")
        if not known:
            self._write({"design": design.to_json()})
        for key, trial in self._begun.items():
            if key not in self.ended:
                self.end(trial, interrupted(trial))

    def _read(self, path: Path, design: Design) -> bool:
        """Take in what the file holds; False when its design is still to be written."""
        whole = path.read_text(encoding="utf-8") if path.exists() else ""
        if whole != (first := _written({"design": design.to_json()})) and first.startswith(whole):
            if whole:  # killed while the design was written: no trial can have begun
                path.write_text("", encoding="utf-8")
            return False
        lines = [_parsed(line) for line in whole.splitlines()]
        if "design" not in lines[0] or design_from_json(lines[0]["design"]) != design:
            raise OtherDesign(f"{path} holds results of another design; give another file with --results")
        trials = {one.key: one for one in design.trials()}
        for value in lines[1:]:
            if "begun" in value:
                self._begun[value["begun"]] = trials[value["begun"]]
            elif "ended" in value:
                self.ended[value["ended"]] = value["record"]
        if not whole.endswith("\n"):
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")
        return True

    def begin(self, trial: Trial) -> None:
        """Record that a trial begins, durably, before its first request."""
        self._begun[trial.key] = trial
        self._write({"begun": trial.key})

    def end(self, trial: Trial, record: Mapping[str, Any]) -> None:
        """Record how it ended."""
        self.ended[trial.key] = dict(record)
        self._write({"ended": trial.key, "record": dict(record)})

    def spent(self) -> tuple[int, int]:
        """Requests and known tokens so far."""
        requests = sum(one["requests"] or 0 for one in self.ended.values())
        return requests, sum(
            (one["inputTokens"] or 0) + (one["outputTokens"] or 0) for one in self.ended.values()
        )

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, value: Mapping[str, Any]) -> None:
        self._file.write(_written(value))
        self._file.flush()
        os.fsync(self._file.fileno())


def _written(value: Mapping[str, Any]) -> str:
    return json.dumps(value) + "\n"


def _parsed(line: str) -> dict[str, Any]:
    """A line as it was written; nothing of one that a kill tore, since what it would have said is not known."""
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def interrupted(trial: Trial) -> dict[str, Any]:
    """The record of a trial whose harness died: a failure, with everything else unknown."""
    unknown = ("proposals", "executionsStarted", "executionsSucceeded", "repeated", "firstInvalid", "corrected",
               "requests", "inputTokens", "outputTokens", "wallSeconds")  # fmt: skip
    return {
        **asdict(trial),
        **dict.fromkeys(unknown),
        "finish": "interrupted",
        "success": False,
        "failure": "interrupted",
    }
