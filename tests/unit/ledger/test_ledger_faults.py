"""A failing disk under the SQLite engine: nothing is told that is not certain."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.model import State
from surefoot.errors import LedgerError, LedgerUncertain, ReceiptNotWritten
from surefoot.ledger import admission
from surefoot.ledger.ballast import Room
from surefoot.ledger.opening import open_ledger
from surefoot.ledger.port import Appended, NotAppended
from surefoot.ledger.sqlite import Tuning


async def attempts_in(folder: Path, session: str) -> list[str]:
    """What a fresh handle finds of the session's kinds."""
    fresh = await open_ledger(folder)
    try:
        report = await fresh.verify()
        assert [item for item in report.findings if item.code != "tail_lost"] == []
        return [str(entry.kind) for entry in await fresh.read(session)]
    finally:
        await fresh.close()


@pytest.mark.parametrize("operation", ["write", "sync"])
@pytest.mark.parametrize("how", ["error", "full", "short"])
async def test_tr_20_each_write_and_sync_of_a_start_that_fails_is_never_acknowledged(
    ledger: Any, claim: Any, disk: Any, say: Any, operation: Any, how: Any, tmp_path: Path
) -> None:
    await ledger.append(say.session, [say.message(*range(9))], epoch=claim.epoch)
    reached = 0
    for nth in range(1, 9):
        fault = disk.fail(operation, nth, how=how)
        try:
            told = await ledger.append(say.session, [say.started(nth)], epoch=claim.epoch)
        except LedgerError as error:
            assert fault.fired
            reached += 1
            disk.mend()
            if isinstance(error, LedgerUncertain):
                found = await ledger.resolve(error)
                state = claim.book.get(say.attempt(nth)).state
                assert state is (State.DISPATCHED if found is None else State.STARTED)
            else:
                assert claim.book.get(say.attempt(nth)).state is State.DISPATCHED
        else:
            disk.mend()
            assert isinstance(told, Appended)
            break
    assert reached >= 1
    stored = (await ledger.read(say.session))[-1]
    assert stored.position == ledger._owned[say.session].position


async def test_tr_27_a_failed_sync_is_uncertain_and_absence_counts_only_after_a_later_commit(
    ledger: Any, claim: Any, disk: Any, say: Any
) -> None:
    await ledger.append(say.session, [say.message(1)], epoch=claim.epoch)
    disk.fail("sync", 1, lasting=True)
    with pytest.raises(LedgerUncertain) as caught:
        await ledger.append(say.session, [say.started(1)], epoch=claim.epoch)
    assert claim.book.get(say.attempt(1)).state is State.DISPATCHED
    with pytest.raises(LedgerUncertain):
        await ledger.resolve(caught.value)
    with pytest.raises(LedgerError, match="not certain yet"):
        await ledger.append(say.session, [say.todo()], epoch=claim.epoch)
    disk.mend()
    found = await ledger.resolve(caught.value)
    kinds = [str(entry.kind) for entry in await ledger.read(say.session)]
    if found is None:
        assert kinds[-1] == "assistant"
        assert isinstance(await ledger.append(say.session, [say.started(1)], epoch=claim.epoch), Appended)
    else:
        assert kinds[-1] == "attempt.started"
    assert claim.book.get(say.attempt(1)).state is State.STARTED
    assert (await ledger.verify()).findings == ()


async def test_tr_27_a_ghost_frame_of_a_failed_sync_is_found_and_made_durable(
    ledger: Any, claim: Any, disk: Any, say: Any, tmp_path: Path
) -> None:
    """The only connection closes, so that the next one recovers the frames from the file."""
    await ledger.append(say.session, [say.message(1)], epoch=claim.epoch)
    disk.fail("sync", 1)
    ledger._reader.close()
    with pytest.raises(LedgerUncertain) as caught:
        await ledger.append(say.session, [say.started(1)], epoch=claim.epoch)
    found = await ledger.resolve(caught.value)
    assert found is not None
    assert [str(entry.kind) for entry in found] == ["attempt.started"]
    assert claim.book.get(say.attempt(1)).state is State.STARTED
    # Made durable in the file itself: nothing of it hangs on the log any more.
    assert (tmp_path / "ledger" / "ledger.db-wal").stat().st_size == 0
    assert isinstance(await ledger.append(say.session, [say.closed(1)], epoch=claim.epoch), Appended)


