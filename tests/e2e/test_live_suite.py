"""The opt-in live suite: silent without keys, and its cases proven here with the strict emulator in their place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from surefoot.testing.emulator.process import EmulatorProcess

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-nobody-may-see-this"
LOOK = {"thinking": "I look.", "calls": [{"name": "read", "args": {"path": "notes/marker.txt"}}]}
DONE = {"thinking": "So.", "text": "The kettle is blue."}


def live(tmp_path: Path, *arguments: str, **variables: str) -> tuple[int, str, list[dict[str, Any]]]:
    """Exit code, everything it said, and its records."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    file = tmp_path / "live.json"
    done = subprocess.run(
        [sys.executable, "tests/live/suite.py", "--json", str(file), *arguments],
        cwd=ROOT, env={**kept, "HOME": str(tmp_path), **variables}, timeout=100, capture_output=True, text=True,
    )  # fmt: skip
    records = json.loads(file.read_text()) if file.exists() else []
    assert KEY not in done.stdout + done.stderr + json.dumps(records)
    return done.returncode, done.stdout + done.stderr, records


def test_pr_96_without_credentials_it_says_what_would_run_and_sends_nothing(tmp_path: Path) -> None:
    code, said, records = live(tmp_path)
    assert (code, records) == (0, [])
    for row in ("FI-1", "FI-2", "FI-3", "FI-4", "FI-5", "FI-6", "FI-7"):
        assert row in said
    assert "set DEEPSEEK_API_KEY" in said


def test_pr_95_make_test_collects_nothing_of_it() -> None:
    assert not list((ROOT / "tests/live").rglob("test_*.py"))
    assert "tests/live" not in (ROOT / "tests/run.sh").read_text()


@pytest.mark.parametrize("wire", ["chat", "anthropic", "responses"])
def test_pr_95_fi_1_runs_on_every_wire_with_one_execution(tmp_path: Path, wire: str) -> None:
    with EmulatorProcess(tmp_path) as emulator:
        emulator.script([LOOK, DONE])
        url = emulator.base_url("deepseek", wire=wire) + ("/v1" if wire == "anthropic" else "")
        place = {f"SUREFOOT_LIVE_DEEPSEEK_URL_{wire.upper()}": url, "SUREFOOT_LIVE_DEEPSEEK_MODELS": "m"}
        code, said, records = live(tmp_path, "--row", "FI-1", "--wire", wire, DEEPSEEK_API_KEY=KEY, **place)
    (found,) = records
    assert (found["statuses"], found["executions"], found["verdict"]) == ([200, 400, 200], 1, "passed"), said
    assert (found["fired"], found["automatic"]) == (True, True)
    assert code == 0


def test_pr_95_rows_of_a_gateway_fail_honestly_and_count_explicit_recovery_apart(tmp_path: Path) -> None:
    with EmulatorProcess(tmp_path) as emulator:
        emulator.script([LOOK, DONE], by="history")
        url = emulator.base_url("deepseek")
        code, said, records = live(
            tmp_path, SUREFOOT_LIVE_GATEWAY_KEY=KEY, SUREFOOT_LIVE_GATEWAY_MODEL="m",
            SUREFOOT_LIVE_GATEWAY_URL_RESPONSES=url, SUREFOOT_LIVE_GATEWAY_URL_CHAT=url,
        )  # fmt: skip
    verdicts = {(one["row"], one["wire"]): one for one in records}
    assert verdicts["FI-3", "responses"]["statuses"][:3] == [200, 400, 200], said
    assert {one["executions"] for one in records} == {1}  # also where the model repeats its call afterwards
    assert verdicts["FI-3", "responses"]["verdict"] == "passed"
    assert verdicts["FI-4", "chat"]["verdict"] == "passed"
    bare = verdicts["FI-6", "responses"]
    assert not bare["automatic"] and not bare["explicit"] and bare["ended"].startswith("failed"), said
    assert code == 0
    assert "FI-2 gateway/m anthropic: set SUREFOOT_LIVE_GATEWAY_URL_ANTHROPIC" in said


