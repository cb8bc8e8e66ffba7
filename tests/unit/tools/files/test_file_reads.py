"""Reading and searching: bounded, never blocking, killable (TR-207)."""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.model import State
from surefoot.tools.files.search import search_tools, unified_diff
from surefoot.tools.files.searching import name_pattern
from surefoot.tools.worker import Worker, WorkerStopped

SLOW = r"(x+x+)+y"


WORK_TICKS = 10
"""A tenth of a second of the processor: no answer that is only being finished takes so long."""


def processor_ticks(pid: int) -> int:
    """What a process has used of the processor, in its own name."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_read_numbers_lines_and_pages_through_them(bench: Any) -> None:
    (bench.folder / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    whole = await bench.run("read", path="a.txt")
    assert whole.outcome.text.splitlines()[0] == "     1\tline 1" and "[lines" not in whole.outcome.text
    part = await bench.run("read", path="a.txt", offset=4, limit=2)
    assert part.outcome.text == "     4\tline 4\n     5\tline 5\n[lines 4 to 5 of 10; go on with offset 6]"
    assert "10 lines" in (await bench.run("read", path="a.txt", offset=11)).outcome.text


async def test_tr_185_long_lines_and_long_files_are_cut_and_counted(bench: Any) -> None:
    (bench.folder / "at").write_text("x" * 2000)
    (bench.folder / "above").write_text("x" * 2001)
    assert "cut" not in (await bench.run("read", path="at")).outcome.text
    assert "the line has 2001 characters" in (await bench.run("read", path="above")).outcome.text
    (bench.folder / "many").write_text("x\n" * 2001)
    assert (
        "[lines 1 to 2000 of 2001; go on with offset 2001]"
        in (await bench.run("read", path="many")).outcome.text
    )
    bench.services["limits"] = {"digest_file_bytes": 2000}
    assert (await bench.run("read", path="at")).outcome.state is State.SUCCEEDED
    assert (await bench.run("read", path="above")).outcome.error_kind == "too_large"


@pytest.mark.timeout(120)
async def test_what_is_no_text_file_is_told_and_never_waited_for(bench: Any) -> None:
    os.mkfifo(bench.folder / "pipe")
    (bench.folder / "image").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (bench.folder / "loop").symlink_to("loop")
    (bench.folder / "d").mkdir()
    kinds = {
        "pipe": "not_a_file",
        "/dev/zero": "not_a_file",
        "image": "binary",
        "d": "not_a_file",
        "nothing": "not_found",
        "d/x/y": "not_found",
    }
    for path, kind in kinds.items():
        assert (await bench.run("read", path=path)).outcome.error_kind == kind, path
    assert (await bench.run("read", path="loop")).outcome.state is State.FAILED
    assert "PNG image" in (await bench.run("read", path="image")).outcome.text
    for name in ("grep", "glob"):
        ran = await bench.run(name, pattern="pip")
        assert ran.outcome.state is State.SUCCEEDED


async def test_a_misspelt_name_is_answered_with_its_neighbours(bench: Any) -> None:
    (bench.folder / "configuration.toml").write_text("x")
    assert "configuration.toml" in (await bench.run("read", path="configurtion.toml")).outcome.text


async def test_list_shows_kinds_and_quotes_names_that_would_draw(bench: Any) -> None:
    (bench.folder / "d").mkdir()
    (bench.folder / "f").write_text("abc")
    (bench.folder / "l").symlink_to("f")
    (bench.folder / "evil\n\x1b[2Jname").write_text("")
    text = (await bench.run("list")).outcome.text
    assert text.splitlines()[0] == "d/" and "f  3 bytes" in text and "l -> f" in text
    assert "\x1b" not in text and '"evil\\n\\u001b[2Jname"' in text


async def test_glob_and_grep_see_what_git_sees(bench: Any) -> None:
    tree = {
        ".gitignore": "*.log\n!keep.log\n/build/\n",
        "a.py": "needle",
        "x.log": "needle",
        "keep.log": "needle",
        "build/out.py": "needle",
        "sub/.gitignore": "b.py\n!c.log\n",
        "sub/b.py": "needle",
        "sub/c.log": "needle",
        "sub/build/deep.py": "needle",
        ".git/config": "needle",
        ".git/info/exclude": "secret.py\n",
        "secret.py": "needle",
    }
    for name, text in tree.items():
        (bench.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (bench.folder / name).write_text(text)
    seen = {"a.py", "keep.log", "sub/c.log", "sub/build/deep.py"}
    grep = await bench.run("grep", pattern="needle", output="files")
    assert set(grep.outcome.text.splitlines()) == seen
    glob = await bench.run("glob", pattern="**/*.{py,log}")
    assert set(glob.outcome.text.splitlines()) == seen
    inner = await bench.run("glob", pattern="*", path="sub")
    assert set(inner.outcome.text.splitlines()) == {".gitignore", "c.log"}
    everything = await bench.run("glob", pattern="**/*.py", ignored_too=True)
    assert {"build/out.py", "secret.py", "sub/b.py"} <= set(everything.outcome.text.splitlines())
    named = await bench.run("grep", pattern="needle", path="build")
    assert named.outcome.text == "out.py:1:needle"


async def test_grep_prints_lines_with_context_counts_and_limits(bench: Any) -> None:
    (bench.folder / "a.txt").write_text("one\nTwo\nthree\nfour\nfive\nTWO\n")
    lines = await bench.run("grep", pattern="two", ignore_case=True, around=1)
    assert lines.outcome.text == ("a.txt-1-one\na.txt:2:Two\na.txt-3-three\n--\na.txt-5-five\na.txt:6:TWO")
    count = await bench.run("grep", pattern="[Tt][Ww]", output="count")
    assert count.outcome.text == "a.txt:2"
    some = await bench.run("grep", pattern=".", limit=2)
    assert "stopped at 2 rows" in some.outcome.text
    assert (await bench.run("grep", pattern="(")).outcome.error_kind == "pattern"
    assert (await bench.run("grep", pattern="x", path="nowhere")).outcome.error_kind == "not_found"
    assert (await bench.run("grep", pattern="one", path="a.txt")).outcome.text.endswith("a.txt:1:one")


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("*.py", "a.py", True),
        ("*.py", "d/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "d/e/a.py", True),
        ("src/**", "src/d/a", True),
        ("src/**/a", "src/a", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[!a]b", "cb", True),
        ("[!a]b", "ab", False),
        ("{a,b*}.{c,d}", "bxx.d", True),
        ("a.b", "axb", False),
        ("a\nb", "a\nb", True),
    ],
)
def test_name_patterns_mean_what_shells_mean(pattern: str, name: str, matches: bool) -> None:
    assert bool(name_pattern(pattern).match(name)) is matches


@pytest.mark.parametrize("pattern", ["{a", "a}", "[a"])
def test_open_brackets_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        name_pattern(pattern)


async def test_tr_207_a_pattern_that_never_ends_is_killed_and_the_next_search_works(bench: Any) -> None:
    (bench.folder / "a.txt").write_text("x" * 60 + "\nneedle\n")
    _, grep = search_tools(bench.worker, seconds=1.0)
    bench.tools["grep"] = grep
    began = time.monotonic()
    ran = await bench.run("grep", pattern=SLOW)
    assert ran.outcome.error_kind == "time_limit" and time.monotonic() - began < 60
    assert bench.worker.pid is None
    assert (await bench.run("grep", pattern="needle")).outcome.text == "a.txt:2:needle"


async def test_tr_207_a_cancelled_search_ends_its_process_at_once(bench: Any) -> None:
    (bench.folder / "a.txt").write_text("x" * 60)
    task = asyncio.create_task(bench.run("grep", pattern=SLOW))
    await bench.until(lambda: bench.worker.pid is not None)
    pid = bench.worker.pid
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(pid)
    (bench.folder / "a.txt").write_text("needle")
    assert "needle" in (await bench.run("grep", pattern="needle")).outcome.text


async def test_tr_207_searches_side_by_side_share_one_process(bench: Any) -> None:
    (bench.folder / "a.txt").write_text("needle\n")
    ran = await asyncio.gather(*(bench.run("grep", pattern="needle") for _ in range(4)))
    assert {found.outcome.text for found in ran} == {"a.txt:1:needle"}
    pid = bench.worker.pid
    await bench.run("glob", pattern="*")
    assert bench.worker.pid == pid


async def test_tr_207_a_search_process_killed_from_outside_is_told_and_replaced(bench: Any) -> None:
    (bench.folder / "a.txt").write_text("x" * 60)
    await bench.run("glob", pattern="*")
    pid = bench.worker.pid
    before = processor_ticks(pid)
    task = asyncio.create_task(bench.run("grep", pattern=SLOW))
    # That it runs proves nothing: it may still be on its way back from the answer before. Work proves it.
    await bench.until(lambda: processor_ticks(pid) >= before + WORK_TICKS)
    os.kill(pid, 9)
    ran = await task
    assert ran.outcome.error_kind == "worker_died" and ran.outcome.transient
    assert (await bench.run("glob", pattern="*")).outcome.text == "a.txt"


async def test_tr_207_diffs_are_made_by_the_same_process() -> None:
    worker = Worker()
    try:
        text = await unified_diff(worker, "a\nb\n", "a\nc\n", name="x.txt")
        assert text.splitlines()[-2:] == ["-b", "+c"]
        # Every line occurs often, but not often enough to be left out: the search for a match is quadratic.
        seeded = random.Random(7)
        slow = [str(seeded.randrange(300)) for _ in range(150_000)]
        with pytest.raises(WorkerStopped):
            await unified_diff(worker, "\n".join(slow), "\n".join(reversed(slow)), seconds=1.0)
    finally:
        worker.close()


async def test_tr_207_the_search_runs_no_program_of_the_project(bench: Any, monkeypatch: Any) -> None:
    (bench.folder / "re.py").write_text("raise SystemExit('the project ran')")
    (bench.folder / "json.py").write_text("raise SystemExit('the project ran')")
    (bench.folder / "a.txt").write_text("needle")
    monkeypatch.chdir(bench.folder)
    ran = await bench.run("grep", pattern="needle", glob="*.txt")
    assert ran.outcome.text == "a.txt:1:needle"


async def test_ec_34_reads_run_twice_change_nothing(bench: Any) -> None:
    (bench.folder / "d").mkdir()
    (bench.folder / "d/a.txt").write_text("needle\n")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read", {"path": "d/a.txt"}),
        ("list", {"path": "d"}),
        ("glob", {"pattern": "**"}),
        ("grep", {"pattern": "needle"}),
    ]

    def world() -> dict[Path, tuple[int, int, int]]:
        found = [bench.folder, *bench.folder.rglob("*")]
        return {p: (p.stat().st_ino, p.stat().st_mtime_ns, p.stat().st_ctime_ns) for p in found}

    before = world()
    for name, arguments in calls:
        first = await bench.run(name, **arguments)
        again = await bench.run(name, **arguments)
        assert first.outcome == again.outcome and first.outcome.state is State.SUCCEEDED
    assert world() == before and bench.disk.steps == []


@pytest.mark.parametrize(
    ("name", "rule", "alias"),
    [
        ("read", "Read", "read_file"),
        ("list", "Read", "list_directory"),
        ("glob", "Glob", "Glob"),
        ("grep", "Grep", "Grep"),
        ("write", "Write", "write_file"),
        ("edit", "Edit", "Edit"),
        ("multi_edit", "Edit", "MultiEdit"),
        ("delete", "Write", "delete_file"),
        ("move", "Write", "move_file"),
        ("make_directory", "Write", "create_directory"),
    ],
)
def test_ux_39_every_file_tool_has_a_rule_name_and_an_alias(
    bench: Any, name: str, rule: str, alias: str
) -> None:
    tool = bench.tool(name)
    assert tool.rule_name == rule and alias in tool.aliases
    assert tool.parameters["additionalProperties"] is False


def test_ux_40_subjects_are_resolved_paths(bench: Any) -> None:
    (bench.folder / "real").write_text("")
    (bench.folder / "link").symlink_to("real")
    (bench.folder / "up").symlink_to("/etc")

    def subjects(name: str, **arguments: Any) -> tuple[str, ...]:
        found: tuple[str, ...] = bench.tool(name).subjects(arguments, bench.place)
        return found

    assert subjects("read", path="link") == (str(bench.folder / "real"),)
    assert subjects("read", path="up/../hosts") == ("/hosts",)
    assert subjects("delete", path="link") == (str(bench.folder / "link"),)
    assert subjects("move", source="link", target="up/x") == (str(bench.folder / "link"), "/etc/x")
    assert subjects("grep", pattern="x") == (str(bench.folder),)


def test_file_tools_do_not_share_a_name_or_alias(bench: Any) -> None:
    names = [name for tool in bench.tools.values() for name in (tool.name, *tool.aliases)]
    assert len(names) == len(set(names))


async def test_ux_38_a_search_follows_no_link_out_of_the_folder_that_was_asked_about(bench: Any) -> None:
    (bench.folder / "inner").mkdir()
    (bench.folder / "inner/a.txt").write_text("needle in\n")
    outside = bench.folder.parent / "outside.txt"
    outside.write_text("needle out\n")
    (bench.folder / "out.txt").symlink_to(outside)
    (bench.folder / "in.txt").symlink_to("inner/a.txt")
    (bench.folder / "inner/up.txt").symlink_to(outside)
    found = (await bench.run("grep", pattern="needle")).outcome.text
    assert found.splitlines() == ["in.txt:1:needle in", "inner/a.txt:1:needle in"]
    named = await bench.run("grep", pattern="needle", path="out.txt")
    assert "needle out" in named.outcome.text, "a link that is named is what was asked about"
