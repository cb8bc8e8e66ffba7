"""Names come, go and change; links themselves are meant (TR-105, TR-106)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from surefoot.core.canonical import digest_bytes
from surefoot.core.model import EffectTrace, State
from surefoot.tools.files.disk import Disk


async def test_tr_105_a_deletion_stores_what_was_there(bench: Any) -> None:
    (bench.folder / "a.txt").write_text("old")
    ran = await bench.run("delete", path="a.txt")
    (intent,) = ran.intents
    assert (intent["kind"], intent["before"], intent["after"]) == ("delete", digest_bytes(b"old"), "absent")
    assert bench.names() == [] and ran.outcome.effect_trace is EffectTrace.DONE


async def test_deleting_a_link_keeps_what_it_leads_to(bench: Any) -> None:
    (bench.folder / "real").write_text("kept")
    (bench.folder / "link").symlink_to("real")
    (bench.folder / "dangling").symlink_to("nowhere")
    await bench.run("delete", path="link")
    await bench.run("delete", path="dangling")
    assert bench.names() == ["real"]


async def test_a_full_folder_needs_the_word_recursive(bench: Any) -> None:
    (bench.folder / "d/e").mkdir(parents=True)
    (bench.folder / "d/e/f").write_text("x")
    ran = await bench.run("delete", path="d")
    assert ran.outcome.error_kind == "not_empty" and (bench.folder / "d/e/f").exists()
    await bench.run("delete", path="d", recursive=True)
    assert bench.names() == []
    (bench.folder / "empty").mkdir()
    await bench.run("delete", path="empty")
    assert bench.names() == []


async def test_the_working_folder_and_missing_things_are_not_deleted(bench: Any) -> None:
    ran = await bench.run("delete", path=".", recursive=True)
    assert ran.prepared.refuse is not None and bench.folder.is_dir()
    missing = await bench.run("delete", path="nothing")
    assert missing.outcome.error_kind == "not_found" and missing.outcome.effect_trace is EffectTrace.NONE


@pytest.mark.parametrize("name", ["delete", "move"])
async def test_tr_106_what_changed_underneath_is_not_removed(bench: Any, name: str) -> None:
    target = bench.folder / "a.txt"
    target.write_text("old")
    arguments = {"path": "a.txt"} if name == "delete" else {"source": "a.txt", "target": "b.txt"}
    prepared, receipt = await bench.prepare(name, **arguments)
    target.write_text("theirs")
    outcome = await bench.enter(name, prepared, receipt, **arguments)
    assert outcome.reason == "changed_underneath" and outcome.effect_trace is EffectTrace.NONE
    assert bench.names() == ["a.txt"] and target.read_text() == "theirs"


@pytest.mark.parametrize("name", ["delete", "move"])
async def test_tr_106_a_write_in_the_last_moment_is_put_back(bench: Any, name: str) -> None:
    target = bench.folder / "a.txt"
    target.write_text("old")

    class Meddler(Disk):
        done = False

        def rename(self, source: str, target_: str, *, over: bool) -> None:
            if not self.done:
                self.done = True
                target.write_text("theirs")
            super().rename(source, target_, over=over)

    bench.use(Meddler())
    arguments = {"path": "a.txt"} if name == "delete" else {"source": "a.txt", "target": "b.txt"}
    ran = await bench.run(name, **arguments)
    assert ran.outcome.reason == "changed_underneath" and ran.outcome.effect_trace is EffectTrace.NONE
    assert bench.names() == ["a.txt"] and target.read_text() == "theirs"


async def test_tr_105_a_move_stores_an_intent_for_each_end(bench: Any) -> None:
    (bench.folder / "a.txt").write_text("x")
    ran = await bench.run("move", source="a.txt", target="new/b.txt")
    source, folder, target = ran.intents[1], ran.intents[0], ran.intents[2]
    assert folder["kind"] == "mkdir"
    assert (source["kind"], source["before"], source["after"]) == ("move", digest_bytes(b"x"), "absent")
    assert (target["kind"], target["before"], target["after"]) == ("move", "absent", digest_bytes(b"x"))
    assert (bench.folder / "new/b.txt").read_text() == "x" and not (bench.folder / "a.txt").exists()


async def test_a_move_never_covers_a_file_unasked(bench: Any) -> None:
    (bench.folder / "a").write_text("a")
    (bench.folder / "b").write_text("b")
    ran = await bench.run("move", source="a", target="b")
    assert ran.outcome.error_kind == "exists" and (bench.folder / "b").read_text() == "b"
    await bench.run("move", source="a", target="b", overwrite=True)
    assert bench.names() == ["b"] and (bench.folder / "b").read_text() == "a"


async def test_a_folder_moves_whole_and_never_into_itself(bench: Any) -> None:
    (bench.folder / "d").mkdir()
    (bench.folder / "d/x").write_text("x")
    inside = await bench.run("move", source="d", target="d/e")
    assert inside.outcome.error_kind == "into_itself"
    await bench.run("move", source="d", target="e")
    assert (bench.folder / "e/x").read_text() == "x"


async def test_a_repeated_move_or_deletion_finds_its_work_done(bench: Any) -> None:
    (bench.folder / "a").write_text("x")
    first = await bench.run("move", source="a", target="b")
    bench.services["earlier"] = lambda receipt: (first.receipt,)
    again = await bench.run("move", source="a", target="b")
    assert again.outcome.state is State.SUCCEEDED and again.outcome.effect_trace is EffectTrace.NONE
    del bench.services["earlier"]
    gone = await bench.run("delete", path="b")
    (bench.folder / "b").mkdir()
    bench.services["earlier"] = lambda receipt: (gone.receipt,)
    later = await bench.run("delete", path="b")
    assert later.outcome.reason == "changed_underneath" and (bench.folder / "b").is_dir()
    (bench.folder / "b").rmdir()
    assert (await bench.run("delete", path="b")).outcome.state is State.SUCCEEDED


async def test_making_a_folder_leaves_an_existing_one_alone(bench: Any) -> None:
    first = await bench.run("make_directory", path="a/b")
    assert [i["kind"] for i in first.intents] == ["mkdir", "mkdir"] and (bench.folder / "a/b").is_dir()
    again = await bench.run("make_directory", path="a/b")
    assert again.outcome.state is State.SUCCEEDED and "already" in again.outcome.text
    (bench.folder / "f").write_text("file")
    assert (await bench.run("make_directory", path="f")).outcome.error_kind == "exists"
    assert (await bench.run("make_directory", path="f/g")).outcome.error_kind == "not_a_folder"


def test_a_user_who_may_not_write_a_folder_is_told_so(tmp_path: Path) -> None:
    """Root ignores modes, so a child gives root up; for others the mode is enough."""
    import subprocess
    import sys

    folder = tmp_path / "locked"
    folder.mkdir()
    (folder / "a.txt").write_text("old")
    (folder / "a.txt").chmod(0o666)
    for place in folder.parents:  # let the other user come this far
        if place.stat().st_mode & 0o001:
            break
        place.chmod(0o755)
    folder.chmod(0o555)
    program = (
        "import os, sys\n"
        "from surefoot.tools.files.plans import written, Found, missing_folders\n"
        "from surefoot.tools.files.paths import Located\n"
        "from surefoot.verifiers.sight import look_and_read\n"
        "if os.geteuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "p = sys.argv[1] + '/a.txt'\n"
        "s, c = look_and_read(p)\n"
        "print(written(Found(Located(p, p), s, c), b'new')[0].kind)\n"
        "try: missing_folders(Located(p, sys.argv[1] + '/n/x'))\n"
        "except Exception as e: print(e.outcome.error_kind)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, timeout=120
    )
    folder.chmod(0o755)
    assert ran.stdout.split() == ["inplace", "not_writable"], ran.stderr
    assert [entry.name for entry in folder.iterdir()] == ["a.txt"]
