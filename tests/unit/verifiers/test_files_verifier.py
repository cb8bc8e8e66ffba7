"""What the paths of a write say afterwards: TR-107, TR-108, every column and a late commit."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.canonical import digest_bytes
from surefoot.core.model import Grade, Receipt
from surefoot.verifiers.files import FilesVerifier, host_name
from surefoot.verifiers.port import EVIDENCE_BYTES, Deadline, EffectVerifier
from surefoot.verifiers.sight import look, temporary_name

LATER = Deadline(1 << 60)
OLD, NEW = digest_bytes(b"old"), digest_bytes(b"new")
ATTEMPT = "att_00000000000000000000000001"


def aged(path: Path) -> None:
    """Wait until the kernel's time stamp of `path` is old enough to tell a later write apart."""
    while time.time_ns() - path.stat().st_ctime_ns <= 25_000_000:
        time.sleep(0.002)


def intent(path: Path, before: str | None, after: str | None, **fields: Any) -> dict[str, Any]:
    sight = look(str(path))
    return {
        "version": 1,
        "kind": "write",
        "path": str(path),
        "resolvedPath": os.path.realpath(path),
        "host": host_name(),
        "route": "disk",
        "transportId": None,
        "before": before,
        "after": after,
        "dev": sight.dev,
        "ino": sight.ino,
        "ctimeNs": sight.ctime_ns,
        "encoding": "utf-8",
        **fields,
    }


def receipt(*intents: dict[str, Any], **fields: Any) -> Receipt:
    fixed = {"started_at": time.time_ns() // 1_000_000, "attempt_id": ATTEMPT}
    return Receipt(
        session_id="ses_1",
        turn_id="trn_1",
        call_id="cal_1",
        position=0,
        write_intents=intents,
        **{**fixed, **fields},
    )


def answer(
    found: dict[str, Any], verifier: FilesVerifier | None = None, **fields: Any
) -> tuple[str, Grade, str]:
    said = (verifier or FilesVerifier()).answers(receipt(found, **fields))[0]
    return said.answer, said.grade, said.why


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "p"
    folder.mkdir()
    return folder / "a.txt"


def test_the_file_verifier_fits_the_port() -> None:
    verifier: EffectVerifier = FilesVerifier()
    assert verifier.name == "files" and verifier.far is False


def test_tr_107_a_file_as_wanted_is_satisfied(target: Path) -> None:
    target.write_bytes(b"new")
    assert answer(intent(target, OLD, NEW)) == ("satisfied", Grade.STRONG, "")
    assert answer(intent(target, NEW, NEW))[0] == "satisfied"
    assert answer(intent(target, OLD, NEW, encoding="utf-16-le")) == (
        "conflict",
        Grade.STRONG,
        "other_encoding",
    )


def test_tr_107_an_absent_file_satisfies_a_deletion(target: Path) -> None:
    assert answer(intent(target, OLD, "absent", kind="delete"))[0] == "satisfied"


def test_tr_107_an_untouched_file_is_unchanged_with_proof(target: Path) -> None:
    target.write_bytes(b"old")
    aged(target)
    assert answer(intent(target, OLD, NEW)) == ("unchanged", Grade.PROOF, "")
    aged(target.parent)
    missing = target.with_name("missing")
    assert answer(intent(missing, "absent", NEW)) == ("unchanged", Grade.PROOF, "")
    assert answer(intent(target, OLD, "absent", kind="delete"))[:2] == ("unchanged", Grade.PROOF)


def test_tr_107_a_young_time_stamp_proves_nothing(target: Path) -> None:
    target.write_bytes(b"old")
    stamp_ms = target.stat().st_ctime_ns // 1_000_000
    found = intent(target, OLD, NEW)
    assert answer(found, started_at=stamp_ms + 20)[1] is Grade.STRONG
    assert answer(found, started_at=stamp_ms + 22)[1] is Grade.PROOF
    assert answer(found, started_at=None)[1] is Grade.STRONG


@pytest.mark.parametrize("way", ["in place", "by rename", "attributes"])
def test_tr_108_a_revert_between_effect_and_look_is_no_proof(target: Path, way: str) -> None:
    target.write_bytes(b"old")
    aged(target)
    found = intent(target, OLD, NEW)
    if way == "in place":
        target.write_bytes(b"new")
        target.write_bytes(b"old")
        os.utime(target, ns=(target.stat().st_atime_ns, found["ctimeNs"]))
    elif way == "by rename":
        target.with_name("b").write_bytes(b"old")
        target.with_name("b").replace(target)
    else:
        target.chmod(0o600)
    assert answer(found) == ("unchanged", Grade.STRONG, "")
    said = FilesVerifier().inspect_effect("k", receipt(found), LATER, fenced=True)
    assert said.state == "absent" and said.grade is Grade.STRONG and said.reason == "unchanged_without_proof"


def test_tr_108_a_file_made_and_removed_again_is_no_proof(target: Path) -> None:
    aged(target.parent)
    found = intent(target, "absent", NEW)
    target.write_bytes(b"new")
    target.unlink()
    assert answer(found) == ("unchanged", Grade.STRONG, "")


def test_tr_107_other_content_is_a_conflict(target: Path) -> None:
    target.write_bytes(b"theirs")
    assert answer(intent(target, OLD, NEW))[0] == "conflict"
    assert answer(intent(target, "absent", NEW))[0] == "conflict"
    assert answer(intent(target, OLD, "absent", kind="delete"))[0] == "conflict"
    target.unlink()
    assert answer(intent(target, OLD, NEW)) == ("conflict", Grade.STRONG, "gone")
    target.mkdir()
    assert answer(intent(target, OLD, NEW))[0] == "conflict"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"host": "elsewhere"}, "other_host"),
        ({"version": 2}, "intent_version"),
        ({"route": "overlay", "transportId": "t1"}, "overlay"),
        ({"path": "a.txt"}, "relative_path"),
        ({"resolvedPath": "/somewhere/else"}, "resolved_path_moved"),
    ],
)
def test_tr_107_what_cannot_be_told_is_unknown(target: Path, change: dict[str, Any], why: str) -> None:
    target.write_bytes(b"new")
    assert answer({**intent(target, OLD, NEW), **change}) == ("unknown", Grade.NONE, why)


