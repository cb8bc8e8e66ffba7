"""An append that nobody could share is committed in the step that makes it; others share as before."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from surefoot.errors import LedgerError
from surefoot.ledger.admission import AT_ONCE_IN_A_ROW
from surefoot.ledger.port import Appended, NotAppended
from surefoot.ledger.sqlite import SqliteLedger


@pytest.fixture
async def owned(ledger: SqliteLedger, say: Any) -> Any:
    claim = await ledger.claim(say.session, say.owner(), opening=say.opening())
    ledger._note_time = lambda seconds: None  # type: ignore[method-assign] (a busy machine is no slow disk)
    ledger._slow, ledger._in_a_row = False, 0
    await asyncio.sleep(0)
    return ledger, claim


def waits(work: Coroutine[Any, Any, Any]) -> bool:
    """Whether a coroutine waits for the loop; one that does is left as it is."""
    try:
        work.send(None)
    except StopIteration:
        return False
    work.close()
    return True


async def test_tr_22_an_append_nobody_can_share_waits_for_no_turn_of_the_loop(owned: Any, say: Any) -> None:
    ledger, claim = owned
    assert not waits(ledger.append(say.session, [say.message(1)], epoch=claim.epoch))
    assert claim.book.get(say.attempt(1)) is not None
    assert len(await ledger.read(say.session)) == 3


async def test_tr_22_one_that_somebody_may_share_waits_for_its_turn(owned: Any, say: Any) -> None:
    ledger, claim = owned
    asyncio.get_running_loop().call_soon(lambda: None)
    assert waits(ledger.append(say.session, [say.message(1)], epoch=claim.epoch))
    assert claim.book.get(say.attempt(1)) is None


async def test_tr_22_appends_of_several_tasks_at_once_are_one_commit(owned: Any, say: Any) -> None:
    ledger, claim = owned
    await ledger.append(say.session, [say.message(*range(8))], epoch=claim.epoch)
    commits: list[int] = []
    ledger._commit = lambda batches, commit=ledger._commit: (commits.append(len(batches)), commit(batches))
    drafts = [say.started(number) for number in range(8)]
    answers = await asyncio.gather(
        *(ledger.append(say.session, [draft], epoch=claim.epoch) for draft in drafts)
    )
    assert all(isinstance(answer, Appended) for answer in answers)
    assert commits == [8]


async def test_who_appends_without_end_leaves_the_others_their_turns(owned: Any, say: Any) -> None:
    ledger, claim = owned
    turns: list[int] = []
    made: list[int] = []

    def turn() -> None:
        turns.append(len(made))

    timer = asyncio.get_running_loop().call_later(0, turn)
    for number in range(2 * AT_ONCE_IN_A_ROW):
        await ledger.append(say.session, [say.todo(str(number))], epoch=claim.epoch)
        made.append(number)
    timer.cancel()
    assert turns and turns[0] < AT_ONCE_IN_A_ROW


async def test_an_append_at_once_is_judged_and_fails_like_any_other(owned: Any, say: Any, disk: Any) -> None:
    ledger, claim = owned
    refused = await ledger.append(say.session, [say.todo()], epoch=claim.epoch, judge=lambda: "fenced")
    stale = await ledger.append(say.session, [say.todo()], epoch=claim.epoch + 1)
    assert (refused, stale) == (NotAppended("fenced"), NotAppended("lease_lost"))

    def fails(batches: Any) -> None:
        raise LedgerError("no")

    ledger._commit, commit = fails, ledger._commit
    with pytest.raises(LedgerError, match="no"):
        await ledger.append(say.session, [say.todo()], epoch=claim.epoch)
    ledger._commit = commit
    assert isinstance(await ledger.append(say.session, [say.todo()], epoch=claim.epoch), Appended)
    assert len(await ledger.read(say.session)) == 3
