"""Derived rows, checkpoints, slow disks, blobs: what happens off the path of a result."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import apsw
import pytest

from surefoot.core import lifecycle, shelf
from surefoot.core.model import Draft, Kind
from surefoot.errors import LedgerDamaged, LedgerError
from surefoot.ledger import claims, sqlite
from surefoot.ledger.gate import Gate
from surefoot.ledger.opening import open_ledger, open_reader
from surefoot.ledger.port import Appended, NotAppended
from surefoot.ledger.sqlite import Tuning

DEAD = Tuning(death=lambda owner, folder: "dead")


async def filled(folder: Path, say: Any, calls: int = 20) -> list[Any]:
    """A released session with `calls` calls, the last of them unknown; its receipts."""
    ledger = await open_ledger(folder, tuning=DEAD)
    claim = await ledger.claim(say.session, say.owner(), opening=say.opening())
    await ledger.append(say.session, [say.message(*range(calls))], epoch=claim.epoch)
    for number in range(calls):
        await ledger.append(say.session, [say.started(number)], epoch=claim.epoch)
        state = "unknown" if number == calls - 1 else "succeeded"
        await ledger.append(say.session, [say.closed(number, state)], epoch=claim.epoch)
    receipts = list(claim.book)
    await ledger.close()
    return receipts


def change(folder: Path, sql: str) -> None:
    connection = apsw.Connection(str(folder / "ledger.db"))
    connection.execute(sql)
    connection.close()


def seen(folder: Path, sql: str) -> Any:
    """One value, through a connection of its own: the ledger's belongs to the thread that writes."""
    connection = apsw.Connection(str(folder / "ledger.db"), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(10_000)
    try:
        return connection.execute(sql).get
    finally:
        connection.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "DELETE FROM receipts",
        "DELETE FROM listing",
        "DELETE FROM receipts; DELETE FROM listing",
        "UPDATE receipts SET receipt = replace(receipt, 'succeeded', 'failed')",
        "UPDATE receipts SET call_id = 'cal_x' WHERE place = 3",
        "DELETE FROM receipts WHERE place = 4",
        "UPDATE listing SET marks = replace(marks, 'att_', 'att-')",
        "UPDATE listing SET calls = 99",
        "UPDATE listing SET upto = 5",
        "DELETE FROM receipts WHERE place = 4; UPDATE listing SET receipts = receipts - 1",
    ],
)
async def test_tr_22_derived_rows_may_be_deleted_or_damaged_and_are_not_believed(
    tmp_path: Path, say: Any, sql: str
) -> None:
    folder = tmp_path / "ledger"
    receipts = await filled(folder, say)
    change(folder, sql)
    for _ in range(2):
        with open_reader(folder) as glance:
            assert [(one.calls, one.open_calls) for one in await glance.sessions()] == [(20, 1)]
            book = await glance.receipts(say.session)
            assert [one.attempt_id for one in book.open()] == [say.attempt(19)]
            assert list(book) == receipts
        ledger = await open_ledger(folder, tuning=DEAD)
        row = (await ledger.sessions())[0]
        assert (row.calls, row.open_calls, row.directory) == (20, 1, "/work")
        assert list(await ledger.receipts(say.session)) == receipts
        claim = await ledger.claim(say.session, say.owner())
        assert list(claim.book) == receipts
        assert [receipt.attempt_id for receipt in claim.book.open()] == [say.attempt(19)]
        await ledger.close()


