"""The model tool recovery: list open calls, inspect one, report what was found (TR-153).

Owns: its arguments, bounds, and the frame that marks its output as data. Does not
own: what is open, redaction, and the record of a report (`services["recovery"]`). It
resolves nothing: no word of a model changes a state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from surefoot.core.effects import Effect
from surefoot.core.handoff import escaped
from surefoot.core.model import EffectClass, EffectTrace, State
from surefoot.runtime.tools import Arguments, LiveAttempt, Outcome, Tool

ARGUMENT_BYTES = 2048
LISTED = 24


class RecoveryDesk(Protocol):
    """`services["recovery"]`: read access to the calls of this session, and the record of reports."""

    async def open_calls(self) -> Sequence[Mapping[str, Any]]:
        """What may be told of every open call, unknown writes first; no arguments and no key."""
        ...

    async def inspect(self, attempt_id: str) -> Mapping[str, Any] | None:
        """`state`, `inspection` and `arguments` (redacted text) of an attempt, or `result` (stored text)
        of a settled retry; None when this session knows no such attempt. Runs local verifiers only."""
        ...

    async def report(
        self, attempt: LiveAttempt, attempt_id: str, *, finding: str, reads: Sequence[str]
    ) -> Mapping[str, Any]:
        """Record a finding; `{"grade": "weak"}` when `reads` names settled reads, else `none`.
        `{"refused": code}` for an unknown attempt, a foreign read, a finding that is too long or one too many."""
        ...


def framed(value: Any) -> str:
    """A value marked as data for the model; nothing in it can close the frame (TR-61)."""
    return f"<recovery-data>\n{escaped(value)}\n</recovery-data>"


def cut(text: str, limit_bytes: int) -> str:
    """The beginning of `text` within `limit_bytes`, cut between code points, with a mark."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= limit_bytes:
        return text
    mark = " … [cut]"
    return encoded[: limit_bytes - len(mark.encode())].decode("utf-8", "ignore") + mark


def _failed(kind: str, text: str) -> Outcome:
    return Outcome(text, State.FAILED, error_kind=kind, effect_trace=EffectTrace.NONE)


async def _list(desk: RecoveryDesk, offset: int) -> Outcome:
    rows = list(await desk.open_calls())
    if not rows:
        return Outcome("No call is open.")
    more = len(rows) - offset - LISTED
    ending = f"\n{more} more are open: `list` with `offset` {offset + LISTED}." if more > 0 else ""
    shown = framed(rows[offset : offset + LISTED])
    return Outcome(
        f"{len(rows)} call(s) are open: they started, and whether they took effect is not known. Look with "
        f"read-only tools, then `report`; only a person resolves them.\n{shown}{ending}"
    )


async def _inspect(desk: RecoveryDesk, attempt_id: str) -> Outcome:
    seen = await desk.inspect(attempt_id)
    if seen is None:
        return _failed("not_found", f"This session has no attempt {attempt_id!r}. Use action `list`.")
    shown = dict(seen)
    if isinstance(shown.get("arguments"), str):
        shown["arguments"] = cut(shown["arguments"], ARGUMENT_BYTES)
    return Outcome(f"What is recorded about {attempt_id}, as data:\n{framed(shown)}")


async def _report(desk: RecoveryDesk, attempt: LiveAttempt, arguments: Arguments) -> Outcome:
    finding = str(arguments.get("finding") or "")
    if not finding.strip():
        return _failed("finding_missing", "Say what you found in `finding`.")
    reads = tuple(arguments.get("reads") or ())
    answer = await desk.report(attempt, str(arguments["attempt"]), finding=finding, reads=reads)
    if answer.get("refused") == "finding_too_long":
        most = answer["most_bytes"]
        return _failed("finding_too_long", f"The finding is longer than {most} bytes. Shorten it.")
    if "refused" in answer:
        return _failed(str(answer["refused"]), f"The report was not recorded: {answer['refused']}.")
    return Outcome(
        f"Recorded as a report of grade {answer.get('grade')!r}. The call stays as it is; a person decides."
    )


async def _body(attempt: LiveAttempt, arguments: Arguments) -> Outcome:
    desk: RecoveryDesk = attempt.services["recovery"]
    action = arguments["action"]
    if action == "list":
        return await _list(desk, int(arguments.get("offset") or 0))
    if not arguments.get("attempt"):
        return _failed("attempt_missing", f"Action {action!r} needs `attempt`, an id that `list` shows.")
    if action == "inspect":
        return await _inspect(desk, str(arguments["attempt"]))
    return await _report(desk, attempt, arguments)


def recovery_tool() -> Tool:
    """`recovery`: reads at every barrier level (TR-81)."""
    return Tool(
        name="recovery",
        description=(
            "Calls whose outcome is unknown: `list` them, `inspect` one (its record, arguments redacted, "
            "local evidence), or `report` what you found by read-only looks, naming the attempt ids of those "
            "reads. It resolves nothing; a person decides."
        ),
        parameters={
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["list", "inspect", "report"]},
                "attempt": {"type": "string", "maxLength": 64, "description": "Attempt id, `att_…`."},
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "For `list`: how many to pass over.",
                },
                "finding": {"type": "string", "description": "For `report`: what you saw."},
                "reads": {
                    "type": "array",
                    "maxItems": 20,
                    "items": {"type": "string", "maxLength": 64},
                    "description": "For `report`: attempt ids of the reads it rests on.",
                },
            },
            "required": ["action"],
            "additionalProperties": False,
        },
        body=_body,
        effect=Effect(EffectClass.READ_ONLY),
        summary=lambda a: f"recovery {a.get('action')} {a.get('attempt') or ''}".strip(),
    )
