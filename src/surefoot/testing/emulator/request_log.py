"""What the emulator saw and answered, in memory and on disk.

Owns: the log entry with raw body and digests, and its file, in which every line is
complete so that a killed test can read it. Does not own: matching or replying.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_SECRET_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"}
    | {"x-amz-security-token"}
)


@dataclass(slots=True)
class LogEntry:
    """One request for a model. `status` is 0 until it was answered."""

    sequence: int
    at_ms: int
    profile: str
    path: str
    session: str
    headers: dict[str, str]
    body: bytes
    body_sha: str
    message_shas: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    """Ids of the rules that refused it."""
    fault: dict[str, Any] | None = None
    """The last fault it met."""
    faults: list[dict[str, Any]] = field(default_factory=list)
    """Every fault it met, in order."""
    hosted: dict[str, int] = field(default_factory=dict)
    """What the provider ran on its own side for this request."""
    status: int = 0
    bytes_sent: int = 0
    client_closed_early: bool = False
    done: bool = False

    @property
    def trace_id(self) -> str:
        """The id by which the reply names this request."""
        return f"req_{self.sequence:06d}"

    def json(self) -> dict[str, Any]:
        """The request body as data; an empty object when it was no JSON object."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def to_json(self) -> dict[str, Any]:
        """As the control path and the file show it; the raw body is base64."""
        return {**asdict(self), "body": base64.b64encode(self.body).decode()}


class RequestLog:
    """All requests of one emulator, in order of arrival."""

    def __init__(self, path: Path | None = None) -> None:
        self.entries: list[LogEntry] = []
        self._file = None if path is None else path.open("a", encoding="utf-8", buffering=1)
        self._changed = asyncio.Event()
        self._counted: Counter[tuple[str, str]] = Counter()

    def arrived(self, *, profile: str, path: str, headers: dict[str, str], body: bytes) -> LogEntry:
        """Begin an entry, and write it down before anything is answered."""
        shown = {k: v for k, v in headers.items() if k not in _SECRET_HEADERS}
        entry = LogEntry(
            sequence=len(self.entries) + 1,
            at_ms=time.time_ns() // 1_000_000,
            profile=profile,
            path=path,
            session=headers.get("x-test-session", ""),
            headers=shown,
            body=body,
            body_sha=hashlib.sha256(body).hexdigest(),
        )
        given = entry.json()
        messages = given.get("messages") or given.get("input") or given.get("contents")
        if isinstance(messages, list):
            entry.message_shas = [_sha(message) for message in messages]
        self.entries.append(entry)
        self._counted[profile, entry.session] += 1
        self.note(entry)
        return entry

    def note(self, entry: LogEntry) -> None:
        """Write the entry as it is now; readers keep the newest line of each sequence number."""
        if self._file is not None:
            self._file.write(json.dumps(entry.to_json()) + "\n")
            self._file.flush()
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self) -> None:
        """Return when an entry was begun or changed."""
        await self._changed.wait()

    def nth(self, profile: str, session: str) -> int:
        """How many requests of this profile and session have arrived."""
        return self._counted[profile, session]

    def forget(self) -> None:
        """Begin again with request 1; what was written to the file stays."""
        self.entries.clear()
        self._counted.clear()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def read_log(path: Path) -> list[LogEntry]:
    """The log a server wrote to `path`, also after it was killed."""
    newest: dict[int, LogEntry] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(ValueError):  # the last line may be torn by a kill
            entry = entry_from_json(json.loads(line))
            newest[entry.sequence] = entry
    return [newest[sequence] for sequence in sorted(newest)]


def entry_from_json(value: dict[str, Any]) -> LogEntry:
    """Read what `LogEntry.to_json` wrote."""
    return LogEntry(**{**value, "body": base64.b64decode(value["body"])})


def _sha(message: Any) -> str:
    text = json.dumps(message, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
