"""Cases R30 and R31: the process dies between a call and its result, or while a person is asked about it.

The next process sends the call's signature back as it came: the strict emulator demands it for every step of the
turn that is on.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from surefoot.testing.crash import Ended, run_child
from surefoot.testing.kills import TELLS, Site
from surefoot.testing.model import call

ASKING = {"permissions.mode": "default"}


def run(site: Site, **fields: Any) -> Ended:
    """A child that speaks to an endpoint which signs its calls and wants them signed."""
    equipment = site.equipment
    spec = dataclasses.replace(
        site.spec(**fields), url=equipment.emulator.base_url("gemini"), contract="gemini/chat"
    )
    return run_child(spec, site.root, nursery=equipment.nursery)


def signatures(site: Site) -> list[list[Any]]:
    """Of each request of this endpoint, the signatures it brings back."""
    found = []
    for entry in site.equipment.emulator.requests():
        if entry.profile == "gemini":
            calls = [one for message in entry.json()["messages"] for one in message.get("tool_calls") or ()]
            found.append([(one.get("extra_content") or {}).get("google") for one in calls])
            assert entry.status == 200, entry.rules
    return found


@pytest.mark.parametrize("seam", ["append[attempt.started].after", "append[attempt.closed].before"])
def test_case_r30_ge_01_a_signature_survives_a_death_between_call_and_result(site: Site, seam: str) -> None:
    before = len(signatures(site))
    site.script(
        {"calls": [call("pay", label=site.label)]}, {"calls": [call("look", label=site.label)]}, TELLS
    )
    assert run(site, prompts=("go",), kill_at=1, only=(seam,)).killed
    ended = run(site, session="newest", carry_out=True, go_on=True)
    assert ended.report["turns"][-1]["status"] == "completed"
    sent = signatures(site)[before:]
    assert [len(one) for one in sent] == [0, 1, 2] and all(one["thought_signature"] for one in sent[-1])
    assert sent[1] == sent[2][:1] and "skip_thought" not in str(sent)
    assert site.equipment.sink.count(site.label) == (0 if "started" in seam else 1)


def test_case_r31_ge_01_a_question_to_a_person_does_not_touch_the_signature(site: Site) -> None:
    before = len(signatures(site))
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)
    asked = run(site, prompts=("go",), kill_at=1, only=("asked",), answers=(), flags=ASKING)
    assert asked.fatal == "asked" and site.equipment.sink.count(site.label) == 0
    ended = run(site, session="newest", carry_out=True, go_on=True, answers=("approved",), flags=ASKING)
    assert ended.report["turns"][-1]["status"] == "completed" and site.equipment.sink.count(site.label) == 1
    nothing, [sent] = signatures(site)[before:]
    assert nothing == [] and sent["thought_signature"] and "skip_thought" not in str(sent)
