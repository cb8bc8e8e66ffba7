"""The same loop on its peers: a task whose record is durable, on SQLite, on this disk.

    python bench/peers.py PYTHON-OF-THE-PEERS [--quick]

Each peer runs in a process of its own, with two raw full-sync commits after every call as its
floor, so that ratios hold although the runs follow one another.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from timing import ms, progress, scratch, table

HERE = Path(__file__).resolve().parent
SYNCHRONOUS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}
EARLY, LATE, QUICK_LATE = 100, 2_000, 300
PEERS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "surefoot, whole call": ("surefoot_calls", ("call",), "before and after"),
    "surefoot, message and call": ("surefoot_calls", ("message",), "message, before and after"),
    "mycelium-runtime `ledger_sync`": ("mycelium_calls", (), "before and after"),
    "DBOS step": ("dbos_steps", (), "after only"),
    "LangGraph `@task`, SqliteSaver": ("langgraph_tasks", (), "after only"),
    "LangGraph message graph, SqliteSaver": ("langgraph_messages", (), "message and result, whole state"),
}


def measured(python: str, file: str, arguments: tuple[str, ...], calls: int) -> dict[str, Any]:
    with scratch() as folder:
        done = subprocess.run(
            [python, str(HERE / "peers" / f"{file}.py"), str(folder), str(calls), *arguments],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"peer {file} failed:\n{done.stderr[-2000:]}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def main(python: str, quick: bool) -> None:
    calls = QUICK_LATE if quick else LATE
    rows = []
    for name, (file, arguments, records) in PEERS.items():
        progress(f"peers: {name}")
        run = measured(sys.executable if file.startswith("surefoot") else python, file, arguments, calls)
        early, late = run["early"], run["late"]
        setting = f"{run['journal']}, {SYNCHRONOUS.get(run['synchronous'], '?')}"
        shares = (f"{run[at] / run[f'{at}_raw']:.2f}" for at in ("early", "late"))
        rows.append((name, records, setting, ms(early), ms(late), f"{late / early:.2f}", *shares))
    table(
        f"Peers: one call around call {EARLY} and call {calls:,} of one run",
        ("what", "what is durable", "journal, synchronous", f"at {EARLY}, ms", f"at {calls:,}, ms", "late ÷ early",
         f"÷ raw at {EARLY}", f"÷ raw at {calls:,}"),
        rows,
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], "--quick" in sys.argv[2:])
