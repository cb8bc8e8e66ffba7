"""The recovery snapshot: names, order, bounds, revision."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from surefoot.core.admission import Controls, attempt_facts
from surefoot.core.model import ExecutorState, Kind
from surefoot.core.snapshot import Asked, CallFacts, SessionFacts, revision_of, select, size_of, snapshot

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
        asked=Asked(more.get("inspected")),
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


def many(tell: Any, count: int) -> Any:
    """A session with this many open writes, each looked at with as much evidence as is kept."""
    story = tell()
    for number in range(count):
        name = f"a{number}"
        story.unknown(name, startedAt=1)
        look = {"id": f"ins_{number}", "state": "unknown", "evidence": {"log": "é" * 4000}}
        story.add(Kind.INSPECTED, attemptId=name, inspection=look, proven=False)
    return story


def of_size(story: Any, most: int | None, **more: Any) -> dict[str, Any]:
    receipts, left = select(story.book, named=more.get("named"))
    alive = ExecutorState.ALIVE
    calls = [CallFacts(one, attempt_facts(one, story.book, executor=alive), "VERIFY") for one in receipts]
    counts = story.book.statistics()
    return snapshot(
        SESSION, Controls(), calls, statistics=counts, more=left, asked=Asked(most_bytes=most, **more)
    )


def test_tr_147_tr_185_two_hundred_calls_with_full_evidence_fit_and_the_rest_is_counted(tell: Any) -> None:
    story = many(tell, 300)
    whole, bounded = of_size(story, None), of_size(story, 2 * 1024 * 1024)
    assert len(whole["calls"]) == 200 and whole["more"] == 100
    assert of_size(story, size_of(whole) + 200 * 600 + 2048)["calls"] == whole["calls"], (
        "at the bound all fit"
    )
    small = of_size(many(tell, 200), 1024 * 1024)
    assert size_of(small) <= 1024 * 1024 and 0 < len(small["calls"]) < 200
    assert len(small["calls"]) + small["more"] == 200, "what is left out is counted"
    assert [call["attemptId"] for call in small["calls"]] == [f"a{n}" for n in range(len(small["calls"]))]
    assert small["revision"] == revision_of(small) and size_of(bounded) <= 2 * 1024 * 1024


@pytest.mark.parametrize("how", ["named", "inspected"])
@pytest.mark.parametrize("attempt", ["a0", "a150", "a250"])
def test_tr_141_tr_185_the_call_that_is_asked_about_is_in_every_snapshot(
    tell: Any, how: str, attempt: str
) -> None:
    story = many(tell, 300)
    receipts, left = select(story.book, named=attempt)
    assert len(receipts) == 200 and left == 100 and attempt in [one.attempt_id for one in receipts]
    shown = of_size(
        story, 256 * 1024, named=attempt, **({"inspected": attempt} if how == "inspected" else {})
    )
    assert attempt in [call["attemptId"] for call in shown["calls"]] and size_of(shown) <= 256 * 1024
    assert len(shown["calls"]) + shown["more"] == 300
    assert ("arguments" in {key for call in shown["calls"] for key in call}) is (how == "inspected")


def test_tr_120_tr_185_open_reads_leave_no_open_write_out(tell: Any) -> None:
    story = tell()
    for number in range(3):
        story.unknown(f"r{number}", "READ_ONLY")
    story.unknown("w")
    receipts, left = select(story.book, calls=2)
    assert [one.attempt_id for one in receipts] == ["w", "r0"] and left == 2
