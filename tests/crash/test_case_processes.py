"""Cases of family F: what runs on is listed, and nothing of ours kills what it should not.

The rows f01, f02, f04, f07, f08 and f11 stand with the supervisor's own tests.
"""

from __future__ import annotations

from surefoot.testing.kills import TELLS, Site
from surefoot.testing.model import call


def test_case_f01_a_background_command_of_a_dead_agent_fences_nothing_in_the_next_session(site: Site) -> None:
    site.script(
        {"calls": [call("shell", command="exec sleep 300", background=True)]},
        {"calls": [call("pay", label=site.label)]},
        TELLS,
    )
    assert site.run(prompts=("go",), kill_at=1, only=("append[attempt.closed].after",)).killed
    session = site.again().report["sessionId"]
    other = site.run()
    assert len(other.report["background"]) == 1 and other.report["open"] == []
    resumed = site.run(session=session, carry_out=True, go_on=True)
    assert len(resumed.report["background"]) == 1 and site.equipment.sink.count(site.label) == 1
    assert all(one["state"] != "unknown" for one in resumed.report["receipts"])


def test_case_f06_ending_a_command_by_its_group_leaves_the_agent_alive(site: Site) -> None:
    site.script({"calls": [call("shell", command="kill -9 0"), call("look", label=site.label)]}, TELLS)
    ended = site.run(prompts=("go",))
    assert ended.report["turns"][0]["status"] == "completed"
    first, second = ended.report["receipts"]
    assert (first["state"], first["reason"]) == ("unknown", "process_signal") and second[
        "state"
    ] == "succeeded"


def test_case_f09_a_command_that_kills_its_parents_group_does_not_reach_the_agent(site: Site) -> None:
    kills = "kill -9 -- -$(ps -o pgid= -p $PPID | tr -d ' ') 2> /dev/null; echo after"
    site.script({"calls": [call("shell", command=kills)]}, TELLS)
    ended = site.run(prompts=("go",))
    assert ended.report["turns"][0]["status"] == "completed" and len(ended.report["receipts"]) == 1
    asked = [entry.json()["messages"] for entry in site.equipment.emulator.requests()]
    assert len(asked) == 2 and ended.report["statuses"][-1] == "completed"
