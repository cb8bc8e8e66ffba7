"""How much a model reasons: from the settings into the request of each wire, and what that makes possible."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from surefoot.app import open_app
from surefoot.config import Settings, load_settings
from surefoot.core.model import TurnStatus
from surefoot.errors import SettingsError
from surefoot.providers import contracts
from surefoot.testing.emulator.server import Emulator

READ = {"thinking": "I read it.", "calls": [{"name": "read", "args": {"path": "a.txt"}}]}
DONE = {"text": "It says hello.", "thinking": "So."}
SAID: dict[str, Any] = {
    "chat": {"reasoning_effort": "low"},
    "responses": {"reasoning": {"effort": "low"}},
    "anthropic": {"thinking": {"type": "enabled", "budget_tokens": 2048}},
}


def settings(
    tmp_path: Path, emulator: Emulator, contract: str, effort: str | None = "low", **more: Any
) -> Settings:
    profile, _, wire = contract.partition("/")
    url = emulator.base_url(profile, wire=wire) + ("/v1" if wire == "anthropic" else "")
    given = {"url": url, "wire": wire, "contract": contract, "model": "m", **more}
    given |= {} if effort is None else {"effort": effort}
    lines = [f"{key} = {json.dumps(value)}" for key, value in given.items() if not isinstance(value, dict)]
    lines += [
        f"{key} = {{ {', '.join(f'{json.dumps(k)} = {json.dumps(v)}' for k, v in value.items())} }}"
        for key, value in given.items()
        if isinstance(value, dict)
    ]
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir(exist_ok=True)
    project.mkdir(exist_ok=True)
    (home / "config.toml").write_text('model = "desk"\n[endpoints.desk]\n' + "\n".join(lines) + "\n")
    environ = {**os.environ, "SUREFOOT_HOME": str(home)}
    return load_settings({}, environ, project)


@pytest.mark.parametrize("contract", ["deepseek/chat", "deepseek/responses", "deepseek/anthropic"])
async def test_pr_1_pr_19_the_effort_of_an_endpoint_stands_in_every_request_and_in_the_target(
    contract: str, tmp_path: Path
) -> None:
    async with Emulator() as emulator:
        emulator.script([READ, DONE])
        given = settings(tmp_path, emulator, contract)
        (given.root / "a.txt").write_text("hello")
        async with open_app(given, directory=given.root) as app:
            controller = await app.session(new=True)
            end = await controller.submit("look at a.txt")
            assert end.status is TurnStatus.COMPLETED, end
            assert controller.model.target()["effort"] == "low"  # type: ignore[attr-defined]
        said = SAID[contract.partition("/")[2]]
        bodies = [entry.json() for entry in emulator.requests()]
        assert len(bodies) == 2
        assert all({key: body.get(key) for key in said} == said for body in bodies)


async def test_ux_15_the_effort_of_the_run_wins_and_none_switches_thinking_off(tmp_path: Path) -> None:
    async with Emulator() as emulator:
        emulator.script([DONE])
        given = dataclasses.replace(settings(tmp_path, emulator, "anthropic/anthropic"), effort="none")
        async with open_app(given, directory=given.root) as app:
            await (await app.session(new=True)).submit("hello")
        assert emulator.requests()[0].json()["thinking"] == {"type": "disabled"}


@pytest.mark.parametrize(
    ("contract", "effort", "remedy"),
    [
        ("deepseek/chat", "enormous", "use one of none, minimal, low"),
        ("deepseek-r1/chat", "low", "leave it out"),
        ("kimi-k3/chat", "none", "use one of low"),
        ("openai/responses", "max", "use one of none"),
    ],
)
async def test_wc_1_an_effort_the_contract_does_not_know_is_refused_with_the_remedy(
    contract: str, effort: str, remedy: str, tmp_path: Path
) -> None:
    async with Emulator() as emulator:
        given = settings(tmp_path, emulator, contract, effort)
        async with open_app(given, directory=given.root) as app:
            with pytest.raises(SettingsError) as caught:
                await app.session(new=True)
            assert await app.sessions() == []
        assert effort in str(caught.value) and contract in str(caught.value) and remedy in str(caught.value)
        assert emulator.requests() == []


def test_wc_2_every_shipped_contract_says_which_efforts_it_knows() -> None:
    for name in contracts.contract_ids():
        contract = contracts.resolve(name)
        assert isinstance(contract["reasoning.efforts"], list), name
        assert contract.effort(None, "desk") is None


async def test_case_r24_pr_50_an_09_a_block_of_another_conversation_is_dropped_by_the_service_on_request(
    tmp_path: Path,
) -> None:
    async with Emulator() as emulator:
        emulator.script([READ, DONE])
        emulator.fault(match={"nth": 2}, tamper_request=[{"path": ["system"], "value": "Another one."}])
        given = settings(
            tmp_path, emulator, "anthropic-bound/anthropic", headers={"anthropic-beta": "binding"}
        )
        (given.root / "a.txt").write_text("hello")
        async with open_app(given, directory=given.root) as app:
            controller = await app.session(new=True)
            end = await controller.submit("look at a.txt")
            emulator.assert_fired()
            statuses = [entry.status for entry in emulator.requests()]
            assert (end.status, statuses) == (TurnStatus.COMPLETED, [200, 400, 200])
            record = controller.session.incidents[-1].fields
            assert record["repairs"] == [["R9", -1]] and record["kind"] == "replay_signature"
        _, refused, sent = (entry.json() for entry in emulator.requests())
        binding = sent["thinking"].pop("block_binding")
        assert binding == {"prefix_mismatch_behavior": "drop_block"}
        assert sent["thinking"] == refused["thinking"] and sent["messages"][1:] == refused["messages"][1:]
        assert {**sent, "messages": 0} == {**refused, "messages": 0, "system": sent["system"]}
        assert all(entry.headers.get("anthropic-beta") == "binding" for entry in emulator.requests())


async def test_pr_50_without_effort_or_beta_header_the_block_is_left_out_instead(tmp_path: Path) -> None:
    async with Emulator() as emulator:
        emulator.script([READ, DONE])
        emulator.fault(match={"nth": 2}, tamper_request=[{"path": ["system"], "value": "Another one."}])
        given = settings(tmp_path, emulator, "anthropic-bound/anthropic")
        (given.root / "a.txt").write_text("hello")
        async with open_app(given, directory=given.root) as app:
            controller = await app.session(new=True)
            await controller.submit("look at a.txt")
            emulator.assert_fired()
            assert "R9" not in {rid for rid, _ in controller.session.incidents[-1].fields["repairs"]}
