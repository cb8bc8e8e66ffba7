"""The git verifier: did a commit, tag, branch or push of ours happen?

Owns: the row `git` of TR-109, from the record made before the call and the repository as it is now.
Does not own: the record (`tools`), reading git (`verifiers.repository`), whether the command's
processes are gone (the caller says so with `fenced`), what follows (`core.recovery`). Reads only.

A commit counts only when a reflog shows that it was put on the branch after the record was made. A
push is never proven by the machine that pushed: others push too, so a ref that holds the object is
a strong sign and no proof.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from surefoot.core.model import EffectClass, Grade, Receipt
from surefoot.machine import boot_ms
from surefoot.verifiers.port import SUMMARY_CHARACTERS, Deadline, Observation
from surefoot.verifiers.repository import (
    READS,
    Moved,
    Repository,
    Unreadable,
    common_folder,
    index_digest,
    listing_digest,
    log_mark,
    log_since,
    message_digest,
    place_mark,
    scrubbed,
)
from surefoot.verifiers.sameness import as_far_as_told, identity
from surefoot.verifiers.sight import is_before

Variables = Callable[[Path], Mapping[str, str] | None]
"""The variables git is read in at a directory; None when a program of the project cannot be kept out."""
SinceEnd = Callable[[Receipt], int | None]
"""Milliseconds since a command's last process was proven gone; None when nobody can tell."""
_WALKED = 1000
_ASKED_SECONDS = 5.0


class GitVerifier:
    """Looks for one recorded git write; implements `verifiers.port.EffectVerifier`."""

    name = "git"
    operations = tuple((f"git {name}", EffectClass.READ_ONLY) for name in sorted(READS))

    def __init__(
        self,
        variables: Variables,
        *,
        far: bool = False,
        since_end: SinceEnd = lambda call: None,
        commit_window_seconds: float | None = None,
    ) -> None:
        self.far = far
        """True for a push: it asks the remote."""
        self._variables = variables
        self._since_end = since_end
        self._window = commit_window_seconds
        """How long after the connection ended the far side may still take a push; None is not declared."""

    def recovery_scope(self, call: Receipt) -> str:
        """The repository on this host, or the address a push goes to, as they are now.

        Raises:
            LookupError: the receipt holds no record, or its repository is gone.
        """
        record = _record_of(call)
        directory = Path(str(record["directory"]))
        if record["kind"] == "push":
            until = boot_ms() + int(_ASKED_SECONDS * 1000)
            pushed = record["push"]
            address = pushed["url"]
            if pushed["remote"] is not None:
                address = self._repository(directory, until).push_address(pushed["remote"])
            if address is None:
                raise LookupError("the remote is no longer known")
            return _words("push", scrubbed(address))
        common = common_folder(directory)
        if common is None:
            raise LookupError("the repository is gone")
        return _words(socket.gethostname(), str(common), *(identity(common) or ()))

    def inspect_effect(self, key: str, call: Receipt, deadline: Deadline, *, fenced: bool) -> Observation:
        """Look for the recorded write. Git keeps no key, so `key` is not used."""
        record = _record_of(call)
        try:
            repository = self._repository(Path(str(record["directory"])), deadline.boot_ms)
            if record["kind"] == "push":
                return self._look_for_push(repository, record, call, fenced=fenced)
            if record["kind"] == "commit":
                found = _look_for_commit(repository, record, fenced=fenced)
            else:
                found = _look_for_ref(repository, record, call, fenced=fenced)
            return as_far_as_told(found, identity(Path(record["common"][0])))
        except Unreadable as error:
            return _unknown(str(error).partition(":")[0], "Git could not be read.")

    def _repository(self, directory: Path, until_boot_ms: int) -> Repository:
        variables = self._variables(directory) if directory.is_dir() else None
        if variables is None:
            raise Unreadable("no_reading_environment")
        return Repository(directory, variables, until_boot_ms)

    # A push -----------------------------------------------------------------------------------

    def _look_for_push(
        self, repository: Repository, record: Mapping[str, Any], call: Receipt, *, fenced: bool
    ) -> Observation:
        pushed = record["push"]
        address = repository.push_address(pushed["remote"]) if pushed["remote"] else pushed["url"]
        elapsed = self._since_end(call) if fenced else None  # what is over before refs are listed adds none
        listed = None if address is None else repository.remote_refs(address)
        if listed is None:
            return _unknown("remote_unreachable", f"{pushed['url']} could not be asked.")
        updates = pushed["updates"]
        seen = [{**update, "now": listed.get(update["ref"])} for update in updates]
        evidence = {"url": pushed["url"], "refs": seen}
        names = ", ".join(str(update["ref"]) for update in updates)
        if all(_holds(repository, one["now"], one["object"]) for one in seen):
            if pushed["listing"] is not None and all(
                _holds(repository, one["before"], one["object"]) for one in seen
            ):
                said = f"The remote held what was to be pushed to {names} before."
                return Observation("satisfied", Grade.STRONG, fenced, said, evidence, _NOT_BY_US)
            said = f"The remote's {names} holds the pushed commit."
            return Observation("present", Grade.STRONG, fenced, said, evidence, _NOT_BY_US)
        if pushed["listing"] is None:
            return _unknown("no_listing_before", "What the remote held before is not known.", evidence)
        if listing_digest(listed) != pushed["listing"]:
            return _unknown("remote_changed", "The remote's refs changed since, in another way.", evidence)
        return self._push_is_absent(elapsed, names, evidence)

    def _push_is_absent(self, elapsed: int | None, names: str, evidence: Mapping[str, Any]) -> Observation:
        said = f"The remote lists every ref as before; {names} does not hold the commit."
        evidence = {**evidence, "commitWindowSeconds": self._window, "msSinceEnd": elapsed}
        if self._window is None:
            return Observation("absent", Grade.STRONG, False, said, evidence, _MAY_COME, "no_commit_window")
        if elapsed is None or elapsed < self._window * 1000:
            return Observation("absent", Grade.STRONG, False, said, evidence, _MAY_COME, "commit_window_open")
        return Observation("absent", Grade.PROOF, True, said, evidence)


