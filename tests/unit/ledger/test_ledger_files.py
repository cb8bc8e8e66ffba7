"""The files of a ledger: the four answers, the guard of names, the witness, damage."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Any

import apsw
import pytest

from surefoot.core.model import Draft, Kind
from surefoot.errors import (
    LedgerDamaged,
    LedgerError,
    LedgerForked,
    LedgerLocked,
    LedgerNewer,
    LedgerUncertain,
    SessionMissing,
)
from surefoot.ledger import places
from surefoot.ledger.audit import audit_folder
from surefoot.ledger.gate import Gate
from surefoot.ledger.opening import open_ledger, open_reader
from surefoot.ledger.port import Appended
from surefoot.ledger.rows import unreadable_rows
from surefoot.ledger.sqlite import Tuning
from surefoot.ledger.witness import RECORD_BYTES, Witness, tag_of

DEAD = Tuning(death=lambda owner, folder: "dead")


async def written(folder: Path, say: Any, entries: int = 3) -> None:
    """A ledger with one released session of `entries` further entries."""
    ledger = await open_ledger(folder, tuning=DEAD)
    claim = await ledger.claim(say.session, say.owner(), opening=say.opening())
    for number in range(entries):
        await ledger.append(say.session, [say.todo(str(number))], epoch=claim.epoch)
    await ledger.close()


def into_the_file(folder: Path) -> None:
    connection = apsw.Connection(str(folder / "ledger.db"))
    connection.execute("SELECT count(*) FROM entries").fetchall()
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close()


def status_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# The folder and its names.


async def test_ux_164_the_folder_has_its_rooms_and_belongs_to_its_owner_alone(
    tmp_path: Path, say: Any
) -> None:
    folder = tmp_path / "a" / "b"
    await written(folder, say)
    for name in ("ledger.db", "ledger.db-wal", "witness", "gate", "ballast", "blobs", "processes", "owners"):
        assert (folder / name).exists(), name
    for room in (folder, folder / "blobs", folder / "processes", folder / "owners"):
        assert stat.S_IMODE(room.stat().st_mode) == 0o700


def test_ux_164_a_project_is_named_by_its_repository_root_and_its_real_path(tmp_path: Path) -> None:
    root = tmp_path / "pebble"
    (root / ".git").mkdir(parents=True)
    (root / "deep" / "down").mkdir(parents=True)
    (tmp_path / "link").symlink_to(root)
    name = places.project_name(root)
    assert name.startswith("pebble-")
    assert len(name) == len("pebble-") + 12
    assert (
        name == places.project_name(root / "deep" / "down") == places.project_name(tmp_path / "link" / "deep")
    )
    (tmp_path / "plain").mkdir()
    assert places.project_name(tmp_path / "plain") != places.project_name(tmp_path)
    assert places.project_folder(tmp_path, root) == tmp_path / name


def test_ux_164_the_name_of_a_project_is_utf_8_whatever_bytes_its_folder_is_called(tmp_path: Path) -> None:
    roots = [tmp_path / os.fsdecode(name) for name in (b"gr\xfcn", b"gr\xf6n", "grün".encode())]
    for root in roots:
        (root / ".git").mkdir(parents=True)
    names = [places.project_name(root) for root in roots]
    assert [name[:-13] for name in names] == ["gr\ufffdn", "gr\ufffdn", "grün"] and len(set(names)) == 3


async def test_ux_49_a_session_whose_words_are_not_utf_8_is_kept_listed_and_read_back(
    tmp_path: Path, say: Any
) -> None:
    directory = os.fsdecode(b"/home/gr\xfcn")
    ledger = await open_ledger(tmp_path / "a", tuning=DEAD)
    opening = Draft(Kind.SESSION_OPENED, {"directory": directory, "model": "small"})
    claim = await ledger.claim(say.session, say.owner(), opening=opening)
    await ledger.append(say.session, [say.todo("1")], epoch=claim.epoch)
    await ledger.release(say.session, epoch=claim.epoch)
    await ledger.close()
    reader = open_reader(tmp_path / "a")
    assert [(row.directory, row.calls, row.status) for row in await reader.sessions()] == [
        (directory, 0, "ok")
    ]
    await reader.close()
    assert audit_folder(tmp_path / "a").findings == ()


async def test_ux_164_a_ledger_under_a_name_that_is_not_utf_8_is_refused_in_a_sentence(
    tmp_path: Path,
) -> None:
    with pytest.raises(LedgerError, match="not UTF-8; choose another folder with SUREFOOT_HOME"):
        await open_ledger(tmp_path / os.fsdecode(b"gr\xfcn"))


# TR-53: four answers.


async def test_tr_53_absent_is_told_and_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(SessionMissing) as caught:
        await open_ledger(tmp_path / "none", create=False)
    assert caught.value.facts["answer"] == "absent"
    with pytest.raises(SessionMissing) as caught:
        open_reader(tmp_path / "none")
    assert caught.value.facts["answer"] == "absent"
    assert os.listdir(tmp_path) == []  # noqa: PTH208


@pytest.mark.parametrize(
    "content", [b"not a database at all, but some text " * 200, b"SQLite format 3\0" + b"\7" * 9000]
)
async def test_tr_53_unreadable_is_told_and_the_file_stays_as_it_is(tmp_path: Path, content: bytes) -> None:
    places.make_folder(tmp_path / "ledger")
    path = tmp_path / "ledger" / "ledger.db"
    path.write_bytes(content)
    with pytest.raises(LedgerDamaged):
        await open_ledger(tmp_path / "ledger")
    assert path.read_bytes() == content


async def test_tr_53_a_foreign_database_is_unreadable(tmp_path: Path) -> None:
    places.make_folder(tmp_path / "ledger")
    connection = apsw.Connection(str(tmp_path / "ledger" / "ledger.db"))
    connection.execute("CREATE TABLE something (x)")
    connection.close()
    with pytest.raises(LedgerDamaged, match="no surefoot ledger"):
        await open_ledger(tmp_path / "ledger")


async def test_tr_53_a_newer_schema_is_refused_with_its_own_answer(tmp_path: Path, say: Any) -> None:
    await written(tmp_path / "ledger", say)
    connection = apsw.Connection(str(tmp_path / "ledger" / "ledger.db"))
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(LedgerNewer, match="newer surefoot") as caught:
        await open_ledger(tmp_path / "ledger")
    assert caught.value.facts["answer"] == "newer"


async def test_tr_53_locked_is_told_after_the_gates_time(tmp_path: Path, say: Any) -> None:
    folder = tmp_path / "ledger"
    await written(folder, say)
    holder = Gate(folder / "gate")
    assert holder.enter_now()
    with pytest.raises(LedgerLocked) as caught:
        await open_ledger(folder, tuning=Tuning(gate_wait_seconds=0.05))
    assert caught.value.facts["answer"] == "locked"
    holder.close()


async def test_tr_192_a_commit_behind_a_shut_gate_is_refused_and_later_accepted(
    tmp_path: Path, say: Any
) -> None:
    folder = tmp_path / "ledger"
    ledger = await open_ledger(folder, tuning=Tuning(gate_wait_seconds=0.05))
    claim = await ledger.claim(say.session, say.owner(), opening=say.opening())
    holder = Gate(folder / "gate")
    assert holder.enter_now()
    with pytest.raises(LedgerLocked):
        await ledger.append(say.session, [say.todo()], epoch=claim.epoch)
    holder.close()
    assert isinstance(await ledger.append(say.session, [say.todo()], epoch=claim.epoch), Appended)
    await ledger.close()


async def test_a_reader_reads_and_changes_nothing(tmp_path: Path, say: Any) -> None:
    folder = tmp_path / "ledger"
    await written(folder, say)
    before = (folder / "ledger.db").read_bytes(), (folder / "witness").read_bytes()
    reader = open_reader(folder)
    assert len(await reader.read(say.session)) == 5
    assert [row.session_id for row in await reader.sessions()] == [say.session]
    assert not hasattr(reader, "claim")
    await reader.close()
    with pytest.raises(LedgerError, match="closed"):
        await reader.sessions()
    assert before == ((folder / "ledger.db").read_bytes(), (folder / "witness").read_bytes())


# TR-191, TR-193, TR-194, TR-198.


async def test_tr_191_the_ledgers_files_are_known_by_device_and_inode_under_every_name(
    tmp_path: Path, say: Any
) -> None:
    folder = tmp_path / "ledger"
    ledger = await open_ledger(folder)
    await ledger.claim(say.session, say.owner(), opening=say.opening())
    assert len(places.ledger_files(folder)) == 3
    os.link(folder / "ledger.db", tmp_path / "hard")
    (tmp_path / "soft").symlink_to(folder / "ledger.db-wal")
    (tmp_path / "plain").write_text("x")
    for path in (folder / "ledger.db", folder / "ledger.db-shm", tmp_path / "hard", tmp_path / "soft"):
        assert places.is_ledger_file(path, folder)
    assert places.is_ledger_file((tmp_path / "hard").stat(), folder)
    for path in (tmp_path / "plain", tmp_path / "absent", folder / "gate"):
        assert not places.is_ledger_file(path, folder)
    await ledger.close()


async def test_tr_193_closing_keeps_the_log_and_moves_nothing_into_the_file(tmp_path: Path, say: Any) -> None:
    folder = tmp_path / "ledger"
    ledger = await open_ledger(folder)
    size = (folder / "ledger.db").stat().st_size
    claim = await ledger.claim(say.session, say.owner(), opening=say.opening())
    await ledger.append(say.session, [say.todo("x" * 50_000)], epoch=claim.epoch)
    await ledger.close()
    assert (folder / "ledger.db").stat().st_size == size
    assert (folder / "ledger.db-wal").stat().st_size > 50_000


@pytest.mark.parametrize("name", ["ledger.db", "ledger.db-wal"])
async def test_tr_194_a_commit_after_the_file_was_swapped_is_not_acknowledged(
    tmp_path: Path, say: Any, name: str
) -> None:
    folder = tmp_path / "ledger"
    ledger = await open_ledger(folder)
    claim = await ledger.claim(say.session, say.owner(), opening=say.opening())
    await ledger.append(say.session, [say.message(1)], epoch=claim.epoch)
    shutil.copy(folder / name, tmp_path / "copy")
    (folder / name).rename(tmp_path / "moved")
    (tmp_path / "copy").rename(folder / name)
    with pytest.raises(LedgerUncertain, match="moved or replaced"):
        await ledger.append(say.session, [say.started(1)], epoch=claim.epoch)
    assert claim.book.get(say.attempt(1)).state.value == "dispatched"
    await ledger.close()


async def test_tr_194_with_the_names_gone_every_further_start_is_refused(tmp_path: Path, say: Any) -> None:
    folder = tmp_path / "ledger"
    ledger = await open_ledger(folder)
    claim = await ledger.claim(say.session, say.owner(), opening=say.opening())
    (folder / "ledger.db").rename(tmp_path / "moved")
    with pytest.raises(LedgerUncertain):
        await ledger.append(say.session, [say.todo()], epoch=claim.epoch)
    with pytest.raises(LedgerError, match="not certain yet"):
        await ledger.append(say.session, [say.todo()], epoch=claim.epoch)
    await ledger.close()


async def test_tr_198_every_use_in_a_forked_child_raises_at_once(tmp_path: Path, say: Any) -> None:
    ledger = await open_ledger(tmp_path / "ledger")
    await ledger.claim(say.session, say.owner(), opening=say.opening())
    verbs = (
        lambda: ledger.append(say.session, [say.todo()], epoch=1),
        lambda: ledger.resolve(ValueError()),
        lambda: ledger.read(say.session),
        ledger.sessions,
        lambda: ledger.receipts(say.session),
        lambda: ledger.claim(say.session, say.owner()),
        lambda: ledger.renew(say.session, epoch=1, until_ms=0),
        lambda: ledger.release(say.session, epoch=1),
        lambda: ledger.put_blob(b""),
        lambda: ledger.get_blob(""),
        ledger.verify,
        ledger.close,
    )
    child = os.fork()
    if child == 0:
        raised = 0
        for verb in verbs:
            work = verb()
            try:
                work.send(None)
            except LedgerForked:
                raised += 1
            except BaseException:
                break
        os._exit(0 if raised == len(verbs) else 1)
    assert status_of(child) == 0
    assert isinstance(await ledger.append(say.session, [say.todo()], epoch=1), Appended)
    await ledger.close()


async def test_tr_192_a_forked_child_does_not_keep_the_gate_shut(tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    assert gate.enter_now()
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(theirs)
        os.read(ours, 1)
        os._exit(0)
    gate.close()
    other = Gate(tmp_path / "gate")
    other.enter()
    other.leave()
    other.close()
    os.close(theirs)
    os.close(ours)
    assert status_of(child) == 0


# TR-196: the witness.


async def reopened(folder: Path, say: Any) -> Any:
    ledger = await open_ledger(folder, tuning=DEAD)
    claim = await ledger.claim(say.session, say.owner(2))
    await ledger.close()
    return claim


def record(folder: Path, **change: Any) -> None:
    witness = Witness(folder / "witness")
    seen = witness.read(1)
    assert seen is not None
    facts = {"epoch": seen.epoch, "position": seen.position, "head": seen.head, **change}
    witness.write(1, (seen.tag, 0), facts["epoch"], facts["position"], facts["head"])
    witness.close()


async def test_tr_196_a_witness_that_agrees_or_is_behind_means_nothing(tmp_path: Path, say: Any) -> None:
    folder = tmp_path / "ledger"
    await written(folder, say)
    old = (folder / "witness").read_bytes()
    assert not (await reopened(folder, say)).tail.lost
    (folder / "witness").write_bytes(old)
    assert not (await reopened(folder, say)).tail.lost


async def test_tr_196_a_witness_ahead_means_a_lost_tail_and_its_epoch_is_not_given_twice(
    tmp_path: Path, say: Any
) -> None:
    folder = tmp_path / "ledger"
    await written(folder, say)
    record(folder, position=9, epoch=4)
    claim = await reopened(folder, say)
    assert claim.tail.lost
    assert "9" in claim.tail.detail
    assert claim.epoch == 5


async def test_tr_196_another_head_at_the_same_position_means_a_lost_tail(tmp_path: Path, say: Any) -> None:
    folder = tmp_path / "ledger"
    await written(folder, say)
    record(folder, head=b"\1" * 32)
    assert (await reopened(folder, say)).tail.lost


@pytest.mark.parametrize("place", range(0, RECORD_BYTES, 7))
async def test_tr_196_a_torn_record_means_nothing_and_is_reported(
    tmp_path: Path, say: Any, place: int
) -> None:
    folder = tmp_path / "ledger"
    await written(folder, say)
    raw = bytearray((folder / "witness").read_bytes())
    raw[RECORD_BYTES + place] ^= 0x10
    (folder / "witness").write_bytes(raw)
    assert "witness_torn" in [finding.code for finding in audit_folder(folder).findings]
    assert not (await reopened(folder, say)).tail.lost


async def test_tr_196_a_session_that_only_the_witness_knows_is_listed_as_lost(
    tmp_path: Path, say: Any
) -> None:
    folder = tmp_path / "ledger"
    await written(folder, say)
    witness = Witness(folder / "witness")
    witness.write(2, tag_of(say.other), 3, 7, b"\2" * 32)
    witness.close()
    ledger = await open_ledger(folder, tuning=DEAD)
    lost = next(row for row in await ledger.sessions() if row.session_id == say.other)
    assert (lost.status, lost.position, lost.epoch) == ("lost", 7, 3)
    assert "session_lost" in [finding.code for finding in (await ledger.verify()).findings]
    third = "ses_00000000000000000000000003"
    await ledger.claim(third, say.owner(), opening=say.opening())
    assert {row.session_id: row.status for row in await ledger.sessions()}[say.other] == "lost"
    await ledger.close()


@pytest.mark.parametrize("cut", [0.1, 0.4, 0.7, 0.95])
async def test_tr_187_a_log_cut_anywhere_is_noticed(tmp_path: Path, say: Any, cut: float) -> None:
    folder = tmp_path / "ledger"
    await written(folder, say)
    wal = folder / "ledger.db-wal"
    os.truncate(wal, int(wal.stat().st_size * cut))
    for name in ("ledger.db-shm",):
        (folder / name).unlink()
    ledger = await open_ledger(folder, tuning=DEAD)
    try:
        claim = await ledger.claim(say.session, say.owner(2))
        assert claim.tail.lost is (claim.position < 6)
        assert claim.tail.lost or cut > 0.9
    except SessionMissing:
        assert [row.status for row in await ledger.sessions()] == ["lost"]
    finally:
        await ledger.close()


async def test_tr_187_a_flipped_bit_in_an_entry_is_found_when_the_session_is_opened(
    tmp_path: Path, say: Any
) -> None:
    folder = tmp_path / "ledger"
    await written(folder, say)
    into_the_file(folder)
    raw = bytearray((folder / "ledger.db").read_bytes())
    place = raw.index(b'{"items":["1"]}') + 11
    raw[place] ^= 0x01
    (folder / "ledger.db").write_bytes(raw)
    ledger = await open_ledger(folder, tuning=DEAD)
    with pytest.raises(LedgerDamaged, match=say.session):
        await ledger.claim(say.session, say.owner(2))
    await ledger.close()
    assert [finding.code for finding in audit_folder(folder).findings] == ["chain_broken"]


# UX-163: damage is never answered with an empty ledger.


@pytest.mark.parametrize("empty", [False, True])
async def test_ux_163_a_ledger_that_vanished_is_not_replaced_by_an_empty_one(
    tmp_path: Path, say: Any, empty: bool
) -> None:
    folder = tmp_path / "ledger"
    await written(folder, say)
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (folder / name).unlink()
    if empty:
        (folder / "ledger.db").touch()
    with pytest.raises(LedgerDamaged, match="witness knows 1 sessions"):
        await open_ledger(folder)


async def test_ux_163_a_ledger_set_aside_keeps_every_file_and_its_sessions_stay_listed(
    tmp_path: Path, say: Any
) -> None:
    folder = tmp_path / "ledger"
    await written(folder, say)
    raw = bytearray((folder / "ledger.db").read_bytes())
    raw[:100] = b"\5" * 100
    (folder / "ledger.db").write_bytes(raw)
    with pytest.raises(LedgerDamaged):
        await open_ledger(folder)
    assert [(row.session_id, row.status) for row in unreadable_rows(folder)] == [(say.session, "unreadable")]
    aside = places.set_aside(folder)
    assert (aside / "ledger.db").read_bytes() == bytes(raw)
    assert (aside / "ledger.db-wal").exists()
    ledger = await open_ledger(folder)
    assert [(row.session_id, row.status) for row in await ledger.sessions()] == [(say.session, "unreadable")]
    await ledger.close()
    with pytest.raises(LedgerError, match="set aside"):
        places.set_aside(tmp_path / "nothing")


# TR-200: the chain without payloads.


async def test_tr_200_the_chain_still_verifies_after_payload_and_salt_were_dropped(
    tmp_path: Path, say: Any
) -> None:
    from surefoot.ledger.chain import payload_digest

    folder = tmp_path / "ledger"
    await written(folder, say)
    connection = apsw.Connection(str(folder / "ledger.db"))
    key, salt, payload = connection.execute(
        "SELECT key, salt, CAST(payload AS BLOB) FROM entries WHERE kind = 'todo'"
    ).fetchall()[0]
    connection.execute(
        "UPDATE entries SET payload = NULL, salt = NULL, digest = ? WHERE key = ?",
        (payload_digest(salt, payload), key),
    )
    connection.close()
    assert audit_folder(folder).findings == ()
    assert (await reopened(folder, say)).position == 6


async def test_tr_200_the_check_reports_a_missing_blob_and_a_damaged_one(tmp_path: Path, say: Any) -> None:
    folder = tmp_path / "ledger"
    ledger = await open_ledger(folder, tuning=DEAD)
    claim = await ledger.claim(say.session, say.owner(), opening=say.opening())
    refs = [await ledger.put_blob(content) for content in (b"one", b"two")]
    from surefoot.core.model import Draft

    for ref in refs:
        await ledger.append(say.session, [Draft("todo", {"ref": ref})], epoch=claim.epoch)
    digest = refs[0].removeprefix("sha256:")
    (folder / "blobs" / digest[:2] / digest).write_bytes(b"on")
    other = refs[1].removeprefix("sha256:")
    (folder / "blobs" / other[:2] / other).unlink()
    assert sorted(finding.code for finding in (await ledger.verify()).findings) == [
        "blob_damaged",
        "blob_missing",
    ]
    with pytest.raises(LedgerDamaged):
        await ledger.get_blob(refs[0])
    assert await ledger.put_blob(b"one") == refs[0]
    assert await ledger.get_blob(refs[0]) == b"one"
    await ledger.close()


def test_tr_196_a_record_is_seen_by_other_handles_at_once_and_survives_a_file_cut_short(
    tmp_path: Path,
) -> None:
    path = tmp_path / "witness"
    writer, reader = Witness(path), Witness(path)
    tag = tag_of("ses_" + "0" * 26)
    try:
        for number in (1, 3, 63, 64, 65, 200, 3):
            writer.write(number, tag, 1, number, bytes(32))
            writer.write(number, tag, 2, number + 1, bytes([number]) * 32)
            seen = reader.read(number)
            assert seen is not None and (seen.epoch, seen.position) == (2, number + 1)
            assert seen.same_head(bytes([number]) * 32)
        os.truncate(path, 128)
        writer.write(3, tag, 3, 9, bytes(32))
        again = reader.read(3)
        assert again is not None and again.position == 9
        assert reader.highest() == 3
    finally:
        writer.close()
        reader.close()
