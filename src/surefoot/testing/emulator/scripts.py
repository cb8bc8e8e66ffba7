"""What the emulated model says: steps per profile and session, and the few behaviours.

Owns: choosing the next step and turning it into text and calls. Does not own:
how a reply is put on the wire (`replies`).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from surefoot.testing.emulator.profiles import Profile

BEHAVIOURS = ("end", "echo_results", "repeat_call", "many_calls", "last")
_STEP_KEYS = {"thinking", "text", "calls", "finish", "behaviour", "many_calls", "usage"}
_CALL_KEYS = {"name", "args", "raw_args", "id"}


@dataclass(slots=True)
class Script:
    """A list of steps. `by` says what moves it on.

    `requests`: each accepted request takes one step. `history`: the step is the
    number of assistant messages in the request, so that a request asked again
    after a crash gets the same answer. `then` answers when the steps are used up.
    """

    steps: list[dict[str, Any]]
    profile: str | None = None
    session: str | None = None
    by: str = "requests"
    then: str = "end"
    used: int = 0

    def __post_init__(self) -> None:
        if self.by not in ("requests", "history"):
            raise ValueError(f"by={self.by!r}: choose requests or history")
        if self.then not in BEHAVIOURS:
            raise ValueError(f"then={self.then!r}: choose one of {', '.join(BEHAVIOURS)}")
        for step in self.steps:
            _check_step(step)


def _check_step(step: dict[str, Any]) -> None:
    if set(step) - _STEP_KEYS:
        raise ValueError(f"step keys are {', '.join(sorted(_STEP_KEYS))}, not {sorted(step)!r}")
    if step.get("behaviour") not in (None, *BEHAVIOURS):
        raise ValueError(f"behaviour {step['behaviour']!r}: choose one of {', '.join(BEHAVIOURS)}")
    for call in step.get("calls") or ():
        if "name" not in call or set(call) - _CALL_KEYS:
            raise ValueError(f"call keys are {', '.join(sorted(_CALL_KEYS))}, not {sorted(call)!r}")


@dataclass(slots=True)
class Spoken:
    """What the model says in one reply, before any fault."""

    text: str = ""
    thinking: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)
    """Each `{"id", "name", "arguments"}`; `arguments` is text."""
    finish: str | None = None
    usage: dict[str, int] | None = None


class Scripts:
    """All scripts of one emulator."""

    def __init__(self) -> None:
        self.scripts: list[Script] = []
        self._calls_made: dict[tuple[str, str], int] = {}

    def add(self, script: Script) -> None:
        """Set the script of a profile and session; an earlier one for the same pair is replaced."""
        pair = (script.profile, script.session)
        self.scripts = [s for s in self.scripts if (s.profile, s.session) != pair] + [script]

    def speak(self, profile: Profile, session: str, request: dict[str, Any]) -> Spoken:
        """The next reply for this request. Call it only for an accepted request."""
        script = self._find(profile.name, session)
        if script is None:
            return Spoken(text="There is no script for this session.")
        step = _next_step(script, request)
        return self._say(step, profile, session, request)

    def _find(self, profile: str, session: str) -> Script | None:
        for pair in ((profile, session), (None, session), (profile, None), (None, None)):
            for script in self.scripts:
                if (script.profile, script.session) == pair:
                    return script
        return None

    def _say(self, step: dict[str, Any], profile: Profile, session: str, request: dict[str, Any]) -> Spoken:
        calls = list(step.get("calls") or ())
        text = str(step.get("text") or "")
        behaviour = step.get("behaviour")
        if behaviour == "echo_results":
            text += "\n".join(last_results(request))
        elif behaviour == "repeat_call":
            calls = repeated_calls(request)
        elif behaviour == "many_calls":
            calls = many_calls(step.get("many_calls") or {})
        spoken = Spoken(text=text, thinking=str(step.get("thinking") or ""))
        spoken.finish, spoken.usage = step.get("finish"), step.get("usage")
        for position, call in enumerate(calls):
            spoken.calls.append(
                {
                    "id": call.get("id") or self._issue_id(profile, session, call["name"], position),
                    "name": call["name"],
                    "arguments": _argument_text(call),
                }
            )
        return spoken

    def _issue_id(self, profile: Profile, session: str, name: str, position: int) -> str:
        """An id that looks like the service's; the same script gives the same ids."""
        key = (profile.name, session)
        number = self._calls_made.get(key, 0)
        self._calls_made[key] = number + 1
        if profile.ids == "running":
            return f"functions.{name}:{number}"
        if profile.ids == "position":
            return f"{name}:{position}"
        return "call_" + hashlib.sha256(f"{key}{number}".encode()).hexdigest()[:24]


def _next_step(script: Script, request: dict[str, Any]) -> dict[str, Any]:
    if script.by == "history":
        place = sum(1 for m in request.get("messages") or () if m.get("role") == "assistant")
    else:
        place = script.used
        script.used += 1
    if place < len(script.steps):
        return script.steps[place]
    if script.then == "last" and script.steps:
        return script.steps[-1]
    if script.then == "end":
        return {"text": "Nothing more to do."}
    return {"behaviour": script.then}


def _argument_text(call: dict[str, Any]) -> str:
    if "raw_args" in call:
        return str(call["raw_args"])
    return json.dumps(call.get("args") or {}, ensure_ascii=False)


def last_results(request: dict[str, Any]) -> list[str]:
    """The results that arrived behind the last assistant message with calls."""
    results: list[str] = []
    for message in reversed(request.get("messages") or ()):
        if message.get("role") != "tool":
            if message.get("role") == "assistant" or results:
                break
            continue
        results.append(_plain(message.get("content")))
    return results[::-1]


def _plain(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def repeated_calls(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls of the last assistant message that had some, asked again under new ids."""
    for message in reversed(request.get("messages") or ()):
        if message.get("tool_calls"):
            functions = [call["function"] for call in message["tool_calls"]]
            return [{"name": f["name"], "raw_args": f["arguments"]} for f in functions]
    return []


def many_calls(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """`n` calls of one tool; `{n}` in a text argument becomes the number of the call, from 1."""
    arguments = spec.get("args") or {}
    calls = []
    for number in range(1, int(spec.get("n", 2)) + 1):
        filled = {k: v.replace("{n}", str(number)) if isinstance(v, str) else v for k, v in arguments.items()}
        calls.append({"name": spec.get("name", ""), "args": filled})
    return calls
