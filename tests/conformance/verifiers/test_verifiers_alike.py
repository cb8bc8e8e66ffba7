"""One body for all built-in verifiers of effects: every column of TR-109, late commits, drift, time limits.

Each world makes a call's receipt as it stands at D6, can let the effect happen, and can put another
resource in the place of the one that was meant.
"""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from surefoot.core.canonical import digest_bytes
from surefoot.core.model import InspectionState, Receipt
from surefoot.runtime.inspection import map_observation
from surefoot.runtime.tools import observe
from surefoot.testing.postgres import PostgresServer
from surefoot.testing.sink import Sink, post
from surefoot.tools.classify.git_writes import git_write
from surefoot.tools.processes.git_record import git_record, git_variables
from surefoot.verifiers.clock import boot_ms
from surefoot.verifiers.database import SqliteVerifier
from surefoot.verifiers.files import FilesVerifier
from surefoot.verifiers.git import GitVerifier
from surefoot.verifiers.http import HttpLook, HttpVerifier
from surefoot.verifiers.port import Deadline, EffectVerifier
from surefoot.verifiers.postgres import PostgresVerifier, session_name
from surefoot.verifiers.sight import look

KEY = "sf1-conform"
LATER = Deadline(1 << 60)
FOUND = {InspectionState.PRESENT, InspectionState.POSTCONDITION_SATISFIED}


@dataclasses.dataclass
class World:
    """One verifier, one call, and the hands that change the world around it."""

    verifier: EffectVerifier
    call: Receipt
    happen: Callable[[], None]
    drift: Callable[[], None]
    proves: bool = True
    """Whether its `present` can be a proof."""


