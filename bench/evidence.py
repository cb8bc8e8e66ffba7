"""How long a look for evidence takes: a file and a git commit whose agent was killed.

    python bench/evidence.py [--quick]

Each round is one `surefoot recover inspect` of an open call, from the start of its process
to the recorded inspection, as a person or a script waits for it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from timing import clock, median, ms, percentile, progress, scratch, table, verdict

from surefoot.testing.crash import end_leftovers
from surefoot.testing.kills import TELLS, Equipment, Site
from surefoot.testing.model import call

AIM_SECONDS = 1.0
SUREFOOT = str(Path(sys.executable).parent / "surefoot")
FILES = 200
"""How many other files lie in the project."""


def written(site: Site) -> str:
    """A file write whose agent died before it could say so; gives the attempt."""
    site.script({"calls": [call("write", path="a.txt", content="x\n", mode="append")]}, TELLS)
    return left_open(site, "tool[write].returned")


def committed(site: Site) -> str:
    """A git commit that landed, and whose agent and supervisor died; gives the attempt."""
    names = (("config", "user.name", "T"), ("config", "user.email", "t@example.org"))
    for arguments in (("init", "-q"), *names, ("commit", "-qm", "first", "--allow-empty"), ("add", "-A")):
        subprocess.run(["git", *arguments], cwd=site.project, check=True)
    hook = site.project / ".git/hooks/post-commit"
    hook.write_text("#!/bin/sh\ntouch landed; exec sleep 60\n")
    hook.chmod(0o755)
    site.script({"calls": [call("shell", command='git commit -m "bench"')]}, TELLS)
    attempt = left_open(site, "append[attempt.process].after")
    until = time.monotonic() + 30
    while not (site.project / "landed").exists():
        if time.monotonic() > until:
            raise TimeoutError("the commit did not land within 30 s")
        time.sleep(0.01)
    (claim,) = site.root.rglob("processes/*/claim")
    os.kill(int(json.loads(claim.read_text())["pid"]), signal.SIGKILL)
    end_leftovers(site.root)
    return attempt


def left_open(site: Site, seam: str) -> str:
    """Run, die at the seam, and name the attempt."""
    if not site.run(prompts=("go",), kill_at=1, only=(seam,)).killed:
        raise RuntimeError(f"the run did not pass {seam}")
    (shown,) = json.loads(surefoot(site, "recover", "list", "--json"))["calls"]
    return str(shown["attemptId"])


def surefoot(site: Site, *arguments: str, home: Path | None = None) -> str:
    """One command in the site's project; gives what it printed."""
    environ = {**os.environ, "SUREFOOT_HOME": str(home or site.root / "home")}
    ran = subprocess.run(
        [SUREFOOT, *arguments], cwd=site.project, env=environ, capture_output=True, text=True, check=False
    )
    if not ran.stdout:
        raise RuntimeError(f"surefoot {' '.join(arguments)} ended with {ran.returncode}: {ran.stderr}")
    return ran.stdout


def looked(site: Site, attempt: str, rounds: int) -> tuple[list[float], str]:
    """Seconds of each look, and what the last one found."""
    taken, found = [], ""
    for number in range(rounds):
        # A look may settle the call, so each one looks at a copy of what the kill left.
        copy = site.root / f"home-{number}"
        shutil.copytree(site.root / "home", copy, ignore=shutil.ignore_patterns("stop"))
        began = clock()
        found = surefoot(site, "recover", "inspect", attempt, "--json", home=copy)
        taken.append(clock() - began)
        shutil.rmtree(copy)
    return taken, found


def main(quick: bool) -> None:
    rows: list[tuple[Any, ...]] = []
    with scratch() as folder, Equipment.at(folder) as equipment:
        for name, make in (("a file", written), ("a git commit", committed)):
            progress(f"evidence of {name}")
            site = Site(folder / make.__name__, equipment)
            for number in range(FILES):
                (site.project / f"other-{number}.txt").write_text(f"{number}\n")
            taken, found = looked(site, make(site), 10 if quick else 40)
            calls = json.loads(found).get("calls")
            # Opening the session looks as well; proof that it finds settles the call before the look asked for.
            state = calls[0]["inspection"]["state"] if calls else "proof, while opening"
            high = percentile(taken, 0.95)
            kept = verdict(high <= AIM_SECONDS)
            rows.append((name, state, ms(median(taken)), ms(high), "p95 ≤ 1 s", kept))
    table(
        "Evidence: one `surefoot recover inspect`, the start of its process included",
        ("of", "found", "p50 ms", "p95 ms", "aim", "kept"),
        rows,
    )


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
