"""Hosted tools by the settings of a person: switched on, told, and refused where the contract has no form for them."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_world import World, wait_for

from surefoot.testing.emulator.process import EmulatorProcess

RUN = {"thinking": "I compute.", "hosted_effect": "code", "when_enabled": True, "text": "It is 4."}
SEARCH = {"behaviour": "search_without_sources", "text": "Nobody knows.", "thinking": "I search."}


@pytest.fixture
def emulator(world: World, tmp_path: Path) -> Iterator[EmulatorProcess]:
    with EmulatorProcess(tmp_path) as process:
        yield process


def declare(world: World, emulator: EmulatorProcess, hosted: list[str], *, wire: str = "responses") -> None:
    """An endpoint of the person's own settings."""
    profile = {"responses": "openai", "chat": "openai"}[wire]
    path = Path(world.run("config", "path").stdout.strip())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'model = "far/m"\n[endpoints.far]\nurl = "{emulator.base_url(profile)}"\nwire = "{wire}"\n'
        f'contract = "{profile}/{wire}"\nkey_env = "FAR_KEY"\nhosted_tools = {json.dumps(hosted)}\n'
    )
    world.more |= {"FAR_KEY": "sk-test"}


def lines(world: World, *arguments: str) -> list[dict[str, Any]]:
    done = world.run("-p", "go", "--output-format", "stream-json", *arguments)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_pr_98_ux_28_a_named_kind_is_switched_on_and_its_request_is_a_receipt(
    world: World, emulator: EmulatorProcess
) -> None:
    declare(world, emulator, ["code"])
    emulator.script([RUN])
    told = lines(world)
    states = [one["state"] for one in told if one.get("subtype") == "receipt"]
    assert states == ["started", "succeeded"] and told[-1]["result"] == "It is 4."
    assert emulator.hosted() == {"code": 1}
    shown = world.run("session", "show").stdout
    assert "● hosted:request code: done" in shown


def test_pr_98_a_cut_request_ends_as_an_unknown_call_of_the_run(
    world: World, emulator: EmulatorProcess
) -> None:
    declare(world, emulator, ["code"])
    emulator.script([RUN])
    emulator.fault(match={"nth": 1}, stage="reply", cut_at=6)
    told = lines(world)
    assert len(emulator.requests()) == 1
    (card,) = [one for one in told if one.get("subtype") == "outcome_unknown"]
    assert card["card"]["summary"] == "hosted:request code" and card["card"]["fencing"]
    assert told[-1]["exit_code"] != 0 and len(told[-1]["unknown_outcomes"]) == 1


def test_pr_98_a_deny_rule_switches_it_off(world: World, emulator: EmulatorProcess) -> None:
    declare(world, emulator, ["code"])
    emulator.script([RUN])
    path = Path(world.run("config", "path").stdout.strip())
    path.write_text(path.read_text() + '[permissions]\ndeny = ["Hosted(code)"]\n')
    told = lines(world)
    assert told[-1]["exit_code"] == 0 and emulator.hosted() == {}
    assert b"code_interpreter" not in emulator.requests()[0].body


def test_pr_75_ux_130_a_search_without_sources_is_told_as_information(
    world: World, emulator: EmulatorProcess
) -> None:
    declare(world, emulator, ["search"])
    emulator.script([SEARCH, SEARCH])
    done = world.run("-p", "go")
    assert (done.returncode, done.stdout) == (0, "Nobody knows.\n")
    assert done.stderr.count("The search finished; the provider gave no usable sources.") == 1
    (reply,) = [one for one in lines(world) if one["type"] == "assistant"]
    assert reply["searches"] == [{"sources": [], "sources_status": "not_provided"}]
    assert emulator.hosted() == {"search": 2}  # one for each run, none by itself


@pytest.mark.parametrize(
    ("hosted", "wire"), [(["mcp"], "responses"), (["code"], "chat"), (["magic"], "responses")]
)
def test_pr_98_a_kind_without_a_form_is_a_fault_of_the_settings(
    world: World, emulator: EmulatorProcess, hosted: list[str], wire: str
) -> None:
    declare(world, emulator, hosted, wire=wire)
    done = world.run("-p", "go")
    assert done.returncode == 2 and hosted[0] in done.stderr and "hosted_tools" in done.stderr
    assert emulator.requests() == []


def test_fi_21_pr_98_a_kill_in_the_middle_leaves_an_unknown_call_and_nothing_is_sent_again(
    world: World, emulator: EmulatorProcess
) -> None:
    declare(world, emulator, ["code"])
    emulator.script([RUN, {"text": "Later.", "thinking": "So."}])
    emulator.fault(match={"nth": 1}, count=1, delay_headers=None)
    running = world.start("-p", "go")
    wait_for(lambda: len(emulator.requests()) == 1)
    running.send_signal(signal.SIGKILL)
    running.communicate(timeout=120)
    listed = world.run("recover", "list").stdout
    assert "hosted:request code" in listed
    assert world.run("session", "show").returncode == 0 and len(emulator.requests()) == 1
    emulator.release()
    stopped = world.run("-c", "-p", "go on")
    assert stopped.returncode == 3 and len(emulator.requests()) == 1  # undecided: no model is asked
