"""Hooks of the settings: commands that run before and after a tool call, each as a call of its own.

Owns: which hooks a call meets, the JSON a hook reads, what its end and its words mean for the call
(TR-24), and the tool its command runs by, with its class and reach (TR-25). Does not own: the form of
a hook (`settings_hooks`), supervision (`tools.shell`), the order (`runtime.barrier`).
Promises: barrier:one-door. A hook whose end is not known refuses the call before which it ran.

A hook that ends with 0 lets the call pass, or answers with JSON; 2 refuses it, with standard error as
the reason; any other code is a fault of the hook and holds nothing back. It can refuse and change,
and never allow what somebody else must.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from surefoot.core.canonical import ArgumentsInvalid, canonical_json, read_arguments
from surefoot.core.effects import EVERYTHING, Effect, wider
from surefoot.core.model import EffectClass, Receipt, State
from surefoot.errors import LedgerError
from surefoot.runtime.live import Changed, Looked, Refused
from surefoot.runtime.tools import Arguments, LiveAttempt, Outcome, Place, Prepared, Tool
from surefoot.settings_hooks import MOST_SECONDS, HookSetting
from surefoot.tools.processes import kernel
from surefoot.tools.processes.client import ProcessServer
from surefoot.tools.processes.preparing import reading, without_ours
from surefoot.tools.processes.seen import look
from surefoot.tools.shell import SHELL_OPTIONS, Ready, run_ready, shell_argv
from surefoot.tools.verifying import shell_verifier

NAME = "hook"
FOLDER_VARIABLE = "SUREFOOT_PROJECT_DIR"
ANSWER_BYTES = 1 << 20
REFUSES = 2
_INPUT, _ANSWER = "hook-input", "hook-answer"
_REDIRECTED = 'given=$1 answer=$2; shift 2; "$@" <"$given" >"$answer"'
_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "event": {"type": "string"},
        "command": {"type": "string"},
        "call": {"type": "string", "description": "The attempt it belongs to."},
        "timeout_seconds": {"type": "number"},
        "class": {"type": "string"},
        "reach": {"type": "array", "items": {"type": "string"}},
        "call_reach": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["event", "command", "call", "timeout_seconds", "call_reach"],
    "additionalProperties": False,
}

Nested = Callable[[str, str, str], Awaitable[Receipt]]
"""`Barrier.nested`: attempt of the parent, tool, arguments."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """How a hook's command ended by itself, and what it said."""

    code: int
    said: str
    errors: str


class SettingsHooks:
    """The hooks of one session; implements `runtime.live.Hooks`."""

    def __init__(self, hooks: Sequence[HookSetting], place: Place, session_id: str) -> None:
        self.nested: Nested | None = None
        """Set once the barrier stands; until then no hook runs."""
        self.names_of: Callable[[str], Sequence[str | None]] = lambda tool: (tool,)
        """The names a matcher may use for a tool."""
        self._hooks = tuple(hooks)
        self._place = place
        self._session_id = session_id
        self._given: dict[tuple[str, str], str] = {}
        self._answers: dict[str, _Answer] = {}

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

    # Around a call ----------------------------------------------------------------------------

    async def before(self, looked: Looked) -> Refused | Changed | None:
        """Run the hooks of `PreToolUse`; the first that refuses or changes the call is the answer."""
        tool, arguments = looked.tool, looked.arguments
        if tool is None or arguments is None or tool.inner:
            return None
        attempt_id = looked.call.attempt_id
        given = {
            **self._said_of(tool.name, looked.call.call_id, attempt_id, arguments.value),
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
        arguments = {}
        with contextlib.suppress(ArgumentsInvalid):
            arguments = read_arguments(receipt.arguments).value
        result: Mapping[str, Any] = receipt.result or {}
        given = {
            **self._said_of(receipt.tool, receipt.call_id, receipt.attempt_id, arguments),
            "effect_class": None if receipt.effect_class is None else receipt.effect_class.value,
            "reach": list(receipt.reach),
            "state": receipt.state.value,
            "reason": receipt.reason,
            "tool_response": {"text": result.get("text"), "is_error": result.get("isError")},
        }
        for hook in self._meant("PostToolUse", receipt.tool):
            ended = await self._run(hook, receipt.attempt_id, receipt.reach, given)
            if ended is not None:
                self._answers.pop(ended.attempt_id, None)

    def _meant(self, event: str, tool: str) -> Iterator[HookSetting]:
        names = self.names_of(tool)
        return (hook for hook in self._hooks if hook.event == event and hook.matches(*names))

    def _said_of(
        self, tool: str, call_id: str, attempt_id: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What every hook is told, under the names known from other agents, and ours beside them."""
        rule = next((name for name in self.names_of(tool) if name), tool)
        return {
            "session_id": self._session_id,
            "cwd": str(self._place.directory),
            "tool_name": rule,
            "tool": tool,
            "tool_input": dict(arguments),
            "tool_use_id": call_id,
            "call_id": call_id,
            "attempt_id": attempt_id,
        }

    async def _run(
        self, hook: HookSetting, attempt_id: str, reach: Sequence[str], given: Mapping[str, Any]
    ) -> Receipt | None:
        """The settled receipt of the hook's own call; None when not even a refusal could be written."""
        if self.nested is None:
            return None
        asked: dict[str, Any] = {
            "event": hook.event,
            "command": hook.command,
            "call": attempt_id,
            "timeout_seconds": hook.timeout_seconds,
            "call_reach": list(reach),
        }
        if hook.effect_class is not None:
            asked["class"] = hook.effect_class
        if hook.reach is not None:
            asked["reach"] = list(hook.reach)
        text = canonical_json(asked)
        self._given[attempt_id, text] = json.dumps(
            {"hook_event_name": hook.event, **given}, ensure_ascii=False
        )
        try:
            return await self.nested(attempt_id, NAME, text)
        except LedgerError:
            return None
        finally:
            self._given.pop((attempt_id, text), None)

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
            readers = await reading(variables, found.repositories)
            if readers is None:
                effect_class = EffectClass.UNKNOWN  # a reader that cannot be kept one is unknown (EC-59)
                stricter_effect = Effect(effect_class, _around(arguments, place), check=True)
            else:
                command = found.reading_text or command
                variables, options = dict(readers.variables), readers.shell_options
        server: ProcessServer = services["processes"]
        given = self._given.get((str(arguments["call"]), canonical_json(dict(arguments))), "{}")
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


def _refusal(reason: str) -> Refused:
    shown = f": {reason.strip()}" if reason.strip() else "."
    return Refused("hook_refused", f"A hook of the person refused this call, so nothing was started{shown}")


def _json_of(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