_NOT_BY_US = "that this call put it there"
_MAY_COME = "that a push which has reached the remote cannot still be taken there"


def _record_of(call: Receipt) -> Mapping[str, Any]:
    record = (call.process or {}).get("git")
    if not isinstance(record, Mapping) or record.get("version") != 1:
        raise LookupError("no record of a git command stands on this receipt")
    return record


def _words(*parts: Any) -> str:
    return json.dumps(["git", *parts], ensure_ascii=False, separators=(",", ":"))


def _unknown(reason: str, summary: str, evidence: Mapping[str, Any] | None = None) -> Observation:
    return Observation(
        "unknown", Grade.NONE, False, summary[:SUMMARY_CHARACTERS], evidence or {}, reason=reason
    )


def _holds(repository: Repository, found: str | None, wanted: str) -> bool:
    """Whether a ref is, or contains, an object. One we do not know here cannot be said to contain it."""
    if found is None:
        return False
    return found == wanted or repository.descends(found, wanted)


# A commit -------------------------------------------------------------------------------------


def _look_for_commit(repository: Repository, record: Mapping[str, Any], *, fenced: bool) -> Observation:
    wanted = record["commit"]
    now = _Now(repository, record)
    moves = log_since(now.log_path, now.log_mark_before) if now.logged else None
    provable = wanted["tree"] is not None and wanted["message"] is not None
    if provable and moves is not None:
        for at, move in enumerate(moves):
            landed = _landed(repository, record, move, moves[at + 1 :], now)
            if landed and _is_it(repository, move.new, wanted):
                said = (
                    f"Commit {move.new[:12]} has the recorded tree and message and follows the recorded head."
                )
                return Observation("present", Grade.PROOF, fenced, said, now.evidence(commit=move.new))
    if provable and moves is None:
        found = _walked(repository, record, wanted, now)
        if found is not None:
            said = f"Commit {found[:12]} has the recorded tree and message."
            open_point = "that it was made here after the call began"
            return Observation(
                "present", Grade.STRONG, fenced, said, now.evidence(commit=found), open_point, "no_reflog"
            )
    if not now.as_before:
        return _unknown(
            "changed",
            "The branch moved since, and no commit fits the recorded tree and message.",
            now.evidence(),
        )
    if wanted["adds"] and index_digest(Path(wanted["indexPath"])) != wanted["index"]:
        return _unknown(
            "index_changed", "No commit was made, but files were staged since.", now.evidence(index="changed")
        )
    return now.absent("Head, branch and reflog are as before; no commit was made.", fenced=fenced)


def _landed(
    repository: Repository, record: Mapping[str, Any], move: Moved, later: list[Moved], now: _Now
) -> bool:
    """Whether this reflog line is a commit that became part of the branch, not a line of one that failed."""
    if not move.message.startswith("commit") or not repository.descends(move.new, record["head"]):
        return False
    if any(after.old == move.new for after in later):
        return True
    return now.head is not None and repository.descends(now.head, move.new)


def _is_it(repository: Repository, oid: str, wanted: Mapping[str, Any]) -> bool:
    commit = repository.commit(oid)
    if commit is None or commit.tree != wanted["tree"]:
        return False
    return message_digest(commit.message) == str(wanted["message"])


