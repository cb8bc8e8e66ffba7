"""The agent that the demo kills: `python -m surefoot.testing.demo_agent`, and the parts its successor needs.

Owns: a real agent with one tool that pays over HTTP, a verifier that asks the
receiver, and a played model. Does not own: the kill, the card, the person
(`surefoot.testing.demo`).
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import os
import signal
import sys
import urllib.error
import urllib.parse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from surefoot.app import Parts, open_app
from surefoot.config import Settings, load_settings
from surefoot.core.effects import Effect
from surefoot.core.history import AssistantWords, Message
from surefoot.core.model import EffectClass, Grade, Receipt
from surefoot.errors import OutcomeUnknown, ToolError
from surefoot.providers.port import Reply, TextDelta
from surefoot.runtime.tools import Arguments, LiveAttempt, Outcome, Place, Prepared, Tool
from surefoot.testing.loopback import ask
from surefoot.testing.played import PlayedModel
from surefoot.testing.sink import post
from surefoot.verifiers.port import Deadline, Observation

PROMPT = "Pay invoice 7."
LABEL = "invoice 7"
PAY = {"text": "I pay the invoice.", "calls": [{"name": "pay", "args": {"name": LABEL}}]}
_PARENT_DEATH = 1
"""`PR_SET_PDEATHSIG` of prctl(2)."""

AFTER: dict[str, list[dict[str, Any]]] = {
    "confirm": [{"text": "You say that the payment happened. I do not pay again; invoice 7 is done."}],
    "deny": [PAY, {"text": "You said that it had not happened, so I paid invoice 7 anew."}],
    "reject": [{"text": "The payment stays open, and its fence stays. I do not pay again."}],
    "release": [{"text": "The payment stays uncertain, as you accepted. I do not pay again."}],
    "settled": [{"text": "Invoice 7 is paid."}],
    "not_started": [PAY, {"text": "The payment had never begun, so I made it. Invoice 7 is paid."}],
}
"""What the played model says after each decision; a model of flesh would read the same facts."""


def die_with_parent(parent_pid: int | None = None) -> None:
    """Ask the kernel for SIGKILL when the parent dies; leave at once when it is dead already."""
    ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
    if parent_pid is not None and os.getppid() != parent_pid:
        os._exit(1)


def settings_at(folder: Path) -> Settings:
    """Settings of the demo: its own home, nothing asked, nothing of this person's."""
    environ = {"SUREFOOT_HOME": str(folder / "home"), "HOME": str(folder), "PATH": os.environ.get("PATH", "")}
    flags = {"model": "demo/played", "permissions.mode": "bypassPermissions"}
    return load_settings(flags, environ, folder / "project", trust=True)


class ReceiverVerifier:
    """Asks the receiver for payments under the key of a call."""

    name = "receiver"
    far = False

    def __init__(self, url: str) -> None:
        self._url = url

    def recovery_scope(self, call: Receipt) -> str:
        """The receiver's address."""
        return self._url

    def inspect_effect(self, key: str, call: Receipt, deadline: Deadline, *, fenced: bool) -> Observation:
        """Present, strongly: the receiver's own list is good evidence, and it is not ours."""
        found = ask(f"{self._url}/effects?key={urllib.parse.quote(key)}", seconds=5)
        if not found:
            return Observation("absent", Grade.STRONG, summary="The receiver lists no payment with this key.")
        return Observation(
            "present",
            Grade.STRONG,
            summary=f"The receiver lists {len(found)} payment with the key of this call.",
            evidence={"payments": len(found), "label": found[0]["label"]},
            does_not_prove="what the receiver does with it later",
        )


def pay_tool(url: str, *, hold: Callable[[], Any] | None = None) -> Tool:
    """The tool `pay`; `hold` is awaited when everything is ready and nothing has begun."""

    async def prepare(arguments: Arguments, place: Place, receipt: Receipt, services: Any) -> Prepared:
        if hold is not None:
            await hold()
        return Prepared()

    def body(live: LiveAttempt, arguments: Arguments) -> Outcome | str:
        try:
            post(f"{url}/effect", {"label": arguments["name"], "key": live.idempotency_key}, seconds=60)
        except urllib.error.HTTPError as error:
            raise ToolError(
                f"the receiver answered {error.code}", effect_trace="none", kind="refused"
            ) from None
        except OSError as error:
            raise OutcomeUnknown(f"the line to the receiver broke: {type(error).__name__}") from None
        return f"paid {arguments['name']}"

    host = urllib.parse.urlsplit(url).netloc
    return Tool(
        name="pay",
        description="Pay an invoice.",
        parameters={
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
            "additionalProperties": False,
        },
        sync_body=body,
        prepare=prepare,
        effect=Effect(EffectClass.NON_IDEMPOTENT, (f"host:{host}",)),
        verifier=ReceiverVerifier(url),
    )


class HeldModel(PlayedModel):
    """Plays its first step and then holds the second request, for a kill after the result is durable."""

    def __init__(self, steps: Sequence[dict[str, Any]], hold: Callable[[], Any]) -> None:
        super().__init__(steps)
        self._hold = hold

    async def complete(self, messages: Sequence[Message], on_delta: Callable[[TextDelta], None]) -> Reply:
        """One request; from the second on it never comes back."""
        if any(isinstance(message, AssistantWords) for message in messages):
            await self._hold()
        return await super().complete(messages, on_delta)


async def _announce_and_wait() -> None:
    """Tell the demo that the moment has come, and stay in it until the kill."""
    print("here", flush=True)
    await asyncio.Event().wait()


async def _work(folder: Path, url: str, kill_at: str) -> None:
    hold = _announce_and_wait
    model = HeldModel([PAY], hold) if kill_at == "after" else PlayedModel([PAY])
    parts = Parts(model=model, tools=(pay_tool(url, hold=hold if kill_at == "before" else None),))
    async with open_app(settings_at(folder), directory=folder / "project", parts=parts) as app:
        controller = await app.session()
        await controller.submit(PROMPT)


def main(arguments: list[str]) -> int:
    """Work until the kill comes."""
    parser = argparse.ArgumentParser(prog="python -m surefoot.testing.demo_agent")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--receiver", required=True)
    parser.add_argument("--kill-at", required=True)
    parser.add_argument("--parent", type=int, required=True)
    given = parser.parse_args(arguments)
    die_with_parent(given.parent)
    asyncio.run(_work(given.folder, given.receiver, given.kill_at))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
