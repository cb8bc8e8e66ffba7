"""surefoot: the same tool through its barrier, start and end durable. The message with the call is not counted,
and stands with its own commit in the row beside it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from long_session import long_session
from pace import Pace

from surefoot.ledger.places import LEDGER

folder, calls, counted = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


async def main() -> None:
    async with long_session(folder / "ledger") as one:
        pace = Pace(folder, calls)
        for _ in range(calls):
            if counted == "message":
                pace.begin()
            (looked,) = await one.message()
            if counted == "call":
                pace.begin()
            await one.call(await one.barrier.look(looked.call))
            pace.end()
        synchronous = one.ledger._database.one("PRAGMA synchronous")
    pace.report(folder / "ledger" / LEDGER, synchronous)


asyncio.run(main())
