"""Freeze a ledger of this version for the tests of later ones.

    python tests/upgrade/freeze.py 0.1.0

writes `ledgers/0.1.0.tar.gz` (the folder of a real ledger: settled, failed, refused, unknown,
confirmed and released calls, a blob) and `ledgers/0.1.0.json` (what this version read from it).
Run once per release; never overwrite a frozen ledger.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import surefoot
from surefoot.ledger.opening import open_reader

HERE = Path(__file__).parent / "ledgers"


async def write(folder: Path) -> None:
    """One session with every kind of end."""

    async def say(text: str) -> str:
        return text

    async def large(text: str) -> str:
        return text * 200_000  # above the bound of an inline result: stands in a blob

    async def fail(text: str) -> str:
        raise surefoot.ToolError(f"no {text}", kind="planned")

    async def lose(text: str) -> str:
        raise surefoot.OutcomeUnknown("the reply was lost")

    home = folder / "home"
    async with surefoot.open(folder, ledger=home) as ledger, ledger.session() as session:
        reach = ["host:bank.example"]
        for name, function, effect in (
            ("say", say, "READ_ONLY"),
            ("large", large, "READ_ONLY"),
            ("write", say, "IDEMPOTENT_WRITE"),
            ("fail", fail, "NON_IDEMPOTENT"),
            ("lose", lose, "NON_IDEMPOTENT"),
            ("other", lose, "UNKNOWN"),
        ):
            where = reach if name != "other" else ["host:other.example"]
            guarded = session.guard(function, effect=effect, reach=where, name=name)
            for text in ("first", "second"):
                try:
                    await guarded(text=text)
                except surefoot.SurefootError as error:
                    print(f"{name}: {type(error).__name__}", file=sys.stderr)


async def read(folder: Path) -> dict[str, Any]:
    """What a version makes of a ledger: sessions, kinds of entries, receipts, findings."""
    ledger = open_reader(folder)
    try:
        told: dict[str, Any] = {
            "sessions": {},
            "findings": [f.code for f in (await ledger.verify()).findings],
        }
        for row in await ledger.sessions():
            receipts = await ledger.receipts(row.session_id)
            told["sessions"][row.session_id] = {
                "position": row.position,
                "kinds": [entry.kind for entry in await ledger.read(row.session_id)],
                "receipts": [
                    [r.attempt_id, r.tool, r.state.value, r.reason, [o.value for o in r.overlays]]
                    for r in receipts
                ],
                "open": [r.attempt_id for r in receipts.open()],
            }
        return told
    finally:
        await ledger.close()


def main(version: str) -> None:
    target = HERE / f"{version}.tar.gz"
    if target.exists():
        raise SystemExit(f"{target} exists; a frozen ledger is never overwritten")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asyncio.run(write(folder))
        (ledger,) = (folder / "home" / "ledgers").iterdir()
        told = asyncio.run(read(ledger))
        HERE.mkdir(exist_ok=True)
        with tarfile.open(target, "w:gz") as archive:
            for part in ("ledger.db", "ledger.db-wal", "witness", "blobs"):
                if (ledger / part).exists():
                    archive.add(ledger / part, arcname=part)
    (HERE / f"{version}.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
