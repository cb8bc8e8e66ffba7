"""Every labelled command that is called a reader, and can run here, is run: nothing changes (EC-31)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from surefoot.runtime.tools import Place
from surefoot.testing import sandbox
from surefoot.testing.sandbox import PLACEHOLDER, World, isolation, missing_programs, run_all
from surefoot.tools.classify.shell import classify_shell

CORPUS = Path(__file__).parents[1] / "unit" / "tools" / "classify" / "corpus.tsv"
COMMANDS = [line.split("\t", 1)[1].replace("␊", "\n") for line in CORPUS.read_text("utf-8").splitlines()[1:]]


def test_ec_31_no_command_called_a_reader_changes_a_file_or_a_far_side(tmp_path: Path) -> None:
    found = run_all(COMMANDS, tmp_path)
    readers = [one for one in found if one.judged == "READ_ONLY"]
    ran = [one for one in readers if one.ran]
    missing = Counter(program for one in readers for program in one.missing)
    print(
        f"{len(COMMANDS)} commands, {len(readers)} called readers, {len(ran)} run "
        f"{'in name spaces of their own' if isolation() else 'in a plain folder'}, "
        f"{len(readers) - len(ran)} judged by label for want of {dict(missing.most_common())}"
    )
    wrong = [one for one in found if one.changed or one.requests]
    assert wrong == []
    assert len(ran) >= 300  # what bash, git, curl and the core tools of any system can run


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("echo x > a", "project/a"),
        ("chmod +x a", "project/a"),
        ("touch -r b a", "project/a"),
        ("rm new", "project/new"),
        ("git update-index --refresh", "project/.git/index"),
        ("git push origin main:else", "remote.git/refs/heads/else"),
        (
            'sqlite3 app.db \'delete from t\' || python3 -c \'open("app.db", "a").write("x")\'',
            "project/app.db",
        ),
        ("touch ~/x", "home/x"),
    ],
)
def test_ec_31_the_sandbox_sees_what_a_write_changes(
    world: World, monkeypatch: pytest.MonkeyPatch, command: str, name: str
) -> None:
    """A wrongly labelled command would be found: each of these is run as if it were called a reader."""
    call_readers(monkeypatch)
    assert name in world.run(command).changed


@pytest.mark.parametrize("command", [f"curl -d a=1 {PLACEHOLDER}/x", f"curl -X DELETE {PLACEHOLDER}/x"])
def test_ec_31_the_sandbox_sees_a_request_that_may_act(
    world: World, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    call_readers(monkeypatch)
    assert len(world.run(command).requests) == 1
    assert world.run(f"curl -s {PLACEHOLDER}/x").requests == ()


def test_ec_31_a_missing_program_is_told_and_not_taken_for_proof() -> None:
    path = "/usr/bin:/bin"
    assert missing_programs(["ls -l", "no-such-program x", "[ -f a", "kubectl get pods"], path) == (
        "no-such-program",
        "kubectl",
    )


def call_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the sandbox believe that every command is a reader."""

    def believe(text: str, place: Place) -> object:
        found = classify_shell("ls", place)
        return replace(found, reading_text=text, simple_commands=())

    monkeypatch.setattr(sandbox, "classify_shell", believe)
