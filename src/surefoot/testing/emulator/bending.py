"""Pure. What the knobs of calls and reasoning do to a reply, on every wire.

Owns: bent ids, names, arguments, thinking and finish words, and how a text falls into pieces.
Does not own: the form of a reply (`replies` and its siblings).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PIECE = 16
"""Characters per content or argument delta."""
STREAM_ERROR = "Provider returned error"
"""What an error inside a stream says, unless its fault gives a `message`."""


def bent_calls(calls: Sequence[dict[str, Any]], action: dict[str, Any]) -> list[dict[str, Any]]:
    """The spoken calls as a fault's action bends them; `arguments` may stop being text, `id` may be None."""
    bent = [_bent_call(position, dict(call), action) for position, call in enumerate(calls)]
    keep = action.get("truncate_args")
    if keep is not None and bent:
        bent[-1]["arguments"] = str(bent[-1]["arguments"])[: int(keep)]
    return bent


def bent_finish(
    scripted: str | None, action: dict[str, Any], *, usual: str, words: Mapping[str, str]
) -> str | None:
    """A fault's finish word, else the script's, else the usual one; `words` are how a wire says those of scripts."""
    word = action.get("finish", scripted)
    if word is None:
        return None if "finish" in action else usual
    return words.get(str(word), str(word))


def bent_thinking(thinking: str, action: dict[str, Any]) -> str | None:
    """The thinking text as a fault shows it; None when none is shown at all."""
    mode = action.get("reasoning_mode")
    if not thinking or mode == "omit":
        return None
    return "" if mode in ("blank", "signature_only") else thinking


def pieces(text: str) -> Iterator[str]:
    """The text in deltas; a text of two characters or more comes in two pieces at least."""
    size = min(_PIECE, max(1, len(text) // 2))
    for start in range(0, len(text), size):
        yield text[start : start + size]


def said(text: str, action: dict[str, Any]) -> Iterator[str]:
    """The argument deltas of a call: pieces, or what was said so far each time."""
    so_far = ""
    for piece in pieces(text):
        so_far += piece
        yield so_far if action.get("args_mode") == "cumulative" else piece


def numbered(position: int, action: dict[str, Any]) -> dict[str, int]:
    """The `index` of a call among its siblings, as a fault shows it; empty when it is left out."""
    mode = str(action.get("index_mode"))
    if mode == "missing":
        return {}
    return {"index": {"gap": position * 2, "all_zero": 0}.get(mode, position)}


def as_input(arguments: Any) -> Any:
    """Argument text as the data it says, for wires that show data; what does not parse is shown as nothing."""
    try:
        return json.loads(arguments) if str(arguments).strip() else {}
    except (TypeError, ValueError):
        return {}


def _bent_call(position: int, call: dict[str, Any], action: dict[str, Any]) -> dict[str, Any]:
    long = f"call_{position}".ljust(86, "x")
    ids: dict[str, str | None] = {
        "missing": None,
        "duplicate_in_batch": "call_same",
        "reuse_across_turns": f"call_{position}",
        "long": long,
        "long 86": long,
        "bad_chars": f"call {position}:ä/{{}}",
    }
    call["id"] = ids.get(str(action.get("id_mode")), call["id"])
    names = {"empty": "", "unknown": "no_such_tool"}
    call["name"] = names.get(str(action.get("name_mode")), call["name"])
    call["arguments"] = _bent_arguments(call["arguments"], action.get("args_mode"))
    return call


def _bent_arguments(text: str, mode: Any) -> Any:
    if mode == "object":
        return json.loads(text)
    if mode == "double_encoded":
        return json.dumps(text)
    return {"array": "[1, 2]", "empty": ""}.get(str(mode), text)
