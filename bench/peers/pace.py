"""What all peers share: when a call counts, the floor beside it, and the answer as one line of JSON.

Owns: the windows around call 100 and call 2,000, two raw full-sync commits after each call (not
counted in it), and what the peer's file says about how it syncs. Runs in either environment, so it
uses the standard library only.
"""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import time
from pathlib import Path

TEXT = "a line of text that a model would write\n" * 6
RESULT = "Wrote 246 bytes to notes/today.md, which did not exist before. The folder notes was there."
EARLY = 100
HALF_WINDOW = 50


class Pace:
    """Takes the time of each call and of two raw commits after it."""

    def __init__(self, folder: Path, calls: int) -> None:
        self.calls = calls
        self._taken: list[float] = []
        self._raw: list[float] = []
        self._began = 0.0
        self._floor = sqlite3.connect(folder / "floor.db", isolation_level=None, check_same_thread=False)
        self._floor.execute("PRAGMA journal_mode = WAL")
        self._floor.execute("PRAGMA synchronous = FULL")
        self._floor.execute("CREATE TABLE rows (key INTEGER PRIMARY KEY, salt BLOB, text TEXT)")

    @property
    def done(self) -> int:
        return len(self._taken)

    @property
    def running(self) -> bool:
        return self._began > 0

    def begin(self) -> None:
        self._began = time.perf_counter()

    def end(self) -> None:
        """A call is over; the floor is measured before the next one begins."""
        now = time.perf_counter()
        self._taken.append(now - self._began)
        insert = "INSERT INTO rows (salt, text) VALUES (?, ?)"
        began = time.perf_counter()
        self._floor.execute(insert, (os.urandom(48), TEXT * 4))
        self._floor.execute(insert, (os.urandom(48), RESULT))
        self._raw.append(time.perf_counter() - began)

    def report(self, store: Path, synchronous: int) -> None:
        """Print what was measured. `synchronous` is what the peer's own connection answers."""
        connection = sqlite3.connect(store)
        journal = connection.execute("PRAGMA journal_mode").fetchone()[0]
        connection.close()
        windows = {"early": EARLY, "late": self.calls}
        told: dict[str, object] = {"journal": journal, "synchronous": synchronous, "calls": self.calls}
        for name, at in windows.items():
            part = slice(max(0, at - HALF_WINDOW), at + HALF_WINDOW)
            told[name] = statistics.median(self._taken[part])
            told[f"{name}_raw"] = statistics.median(self._raw[part])
        self._floor.close()
        print(json.dumps(told))
