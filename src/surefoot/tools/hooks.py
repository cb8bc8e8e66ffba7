"""Hooks of the settings: commands around tool calls and at events of a session, each as a call of its own.

Owns: which hooks a call or an event meets, the JSON a hook reads, what its end and its words mean
(TR-24, UX-48), and the tool its command runs by, with its class and reach (TR-25). Does not own: the
form of a hook (`settings_hooks`), supervision (`tools.shell`), the order around a call
(`runtime.barrier`), when an event is told (`runtime.events`).
Promises: barrier:one-door. A hook whose end is not known refuses the call before which it ran.
recovery:never-guess: what a hook says of an outcome is not read.

A hook that ends with 0 lets the call pass, or answers with JSON; 2 refuses it, with standard error as
the reason; any other code is a fault of the hook and holds nothing back. It can refuse and change,
and never allow what somebody else must. A hook that the fence holds back did not run: before a call
that refuses the call, elsewhere the person is told, once for each hook.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from surefoot.core.canonical import ArgumentsInvalid, canonical_json, read_arguments
from surefoot.core.effects import EVERYTHING, Effect, wider
from surefoot.core.history import HOOK
from surefoot.core.model import EffectClass, Notice, Receipt, State
from surefoot.errors import LedgerError
from surefoot.runtime.barrier import Barrier
from surefoot.runtime.events import Happened, Said
from surefoot.runtime.live import Changed, Looked, Permit, Permits, Refused
from surefoot.runtime.tools import Arguments, LiveAttempt, Outcome, Place, Prepared, Tool
from surefoot.settings_hooks import MOST_SECONDS, OUTCOME_EVENTS, HookSetting
from surefoot.tools.processes import kernel
from surefoot.tools.processes.client import ProcessServer
from surefoot.tools.processes.preparing import reading, without_ours
from surefoot.tools.processes.seen import look
from surefoot.tools.shell import SHELL_OPTIONS, Ready, run_ready, shell_argv
from surefoot.tools.verifying import shell_verifier

NAME = HOOK
FOLDER_VARIABLE = "SUREFOOT_PROJECT_DIR"
ANSWER_BYTES = 1 << 20
REFUSES = 2
_HOLDABLE = frozenset({"UserPromptSubmit", "Stop", "PreCompact"})
"""Events a hook can hold: the words do not become a turn, the turn does not end, the view stays."""
_ADDING = frozenset({"SessionStart", "UserPromptSubmit"})
"""Events at which what a hook prints is told to the model."""
_INPUT, _ANSWER = "hook-input", "hook-answer"
_REDIRECTED = 'given=$1 answer=$2; shift 2; "$@" <"$given" >"$answer"'
_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "event": {"type": "string"},
        "command": {"type": "string"},
        "call": {"type": "string", "description": "The attempt it belongs to or speaks of, if any."},
        "timeout_seconds": {"type": "number"},
        "class": {"type": "string"},
        "reach": {"type": "array", "items": {"type": "string"}},
        "call_reach": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["event", "command", "timeout_seconds", "call_reach"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class _Answer:
    """How a hook's command ended by itself, and what it said."""

    code: int
    said: str
    errors: str