def receipt(**fields: Any) -> Receipt:
    made = Receipt("ses_1", "trn_1", "cal_1", "att_1", 0, tool="t", idempotency_key=KEY, **fields)
    return dataclasses.replace(made, started_at=time.time_ns() // 1_000_000)


def scoped(verifier: EffectVerifier, call: Receipt) -> Receipt:
    return dataclasses.replace(call, scope=verifier.recovery_scope(call))


def files_world(folder: Path) -> Iterator[World]:
    work = folder / "work"
    work.mkdir()
    target = work / "a.txt"
    target.write_bytes(b"old")
    _aged(target)
    sight = look(str(target))
    intent = {
        "version": 1, "kind": "write", "path": str(target), "resolvedPath": str(target),
        "host": socket.gethostname(), "route": "disk", "transportId": None, "before": digest_bytes(b"old"),
        "after": digest_bytes(b"new"), "dev": sight.dev, "ino": sight.ino, "ctimeNs": sight.ctime_ns,
        "encoding": "utf-8",
    }  # fmt: skip
    verifier = FilesVerifier()
    call = scoped(verifier, receipt(write_intents=(intent,)))

    def drift() -> None:
        work.rename(folder / "moved")
        work.symlink_to(folder / "moved")

    yield World(verifier, call, lambda: _write(target, b"new"), drift, proves=False)


def _write(target: Path, content: bytes) -> None:
    target.write_bytes(content)


def _aged(*paths: Path) -> None:
    while any(path.exists() and time.time_ns() - path.stat().st_ctime_ns <= 25_000_000 for path in paths):
        time.sleep(0.002)


def git_world(line: str) -> Callable[[Path], Iterator[World]]:
    def make(folder: Path) -> Iterator[World]:
        work = folder / "work"
        work.mkdir()

        def git(*arguments: str) -> None:
            subprocess.run(["git", *arguments], cwd=work, check=True, capture_output=True)

        git("init", "-q")
        git("config", "user.name", "T")
        git("config", "user.email", "t@example.org")
        git("commit", "-q", "--allow-empty", "-m", "first")
        (work / "a.txt").write_text("new")
        git("add", "a.txt")
        _aged(work / ".git/refs/tags", work / ".git/refs/heads")
        wanted = git_write(line)
        assert wanted is not None
        verifier = GitVerifier(git_variables)
        call = scoped(verifier, receipt(process={"git": git_record(wanted, work, os.environ)}))

        def drift() -> None:
            (work / ".git").rename(folder / "former.git")  # kept, so that its inode is not given again
            git("init", "-q")

        yield World(verifier, call, lambda: _shell(line, work), drift)

    return make


def _shell(line: str, work: Path) -> None:
    subprocess.run(["bash", "-c", line], cwd=work, check=True, capture_output=True)


def http_world(folder: Path) -> Iterator[World]:
    with Sink(folder) as sink:
        account = ["shop/7"]
        declared = HttpLook(
            scope=lambda call: account[0],
            by_key=lambda key, call: f"{sink.url}/effects?key={key}",
            commit_window_seconds=5.0,
            lookup_lag_seconds=0.0,
        )
        verifier = HttpVerifier(declared, since_end=lambda call: 60_000)

        def happen() -> None:
            post(f"{sink.url}/effect", {"label": "x", "key": KEY})

        def drift() -> None:
            account[0] = "shop/8"

        yield World(verifier, scoped(verifier, receipt()), happen, drift)


def database_world(folder: Path) -> Iterator[World]:
    path = folder / "shop.db"

    def run(statement: str, *values: Any) -> None:
        with closing(sqlite3.connect(path)) as shop, shop:
            shop.execute(statement, values)

    run("create table orders (key)")
    verifier = SqliteVerifier(path, "select 1 from orders where key = :key")

    def drift() -> None:
        path.rename(folder / "old.db")
        run("create table orders (key)")

    yield World(
        verifier, scoped(verifier, receipt()), lambda: run("insert into orders values (?)", KEY), drift
    )


def postgres_world(folder: Path) -> Iterator[World]:
    with PostgresServer() as server:

        def run(statement: str, database: str = "shop") -> None:
            with psycopg.connect(server.conninfo(database), autocommit=True) as link:
                link.execute(statement)

        def make() -> None:
            run("create database shop", "postgres")
            run("create table orders (key text)")

        def drift() -> None:
            run("drop database shop", "postgres")
            make()

        make()
        query = "select 1 from orders where key = %(key)s"
        verifier = PostgresVerifier(server.conninfo("shop"), query, session=session_name)
        yield World(
            verifier, scoped(verifier, receipt()), lambda: run(f"insert into orders values ('{KEY}')"), drift
        )


WORLDS: dict[str, Callable[[Path], Iterator[World]]] = {
    "files": files_world,
    "git commit": git_world("git commit -m 'second'"),
    "git tag": git_world("git tag v1"),
    "git branch": git_world("git branch side"),
    "http": http_world,
    "database": database_world,
    "postgres": postgres_world,
}


@pytest.fixture(params=WORLDS, ids=lambda name: name.replace(" ", "-"))
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    yield from WORLDS[request.param](tmp_path.resolve())


def seen(world: World, *, fenced: bool, deadline: Deadline = LATER) -> InspectionState:
    return map_observation(observe(world.verifier, world.call, deadline, fenced=fenced)).state


def test_tr_109_an_effect_that_happened_is_found_and_proven_where_it_can_be(world: World) -> None:
    world.happen()
    for fenced in (True, False):
        answer = observe(world.verifier, world.call, LATER, fenced=fenced)
        assert map_observation(answer).state in FOUND
        assert map_observation(answer).proven is world.proves


def test_tr_109_nothing_that_can_come_any_more_is_absent_and_fenced(world: World) -> None:
    assert seen(world, fenced=True) is InspectionState.ABSENT_FENCED


@pytest.mark.promise("recovery:never-guess")
def test_tr_100_absence_without_a_fence_proves_nothing(world: World) -> None:
    assert seen(world, fenced=False) is InspectionState.UNKNOWN


@pytest.mark.promise("recovery:never-guess")
def test_tr_109_a_late_commit_is_unknown_before_and_found_after(world: World) -> None:
    assert seen(world, fenced=False) is InspectionState.UNKNOWN
    world.happen()
    assert seen(world, fenced=False) in FOUND


@pytest.mark.promise("recovery:never-guess")
def test_tr_99_another_resource_in_the_same_place_is_never_absent(world: World) -> None:
    world.drift()
    answer = observe(world.verifier, world.call, LATER, fenced=True)
    assert (answer.state, answer.reason) == ("unknown", "scope_changed")


def test_tr_104_a_look_past_its_deadline_is_unknown_and_never_absent(world: World) -> None:
    assert seen(world, fenced=True, deadline=Deadline(boot_ms() - 1)) is InspectionState.UNKNOWN


def test_tr_103_looking_twice_sees_the_same_and_changes_nothing(world: World) -> None:
    def answer() -> str:
        found = observe(world.verifier, world.call, LATER, fenced=True)
        return json.dumps([found.state, found.grade, found.evidence], default=str)

    assert answer() == answer()
    world.happen()
    assert answer() == answer()
