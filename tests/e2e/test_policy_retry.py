"""A policy of the owner retries a proven-absent commit in a run that nobody attends."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from pathlib import Path

import pytest
from cli_world import World, wait_for

from surefoot.testing.crash import supervisors

DONE = {"text": "All finished."}


def git(world: World, *arguments: str) -> str:
    ran = subprocess.run(
        ["git", *arguments], cwd=world.project, env=world.environ, capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()


def at_work(world: World) -> list[str]:
    """Processes that still work inside the project."""
    found = [str(pid) for pid in supervisors(world.home)]
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, RuntimeError):
            links = [str(link.readlink()) for link in (place / "fd").iterdir()]
            inside = (place / "cwd").resolve().is_relative_to(world.project)
            if inside or any(link.startswith(f"{world.home}/sf/") for link in links):
                found.append(place.name)
    return found


@pytest.mark.parametrize(("switch", "commits", "code"), [("1", "2", 0), (None, "1", 3)])
def test_tr_122_ux_36_an_unattended_resume_retries_what_a_policy_names_on_proof_and_goes_on(
    world: World, switch: str | None, commits: str, code: int
) -> None:
    (world.home / ".gitconfig").write_text("[user]\nname = T\nemail = t@example.org\n")
    (world.project / "a.txt").write_text("one")
    git(world, "add", "a.txt")
    git(world, "commit", "-qm", "first")
    (world.project / "a.txt").write_text("two")
    git(world, "add", "a.txt")
    hook = world.project / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\ntouch started; exec sleep 600\n")
    hook.chmod(0o755)
    world.model_says({"calls": [{"name": "shell", "args": {"command": 'git commit -m "add it"'}}]}, DONE)
    run = world.start("-p", "commit it", "--yolo")
    wait_for((world.project / "started").exists)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=120)
    wait_for(lambda: not at_work(world))
    hook.unlink()
    (world.project / ".git/index.lock").unlink(missing_ok=True)
    (world.home / "sf/config.toml").write_text('[recovery]\npolicy.shell = "retry"\n')
    if switch is not None:
        world.more["SUREFOOT_TOOL_RECOVERY_RETRY"] = switch
    world.model_says(DONE)
    again = world.run("-c", "-p", "go on", "--yolo")
    assert (again.returncode, git(world, "rev-list", "--count", "HEAD")) == (code, commits), again.stderr
    shown = json.loads(world.run("recover", "list", "--all", "--json").stdout)
    assert shown["statistics"]["retried"] == (1 if switch else 0)