async def test_tr_27_the_next_append_finds_out_by_itself(
    ledger: Any, claim: Any, disk: Any, say: Any
) -> None:
    disk.fail("sync", 1)
    with pytest.raises(LedgerUncertain) as caught:
        await ledger.append(say.session, [say.todo("lost?")], epoch=claim.epoch)
    told = await ledger.append(say.session, [say.todo("next")], epoch=claim.epoch)
    found = await ledger.resolve(caught.value)
    items = [entry.payload["items"][0] for entry in (await ledger.read(say.session))[2:]]
    assert items == (["next"] if found is None else ["lost?", "next"])
    assert told.entries[0].position == 2 + len(items)


async def test_tr_27_an_error_of_another_handle_is_not_resolved_here(ledger: Any, claim: Any) -> None:
    with pytest.raises(ValueError, match="LedgerUncertain"):
        await ledger.resolve(LedgerUncertain("elsewhere", token="99", index=0))


async def test_tr_26_after_a_refusal_the_ledger_accepts_writes_again(
    ledger: Any, claim: Any, disk: Any, say: Any
) -> None:
    disk.fail("write", 1, how="full", lasting=True)
    with pytest.raises(LedgerError, match="full"):
        await ledger.append(say.session, [say.todo()], epoch=claim.epoch)
    assert len(await ledger.read(say.session)) == 2
    disk.mend()
    assert isinstance(await ledger.append(say.session, [say.todo()], epoch=claim.epoch), Appended)


@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5, 6])
async def test_tr_195_an_error_in_a_group_acknowledges_nobody_falsely(
    ledger: Any, claim: Any, disk: Any, say: Any, nth: int
) -> None:
    await ledger.append(say.session, [say.message(1, 2, 3)], epoch=claim.epoch)
    disk.fail("write", nth, how="full")
    told = await asyncio.gather(
        *(ledger.append(say.session, [say.started(n)], epoch=claim.epoch) for n in (1, 2, 3)),
        return_exceptions=True,
    )
    stored = {entry.payload.get("attemptId") for entry in await ledger.read(say.session, after=3)}
    for number, answer in zip((1, 2, 3), told, strict=True):
        assert (say.attempt(number) in stored) is isinstance(answer, Appended)
    assert (await ledger.verify()).findings == ()


async def test_tr_195_an_uncertain_group_is_uncertain_for_each_of_its_members(
    ledger: Any, claim: Any, disk: Any, say: Any
) -> None:
    await ledger.append(say.session, [say.message(1, 2)], epoch=claim.epoch)
    disk.fail("sync", 1)
    told = await asyncio.gather(
        *(ledger.append(say.session, [say.started(n)], epoch=claim.epoch) for n in (1, 2)),
        return_exceptions=True,
    )
    assert [type(answer) for answer in told] == [LedgerUncertain, LedgerUncertain]
    found = [await ledger.resolve(answer) for answer in told]
    assert (found[0] is None) == (found[1] is None)
    if found[0] is not None:
        assert [entries[0].payload["attemptId"] for entries in found] == [say.attempt(1), say.attempt(2)]


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_tr_195_a_stale_member_fails_no_sibling_whether_first_in_the_middle_or_last(
    tmp_path: Path, say: Any, place: int
) -> None:
    folder = tmp_path / "ledger"
    sessions = [f"ses_{n:026d}" for n in range(3)]
    first = await open_ledger(folder, tuning=Tuning(death=lambda owner, where: "dead"))
    second = await open_ledger(folder, tuning=Tuning(death=lambda owner, where: "dead"))
    for session in sessions:
        await first.claim(session, say.owner(), opening=say.opening())
    await second.claim(sessions[place], say.owner(2))
    told = await asyncio.gather(*(first.append(session, [say.todo()], epoch=1) for session in sessions))
    expected = [NotAppended if n == place else Appended for n in range(3)]
    assert [type(answer) for answer in told] == expected
    assert told[place].code == "lease_lost"
    await first.close()
    await second.close()


