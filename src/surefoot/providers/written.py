"""Pure. The argument text a model wrote → calls of a reply, each marked when it was cut (S-03, S-04, S-18).

Owns: what counts as cut, one further level of encoding, arguments that came as a value.
Does not own: which fragment belongs to which call (each wire's stream module), whether
the arguments fit the tool (`runtime.arguments`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.core.canonical import canonical_json
from surefoot.providers.port import ReplyCall

CUT_FINISHES = frozenset({"length", "max_tokens", "model_length", "incomplete"})
"""Finish words that say the reply ended at a limit."""
REFUSED_FINISHES: Mapping[str, str] = {
    "refusal": "policy",
    "content_filter": "policy",
    "model_context_window_exceeded": "context_overflow",
    "error": "transient",
}
"""Finish words that are refusals under status 200, with their kind (S-30, RT-02)."""

_UNFINISHED = re.compile(r"-|\.|[eE][+-]?|u[0-9a-fA-F]{0,4}")
"""What a parser stumbles over at the end of a text that broke off inside a number or an escape."""


@dataclass(frozen=True, slots=True)
class Written:
    """One call as its fragments gave it; `told_cut` where the wire itself says it is incomplete (OR-14)."""

    name: str
    arguments: str
    id: str
    told_cut: bool = False


def reply_calls(
    written: Sequence[Written], finish: str | None, contract: Mapping[str, Any]
) -> tuple[ReplyCall, ...]:
    """The reply's calls. Of a cut batch nothing runs, unless the contract splits batches (S-03, S-04)."""
    texts = [unwrapped(call.arguments, contract) for call in written]
    cut = [call.told_cut or is_truncated(text) for call, text in zip(written, texts, strict=True)]
    if written and finish in CUT_FINISHES:
        cut[-1] = True
    if any(cut) and not contract["pairing.batch_split"]:
        cut = [True] * len(written)
    return tuple(
        ReplyCall(call.name, text, call.id or None, cut=gone)
        for call, text, gone in zip(written, texts, cut, strict=True)
    )


def grown(before: str, piece: str, *, snapshots: bool) -> str:
    """Text with its next piece; a piece that repeats all of it replaces it, only where the contract says so (S-33)."""
    return piece if snapshots and before and piece.startswith(before) else before + piece


def said(value: Any) -> str:
    """An id or a name as a stream gave it; what is blank or no text was not said (S-13)."""
    return value if isinstance(value, str) and value.strip() else ""


def as_text(value: Any) -> str:
    """Arguments that came as a value, serialised once (S-18); text stays as it is."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    try:
        return canonical_json(value)
    except ValueError:
        return json.dumps(
            value, ensure_ascii=False
        )  # NaN and the like: the validator refuses it with a reason


def unwrapped(text: str, contract: Mapping[str, Any]) -> str:
    """One extra level of encoding taken off, only where the contract declares it (S-18)."""
    if not contract["arguments.double_encoded"]:
        return text
    try:
        inner = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return inner if isinstance(inner, str) else text


def is_json(text: str) -> bool:
    """Whether the text is one whole JSON value."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def is_truncated(text: str) -> bool:
    """Whether the text ends inside a JSON value, as opposed to being wrong somewhere (S-04)."""
    if not text.strip():
        return False
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg.startswith("Unterminated string"):
            return True
        rest = text.rstrip()[error.pos :]
        return not rest or _UNFINISHED.fullmatch(rest) is not None or _is_begun_word(rest)
    except (ValueError, RecursionError):
        return False
    return False


def _is_begun_word(rest: str) -> bool:
    return any(word.startswith(rest) for word in ("true", "false", "null"))