def test_tr_107_a_turned_link_is_unknown(target: Path) -> None:
    (target.parent / "one").mkdir()
    (target.parent / "now").symlink_to("one")
    through = target.parent / "now/a.txt"
    through.write_bytes(b"new")
    found = intent(through, OLD, NEW)
    assert answer(found)[0] == "satisfied"
    call = receipt(found, scope=FilesVerifier().recovery_scope(receipt(found)))
    (target.parent / "two").mkdir()
    (target.parent / "now").unlink()
    (target.parent / "now").symlink_to("two")
    assert answer(found) == ("unknown", Grade.NONE, "resolved_path_moved")
    said = FilesVerifier().inspect_effect("k", call, LATER, fenced=True)
    assert (said.state, said.reason) == ("unknown", "scope_changed")


def test_tr_107_outside_the_roots_unreadable_and_too_large_are_unknown(target: Path) -> None:
    target.write_bytes(b"new")
    elsewhere = FilesVerifier(roots=lambda: (Path("/elsewhere"),))
    inside = FilesVerifier(roots=lambda: (target.parent,))
    assert answer(intent(target, OLD, NEW), elsewhere)[2] == "outside_write_roots"
    assert answer(intent(target, OLD, NEW), inside)[0] == "satisfied"
    assert answer(intent(target, OLD, NEW), FilesVerifier(digest_file_bytes=3))[0] == "satisfied"
    assert answer(intent(target, OLD, NEW), FilesVerifier(digest_file_bytes=2))[2] == "above_digest_bound"
    loop = target.with_name("loop")
    loop.symlink_to("loop")
    assert answer(intent(loop, OLD, NEW))[0] in ("unknown", "conflict")


def test_tr_107_a_changed_file_with_an_unknown_wish_is_unknown(target: Path) -> None:
    target.write_bytes(b"theirs")
    assert answer(intent(target, OLD, None))[0] == "unknown"
    target.write_bytes(b"old")
    assert answer(intent(target, OLD, None))[0] == "unchanged"
    assert answer(intent(target, None, None))[0] == "unknown"


def test_tr_191_the_verifier_opens_no_ledger_file(target: Path) -> None:
    target.write_bytes(b"new")
    status = target.stat()
    verifier = FilesVerifier(lambda: frozenset({(status.st_dev, status.st_ino)}))
    assert answer(intent(target, OLD, NEW), verifier) == ("unknown", Grade.NONE, "ledger_file")


