"""The recovery snapshot: names, order, bounds, revision."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from surefoot.core.admission import Controls, attempt_facts
from surefoot.core.model import ExecutorState
from surefoot.core.snapshot import CallFacts, SessionFacts, revision_of, select, snapshot

SESSION = SessionFacts("led_x/ses_1", "7", "reach", "stop", False)
FIELDS = [
    "attemptId", "callId", "turnId", "tool", "class", "reach", "state", "reason", "overlays", "open", "fencing",
    "decision", "executor", "parked", "idempotencyKey", "argumentDigest", "startedAt", "finishedAt",
    "inspectionId", "inspection", "resolution", "offBranch", "process", "actions",
]  # fmt: skip


def shown(story: Any, session: SessionFacts = SESSION, **more: Any) -> dict[str, Any]:
    receipts, left = select(story.book)
    calls = [
        CallFacts(
            receipt,
            attempt_facts(receipt, story.book, executor=ExecutorState.ALIVE),
            "VERIFY",
            parked=more.get("parked"),
        )
        for receipt in receipts
    ]
    return snapshot(
        session,
        Controls(),
        calls,
        statistics=story.book.statistics(),
        more=left,
        inspected=more.get("inspected"),
    )


def test_tr_139_the_snapshot_has_the_names_of_the_specification_in_their_order(tell: Any) -> None:
    one = shown(tell().unknown("a", idempotencyKey="sf1-x", startedAt=1))
    assert list(one) == [
        "sessionPath", "runtimeEpoch", "revision", "silent", "retryEnabled", "barrier", "onUnknown", "more",
        "background", "statistics", "calls",
    ]  # fmt: skip
    assert list(one["calls"][0]) == FIELDS
    assert list(one["statistics"]) == [
        "unknown", "confirmed", "denied", "retried", "rejected", "released", "proven", "late", "blocked",
    ]  # fmt: skip
    assert one["calls"][0]["executor"] == {"state": "alive"}
    assert (one["calls"][0]["open"], one["calls"][0]["fencing"]) == (True, True)
    assert json.loads(json.dumps(one)) == one


def test_tr_139_without_calls_the_list_is_empty_and_never_null(tell: Any) -> None:
    one = shown(tell())
    assert (one["calls"], one["background"], one["more"]) == ([], [], 0)


def test_tr_139_open_calls_come_first_then_the_last_resolved_and_the_rest_is_counted(tell: Any) -> None:
    story = tell()
    for name in ("a", "b", "c", "d"):
        story.unknown(name)
    story.resolve("b", "released").resolve("a", "denied")
    receipts, left = select(story.book)
    assert [one.attempt_id for one in receipts] == ["c", "d", "a", "b"] and left == 0
    receipts, left = select(story.book, resolved=1)
    assert [one.attempt_id for one in receipts] == ["c", "d", "a"] and left == 1
    receipts, left = select(story.book, calls=1)
    assert [one.attempt_id for one in receipts] == ["c"] and left == 3
    receipts, left = select(story.book, resolved=0)
    assert [one.attempt_id for one in receipts] == ["c", "d"] and left == 2


def test_tr_139_tr_185_the_bounds_hold_at_and_above_the_limit(tell: Any) -> None:
    story = tell()
    for number in range(51):
        story.unknown(f"r{number}").resolve(f"r{number}", "released")
    for number in range(151):
        story.unknown(f"o{number}")
    receipts, left = select(story.book)
    assert (len(receipts), left) == (200, 2)
    assert sum(story.book.is_open(one.attempt_id) for one in receipts) == 151


def test_tr_140_equal_content_gives_an_equal_revision_and_any_change_a_new_one(tell: Any) -> None:
    story = tell().unknown("a").unknown("b")
    first = shown(story)
    assert shown(story) == first and first["revision"].startswith("sha256:")
    seen = {first["revision"]}
    for changed in (
        shown(story, dataclasses.replace(SESSION, barrier="session")),
        shown(story, dataclasses.replace(SESSION, runtime_epoch="8")),
        shown(story, dataclasses.replace(SESSION, background=[{"pid": 3}])),
        shown(story, parked="confirm"),
        shown(story.inspect("a", "unknown")),
        shown(story.resolve("a", "rejected")),
        shown(story.resolve("a", "released")),
        shown(story.late("b", "succeeded")),
    ):
        assert changed["revision"] not in seen
        seen.add(changed["revision"])


def test_tr_140_tr_141_arguments_stand_only_at_the_inspected_call_and_change_no_revision(tell: Any) -> None:
    story = tell().unknown("a", arguments='{"amount":5}').unknown("b", arguments='{"amount":6}')
    plain, looked = shown(story), shown(story, inspected="a")
    assert all("arguments" not in call for call in plain["calls"])
    assert [call.get("arguments") for call in looked["calls"]] == ['{"amount":5}', None]
    assert plain["revision"] == looked["revision"] == revision_of(looked)
    assert "amount" not in json.dumps(plain)


def test_tr_79_a_read_is_listed_as_open_and_does_not_fence(tell: Any) -> None:
    call = shown(tell().unknown("a", "READ_ONLY", reach=[]))["calls"][0]
    assert (call["open"], call["fencing"], call["class"]) == (True, False, "READ_ONLY")


def test_ec_7_the_snapshot_shows_the_stricter_declaration(tell: Any) -> None:
    story = tell().unknown(
        "a", "IDEMPOTENT_WRITE", reach=["path:/a"], stricterNow={"class": "UNKNOWN", "reach": ["*"]}
    )
    call = shown(story)["calls"][0]
    assert (call["class"], call["reach"]) == ("UNKNOWN", ["*"])
