"""What a call costs: against two raw commits, side by side, at any length of the session, and on disk.

python bench/calls.py [--quick]
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import apsw
from long_session import LongSession, long_session
from raw_pair import RawPair
from timing import (
    Case,
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

from surefoot.ledger.places import LEDGER

LENGTHS = (100, 10_000, 100_000)
SIDE_BY_SIDE = 8


def ledger_pair(one: LongSession) -> Case:
    async def case() -> float:
        (looked,) = await one.message()
        began = clock()
        await one.pair(looked.call.attempt_id)
        return clock() - began

    return case


def whole_call(one: LongSession) -> Case:
    async def case() -> float:
        (looked,) = await one.message()
        began = clock()
        await one.call(await one.barrier.look(looked.call))
        return clock() - began

    return case


def group(one: LongSession, count: int) -> Case:
    """`count` readers of one message at once: the wall time of all."""

    async def case() -> float:
        looked = await one.message(count, "read_note")
        began = clock()
        await asyncio.gather(*(one.call(call) for call in looked))
        return clock() - began

    return case


def pairs(one: LongSession, count: int) -> Case:
    """`count` starts and ends at once, each end after its own start: the wall time of all."""

    async def case() -> float:
        looked = await one.message(count, "read_note")
        began = clock()
        await asyncio.gather(*(one.pair(call.call.attempt_id) for call in looked))
        return clock() - began

    return case


async def cost(folder: Path, rounds: int) -> None:
    """One call against two raw commits, while the WAL grows and when it is reused; then eight at once."""
    async with long_session(folder / "one") as one:
        raw = RawPair(folder / "raw.db", *one.payloads("att_00000000000000000000000000"))
        settle_memory()
        single: dict[str, Case] = {"raw": raw.once, "pair": ledger_pair(one), "whole": whole_call(one)}
        rows = _cost_rows("grows", await interleaved(single, rounds // 4))
        raw.reuse_wal()
        await one.reuse_wal()
        rows += _cost_rows("is reused", await interleaved(single, rounds))
        raw.close()
        table(
            f"One call, {rounds} interleaved rounds",
            ("WAL", "what", "p10 ms", "p50 ms", "p95 ms", "p10 ÷ raw", "p50 ÷ raw", "aim", "kept"),
            rows,
        )
        several = {"one pair": pairs(one, 1), "eight pairs": pairs(one, SIDE_BY_SIDE),
                   "one call": group(one, 1), "eight calls": group(one, SIDE_BY_SIDE)}  # fmt: skip
        _side_by_side(await interleaved(several, rounds // 2))


def _cost_rows(wal: str, taken: dict[str, list[float]]) -> list[tuple[object, ...]]:
    floor, pair, whole = (median(taken[name]) for name in ("raw", "pair", "whole"))
    bound = max(1.5 * floor, floor + 0.0004)
    aims = {
        "raw": ("two raw commits", "", ""),
        "pair": ("start and end through the ledger", "≤ 1.5 ×", verdict(pair <= 1.5 * floor)),
        "whole": ("whole call through the barrier", f"≤ {ms(bound)} ms", verdict(whole <= bound)),
    }
    rows: list[tuple[object, ...]] = []
    for name, (what, aim, kept) in aims.items():
        values = taken[name]
        low, middle, high = (percentile(values, share) for share in (0.1, 0.5, 0.95))
        shares = (f"{low / percentile(taken['raw'], 0.1):.2f}", f"{middle / floor:.2f}")
        rows.append((wal, what, ms(low), ms(middle), ms(high), *shares, aim, kept))
    return rows


def _side_by_side(taken: dict[str, list[float]]) -> None:
    rows = []
    for what, single, eight in (
        ("start and end through the ledger", "one pair", "eight pairs"),
        ("whole call through the barrier", "one call", "eight calls"),
    ):
        alone, all_of_them = median(taken[single]), median(taken[eight])
        each = all_of_them / SIDE_BY_SIDE
        rows.append(
            (what, ms(alone), ms(all_of_them), f"{all_of_them / alone:.2f}", ms(each), f"{each / alone:.2f}", "≤ 1.3",
             verdict(each <= 1.3 * alone))
        )  # fmt: skip
    table(
        "Eight calls of one message at once",
        ("what", "one, ms", "all eight, ms", "all ÷ one", "per call, ms", "per call ÷ one", "aim", "kept"),
        rows,
    )


async def growth(folder: Path, rounds: int, lengths: tuple[int, ...]) -> None:
    """The same call in sessions of different length, interleaved in one run."""
    async with AsyncExitStack() as stack:
        built: dict[int, LongSession] = {}
        raws: dict[int, RawPair] = {}
        for length in lengths:
            progress(f"building a session of {length:,} calls")
            one = await stack.enter_async_context(long_session(folder / f"calls-{length}"))
            await one.grow(length)
            _checkpoint(one)
            raw = RawPair(folder / f"raw-{length}.db", *one.payloads("att_00000000000000000000000000"))
            stack.callback(raw.close)
            raw.fill(2 * length)
            raw.reuse_wal()
            await one.reuse_wal()
            built[length], raws[length] = one, raw
        settle_memory()
        cases: dict[str, Case] = {}
        for length in lengths:
            cases[f"raw {length}"] = raws[length].once
            cases[f"pair {length}"] = ledger_pair(built[length])
            cases[f"whole {length}"] = whole_call(built[length])
        taken = await interleaved(cases, rounds)
        rows = [_growth_row(length, taken, lengths[0], _asking(built[length])) for length in lengths]
    table(
        f"Growth of one session, {rounds} interleaved rounds (aim: at most 1.1 apart)",
        ("calls before", "raw, ms", "start and end, ms", "whole call, ms", "start and end ÷ first (p10)",
         "whole ÷ first (p10)", "kept", "conversation for one request, ms"),
        rows,
    )  # fmt: skip


def _growth_row(
    length: int, taken: dict[str, list[float]], first: int, asking_seconds: float
) -> tuple[object, ...]:
    middles = {name: median(taken[f"{name} {length}"]) for name in ("raw", "pair", "whole")}

    def share(name: str, at: float) -> float:
        return percentile(taken[f"{name} {length}"], at) / percentile(taken[f"{name} {first}"], at)

    told = [f"{share(name, 0.5):.2f} ({share(name, 0.1):.2f})" for name in ("pair", "whole")]
    kept = verdict(max(share("pair", 0.5), share("whole", 0.5)) <= 1.1)
    return (f"{length:,}", *(ms(value) for value in middles.values()), *told, kept, ms(asking_seconds))


def _asking(one: LongSession) -> float:
    """Laying out the conversation for the next request; it is as long as the session, and no call waits for it."""
    history = one.session._history  # the folded conversation; folding it again would be another measurement
    if history is None:
        return 0.0
    taken = []
    for _ in range(5):
        began = clock()
        history.messages(one.session.book)
        taken.append(clock() - began)
    return median(taken)


def _checkpoint(one: LongSession) -> None:
    """Bring everything into the file, by a connection of the bench's own."""
    connection = apsw.Connection(str(one.folder / LEDGER))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close()


async def disk(folder: Path, calls: int) -> None:
    """Bytes that one real call leaves behind."""
    async with long_session(folder / "disk") as one:
        _checkpoint(one)
        before = one.disk_bytes()
        for _ in range(calls):
            (looked,) = await one.message()
            await one.call(looked)
        grown = one.disk_bytes() - before
        _checkpoint(one)
        after = one.disk_bytes() - before
        asked = len(one.payloads("")[0]["arguments"].encode())
    table(
        f"Bytes on disk per call, {calls:,} real calls",
        ("arguments, bytes", "ledger and WAL before the checkpoint", "ledger and WAL after it"),
        [(asked, f"{grown / calls:,.0f}", f"{after / calls:,.0f}")],
    )


async def main(quick: bool) -> None:
    with scratch() as folder:
        progress("one call")
        await cost(folder, 150 if quick else 1_000)
        await growth(folder, 60 if quick else 400, LENGTHS[:2] if quick else LENGTHS)
        progress("bytes on disk")
        await disk(folder, 200 if quick else 1_000)


if __name__ == "__main__":
    asyncio.run(main("--quick" in sys.argv[1:]))
