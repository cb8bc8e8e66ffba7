"""The same loop on its peers: a task whose record is durable, on SQLite, on this disk.

    python bench/peers.py PYTHON-OF-THE-PEERS [--quick]

Each peer runs in a process of its own, with two raw full-sync commits after every call as its
floor, so that ratios hold although the runs follow one another. Peers take turns over the rounds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from timing import median, ms, progress, scratch, table

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
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in PEERS}
    for number in range(1 if quick else 2):
        for name, (file, arguments, _) in PEERS.items():
            progress(f"peers, round {number + 1}: {name}")
            own = sys.executable if file.startswith("surefoot") else python
            found[name].append(measured(own, file, arguments, calls))
    rows = []
    for name, (_, _, records) in PEERS.items():
        runs = found[name]
        early, late = (median([run[at] for run in runs]) for at in ("early", "late"))
        shares = [median([run[at] / run[f"{at}_raw"] for run in runs]) for at in ("early", "late")]
        setting = f"{runs[0]['journal']}, {SYNCHRONOUS.get(runs[0]['synchronous'], '?')}"
        rows.append(
            (name, records, setting, ms(early), ms(late), f"{late / early:.2f}", *(f"{share:.2f}" for share in shares))
        )  # fmt: skip
    table(
        f"Peers: one call around call {EARLY} and call {calls:,} of one run",
        ("what", "what is durable", "journal, synchronous", f"at {EARLY}, ms", f"at {calls:,}, ms", "late ÷ early",
         f"÷ raw at {EARLY}", f"÷ raw at {calls:,}"),
        rows,
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], "--quick" in sys.argv[2:])