def _walked(
    repository: Repository, record: Mapping[str, Any], wanted: Mapping[str, Any], now: _Now
) -> str | None:
    """The same among what the branch gained, where no reflog is kept."""
    if now.head is None or now.head == record["head"]:
        return None
    gained = [now.head] if record["head"] is None else [f"{record['head']}..{now.head}"]
    listed = repository.ask("rev-list", f"--max-count={_WALKED}", *gained)
    return next((oid for oid in (listed or "").split() if _is_it(repository, oid, wanted)), None)


class _Now:
    """Head, branch and reflogs as they are, beside what was recorded of them."""

    def __init__(self, repository: Repository, record: Mapping[str, Any]) -> None:
        self._repository = repository
        ref = record["ref"]
        self.ref = repository.head_ref()
        self.head = repository.oid("HEAD" if ref is None else ref)
        self.log_path = repository.log_path("HEAD" if ref is None else ref)
        self.log_mark_before = record["headLog"] if ref is None else record["refLog"]
        marks = {"HEAD": record["headLog"], **({} if ref is None else {ref: record["refLog"]})}
        self.logs_as_before = all(log_mark(repository.log_path(name)) == mark for name, mark in marks.items())
        self.logged = self.log_mark_before is not None or record["head"] is None
        """Whether a reflog is kept at all; a branch without a commit has none yet."""
        self.as_before = (self.head, self.ref) == (record["head"], ref) and self.logs_as_before

    def evidence(self, **more: Any) -> dict[str, Any]:
        """What was seen, for the card."""
        return {
            "head": self.head,
            "ref": self.ref,
            "logsAsBefore": self.logs_as_before,
            **more,
            **self._locks(),
        }

    def _locks(self) -> dict[str, Any]:
        """Lock files a killed git leaves; they say that it was in the middle of something."""
        names = ["index.lock", "HEAD.lock", *([] if self.ref is None else [f"{self.ref}.lock"])]
        paths = [self._repository.ask("rev-parse", "--git-path", name) for name in names]
        left = [path for path in paths if path and (self._repository.directory / path).exists()]
        return {"locks": left} if left else {}

    def absent(self, summary: str, *, fenced: bool) -> Observation:
        """Nothing moved: proof of absence where reflogs are kept."""
        if not self.logged:
            open_point = "a commit that was made and taken back, since no reflog is kept here"
            return Observation(
                "absent", Grade.STRONG, fenced, summary, self.evidence(), open_point, "no_reflog"
            )
        reason = None if fenced else "not_fenced"
        open_point = "" if fenced else "that the command cannot still commit"
        return Observation("absent", Grade.PROOF, fenced, summary, self.evidence(), open_point, reason)


# A tag or branch ------------------------------------------------------------------------------


def _look_for_ref(
    repository: Repository, record: Mapping[str, Any], call: Receipt, *, fenced: bool
) -> Observation:
    named = record["named"]
    ref, found = named["ref"], repository.oid(named["ref"])
    now = _Now(repository, record)
    evidence = {"name": ref, "object": found, "before": named["before"]}
    if found is not None and _names(repository, found, named):
        if found == named["before"]:
            said = f"{ref} named this object before already."
            return Observation(
                "satisfied", Grade.STRONG, fenced, said, evidence, "that this call did it; it was so before"
            )
        return Observation("present", Grade.PROOF, fenced, f"{ref} names the recorded object.", evidence)
    if found != named["before"] or not now.as_before:
        return _unknown("changed", f"{ref} or the checked out branch changed in another way.", evidence)
    said = f"{ref} is as before."
    if not _untouched(repository, record, call):
        open_point = f"whether it was made and taken away again; something was written beside {ref}"
        return Observation("absent", Grade.STRONG, fenced, said, evidence, open_point, "place_touched")
    reason = None if fenced else "not_fenced"
    return Observation("absent", Grade.PROOF, fenced, said, evidence, reason=reason)


def _names(repository: Repository, found: str, named: Mapping[str, Any]) -> bool:
    if not named["annotated"]:
        return bool(found == named["object"])
    text = repository.ask("cat-file", "tag", found)
    if text is None or named["message"] is None:
        return False
    head, _, message = text.partition("\n\n")
    signed = message.partition("-----BEGIN ")[0]
    same = message_digest(signed) == str(named["message"])
    return same and head.startswith(f"object {named['object']}\n")


def _untouched(repository: Repository, record: Mapping[str, Any], call: Receipt) -> bool:
    """Whether the kernel's marks show that no ref was made or taken away beside this one since D6."""
    named = record["named"]
    common = Path(record["common"][0])
    if log_mark(repository.log_path(named["ref"])) != named["log"]:
        return False
    if place_mark(common, named["ref"]) != named["place"] or call.started_at is None:
        return False
    stamps = [mark[3] for mark in named["place"].values() if mark is not None]
    return all(is_before(stamp, call.started_at) for stamp in stamps)
