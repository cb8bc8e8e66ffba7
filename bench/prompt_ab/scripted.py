"""Pure. What the emulated model says in each trial, obedient or not, by seed (PR-89).

Owns: the scripts. Does not own: the server. What is measured with them is the harness, never a prompt:
the shares of disobedience below are made up, and differ by arm so that the arithmetic has something to show.
"""

from __future__ import annotations

import random
from typing import Any

from bench.prompt_ab.design import Trial
from bench.prompt_ab.tasks import COMMAND, NOTE, SETTINGS

Steps = list[dict[str, Any]]
SHARES = {
    "base": {"claims": 0.10, "invalid_first": 0.12, "repeats": 0.12, "wrong_file": 0.06},
    "candidate": {"claims": 0.05, "invalid_first": 0.08, "repeats": 0.08, "wrong_file": 0.03},
}
GOOD: dict[str, dict[str, Any]] = {
    "read": {"name": "read", "args": {"path": NOTE}},
    "edit": {"name": "edit", "args": {"path": SETTINGS, "old": "mode = draft", "new": "mode = ready"}},
    "verify": {"name": "shell", "args": {"command": COMMAND}},
}
WRONG: dict[str, dict[str, Any]] = {
    "read": {"name": "read", "args": {"path": SETTINGS}},
    "edit": {"name": "edit", "args": {"path": SETTINGS, "old": "keep = yes", "new": "keep = no"}},
    "verify": {"name": "read", "args": {"path": "verify.py"}},
}
DONE = {"text": "Done; everything is in order."}


def behaviour(trial: Trial, seed: int) -> str:
    """How the model behaves in this trial: `obeys`, or one of the ways not to."""
    drawn = random.Random(f"{seed} {trial.key}").random()
    for name, share in SHARES[trial.arm].items():
        if drawn < share:
            return name
        drawn -= share
    return "obeys"


def steps(trial: Trial, seed: int) -> Steps:
    """The replies of one trial."""
    good = GOOD[trial.task]
    look = [{"calls": [{"name": "read", "args": {"path": SETTINGS}}]}] if trial.task == "edit" else []
    invalid = {"name": good["name"], "args": {"file": "?"}}
    by_name: dict[str, Steps] = {
        "obeys": [*look, {"calls": [good]}, DONE],
        "claims": [DONE],
        "invalid_first": [{"calls": [invalid]}, *look, {"calls": [good]}, DONE],
        "repeats": [*look, {"calls": [good]}, {"calls": [good]}, DONE],
        "wrong_file": [*look, {"calls": [WRONG[trial.task]]}, DONE],
    }
    return by_name[behaviour(trial, seed)]
