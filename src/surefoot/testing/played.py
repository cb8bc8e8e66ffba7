"""A scripted model without a wire: plays steps as replies, for simulations and unit tests of the runtime.

Owns: turning a step of `ScriptedModel` and the history into a `Reply`. Does not own:
anything of HTTP; whoever wants the bytes tested uses `surefoot.testing.emulator`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from surefoot.core.history import AssistantWords, Message, ResultGiven
from surefoot.errors import ProviderError
from surefoot.providers.port import Reply, ReplyCall, TextDelta
from surefoot.testing.emulator.scripts import many_calls


class PlayedModel:
    """A model for the runtime's port. The step is the number of replies in the history.

    So a request asked again after a crash gets the same answer. `seconds` is how long a
    reply takes; `failures` are raised first, one per request.
    """

    wire = "chat"
    batch_split = False

    def __init__(
        self,
        steps: Sequence[dict[str, Any]],
        *,
        seconds: float = 0.0,
        failures: Sequence[ProviderError] = (),
        wait_seconds: float | None = None,
    ) -> None:
        self.steps = list(steps)
        self.asked: list[list[Message]] = []
        """The messages of every request, oldest first."""
        self._seconds = seconds
        self._failures = list(failures)
        self._wait_seconds = wait_seconds

    async def complete(self, messages: Sequence[Message], on_delta: Callable[[TextDelta], None]) -> Reply:
        """One request."""
        self.asked.append(list(messages))
        await asyncio.sleep(self._seconds)
        if self._failures:
            raise self._failures.pop(0)
        place = sum(1 for message in messages if isinstance(message, AssistantWords))
        step = self.steps[place] if place < len(self.steps) else {"text": "Nothing more to do."}
        reply = _reply(step, messages, place)
        if reply.text:
            on_delta(TextDelta(reply.text))
        return reply

    def wait_seconds(self, error: ProviderError, tries: int) -> float | None:
        """The same wait for every failure; None gives up at once."""
        return self._wait_seconds


def _reply(step: dict[str, Any], messages: Sequence[Message], place: int) -> Reply:
    text, calls = str(step.get("text") or ""), list(step.get("calls") or ())
    behaviour = step.get("behaviour")
    if behaviour == "echo_results":
        text += "\n".join(_last_results(messages))
    elif behaviour == "repeat_call":
        calls = _last_calls(messages)
    elif behaviour == "many_calls":
        calls = many_calls(step.get("many_calls") or {})
    asked = tuple(
        ReplyCall(
            name=call["name"],
            arguments=call.get("raw_args", json.dumps(call.get("args") or {})),
            provider_call_id=call.get("id", f"call_{place}_{number}"),
        )
        for number, call in enumerate(calls)
    )
    return Reply(
        text=text,
        calls=asked,
        finish=step.get("finish") or ("tool_calls" if asked else "stop"),
        raw=_raw(text, asked),
        model="played",
        reasoning=str(step.get("thinking") or ""),
    )


def _raw(text: str, calls: Sequence[ReplyCall]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {
                "id": call.provider_call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in calls
        ]
    return message


def _last_results(messages: Sequence[Message]) -> list[str]:
    results: list[str] = []
    for message in reversed(messages):
        if isinstance(message, AssistantWords):
            break
        if isinstance(message, ResultGiven):
            results.append(message.text)
    return results[::-1]


def _last_calls(messages: Sequence[Message]) -> list[dict[str, Any]]:
    for message in reversed(messages):
        if isinstance(message, AssistantWords) and message.calls:
            return [{"name": call.asked_name, "raw_args": call.arguments} for call in message.calls]
    return []
