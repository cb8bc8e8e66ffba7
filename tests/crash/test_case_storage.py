"""Cases of family D: a store that fails is told, keeps what it has, and grows in a line.

Covered where they belong: d06, d11, d15 and d16 in `test_case_known.py`, d13 in `e2e/test_case_drift.py`,
d18 in `test_case_hosts.py`, d04 and d05 for every byte by the bit and tail tests of the matrix.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from surefoot.testing.crash import Blow, Ended
from surefoot.testing.kills import TELLS, Site
from surefoot.testing.model import call

FULL = {"do": "full"}
STARTED, CLOSED = "append[attempt.started]", "append[attempt.closed]"


def told(ended: Ended) -> list[tuple[str, str | None]]:
    return [(one["state"], one["reason"]) for one in ended.report["receipts"]]


def effects(site: Site) -> int:
    return site.equipment.sink.count(site.label)


def pays(site: Site) -> None:
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)


def killed(site: Site, seam: str, **fields: Any) -> None:
    pays(site)
    assert site.run(prompts=("go",), kill_at=1, only=(seam,), **fields).fatal == seam


def ledger_of(site: Site) -> Path:
    (path,) = site.root.rglob("ledger.db")
    return path


def test_case_d01_a_full_disk_refuses_the_start_and_reading_goes_on(site: Site) -> None:
    pays(site)
    ended = site.run(prompts=("go",), kill_at=1, only=(f"{STARTED}.before",), strike=FULL)
    assert ended.report["fault"]["disk"] >= 1 and effects(site) == 0
    assert ended.report["words"] == ["go"] and f"did {site.label}" not in str(ended.report["turns"])
    assert [state for state, _ in told(site.again())] == ["not_started"]


SITES = ("append[turn+user+turn]", "append[assistant]", STARTED, CLOSED)


@pytest.mark.parametrize("where", SITES)
def test_case_d02_nothing_is_acknowledged_that_is_not_stored(site: Site, where: str) -> None:
    pays(site)
    seam = f"{where}.before"
    strike = {"do": "disk", "operation": "write", "lasting": True}
    ended = site.run(prompts=("go",), kill_at=1, only=(seam,), strike=strike, blow=Blow(0.8))
    assert seam in ended.seams
    turns = ended.report.get("turns", [])
    assert all(turn["status"] != "completed" for turn in turns)
    opened = site.again(verify=False)
    stored = [] if "error" in opened.report else opened.report["receipts"]
    assert effects(site) == (1 if where == CLOSED else 0)
    assert [one["state"] for one in stored if one["state"] == "succeeded"] == []
    assert effects(site) == 0 or stored[0]["state"] == "unknown"


def test_case_d03_a_pause_that_cannot_be_stored_is_shown_to_nobody(site: Site) -> None:
    site.script({"calls": [call("ask_user", question="Which colour?")]}, TELLS)
    at = {"kill_at": 1, "only": ("append[question]", "asked"), "strike": FULL, "blow": Blow(0.8)}
    ended = site.run(prompts=("go",), answers=("blue",), **at)
    assert ended.seams[0] == "append[question].before" and "asked" not in ended.seams


@pytest.mark.parametrize("keep", [0, 100, 4096, -1])
def test_case_d04_a_truncated_ledger_is_named_and_never_an_empty_session(site: Site, keep: int) -> None:
    killed(site, "tool[pay].after_effect")
    path = ledger_of(site)
    for log in path.parent.glob("ledger.db-*"):
        log.unlink()
    content = path.read_bytes()
    path.write_bytes(content[:keep])
    ended = site.again(verify=False)
    receipts = ended.report.get("receipts", [])
    assert "error" in ended.report or [one["state"] for one in receipts[:1]] == ["unknown"]
    assert effects(site) == 1


def test_case_d05_half_a_write_is_never_joined_with_the_next(site: Site) -> None:
    pays(site)
    strike = {"do": "disk", "operation": "write", "how": "short"}
    ended = site.run(prompts=("go",), kill_at=1, only=(f"{CLOSED}.before",), strike=strike)
    assert ended.report["fault"]["disk"] == 1 and told(ended) == [("succeeded", None)]
    opened = site.again()
    assert told(opened) == told(ended) and opened.report["statuses"][-1] == "completed"
    assert effects(site) == 1


def test_case_d07_a_torn_blob_is_named_and_the_session_opens(site: Site) -> None:
    site.script({"calls": [call("shell", command="seq 1 60000")]}, {"text": "Counted."}, TELLS)
    few = {"limits.inline_result_bytes": 4096}
    assert told(site.run(prompts=("go",), flags=few)) == [("succeeded", None)]
    blobs = [path for path in ledger_of(site).parent.rglob("blobs/**/*") if path.is_file()]
    assert blobs
    for path in blobs:
        path.write_bytes(b"")
    opened = site.again()
    assert told(opened) == [("succeeded", None)] and opened.report["verified"] == ["blob_damaged"]
    went_on = site.again(prompts=("what did it say?",))
    assert went_on.report["turns"][0]["status"] == "completed"
    asked = site.equipment.emulator.requests()[-1].json()["messages"]
    (result,) = [message["content"] for message in asked if message["role"] == "tool"]
    assert opened.report["receipts"][0]["resultDigest"][7:15] in result


def test_case_d08_the_ledger_grows_in_a_line(site: Site) -> None:
    site.script(*([{"text": "Said."}] * 75))
    sizes = []
    for _ in range(3):
        ended = site.run(session="newest" if sizes else None, prompts=("go on, please",) * 25)
        assert ended.report["statuses"].count("completed") == 25 * (len(sizes) + 1)
        sizes.append(sum(path.stat().st_size for path in ledger_of(site).parent.glob("ledger.db*")))
    first, second = sizes[1] - sizes[0], sizes[2] - sizes[1]
    assert second <= first * 1.1 + 3 * 4096


def test_case_d10_an_accepted_prompt_is_durable(site: Site) -> None:
    killed(site, "append[turn+user+turn].after")
    assert site.again().report["words"] == ["go"]


def test_case_d12_a_card_is_complete_from_the_ledger_alone(site: Site) -> None:
    killed(site, "tool[pay].after_effect")
    (shown,) = site.again(verify=False).report["snapshot"]["calls"]
    assert (shown["tool"], shown["class"], shown["reach"]) == ("pay", "NON_IDEMPOTENT", ["tool:pay"])
    assert shown["open"] and shown["inspectionId"] and shown["idempotencyKey"] and shown["startedAt"]


def test_case_d14_a_newer_milder_declaration_makes_no_old_call_safe(site: Site) -> None:
    killed(site, "tool[pay].after_effect")
    milder = {"declared": {"pay": "IDEMPOTENT_WRITE"}, "verify": False}
    opened = site.again(**milder, carry_out=True, go_on=True)
    assert effects(site) == 1 and opened.report["receipts"][0]["class"] == "NON_IDEMPOTENT"
    assert [decision for _, decision, _ in opened.report["plan"]] == ["ASK_USER"]


def test_case_d17_the_chain_goes_on_across_two_resumes(site: Site) -> None:
    killed(site, "tool[pay].after_effect")
    for _ in range(2):
        site.again(verify=False, go_on=True)
    opened = site.again(verify=False)
    assert opened.report["verified"] == [] and effects(site) == 1
    assert int(opened.report["opened"]["runtimeEpoch"]) == 4
