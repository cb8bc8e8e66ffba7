"""The file verifier: do the write intents of a call hold now, or did nothing happen?

Owns: the answer per path (TR-107), their sum (TR-108), and whether all intents of
a receipt are satisfied (TR-92). Does not own: looking at a path (`verifiers.sight`),
storing intents (`tools.files`), what follows (`core.recovery`). Reads only.

A satisfied postcondition says how things are, never that this call did it: `present`
is never answered here.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.core.model import Grade, Receipt
from surefoot.machine import boot_ms
from surefoot.verifiers.port import EVIDENCE_BYTES, SUMMARY_CHARACTERS, Deadline, Observation
from surefoot.verifiers.sight import (
    ABSENT,
    DIGEST_FILE_BYTES,
    TEMPORARY,
    FileIds,
    LedgerFiles,
    Sight,
    is_before,
    look,
    resolve,
)

INTENT_VERSION = 1
_ENTRY_KINDS = frozenset({"delete", "move"})
"""Kinds that concern a directory entry itself: its final symbolic link is not followed."""


@dataclass(frozen=True, slots=True)
class PathAnswer:
    """What one intent's path says now."""

    path: str
    answer: str
    """`satisfied`, `unchanged`, `conflict` or `unknown`."""
    grade: Grade = Grade.STRONG
    why: str = ""

    def to_json(self) -> dict[str, str]:
        """As evidence of an inspection."""
        return {"path": self.path, "answer": self.answer, "grade": str(self.grade), "why": self.why}


def host_name() -> str:
    """The name intents and scopes give this machine."""
    return socket.gethostname()


def follows(kind: str) -> bool:
    """Whether a write of this kind goes through a final symbolic link."""
    return kind not in _ENTRY_KINDS


def no_ledger_files() -> FileIds:
    """For programs that hold no ledger."""
    return frozenset()


class FilesVerifier:
    """Looks at the paths of a receipt's write intents; implements `verifiers.port.EffectVerifier`."""

    name = "files"
    far = False

    def __init__(
        self,
        ledger_files: LedgerFiles = no_ledger_files,
        *,
        roots: Callable[[], Sequence[Path]] | None = None,
        digest_file_bytes: int = DIGEST_FILE_BYTES,
    ) -> None:
        self._ledger_files = ledger_files
        self._roots = roots
        self._limit = digest_file_bytes

    def recovery_scope(self, call: Receipt) -> str:
        """Host and resolved paths of the call, from its write intents as they resolve now.

        Raises:
            LookupError: the receipt holds no intents yet (ask after `prepare`).
        """
        paths = sorted({_resolved_now(intent) for intent in call.write_intents})
        if not paths:
            raise LookupError("no write intents: the scope of a file write is known after its preparation")
        return json.dumps(["files", host_name(), *paths], ensure_ascii=False, separators=(",", ":"))

    def inspect_effect(self, key: str, call: Receipt, deadline: Deadline, *, fenced: bool) -> Observation:
        """Look at every path (TR-108). `key` leaves no mark on a disk and is not used."""
        if not call.write_intents:
            return Observation("unknown", summary="This call stored no write intent.", reason="no_intents")
        if (call.scope or "").startswith('["files"') and self.recovery_scope(call) != call.scope:
            return Observation("unknown", summary="The paths lead elsewhere now.", reason="scope_changed")
        answers: list[PathAnswer] = []
        for intent in call.write_intents:
            if boot_ms() > deadline.boot_ms:
                return Observation("unknown", summary="The look took too long.", reason="verifier_timeout")
            answers.append(self.answer(intent, call))
        return _observation(answers, fenced)

    def answers(self, call: Receipt) -> tuple[PathAnswer, ...]:
        """The present postconditions of a receipt, one per intent (TR-92)."""
        return tuple(self.answer(intent, call) for intent in call.write_intents)

    def undisturbed(self, call: Receipt) -> bool:
        """Whether every path is satisfied or unchanged, so that repeating overwrites no later work (TR-114)."""
        return all(answer.answer in ("satisfied", "unchanged") for answer in self.answers(call))

    def satisfied(self, call: Receipt) -> bool:
        """Whether the receipt has intents and all of them hold now (TR-92)."""
        return bool(call.write_intents) and all(found.answer == "satisfied" for found in self.answers(call))

    def answer(self, intent: Mapping[str, Any], call: Receipt) -> PathAnswer:
        """What one intent's path says now (TR-107)."""
        path = str(intent.get("resolvedPath") or "")
        foreign = self._cannot_tell(intent, path)
        if foreign:
            return PathAnswer(path, "unknown", Grade.NONE, foreign)
        now = look(path, self._ledger_files(), limit=self._limit)
        if now.kind in ("ledger", "unreadable"):
            return PathAnswer(
                path, "unknown", Grade.NONE, "ledger_file" if now.kind == "ledger" else "unreadable"
            )
        word, why = _mkdir_word(now) if intent.get("kind") == "mkdir" else _word(intent, now)
        if word == "satisfied" and self._displaced(intent, call.attempt_id):
            # Killed between the exchange and its comparison: the file that came out was not the one expected.
            return PathAnswer(path, "conflict", Grade.STRONG, "another_version_lies_beside")
        proof = word == "unchanged" and _untouched(intent, now, call.started_at)
        grade = Grade.NONE if word == "unknown" else Grade.PROOF if proof else Grade.STRONG
        return PathAnswer(path, word, grade, why)

    def _cannot_tell(self, intent: Mapping[str, Any], path: str) -> str:
        if intent.get("version") != INTENT_VERSION:
            return "intent_version"
        if intent.get("route") != "disk":
            return "overlay"
        if intent.get("host") != host_name():
            return "other_host"
        if not path.startswith("/") or not str(intent.get("path") or "").startswith("/"):
            return "relative_path"
        if _resolved_now(intent) != path:
            return "resolved_path_moved"
        roots = [os.path.realpath(root) for root in self._roots()] if self._roots is not None else []
        if roots and not any(_inside(path, root) for root in roots):
            return "outside_write_roots"
        return ""

    def _displaced(self, intent: Mapping[str, Any], attempt_id: str) -> bool:
        """Whether a temporary file of the attempt holds a content that is neither before nor after."""
        folder = os.path.dirname(str(intent["resolvedPath"]))  # noqa: PTH120
        expected = {intent.get("before"), intent.get("after")}
        if intent.get("kind") != "write" or None in expected or not attempt_id:
            return False
        try:
            names = [name for name in os.listdir(folder) if name.startswith(f"{TEMPORARY}{attempt_id}-")]  # noqa: PTH208
        except OSError:
            return False
        found = (look(f"{folder}/{name}", self._ledger_files(), limit=self._limit) for name in names)
        return any(sight.kind == "file" and sight.state not in expected for sight in found)


