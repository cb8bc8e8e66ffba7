"""Writes compare before they change anything, and replace whole files (TR-105, TR-106)."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.canonical import digest_bytes
from surefoot.core.model import EffectClass, EffectTrace, State
from surefoot.tools.files import plans
from surefoot.tools.files.disk import Disk, is_mount_point

FIELDS = {
    "version",
    "kind",
    "path",
    "resolvedPath",
    "host",
    "route",
    "transportId",
    "before",
    "after",
    "dev",
    "ino",
    "ctimeNs",
    "encoding",
}


async def test_tr_105_an_intent_has_exactly_the_fields_of_a_receipt(bench: Any) -> None:
    target = bench.folder / "a.txt"
    target.write_text("old\n")
    status = target.stat()
    prepared, _ = await bench.prepare("write", path="a.txt", content="new\n")
    (intent,) = prepared.fields["writeIntents"]
    assert set(intent) == FIELDS
    assert intent["version"] == 1 and intent["kind"] == "write" and intent["route"] == "disk"
    assert intent["path"] == intent["resolvedPath"] == str(target)
    assert intent["before"] == digest_bytes(b"old\n") and intent["after"] == digest_bytes(b"new\n")
    assert (intent["dev"], intent["ino"], intent["ctimeNs"]) == (
        status.st_dev,
        status.st_ino,
        status.st_ctime_ns,
    )
    assert intent["encoding"] == "utf-8" and intent["transportId"] is None
    assert target.read_text() == "old\n" and bench.names() == ["a.txt"]


async def test_tr_105_an_absent_target_is_known_by_its_folder(bench: Any) -> None:
    prepared, _ = await bench.prepare("write", path="a.txt", content="x")
    (intent,) = prepared.fields["writeIntents"]
    status = bench.folder.stat()
    assert intent["before"] == "absent"
    assert (intent["dev"], intent["ino"], intent["ctimeNs"]) == (
        status.st_dev,
        status.st_ino,
        status.st_ctime_ns,
    )


async def test_tr_105_files_above_the_bound_have_an_identity_and_no_digest(bench: Any) -> None:
    bench.services["limits"] = {"digest_file_bytes": 10}
    (bench.folder / "at").write_bytes(b"0123456789")
    (bench.folder / "above").write_bytes(b"0123456789A")
    at = await bench.run("edit", path="at", old="9", new="8")
    above = await bench.run("edit", path="above", old="A", new="B")
    assert at.intents[0]["before"] == digest_bytes(b"0123456789")
    assert above.intents[0]["before"] is None and above.intents[0]["ino"] > 0
    assert (bench.folder / "above").read_bytes() == b"0123456789B"
    assert at.prepared.effect.effect_class is EffectClass.IDEMPOTENT_WRITE
    # The row of the table: an edit whose intent could not be digested.
    assert above.prepared.effect.effect_class is EffectClass.NON_IDEMPOTENT


async def test_tr_106_creating_writes_the_whole_file_and_leaves_nothing_beside_it(bench: Any) -> None:
    ran = await bench.run("write", path="new/deep/a.txt", content="hello\n")
    assert ran.outcome.state is State.SUCCEEDED and ran.outcome.effect_trace is EffectTrace.DONE
    assert (bench.folder / "new/deep/a.txt").read_text() == "hello\n"
    assert [entry.name for entry in (bench.folder / "new/deep").iterdir()] == ["a.txt"]
    assert [intent["kind"] for intent in ran.intents] == ["mkdir", "mkdir", "write"]


async def test_tr_106_replacing_keeps_mode_owner_and_extended_attributes(bench: Any) -> None:
    target = bench.folder / "run.sh"
    target.write_text("old")
    target.chmod(0o754)
    os.setxattr(target, "user.note", b"kept")
    inode = target.stat().st_ino
    await bench.run("write", path="run.sh", content="new")
    assert target.read_text() == "new" and target.stat().st_ino != inode
    assert stat.S_IMODE(target.stat().st_mode) == 0o754
    assert os.getxattr(target, "user.note") == b"kept"
    assert bench.names() == ["run.sh"] and "exchange" in bench.disk.steps


async def test_tr_106_a_link_is_followed_and_stays_a_link(bench: Any) -> None:
    (bench.folder / "real.txt").write_text("old")
    (bench.folder / "link.txt").symlink_to("real.txt")
    ran = await bench.run("write", path="link.txt", content="new")
    assert (bench.folder / "link.txt").is_symlink() and (bench.folder / "real.txt").read_text() == "new"
    assert ran.intents[0]["resolvedPath"] == str(bench.folder / "real.txt")
    assert ran.prepared.effect.reach == (
        f"path:{bench.folder / 'link.txt'}",
        f"path:{bench.folder / 'real.txt'}",
    )


async def test_tr_106_a_link_that_leads_nowhere_yet_creates_what_it_names(bench: Any) -> None:
    (bench.folder / "link.txt").symlink_to("later.txt")
    await bench.run("write", path="link.txt", content="new")
    assert (bench.folder / "link.txt").is_symlink() and (bench.folder / "later.txt").read_text() == "new"


async def test_tr_106_a_link_turned_between_look_and_write_is_a_change_underneath(bench: Any) -> None:
    for name in ("one", "two"):
        (bench.folder / name).mkdir()
        (bench.folder / name / "a.txt").write_text("old")
    (bench.folder / "now").symlink_to("one")
    prepared, receipt = await bench.prepare("write", path="now/a.txt", content="new")
    (bench.folder / "now").unlink()
    (bench.folder / "now").symlink_to("two")
    outcome = await bench.enter("write", prepared, receipt)
    assert outcome.reason == "changed_underneath"
    assert (bench.folder / "one/a.txt").read_text() == (bench.folder / "two/a.txt").read_text() == "old"


async def test_tr_106_several_names_of_one_file_keep_seeing_the_same_content(bench: Any) -> None:
    blobs: list[bytes] = []

    async def put_blob(content: bytes) -> str:
        blobs.append(content)
        return digest_bytes(content)

    bench.services["put_blob"] = put_blob
    (bench.folder / "a.txt").write_text("a longer old content")
    os.link(bench.folder / "a.txt", bench.folder / "b.txt")
    ran = await bench.run("write", path="a.txt", content="new")
    assert ran.intents[0]["kind"] == "inplace" and blobs == [b"a longer old content"]
    assert digest_bytes(blobs[0]) == ran.intents[0]["before"]
    assert (bench.folder / "b.txt").read_text() == "new"
    assert (bench.folder / "a.txt").stat().st_ino == (bench.folder / "b.txt").stat().st_ino


async def test_tr_106_a_temporary_name_a_dead_attempt_left_is_no_second_name(bench: Any) -> None:
    (bench.folder / "a.txt").write_text("old")
    os.link(bench.folder / "a.txt", bench.folder / ".surefoot-att_dead-0.tmp")
    ran = await bench.run("write", path="a.txt", content="new")
    assert ran.intents[0]["kind"] == "write"
    assert (bench.folder / ".surefoot-att_dead-0.tmp").read_text() == "old"


async def test_tr_106_a_folder_nobody_may_write_is_written_in_place(bench: Any, monkeypatch: Any) -> None:
    (bench.folder / "a.txt").write_text("old")
    asked = os.access
    # Root may write any folder, so the kernel's answer is replaced; the writing itself is real.
    monkeypatch.setattr(plans.os, "access", lambda p, m: False if Path(p) == bench.folder else asked(p, m))
    ran = await bench.run("write", path="a.txt", content="new")
    assert ran.intents[0]["kind"] == "inplace" and (bench.folder / "a.txt").read_text() == "new"


def test_tr_106_a_bind_mounted_file_is_recognised_in_the_kernels_table() -> None:
    table = "36 35 98:0 /x /etc/my\\040hosts rw,noatime shared:1 - ext4 /dev/root rw\n"
    assert is_mount_point("/etc/my hosts", table) and not is_mount_point("/etc/my", table)
    assert is_mount_point("/proc")


async def test_tr_106_a_file_already_as_wanted_is_a_success_without_a_write(bench: Any) -> None:
    target = bench.folder / "a.txt"
    target.write_text("same")
    before = target.stat()
    ran = await bench.run("write", path="a.txt", content="same")
    assert ran.outcome.state is State.SUCCEEDED and bench.disk.steps == []
    assert (target.stat().st_ino, target.stat().st_ctime_ns) == (before.st_ino, before.st_ctime_ns)


@pytest.mark.parametrize("change", ["other content", "gone", "created", "a folder"])
async def test_tr_106_a_change_between_look_and_body_writes_nothing(bench: Any, change: str) -> None:
    target = bench.folder / "a.txt"
    if change != "created":
        target.write_text("old")
    prepared, receipt = await bench.prepare("write", path="a.txt", content="new")
    if change == "other content" or change == "created":
        target.write_text("theirs")
    else:
        target.unlink()
    if change == "a folder":
        target.mkdir()
    outcome = await bench.enter("write", prepared, receipt)
    assert outcome.state is State.FAILED and outcome.reason == "changed_underneath"
    assert outcome.effect_trace is EffectTrace.NONE
    assert not target.is_file() or target.read_text() == "theirs"
    assert all(name == "a.txt" for name in bench.names())


class Meddler(Disk):
    """Somebody writes the target directly before our exchange or link, `times` times."""

    def __init__(self, target: Path, times: int) -> None:
        self.target, self.left = target, times

    def _meddle(self) -> None:
        if self.left:
            self.left -= 1
            self.target.write_text(f"theirs {self.left}")

    def exchange(self, one: str, other: str) -> bool:
        self._meddle()
        return super().exchange(one, other)

    def link(self, source: str, target: str) -> None:
        self._meddle()
        super().link(source, target)

    def rename(self, source: str, target: str, *, over: bool) -> None:
        self._meddle()
        super().rename(source, target, over=over)


async def test_tr_106_a_write_in_the_last_moment_is_swapped_back(bench: Any) -> None:
    target = bench.folder / "a.txt"
    target.write_text("old")
    bench.use(Meddler(target, 1))
    ran = await bench.run("write", path="a.txt", content="new")
    assert ran.outcome.reason == "changed_underneath" and ran.outcome.effect_trace is EffectTrace.NONE
    assert target.read_text() == "theirs 0" and bench.names() == ["a.txt"]


async def test_tr_106_two_writes_of_somebody_else_are_both_kept_and_the_newest_stands(bench: Any) -> None:
    target = bench.folder / "a.txt"
    target.write_text("old")
    bench.use(Meddler(target, 2))
    ran = await bench.run("write", path="a.txt", content="new")
    assert ran.outcome.effect_trace is EffectTrace.POSSIBLE and ".surefoot-" in ran.outcome.text
    assert {(bench.folder / name).read_text() for name in bench.names()} == {"theirs 0", "theirs 1"}
    assert target.read_text() == "theirs 0"


async def test_tr_106_creation_loses_against_a_file_that_appeared(bench: Any) -> None:
    target = bench.folder / "a.txt"
    bench.use(Meddler(target, 1))
    ran = await bench.run("write", path="a.txt", content="new")
    assert ran.outcome.reason == "changed_underneath" and target.read_text() == "theirs 0"
    assert bench.names() == ["a.txt"]


async def test_tr_106_without_exchange_a_rename_replaces_the_file(bench: Any) -> None:
    class Old(Disk):
        def exchange(self, one: str, other: str) -> bool:
            return False

    (bench.folder / "a.txt").write_text("old")
    bench.use(Old())
    await bench.run("write", path="a.txt", content="new")
    assert (bench.folder / "a.txt").read_text() == "new" and bench.names() == ["a.txt"]


async def test_tr_106_a_file_system_without_links_still_creates_and_never_covers(bench: Any) -> None:
    class OneName(Disk):
        def link(self, source: str, target: str) -> None:
            raise PermissionError(1, "Operation not permitted")

    bench.use(OneName())
    await bench.run("write", path="a.txt", content="new")
    assert (bench.folder / "a.txt").read_text() == "new" and bench.names() == ["a.txt"]
    prepared, receipt = await bench.prepare("write", path="b.txt", content="new")
    (bench.folder / "b.txt").write_text("theirs")
    assert (await bench.enter("write", prepared, receipt)).reason == "changed_underneath"


class FullDisk(Disk):
    """The named step fails as on a full disk."""

    def __init__(self, step: str) -> None:
        self.step = step

    def __getattribute__(self, name: str) -> Any:
        if name == object.__getattribute__(self, "step"):

            def fail(*_: Any) -> Any:
                raise OSError(28, "No space left on device")

            return fail
        return object.__getattribute__(self, name)


@pytest.mark.parametrize(
    ("step", "trace"),
    [
        ("create", EffectTrace.NONE),
        ("write", EffectTrace.NONE),
        ("copy_attributes", EffectTrace.NONE),
        ("sync", EffectTrace.NONE),
        ("exchange", EffectTrace.NONE),
        ("sync_folder", EffectTrace.POSSIBLE),
    ],
)
async def test_tr_106_a_full_disk_tells_whether_anything_shows(
    bench: Any, step: str, trace: EffectTrace
) -> None:
    target = bench.folder / "a.txt"
    target.write_text("old")
    bench.use(FullDisk(step))
    ran = await bench.run("write", path="a.txt", content="new")
    assert ran.outcome.state is State.FAILED and ran.outcome.error_kind == "disk_full"
    assert ran.outcome.effect_trace is trace
    if trace is EffectTrace.NONE:
        assert target.read_text() == "old" and bench.names() == ["a.txt"]


async def test_tr_106_the_next_write_of_the_same_attempt_removes_its_leftover(bench: Any) -> None:
    prepared, receipt = await bench.prepare("write", path="a.txt", content="new")
    (bench.folder / f".surefoot-{receipt.attempt_id}-0.tmp").write_text("half")
    (bench.folder / ".surefoot-att_other-0.tmp").write_text("not ours")
    await bench.enter("write", prepared, receipt)
    assert bench.names() == [".surefoot-att_other-0.tmp", "a.txt"]


async def test_ec_16_a_target_outside_the_write_roots_is_refused(bench: Any) -> None:
    outside = bench.folder.parent / "outside.txt"
    outside.write_text("theirs")
    (bench.folder / "door").symlink_to(outside)
    (bench.folder / "up").symlink_to(bench.folder.parent)
    for path in ("../outside.txt", "door", "up/outside.txt", "up/new/deep.txt", str(outside)):
        for name, more in (("write", {"content": "x"}), ("edit", {"old": "theirs", "new": "x"})):
            prepared, _ = await bench.prepare(name, path=path, **more)
            assert prepared.refuse is not None and prepared.refuse[0] == "permission_denied", path
    moved, _ = await bench.prepare("move", source="door", target="../door")
    assert moved.refuse is not None and moved.refuse[0] == "permission_denied"
    assert outside.read_text() == "theirs"


async def test_tr_191_ledger_files_are_refused_by_every_tool_under_any_name(bench: Any) -> None:
    ledger = bench.folder / "ledger.db"
    ledger.write_text("precious")
    os.link(ledger, bench.folder / "other-name")
    (bench.folder / "link").symlink_to("ledger.db")
    (bench.folder / "sub").mkdir()
    os.link(ledger, bench.folder / "sub/inner")
    status = ledger.stat()
    bench.services["ledger_files"] = lambda: frozenset({(status.st_dev, status.st_ino)})
    for path in ("ledger.db", "other-name", "link"):
        for name, more in (
            ("write", {"content": "x"}),
            ("edit", {"old": "precious", "new": "x"}),
            ("multi_edit", {"edits": [{"old": "precious", "new": "x"}]}),
        ):
            ran = await bench.run(name, path=path, **more)
            assert ran.prepared.refuse is not None and ran.prepared.refuse[0] == "ledger_file"
        assert (await bench.run("read", path=path)).outcome.error_kind == "ledger_file"
    for name, more in (
        ("delete", {"path": "other-name"}),
        ("delete", {"path": "sub", "recursive": True}),
        ("move", {"source": "sub", "target": "sub2"}),
        ("move", {"source": "ledger.db", "target": "x"}),
    ):
        ran = await bench.run(name, **more)
        assert ran.prepared.refuse is not None and ran.prepared.refuse[0] == "ledger_file", (name, more)
    found = await bench.run("grep", pattern="precious")
    assert found.outcome.text.startswith("No line")
    assert ledger.read_text() == "precious"


async def test_ec_15_a_repeated_edit_finds_what_the_first_one_did_and_writes_nothing(bench: Any) -> None:
    target = bench.folder / "a.txt"
    target.write_text("one")
    first = await bench.run("edit", path="a.txt", old="one", new="one two one")
    bench.services["earlier"] = lambda receipt: (first.receipt,)
    steps = len(bench.disk.steps)
    again = await bench.run("edit", path="a.txt", old="one", new="one two one")
    assert again.outcome.state is State.SUCCEEDED and again.outcome.effect_trace is EffectTrace.NONE
    assert target.read_text() == "one two one" and len(bench.disk.steps) == steps


async def test_ec_15_a_repeated_edit_over_later_work_fails_without_writing(bench: Any) -> None:
    target = bench.folder / "a.txt"
    target.write_text("one")
    first = await bench.run("edit", path="a.txt", old="one", new="two")
    target.write_text("one, and the work of somebody else")
    bench.services["earlier"] = lambda receipt: (first.receipt,)
    again = await bench.run("edit", path="a.txt", old="one", new="two")
    assert again.outcome.reason == "changed_underneath" and again.outcome.effect_trace is EffectTrace.NONE
    assert target.read_text() == "one, and the work of somebody else"


async def test_ec_34_idempotent_writes_run_twice_have_one_effect(bench: Any) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("write", {"path": "d/a.txt", "content": "x"}),
        ("make_directory", {"path": "e/f"}),
        ("edit", {"path": "d/a.txt", "old": "x", "new": "y"}),
        ("multi_edit", {"path": "d/a.txt", "edits": [{"old": "y", "new": "z"}]}),
    ]
    for name, arguments in calls:
        effect = bench.tool(name).effect
        assert (
            not callable(effect)
            or effect(arguments, bench.place).effect_class is EffectClass.IDEMPOTENT_WRITE
        )
        await bench.run(name, **arguments)
        steps = list(bench.disk.steps)
        tree = {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in sorted(bench.folder.rglob("*"))}
        await bench.run(name, **arguments)
        assert bench.disk.steps == steps, name
        assert tree == {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in sorted(bench.folder.rglob("*"))}


@pytest.mark.parametrize(
    ("name", "arguments", "effect_class", "names"),
    [
        ("read", {"path": "a"}, "READ_ONLY", ()),
        ("list", {}, "READ_ONLY", ()),
        ("glob", {"pattern": "*"}, "READ_ONLY", ()),
        ("grep", {"pattern": "x"}, "READ_ONLY", ()),
        ("write", {"path": "a", "content": ""}, "IDEMPOTENT_WRITE", ("a",)),
        ("write", {"path": "a", "content": "", "mode": "overwrite"}, "IDEMPOTENT_WRITE", ("a",)),
        ("write", {"path": "./b/../a", "content": "", "mode": "append"}, "NON_IDEMPOTENT", ("a",)),
        ("edit", {"path": "a", "old": "x", "new": "y"}, "IDEMPOTENT_WRITE", ("a",)),
        ("delete", {"path": "a"}, "NON_IDEMPOTENT", ("a",)),
        ("move", {"source": "a", "target": "b"}, "NON_IDEMPOTENT", ("a", "b")),
        ("make_directory", {"path": "a"}, "IDEMPOTENT_WRITE", ("a",)),
    ],
)
def test_ec_4_class_and_reach_of_each_file_tool(
    bench: Any, name: str, arguments: Any, effect_class: str, names: tuple[str, ...]
) -> None:
    effect = bench.tool(name).effect
    found = effect(arguments, bench.place) if callable(effect) else effect
    assert found.effect_class == effect_class
    assert found.reach == tuple(f"path:{bench.folder / name}" for name in names)


async def test_append_adds_at_the_end_and_creates_what_is_missing(bench: Any) -> None:
    await bench.run("write", path="a.log", content="one\n", mode="append")
    ran = await bench.run("write", path="a.log", content="two\n", mode="append")
    assert (bench.folder / "a.log").read_text() == "one\ntwo\n"
    assert ran.intents[0]["after"] == digest_bytes(b"one\ntwo\n")


async def test_encodings_and_line_ends_survive_an_edit(bench: Any) -> None:
    (bench.folder / "w.txt").write_bytes("\ufeffeins\r\nzwei\r\n".encode("utf-16-le"))
    (bench.folder / "b.txt").write_bytes(b"\xef\xbb\xbfeins\r\nzwei\r\n")
    for name in ("w.txt", "b.txt"):
        ran = await bench.run("edit", path=name, old="eins\nzwei", new="drei\nvier\nfünf")
        assert ran.outcome.state is State.SUCCEEDED, ran.outcome.text
    assert (bench.folder / "w.txt").read_bytes() == "\ufeffdrei\r\nvier\r\nfünf\r\n".encode("utf-16-le")
    assert (bench.folder / "b.txt").read_bytes() == "\ufeffdrei\r\nvier\r\nfünf\r\n".encode()


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"old": "nowhere", "new": "x"}, "old_not_found", "not found"),
        ({"old": "x = 1", "new": "y"}, "old_not_unique", "found 2 times (lines 1, 3)"),
        ({"old": "def f():\n  return 1", "new": "y"}, "old_not_found", "line 4 with other white space"),
        ({"old": "x = 1", "new": "x = 1"}, "nothing_to_change", "equal"),
    ],
)
async def test_an_edit_that_cannot_be_made_says_why_and_writes_nothing(
    bench: Any, arguments: Any, kind: str, words: str
) -> None:
    text = "x = 1\ny = 2\nx = 1\ndef f():\n    return 1\n"
    (bench.folder / "a.py").write_text(text)
    ran = await bench.run("edit", path="a.py", **arguments)
    assert ran.outcome.error_kind == kind and words in ran.outcome.text
    assert ran.outcome.effect_trace is EffectTrace.NONE and ran.intents == ()
    assert (bench.folder / "a.py").read_text() == text


async def test_a_file_that_changed_since_it_was_read_is_not_edited(bench: Any) -> None:
    target = bench.folder / "a.txt"
    target.write_text("one\n")
    await bench.run("read", path="a.txt")
    target.write_text("one\ntwo\n")
    ran = await bench.run("edit", path="a.txt", old="one", new="1")
    assert ran.outcome.error_kind == "changed_since_read" and target.read_text() == "one\ntwo\n"
    await bench.run("read", path="a.txt")
    assert (await bench.run("edit", path="a.txt", old="one", new="1")).outcome.state is State.SUCCEEDED
    assert (await bench.run("edit", path="a.txt", old="two", new="2")).outcome.state is State.SUCCEEDED


async def test_appending_does_not_mind_what_others_added(bench: Any) -> None:
    target = bench.folder / "a.log"
    target.write_text("one\n")
    await bench.run("read", path="a.log")
    target.write_text("one\ntwo\n")
    await bench.run("write", path="a.log", content="three\n", mode="append")
    assert target.read_text() == "one\ntwo\nthree\n"


async def test_several_edits_are_made_together_or_not_at_all(bench: Any) -> None:
    target = bench.folder / "a.txt"
    target.write_text("a b c\n")
    bad = await bench.run(
        "multi_edit", path="a.txt", edits=[{"old": "a", "new": "x"}, {"old": "zz", "new": "y"}]
    )
    assert bad.outcome.error_kind == "old_not_found" and "Edit 2 of 2" in bad.outcome.text
    assert target.read_text() == "a b c\n"
    good = await bench.run(
        "multi_edit", path="a.txt", edits=[{"old": "a", "new": "x"}, {"old": "x b", "new": "y"}]
    )
    assert target.read_text() == "y c\n" and "2 replacements" in good.outcome.text


async def test_replace_all_replaces_every_occurrence(bench: Any) -> None:
    (bench.folder / "a.txt").write_text("x x x")
    await bench.run("edit", path="a.txt", old="x", new="y", replace_all=True)
    assert (bench.folder / "a.txt").read_text() == "y y y"


async def test_a_file_where_a_folder_is_needed_fails_without_a_trace(bench: Any) -> None:
    (bench.folder / "a").write_text("file")
    ran = await bench.run("write", path="a/b.txt", content="x")
    assert ran.outcome.error_kind == "not_a_folder" and ran.outcome.effect_trace is EffectTrace.NONE
    fifo = bench.folder / "pipe"
    os.mkfifo(fifo)
    for name, more in (("write", {"content": "x"}), ("edit", {"old": "x", "new": "y"})):
        ran = await bench.run(name, path="pipe", **more)
        assert ran.outcome.error_kind == "not_a_file"


async def test_a_body_entered_without_its_preparation_touches_nothing(bench: Any) -> None:
    from surefoot.errors import ToolError
    from surefoot.runtime.tools import Prepared

    with pytest.raises(ToolError) as caught:
        await bench.enter("write", Prepared(), bench.receipt(), path="a", content="x")
    assert caught.value.facts["effect_trace"] == "none" and bench.names() == []
