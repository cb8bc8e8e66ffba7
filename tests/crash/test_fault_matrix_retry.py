"""TR-186, step F13: the retry that a person asks for, struck at each of its writes.

The old call was killed before its effect, so its verifier proves that it is absent; the retry
is a new attempt under the same key. Both records come in one commit or none does.
"""

from __future__ import annotations

from typing import Any

import pytest

from surefoot.app import RETRY_SWITCH
from surefoot.testing.crash import Ended
from surefoot.testing.kills import TELLS, Site
from surefoot.testing.model import call

FULL = {"do": "full"}
FSYNC = {"do": "disk", "operation": "sync"}
FSYNC_LASTING = {**FSYNC, "lasting": True}
STARTED = "append[attempt.started]"
RETRY = {"action": "retry", "attemptId": "open"}


@pytest.fixture(autouse=True)
def switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RETRY_SWITCH, "1")


def told(ended: Ended) -> list[tuple[str, str | None]]:
    return [(one["state"], one["reason"]) for one in ended.report["receipts"]]


def effects(site: Site) -> int:
    return site.equipment.sink.count(site.label)


def dead_before_its_effect(site: Site) -> None:
    site.script({"calls": [call("pay", label=site.label)]}, TELLS)
    seam = "tool[pay].before_effect"
    assert site.run(prompts=("go",), kill_at=1, only=(seam,)).fatal == seam


def retried(site: Site, **fields: Any) -> Ended:
    dead_before_its_effect(site)
    return site.again(actions=(RETRY,), **fields)


def struck(site: Site, seam: str, strike: dict[str, Any], **fields: Any) -> Ended:
    ended = retried(site, kill_at=1, only=(seam,), strike=strike, **fields)
    if "fault" in ended.report:
        assert ended.report["fault"]["at"] == seam
        assert strike["do"] != "full" or ended.report["fault"]["disk"] >= 1
    else:
        assert ended.seams[:1] == [seam]
    return ended


def test_tr_186_f13_killed_before_the_commit_neither_record_is_there(site: Site) -> None:
    assert retried(site, kill_at=1, only=(f"{STARTED}.before",)).killed
    opened = site.again(verify=False)
    first, second = opened.report["receipts"]
    assert (first["state"], first["supersededBy"]) == ("unknown", None)
    assert second["state"] == "not_started" and effects(site) == 0
    assert opened.report["open"] == [first["attemptId"]]


@pytest.mark.parametrize(
    ("seam", "made"),
    [(f"{STARTED}.after", 0), ("tool[pay].after_effect", 1), ("append[attempt.closed].after", 1)],
)
def test_tr_186_f13_killed_after_the_commit_both_records_are_there(site: Site, seam: str, made: int) -> None:
    assert retried(site, kill_at=1, only=(seam,)).fatal == seam
    opened = site.again(verify=False)
    first, second = opened.report["receipts"]
    assert first["supersededBy"] == second["attemptId"] and first["state"] == "unknown"
    assert first["idempotencyKey"] == second["idempotencyKey"]
    assert second["state"] == ("succeeded" if "closed" in seam else "unknown") and effects(site) == made


@pytest.mark.parametrize("strike", [FULL, FSYNC, FSYNC_LASTING])
def test_tr_186_f13_a_start_that_cannot_be_written_leaves_the_old_call_open(
    site: Site, strike: dict[str, Any]
) -> None:
    ended = struck(site, f"{STARTED}.before", strike)
    (answer,) = ended.report["answers"]
    opened = site.again(verify=False)
    first, second = opened.report["receipts"]
    assert effects(site) == 0 and first["state"] == "unknown"
    if answer["status"] == 200:  # a failed sync whose record was found: it stands, and its body stayed out
        assert strike is FSYNC and (second["state"], second["reason"]) == ("failed", "never_ran")
        assert first["supersededBy"] == second["attemptId"]
        return
    assert (answer["status"], len(opened.report["open"])) == (409, 1)
    if strike is FULL:
        assert answer["body"]["code"] in ("storage_failed", "receipt_not_durable")
        assert opened.report["open"] == [first["attemptId"]]


def test_tr_186_f13_given_up_before_the_commit_it_is_both_or_neither(site: Site) -> None:
    ended = struck(site, f"{STARTED}.before", {"do": "stop"})
    opened = site.again(verify=False)
    first = opened.report["receipts"][0]
    begun = first["supersededBy"] is not None
    assert begun == (len([one for one in opened.report["receipts"] if one["startedAt"]]) == 2)
    assert effects(site) <= 1 and ended.report["fault"]["at"] == f"{STARTED}.before"
    assert begun or opened.report["open"] == [first["attemptId"]]


def test_tr_186_f13_a_stop_after_the_commit_leaves_the_new_attempt_unknown(site: Site) -> None:
    dead_before_its_effect(site)
    site.equipment.sink.switch(reply="hold")
    try:
        seam = "tool[pay].before_effect"
        ended = site.again(actions=(RETRY,), kill_at=1, only=(seam,), strike={"do": "stop"}, release=True)
    finally:
        site.equipment.sink.switch(reply="now")
        site.equipment.sink.release()
    assert ended.report["fault"]["at"] == seam and effects(site) == 1
    first, second = ended.report["beforeRelease"]
    assert first["supersededBy"] == second["attemptId"]
    assert (second["state"], second["reason"]) == ("unknown", "cancelled")


@pytest.mark.parametrize("how", ["limit", "lost"])
def test_tr_186_f13_a_retry_that_ends_unclear_is_unknown(site: Site, how: str) -> None:
    dead_before_its_effect(site)
    sink = site.equipment.sink
    sink.switch(reply="hold" if how == "limit" else "drop")
    try:
        limit = 0.3 if how == "limit" else None
        ended = site.again(actions=(RETRY,), limit_seconds=limit, release=how == "limit")
    finally:
        sink.switch(reply="now")
        sink.release()
    assert ended.report["answers"][0]["status"] == 200 and effects(site) == 1
    first, second = ended.report["beforeRelease" if how == "limit" else "receipts"]
    assert (first["supersededBy"], second["effectTrace"]) == (second["attemptId"], "possible")
    assert (second["state"], second["reason"]) == ("unknown", "time_limit" if how == "limit" else "declared")


def test_tr_187_a_retry_beside_a_living_process_is_refused_and_nothing_runs(site: Site) -> None:
    waits = "while ! test -e go; do sleep 0.01; done; echo effect >> effects"
    site.script({"calls": [call("shell", command=waits)]}, TELLS)
    assert site.run(prompts=("go",), kill_at=1, only=("append[attempt.process].after",)).killed
    ended = site.again(actions=(RETRY,))
    (answer,) = ended.report["answers"]
    assert answer["status"] == 409 and ended.report["receipts"][0]["executor"]["state"] == "alive"
    assert len(ended.report["receipts"]) == 1
    assert ended.report["plan"] == [[ended.report["receipts"][0]["callId"], "ASK_USER", "3"]] or (
        ended.report["plan"][0][1] != "RETRY"
    )
    (site.project / "go").touch()
    site.quiet()
    assert site.lines("effects") == 1