@pytest.mark.timeout(120)
def test_tr_103_a_fifo_in_the_targets_place_is_never_waited_for(target: Path) -> None:
    os.mkfifo(target)
    assert answer(intent(target, OLD, NEW))[0] == "conflict"


def test_tr_107_made_folders_are_judged_by_their_being_there(target: Path) -> None:
    found = intent(target, "absent", None, kind="mkdir")
    assert answer(found)[0] == "unchanged"
    target.mkdir()
    assert answer(found)[0] == "satisfied"
    target.rmdir()
    target.write_text("a file")
    assert answer(found)[0] == "conflict"


def test_tr_106_a_foreign_version_beside_a_written_file_is_a_conflict(target: Path) -> None:
    target.write_bytes(b"new")
    beside = target.with_name(temporary_name(ATTEMPT, 0))
    found = intent(target, OLD, NEW)
    for content, word in ((b"old", "satisfied"), (b"new", "satisfied"), (b"theirs", "conflict")):
        beside.write_bytes(content)
        assert answer(found)[0] == word
    assert answer(found, attempt_id="att_other")[0] == "satisfied"


def test_tr_108_the_sum_of_all_paths(target: Path) -> None:
    other = target.with_name("b.txt")
    target.write_bytes(b"old")
    other.write_bytes(b"old")
    aged(target)
    aged(other)
    both = receipt(intent(target, OLD, NEW), intent(other, OLD, NEW))
    look_at = FilesVerifier().inspect_effect
    said = look_at("k", both, LATER, fenced=True)
    assert (said.state, said.grade, said.fenced, said.reason) == ("absent", Grade.PROOF, True, None)
    said = look_at("k", both, LATER, fenced=False)
    assert (said.state, said.fenced, said.reason) == ("absent", False, "not_fenced")
    target.write_bytes(b"new")  # a late commit of one of the two
    said = look_at("k", both, LATER, fenced=True)
    assert (said.state, said.reason) == ("unknown", "paths_differ")
    assert [row["answer"] for row in said.evidence["paths"]] == ["satisfied", "unchanged"]
    other.write_bytes(b"new")
    said = look_at("k", both, LATER, fenced=True)
    assert (said.state, said.grade) == ("satisfied", Grade.STRONG) and said.does_not_prove
    other.write_bytes(b"theirs")
    assert look_at("k", both, LATER, fenced=True).reason == "conflict"


def test_tr_108_no_intents_and_no_time_are_unknown(target: Path) -> None:
    look_at = FilesVerifier().inspect_effect
    assert look_at("k", receipt(), LATER, fenced=True).reason == "no_intents"
    assert (
        look_at("k", receipt(intent(target, OLD, NEW)), Deadline(0), fenced=True).reason == "verifier_timeout"
    )


def test_tr_92_all_intents_of_an_open_write_must_hold(target: Path) -> None:
    verifier = FilesVerifier()
    target.write_bytes(b"new")
    other = target.with_name("b.txt")
    call = receipt(intent(target, OLD, NEW), intent(other, "absent", NEW))
    assert not verifier.satisfied(call) and not verifier.satisfied(receipt())
    assert [found.answer for found in verifier.answers(call)] == ["satisfied", "unchanged"]
    other.write_bytes(b"new")
    assert verifier.satisfied(call)


def test_tr_99_the_scope_is_host_and_resolved_path(target: Path) -> None:
    target.write_bytes(b"old")
    (target.parent / "link").symlink_to("a.txt")
    verifier = FilesVerifier()
    direct = verifier.recovery_scope(receipt(intent(target, OLD, NEW)))
    assert direct == verifier.recovery_scope(receipt(intent(target.parent / "link", OLD, NEW)))
    assert host_name() in direct and str(target) in direct
    with pytest.raises(LookupError):
        verifier.recovery_scope(receipt())


def test_tr_98_evidence_stays_within_its_bound(target: Path) -> None:
    import json

    many = [intent(target.with_name(f"{'x' * 200}{number}"), "absent", NEW) for number in range(60)]
    said = FilesVerifier().inspect_effect("k", receipt(*many), LATER, fenced=True)
    assert len(json.dumps(dict(said.evidence)).encode()) <= EVIDENCE_BYTES and len(said.summary) <= 500
    assert said.evidence["more"] + len(said.evidence["paths"]) == 60
