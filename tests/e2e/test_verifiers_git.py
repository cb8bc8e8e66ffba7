"""A git command that its agent never saw the end of, looked up by the next one: C05 with real processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cli_world import World, wait_for

from surefoot.testing.crash import supervisors

DONE = {"text": "All finished."}
COMMIT = 'git commit -m "add the parser"'


def git(world: World, *arguments: str, folder: Path | None = None) -> str:
    ran = subprocess.run(
        ["git", *arguments],
        cwd=folder or world.project,
        env=world.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip()


@pytest.fixture
def staged(world: World) -> World:
    """A project with one commit, and a change that is staged."""
    (world.home / ".gitconfig").write_text("[user]\nname = T\nemail = t@example.org\n")
    (world.project / "a.txt").write_text("one")
    git(world, "add", "a.txt")
    git(world, "commit", "-qm", "first")
    (world.project / "a.txt").write_text("two")
    git(world, "add", "a.txt")
    return world


def hook(world: World, name: str, text: str) -> None:
    path = world.project / ".git/hooks" / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def holders(world: World) -> list[int]:
    """Supervisors of this world's run folders, then processes that hold one open or work inside its project."""
    found = supervisors(world.home)
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, RuntimeError):
            links = [str(link.readlink()) for link in (place / "fd").iterdir()]
            inside = (place / "cwd").resolve().is_relative_to(world.project)
            if inside or any(link.startswith(f"{world.home}/sf/") for link in links):
                found.append(int(place.name))
    return found


def power_cut(world: World, run: subprocess.Popen[str]) -> None:
    """Agent, supervisor and command die at once: no supervisor is left to see its command die."""
    run.kill()

    def all_gone() -> bool:
        alive = holders(world)
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not alive

    wait_for(all_gone)
    run.communicate(timeout=120)


def interrupted(world: World, command: str = COMMIT) -> subprocess.Popen[str]:
    world.model_says({"calls": [{"name": "shell", "args": {"command": command}}]}, DONE)
    run = world.start("-p", "commit it", "--yolo")
    wait_for((world.project / "started").exists)
    return run


def only_call(world: World) -> dict[str, Any]:
    (call,) = json.loads(world.run("recover", "list", "--json").stdout)["calls"]
    return dict(call)


def test_case_c05_a_commit_that_landed_before_the_crash_is_found_and_the_run_goes_on(staged: World) -> None:
    hook(staged, "post-commit", "touch started; exec sleep 600")
    power_cut(staged, interrupted(staged))
    assert git(staged, "log", "-1", "--format=%s") == "add the parser"
    listed = staged.run("recover", "list")
    for lie in ("failed", "cancelled", "not run", "rejected"):
        assert lie not in listed.stdout
    staged.model_says(DONE)
    again = staged.run("-c", "-p", "go on", "--output-format", "stream-json")
    assert again.returncode == 0, again.stderr
    assert staged.run("recover", "list", "--exit-code").returncode == 0, "what is proven is no longer open"
    assert git(staged, "rev-list", "--count", "HEAD") == "2", "nothing was committed twice"


def test_case_c05_what_was_proven_is_told_with_its_commit(staged: World) -> None:
    hook(staged, "post-commit", "touch started; exec sleep 600")
    power_cut(staged, interrupted(staged))
    attempt = only_call(staged)["attemptId"]
    staged.run("recover", "inspect", attempt)
    (call,) = json.loads(staged.run("recover", "show", attempt, "--json").stdout)["calls"]
    found = call["inspection"]
    assert (found["state"], found["grade"], found["verifier"]) == ("present", "proof", "git")
    assert found["evidence"]["commit"] == git(staged, "rev-parse", "HEAD")
    assert call["overlays"] == ["proven"] and not call["open"]


def test_tr_109_a_commit_stopped_before_it_landed_is_absent_and_fenced(staged: World) -> None:
    hook(staged, "pre-commit", "touch started; exec sleep 600")
    run = interrupted(staged)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=120)
    wait_for(lambda: not holders(staged))
    looked = json.loads(staged.run("recover", "inspect", only_call(staged)["attemptId"], "--json").stdout)
    found = looked["calls"][0]["inspection"]
    assert (found["state"], found["verifier"]) == ("absent_fenced", "git"), found