async def test_tr_197_nothing_starts_without_head_room_while_closes_still_pass(
    tmp_path: Path, say: Any
) -> None:
    tuning = Tuning(room=Room(free_bytes=1 << 60, ballast_bytes=0))
    ledger = await open_ledger(tmp_path / "ledger", tuning=tuning)
    claim = await ledger.claim(say.session, say.owner(), opening=say.opening())
    await ledger.append(say.session, [say.message(1, 2)], epoch=claim.epoch)
    told = await asyncio.gather(
        ledger.append(say.session, [say.started(1)], epoch=claim.epoch),
        ledger.append(say.session, [say.todo()], epoch=claim.epoch),
        return_exceptions=True,
    )
    assert isinstance(told[0], ReceiptNotWritten)
    assert isinstance(told[1], Appended)
    await ledger.close()


async def test_tr_197_the_ballast_is_given_up_for_a_close_and_for_nothing_else(
    ledger: Any, claim: Any, disk: Any, say: Any, tmp_path: Path
) -> None:
    ballast = tmp_path / "ledger" / "ballast"
    assert ballast.stat().st_size == 2 << 20
    await ledger.append(say.session, [say.message(1)], epoch=claim.epoch)
    await ledger.append(say.session, [say.started(1)], epoch=claim.epoch)
    disk.full = lambda: ballast.stat().st_size > 0
    with pytest.raises(LedgerError, match="full"):
        await ledger.append(say.session, [say.todo()], epoch=claim.epoch)
    assert ballast.stat().st_size == 2 << 20
    assert isinstance(await ledger.append(say.session, [say.closed(1)], epoch=claim.epoch), Appended)
    assert ballast.stat().st_size == 0
    disk.mend()
    await ledger._tend()
    assert ballast.stat().st_size == 2 << 20


async def test_tr_20_what_was_acknowledged_survives_a_power_cut(
    ledger: Any, claim: Any, disk: Any, say: Any, tmp_path: Path
) -> None:
    for number in range(5):
        await ledger.append(say.session, [say.todo(str(number))], epoch=claim.epoch)
    disk.fail("sync", 1)
    with pytest.raises(LedgerUncertain):
        await ledger.append(say.session, [say.todo("unsynced")], epoch=claim.epoch)
    ledger._reader.close()
    ledger._database.close()
    disk.forget_unsynced()
    ledger._lost_grip = True
    disk.mend()
    assert await attempts_in(tmp_path / "ledger", say.session) == [
        "session.opened",
        "session.owned",
        *["todo"] * 5,
    ]


async def test_f15_a_claim_whose_commit_failed_runs_nothing_and_the_next_one_succeeds(
    ledger: Any, disk: Any, say: Any
) -> None:
    await ledger.claim(say.session, say.owner(), opening=say.opening())
    await ledger.release(say.session, epoch=1)
    disk.fail("sync", 1)
    with pytest.raises(LedgerError, match="could not be claimed"):
        await ledger.claim(say.session, say.owner())
    claim = await ledger.claim(say.session, say.owner())
    assert claim.epoch in (2, 3)
    assert isinstance(await ledger.append(say.session, [say.todo()], epoch=claim.epoch), Appended)


async def test_tr_178_an_ownership_ends_also_on_a_full_disk(
    ledger: Any, claim: Any, disk: Any, say: Any, tmp_path: Path
) -> None:
    ballast = tmp_path / "ledger" / "ballast"
    disk.full = lambda: ballast.stat().st_size > 0
    await ledger.release(say.session, epoch=claim.epoch)
    disk.mend()
    fresh = await open_ledger(tmp_path / "ledger")
    assert type(await fresh.claim(say.session, say.owner(2))).__name__ == "Claim"
    await fresh.close()


@pytest.mark.parametrize("drafts", [1, 2])
async def test_tr_195_an_entry_that_breaks_a_rule_of_the_ledger_is_an_error_and_no_conflict(
    ledger: Any, claim: Any, say: Any, drafts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await ledger.read(say.session)
    with monkeypatch.context() as broken:
        broken.setattr(admission, "link", lambda *given: b"no head")
        with pytest.raises(LedgerError, match="please report this fault"):
            await ledger.append(say.session, [say.todo()] * drafts, epoch=claim.epoch)
    assert await ledger.read(say.session) == before
    assert isinstance(await ledger.append(say.session, [say.todo()], epoch=claim.epoch), Appended)
