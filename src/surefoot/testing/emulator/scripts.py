"""What the emulated model says: steps per profile and session, and the few behaviours.

Owns: choosing the next step, turning it into text and calls, and counting what hosted
tools did. Does not own: how a reply is put on the wire (`replies` and its siblings).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from surefoot.testing.emulator.hosted import KINDS, Hosted, enables, sources
from surefoot.testing.emulator.issuing import converse_id, tool_use_id
from surefoot.testing.emulator.profiles import Profile, known_profile
from surefoot.testing.emulator.reading import has_called, last_results, repeated_calls, turns_of_model

BEHAVIOURS = (
    "end",
    "echo_results",
    "repeat_call",
    "many_calls",
    "last",
    "require_call_once",
    "repeat_call_after_recovery",
    "omit_reasoning",
    "search_without_sources",
    "search_with_sources",
    "hosted_effect",
)
_STEP_KEYS = {
    "thinking",
    "text",
    "calls",
    "finish",
    "behaviour",
    "many_calls",
    "usage",
    "server_search",
    "search_with_sources",
    "hosted_effect",
    "when_enabled",
}
_CALL_KEYS = {"name", "args", "raw_args", "id"}
_SHAPES: dict[str, tuple[tuple[type, ...], str]] = {
    "text": ((str,), "a text"),
    "thinking": ((str,), "a text"),
    "finish": ((str,), "a text"),
    "calls": ((list,), "a list of calls"),
    "usage": ((dict,), "an object of numbers"),
    "many_calls": ((dict, int), "a number, or an object with n, name and args"),
    "search_with_sources": ((int,), "a number of sources"),
}
"""What a key of a step holds, so that a slip is told when a script is made and not when it is played."""
_SCRIPT_KEYS = {"steps", "profile", "session", "by", "then"}


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
        if not isinstance(self.steps, list):
            raise ValueError("steps: a list of steps")
        if self.profile is not None:
            known_profile(self.profile)
        if not isinstance(self.session, (str, type(None))):
            raise ValueError(f"session={self.session!r}: a text")
        for step in self.steps:
            _check_step(step)


def _check_step(step: Any) -> None:
    if not isinstance(step, dict):
        raise ValueError(f"a step is an object, not {step!r}")
    if set(step) - _STEP_KEYS:
        raise ValueError(f"step keys are {', '.join(sorted(_STEP_KEYS))}, not {sorted(step)!r}")
    if step.get("behaviour") not in (None, *BEHAVIOURS):
        raise ValueError(f"behaviour {step['behaviour']!r}: choose one of {', '.join(BEHAVIOURS)}")
    if "hosted_effect" in step and step["hosted_effect"] not in KINDS:
        raise ValueError(f"hosted_effect {step['hosted_effect']!r}: choose one of {', '.join(KINDS)}")
    for key, (kinds, told) in _SHAPES.items():
        if step.get(key) is not None and not _is_one_of(step[key], kinds):
            raise ValueError(f"{key}={step[key]!r}: {told}")
    many = step.get("many_calls")
    if isinstance(many, dict) and not (
        _is_one_of(many.get("n", 2), (int,)) and _is_one_of(many.get("args") or {}, (dict,))
    ):
        raise ValueError(f"many_calls={many!r}: n is a number and args an object")
    for call in step.get("calls") or ():
        if not isinstance(call, dict) or "name" not in call or set(call) - _CALL_KEYS:
            raise ValueError(f"call keys are {', '.join(sorted(_CALL_KEYS))}, not {call!r}")
        if not isinstance(call["name"], str) or not isinstance(call.get("id") or "", str):
            raise ValueError(f"call {call!r}: name and id are texts")
        if not isinstance(call.get("args") or {}, dict):
            raise ValueError(f"args={call['args']!r}: an object; raw_args takes any text")
    if not all(_is_one_of(number, (int,)) for number in (step.get("usage") or {}).values()):
        raise ValueError(f"usage={step['usage']!r}: an object of numbers")


def _is_one_of(value: Any, kinds: tuple[type, ...]) -> bool:
    """Whether the value has one of these types; true and false are no numbers."""
    return isinstance(value, kinds) and not isinstance(value, bool)


def scripts_of(given: Any) -> list[Script]:
    """What a script file or a post to the control path holds: a list of steps, one script, or several.

    Raises:
        ValueError: it holds something else.
    """
    each = given if isinstance(given, list) else [given]
    named = [isinstance(one, dict) and "steps" in one for one in each]
    if isinstance(given, list) and not any(named):
        return [Script(given)]
    for one, is_script in zip(each, named, strict=True):
        if not is_script or set(one) - _SCRIPT_KEYS:
            keys = ", ".join(sorted(_SCRIPT_KEYS))
            told = sorted(one) if isinstance(one, dict) else one
            raise ValueError(
                f"give a list of steps, or an object with 'steps' or a list of them; its keys are {keys}, not {told!r}"
            )
    return [Script(**one) for one in each]


@dataclass(slots=True)
class Spoken:
    """What the model says in one reply, before any fault."""

    text: str = ""
    thinking: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)
    """Each `{"id", "name", "arguments"}`; `arguments` is text, `id` empty when the wire gives it."""
    finish: str | None = None
    usage: dict[str, int] | None = None
    hosted: list[Hosted] = field(default_factory=list)
    """What the provider ran on its own side."""


class Scripts:
    """All scripts of one emulator."""

    def __init__(self) -> None:
        self.scripts: list[Script] = []
        self.hosted: dict[str, int] = {}
        """How often each kind of hosted tool really ran."""
        self._calls_made: dict[tuple[str, str], int] = {}
        self._last_calls: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._refused: set[tuple[str, str]] = set()

    def add(self, script: Script) -> None:
        """Set the script of a profile and session; an earlier one for the same pair is replaced."""
        pair = (script.profile, script.session)
        self.scripts = [s for s in self.scripts if (s.profile, s.session) != pair] + [script]

    def note_refusal(self, profile: str, session: str) -> None:
        """Remember that a request was refused, for models that disobey after a recovery."""
        self._refused.add((profile, session))

    def speak(self, profile: Profile, session: str, request: dict[str, Any], *, ids: str = "") -> Spoken:
        """The next reply for this request. Call it only for an accepted request.

        `ids` is the style of its call ids where that is not the profile's own: a router passes on those of the
        endpoint behind it.
        """
        script = self._find(profile.name, session)
        if script is None:
            return Spoken(text="There is no script for this session.")
        speaker = replace(profile, ids=ids or profile.ids)
        return self._say(_next_step(script, request), speaker, session, request)

    def _find(self, profile: str, session: str) -> Script | None:
        for pair in ((profile, session), (None, session), (profile, None), (None, None)):
            for script in self.scripts:
                if (script.profile, script.session) == pair:
                    return script
        return None

    def _say(self, step: dict[str, Any], profile: Profile, session: str, request: dict[str, Any]) -> Spoken:
        key = (profile.name, session)
        step = {**step, "behaviour": _behaviour(step)}
        behaviour = step["behaviour"]
        calls, text = self._wished(step, key, request)
        spoken = Spoken(text=text, thinking=str(step.get("thinking") or ""))
        if behaviour == "omit_reasoning":
            spoken.thinking = ""
        spoken.finish, spoken.usage = step.get("finish"), step.get("usage")
        spoken.hosted = [
            ran for ran in _hosted(step) if not step.get("when_enabled") or enables(request, ran.kind)
        ]
        for ran in spoken.hosted:
            self.hosted[ran.kind] = self.hosted.get(ran.kind, 0) + 1
        for position, call in enumerate(calls):
            identity = call.get("id")
            identity = identity or self._issue_id(profile, key, call["name"], (position, spoken))
            spoken.calls.append({"id": identity, "name": call["name"], "arguments": _argument_text(call)})
        if calls:
            self._last_calls[key] = calls
        self._refused.discard(key)
        return spoken

    def _wished(
        self, step: dict[str, Any], key: tuple[str, str], request: dict[str, Any]
    ) -> tuple[list[dict[str, Any]], str]:
        """Calls and text of a step, its behaviour carried out."""
        calls, text = list(step.get("calls") or ()), str(step.get("text") or "")
        behaviour = step.get("behaviour")
        if behaviour == "echo_results":
            text += "\n".join(last_results(request))
        elif behaviour == "repeat_call":
            calls = repeated_calls(request)
        elif behaviour == "repeat_call_after_recovery" and key in self._refused:
            again = repeated_calls(request) or self._last_calls.get(key, [])
            calls, text = [{k: v for k, v in call.items() if k != "id"} for call in again], ""
        elif behaviour == "require_call_once":
            calls = [c for c in calls if not has_called(request, c["name"], json.loads(_argument_text(c)))]
            text = "" if calls else (text or "The call was made.")
        elif behaviour == "many_calls":
            calls = many_calls(step.get("many_calls"), calls)
        return calls, text

    def _issue_id(self, profile: Profile, key: tuple[str, str], name: str, at: tuple[int, Spoken]) -> str:
        """An id that looks like the service's; the same script gives the same ids."""
        position, spoken = at
        number = self._calls_made.get(key, 0)
        self._calls_made[key] = number + 1
        digest = hashlib.sha256(f"{key}{number}".encode()).hexdigest()
        if profile.wire == "responses":
            return ""
        if profile.ids == "toolu":
            return tool_use_id(f"{key}{number}", bool(spoken.thinking))
        if profile.ids == "tooluse":
            return converse_id(f"{key}{number}", bool(spoken.text))
        if profile.ids == "minimax":
            return f"call_function_{digest[:12]}_{position + 1}"
        plain = {"running": f"functions.{name}:{number}", "position": f"{name}:{position}"}
        cut = {"nine": 9, "eight": 8}
        if profile.ids in cut:
            return digest[: cut[profile.ids]]
        return plain.get(profile.ids, f"call_{digest[:24]}")