def test_tr_100_a_commit_whose_supervisor_died_too_is_never_fenced(staged: World) -> None:
    hook(staged, "pre-commit", "touch started; exec sleep 600")
    power_cut(staged, interrupted(staged))
    looked = json.loads(staged.run("recover", "inspect", only_call(staged)["attemptId"], "--json").stdout)
    found = looked["calls"][0]["inspection"]
    assert (found["state"], found["reason"]) == ("unknown", "not_fenced")


def test_tr_103_a_push_is_looked_up_far_and_found_at_the_remote(staged: World) -> None:
    remote = staged.home / "remote.git"
    git(staged, "init", "-q", "--bare", str(remote))
    (remote / "hooks/post-receive").write_text(
        f"#!/bin/sh\ntouch '{staged.project}/started'; exec sleep 600\n"
    )
    (remote / "hooks/post-receive").chmod(0o755)
    git(staged, "remote", "add", "origin", str(remote))
    git(staged, "commit", "-qm", "add the parser")
    branch = git(staged, "branch", "--show-current")
    power_cut(staged, interrupted(staged, f"git push origin {branch}"))
    assert git(staged, "rev-parse", branch, folder=remote) == git(staged, "rev-parse", "HEAD")
    call = only_call(staged)
    assert call.get("inspection") is None, "opening and listing ask no remote"
    looked = json.loads(staged.run("recover", "inspect", call["attemptId"], "--json").stdout)
    found = looked["calls"][0]["inspection"]
    assert (found["state"], found["grade"]) == ("present", "strong")
    assert staged.run("recover", "list", "--exit-code").returncode == 3, "a person decides"


def test_tr_110_a_general_command_has_no_verifier_and_the_inspection_says_so(staged: World) -> None:
    power_cut(staged, interrupted(staged, "touch started; sleep 600; git commit -m x"))
    looked = json.loads(staged.run("recover", "inspect", only_call(staged)["attemptId"], "--json").stdout)
    found = looked["calls"][0]["inspection"]
    assert (found["state"], found["reason"], found["verifier"]) == ("unknown", "no_verifier", "process")
    assert "Nothing can look up what a shell command did" in found["summary"]


def test_tr_135_a_commit_proven_absent_and_fenced_is_retried_once_by_a_person(staged: World) -> None:
    hook(staged, "pre-commit", "touch started; exec sleep 600")
    run = interrupted(staged)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=120)
    wait_for(lambda: not holders(staged))
    (staged.project / ".git/hooks/pre-commit").unlink()
    (staged.project / ".git/index.lock").unlink(missing_ok=True)
    (staged.home / "sf/config.toml").write_text('[permissions]\nallow = ["Bash(git commit *)"]\n')
    staged.more["SUREFOOT_TOOL_RECOVERY_RETRY"] = "1"
    attempt = only_call(staged)["attemptId"]
    looked = json.loads(staged.run("recover", "inspect", attempt, "--json").stdout)
    inspection = looked["calls"][0]["inspectionId"]
    done = staged.run("recover", "retry", attempt, "--inspection", inspection)
    assert done.returncode == 0, done.stderr + done.stdout
    wait_for(lambda: git(staged, "rev-list", "--count", "HEAD") == "2")
    again = staged.run("recover", "retry", attempt, "--inspection", inspection)
    assert "already_resolved" in again.stderr and git(staged, "rev-list", "--count", "HEAD") == "2"


def test_tr_135_a_general_command_is_not_retried_for_want_of_a_verifier(staged: World) -> None:
    run = interrupted(staged, "touch started; sleep 600; git commit -m x")
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=120)
    wait_for(lambda: not holders(staged))
    staged.more["SUREFOOT_TOOL_RECOVERY_RETRY"] = "1"
    attempt = only_call(staged)["attemptId"]
    looked = json.loads(staged.run("recover", "inspect", attempt, "--json").stdout)
    inspection = looked["calls"][0]["inspectionId"]
    refused = staged.run("recover", "retry", attempt, "--inspection", inspection, "--json")
    assert json.loads(refused.stdout)["code"] == "retry_verifier_missing", refused.stdout
