"""The tools of the settings at work: `http` with its services, and the owner's push window."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from surefoot.app import App, Parts, open_app
from surefoot.config import Settings, load_settings
from surefoot.core.model import EffectClass, Receipt, State
from surefoot.runtime.controller import Controller
from surefoot.runtime.requests import Caller
from surefoot.testing.played import PlayedModel
from surefoot.testing.sink import Sink

PUSH_WINDOW = "[tools.shell]\npush_window_seconds = 0.01\n"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    return tmp_path / "work"


def settings(work: Path, text: str) -> Settings:
    home = work.parent / "home"
    (home / "config.toml").write_text(text)
    flags = {"model": "demo/played", "permissions.mode": "bypassPermissions"}
    return load_settings(flags, {"SUREFOOT_HOME": str(home), "PATH": os.environ["PATH"]}, work)


def service(sink: Sink, *more: str) -> str:
    lines = ["[tools.http]", "offered = true", "[tools.http.services.pay]", 'host = "127.0.0.1"', *more]
    return "\n".join(lines).replace("URL", sink.url) + "\n"


def post(sink: Sink, path: str = "/effect", **body: Any) -> dict[str, Any]:
    return {"name": "http", "args": {"method": "POST", "url": sink.url + path, "json": body}}


async def played(app: App) -> Controller:
    controller = await app.session()
    await controller.submit("Go.")
    return controller


def parts(*calls: dict[str, Any]) -> Parts:
    return Parts(model=PlayedModel([{"calls": [call]} for call in calls]))


async def inspect(controller: Controller, call: Receipt) -> None:
    now = controller.actions.snapshot()
    press = {key: now[key] for key in ("sessionPath", "runtimeEpoch", "revision")}
    press |= {"action": "inspect", "attemptId": call.attempt_id}
    answer = await controller.actions.act(press, Caller(who="ada", channel="cli"))
    assert answer.status == 200, answer.body


def inspection(controller: Controller, call: Receipt) -> Mapping[str, Any]:
    """The last one; a call that it closed is found among all."""
    (found,) = [one for one in controller.session.book if one.attempt_id == call.attempt_id]
    return found.inspection or {}


def git(work: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=work, check=True)


async def test_http_is_offered_only_where_the_owner_says_so(work: Path, tmp_path: Path) -> None:
    with Sink(tmp_path) as sink:
        async with open_app(settings(work, ""), directory=work, parts=parts(post(sink))) as app:
            (call,) = (await played(app)).session.book
            assert (call.state, call.reason) == (State.NOT_STARTED, "tool_missing")
        assert sink.effects() == []


async def test_tr_109_a_lost_reply_is_looked_up_by_the_key_as_the_settings_say(
    work: Path, tmp_path: Path
) -> None:
    with Sink(tmp_path) as sink:
        sink.switch(reply="drop")
        given = settings(work, service(sink, 'lookup = "URL/effects?key={key}"', "commit_window_seconds = 1"))
        async with open_app(given, directory=work, parts=parts(post(sink, label="invoice 7"))) as app:
            controller = await played(app)
            (call,) = controller.session.book
            assert (call.state, call.effect_class) == (State.UNKNOWN, EffectClass.UNKNOWN)
            await inspect(controller, call)
            seen = inspection(controller, call)
            assert (seen["state"], seen["grade"]) == ("present", "proof")
            (effect,) = sink.effects()
            assert effect["key"] == call.idempotency_key


async def test_ec_18_a_declared_key_makes_a_post_repeatable_and_a_declared_query_makes_it_a_read(
    work: Path, tmp_path: Path
) -> None:
    with Sink(tmp_path) as sink:
        given = settings(work, service(sink, "key_lifetime_seconds = 3600", 'queries = ["URL/search"]'))
        calls = (post(sink, label="a"), post(sink, "/search", q="x"))
        async with open_app(given, directory=work, parts=parts(*calls)) as app:
            paid, asked = (await played(app)).session.book
        assert (paid.effect_class, paid.state) == (EffectClass.IDEMPOTENT_WRITE, State.SUCCEEDED)
        assert paid.key_expires_at == (paid.started_at or 0) + 3_600_000
        assert (asked.effect_class, asked.reach) == (EffectClass.READ_ONLY, ())
        assert [effect["key"] for effect in sink.effects()] == [paid.idempotency_key]


@pytest.mark.parametrize(("text", "state"), [("", "unknown"), (PUSH_WINDOW, "absent_fenced")])
async def test_tr_109_an_absent_push_is_proven_once_the_owners_window_is_over(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, state: str
) -> None:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "T")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "t@example.org")
    bare = tmp_path / "far.git"
    git(tmp_path, "init", "-q", "--bare", str(bare))
    for line in ("init -q -b main", "commit -q --allow-empty -m x"):
        git(work, *line.split())
    git(work, "remote", "add", "origin", str(bare))
    hook = work / ".git" / "hooks" / "pre-push"
    hook.write_text("#!/bin/sh\nkill -9 $PPID\n")
    hook.chmod(0o755)
    push = {"name": "shell", "args": {"command": "git push origin main"}}
    async with open_app(settings(work, text), directory=work, parts=parts(push)) as app:
        controller = await played(app)
        (call,) = controller.session.book
        assert call.state is State.UNKNOWN
        async with asyncio.timeout(90):
            while inspection(controller, call).get("state") != state:  # its last process may still be ending
                await inspect(controller, call)