def _next_step(script: Script, request: dict[str, Any]) -> dict[str, Any]:
    if script.by == "history":
        place = turns_of_model(request)
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


def _hosted(step: dict[str, Any]) -> list[Hosted]:
    """What the provider runs for this step."""
    ran = []
    behaviour = step.get("behaviour")
    search = step.get("server_search")
    if search is not None or behaviour in ("search_with_sources", "search_without_sources"):
        asked = search if isinstance(search, dict) else {"query": str(search or "what was asked")}
        count = int(asked.get("sources", step.get("search_with_sources", 2)))
        found = () if behaviour == "search_without_sources" else sources(count)
        ran.append(Hosted("search", str(asked.get("query", "")), found))
    if behaviour == "hosted_effect" or "hosted_effect" in step:
        ran.append(Hosted(str(step.get("hosted_effect") or "code")))
    return ran


def _argument_text(call: dict[str, Any]) -> str:
    if "raw_args" in call:
        return str(call["raw_args"])
    return json.dumps(call.get("args") or {}, ensure_ascii=False)


def _behaviour(step: dict[str, Any]) -> str | None:
    """The behaviour of a step; a key that means nothing without one stands for it."""
    named = step.get("behaviour")
    implied = next((key for key in ("many_calls", "search_with_sources") if step.get(key) is not None), None)
    return str(named) if named is not None else implied


def many_calls(spec: Any, calls: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """`n` calls of one tool, given beside it or as the step's own call; `{n}` in a text argument becomes
    the number of the call, from 1."""
    given = spec if isinstance(spec, dict) else {"n": 2 if spec is None else spec}
    template = {**(calls[0] if calls else {"name": ""}), **given}
    arguments = template.get("args") or {}
    made = []
    for number in range(1, int(template.get("n", 2)) + 1):
        filled = {k: v.replace("{n}", str(number)) if isinstance(v, str) else v for k, v in arguments.items()}
        made.append({"name": template["name"], "args": filled})
    return made