def _resolved_now(intent: Mapping[str, Any]) -> str:
    return resolve(str(intent.get("path") or ""), follow=follows(str(intent.get("kind"))))


def _inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _word(intent: Mapping[str, Any], now: Sight) -> tuple[str, str]:
    before, after = intent.get("before"), intent.get("after")
    if now.kind == ABSENT:
        if after == ABSENT:
            return "satisfied", ""
        if before == ABSENT:
            return "unchanged", ""
        return ("conflict", "gone") if after is not None else ("unknown", "changed")
    if now.kind != "file":
        return _word_of_other(before, after, now)
    if now.digest is None:
        return "unknown", "above_digest_bound"
    if after is not None and now.digest == after:
        same = intent.get("encoding") in (None, now.encoding)
        return ("satisfied", "") if same else ("conflict", "other_encoding")
    if before is not None and now.digest == before:
        return "unchanged", ""
    if after is None or before is None:
        return "unknown", "changed" if after is None else "identity_only"
    return "conflict", "other_content"


def _word_of_other(before: Any, after: Any, now: Sight) -> tuple[str, str]:
    """A folder, link or device: known by identity alone, so only its absence could be told."""
    if before is None or after is None:
        return "unknown", "identity_only"
    return "conflict", f"a_{now.kind}_is_there"


def _mkdir_word(now: Sight) -> tuple[str, str]:
    if now.kind == "folder":
        return "satisfied", ""
    return ("unchanged", "") if now.kind == ABSENT else ("conflict", f"a_{now.kind}_is_there")


def _untouched(intent: Mapping[str, Any], now: Sight, started_at_ms: int | None) -> bool:
    """Whether the kernel's own marks show that nothing was written there since D6."""
    stored = (intent.get("dev"), intent.get("ino"), intent.get("ctimeNs"))
    if started_at_ms is None or stored != (now.dev, now.ino, now.ctime_ns):
        return False
    return is_before(now.ctime_ns, started_at_ms)


def _observation(answers: Sequence[PathAnswer], fenced: bool) -> Observation:
    words = {found.answer for found in answers}
    summary = "; ".join(f"{found.path}: {found.answer}" for found in answers)[:SUMMARY_CHARACTERS]
    evidence = _evidence(answers)
    if words == {"satisfied"}:
        return Observation(
            "satisfied",
            Grade.STRONG,
            fenced,
            summary,
            evidence,
            "that this call made them so",
        )
    if words == {"unchanged"}:
        proven = all(found.grade is Grade.PROOF for found in answers)
        reason = None if proven and fenced else "not_fenced" if proven else "unchanged_without_proof"
        grade = Grade.PROOF if proven else Grade.STRONG
        open_point = "" if reason is None else "that the write never happened or cannot come"
        return Observation("absent", grade, fenced, summary, evidence, open_point, reason)
    if "conflict" in words:
        reason = "conflict"
    else:
        reason = next((found.why for found in answers if found.answer == "unknown"), "paths_differ")
    open_point = "how far the call came"
    return Observation("unknown", Grade.NONE, fenced, summary, evidence, open_point, reason)


def _evidence(answers: Sequence[PathAnswer]) -> dict[str, Any]:
    """The per-path list within its bound; what does not fit is counted."""
    rows = [found.to_json() for found in answers]
    kept = len(rows)
    while kept:
        evidence = {"paths": rows[:kept], "more": len(rows) - kept}
        if len(json.dumps(evidence).encode()) <= EVIDENCE_BYTES:
            return evidence
        kept -= 1
    return {"paths": [], "more": len(rows)}
