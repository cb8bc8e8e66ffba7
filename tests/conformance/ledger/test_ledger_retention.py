"""What every engine promises about dropping: what goes, what never does, and that the rest still verifies."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

import pytest

from surefoot.core.model import Draft, Kind, State
from surefoot.errors import LedgerError
from surefoot.ledger.port import Held
from surefoot.ledger.retention import Pruned, Wish, drop, prune

DAY_MS = 86_400_000
SECRET = "the words of the person"


@asynccontextmanager
async def shedding(world: Any, **given: Any) -> Any:
    shedder = world.shedder(**given)
    try:
        yield shedder
    finally:
        await shedder.close()


async def pruned(world: Any, say: Any, *, days: int | None = 30, dry_run: bool = False) -> Pruned:
    ledger, now = await world.open(), world.clock.now_ms()
    before = None if days is None else now - days * DAY_MS
    wish = Wish(before, now - DAY_MS, "tester", dry_run)
    async with shedding(world) as shedder:
        return await prune(ledger, shedder, say.owner(9), wish)


async def a_session(world: Any, say: Any, *after: Draft, session: str | None = None, calls: int = 3) -> None:
    """A finished session: words, calls of which the first is a write, and whatever else is given."""
    ledger, session = await world.open(), session or say.session
    claim = await ledger.claim(session, say.owner(1), opening=say.opening("named"))
    words = Draft(Kind.USER, {"turnId": "trn_1", "text": SECRET})
    await ledger.append(session, [words, say.message(*range(1, calls + 1))], epoch=claim.epoch)
    for number in range(1, calls + 1):
        effect = "NON_IDEMPOTENT" if number == 1 else "READ_ONLY"
        start = say.started(number, **{"class": effect, "arguments": '{"path":"/a"}'})
        await ledger.append(session, [start], epoch=claim.epoch)
        if number > 1 or not after:
            await ledger.append(session, [say.closed(number, text=SECRET)], epoch=claim.epoch)
    for draft in after:
        await ledger.append(session, [draft], epoch=claim.epoch)
    await ledger.release(session, epoch=claim.epoch)


async def stored(world: Any, session: str) -> str:
    ledger = await world.open()
    return "\n".join(str(dict(entry.payload)) for entry in await ledger.read(session))


@pytest.mark.promise("retention:open-stays")
@pytest.mark.parametrize("resolution", [None, "rejected"])
async def test_tr_97_nothing_of_a_session_with_an_open_call_is_dropped(
    world: Any, say: Any, resolution: str | None
) -> None:
    unknown = say.closed(1, "unknown")
    more = [] if resolution is None else [say.resolved(1, resolution)]
    await a_session(world, say, unknown, *more)
    before = await stored(world, say.session)
    world.clock.turn(4_000 * DAY_MS)
    answer = await pruned(world, say)
    assert (answer.dropped, answer.payloads) == ((), 0)
    assert [(one.session_id, one.reason) for one in answer.spared] == [(say.session, "open_calls")]
    assert await stored(world, say.session) == before
    ledger = await world.open()
    (opened,) = (await ledger.receipts(say.session)).open()
    assert (opened.arguments, opened.state) == ('{"path":"/a"}', State.UNKNOWN)
    (row,) = await ledger.sessions()
    assert (row.open_calls, row.status) == (1, "ok")


async def test_tr_97_a_read_that_is_open_keeps_its_session_too(world: Any, say: Any) -> None:
    ledger = await world.open()
    claim = await ledger.claim(say.session, say.owner(1), opening=say.opening())
    read = say.started(1, **{"class": "READ_ONLY"})
    for draft in (say.message(1), read, say.closed(1, "unknown")):
        await ledger.append(say.session, [draft], epoch=claim.epoch)
    await ledger.release(say.session, epoch=claim.epoch)
    world.clock.turn(400 * DAY_MS)
    assert [one.reason for one in (await pruned(world, say)).spared] == ["open_calls"]


async def test_tr_97_a_call_whose_owner_died_is_kept_until_somebody_judged_it(world: Any, say: Any) -> None:
    ledger = await world.open()
    claim = await ledger.claim(say.session, say.owner(1), opening=say.opening())
    for draft in (say.message(1), say.started(1)):
        await ledger.append(say.session, [draft], epoch=claim.epoch)
    world.deaths[1] = "dead"
    world.clock.turn(400 * DAY_MS)
    assert [one.reason for one in (await pruned(world, say)).spared] == ["unsettled_calls"]
    assert (await ledger.receipts(say.session)).unsettled()


async def test_tr_97_a_background_command_that_may_run_keeps_its_session(world: Any, say: Any) -> None:
    running = {"attemptId": say.attempt(1), "process": {"background": True, "pid": 41}}
    await a_session(world, say, say.closed(1), Draft(Kind.PROCESS, running))
    world.clock.turn(400 * DAY_MS)
    assert [one.reason for one in (await pruned(world, say)).spared] == ["background"]


async def test_tr_97_a_session_that_somebody_owns_is_kept(world: Any, say: Any) -> None:
    await a_session(world, say)
    other = await world.open()
    claim = await other.claim(say.session, say.owner(2))
    world.clock.turn(400 * DAY_MS)
    assert [one.reason for one in (await pruned(world, say)).spared] == ["owned"]
    await other.append(say.session, [say.message(7)], epoch=claim.epoch)


async def test_tr_200_after_a_drop_chain_and_witness_verify_also_when_opened_anew(
    world: Any, say: Any
) -> None:
    await a_session(world, say)
    await a_session(world, say, session=say.other)
    heads = [entry.head for entry in await (await world.open()).read(say.session)]
    world.clock.turn(31 * DAY_MS)
    answer = await pruned(world, say)
    assert answer.dropped == (say.session, say.other) and answer.payloads > 10
    for _ in range(2):
        ledger = await world.open()
        report = await ledger.verify()
        assert report.findings == () and report.sessions == 2
        entries = await ledger.read(say.session)
        assert [entry.head for entry in entries][: len(heads)] == heads
        assert isinstance(await ledger.claim(say.session, say.owner(3)), Held) is False
        await ledger.close()
    assert SECRET not in await stored(world, say.session)


async def test_tr_200_a_drop_leaves_digests_and_no_salt_and_a_changed_digest_is_found(
    world: Any, say: Any
) -> None:
    await a_session(world, say)
    world.clock.turn(31 * DAY_MS)
    await pruned(world, say)
    if world.engine == "memory":
        kept = world._store.sessions[say.session]
        assert all(row[5] == b"" for row in kept.rows if row[0] & 0xFFFF in kept.digests)
        kept.digests[4] = bytes(32)
    else:
        import apsw

        connection = apsw.Connection(str(world.folder / "ledger.db"))
        rows = connection.execute("SELECT kind, salt, payload, digest FROM entries").fetchall()
        held = {kind for kind, salt, payload, digest in rows if payload is not None}
        assert held == {"session.opened", "session.dropped"}
        assert all((salt is None) == (digest is not None) for _, salt, _, digest in rows)
        connection.execute("UPDATE entries SET digest = zeroblob(32) WHERE key & 65535 = 4")
        connection.close()
    findings = (await (await world.open()).verify()).findings
    assert [(one.code, one.position) for one in findings] == [("chain_broken", 4)]


async def test_tr_97_what_is_left_of_calls_stays_listed_with_its_decision_and_its_counts(
    world: Any, say: Any
) -> None:
    await a_session(world, say, say.closed(1, "unknown"), say.resolved(1))
    ledger = await world.open()
    before, (row,) = (await ledger.receipts(say.session)).statistics(), await ledger.sessions()
    world.clock.turn(31 * DAY_MS)
    await pruned(world, say)
    for _ in range(2):
        ledger = await world.open()
        book = await ledger.receipts(say.session)
        assert book.statistics() == before and book.open() == []
        (left,) = book.resolved()
        assert (left.tool, left.reach, left.state) == ("write", ("path:/a",), State.UNKNOWN)
        assert (left.resolution or {})["kind"] == "confirmed"
        assert (left.arguments, left.result) == ("", None)
        assert book.ids() == [say.attempt(1)]  # the reads left nothing
        (now,) = await ledger.sessions()
        assert (now.status, now.name, now.directory) == ("dropped", "named", "/work")
        assert now.changed_ms == row.changed_ms, "dropping is no news of a session"
        await ledger.close()


async def test_tr_1_ids_and_numbers_of_dropped_sessions_are_not_given_again(world: Any, say: Any) -> None:
    await a_session(world, say)
    world.clock.turn(31 * DAY_MS)
    await pruned(world, say)
    ledger = await world.open()
    claim = await ledger.claim(say.session, say.owner(3), opening=say.opening("another"))
    assert claim.epoch > 1 and claim.book.dropped
    await ledger.release(say.session, epoch=claim.epoch)
    await a_session(world, say, session=say.other)
    assert {row.session_id for row in await ledger.sessions()} == {say.session, say.other}
    assert (await ledger.verify()).findings == ()


async def test_case_d09_prune_with_one_unknown_present_keeps_it_listed(world: Any, say: Any) -> None:
    await a_session(world, say, say.closed(1, "unknown"))
    await a_session(world, say, session=say.other)
    world.clock.turn(31 * DAY_MS)
    answer = await pruned(world, say)
    assert answer.dropped == (say.other,)
    ledger = await world.open()
    assert [row.open_calls for row in await ledger.sessions()] == [1, 0]
    assert [one.attempt_id for one in (await ledger.receipts(say.session)).open()] == [say.attempt(1)]


async def test_tr_97_young_sessions_and_a_dry_run_change_nothing(world: Any, say: Any) -> None:
    await a_session(world, say)
    before = await stored(world, say.session)
    world.clock.turn(29 * DAY_MS)
    assert (await pruned(world, say)).dropped == ()
    assert (await pruned(world, say, days=None)).dropped == ()
    told = await pruned(world, say, days=1, dry_run=True)
    assert told.dropped == (say.session,) and told.payloads > 5
    assert await stored(world, say.session) == before


async def test_tr_97_a_session_that_changed_since_it_was_listed_is_judged_anew(world: Any, say: Any) -> None:
    await a_session(world, say)
    ledger = await world.open()
    (row,) = await ledger.sessions()
    claim = await ledger.claim(say.session, say.owner(1))
    for draft in (say.message(8), say.started(8), say.closed(8, "unknown")):
        await ledger.append(say.session, [draft], epoch=claim.epoch)
    await ledger.release(say.session, epoch=claim.epoch)
    async with shedding(world) as shedder:
        told = await drop(ledger, shedder, say.owner(9), row, cause="retention", who="tester")
    assert told == "open_calls"
    assert SECRET in await stored(world, say.session)


async def test_tr_196_a_session_whose_tail_was_lost_is_kept(world: Any, say: Any) -> None:
    await a_session(world, say, say.closed(1), Draft(Kind.TODO, {"items": []}))
    await world.lose_tail(say.session, 1)
    world.clock.turn(31 * DAY_MS)
    assert [one.reason for one in (await pruned(world, say)).spared] == ["tail_lost"]
    assert SECRET in await stored(world, say.session)


async def test_tr_172_a_drop_under_an_older_epoch_drops_nothing(world: Any, say: Any) -> None:
    await a_session(world, say)
    ledger = await world.open()
    claim = await ledger.claim(say.session, say.owner(1))
    async with shedding(world) as shedder:
        held = await shedder.held(say.session)
        with pytest.raises(LedgerError):
            await shedder.drop(say.session, epoch=claim.epoch - 1, upto=claim.position)
        assert await shedder.held(say.session) == held


async def test_tr_97_a_drop_that_broke_off_reads_as_done_and_the_next_one_finishes_it(
    world: Any, say: Any
) -> None:
    await a_session(world, say, say.closed(1, "unknown"), say.resolved(1))
    world.clock.turn(31 * DAY_MS)

    class Broken:
        """Dies after some rows, as a kill does between two commits."""

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        async def drop(self, session: str, *, epoch: int, upto: int) -> int:
            await self.inner.drop(session, epoch=epoch, upto=5)
            raise LedgerError("the disk went away")

    ledger = await world.open()
    (row,) = await ledger.sessions()
    async with shedding(world) as shedder:
        with pytest.raises(LedgerError):
            await drop(ledger, Broken(shedder), say.owner(9), row, cause="retention", who="tester")  # type: ignore[arg-type]
        assert await shedder.held(say.session) > 0
    again = await world.open()
    (now,) = await again.sessions()
    assert (now.status, now.open_calls) == ("dropped", 0)
    assert (await again.receipts(say.session)).ids() == [say.attempt(1)]
    assert (await again.verify()).findings == ()
    finished = await pruned(world, say, days=None)
    assert finished.dropped == (say.session,) and finished.payloads > 0
    assert SECRET not in await stored(world, say.session)
    assert (await pruned(world, say)).dropped == ()
    (now,) = await (await world.open()).sessions()
    assert now.changed_ms == row.changed_ms


async def test_tr_6_old_blobs_that_nobody_names_go_and_all_others_stay(world: Any, say: Any) -> None:
    ledger = await world.open()
    now = world.clock.now_ms()
    refs = {name: await ledger.put_blob(name.encode()) for name in ("result", "intent", "loose", "young")}
    for name, ref in refs.items():
        world.blob_stored_at(ref, now - (DAY_MS * 2 if name != "young" else DAY_MS - 1))
    named = {"attemptId": say.attempt(1), "state": "unknown", "resultRef": refs["result"]}
    start = say.started(1, writeIntents=[{"path": "/a", "before": refs["intent"]}])
    claim = await ledger.claim(say.session, say.owner(1), opening=say.opening())
    for draft in (say.message(1), start, Draft(Kind.CLOSED, named)):
        await ledger.append(say.session, [draft], epoch=claim.epoch)
    await ledger.release(say.session, epoch=claim.epoch)
    assert (await pruned(world, say, dry_run=True)).swept.blobs == 1
    swept = (await pruned(world, say)).swept
    assert (swept.blobs, swept.size_bytes) == (1, len("loose"))
    for name in ("result", "intent", "young"):
        assert await ledger.get_blob(refs[name]) == name.encode()
    with pytest.raises(LedgerError):
        await ledger.get_blob(refs["loose"])
    assert (await ledger.verify()).findings == ()


async def test_tr_6_a_blob_stored_again_is_young_again(world: Any, say: Any) -> None:
    ledger = await world.open()
    ref = await ledger.put_blob(b"twice")
    world.blob_stored_at(ref, 1_000)
    assert await ledger.put_blob(b"twice") == ref
    assert (await pruned(world, say)).swept.blobs == 0
    assert await ledger.get_blob(ref) == b"twice"


async def test_tr_6_what_a_living_owner_stored_stays_however_the_clock_jumped(world: Any, say: Any) -> None:
    ledger = await world.open()
    claim = await ledger.claim(say.session, say.owner(1), opening=say.opening())
    ref = await ledger.put_blob(b"about to be named")
    world.blob_stored_at(ref, world.clock.now_ms() + 1)
    world.clock.turn(3 * DAY_MS)
    assert (await pruned(world, say)).swept.blobs == 0
    await ledger.release(say.session, epoch=claim.epoch)
    assert (await pruned(world, say)).swept.blobs == 1


async def test_tr_6_blobs_of_a_dropped_session_go_unless_another_names_them(world: Any, say: Any) -> None:
    ledger = await world.open()
    refs = [await ledger.put_blob(text) for text in (b"own", b"shared")]
    for ref in refs:
        world.blob_stored_at(ref, 1_000)
    done = [{"attemptId": say.attempt(1), "state": "succeeded", "resultRef": ref} for ref in refs]
    await a_session(
        world, say, Draft(Kind.CLOSED, done[0]), Draft(Kind.LATE, {"attemptId": "x", "ref": refs[1]})
    )
    await a_session(world, say, Draft(Kind.NOTICE, {"code": "x", "ref": refs[1]}), session=say.other, calls=1)
    world.clock.turn(31 * DAY_MS)
    answer = await pruned(world, say)
    assert answer.dropped == (say.session,) and [one.reason for one in answer.spared] == ["unsettled_calls"]
    assert answer.swept.blobs == 1
    assert await ledger.get_blob(refs[1]) == b"shared"
    assert (await ledger.verify()).findings == ()


async def test_tr_93_tr_97_compaction_and_dropping_go_together_and_verify(world: Any, say: Any) -> None:
    notes = {"notes": SECRET, "counts": {}, "calls": [], "messages": 3, "keepsLast": False, "pinned": []}
    compacted = Draft(Kind.COMPACTED, notes)
    await a_session(world, say, say.closed(1, "unknown"), compacted)
    await a_session(world, say, say.closed(1, "unknown"), say.resolved(1), compacted, session=say.other)
    world.clock.turn(31 * DAY_MS)
    assert (await pruned(world, say)).dropped == (say.other,)
    for _ in range(2):
        ledger = await world.open()
        assert (await ledger.verify()).findings == ()
        (opened,) = (await ledger.receipts(say.session)).open()
        assert opened.arguments == '{"path":"/a"}'
        assert (await ledger.receipts(say.other)).statistics()["confirmed"] == 1
        claim = await ledger.claim(say.session, say.owner(4))
        await ledger.append(say.session, [compacted], epoch=claim.epoch)
        await ledger.close()
    assert SECRET in await stored(world, say.session) and SECRET not in await stored(world, say.other)
