"""Commits, tags and branches looked up afterwards in real repositories: the row `git` of TR-109."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from git_world import LATER, Repo, seen, verifier_of

from surefoot.core.model import EffectClass, Grade
from surefoot.runtime.tools import observe
from surefoot.tools.classify.git_writes import git_write
from surefoot.tools.processes.git_record import git_record, git_variables
from surefoot.verifiers import sameness
from surefoot.verifiers.clock import boot_ms
from surefoot.verifiers.git import GitVerifier
from surefoot.verifiers.port import Deadline, EffectVerifier, WriteAttempted
from surefoot.verifiers.repository import Repository

COMMIT = 'git commit -m "second thing"'


def test_the_git_verifier_fits_the_port_and_only_reads() -> None:
    verifier: EffectVerifier = GitVerifier(git_variables)
    assert verifier.name == "git" and verifier.far is False
    assert all(kind is EffectClass.READ_ONLY for _, kind in GitVerifier.operations)


# Commits: present -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        COMMIT,
        "git commit -qam 'second thing'",
        "git commit -m 'second thing' -m 'a paragraph  ' -m '# no comment'",
        "git commit -F ../message.txt",
        "git add -A && git commit -m 'second thing' 2>&1",
        'git add -A && git commit -m "$(cat <<\'EOF\'\nsecond "thing" $HOME `x`\n\nmore (words)\nEOF\n)"',
        "git add g.txt && git commit --no-verify -m 'second thing'",
        "cd sub && git -C .. commit --allow-empty -m 'second thing'",
    ],
)
def test_tr_109_a_commit_that_happened_is_present_with_proof(repo: Repo, line: str) -> None:
    (repo.folder.parent / "message.txt").write_text("\n\nsecond thing   \n\n\nmore\n\n")
    (repo.folder / "sub").mkdir()
    repo.write("f.txt", "changed", add="-A" not in line and "-qam" not in line)
    repo.write("g.txt", "new", add=not line.startswith("git add"))
    call = repo.stood(line)
    assert repo.run(line) == 0
    found = seen(call)
    assert (found.state, found.grade) == ("present", Grade.PROOF)
    assert found.evidence["commit"] == repo.git("rev-parse", "HEAD")


def test_tr_109_the_first_commit_of_a_repository_is_proven(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "new")
    repo.folder.mkdir()
    repo.git("init", "-q")
    repo.write("a", "a")
    call = repo.stood(COMMIT)
    assert seen(call).state == "absent"
    repo.run(COMMIT)
    assert (seen(call).state, seen(call).grade) == ("present", Grade.PROOF)


def test_tr_109_a_commit_is_proven_also_when_more_came_after_it_or_it_was_taken_back(repo: Repo) -> None:
    repo.write("g.txt", "new")
    call = repo.stood(COMMIT)
    repo.run(COMMIT)
    ours = repo.git("rev-parse", "HEAD")
    repo.commit("third")
    assert seen(call).evidence["commit"] == ours
    repo.git("reset", "-q", "--hard", "HEAD~2")
    found = seen(call)
    assert (found.state, found.grade) == ("present", Grade.PROOF)


def test_tr_109_a_commit_on_a_detached_head_and_in_a_linked_work_tree_is_proven(repo: Repo) -> None:
    repo.git("checkout", "-q", "--detach")
    repo.write("g.txt", "new")
    call = repo.stood(COMMIT)
    repo.run(COMMIT)
    assert seen(call).grade is Grade.PROOF
    other = Repo(repo.folder.parent / "tree")
    repo.git("worktree", "add", "-q", str(other.folder), "-b", "side")
    other.write("h.txt", "new")
    call = other.stood(COMMIT)
    other.run(COMMIT)
    assert (seen(call).state, seen(call).grade) == ("present", Grade.PROOF)


# Commits: injected wrong answers ----------------------------------------------------------------


def test_tr_109_another_commit_with_the_same_message_proves_nothing(repo: Repo) -> None:
    repo.write("g.txt", "new")
    call = repo.stood(COMMIT)
    repo.write("g.txt", "other content")
    repo.run(COMMIT)
    found = seen(call)
    assert (found.state, found.reason) == ("unknown", "changed")


def test_tr_109_the_same_tree_under_another_message_proves_nothing(repo: Repo) -> None:
    repo.write("g.txt", "new")
    call = repo.stood(COMMIT)
    repo.run("git commit -m 'something else'")
    assert seen(call).state == "unknown"


def test_tr_109_an_older_twin_that_is_only_merged_in_proves_nothing(repo: Repo) -> None:
    repo.git("checkout", "-qb", "side")
    repo.write("g.txt", "new")
    repo.run(COMMIT)
    repo.git("checkout", "-q", "main")
    repo.write("g.txt", "new")
    call = repo.stood(COMMIT)
    repo.git("reset", "-q", "--hard")
    repo.git("merge", "-q", "--ff-only", "side")
    found = seen(call)
    assert (found.state, found.reason) == ("unknown", "changed")


def test_tr_109_a_line_in_the_reflog_without_the_branch_proves_nothing(repo: Repo) -> None:
    repo.write("g.txt", "new")
    call = repo.stood(COMMIT)
    before = repo.git("rev-parse", "HEAD")
    tree = repo.git("write-tree")
    made = repo.git("commit-tree", tree, "-p", before, "-m", "second thing")
    with (repo.folder / ".git/logs/refs/heads/main").open("a") as log:
        log.write(f"{before} {made} T <t@example.org> 1 +0000\tcommit: second thing\n")
    found = seen(call)
    assert found.state == "unknown", "git died between its log and its ref: the branch never had the commit"


def test_tr_109_a_hook_that_changes_the_commit_leaves_it_unproven(repo: Repo) -> None:
    hook = repo.folder / ".git/hooks/commit-msg"
    hook.write_text("#!/bin/sh\necho 'Change-Id: 1' >> $1\n")
    hook.chmod(0o755)
    repo.write("g.txt", "new")
    call = repo.stood(COMMIT)
    assert repo.run(COMMIT) == 0
    assert seen(call).state == "unknown"


def test_tr_109_without_a_reflog_a_fitting_commit_is_a_strong_sign(repo: Repo) -> None:
    repo.git("config", "core.logAllRefUpdates", "false")
    for log in (repo.folder / ".git/logs").rglob("*"):
        if log.is_file():
            log.unlink()
    repo.write("g.txt", "new")
    call = repo.stood(COMMIT)
    assert (seen(call).state, seen(call).grade) == ("absent", Grade.STRONG)
    repo.run(COMMIT)
    found = seen(call)
    assert (found.state, found.grade) == ("present", Grade.STRONG)


# Commits: absent --------------------------------------------------------------------------------


def test_tr_109_a_commit_that_never_came_is_absent_and_fenced(repo: Repo) -> None:
    repo.write("g.txt", "new")
    call = repo.stood(COMMIT)
    found = seen(call)
    assert (found.state, found.grade, found.fenced) == ("absent", Grade.PROOF, True)
    assert seen(call, fenced=False).fenced is False and seen(call, fenced=False).reason == "not_fenced"


def test_tr_109_a_commit_refused_by_a_hook_is_absent(repo: Repo) -> None:
    hook = repo.folder / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    repo.write("g.txt", "new")
    call = repo.stood(COMMIT)
    assert repo.run(COMMIT) == 1
    assert (seen(call).state, seen(call).grade) == ("absent", Grade.PROOF)


def test_tr_109_a_commit_made_and_taken_back_by_another_name_is_not_absent(repo: Repo) -> None:
    repo.write("g.txt", "new")
    call = repo.stood("git commit --amend -m 'second thing'")
    before = repo.git("rev-parse", "HEAD")
    repo.run("git commit --amend -m 'second thing'")
    repo.git("reset", "-q", "--hard", before)
    assert seen(call).state == "unknown", "head is as before; the top of the reflog is not"


def test_tr_109_a_late_commit_is_seen_by_the_next_look(repo: Repo) -> None:
    """The line is killed while its hook holds it; what a hook left behind commits later."""
    repo.write("g.txt", "new")
    call = repo.stood(COMMIT)
    gate = repo.folder.parent / "gate"
    os.mkfifo(gate)
    late = subprocess.Popen(
        ["bash", "-c", f"read _ < '{gate}'; {COMMIT}"], cwd=repo.folder, stdout=subprocess.DEVNULL
    )
    first = seen(call, fenced=False)
    assert (first.state, first.fenced) == ("absent", False), "what may still come is never absent and fenced"
    gate.write_text("\n")
    assert late.wait(120) == 0
    assert (seen(call).state, seen(call).grade) == ("present", Grade.PROOF)


def test_tr_109_a_git_that_was_killed_in_its_hook_is_absent_with_its_lock_shown(repo: Repo) -> None:
    hook = repo.folder / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\ntouch started\nexec sleep 600\n")
    hook.chmod(0o755)
    repo.write("g.txt", "new")
    line = "git commit -am 'second thing'"
    call = repo.stood(line)
    process = subprocess.Popen(["bash", "-c", line], cwd=repo.folder, start_new_session=True)
    until = time.monotonic() + 90
    while not (repo.folder / "started").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    found = seen(call)
    assert (found.state, found.grade, found.fenced) == ("absent", Grade.PROOF, True)
    assert any(str(lock).endswith("index.lock") for lock in found.evidence["locks"])


def test_tr_109_files_staged_by_the_same_line_keep_it_from_being_absent(repo: Repo) -> None:
    line = "git add g.txt && git commit -m 'second thing'"
    repo.write("g.txt", "new", add=False)
    call = repo.stood(line)
    assert seen(call).state == "absent"
    repo.git("add", "g.txt")
    assert (seen(call).state, seen(call).reason) == ("unknown", "index_changed")


# Tags and branches ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "git tag v1",
        "git tag v1 HEAD~1",
        "git tag -a v1 -m 'the first'",
        "git branch side",
        "git branch side HEAD~1",
        "git checkout -b side",
        "git switch -c side",
    ],
)
def test_tr_109_a_tag_or_branch_is_proven_by_what_its_ref_names(repo: Repo, line: str) -> None:
    repo.commit("second")
    repo.aged()
    call = repo.stood(line)
    found = seen(call)
    assert (found.state, found.grade, found.fenced) == ("absent", Grade.PROOF, True)
    assert seen(call, fenced=False).fenced is False
    assert repo.run(line) == 0
    assert (seen(call).state, seen(call).grade) == ("present", Grade.PROOF)


def test_tr_109_a_tag_on_another_object_or_with_another_message_is_not_ours(repo: Repo) -> None:
    repo.commit("second")
    call = repo.stood("git tag v1")
    repo.git("tag", "v1", "HEAD~1")
    assert seen(call).state == "unknown"
    call = repo.stood("git tag -a v2 -m ours")
    repo.git("tag", "-a", "v2", "-m", "theirs")
    assert seen(call).state == "unknown"


def test_tr_109_a_tag_that_was_there_before_proves_nothing(repo: Repo) -> None:
    repo.git("tag", "v1")
    found = seen(repo.stood("git tag v1"))
    assert (found.state, found.grade) == ("satisfied", Grade.STRONG)


def test_tr_109_a_tag_made_and_taken_away_is_not_proven_absent(repo: Repo) -> None:
    repo.aged()
    call = repo.stood("git tag v1")
    repo.git("tag", "v1")
    repo.git("tag", "-d", "v1")
    found = seen(call)
    assert (found.state, found.grade, found.reason) == ("absent", Grade.STRONG, "place_touched")


# Scope, limits, reading ---------------------------------------------------------------------------


def test_tr_99_a_repository_born_at_another_time_is_another_one_with_the_same_inode(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sameness, "born_ns", lambda path, inode: 1)
    call = repo.stood(COMMIT)
    assert observe(verifier_of(call), call, LATER, fenced=True).state == "absent"
    monkeypatch.setattr(sameness, "born_ns", lambda path, inode: 2)
    found = observe(verifier_of(call), call, LATER, fenced=True)
    assert (found.state, found.reason) == ("unknown", "scope_changed")


def test_tr_99_no_commit_is_not_proven_where_no_time_of_birth_is_kept(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sameness, "born_ns", lambda path, inode: None)
    found = seen(repo.stood(COMMIT))
    assert (found.state, found.grade, found.reason) == ("absent", Grade.STRONG, "identity_unsure")


def test_tr_99_a_repository_put_in_the_place_of_another_is_another_scope(repo: Repo) -> None:
    call = repo.stood(COMMIT)
    (repo.folder / ".git").rename(repo.folder / "old")
    repo.git("init", "-q")
    found = observe(verifier_of(call), call, LATER, fenced=True)
    assert (found.state, found.reason) == ("unknown", "scope_changed")


def test_tr_111_a_repository_that_is_gone_is_unknown(repo: Repo) -> None:
    call = repo.stood(COMMIT)
    repo.folder.rename(repo.folder.with_name("elsewhere"))
    found = observe(verifier_of(call), call, LATER, fenced=True)
    assert found.state == "unknown"


def test_tr_104_a_look_past_its_deadline_is_unknown(repo: Repo) -> None:
    call = repo.stood(COMMIT)
    late = verifier_of(call).inspect_effect("k", call, Deadline(boot_ms() - 1), fenced=True)
    assert (late.state, late.reason) == ("unknown", "verifier_timeout")


def test_tr_102_a_receipt_without_a_record_is_an_answer_of_its_own(repo: Repo) -> None:
    call = dataclasses.replace(repo.stood(COMMIT), process={"git": {"version": 99}})
    assert observe(verifier_of(repo.stood(COMMIT)), call, LATER, fenced=True).reason == "verifier_raised"


@pytest.mark.parametrize(
    "arguments",
    [("commit", "-m", "x"), ("config", "user.name", "x"), ("remote", "add", "a", "b"), ("symbolic-ref", "HEAD", "x"),
     ("update-ref", "x", "y"), ("gc",), ("config", "--unset", "a.b")],
)  # fmt: skip
def test_tr_103_a_repository_is_given_to_read_and_refuses_to_write(
    repo: Repo, arguments: tuple[str, ...]
) -> None:
    repository = Repository(repo.folder, dict(os.environ), boot_ms() + 5000)
    with pytest.raises(WriteAttempted):
        repository.ask(*arguments)


def marks(path: Path) -> tuple[bytes, int]:
    """Content and time; git renews the time of an object it would have written, so that it is not pruned."""
    return path.read_bytes(), 0 if "objects" in path.parts else path.stat().st_mtime_ns


def test_tr_103_recording_and_looking_change_nothing_and_start_no_program_of_the_project(repo: Repo) -> None:
    (repo.folder / ".gitattributes").write_text("*.txt filter=evil\n")
    trap = f"touch {repo.folder.parent}/ran; cat"
    for key in ("filter.evil.clean", "core.fsmonitor", "core.sshCommand", "gpg.program", "diff.external"):
        repo.git("config", key, trap)
    repo.write("g.txt", "new", add=False)
    watched = [path for path in (repo.folder / ".git").rglob("*") if path.is_file()]
    before = [marks(path) for path in watched]
    for line in (
        COMMIT,
        "git add -A && git commit -m x",
        "git commit -am x",
        "git tag -a t -m t",
        "git branch b",
    ):
        call = repo.stood(line)
        assert seen(call).state == "absent"
    after = {path for path in (repo.folder / ".git").rglob("*") if path.is_file()}
    assert after == set(watched)
    assert [marks(path) for path in watched] == before
    assert not (repo.folder.parent / "ran").exists()


def test_tr_109_no_record_is_made_where_the_environment_leads_git_elsewhere(repo: Repo) -> None:
    wanted = git_write(COMMIT)
    assert wanted is not None
    assert git_record(wanted, repo.folder, {**os.environ, "GIT_INDEX_FILE": "/tmp/other"}) is None
    assert git_record(wanted, repo.folder.parent, os.environ) is None
