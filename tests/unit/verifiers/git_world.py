"""Real git repositories, and a look at a call as it was recorded in one."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from surefoot.core.model import Receipt
from surefoot.tools.classify.git_writes import git_write
from surefoot.tools.processes.git_record import git_record, git_variables
from surefoot.verifiers.git import GitVerifier
from surefoot.verifiers.port import Deadline, Observation

LATER = Deadline(1 << 60)


@dataclasses.dataclass
class Repo:
    """A repository, its settings kept apart from the person's own."""

    folder: Path

    def git(self, *arguments: str, check: bool = True) -> str:
        ran = subprocess.run(
            ["git", *arguments], cwd=self.folder, capture_output=True, text=True, check=check
        )
        return ran.stdout.strip()

    def run(self, line: str) -> int:
        """Run a line as the shell tool would, to its end."""
        return subprocess.run(
            ["bash", "-c", line], cwd=self.folder, capture_output=True, check=False
        ).returncode

    def write(self, name: str, text: str, *, add: bool = True) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if add:
            self.git("add", name)

    def commit(self, text: str) -> str:
        self.write("f.txt", text)
        self.git("commit", "-qm", text)
        return self.git("rev-parse", "HEAD")

    def stood(self, line: str) -> Receipt:
        """The receipt of a call with this command line, as it is at D6."""
        wanted = git_write(line)
        assert wanted is not None, f"{line!r} is not recognised"
        record = git_record(wanted, self.folder, os.environ)
        assert record is not None, f"no record could be made of {line!r}"
        call = Receipt("ses_1", "trn_1", "cal_1", "att_1", 0, tool="shell", process={"git": record})
        verifier = verifier_of(call)
        return dataclasses.replace(call, scope=verifier.recovery_scope(call), started_at=now_ms())

    def aged(self) -> None:
        """Wait until the kernel's time stamps of the refs are old enough to tell a later write apart."""
        places = [self.folder / ".git" / name for name in ("refs/tags", "refs/heads", "packed-refs")]
        while any(p.exists() and time.time_ns() - p.stat().st_ctime_ns <= 25_000_000 for p in places):
            time.sleep(0.002)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def verifier_of(call: Receipt, **how: Any) -> GitVerifier:
    far = (call.process or {})["git"]["kind"] == "push"
    return GitVerifier(git_variables, far=far, **how)


def seen(call: Receipt, *, fenced: bool = True, **how: Any) -> Observation:
    return verifier_of(call, **how).inspect_effect("sf1-k", call, LATER, fenced=fenced)