async def test_ux_138_a_reader_reads_a_session_once_for_its_line_and_its_receipts_and_never_an_old_one(
    tmp_path: Path, say: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[int] = []
    skim = claims.skim
    monkeypatch.setattr(claims, "skim", lambda *given: (loads.append(1), skim(*given))[1])
    folder = tmp_path / "ledger"
    owner = await open_ledger(folder, tuning=DEAD)
    claim = await owner.claim(say.session, say.owner(), opening=say.opening())
    await owner.append(say.session, [say.message(1)], epoch=claim.epoch)
    reader = open_reader(folder)
    loads.clear()
    assert (await reader.sessions())[0].calls == 1
    assert [one.state.value for one in await reader.receipts(say.session)] == ["dispatched"]
    assert len(loads) == 1
    await reader.sessions()
    await owner.append(say.session, [say.started(1)], epoch=claim.epoch)
    assert [one.state.value for one in await reader.receipts(say.session)] == ["started"]
    assert [one.state.value for one in await reader.receipts(say.session)] == ["started"]
    await reader.close()
    await owner.close()


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one whenever a reader fetches the receipts of settled calls."""
    times: list[int] = []
    rest = claims._rest
    monkeypatch.setattr(claims, "_rest", lambda *given: (times.append(1), rest(*given))[1])
    return times


async def test_ux_138_a_reader_fetches_the_receipts_of_settled_calls_when_they_are_asked_for(
    tmp_path: Path, say: Any, fetched: list[int]
) -> None:
    folder = tmp_path / "ledger"
    receipts = await filled(folder, say)
    owner = await open_ledger(folder, tuning=DEAD)
    claim = await owner.claim(say.session, say.owner())
    await owner.append(say.session, [say.message(20), say.started(20)], epoch=claim.epoch)
    with open_reader(folder) as reader:
        row = (await reader.sessions())[0]
        book = await reader.receipts(say.session)
        assert (row.calls, row.open_calls, len(book), book.call_count()) == (21, 1, 21, 21)
        assert [one.attempt_id for one in book.open()] == [say.attempt(19)]
        assert [one.attempt_id for one in book.unsettled()] == [say.attempt(20)]
        assert book.attempts(receipts[19].call_id) == [receipts[19]]
        assert not book.children(say.attempt(19))
        assert [one.attempt_id for one in book.after(say.attempt(19))] == [say.attempt(20)]
        assert book.ids() == [say.attempt(number) for number in range(21)]
        assert book.get("att_nobody") is None
        assert not fetched
        assert book.get(say.attempt(3)) == receipts[3]
        assert list(book)[:20] == receipts
        assert len(fetched) == 1
    await owner.close()


@pytest.mark.parametrize("caught_up", [False, True])
async def test_ux_138_what_a_reader_fetches_later_is_of_the_moment_it_read_first(
    tmp_path: Path, say: Any, fetched: list[int], caught_up: bool
) -> None:
    """Else a call could be listed as open and told as settled."""
    folder = tmp_path / "ledger"
    receipts = await filled(folder, say)
    with open_reader(folder) as reader:
        book = await reader.receipts(say.session)
        owner = await open_ledger(folder, tuning=DEAD)
        claim = await owner.claim(say.session, say.owner())
        told = Draft(Kind.DELIVERED, {"attemptId": say.attempt(3)})
        assert isinstance(await owner.append(say.session, [told], epoch=claim.epoch), Appended)
        if caught_up:
            await owner.release(say.session, epoch=claim.epoch)
        await owner.close()
        assert list(book) == receipts
        assert fetched


async def test_ux_70_an_owner_has_the_open_calls_at_once_and_the_settled_ones_when_it_asks_for_one(
    tmp_path: Path, say: Any, fetched: list[int]
) -> None:
    folder = tmp_path / "ledger"
    receipts = await filled(folder, say)
    owner = await open_ledger(folder, tuning=DEAD)
    claim = await owner.claim(say.session, say.owner())
    assert isinstance(
        await owner.append(say.session, [say.message(20), say.started(20)], epoch=claim.epoch), Appended
    )
    assert claim.book.open() == receipts[19:]
    assert [one.attempt_id for one in claim.book.unsettled()] == [say.attempt(20)]
    assert not fetched
    # The owner asks in its loop, while a thread of the ledger may be reading.
    with owner._reading:
        assert claim.book.get(say.attempt(3)) == receipts[3]
    assert list(claim.book)[:20] == receipts
    assert len(fetched) == 1
    await owner.close()
    with open_reader(folder) as reader:
        assert list(await reader.receipts(say.session))[:20] == receipts


async def test_ux_70_what_an_owner_has_not_asked_for_is_at_hand_before_its_rows_are_caught_up(
    tmp_path: Path, say: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "UNLISTED_ENTRIES", 2)
    monkeypatch.setattr(sqlite, "IDLE_SECONDS", 0.01)
    folder = tmp_path / "ledger"
    receipts = await filled(folder, say)
    owner = await open_ledger(folder, tuning=DEAD)
    claim = await owner.claim(say.session, say.owner())
    threads: list[str] = []
    rest = claims._rest
    monkeypatch.setattr(
        claims, "_rest", lambda *given: (threads.append(threading.current_thread().name), rest(*given))[1]
    )
    assert claim.book.rest is not None
    await owner.append(say.session, [say.message(20)], epoch=claim.epoch)
    async with asyncio.timeout(90):
        while seen(folder, "SELECT count(*) FROM receipts") != 21:  # noqa: ASYNC110 (nothing announces it)
            await asyncio.sleep(0.005)
    assert len(threads) == 1
    assert threads[0] != threading.main_thread().name, "nobody waits in the loop for what is read then"
    assert claim.book.rest is None
    assert list(claim.book)[:20] == receipts
    await owner.close()


@pytest.mark.parametrize(
    "sql", ["UPDATE entries SET head = zeroblob(32) WHERE key & 0xffffffffff = 62", "SELECT 1"]
)
async def test_ux_70_settled_calls_are_never_fetched_from_another_history_than_was_checked(
    tmp_path: Path, say: Any, sql: str
) -> None:
    folder = tmp_path / "ledger"
    receipts = await filled(folder, say)
    owner = await open_ledger(folder, tuning=DEAD)
    claim = await owner.claim(say.session, say.owner())
    upto = seen(folder, "SELECT upto FROM listing")
    change(folder, sql.replace("62", str(upto)) + "; DELETE FROM receipts")
    if sql == "SELECT 1":
        assert claim.book.get(say.attempt(3)) == receipts[3]
    else:
        with pytest.raises(LedgerDamaged, match=f"entry {upto} is not the one"):
            claim.book.get(say.attempt(3))
        change(folder, "DELETE FROM listing")
    await owner.close()


async def test_pr_92_the_time_limit_of_a_write_begins_with_the_write_and_not_with_the_opening(
    tmp_path: Path, say: Any
) -> None:
    """Opening waits for most of one limit, the write for most of another: together more than one."""
    folder, limit_seconds = tmp_path / "ledger", 5.0
    await filled(folder, say)

    def shut_for(seconds: float) -> threading.Timer:
        gate = Gate(folder / "gate")
        assert gate.enter_now()
        timer = threading.Timer(seconds, gate.close)
        timer.start()
        return timer

    began = time.monotonic()
    opening = shut_for(limit_seconds * 0.6)
    ledger = await open_ledger(folder, tuning=Tuning(gate_wait_seconds=limit_seconds, death=DEAD.death))
    claim = await ledger.claim(say.session, say.owner())
    writing = shut_for(limit_seconds * 0.6)
    assert isinstance(await ledger.append(say.session, [say.todo()], epoch=claim.epoch), Appended)
    assert time.monotonic() - began > limit_seconds
    for timer in (opening, writing):
        timer.join()
    await ledger.close()


@pytest.mark.parametrize("sql", ["SELECT 1", "DELETE FROM receipts; DELETE FROM listing"])
async def test_ux_138_what_is_not_asked_for_is_not_parsed(
    tmp_path: Path, say: Any, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    folder = tmp_path / "ledger"
    await filled(folder, say)
    change(folder, sql)
    parsed: list[int] = []
    parse = shelf.receipt_from_json
    for room in (shelf, lifecycle):
        monkeypatch.setattr(room, "receipt_from_json", lambda value: (parsed.append(1), parse(value))[1])
    reader = open_reader(folder)
    book = await reader.receipts(say.session)
    assert [one.attempt_id for one in book.open()] == [say.attempt(19)]
    assert (len(book), len(book.ids()), book.statistics()["unknown"]) == (20, 20, 1)
    assert book.mentioning('"background"') == book.open()  # those that were parsed are always among them
    assert len(parsed) == 1
    await reader.close()


async def test_tr_22_derived_rows_are_written_when_idle_and_never_with_a_result(
    tmp_path: Path, say: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "UNLISTED_ENTRIES", 4)
    monkeypatch.setattr(sqlite, "IDLE_SECONDS", 0.01)
    folder = tmp_path / "ledger"
    ledger = await open_ledger(folder, tuning=DEAD)
    claim = await ledger.claim(say.session, say.owner(), opening=say.opening())
    await ledger.append(say.session, [say.message(1)], epoch=claim.epoch)
    await ledger.append(say.session, [say.started(1)], epoch=claim.epoch)
    assert seen(folder, "SELECT count(*) FROM receipts") == 0
    await ledger.append(say.session, [say.closed(1)], epoch=claim.epoch)
    for _ in range(4000):
        if seen(folder, "SELECT count(*) FROM receipts") != 0:
            break
        await asyncio.sleep(0.005)
    assert seen(folder, "SELECT upto FROM listing") == 5
    await ledger.close()


async def test_tr_193_the_log_is_moved_into_the_file_when_idle_and_at_the_latest_when_it_is_long(
    tmp_path: Path, say: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "FORCED_PAGES", 40)
    folder = tmp_path / "ledger"
    ledger = await open_ledger(folder, tuning=DEAD)
    claim = await ledger.claim(say.session, say.owner(), opening=say.opening())
    for _ in range(60):
        await ledger.append(say.session, [say.todo("x" * 9000)], epoch=claim.epoch)
    # The log is reused from its start after each checkpoint, and kept.
    assert (folder / "ledger.db-wal").stat().st_size < 100 * 4120
    assert (folder / "ledger.db").stat().st_size > 40 * 9000
    assert (await ledger.verify()).findings == ()
    await ledger.close()


async def test_tr_22_on_a_slow_disk_the_same_flush_runs_in_a_thread_and_comes_back(
    tmp_path: Path, say: Any
) -> None:
    ledger = await open_ledger(tmp_path / "ledger", tuning=DEAD)
    claim = await ledger.claim(say.session, say.owner(), opening=say.opening())
    ledger._note_time(1.0)
    assert not ledger._slow, "one late commit is no slow disk"
    for _ in range(8):
        ledger._note_time(1.0)
    assert ledger._slow
    await ledger.append(say.session, [say.message(*range(5))], epoch=claim.epoch)
    told = await asyncio.gather(
        *(
            ledger.append(say.session, [say.started(n)], epoch=claim.epoch, judge=lambda: None)
            for n in range(5)
        )
    )
    assert all(isinstance(answer, Appended) for answer in told)
    for _ in range(200):
        await ledger.append(say.session, [say.todo()], epoch=claim.epoch)
        if not ledger._slow:
            break
    positions = [entry.position for entry in await ledger.read(say.session)]
    assert positions == list(range(1, len(positions) + 1))
    await ledger.close()


async def test_tr_29_closing_a_handle_finishes_what_was_queued(tmp_path: Path, say: Any) -> None:
    ledger = await open_ledger(tmp_path / "ledger", tuning=DEAD)
    claim = await ledger.claim(say.session, say.owner(), opening=say.opening())
    waiting = asyncio.ensure_future(ledger.append(say.session, [say.todo()], epoch=claim.epoch))
    await asyncio.sleep(0)
    await ledger.close()
    assert isinstance(await waiting, Appended)


async def test_tr_22_a_judge_that_raises_leaves_nobody_waiting(tmp_path: Path, say: Any) -> None:
    ledger = await open_ledger(tmp_path / "ledger", tuning=DEAD)
    claim = await ledger.claim(say.session, say.owner(), opening=say.opening())
    seen: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, facts: seen.append(facts["exception"]))

    def judge() -> str | None:
        raise ZeroDivisionError

    told = await asyncio.gather(
        ledger.append(say.session, [say.todo()], epoch=claim.epoch, judge=judge),
        ledger.append(say.session, [say.todo()], epoch=claim.epoch),
        return_exceptions=True,
    )
    assert [type(answer) for answer in told] == [LedgerError, LedgerError]
    assert [type(error) for error in seen] == [ZeroDivisionError]
    assert isinstance(await ledger.append(say.session, [say.todo()], epoch=claim.epoch), Appended)
    await ledger.close()


async def test_tr_6_a_torn_blob_is_written_anew_and_never_believed_by_its_name(tmp_path: Path) -> None:
    ledger = await open_ledger(tmp_path / "ledger")
    ref = await ledger.put_blob(b"a" * 5000)
    digest = ref.removeprefix("sha256:")
    path = tmp_path / "ledger" / "blobs" / digest[:2] / digest
    path.write_bytes(b"a" * 100)
    assert await ledger.put_blob(b"a" * 5000) == ref
    assert path.stat().st_size == 5000
    assert [item.name for item in path.parent.iterdir()] == [digest]
    await ledger.close()


async def test_tr_172_the_epoch_alone_refuses_a_write_inside_the_statement(tmp_path: Path, say: Any) -> None:
    """Another owner raised the epoch and appended nothing, so that only the epoch can tell."""
    ledger = await open_ledger(tmp_path / "ledger", tuning=DEAD)
    claim = await ledger.claim(say.session, say.owner(), opening=say.opening())
    change(tmp_path / "ledger", "UPDATE sessions SET epoch = 7")
    assert await ledger.append(say.session, [say.todo()], epoch=claim.epoch) == NotAppended("lease_lost")
    both = await asyncio.gather(
        *(ledger.append(say.session, [say.todo()], epoch=claim.epoch) for _ in range(2))
    )
    assert both == [NotAppended("lease_lost")] * 2
    assert len(await ledger.read(say.session)) == 2
    await ledger.close()
