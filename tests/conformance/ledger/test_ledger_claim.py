"""What every engine promises about ownership, lost tails, listing, blobs and the check."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from surefoot.core.model import Draft, Kind, State
from surefoot.errors import LedgerDamaged
from surefoot.ledger.port import Appended, Claim, Held


async def settle(ledger: Any, claim: Any, say: Any, *numbers: int, state: str = "succeeded") -> None:
    await ledger.append(say.session, [say.message(*numbers)], epoch=claim.epoch)
    for number in numbers:
        await ledger.append(say.session, [say.started(number)], epoch=claim.epoch)
        await ledger.append(say.session, [say.closed(number, state)], epoch=claim.epoch)


async def test_tr_172_each_ownership_raises_the_epoch_by_one(world: Any, say: Any) -> None:
    ledger = await world.open()
    first = await ledger.claim(say.session, say.owner(1), opening=say.opening())
    assert (first.epoch, first.position, first.previous, first.taken_over) == (1, 2, None, False)
    for epoch in (2, 3):
        await ledger.release(say.session, epoch=epoch - 1)
        again = await ledger.claim(say.session, say.owner(1))
        assert (again.epoch, again.previous_epoch, again.previous) == (epoch, epoch - 1, None)
    owned = [entry for entry in await ledger.read(say.session) if entry.kind == Kind.SESSION_OWNED]
    assert [entry.epoch for entry in owned] == [1, 2, 3]


async def test_tr_177_a_live_owner_is_told_as_a_value_and_keeps_the_session(world: Any, say: Any) -> None:
    first, second = await world.open(), await world.open()
    claim = await first.claim(say.session, say.owner(1), opening=say.opening())
    held = await second.claim(say.session, say.owner(2))
    assert isinstance(held, Held)
    assert (held.owner.pid, held.epoch, held.since_ms, held.how) == (1, 1, world.clock.now_ms(), "at_once")
    assert isinstance(await first.append(say.session, [say.message(1)], epoch=claim.epoch), Appended)


async def test_tr_177_of_two_that_take_over_one_wins_and_the_other_is_told_as_a_value(
    world: Any, say: Any
) -> None:
    first, *rivals = [await world.open() for _ in range(3)]
    await first.claim(say.session, say.owner(1), opening=say.opening())
    world.deaths[1] = "dead"
    told = await asyncio.gather(
        *(rival.claim(say.session, say.owner(2 + n)) for n, rival in enumerate(rivals))
    )
    winner = next(answer for answer in told if isinstance(answer, Claim))
    loser = next(answer for answer in told if isinstance(answer, Held))
    assert (winner.epoch, loser.epoch) == (2, 2)
    assert winner.previous.pid == 1
    assert not winner.taken_over


async def test_tr_177_of_two_that_create_one_session_one_wins(world: Any, say: Any) -> None:
    rivals = [await world.open() for _ in range(2)]
    told = await asyncio.gather(
        *(rival.claim(say.session, say.owner(1 + n), opening=say.opening()) for n, rival in enumerate(rivals))
    )
    assert sorted(type(answer).__name__ for answer in told) == ["Claim", "Held"]
    assert [entry.position for entry in await rivals[0].read(say.session)] == [1, 2]


async def test_tr_174_an_owner_whose_death_cannot_be_told_is_waited_for_until_its_lease_ends(
    world: Any, say: Any
) -> None:
    first, second = await world.open(), await world.open()
    claim = await first.claim(say.session, say.owner(1), opening=say.opening())
    world.deaths[1] = "cannot_tell"
    held = await second.claim(say.session, say.owner(2))
    assert (held.how, held.lease_until_ms) == ("lease", world.clock.now_ms() + 30_000)
    world.clock.turn(29_000)
    assert await first.renew(say.session, epoch=claim.epoch, until_ms=world.clock.now_ms() + 30_000)
    world.clock.turn(29_000)
    assert isinstance(await second.claim(say.session, say.owner(2)), Held)
    world.clock.turn(2_000)
    taken = await second.claim(say.session, say.owner(2))
    assert (taken.epoch, taken.previous.pid) == (2, 1)
    assert not await first.renew(say.session, epoch=claim.epoch, until_ms=world.clock.now_ms() + 30_000)


async def test_tr_174_a_jump_of_the_wall_clock_ends_no_lease(world: Any, say: Any) -> None:
    first, second = await world.open(), await world.open()
    await first.claim(say.session, say.owner(1), opening=say.opening())
    world.deaths[1] = "cannot_tell"
    world.clock.wall_ms += 86_400_000
    assert isinstance(await second.claim(say.session, say.owner(2)), Held)


async def test_tr_175_a_person_takes_a_session_over_from_a_live_owner(world: Any, say: Any) -> None:
    first, second = await world.open(), await world.open()
    await first.claim(say.session, say.owner(1), opening=say.opening())
    taken = await second.claim(say.session, say.owner(2), take_over=True)
    assert isinstance(taken, Claim)
    assert taken.taken_over
    owned = (await second.read(say.session))[-1].payload
    assert (owned["takenOver"], owned["previousEpoch"], owned["owner"]["pid"]) == (True, 1, 2)


async def test_tr_178_a_release_frees_the_session_at_once_and_a_stale_one_changes_nothing(
    world: Any, say: Any
) -> None:
    first, second = await world.open(), await world.open()
    claim = await first.claim(say.session, say.owner(1), opening=say.opening())
    await first.release(say.session, epoch=claim.epoch)
    newer = await second.claim(say.session, say.owner(2))
    await first.release(say.session, epoch=claim.epoch)
    assert isinstance(await second.append(say.session, [say.message(1)], epoch=newer.epoch), Appended)
    assert isinstance(await first.claim(say.session, say.owner(1)), Held)


async def test_tr_178_closing_the_handle_ends_its_ownerships(world: Any, say: Any) -> None:
    first, second = await world.open(), await world.open()
    await first.claim(say.session, say.owner(1), opening=say.opening())
    await first.close()
    assert isinstance(await second.claim(say.session, say.owner(2)), Claim)


async def test_tr_50_the_book_of_a_new_owner_says_what_the_old_one_left_open(world: Any, say: Any) -> None:
    first, second = await world.open(), await world.open()
    claim = await first.claim(say.session, say.owner(1), opening=say.opening())
    await settle(first, claim, say, 1)
    await settle(first, claim, say, 2, state="unknown")
    await first.append(say.session, [say.message(3, 4)], epoch=claim.epoch)
    await first.append(say.session, [say.started(3)], epoch=claim.epoch)
    world.deaths[1] = "dead"
    taken = await second.claim(say.session, say.owner(2))
    assert [receipt.attempt_id for receipt in taken.book.open()] == [say.attempt(2)]
    assert [receipt.attempt_id for receipt in taken.book.unsettled()] == [say.attempt(3), say.attempt(4)]
    assert taken.book.get(say.attempt(1)).result == {"text": "done", "isError": False}


async def test_a_book_read_back_equals_the_one_that_was_folded(world: Any, say: Any) -> None:
    first = await world.open()
    claim = await first.claim(say.session, say.owner(1), opening=say.opening())
    await settle(first, claim, say, 1, 2)
    await settle(first, claim, say, 3, 4, state="unknown")
    await first.append(say.session, [say.resolved(3)], epoch=claim.epoch)
    await first.append(say.session, [say.started(5)], epoch=claim.epoch)
    before = list(claim.book)
    counts, opened = claim.book.statistics(), claim.book.open()
    await first.release(say.session, epoch=claim.epoch)
    again = await first.claim(say.session, say.owner(1))
    assert list(again.book) == before
    assert (again.book.statistics(), again.book.open()) == (counts, opened)
    await first.append(say.session, [say.resolved(4)], epoch=again.epoch)
    assert again.book.open() == []
    assert [receipt.attempt_id for receipt in again.book.resolved()] == [say.attempt(3), say.attempt(4)]


async def test_readers_see_receipts_without_owning_the_session(world: Any, say: Any) -> None:
    first, reader = await world.open(), await world.open()
    claim = await first.claim(say.session, say.owner(1), opening=say.opening())
    await settle(first, claim, say, 1)
    await settle(first, claim, say, 2, state="unknown")
    assert [receipt.state for receipt in await reader.receipts(say.session)] == [
        State.SUCCEEDED,
        State.UNKNOWN,
    ]
    opened = (await reader.receipts(say.session)).open()
    assert [receipt.attempt_id for receipt in opened] == [say.attempt(2)]


async def test_ux_49_the_listing_shows_name_directory_calls_and_open_calls(world: Any, say: Any) -> None:
    first, reader = await world.open(), await world.open()
    claim = await first.claim(say.session, say.owner(1), opening=say.opening("errand"))
    await settle(first, claim, say, 1)
    await settle(first, claim, say, 2, state="unknown")
    await first.append(say.session, [Draft(Kind.SESSION_NAMED, {"name": "chore"})], epoch=claim.epoch)
    for _ in range(2):
        row = (await reader.sessions())[0]
        assert (row.session_id, row.name, row.directory, row.model) == (
            say.session,
            "chore",
            "/work",
            "small",
        )
        assert (row.calls, row.open_calls, row.status, row.epoch) == (2, 1, "ok", 1)
        assert row.position == len(await reader.read(say.session))
        await first.release(say.session, epoch=claim.epoch)


async def test_tr_196_a_tail_that_is_gone_is_told_until_a_notice_of_it_is_written(
    world: Any, say: Any
) -> None:
    first = await world.open()
    claim = await first.claim(say.session, say.owner(1), opening=say.opening())
    assert not claim.tail.lost
    await settle(first, claim, say, 1)
    await first.release(say.session, epoch=claim.epoch)
    await world.lose_tail(say.session, 2)
    again = await first.claim(say.session, say.owner(1))
    assert again.tail.lost
    assert "witness" in again.tail.detail
    await first.release(say.session, epoch=again.epoch)
    third = await first.claim(say.session, say.owner(1))
    assert third.tail.lost
    await first.append(say.session, [Draft(Kind.NOTICE, {"code": "tail_lost"})], epoch=third.epoch)
    await first.release(say.session, epoch=third.epoch)
    assert not (await first.claim(say.session, say.owner(1))).tail.lost


async def test_tr_196_a_lost_tail_is_found_by_verify(world: Any, say: Any) -> None:
    first = await world.open()
    claim = await first.claim(say.session, say.owner(1), opening=say.opening())
    await first.append(say.session, [say.message(1)], epoch=claim.epoch)
    await first.release(say.session, epoch=claim.epoch)
    await world.lose_tail(say.session, 1)
    report = await first.verify()
    assert [finding.code for finding in report.findings] == ["tail_lost"]


async def test_tr_6_a_blob_comes_back_and_a_wrong_reference_is_told(world: Any) -> None:
    ledger = await world.open()
    ref = await ledger.put_blob(b"x" * 100)
    assert ref == await ledger.put_blob(b"x" * 100)
    assert ref.startswith("sha256:")
    assert await ledger.get_blob(ref) == b"x" * 100
    with pytest.raises(LedgerDamaged):
        await ledger.get_blob("sha256:" + "0" * 64)


async def test_tr_200_a_whole_ledger_verifies_without_findings(world: Any, say: Any) -> None:
    ledger = await world.open()
    claim = await ledger.claim(say.session, say.owner(1), opening=say.opening())
    await settle(ledger, claim, say, 1, 2)
    await ledger.claim(say.other, say.owner(1), opening=say.opening())
    report = await ledger.verify()
    assert (report.sessions, report.entries, report.findings) == (2, 9, ())
    assert (await ledger.verify(say.other)).entries == 2
