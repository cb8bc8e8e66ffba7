"""A request whose agent was killed in the middle, looked up at a real receiver by the next process (TR-109)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_world import wait_for

from surefoot.testing.sink import Sink

AGENT = """
import asyncio, json, sys
from pathlib import Path
from urllib.parse import quote
from surefoot.app import Parts, open_app
from surefoot.config import load_settings
from surefoot.runtime.requests import Caller
from surefoot.testing.played import PlayedModel
from surefoot.tools.web import http_tool
from surefoot.verifiers.http import HttpLook, HttpVerifier

folder, url, window, account, what = sys.argv[1:]
look = HttpLook(
    scope=lambda call: account,
    by_key=lambda key, call: f"{url}/effects?key={quote(key)}",
    commit_window_seconds=float(window), lookup_lag_seconds=0.0,
)
pay = {"method": "POST", "url": f"{url}/effect", "json": {"label": "invoice 7"}}
tools = [] if what == "without the tool" else [http_tool(verifier=HttpVerifier(look))]
parts = Parts(model=PlayedModel([{"calls": [{"name": "http", "args": pay}]}]), tools=tools)
environ = {"SUREFOOT_HOME": f"{folder}/home", "HOME": folder, "PATH": "/usr/bin:/bin"}
flags = {"model": "demo/played", "permissions.mode": "bypassPermissions"}
settings = load_settings(flags, environ, Path(folder), trust=True)

async def main():
    async with open_app(settings, directory=Path(folder), parts=parts) as app:
        if what == "pay":
            controller = await app.session()
            await controller.submit("pay the invoice")
            return
        controller = await app.session(continue_newest=True)
        opened = controller.session.book.open()[0]
        assert opened.inspection is None or what != "inspect", "opening asks nobody far away"
        now = controller.actions.snapshot()
        press = {k: now[k] for k in ("sessionPath", "runtimeEpoch", "revision")}
        press |= {"action": "inspect", "attemptId": opened.attempt_id}
        answer = await controller.actions.act(press, Caller(who="test", channel="cli"))
        found = controller.session.book.get(opened.attempt_id)
        print(json.dumps({"status": answer.status, "inspection": dict(found.inspection or {}),
                          "overlays": list(found.overlays), "reason": found.reason,
                          "executor": dict(found.executor or {}), "scope": found.scope}))

asyncio.run(main())
"""


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[Sink]:
    with Sink(tmp_path) as made:
        yield made


def agent(
    folder: Path, sink: Sink, what: str, *, window: float = 0.0, account: str = "shop/7"
) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", AGENT, str(folder), sink.url, str(window), account, what]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )


def killed_while_it_waits(folder: Path, sink: Sink) -> None:
    running = agent(folder, sink, "pay")
    wait_for(lambda: running.poll() is not None or sink.state()["waiting"] == 1)
    assert running.poll() is None, running.communicate()
    running.kill()
    running.communicate(timeout=120)


def looked(folder: Path, sink: Sink, what: str = "inspect", **how: Any) -> dict[str, Any]:
    running = agent(folder, sink, what, **how)
    out, errors = running.communicate(timeout=120)
    assert running.returncode == 0, errors
    return dict(json.loads(out))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


def test_tr_109_an_effect_made_before_the_kill_is_proven_at_the_far_side(folder: Path, sink: Sink) -> None:
    sink.switch(reply="hold")
    killed_while_it_waits(folder, sink)
    found = looked(folder, sink)
    assert (found["status"], found["overlays"]) == (200, ["proven"])
    seen = found["inspection"]
    assert (seen["state"], seen["grade"], seen["verifier"]) == ("present", "proof", "http")
    assert sink.count() == 1


def test_tr_109_a_request_still_on_its_way_is_unknown_until_it_commits_late(folder: Path, sink: Sink) -> None:
    sink.switch(commit="hold")
    killed_while_it_waits(folder, sink)
    early = looked(folder, sink, window=3600.0)
    assert early["executor"]["state"] == "ended" and early["executor"]["endedBoot"] > 0
    assert (early["inspection"]["state"], early["inspection"]["reason"]) == ("unknown", "commit_window_open")
    sink.release()
    wait_for(lambda: sink.count() == 1)
    late = looked(folder, sink, "inspect again", window=3600.0)
    assert late["inspection"]["state"] == "present"
    assert late["inspection"]["id"] != early["inspection"]["id"]


def test_tr_109_a_request_that_never_took_effect_is_absent_and_fenced_after_its_window(
    folder: Path, sink: Sink
) -> None:
    sink.switch(commit="hold", cancel="obey")
    killed_while_it_waits(folder, sink)
    sink.release()
    wait_for(lambda: sink.state()["waiting"] == 0)
    found = looked(folder, sink, window=0.001)
    assert (found["inspection"]["state"], found["inspection"]["grade"]) == ("absent_fenced", "proof")
    assert sink.count() == 0


def test_tr_99_and_tr_111_another_account_or_a_missing_tool_is_a_recorded_look(
    folder: Path, sink: Sink
) -> None:
    sink.switch(commit="hold", cancel="obey")
    killed_while_it_waits(folder, sink)
    drifted = looked(folder, sink, account="shop/8")
    assert (drifted["inspection"]["state"], drifted["inspection"]["reason"]) == ("unknown", "scope_changed")
    assert drifted["scope"] == "shop/7"
    gone = looked(folder, sink, "without the tool")
    assert (gone["inspection"]["state"], gone["inspection"]["reason"]) == ("unknown", "target_gone")
    assert gone["inspection"]["id"] != drifted["inspection"]["id"] and sink.count() == 0
