"""The prompt experiment as it is run: a process, a strict server, a results file, a report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from surefoot.testing.emulator.process import EmulatorProcess

ROOT = Path(__file__).resolve().parents[2]
VERIFY = [{"calls": [{"name": "shell", "args": {"command": "python3 verify.py"}}]}, {"text": "It passed."}]


def run(tmp_path: Path, *arguments: str, **variables: str) -> dict[str, Any]:
    """Run the experiment to its end and read its report."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    environ = {**kept, "HOME": str(tmp_path), "SUREFOOT_HOME": str(tmp_path / "sf"), **variables}
    folder = tmp_path / "report"
    subprocess.run(
        [sys.executable, "-m", "bench.prompt_ab", "--results", str(tmp_path / "results.jsonl"),
         "--report", str(folder), *arguments],
        cwd=ROOT, env=environ, check=True, timeout=100, capture_output=True,
    )  # fmt: skip
    assert {file.name for file in folder.iterdir()} == {"report.json", "report.md", "plot.svg"}
    made: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return made


def test_pr_89_it_runs_against_the_emulator_stops_at_its_budget_and_goes_on(tmp_path: Path) -> None:
    arguments = ("--emulated", "--per-cell", "1", "--concurrency", "2")
    part = run(tmp_path, *arguments, "--max-requests", "5")
    assert 0 < part["trials"]["ended"] < 12
    assert part["notMeasured"] and not part["gate"]["open"]
    first = (tmp_path / "results.jsonl").read_text()
    whole = run(tmp_path, *arguments)
    assert whole["trials"] == {"planned": 12, "ended": 12}
    assert whole["notMeasured"] == []
    assert (tmp_path / "results.jsonl").read_text().startswith(first)
    assert {cell["trials"] for cell in whole["cells"]} == {1}
    assert all(cell["requests"] and cell["tokens"] for cell in whole["cells"])


def test_pr_85_the_verification_of_a_configured_endpoint_really_runs_and_inherits_no_key(
    tmp_path: Path,
) -> None:
    with EmulatorProcess(tmp_path) as emulator:
        emulator.script(VERIFY, by="history")
        made = run(
            tmp_path, "-m", "openai/gpt-x", "--efforts", "low", "--tasks", "verify", "--per-cell", "2",
            OPENAI_API_KEY="sk-secret-of-a-person", OPENAI_BASE_URL=emulator.base_url("openai"),
            ANTHROPIC_API_KEY="sk-another",
        )  # fmt: skip
        headers = {entry.json()["reasoning_effort"] for entry in emulator.requests()}
    assert headers == {"low"}
    assert made["sides"]["base"]["successes"] == made["sides"]["candidate"]["successes"] == 2
    shown = (tmp_path / "results.jsonl").read_text() + (tmp_path / "report/report.json").read_text()
    assert "sk-secret" not in shown and "sk-another" not in shown
