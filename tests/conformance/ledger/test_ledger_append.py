"""What every engine promises about `append`: durable order, epochs, judges, legal moves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from surefoot.core.model import Draft, Kind, State
from surefoot.errors import LedgerError, SessionMissing
from surefoot.ledger.port import Appended, NotAppended


@pytest.fixture
async def owned(world: Any, say: Any) -> Any:
    ledger = await world.open()
    claim = await ledger.claim(say.session, say.owner(1), opening=say.opening("first"))
    return ledger, claim


@pytest.mark.promise("ledger:engines-agree")
async def test_tr_22_entries_come_back_in_order_with_their_payload(owned: Any, say: Any) -> None:
    ledger, claim = owned
    told = await ledger.append(say.session, [say.message(1)], epoch=claim.epoch)
    assert isinstance(told, Appended)
    entries = await ledger.read(say.session)
    assert [entry.position for entry in entries] == [1, 2, 3]
    assert [entry.kind for entry in entries] == [Kind.SESSION_OPENED, Kind.SESSION_OWNED, Kind.ASSISTANT]
    assert entries[2].payload == say.message(1).payload
    assert entries[2].head == told.entries[0].head
    assert [entry.position for entry in await ledger.read(say.session, after=1, limit=1)] == [2]


async def test_tr_22_calls_that_start_together_share_one_commit_and_keep_their_order(
    owned: Any, say: Any
) -> None:
    ledger, claim = owned
    await ledger.append(say.session, [say.message(*range(8))], epoch=claim.epoch)
    told = await asyncio.gather(
        *(
            ledger.append(say.session, [say.started(n)], epoch=claim.epoch, judge=lambda: None)
            for n in range(8)
        )
    )
    assert [answer.entries[0].position for answer in told] == list(range(4, 12))
    assert all(claim.book.get(say.attempt(n)).state is State.STARTED for n in range(8))


async def test_tr_22_a_payload_changed_by_the_caller_afterwards_is_stored_as_it_was_given(
    owned: Any, say: Any
) -> None:
    ledger, claim = owned
    payload = {"items": ["a"]}
    waiting = asyncio.ensure_future(
        ledger.append(say.session, [Draft(Kind.TODO, payload)], epoch=claim.epoch)
    )
    await asyncio.sleep(0)
    payload["items"].append("b")
    await waiting
    assert (await ledger.read(say.session, after=2))[0].payload == {"items": ["a"]}


async def test_a_lone_surrogate_in_a_payload_survives(owned: Any, say: Any) -> None:
    ledger, claim = owned
    await ledger.append(say.session, [Draft(Kind.USER, {"text": "\ud800 é"})], epoch=claim.epoch)
    assert (await ledger.read(say.session, after=2))[0].payload == {"text": "\ud800 é"}


@pytest.mark.promise("ledger:fenced")
async def test_tr_172_a_lower_epoch_is_refused_and_writes_nothing(world: Any, owned: Any, say: Any) -> None:
    ledger, claim = owned
    world.deaths[1] = "dead"
    second = await world.open()
    newer = await second.claim(say.session, say.owner(2))
    assert newer.epoch == claim.epoch + 1
    told = await ledger.append(say.session, [say.message(1)], epoch=claim.epoch)
    assert told == NotAppended("lease_lost")
    assert [entry.kind for entry in await second.read(say.session, after=2)] == [Kind.SESSION_OWNED]
    assert [entry.epoch for entry in await second.read(say.session)] == [1, 1, 2]


async def test_tr_176_the_result_of_a_stale_owner_is_not_written(world: Any, owned: Any, say: Any) -> None:
    ledger, claim = owned
    await ledger.append(say.session, [say.message(1)], epoch=claim.epoch)
    await ledger.append(say.session, [say.started(1)], epoch=claim.epoch)
    second = await world.open()
    newer = await second.claim(say.session, say.owner(2), take_over=True)
    gone = Draft(Kind.CLOSED, {"attemptId": say.attempt(1), "state": "unknown", "reason": "owner_died"})
    await second.append(say.session, [gone], epoch=newer.epoch)
    assert await ledger.append(say.session, [say.closed(1)], epoch=claim.epoch) == NotAppended("lease_lost")
    assert newer.book.get(say.attempt(1)).state is State.UNKNOWN


async def test_tr_195_a_position_that_has_moved_on_is_a_value_and_not_an_exception(
    owned: Any, say: Any
) -> None:
    ledger, _ = owned
    draft = Draft(Kind.TODO, {"items": []})
    assert isinstance(await ledger.append(say.session, [draft], epoch=1, after=2), Appended)
    assert await ledger.append(say.session, [draft], epoch=1, after=2) == NotAppended("position_conflict")
    both = await asyncio.gather(
        ledger.append(say.session, [draft], epoch=1, after=3),
        ledger.append(say.session, [draft], epoch=1, after=3),
    )
    assert [type(answer).__name__ for answer in both] == ["Appended", "NotAppended"]


async def test_tr_21_a_judge_refuses_with_its_code_and_nothing_is_written(owned: Any, say: Any) -> None:
    ledger, claim = owned
    await ledger.append(say.session, [say.message(1)], epoch=claim.epoch)
    told = await ledger.append(say.session, [say.started(1)], epoch=claim.epoch, judge=lambda: "fenced")
    assert told == NotAppended("fenced")
    assert claim.book.get(say.attempt(1)).state is State.DISPATCHED
    assert len(await ledger.read(say.session)) == 3


async def test_tr_21_two_calls_that_start_together_cannot_both_pass(owned: Any, say: Any) -> None:
    """The first of a group closes as unknown; the judge of the second, queued in the same tick, sees it."""
    ledger, claim = owned
    await ledger.append(say.session, [say.message(1, 2)], epoch=claim.epoch)
    await ledger.append(say.session, [say.started(1)], epoch=claim.epoch)

    def judge() -> str | None:
        return "fenced" if claim.book.open() else None

    first, second = await asyncio.gather(
        ledger.append(say.session, [say.closed(1, "unknown")], epoch=claim.epoch),
        ledger.append(say.session, [say.started(2)], epoch=claim.epoch, judge=judge),
    )
    assert isinstance(first, Appended)
    assert second == NotAppended("fenced")


async def test_tr_21_two_retries_of_one_attempt_cannot_both_start(owned: Any, say: Any) -> None:
    ledger, claim = owned
    await ledger.append(say.session, [say.message(1, 2, 3)], epoch=claim.epoch)
    await ledger.append(say.session, [say.started(1)], epoch=claim.epoch)
    await ledger.append(say.session, [say.closed(1, "unknown")], epoch=claim.epoch)
    told = await asyncio.gather(
        *(
            ledger.append(say.session, [say.started(n, supersedes=say.attempt(1))], epoch=claim.epoch)
            for n in (2, 3)
        )
    )
    assert [type(answer).__name__ for answer in told] == ["Appended", "NotAppended"]
    assert claim.book.get(say.attempt(1)).superseded_by == say.attempt(2)


async def test_two_racing_decisions_make_one_record(owned: Any, say: Any) -> None:
    ledger, claim = owned
    await ledger.append(say.session, [say.message(1)], epoch=claim.epoch)
    await ledger.append(say.session, [say.started(1)], epoch=claim.epoch)
    await ledger.append(say.session, [say.closed(1, "unknown")], epoch=claim.epoch)
    told = await asyncio.gather(
        ledger.append(say.session, [say.resolved(1, "confirmed")], epoch=claim.epoch),
        ledger.append(say.session, [say.resolved(1, "denied")], epoch=claim.epoch),
    )
    assert [type(answer).__name__ for answer in told] == ["Appended", "NotAppended"]
    assert told[1] == NotAppended("already_resolved")


@pytest.mark.parametrize("state", ["succeeded", "failed", "unknown"])
async def test_tr_37_a_settled_receipt_is_not_settled_again(owned: Any, say: Any, state: str) -> None:
    ledger, claim = owned
    await ledger.append(say.session, [say.message(1)], epoch=claim.epoch)
    assert isinstance(await ledger.append(say.session, [say.closed(1)], epoch=claim.epoch), NotAppended)
    await ledger.append(say.session, [say.started(1)], epoch=claim.epoch)
    await ledger.append(say.session, [say.closed(1, state)], epoch=claim.epoch)
    again = await ledger.append(say.session, [say.closed(1, "failed")], epoch=claim.epoch)
    assert again == NotAppended(f"illegal_{state}_failed")


async def test_tr_2_an_entry_about_an_attempt_nobody_knows_is_refused(owned: Any, say: Any) -> None:
    ledger, claim = owned
    assert await ledger.append(say.session, [say.started(9)], epoch=claim.epoch) == NotAppended(
        "attempt_unknown"
    )


async def test_tr_195_an_append_of_several_entries_is_whole_or_absent(owned: Any, say: Any) -> None:
    ledger, claim = owned
    drafts = [say.message(1), say.started(1), say.closed(1), say.closed(1)]
    assert isinstance(await ledger.append(say.session, drafts, epoch=claim.epoch), NotAppended)
    assert len(await ledger.read(say.session)) == 2
    assert isinstance(await ledger.append(say.session, drafts[:3], epoch=claim.epoch), Appended)
    assert claim.book.get(say.attempt(1)).state is State.SUCCEEDED


@pytest.mark.promise("ledger:append-only")
async def test_tr_8_nothing_that_follows_changes_an_entry_that_was_written(owned: Any, say: Any) -> None:
    ledger, claim = owned
    await ledger.append(say.session, [say.message(1)], epoch=claim.epoch)
    before = await ledger.read(say.session)
    await ledger.append(say.session, [say.started(1)], epoch=claim.epoch)
    await ledger.append(say.session, [say.closed(1, "unknown")], epoch=claim.epoch)
    await ledger.append(say.session, [say.resolved(1)], epoch=claim.epoch)
    await ledger.release(say.session, epoch=claim.epoch)
    await ledger.claim(say.session, say.owner(1))
    assert (await ledger.read(say.session))[:3] == before
    assert (await ledger.verify()).findings == ()


async def test_tr_29_a_cancelled_caller_cancels_only_its_waiting(owned: Any, say: Any) -> None:
    ledger, claim = owned
    waiting = asyncio.ensure_future(ledger.append(say.session, [say.message(1)], epoch=claim.epoch))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await ledger.append(say.session, [say.started(1)], epoch=claim.epoch)
    assert claim.book.get(say.attempt(1)).state is State.STARTED


async def test_tr_8_an_entry_of_a_newer_kind_and_unknown_fields_survive(owned: Any, say: Any) -> None:
    ledger, claim = owned
    newer = Draft("attempt.weighed", {"attemptId": say.attempt(1), "grams": 3})
    await ledger.append(say.session, [say.message(1)], epoch=claim.epoch)
    await ledger.append(say.session, [say.started(1, colour="green")], epoch=claim.epoch)
    assert isinstance(await ledger.append(say.session, [newer], epoch=claim.epoch), Appended)
    assert (await ledger.read(say.session, after=4))[0].payload["grams"] == 3
    assert claim.book.get(say.attempt(1)).extra == {"colour": "green"}


async def test_an_empty_append_and_a_payload_without_json_form_are_refused_at_the_call(
    owned: Any, say: Any
) -> None:
    ledger, claim = owned
    with pytest.raises(ValueError, match="at least one draft"):
        await ledger.append(say.session, [], epoch=claim.epoch)
    with pytest.raises(TypeError):
        await ledger.append(say.session, [Draft(Kind.TODO, {"items": object()})], epoch=claim.epoch)
    assert len(await ledger.read(say.session)) == 2


async def test_a_closed_handle_says_so(world: Any, say: Any) -> None:
    ledger = await world.open()
    await ledger.close()
    with pytest.raises(LedgerError, match="closed"):
        await ledger.append(say.session, [say.message(1)], epoch=1)


async def test_an_unknown_session_is_told_as_missing(world: Any, say: Any) -> None:
    ledger = await world.open()
    for ask in (
        ledger.read(say.session),
        ledger.receipts(say.session),
        ledger.claim(say.session, say.owner(1)),
    ):
        with pytest.raises(SessionMissing, match=say.session):
            await ask


async def test_a_read_of_some_kinds_gives_these_in_order_and_no_other(owned: Any, say: Any) -> None:
    ledger, claim = owned
    await ledger.append(say.session, [say.message(1)], epoch=claim.epoch)
    await ledger.append(say.session, [say.started(1)], epoch=claim.epoch)
    await ledger.append(say.session, [say.message(2)], epoch=claim.epoch)
    kinds = (Kind.ASSISTANT.value, Kind.SESSION_OPENED.value)
    assert [one.position for one in await ledger.read(say.session, kinds=kinds)] == [1, 3, 5]
    assert [one.position for one in await ledger.read(say.session, after=1, limit=1, kinds=kinds)] == [3]
    assert await ledger.read(say.session, kinds=("attempt",)) == []
