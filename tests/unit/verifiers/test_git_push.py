"""A push looked up afterwards at a real bare remote: strong at most, absent only past its commit window."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from git_world import LATER, Repo, seen, verifier_of

from surefoot.core.model import Grade
from surefoot.runtime.tools import observe
from surefoot.verifiers.repository import Repository

PUSH = "git push origin main"
PUSHES = [
    PUSH,
    "git push",
    "git push -u origin main",
    "git push --force-with-lease origin HEAD:main",
    "git push origin main:refs/heads/main 2>&1",
]


def over(ms: int, window: float | None = 5.0) -> dict[str, object]:
    """The connection ended so long ago, and the owner declared this window."""
    return {"since_end": lambda call: ms, "commit_window_seconds": window}


@pytest.mark.parametrize("line", PUSHES)
def test_tr_109_a_push_that_arrived_is_present_and_strong_never_proof(
    repo: Repo, remote: Repo, line: str
) -> None:
    repo.commit("second")
    call = repo.stood(line)
    assert verifier_of(call).far is True
    before = seen(call, **over(10_000))
    assert (before.state, before.grade, before.fenced) == ("absent", Grade.PROOF, True)
    assert repo.run(line) == 0
    found = seen(call)
    assert (found.state, found.grade) == ("present", Grade.STRONG)
    assert "that this call put it there" in found.does_not_prove


def test_tr_109_a_ref_that_contains_the_pushed_object_is_present(repo: Repo, remote: Repo) -> None:
    repo.commit("second")
    call = repo.stood(PUSH)
    repo.commit("third")
    repo.run(PUSH)
    assert (seen(call).state, seen(call).grade) == ("present", Grade.STRONG)


def test_tr_109_a_tag_and_a_new_branch_are_pushed_and_found(repo: Repo, remote: Repo) -> None:
    repo.git("tag", "v1")
    repo.git("branch", "side")
    for line in ("git push origin v1", "git push origin side", "git push origin side:other"):
        call = repo.stood(line)
        assert seen(call, **over(10_000)).state == "absent"
        assert repo.run(line) == 0
        assert seen(call).state == "present"


@pytest.mark.parametrize(
    ("ms", "window", "fenced", "reason"),
    [
        (10_000, None, True, "no_commit_window"),
        (4_999, 5.0, True, "commit_window_open"),
        (None, 5.0, True, "commit_window_open"),
        (10_000, 5.0, False, "commit_window_open"),
    ],
)
def test_tr_109_an_absent_push_is_fenced_by_its_window_alone_never_by_its_processes(
    repo: Repo, remote: Repo, ms: int | None, window: float | None, fenced: bool, reason: str
) -> None:
    repo.commit("second")
    call = repo.stood(PUSH)
    found = seen(call, fenced=fenced, since_end=lambda call: ms, commit_window_seconds=window)
    assert (found.state, found.grade, found.fenced, found.reason) == ("absent", Grade.STRONG, False, reason)


def test_tr_109_a_window_that_runs_out_while_refs_are_listed_was_open_when_they_were(
    repo: Repo, remote: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit("second")
    call = repo.stood(PUSH)
    since_end = [4_000]
    listing = Repository.remote_refs

    def slowly(self: Repository, address: str) -> dict[str, str] | None:
        found = listing(self, address)
        since_end[0] = 60_000  # the remote takes its time
        return found

    monkeypatch.setattr(Repository, "remote_refs", slowly)
    told = {"since_end": lambda call: since_end[0], "commit_window_seconds": 5.0}
    assert (seen(call, **told).fenced, since_end) == (False, [60_000])
    assert seen(call, **told).fenced is True


def test_tr_109_a_late_push_turns_absent_into_present(repo: Repo, remote: Repo) -> None:
    repo.commit("second")
    call = repo.stood(PUSH)
    gate = repo.folder.parent / "gate"
    os.mkfifo(gate)
    late = subprocess.Popen(["bash", "-c", f"read _ < '{gate}'; {PUSH} 2>/dev/null"], cwd=repo.folder)
    assert seen(call, fenced=False).fenced is False
    gate.write_text("\n")
    assert late.wait(120) == 0
    assert seen(call).state == "present"


def test_tr_109_what_the_remote_held_before_is_no_sign_of_this_push(repo: Repo, remote: Repo) -> None:
    found = seen(repo.stood(PUSH))
    assert (found.state, found.grade) == ("satisfied", Grade.STRONG)


def test_tr_109_a_remote_that_changed_otherwise_is_unknown(repo: Repo, remote: Repo) -> None:
    repo.commit("second")
    call = repo.stood(PUSH)
    repo.git("push", "-q", "origin", "main~1:refs/heads/theirs")
    found = seen(call, **over(10_000))
    assert (found.state, found.reason) == ("unknown", "remote_changed")


def test_tr_109_a_remote_that_cannot_be_asked_is_unknown_before_and_after(repo: Repo, remote: Repo) -> None:
    repo.commit("second")
    call = repo.stood(PUSH)
    away = remote.folder.with_name("away.git")
    remote.folder.rename(away)
    assert (seen(call).state, seen(call).reason) == ("unknown", "remote_unreachable")
    blind = repo.stood(PUSH)
    away.rename(remote.folder)
    found = seen(blind, **over(10_000))
    assert (found.state, found.reason) == ("unknown", "no_listing_before")


def test_tr_99_a_remote_that_leads_elsewhere_now_is_another_scope(repo: Repo, remote: Repo) -> None:
    repo.commit("second")
    call = repo.stood(PUSH)
    other = remote.folder.with_name("other.git")
    subprocess.run(["git", "init", "-q", "--bare", str(other)], check=True)
    repo.git("remote", "set-url", "origin", str(other))
    found = observe(verifier_of(call, **over(10_000)), call, LATER, fenced=True)
    assert (found.state, found.reason) == ("unknown", "scope_changed")
    repo.git("remote", "remove", "origin")
    assert observe(verifier_of(call), call, LATER, fenced=True).state == "unknown"


def test_tr_103_a_look_at_a_remote_starts_no_program_it_names(
    repo: Repo, remote: Repo, tmp_path: Path
) -> None:
    repo.commit("second")
    repo.git("config", "remote.origin.uploadpack", f"touch '{tmp_path}/ran'; git-upload-pack")
    call = repo.stood(PUSH)
    assert seen(call, **over(10_000)).state == "absent"
    assert not (tmp_path / "ran").exists()


def test_tr_5_an_address_keeps_no_password_on_the_receipt(repo: Repo) -> None:
    repo.git("remote", "add", "origin", "http://me:secret@127.0.0.1:9/x.git")
    call = repo.stood(PUSH)
    assert (
        "secret" not in repr(call)
        and (call.process or {})["git"]["push"]["url"] == "http://127.0.0.1:9/x.git"
    )
    assert seen(call).reason == "remote_unreachable"
