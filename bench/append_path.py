"""What one round costs at any length of the session: the runtime's own part, and the request apart from it.

    python bench/append_path.py [--quick]

A round is a reply with one call, its start, its end, and the conversation put together for the next
request. Encoding and checking that request are measured apart: a longer history is a longer request, so
they grow with it, whoever makes them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from long_session import LongSession, long_session
from timing import (
    clock,
    interleaved,
    median,
    ms,
    percentile,
    progress,
    scratch,
    settle_memory,
    table,
    verdict,
)

from surefoot.core.history import Message
from surefoot.ledger import claims, sqlite
from surefoot.providers import contracts
from surefoot.providers.chat import ChatWire
from surefoot.providers.port import ModelRequest
from surefoot.providers.projection import project
from surefoot.providers.shaping import body_bytes

LENGTHS = (100, 1_000, 10_000)
AIM = 1.5
BUILT = {"count": 0}
"""How often a derived view was built since a measurement began."""


def counted(build: Callable[..., Any]) -> Callable[..., Any]:
    """The same, counting."""

    def build_and_count(*given: Any, **more: Any) -> Any:
        BUILT["count"] += 1
        return build(*given, **more)

    return build_and_count


async def shown(one: LongSession) -> list[Message]:
    """The conversation as the next request would hold it."""
    history = await one.session.history()
    return history.messages(one.session.book)


def runtime_part(one: LongSession, written: list[int]) -> Callable[[], Any]:
    async def case() -> float:
        before = bytes_written()
        began = clock()
        (looked,) = await one.message()
        await one.call(looked)
        await shown(one)
        taken = clock() - began
        written.append(bytes_written() - before)
        return taken

    return case


def bytes_written() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("wchar")).split()[1])


def request_part(one: LongSession, sizes: list[int]) -> Callable[[], Any]:
    contract, wire = contracts.resolve("openai/chat"), ChatWire()

    async def case() -> float:
        messages = await shown(one)
        began = clock()
        request = ModelRequest("m", "You are a careful agent.", messages)
        content = body_bytes(project(messages, one.session.book, contract, request=request, wire=wire).body)
        sizes.append(len(content))
        return clock() - began

    return case


async def measure(folder: Path, rounds: int, lengths: tuple[int, ...]) -> None:
    async with AsyncExitStack() as stack:
        built: dict[int, LongSession] = {}
        for length in lengths:
            progress(f"building a session of {length:,} rounds")
            built[length] = await stack.enter_async_context(long_session(folder / str(length)))
            await built[length].grow(length)
            await shown(built[length])
        settle_memory()
        written: dict[int, list[int]] = {length: [] for length in lengths}
        progress("rounds")
        BUILT["count"] = 0
        cases = {str(length): runtime_part(one, written[length]) for length, one in built.items()}
        taken = await interleaved(cases, rounds)
        rebuilt = BUILT["count"]
        _runtime_table(lengths, taken, written, rebuilt)
        sizes: dict[int, list[int]] = {length: [] for length in lengths}
        progress("requests")
        asking = {str(length): request_part(one, sizes[length]) for length, one in built.items()}
        _request_table(lengths, await interleaved(asking, max(rounds // 20, 5)), sizes)


def _runtime_table(
    lengths: tuple[int, ...], taken: dict[str, list[float]], written: dict[int, list[int]], rebuilt: int
) -> None:
    floor = median(taken[str(lengths[0])])
    rows = []
    for length in lengths:
        values = taken[str(length)]
        share = median(values) / floor
        rows.append(
            (f"{length:,}", ms(median(values)), ms(percentile(values, 0.95)), f"{share:.2f}", f"≤ {AIM}",
             verdict(share <= AIM), f"{int(median(written[length])):,}")
        )  # fmt: skip
    columns = ("rounds before", "p50 ms", "p95 ms", "÷ shortest", "aim", "kept", "bytes written, p50")
    table("One round: reply, start, end, next conversation", columns, rows)
    rounds = sum(map(len, taken.values()))
    print(f"Derived views built during these {rounds:,} rounds: {rebuilt}\n", flush=True)


def _request_table(
    lengths: tuple[int, ...], taken: dict[str, list[float]], sizes: dict[int, list[int]]
) -> None:
    rows = []
    for length in lengths:
        seconds, size = median(taken[str(length)]), max(sizes[length])
        rows.append((f"{length:,}", f"{size / 1e6:.2f}", ms(seconds), f"{seconds / size * 1e9:.0f}"))
    table(
        "Encoding and checking the request, which holds the whole history",
        ("rounds before", "request, MB", "p50 ms", "µs per kB"),
        rows,
    )


def main(quick: bool) -> None:
    for module, name in ((claims, "load"), (sqlite, "listing"), (sqlite, "put_derived")):
        setattr(module, name, counted(getattr(module, name)))
    with scratch() as folder:
        asyncio.run(measure(folder, 60 if quick else 400, LENGTHS))


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
