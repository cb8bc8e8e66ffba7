"""The scripted model: the turns a test writes down, disobedience included.

Owns: short words for the steps an emulator plays. Does not own: playing them
(`surefoot.testing.emulator`).

    model = (ScriptedModel()
        .calls(call("note", text="a"))
        .repeats()                      # asks the same again under a new id
        .says("All done."))
    emulator.script(model.steps)
"""

from __future__ import annotations

import copy
from typing import Any


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    """One call of a step."""
    return {"name": name, "args": arguments}


def raw_call(name: str, text: str) -> dict[str, Any]:
    """One call whose argument text is sent as it is, valid or not."""
    return {"name": name, "raw_args": text}


class ScriptedModel:
    """Steps in order; every method adds one and returns the model."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []

    def says(self, text: str, *, thinking: str = "") -> ScriptedModel:
        """Answer with text and end the turn. A false claim is said the same way."""
        return self._add({"text": text, "thinking": thinking})

    def calls(self, *calls: dict[str, Any], text: str = "", thinking: str = "") -> ScriptedModel:
        """Ask for one batch of calls."""
        return self._add({"calls": list(calls), "text": text, "thinking": thinking})

    def calls_many(self, count: int, name: str, /, **arguments: Any) -> ScriptedModel:
        """Ask for `count` calls of one tool in one batch; `{n}` in a text becomes the number."""
        spec = {"n": count, "name": name, "args": arguments}
        return self._add({"behaviour": "many_calls", "many_calls": spec})

    def repeats(self) -> ScriptedModel:
        """Ask for the last batch of the history again, under new ids, whatever its results said."""
        return self._add({"behaviour": "repeat_call"})

    def repeats_after_recovery(self, text: str = "") -> ScriptedModel:
        """Ask for the last batch again if a request was refused since, else answer with text."""
        return self._add({"behaviour": "repeat_call_after_recovery", "text": text})

    def requires_once(self, *calls: dict[str, Any], text: str = "") -> ScriptedModel:
        """Ask for calls until the history holds them, then answer with text."""
        return self._add({"behaviour": "require_call_once", "calls": list(calls), "text": text})

    def hosts(self, kind: str, *, text: str = "") -> ScriptedModel:
        """Let the provider run a tool of its own side, which counts it."""
        return self._add({"hosted_effect": kind, "text": text})

    def searches(self, text: str, *, sources: int = 2) -> ScriptedModel:
        """Let the provider search, and answer with so many sources, or none."""
        return self._add({"server_search": {"query": "asked", "sources": sources}, "text": text})

    def drifts(self, **changed: Any) -> ScriptedModel:
        """Ask for this model's last batch again with some arguments changed."""
        for step in reversed(self.steps):
            if step.get("calls"):
                batch = copy.deepcopy(step["calls"])
                for item in batch:
                    item["args"] = {**item.get("args", {}), **changed}
                return self._add({"calls": batch})
        raise ValueError("drifts() needs an earlier calls() to drift from")

    def echoes(self) -> ScriptedModel:
        """Answer with the results that arrived."""
        return self._add({"behaviour": "echo_results"})

    def _add(self, step: dict[str, Any]) -> ScriptedModel:
        self.steps.append({key: value for key, value in step.items() if value not in ("", [])})
        return self
