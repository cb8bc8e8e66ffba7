"""A start that has not settled keeps its owner's session, by what stands in its own entry."""

from __future__ import annotations

from typing import Any

import pytest

from surefoot.ledger.owners import boot_id
from surefoot.ledger.port import Claim, Held, NotAppended

LEASE_MS = 30_000


async def begun(world: Any, say: Any, span_ms: int | None) -> tuple[Any, Any, Any]:
    """An owner whose death nobody can tell, with a start that lasts so long; a rival; the claim."""
    first, second = await world.open(), await world.open()
    claim = await first.claim(say.session, say.owner(1), opening=say.opening())
    world.deaths[1] = "cannot_tell"
    await first.append(say.session, [say.message(1)], epoch=claim.epoch)
    wall, boot = world.clock.now_ms(), world.clock.boot_ms()
    here = boot_id() if world.engine == "sqlite" else say.owner(1).boot_id
    times: dict[str, Any] = {"startedAt": wall, "startedBoot": boot, "owner": {"bootId": here}}
    if span_ms is not None:
        times |= {"deadlineAt": wall + span_ms, "deadlineBoot": boot + span_ms}
    await first.append(say.session, [say.started(1, **times)], epoch=claim.epoch)
    return first, second, claim


@pytest.mark.parametrize(
    ("span_ms", "held_ms"),
    [(None, LEASE_MS), (5_000, LEASE_MS), (120_000, 120_000), (600_000, 600_000), (7_200_000, 600_000)],
)
async def test_tr_175_a_session_is_held_while_an_effect_may_begin_and_at_most_ten_minutes(
    world: Any, say: Any, span_ms: int | None, held_ms: int
) -> None:
    _, second, _ = await begun(world, say, span_ms)
    world.clock.turn(held_ms - 1)
    assert isinstance(await second.claim(say.session, say.owner(2)), Held)
    world.clock.turn(2)
    taken = await second.claim(say.session, say.owner(2))
    assert isinstance(taken, Claim) and taken.epoch == 2
    assert taken.taken_over, "nobody saw the old owner die, so what carries its call out may live (TR-176)"


async def test_tr_174_tr_175_a_jump_of_the_wall_clock_ends_no_cover(world: Any, say: Any) -> None:
    _, second, _ = await begun(world, say, 120_000)
    world.clock.turn(60_000)
    world.clock.wall_ms += 86_400_000
    assert isinstance(await second.claim(say.session, say.owner(2)), Held)
    world.clock.wall_ms -= 2 * 86_400_000
    world.clock.boot += 61_000
    assert isinstance(await second.claim(say.session, say.owner(2)), Claim)


async def test_tr_175_a_settled_call_covers_nothing(world: Any, say: Any) -> None:
    first, second, claim = await begun(world, say, 600_000)
    await first.append(say.session, [say.closed(1)], epoch=claim.epoch)
    world.clock.turn(LEASE_MS + 1)
    assert isinstance(await second.claim(say.session, say.owner(2)), Claim)


async def test_tr_176_after_the_cover_a_woken_owner_cannot_close_what_it_started(
    world: Any, say: Any
) -> None:
    first, second, claim = await begun(world, say, 120_000)
    world.clock.turn(120_001)
    newer = await second.claim(say.session, say.owner(2))
    assert [one.attempt_id for one in newer.book.unsettled()] == [say.attempt(1)]
    late = await first.append(say.session, [say.closed(1)], epoch=claim.epoch)
    assert late == NotAppended("lease_lost")


async def test_tr_175_a_person_need_not_wait_for_the_cover(world: Any, say: Any) -> None:
    _, second, _ = await begun(world, say, 600_000)
    taken = await second.claim(say.session, say.owner(2), take_over=True)
    assert isinstance(taken, Claim) and taken.taken_over
