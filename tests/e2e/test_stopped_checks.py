"""A test run that was stopped fences nothing; its owner may want otherwise. Real commands, real signals."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from surefoot.app import Parts, open_app
from surefoot.config import load_settings
from surefoot.core.model import Kind, Overlay, Receipt, State
from surefoot.runtime.controller import Controller
from surefoot.testing.played import PlayedModel


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose tests hang."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "pytest").write_text("#!/bin/sh\necho begun\nsleep 300\n")
    (programs / "pytest").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    (tmp_path / "work").mkdir()
    return tmp_path


@asynccontextmanager
async def opened(project: Path, steps: list[dict[str, Any]], **flags: Any) -> AsyncIterator[Controller]:
    environ = {**os.environ, "SUREFOOT_HOME": str(project / "home")}
    given = {"model": "demo/played", "permissions.mode": "bypassPermissions"}
    given |= {name.replace("__", "."): value for name, value in flags.items()}
    settings = load_settings(given, environ, project / "work")
    async with open_app(settings, directory=project / "work", parts=Parts(model=PlayedModel(steps))) as app:
        yield await app.session()


async def until(controller: Controller, holds: Callable[[], Any]) -> None:
    """Wait until something holds, looked at whenever an entry was appended."""
    news = asyncio.Event()
    controller.session.watch(lambda _: news.set())
    async with asyncio.timeout(90):
        while not holds():
            await news.wait()
            news.clear()


RUNS = {"calls": [{"name": "shell", "args": {"command": "pytest"}}]}
WRITES = {"calls": [{"name": "write", "args": {"path": "fix.txt", "content": "fixed"}}]}


async def stopped(controller: Controller) -> Receipt:
    """Let the tests begin, press Stop, and give back their receipt."""
    going = asyncio.ensure_future(controller.submit("run the tests"))
    book = controller.session.book
    await until(controller, lambda: any((one.process or {}).get("pid") for one in book))
    await controller.stop()
    await going
    return next(iter(book))


@pytest.mark.parametrize("how", ["stop", "limit"])
async def test_tr_75_ux_156_a_stopped_check_is_released_by_policy_once_it_is_quiet(
    project: Path, how: str
) -> None:
    limited = {"calls": [{"name": "shell", "args": {"command": "pytest", "timeout_seconds": 3}}]}
    begun = [RUNS] if how == "stop" else [limited, {"text": "well"}]
    steps = [*begun, WRITES, {"text": "done"}]
    async with opened(project, steps) as controller:
        book = controller.session.book
        if how == "stop":
            attempt = (await stopped(controller)).attempt_id
        else:
            await controller.submit("run the tests")
            attempt = next(iter(book)).attempt_id
        assert book.get(attempt).state is State.UNKNOWN
        await until(controller, lambda: not book.is_open(attempt))
        receipt = book.get(attempt)
        assert receipt.has(Overlay.RELEASED) and receipt.state is State.UNKNOWN
        assert (receipt.resolution["channel"], receipt.resolution["kind"]) == ("policy", "released")
        assert receipt.reason == ("cancelled" if how == "stop" else "time_limit") and receipt.check
        await controller.submit("now fix it")
        assert (project / "work/fix.txt").read_text() == "fixed"
        assert controller.actions.snapshot()["statistics"]["released"] == 1


async def test_ux_156_whoever_sees_a_check_released_has_been_told_its_line(project: Path) -> None:
    """The counts of a stop are shown once the call is seen to be released, and the line stands above them."""
    told: list[str] = []
    told_at_release: list[int] = []
    async with opened(project, [RUNS]) as controller:
        controller.subscribe(lambda notice: told.append(notice.kind))
        controller.session.watch(
            lambda entry: (
                told_at_release.append(told.count("check_stopped")) if entry.kind == Kind.RESOLVED else None
            )
        )
        attempt = (await stopped(controller)).attempt_id
        await until(controller, lambda: not controller.session.book.is_open(attempt))
    assert told_at_release == [1] and told.count("check_stopped") == 1


async def test_ux_156_with_the_switch_off_the_stopped_check_waits_for_a_person(project: Path) -> None:
    steps = [RUNS, WRITES, {"text": "done"}]
    async with opened(project, steps, recovery__release_stopped_checks=False) as controller:
        receipt = await stopped(controller)
        book = controller.session.book
        await until(controller, lambda: (book.get(receipt.attempt_id).process or {}).get("quiet"))
        await controller.submit("now fix it")
        assert book.is_open(receipt.attempt_id) and not (project / "work/fix.txt").exists()


async def test_tr_96_ux_52_a_fork_on_disk_is_fenced_and_leaves_its_origin_as_it_was(project: Path) -> None:
    environ = {**os.environ, "SUREFOOT_HOME": str(project / "home")}
    flags = {
        "model": "demo/played",
        "permissions.mode": "bypassPermissions",
        "recovery.release_stopped_checks": False,
    }
    settings = load_settings(flags, environ, project / "work")
    steps = [RUNS, WRITES, {"text": "held"}]
    async with open_app(settings, directory=project / "work", parts=Parts(model=PlayedModel(steps))) as app:
        origin = await app.session()
        receipt = await stopped(origin)

        def over() -> bool:
            """Both late notes of the stopped check are written, in whichever order they came."""
            now = origin.session.book.get(receipt.attempt_id)
            return bool((now.process or {}).get("quiet")) and (now.executor or {}).get("state") == "ended"

        await until(origin, over)
        before = await app.ledger.read(origin.session_id)
        forked = await app.session(await app.fork(origin.session_id))
        assert await app.ledger.read(origin.session_id) == before
        [copy] = forked.session.book.open()
        assert copy.origin_attempt_id == receipt.attempt_id
        await forked.submit("now fix it")
        assert not (project / "work/fix.txt").exists(), "the fence holds in the copy"
        shown = forked.actions.snapshot()["calls"][0]
        assert shown["open"] and shown["fencing"]
        await forked.close()
        await origin.close()