class SettingsHooks:
    """The hooks of one session; implements `runtime.live.Hooks` and `runtime.events.Listener`."""

    def __init__(self, hooks: Sequence[HookSetting], place: Place, session_id: str) -> None:
        self.mode: Callable[[], str] = lambda: "default"
        self.notify: Callable[[Notice], None] = lambda notice: None
        self._barrier: Barrier | None = None
        """Its hooks are calls behind it; until it stands no hook runs."""
        self._hooks = tuple(hooks)
        self._place = place
        self._session_id = session_id
        self._given: dict[str, list[str]] = {}
        """Arguments of a hook's call → what the hooks that run by them will read, oldest first."""
        self._answers: dict[str, _Answer] = {}
        self._held_back: set[HookSetting] = set()
        """Hooks of which the person was told that the fence holds them back."""

    def tool(self) -> Tool:
        """What runs a hook's command. Only hooks reach it: it is offered to nobody."""
        return Tool(
            name=NAME,
            description="Run one hook of the person's settings.",
            parameters=_PARAMETERS,
            body=self._body,
            effect=hook_effect,
            prepare=self._prepare,
            rule_name="Hook",
            subjects=lambda arguments, place: (str(arguments["command"]),),
            time_limit_seconds=MOST_SECONDS,
            starts_processes=True,
            supervised=True,
            inner=True,
            choose_verifier=shell_verifier(),
            summary=lambda arguments: f"{arguments.get('event')}: {arguments.get('command')}",
        )

    def attach(self, barrier: Barrier) -> None:
        """Run what these hooks want run behind this barrier, from now on."""
        self._barrier = barrier

    @property
    def any(self) -> bool:
        """Whether there is any hook at all."""
        return bool(self._hooks)

    # Around a call ----------------------------------------------------------------------------

    async def before(self, looked: Looked) -> Refused | Changed | None:
        """Run the hooks of `PreToolUse`; the first that refuses or changes the call is the answer."""
        tool, arguments = looked.tool, looked.arguments
        if tool is None or arguments is None or tool.inner:
            return None
        attempt_id = looked.call.attempt_id
        given = {
            **self._call(tool.name, looked.call.call_id, attempt_id, arguments.value),
            "effect_class": looked.effect.effect_class.value,
            "reach": list(looked.effect.reach),
        }
        for hook in self._meant("PreToolUse", tool.name):
            receipt = await self._run(hook, attempt_id, looked.effect.reach, given)
            answer = None if receipt is None else self._answers.pop(receipt.attempt_id, None)
            found = _unanswered(hook, receipt) if answer is None else _decided(hook, looked, answer)
            if found is not None:
                return found
        return None

    async def after(self, receipt: Receipt) -> None:
        """Run the hooks of `PostToolUse`. What they say changes nothing: the receipt is settled."""
        if receipt.tool is None or receipt.tool == NAME:
            return
        result: Mapping[str, Any] = receipt.result or {}
        given = {
            **self._settled(receipt),
            "tool_response": {"text": result.get("text"), "is_error": result.get("isError")},
        }
        for hook in self._meant("PostToolUse", receipt.tool):
            ended = await self._run(hook, receipt.attempt_id, receipt.reach, given)
            if ended is not None:
                self._answers.pop(ended.attempt_id, None)
                self._tell_if_held(hook, ended)

    # At an event ------------------------------------------------------------------------------

    def hears(self, event: str) -> bool:
        """Whether any hook listens to this event."""
        return any(hook.event == event for hook in self._hooks)

    def told(self, event: str) -> set[str]:
        """The attempts of which hooks of this event were told, by the receipts of their calls."""
        found = set()
        for receipt in () if self._barrier is None else self._barrier.session.book:
            if receipt.asked_name == NAME and receipt.reason != "cancelled_before_start":
                asked = _asked(receipt)
                if asked.get("event") == event and "call" in asked:
                    found.add(str(asked["call"]))
        return found

    async def hear(self, happened: Happened) -> Said:
        """Run the hooks of an event, one after another; the first that refuses is the last one."""
        about = happened.about
        added: list[str] = []
        if about is not None and about.tool == NAME and _asked(about).get("event") in OUTCOME_EVENTS:
            return Said()  # a hook that watches outcomes is not told of its own
        given = {**self._session(), **(happened.facts or {}), **self._outcome(happened)}
        for hook in self._listening(happened):
            receipt = await self._run(hook, "", () if about is None else about.reach, given, happened)
            answer = None if receipt is None else self._answers.pop(receipt.attempt_id, None)
            if receipt is not None:
                self._tell_if_held(hook, receipt)
            if answer is None or happened.event in OUTCOME_EVENTS:
                continue  # it came to no end of its own, or it may watch and cannot decide
            refused, text = _heard(hook, answer)
            if refused is not None:
                return Said(refused, tuple(added))
            added += [text] if text else []
        return Said(None, tuple(added))

    def _listening(self, happened: Happened) -> list[HookSetting]:
        """The hooks an event meets; where nothing could be matched a matcher says nothing."""
        names: Sequence[str | None] = (happened.subject,)
        if happened.event in OUTCOME_EVENTS and happened.about is not None:
            names = (*self._names(happened.about.tool or ""), happened.about.asked_name)
        mine = [hook for hook in self._hooks if hook.event == happened.event]
        return [hook for hook in mine if not any(names) or hook.matches(*names)]

    def _outcome(self, happened: Happened) -> dict[str, Any]:
        """What is told of the call an event speaks of: for an outcome all of it, else which one it is."""
        about = happened.about
        if about is None:
            return {}
        if happened.event not in OUTCOME_EVENTS:
            return {"attempt_id": about.attempt_id, "tool": about.tool or about.asked_name}
        told = self._settled(about)
        if happened.event == "OutcomeResolved":
            told["overlays"] = [str(overlay) for overlay in about.overlays]
            told["resolution"] = None if about.resolution is None else dict(about.resolution)
            told["superseded_by"] = about.superseded_by
        return told

    def _settled(self, receipt: Receipt) -> dict[str, Any]:
        """What is told of a call that ran, its result left out."""
        arguments: Mapping[str, Any] = {}
        with contextlib.suppress(ArgumentsInvalid):
            arguments = read_arguments(receipt.arguments).value
        return {
            **self._call(receipt.tool or receipt.asked_name, receipt.call_id, receipt.attempt_id, arguments),
            "effect_class": None if receipt.effect_class is None else receipt.effect_class.value,
            "reach": list(receipt.reach),
            "state": receipt.state.value,
            "reason": receipt.reason,
        }

    def _tell_if_held(self, hook: HookSetting, receipt: Receipt) -> None:
        """A hook that could not run because of the fence would be missed in silence; it is said once."""
        if receipt.reason != "fenced" or hook in self._held_back:
            return
        self._held_back.add(hook)
        facts = {
            "event": hook.event,
            "command": hook.command,
            "attemptId": receipt.attempt_id,
            "fencedBy": receipt.extra.get("fencedBy"),
        }
        self.notify(Notice("hook_fenced", facts))

    def _meant(self, event: str, tool: str) -> Iterator[HookSetting]:
        names = self._names(tool)
        return (hook for hook in self._hooks if hook.event == event and hook.matches(*names))

    def _names(self, name: str) -> tuple[str | None, ...]:
        """The names a matcher may use for a tool."""
        tool = None if self._barrier is None else self._barrier.registry.resolve(name)
        return (name,) if tool is None else (tool.rule_name, tool.name, *tool.aliases)

    def _session(self) -> dict[str, Any]:
        """What every hook is told, under the names known from other agents."""
        return {
            "session_id": self._session_id,
            "cwd": str(self._place.directory),
            "permission_mode": self.mode(),
        }

    def _call(self, tool: str, call_id: str, attempt_id: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What is told of a call, under the names known from other agents, and ours beside them."""
        rule = next((name for name in self._names(tool) if name), tool)
        return {
            **self._session(),
            "tool_name": rule,
            "tool": tool,
            "tool_input": dict(arguments),
            "tool_use_id": call_id,
            "call_id": call_id,
            "attempt_id": attempt_id,
        }

    async def _run(
        self,
        hook: HookSetting,
        parent: str,
        reach: Sequence[str],
        given: Mapping[str, Any],
        happened: Happened | None = None,
    ) -> Receipt | None:
        """The settled receipt of the hook's own call, below its parent or, at an event, below none.

        None when not even a refusal could be written.
        """
        barrier = self._barrier
        if barrier is None:
            return None
        about = happened.about.attempt_id if happened is not None and happened.about is not None else parent
        asked: dict[str, Any] = {
            "event": hook.event,
            "command": hook.command,
            **({"call": about} if about else {}),
            "timeout_seconds": hook.timeout_seconds,
            "call_reach": list(reach),
        }
        if hook.effect_class is not None:
            asked["class"] = hook.effect_class
        if hook.reach is not None:
            asked["reach"] = list(hook.reach)
        text = canonical_json(asked)
        told = json.dumps({"hook_event_name": hook.event, **given}, ensure_ascii=False)
        self._given.setdefault(text, []).append(told)
        try:
            if happened is None:
                return await barrier.nested(parent, NAME, text)
            return await barrier.apart(happened.turn_id, NAME, text)
        except LedgerError:
            return None
        finally:
            self._given[text].remove(told)
            if not self._given[text]:
                del self._given[text]

    # The hook's own call ----------------------------------------------------------------------

    async def _prepare(
        self, arguments: Arguments, place: Place, receipt: Receipt, services: Mapping[str, Any]
    ) -> Prepared:
        """Make the run folder with what the hook will read; its command has not begun."""
        command = str(arguments["command"])
        effect_class = receipt.effect_class or hook_effect(arguments, place).effect_class
        variables, options, stricter_effect = without_ours(os.environ), SHELL_OPTIONS, None
        clients: tuple[str, ...] = ()
        found = _classified(command, place)
        clients = tuple(sorted(found.clients))
        if effect_class is EffectClass.READ_ONLY and "class" not in arguments:
            readers = await reading(variables, found.repositories, found.projects)
            if readers is None:
                effect_class = EffectClass.UNKNOWN  # a reader that cannot be kept one is unknown (EC-59)
                stricter_effect = Effect(effect_class, _around(arguments, place), check=True)
            else:
                command = found.reading_text or command
                variables, options = dict(readers.variables), readers.shell_options
        server: ProcessServer = services["processes"]
        given = next(iter(self._given.get(canonical_json(dict(arguments)), ())), "{}")
        try:
            run = server.make_run(receipt.attempt_id)
            await asyncio.to_thread(_write_private, run.path / _INPUT, given)
        except OSError as error:
            why = f"The run folder could not be made: {error.strerror}."
            return Prepared(refuse=("receipt_not_durable", why))
        record = run.record(command, clients=clients, check=True)
        argv = (
            "/bin/sh", "-c", _REDIRECTED, NAME,
            str(run.path / _INPUT), str(run.path / _ANSWER), *shell_argv(command, options),
        )  # fmt: skip
        around = {**variables, FOLDER_VARIABLE: str(place.directory)}
        ready = Ready(run, record, effect_class, clients, True, receipt.epoch, argv, tuple(around.items()))
        return Prepared(fields={"process": record}, effect=stricter_effect, value=ready)

    async def _body(self, attempt: LiveAttempt, arguments: Arguments) -> Outcome:
        ready: Ready = attempt.prepared
        outcome = await run_ready(attempt, arguments, "stop")
        if outcome.state is State.UNKNOWN:
            return outcome
        seen = look(ready.record, boot_id=kernel.boot_id())
        said = await asyncio.to_thread(_taken, ready.run.path)
        if seen.code is not None:
            self._answers[attempt.attempt_id] = _Answer(seen.code, said, seen.output)
        return replace(outcome, text="\n".join(part for part in (said.rstrip(), outcome.text) if part))


def hooks_pass(permits: Permits) -> Permits:
    """A hook was declared by its owner, or accepted with the project: nobody is asked about its call again."""

    async def permit(looked: Looked) -> Permit:
        inner = looked.tool is not None and looked.tool.inner
        return Permit(True) if inner else await permits(looked)

    return permit


def hook_effect(arguments: Arguments, place: Place) -> Effect:
    """As declared; else as the command shows, at most its call's reach and the work tree beside what it names."""
    if "class" in arguments:
        declared = EffectClass(arguments["class"])
        reach = arguments.get("reach")
        members = _around(arguments, place) if reach is None else wider(reach)
        return Effect(declared, () if declared is EffectClass.READ_ONLY else members, check=True)
    shown: Effect = _classified(str(arguments["command"]), place).effect
    if shown.effect_class is EffectClass.READ_ONLY:
        return replace(shown, check=True)
    named = () if EVERYTHING in shown.reach else shown.reach
    return replace(shown, reach=wider(named, _around(arguments, place)), check=True, interaction=False)


def _around(arguments: Arguments, place: Place) -> tuple[str, ...]:
    """The reach of the hook's call and the work tree (TR-25)."""
    tree = f"path:{place.directory}" if place.work_tree is None else f"repo:{place.work_tree}"
    return wider(arguments["call_reach"], (tree,))


def _classified(command: str, place: Place) -> Any:
    from surefoot.tools.classify.shell import classify_shell  # its grammar is heavy to load

    return classify_shell(command, place)


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def _taken(folder: Path) -> str:
    """What the hook wrote to its output. What it was given is not kept: it may hold secrets."""
    (folder / _INPUT).unlink(missing_ok=True)
    try:
        with open(folder / _ANSWER, "rb") as file:
            return file.read(ANSWER_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


# What an end means for the call -----------------------------------------------------------------


def _unanswered(hook: HookSetting, receipt: Receipt | None) -> Refused | None:
    """A hook that did not come to an end of its own: its call does not start."""
    if receipt is None:
        return Refused("receipt_not_durable", "The receipt could not be written, so nothing was started.")
    if receipt.reason == "cancelled_before_start":
        return None  # the barrier says so of the call itself
    why = receipt.reason or receipt.state.value
    text = (
        f"The hook {hook.command!r} of the person did not come to an end ({receipt.state.value}: {why},"
        f" {receipt.attempt_id}), so nothing was started. Tell the person."
    )
    return Refused("hook_refused", text, {"hook": receipt.attempt_id})


def _decided(hook: HookSetting, looked: Looked, answer: _Answer) -> Refused | Changed | None:
    if answer.code == REFUSES:
        return _refusal(answer.errors or answer.said)
    said = _json_of(answer.said) if answer.code == 0 else {}
    own = said.get("hookSpecificOutput")
    specific: Mapping[str, Any] = own if isinstance(own, Mapping) else {}
    reason = specific.get("permissionDecisionReason") or said.get("reason") or said.get("stopReason")
    refuses = specific.get("permissionDecision") in ("deny", "ask") or said.get("decision") == "block"
    if refuses or said.get("continue") is False:
        return _refusal(reason if isinstance(reason, str) else "")
    changed = specific.get("updatedInput")
    if isinstance(changed, Mapping) and looked.arguments is not None:
        text = canonical_json(dict(changed))
        if text != canonical_json(looked.arguments.value):
            return Changed(looked.call.asked_name, text)
    return None


def _heard(hook: HookSetting, answer: _Answer) -> tuple[str | None, str]:
    """Why not to go on, where an event can be held, and what the model should know, where there is a place for it."""
    said = _json_of(answer.said) if answer.code == 0 else {}
    refuses = answer.code == REFUSES or said.get("decision") == "block"
    if hook.event == "UserPromptSubmit" and said.get("continue") is False:
        refuses = True
    if refuses and hook.event in _HOLDABLE:
        words = (answer.errors or answer.said) if answer.code == REFUSES else said.get("reason")
        reason = words.strip() if isinstance(words, str) else ""
        return reason or f"The hook {hook.command!r} gave no reason.", ""
    if answer.code != 0 or hook.event not in _ADDING:
        return None, ""
    if not said:
        return None, answer.said.strip().removeprefix("{}")  # an empty answer in JSON says nothing
    own = said.get("hookSpecificOutput")
    added = own.get("additionalContext") if isinstance(own, Mapping) else None
    return None, added.strip() if isinstance(added, str) else ""


def _asked(receipt: Receipt) -> Mapping[str, Any]:
    """The arguments of a hook's own call; nothing when they cannot be read any more."""
    with contextlib.suppress(ArgumentsInvalid):
        return read_arguments(receipt.arguments).value
    return {}


def _refusal(reason: str) -> Refused:
    shown = f": {reason.strip()}" if reason.strip() else "."
    return Refused("hook_refused", f"A hook of the person refused this call, so nothing was started{shown}")


def _json_of(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
