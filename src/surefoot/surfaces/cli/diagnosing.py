"""The diagnostic log of a run: `--debug[=TOPIC,…]` and `--debug-file FILE` (UX-15).

Owns: which notices belong to which topic, one line each, where the lines go. Does not own: what happens
(`runtime`), what people are told of it (`notices`).
Holds no key and no words of model or person: secrets are replaced, and a text is told by its length.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from surefoot.core.model import Notice
from surefoot.core.redact import redact_text
from surefoot.errors import UsageError
from surefoot.surfaces.view import clean

if TYPE_CHECKING:
    from surefoot.config import Settings

TOPICS = ("settings", "session", "model", "tools", "recovery", "hooks")
EVERY = "all"
_OF: Mapping[str, str] = {
    **dict.fromkeys(
        ("text", "assistant", "discard", "model_wait", "empty_reply", "local_model", "host", "no_sources"), "model"
    ),
    **dict.fromkeys(("provider_refused", "incident", "recovered_request"), "recovery"),
    **dict.fromkeys(("looked", "unknownOpen", "check_stopped", "not_inspected", "not_reconciled"), "recovery"),
    **dict.fromkeys(("receipt", "progress", "question", "answer", "tool_wait", "background_end"), "tools"),
    **dict.fromkeys(("hook_fenced", "held_words", "held_compaction"), "hooks"),
}  # fmt: skip
"""Where a notice belongs; what is not named here belongs to the session."""
_WORDS = frozenset(
    {
        "arguments", "argumentsDisplay", "command", "content", "message", "prompt", "raw", "reasoning", "result",
        "summary", "text", "words",
    }
)  # fmt: skip
"""Facts that hold words of a model, a person or a tool: told by their length."""
_CHARACTERS = 2000


class Log:
    """Diagnostic lines of one run, on standard error or at the end of a file."""

    def __init__(self, topics: str | None, file: Path | None) -> None:
        """Raises `UsageError` for a topic that there is not and a file that cannot be written."""
        asked = {one.strip() for one in (topics or EVERY).split(",") if one.strip()} or {EVERY}
        strange = sorted(asked - {EVERY, *TOPICS})
        if strange:
            raise UsageError(
                f"--debug knows no topic {strange[0]!r}. Topics: {', '.join(TOPICS)}.",
                next_command="surefoot --help",
            )
        self._topics = frozenset(TOPICS if EVERY in asked else asked)
        self._file = None if file is None else _opened(file)
        self._began = time.monotonic()

    def note(self, topic: str, what: str, facts: Mapping[str, Any]) -> None:
        """Write one line: seconds since the start, topic, what happened, its facts as JSON."""
        if topic not in self._topics:
            return
        told = json.dumps(_bare(facts), ensure_ascii=False, default=str, separators=(",", ":"))
        line = f"{time.monotonic() - self._began:9.3f} {topic} {what} {told[:_CHARACTERS]}"
        stream: TextIO = self._file or sys.stderr
        stream.write(line + "\n")
        stream.flush()

    def settings(self, settings: Settings) -> None:
        """Name each setting that somebody set, and where; no value of it."""
        for path, origin in settings.origins.items():
            if origin.source != "built in":
                self.note("settings", path, {"source": origin.source, "where": str(origin.where or "")})

    def hearing(self, told: Callable[[Notice], None] | None) -> Callable[[Notice], None]:
        """Take down each notice before it is told to whom it was meant for."""

        def notice(seen: Notice) -> None:
            self.note(_OF.get(seen.kind, "session"), seen.kind, seen.facts)
            if told is not None:
                told(seen)

        return notice

    def close(self) -> None:
        """Close the file, if there is one."""
        if self._file is not None:
            self._file.close()


def _opened(file: Path) -> TextIO:
    try:
        number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise UsageError(f"--debug-file {str(file)!r} cannot be written: {error.strerror}.") from None
    return os.fdopen(number, "a", encoding="utf-8", errors="replace")


def _bare(value: Any, name: str = "") -> Any:
    """Facts without words: text of a model, a person or a tool is told by its length."""
    if name in _WORDS and isinstance(value, Mapping):
        return f"({len(value)} fields)"
    if hasattr(value, "to_json"):
        value = value.to_json()
    if isinstance(value, Mapping):
        return {key: _bare(one, str(key)) for key, one in value.items() if one is not None}
    if isinstance(value, list | tuple):
        return [_bare(one, name) for one in value]
    if isinstance(value, str):
        return f"({len(value)} characters)" if name in _WORDS else clean(redact_text(value))
    return value


__all__ = ["TOPICS", "Log"]
