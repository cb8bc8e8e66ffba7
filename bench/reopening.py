"""How long a session whose owner was killed takes to show its open calls, in a fresh process.

    python bench/reopening.py [--quick]

The owner dies by SIGKILL. The usual one had idle moments, as every wait for a model is, in
which derived rows were caught up; the unlucky one had none in all its 10,000 calls. The card is timed
as a person waits for it: from the start of `surefoot -c` until the card stands on a terminal.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pexpect
from long_session import long_session
from timing import clock, median, ms, percentile, progress, scratch, table, verdict

from surefoot.config import load_settings
from surefoot.ledger.opening import open_ledger
from surefoot.ledger.owners import this_process
from surefoot.ledger.places import OWNERS
from surefoot.ledger.port import Held
from surefoot.runtime.reconcile import NoSupervision, reconcile
from surefoot.runtime.scheduler import Scheduler
from surefoot.runtime.session import Session, Wanted

CALLS, OPEN = 10_000, 100
AIM_SECONDS = 0.4
CARD = "known      "
"""The first words of a card that no other line of a start holds."""
CARD_WAIT_SECONDS = 60
LIST_AIM = 15
LIST_SECONDS = 0.3
WORDS = {"idle": "had idle moments", "busy": "had none"}
SUREFOOT = str(Path(sys.executable).parent / "surefoot")


async def build(folder: Path, idle: bool) -> None:
    """Run in a child: a session with open calls, then the death of its owner."""
    async with long_session(folder) as one:
        await one.grow(CALLS - OPEN)
        while idle and one.unlisted():  # noqa: ASYNC110 (nothing announces it)
            await asyncio.sleep(0.05)
        await one.leave_open(OPEN)
        print(one.session.session_id, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


async def reopen(folder: Path, session_id: str) -> None:
    """Run in a child: own the session, judge what the dead owner left, list what is open."""
    began = clock()
    ledger = await open_ledger(folder)
    owner, _lock = this_process(folder / OWNERS)
    session = await Session.open(ledger, Scheduler(), owner, Wanted(session_id))
    if isinstance(session, Held):
        raise RuntimeError(f"held: {session}")
    claimed = clock() - began
    await reconcile(session, NoSupervision())
    opened = session.book.open()
    listed = clock() - began
    if len(opened) != OPEN:
        raise RuntimeError(f"{len(opened)} open calls instead of {OPEN}")
    print(claimed, listed)
    sys.stdout.flush()
    os._exit(0)  # an end that tidies nothing up, so that the next reopening finds the same


def _child(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True, check=False
    )
    return done.stdout.strip()


def _timed(argv: list[str], project: Path, environ: dict[str, str]) -> float:
    began = clock()
    subprocess.run(argv, cwd=project, env=environ, stdout=subprocess.DEVNULL, check=True)
    return clock() - began


def _drawn(project: Path, environ: dict[str, str]) -> float:
    """From the start of a chat to its first card."""
    began = clock()
    child = pexpect.spawn(
        SUREFOOT, ["-c"], cwd=str(project), env=environ, encoding="utf-8", dimensions=(40, 100)
    )
    try:
        child.expect_exact(CARD, timeout=CARD_WAIT_SECONDS)
        return clock() - began
    finally:
        child.close(force=True)


def main(quick: bool) -> None:
    rows: list[tuple[object, ...]] = []
    with scratch() as name:
        for kind in ("idle", "busy"):
            rows += measure(kind, name / kind, 5 if quick else 20)
    table(
        f"Reopening a killed session of {CALLS:,} calls, {OPEN} of them open",
        ("owner before", "what", "p50 ms", "p95 ms", "aim", "kept"),
        rows,
    )


def measure(kind: str, place: Path, rounds: int) -> list[tuple[object, ...]]:
    """Rows for one kind of dead owner."""
    project = place / "project"
    project.mkdir(parents=True)
    environ = {**os.environ, "SUREFOOT_HOME": str(place / "home"), "HOME": str(place)}
    folder = load_settings({}, environ, project).places.ledger_folder(project)
    progress(f"a killed session of {CALLS:,} calls, {kind}")
    session_id = _child("build", str(folder), kind)
    listing = [_timed([SUREFOOT, "recover", "list"], project, environ) for _ in range(rounds)]
    bare = [_timed([sys.executable, "-c", "pass"], project, environ) for _ in range(rounds)]
    claims, lists, whole = [], [], []
    for number in range(rounds):
        # Reopening writes the truth back, so each round reopens a copy of what the kill left.
        copy = place / f"copy-{number}"
        shutil.copytree(folder, copy)
        began = clock()
        claimed, listed = map(float, _child("reopen", str(copy), session_id).split())
        whole.append(clock() - began)
        shutil.rmtree(copy)
        claims.append(claimed)
        lists.append(listed)
    cards = []
    for number in range(rounds):
        home = place / f"home-{number}"
        shutil.copytree(place / "home", home, ignore=shutil.ignore_patterns("stop"))
        key = {"SUREFOOT_HOME": str(home), "OPENAI_API_KEY": "none", "TERM": "xterm"}
        cards.append(_drawn(project, environ | key))
        shutil.rmtree(home)
    seconds, floor = median(lists), median(bare)
    aims = {"idle": (f"≤ {AIM_SECONDS * 1000:.0f} ms", f"≤ {LIST_AIM} × bare"), "busy": ("", "")}[kind]
    card_aim = f"p95 ≤ {AIM_SECONDS * 1000:.0f} ms" if kind == "idle" else ""
    kept = ("", "")
    if kind == "idle":
        kept = verdict(seconds <= AIM_SECONDS), verdict(median(listing) <= LIST_AIM * floor)
    clocked = verdict(median(listing) <= LIST_SECONDS) if kind == "idle" else ""
    limit = f"≤ {LIST_SECONDS * 1000:.0f} ms" if kind == "idle" else ""
    return [
        (WORDS[kind], "ledger opened, chain checked, owned", ms(median(claims)), ms(percentile(claims, 0.95)), "", ""),
        ("", "… reconciled, open calls listed", ms(seconds), ms(percentile(lists, 0.95)), aims[0], kept[0]),
        ("", "… with the start of the process", ms(median(whole)), ms(percentile(whole, 0.95)), "", ""),
        ("", "`surefoot -c`: the card on the terminal, with the start of the process",
         ms(median(cards)), ms(percentile(cards, 0.95)), card_aim,
         verdict(percentile(cards, 0.95) <= AIM_SECONDS) if kind == "idle" else ""),
        ("", f"`surefoot recover list` before that ({median(listing) / floor:.1f} × bare interpreter)",
         ms(median(listing)), ms(percentile(listing, 0.95)), aims[1], kept[1]),
        ("", "… the same by the clock", ms(median(listing)), ms(percentile(listing, 0.95)), limit, clocked),
    ]  # fmt: skip


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["build", folder, kind]:
            asyncio.run(build(Path(folder), kind == "idle"))
        case ["reopen", folder, session_id]:
            asyncio.run(reopen(Path(folder), session_id))
        case rest:
            main("--quick" in rest)
