"""The page that says which test proves which requirement is the one the tests make."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_requirements_is_current() -> None:
    made = subprocess.run(
        [sys.executable, "tests/traceability.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    page = (ROOT / "docs" / "reference" / "traceability.md").read_text()
    assert made.stdout.rstrip("\n") == page.rstrip("\n"), "run: make traceability"
