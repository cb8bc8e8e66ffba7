"""The counting world: effects in memory, counted by key and reach, for simulations and unit tests.

Owns: what has really happened, whoever did it, and tools that make it happen with
delays and faults. Does not own: processes and time (`simulation`), real files (`sink`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from surefoot.core.effects import Effect
from surefoot.core.model import EffectClass, Grade, Receipt, State
from surefoot.errors import ToolError
from surefoot.runtime.tools import Arguments, LiveAttempt, Outcome, Tool
from surefoot.verifiers.port import Deadline, Observation

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"label": {"type": "string"}, "idempotency_key": {"type": "string"}},
    "required": ["label"],
    "additionalProperties": False,
}
"""The arguments of every tool of a counting world."""

Point = Callable[[str], Awaitable[None]]
"""Called at `before_effect` and `after_effect`; it may never return (death) or raise."""


@dataclass(frozen=True, slots=True)
class WorldEffect:
    """One thing that happened."""

    label: str
    key: str
    tool: str
    reach: tuple[str, ...]
    attempt_id: str
    call_id: str
    at_seconds: float


@dataclass(slots=True)
class Behaviour:
    """How a tool of the world behaves."""

    seconds_before: float = 0.0
    """Virtual time between entering the body and the effect."""
    seconds_after: float = 0.0
    fails: str = ""
    """`before`: raises `ToolError` and nothing happens; `after`: raises although it happened;
    `raises`: an unexpected exception; `value`: returns a failed outcome; `unknown`: says so;
    `busy`, `busy_once`: refused before anything happened, and may pass by itself."""
    honours_keys: bool = False
    """A repeated key makes no second effect, as at a far side that de-duplicates."""
    point: Point | None = None
    entered: list[str] = field(default_factory=list)
    """Attempt ids for which the body was entered."""


class CountingWorld:
    """Everything that happened, and who entered which body."""

    def __init__(self) -> None:
        self.effects: list[WorldEffect] = []
        self.bodies: list[tuple[str, str]] = []
        """Pairs of tool and attempt id, one per body entered."""

    def count(self, label: str | None = None, *, call_id: str | None = None, key: str | None = None) -> int:
        """How many effects there are with this label, call and key."""
        return sum(
            1
            for effect in self.effects
            if (label is None or effect.label == label)
            and (call_id is None or effect.call_id == call_id)
            and (key is None or effect.key == key)
        )

    def twice(self) -> list[str]:
        """The keys under which something happened more than once."""
        keys = [effect.key for effect in self.effects]
        return sorted({key for key in keys if keys.count(key) > 1})

    def tool(
        self,
        name: str,
        effect_class: EffectClass,
        *,
        reach: Sequence[str] = ("*",),
        behaviour: Behaviour | None = None,
        **declared: Any,
    ) -> Tool:
        """A tool that makes one effect per entered body; `declared` are further fields of `Tool`.

        A `READ_ONLY` one makes none: it answers with the number of effects of its label.
        """
        acting = behaviour or Behaviour()
        members = () if effect_class is EffectClass.READ_ONLY else tuple(sorted(reach))

        async def body(live: LiveAttempt, arguments: Arguments) -> Outcome | str:
            acting.entered.append(live.attempt_id)
            self.bodies.append((name, live.attempt_id))
            if effect_class is EffectClass.READ_ONLY:
                await asyncio.sleep(acting.seconds_before)
                if acting.fails == "busy" or (acting.fails == "busy_once" and len(acting.entered) == 1):
                    raise ToolError("busy", kind="busy", transient=True)
                return f"{self.count(str(arguments['label']))} effects"
            return await self._act(name, members, acting, live, arguments)

        return Tool(
            name=name,
            description=f"Makes one {effect_class} effect in the counting world.",
            parameters=SCHEMA,
            body=body,
            effect=Effect(effect_class, members),
            **declared,
        )

    async def _act(
        self, name: str, reach: tuple[str, ...], acting: Behaviour, live: LiveAttempt, arguments: Arguments
    ) -> Outcome | str:
        await asyncio.sleep(acting.seconds_before)
        if acting.point is not None:
            await acting.point("before_effect")
        if acting.fails == "busy" or (acting.fails == "busy_once" and len(acting.entered) == 1):
            raise ToolError("busy", effect_trace="none", kind="busy", transient=True)
        if acting.fails == "before":
            raise ToolError("refused before anything happened", effect_trace="none", kind="refused")
        self.happen(name, live, reach=reach, label=str(arguments["label"]), unique=acting.honours_keys)
        if acting.point is not None:
            await acting.point("after_effect")
        await asyncio.sleep(acting.seconds_after)
        if acting.fails == "after":
            raise ToolError("failed after it happened", effect_trace="done", kind="late_failure")
        if acting.fails == "raises":
            raise RuntimeError("unexpected")
        if acting.fails == "value":
            return Outcome("it failed", state=State.FAILED, error_kind="planned")
        if acting.fails == "unknown":
            return Outcome("nobody knows", state=State.UNKNOWN, reason="declared")
        return f"did {arguments['label']}"

    def happen(
        self, name: str, live: LiveAttempt, *, reach: tuple[str, ...], label: str, unique: bool = False
    ) -> None:
        """Make one effect, in one step."""
        if unique and self.count(key=live.idempotency_key):
            return
        now = asyncio.get_running_loop().time()
        self.effects.append(
            WorldEffect(label, live.idempotency_key, name, reach, live.attempt_id, live.call_id, now)
        )

    def verifier(self, *, can_fence: bool = True) -> WorldVerifier:
        """A verifier that looks into this world by key."""
        return WorldVerifier(self, can_fence)


class WorldVerifier:
    """Finds an effect by its key, with proof. Absence is fenced only when the executor has ended."""

    name = "world"
    far = False

    def __init__(self, world: CountingWorld, can_fence: bool) -> None:
        self._world = world
        self._can_fence = can_fence

    def recovery_scope(self, call: Receipt) -> str:
        """The one world there is."""
        return "world"

    def inspect_effect(self, key: str, call: Receipt, deadline: Deadline, *, fenced: bool) -> Observation:
        """Look by key."""
        seen = self._world.count(key=key)
        if seen:
            return Observation(
                "present",
                Grade.PROOF,
                fenced=fenced,
                summary=f"{seen} effect under this key",
                evidence={"count": seen},
            )
        return Observation("absent", Grade.PROOF, fenced=fenced and self._can_fence, summary="no such effect")