def test_pr_95_fi_5_an_accepted_edit_is_not_exercised_and_never_passed(tmp_path: Path) -> None:
    with EmulatorProcess(tmp_path) as emulator:
        emulator.script([LOOK, DONE], by="history")
        url = emulator.base_url("kimi-selfhosted")
        _, said, records = live(
            tmp_path, "--row", "FI-4", SUREFOOT_LIVE_GATEWAY_KEY=KEY, SUREFOOT_LIVE_GATEWAY_MODEL="m",
            SUREFOOT_LIVE_GATEWAY_URL_CHAT=url,
        )  # fmt: skip
    assert [record["verdict"] for record in records] == ["not_exercised"], said


SEARCHED = {
    "server_search": {"query": "Mount Fuji", "sources": 10},
    "text": "3,776 m.",
    "thinking": "I search.",
}


@pytest.mark.parametrize(
    ("first", "status"),
    [
        (SEARCHED, "available"),
        (
            {"behaviour": "search_without_sources", "text": "3,776 m.", "thinking": "I search."},
            "not_provided",
        ),
    ],
    ids=["ten-sources", "none"],
)
def test_fi_7_pr_95_a_native_search_is_told_and_its_items_come_back_on_both_wires_with_two_models(
    tmp_path: Path, first: dict[str, Any], status: str
) -> None:
    with EmulatorProcess(tmp_path) as emulator:
        emulator.script([first, LOOK, DONE], by="history")
        code, said, records = live(
            tmp_path, "--row", "FI-7", SUREFOOT_LIVE_SEARCH_KEY=KEY, SUREFOOT_LIVE_SEARCH_MODELS="a,b",
            SUREFOOT_LIVE_SEARCH_URL_ANTHROPIC=emulator.base_url("anthropic", wire="anthropic") + "/v1",
            SUREFOOT_LIVE_SEARCH_URL_RESPONSES=emulator.base_url("openai"),
            SUREFOOT_LIVE_SEARCH_CONTRACT_ANTHROPIC="anthropic/anthropic",
            SUREFOOT_LIVE_SEARCH_CONTRACT_RESPONSES="openai/responses",
        )  # fmt: skip
    assert [(one["verdict"], one["sources"], one["searches"], one["replayed"]) for one in records] == [
        ("passed", status, 1, True)
    ] * 4, said
    assert {tuple(one["statuses"]) for one in records} == {(200, 200, 200)} and code == 0


def test_fi_7_pr_95_a_search_that_did_not_happen_is_no_pass(tmp_path: Path) -> None:
    with EmulatorProcess(tmp_path) as emulator:
        emulator.script([DONE, LOOK, DONE], by="history")
        code, said, records = live(
            tmp_path, "--row", "FI-7", SUREFOOT_LIVE_SEARCH_KEY=KEY, SUREFOOT_LIVE_SEARCH_MODELS="a",
            SUREFOOT_LIVE_SEARCH_URL_RESPONSES=emulator.base_url("openai"),
        )  # fmt: skip
    assert [one["verdict"] for one in records] == ["failed: the provider finished no search"], said
    assert code == 1 and "FI-7 native search anthropic: set SUREFOOT_LIVE_SEARCH_URL_ANTHROPIC" in said


def test_pr_95_fi_2_a_gateway_that_gives_no_reason_is_recovered_explicitly(tmp_path: Path) -> None:
    with EmulatorProcess(tmp_path) as emulator:
        emulator.script([LOOK, DONE], by="history")
        emulator.fault(match={"nth": 2}, stage="before_validate", status=400, raw="")
        code, said, records = live(
            tmp_path, "--row", "FI-2", SUREFOOT_LIVE_GATEWAY_KEY=KEY, SUREFOOT_LIVE_GATEWAY_MODEL="m",
            SUREFOOT_LIVE_GATEWAY_URL_ANTHROPIC=emulator.base_url("deepseek", wire="anthropic") + "/v1",
        )  # fmt: skip
    (found,) = records
    assert (found["statuses"][:3], found["verdict"], found["executions"]) == ([200, 400, 200], "passed", 1), (
        said
    )
    assert (found["automatic"], found["explicit"]) == (False, True) and code == 0
